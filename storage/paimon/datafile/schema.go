package datafile

import (
	"fmt"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"applier/storage/types"
)

// rootName is the root of the message type, as Paimon's Java core names it.
const rootName = "paimon_schema"

// containerBase is where the field ids of list elements, map keys and values
// start (paimon-format.md §2.3, SpecialFields.java).
const containerBase = 536870911

// maxLevel bounds definition and repetition levels, which are held in a byte.
const maxLevel = 120

// maxCharLength bounds CHAR(n): every value takes n code points.
const maxCharLength = 1 << 20

// node is a column or nested part of one, on the writing side.
type node struct {
	t        types.Type
	name     string
	optional bool
	def      uint8 // definition level of a value that is not NULL
	rep      uint8 // LIST and MAP: repetition level of all elements but the first
	kids     []*node
	leafLo   int // the leaves below, [leafLo, leafHi)
	leafHi   int
}

// leaf is a Parquet column: a scalar, alone or inside of a nested column.
type leaf struct {
	t        types.Type
	phys     format.Type
	width    int // bytes of FIXED_LEN_BYTE_ARRAY
	maxDef   uint8
	maxRep   uint8
	path     []string
	topLevel bool
}

// schema is the Parquet form of a table's columns.
type schema struct {
	elements []schemaElement
	cols     []*node
	leaves   []leaf
}

// newSchema maps table columns to a Parquet schema (paimon-format.md §8.1).
func newSchema(fields []types.Field) (*schema, error) {
	s := &schema{elements: []schemaElement{{Name: rootName, NumChildren: thrift.New(int32(len(fields)))}}}
	if len(fields) == 0 {
		return nil, fmt.Errorf("%w: a file without columns", ErrSchema)
	}
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		switch {
		case f.Name == "" || seen[f.Name]:
			return nil, fmt.Errorf("%w: column name %q is empty or taken", ErrSchema, f.Name)
		case !f.Type.Supported():
			return nil, fmt.Errorf("%w: column %s of type %s", ErrUnsupported, f.Name, f.Type)
		}
		seen[f.Name] = true
		n, err := s.field(f, level{})
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		s.cols = append(s.cols, n)
	}
	return s, nil
}

// level is the place of a node: its parent's levels and path, and how far below
// which field it is, for the ids of containers.
type level struct {
	def, rep uint8
	path     []string
	field    int
	depth    int
}

func (l level) below(name string) level {
	l.path = append(l.path[:len(l.path):len(l.path)], name)
	return l
}

// field adds a column or a field of a ROW.
func (s *schema) field(f types.Field, at level) (*node, error) {
	at.field, at.depth = f.ID, 0
	return s.node(f.Type, f.Name, int32(f.ID), at)
}

// node adds t under the given name and field id.
func (s *schema) node(t types.Type, name string, id int32, at level) (*node, error) {
	at = at.below(name)
	n := &node{t: t, name: name, optional: !t.NotNull, leafLo: len(s.leaves)}
	rep := format.Required
	if n.optional {
		rep = format.Optional
		at.def++
	}
	n.def = at.def
	if at.def >= maxLevel {
		return nil, fmt.Errorf("%w: nested more than %d levels deep", ErrUnsupported, maxLevel)
	}
	e := schemaElement{Name: name, RepetitionType: thrift.New(rep), FieldID: thrift.New(id)}
	var err error
	switch types.LayoutOf(t) {
	case types.LayoutList, types.LayoutMap:
		err = s.container(n, e, at)
	case types.LayoutStruct:
		fields := t.StructFields()
		if len(fields) == 0 {
			return nil, fmt.Errorf("%w: a ROW without fields", ErrUnsupported)
		}
		e.NumChildren.Set(int32(len(fields)))
		s.elements = append(s.elements, e)
		for _, f := range fields {
			kid, err := s.field(f, at)
			if err != nil {
				return nil, err
			}
			n.kids = append(n.kids, kid)
		}
	default:
		err = s.leaf(n, e, at)
	}
	n.leafHi = len(s.leaves)
	return n, err
}

