package types

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// sqlEqual is `=` of Spark as row-level.md §2.7 has it, said another way than the
// code does: NULL is equal to nothing.
func sqlEqual(t Type, a, b Datum) bool {
	if a.Null || b.Null {
		return false
	}
	switch t.Kind {
	case Float, Double:
		return a.F == b.F || math.IsNaN(a.F) && math.IsNaN(b.F)
	case Decimal:
		if t.Precision > 18 {
			return a.D.Big().Cmp(b.D.Big()) == 0
		}
	case Char:
		return strings.TrimRight(string(a.B), " ") == strings.TrimRight(string(b.B), " ")
	case VarChar, Binary, VarBinary:
		return string(a.B) == string(b.B)
	case Timestamp, TimestampLTZ:
		return a.I == b.I && a.N == b.N
	}
	return a.I == b.I
}

func drawKeyTypes(t *rapid.T) []Type {
	types := make([]Type, rapid.IntRange(1, 4).Draw(t, "columns"))
	for i := range types {
		types[i] = drawAtom(t)
	}
	return types
}

func TestKeyEncoder_RapidEqualExactlyIfSQLSaysSo(t *testing.T) {
	classes := map[KeyClass]int{}
	rapid.Check(t, func(t *rapid.T) {
		types := drawKeyTypes(t)
		e, err := NewKeyEncoder(types)
		require.NoError(t, err)
		fields := make([]Field, len(types))
		for i, typ := range types {
			fields[i].Type = typ
		}
		b := NewBatch(fields)
		var rows [][]Datum
		for range rapid.IntRange(1, 40).Draw(t, "rows") {
			row := make([]Datum, len(types))
			for i, typ := range types {
				row[i] = drawDatum(t, typ)
			}
			rows = append(rows, row)
			b.AppendDatums(row)
		}
		// In two pieces, and behind other keys, as a caller may do it.
		var k Keys
		cut := rapid.IntRange(0, len(rows)).Draw(t, "cut")
		e.Append(&k, b.Cols, cut, len(rows))
		k.Truncate(0)
		e.Append(&k, b.Cols, 0, cut)
		e.Append(&k, b.Cols, cut, len(rows))
		require.Equal(t, len(rows), k.Len())
		require.Equal(t, e.Class(), k.Class)
		classes[k.Class]++
		for i, x := range rows {
			hasNull := false
			for _, d := range x {
				hasNull = hasNull || d.Null
			}
			require.Equal(t, hasNull, k.Null.Get(i), "row %d", i)
			if hasNull {
				continue
			}
			for j, y := range rows {
				if k.Null.Get(j) {
					continue
				}
				want := true
				for c, typ := range types {
					want = want && sqlEqual(typ, x[c], y[c])
				}
				require.Equal(t, want, k.Equal(i, &k, j), "%v: %v, %v", types, x, y)
				if want {
					require.Equal(t, k.Hash[i], k.Hash[j], "equal keys have equal hashes")
				}
				if k.Class == Key64 {
					require.Equal(t, want, k.Hash[i] == k.Hash[j], "the hash is the key")
				}
			}
		}
	})
	for _, class := range []KeyClass{Key64, Key128, KeyBytes} {
		require.Positive(t, classes[class], "class %d was never drawn", class)
	}
}

// Every pair of interesting values of every type, alone and beside a column that
// makes the key longer.
func TestKeyEncoder_EveryPairOfInterestingValues(t *testing.T) {
	for _, typ := range []Type{
		BooleanType(), TinyIntType(), SmallIntType(), IntType(), BigIntType(), FloatType(), DoubleType(), DecimalType(18, 2), DecimalType(38, 2),
		CharType(5), StringType(), BinaryType(5), BytesType(), DateType(), TimeType(3), TimestampType(6), TimestampLTZType(3), TimestampType(9),
	} {
		for _, beside := range []Type{{}, BooleanType(), BigIntType(), StringType()} {
			types, values := []Type{typ}, interesting(typ)
			cols := []*Vector{vectorOf(typ, values...)}
			if beside.Kind != Invalid {
				types = append(types, beside)
				cols = append(cols, NewVector(beside))
				for range values {
					cols[1].AppendDatum(interesting(beside)[1])
				}
			}
			e, err := NewKeyEncoder(types)
			require.NoError(t, err)
			var k Keys
			e.Append(&k, cols, 0, len(values))
			for i, a := range values {
				for j, b := range values {
					require.Equal(t, sqlEqual(typ, a, b), k.Equal(i, &k, j), "%v: %v, %v", types, a, b)
				}
			}
		}
	}
}

