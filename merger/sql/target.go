package sql

import (
	"context"
	"strings"

	"applier/merger/defaults"
	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// target is a table that a statement changes, at the snapshot it is planned on.
type target struct {
	name      catalog.Name
	qualifier []string
	t         *paimon.Table
	st        *paimon.State
	fields    []types.Field
	cols      []expr.Column
	read      []int // the columns of a row, by slots
	defaults  []*types.Datum
}

// target opens the table of a row-level statement at its newest snapshot.
func (r *run) target(ctx context.Context, n sqlparse.Name, alias *sqlparse.Alias) (*target, error) {
	if len(n.Parts) == 1 && r.views[strings.ToLower(n.Last())] != nil {
		return nil, fail(n.Position(), "UNSUPPORTED_VIEW_OPERATION", "%s is a view, which cannot be changed", n)
	}
	name, t, err := r.open(ctx, n, paimon.Write)
	if err != nil {
		return nil, err
	}
	t, st, err := t.Version(ctx, paimon.Version{})
	if err != nil {
		return nil, err
	}
	tg := &target{name: name, t: t, st: st, fields: t.Schema().Fields, qualifier: []string{r.o.Name, name.Database, name.Table}}
	if alias != nil && alias.Name != "" {
		tg.qualifier = []string{alias.Name}
	}
	tg.cols, tg.read = tableColumns(tg.qualifier, t)
	r.pinned = map[catalog.Name]*pinned{name: {t, st}}
	tg.defaults, err = defaults.Values(t.Schema(), r.env)
	return tg, err
}

// scan hands the live rows to fn with their places. Row and entry are valid during
// the call.
func (tg *target) scan(ctx context.Context, where []paimon.Condition, fn func(e *manifest.Entry, pos uint32, row expr.Row) error) error {
	row := make(expr.Row, len(tg.read))
	return tg.t.ScanRows(ctx, tg.st, paimon.ScanOptions{Columns: tg.read, Where: where}, func(e *manifest.Entry, at []uint32, b *types.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, pos := range at {
			fill(row, b, i)
			if err := fn(e, pos, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// column finds a column by its name, -1 if there is none.
func (tg *target) column(name string) int {
	for i, f := range tg.fields {
		if f.Name == name {
			return i
		}
	}
	for i, f := range tg.fields {
		if strings.EqualFold(f.Name, name) {
			return i
		}
	}
	return -1
}

// resolve finds the column that a name means, with what is left of the name as
// fields of a struct.
func (tg *target) resolve(n sqlparse.Name) (col int, fields []sqlparse.Ident, err error) {
	for q := min(len(n.Parts)-1, len(tg.qualifier)); q >= 0; q-- {
		tail := tg.qualifier[len(tg.qualifier)-q:]
		match := true
		for i, part := range tail {
			match = match && strings.EqualFold(part, n.Parts[i].Name)
		}
		if !match {
			continue
		}
		if col = tg.column(n.Parts[q].Name); col >= 0 {
			return col, n.Parts[q+1:], nil
		}
	}
	var names []string
	for _, f := range tg.fields {
		names = append(names, f.Name)
	}
	if near := sqlparse.Nearest(n.Last(), names); near != "" {
		return 0, nil, fail(n.Position(), ClassNoColumn, "table %s has no column %s, did you mean %s?", tg.name, n, near)
	}
	return 0, nil, fail(n.Position(), ClassNoColumn, "table %s has no column %s, it has %s", tg.name, n, strings.Join(names[:min(len(names), 8)], ", "))
}

// pathOf finds nested fields by their names.
func pathOf(t types.Type, names []sqlparse.Ident) (path []int, leaf types.Type, err error) {
	for _, n := range names {
		if t.Kind != types.Row {
			return nil, t, fail(n.Pos, "INVALID_EXTRACT_BASE_FIELD_TYPE", "%s is no field: only fields of structs can be assigned", n.Name)
		}
		at := -1
		for i, f := range t.Fields {
			if strings.EqualFold(f.Name, n.Name) {
				at = i
			}
		}
		if at < 0 {
			return nil, t, fail(n.Pos, "FIELD_NOT_FOUND", "the struct has no field %s", n.Name)
		}
		path, t = append(path, at), t.Fields[at].Type
	}
	return path, t, nil
}

// defaulted puts the default in the place of a written NULL.
func (tg *target) defaulted(col int, d types.Datum) types.Datum {
	if d.Null && tg.defaults[col] != nil && !tg.fields[col].Type.NotNull {
		return *tg.defaults[col]
	}
	return d
}

// omitted is the value of a column that a statement gives none, as the keyword
// DEFAULT is.
func (tg *target) omitted(col int, pos sqlparse.Pos) (types.Datum, error) {
	f := tg.fields[col]
	switch {
	case tg.defaults[col] != nil:
		return *tg.defaults[col], nil
	case f.Type.NotNull:
		return types.Null, fail(pos, ClassNoDefault, "column %s is NOT NULL and has no default: give it a value", f.Name)
	}
	return types.Null, nil
}

// scope is what a condition on the target's rows can see.
func (tg *target) scope(r *run) *expr.Scope { return &expr.Scope{Columns: tg.cols, Env: r.env} }
