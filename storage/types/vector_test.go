package types

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// requireModel holds a vector against the values it should have, through every way
// to look at it.
func requireModel(t *rapid.T, v *Vector, model []Datum) {
	require.Equal(t, len(model), v.Len())
	nulls := 0
	for i, want := range model {
		got := v.Datum(i)
		require.True(t, same(want, got), "row %d of %s is %v instead of %v", i, v.Type, got, want)
		require.Equal(t, want.Null, v.IsNull(i))
		if want.Null {
			nulls++
		}
	}
	require.Equal(t, nulls, v.Nulls.Count(), "bits beyond the end")
	requireShape(t, v)
}

// requireShape checks that every slice has one item a row and offsets never fall.
func requireShape(t *rapid.T, v *Vector) {
	n := v.Len()
	lengths := map[Layout][]int{
		LayoutBool: {len(v.U8)}, LayoutInt32: {len(v.I32)}, LayoutInt64: {len(v.I64)}, LayoutFloat: {len(v.F32)}, LayoutDouble: {len(v.F64)},
		LayoutInt128: {len(v.I128)}, LayoutNano: {len(v.I64), len(v.I32)}, LayoutBytes: {len(v.Off) - 1}, LayoutList: {len(v.Off) - 1},
		LayoutMap: {len(v.Off) - 1},
	}
	for _, l := range lengths[v.Layout] {
		require.Equal(t, n, l, "%s", v.Type)
	}
	if v.Off != nil {
		require.Zero(t, v.Off[0])
		for i := range n {
			require.LessOrEqual(t, v.Off[i], v.Off[i+1])
			require.True(t, !v.IsNull(i) || v.Off[i] == v.Off[i+1], "a NULL row is empty")
		}
	}
	switch v.Layout {
	case LayoutBytes:
		require.EqualValues(t, len(v.Data), v.Off[n])
	case LayoutList, LayoutMap:
		for _, c := range v.Child {
			require.EqualValues(t, c.Len(), v.Off[n])
		}
	case LayoutStruct:
		for _, c := range v.Child {
			require.Equal(t, n, c.Len())
		}
	}
	for _, c := range v.Child {
		requireShape(t, c)
	}
}

// vectorMachine does random things to a vector and to a slice of values.
type vectorMachine struct {
	v, src      *Vector
	model, from []Datum
}

func newVectorMachine(t *rapid.T) *vectorMachine {
	id := 0
	typ := drawType(t, 2, &id)
	m := &vectorMachine{v: NewVector(typ), src: NewVector(typ)}
	for range rapid.IntRange(0, 70).Draw(t, "source rows") {
		d := drawDatum(t, typ)
		m.from = append(m.from, d)
		m.src.AppendDatum(d)
	}
	return m
}

func (m *vectorMachine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"append datum": func(t *rapid.T) {
			d := drawDatum(t, m.v.Type)
			m.v.AppendDatum(d)
			m.model = append(m.model, d)
		},
		"append null": func(*rapid.T) {
			m.v.AppendNull()
			m.model = append(m.model, Null)
		},
		"append cell": func(t *rapid.T) {
			if len(m.from) > 0 {
				i := rapid.IntRange(0, len(m.from)-1).Draw(t, "i")
				m.v.AppendCell(m.src, i)
				m.model = append(m.model, m.from[i])
			}
		},
		"append gather": func(t *rapid.T) {
			if len(m.from) > 0 {
				sel := rapid.SliceOf(rapid.Uint32Range(0, uint32(len(m.from)-1))).Draw(t, "sel")
				m.v.AppendGather(m.src, sel)
				for _, i := range sel {
					m.model = append(m.model, m.from[i])
				}
			}
		},
		"append range": func(t *rapid.T) {
			from := rapid.IntRange(0, len(m.from)).Draw(t, "from")
			to := rapid.IntRange(from, len(m.from)).Draw(t, "to")
			m.v.AppendRange(m.src, from, to)
			m.model = append(m.model, m.from[from:to]...)
		},
		"append own rows": func(t *rapid.T) {
			if n := len(m.model); n > 0 && n < 500 {
				from := rapid.IntRange(0, n-1).Draw(t, "from")
				m.v.AppendRange(m.v, from, n)
				m.model = append(m.model, m.model[from:n]...)
			}
		},
		"truncate": func(t *rapid.T) {
			n := rapid.IntRange(0, len(m.model)).Draw(t, "n")
			m.v.Truncate(n)
			m.model = m.model[:n]
		},
		"reset": func(*rapid.T) {
			m.v.Reset()
			m.model = nil
		},
		"abandon": func(t *rapid.T) { // a row that was begun and not ended
			switch m.v.Layout {
			case LayoutBytes:
				m.v.Data = append(m.v.Data, "begun"...)
			case LayoutList, LayoutMap, LayoutStruct:
				for _, c := range m.v.Child[:rapid.IntRange(0, len(m.v.Child)).Draw(t, "children")] {
					c.AppendDatum(drawDatum(t, c.Type.Nullable()))
				}
			}
			m.v.Abandon()
		},
		"": func(t *rapid.T) { requireModel(t, m.v, m.model) },
	}
}

