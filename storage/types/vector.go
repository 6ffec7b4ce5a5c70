package types

import (
	"fmt"
	"math"
)

// Layout says which slices of a Vector hold its values.
type Layout uint8

// The layouts. Several types share one; conversions happen at the borders.
const (
	LayoutNone   Layout = iota
	LayoutBool          // U8: 0 or 1
	LayoutInt32         // I32: TINYINT, SMALLINT, INT, DATE (days since 1970-01-01), TIME (milliseconds of day)
	LayoutInt64         // I64: BIGINT; DECIMAL with precision ≤ 18 (unscaled); TIMESTAMP, TIMESTAMP_LTZ with precision ≤ 6 (microseconds since the epoch)
	LayoutFloat         // F32
	LayoutDouble        // F64
	LayoutInt128        // I128: DECIMAL with precision > 18 (unscaled)
	LayoutNano          // I64 microseconds, I32 nanoseconds inside the microsecond (0..999): TIMESTAMP(7..9)
	LayoutBytes         // Off, Data: CHAR (without its padding blanks cut or added), VARCHAR, BINARY, VARBINARY
	LayoutList          // Off, Child[0]: ARRAY
	LayoutMap           // Off, Child[0] keys, Child[1] values: MAP, MULTISET (values INT NOT NULL)
	LayoutStruct        // Child: ROW, VARIANT (value, metadata)
)

// LayoutOf returns the layout of a type's vectors, LayoutNone if it has none.
func LayoutOf(t Type) Layout {
	switch t.Kind {
	case Boolean:
		return LayoutBool
	case TinyInt, SmallInt, Int, Date, Time:
		return LayoutInt32
	case BigInt:
		return LayoutInt64
	case Float:
		return LayoutFloat
	case Double:
		return LayoutDouble
	case Decimal:
		if t.Precision > 18 {
			return LayoutInt128
		}
		return LayoutInt64
	case Timestamp, TimestampLTZ:
		if t.Precision > 6 {
			return LayoutNano
		}
		return LayoutInt64
	case Char, VarChar, Binary, VarBinary:
		return LayoutBytes
	case Array:
		return LayoutList
	case Map, Multiset:
		return LayoutMap
	case Row, Variant:
		return LayoutStruct
	}
	return LayoutNone
}

// Vector is one typed column of values. The exported slices may be read, and
// appended to through the methods; all have one item a row (Off one more), also
// for NULL rows, whose item is zero or empty. A Vector belongs to one goroutine;
// Reset keeps its memory. Data below LayoutBytes is limited to 4 GiB: beyond, appending panics.
type Vector struct {
	Type   Type
	Layout Layout
	U8     []uint8
	I32    []int32
	I64    []int64
	F32    []float32
	F64    []float64
	I128   []Int128
	Off    []uint32
	Data   []byte
	Child  []*Vector
	Nulls  Bitmap
	n      int
}

// NewVector returns an empty vector of type t. It panics on a type without
// layout: callers check Type.Supported at their border.
func NewVector(t Type) *Vector {
	v := &Vector{Type: t, Layout: LayoutOf(t)}
	switch v.Layout {
	case LayoutNone:
		panic("types: no vectors of " + t.String())
	case LayoutBytes:
		v.Off = []uint32{0}
	case LayoutList:
		v.Off = []uint32{0}
		v.Child = []*Vector{NewVector(*t.Elem)}
	case LayoutMap:
		v.Off = []uint32{0}
		key, value := t.Key, t.Elem
		if t.Kind == Multiset {
			count := IntType().NonNull()
			key, value = t.Elem, &count
		}
		v.Child = []*Vector{NewVector(*key), NewVector(*value)}
	case LayoutStruct:
		for _, f := range t.StructFields() {
			v.Child = append(v.Child, NewVector(f.Type))
		}
	}
	return v
}

// StructFields returns the children of a ROW, or of a VARIANT as Paimon stores
// it: value and metadata, both binary.
func (t Type) StructFields() []Field {
	if t.Kind == Variant {
		b := BytesType().NonNull()
		return []Field{{ID: 0, Name: "value", Type: b}, {ID: 1, Name: "metadata", Type: b}}
	}
	return t.Fields
}

