package paimon

import (
	"fmt"
	"slices"
	"strings"

	"applier/storage/types"
)

// Names and ids of Paimon's system columns (source: SpecialFields).
const (
	ColumnRowID          = "_ROW_ID"
	ColumnSequenceNumber = "_SEQUENCE_NUMBER"

	FieldIDRowID          = 2147483642
	FieldIDSequenceNumber = 2147483646

	// systemFieldIDs is where ids that are given to no user column start:
	// 2147483642 _ROW_ID … 2147483646 _SEQUENCE_NUMBER, and above 1073741823 key columns.
	systemFieldIDs = 1073741823
)

// systemNames may not be used for columns; neither may the prefix _KEY_.
var systemNames = []string{"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "rowkind", "_ROW_ID"}

// NewSchema returns schema 0 of a new table: field ids given as Java gives them
// (nested ones included, whatever ids the fields have), names and partition keys
// checked. Errors are ErrInvalidSchema and list everything that is wrong.
// Whether this package can write such a table is for Refuse to say.
func NewSchema(fields []types.Field, partitionKeys []string, options map[string]string, comment *string, timeMillis int64) (*Schema, error) {
	s := &Schema{
		Version: SchemaVersion, PartitionKeys: slices.Clone(partitionKeys), Options: map[string]string{}, Comment: comment, TimeMillis: timeMillis,
	}
	for k, v := range options {
		if k != "path" { // Java strips it: the table knows where it is
			s.Options[k] = v
		}
	}
	next := 0
	for _, f := range fields {
		f.ID = next
		next++
		f.Type = reassign(f.Type, &next)
		s.Fields = append(s.Fields, f)
	}
	s.HighestFieldID = next - 1
	problems := checkColumns(s.Fields, "column")
	problems = append(problems, checkPartitionKeys(s)...)
	if next >= systemFieldIDs {
		problems = append(problems, "too many fields")
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrInvalidSchema, strings.Join(problems, "; "))
	}
	return s, s.index()
}

// reassign gives ids to nested fields: a field's own type first, then the field
// (source: ReassignFieldId).
func reassign(t types.Type, next *int) types.Type {
	inner := func(p *types.Type) *types.Type {
		if p == nil {
			return nil
		}
		return new(reassign(*p, next))
	}
	t.Key, t.Elem = inner(t.Key), inner(t.Elem)
	if t.Kind == types.Row {
		t.Fields = slices.Clone(t.Fields)
		for i := range t.Fields {
			t.Fields[i].Type = reassign(t.Fields[i].Type, next)
			t.Fields[i].ID = *next
			*next++
		}
	}
	return t
}

func checkColumns(fields []types.Field, what string) []string {
	var problems []string
	if len(fields) == 0 {
		problems = append(problems, "no "+what+"s")
	}
	seen := map[string]string{}
	for _, f := range fields {
		fold := strings.ToLower(f.Name)
		other, twice := seen[fold]
		switch {
		case strings.TrimSpace(f.Name) == "":
			problems = append(problems, "a "+what+" without a name")
		case slices.Contains(systemNames, f.Name) || strings.HasPrefix(f.Name, "_KEY_"):
			problems = append(problems, fmt.Sprintf("%s %q has a name that Paimon keeps for itself", what, f.Name))
		case twice && other == f.Name:
			problems = append(problems, fmt.Sprintf("%s %q twice", what, f.Name))
		case twice:
			problems = append(problems, fmt.Sprintf("%ss %q and %q differ in case only, which Spark and Flink cannot tell apart", what, other, f.Name))
		}
		seen[fold] = f.Name
		problems = append(problems, checkNested(f.Type, f.Name)...)
	}
	return problems
}

func checkNested(t types.Type, path string) []string {
	var problems []string
	if t.Kind == types.Row {
		problems = checkColumns(t.Fields, "field of "+path)
	}
	for _, p := range []*types.Type{t.Key, t.Elem} {
		if p != nil {
			problems = append(problems, checkNested(*p, path)...)
		}
	}
	return problems
}

func checkPartitionKeys(s *Schema) []string {
	var problems []string
	for i, k := range s.PartitionKeys {
		at := slices.IndexFunc(s.Fields, func(f types.Field) bool { return f.Name == k })
		switch {
		case at < 0:
			problems = append(problems, fmt.Sprintf("partition key %q is no column", k))
		case slices.Contains(s.PartitionKeys[:i], k):
			problems = append(problems, fmt.Sprintf("partition key %q twice", k))
		case !partitionable(s.Fields[at].Type):
			problems = append(problems, fmt.Sprintf("partition key %q cannot be of type %s", k, s.Fields[at].Type))
		}
	}
	if len(s.PartitionKeys) > 0 && len(s.PartitionKeys) >= len(s.Fields) {
		problems = append(problems, "every column is a partition key")
	}
	return problems
}

// partitionable reports whether values of t name a directory: no nested type,
// and no binary one, whose name in Java is an object's address.
func partitionable(t types.Type) bool {
	switch t.Kind {
	case types.Boolean, types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Float, types.Double, types.Decimal,
		types.Char, types.VarChar, types.Date, types.Time, types.Timestamp, types.TimestampLTZ:
		return true
	}
	return false
}
