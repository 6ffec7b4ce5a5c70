package expr

import (
	"slices"
	"strconv"
	"strings"
)

// Kind is the root of a type, in Spark's terms.
type Kind uint8

// The roots. Void is the type of NULL. Timestamp is an instant (TIMESTAMP_LTZ),
// TimestampNTZ a wall-clock time. YearMonth, DayTime and Calendar are intervals.
const (
	Void Kind = iota
	Boolean
	TinyInt
	SmallInt
	Int
	BigInt
	Float
	Double
	Decimal
	String
	Binary
	Date
	Time
	Timestamp
	TimestampNTZ
	YearMonth
	DayTime
	Calendar
	Array
	Map
	Struct
	// Lambda is the kind of a function argument; no value has it.
	Lambda
)

// Units of interval types, as From and To of a Type.
const (
	UnitYear uint8 = iota
	UnitMonth
	UnitDay
	UnitHour
	UnitMinute
	UnitSecond
)

// Type is a type of an expression. Values are held as [types.Datum]: I for
// booleans, integers, days, microseconds, months and decimals of a precision up
// to 18; D for larger decimals; F for FLOAT and DOUBLE; B for texts and bytes; L
// for elements, for keys and values alternating, and for fields.
// A Calendar interval is L of months, days and microseconds.
type Type struct {
	Kind Kind
	// Precision and Scale are those of DECIMAL; Precision is that of TIME.
	Precision, Scale int
	// From and To are the units of YearMonth and DayTime.
	From, To uint8
	// Length is that of CHAR(n) and VARCHAR(n) for columns and casts; an
	// expression's own type is plain STRING with Length 0.
	Length int
	// Char tells CHAR(n) from VARCHAR(n).
	Char bool
	// Collation is "" for the binary order of UTF-8.
	Collation string
	// Elem is the element of Array and the value of Map, Key the key of Map.
	Elem, Key *Type
	// Fields are those of Struct.
	Fields []Field
}

// Field is a field of a struct.
type Field struct {
	Name string
	Type Type
	// NotNull is checked when a value is assigned.
	NotNull bool
}

// The types without parameters.
var (
	tVoid    = Type{Kind: Void}
	tBool    = Type{Kind: Boolean}
	tByte    = Type{Kind: TinyInt}
	tShort   = Type{Kind: SmallInt}
	tInt     = Type{Kind: Int}
	tLong    = Type{Kind: BigInt}
	tFloat   = Type{Kind: Float}
	tDouble  = Type{Kind: Double}
	tString  = Type{Kind: String}
	tBinary  = Type{Kind: Binary}
	tDate    = Type{Kind: Date}
	tTime    = Type{Kind: Time, Precision: 6}
	tStamp   = Type{Kind: Timestamp}
	tNTZ     = Type{Kind: TimestampNTZ}
	tCal     = Type{Kind: Calendar}
	tYearMon = Type{Kind: YearMonth, From: UnitYear, To: UnitMonth}
	tDayTime = Type{Kind: DayTime, From: UnitDay, To: UnitSecond}
)

// decimalOf returns DECIMAL(p, s).
func decimalOf(p, s int) Type { return Type{Kind: Decimal, Precision: p, Scale: s} }

// arrayOf returns ARRAY<elem>.
func arrayOf(elem Type) Type { return Type{Kind: Array, Elem: &elem} }

// mapOf returns MAP<key, value>.
func mapOf(key, value Type) Type { return Type{Kind: Map, Key: &key, Elem: &value} }

// structOf returns STRUCT<fields>.
func structOf(fields ...Field) Type { return Type{Kind: Struct, Fields: fields} }

func (t Type) integral() bool   { return t.Kind >= TinyInt && t.Kind <= BigInt }
func (t Type) floating() bool   { return t.Kind == Float || t.Kind == Double }
func (t Type) fractional() bool { return t.Kind >= Float && t.Kind <= Decimal }
func (t Type) numeric() bool    { return t.Kind >= TinyInt && t.Kind <= Decimal }
func (t Type) isStamp() bool    { return t.Kind == Timestamp || t.Kind == TimestampNTZ }
func (t Type) datetime() bool   { return t.Kind == Date || t.isStamp() }
func (t Type) interval() bool   { return t.Kind == YearMonth || t.Kind == DayTime }
func (t Type) nested() bool     { return t.Kind == Array || t.Kind == Map || t.Kind == Struct }

// atomic reports whether t has no children and is not NULL's type.
func (t Type) atomic() bool { return t.Kind > Void && t.Kind < Calendar }

