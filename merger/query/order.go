package query

import (
	"errors"
	"slices"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// ordering is ORDER BY with LIMIT and OFFSET.
type ordering struct {
	keys          []sortKey
	limit, offset int64
}

// noLimit is the limit of a query without LIMIT.
const noLimit = int64(-1)

type sortKey struct {
	x          *expr.Expr
	desc       bool
	nullsFirst bool
}

// limits compiles LIMIT and OFFSET, which are constants.
func (b *builder) limits(q *sqlparse.Query) (*ordering, error) {
	o := &ordering{limit: noLimit}
	for _, part := range [...]struct {
		e  sqlparse.Expr
		to *int64
	}{{q.Limit, &o.limit}, {q.Offset, &o.offset}} {
		if part.e == nil {
			continue
		}
		x, err := expr.Compile(part.e, &expr.Scope{Env: b.env})
		if err != nil {
			return nil, err
		}
		v, err := x.Eval(nil)
		switch k := x.Type().Kind; {
		case err != nil:
			return nil, err
		case k < expr.TinyInt || k > expr.BigInt:
			return nil, fail(part.e.Position(), "INVALID_LIMIT_LIKE_EXPRESSION.DATA_TYPE", "LIMIT and OFFSET are integers, not %s", x.Type())
		case v.Null:
			return nil, fail(part.e.Position(), "INVALID_LIMIT_LIKE_EXPRESSION.IS_NULL", "LIMIT and OFFSET cannot be NULL")
		case v.I < 0:
			return nil, fail(part.e.Position(), "INVALID_LIMIT_LIKE_EXPRESSION.IS_NEGATIVE", "LIMIT and OFFSET cannot be negative")
		}
		*part.to = v.I
	}
	return o, nil
}

// key compiles one item of ORDER BY; x is what it orders by.
func key(item sqlparse.OrderItem, x *expr.Expr) (sortKey, error) {
	if !x.Type().Orderable() {
		return sortKey{}, fail(item.Pos, "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE", "values of %s do not compare", x.Type())
	}
	k := sortKey{x: x, desc: item.Desc, nullsFirst: !item.Desc}
	if item.NullsFirst != nil {
		k.nullsFirst = *item.NullsFirst
	}
	return k, nil
}

// orderBy compiles ORDER BY of a SELECT: outputs by name or place, and what they
// are made of.
func (s *selecting) orderBy() (*ordering, error) {
	o, err := s.b.limits(s.q)
	if err != nil {
		return nil, err
	}
	scope := s.behind()
	if s.sel.Distinct {
		scope.Columns = nil
		inner := scope.Rewrite
		scope.Rewrite = func(e sqlparse.Expr) (expr.Column, bool, error) {
			for i, it := range s.items {
				if sqlparse.Format(e) == sqlparse.Format(it.ast) {
					return expr.Column{Name: it.name, Type: s.p.cols[i].Type, Slot: i}, true, nil
				}
			}
			return inner(e)
		}
	}
	for _, item := range s.q.OrderBy {
		x, err := s.orderExpr(item, scope)
		if err != nil {
			return nil, err
		}
		k, err := key(item, x)
		if err != nil {
			return nil, err
		}
		o.keys = append(o.keys, k)
	}
	return o, nil
}

func (s *selecting) orderExpr(item sqlparse.OrderItem, scope *expr.Scope) (*expr.Expr, error) {
	i, ok, err := s.ordinal(item.X, "ORDER BY")
	if err != nil {
		return nil, err
	}
	if ok {
		it := s.items[i]
		ref := &sqlparse.ColumnRef{Name: sqlparse.Name{Parts: []sqlparse.Ident{{Pos: item.Pos, Name: it.name}}}}
		return expr.Compile(ref, &expr.Scope{Columns: []expr.Column{{Name: it.name, Type: s.p.cols[i].Type, Slot: i}}, Env: s.b.env})
	}
	x, err := expr.Compile(item.X, scope)
	if err != nil {
		return nil, s.ungrouped(item.X, err)
	}
	return x, nil
}

// orderOutputs orders and limits a query that is no single SELECT: it sees outputs.
func (b *builder) orderOutputs(p *Plan, q *sqlparse.Query, around *expr.Scope) error {
	if len(q.OrderBy) == 0 && q.Limit == nil && q.Offset == nil {
		return nil
	}
	star := &sqlparse.Select{Pos: q.Pos, Items: []sqlparse.SelectItem{{Pos: q.Pos, X: &sqlparse.Star{Pos: q.Pos}}}}
	inner := *p
	rel, err := named(&inner, nil, nil, q.Pos)
	if err != nil {
		return err
	}
	s := &selecting{b: b, p: &Plan{}, sel: star, q: q, input: b.scope(p, rel.cols, around)}
	s.scope = s.input
	if err := s.expand(); err != nil {
		return err
	}
	if err := s.compileItems(); err != nil {
		return err
	}
	order, err := s.orderBy()
	if err != nil {
		return err
	}
	if err := s.project(inner.scan, order); err != nil {
		return err
	}
	p.scan = s.p.scan
	return nil
}

// finish makes outputs of wide rows: DISTINCT, order, limit.
func finish(wide scan, cols []Column, unique bool, o *ordering) scan {
	if unique {
		wide = distinct(wide, cols)
	}
	n := len(cols)
	if len(o.keys) == 0 {
		return func(r *run, yield func(expr.Row) error) error {
			return limited(o, yield, func(emit func(expr.Row) error) error {
				return wide(r, func(row expr.Row) error { return emit(row[:n]) })
			})
		}
	}
	return func(r *run, yield func(expr.Row) error) error {
		rows, err := o.sorted(wide, n, r)
		if err != nil {
			return err
		}
		return limited(o, yield, func(emit func(expr.Row) error) error {
			for _, row := range rows {
				if err := emit(row[:n]); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// limited passes the rows between offset and limit and stops behind them.
func limited(o *ordering, yield func(expr.Row) error, rows func(emit func(expr.Row) error) error) error {
	skip, left := o.offset, o.limit
	if left == 0 {
		return nil
	}
	stop := errors.New("limit reached") // this query's own: errStop may be another's
	err := rows(func(row expr.Row) error {
		if skip > 0 {
			skip--
			return nil
		}
		if err := yield(row); err != nil {
			return err
		}
		if left > 0 {
			if left--; left == 0 {
				return stop
			}
		}
		return nil
	})
	if err == stop {
		return nil
	}
	return err
}

// sorted keeps the outputs with their keys and sorts them; equal ones keep their order.
func (o *ordering) sorted(wide scan, n int, r *run) ([]expr.Row, error) {
	var rows []expr.Row
	err := wide(r, func(row expr.Row) error {
		kept := make(expr.Row, n+len(o.keys))
		copy(kept, row[:n])
		for i, k := range o.keys {
			d, err := k.x.EvalOuter(row, r.outer)
			if err != nil {
				return err
			}
			kept[n+i] = d
		}
		rows = append(rows, kept)
		if len(rows)%4096 == 0 {
			return r.ctx.Err()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b expr.Row) int {
		for i, k := range o.keys {
			if c := k.compare(a[n+i], b[n+i]); c != 0 {
				return c
			}
		}
		return 0
	})
	return rows, nil
}

func (k sortKey) compare(a, b types.Datum) int {
	if a.Null || b.Null {
		switch {
		case a.Null && b.Null:
			return 0
		case a.Null == k.nullsFirst:
			return -1
		}
		return 1
	}
	c := expr.CompareValues(k.x.Type(), a, b)
	if k.desc {
		return -c
	}
	return c
}
