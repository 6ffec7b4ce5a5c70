package merger

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"applier/ingest/change"
	"applier/merger/expr"
	"applier/merger/keyindex"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// heldChange is the change that clauses see: what it does not say, and whether a row
// has said it meanwhile.
type heldChange struct {
	absent      []bool // by column: the change does not carry it; s reads NULL
	filled      []bool // by column: s reads what a row of the table holds, where a NULL stays one
	unavailable []int  // columns whose value its producer could not send
}

func newHeldChange(columns int) heldChange {
	return heldChange{absent: make([]bool, columns), filled: make([]bool, columns)}
}

// mergeRow is a row of a key while the changes of the batch are applied.
type mergeRow struct {
	loc    keyindex.Loc // its place in the table
	stored bool         // it has one
	at     int          // then: its row of carried
	values []types.Datum
	set    bool // a clause has set something
}

// mergeState is what the rows of one key are.
type mergeState struct {
	stored  []keyindex.Loc // of the table
	rows    []mergeRow
	past    []types.Datum // what the row held that a clause deleted last
	refused bool          // some change could not be applied, and was counted
}

// mergeAll decides a batch by the clauses.
func (pl *planner) mergeAll() error {
	linked, err := pl.readMerged()
	if err != nil {
		return err
	}
	if linked {
		pl.mergeLinked()
	} else {
		for j := range pl.batch.Winners {
			st := pl.mergeState(j)
			for _, w := range slices.Backward(pl.chainOf(j)) {
				pl.mergeChange(st, int(w), nil)
			}
			pl.settleMerge(st)
		}
	}
	pl.p.acted = pl.when.acted
	return nil
}

// mergeLinked applies all changes in the order of their arrival: a row that moves to
// another key takes along what its old key's row holds at that moment.
func (pl *planner) mergeLinked() {
	n := pl.batch.Changes.Len()
	of, states, byHead := make([]*mergeState, n), []*mergeState{}, map[int32]*mergeState{}
	for j := range pl.batch.Winners {
		st := pl.mergeState(j)
		states = append(states, st)
		byHead[int32(pl.batch.Head(j))] = st
		for _, w := range pl.chainOf(j) {
			of[w] = st
		}
	}
	for w, st := range of {
		if st != nil {
			pl.mergeChange(st, w, pl.movedFrom(w, byHead))
		}
	}
	for _, st := range states {
		pl.settleMerge(st)
	}
}

// movedFrom returns what the row held that change w moved here, nil if nothing is
// known or the change says all itself.
func (pl *planner) movedFrom(w int, byHead map[int32]*mergeState) []types.Datum {
	if !pl.links(w) {
		return nil
	}
	old := pl.batch.Changes.OldKeyOf(w)
	if head := pl.batch.OldHead[old]; head >= 0 {
		if st := byHead[head]; len(st.rows) > 0 {
			return st.rows[0].values
		}
		return byHead[head].past
	}
	if rows := pl.old.Rows(old); len(rows) > 0 {
		_, values := pl.carriedRow(rows[0])
		return values
	}
	return nil
}

// mergeChange applies one change to the rows of its key, or refuses it.
func (pl *planner) mergeChange(st *mergeState, w int, from []types.Datum) {
	pl.when.hold(pl.batch.Changes, pl.batch.Partitions, w, from)
	var err *change.RowError
	if len(st.rows) == 0 {
		err = pl.when.notMatched(st)
	} else {
		err = pl.when.matched(st)
	}
	if err != nil {
		st.refused = true
		pl.p.letters = append(pl.p.letters, rowLetter{w, err})
	}
}

// opNames are the kinds of changes as Debezium names them.
var opNames = [...]string{change.Insert: "c", change.Update: "u", change.Read: "r", change.Delete: "d"}