func TestKeyEncoder_Classes(t *testing.T) {
	for _, test := range []struct {
		types []Type
		want  KeyClass
	}{
		{[]Type{BooleanType()}, Key64},
		{[]Type{BigIntType()}, Key64},
		{[]Type{IntType(), DateType()}, Key64},
		{[]Type{DoubleType()}, Key64},
		{[]Type{TinyIntType(), TinyIntType(), SmallIntType(), FloatType()}, Key64},
		{[]Type{DecimalType(18, 2)}, Key64},
		{[]Type{TimestampType(6)}, Key64},
		{[]Type{BigIntType(), BooleanType()}, Key128},
		{[]Type{TimestampType(9)}, Key128},
		{[]Type{DecimalType(19, 2)}, Key128},
		{[]Type{BigIntType(), BigIntType()}, Key128},
		{[]Type{DecimalType(38, 2), BooleanType()}, KeyBytes},
		{[]Type{StringType()}, KeyBytes},
		{[]Type{CharType(1)}, KeyBytes},
		{[]Type{BinaryType(1), IntType()}, KeyBytes},
	} {
		e, err := NewKeyEncoder(test.types)
		require.NoError(t, err)
		require.Equal(t, test.want, e.Class(), "%v", test.types)
	}
}

func TestKeyEncoder_RefusesWhatSQLCannotCompare(t *testing.T) {
	_, err := NewKeyEncoder(nil)
	require.ErrorContains(t, err, "no columns")
	for _, typ := range []Type{
		ArrayType(IntType()), MapType(IntType(), IntType()), MultisetType(IntType()), RowType(Field{Type: IntType()}),
		{Kind: Variant},
		{Kind: Blob},
		{Kind: Geometry},
		{},
	} {
		_, err := NewKeyEncoder([]Type{IntType(), typ})
		require.ErrorContains(t, err, "cannot be compared")
		require.ErrorContains(t, err, typ.String())
	}
}

