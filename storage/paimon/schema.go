package paimon

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"applier/storage/types"
)

// Errors of metadata files.
var (
	// ErrCorrupt is wrapped by every error about a schema, snapshot, tag or
	// consumer file that is none.
	ErrCorrupt = errors.New("corrupt metadata file")
	// ErrNewer: a metadata file of a newer version of Paimon than is known here.
	ErrNewer = errors.New("metadata file of a newer version")
	// ErrInvalidSchema is wrapped by every error about a table that is to be
	// created and cannot be.
	ErrInvalidSchema = errors.New("invalid table schema")
)

// SchemaVersion is the version of schema files that is written and the highest
// one that is understood.
const SchemaVersion = 3

// Schema is one version of a table's schema: the content of schema/schema-<ID>
// (source: Paimon TableSchema, SchemaSerializer). It must not be changed once
// it is shared.
type Schema struct {
	Version int
	ID      int64
	Fields  []types.Field
	// HighestFieldID is the highest id ever given to a column or nested field.
	HighestFieldID int
	PartitionKeys  []string
	PrimaryKeys    []string
	// Options are the table options as stored, without defaults; see ParseOptions.
	Options map[string]string
	Comment *string
	// TimeMillis is when the schema was made, milliseconds since the epoch.
	TimeMillis int64

	optionOrder []string // as in the file
	extra       []member // members that are not known here
	byName      map[string]int
	byID        map[int]int
}

// ParseSchema reads a schema file, with the defaults that older versions imply.
// Column types that are not known here make it fail with a *Refusal of code
// unknown_type, anything else that is wrong with ErrCorrupt.
func ParseSchema(b []byte) (*Schema, error) {
	s, err := parseSchema(b)
	if err != nil && !errors.Is(err, ErrRefused) {
		return nil, fmt.Errorf("%w: schema: %w", ErrCorrupt, err)
	}
	return s, err
}

func parseSchema(b []byte) (*Schema, error) {
	ms, err := parseObject(b)
	if err != nil {
		return nil, err
	}
	r := newJSONReader(ms)
	s := &Schema{Version: 1, Options: map[string]string{}}
	var fields []json.RawMessage
	var options json.RawMessage
	r.get("version", &s.Version)
	r.need("id", &s.ID)
	r.need("fields", &fields)
	r.get("highestFieldId", &s.HighestFieldID)
	r.get("partitionKeys", &s.PartitionKeys)
	r.get("primaryKeys", &s.PrimaryKeys)
	r.get("options", &options)
	s.Comment = optional[string](r, "comment")
	r.get("timeMillis", &s.TimeMillis)
	s.extra = r.rest(ms)
	if r.err != nil {
		return nil, r.err
	}
	if options != nil {
		if s.Options, s.optionOrder, err = textMap(options); err != nil {
			return nil, fmt.Errorf("options: %w", err)
		}
	}
	s.applyVersion()
	if err := s.parseFields(fields); err != nil {
		return nil, err
	}
	return s, s.index()
}

// applyVersion adds what the options of old versions meant by being absent
// (source: SchemaSerializer.deserialize).
func (s *Schema) applyVersion() {
	imply := func(key, value string) {
		if _, ok := s.Options[key]; !ok {
			s.Options[key] = value
			s.optionOrder = append(s.optionOrder, key)
		}
	}
	if s.Version <= 1 {
		imply(OptBucket, "1")
	}
	if s.Version <= 2 {
		imply(OptFileFormat, "orc")
	}
}

func (s *Schema) parseFields(raw []json.RawMessage) error {
	var unknown []Reason
	for i, b := range raw {
		var f types.Field
		err := json.Unmarshal(b, &f)
		if err != nil {
			// A field without a readable type still has a name for the message.
			var head struct {
				Name *string `json:"name"`
				Type any     `json:"type"`
			}
			if json.Unmarshal(b, &head) != nil || head.Name == nil || head.Type == nil {
				return fmt.Errorf("field %d: %w", i+1, err)
			}
			unknown = append(unknown, Reason{CodeUnknownType, fmt.Sprintf("column %q has a type that is not known here (%s): "+
				"use a newer applier, or a table without the column", *head.Name, err)})
		}
		if err == nil && f.Type.Kind == types.Invalid {
			return fmt.Errorf("field %d has no type", i+1)
		}
		s.Fields = append(s.Fields, f)
	}
	if unknown != nil {
		return &Refusal{unknown}
	}
	return nil
}

