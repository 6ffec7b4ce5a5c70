package types

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWiden_FindsTheNarrowestTypeThatHoldsBoth(t *testing.T) {
	for _, c := range []struct{ have, want, wide string }{
		{"INT", "INT", "INT"},
		{"INT", "BIGINT", "BIGINT"},
		{"BIGINT", "INT", "BIGINT"},
		{"TINYINT NOT NULL", "SMALLINT", "SMALLINT NOT NULL"},
		{"FLOAT", "DOUBLE", "DOUBLE"},
		{"DOUBLE", "FLOAT", "DOUBLE"},
		{"INT", "DOUBLE", ""},
		{"BIGINT", "DECIMAL(20, 0)", "DECIMAL(20, 0)"},
		{"BIGINT", "DECIMAL(5, 2)", "DECIMAL(21, 2)"},
		{"DECIMAL(5, 2)", "INT", "DECIMAL(12, 2)"},
		{"DECIMAL(10, 2)", "DECIMAL(8, 4)", "DECIMAL(12, 4)"},
		{"DECIMAL(38, 2)", "DECIMAL(38, 4)", ""},
		{"TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6)"},
		{"TIMESTAMP(6)", "TIMESTAMP(3)", "TIMESTAMP(6)"},
		{"TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", ""},
		{"DATE", "TIMESTAMP(3)", ""},
		{"VARCHAR(10)", "STRING", ""},
		{"INT", "STRING", ""},
		{"STRING", "INT", ""},
		{"ARRAY<INT>", "ARRAY<BIGINT>", ""},
	} {
		have, err := ParseType(c.have)
		require.NoError(t, err)
		want, err := ParseType(c.want)
		require.NoError(t, err)
		wide, ok := Widen(have, want)
		if c.wide == "" {
			require.False(t, ok, "%s and %s: %s", c.have, c.want, wide)
			require.Equal(t, have, wide)
			continue
		}
		expected, err := ParseType(c.wide)
		require.NoError(t, err)
		require.True(t, ok, "%s and %s", c.have, c.want)
		require.Equal(t, expected.String(), wide.String(), "%s and %s", c.have, c.want)
	}
}

// Whatever order types come in, and however often: the result is the same and stays.
func TestWiden_IsMonotone(t *testing.T) {
	scalar := rapid.Custom(func(t *rapid.T) Type {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return Type{Kind: rapid.SampledFrom([]Kind{TinyInt, SmallInt, Int, BigInt}).Draw(t, "integer")}
		case 1:
			return Type{Kind: rapid.SampledFrom([]Kind{Float, Double}).Draw(t, "floating")}
		case 2:
			p := rapid.IntRange(1, MaxPrecision).Draw(t, "precision")
			return DecimalType(p, rapid.IntRange(0, p).Draw(t, "scale"))
		case 3:
			return TimestampType(rapid.IntRange(0, 9).Draw(t, "precision"))
		}
		return StringType()
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := scalar.Draw(t, "a"), scalar.Draw(t, "b")
		ab, ok := Widen(a, b)
		ba, ok2 := Widen(b, a)
		require.Equal(t, ok, ok2)
		if !ok {
			return
		}
		require.Equal(t, ab, ba)
		for _, again := range []Type{a, b, ab} {
			same, ok := Widen(ab, again)
			require.True(t, ok)
			require.Equal(t, ab, same)
		}
	})
}
