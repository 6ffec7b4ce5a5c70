package sql

import (
	"context"
	"errors"
	"slices"
	"strings"

	"applier/merger/expr"
	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// settingEvolution makes every MERGE one WITH SCHEMA EVOLUTION, as the connector's option
// write.merge-schema does.
const settingEvolution = "spark.paimon.write.merge-schema"

func (r *run) evolves(n *sqlparse.Merge) bool {
	return n.SchemaEvolution || sameName(r.settings[settingEvolution], "true")
}

// evolve prepares a MERGE WITH SCHEMA EVOLUTION: the columns and fields that the source
// has and the target lacks become part of the table's schema, if a clause writes them,
// and the stars become lists of what the source has. The schema is there before the rows
// are: a statement that fails then leaves it behind.
func (r *run) evolve(ctx context.Context, n *sqlparse.Merge) (*sqlparse.Merge, error) {
	for range attempts {
		_, t, err := r.open(ctx, n.Table, paimon.Write)
		if err != nil {
			return nil, err
		}
		ev, err := r.evolution(ctx, n, t.Schema())
		if err != nil {
			return nil, err
		}
		id, err := paimon.LatestSnapshotID(ctx, t.Bucket(), t.Paths())
		if err != nil {
			return nil, err
		}
		s, changed, err := ev.schema(t.Schema().Edit(id > 0), r.o.Now().UnixMilli())
		if err != nil {
			return nil, ev.problem(err)
		}
		if changed {
			err = paimon.AddSchema(ctx, t.Bucket(), t.Paths(), s)
		}
		if err == nil {
			return ev.rewritten(s.Fields), nil
		}
		if !errors.Is(err, objstore.ErrExist) {
			return nil, err
		}
	}
	return nil, fail(n.Pos, ClassOvertaken, "the statement was overtaken %d times by other changes of the schema: run it again", attempts)
}

// evolution is what a MERGE adds to a schema.
type evolution struct {
	n       *sqlparse.Merge
	name    []string // before the source's columns
	columns []query.Column
	target  []types.Field
	// paths and fields are what is added.
	paths  [][]string
	fields []types.Field
}

func (r *run) evolution(ctx context.Context, n *sqlparse.Merge, s *paimon.Schema) (*evolution, error) {
	c := *n
	if q, ok := n.Source.(*sqlparse.QueryRef); ok && q.Alias == nil {
		named := *q
		named.Alias = &sqlparse.Alias{Pos: q.Pos, Name: "__source"}
		c.Source = &named
	}
	p, err := query.Compile(ctx, starOf(&c), r, r.env)
	if err != nil {
		return nil, err
	}
	ev := &evolution{n: &c, name: r.sourceName(c.Source), columns: p.Columns(), target: s.Fields}
	star := slices.ContainsFunc(n.Clauses, func(c sqlparse.MergeClause) bool {
		return c.Action == sqlparse.MergeUpdateStar || c.Action == sqlparse.MergeInsertStar
	})
	for _, col := range ev.columns {
		at := slices.IndexFunc(s.Fields, func(f types.Field) bool { return sameName(f.Name, col.Name) })
		switch {
		case at >= 0 && star:
			ev.nested([]string{s.Fields[at].Name}, s.Fields[at].Type, col.Type)
		case at < 0 && (star || ev.named(col.Name)):
			ev.add([]string{col.Name}, col.Type)
		}
	}
	return ev, nil
}

// named reports whether a clause writes a column by its name.
func (ev *evolution) named(name string) bool {
	for _, c := range ev.n.Clauses {
		for _, a := range c.Set {
			if sameName(a.Target.Last(), name) {
				return true
			}
		}
		if slices.ContainsFunc(c.Columns, func(n sqlparse.Name) bool { return sameName(n.Last(), name) }) {
			return true
		}
	}
	return false
}

func (ev *evolution) add(path []string, t expr.Type) {
	if st, ok := t.ToStorage(); ok {
		ev.paths = append(ev.paths, path)
		ev.fields = append(ev.fields, types.Field{Name: path[len(path)-1], Type: st.Nullable()})
	}
}

// nested finds fields of structs that the target lacks.
func (ev *evolution) nested(path []string, have types.Type, want expr.Type) {
	inner := func(name string) []string { return append(slices.Clone(path), name) }
	switch {
	case have.Kind == types.Row && want.Kind == expr.Struct:
		for _, f := range want.Fields {
			at := slices.IndexFunc(have.Fields, func(o types.Field) bool { return sameName(o.Name, f.Name) })
			if at < 0 {
				ev.add(inner(f.Name), f.Type)
			} else {
				ev.nested(inner(have.Fields[at].Name), have.Fields[at].Type, f.Type)
			}
		}
	case have.Kind == types.Array && want.Kind == expr.Array:
		ev.nested(inner("element"), *have.Elem, *want.Elem)
	case have.Kind == types.Map && want.Kind == expr.Map:
		ev.nested(inner("value"), *have.Elem, *want.Elem)
	}
}

// schema returns the schema with what is added, and whether that is anything.
func (ev *evolution) schema(edit *paimon.SchemaEdit, millis int64) (*paimon.Schema, bool, error) {
	for i, path := range ev.paths {
		if err := edit.AddColumn(path, ev.fields[i], nil); err != nil {
			return nil, false, err
		}
	}
	return edit.Schema(millis)
}

func (ev *evolution) problem(err error) error {
	if errors.Is(err, paimon.ErrSchemaChange) {
		return fail(ev.n.Pos, ClassSchemaChange, "%v", err)
	}
	return err
}

// added lists what is added, for people.
func (ev *evolution) added() string {
	var list []string
	for i, p := range ev.paths {
		list = append(list, strings.Join(p, ".")+" "+typeText(ev.fields[i].Type))
	}
	return strings.Join(list, ", ")
}

// rewritten is the statement with lists in the place of its stars, for a target with
// the given columns: those that the source lacks are not written.
func (ev *evolution) rewritten(fields []types.Field) *sqlparse.Merge {
	n := *ev.n
	n.SchemaEvolution = false
	n.Clauses = slices.Clone(n.Clauses)
	for i := range n.Clauses {
		c := &n.Clauses[i]
		switch c.Action {
		case sqlparse.MergeUpdateStar, sqlparse.MergeInsertStar:
			ev.listStar(c, fields)
		case sqlparse.MergeUpdate, sqlparse.MergeInsert:
			ev.leaveOut(c, fields)
		}
	}
	return &n
}

// listStar puts the source's columns, as far as the target has them, in the place of *.
func (ev *evolution) listStar(c *sqlparse.MergeClause, fields []types.Field) {
	update := c.Action == sqlparse.MergeUpdateStar
	c.Action = sqlparse.MergeInsert
	if update {
		c.Action = sqlparse.MergeUpdate
	}
	for _, f := range fields {
		at := slices.IndexFunc(ev.columns, func(col query.Column) bool { return sameName(col.Name, f.Name) })
		if at < 0 {
			continue
		}
		var old sqlparse.Expr
		if update {
			old = ref(c.Pos, ev.targetName(), f.Name)
		}
		name, value := nameAt(c.Pos, f.Name), ev.value(c.Pos, ref(c.Pos, ev.name, ev.columns[at].Name), ev.columns[at].Type, old, f.Type)
		if update {
			c.Set = append(c.Set, sqlparse.Assignment{Target: name, Value: value})
		} else {
			c.Columns, c.Values = append(c.Columns, name), append(c.Values, value)
		}
	}
}

// leaveOut drops what a clause writes into columns that would be added, for a target
// without them: EXPLAIN adds none.
func (ev *evolution) leaveOut(c *sqlparse.MergeClause, fields []types.Field) {
	missing := func(n sqlparse.Name) bool {
		is := func(name string) bool { return sameName(name, n.Last()) }
		return slices.ContainsFunc(ev.paths, func(p []string) bool { return len(p) == 1 && is(p[0]) }) &&
			!slices.ContainsFunc(fields, func(f types.Field) bool { return is(f.Name) })
	}
	c.Set = slices.DeleteFunc(slices.Clone(c.Set), func(a sqlparse.Assignment) bool { return missing(a.Target) })
	var columns []sqlparse.Name
	var values []sqlparse.Expr
	for i, n := range c.Columns {
		if !missing(n) {
			columns, values = append(columns, n), append(values, c.Values[i])
		}
	}
	c.Columns, c.Values = columns, values
}

// targetName is what may stand before the target's columns.
func (ev *evolution) targetName() []string {
	if ev.n.Alias != nil && ev.n.Alias.Name != "" {
		return []string{ev.n.Alias.Name}
	}
	return ev.n.Table.Strings()
}

// value is what the source gives for a column: as it is or, for a struct that lacks
// fields of the target's, one with the old value's fields, or NULLs, in their place. A
// struct that is NULL stays NULL.
func (ev *evolution) value(pos sqlparse.Pos, x sqlparse.Expr, from expr.Type, old sqlparse.Expr, to types.Type) sqlparse.Expr {
	if from.Kind != expr.Struct || to.Kind != types.Row {
		return x
	}
	var args []sqlparse.Expr
	for _, f := range to.Fields {
		at := slices.IndexFunc(from.Fields, func(o expr.Field) bool { return sameName(o.Name, f.Name) })
		var v, kept sqlparse.Expr = &sqlparse.NullLit{Pos: pos}, nil
		if old != nil {
			kept = fieldOfExpr(pos, old, f.Name)
			v = kept
		}
		if at >= 0 {
			v = ev.value(pos, fieldOfExpr(pos, x, from.Fields[at].Name), from.Fields[at].Type, kept, f.Type)
		}
		args = append(args, &sqlparse.StringLit{Pos: pos, Value: f.Name}, v)
	}
	return &sqlparse.Case{
		Pos: pos, Whens: []sqlparse.When{{Pos: pos, Cond: &sqlparse.IsNull{Pos: pos, X: x}, Then: &sqlparse.NullLit{Pos: pos}}},
		Else: &sqlparse.Call{Pos: pos, Func: nameAt(pos, "named_struct"), Args: args},
	}
}

func nameAt(pos sqlparse.Pos, parts ...string) (n sqlparse.Name) {
	for _, p := range parts {
		n.Parts = append(n.Parts, sqlparse.Ident{Pos: pos, Name: p})
	}
	return n
}

// ref names a column by its qualifier.
func ref(pos sqlparse.Pos, qualifier []string, column string) sqlparse.Expr {
	return &sqlparse.ColumnRef{Name: nameAt(pos, append(slices.Clone(qualifier), column)...)}
}

// fieldOfExpr names a field of a struct that a column reference stands for.
func fieldOfExpr(pos sqlparse.Pos, x sqlparse.Expr, field string) sqlparse.Expr {
	return &sqlparse.ColumnRef{Name: nameAt(pos, append(x.(*sqlparse.ColumnRef).Strings(), field)...)}
}