// container adds ARRAY as LIST, MAP and MULTISET as MAP.
func (s *schema) container(n *node, e schemaElement, at level) error {
	at.depth++
	at.def++
	at.rep++
	n.rep = at.rep
	e.NumChildren.Set(1)
	inner := schemaElement{RepetitionType: thrift.New(format.Repeated)}
	valueID := int32(containerBase + 1024*at.field + at.depth)
	keyID := int32(containerBase - 1024*at.field - at.depth)
	value, one := *n.t.Elem, types.IntType().NonNull()
	if n.t.Kind == types.Array {
		e.ConvertedType.Set(deprecated.List)
		e.LogicalType.Value = &format.ListType{}
		inner.Name = "list"
		inner.NumChildren.Set(1)
		s.elements = append(s.elements, e, inner)
		kid, err := s.node(value, "element", valueID, at.below(inner.Name))
		n.kids = []*node{kid}
		return err
	}
	key := n.t.Key
	if n.t.Kind == types.Multiset {
		key, value = n.t.Elem, one
	}
	e.ConvertedType.Set(deprecated.Map)
	e.LogicalType.Value = &format.MapType{}
	inner.Name = "key_value"
	inner.NumChildren.Set(2)
	inner.ConvertedType.Set(deprecated.MapKeyValue)
	s.elements = append(s.elements, e, inner)
	at = at.below(inner.Name)
	k, err := s.node(key.NonNull(), "key", keyID, at)
	if err != nil {
		return err
	}
	v, err := s.node(value, "value", valueID, at)
	n.kids = []*node{k, v}
	return err
}

// leaf adds a scalar.
func (s *schema) leaf(n *node, e schemaElement, at level) error {
	l := leaf{t: n.t, maxDef: at.def, maxRep: at.rep, path: at.path, topLevel: len(at.path) == 1}
	if err := l.annotate(&e); err != nil {
		return err
	}
	e.Type.Set(l.phys)
	if l.phys == format.FixedLenByteArray {
		e.TypeLength.Set(int32(l.width))
	}
	s.elements = append(s.elements, e)
	s.leaves = append(s.leaves, l)
	return nil
}

// annotate sets the physical type of l and the old and new annotation of e.
func (l *leaf) annotate(e *schemaElement) error {
	t := l.t
	logical := func(c deprecated.ConvertedType, v format.LogicalTypeValue) {
		e.ConvertedType.Set(c)
		e.LogicalType.Value = v
	}
	switch t.Kind {
	case types.Boolean:
		l.phys = format.Boolean
	case types.TinyInt:
		l.phys = format.Int32
		logical(deprecated.Int8, &format.IntType{BitWidth: 8, IsSigned: true})
	case types.SmallInt:
		l.phys = format.Int32
		logical(deprecated.Int16, &format.IntType{BitWidth: 16, IsSigned: true})
	case types.Int:
		l.phys = format.Int32
	case types.BigInt:
		l.phys = format.Int64
	case types.Float:
		l.phys = format.Float
	case types.Double:
		l.phys = format.Double
	case types.Date:
		l.phys = format.Int32
		logical(deprecated.Date, &format.DateType{})
	case types.Time:
		l.phys = format.Int32
		logical(deprecated.TimeMillis, &format.TimeType{IsAdjustedToUTC: true, Unit: format.TimeUnit{Value: &format.MilliSeconds{}}})
	case types.Timestamp, types.TimestampLTZ:
		l.timestamp(logical)
	case types.Decimal:
		if t.Precision < 1 || t.Precision > types.MaxPrecision || t.Scale < 0 || t.Scale > t.Precision {
			return fmt.Errorf("%w: type %s", ErrUnsupported, t)
		}
		l.decimal()
		logical(deprecated.Decimal, &format.DecimalType{Precision: int32(t.Precision), Scale: int32(t.Scale)})
		e.Precision.Set(int32(t.Precision))
		e.Scale.Set(int32(t.Scale))
	case types.Char, types.VarChar:
		if t.Kind == types.Char && t.Length > maxCharLength {
			return fmt.Errorf("%w: type %s, whose values are filled up with blanks", ErrUnsupported, t)
		}
		l.phys = format.ByteArray
		logical(deprecated.UTF8, &format.StringType{})
	default:
		l.phys = format.ByteArray
	}
	return nil
}

func (l *leaf) timestamp(logical func(deprecated.ConvertedType, format.LogicalTypeValue)) {
	utc := l.t.Kind == types.TimestampLTZ
	switch {
	case l.t.Precision <= 3:
		l.phys = format.Int64
		logical(deprecated.TimestampMillis, &format.TimestampType{IsAdjustedToUTC: utc, Unit: format.TimeUnit{Value: &format.MilliSeconds{}}})
	case l.t.Precision <= 6:
		l.phys = format.Int64
		logical(deprecated.TimestampMicros, &format.TimestampType{IsAdjustedToUTC: utc, Unit: format.TimeUnit{Value: &format.MicroSeconds{}}})
	default:
		l.phys = format.Int96
	}
}

func (l *leaf) decimal() {
	switch p := l.t.Precision; {
	case p <= 9:
		l.phys = format.Int32
	case p <= 18:
		l.phys = format.Int64
	default:
		l.phys = format.FixedLenByteArray
		l.width = decimalBytes(p)
	}
}

// decimalBytes is the smallest n with 2^(8n-1)-1 ≥ 10^p-1.
func decimalBytes(precision int) int {
	return types.Pow10(precision).MinBytes() // 10^p is never 2^(8n-1)
}
