package merger

import (
	"bytes"
	"context"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger/keyindex"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
)

// A truncation of the source's table is a delete of every row at once, before the
// changes of its batch. Files go as they are, whatever the kind of the table; under
// order_by, rows that are newer than it stay, and it is remembered like the delete
// of a key: as that of all keys.

// emptied are the rows of the table that a truncation takes.
type emptied struct {
	gone    map[uint32]bool            // segments that go as a whole
	some    map[uint32]*roaring.Bitmap // positions in others
	rows    int64
	place   []byte          // in the order, nil without order_by
	verdict batcher.Verdict // of the order: a newer truncation may have been applied before
}

// truncates finds out what a truncation does to the table.
func (pl *planner) truncates(ctx context.Context, v *view, t *change.Truncation) (*emptied, error) {
	e := &emptied{gone: map[uint32]bool{}, some: map[uint32]*roaring.Bitmap{}}
	var at []*types.Vector
	if pl.ordered() {
		for i, c := range pl.s.Order.By {
			x := types.NewVector(pl.fields[c].Type)
			x.AppendDatum(t.Order[i])
			at = append(at, x)
			e.place = types.AppendOrdered(e.place, x, 0)
		}
		if last := pl.lastTruncation(); last != nil {
			e.verdict = pl.s.Order.Judge(bytes.Compare(e.place, last))
		}
	}
	if !e.verdict.Applies() {
		pl.s.Log.Info("a truncate of the source table is older than one that was applied before it", "offset", t.Offset)
		return e, nil
	}
	for _, f := range v.sorted() {
		if err := pl.truncateFile(ctx, v, f, at, e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// truncateFile finds the rows of a file that are not newer than the truncation at a
// place.
func (pl *planner) truncateFile(ctx context.Context, v *view, f *dataFile, at []*types.Vector, e *emptied) error {
	live := f.entry.File.Rows
	if f.vector != nil {
		live -= int64(f.vector.GetCardinality())
	}
	if at == nil {
		e.gone[f.seg] = true
		e.rows += live
		return nil
	}
	taken := roaring.New()
	pos := uint32(0) // as the index counts, which is where the file had the row at first
	err := v.table.ReadFile(ctx, &f.entry, pl.s.Order.By, func(_ int64, b *types.Batch) error {
		for i := range b.Len() {
			for f.removed != nil && f.removed.rows.Contains(pos) {
				pos++
			}
			if (f.vector == nil || !f.vector.Contains(pos)) && pl.s.Order.Judge(compareCells(at, 0, b.Cols, i)).Applies() {
				taken.Add(pos)
			}
			pos++
		}
		return nil
	})
	n := int64(taken.GetCardinality())
	e.rows += n
	switch {
	case n == live:
		e.gone[f.seg] = true
	case n > 0:
		e.some[f.seg] = taken
	}
	return err
}

// compareCells compares row i of x with row j of y, the first column first.
func compareCells(x []*types.Vector, i int, y []*types.Vector, j int) int {
	for c := range x {
		if d := types.CompareCells(x[c], i, y[c], j); d != 0 {
			return d
		}
	}
	return 0
}

// allKeys is the key under which a truncation is remembered. No merge key has it.
var allKeys = []byte{}

// lastTruncation is the place of the truncation that is remembered, nil for none.
func (pl *planner) lastTruncation() []byte {
	if !pl.remembers() {
		return nil
	}
	order, at, ok := pl.memory.Find(allKeys)
	if !ok || at < pl.forget {
		return nil
	}
	return order
}

// truncate begins a plan with what a truncation takes.
func (pl *planner) truncate(e *emptied) {
	pl.floor = pl.lastTruncation()
	if e == nil {
		return
	}
	p := pl.p
	switch e.verdict {
	case batcher.Tied:
		p.counts.Tied++
		return
	case batcher.Overtaken:
		p.counts.Late++
		return
	case batcher.LateTaken:
		p.counts.LateTaken++
	}
	p.gone = e.gone
	p.counts.Truncates, p.counts.Deleted = 1, e.rows
	for seg, rows := range e.some {
		p.deletes[seg] = rows.ToArray()
	}
	if pl.floor = e.place; !pl.remembers() {
		return
	}
	// A delete that is remembered beside it is newer than it.
	_ = pl.memory.Each(func(key, order []byte, _ int64) error {
		if pl.passed(order) {
			p.memory.Remove(key)
		}
		return nil
	})
	p.memory.Put(allKeys, e.place, pl.now)
}

// passed reports whether the batch's truncation takes the place of a remembered delete.
func (pl *planner) passed(order []byte) bool {
	e := pl.emptied
	return e != nil && e.verdict.Applies() && pl.s.Order.Judge(bytes.Compare(e.place, order)).Applies()
}

// left takes out of m the rows that the batch's truncation has taken.
func (pl *planner) left(m *keyindex.Matches) {
	e := pl.emptied
	if e == nil || !e.verdict.Applies() {
		return
	}
	n, from := uint32(0), uint32(0)
	for j := 1; j < len(m.Start); j++ {
		to := m.Start[j]
		for _, l := range m.Loc[from:to] {
			if some := e.some[l.Segment()]; !e.gone[l.Segment()] && (some == nil || !some.Contains(l.Pos())) {
				m.Loc[n] = l
				n++
			}
		}
		from, m.Start[j] = to, n
	}
	m.Loc = m.Loc[:n]
}
