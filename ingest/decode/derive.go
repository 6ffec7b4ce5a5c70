package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"applier/storage/types"
)

// ErrNoSchema: the record carries no schema from which columns could be derived.
var ErrNoSchema = errors.New("the record carries no schema")

// derivedNode is a Connect schema node, as far as a table's columns need it.
type derivedNode struct {
	Type       string            `json:"type"`
	Name       string            `json:"name"`
	Field      string            `json:"field"`
	Parameters map[string]string `json:"parameters"`
	Fields     []derivedNode     `json:"fields"`
	Items      *derivedNode      `json:"items"`
	Keys       *derivedNode      `json:"keys"`
	Values     *derivedNode      `json:"values"`
}

// DeriveColumns proposes the columns of a new table from one record with a
// schema envelope (Debezium's, or a flat Connect struct), and names those of its
// record key. A producer's defaults are not taken over, and only key columns
// are NOT NULL: what a source forbids today it may allow tomorrow. Types are
// those that lose nothing (cdc-formats.md §5). Arrays, maps and structs become
// ARRAY, MAP and ROW; Debezium's own structs, and what has no parts, STRING.
func DeriveColumns(rec *Record) (fields []types.Field, key []string, err error) {
	value, err := schemaOf(rec.Value)
	if err != nil {
		return nil, nil, err
	}
	row := value
	for i := range value.Fields {
		if value.Fields[i].Field == "after" {
			row = &value.Fields[i]
		}
	}
	if k, err := schemaOf(rec.Key); err == nil {
		for _, f := range k.Fields {
			if !strippedKeyField(f.Field) {
				key = append(key, f.Field)
			}
		}
	}
	for i, f := range row.Fields {
		t, err := derivedType(&row.Fields[i])
		if err != nil {
			return nil, nil, fmt.Errorf("column %s: %w", f.Field, err)
		}
		if slices.Contains(key, f.Field) {
			t = t.NonNull()
		}
		fields = append(fields, types.Field{Name: f.Field, Type: t})
	}
	if len(fields) == 0 {
		return nil, nil, ErrNoSchema
	}
	return fields, key, nil
}

func strippedKeyField(name string) bool {
	return name == "__dbz__sourceIdentifier" || name == "__dbz__physicalTableIdentifier"
}

// schemaOf reads the schema beside a payload.
func schemaOf(b []byte) (*derivedNode, error) {
	var doc struct {
		Schema  *derivedNode    `json:"schema"`
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(b, &doc); err != nil || doc.Schema == nil || doc.Schema.Type != "struct" || doc.Payload == nil {
		return nil, ErrNoSchema
	}
	return doc.Schema, nil
}

var derivedLiterals = map[string]types.Type{
	"boolean": types.BooleanType(), "int8": types.TinyIntType(), "int16": types.SmallIntType(), "int32": types.IntType(),
	"int64": types.BigIntType(), "float": types.FloatType(), "float32": types.FloatType(), "double": types.DoubleType(),
	"float64": types.DoubleType(), "string": types.StringType(), "bytes": types.BytesType(),
}

// derivedNames are the semantic types whose column is not their literal's. A
// TIME holds milliseconds only, so finer times of day become text.
var derivedNames = map[string]types.Type{
	"org.apache.kafka.connect.data.Date":      types.DateType(),
	"org.apache.kafka.connect.data.Time":      types.TimeType(3),
	"org.apache.kafka.connect.data.Timestamp": types.TimestampType(3),
	"io.debezium.time.Date":                   types.DateType(),
	"io.debezium.time.IsoDate":                types.DateType(),
	"io.debezium.time.Time":                   types.TimeType(3),
	"io.debezium.time.MicroTime":              types.StringType(),
	"io.debezium.time.NanoTime":               types.StringType(),
	"io.debezium.time.IsoTime":                types.StringType(),
	"io.debezium.time.Timestamp":              types.TimestampType(3),
	"io.debezium.time.MicroTimestamp":         types.TimestampType(6),
	"io.debezium.time.NanoTimestamp":          types.TimestampType(9),
	"io.debezium.time.IsoTimestamp":           types.TimestampType(6),
	"io.debezium.time.ZonedTimestamp":         types.TimestampLTZType(6),
	"io.debezium.data.VariableScaleDecimal":   types.StringType(),
}

func derivedType(n *derivedNode) (types.Type, error) {
	name := semanticName(n.Name)
	if name == "org.apache.kafka.connect.data.Decimal" {
		return derivedDecimal(n)
	}
	if t, ok := derivedNames[name]; ok {
		return t, nil
	}
	switch n.Type {
	case "array", "map", "struct":
		return derivedNested(n, name)
	}
	t, ok := derivedLiterals[n.Type]
	if !ok {
		return types.Type{}, fmt.Errorf("the schema type %q is not known", n.Type)
	}
	return t, nil
}

// derivedNested derives a type with children; ids are given at creation.
func derivedNested(n *derivedNode, name string) (types.Type, error) {
	switch {
	case n.Type == "array" && n.Items != nil:
		elem, err := derivedType(n.Items)
		return types.ArrayType(elem), err
	case n.Type == "map" && n.Keys != nil && n.Values != nil:
		key, err := derivedType(n.Keys)
		if err != nil {
			return types.Type{}, err
		}
		value, err := derivedType(n.Values)
		return types.MapType(key.NonNull(), value), err
	case n.Type == "struct" && len(n.Fields) > 0 && !strings.HasPrefix(name, "io.debezium."):
		t := types.RowType()
		for i := range n.Fields {
			f, err := derivedType(&n.Fields[i])
			if err != nil {
				return types.Type{}, fmt.Errorf("field %s: %w", n.Fields[i].Field, err)
			}
			t.Fields = append(t.Fields, types.Field{ID: i, Name: n.Fields[i].Field, Type: f})
		}
		return t, nil
	}
	return types.StringType(), nil
}

// derivedDecimal takes precision and scale from the parameters; without a
// precision the widest is taken, and what does not fit a DECIMAL becomes text.
func derivedDecimal(n *derivedNode) (types.Type, error) {
	scale, err := strconv.Atoi(n.Parameters["scale"])
	if err != nil {
		return types.Type{}, errors.New("its decimal has no scale")
	}
	precision := types.MaxPrecision
	if p, ok := n.Parameters["connect.decimal.precision"]; ok {
		if precision, err = strconv.Atoi(p); err != nil {
			return types.Type{}, errors.New("its decimal has a malformed precision")
		}
	}
	if precision < 1 || precision > types.MaxPrecision || scale < 0 || scale > precision {
		return types.StringType(), nil
	}
	return types.DecimalType(precision, scale), nil
}
