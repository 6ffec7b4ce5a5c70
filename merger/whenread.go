package merger

import (
	"slices"

	"applier/merger/keyindex"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// This file finds out what clauses need of the table's rows before they are read:
// reading old rows costs with the table, everything else with the batch.

// readMerged reads of the rows that the changes match what the clauses may need and,
// where a change that leaves something open moved a row from another key, all of those
// and of that one. linked tells that there are such.
func (pl *planner) readMerged() (linked bool, err error) {
	for w := range pl.batch.Changes.Len() {
		linked = linked || pl.links(w)
	}
	pl.old.Start, pl.old.Loc = pl.old.Start[:0], pl.old.Loc[:0]
	var locs []keyindex.Loc
	want := make([]bool, len(pl.fields))
	if linked {
		if err := pl.find(pl.batch.OldKeys, nil, &pl.old); err != nil {
			return false, err
		}
		locs = append(slices.Clone(pl.matches.Loc), pl.old.Loc...)
		for c := range want {
			want[c] = true
		}
	} else {
		locs = pl.wanted(want)
	}
	var cols []int
	pl.carriedAt = slices.Grow(pl.carriedAt[:0], len(pl.fields))[:len(pl.fields)]
	pl.unread = slices.Repeat([]types.Datum{types.Null}, len(pl.fields))
	for c := range pl.fields {
		pl.carriedAt[c] = -1
		if want[c] {
			pl.carriedAt[c] = len(cols)
			cols = append(cols, c)
		}
	}
	pl.carried, err = pl.readOld(locs, cols)
	return linked, err
}

// wanted returns the rows of the keys of which some change may need a column, and
// notes which columns these are.
func (pl *planner) wanted(want []bool) (locs []keyindex.Loc) {
	for j := range pl.batch.Winners {
		rows, need := pl.rows(j), false
		if len(rows) == 0 {
			continue
		}
		for _, w := range pl.chainOf(j) {
			pl.when.hold(pl.batch.Changes, pl.batch.Partitions, int(w), nil)
			need = pl.when.needs(pl.s.Merge.SkipUnchanged, want) || need
		}
		if need {
			locs = append(locs, rows...)
		}
	}
	return locs
}

// needs notes the columns of the row that the clauses may need for the change that is
// held, and reports whether there are any. A condition that looks at the change alone
// is decided here; of one that looks at the row too, both outcomes are possible.
func (w *when) needs(skipUnchanged bool, want []bool) (any bool) {
	need := func(c int) { want[c], any = true, true }
	for _, c := range w.clauses[sqlparse.Matched] {
		certain := c.cond == nil
		if !certain && !w.readsRow(c.cond.Slots(), need) {
			hit, err := c.cond.Test(w.row)
			switch {
			case err != nil:
				return any // the change is refused, if not before
			case !hit:
				continue
			}
			certain = true
		}
		if c.action != sqlparse.MergeDelete {
			w.needsOf(c, skipUnchanged, need)
		}
		if certain {
			return any
		}
	}
	return any
}

// readsRow calls need for the columns of the row among the slots, and for those of the
// change that stand for them, and reports whether there are any.
func (w *when) readsRow(slots []int, need func(c int)) (any bool) {
	n := len(w.target.Fields)
	for _, s := range slots {
		switch {
		case s < n:
			need(s)
			any = true
		case s < 2*n && slices.Contains(w.change.unavailable, s-n):
			need(s - n)
			any = true
		}
	}
	return any
}

// needsOf calls need for what a clause that updates takes from the row: values made of
// it, and the columns that stay.
func (w *when) needsOf(c *whenClause, skipUnchanged bool, need func(c int)) {
	var given types.Bitmap
	for i := range c.set {
		s := &c.set[i]
		switch {
		case s.source >= 0 && w.change.absent[s.source]:
			continue
		case s.a == nil:
			w.readsRow([]int{len(w.target.Fields) + s.source}, need)
		default:
			w.readsRow(s.a.Slots(), need)
		}
		if s.a == nil || s.a.Whole() {
			given.Set(s.col)
		}
	}
	for col := range w.target.Fields {
		if skipUnchanged || !given.Get(col) {
			need(col)
		}
	}
}

// mergeState begins a key with what was read of its rows.
func (pl *planner) mergeState(j int) *mergeState {
	st := &mergeState{stored: pl.rows(j)}
	for _, l := range st.stored {
		r := mergeRow{loc: l, stored: true}
		r.at, r.values = pl.carriedRow(l)
		st.rows = append(st.rows, r)
	}
	return st
}

// carriedRow returns a row of the table with the columns that were read, and its place
// in carried. It is not to be changed: rows of which nothing was read are all the same.
func (pl *planner) carriedRow(l keyindex.Loc) (at int, values []types.Datum) {
	at, read := slices.BinarySearch(pl.carried.locs, l)
	if !read {
		return -1, pl.unread
	}
	values = slices.Clone(pl.unread)
	for c, from := range pl.carriedAt {
		if from >= 0 {
			values[c] = pl.carried.batch.Cols[from].Datum(at)
		}
	}
	return at, values
}
