package query

import (
	"applier/merger/expr"
	"applier/merger/sqlparse"
)

// values compiles VALUES: each column has the type that its values meet in.
func (b *builder) values(p *Plan, v *sqlparse.Values, around *expr.Scope) error {
	scope := b.scope(p, nil, around)
	rows := make([][]*expr.Expr, len(v.Rows))
	for i, row := range v.Rows {
		if len(row) != len(v.Rows[0]) {
			return fail(row[0].Position(), sqlparse.ClassInlineTable, "row %d of VALUES has %d values, the first has %d", i+1, len(row), len(v.Rows[0]))
		}
		for _, e := range row {
			x, err := expr.Compile(e, scope)
			if err != nil {
				return err
			}
			rows[i] = append(rows[i], x)
		}
	}
	for k := range v.Rows[0] {
		t := rows[0][k].Type()
		for _, row := range rows[1:] {
			var ok bool
			if t, ok = expr.CommonType(t, row[k].Type()); !ok {
				return fail(row[k].Pos(), "INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE", "the values of column %d have no type in common", k+1)
			}
		}
		p.cols = append(p.cols, Column{Name: "col" + itoa(k+1), Type: t})
	}
	p.scan = func(r *run, yield func(expr.Row) error) error {
		for _, row := range rows {
			out := make(expr.Row, len(row))
			for k, x := range row {
				d, err := x.EvalOuter(nil, r.outer)
				if err == nil {
					d, err = expr.Converter(x.Type(), p.cols[k].Type, b.env)(d)
				}
				if err != nil {
					return expr.Place(x.Pos(), err)
				}
				out[k] = d
			}
			if err := yield(out); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// setOp compiles UNION, EXCEPT and INTERSECT.
func (b *builder) setOp(p *Plan, s *sqlparse.SetOp, around *expr.Scope) error {
	l, r := &Plan{}, &Plan{}
	if err := b.body(l, s.L, around); err != nil {
		return err
	}
	if err := b.body(r, s.R, around); err != nil {
		return err
	}
	if len(l.cols) != len(r.cols) {
		return fail(s.Pos, "NUM_COLUMNS_MISMATCH", "%s joins queries of as many columns, not of %d and %d", s.Op, len(l.cols), len(r.cols))
	}
	p.correlated = p.correlated || l.correlated || r.correlated
	for i, c := range l.cols {
		t, ok := expr.CommonType(c.Type, r.cols[i].Type)
		if !ok {
			return fail(s.Pos, "INCOMPATIBLE_COLUMN_TYPE", "column %d of %s is %s on one side and %s on the other", i+1, s.Op, c.Type, r.cols[i].Type)
		}
		if t.HasMap() && !(s.Op == "UNION" && s.All) {
			return fail(s.Pos, "UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE", "%s compares rows, and maps do not compare", s.Op)
		}
		p.cols = append(p.cols, Column{Name: c.Name, Type: t})
	}
	left, right := converted(l, p.cols, b.env, s.Pos), converted(r, p.cols, b.env, s.Pos)
	switch {
	case s.Op == "UNION" && s.All:
		p.scan = both(left, right)
	case s.Op == "UNION":
		p.scan = distinct(both(left, right), p.cols)
	default:
		p.scan = filterSet(left, right, p.cols, s.Op == "INTERSECT", s.All)
	}
	return nil
}

// converted casts the rows of a plan to the types of columns.
func converted(p *Plan, cols []Column, env *expr.Env, pos sqlparse.Pos) scan {
	same := true
	for i, c := range p.cols {
		same = same && c.Type.Equal(cols[i].Type)
	}
	if same {
		return p.scan
	}
	return func(r *run, yield func(expr.Row) error) error {
		out := make(expr.Row, len(cols))
		return p.scan(r, func(row expr.Row) error {
			for i, d := range row {
				v, err := expr.Converter(p.cols[i].Type, cols[i].Type, env)(d)
				if err != nil {
					return expr.Place(pos, err)
				}
				out[i] = v
			}
			return yield(out)
		})
	}
}

func both(l, r scan) scan {
	return func(run *run, yield func(expr.Row) error) error {
		if err := l(run, yield); err != nil {
			return err
		}
		return r(run, yield)
	}
}

// rowKey appends the key of a row by which DISTINCT takes rows as equal.
func rowKey(dst []byte, cols []Column, row expr.Row) []byte {
	for i, c := range cols {
		dst = expr.GroupKey(dst, c.Type, row[i])
	}
	return dst
}

// distinct passes the first of equal rows.
func distinct(s scan, cols []Column) scan {
	return func(r *run, yield func(expr.Row) error) error {
		seen := map[string]bool{}
		var key []byte
		return s(r, func(row expr.Row) error {
			if key = rowKey(key[:0], cols, row); seen[string(key)] {
				return nil
			}
			seen[string(key)] = true
			for i, c := range cols {
				row[i] = expr.Normalize(c.Type, row[i])
			}
			return yield(row)
		})
	}
}

// filterSet is INTERSECT (keep true) and EXCEPT. ALL counts equal rows, without it
// each comes once.
func filterSet(l, r scan, cols []Column, keep, all bool) scan {
	return func(run *run, yield func(expr.Row) error) error {
		counts := map[string]int{}
		var key []byte
		err := r(run, func(row expr.Row) error {
			key = rowKey(key[:0], cols, row)
			counts[string(key)]++
			return nil
		})
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		return l(run, func(row expr.Row) error {
			key = rowKey(key[:0], cols, row)
			n, k := counts[string(key)], string(key)
			if !all {
				if seen[k] || (n > 0) != keep {
					return nil
				}
				seen[k] = true
				return yield(row)
			}
			if n > 0 {
				counts[k]--
			}
			if (n > 0) != keep {
				return nil
			}
			return yield(row)
		})
	}
}
