package paimon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"applier/storage/objstore"
	"applier/storage/types"
)

// ErrSchemaChange is wrapped by every error about a change of a table's schema
// that is not possible.
var ErrSchemaChange = errors.New("schema change refused")

// SchemaEdit makes the next version of a schema out of single changes, by the rules
// of Paimon's Java core (paimon-format.md §2.3–2.6; SchemaManager). Paths name a
// column and the fields inside of it, "element", "key" and "value" being those of
// ARRAY and MAP; names are found without regard to case. After an error the edit is
// to be dropped.
type SchemaEdit struct {
	base *Schema
	next *Schema
	// live tells that the table has snapshots, since when some options are fixed.
	live bool
	opts Options
}

// Edit begins a change of a schema. live tells that the table has a snapshot.
func (s *Schema) Edit(live bool) *SchemaEdit {
	next := *s
	next.Version, next.ID = SchemaVersion, s.ID+1
	next.Fields, next.PartitionKeys = slices.Clone(s.Fields), slices.Clone(s.PartitionKeys)
	next.Options = maps.Clone(s.Options)
	if next.Options == nil {
		next.Options = map[string]string{}
	}
	o, _ := ParseOptions(s.Options) // what is no value has its default here
	return &SchemaEdit{base: s, next: &next, live: live, opts: o}
}

// Schema returns the new version, and whether it differs from the old one.
func (e *SchemaEdit) Schema(timeMillis int64) (*Schema, bool, error) {
	s := e.next
	s.TimeMillis = timeMillis
	if problems := append(checkColumns(s.Fields, "column"), checkPartitionKeys(s)...); len(problems) > 0 {
		return nil, false, refuseChange("%s", strings.Join(problems, "; "))
	}
	for _, f := range s.Fields {
		if _, err := DefaultValue(f); err != nil {
			return nil, false, fmt.Errorf("%w: %w", ErrSchemaChange, err)
		}
	}
	if err := s.index(); err != nil {
		return nil, false, refuseChange("%v", err)
	}
	same := maps.Equal(s.Options, e.base.Options) && slices.EqualFunc(s.Fields, e.base.Fields, sameField) && equalText(s.Comment, e.base.Comment)
	return s, !same, nil
}

func sameField(a, b types.Field) bool {
	if a.ID != b.ID || a.Name != b.Name || !equalText(a.Description, b.Description) || !equalText(a.Default, b.Default) {
		return false
	}
	return a.Type.Equal(b.Type) && sameInside(a.Type, b.Type)
}

// sameInside compares what Type.Equal leaves out.
func sameInside(a, b types.Type) bool {
	inner := func(x, y *types.Type) bool { return x == nil || sameInside(*x, *y) }
	return inner(a.Key, b.Key) && inner(a.Elem, b.Elem) && slices.EqualFunc(a.Fields, b.Fields, sameField)
}

func equalText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func refuseChange(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSchemaChange, fmt.Sprintf(format, args...))
}

// ColumnPlace is where a column goes: FIRST, or behind After.
type ColumnPlace struct {
	First bool
	After string
}

// index returns the place in a list of fields without the column itself.
func (p *ColumnPlace) index(fields []types.Field) (int, error) {
	if p == nil {
		return len(fields), nil
	}
	if p.First {
		return 0, nil
	}
	at := fieldIndex(fields, p.After)
	if at < 0 {
		return 0, refuseChange("there is no column %s to stand after", p.After)
	}
	return at + 1, nil
}

// fieldIndex finds a field, first by its exact name; -1 if there is none.
func fieldIndex(fields []types.Field, name string) int {
	if i := slices.IndexFunc(fields, func(f types.Field) bool { return f.Name == name }); i >= 0 {
		return i
	}
	return slices.IndexFunc(fields, func(f types.Field) bool { return strings.EqualFold(f.Name, name) })
}

// fieldsEdit changes a list of fields; at is where the last name of the path is, -1
// if nowhere.
type fieldsEdit func(fields []types.Field, at int) ([]types.Field, error)

// edit applies fn to the list of fields that holds the end of the path.
func (e *SchemaEdit) edit(path []string, fn fieldsEdit) error {
	fields, err := editFields(e.next.Fields, path, path, fn)
	if err == nil {
		e.next.Fields = fields
	}
	return err
}

func editFields(fields []types.Field, path, whole []string, fn fieldsEdit) ([]types.Field, error) {
	fields = slices.Clone(fields)
	at := fieldIndex(fields, path[0])
	if len(path) == 1 {
		return fn(fields, at)
	}
	if at < 0 {
		return nil, noColumn(whole)
	}
	t, err := editInside(fields[at].Type, path[1:], whole, fn)
	fields[at].Type = t
	return fields, err
}

