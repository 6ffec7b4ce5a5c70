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

const (
	// ahead is the number of table lines that are loaded before the first is
	// used: enough to keep the memory system busy, few enough for the L1 cache.
	ahead = 32
	// mergeMin and mergePart say when a chunk's rows of a shard are merged in one
	// pass over it instead of being inserted one by one.
	mergeMin  = 64
	mergePart = 16
)

// Add enters rows of a segment, those from firstPos on, which must be the number
// of rows added to it so far. Rows with a NULL key, and rows the segment's
// deletion vector already holds, get no entry. The keys are not kept.
//
// Errors: ErrMemory and ErrInvalid change nothing. Any other is ErrLost.
//
// A stale entry of the same key gives its slot to the new row, so an upsert
// costs no memory if the deletion vectors came first. Cost: about one cache miss
// a row; a key with R rows costs, for each of them that is added alone, a move
// of the R-row neighbourhood (0.1 ms at 100,000 rows), and much less in chunks.
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
