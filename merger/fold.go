package merger

import (
	"slices"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger/keyindex"
	"applier/storage/types"
)

// cell is where an output cell comes from. Without from it is not known yet: the
// stored row's value if there is one, else the column's default, or NULL.
type cell struct {
	from *types.Vector
	row  int
	asIs bool // a value of a stored row: a NULL in it stays NULL
	none bool // the default, or NULL, whatever is stored
}

// keyState is what the rows of one key are while the changes of the batch are
// folded into them.
type keyState struct {
	rows    []keyindex.Loc // of the table
	planned bool           // the key's outcome is decided here, not on the columnar path
	linked  bool           // key changes lead to or from it
	exists  bool           // the key has a row at this point
	stored  bool           // it is the table's: what no change said comes from there
	gone    bool           // a delete removed what the table has
	refused bool           // some change of it could not be applied, and was counted
	last    int            // the change applied last, -1: none since the table's row or the delete
	place   place          // in the order, deletes included
	cells   []cell
	past    *life // of the row that a delete ended last
}

// life is what a row held, for those that a key change makes of it.
type life struct {
	cells  []cell
	stored int // its row in carried, -1 for none
}

// begin starts from the table's rows of a key, at their place in the order.
func (st *keyState) begin(columns int, at place) {
	rows := at.rows
	*st = keyState{rows: rows, exists: len(rows) > 0, stored: len(rows) > 0, last: -1, place: at, cells: st.cells}
	st.cells = slices.Grow(st.cells[:0], columns)[:columns]
	clear(st.cells)
}

// foldAll decides the keys whose winner does not say everything about its row.
// The time it takes is that of their changes, however often a key occurs.
func (pl *planner) foldAll() error {
	if err := pl.loadCarried(); err != nil {
		return err
	}
	pl.foldLinked()
	for _, j := range pl.folded {
		st := pl.linked[int32(pl.batch.Head(j))]
		if st == nil {
			st = pl.fold(j)
		}
		pl.settle(st)
	}
	return nil
}

// fold applies all changes of a winner's key in the order of their arrival, each
// to what the one before it left.
func (pl *planner) fold(j int) *keyState {
	st := &pl.state
	st.begin(len(pl.fields), pl.placeOf(pl.batch.Winners[j], pl.rows(j)))
	st.planned = true
	pl.chain = pl.chainOf(j)
	for _, w := range slices.Backward(pl.chain) {
		pl.apply(st, int(w))
	}
	return st
}

// apply folds one change.
func (pl *planner) apply(st *keyState, w int) {
	c := pl.batch.Changes
	verdict := batcher.Newer
	if pl.ordered() {
		verdict = pl.s.Order.Judge(pl.compare(&st.place, w))
	}
	switch {
	case !verdict.Applies():
		pl.dropped.Set(w)
	case c.Kind[w] == change.Delete && pl.s.Apply != batcher.Append:
		pl.applyDelete(st, w)
	case pl.s.Apply == batcher.InsertOnly && st.exists:
	default:
		if err := pl.put(st, w); err != nil {
			if st.planned {
				st.refused = true
				pl.p.letters = append(pl.p.letters, rowLetter{w, err})
			}
			return
		}
		st.place.last = w
	}
	if st.planned {
		pl.count(verdict, w)
	}
}

func (pl *planner) applyDelete(st *keyState, w int) {
	if st.exists || pl.remembers() {
		st.place.last = w
	}
	switch {
	case !st.exists:
	case pl.s.Apply.Barrier():
		if st.linked { // a key change may ask what it was
			st.past = pl.lifeOf(st)
		}
		st.gone = true
		st.exists, st.stored, st.last = false, false, -1
		clear(st.cells)
	default:
		// A soft delete says nothing about values but its place in the order.
		for _, col := range pl.s.Order.By {
			st.cells[col] = cell{from: pl.batch.Changes.Cols[col].Vector, row: w}
		}
		st.last = w
	}
}

