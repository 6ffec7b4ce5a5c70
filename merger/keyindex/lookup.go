package keyindex

import (
	"fmt"
	"math"

	"applier/storage/types"
)

// Matches are the rows that Lookup found. Its memory is reused.
type Matches struct {
	// Start has one item more than keys were looked up: the rows of the j-th are
	// Loc[Start[j]:Start[j+1]].
	Start []uint32
	// Loc are the live rows, ascending for each key.
	Loc []Loc
}

// Rows returns the rows of the j-th selected key; they alias m.
func (m *Matches) Rows(j int) []Loc { return m.Loc[m.Start[j]:m.Start[j+1]:m.Start[j+1]] }

// Lookup finds, for each key in sel (all keys if sel is nil), all its live rows
// in ascending order. A NULL key has none. m is overwritten.
//
// Keys may come in any order; a few thousand at a time are best looked up
// together. Errors: ErrIncomplete while a segment lacks rows, ErrLost when the
// sidecar cannot be read or does not hold what was written; m is void then.
func (x *Index) Lookup(keys *types.Keys, sel []uint32, m *Matches) error {
	m.Start, m.Loc = append(m.Start[:0], 0), m.Loc[:0]
	if err := x.usable(); err != nil {
		return err
	}
	if x.segs.incomplete > 0 {
		return fmt.Errorf("%w: %d files lack rows", ErrIncomplete, x.segs.incomplete)
	}
	n := keys.Len()
	if sel != nil {
		n = len(sel)
	}
	if n == 0 {
		return nil
	}
	if keys.Class != x.class {
		return fmt.Errorf("%w: keys of class %d in an index of class %d", ErrInvalid, keys.Class, x.class)
	}
	if x.class != types.KeyBytes {
		return x.lookup(keys, sel, n, m)
	}
	if err := guard(func() error { return x.lookup(keys, sel, n, m) }); err != nil {
		return x.fail(err)
	}
	return nil
}

// lookup works in blocks, each in passes: first the home slots of all its keys
// are loaded, without a branch on what they hold, so that their cache misses
// overlap; then the entries are read. Long keys are compared the same way.
func (x *Index) lookup(keys *types.Keys, sel []uint32, n int, m *Matches) error {
	var rows [ahead]uint32
	for from := 0; from < n; from += ahead {
		block := rows[:min(ahead, n-from)]
		if sel != nil {
			copy(block, sel[from:])
		} else {
			for j := range block {
				block[j] = uint32(from + j)
			}
		}
		x.load(keys, block, window*x.w-1)
		first := len(m.Loc)
		for _, i := range block {
			if !keys.Null.Get(int(i)) {
				m.Loc = x.probe(m.Loc, keys.Hash[i], lowOf(keys, int(i)))
			}
			if uint64(len(m.Loc)) > math.MaxUint32 {
				return fmt.Errorf("%w: more than %d matches", ErrInvalid, uint32(math.MaxUint32))
			}
			m.Start = append(m.Start, uint32(len(m.Loc)))
		}
		if x.side != nil {
			if err := x.verify(keys, block, first, m); err != nil {
				return err
			}
		}
		for j, i := range block {
			switch {
			case m.Start[from+j+1] > m.Start[from+j]:
				x.count.hits++
			case !keys.Null.Get(int(i)):
				x.count.misses++
			}
		}
	}
	return nil
}

// probe appends the live rows with this hash (and low).
func (x *Index) probe(found []Loc, hash, low uint64) []Loc {
	s := x.shardOf(hash)
	t, w := s.t, s.w
	i := s.find(hash, low) * w
	for ; t[i] == hash; i += w {
		loc := Loc(t[i+w-1])
		if loc == 0 {
			break
		}
		if w == 3 && t[i+1] != low {
			break
		}
		if x.segs.alive(loc) {
			found = append(found, loc)
		}
	}
	return found
}
