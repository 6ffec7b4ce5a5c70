package keyindex

import (
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"applier/storage/types"
)

// segment is one data file.
type segment struct {
	live  bool
	rows  uint32       // in the file
	next  uint32       // rows added so far: the next position
	gone  uint32       // rows that are deleted or have a NULL key
	dead  types.Bitmap // deleted positions; a bit a row beats roaring's search fourfold
	nulls types.Bitmap // positions with a NULL key
	side  *sidecar     // types.KeyBytes only
}

// segBlock is a block of segments. Blocks whose segments are all gone are
// dropped, so that a daemon that adds a file a second for years stays small.
type segBlock struct {
	seg  [1 << segBits]segment
	dead int
}

const segBits = 8

// segTable finds segments by number. Number 0 is never given out.
type segTable struct {
	blocks     []*segBlock
	next       uint64 // next number
	live       int
	incomplete int          // live segments that lack rows
	rows       int64        // rows added to live segments
	gone       int64        // of these, deleted ones and those with a NULL key
	nulls      int64        // NULL keys among the rows of live segments
	dense      types.Bitmap // scratch of setDead
	heapBytes  atomic.Int64 // of dead bitmaps and small sidecars
}

// get returns a live segment or nil.
func (t *segTable) get(seg uint32) *segment {
	if i := int(seg >> segBits); i < len(t.blocks) && t.blocks[i] != nil {
		if g := &t.blocks[i].seg[seg&(1<<segBits-1)]; g.live {
			return g
		}
	}
	return nil
}

// alive reports whether the row of an entry is live.
func (t *segTable) alive(l Loc) bool {
	b := t.blocks[l>>(32+segBits)]
	if b == nil {
		return false
	}
	g := &b.seg[l>>32&(1<<segBits-1)]
	return g.live && !g.dead.Get(int(l.Pos()))
}

func (t *segTable) add(rows uint32) (uint32, *segment, error) {
	if t.next == 0 {
		t.blocks = append(t.blocks, &segBlock{dead: 1})
		t.next = 1
	}
	if t.next > math.MaxUint32 {
		return 0, nil, fmt.Errorf("%w: out of segment numbers", ErrInvalid)
	}
	seg := uint32(t.next)
	if int(seg>>segBits) == len(t.blocks) {
		t.blocks = append(t.blocks, &segBlock{})
	}
	g := &t.blocks[seg>>segBits].seg[seg&(1<<segBits-1)]
	g.live, g.rows = true, rows
	t.next++
	t.live++
	if rows > 0 {
		t.incomplete++
	}
	return seg, g, nil
}

func (t *segTable) remove(seg uint32, g *segment) {
	t.live--
	if g.next < g.rows {
		t.incomplete--
	}
	t.rows -= int64(g.next)
	t.gone -= int64(g.gone)
	t.nulls -= int64(g.nulls.Count())
	t.heapBytes.Add(-8*int64(cap(g.dead)) - g.side.heapBytes())
	*g = segment{}
	b := t.blocks[seg>>segBits]
	if b.dead++; b.dead == len(b.seg) {
		t.blocks[seg>>segBits] = nil
	}
}

// advance counts n more rows of g as added, of which those in nulls have no key.
func (t *segTable) advance(g *segment, n int, nulls types.Bitmap) {
	if nulls.Any() {
		for i := range n {
			if nulls.Get(i) {
				g.nulls.Set(int(g.next) + i)
				t.nulls++
			}
		}
		t.recount(g)
	}
	g.next += uint32(n)
	t.rows += int64(n)
	if n > 0 && g.next == g.rows {
		t.incomplete--
	}
}

// setDead replaces the deleted positions of g and reports whether all that were
// there still are; if not it changes nothing.
func (t *segTable) setDead(g *segment, dv *roaring.Bitmap) bool {
	size := 0
	if dv != nil {
		size = int(dv.DenseSize())
	}
	if cap(t.dense) < size {
		t.dense = make(types.Bitmap, size)
	}
	dense := t.dense[:size]
	clear(dense)
	if size > 0 {
		dv.WriteDenseTo(dense)
	}
	for i, old := range g.dead {
		if i >= size && old != 0 || i < size && old&^dense[i] != 0 {
			return false
		}
	}
	if cap(g.dead) < size {
		t.heapBytes.Add(8 * int64(size-cap(g.dead)))
		g.dead = make(types.Bitmap, size)
	}
	g.dead = g.dead[:size]
	copy(g.dead, dense)
	t.recount(g)
	return true
}

// recount finds out again how many rows of g have no live entry.
func (t *segTable) recount(g *segment) {
	n := g.dead.Count()
	for i, w := range g.nulls {
		if i < len(g.dead) {
			w &^= g.dead[i]
		}
		n += bits.OnesCount64(w)
	}
	t.gone += int64(n) - int64(g.gone)
	g.gone = uint32(n)
}

// each calls f for every live segment in ascending order.
func (t *segTable) each(f func(seg uint32, g *segment) error) error {
	for i, b := range t.blocks {
		if b == nil {
			continue
		}
		for j := range b.seg {
			if g := &b.seg[j]; g.live {
				if err := f(uint32(i<<segBits|j), g); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
