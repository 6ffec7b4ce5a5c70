package query

import (
	"strings"

	"applier/merger/expr"
	"applier/merger/sqlparse"
)

// grouping gathers rows by keys. A group's row holds the keys, then the aggregates.
type grouping struct {
	keys []groupKey
	aggs []*expr.Aggregate
	// texts are the aggregates' calls as SQL: equal calls share a slot.
	texts []string
	// global tells that there are no keys: one group, even of no rows.
	global bool
}

type groupKey struct {
	text string
	x    *expr.Expr
}

// aggregated reports whether the SELECT groups its rows.
func (s *selecting) aggregated() bool {
	if len(s.sel.GroupBy) > 0 || s.sel.GroupByAll || s.sel.Having != nil {
		return true
	}
	for _, it := range s.items {
		if hasAggregate(it.ast) {
			return true
		}
	}
	for _, o := range s.q.OrderBy {
		if hasAggregate(o.X) {
			return true
		}
	}
	return false
}

// hasAggregate reports whether an aggregate is called in an expression, sub-queries
// aside.
func hasAggregate(e sqlparse.Expr) bool {
	found := false
	sqlparse.Walk(e, func(n sqlparse.Node) bool {
		switch n := n.(type) {
		case *sqlparse.Query:
			return false
		case *sqlparse.Call:
			found = found || len(n.Func.Parts) == 1 && expr.IsAggregate(n.Func.Last())
		}
		return !found
	})
	return found
}

// groupBy compiles the keys and sets the scope that sees groups.
func (s *selecting) groupBy() error {
	g := &grouping{global: len(s.sel.GroupBy) == 0 && !s.sel.GroupByAll}
	keys := s.sel.GroupBy
	if s.sel.GroupByAll {
		for _, it := range s.items {
			if !hasAggregate(it.ast) {
				keys = append(keys, it.ast)
			}
		}
	}
	s.group = g
	scope := *s.input
	scope.Columns, scope.Used = nil, nil
	for i, k := range keys {
		ast, err := s.keyExpr(k)
		if err != nil {
			return err
		}
		if hasAggregate(ast) {
			return fail(k.Position(), "GROUP_BY_AGGREGATE", "GROUP BY cannot have an aggregate")
		}
		x, err := expr.Compile(ast, s.input)
		if err != nil {
			return err
		}
		g.keys = append(g.keys, groupKey{sqlparse.Format(ast), x})
		if ref, ok := ast.(*sqlparse.ColumnRef); ok {
			if c, found := s.inputColumn(ref); found {
				c.Slot, c.Type = i, x.Type()
				scope.Columns = append(scope.Columns, c)
			}
		}
	}
	scope.Rewrite = s.grouped
	s.scope = &scope
	return nil
}

// inputColumn returns the column that a plain name stands for.
func (s *selecting) inputColumn(ref *sqlparse.ColumnRef) (expr.Column, bool) {
	parts := ref.Strings()
	for _, c := range s.input.Columns {
		if sameName(c.Name, parts[len(parts)-1]) && endsWith(c.Qualifier, parts[:len(parts)-1]) {
			return expr.Column{Qualifier: c.Qualifier, Name: c.Name}, true
		}
	}
	return expr.Column{}, false
}

// keyExpr resolves an ordinal, or the name of an output that FROM does not have.
func (s *selecting) keyExpr(k sqlparse.Expr) (sqlparse.Expr, error) {
	if i, ok, err := s.ordinal(k, "GROUP BY"); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return s.items[i].ast, nil
	}
	if ref, ok := k.(*sqlparse.ColumnRef); ok && len(ref.Parts) == 1 {
		if _, found := s.inputColumn(ref); !found {
			if i := s.output(ref.Last()); i >= 0 {
				return s.items[i].ast, nil
			}
		}
	}
	return k, nil
}

// ordinal reads a whole number as the place of an output.
func (s *selecting) ordinal(e sqlparse.Expr, clause string) (int, bool, error) {
	n, ok := e.(*sqlparse.NumberLit)
	if !ok || n.Suffix != "" || strings.ContainsAny(n.Text, ".E") {
		return 0, false, nil
	}
	for i := range s.items {
		if n.Text == itoa(i+1) {
			return i, true, nil
		}
	}
	return 0, false, fail(n.Pos, strings.ReplaceAll(clause, " ", "_")+"_POS_OUT_OF_RANGE", "%s %s: there are columns 1 to %d", clause, n.Text, len(s.items))
}

// grouped finds the parts of an expression that a group's row holds.
func (s *selecting) grouped(e sqlparse.Expr) (expr.Column, bool, error) {
	g := s.group
	if call, ok := e.(*sqlparse.Call); ok && len(call.Func.Parts) == 1 && expr.IsAggregate(call.Func.Last()) {
		text := sqlparse.Format(call)
		for i, t := range g.texts {
			if t == text {
				return expr.Column{Type: g.aggs[i].Type(), Slot: len(g.keys) + i}, true, nil
			}
		}
		a, err := expr.CompileAggregate(call, s.input)
		if err != nil {
			return expr.Column{}, false, err
		}
		g.aggs, g.texts = append(g.aggs, a), append(g.texts, text)
		return expr.Column{Type: a.Type(), Slot: len(g.keys) + len(g.aggs) - 1}, true, nil
	}
	switch e.(type) {
	case *sqlparse.NumberLit, *sqlparse.StringLit, *sqlparse.NullLit, *sqlparse.BoolLit:
		return expr.Column{}, false, nil
	}
	text := sqlparse.Format(e)
	for i, k := range g.keys {
		if strings.EqualFold(k.text, text) {
			return expr.Column{Name: k.x.Name(), Type: k.x.Type(), Slot: i}, true, nil
		}
	}
	return expr.Column{}, false, nil
}

// bucket is a group.
type bucket struct {
	keys expr.Row
	accs []*expr.Accumulator
}

// scan gathers the rows and hands out the groups in the order in which they began.
func (g *grouping) scan(rows scan, b *builder) scan {
	return func(r *run, yield func(expr.Row) error) error {
		var order []*bucket
		byKey := map[string]*bucket{}
		fresh := func() *bucket {
			k := &bucket{}
			for _, a := range g.aggs {
				k.accs = append(k.accs, a.New())
			}
			order = append(order, k)
			return k
		}
		if g.global {
			byKey[""] = fresh()
		}
		keys := make(expr.Row, len(g.keys))
		var buf []byte
		err := rows(r, func(row expr.Row) error {
			buf = buf[:0]
			for i, k := range g.keys {
				d, err := k.x.EvalOuter(row, r.outer)
				if err != nil {
					return err
				}
				keys[i] = expr.Normalize(k.x.Type(), d)
				buf = expr.GroupKey(buf, k.x.Type(), d)
			}
			k := byKey[string(buf)]
			if k == nil {
				k = fresh()
				k.keys = append(expr.Row{}, keys...)
				byKey[string(buf)] = k
			}
			for _, a := range k.accs {
				if err := a.Add(row, r.outer); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return g.emit(order, yield)
	}
}

func (g *grouping) emit(groups []*bucket, yield func(expr.Row) error) error {
	out := make(expr.Row, len(g.keys)+len(g.aggs))
	for _, k := range groups {
		copy(out, k.keys)
		for i, a := range k.accs {
			d, err := a.Result()
			if err != nil {
				return err
			}
			out[len(g.keys)+i] = d
		}
		if err := yield(out); err != nil {
			return err
		}
	}
	return nil
}
