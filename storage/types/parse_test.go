package types_test

import (
	"testing"

	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

func TestParseDatum_ReadsWhatAppendTextWrites(t *testing.T) {
	for _, c := range []struct {
		t    types.Type
		text string
	}{
		{types.BooleanType(), "true"},
		{types.TinyIntType(), "-128"},
		{types.BigIntType(), "9223372036854775807"},
		{types.FloatType(), "1.5"},
		{types.DoubleType(), "NaN"},
		{types.DoubleType(), "-Infinity"},
		{types.DecimalType(10, 2), "-12.50"},
		{types.DecimalType(38, 10), "1234567890123456789012345678.0000000001"},
		{types.StringType(), ""},
		{types.CharType(3), "abc"},
		{types.BytesType(), "00ff"},
		{types.DateType(), "1969-12-31"},
		{types.TimeType(3), "23:59:59.999"},
		{types.TimestampType(6), "2026-01-31T00:00:00.000001"},
		{types.TimestampType(9), "0001-01-01T00:00:00.123456789"},
		{types.TimestampLTZType(3), "2026-01-31T00:00:00.001Z"},
	} {
		d, err := types.ParseDatum(c.t, c.text)
		require.NoError(t, err, "%s %s", c.t, c.text)
		require.Equal(t, c.text, string(types.AppendText(nil, c.t, d)), "%s", c.t)
	}
}

func TestParseDatum_RefusesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		t    types.Type
		text string
	}{
		{types.BooleanType(), "yes"},
		{types.TinyIntType(), "128"},
		{types.IntType(), "1.0"},
		{types.IntType(), ""},
		{types.DoubleType(), "x"},
		{types.DecimalType(4, 2), "123.00"},
		{types.DecimalType(4, 2), "1.234"},
		{types.CharType(2), "abc"},
		{types.BytesType(), "0"},
		{types.DateType(), "2026-02-30"},
		{types.DateType(), "9999999-01-01"},
		{types.TimeType(3), "24:00:00"},
		{types.TimestampType(3), "2026-01-01T00:00:00Z"},
		{types.ArrayType(types.IntType()), "[1]"},
	} {
		_, err := types.ParseDatum(c.t, c.text)
		require.Error(t, err, "%s %q", c.t, c.text)
	}
}
