package decode

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"applier/storage/types"
)

// Formats lists what New decodes.
var formats = []string{"debezium-json", "json"}

// laterFormats are refused by name, so that nobody takes them for typing errors.
var laterFormats = []string{
	"avro", "canal-json", "debezium-avro", "debezium-protobuf", "debezium-unwrapped", "dms-json", "maxwell-json", "ogg-json",
}

// Formats returns the names that New accepts.
func Formats() []string { return slices.Clone(formats) }

// New returns the decoder of a format. Its errors name the option to change.
func New(format string, o Options) (Decoder, error) {
	if !slices.Contains(formats, format) {
		if slices.Contains(laterFormats, format) {
			return nil, fmt.Errorf("format %q: not supported yet; known formats: %s", format, strings.Join(formats, ", "))
		}
		return nil, fmt.Errorf("format %q: unknown; known formats: %s", format, strings.Join(formats, ", "))
	}
	if err := o.check(format); err != nil {
		return nil, fmt.Errorf("format %s: %w", format, err)
	}
	o.IgnoreDeletes = o.IgnoreDeletes || o.Append && !o.hasOpColumn()
	without := srcDebezium
	if format == "json" {
		without = srcPlain
	}
	r, err := newRows(o, without)
	if err != nil {
		return nil, fmt.Errorf("format %s: %w", format, err)
	}
	if format == "json" {
		return newPlain(r), nil
	}
	return newDebezium(r), nil
}

func (o *Options) hasOpColumn() bool {
	return slices.ContainsFunc(o.Columns, func(m MetaColumn) bool { return m.Source == "op" })
}

// check reports everything that is wrong with the options.
func (o *Options) check(format string) error {
	var errs []error
	add := func(f string, a ...any) { errs = append(errs, fmt.Errorf(f, a...)) }
	names := make(map[string]bool)
	for _, f := range o.Fields {
		if names[f.Name] {
			add("column %s: named twice", f.Name)
		}
		names[f.Name] = true
		if !f.Type.Supported() {
			add("column %s: type %s is not supported", f.Name, f.Type)
		}
	}
	if len(o.Fields) == 0 {
		add("the table has no columns")
	}
	switch {
	case o.Append && len(o.Key) > 0:
		add("append takes no merge key")
	case !o.Append && len(o.Key) == 0:
		add("a merge key is needed, except for append")
	}
	for _, c := range o.Conditions {
		if c.Column < 0 || c.Column >= len(o.Fields) || c.Check == nil {
			add("condition: no column %d, or nothing to check", c.Column)
		}
	}
	seen := make(map[int]bool)
	for _, k := range o.Key {
		switch {
		case k < 0 || k >= len(o.Fields):
			add("merge key: no column %d", k)
		case seen[k]:
			add("merge key: column %s is named twice", o.Fields[k].Name)
		case o.Fields[k].Type.IsNested() || o.Fields[k].Type.Kind == types.Variant:
			add("merge key: column %s of type %s cannot be compared", o.Fields[k].Name, o.Fields[k].Type)
		}
		seen[k] = true
	}
	if o.KeyColumn != "" && !names[o.KeyColumn] {
		add("the column of the record key, %s, does not exist", o.KeyColumn)
	}
	for _, m := range o.Columns {
		if m.Column >= 0 && m.Column < len(o.Fields) && o.Fields[m.Column].Name == o.KeyColumn {
			add("the column of the record key, %s, is filled from metadata", o.KeyColumn)
		}
	}
	if o.Binary > BinaryHex {
		add("unknown encoding of binary text")
	}
	return errors.Join(append(errs, o.checkColumns(format)...)...)
}

// checkColumns checks the metadata columns.
func (o *Options) checkColumns(format string) (errs []error) {
	used := make(map[int]bool)
	for _, m := range o.Columns {
		if m.Column < 0 || m.Column >= len(o.Fields) {
			errs = append(errs, fmt.Errorf("metadata %s: no column %d", m.Source, m.Column))
			continue
		}
		f := o.Fields[m.Column]
		if used[m.Column] {
			errs = append(errs, fmt.Errorf("metadata %s: column %s is filled twice", m.Source, f.Name))
		}
		used[m.Column] = true
		if err := checkMeta(m.Source, f.Type, format); err != nil {
			errs = append(errs, fmt.Errorf("column %s: metadata %s: %w", f.Name, m.Source, err))
		}
	}
	return errs
}

// checkMeta checks that a metadata source exists and suits its column.
func checkMeta(source string, t types.Type, format string) error {
	number := t.IsNumeric() || t.IsText()
	suits := true
	switch {
	case source == "op", source == "kafka.topic":
		suits = t.IsText()
	case source == "kafka.partition", source == "kafka.offset":
		suits = number
	case source == SourceNull:
		return nil
	case source == "kafka.timestamp":
		suits = number || t.IsTimestamp()
	case format == "json" && (source == "ts_ms" || strings.HasPrefix(source, "source.")):
		return errors.New("records of this format have none")
	case source == "ts_ms":
		suits = number || t.IsTimestamp()
	case len(source) > len("source.") && strings.HasPrefix(source, "source."),
		len(source) > len("header.") && strings.HasPrefix(source, "header."):
		suits = !t.IsNested() && t.Kind != types.Variant
	default:
		return errors.New("unknown; known are op, ts_ms, source.NAME, kafka.topic, kafka.partition, kafka.offset, kafka.timestamp, header.NAME")
	}
	if !suits {
		return fmt.Errorf("does not suit a column of type %s", t)
	}
	return nil
}