// hold lets the clauses see change i. What it leaves open is filled from the row that
// it moved here, if one is known.
func (w *when) hold(c *change.Batch, parts []change.Partition, i int, from []types.Datum) {
	n := len(w.target.Fields)
	w.change.unavailable = w.change.unavailable[:0]
	for k := range n {
		col := &c.Cols[k]
		w.change.absent[k] = from == nil && col.Absent.Get(i)
		w.change.filled[k] = from != nil && col.Hole(i) || col.Unavailable.Get(i)
		if from == nil && col.Unavailable.Get(i) {
			w.change.unavailable = append(w.change.unavailable, k)
		}
		if from != nil && col.Hole(i) {
			w.row[n+k] = from[k]
		} else {
			w.row[n+k] = col.Datum(i)
		}
	}
	p := parts[c.Part[i]]
	copy(w.row[2*n:], expr.Row{
		types.StringDatum(opNames[c.Kind[i]]), types.IntDatum(c.Time[i] * 1000), types.StringDatum(p.Topic),
		types.IntDatum(int64(p.Partition)), types.IntDatum(c.Offset[i]),
	})
}

// matched puts each row of the change's key to the clauses. An error changes none.
func (w *when) matched(st *mergeState) *change.RowError {
	n := len(w.target.Fields)
	next := make([]mergeRow, 0, len(st.rows))
	past, acted := st.past, slices.Clone(w.acted)
	for _, r := range st.rows {
		copy(w.row, r.values)
		for _, k := range w.change.unavailable { // the source's row has what it had
			w.row[n+k] = r.values[k]
		}
		c, err := w.choose(sqlparse.Matched, false)
		if err != nil {
			return err
		}
		if c == nil {
			next = append(next, r)
			continue
		}
		acted[c.number-1]++
		if c.action == sqlparse.MergeDelete {
			past = r.values
			continue
		}
		if r.values, err = w.updated(c, r.values); err != nil {
			return err
		}
		r.set = true
		next = append(next, r)
	}
	st.rows, st.past, w.acted = next, past, acted
	return nil
}

// notMatched puts a change whose key has no row to the clauses.
func (w *when) notMatched(st *mergeState) *change.RowError {
	c, err := w.choose(sqlparse.NotMatched, true)
	if c == nil || err != nil {
		return err
	}
	values, err := w.inserted(c)
	if err != nil {
		return err
	}
	w.acted[c.number-1]++
	st.rows = append(st.rows, mergeRow{values: values, set: true})
	return nil
}

// choose returns the first clause of a family whose condition is TRUE, nil for none.
// open: what the producer could not send is not known from anywhere.
func (w *when) choose(f sqlparse.MergeFamily, open bool) (*whenClause, *change.RowError) {
	for _, c := range w.clauses[f] {
		if c.cond == nil {
			return c, nil
		}
		if open {
			if err := w.lacking(c.cond.Slots()); err != nil {
				return nil, err
			}
		}
		hit, err := c.cond.Test(w.row)
		if err != nil {
			return nil, refusal(c, "", err)
		}
		if hit {
			return c, nil
		}
	}
	return nil, nil
}

// lacking refuses to read a value that the producer could not send.
func (w *when) lacking(slots []int) *change.RowError {
	n := len(w.target.Fields)
	for _, k := range w.change.unavailable {
		if slices.Contains(slots, n+k) {
			return &change.RowError{Class: change.ClassUnavailable, Column: w.target.Fields[k].Name, Msg: "the producer did not send the value and no earlier one is known"}
		}
	}
	return nil
}

// updated is the new version of a row. A column that the change does not carry keeps
// its value where the clause asks for nothing but it.
func (w *when) updated(c *whenClause, old []types.Datum) ([]types.Datum, *change.RowError) {
	out := slices.Clone(old)
	for i := range c.set {
		if s := &c.set[i]; s.source < 0 || !w.change.absent[s.source] {
			if err := w.assign(c, s, out); err != nil {
				return nil, err
			}
		}
	}
	return out, w.check(out)
}