// Len returns the number of rows.
func (v *Vector) Len() int { return v.n }

// Reset empties the vector and keeps its memory.
func (v *Vector) Reset() { v.Truncate(0) }

// Truncate keeps the first n rows.
func (v *Vector) Truncate(n int) {
	if n > v.n {
		panic(fmt.Sprintf("types: truncating a vector of %d rows to %d", v.n, n))
	}
	v.n = n
	v.Nulls.Truncate(n)
	switch v.Layout {
	case LayoutBool:
		v.U8 = v.U8[:n]
	case LayoutInt32:
		v.I32 = v.I32[:n]
	case LayoutInt64:
		v.I64 = v.I64[:n]
	case LayoutFloat:
		v.F32 = v.F32[:n]
	case LayoutDouble:
		v.F64 = v.F64[:n]
	case LayoutInt128:
		v.I128 = v.I128[:n]
	case LayoutNano:
		v.I64, v.I32 = v.I64[:n], v.I32[:n]
	case LayoutBytes:
		v.Off = v.Off[:n+1]
		v.Data = v.Data[:v.Off[n]]
	case LayoutList, LayoutMap:
		v.Off = v.Off[:n+1]
		for _, c := range v.Child {
			c.Truncate(int(v.Off[n]))
		}
	case LayoutStruct:
		for _, c := range v.Child {
			c.Truncate(n)
		}
	}
}

// IsNull reports whether row i is NULL.
func (v *Vector) IsNull(i int) bool { return v.Nulls.Get(i) }

// AppendNull appends a NULL row.
func (v *Vector) AppendNull() {
	v.Nulls.Set(v.n)
	switch v.Layout {
	case LayoutBool:
		v.U8 = append(v.U8, 0)
	case LayoutInt32:
		v.I32 = append(v.I32, 0)
	case LayoutInt64:
		v.I64 = append(v.I64, 0)
	case LayoutFloat:
		v.F32 = append(v.F32, 0)
	case LayoutDouble:
		v.F64 = append(v.F64, 0)
	case LayoutInt128:
		v.I128 = append(v.I128, Int128{})
	case LayoutNano:
		v.I64, v.I32 = append(v.I64, 0), append(v.I32, 0)
	case LayoutBytes, LayoutList, LayoutMap:
		v.Off = append(v.Off, v.Off[v.n])
	case LayoutStruct:
		for _, c := range v.Child {
			c.AppendNull()
		}
	}
	v.n++
}

// AppendBool appends to a LayoutBool vector.
func (v *Vector) AppendBool(x bool) {
	var b uint8
	if x {
		b = 1
	}
	v.U8 = append(v.U8, b)
	v.n++
}

// AppendInt32 appends to a LayoutInt32 vector.
func (v *Vector) AppendInt32(x int32) { v.I32 = append(v.I32, x); v.n++ }

// AppendInt64 appends to a LayoutInt64 vector.
func (v *Vector) AppendInt64(x int64) { v.I64 = append(v.I64, x); v.n++ }

// AppendFloat appends to a LayoutFloat vector.
func (v *Vector) AppendFloat(x float32) { v.F32 = append(v.F32, x); v.n++ }

// AppendDouble appends to a LayoutDouble vector.
func (v *Vector) AppendDouble(x float64) { v.F64 = append(v.F64, x); v.n++ }

// AppendInt128 appends to a LayoutInt128 vector.
func (v *Vector) AppendInt128(x Int128) { v.I128 = append(v.I128, x); v.n++ }

// AppendNano appends to a LayoutNano vector.
func (v *Vector) AppendNano(micros int64, nanos int32) {
	v.I64, v.I32 = append(v.I64, micros), append(v.I32, nanos)
	v.n++
}

// AppendBytes appends a copy of b to a LayoutBytes vector.
func (v *Vector) AppendBytes(b []byte) {
	v.Data = append(v.Data, b...)
	v.Off = append(v.Off, offset(len(v.Data)))
	v.n++
}

// AppendString appends s to a LayoutBytes vector.
func (v *Vector) AppendString(s string) {
	v.Data = append(v.Data, s...)
	v.Off = append(v.Off, offset(len(v.Data)))
	v.n++
}

