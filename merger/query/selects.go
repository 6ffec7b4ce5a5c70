package query

import (
	"errors"
	"strconv"

	"applier/merger/expr"
	"applier/merger/sqlparse"
)

func itoa(i int) string { return strconv.Itoa(i) }

// item is an output column of a SELECT.
type item struct {
	ast  sqlparse.Expr
	name string
	x    *expr.Expr
}

// selecting is a SELECT while it is compiled.
type selecting struct {
	b     *builder
	p     *Plan
	sel   *sqlparse.Select
	q     *sqlparse.Query
	input *expr.Scope // over FROM
	scope *expr.Scope // over what items see: FROM, or groups
	group *grouping
	items []item
	// before and after are HAVING: the one sees groups, the other outputs too.
	before, after *expr.Expr
}

// selectQuery compiles a SELECT with the ORDER BY, LIMIT and OFFSET of its query.
func (b *builder) selectQuery(p *Plan, sel *sqlparse.Select, q *sqlparse.Query, around *expr.Scope) error {
	from, err := b.from(p, sel.From, around)
	if err != nil {
		return err
	}
	s := &selecting{b: b, p: p, sel: sel, q: q}
	s.input = b.scope(p, from.cols, around)
	s.input.Used = from.used
	s.scope = s.input
	rows, err := s.where(from.scan)
	if err != nil {
		return err
	}
	if from.narrow != nil && sel.Where != nil {
		from.narrow(sel.Where)
	}
	if err := s.expand(); err != nil {
		return err
	}
	if s.aggregated() {
		if err := s.groupBy(); err != nil {
			return err
		}
	}
	if err := s.compileItems(); err != nil {
		return err
	}
	if err := s.having(); err != nil {
		return err
	}
	order, err := s.orderBy()
	if err != nil {
		return err
	}
	if s.group != nil {
		rows = s.group.scan(rows, b)
	}
	return s.project(rows, order)
}

// where filters the rows of FROM.
func (s *selecting) where(rows scan) (scan, error) {
	if s.sel.Where == nil {
		return rows, nil
	}
	cond, err := expr.CompileBool(s.sel.Where, s.input)
	if err != nil {
		return nil, err
	}
	return filter(rows, cond), nil
}

// filter passes the rows for which a condition is true.
func filter(rows scan, cond *expr.Expr) scan {
	return func(r *run, yield func(expr.Row) error) error {
		n := 0
		return rows(r, func(row expr.Row) error {
			if n++; n%1024 == 0 && r.ctx.Err() != nil {
				return r.ctx.Err()
			}
			d, err := cond.EvalOuter(row, r.outer)
			if err != nil || d.Null || d.I == 0 {
				return err
			}
			return yield(row)
		})
	}
}

// expand replaces * by columns and s.* by the fields of a struct.
func (s *selecting) expand() error {
	for _, it := range s.sel.Items {
		star, ok := it.X.(*sqlparse.Star)
		if !ok {
			name := ""
			if it.Alias != nil {
				name = it.Alias.Name
			}
			s.items = append(s.items, item{ast: it.X, name: name})
			continue
		}
		if err := s.star(star); err != nil {
			return err
		}
	}
	if len(s.items) == 0 {
		return fail(s.sel.Pos, "UNRESOLVED_STAR", "there are no columns to select")
	}
	return nil
}

func (s *selecting) star(star *sqlparse.Star) error {
	parts := star.Qualifier.Strings()
	found := len(s.items)
	for _, c := range s.input.Columns {
		if c.Hidden || !endsWith(c.Qualifier, parts) || except(star, c.Name) {
			continue
		}
		name := append(nameParts(star.Pos, c.Qualifier), sqlparse.Ident{Pos: star.Pos, Name: c.Name})
		s.items = append(s.items, item{ast: &sqlparse.ColumnRef{Name: sqlparse.Name{Parts: name}}, name: c.Name})
	}
	if len(s.items) > found || len(parts) == 0 {
		return nil
	}
	ref := &sqlparse.ColumnRef{Name: star.Qualifier}
	x, err := expr.Compile(ref, s.input)
	if err != nil || x.Type().Kind != expr.Struct {
		return fail(star.Pos, "CANNOT_RESOLVE_STAR_EXPAND", "%s.* names no table and no struct", star.Qualifier)
	}
	for _, f := range x.Type().Fields {
		field := &sqlparse.FieldRef{Pos: star.Pos, X: ref, Name: sqlparse.Ident{Pos: star.Pos, Name: f.Name}}
		s.items = append(s.items, item{ast: field, name: f.Name})
	}
	return nil
}