func TestVector_RapidAgainstASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(newVectorMachine(t).actions())
	})
}

// Every layout, also those that the generator draws rarely.
func TestVector_RoundTripOfEveryLayout(t *testing.T) {
	row := RowType(Field{Name: "a", Type: IntType()}, Field{Name: "b", Type: ArrayType(StringType())})
	types := []Type{
		BooleanType(), TinyIntType(), SmallIntType(), IntType(), DateType(), TimeType(3), BigIntType(), DecimalType(18, 2), TimestampType(6),
		TimestampLTZType(3), FloatType(), DoubleType(), DecimalType(38, 10), TimestampType(9), TimestampLTZType(7), CharType(5), StringType(),
		BinaryType(4), BytesType(), ArrayType(IntType()), ArrayType(ArrayType(StringType())), MapType(StringType().NonNull(), DoubleType()),
		MultisetType(StringType()), row, ArrayType(row), MapType(IntType(), row),
		{Kind: Variant},
	}
	for _, typ := range types {
		t.Run(typ.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				model := drawDatums(t, typ, 0, 20)
				v := vectorOf(typ, model...)
				requireModel(t, v, model)
				sel := make([]uint32, len(model))
				reversed := make([]Datum, len(model))
				for i := range sel {
					sel[i] = uint32(len(sel) - 1 - i)
					reversed[i] = model[len(sel)-1-i]
				}
				w := NewVector(typ)
				w.AppendGather(v, sel)
				requireModel(t, w, reversed)
				w.Truncate(0)
				w.AppendRange(v, 0, v.Len())
				requireModel(t, w, model)
			})
		})
	}
}