// Every pair of rows that a careless concatenation would take for the same key.
func TestKeyEncoder_NoTwoKeysRunTogether(t *testing.T) {
	for _, test := range []struct {
		types []Type
		rows  [][]Datum
	}{
		{[]Type{StringType(), StringType()}, [][]Datum{
			{StringDatum("a"), StringDatum("bc")},
			{StringDatum("ab"), StringDatum("c")},
			{StringDatum(""), StringDatum("abc")},
			{StringDatum("abc"), StringDatum("")},
			{StringDatum("a\x00"), StringDatum("")},
			{StringDatum("a"), StringDatum("\x00")},
		}},
		{[]Type{TinyIntType(), TinyIntType(), SmallIntType(), IntType()}, [][]Datum{
			{IntDatum(0), IntDatum(0), IntDatum(0), IntDatum(-1)},
			{IntDatum(0), IntDatum(0), IntDatum(-1), IntDatum(0)},
			{IntDatum(0), IntDatum(-1), IntDatum(0), IntDatum(0)},
			{IntDatum(-1), IntDatum(0), IntDatum(0), IntDatum(0)},
			{IntDatum(-128), IntDatum(0), IntDatum(0), IntDatum(-1)},
			{IntDatum(0), IntDatum(0), IntDatum(-1), IntDatum(-1)},
			{IntDatum(0), IntDatum(1), IntDatum(0), IntDatum(0)},
		}},
		{[]Type{BigIntType(), BigIntType()}, [][]Datum{
			{IntDatum(0), IntDatum(1)}, {IntDatum(1), IntDatum(0)}, {IntDatum(-1), IntDatum(1)}, {IntDatum(1), IntDatum(-1)}, {IntDatum(0), IntDatum(0)},
		}},
		{[]Type{DecimalType(38, 0)}, [][]Datum{
			{{D: Int128{1, 0}}}, {{D: Int128{0, 1}}}, {{D: Int128{-1, 0}}}, {{D: Int128{-1, math.MaxUint64}}}, {{D: Int128{0, math.MaxUint64}}},
		}},
		{[]Type{TimestampType(9), IntType()}, [][]Datum{
			{{I: 0, N: 1}, IntDatum(0)},
			{{I: 1, N: 0}, IntDatum(0)},
			{{I: 0, N: 0}, IntDatum(1)},
			{{I: -1, N: 999}, IntDatum(0)},
			{{I: 0, N: 0}, IntDatum(1 << 16)},
			{{I: 1 << 16, N: 0}, IntDatum(0)},
		}},
	} {
		e, err := NewKeyEncoder(test.types)
		require.NoError(t, err)
		fields := make([]Field, len(test.types))
		for i := range fields {
			fields[i].Type = test.types[i]
		}
		b := NewBatch(fields)
		for _, r := range test.rows {
			b.AppendDatums(r)
		}
		var k Keys
		e.Append(&k, b.Cols, 0, b.Len())
		for i := range test.rows {
			for j := range test.rows {
				require.Equal(t, i == j, k.Equal(i, &k, j), "%v: %v, %v", test.types, test.rows[i], test.rows[j])
			}
		}
	}
}

// unmix64 undoes Mix64, which is possible for a bijection only.
func unmix64(x uint64) uint64 {
	x ^= x >> 33
	x *= 0x9cb4b2f8129337db // the inverse of the second factor modulo 2^64
	x ^= x >> 33
	x *= 0x4f74430c22a54005 // the inverse of the first
	return x ^ x>>33
}

func TestMix64_IsABijection(t *testing.T) {
	var one uint64 = 0xff51afd7ed558ccd
	require.EqualValues(t, 1, one*0x4f74430c22a54005)
	one = 0xc4ceb9fe1a85ec53
	require.EqualValues(t, 1, one*0x9cb4b2f8129337db)
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Uint64().Draw(t, "x")
		require.Equal(t, x, unmix64(Mix64(x)))
	})
	// Known values of murmur3's fmix64.
	require.Zero(t, Mix64(0))
	require.Equal(t, uint64(0xb456bcfc34c2cb2c), Mix64(1))
}

func TestKeys_BytesKeysAreHashedOverTheirBytes(t *testing.T) {
	e, err := NewKeyEncoder([]Type{StringType(), IntType()})
	require.NoError(t, err)
	s, n := vectorOf(StringType(), StringDatum("key"), StringDatum("")), vectorOf(IntType(), IntDatum(7), IntDatum(-1))
	var k Keys
	e.Append(&k, []*Vector{s, n}, 0, 2)
	require.Equal(t, []byte("\x00\x00\x00\x03key\x00\x00\x00\x07"), k.Bytes(0))
	require.Equal(t, []byte("\x00\x00\x00\x00\xff\xff\xff\xff"), k.Bytes(1))
	for i := range 2 {
		require.Equal(t, Mix64(xxhash.Sum64(k.Bytes(i))), k.Hash[i])
	}
	_ = append(k.Bytes(0), 'X')
	require.Zero(t, k.Bytes(1)[0], "a caller's append stays out of the next key")
	require.Positive(t, k.MemBytes())
}

// Same hash, other bytes: Equal looks at the bytes.
func TestKeys_EqualSurvivesACollision(t *testing.T) {
	k := &Keys{Class: KeyBytes, Hash: []uint64{1, 1}, Off: []uint32{0, 1, 2}, Data: []byte("ab")}
	require.False(t, k.Equal(0, k, 1))
	k = &Keys{Class: Key128, Hash: []uint64{1, 1}, Low: []uint64{1, 2}}
	require.False(t, k.Equal(0, k, 1))
}