// plain drops what only columns have: the length of CHAR and VARCHAR.
func (t Type) plain() Type {
	t.Length, t.Char = 0, false
	return t
}

// Equal reports whether values of t and u are interchangeable: the same type,
// names of fields included, NOT NULL and lengths aside.
func (t Type) Equal(u Type) bool {
	if t.Kind != u.Kind || t.Precision != u.Precision || t.Scale != u.Scale || t.From != u.From || t.To != u.To || t.Collation != u.Collation {
		return false
	}
	return equalPtr(t.Elem, u.Elem) && equalPtr(t.Key, u.Key) &&
		slices.EqualFunc(t.Fields, u.Fields, func(a, b Field) bool { return a.Name == b.Name && a.Type.Equal(b.Type) })
}

func equalPtr(a, b *Type) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// sameShape is Equal without the names of fields.
func (t Type) sameShape(u Type) bool {
	if t.Kind == Struct && u.Kind == Struct {
		return slices.EqualFunc(t.Fields, u.Fields, func(a, b Field) bool { return a.Type.sameShape(b.Type) })
	}
	if t.Kind == u.Kind && (t.Kind == Array || t.Kind == Map) {
		return t.Elem.sameShape(*u.Elem) && (t.Kind == Array || t.Key.sameShape(*u.Key))
	}
	return t.Equal(u)
}

// orderable reports whether values of t compare: maps and what holds them do not.
func (t Type) orderable() bool {
	switch t.Kind {
	case Map, Calendar, Lambda:
		return false
	case Array:
		return t.Elem.orderable()
	case Struct:
		return !slices.ContainsFunc(t.Fields, func(f Field) bool { return !f.Type.orderable() })
	}
	return true
}

// hasMap reports whether a map is in t, which DISTINCT refuses.
func (t Type) hasMap() bool {
	switch t.Kind {
	case Map:
		return true
	case Array:
		return t.Elem.hasMap()
	case Struct:
		return slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Type.hasMap() })
	}
	return false
}

var kindNames = [...]string{
	Void: "void", Boolean: "boolean", TinyInt: "tinyint", SmallInt: "smallint", Int: "int", BigInt: "bigint", Float: "float",
	Double: "double", Decimal: "decimal", String: "string", Binary: "binary", Date: "date", Time: "time", Timestamp: "timestamp",
	TimestampNTZ: "timestamp_ntz", YearMonth: "interval", DayTime: "interval", Calendar: "interval", Array: "array", Map: "map",
	Struct: "struct", Lambda: "function",
}

var unitNames = [...]string{"year", "month", "day", "hour", "minute", "second"}

// String spells the type as Spark's simpleString does: decimal(5,2),
// struct<x:int>, interval day to second.
func (t Type) String() string {
	name := kindNames[t.Kind]
	switch t.Kind {
	case Decimal:
		return name + "(" + strconv.Itoa(t.Precision) + "," + strconv.Itoa(t.Scale) + ")"
	case Time:
		return name + "(" + strconv.Itoa(t.Precision) + ")"
	case String:
		switch {
		case t.Length > 0 && t.Char:
			return "char(" + strconv.Itoa(t.Length) + ")"
		case t.Length > 0:
			return "varchar(" + strconv.Itoa(t.Length) + ")"
		case t.Collation != "":
			return name + " collate " + t.Collation
		}
	case YearMonth, DayTime:
		s := name + " " + unitNames[t.From]
		if t.From != t.To {
			s += " to " + unitNames[t.To]
		}
		return s
	case Array:
		return name + "<" + t.Elem.String() + ">"
	case Map:
		return name + "<" + t.Key.String() + "," + t.Elem.String() + ">"
	case Struct:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = f.Name + ":" + f.Type.String()
		}
		return name + "<" + strings.Join(parts, ",") + ">"
	}
	return name
}

// sql spells the type for messages: "DECIMAL(5,2)" in quotes.
func (t Type) sql() string { return `"` + t.upper() + `"` }

// upper is String with the words in capitals, and the names of fields as they are.
func (t Type) upper() string {
	switch t.Kind {
	case Array:
		return "ARRAY<" + t.Elem.upper() + ">"
	case Map:
		return "MAP<" + t.Key.upper() + "," + t.Elem.upper() + ">"
	case Struct:
		parts := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			parts[i] = f.Name + ":" + f.Type.upper()
		}
		return "STRUCT<" + strings.Join(parts, ",") + ">"
	}
	return strings.ToUpper(t.String())
}
