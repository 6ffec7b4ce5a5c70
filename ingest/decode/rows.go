package decode

import (
	"bytes"
	"fmt"
	"slices"

	"applier/ingest/change"
	"applier/storage/types"
)

// cell is a value of a record that was located but not converted yet.
type cell struct {
	raw  []byte // JSON, validated; nil: the record has no such value
	conv *conv
	text bool // raw is a bare text, not JSON
}

// rows builds the rows of all formats: it converts images into cells, fills
// what they lack from the record key, and checks the result.
type rows struct {
	*planner
	opts     Options
	keyAt    []int // by column: its place in the merge key, -1 for others
	notNull  []int // columns that take no NULL
	required []int // … and have no default either: a record must know them
	metas    []meta
	hole     *placeholder

	s         scanner // the value
	tok       token
	cells     scanner // located values
	cellTok   token
	imageKey  [][]byte // merge key tokens of the image read last, by place
	beforeKey []cell   // merge key of the before image, by place
	oldKey    []cell   // merge key in a header, by place
	keyVec    []*types.Vector
	datums    []types.Datum
	key       recordKey
}

func newRows(o Options, without source) (*rows, error) {
	hole, err := newPlaceholder(o.Unavailable)
	if err != nil {
		return nil, err
	}
	r := &rows{
		planner: newPlanner(&o, without), opts: o, hole: hole,
		keyAt: make([]int, len(o.Fields)), imageKey: make([][]byte, len(o.Key)),
		beforeKey: make([]cell, len(o.Key)), oldKey: make([]cell, len(o.Key)), datums: make([]types.Datum, len(o.Key)),
	}
	for i, f := range o.Fields {
		r.keyAt[i] = -1
		if f.Type.NotNull {
			r.notNull = append(r.notNull, i)
			if f.Default == nil {
				r.required = append(r.required, i)
			}
		}
	}
	for at, i := range o.Key {
		r.keyAt[i] = at
		r.keyVec = append(r.keyVec, types.NewVector(o.Fields[i].Type))
	}
	r.key.init(r)
	r.addMetas()
	return r, nil
}

// rowError names the column of a fault.
func (r *rows) rowError(column int, f *fault) *RowError {
	field := r.fields[column]
	return &RowError{Class: f.class, Column: field.Name, Msg: f.msg + " (" + field.Type.Nullable().String() + ")"}
}

// syntaxError describes what a scanner stumbled over.
func syntaxError(s *scanner, what string) *RowError {
	class := ClassSyntax
	if s.bad == badWrapper {
		class = ClassEnvelope
	}
	return &RowError{Class: class, Msg: fmt.Sprintf("%s: %s at byte %d", what, badTexts[-s.bad-1], s.badAt)}
}

// image converts the object at s into one more cell of every column that images
// fill. The row is not ended yet.
func (r *rows) image(s *scanner, pl *plan, out *change.Batch) *RowError {
	row := out.Len()
	clear(r.imageKey)
	t := &r.tok
	filled := 0
	for sl := pl.open(s); sl != nil; sl = pl.next(s) {
		if sl.id < 0 {
			if !s.skip() {
				break
			}
			continue
		}
		if !s.token(t) {
			break
		}
		filled++
		col := &out.Cols[sl.id]
		at := r.keyAt[sl.id]
		if at >= 0 {
			r.imageKey[at] = t.raw
		}
		if t.kind == kindNull {
			col.AppendNull()
		} else if t.kind != kindNumber && at < 0 && r.hole != nil && r.hole.is(t) {
			col.AppendNull()
			col.Unavailable.Set(row)
		} else if f := sl.conv.fn(&sl.conv, t, col.Vector); f != nil {
			return r.rowError(sl.id, f)
		}
	}
	if s.bad != 0 {
		return syntaxError(s, "value")
	}
	if filled+len(r.metas) < len(r.fields) {
		return r.fillAbsent(out, row)
	}
	return nil
}

// fillAbsent gives the columns that the image lacked the value of the record
// key, or a hole.
func (r *rows) fillAbsent(out *change.Batch, row int) *RowError {
	for i := range out.Cols {
		col := &out.Cols[i]
		if col.Len() > row || r.skip[i] {
			continue
		}
		if c := r.key.cell(i); c != nil {
			if f := r.convert(c, col.Vector); f != nil {
				return r.rowError(i, f)
			}
			continue
		}
		col.AppendNull()
		col.Absent.Set(row)
	}
	return nil
}

// convert appends a located value to a vector.
func (r *rows) convert(c *cell, v *types.Vector) *fault {
	t := &r.cellTok
	if c.text {
		*t = token{kind: kindString, raw: c.raw, text: c.raw}
	} else {
		r.cells.reset(c.raw)
		if !r.cells.token(t) {
			return errForm // was validated, so it cannot be
		}
	}
	if t.kind == kindNull {
		v.AppendNull()
		return nil
	}
	return c.conv.fn(c.conv, t, v)
}

// locate walks a before image and keeps its merge key for later.
func (r *rows) locate(s *scanner, pl *plan) bool {
	for sl := pl.open(s); sl != nil; sl = pl.next(s) {
		s.peek()
		from := s.p
		if !s.skip() {
			break
		}
		if sl.id < 0 {
			continue
		}
		if at := r.keyAt[sl.id]; at >= 0 {
			r.beforeKey[at] = cell{raw: s.b[from:s.p], conv: &sl.conv}
		}
	}
	return s.bad == 0
}