func nameParts(pos sqlparse.Pos, names []string) []sqlparse.Ident {
	parts := make([]sqlparse.Ident, 0, len(names)+1)
	for _, n := range names {
		parts = append(parts, sqlparse.Ident{Pos: pos, Name: n})
	}
	return parts
}

func except(star *sqlparse.Star, name string) bool {
	for _, e := range star.Except {
		if sameName(e.Last(), name) {
			return true
		}
	}
	return false
}

// endsWith reports whether tail is the end of the names q.
func endsWith(q, tail []string) bool {
	if len(tail) > len(q) {
		return false
	}
	for i, t := range tail {
		if !sameName(q[len(q)-len(tail)+i], t) {
			return false
		}
	}
	return true
}

func (s *selecting) compileItems() error {
	for i := range s.items {
		it := &s.items[i]
		x, err := expr.Compile(it.ast, s.scope)
		if err != nil {
			return s.ungrouped(it.ast, err)
		}
		it.x = x
		if it.name == "" {
			it.name = outputName(it.ast)
		}
		s.p.cols = append(s.p.cols, Column{Name: it.name, Type: x.Type(), Char: x.Char()})
	}
	return nil
}

// ungrouped tells a name that is there but not grouped from one that is not there.
func (s *selecting) ungrouped(e sqlparse.Expr, err error) error {
	var x *expr.Error
	if s.group == nil || !errors.As(err, &x) || classOf(err) == "" {
		return err
	}
	missing := false
	sqlparse.Walk(e, func(n sqlparse.Node) bool {
		if ref, ok := n.(*sqlparse.ColumnRef); ok && ref.Position() == x.Pos {
			_, e2 := expr.Compile(ref, s.input)
			missing = missing || e2 == nil
		}
		return true
	})
	if !missing {
		return err
	}
	class := "MISSING_AGGREGATION"
	if len(s.sel.GroupBy) == 0 {
		class = "MISSING_GROUP_BY"
	}
	return fail(x.Pos, class, "the column is neither grouped by nor inside of an aggregate; any_value(…) takes any of the group's")
}

// having compiles HAVING, which sees groups, and outputs by their names where groups
// do not have the name.
func (s *selecting) having() error {
	if s.sel.Having == nil {
		return nil
	}
	x, err := expr.CompileBool(s.sel.Having, s.scope)
	if err == nil {
		s.before = x
		return nil
	}
	if y, err2 := expr.CompileBool(s.sel.Having, s.behind()); err2 == nil {
		s.after = y
		return nil
	}
	return err
}

// behind is the scope of rows that hold the outputs and, behind them, what the
// outputs were made of.
func (s *selecting) behind() *expr.Scope {
	n := len(s.items)
	scope := *s.scope
	scope.Columns = nil
	scope.Used = func(slot int) {
		if slot >= n && s.scope.Used != nil {
			s.scope.Used(slot - n)
		}
	}
	for _, c := range s.scope.Columns {
		c.Slot += n
		scope.Columns = append(scope.Columns, c)
	}
	inner := s.scope.Rewrite
	scope.Rewrite = func(e sqlparse.Expr) (expr.Column, bool, error) {
		if ref, ok := e.(*sqlparse.ColumnRef); ok && len(ref.Parts) == 1 {
			if i := s.output(ref.Last()); i >= 0 {
				return expr.Column{Name: s.items[i].name, Type: s.p.cols[i].Type, Slot: i}, true, nil
			}
		}
		if inner == nil {
			return expr.Column{}, false, nil
		}
		c, ok, err := inner(e)
		c.Slot += n
		return c, ok, err
	}
	return &scope
}

// output finds the one output column of a name, -1 if there is none or several.
func (s *selecting) output(name string) int {
	found := -1
	for i, it := range s.items {
		if sameName(it.name, name) {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// project computes the outputs and what orders them.
func (s *selecting) project(rows scan, order *ordering) error {
	n := len(s.items)
	if s.sel.Distinct {
		for _, c := range s.p.cols {
			if c.Type.HasMap() {
				return fail(s.sel.Pos, "UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE", "DISTINCT compares rows, and maps do not compare")
			}
		}
	}
	if s.before != nil {
		rows = filter(rows, s.before)
	}
	wide := func(r *run, yield func(expr.Row) error) error {
		var out expr.Row
		return rows(r, func(row expr.Row) error {
			if out == nil {
				out = make(expr.Row, n+len(row))
			}
			copy(out[n:], row)
			for i, it := range s.items {
				d, err := it.x.EvalOuter(row, r.outer)
				if err != nil {
					return err
				}
				out[i] = d
			}
			return yield(out)
		})
	}
	if s.after != nil {
		wide = filter(wide, s.after)
	}
	s.p.scan = finish(wide, s.p.cols, s.sel.Distinct, order)
	return nil
}
