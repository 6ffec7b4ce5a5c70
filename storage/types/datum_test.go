package types

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// refCompare is Spark's order, said another way than the code does.
func refCompare(t Type, a, b Datum) int {
	switch {
	case a.Null || b.Null:
		return cmp.Compare(btoi(b.Null), btoi(a.Null)) // NULL first
	case t.Kind == Float || t.Kind == Double:
		return cmp.Or(cmp.Compare(btoi(math.IsNaN(a.F)), btoi(math.IsNaN(b.F))), big.NewFloat(nanToZero(a.F)).Cmp(big.NewFloat(nanToZero(b.F))))
	case t.Kind == Decimal && t.Precision > 18:
		return a.D.Big().Cmp(b.D.Big())
	case t.Kind == Char:
		filled := func(d Datum) string { return string(d.B) + strings.Repeat(" ", 64-len(d.B)) }
		return strings.Compare(filled(a), filled(b))
	case t.IsText() || t.IsBinary():
		return strings.Compare(string(a.B), string(b.B))
	case t.IsTimestamp():
		ns := func(d Datum) *big.Int {
			return new(big.Int).Add(new(big.Int).Mul(big.NewInt(d.I), big.NewInt(1000)), big.NewInt(int64(d.N)))
		}
		return ns(a).Cmp(ns(b))
	case t.IsNested() || t.Kind == Variant:
		for i := range min(len(a.L), len(b.L)) {
			if c := refCompare(t.childType(i), a.L[i], b.L[i]); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(a.L), len(b.L))
	}
	return cmp.Compare(a.I, b.I)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func nanToZero(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

func TestCompare_RapidCellsAndDatumsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := 0
		typ := drawType(t, 2, &id)
		values := drawDatums(t, typ, 2, 8)
		v := vectorOf(typ, values...)
		for i, a := range values {
			for j, b := range values {
				want := refCompare(typ, a, b)
				require.Equal(t, want, CompareCells(v, i, v, j), "%s: %v, %v", typ, a, b)
				require.Equal(t, want, CompareDatums(typ, a, b), "%s: %v, %v", typ, a, b)
				require.Equal(t, -want, CompareCells(v, j, v, i), "%s: %v, %v", typ, b, a)
			}
		}
		// A total order sorts the same from any start.
		once := slices.Clone(values)
		slices.SortFunc(once, func(a, b Datum) int { return CompareDatums(typ, a, b) })
		slices.Reverse(values)
		slices.SortFunc(values, func(a, b Datum) int { return CompareDatums(typ, a, b) })
		for i := range values {
			require.Zero(t, CompareDatums(typ, once[i], values[i]))
		}
	})
}

func TestCompare_SparksOrder(t *testing.T) {
	nan, zero, negZero := FloatDatum(math.NaN()), FloatDatum(0), FloatDatum(math.Copysign(0, -1))
	require.Equal(t, -1, CompareDatums(DoubleType(), Null, FloatDatum(math.Inf(-1))))
	require.Equal(t, 1, CompareDatums(DoubleType(), nan, FloatDatum(math.Inf(1))))
	require.Zero(t, CompareDatums(DoubleType(), nan, FloatDatum(math.Float64frombits(0xfff8000000000001))))
	require.Zero(t, CompareDatums(FloatType(), zero, negZero))
	require.Zero(t, CompareDatums(CharType(5), StringDatum("a"), StringDatum("a   ")))
	require.Equal(t, 1, CompareDatums(CharType(5), StringDatum("a"), StringDatum("a\t")), "a blank is above a tab")
	require.Equal(t, -1, CompareDatums(CharType(5), StringDatum("a\t "), StringDatum("a")))
	require.Equal(t, -1, CompareDatums(StringType(), StringDatum("a"), StringDatum("a ")))
	require.Equal(t, 1, CompareDatums(BytesType(), BytesDatum([]byte{0x80}), BytesDatum([]byte{0x7f})), "unsigned")
	require.Equal(t, 1, CompareDatums(StringType(), StringDatum("é"), StringDatum("z")), "UTF-8 bytes")
	require.Equal(t, -1, CompareDatums(TimestampType(9), Datum{I: 1, N: 1}, Datum{I: 1, N: 2}))
	require.Zero(t, CompareDatums(IntType(), Null, Null))
}

func TestTrimBlanks(t *testing.T) {
	for in, want := range map[string]string{"": "", " ": "", "a": "a", "a  ": "a", " a ": " a", "a\t ": "a\t", "  ": ""} {
		require.Equal(t, want, string(TrimBlanks([]byte(in))))
	}
}

func TestDatum_OfALayoutlessVectorIsNull(t *testing.T) {
	require.True(t, (&Vector{}).Datum(0).Null)
}
