package types

import (
	"bytes"
	"cmp"
	"math"
)

// Datum is one value of a type that the holder knows. The zero Datum of any
// type is its zero value, not NULL. Fields by layout: I (bool, int32, int64,
// microseconds), N (nanoseconds inside the microsecond), F (float and double),
// D (decimal with precision > 18), B (bytes), L (list elements; map keys and
// values alternating; struct fields).
type Datum struct {
	Null bool
	N    int32
	I    int64
	F    float64
	D    Int128
	B    []byte
	L    []Datum
}

// Null is the SQL NULL.
var Null = Datum{Null: true}

// Constructors for the common cases.

// IntDatum holds integers, dates (days), times (milliseconds), small decimals (unscaled).
func IntDatum(i int64) Datum { return Datum{I: i} }

// BoolDatum holds a BOOLEAN.
func BoolDatum(b bool) Datum {
	if b {
		return Datum{I: 1}
	}
	return Datum{}
}

// FloatDatum holds a FLOAT or DOUBLE.
func FloatDatum(f float64) Datum { return Datum{F: f} }

// StringDatum holds a text.
func StringDatum(s string) Datum { return Datum{B: []byte(s)} }

// BytesDatum holds a binary or text; b is not copied.
func BytesDatum(b []byte) Datum { return Datum{B: b} }

// Datum returns row i; bytes alias the vector.
func (v *Vector) Datum(i int) Datum {
	if v.IsNull(i) {
		return Null
	}
	switch v.Layout {
	case LayoutBool:
		return Datum{I: int64(v.U8[i])}
	case LayoutInt32:
		return Datum{I: int64(v.I32[i])}
	case LayoutInt64:
		return Datum{I: v.I64[i]}
	case LayoutFloat:
		return Datum{F: float64(v.F32[i])}
	case LayoutDouble:
		return Datum{F: v.F64[i]}
	case LayoutInt128:
		return Datum{D: v.I128[i]}
	case LayoutNano:
		return Datum{I: v.I64[i], N: v.I32[i]}
	case LayoutBytes:
		return Datum{B: v.Bytes(i)}
	case LayoutList, LayoutMap:
		d := Datum{L: []Datum{}}
		for j := int(v.Off[i]); j < int(v.Off[i+1]); j++ {
			for _, c := range v.Child {
				d.L = append(d.L, c.Datum(j))
			}
		}
		return d
	case LayoutStruct:
		d := Datum{L: make([]Datum, len(v.Child))}
		for k, c := range v.Child {
			d.L[k] = c.Datum(i)
		}
		return d
	}
	return Null
}

// AppendDatum appends d, a value of the vector's type.
func (v *Vector) AppendDatum(d Datum) {
	if d.Null {
		v.AppendNull()
		return
	}
	switch v.Layout {
	case LayoutBool:
		v.AppendBool(d.I != 0)
	case LayoutInt32:
		v.AppendInt32(int32(d.I))
	case LayoutInt64:
		v.AppendInt64(d.I)
	case LayoutFloat:
		v.AppendFloat(float32(d.F))
	case LayoutDouble:
		v.AppendDouble(d.F)
	case LayoutInt128:
		v.AppendInt128(d.D)
	case LayoutNano:
		v.AppendNano(d.I, d.N)
	case LayoutBytes:
		v.AppendBytes(d.B)
	case LayoutList, LayoutMap:
		for j, x := range d.L {
			v.Child[j%len(v.Child)].AppendDatum(x)
		}
		v.EndRow()
	case LayoutStruct:
		for k, c := range v.Child {
			c.AppendDatum(d.L[k])
		}
		v.EndRow()
	}
}

// CompareCells compares row i of a with row j of b, two vectors of one type,
// in Spark's order: NULL first, NaN above every number, -0.0 equal to 0.0, text
// by its UTF-8 bytes (CHAR as if filled up with blanks), binary unsigned.
func CompareCells(a *Vector, i int, b *Vector, j int) int {
	an, bn := a.IsNull(i), b.IsNull(j)
	if an || bn {
		switch {
		case an && bn:
			return 0
		case an:
			return -1
		}
		return 1
	}
	switch a.Layout {
	case LayoutBool:
		return cmp.Compare(a.U8[i], b.U8[j])
	case LayoutInt32:
		return cmp.Compare(a.I32[i], b.I32[j])
	case LayoutInt64:
		return cmp.Compare(a.I64[i], b.I64[j])
	case LayoutFloat:
		return compareFloat(float64(a.F32[i]), float64(b.F32[j]))
	case LayoutDouble:
		return compareFloat(a.F64[i], b.F64[j])
	case LayoutInt128:
		return a.I128[i].Cmp(b.I128[j])
	case LayoutNano:
		return cmp.Or(cmp.Compare(a.I64[i], b.I64[j]), cmp.Compare(a.I32[i], b.I32[j]))
	case LayoutBytes:
		if a.Type.Kind == Char {
			return compareChars(a.Bytes(i), b.Bytes(j))
		}
		return bytes.Compare(a.Bytes(i), b.Bytes(j))
	}
	return CompareDatums(a.Type, a.Datum(i), b.Datum(j))
}

// compareFloat orders NaN above all and takes both zeros as one.
func compareFloat(x, y float64) int {
	switch xn, yn := math.IsNaN(x), math.IsNaN(y); {
	case xn && yn:
		return 0
	case xn:
		return 1
	case yn:
		return -1
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// compareChars compares two CHAR values as if both were filled up with blanks,
// whether they are or not: below a blank are control characters only, and a text
// that ends where the other one goes on with one of them is the larger one.
func compareChars(a, b []byte) int {
	n := min(len(a), len(b))
	if c := bytes.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	for _, x := range a[n:] {
		if x != ' ' {
			return cmp.Compare(x, ' ')
		}
	}
	for _, x := range b[n:] {
		if x != ' ' {
			return cmp.Compare(' ', x)
		}
	}
	return 0
}

// TrimBlanks cuts trailing blanks (CHAR comparison).
func TrimBlanks(b []byte) []byte {
	n := len(b)
	for n > 0 && b[n-1] == ' ' {
		n--
	}
	return b[:n]
}

// CompareDatums compares two values of type t in the order of CompareCells;
// nested values compare element by element.
func CompareDatums(t Type, a, b Datum) int {
	if a.Null || b.Null {
		switch {
		case a.Null && b.Null:
			return 0
		case a.Null:
			return -1
		}
		return 1
	}
	switch LayoutOf(t) {
	case LayoutFloat, LayoutDouble:
		return compareFloat(a.F, b.F)
	case LayoutInt128:
		return a.D.Cmp(b.D)
	case LayoutNano:
		return cmp.Or(cmp.Compare(a.I, b.I), cmp.Compare(a.N, b.N))
	case LayoutBytes:
		if t.Kind == Char {
			return compareChars(a.B, b.B)
		}
		return bytes.Compare(a.B, b.B)
	case LayoutList, LayoutMap, LayoutStruct:
		return compareLists(t, a.L, b.L)
	}
	return cmp.Compare(a.I, b.I)
}

func compareLists(t Type, a, b []Datum) int {
	for i := range min(len(a), len(b)) {
		if c := CompareDatums(t.childType(i), a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// childType is the type of item i of Datum.L.
func (t Type) childType(i int) Type {
	switch t.Kind {
	case Array:
		return *t.Elem
	case Map:
		if i%2 == 0 {
			return *t.Key
		}
		return *t.Elem
	case Multiset:
		if i%2 == 0 {
			return *t.Elem
		}
		return IntType()
	}
	return t.StructFields()[i].Type
}