// editInside goes on inside of a type.
func editInside(t types.Type, path, whole []string, fn fieldsEdit) (types.Type, error) {
	var err error
	if t.Kind == types.Row {
		t.Fields, err = editFields(t.Fields, path, whole, fn)
		return t, err
	}
	inner := map[string]**types.Type{}
	switch t.Kind {
	case types.Array:
		inner["element"] = &t.Elem
	case types.Map:
		inner["key"], inner["value"] = &t.Key, &t.Elem
	}
	p, ok := inner[strings.ToLower(path[0])]
	switch {
	case !ok:
		return t, noColumn(whole)
	case len(path) == 1: // an element is changed as if it were a field of its own
		list, err := fn([]types.Field{{Name: path[0], Type: **p}}, 0)
		if err == nil && (len(list) != 1 || list[0].Name != path[0]) {
			err = refuseChange("%s is no field", strings.Join(whole, "."))
		}
		if err == nil {
			*p = new(list[0].Type)
		}
		return t, err
	}
	changed, err := editInside(**p, path[1:], whole, fn)
	*p = &changed
	return t, err
}

func noColumn(path []string) error {
	return refuseChange("there is no column %s", strings.Join(path, "."))
}

// fixed refuses changes of columns that files are arranged by.
func (e *SchemaEdit) fixed(path []string, what string) error {
	if len(path) > 1 {
		return nil
	}
	for _, k := range e.next.PartitionKeys {
		if strings.EqualFold(k, path[0]) {
			return refuseChange("%s is a partition column, which cannot be %s", k, what)
		}
	}
	return nil
}

// AddColumn adds a column or, with a longer path, a field. It must take NULL: rows
// that are there have no value for it.
func (e *SchemaEdit) AddColumn(path []string, f types.Field, where *ColumnPlace) error {
	if f.Type.NotNull {
		return refuseChange("column %s cannot be added as NOT NULL: rows that are there have no value for it", strings.Join(path, "."))
	}
	return e.edit(path, func(fields []types.Field, at int) ([]types.Field, error) {
		if at >= 0 {
			return nil, refuseChange("column %s exists already", strings.Join(path, "."))
		}
		to, err := where.index(fields)
		if err != nil {
			return nil, err
		}
		next := e.next.HighestFieldID + 1
		f.Name, f.ID = path[len(path)-1], next
		next++
		f.Type = reassign(f.Type, &next)
		e.next.HighestFieldID = next - 1
		return slices.Insert(fields, to, f), nil
	})
}

// DropColumn drops a column or field, with options that are only about it.
func (e *SchemaEdit) DropColumn(path []string) error {
	if err := e.fixed(path, "dropped"); err != nil {
		return err
	}
	return e.edit(path, func(fields []types.Field, at int) ([]types.Field, error) {
		if at < 0 {
			return nil, noColumn(path)
		}
		if len(fields) == 1 {
			return nil, refuseChange("%s is the last column", strings.Join(path, "."))
		}
		if len(path) == 1 && slices.Contains(e.next.BucketKeys(), fields[at].Name) {
			return nil, refuseChange("%s is a bucket key, which cannot be dropped", fields[at].Name)
		}
		return slices.Delete(fields, at, at+1), nil
	})
}

// RenameColumn renames a column or field, and the column in options that name it.
func (e *SchemaEdit) RenameColumn(path []string, to string) error {
	if err := e.fixed(path, "renamed"); err != nil {
		return err
	}
	return e.edit(path, func(fields []types.Field, at int) ([]types.Field, error) {
		if at < 0 {
			return nil, noColumn(path)
		}
		if other := fieldIndex(fields, to); other >= 0 && other != at {
			return nil, refuseChange("column %s exists already", to)
		}
		if len(path) == 1 {
			e.renameInOptions(fields[at].Name, to)
		}
		fields[at].Name = to
		return fields, nil
	})
}

func (e *SchemaEdit) renameInOptions(from, to string) {
	for _, key := range []string{OptBucketKey, "sequence.field"} {
		if v, ok := e.next.Options[key]; ok {
			names := strings.Split(v, ",")
			for i, n := range names {
				if n == from {
					names[i] = to
				}
			}
			e.next.Options[key] = strings.Join(names, ",")
		}
	}
	for key, v := range maps.Clone(e.next.Options) {
		if rest, ok := strings.CutPrefix(key, "fields."+from+"."); ok {
			delete(e.next.Options, key)
			e.next.Options["fields."+to+"."+rest] = v
		}
	}
}

// SetType changes a column's type; NULL or NOT NULL stays. Only what files that are
// there can be read as is possible: see newCaster. A table that never had a snapshot has
// none, so that any type will do there.
func (e *SchemaEdit) SetType(path []string, t types.Type) error {
	if err := e.fixed(path, "given another type"); err != nil {
		return err
	}
	return e.change(path, func(f *types.Field) error {
		t.NotNull = f.Type.NotNull
		if t.IsNested() || f.Type.IsNested() {
			if t.EqualIgnoringNull(f.Type) {
				return nil
			}
			return refuseChange("%s is %s: change its parts, each by its own name", strings.Join(path, "."), f.Type)
		}
		if _, err := newCaster(t, f.Type); err != nil && e.live {
			return refuseChange("%s is %s, which cannot be read as %s without loss", strings.Join(path, "."), f.Type, t)
		}
		f.Type = t
		return nil
	})
}