// EndRow ends a row whose parts were appended to Data or to the children: the
// way to build bytes, list, map and struct rows in place.
func (v *Vector) EndRow() {
	switch v.Layout {
	case LayoutBytes:
		v.Off = append(v.Off, offset(len(v.Data)))
	case LayoutList, LayoutMap:
		v.Off = append(v.Off, offset(v.Child[0].n))
	}
	v.n++
}

// offset narrows an offset. A batch is limited to far less than 4 GiB; if a caller
// lets one grow beyond, stopping is better than offsets that wrap around and hand
// out other rows' bytes.
func offset(n int) uint32 {
	if uint64(n) > math.MaxUint32 {
		panic("types: a column of more than 4 GiB")
	}
	return uint32(n)
}

// Abandon drops what was appended to Data or the children since the last EndRow.
func (v *Vector) Abandon() {
	switch v.Layout {
	case LayoutBytes:
		v.Data = v.Data[:v.Off[v.n]]
	case LayoutList, LayoutMap:
		for _, c := range v.Child {
			c.Truncate(int(v.Off[v.n]))
		}
	case LayoutStruct:
		for _, c := range v.Child {
			c.Truncate(min(v.n, c.n))
		}
	}
}

// Bytes returns row i of a LayoutBytes vector; it aliases Data.
func (v *Vector) Bytes(i int) []byte { return v.Data[v.Off[i]:v.Off[i+1]:v.Off[i+1]] }

// AppendCell appends row i of src, a vector of the same layout.
func (v *Vector) AppendCell(src *Vector, i int) {
	if src.IsNull(i) {
		v.AppendNull()
		return
	}
	switch v.Layout {
	case LayoutBool:
		v.U8 = append(v.U8, src.U8[i])
	case LayoutInt32:
		v.I32 = append(v.I32, src.I32[i])
	case LayoutInt64:
		v.I64 = append(v.I64, src.I64[i])
	case LayoutFloat:
		v.F32 = append(v.F32, src.F32[i])
	case LayoutDouble:
		v.F64 = append(v.F64, src.F64[i])
	case LayoutInt128:
		v.I128 = append(v.I128, src.I128[i])
	case LayoutNano:
		v.I64, v.I32 = append(v.I64, src.I64[i]), append(v.I32, src.I32[i])
	case LayoutBytes:
		v.AppendBytes(src.Bytes(i))
		return
	case LayoutList, LayoutMap:
		for k, c := range v.Child {
			for j := int(src.Off[i]); j < int(src.Off[i+1]); j++ {
				c.AppendCell(src.Child[k], j)
			}
		}
		v.Off = append(v.Off, offset(v.Child[0].n))
	case LayoutStruct:
		for k, c := range v.Child {
			c.AppendCell(src.Child[k], i)
		}
	}
	v.n++
}

// AppendGather appends the rows sel of src, in that order.
func (v *Vector) AppendGather(src *Vector, sel []uint32) {
	base := v.n
	switch v.Layout {
	case LayoutBool:
		v.U8 = gather(v.U8, src.U8, sel)
	case LayoutInt32:
		v.I32 = gather(v.I32, src.I32, sel)
	case LayoutInt64:
		v.I64 = gather(v.I64, src.I64, sel)
	case LayoutFloat:
		v.F32 = gather(v.F32, src.F32, sel)
	case LayoutDouble:
		v.F64 = gather(v.F64, src.F64, sel)
	case LayoutInt128:
		v.I128 = gather(v.I128, src.I128, sel)
	case LayoutNano:
		v.I64, v.I32 = gather(v.I64, src.I64, sel), gather(v.I32, src.I32, sel)
	case LayoutBytes:
		for _, i := range sel {
			v.Data = append(v.Data, src.Data[src.Off[i]:src.Off[i+1]]...)
			v.Off = append(v.Off, offset(len(v.Data)))
		}
	default:
		for _, i := range sel {
			v.AppendCell(src, int(i))
		}
		return
	}
	v.n += len(sel)
	if src.Nulls.Any() {
		for k, i := range sel {
			if src.Nulls.Get(int(i)) {
				v.Nulls.Set(base + k)
			}
		}
	}
}

