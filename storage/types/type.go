package types

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind is the root of a data type, in Paimon's terms.
type Kind uint8

// The roots. CHAR and VARCHAR count code points, BINARY and VARBINARY bytes.
// STRING is VARCHAR(MaxLength), BYTES is VARBINARY(MaxLength).
const (
	Invalid Kind = iota
	Boolean
	TinyInt
	SmallInt
	Int
	BigInt
	Float
	Double
	Decimal
	Char
	VarChar
	Binary
	VarBinary
	Date
	Time
	Timestamp
	TimestampLTZ
	Array
	Map
	Multiset
	Row
	Variant
	Blob
	VectorOf
	Geometry
	Geography
)

// MaxLength is the length of STRING and BYTES.
const MaxLength = math.MaxInt32

// MaxPrecision is the largest precision of a DECIMAL.
const MaxPrecision = 38

// Type is a Paimon data type. A Type is immutable once built; copies share
// their nested parts. The zero Type is invalid.
type Type struct {
	Kind    Kind
	NotNull bool
	// Length of CHAR, VARCHAR (code points), BINARY, VARBINARY (bytes), VECTOR.
	Length int
	// Precision of DECIMAL (digits), TIME, TIMESTAMP, TIMESTAMP_LTZ (fraction digits).
	Precision int
	// Scale of DECIMAL.
	Scale int
	// Elem is the element of ARRAY, MULTISET and VECTOR and the value of MAP.
	Elem *Type
	// Key is the key of MAP.
	Key *Type
	// Fields are the fields of ROW.
	Fields []Field
	// Text is the parameter list of GEOMETRY and GEOGRAPHY, kept verbatim.
	Text string
}

// Field is a column of a table or a field of a ROW.
type Field struct {
	ID          int
	Name        string
	Type        Type
	Description *string
	// Default is the raw default text as stored in the schema; nil means none.
	Default *string
}

// Constructors of nullable types. NonNull makes them NOT NULL.
func scalar(k Kind) Type { return Type{Kind: k} }

// BooleanType returns BOOLEAN.
func BooleanType() Type { return scalar(Boolean) }

// TinyIntType returns TINYINT.
func TinyIntType() Type { return scalar(TinyInt) }

// SmallIntType returns SMALLINT.
func SmallIntType() Type { return scalar(SmallInt) }

// IntType returns INT.
func IntType() Type { return scalar(Int) }

// BigIntType returns BIGINT.
func BigIntType() Type { return scalar(BigInt) }

// FloatType returns FLOAT.
func FloatType() Type { return scalar(Float) }

// DoubleType returns DOUBLE.
func DoubleType() Type { return scalar(Double) }

// DateType returns DATE.
func DateType() Type { return scalar(Date) }

// DecimalType returns DECIMAL(precision, scale).
func DecimalType(precision, scale int) Type {
	return Type{Kind: Decimal, Precision: precision, Scale: scale}
}

// CharType returns CHAR(n).
func CharType(n int) Type { return Type{Kind: Char, Length: n} }

// VarCharType returns VARCHAR(n).
func VarCharType(n int) Type { return Type{Kind: VarChar, Length: n} }

// StringType returns STRING.
func StringType() Type { return VarCharType(MaxLength) }

// BinaryType returns BINARY(n).
func BinaryType(n int) Type { return Type{Kind: Binary, Length: n} }

// VarBinaryType returns VARBINARY(n).
func VarBinaryType(n int) Type { return Type{Kind: VarBinary, Length: n} }

// BytesType returns BYTES.
func BytesType() Type { return VarBinaryType(MaxLength) }

// TimeType returns TIME(p).
func TimeType(p int) Type { return Type{Kind: Time, Precision: p} }

// TimestampType returns TIMESTAMP(p), a wall-clock time without zone.
func TimestampType(p int) Type { return Type{Kind: Timestamp, Precision: p} }

// TimestampLTZType returns TIMESTAMP(p) WITH LOCAL TIME ZONE, an instant.
func TimestampLTZType(p int) Type { return Type{Kind: TimestampLTZ, Precision: p} }

// ArrayType returns ARRAY<elem>.
func ArrayType(elem Type) Type { return Type{Kind: Array, Elem: &elem} }

// MapType returns MAP<key, value>.
func MapType(key, value Type) Type { return Type{Kind: Map, Key: &key, Elem: &value} }

// MultisetType returns MULTISET<elem>.
func MultisetType(elem Type) Type { return Type{Kind: Multiset, Elem: &elem} }

// RowType returns ROW<fields>.
func RowType(fields ...Field) Type { return Type{Kind: Row, Fields: fields} }

// NonNull returns t with NOT NULL set.
func (t Type) NonNull() Type { t.NotNull = true; return t }

// Nullable returns t without NOT NULL.
func (t Type) Nullable() Type { t.NotNull = false; return t }

// IsNested reports whether values of t have children (ARRAY, MAP, MULTISET, ROW).
func (t Type) IsNested() bool {
	return t.Kind == Array || t.Kind == Map || t.Kind == Multiset || t.Kind == Row
}

// IsText reports whether t is CHAR, VARCHAR or STRING.
func (t Type) IsText() bool { return t.Kind == Char || t.Kind == VarChar }

