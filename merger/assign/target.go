// Package assign compiles what the row-level statements, and the merge clauses of
// a pipeline, store in a table's columns: SET lists, VALUES and the clauses of MERGE,
// with the casts, defaults and NOT NULL checks of assignments.
package assign

import (
	"fmt"
	"strings"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Classes of errors about the columns that are assigned.
const (
	ClassNoColumn      = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
	ClassNoDefault     = "NO_DEFAULT_COLUMN_VALUE_AVAILABLE"
	ClassAssignedTwice = "MULTIPLE_ASSIGNMENTS"
)

// Target is a table whose columns are assigned.
type Target struct {
	// Name is what messages call it.
	Name string
	// Qualifier are the names that may stand before a column: catalog, database,
	// table; or an alias alone.
	Qualifier []string
	Fields    []types.Field
	// Defaults are those of the columns, nil for none.
	Defaults []*types.Datum
}

// fail returns an error about a place in the statement.
func fail(pos sqlparse.Pos, class, format string, args ...any) error {
	return &expr.Error{Pos: pos, Class: class, Message: fmt.Sprintf(format, args...), Analysis: true}
}

// Column finds a column by its name, -1 if there is none.
func (t *Target) Column(name string) int {
	for i, f := range t.Fields {
		if f.Name == name {
			return i
		}
	}
	for i, f := range t.Fields {
		if strings.EqualFold(f.Name, name) {
			return i
		}
	}
	return -1
}

// Resolve finds the column that a name means, with what is left of the name as
// fields of a struct.
func (t *Target) Resolve(n sqlparse.Name) (col int, fields []sqlparse.Ident, err error) {
	for q := min(len(n.Parts)-1, len(t.Qualifier)); q >= 0; q-- {
		tail := t.Qualifier[len(t.Qualifier)-q:]
		match := true
		for i, part := range tail {
			match = match && strings.EqualFold(part, n.Parts[i].Name)
		}
		if !match {
			continue
		}
		if col = t.Column(n.Parts[q].Name); col >= 0 {
			return col, n.Parts[q+1:], nil
		}
	}
	var names []string
	for _, f := range t.Fields {
		names = append(names, f.Name)
	}
	if near := sqlparse.Nearest(n.Last(), names); near != "" {
		return 0, nil, fail(n.Position(), ClassNoColumn, "table %s has no column %s, did you mean %s?", t.Name, n, near)
	}
	return 0, nil, fail(n.Position(), ClassNoColumn, "table %s has no column %s, it has %s", t.Name, n, strings.Join(names[:min(len(names), 8)], ", "))
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

// Defaulted puts the default in the place of a written NULL.
func (t *Target) Defaulted(col int, d types.Datum) types.Datum {
	if d.Null && t.Defaults[col] != nil && !t.Fields[col].Type.NotNull {
		return *t.Defaults[col]
	}
	return d
}

// Omitted is the value of a column that a statement gives none, as the keyword
// DEFAULT is.
func (t *Target) Omitted(col int, pos sqlparse.Pos) (types.Datum, error) {
	f := t.Fields[col]
	switch {
	case t.Defaults[col] != nil:
		return *t.Defaults[col], nil
	case f.Type.NotNull:
		return types.Null, fail(pos, ClassNoDefault, "column %s is NOT NULL and has no default: give it a value", f.Name)
	}
	return types.Null, nil
}