func gather[T any](dst, src []T, sel []uint32) []T {
	for _, i := range sel {
		dst = append(dst, src[i])
	}
	return dst
}

// AppendRange appends rows [from, to) of src.
func (v *Vector) AppendRange(src *Vector, from, to int) {
	base := v.n
	switch v.Layout {
	case LayoutBool:
		v.U8 = append(v.U8, src.U8[from:to]...)
	case LayoutInt32:
		v.I32 = append(v.I32, src.I32[from:to]...)
	case LayoutInt64:
		v.I64 = append(v.I64, src.I64[from:to]...)
	case LayoutFloat:
		v.F32 = append(v.F32, src.F32[from:to]...)
	case LayoutDouble:
		v.F64 = append(v.F64, src.F64[from:to]...)
	case LayoutInt128:
		v.I128 = append(v.I128, src.I128[from:to]...)
	case LayoutNano:
		v.I64, v.I32 = append(v.I64, src.I64[from:to]...), append(v.I32, src.I32[from:to]...)
	case LayoutBytes:
		shift := uint32(len(v.Data)) - src.Off[from]
		v.Data = append(v.Data, src.Data[src.Off[from]:src.Off[to]]...)
		offset(len(v.Data))
		for i := from + 1; i <= to; i++ {
			v.Off = append(v.Off, src.Off[i]+shift)
		}
	default:
		for i := from; i < to; i++ {
			v.AppendCell(src, i)
		}
		return
	}
	v.n += to - from
	if src.Nulls.CountRange(from, to) > 0 {
		for i := from; i < to; i++ {
			if src.Nulls.Get(i) {
				v.Nulls.Set(base + i - from)
			}
		}
	}
}

// Grow sets the length of a LayoutBool … LayoutNano vector to n rows after its
// slices were filled directly to that length (bulk readers).
func (v *Vector) Grow(n int) { v.n = n }

// MemBytes returns the bytes of memory the vector's values take.
func (v *Vector) MemBytes() int64 {
	b := cap(v.U8) + 4*cap(v.I32) + 8*cap(v.I64) + 4*cap(v.F32) + 8*cap(v.F64) + 16*cap(v.I128) +
		4*cap(v.Off) + cap(v.Data) + 8*cap(v.Nulls)
	n := int64(b)
	for _, c := range v.Child {
		n += c.MemBytes()
	}
	return n
}

// Batch is a set of columns of equal length. It belongs to one goroutine.
type Batch struct {
	Cols []*Vector
}

// NewBatch returns an empty batch with a column for each field.
func NewBatch(fields []Field) *Batch {
	b := &Batch{Cols: make([]*Vector, len(fields))}
	for i, f := range fields {
		b.Cols[i] = NewVector(f.Type)
	}
	return b
}

// Len returns the number of rows; a batch without columns has none.
func (b *Batch) Len() int {
	if len(b.Cols) == 0 {
		return 0
	}
	return b.Cols[0].Len()
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	for _, c := range b.Cols {
		c.Reset()
	}
}

// Truncate keeps the first n rows.
func (b *Batch) Truncate(n int) {
	for _, c := range b.Cols {
		c.Truncate(n)
	}
}

// AppendRow appends row i of src, a batch with the same layouts.
func (b *Batch) AppendRow(src *Batch, i int) {
	for c, v := range b.Cols {
		v.AppendCell(src.Cols[c], i)
	}
}

// AppendGather appends the rows sel of src.
func (b *Batch) AppendGather(src *Batch, sel []uint32) {
	for c, v := range b.Cols {
		v.AppendGather(src.Cols[c], sel)
	}
}

// Row returns row i as single values.
func (b *Batch) Row(i int) []Datum {
	row := make([]Datum, len(b.Cols))
	for c, v := range b.Cols {
		row[c] = v.Datum(i)
	}
	return row
}

// AppendDatums appends a row of single values.
func (b *Batch) AppendDatums(row []Datum) {
	for c, v := range b.Cols {
		v.AppendDatum(row[c])
	}
}

// MemBytes returns the bytes of memory the batch's values take.
func (b *Batch) MemBytes() int64 {
	var n int64
	for _, c := range b.Cols {
		n += c.MemBytes()
	}
	return n
}