// finish fills the metadata columns of the row that image began, checks the row
// and ends it.
func (r *rows) finish(out *change.Batch, kind change.Kind, ev *event) *RowError {
	row := out.Len()
	for i := range r.metas {
		if err := r.fillMeta(&r.metas[i], out, kind, ev); err != nil {
			return err
		}
	}
	if err := r.checkKey(out, row); err != nil {
		return err
	}
	for _, i := range r.opts.OrderBy {
		if out.Cols[i].IsNull(row) {
			return &RowError{Class: ClassKey, Column: r.fields[i].Name, Msg: "the change carries no value for an order_by column"}
		}
	}
	// NOT NULL is checked first, then defaults are applied: a written NULL is an
	// error also where the column has a default (row-level.md §6.7).
	for _, i := range r.notNull {
		if col := &out.Cols[i]; col.IsNull(row) && !col.Hole(row) {
			return &RowError{Class: ClassNotNull, Column: r.fields[i].Name, Msg: "NULL for a NOT NULL column"}
		}
	}
	for _, c := range r.opts.Conditions {
		if col := &out.Cols[c.Column]; !col.IsNull(row) {
			if err := c.Check(col.Datum(row)); err != nil {
				return &RowError{Class: ClassRange, Column: r.fields[c.Column].Name, Msg: err.Error()}
			}
		}
	}
	out.EndRow(kind, ev.rec.Part, ev.rec.Offset, ev.time)
	if r.opts.KeepEvery || r.opts.KeepRaw && out.Holes.Get(row) && r.mayStay(out, row) {
		out.KeepRaw(ev.rec.raw())
	}
	return nil
}

// mayStay reports whether a hole of the row may turn out impossible to fill: an
// unavailable value, or an absent one of a column that takes no NULL.
func (r *rows) mayStay(out *change.Batch, row int) bool {
	for i := range out.Cols {
		if out.Cols[i].Unavailable.Get(row) {
			return true
		}
	}
	return slices.ContainsFunc(r.required, func(i int) bool { return out.Cols[i].Absent.Get(row) })
}

// checkKey checks the merge key of an unfinished row against NULL and against
// the record key.
func (r *rows) checkKey(out *change.Batch, row int) *RowError {
	for at, i := range r.opts.Key {
		col := &out.Cols[i]
		switch {
		case col.Absent.Get(row):
			return &RowError{Class: ClassKey, Column: r.fields[i].Name, Msg: "merge key column missing from the value and the record key" + r.key.trouble()}
		case col.IsNull(row):
			return &RowError{Class: ClassNullKey, Column: r.fields[i].Name, Msg: "merge key column is NULL"}
		}
		c := r.key.cell(i)
		if c == nil || r.imageKey[at] == nil || bytes.Equal(c.raw, r.imageKey[at]) && !c.text {
			continue
		}
		same, f := r.sameCell(c, at, col.Vector, row)
		if f != nil || !same {
			return &RowError{Class: ClassKey, Column: r.fields[i].Name, Msg: "the record key contradicts the value"}
		}
	}
	return nil
}

// sameCell compares a located value with a cell of the merge key column at.
func (r *rows) sameCell(c *cell, at int, v *types.Vector, row int) (bool, *fault) {
	k := r.keyVec[at]
	k.Reset()
	if f := r.convert(c, k); f != nil {
		return false, f
	}
	return types.CompareCells(k, 0, v, row) == 0, nil
}

// deletion appends a delete: merge key and metadata it consists of, NULL
// elsewhere. Its place in the order (order_by) comes from metadata only: a before
// image tells the place of the change before it, or nothing (cdc-formats.md §2.4).
func (r *rows) deletion(out *change.Batch, ev *event, useRecordKey bool) *RowError {
	clear(r.imageKey)
	for i := range out.Cols {
		col := &out.Cols[i]
		if r.skip[i] {
			continue
		}
		at := r.keyAt[i]
		if at < 0 {
			col.AppendNull()
			if r.opts.BeforeImages {
				col.Absent.Set(out.Len())
			}
			continue
		}
		c := &r.beforeKey[at]
		if k := r.key.cell(i); k != nil && useRecordKey {
			c = k
		}
		if c.raw == nil {
			return &RowError{Class: ClassKey, Column: r.fields[i].Name, Msg: "a delete without this merge key column" + r.key.trouble()}
		}
		if f := r.convert(c, col.Vector); f != nil {
			return r.rowError(i, f)
		}
	}
	for i := range r.metas {
		m := &r.metas[i]
		if r.keyAt[m.column] < 0 && !slices.Contains(r.opts.OrderBy, m.column) && !r.opts.BeforeImages {
			out.Cols[m.column].AppendNull()
		} else if err := r.fillMeta(m, out, change.Delete, ev); err != nil {
			return err
		}
	}
	return r.endDeletion(out, ev)
}

// endDeletion checks the row of a delete and ends it.
func (r *rows) endDeletion(out *change.Batch, ev *event) *RowError {
	row := out.Len()
	for _, i := range r.opts.Key {
		if out.Cols[i].IsNull(row) {
			return &RowError{Class: ClassNullKey, Column: r.fields[i].Name, Msg: "merge key column is NULL"}
		}
	}
	for _, i := range r.opts.OrderBy {
		if out.Cols[i].IsNull(row) {
			return &RowError{Class: ClassKey, Column: r.fields[i].Name, Msg: "a delete carries no value for this order_by column; fill it from metadata (columns.add)"}
		}
	}
	out.EndRow(change.Delete, ev.rec.Part, ev.rec.Offset, ev.time)
	if r.opts.KeepEvery {
		out.KeepRaw(ev.rec.raw())
	}
	return nil
}
