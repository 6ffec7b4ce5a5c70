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
	in := &inSet{pos: e.Pos, typs: typs, casts: casts, run: rowsOf(e.Pos, s, 0), keep: !s.Correlated()}
	return maybeNot(in.node(left), e.Not)
}

// inSet looks values up among the rows of a sub-query: those without NULL by their
// keys, the others one by one.
type inSet struct {
	pos   sqlparse.Pos
	typs  []Type
	casts []castFn
	run   func(*frame) ([]Row, error)
	// keep tells that the rows do not change from row to row.
	keep   bool
	loaded bool
	keys   map[string]bool
	rows   []Row // cast to typs
	nulls  []Row // those of rows with a NULL
	buf    []byte
}

func (s *inSet) node(left []*node) *node {
	x := make([]types.Datum, len(left))
	return &node{typ: tBool, pos: s.pos, eval: func(f *frame) (types.Datum, error) {
		null := false
		for i, n := range left {
			d, err := n.eval(f)
			if err != nil {
				return types.Null, err
			}
			x[i] = d
			null = null || d.Null
		}
		if err := s.load(f); err != nil {
			return types.Null, err
		}
		among := s.rows
		if !null {
			if s.buf = s.key(s.buf[:0], x); s.keys[string(s.buf)] {
				return types.BoolDatum(true), nil
			}
			among = s.nulls
		}
		return types.Datum{Null: s.maybe(x, among)}, nil
	}}
}

func (s *inSet) key(dst []byte, x []types.Datum) []byte {
	for i, d := range x {
		dst = GroupKey(dst, s.typs[i], d)
	}
	return dst
}

// load runs the sub-query and casts its rows.
func (s *inSet) load(f *frame) error {
	if s.loaded {
		return nil
	}
	rows, err := s.run(f)
	if err != nil {
		return err
	}
	s.keys, s.rows, s.nulls = make(map[string]bool, len(rows)), nil, nil
	for _, row := range rows {
		y := make(Row, len(row))
		null := false
		for i, d := range row {
			if y[i], err = s.casts[i](d); err != nil {
				return at(s.pos, err)
			}
			null = null || y[i].Null
		}
		s.rows = append(s.rows, y)
		if null {
			s.nulls = append(s.nulls, y)
		} else {
			s.keys[string(s.key(nil, y))] = true
		}
	}
	s.loaded = s.keep
	return nil
}

// maybe reports whether x could equal one of the rows if NULL were something.
func (s *inSet) maybe(x []types.Datum, among []Row) bool {
	for _, row := range among {
		miss := false
		for i, d := range x {
			miss = miss || !d.Null && !row[i].Null && CompareValues(s.typs[i], d, row[i]) != 0
		}
		if !miss {
			return true
		}
	}
	return false
}
