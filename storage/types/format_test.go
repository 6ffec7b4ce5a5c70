package types

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFormat_TextAndJSON(t *testing.T) {
	row := RowType(Field{Name: "a\"b", Type: IntType()}, Field{Name: "s", Type: StringType()})
	day := IntDatum(20_454)
	for _, test := range []struct {
		typ        Type
		d          Datum
		text, json string
	}{
		{IntType(), Null, "", "null"},
		{BooleanType(), BoolDatum(true), "true", "true"},
		{BooleanType(), BoolDatum(false), "false", "false"},
		{TinyIntType(), IntDatum(-128), "-128", "-128"},
		{BigIntType(), IntDatum(math.MaxInt64), "9223372036854775807", "9223372036854775807"},
		{BigIntType(), IntDatum(math.MinInt64), "-9223372036854775808", "-9223372036854775808"},
		{FloatType(), FloatDatum(float64(float32(0.1))), "0.1", "0.1"},
		{DoubleType(), FloatDatum(0.1), "0.1", "0.1"},
		{DoubleType(), FloatDatum(100), "100", "100"},
		{DoubleType(), FloatDatum(math.Copysign(0, -1)), "-0", "-0"},
		{DoubleType(), FloatDatum(1e21), "1e+21", "1e+21"},
		{DoubleType(), FloatDatum(123456789012345680000), "123456789012345680000", "123456789012345680000"},
		{DoubleType(), FloatDatum(1e-7), "1e-07", "1e-07"},
		{DoubleType(), FloatDatum(math.MaxFloat64), "1.7976931348623157e+308", "1.7976931348623157e+308"},
		{FloatType(), FloatDatum(math.NaN()), "NaN", `"NaN"`},
		{DoubleType(), FloatDatum(math.Inf(1)), "Infinity", `"Infinity"`},
		{DoubleType(), FloatDatum(math.Inf(-1)), "-Infinity", `"-Infinity"`},
		{DecimalType(10, 2), IntDatum(-5), "-0.05", `"-0.05"`},
		{DecimalType(18, 0), IntDatum(5), "5", `"5"`},
		{DecimalType(38, 10), Datum{D: pow10[38]}, "10000000000000000000000000000.0000000000", `"10000000000000000000000000000.0000000000"`},
		{CharType(3), StringDatum("a "), "a ", `"a "`},
		{StringType(), StringDatum("say \"hi\"\n\x01\\ é \xff"), "say \"hi\"\n\x01\\ é \xff", `"say \"hi\"\n\u0001\\ é ` + "\uFFFD" + `"`},
		{BytesType(), BytesDatum([]byte{0, 0xab, 0xff}), "00abff", `"00abff"`},
		{BinaryType(1), BytesDatum(nil), "", `""`},
		{DateType(), day, "2026-01-01", `"2026-01-01"`},
		{TimeType(0), IntDatum(3_723_004), "01:02:03", `"01:02:03"`},
		{TimeType(3), IntDatum(3_723_004), "01:02:03.004", `"01:02:03.004"`},
		{TimestampType(0), IntDatum(-1), "1969-12-31T23:59:59", `"1969-12-31T23:59:59"`},
		{TimestampType(6), IntDatum(-1), "1969-12-31T23:59:59.999999", `"1969-12-31T23:59:59.999999"`},
		{TimestampType(9), Datum{I: -1, N: 999}, "1969-12-31T23:59:59.999999999", `"1969-12-31T23:59:59.999999999"`},
		{TimestampLTZType(3), IntDatum(1000), "1970-01-01T00:00:00.001Z", `"1970-01-01T00:00:00.001Z"`},
		{ArrayType(IntType()), Datum{L: []Datum{IntDatum(1), Null, IntDatum(3)}}, "[1,null,3]", "[1,null,3]"},
		{ArrayType(IntType()), Datum{L: []Datum{}}, "[]", "[]"},
		{MapType(StringType(), IntType()), Datum{L: []Datum{StringDatum("k"), IntDatum(1), StringDatum("l"), Null}}, `{"k":1,"l":null}`, `{"k":1,"l":null}`},
		{MapType(StringType(), IntType()), Datum{L: []Datum{Null, IntDatum(1), StringDatum("l"), Null}}, `[[null,1],["l",null]]`, `[[null,1],["l",null]]`},
		{MapType(StringType(), IntType()), Datum{}, `{}`, `{}`},
		{MapType(IntType(), DateType()), Datum{L: []Datum{IntDatum(1), day, IntDatum(2), Null}}, `[[1,"2026-01-01"],[2,null]]`, `[[1,"2026-01-01"],[2,null]]`},
		{MapType(IntType(), IntType()), Datum{}, `[]`, `[]`},
		{MultisetType(StringType()), Datum{L: []Datum{StringDatum("x"), IntDatum(2)}}, `{"x":2}`, `{"x":2}`},
		{row, Datum{L: []Datum{IntDatum(1), Null}}, `{"a\"b":1,"s":null}`, `{"a\"b":1,"s":null}`},
		{RowType(), Datum{}, `{}`, `{}`},
		{Type{Kind: Variant}, Datum{L: []Datum{BytesDatum([]byte{1}), BytesDatum([]byte{2})}}, `{"value":"01","metadata":"02"}`, `{"value":"01","metadata":"02"}`},
	} {
		require.Equal(t, "x"+test.text, string(AppendText([]byte("x"), test.typ, test.d)), "%s", test.typ)
		require.Equal(t, "x"+test.json, string(AppendJSON([]byte("x"), test.typ, test.d)), "%s", test.typ)
	}
}

func TestFormat_RapidJSONIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := 0
		typ := drawType(t, 3, &id)
		out := AppendJSON(nil, typ, drawDatum(t, typ))
		require.True(t, json.Valid(out), "%s: %s", typ, out)
	})
}

func TestAppendJSONString_RapidAgainstGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOf(rapid.SampledFrom([]byte("az\"\\\x00\x1f\n\r\t\b\x7f\xc3\xa9\xff\xe2\x80\xa8\xed\xa0\x80/<"))).Draw(t, "s")
		var got string
		require.NoError(t, json.Unmarshal(AppendJSONString(nil, s), &got))
		var want []rune
		for _, r := range string(s) { // invalid bytes become U+FFFD
			want = append(want, r)
		}
		require.Equal(t, string(want), got)
		require.True(t, utf8.ValidString(got))
	})
}

func TestAppendFloat_RapidReadsBackTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		got, err := strconv.ParseFloat(string(AppendText(nil, DoubleType(), FloatDatum(f))), 64)
		require.NoError(t, err)
		require.Equal(t, math.Float64bits(f), math.Float64bits(got))
		f32 := rapid.Float32().Draw(t, "f32")
		got, err = strconv.ParseFloat(string(AppendText(nil, FloatType(), FloatDatum(float64(f32)))), 32)
		require.NoError(t, err)
		require.Equal(t, math.Float32bits(f32), math.Float32bits(float32(got)))
	})
}
