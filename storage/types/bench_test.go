package types

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

const benchRows = 10_000

// benchVector returns benchRows values of a type, every tenth NULL if asked.
func benchVector(typ Type, nulls bool) *Vector {
	v := NewVector(typ)
	for i := range benchRows {
		switch {
		case nulls && i%10 == 0:
			v.AppendNull()
		case v.Layout == LayoutBytes:
			v.AppendString(fmt.Sprintf("customer-%016d", i))
		case v.Layout == LayoutList:
			v.Child[0].AppendInt32(int32(i))
			v.Child[0].AppendInt32(int32(i))
			v.EndRow()
		case v.Layout == LayoutDouble:
			v.AppendDouble(float64(i) / 3)
		case v.Layout == LayoutInt128:
			v.AppendInt128(Int128{int64(i), uint64(i)})
		default:
			v.AppendDatum(IntDatum(int64(i) * 7919))
		}
	}
	return v
}

func perRow(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

func BenchmarkKeyEncoder_Append(b *testing.B) {
	for _, types := range [][]Type{
		{BigIntType()},
		{DoubleType()},
		{IntType(), DateType()},
		{BigIntType(), IntType()},
		{DecimalType(38, 2)},
		{StringType()},
		{StringType(), IntType()},
		{CharType(30)},
	} {
		b.Run(fmt.Sprint(types), func(b *testing.B) {
			e, err := NewKeyEncoder(types)
			require.NoError(b, err)
			cols := make([]*Vector, len(types))
			for i, typ := range types {
				cols[i] = benchVector(typ, false)
			}
			var k Keys
			e.Append(&k, cols, 0, benchRows)
			b.ReportAllocs()
			for b.Loop() {
				k.Reset()
				e.Append(&k, cols, 0, benchRows)
			}
			perRow(b)
		})
	}
}

func BenchmarkVector_AppendGather(b *testing.B) {
	sel := make([]uint32, benchRows)
	for i := range sel {
		sel[i] = uint32(rand.IntN(benchRows))
	}
	for _, typ := range []Type{BigIntType(), IntType(), DecimalType(38, 2), StringType(), ArrayType(IntType())} {
		for _, nulls := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s,nulls=%v", typ, nulls), func(b *testing.B) {
				src, dst := benchVector(typ, nulls), NewVector(typ)
				dst.AppendGather(src, sel)
				b.ReportAllocs()
				for b.Loop() {
					dst.Reset()
					dst.AppendGather(src, sel)
				}
				perRow(b)
			})
		}
	}
}

func BenchmarkVector_AppendRange(b *testing.B) {
	for _, typ := range []Type{BigIntType(), StringType()} {
		b.Run(typ.String(), func(b *testing.B) {
			src, dst := benchVector(typ, true), NewVector(typ)
			dst.AppendRange(src, 0, benchRows)
			b.ReportAllocs()
			for b.Loop() {
				dst.Reset()
				dst.AppendRange(src, 0, benchRows)
			}
			perRow(b)
		})
	}
}

func BenchmarkParseDecimal(b *testing.B) {
	for _, text := range []string{"12.34", "-1234567890123.45", "99999999999999999999999999999999999.99"} {
		b.Run(text, func(b *testing.B) {
			t := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseDecimal(t, 38, 2); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseTimestamp(b *testing.B) {
	text := []byte("2026-03-04T05:06:07.123456+02:00")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := ParseTimestamp(text, ZoneOptional); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	for _, typ := range []Type{BigIntType(), StringType(), TimestampType(6)} {
		b.Run(typ.String(), func(b *testing.B) {
			v := benchVector(typ, false)
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				out = out[:0]
				for i := range benchRows {
					out = AppendJSON(out, typ, v.Datum(i))
				}
			}
			perRow(b)
		})
	}
}