func TestVector_TypedAppends(t *testing.T) {
	for _, test := range []struct {
		typ  Type
		fill func(v *Vector)
		want []Datum
	}{
		{BooleanType(), func(v *Vector) { v.AppendBool(true); v.AppendBool(false) }, []Datum{BoolDatum(true), BoolDatum(false)}},
		{IntType(), func(v *Vector) { v.AppendInt32(-1) }, []Datum{IntDatum(-1)}},
		{BigIntType(), func(v *Vector) { v.AppendInt64(1 << 40) }, []Datum{IntDatum(1 << 40)}},
		{FloatType(), func(v *Vector) { v.AppendFloat(0.1) }, []Datum{FloatDatum(float64(float32(0.1)))}},
		{DoubleType(), func(v *Vector) { v.AppendDouble(0.1) }, []Datum{FloatDatum(0.1)}},
		{DecimalType(38, 0), func(v *Vector) { v.AppendInt128(pow10[30]) }, []Datum{{D: pow10[30]}}},
		{TimestampType(9), func(v *Vector) { v.AppendNano(-5, 999) }, []Datum{{I: -5, N: 999}}},
		{StringType(), func(v *Vector) { v.AppendString("a"); v.AppendBytes([]byte("bc")) }, []Datum{StringDatum("a"), BytesDatum([]byte("bc"))}},
		{StringType(), func(v *Vector) { v.Data = append(v.Data, "built"...); v.EndRow(); v.EndRow() }, []Datum{StringDatum("built"), StringDatum("")}},
		{
			ArrayType(IntType()), func(v *Vector) { v.Child[0].AppendInt32(1); v.Child[0].AppendNull(); v.EndRow() },
			[]Datum{{L: []Datum{IntDatum(1), Null}}},
		},
		{
			MapType(StringType(), IntType()), func(v *Vector) { v.Child[0].AppendString("k"); v.Child[1].AppendInt32(7); v.EndRow() },
			[]Datum{{L: []Datum{StringDatum("k"), IntDatum(7)}}},
		},
		{RowType(Field{Type: IntType()}), func(v *Vector) { v.Child[0].AppendInt32(1); v.EndRow() }, []Datum{{L: []Datum{IntDatum(1)}}}},
	} {
		v := NewVector(test.typ)
		test.fill(v)
		require.Equal(t, len(test.want), v.Len(), "%s", test.typ)
		for i, want := range test.want {
			require.True(t, same(want, v.Datum(i)), "%s: %v", test.typ, v.Datum(i))
		}
	}
}

func TestVector_BytesCannotGrowIntoTheNextRow(t *testing.T) {
	v := vectorOf(StringType(), StringDatum("ab"), StringDatum("cd"))
	_ = append(v.Bytes(0), 'X')
	require.Equal(t, "cd", string(v.Bytes(1)))
}

func TestVector_GrowAfterBulkFill(t *testing.T) {
	v := NewVector(BigIntType())
	v.I64 = append(v.I64, 1, 2, 3)
	v.Grow(3)
	v.Nulls.Set(1)
	require.Equal(t, 3, v.Len())
	require.True(t, v.IsNull(1))
	v.AppendInt64(4)
	require.Equal(t, int64(4), v.Datum(3).I)
}

func TestVector_TruncateRefusesToGrow(t *testing.T) {
	require.Panics(t, func() { NewVector(IntType()).Truncate(1) })
}

func TestVector_OffsetsNeverWrap(t *testing.T) {
	require.EqualValues(t, 1<<32-1, offset(1<<32-1))
	require.Panics(t, func() { offset(1 << 32) })
}

func TestVector_ResetKeepsMemory(t *testing.T) {
	v := NewVector(ArrayType(StringType()))
	fill := func() {
		for i := range 1000 {
			v.Child[0].AppendString("0123456789")
			v.EndRow()
			if i%3 == 0 {
				v.AppendNull()
			}
		}
	}
	fill()
	mem := v.MemBytes()
	require.Greater(t, mem, int64(10_000+4*1000))
	allocs := testing.AllocsPerRun(10, func() {
		v.Reset()
		fill()
	})
	require.Zero(t, allocs)
	require.Equal(t, mem, v.MemBytes())
}

func TestBatch_RapidRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := 0
		row := Type{Kind: Row}
		for range rapid.IntRange(1, 4).Draw(t, "columns") {
			row.Fields = append(row.Fields, Field{Name: fmt.Sprint("c", id), Type: drawType(t, 1, &id)})
		}
		b, c := NewBatch(row.Fields), NewBatch(row.Fields)
		var model [][]Datum
		for range rapid.IntRange(1, 20).Draw(t, "rows") {
			r := drawDatum(t, row.NonNull()).L
			model = append(model, r)
			b.AppendDatums(r)
		}
		check := func(b *Batch, model [][]Datum) {
			require.Equal(t, len(model), b.Len())
			for i, r := range model {
				require.True(t, same(Datum{L: r}, Datum{L: b.Row(i)}))
			}
		}
		check(b, model)
		i := rapid.IntRange(0, len(model)-1).Draw(t, "i")
		c.AppendRow(b, i)
		c.AppendGather(b, []uint32{uint32(i), 0})
		check(c, [][]Datum{model[i], model[i], model[0]})
		n := rapid.IntRange(0, len(model)).Draw(t, "n")
		b.Truncate(n)
		check(b, model[:n])
		c.Reset()
		check(c, nil)
	})
	require.Zero(t, NewBatch(nil).Len())
	b := NewBatch([]Field{{Type: BigIntType()}, {Type: StringType()}})
	b.AppendDatums([]Datum{IntDatum(1), StringDatum("0123456789")})
	require.GreaterOrEqual(t, b.MemBytes(), int64(8+10+2*4))
}