// IsBinary reports whether t is BINARY, VARBINARY or BYTES.
func (t Type) IsBinary() bool { return t.Kind == Binary || t.Kind == VarBinary }

// IsTimestamp reports whether t is TIMESTAMP or TIMESTAMP_LTZ.
func (t Type) IsTimestamp() bool { return t.Kind == Timestamp || t.Kind == TimestampLTZ }

// IsInteger reports whether t is TINYINT, SMALLINT, INT or BIGINT.
func (t Type) IsInteger() bool { return t.Kind >= TinyInt && t.Kind <= BigInt }

// IsNumeric reports whether t is an integer, FLOAT, DOUBLE or DECIMAL.
func (t Type) IsNumeric() bool { return t.Kind >= TinyInt && t.Kind <= Decimal }

// Supported reports whether values of t can be held in a Vector at all;
// VARIANT is held as a ROW of two binaries, BLOB, VECTOR, GEOMETRY and
// GEOGRAPHY are not held.
func (t Type) Supported() bool {
	switch t.Kind {
	case Invalid, Blob, VectorOf, Geometry, Geography:
		return false
	case Array, Multiset:
		return t.Elem.Supported()
	case Map:
		return t.Key.Supported() && t.Elem.Supported()
	case Row:
		return !slices.ContainsFunc(t.Fields, func(f Field) bool { return !f.Type.Supported() })
	}
	return true
}

// Equal reports whether t and u are the same type, nullability included.
// Field ids count, descriptions and defaults do not.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind || t.NotNull != u.NotNull || t.Length != u.Length || t.Precision != u.Precision ||
		t.Scale != u.Scale || t.Text != u.Text || !equalPtr(t.Elem, u.Elem) || !equalPtr(t.Key, u.Key) {
		return false
	}
	return slices.EqualFunc(t.Fields, u.Fields, func(a, b Field) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Type.Equal(b.Type)
	})
}

// EqualIgnoringNull reports whether t and u differ at most in their own NOT NULL.
func (t Type) EqualIgnoringNull(u Type) bool { return t.Nullable().Equal(u.Nullable()) }

func equalPtr(a, b *Type) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// String returns the SQL spelling, as Paimon writes it for atomic types and as
// SQL DDL shows it for nested ones (source: Paimon DataType.asSQLString).
func (t Type) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

func (t Type) write(b *strings.Builder) {
	switch t.Kind {
	case Array:
		b.WriteString("ARRAY<")
		t.Elem.write(b)
		b.WriteByte('>')
	case Multiset:
		b.WriteString("MULTISET<")
		t.Elem.write(b)
		b.WriteByte('>')
	case Map:
		b.WriteString("MAP<")
		t.Key.write(b)
		b.WriteString(", ")
		t.Elem.write(b)
		b.WriteByte('>')
	case VectorOf:
		b.WriteString("VECTOR<")
		t.Elem.write(b)
		b.WriteString(", " + strconv.Itoa(t.Length) + ">")
	case Row:
		b.WriteString("ROW<")
		for i, f := range t.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString("`" + strings.ReplaceAll(f.Name, "`", "``") + "` ")
			f.Type.write(b)
		}
		b.WriteByte('>')
	default:
		b.WriteString(t.atom())
	}
	if t.NotNull {
		b.WriteString(" NOT NULL")
	}
}

var kindNames = [...]string{
	Invalid: "INVALID", Boolean: "BOOLEAN", TinyInt: "TINYINT", SmallInt: "SMALLINT", Int: "INT", BigInt: "BIGINT",
	Float: "FLOAT", Double: "DOUBLE", Decimal: "DECIMAL", Char: "CHAR", VarChar: "VARCHAR", Binary: "BINARY",
	VarBinary: "VARBINARY", Date: "DATE", Time: "TIME", Timestamp: "TIMESTAMP", TimestampLTZ: "TIMESTAMP_LTZ",
	Array: "ARRAY", Map: "MAP", Multiset: "MULTISET", Row: "ROW", Variant: "VARIANT", Blob: "BLOB",
	VectorOf: "VECTOR", Geometry: "GEOMETRY", Geography: "GEOGRAPHY",
}

// String returns the root's SQL name.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "INVALID"
}

// atom spells a type without children and without nullability.
func (t Type) atom() string {
	n := func(i int) string { return strconv.Itoa(i) }
	switch t.Kind {
	case Decimal:
		return "DECIMAL(" + n(t.Precision) + ", " + n(t.Scale) + ")"
	case VarChar:
		if t.Length == MaxLength {
			return "STRING"
		}
		return "VARCHAR(" + n(t.Length) + ")"
	case VarBinary:
		if t.Length == MaxLength {
			return "BYTES"
		}
		return "VARBINARY(" + n(t.Length) + ")"
	case Char, Binary:
		return t.Kind.String() + "(" + n(t.Length) + ")"
	case Time, Timestamp:
		return t.Kind.String() + "(" + n(t.Precision) + ")"
	case TimestampLTZ:
		return "TIMESTAMP(" + n(t.Precision) + ") WITH LOCAL TIME ZONE"
	case Geometry, Geography:
		if t.Text != "" {
			return t.Kind.String() + "(" + t.Text + ")"
		}
	}
	return t.Kind.String()
}
