package verify

import (
	"slices"
	"strings"
	"time"

	"applier/ingest/change"
	"applier/merger/assign"
	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// clauses is what merge.when makes of one change: docs/merge.md, section "What is
// evaluated", sentence by sentence. It shares the expressions of SQL with the
// pipeline, and nothing else.
//
// A row of expressions has the columns of the table's row (t), those of the change
// (s), and what s has beside them.
type clauses struct {
	m        *model
	target   assign.Target
	list     []clause
	checks   []func(types.Datum) error // of partition columns: what can name a folder
	timeRead bool                      // an expression has read the time since it was last set to false
}

// clause is one of merge.when. Timed are those that read the time of the batch,
// which nothing says later.
type clause struct {
	family sqlparse.MergeFamily
	action sqlparse.MergeAction
	cond   *expr.Expr
	timed  bool
	set    []given
}

// given is a value that a clause gives to a column.
type given struct {
	*assign.Assignment
	// column of the change that is the whole value, -1 for others; same: of the same type.
	column int
	same   bool
	timed  bool
}

// said is a change as clauses see it.
type said struct {
	row         expr.Row
	timed       []bool // by slot of row: the value is the time of a batch
	absent      []bool // by column: the change does not carry it
	filled      []bool // by column: the value is that of a row of the table
	unavailable []int  // columns whose value only a row of the key can tell
}

// changeFields are what s has beside the columns.
var changeFields = []types.Field{
	{Name: "__op", Type: types.StringType()},
	{Name: "__ts", Type: types.TimestampLTZType(3)},
	{Name: "__topic", Type: types.StringType()},
	{Name: "__partition", Type: types.IntType()},
	{Name: "__offset", Type: types.BigIntType()},
}

func newClauses(v *verifier, m *model) (*clauses, error) {
	c := &clauses{
		m: m, checks: make([]func(types.Datum) error, len(m.fields)),
		target: assign.Target{Name: "t", Qualifier: []string{"t"}, Fields: m.fields, Defaults: m.defaults},
	}
	for k, name := range v.Table.Schema().PartitionKeys {
		c.checks[v.Table.Schema().Column(name)] = v.Table.PartitionCondition(k)
	}
	env := &expr.Env{Now: time.Now(), ReadTime: func() { c.timeRead = true }}
	both, source := &expr.Scope{Env: env}, &expr.Scope{Env: env}
	for i, f := range m.fields {
		if col, ok := expr.TableColumn([]string{"t"}, f, i); ok {
			both.Columns = append(both.Columns, col)
		}
	}
	for i, f := range append(slices.Clone(m.fields), changeFields...) {
		f.Type.NotNull = false
		if col, ok := expr.TableColumn([]string{"s"}, f, len(m.fields)+i); ok {
			source.Columns = append(source.Columns, col)
		}
	}
	both.Columns = append(both.Columns, source.Columns...)
	for i := range v.Merge.Clauses {
		scope := both
		if v.Merge.Clauses[i].Family == sqlparse.NotMatched {
			scope = source
		}
		one, err := c.compile(&v.Merge.Clauses[i], scope, source)
		if err != nil {
			return nil, err
		}
		c.list = append(c.list, one)
	}
	return c, nil
}

func (c *clauses) compile(p *sqlparse.MergeClause, scope, source *expr.Scope) (clause, error) {
	out := clause{family: p.Family, action: p.Action}
	compiled, err := c.target.Clause(p, scope, source)
	if err != nil {
		return out, err
	}
	out.cond = compiled.Cond
	out.timed = p.Cond != nil && c.readsTime(p.Cond, scope)
	switch p.Action {
	case sqlparse.MergeUpdateStar, sqlparse.MergeInsertStar:
		for i := range compiled.Set {
			out.set = append(out.set, given{Assignment: &compiled.Set[i], column: i, same: true})
		}
	case sqlparse.MergeUpdate:
		for i := range compiled.Set {
			out.set = append(out.set, c.given(&compiled.Set[i], p.Set[i].Value, scope))
		}
	case sqlparse.MergeInsert:
		for i, name := range p.Columns {
			col, _, err := c.target.Resolve(name)
			if err != nil {
				return out, err
			}
			out.set = append(out.set, c.given(compiled.Insert[col], p.Values[i], scope))
		}
	}
	return out, nil
}

// given tells whether a value is nothing but a column of the change.
func (c *clauses) given(a *assign.Assignment, value sqlparse.Expr, scope *expr.Scope) given {
	g := given{Assignment: a, column: -1}
	if _, ok := value.(*sqlparse.DefaultExpr); ok {
		g.timed = c.m.timed[a.Col]
		return g
	}
	g.timed = c.readsTime(value, scope)
	n, slots := len(c.m.fields), a.Slots()
	if ref, ok := value.(*sqlparse.ColumnRef); ok && len(slots) == 1 && slots[0] >= n && slots[0] < 2*n {
		if f := c.m.fields[slots[0]-n]; strings.EqualFold(ref.Last(), f.Name) && len(ref.Parts) <= 2 {
			g.column, g.same = slots[0]-n, a.Whole() && f.Type.EqualIgnoringNull(c.m.fields[a.Col].Type)
		}
	}
	return g
}

// readsTime reports whether an expression is made of the time of the batch,
// whatever the row.
func (c *clauses) readsTime(e sqlparse.Expr, scope *expr.Scope) bool {
	c.timeRead = false
	_, err := expr.Compile(e, scope)
	return err == nil && c.timeRead
}

// put puts change i of b to the clauses.
func (c *clauses) put(key string, b *change.Batch, i int, at change.Partition) outcome {
	s := c.said(key, b, i, at)
	rows := c.m.rows[key]
	if len(rows) == 0 {
		return c.insert(key, s)
	}
	next := make([][]types.Datum, 0, len(rows))
	acted, past := noClause, c.m.past[key]
	timed := make([]bool, len(c.m.fields))
	for _, row := range rows {
		c.meet(key, s, row)
		chosen, ok := c.choose(key, s, sqlparse.Matched)
		if !ok {
			return unevaluable
		}
		switch {
		case chosen == nil:
			next = append(next, row)
			c.m.copyTimed(timed, key)
			continue
		case chosen.action == sqlparse.MergeDelete:
			past = row
		default:
			updated := slices.Clone(row)
			marks := slices.Clone(timed)
			c.m.copyTimed(marks, key)
			if !c.assign(chosen, s, updated, marks, nil) {
				return unevaluable
			}
			for k := range timed {
				timed[k] = timed[k] || marks[k]
			}
			next = append(next, updated)
		}
		acted = applied
	}
	if len(next) > 0 {
		c.m.timedCells[key] = timed
		c.m.rows[key] = next
	} else {
		delete(c.m.rows, key)
	}
	c.m.past[key] = past
	return acted
}

// insert puts a change whose key has no row to the clauses.
func (c *clauses) insert(key string, s *said) outcome {
	chosen, ok := c.choose(key, s, sqlparse.NotMatched)
	switch {
	case !ok:
		return unevaluable
	case chosen == nil:
		return noClause
	}
	row, timed := make([]types.Datum, len(c.m.fields)), make([]bool, len(c.m.fields))
	missing := make([]bool, len(row))
	for k := range missing {
		missing[k] = true
	}
	if !c.assign(chosen, s, row, timed, missing) {
		return unevaluable
	}
	c.m.rows[key], c.m.timedCells[key] = [][]types.Datum{row}, timed
	return applied
}

// said is change i as the clauses see it, before it meets a row.
func (c *clauses) said(key string, b *change.Batch, i int, at change.Partition) *said {
	n := len(c.m.fields)
	s := &said{row: make(expr.Row, 2*n+len(changeFields)), timed: make([]bool, 2*n+len(changeFields)), absent: make([]bool, n), filled: make([]bool, n)}
	from := c.m.origin(key, b, i)
	for k := range n {
		col := &b.Cols[k]
		switch {
		case !col.Hole(i):
			s.row[n+k] = clone(col.Datum(i))
		case from != nil:
			s.row[n+k], s.filled[k] = from[k], true
		case col.Unavailable.Get(i):
			s.row[n+k], s.filled[k] = types.Null, true
			s.unavailable = append(s.unavailable, k)
		default:
			s.row[n+k], s.absent[k] = types.Null, true
		}
	}
	op := map[change.Kind]string{change.Insert: "c", change.Update: "u", change.Read: "r", change.Delete: "d"}[b.Kind[i]]
	copy(s.row[2*n:], expr.Row{
		types.StringDatum(op), types.IntDatum(b.Time[i] * 1000), types.StringDatum(at.Topic), types.IntDatum(int64(at.Partition)), types.IntDatum(b.Offset[i]),
	})
	return s
}

// meet lets the change meet a row of its key, which knows what its producer could
// not send.
func (c *clauses) meet(key string, s *said, row []types.Datum) {
	n := len(c.m.fields)
	copy(s.row, row)
	c.m.copyTimed(s.timed[:n], key)
	for _, k := range s.unavailable {
		s.row[n+k], s.timed[n+k] = row[k], s.timed[k]
	}
}

// choose returns the first clause of a family whose condition is TRUE, nil for none;
// false if one cannot be evaluated.
func (c *clauses) choose(key string, s *said, family sqlparse.MergeFamily) (*clause, bool) {
	for i := range c.list {
		one := &c.list[i]
		if one.family != family {
			continue
		}
		if one.cond == nil {
			return one, true
		}
		if family == sqlparse.NotMatched && c.lacks(s, one.cond.Slots()) {
			return nil, false
		}
		c.timeRead = one.timed
		hit, err := one.cond.Test(s.row)
		if c.timeRead || s.timedSlots(one.cond.Slots()) {
			c.m.unknown[key] = true
		}
		switch {
		case err != nil:
			return nil, false
		case hit:
			return one, true
		}
	}
	return nil, true
}

// lacks reports whether an expression reads what the producer could not send, where
// no row can tell.
func (c *clauses) lacks(s *said, slots []int) bool {
	return slices.ContainsFunc(s.unavailable, func(k int) bool { return slices.Contains(slots, len(c.m.fields)+k) })
}

func (s *said) timedSlots(slots []int) bool {
	return slices.ContainsFunc(slots, func(slot int) bool { return s.timed[slot] })
}

// assign gives a row its values, and says which of them are the time of the batch.
// missing, if not nil, are the columns of a new row, which get their defaults where
// no value comes. False: a value does not fit, or there is none.
func (c *clauses) assign(one *clause, s *said, row []types.Datum, timed, missing []bool) bool {
	for i := range one.set {
		g := &one.set[i]
		switch {
		case g.column >= 0 && s.absent[g.column]:
			continue // the row keeps its value, a new one gets the default
		case missing != nil && c.lacks(s, g.Slots()):
			return false
		}
		c.timeRead = g.timed
		d, err := g.Eval(s.row)
		if err != nil {
			return false
		}
		kept := g.same && s.filled[g.column] // what a row holds: a NULL of it stays one
		timed[g.Col] = c.timeRead || s.timedSlots(g.Slots()) || d.Null && !kept && c.m.timed[g.Col] || !g.Whole() && timed[g.Col]
		if kept {
			row[g.Col] = d
		} else if err := c.target.Store(row, g.Assignment, d); err != nil {
			return false
		}
		if missing != nil {
			missing[g.Col] = false
		}
	}
	for k := range missing {
		if !missing[k] {
			continue
		}
		d, err := c.target.Omitted(k, sqlparse.Pos{})
		if err != nil {
			return false
		}
		row[k], timed[k] = d, c.m.timed[k]
	}
	for k, check := range c.checks {
		if check != nil && !row[k].Null && check(row[k]) != nil {
			return false
		}
	}
	return true
}