func TestKeys_RapidTruncate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawKeyTypes(t)
		e, err := NewKeyEncoder(types)
		require.NoError(t, err)
		n := rapid.IntRange(0, 20).Draw(t, "rows")
		cols := make([]*Vector, len(types))
		for c, typ := range types {
			cols[c] = NewVector(typ)
			for range n {
				cols[c].AppendDatum(drawDatum(t, typ))
			}
		}
		var whole, cut Keys
		e.Append(&whole, cols, 0, n)
		e.Append(&cut, cols, 0, n)
		keep := rapid.IntRange(0, n).Draw(t, "keep")
		cut.Truncate(keep)
		require.Equal(t, keep, cut.Len())
		e.Append(&cut, cols, keep, n)
		require.Equal(t, whole.Hash, cut.Hash)
		require.Equal(t, whole.Low, cut.Low)
		require.True(t, bytes.Equal(whole.Data, cut.Data))
		for i := range n {
			require.Equal(t, whole.Null.Get(i), cut.Null.Get(i))
		}
		cut.Reset()
		require.Zero(t, cut.Len())
	})
}

func TestKeyEncoder_SteadyStateAllocatesNothing(t *testing.T) {
	for _, types := range [][]Type{{BigIntType()}, {IntType(), DateType()}, {BigIntType(), IntType()}, {StringType(), IntType()}} {
		e, err := NewKeyEncoder(types)
		require.NoError(t, err)
		cols := make([]*Vector, len(types))
		for c, typ := range types {
			cols[c] = NewVector(typ)
			for i := range 100 {
				if typ.IsText() {
					cols[c].AppendString(fmt.Sprint(i))
				} else {
					cols[c].AppendDatum(IntDatum(int64(i)))
				}
			}
		}
		var k Keys
		e.Append(&k, cols, 0, 100)
		require.Zero(t, testing.AllocsPerRun(20, func() {
			k.Reset()
			e.Append(&k, cols, 0, 100)
		}), "%v", types)
	}
}

// A key is the same wherever its row stands: in another batch, behind other rows,
// in the middle of a range.
func TestKeyEncoder_RapidKeysDoNotDependOnTheirPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawKeyTypes(t)
		e, err := NewKeyEncoder(types)
		require.NoError(t, err)
		n := rapid.IntRange(1, 30).Draw(t, "rows")
		sel := make([]uint32, n)
		for i := range sel {
			sel[i] = rapid.Uint32Range(0, uint32(n-1)).Draw(t, "row")
		}
		cols, moved := make([]*Vector, len(types)), make([]*Vector, len(types))
		for c, typ := range types {
			cols[c] = vectorOf(typ, drawDatums(t, typ.NonNull(), n, n)...)
			moved[c] = NewVector(typ)
			moved[c].AppendNull()
			moved[c].AppendGather(cols[c], sel)
			moved[c].AppendNull()
		}
		var k, m Keys
		e.Append(&k, cols, 0, n)
		e.Append(&m, cols, 0, rapid.IntRange(0, n).Draw(t, "other keys before"))
		before := m.Len()
		e.Append(&m, moved, 1, n+1)
		require.False(t, m.Null.Any(), "the NULL rows around are not in the range")
		for i, from := range sel {
			require.True(t, m.Equal(before+i, &k, int(from)))
			require.Equal(t, k.Hash[from], m.Hash[before+i])
			if k.Class == KeyBytes {
				require.Equal(t, k.Bytes(int(from)), m.Bytes(before+i))
			}
		}
	})
}

// Keys that people have: neighbours spread over all bits.
func TestMix64_SpreadsNeighbours(t *testing.T) {
	var ones [64]int
	const n = 1 << 14
	for x := range uint64(n) {
		h := Mix64(x)
		for b := range 64 {
			ones[b] += int(h >> b & 1)
		}
	}
	for b, c := range ones {
		require.InDelta(t, n/2, c, n/20, "bit %d", b)
	}
}