// index builds the look-ups and checks what everything else relies on.
func (s *Schema) index() error {
	s.byName, s.byID = make(map[string]int, len(s.Fields)), make(map[int]int, len(s.Fields))
	for i, f := range s.Fields {
		if f.Name == "" {
			return fmt.Errorf("column %d has no name", i+1)
		}
		if _, seen := s.byName[f.Name]; seen {
			return fmt.Errorf("two columns %q", f.Name)
		}
		if _, seen := s.byID[f.ID]; seen {
			return fmt.Errorf("two columns of id %d", f.ID)
		}
		s.byName[f.Name], s.byID[f.ID] = i, i
	}
	for i, k := range s.PartitionKeys {
		if _, ok := s.byName[k]; !ok {
			return fmt.Errorf("partition key %q is no column", k)
		}
		if slices.Contains(s.PartitionKeys[:i], k) {
			return fmt.Errorf("partition key %q twice", k)
		}
	}
	return nil
}

// Encode returns the bytes of the schema file, as Java writes them. Options keep
// the order they were read in; others follow in alphabetical order (in Java's
// files they are in hash order, which means nothing).
func (s *Schema) Encode() ([]byte, error) {
	var w jsonWriter
	w.int("version", int64(s.Version))
	w.int("id", s.ID)
	w.any("fields", orEmpty(s.Fields))
	w.int("highestFieldId", int64(s.HighestFieldID))
	w.any("partitionKeys", orEmpty(s.PartitionKeys))
	w.any("primaryKeys", orEmpty(s.PrimaryKeys))
	w.texts("options", s.Options, keyOrder(s.Options, s.optionOrder))
	w.optText("comment", s.Comment)
	w.int("timeMillis", s.TimeMillis)
	w.extra(s.extra)
	b, err := w.end()
	if err != nil {
		return nil, fmt.Errorf("writing schema %d: %w", s.ID, err)
	}
	return b, nil
}

// orEmpty makes nil an empty list, which JSON tells apart.
func orEmpty[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// keyOrder returns the keys of m: those of order first, the others sorted.
func keyOrder(m map[string]string, order []string) []string {
	keys := make([]string, 0, len(m))
	for _, k := range order {
		if _, ok := m[k]; ok {
			keys = append(keys, k)
		}
	}
	if len(keys) == len(m) {
		return keys
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(order, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Column returns the position of a column, or -1. Names are case-sensitive.
func (s *Schema) Column(name string) int {
	if i, ok := s.byName[name]; ok {
		return i
	}
	return -1
}

// ColumnByID returns the position of the column with a field id, or -1.
func (s *Schema) ColumnByID(id int) int {
	if i, ok := s.byID[id]; ok {
		return i
	}
	return -1
}

// PartitionFields returns the partition columns in the order of the keys.
func (s *Schema) PartitionFields() []types.Field {
	fields := make([]types.Field, len(s.PartitionKeys))
	for i, k := range s.PartitionKeys {
		fields[i] = s.Fields[s.byName[k]]
	}
	return fields
}

// PartitionTypes returns the types of the partition columns: those of the
// partition rows in manifests.
func (s *Schema) PartitionTypes() []types.Type {
	ts := make([]types.Type, len(s.PartitionKeys))
	for i, k := range s.PartitionKeys {
		ts[i] = s.Fields[s.byName[k]].Type
	}
	return ts
}

// BucketKeys returns the columns of the option bucket-key in its order. Java
// splits at commas and trims nothing.
func (s *Schema) BucketKeys() []string {
	if k := s.Options[OptBucketKey]; k != "" {
		return strings.Split(k, ",")
	}
	return nil
}