// put applies an image. Its holes keep what is there; those of a new row are
// filled from the row that a key change moved, else they are defaults. An error
// says which hole nothing can fill, and changes nothing.
func (pl *planner) put(st *keyState, w int) *change.RowError {
	c := pl.batch.Changes
	var from *life
	holes := c.Holes.Get(w)
	// A row that is there knows its own values. Where deletes leave rows behind (no
	// barrier) it may be of another life of the key: then the key change knows better.
	if holes && c.OldKeyOf(w) >= 0 && (!st.exists || !pl.s.Apply.Barrier()) {
		from = pl.origin(w)
	}
	if holes && !st.exists && from == nil {
		if err := pl.checkHoles(w); err != nil {
			return err
		}
	}
	for i := range pl.fields {
		col := &c.Cols[i]
		switch {
		case !holes || !col.Hole(w):
			st.cells[i] = cell{from: col.Vector, row: w}
		case from != nil:
			st.cells[i] = pl.lifeCell(from, i)
		}
	}
	st.exists, st.last = true, w
	return nil
}

// checkHoles looks whether a new row can be made of change w, whose holes nothing
// before it fills.
func (pl *planner) checkHoles(w int) *change.RowError {
	c := pl.batch.Changes
	for i, f := range pl.fields {
		col := &c.Cols[i]
		switch {
		case col.Unavailable.Get(w) && c.OldKeyOf(w) >= 0:
			return &change.RowError{Class: change.ClassUnavailable, Column: f.Name, Msg: "the producer did not send the value after a key change, and the row of the old key is gone"}
		case col.Unavailable.Get(w):
			return &change.RowError{Class: change.ClassUnavailable, Column: f.Name, Msg: "the producer did not send the value and no earlier one is known"}
		case col.Absent.Get(w) && f.Type.NotNull && pl.defaults[i] == nil:
			return &change.RowError{Class: change.ClassNotNull, Column: f.Name, Msg: "the record of a new row lacks a NOT NULL column"}
		}
	}
	return nil
}

// settle plans what became of the rows of a key.
func (pl *planner) settle(st *keyState) {
	n := int64(len(st.rows))
	count := &pl.p.counts
	if !st.exists && st.place.last >= 0 {
		pl.remember(uint32(st.place.last))
	}
	switch {
	case !st.exists && n == 0 && st.refused:
		return
	case !st.exists: // never was, or is gone
		pl.remove(st.rows)
		return
	case st.last < 0 && pl.s.Apply == batcher.InsertOnly:
		count.Ignored++
		return
	case st.last < 0: // as it is in the table
		count.Unchanged++
		return
	case n == 0:
		count.Inserted++
	case st.gone:
		count.Updated++
		count.Deleted += n - 1
	case pl.batch.Changes.Kind[st.last] == change.Delete:
		count.Deleted += n
	default:
		count.Updated += n
	}
	pl.markAll(st.rows)
	pl.unremember(uint32(st.last))
	if !st.stored {
		pl.writeFolded(st, -1)
		pl.from(0)
		return
	}
	for _, l := range st.rows {
		pl.writeFolded(st, pl.carried.row(l))
		pl.from(l)
	}
}

// writeFolded appends a row: what the changes said, on row old of carried unless
// it is -1.
func (pl *planner) writeFolded(st *keyState, old int) {
	for c, v := range pl.p.out.Cols {
		x := st.cells[c]
		if x.from == nil && !x.none && old >= 0 {
			x = pl.carriedCell(old, c)
		}
		if st.last >= 0 && c != pl.deletedAt && pl.batch.Changes.Cols[c].Hole(st.last) {
			pl.p.holes.count(x, x.from != nil || x.none)
		}
		switch {
		case c == pl.deletedAt:
			pl.appendDeletedAt(v, st.last)
		case x.from == nil || x.from.IsNull(x.row) && !x.asIs:
			if d := pl.defaults[c]; d != nil {
				v.AppendDatum(*d)
			} else {
				v.AppendNull()
			}
		default:
			v.AppendCell(x.from, x.row)
		}
	}
}

// appendDeletedAt marks a row whose last change is a delete with its time.
func (pl *planner) appendDeletedAt(v *types.Vector, last int) {
	c := pl.batch.Changes
	if c.Kind[last] != change.Delete {
		v.AppendNull()
		return
	}
	v.AppendDatum(types.Datum{I: truncateMillis(c.Time[last], v.Type.Precision) * 1000})
}

// truncateMillis cuts milliseconds to the precision of a timestamp column.
func truncateMillis(ms int64, precision int) int64 {
	unit := int64(1)
	for ; precision < 3; precision++ {
		unit *= 10
	}
	rest := ms % unit
	if rest < 0 {
		rest += unit
	}
	return ms - rest
}
