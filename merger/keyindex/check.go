package keyindex

import (
	"fmt"
)

// Check verifies the whole index: the order and place of every entry, the
// counters, that each complete file has exactly rows - |deleted or NULL| live
// entries, and, for long keys, that the sidecar holds the bytes of every live
// entry's hash. The error names the first violation. It reads everything (some
// 30 ns an entry, 400 ns with a sidecar).
func (x *Index) Check() error {
	if err := x.usable(); err != nil {
		return err
	}
	live := map[uint32]uint32{}
	var entries int64
	err := guard(func() error {
		for i := range x.shards {
			if err := x.checkShard(&x.shards[i], live); err != nil {
				return fmt.Errorf("shard %d: %w", i, err)
			}
			entries += int64(x.shards[i].n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if entries != x.entries {
		return fmt.Errorf("key index: %d entries in the shards, %d counted", entries, x.entries)
	}
	return x.segs.each(func(seg uint32, g *segment) error {
		if g.next < g.rows {
			return fmt.Errorf("%w: segment %d has %d of %d rows", ErrIncomplete, seg, g.next, g.rows)
		}
		if want := g.rows - g.gone; live[seg] != want {
			return fmt.Errorf("key index: segment %d: %d rows, %d deleted or NULL, %d live entries", seg, g.rows, g.gone, live[seg])
		}
		return nil
	})
}

func (x *Index) checkShard(s *shard, live map[uint32]uint32) error {
	n, next, last := 0, 0, make([]uint64, s.w)
	for slot := range s.slots() {
		if !s.used(slot) {
			continue
		}
		e := s.t[slot*s.w : slot*s.w+s.w]
		if x.shardOf(e[0]) != s {
			return fmt.Errorf("slot %d: hash %#x belongs elsewhere", slot, e[0])
		}
		if n > 0 && !lessEntry(last, e) {
			return fmt.Errorf("slot %d: out of order", slot)
		}
		if want := max(s.home(e[0]), next); slot != want {
			return fmt.Errorf("slot %d: entry belongs in slot %d", slot, want)
		}
		n, next = n+1, slot+1
		copy(last, e)
		loc := s.loc(slot)
		if !x.segs.alive(loc) {
			continue
		}
		live[loc.Segment()]++
		if x.side != nil {
			if err := x.checkKey(loc, e[0]); err != nil {
				return fmt.Errorf("slot %d: %w", slot, err)
			}
		}
	}
	if n != s.n || next > s.end || s.end >= s.slots() {
		return fmt.Errorf("%d entries to slot %d, counted %d to slot %d of %d", n, next, s.n, s.end, s.slots())
	}
	return nil
}