// SetNotNull sets or drops NOT NULL.
func (e *SchemaEdit) SetNotNull(path []string, notNull bool) error {
	return e.change(path, func(f *types.Field) error {
		if notNull && !f.Type.NotNull && e.opts.AddNotNullRestricted {
			return refuseChange("%s may hold NULLs and cannot become NOT NULL (option alter-column-null-to-not-null.disabled)", strings.Join(path, "."))
		}
		f.Type.NotNull = notNull
		return nil
	})
}

// SetComment sets a column's comment, nil takes it away.
func (e *SchemaEdit) SetComment(path []string, comment *string) error {
	return e.change(path, func(f *types.Field) error { f.Description = comment; return nil })
}

// SetDefault sets the text of a column's default, nil takes it away. Schema checks
// that it is a value of the column.
func (e *SchemaEdit) SetDefault(column string, text *string) error {
	return e.change([]string{column}, func(f *types.Field) error { f.Default = text; return nil })
}

func (e *SchemaEdit) change(path []string, fn func(*types.Field) error) error {
	return e.edit(path, func(fields []types.Field, at int) ([]types.Field, error) {
		if at < 0 {
			return nil, noColumn(path)
		}
		return fields, fn(&fields[at])
	})
}

// Move gives a column or field another place.
func (e *SchemaEdit) Move(path []string, where ColumnPlace) error {
	return e.edit(path, func(fields []types.Field, at int) ([]types.Field, error) {
		if at < 0 {
			return nil, noColumn(path)
		}
		f := fields[at]
		if strings.EqualFold(f.Name, where.After) {
			return nil, refuseChange("%s cannot stand after itself", f.Name)
		}
		fields = slices.Delete(fields, at, at+1)
		to, err := where.index(fields)
		if err != nil {
			return nil, err
		}
		return slices.Insert(fields, to, f), nil
	})
}

// immutableOptions cannot change once a table has a snapshot (CoreOptions, those
// marked Immutable, as far as append tables go).
var immutableOptions = []string{
	OptBucketKey, OptBucketFunction, "data-file.path-directory", "merge-engine", "sequence.snapshot-ordering",
	"rowkind.field", "primary-key", "partition", OptRowTracking, OptDataEvolution, "index-file-in-data-file-dir",
}

// SetOption sets a table option.
func (e *SchemaEdit) SetOption(key, value string) error {
	old, had := e.next.Options[key]
	if had && old == value {
		return nil
	}
	if err := e.checkOption(key, old, value); err != nil {
		return err
	}
	e.next.Options[key] = value
	if _, err := ParseOptions(map[string]string{key: value}); err != nil {
		return refuseChange("%v", err)
	}
	return nil
}

func (e *SchemaEdit) checkOption(key, old, value string) error {
	switch {
	case key == "path" || key == "type":
		return refuseChange("option %s cannot be changed", key)
	case !e.live:
		return nil
	case slices.Contains(immutableOptions, key):
		return refuseChange("option %s cannot be changed once the table has a snapshot: create another table", key)
	case key == OptDeletionVectors && !e.opts.DeletionVectorsModifiable && !strings.EqualFold(old, value):
		return refuseChange("option %s cannot be changed once the table has a snapshot, unless deletion-vectors.modifiable is true", key)
	case key == OptBucket && (e.opts.Bucket < 1 || strings.HasPrefix(value, "-") || value == "0" || value == ""):
		return refuseChange("option bucket can be changed between numbers of buckets only")
	}
	return nil
}

// RemoveOption takes a table option back to its default.
func (e *SchemaEdit) RemoveOption(key string) error {
	old, had := e.next.Options[key]
	if !had {
		return nil
	}
	if err := e.checkOption(key, old, ""); err != nil {
		return err
	}
	delete(e.next.Options, key)
	return nil
}

// SetTableComment sets the table's comment.
func (e *SchemaEdit) SetTableComment(comment *string) { e.next.Comment = comment }

// AddSchema publishes a new version of a table's schema: objstore.ErrExist if
// somebody else was first, when the change is to be made again on top of theirs.
func AddSchema(ctx context.Context, b objstore.Bucket, p Paths, s *Schema) error {
	data, err := s.Encode()
	if err != nil {
		return err
	}
	if err := b.PutIfAbsent(ctx, p.Schema(s.ID), data); err != nil {
		return fmt.Errorf("adding schema %d: %w", s.ID, err)
	}
	return nil
}
