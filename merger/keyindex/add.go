package keyindex

import (
	"errors"
	"fmt"

	"applier/storage/types"
)

// addScratch is the memory that Add reuses: 4 bytes a row of the largest chunk,
// and 16 or 24 a row that was merged in bulk.
type addScratch struct {
	rows        []uint32 // rows to add, grouped by shard
	first       []uint32 // a shard's first place in rows
	src, sorted []uint64
	sorter      entrySorter
	stale       int64 // stale entries before the chunk
}

// trim lets go of what an unusually large chunk needed.
func (sc *addScratch) trim() {
	const most = 1 << 20 // words: 8 MiB
	if cap(sc.rows)/2 > most || cap(sc.src) > most {
		*sc = addScratch{}
	}
}

// Add enters rows of a segment, those from firstPos on, which must be the number
// of rows added to it so far. Rows with a NULL key, and rows the segment's
// deletion vector already holds, get no entry. The keys are not kept.
//
// Errors: ErrMemory and ErrInvalid change nothing. Any other is ErrLost.
//
// A stale entry of the same key gives its slot to the new row, so an upsert
// costs no memory if the deletion vectors came first. Cost: about one cache miss
// a row; a key with R rows costs, for each of them that is added alone, a move
// of the R-row neighbourhood (0.3 ms at 100,000 rows), and much less in chunks.
func (x *Index) Add(seg, firstPos uint32, keys *types.Keys) error {
	if err := x.usable(); err != nil {
		return err
	}
	g, err := x.accept(seg, firstPos, keys)
	if err != nil {
		return err
	}
	defer x.scratch.trim()
	x.scratch.stale = x.stale()
	x.group(g, firstPos, keys)
	if err := x.enter(MakeLoc(seg, firstPos), keys); err != nil {
		return errors.Join(err, x.undo(MakeLoc(seg, firstPos), keys))
	}
	if err := x.sidecarAppend(g, keys); err != nil {
		return x.fail(err)
	}
	x.segs.advance(g, keys.Len(), keys.Null)
	return nil
}

// accept checks a chunk of rows against its segment.
func (x *Index) accept(seg, firstPos uint32, keys *types.Keys) (*segment, error) {
	g := x.segs.get(seg)
	switch n := keys.Len(); {
	case g == nil:
		return nil, fmt.Errorf("%w: rows of unknown segment %d", ErrInvalid, seg)
	case firstPos != g.next:
		return nil, fmt.Errorf("%w: segment %d: rows from %d after %d rows", ErrInvalid, seg, firstPos, g.next)
	case uint64(n) > uint64(g.rows-g.next):
		return nil, fmt.Errorf("%w: segment %d: %d rows from %d in a file of %d", ErrInvalid, seg, n, firstPos, g.rows)
	case n > 0 && keys.Class != x.class:
		return nil, fmt.Errorf("%w: keys of class %d in an index of class %d", ErrInvalid, keys.Class, x.class)
	}
	return g, nil
}

// skip reports whether row i of a chunk gets no entry.
func (g *segment) skip(firstPos uint32, i int, null types.Bitmap) bool {
	return null.Get(i) || g.dead.Get(int(firstPos)+i)
}

// group lists the rows that get entries in scratch.rows. In all but tiny chunks
// it brings the rows of a shard together (in row order), which makes their table
// accesses near ones.
func (x *Index) group(g *segment, firstPos uint32, keys *types.Keys) {
	sc, n := &x.scratch, keys.Len()
	sc.rows = sc.rows[:0]
	all := len(g.dead) == 0 && !keys.Null.Any()
	for i := range n {
		if all || !g.skip(firstPos, i, keys.Null) {
			sc.rows = append(sc.rows, uint32(i))
		}
	}
	if n = len(sc.rows); n < 2*len(x.shards) {
		return
	}
	shift := 64 - x.bits
	if len(sc.first) != len(x.shards)+1 {
		sc.first = make([]uint32, len(x.shards)+1)
	}
	first := sc.first
	clear(first)
	for _, i := range sc.rows {
		first[keys.Hash[i]>>shift+1]++
	}
	for i := 1; i < len(first); i++ {
		first[i] += first[i-1]
	}
	if cap(sc.rows) < 2*n {
		sc.rows = append(make([]uint32, 0, 2*n), sc.rows...)
	}
	grouped := sc.rows[n : 2*n]
	for _, i := range sc.rows {
		b := keys.Hash[i] >> shift
		grouped[first[b]] = i
		first[b]++
	}
	sc.rows = sc.rows[:copy(sc.rows[:n], grouped)]
}

// undo takes out what enter made of a chunk before it failed. It needs no memory.
func (x *Index) undo(base Loc, keys *types.Keys) error {
	end := base + Loc(keys.Len())
	c := change{keep: func(l Loc) bool { return l < base || l >= end }}
	done := map[*shard]bool{}
	for _, i := range x.scratch.rows {
		s := x.shardOf(keys.Hash[i])
		if done[s] {
			continue
		}
		done[s] = true
		reclaimed := x.count.reclaimed
		if err := x.reshape(s, c); err != nil {
			return x.fail(err)
		}
		x.count.reclaimed = reclaimed
	}
	return nil
}