// Types that share a layout can feed each other: a reader's VARCHAR(10) column goes
// into a STRING column as it is.
func TestVector_AppendFromAnotherTypeOfTheSameLayout(t *testing.T) {
	for _, pair := range [][2]Type{
		{VarCharType(10), StringType()},
		{CharType(3), BytesType()},
		{DateType(), IntType()},
		{TimestampType(6), BigIntType()},
		{DecimalType(19, 1), DecimalType(38, 10)},
		{TimestampType(7), TimestampLTZType(9)},
		{ArrayType(VarCharType(5)), ArrayType(StringType().NonNull())},
	} {
		rapid.Check(t, func(t *rapid.T) {
			values := drawDatums(t, pair[0], 1, 20)
			src, dst := vectorOf(pair[0], values...), NewVector(pair[1])
			dst.AppendRange(src, 0, len(values))
			dst.AppendCell(src, len(values)-1)
			dst.AppendGather(src, []uint32{0, 0})
			requireModel(t, dst, append(slices.Clone(values), values[len(values)-1], values[0], values[0]))
		})
	}
}

// Gathering, ranges and single cells are three ways to say the same.
func TestVector_RapidGatherRangeAndCellsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := 0
		typ := drawType(t, 2, &id)
		src := vectorOf(typ, drawDatums(t, typ, 1, 150)...)
		from := rapid.IntRange(0, src.Len()).Draw(t, "from")
		to := rapid.IntRange(from, src.Len()).Draw(t, "to")
		prefix := drawDatums(t, typ, 0, 70) // so that bits land in the middle of a word
		gathered, ranged, cells := vectorOf(typ, prefix...), vectorOf(typ, prefix...), vectorOf(typ, prefix...)
		var sel []uint32
		for i := from; i < to; i++ {
			sel = append(sel, uint32(i))
			cells.AppendCell(src, i)
		}
		gathered.AppendGather(src, sel)
		ranged.AppendRange(src, from, to)
		want := slices.Clone(prefix)
		for i := from; i < to; i++ {
			want = append(want, src.Datum(i))
		}
		for _, v := range []*Vector{gathered, ranged, cells} {
			requireModel(t, v, want)
		}
	})
}

// Abandon drops what was begun in any depth.
func TestVector_AbandonNestedRows(t *testing.T) {
	row := RowType(Field{Name: "a", Type: ArrayType(ArrayType(IntType()))}, Field{Name: "b", Type: StringType()})
	v := NewVector(row)
	first := Datum{L: []Datum{{L: []Datum{{L: []Datum{IntDatum(1)}}}}, StringDatum("x")}}
	v.AppendDatum(first)
	outer := v.Child[0]
	inner := outer.Child[0]
	inner.Child[0].AppendInt32(2)
	inner.EndRow()
	inner.Child[0].AppendInt32(3) // in the middle of the inner list
	v.Child[1].Data = append(v.Child[1].Data, "in the middle of a text"...)
	v.Abandon()
	second := Datum{L: []Datum{Null, Null}}
	v.AppendDatum(second)
	require.True(t, same(first, v.Datum(0)))
	require.True(t, same(second, v.Datum(1)))
	require.Equal(t, 1, inner.Len())
	require.Equal(t, 1, inner.Child[0].Len())
	require.Equal(t, "x", string(v.Child[1].Data))
}
