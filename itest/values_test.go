//go:build itest

package itest

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
	"applier/storage/types"
)

// scalarTypes has every scalar type at its interesting parameters.
var scalarTypes = []string{
	"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 0)", "DECIMAL(9, 2)", "DECIMAL(18, 4)",
	"DECIMAL(19, 19)", "DECIMAL(38, 18)", "DECIMAL(38, 0)", "CHAR(5)", "VARCHAR(20)", "STRING", "BINARY(4)", "VARBINARY(8)", "BYTES", "DATE",
	"TIME(0)", "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)",
	"TIMESTAMP(0) WITH LOCAL TIME ZONE", "TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP(9) WITH LOCAL TIME ZONE",
}

// nestedTypes need nothing that a judge refuses (pypaimon: MULTISET).
var nestedTypes = []string{
	"ARRAY<INT>", "ARRAY<STRING>", "MAP<STRING, BIGINT>", "MAP<INT, DATE>", "ROW<a INT, b ARRAY<DECIMAL(10, 2)>>", "ARRAY<ROW<x DOUBLE, y TIMESTAMP(3)>>",
}

// columnsOf names a column c0, c1, … for each type.
func columnsOf(t *testing.T, texts []string) ([]harness.Column, types.Type) {
	t.Helper()
	row := types.Type{Kind: types.Row}
	var columns []harness.Column
	for i, text := range texts {
		ty, err := types.ParseType(text)
		require.NoError(t, err)
		name := "c" + big.NewInt(int64(i)).String()
		row.Fields = append(row.Fields, types.Field{Name: name, Type: ty})
		columns = append(columns, harness.Column{Name: name, Type: text})
	}
	return columns, row
}

// randomRows makes row texts; every column's edges come up when there are some
// hundreds of rows.
func randomRows(r *rand.Rand, row types.Type, n int) []string {
	out := make([]string, n)
	for i := range out {
		var d types.Datum
		for _, f := range row.Fields {
			d.L = append(d.L, randomDatum(r, f.Type))
		}
		out[i] = string(types.AppendJSON(nil, row, d))
	}
	return out
}

func anyRows(texts []string) []any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}

var (
	edgeDoubles = []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, math.MaxFloat64, -math.MaxFloat64,
		math.SmallestNonzeroFloat64, 1e-6, 9.999e-7, 1e21, 1e20, 0x1p-44, 1e15, 1 << 53, 123456789012345680,
	}
	edgeFloats = []float32{
		float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.Copysign(0, -1)), 0, math.MaxFloat32,
		math.SmallestNonzeroFloat32, 1e-6, 1e21, 1e20, 0.1, 16777216, 33554432,
	}
	edgeTexts = []string{"", "x", `a"b\c`, "\n\t\r\x01", "héllo", "日本", "😀", "\u2028<>", "zz"}
)

// randomDatum makes a value of a type: every tenth is NULL, every third of the
// others sits at an edge. Timestamps stay between 1684 and 2255, where Arrow's
// nanoseconds reach.
func randomDatum(r *rand.Rand, ty types.Type) types.Datum {
	if r.IntN(10) == 0 {
		return types.Null
	}
	edge := r.IntN(3) == 0
	switch ty.Kind {
	case types.Boolean:
		return types.BoolDatum(r.IntN(2) == 0)
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		shift := map[types.Kind]int{types.TinyInt: 56, types.SmallInt: 48, types.Int: 32, types.BigInt: 0}[ty.Kind]
		if edge {
			return types.IntDatum(one[int64](r, math.MinInt64, math.MaxInt64, 0, -1<<shift) >> shift)
		}
		return types.IntDatum(int64(r.Uint64()) >> shift)
	case types.Float:
		if edge {
			return types.FloatDatum(float64(one(r, edgeFloats...)))
		}
		return types.FloatDatum(float64(math.Float32frombits(r.Uint32())))
	case types.Double:
		if edge {
			return types.FloatDatum(one(r, edgeDoubles...))
		}
		return types.FloatDatum(math.Float64frombits(r.Uint64()))
	case types.Decimal:
		return randomDecimal(r, ty.Precision, edge)
	case types.Char, types.VarChar:
		return types.StringDatum(one(r, edgeTexts...))
	case types.Binary:
		return randomBytes(r, ty.Length)
	case types.VarBinary:
		return randomBytes(r, r.IntN(5))
	case types.Date:
		if edge {
			return types.IntDatum(one[int64](r, -719162, 2932896, 0, -1, 19000))
		}
		return types.IntDatum(int64(r.IntN(40000)) - 10000)
	case types.Time:
		unit := map[int]int64{0: 1000, 3: 1}[ty.Precision]
		if edge {
			return types.IntDatum(one[int64](r, 0, 86_399_999, 43_200_000) / unit * unit)
		}
		return types.IntDatum(int64(r.IntN(86_400_000)) / unit * unit)
	case types.Array, types.Map, types.Row:
		return randomNested(r, ty)
	}
	return randomTimestamp(r, ty, edge)
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomBytes(r *rand.Rand, n int) types.Datum {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return types.BytesDatum(b)
}

func randomTimestamp(r *rand.Rand, ty types.Type, edge bool) types.Datum {
	micros := r.Int64N(18_000_000_000_000_000) - 9_000_000_000_000_000
	if edge {
		micros = one[int64](r, -1, 0, 1, -1_000_000, 1_600_000_000_123_456)
	}
	d := types.IntDatum(types.TruncateMicros(micros, min(ty.Precision, 6)))
	if ty.Precision > 6 {
		d.N = types.TruncateNanos(int32(r.IntN(1000)), ty.Precision)
	}
	return d
}

// randomDecimal has any number of digits up to the precision, or all nines.
func randomDecimal(r *rand.Rand, precision int, edge bool) types.Datum {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(1+r.IntN(precision))), nil)
	v := new(big.Int).Mul(big.NewInt(r.Int64()), big.NewInt(r.Int64()))
	v.Mod(v, limit)
	if edge {
		v.Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil), big.NewInt(1))
	}
	if r.IntN(2) == 0 {
		v.Neg(v)
	}
	if precision <= 18 {
		return types.IntDatum(v.Int64())
	}
	d, _ := types.Int128FromBig(v)
	return types.Datum{D: d}
}

func randomNested(r *rand.Rand, ty types.Type) types.Datum {
	var d types.Datum
	switch ty.Kind {
	case types.Row:
		for _, f := range ty.Fields {
			d.L = append(d.L, randomDatum(r, f.Type))
		}
	case types.Array:
		for range r.IntN(4) {
			d.L = append(d.L, randomDatum(r, *ty.Elem))
		}
	case types.Map:
		for i := range r.IntN(4) { // keys are distinct and not NULL
			key := types.IntDatum(int64(i*100 - 100))
			if ty.Key.IsText() {
				key = types.StringDatum(edgeTexts[i])
			}
			d.L = append(d.L, key, randomDatum(r, *ty.Elem))
		}
	}
	return d
}

// rawJSON is a value that already is JSON.
type rawJSON []byte

// MarshalJSON returns the text itself.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

func (r rawJSON) String() string { return string(r) }