// inserted makes a new row. A column that the change does not carry gets its default.
func (w *when) inserted(c *whenClause) ([]types.Datum, *change.RowError) {
	n := len(w.target.Fields)
	out := make([]types.Datum, n)
	var missing types.Bitmap
	for i := range n {
		missing.Set(i)
	}
	for i := range c.set {
		s := &c.set[i]
		if s.source >= 0 && w.change.absent[s.source] {
			continue
		}
		slots := []int{n + s.source}
		if s.a != nil {
			slots = s.a.Slots()
		}
		if err := w.lacking(slots); err != nil {
			return nil, err
		}
		if err := w.assign(c, s, out); err != nil {
			return nil, err
		}
		missing.Clear(s.col)
	}
	for i, f := range w.target.Fields {
		if !missing.Get(i) {
			continue
		}
		d, err := w.target.Omitted(i, sqlparse.Pos{})
		if err != nil {
			return nil, &change.RowError{Class: change.ClassNotNull, Column: f.Name, Msg: "the record of a new row lacks a NOT NULL column"}
		}
		out[i] = d
	}
	return out, w.check(out)
}

// assign computes one value into a row.
func (w *when) assign(c *whenClause, s *setting, out []types.Datum) *change.RowError {
	f := w.target.Fields[s.col]
	if s.a == nil {
		d := w.row[len(w.target.Fields)+s.source]
		if !w.change.filled[s.source] {
			d = w.target.Defaulted(s.col, d)
		}
		if d.Null && f.Type.NotNull {
			return &change.RowError{Class: change.ClassNotNull, Column: f.Name, Msg: fmt.Sprintf("clause %d stores NULL in a NOT NULL column", c.number)}
		}
		out[s.col] = d
		return nil
	}
	d, err := s.a.Eval(w.row)
	if err == nil {
		err = w.target.Store(out, s.a, d)
	}
	if err != nil {
		return refusal(c, f.Name, err)
	}
	return nil
}

// check looks whether the values of partition columns can name folders.
func (w *when) check(row []types.Datum) *change.RowError {
	for i, check := range w.checks {
		if check == nil || row[i].Null {
			continue
		}
		if err := check(row[i]); err != nil {
			return &change.RowError{Class: change.ClassRange, Column: w.target.Fields[i].Name, Msg: err.Error()}
		}
	}
	return nil
}

// refusal is the error of a change that a clause cannot be evaluated for. Messages of
// expressions have values in them, which row errors must not.
func refusal(c *whenClause, column string, err error) *change.RowError {
	out := &change.RowError{Class: change.ClassType, Column: column, Msg: fmt.Sprintf("clause %d cannot be evaluated", c.number)}
	var e *expr.Error
	if !errors.As(err, &e) {
		return out
	}
	out.Msg += ": " + e.Class
	switch {
	case e.Class == expr.ClassNotNull:
		out.Class = change.ClassNotNull
	case e.Class == expr.ClassLength:
		out.Class = change.ClassLength
	case strings.Contains(e.Class, "OVERFLOW"), strings.Contains(e.Class, "OUT_OF_RANGE"):
		out.Class = change.ClassRange
	}
	return out
}

// settleMerge plans what became of the rows of a key.
func (pl *planner) settleMerge(st *mergeState) {
	kept, updated, fresh := 0, 0, 0
	gone := slices.Clone(st.stored)
	for i := range st.rows {
		r := &st.rows[i]
		switch {
		case !r.stored:
			fresh++
			pl.p.out.AppendDatums(r.values)
			pl.from(0)
			continue
		case !r.set || pl.s.Merge.SkipUnchanged && pl.unchanged(r):
			kept++
		default:
			updated++
			pl.markAll([]keyindex.Loc{r.loc})
			pl.p.out.AppendDatums(r.values)
			pl.from(r.loc)
		}
		gone = slices.DeleteFunc(gone, func(l keyindex.Loc) bool { return l == r.loc })
	}
	pl.markAll(gone)
	count := &pl.p.counts
	replaced := min(fresh, len(gone)) // deleted and put again in one batch
	count.Updated += int64(updated + replaced)
	count.Deleted += int64(len(gone) - replaced)
	count.Inserted += int64(fresh - replaced)
	if updated+fresh+len(gone) == 0 && !st.refused {
		count.Unchanged++
	}
}

// unchanged reports whether a row equals what the table holds.
func (pl *planner) unchanged(r *mergeRow) bool {
	for c, f := range pl.fields {
		if types.CompareDatums(f.Type, r.values[c], pl.carried.batch.Cols[pl.carriedAt[c]].Datum(r.at)) != 0 {
			return false
		}
	}
	return true
}
