package decode

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"applier/storage/types"
)

// Evolve says how far a table follows the schemas that its records carry (config
// schema.evolve).
type Evolve uint8

// The ways, each of which does what the one before it does.
const (
	EvolveStrict Evolve = iota // not at all
	EvolveAdd                  // new columns and fields are added
	EvolveWiden                // types become wider, too
)

// Evolution is how a table follows its records.
type Evolution struct {
	How Evolve
	// Keep are columns whose type stays as it is: merge key, order, partition and
	// bucket columns, and those whose type the user has stated.
	Keep []string
	// Leave are paths, joined with dots, that are left alone: the table's format
	// refused the change.
	Leave []string
}

func (e Evolution) leaves(path []string) bool {
	return len(e.Leave) > 0 && slices.Contains(e.Leave, strings.Join(path, "."))
}

// SchemaChange is an error of Decode: the record's own schema has what the table's
// should have first. The record is to be decoded again, with a decoder for the new
// columns.
type SchemaChange struct {
	// Columns are those of the record's schema, with names and types only.
	Columns []types.Field
	// Edits are what the table that the decoder was made for lacks.
	Edits []ColumnEdit
}

// Error implements error.
func (c *SchemaChange) Error() string {
	var parts []string
	for _, e := range c.Edits {
		parts = append(parts, e.String())
	}
	return "the record's schema has what the table has not: " + strings.Join(parts, ", ")
}

// ColumnEdit adds a column, or makes its type wider. A longer path is a field inside
// of a column; "element" and "value" are the parts of an array and a map.
type ColumnEdit struct {
	Path []string
	Add  bool
	Type types.Type
}

// String returns the path and the new type.
func (e ColumnEdit) String() string {
	return fmt.Sprintf("%.200s %s", strings.Join(e.Path, "."), e.Type.Nullable())
}

// Edits compares a table's columns with those of a record's schema. What the record
// does not have stays, so records of older and newer schemas may come in any order.
func (e Evolution) Edits(table, record []types.Field) []ColumnEdit {
	if e.How == EvolveStrict {
		return nil
	}
	return e.fields(nil, table, record)
}

// Limits of what records may add: columns of a table, and the bytes of a name.
const (
	maxColumns   = 2048
	maxAddedName = 255
)

// unprintable: a name with such a character is nobody's column.
func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

func (e Evolution) fields(path []string, table, record []types.Field) (edits []ColumnEdit) {
	for _, r := range record {
		at := append(slices.Clone(path), r.Name)
		same := func(f types.Field) bool { return f.Name == r.Name }
		if i := slices.IndexFunc(table, same); i >= 0 {
			edits = append(edits, e.inside(at, table[i].Type, r.Type)...)
			continue
		}
		// Most engines could not tell names apart that differ in case only.
		fold := func(f types.Field) bool { return strings.EqualFold(f.Name, r.Name) }
		fits := r.Name != "" && len(r.Name) <= maxAddedName && !strings.ContainsFunc(r.Name, unprintable) && len(table)+len(edits) < maxColumns
		if fits && !slices.ContainsFunc(table, fold) && !e.leaves(at) {
			edits = append(edits, ColumnEdit{Path: at, Add: true, Type: r.Type.Nullable()})
		}
	}
	return edits
}

// inside compares a column's type, or that of a part of it.
func (e Evolution) inside(path []string, table, record types.Type) []ColumnEdit {
	if len(path) == 1 && slices.Contains(e.Keep, path[0]) {
		return nil
	}
	part := func(name string) []string { return append(slices.Clone(path), name) }
	switch {
	case table.Kind == types.Row && record.Kind == types.Row:
		return e.fields(path, table.Fields, record.Fields)
	case table.Kind == types.Array && record.Kind == types.Array:
		return e.inside(part("element"), *table.Elem, *record.Elem)
	case table.Kind == types.Map && record.Kind == types.Map: // a key's type stays
		return e.inside(part("value"), *table.Elem, *record.Elem)
	case e.How < EvolveWiden:
		return nil
	}
	wide, ok := types.Widen(table, record)
	if !ok || e.leaves(path) || wide.EqualIgnoringNull(table) {
		return nil
	}
	return []ColumnEdit{{Path: path, Type: wide}}
}

// evolved returns what the table lacks of the row images that a schema describes: of
// its member, or of the whole for "". Nil means nothing.
func (r *rows) evolved(schema []byte, member string) *SchemaChange {
	if r.opts.Evolution.How == EvolveStrict {
		return nil
	}
	var n derivedNode
	if json.Unmarshal(schema, &n) != nil {
		return nil
	}
	row := &n
	for i := range n.Fields {
		if member != "" && n.Fields[i].Field == member {
			row = &n.Fields[i]
		}
	}
	c := &SchemaChange{}
	for i := range row.Fields {
		if t, err := derivedType(&row.Fields[i]); err == nil {
			c.Columns = append(c.Columns, types.Field{Name: row.Fields[i].Field, Type: t})
		}
	}
	if c.Edits = r.opts.Evolution.Edits(r.fields, c.Columns); len(c.Edits) == 0 {
		return nil
	}
	return c
}
