package types

import (
	"fmt"
	"math"

	"pgregory.net/rapid"
)

// drawAtom draws a type without children that vectors hold.
func drawAtom(t *rapid.T) Type {
	switch rapid.IntRange(0, 15).Draw(t, "atom") {
	case 0:
		return BooleanType()
	case 1:
		return TinyIntType()
	case 2:
		return SmallIntType()
	case 3:
		return IntType()
	case 4:
		return BigIntType()
	case 5:
		return FloatType()
	case 6:
		return DoubleType()
	case 7:
		p := rapid.IntRange(1, MaxPrecision).Draw(t, "precision")
		return DecimalType(p, rapid.IntRange(0, p).Draw(t, "scale"))
	case 8:
		return CharType(drawLength(t))
	case 9:
		return VarCharType(drawLength(t))
	case 10:
		return BinaryType(drawLength(t))
	case 11:
		return VarBinaryType(drawLength(t))
	case 12:
		return DateType()
	case 13:
		return TimeType(rapid.IntRange(0, 9).Draw(t, "precision"))
	case 14:
		return TimestampType(rapid.IntRange(0, 9).Draw(t, "precision"))
	}
	return TimestampLTZType(rapid.IntRange(0, 9).Draw(t, "precision"))
}

func drawLength(t *rapid.T) int {
	return rapid.SampledFrom([]int{1, 2, 10, 255, MaxLength - 1, MaxLength}).Draw(t, "length")
}

// drawType draws a type of at most depth levels of nesting. Field ids are those
// that the parser gives, from *id on.
func drawType(t *rapid.T, depth int, id *int) Type {
	typ := drawAtom(t)
	if depth > 0 {
		switch rapid.IntRange(0, 7).Draw(t, "nested") {
		case 0:
			typ = ArrayType(drawType(t, depth-1, id))
		case 1:
			key := drawType(t, depth-1, id)
			typ = MapType(key, drawType(t, depth-1, id))
		case 2:
			typ = MultisetType(drawType(t, depth-1, id))
		case 3:
			typ = RowType()
			for range rapid.IntRange(0, 3).Draw(t, "fields") {
				name := rapid.StringMatching("[a-zA-Z_é日` ]{0,5}").Draw(t, "name")
				ft := drawType(t, depth-1, id)
				typ.Fields = append(typ.Fields, Field{ID: *id, Name: name, Type: ft})
				*id++
			}
		case 4:
			typ = Type{Kind: Variant}
		}
	}
	typ.NotNull = rapid.Bool().Draw(t, "not null")
	return typ
}

// drawDatum draws a value of a type; small domains, so that equal values are common.
func drawDatum(t *rapid.T, typ Type) Datum {
	if !typ.NotNull && rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return Null
	}
	if values := interesting(typ); values != nil {
		return values[rapid.IntRange(0, len(values)-1).Draw(t, "value")]
	}
	switch LayoutOf(typ) {
	case LayoutList, LayoutMap:
		d := Datum{L: []Datum{}}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			for k := range len(NewVector(typ).Child) {
				d.L = append(d.L, drawDatum(t, typ.childType(k)))
			}
		}
		return d
	case LayoutStruct:
		d := Datum{L: []Datum{}}
		for _, f := range typ.StructFields() {
			d.L = append(d.L, drawDatum(t, f.Type))
		}
		return d
	}
	panic(fmt.Sprintf("no layout for %s", typ))
}

// drawDatums draws between lo and hi values of a type.
func drawDatums(t *rapid.T, typ Type, lo, hi int) []Datum {
	values := make([]Datum, rapid.IntRange(lo, hi).Draw(t, "values"))
	for i := range values {
		values[i] = drawDatum(t, typ)
	}
	return values
}

// interesting returns the values of a type without children at which comparing,
// encoding and writing go wrong; nil for nested types.
func interesting(typ Type) (values []Datum) {
	switch LayoutOf(typ) {
	case LayoutBool:
		return []Datum{BoolDatum(false), BoolDatum(true)}
	case LayoutInt32:
		return ints(map[Kind][]int64{
			TinyInt: {0, 1, -1, math.MinInt8, math.MaxInt8}, SmallInt: {0, 1, -1, math.MinInt16, math.MaxInt16},
			Int: {0, 1, -1, math.MinInt32, math.MaxInt32}, Date: {0, 1, -1, -719162, 2932896}, Time: {0, 1, 86_399_999},
		}[typ.Kind]...)
	case LayoutInt64:
		return ints(0, 1, -1, 256, math.MaxInt64, math.MinInt64)
	case LayoutFloat:
		return floats(0, math.Copysign(0, -1), 1.5, -1.5, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32)
	case LayoutDouble:
		return floats(0, math.Copysign(0, -1), 1.5, -1.5, math.NaN(), math.Float64frombits(0xfff8000000000001), math.Inf(1), math.Inf(-1), 5e-324)
	case LayoutInt128:
		for _, v := range []Int128{{}, {Lo: 1}, {-1, math.MaxUint64}, {Hi: 1}, {1, 1}, pow10[38]} {
			values = append(values, Datum{D: v})
		}
	case LayoutNano:
		for _, micros := range []int64{0, 1, -1, 256} {
			values = append(values, Datum{I: micros}, Datum{I: micros, N: 1}, Datum{I: micros, N: 999})
		}
	case LayoutBytes:
		for _, s := range []string{"", " ", "a", "a ", "a  ", "ab", "b", "é", "a\x00", "\x00a"} {
			values = append(values, StringDatum(s))
		}
	}
	return values
}

func ints(values ...int64) (d []Datum) {
	for _, v := range values {
		d = append(d, IntDatum(v))
	}
	return d
}

func floats(values ...float64) (d []Datum) {
	for _, v := range values {
		d = append(d, FloatDatum(v))
	}
	return d
}

// same compares two values bit by bit (NaN equals itself, 0.0 is not -0.0).
func same(a, b Datum) bool {
	if a.Null || b.Null {
		return a.Null == b.Null
	}
	if a.I != b.I || a.N != b.N || a.D != b.D || string(a.B) != string(b.B) || len(a.L) != len(b.L) {
		return false
	}
	if math.Float64bits(a.F) != math.Float64bits(b.F) && !(math.IsNaN(a.F) && math.IsNaN(b.F)) {
		return false
	}
	for i := range a.L {
		if !same(a.L[i], b.L[i]) {
			return false
		}
	}
	return true
}

// vectorOf returns a vector of some values.
func vectorOf(typ Type, values ...Datum) *Vector {
	v := NewVector(typ)
	for _, d := range values {
		v.AppendDatum(d)
	}
	return v
}
