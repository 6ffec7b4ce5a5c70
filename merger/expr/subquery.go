package expr

import (
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// subquery compiles the query inside an expression.
func (c *compiler) subquery(pos sqlparse.Pos, q *sqlparse.Query) Subquery {
	if c.scope.Subquery == nil {
		c.fail(pos, "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY", "a sub-query cannot stand here")
		return nil
	}
	s, err := c.scope.Subquery(q, c.scope)
	if err != nil {
		c.failWith(err)
		return nil
	}
	return s
}

// rowsOf returns a function that runs a sub-query; the rows of one that does not
// depend on the row around it are kept.
func rowsOf(pos sqlparse.Pos, s Subquery, limit int) func(f *frame) ([]Row, error) {
	var kept []Row
	done := false
	return func(f *frame) ([]Row, error) {
		if done {
			return kept, nil
		}
		var outer []Row
		for o := f; o != nil && s.Correlated(); o = o.outer {
			outer = append(outer, o.row)
		}
		rows, err := s.Run(outer, limit)
		if err != nil {
			return nil, at(pos, err)
		}
		if !s.Correlated() {
			kept, done = rows, true
		}
		return rows, nil
	}
}

// exists compiles EXISTS (SELECT …).
func (c *compiler) exists(e *sqlparse.Exists) *node {
	s := c.subquery(e.Pos, e.Query)
	if c.err != nil {
		return c.failWith(c.err)
	}
	run := rowsOf(e.Pos, s, 1)
	return &node{typ: tBool, pos: e.Pos, eval: func(f *frame) (types.Datum, error) {
		rows, err := run(f)
		return types.BoolDatum(len(rows) > 0), err
	}}
}

// scalarQuery compiles a sub-query as a value: one column, at most one row, NULL
// for none.
func (c *compiler) scalarQuery(e *sqlparse.ScalarQuery) *node {
	s := c.subquery(e.Pos, e.Query)
	if c.err != nil {
		return c.failWith(c.err)
	}
	if n := len(s.Types()); n != 1 {
		return c.fail(e.Pos, "INVALID_SUBQUERY_EXPRESSION.SCALAR_SUBQUERY_RETURN_MORE_THAN_ONE_OUTPUT_COLUMN", "a sub-query in the place of a value has one column, not %d", n)
	}
	run := rowsOf(e.Pos, s, 2)
	return &node{typ: s.Types()[0], pos: e.Pos, eval: func(f *frame) (types.Datum, error) {
		rows, err := run(f)
		switch {
		case err != nil || len(rows) == 0:
			return types.Null, err
		case len(rows) > 1:
			return types.Null, &Error{Pos: e.Pos, Class: "SCALAR_SUBQUERY_TOO_MANY_ROWS", Message: "the sub-query gives more than one row in the place of a value"}
		}
		return rows[0][0], nil
	}}
}

// inQuery compiles x IN (SELECT …): NULL in x or among the rows makes a miss
// unknown, unless there are no rows.
func (c *compiler) inQuery(e *sqlparse.InQuery) *node {
	left := []*node{}
	if r, ok := e.X.(*sqlparse.Row); ok {
		for _, x := range r.Items {
			left = append(left, c.expr(x))
		}
	} else {
		left = append(left, c.expr(e.X))
	}
	s := c.subquery(e.Pos, e.Query)
	if c.err != nil {
		return c.failWith(c.err)
	}
	right := s.Types()
	if len(left) != len(right) {
		return c.fail(e.Pos, "DATATYPE_MISMATCH.IN_SUBQUERY_LENGTH_MISMATCH", "IN compares %d values with %d columns", len(left), len(right))
	}
	typs := make([]Type, len(left))
	casts := make([]castFn, len(left))
	for i, n := range left {
		t, ok := wider(n.typ, right[i])
		if !ok || !t.orderable() {
			return c.fail(e.Pos, "DATATYPE_MISMATCH.IN_SUBQUERY_DATA_TYPE_MISMATCH", "%s does not compare with %s", n.typ.sql(), right[i].sql())
		}
		typs[i], left[i] = t, c.castTo(n, t)
		casts[i] = itemCaster(right[i], t, false, c.env)
	}
	return maybeNot(inRows(e.Pos, left, typs, casts, rowsOf(e.Pos, s, 0)), e.Not)
}

func inRows(pos sqlparse.Pos, left []*node, typs []Type, casts []castFn, run func(*frame) ([]Row, error)) *node {
	return &node{typ: tBool, pos: pos, eval: func(f *frame) (types.Datum, error) {
		x := make([]types.Datum, len(left))
		for i, n := range left {
			d, err := n.eval(f)
			if err != nil {
				return types.Null, err
			}
			x[i] = d
		}
		rows, err := run(f)
		if err != nil {
			return types.Null, err
		}
		unknown := false
		for _, row := range rows {
			miss, null := false, false
			for i, d := range x {
				y, err := casts[i](row[i])
				if err != nil {
					return types.Null, at(pos, err)
				}
				switch {
				case d.Null || y.Null:
					null = true
				case CompareValues(typs[i], d, y) != 0:
					miss = true
				}
			}
			if !miss && !null {
				return types.BoolDatum(true), nil
			}
			unknown = unknown || !miss
		}
		return types.Datum{Null: unknown}, nil
	}}
}
