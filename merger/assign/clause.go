package assign

import (
	"errors"
	"slices"
	"strings"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Clause is a WHEN clause of MERGE.
type Clause struct {
	// Cond is nil if the clause always applies.
	Cond   *expr.Expr
	Action sqlparse.MergeAction
	// Set are the assignments of the clauses that update.
	Set []Assignment
	// Insert are the values of the columns; nil for those that get none.
	Insert []*Assignment
	pos    sqlparse.Pos
}

// Clause compiles a WHEN clause. Its values see scope, * sees source.
func (t *Target) Clause(c *sqlparse.MergeClause, scope, source *expr.Scope) (*Clause, error) {
	out := &Clause{Action: c.Action, pos: c.Pos}
	var err error
	if c.Cond != nil {
		if err := Deterministic(c.Cond); err != nil {
			return nil, err
		}
		if out.Cond, err = expr.CompileBool(c.Cond, WithoutSubqueries(scope)); err != nil {
			return nil, err
		}
	}
	switch c.Action {
	case sqlparse.MergeUpdate:
		if out.Set, err = t.Assignments(c.Set, scope); err == nil {
			err = checkConstants(out.Set)
		}
	case sqlparse.MergeUpdateStar, sqlparse.MergeInsertStar:
		err = t.star(c, out, source)
	case sqlparse.MergeInsert:
		err = t.insertValues(c, out, scope)
	}
	return out, err
}

// WithoutSubqueries is the scope of MERGE's conditions.
func WithoutSubqueries(s *expr.Scope) *expr.Scope {
	out := *s
	out.Subquery = func(q *sqlparse.Query, _ *expr.Scope) (expr.Subquery, error) {
		return nil, fail(q.Pos, "UNSUPPORTED_MERGE_CONDITION.SUBQUERY", "the conditions of MERGE take no sub-query: put it into the source")
	}
	return &out
}

// star compiles UPDATE SET * and INSERT *.
func (t *Target) star(c *sqlparse.MergeClause, out *Clause, source *expr.Scope) error {
	for i, f := range t.Fields {
		ref := &sqlparse.ColumnRef{Name: sqlparse.Name{Parts: []sqlparse.Ident{{Pos: c.Pos, Name: f.Name}}}}
		a := Assignment{Col: i, leaf: f.Type, pos: c.Pos}
		if err := t.value(&a, ref, source); err != nil {
			if class := classOf(err); class == ClassNoColumn || class == "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION" {
				return fail(c.Pos, class, "the source has no column %s, which * needs: name the columns instead", f.Name)
			}
			return err
		}
		out.Set = append(out.Set, a)
	}
	if c.Action == sqlparse.MergeInsertStar {
		out.Insert = make([]*Assignment, len(t.Fields))
		for i := range out.Set {
			out.Insert[out.Set[i].Col] = &out.Set[i]
		}
	}
	return nil
}

// chance are the functions whose value is another one each time.
var chance = []string{"rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"}

// Deterministic refuses conditions of MERGE that are a matter of chance: a row could
// meet one when a statement is planned and not when it is planned again.
func Deterministic(cond sqlparse.Expr) error {
	var found error
	sqlparse.Walk(cond, func(n sqlparse.Node) bool {
		if call, ok := n.(*sqlparse.Call); ok && found == nil && slices.Contains(chance, strings.ToLower(call.Func.Last())) {
			found = fail(call.Pos, "UNSUPPORTED_MERGE_CONDITION.NON_DETERMINISTIC", "%s in a condition of MERGE: its value is another one each time", call.Func)
		}
		return found == nil
	})
	return found
}

func classOf(err error) string {
	var e *expr.Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}

// checkConstants refuses a constant that can never be stored, as Spark does in MERGE,
// whether a row asks for it or not. UPDATE finds out when it has a row.
func checkConstants(list []Assignment) error {
	for i := range list {
		if a := &list[i]; a.fixed != nil {
			if _, err := a.fixed.Eval(nil); err != nil && classOf(err) != expr.ClassNotNull {
				return err
			}
		}
	}
	return nil
}

func (t *Target) insertValues(c *sqlparse.MergeClause, out *Clause, scope *expr.Scope) error {
	out.Insert = make([]*Assignment, len(t.Fields))
	for i, name := range c.Columns {
		col, fields, err := t.Resolve(name)
		switch {
		case err != nil:
			return err
		case len(fields) > 0:
			return fail(name.Position(), sqlparse.ClassUnsupported, "INSERT takes columns, not fields of structs: %s", name)
		case out.Insert[col] != nil:
			return fail(name.Position(), ClassAssignedTwice, "column %s is given twice", name)
		}
		a := &Assignment{Col: col, leaf: t.Fields[col].Type, pos: name.Position()}
		if err := t.value(a, c.Values[i], scope); err != nil {
			return err
		}
		out.Insert[col] = a
	}
	return nil
}

// Choose returns the first of the clauses whose condition is TRUE for a row, -1 if
// there is none.
func Choose(clauses []*Clause, row expr.Row) (int, error) {
	for i, c := range clauses {
		if c.Cond == nil {
			return i, nil
		}
		if hit, err := c.Cond.Test(row); hit || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// NewRow makes the row that a clause inserts.
func (t *Target) NewRow(c *Clause, row expr.Row) ([]types.Datum, error) {
	out := make([]types.Datum, len(t.Fields))
	for col, a := range c.Insert {
		var err error
		switch {
		case a == nil:
			out[col], err = t.Omitted(col, c.pos)
		case a.x == nil:
			out[col] = a.def
		default:
			if out[col], err = a.x.Eval(row); err == nil {
				out[col] = t.Defaulted(col, out[col])
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
