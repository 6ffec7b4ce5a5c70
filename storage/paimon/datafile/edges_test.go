package datafile

import (
	"bytes"
	"math"
	"strings"

	"applier/storage/types"
)

// scalarEdges are the scalar types with values at their edges.
func scalarEdges() []struct {
	t      types.Type
	values []types.Datum
} {
	ints := func(v ...int64) []types.Datum {
		var out []types.Datum
		for _, x := range v {
			out = append(out, types.IntDatum(x))
		}
		return out
	}
	floats := func(v ...float64) []types.Datum {
		var out []types.Datum
		for _, x := range v {
			out = append(out, types.FloatDatum(x))
		}
		return out
	}
	texts := func(v ...string) []types.Datum {
		var out []types.Datum
		for _, x := range v {
			out = append(out, types.StringDatum(x))
		}
		return out
	}
	nine := func(p int) int64 { return int64(types.Pow10(p).Lo) - 1 }
	big := func(p int) types.Int128 {
		v := types.Pow10(p)
		v.Lo--
		return v // no borrow: 10^p is never a multiple of 2^64 for p ≤ 38
	}
	d38, d19 := big(38), big(19)
	micros := int64(1_789_043_696_123_456)
	const year1, year9999 = -62_135_596_800_000_000, 253_402_300_799_999_999
	nanos := []types.Datum{
		{I: micros, N: 789},
		{I: -1, N: 999},
		{I: 0, N: 0},
		{I: -1, N: 0},
		{I: year1, N: 1},
		{I: year9999, N: 999},
		{I: -86_400_000_000, N: 0},
		{I: -86_400_000_001, N: 999},
	}
	return []struct {
		t      types.Type
		values []types.Datum
	}{
		{types.BooleanType(), ints(0, 1)},
		{types.TinyIntType(), ints(-128, 127, 0)},
		{types.SmallIntType(), ints(-32768, 32767, 0)},
		{types.IntType(), ints(math.MinInt32, math.MaxInt32, 0, -1)},
		{types.BigIntType(), ints(math.MinInt64, math.MaxInt64, 0, -1)},
		{types.FloatType(), floats(-math.MaxFloat32, math.MaxFloat32, math.Copysign(0, -1), 0, math.Inf(1), math.Inf(-1), math.NaN(), float64(float32(1.1)), math.SmallestNonzeroFloat32)},
		{types.DoubleType(), floats(-math.MaxFloat64, math.MaxFloat64, math.Copysign(0, -1), 0, math.Inf(1), math.Inf(-1), math.NaN(), 1.1, math.SmallestNonzeroFloat64)},
		{types.DecimalType(1, 0), ints(-9, 9, 0)},
		{types.DecimalType(9, 2), ints(-nine(9), nine(9), 0, 1)},
		{types.DecimalType(10, 10), ints(-nine(10), nine(10), 0)},
		{types.DecimalType(18, 4), ints(-nine(18), nine(18), 0, -1)},
		{types.DecimalType(19, 0), []types.Datum{{D: d19}, {D: d19.Neg()}, {}, {D: types.Int128From(-1)}, {D: types.Int128From(1)}}},
		{types.DecimalType(38, 18), []types.Datum{{D: d38}, {D: d38.Neg()}, {}, {D: types.Int128From(-1)}, {D: types.Int128From(1)}}},
		{types.CharType(3), texts("abc", "   ", "😀ü ", "a  ")},
		{types.VarCharType(10), texts("abcdefghij", "", " x ", "ü😀\U0010FFFF")},
		{types.StringType(), texts("", "x", "héllo 😀", strings.Repeat("long ", 1000), "\x00", "\U0010FFFF")},
		{types.BinaryType(2), []types.Datum{types.BytesDatum([]byte{0, 255}), types.BytesDatum([]byte{})}},
		{types.VarBinaryType(5), []types.Datum{types.BytesDatum([]byte{255, 255, 255, 255, 255}), types.BytesDatum([]byte{0})}},
		{types.BytesType(), []types.Datum{types.BytesDatum([]byte{}), types.BytesDatum(bytes.Repeat([]byte{255}, 5000))}},
		{types.DateType(), ints(0, -1, -719162, 2932896, math.MinInt32, math.MaxInt32)},
		{types.TimeType(0), ints(0, 86_399_000)},
		{types.TimeType(9), ints(0, 86_399_999, 1)},
		{types.TimestampType(0), ints(0, -1_000_000, year1, 253_402_300_799_000_000)},
		{types.TimestampType(3), ints(0, -1000, year1, 253_402_300_799_999_000)},
		{types.TimestampType(6), ints(0, -1, year1, year9999, micros, math.MinInt64, math.MaxInt64)},
		{types.TimestampType(9), nanos},
		{types.TimestampLTZType(3), ints(0, -1000, year1)},
		{types.TimestampLTZType(6), ints(0, -1, year9999)},
		{types.TimestampLTZType(7), []types.Datum{{I: -1, N: 900}, {I: 1, N: 100}}},
	}
}

// edgeTable is a table with every scalar type and its edge values, a row of
// NULLs first; columns with fewer values repeat them.
func edgeTable() ([]types.Field, [][]types.Datum) {
	edges := scalarEdges()
	var ts []types.Type
	rows := 0
	for _, e := range edges {
		ts = append(ts, e.t)
		rows = max(rows, len(e.values))
	}
	table := make([][]types.Datum, rows+1)
	for i := range table {
		for _, e := range edges {
			if i == 0 {
				table[i] = append(table[i], types.Null)
			} else {
				table[i] = append(table[i], e.values[(i-1)%len(e.values)])
			}
		}
	}
	return fieldsOf(ts...), table
}
