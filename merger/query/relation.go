package query

import (
	"context"
	"slices"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// relation is a part of FROM: its columns by their slots, and its rows.
type relation struct {
	cols []expr.Column
	scan scan
	// use notes that a slot is read; nil if nobody wants to know.
	use func(slot int)
	// narrow hands the WHERE of a SELECT to the table that it is from; nil if none.
	narrow func(where sqlparse.Expr)
}

// used is use for a relation that may be without.
func (r *relation) used(slot int) {
	if r.use != nil {
		r.use(slot)
	}
}

// from compiles a part of FROM.
func (b *builder) from(p *Plan, r sqlparse.Relation, around *expr.Scope) (*relation, error) {
	switch r := r.(type) {
	case nil:
		return &relation{scan: func(_ *run, yield func(expr.Row) error) error { return yield(nil) }}, nil
	case *sqlparse.TableRef:
		return b.table(p, r)
	case *sqlparse.QueryRef:
		sub, err := b.query(r.Query, nil)
		if err != nil {
			return nil, err
		}
		return named(sub, r.Alias, nil, r.Pos)
	case *sqlparse.ValuesRef:
		sub := &Plan{}
		if err := b.values(sub, r.Values, nil); err != nil {
			return nil, err
		}
		return named(sub, r.Alias, nil, r.Pos)
	case *sqlparse.FunctionRef:
		return b.function(r)
	case *sqlparse.Join:
		return b.join(p, r, around)
	}
	return nil, fail(r.Position(), sqlparse.ClassUnsupported, "%T is not supported in FROM", r)
}

// table compiles the name of a table, a view or a query of WITH.
func (b *builder) table(p *Plan, ref *sqlparse.TableRef) (*relation, error) {
	if len(ref.Table.Parts) == 1 && ref.Version == nil && ref.Timestamp == nil {
		for _, c := range slices.Backward(b.ctes) {
			if sameName(c.Name.Name, ref.Table.Last()) {
				return b.common(c, ref)
			}
		}
	}
	rel, err := b.src.Table(b.ctx, ref)
	if err != nil {
		return nil, err
	}
	if rel.View != nil {
		view := &builder{ctx: b.ctx, src: b.src, env: b.env, depth: b.depth, reads: b.reads}
		sub, err := view.query(rel.View, nil)
		if err != nil {
			return nil, err
		}
		return named(sub, ref.Alias, rel.Name, ref.Pos)
	}
	var need []int
	out := &relation{cols: slices.Clone(rel.Columns), use: func(slot int) {
		if i, ok := slices.BinarySearch(need, slot); !ok {
			need = slices.Insert(need, i, slot)
		}
	}}
	out.scan = func(r *run, yield func(expr.Row) error) error { return rel.Scan(r.ctx, need, yield) }
	if rel.Explain != nil && b.reads != nil {
		*b.reads = append(*b.reads, func(ctx context.Context) (string, error) { return rel.Explain(ctx, need) })
	}
	if rel.Narrow != nil && (ref.Alias == nil || len(ref.Alias.Columns) == 0) {
		name := rel.Name
		if ref.Alias != nil && ref.Alias.Name != "" {
			name = []string{ref.Alias.Name}
		}
		out.narrow = func(where sqlparse.Expr) { rel.Narrow(where, name) }
	}
	return out, out.rename(ref.Alias, rel.Name, ref.Pos)
}

// common compiles a query of WITH where it is named: each time anew, with the names
// that stood before it.
func (b *builder) common(c cte, ref *sqlparse.TableRef) (*relation, error) {
	all := b.ctes
	b.ctes = slices.Clone(all[:c.sees])
	sub, err := b.query(c.Query, nil)
	b.ctes = all
	if err != nil {
		return nil, err
	}
	r, err := named(sub, &sqlparse.Alias{Name: c.Name.Name, Columns: c.Columns}, nil, ref.Pos)
	if err != nil || ref.Alias == nil {
		return r, err
	}
	return r, r.rename(ref.Alias, nil, ref.Pos)
}

// named makes a relation of a query's output.
func named(p *Plan, alias *sqlparse.Alias, name []string, pos sqlparse.Pos) (*relation, error) {
	r := &relation{scan: p.scan}
	for i, c := range p.cols {
		r.cols = append(r.cols, expr.Column{Name: c.Name, Type: c.Declared(), Slot: i})
	}
	return r, r.rename(alias, name, pos)
}

// rename gives the columns their qualifier: the alias, which hides the name, or the
// name; and the names that the alias lists.
func (r *relation) rename(alias *sqlparse.Alias, name []string, pos sqlparse.Pos) error {
	if alias != nil {
		if alias.Name != "" {
			name = []string{alias.Name}
		}
		if n := len(alias.Columns); n > 0 {
			visible := slices.IndexFunc(r.cols, func(c expr.Column) bool { return c.Hidden })
			if visible < 0 {
				visible = len(r.cols)
			}
			if n != visible {
				return fail(pos, "ASSIGNMENT_ARITY_MISMATCH", "%s names %d columns, there are %d", alias.Name, n, visible)
			}
			for i, c := range alias.Columns {
				r.cols[i].Name = c.Name
			}
		}
	}
	for i := range r.cols {
		r.cols[i].Qualifier = name
	}
	return nil
}

// function compiles range([start,] end[, step]).
func (b *builder) function(f *sqlparse.FunctionRef) (*relation, error) {
	if len(f.Func.Parts) != 1 || !sameName(f.Func.Last(), "range") || len(f.Args) < 1 || len(f.Args) > 3 {
		return nil, fail(f.Pos, "UNRESOLVABLE_TABLE_VALUED_FUNCTION", "there is no table function %s of %d arguments; there is range(start, end, step)", f.Func, len(f.Args))
	}
	bounds := []int64{0, 0, 1}
	for i, a := range f.Args {
		x, err := expr.Compile(a, &expr.Scope{Env: b.env})
		if err != nil {
			return nil, err
		}
		v, err := x.Eval(nil)
		if err != nil {
			return nil, err
		}
		if k := x.Type().Kind; v.Null || k < expr.TinyInt || k > expr.BigInt {
			return nil, fail(a.Position(), "UNEXPECTED_INPUT_TYPE", "range counts integers")
		}
		if len(f.Args) == 1 {
			i = 1
		}
		bounds[i] = v.I
	}
	if bounds[2] == 0 {
		return nil, fail(f.Pos, "UNEXPECTED_INPUT_TYPE", "the step of range cannot be 0")
	}
	r := &relation{cols: []expr.Column{{Name: "id", Type: expr.Type{Kind: expr.BigInt}}}}
	r.scan = func(run *run, yield func(expr.Row) error) error {
		row := make(expr.Row, 1)
		for v, step := bounds[0], bounds[2]; step > 0 && v < bounds[1] || step < 0 && v > bounds[1]; v += step {
			row[0] = types.IntDatum(v)
			if err := run.ctx.Err(); err != nil {
				return err
			}
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
	return r, r.rename(f.Alias, []string{"range"}, f.Pos)
}
