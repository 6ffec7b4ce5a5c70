package keyindex

import (
	"applier/storage/types"
)

const (
	// ahead is the number of table lines that are loaded before the first is
	// used: enough to keep the memory system busy, few enough for the L1 cache.
	ahead = 32
	// mergeMin and mergePart say when a chunk's rows of a shard are merged in one
	// pass over it instead of being inserted one by one.
	mergeMin  = 64
	mergePart = 16
)

// enter makes the entries of scratch.rows. base is the place of row 0.
func (x *Index) enter(base Loc, keys *types.Keys) error {
	rows := x.scratch.rows
	var loaded, end, moved int
	for k := 0; k < len(rows); k++ {
		if k >= loaded {
			loaded = min(k+ahead, len(rows))
			x.load(keys, rows[k:loaded], tailSlots*x.w)
		}
		s := x.shardOf(keys.Hash[rows[k]])
		if k >= end {
			for end = k + 1; end < len(rows) && x.shardOf(keys.Hash[rows[end]]) == s; {
				end++
			}
			moved = 0
		}
		// One pass over the shard is cheaper for a large part of it, and for
		// fewer rows too if they meet long runs, which every insertion moves.
		if m := end - k; m >= mergeMin && m > s.n/mergePart || m > 1 && moved > 2*s.n {
			if err := x.merge(s, base, keys, rows[k:end]); err != nil {
				return err
			}
			k = end - 1
			continue
		}
		if err := x.reserve(s); err != nil {
			return err
		}
		i := rows[k]
		moved += x.insert(s, keys.Hash[i], lowOf(keys, int(i)), base+Loc(i))
	}
	return nil
}

// load touches the home slots of rows, and step by step what lies up to reach
// words behind, so that the cache misses of all of them overlap. reach is at most
// tailSlots slots.
func (x *Index) load(keys *types.Keys, rows []uint32, reach int) {
	const line = 8 // words of a cache line
	var sum uint64
	for _, i := range rows {
		h := keys.Hash[i]
		s := x.shardOf(h)
		at := s.home(h) * s.w
		for end := at + reach; at < end; at += line {
			sum += s.t[at]
		}
		sum += s.t[at]
	}
	x.touched += sum
}

// lowOf is the second word of a key.
func lowOf(keys *types.Keys, i int) uint64 {
	if keys.Class == types.Key128 {
		return keys.Low[i]
	}
	return 0
}

// reserve makes room for one more entry in s, wherever it goes.
func (x *Index) reserve(s *shard) error {
	if s.n >= s.limit {
		c := change{extra: 1}
		if x.scratch.stale > x.entries/8 {
			c.keep = x.segs.alive // perhaps it need not grow
		}
		x.count.growths++
		if err := x.reshape(s, c); err != nil {
			return err
		}
	}
	// An insertion moves the end by one slot at most; the last slot stays empty.
	if need := s.end + 2; need > s.slots() {
		return x.mem.resize(s, need+tailSlots)
	}
	return nil
}

// insert enters one row into s, which has room for it, and returns how many
// entries had to move.
func (x *Index) insert(s *shard, hash, low uint64, loc Loc) (moved int) {
	p := s.find(hash, low)
	q := p
	for s.sameKey(q, hash, low) && !x.segs.alive(s.loc(q)) {
		q++ // the oldest rows of the key are stale
	}
	if q > p {
		x.count.reclaimed += int64(q - p)
		if q == p+1 && !s.sameKey(q, hash, low) {
			s.t[p*s.w+s.w-1] = uint64(loc) // the usual upsert
			return 0
		}
		s.remove(p, q)
		x.entries -= int64(q - p)
	}
	x.entries++
	moved = s.insertAt(s.seek(p, hash, low, uint64(loc)), hash, low, loc)
	x.count.moved += int64(moved)
	return moved
}

// merge enters many rows of one shard in one pass over it.
func (x *Index) merge(s *shard, base Loc, keys *types.Keys, rows []uint32) error {
	sc := &x.scratch
	sc.src = sc.src[:0]
	for _, i := range rows {
		if s.w == 3 {
			sc.src = append(sc.src, keys.Hash[i], keys.Low[i], uint64(base+Loc(i)))
		} else {
			sc.src = append(sc.src, keys.Hash[i], uint64(base+Loc(i)))
		}
	}
	if cap(sc.sorted) < len(sc.src) {
		sc.sorted = make([]uint64, len(sc.src))
	}
	sorted := sc.sorted[:len(sc.src)]
	sc.sorter.sort(sorted, sc.src, s.w, s.bits)
	c := change{add: sorted}
	if x.scratch.stale > 0 {
		c.keep = x.segs.alive
	}
	return x.reshape(s, c)
}
