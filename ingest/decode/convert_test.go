package decode

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Schema nodes of the conversion tables.
const (
	noSchema = "debezium" // no schema, Debezium
	noPlain  = "json"     // no schema, plain JSON
)

// sem returns a schema node with a semantic name.
func sem(literal, name string) string {
	return fmt.Sprintf(`{"type":%q,"optional":true,"name":%q,"version":1}`, literal, name)
}

func lit(literal string) string { return fmt.Sprintf(`{"type":%q,"optional":true}`, literal) }

func decimalSchema(scale string) string {
	return `{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{"scale":"` + scale + `","connect.decimal.precision":"12"}}`
}

func bitsSchema(length string) string {
	return `{"type":"bytes","name":"io.debezium.data.Bits","version":1,"parameters":{"length":"` + length + `"}}`
}

// convertCell decodes one value with a schema into a column of a type and
// returns its text, or the class of the error.
func convertCell(t require.TestingT, typ, schema, value string, set func(*Options)) string {
	o := options(t, "id INT; x "+typ)
	if set != nil {
		set(&o)
	}
	format, row := "json", `{"id":1,"x":`+value+`}`
	switch schema {
	case noPlain:
	case noSchema:
		format, row = "debezium-json", `{"op":"c","after":`+row+`}`
	default:
		node := schema[:len(schema)-1] + `,"field":"x"}`
		row = `{"schema":{"type":"struct","fields":[{"type":"int32","field":"id"},` + node + `]},"payload":` + row + `}`
	}
	out := newBatch(o)
	_, err := mustNew(t, format, o).Decode(record("null", row), out)
	if err != nil {
		var re *RowError
		require.ErrorAs(t, err, &re)
		require.Equal(t, "x", re.Column)
		require.Zero(t, out.Len())
		return "!" + string(re.Class)
	}
	return cellText(&out.Cols[1], 0)
}

type conversion struct {
	typ, schema, value, want string
}

func checkConversions(t *testing.T, set func(*Options), cases []conversion) {
	for _, c := range cases {
		t.Run(c.typ+"/"+c.value, func(t *testing.T) {
			require.Equal(t, c.want, convertCell(t, c.typ, c.schema, c.value, set), "schema %s", c.schema)
			require.Equal(t, "NULL", convertCell(t, c.typ, c.schema, "null", set))
		})
	}
}

func TestConvert_Integers(t *testing.T) {
	checkConversions(t, nil, []conversion{
		{"TINYINT", lit("int8"), "-128", "-128"},
		{"TINYINT", lit("int8"), "127", "127"},
		{"TINYINT", lit("int16"), "128", "!range"},
		{"TINYINT", lit("int16"), "-129", "!range"},
		{"SMALLINT", lit("int16"), "-32768", "-32768"},
		{"SMALLINT", lit("int32"), "32768", "!range"},
		{"SMALLINT", lit("int32"), "-32769", "!range"},
		{"INT", lit("int32"), "2147483647", "2147483647"},
		{"INT", lit("int64"), "2147483648", "!range"},
		{"INT", lit("int64"), "-2147483649", "!range"},
		{"BIGINT", lit("int64"), "9007199254740993", "9007199254740993"},
		{"BIGINT", lit("int64"), "9223372036854775807", "9223372036854775807"},
		{"BIGINT", lit("int64"), "-9223372036854775808", "-9223372036854775808"},
		{"BIGINT", lit("int64"), "9223372036854775808", "!range"},
		{"BIGINT", lit("int64"), "18446744073709551615", "!range"},
		{"BIGINT", lit("int64"), "327267367867168100000", "!range"},
		{"BIGINT", noPlain, "10000000001922600", "10000000001922600"},
		{"INT", lit("int32"), "1.0", "1"},
		{"INT", lit("int32"), "1e3", "1000"},
		{"INT", lit("int32"), "-0", "0"},
		{"INT", lit("int32"), "-0.0", "0"},
		{"INT", lit("int32"), "1.5", "!range"},
		{"INT", lit("int32"), "1e-1", "!range"},
		{"INT", lit("int32"), "1e99", "!range"},
		{"INT", noPlain, "1e999999999999", "!range"},
		{"BIGINT", lit("double"), "123456789012345680.0", "123456789012345680"},
		{"INT", lit("boolean"), "true", "1"},
		{"TINYINT", noSchema, "false", "0"},
		{"INT", noPlain, "true", "!type"},
		{"INT", lit("string"), `"12"`, "12"},
		{"BIGINT", noPlain, `"9007199254740993"`, "9007199254740993"},
		{"INT", noSchema, `"-7"`, "-7"},
		{"INT", noPlain, `""`, "!type"},
		{"INT", noPlain, `" 1"`, "!type"},
		{"INT", noPlain, `"0x10"`, "!type"},
		{"INT", noPlain, `"abc"`, "!type"},
		{"INT", noPlain, `"NaN"`, "!range"},
		{"INT", noPlain, "[1]", "!type"},
		{"INT", noPlain, "{}", "!type"},
		{"INT", lit("bytes"), `"AQ=="`, "!type"},
		{"BIGINT", decimalSchema("0"), `"AKtUqYzrHwrS"`, "!range"},
		{"BIGINT", decimalSchema("2"), `"JxA="`, "100"},
		{"BIGINT", decimalSchema("2"), `"JxE="`, "!range"},
		{"BIGINT", sem("int64", "io.debezium.time.MicroDuration"), "37091106700000", "37091106700000"},
		{"INT", sem("int32", "io.debezium.time.Year"), "0", "0"},
		{"BIGINT", sem("int64", "io.debezium.time.NanoDuration"), "-1", "-1"},
		{"INT", sem("int32", "io.debezium.time.Date"), "20706", "20706"},
		{"BIGINT", sem("string", "io.debezium.time.Interval"), `"P1Y"`, "!type"},
	})
}

func TestConvert_Booleans(t *testing.T) {
	checkConversions(t, nil, []conversion{
		{"BOOLEAN", lit("boolean"), "true", "true"},
		{"BOOLEAN", lit("boolean"), "false", "false"},
		{"BOOLEAN", lit("int16"), "1", "true"},
		{"BOOLEAN", lit("int16"), "0", "false"},
		{"BOOLEAN", lit("int16"), "2", "!range"},
		{"BOOLEAN", noSchema, "-1", "!range"},
		{"BOOLEAN", noPlain, "1", "true"},
		{"BOOLEAN", noPlain, `"true"`, "!type"},
		{"BOOLEAN", lit("string"), `"1"`, "!type"},
		{"BOOLEAN", noPlain, "[]", "!type"},
		{"BOOLEAN", noPlain, "0.0", "false"},
		{"BOOLEAN", noPlain, "0.5", "!range"},
	})
}

func TestConvert_FloatingPoint(t *testing.T) {
	checkConversions(t, nil, []conversion{
		{"FLOAT", lit("float"), "1.5", "1.5"},
		// The float nearest to 0.1 is 13421773 * 2^-27.
		{"DOUBLE", lit("float"), "0.1", "0.10000000149011612"},
		{"DOUBLE", lit("float32"), "16777217", "16777216"},
		{"DOUBLE", lit("float"), `"NaN"`, "NaN"},
		{"DOUBLE", lit("double"), "0.1", "0.1"},
		{"FLOAT", lit("float32"), "0.1", "0.1"},
		{"FLOAT", lit("float"), "16777217", "16777216"},
		{"FLOAT", lit("float"), "3.4028235e38", "3.4028235e+38"},
		{"FLOAT", lit("float"), "3.5e38", "!range"},
		{"FLOAT", lit("float"), "1e-50", "0"},
		// halfway for 64 bits, not for 32: two roundings would give the other neighbour
		{"FLOAT", lit("float"), "1.00000017881393432617187499", "1.0000001"},
		{"FLOAT", lit("float"), "1.00000017881393432617187500", "1.0000002"},
		{"DOUBLE", lit("double"), "0.1", "0.1"},
		{"DOUBLE", lit("float64"), "2.2250738585072014e-308", "2.2250738585072014e-308"},
		{"DOUBLE", lit("double"), "-1e-320", "-1e-320"},
		{"DOUBLE", lit("double"), "1.7976931348623157e308", "1.7976931348623157e+308"},
		{"DOUBLE", lit("double"), "1e309", "!range"},
		{"DOUBLE", lit("double"), "9007199254740993", "9007199254740992"},
		{"DOUBLE", lit("double"), "-0.0", "-0"},
		{"DOUBLE", noPlain, "-0", "-0"},
		{"DOUBLE", noPlain, "999999999999999", "999999999999999"},
		{"DOUBLE", noPlain, "1234567890123456789", "1234567890123456800"},
		{"DOUBLE", noPlain, "0.000000000000001", "1e-15"},
		{"DOUBLE", noPlain, "12345.67", "12345.67"},
		{"DOUBLE", noPlain, "-99999999.9999999", "-99999999.9999999"},
		{"DOUBLE", lit("double"), `"NaN"`, "NaN"},
		{"DOUBLE", lit("double"), `"Infinity"`, "Infinity"},
		{"FLOAT", lit("float"), `"-Infinity"`, "-Infinity"},
		{"DOUBLE", lit("string"), `"NAN"`, "NaN"},
		{"DOUBLE", noSchema, `"POSITIVE_INFINITY"`, "Infinity"},
		{"DOUBLE", noPlain, `"NEGATIVE_INFINITY"`, "-Infinity"},
		{"DOUBLE", lit("string"), `"12.30"`, "12.3"},
		{"DOUBLE", noPlain, `"inf"`, "!type"},
		{"DOUBLE", noPlain, `"0x1p4"`, "!type"},
		{"DOUBLE", noPlain, `"1_0"`, "!type"},
		{"DOUBLE", noPlain, `""`, "!type"},
		{"DOUBLE", noPlain, `"1e"`, "!type"},
		{"DOUBLE", noPlain, `"1e+"`, "!type"},
		{"DOUBLE", noPlain, `"-1.5e-3"`, "-0.0015"},
		{"DOUBLE", noPlain, `"1x"`, "!type"},
		{"DOUBLE", noPlain, `"1e400"`, "!range"},
		{"DOUBLE", noPlain, "true", "!type"},
		{"DOUBLE", decimalSchema("2"), `"JxA="`, "100"},
		{"DOUBLE", noSchema, `{"scale":1,"value":"/w=="}`, "-0.1"},
		{"DOUBLE", lit("bytes"), `"AQ=="`, "!type"},
	})
}

func TestConvert_Decimals(t *testing.T) {
	nines := strings.Repeat("9", 38)
	vsd := sem("struct", "io.debezium.data.VariableScaleDecimal")
	checkConversions(t, nil, []conversion{
		{"DECIMAL(12, 2)", decimalSchema("2"), `"JxA="`, "100.00"},
		{"DECIMAL(12, 2)", decimalSchema("2"), `"AA=="`, "0.00"},
		{"DECIMAL(12, 2)", decimalSchema("2"), `""`, "0.00"},
		{"DECIMAL(12, 2)", decimalSchema("2"), `"/w=="`, "-0.01"},
		{"DECIMAL(12, 0)", decimalSchema("0"), `"AIA="`, "128"},
		{"DECIMAL(12, 0)", decimalSchema("0"), `"/4A="`, "-128"},
		{"DECIMAL(20, 0)", decimalSchema("0"), `"AKtUqYzrHwrS"`, "12345678901234567890"},
		{"DECIMAL(10, 4)", decimalSchema("2"), `"JxA="`, "100.0000"},
		{"DECIMAL(10, 1)", decimalSchema("2"), `"JxA="`, "100.0"},
		{"DECIMAL(10, 1)", decimalSchema("2"), `"JxE="`, "!range"},
		{"DECIMAL(4, 2)", decimalSchema("2"), `"JxA="`, "!range"},
		{"DECIMAL(5, 2)", sem("bytes", "shaded.org.apache.kafka.connect.data.Decimal"), `"AxY="`, "!type"}, // no scale: not a decimal
		{"DECIMAL(5, 2)", strings.Replace(decimalSchema("2"), "org.apache", "shaded.org.apache", 1), `"AxY="`, "7.90"},
		{"DECIMAL(10, 0)", decimalSchema("-2"), `"AQ=="`, "100"},
		{"DECIMAL(2, 0)", decimalSchema("-2"), `"AQ=="`, "!range"},
		{"DECIMAL(10, 0)", decimalSchema("-1000000"), `"AA=="`, "0"},
		{"DECIMAL(10, 0)", decimalSchema("-1000000"), `"AQ=="`, "!range"},
		{"DECIMAL(10, 0)", decimalSchema("1000000"), `"AQ=="`, "!range"},
		{"DECIMAL(12, 2)", decimalSchema("2"), "12.3", "12.30"},
		{"DECIMAL(12, 2)", decimalSchema("2"), "1e1", "10.00"},        // decimal.format=NUMERIC
		{"DECIMAL(12, 2)", decimalSchema("2"), `"1234"`, "-26588.24"}, // base64, since the schema says bytes
		{"DECIMAL(12, 2)", lit("string"), `"1234"`, "1234.00"},        // a numeral, since it says string
		{"DECIMAL(12, 2)", decimalSchema("2"), `"12.3"`, "!type"},     // a numeral is no base64
		{"DECIMAL(12, 2)", decimalSchema("2"), `"JxA"`, "!type"},
		{"DECIMAL(12, 2)", decimalSchema("2"), `"Jx\n="`, "!type"},
		{"DECIMAL(12, 2)", decimalSchema("2"), `"===="`, "!type"},
		{"DECIMAL(38, 0)", lit("string"), `"` + nines + `"`, nines},
		{"DECIMAL(38, 38)", lit("string"), `"-0.` + nines + `"`, "-0." + nines},
		{"DECIMAL(38, 0)", lit("string"), `"1` + nines + `"`, "!range"},
		{"DECIMAL(38, 10)", noPlain, "1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789"},
		{"DECIMAL(18, 9)", noPlain, "999999999.999999999", "999999999.999999999"},
		{"DECIMAL(18, 9)", noPlain, "1000000000", "!range"},
		{"DECIMAL(18, 9)", noPlain, "0.0000000001", "!range"},
		{"DECIMAL(10, 2)", lit("string"), `"12.3000"`, "12.30"},
		{"DECIMAL(10, 2)", lit("string"), `"12.301"`, "!range"},
		{"DECIMAL(10, 2)", lit("string"), `"+1.5"`, "1.50"},
		{"DECIMAL(10, 2)", lit("string"), `"1.5E2"`, "150.00"},
		{"DECIMAL(10, 2)", lit("string"), `"-0.00"`, "0.00"},
		{"DECIMAL(5, 0)", noPlain, "99999", "99999"},
		{"DECIMAL(5, 0)", noPlain, "100000", "!range"},
		{"DECIMAL(10, 2)", lit("string"), `"NAN"`, "!range"},
		{"DECIMAL(10, 2)", noPlain, `"POSITIVE_INFINITY"`, "!range"},
		{"DECIMAL(10, 2)", lit("string"), `"x"`, "!type"},
		{"DECIMAL(10, 2)", lit("string"), `""`, "!type"},
		{"DECIMAL(10, 2)", noPlain, `"12.50"`, "12.50"},
		{"DECIMAL(10, 2)", noPlain, "true", "!type"},
		{"DECIMAL(10, 2)", lit("double"), "0.1", "0.10"},
		{"DECIMAL(20, 0)", lit("double"), "1.2345678901234567e+19", "12345678901234567000"},
		{"DECIMAL(20, 0)", noPlain, "327267367867168100000", "!range"},
		{"DECIMAL(38, 0)", noPlain, "327267367867168100000", "327267367867168100000"},
		{"DECIMAL(38, 9)", vsd, `{"scale":9,"value":"J+QbMka+ybFuOYEV"}`, "12345678901234567890.123456789"},
		{"DECIMAL(10, 2)", vsd, `{"value":"AQ==","scale":0}`, "1.00"},
		{"DECIMAL(10, 2)", vsd, `{"scale":3,"value":"AQ=="}`, "!range"},
		{"DECIMAL(10, 2)", vsd, `{"scale":2}`, "!type"},
		{"DECIMAL(10, 2)", vsd, `{"scale":"2","value":"AQ=="}`, "!type"},
		{"DECIMAL(10, 2)", vsd, `{"scale":2147483647,"value":"AQ=="}`, "!type"},
		{"DECIMAL(10, 2)", noSchema, `{"scale":1,"value":"/w=="}`, "-0.10"},
		{"DECIMAL(10, 2)", noPlain, `{"scale":1,"value":"/w=="}`, "!type"},
		{"DECIMAL(10, 2)", lit("int64"), "5", "5.00"},
		{"DECIMAL(10, 2)", lit("bytes"), `"BNI="`, "!type"},
		{"DECIMAL(10, 2)", vsd, `{"scale":2,"value":"x"}`, "!type"},
		{"DOUBLE", vsd, `{"scale":2}`, "!type"},
		{"STRING", vsd, `{"scale":2,"value":"AQI"}`, "!type"},
		{"DECIMAL(10, 2)", vsd, `[1]`, "!type"},
		// more than 128 bits: exact if zeros can be cut, refused otherwise
		{"DECIMAL(38, 0)", decimalSchema("60"), `"` + huge("1"+strings.Repeat("0", 60)) + `"`, "1"},
		{"DECIMAL(38, 0)", decimalSchema("60"), `"` + huge("-5"+strings.Repeat("0", 60)) + `"`, "-5"},
		{"DECIMAL(38, 0)", decimalSchema("60"), `"` + huge("1"+strings.Repeat("0", 59)+"1") + `"`, "!range"},
		{"DECIMAL(38, 0)", decimalSchema("10"), `"` + huge(strings.Repeat("9", 50)) + `"`, "!range"},
		{"DECIMAL(38, 0)", decimalSchema("1000"), `"` + huge(strings.Repeat("9", 50)) + `"`, "!range"},
		{"DECIMAL(38, 0)", decimalSchema("0"), `"` + huge(strings.Repeat("9", 50)) + `"`, "!range"},
		{"DECIMAL(38, 0)", decimalSchema("900000"), `"` + huge("1"+strings.Repeat("0", 30_000)) + `"`, "!range"},
		{"STRING", decimalSchema("900000"), `"AQ=="`, "!range"},
		{"STRING", decimalSchema("0"), `"` + huge("1"+strings.Repeat("0", 30_000)) + `"`, "!range"},
	})
}

// huge is the base64 of a number's two's complement.
func huge(digits string) string {
	x, _ := new(big.Int).SetString(digits, 10)
	return base64.StdEncoding.EncodeToString(twosComplement(x))
}

func TestConvert_RefusesBase64DecimalsWithoutSchemaUnlessToldTheirScale(t *testing.T) {
	o := options(t, "x DECIMAL(12, 2)")
	_, err := mustNew(t, "debezium-json", o).Decode(record("null", `{"op":"c","after":{"x":"BNI="}}`), newBatch(o))
	require.ErrorContains(t, err, "source.decimals")
	require.ErrorContains(t, err, "decimal.handling.mode")
	checkConversions(t, nil, []conversion{{"DECIMAL(12, 2)", noSchema, `"BNI="`, "!type"}, {"DECIMAL(12, 2)", noSchema, `"12.34"`, "12.34"}, {"DECIMAL(12, 2)", noPlain, `"BNI="`, "!type"}})
	checkConversions(t, func(o *Options) { o.UnscaledDecimals = true }, []conversion{
		{"DECIMAL(12, 2)", noSchema, `"BNI="`, "12.34"},
		{"DECIMAL(38, 10)", noSchema, `"/w=="`, "-0.0000000001"},
		{"DECIMAL(12, 2)", noSchema, `"12.34"`, "!type"},
		{"DECIMAL(12, 2)", noSchema, `"1234"`, "-26588.24"},
		{"DECIMAL(3, 2)", noSchema, `"BNI="`, "!range"},
		{"DECIMAL(12, 2)", noSchema, "12.34", "12.34"},
		{"DECIMAL(12, 2)", lit("string"), `"12.34"`, "12.34"},
		{"BIGINT", noSchema, `"12"`, "12"},
		{"DECIMAL(12, 2)", noPlain, `"12.34"`, "12.34"},
	})
}

func TestConvert_RescalesDecimalsOfAnySizeExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.IntRange(1, 80).Draw(t, "digits")
		unscaled, _ := new(big.Int).SetString(rapid.StringMatching(fmt.Sprintf(`[0-9]{%d}`, digits)).Draw(t, "n"), 10)
		zeros := rapid.IntRange(0, 60).Draw(t, "zeros")
		unscaled.Mul(unscaled, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(zeros)), nil))
		if rapid.Bool().Draw(t, "negative") {
			unscaled.Neg(unscaled)
		}
		from := rapid.IntRange(-20, 120).Draw(t, "from")
		precision := rapid.IntRange(1, 38).Draw(t, "precision")
		to := rapid.IntRange(0, precision).Draw(t, "to")

		got, f := rescale(twosComplement(unscaled), from, precision, to)
		want := new(big.Rat).SetFrac(unscaled, big.NewInt(1))
		shift := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(to-from, from-to))), nil))
		if to >= from {
			want.Mul(want, shift)
		} else {
			want.Quo(want, shift)
		}
		limit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil))
		fits := want.IsInt() && new(big.Rat).Abs(want).Cmp(limit) < 0
		require.Equal(t, fits, f == nil, "%v scale %d to %d", unscaled, from, to)
		if fits {
			require.Zero(t, got.Big().Cmp(want.Num()))
		} else {
			require.Equal(t, ClassRange, f.class)
		}
	})
}

// twosComplement is java.math.BigInteger.toByteArray.
func twosComplement(x *big.Int) []byte {
	n := x.BitLen()/8 + 1
	if x.Sign() >= 0 {
		return x.FillBytes(make([]byte, n))
	}
	return new(big.Int).Add(x, new(big.Int).Lsh(big.NewInt(1), uint(8*n))).FillBytes(make([]byte, n))
}

func TestConvert_DecimalsOfAnySizeIntoText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unscaled, _ := new(big.Int).SetString(rapid.StringMatching(`-?[0-9]{1,60}`).Draw(t, "n"), 10)
		scale := rapid.IntRange(-10, 70).Draw(t, "scale")
		text := appendBigDecimal(nil, unscaled, scale)
		got, ok := new(big.Rat).SetString(string(text))
		require.True(t, ok, "%s", text)
		pow := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil))
		want := new(big.Rat).SetInt(unscaled)
		if scale > 0 {
			want.Quo(want, pow)
		} else {
			want.Mul(want, pow)
		}
		require.Zero(t, got.Cmp(want), "%s", text)
		if scale > 0 {
			require.Equal(t, scale, len(text)-strings.IndexByte(string(text), '.')-1)
		}
	})
}

func TestConvert_ShortFormsAgreeWithTheGeneralOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?`).Draw(t, "text")
		precision := rapid.IntRange(1, 38).Draw(t, "precision")
		scale := rapid.IntRange(0, precision).Draw(t, "scale")
		if n, ok := smallDecimal([]byte(text), precision, scale); ok {
			want, err := types.ParseDecimal([]byte(text), precision, scale)
			require.NoError(t, err, text)
			require.Equal(t, want, types.Int128From(n), text)
		}
		if x, ok := shortDouble([]byte(text)); ok {
			want, err := strconv.ParseFloat(text, 64)
			require.NoError(t, err)
			require.Equal(t, math.Float64bits(want), math.Float64bits(x), text)
		}
	})
}

func TestConvert_Text(t *testing.T) {
	checkConversions(t, nil, []conversion{
		{"STRING", lit("string"), `"a\u0000b"`, "a\x00b"},
		{"STRING", lit("string"), `"😀"`, "😀"},
		{"STRING", lit("string"), `""`, ""},
		{"VARCHAR(3)", lit("string"), `"äöü"`, "äöü"},
		{"VARCHAR(3)", lit("string"), `"äöüß"`, "!length"},
		{"CHAR(5)", lit("string"), `"ab   "`, "ab   "},
		{"CHAR(2)", lit("string"), `"abc"`, "!length"},
		{"VARCHAR(1)", lit("string"), `"😀"`, "😀"},
		{"VARCHAR(1)", lit("string"), `"\ud83d\ude00"`, "😀"},
		{"VARCHAR(1)", lit("string"), `"e\u0301"`, "!length"},
		{"STRING", lit("int64"), "9007199254740993", "9007199254740993"},
		{"STRING", noPlain, "1.50", "1.50"},
		{"STRING", lit("boolean"), "true", "true"},
		{"STRING", noPlain, "false", "false"},
		{"STRING", lit("array"), `[1, null,"x"]`, `[1, null,"x"]`},
		{"STRING", lit("map"), `{"a":"\u00e9"}`, `{"a":"\u00e9"}`},
		{"VARCHAR(3)", noPlain, "[1,2]", "!length"},
		{"STRING", sem("struct", "io.debezium.data.geometry.Point"), `{"x":1.0,"y":2.0}`, `{"x":1.0,"y":2.0}`},
		{"STRING", sem("array", "io.debezium.data.DoubleVector"), "[1.5,2.5]", "[1.5,2.5]"},
		{"STRING", sem("struct", "io.debezium.time.StructuredDate"), `{"year":1}`, `{"year":1}`},
		{"STRING", sem("string", "io.debezium.data.Json"), `"{\"a\": 1.50}"`, `{"a": 1.50}`},
		{"STRING", sem("string", "io.debezium.data.Enum"), `"c\\,d"`, `c\,d`},
		{"STRING", sem("string", "io.debezium.data.EnumSet"), `"a,b"`, "a,b"},
		{"STRING", sem("string", "io.debezium.data.Uuid"), `"3f2504e0-4f89-11d3-9a0c-0305e82c3301"`, "3f2504e0-4f89-11d3-9a0c-0305e82c3301"},
		{"STRING", sem("string", "io.debezium.time.Interval"), `"P1Y2M3DT4H5M6.78S"`, "P1Y2M3DT4H5M6.78S"},
		{"STRING", sem("string", "io.debezium.time.ZonedTime"), `"10:34:56.5Z"`, "10:34:56.5Z"},
		{"STRING", lit("bytes"), `"AP8Q"`, "AP8Q"},
		{"STRING", decimalSchema("2"), `"JxA="`, "100.00"},
		{"STRING", decimalSchema("-2"), `"AQ=="`, "100"},
		{"STRING", decimalSchema("2"), `"/w=="`, "-0.01"},
		{"STRING", decimalSchema("2"), "12.3", "12.3"},
		{"STRING", sem("struct", "io.debezium.data.VariableScaleDecimal"), `{"scale":9,"value":"J+QbMka+ybFuOYEV"}`, "12345678901234567890.123456789"},
		{"STRING", noSchema, `{"scale":9,"value":"AQ=="}`, `{"scale":9,"value":"AQ=="}`},
		{"STRING", bitsSchema("4"), `"Cg=="`, "1010"},
		{"STRING", bitsSchema("4"), `""`, "0000"},
		{"STRING", bitsSchema("12"), `"AQI="`, "001000000001"},
		{"STRING", bitsSchema("2147483647"), `"BQ=="`, "00000101"},
		{"STRING", noSchema, `"Cg=="`, "Cg=="},
		{"STRING", sem("int32", "io.debezium.time.Date"), "20706", "2026-09-10"},
		{"STRING", sem("int32", "io.debezium.time.Date"), "-719529", "-0001-12-31"},
		{"STRING", sem("int32", "io.debezium.time.Date"), "-2147472692", "infinity"},
		{"STRING", sem("int64", "io.debezium.time.MicroTime"), "45296123456", "12:34:56.123456"},
		{"STRING", sem("int64", "io.debezium.time.MicroTime"), "3020399000001", "838:59:59.000001"},
		{"STRING", sem("int64", "io.debezium.time.MicroTime"), "-1", "-00:00:00.000001"},
		{"STRING", sem("int64", "io.debezium.time.MicroTime"), "-9223372036854775808", "-2562047788:00:54.775808"},
		{"STRING", sem("int32", "io.debezium.time.Time"), "86400000", "24:00:00.000"},
		{"STRING", sem("int64", "io.debezium.time.NanoTime"), "1", "00:00:00.000000001"},
		{"STRING", sem("int64", "io.debezium.time.Timestamp"), "-1", "1969-12-31T23:59:59.999"},
		{"STRING", sem("int64", "io.debezium.time.MicroTimestamp"), "1690366967048491", "2023-07-26T10:22:47.048491"},
		{"STRING", sem("int64", "io.debezium.time.NanoTimestamp"), "-1", "1969-12-31T23:59:59.999999999"},
		{"STRING", sem("int64", "io.debezium.time.MicroTimestamp"), "9223372036825200000", "infinity"},
		{"STRING", sem("int64", "io.debezium.time.NanoTimestamp"), "-9223372036854775808", "-infinity"},
		{"STRING", sem("string", "io.debezium.time.ZonedTimestamp"), `"infinity"`, "infinity"},
		{"STRING", sem("int32", "io.debezium.time.Date"), "2147483648", "!range"},
		{"STRING", sem("int64", "io.debezium.time.Timestamp"), "9223372036854776", "!range"},
		{"STRING", sem("int64", "io.debezium.time.MicroTime"), "0.5", "!range"},
		{"STRING", sem("int64", "io.debezium.time.MicroTime"), "1e20", "!range"},
		{"STRING", sem("int64", "io.debezium.time.MicroTime"), "1e3", "00:00:00.001000"},
		{"STRING", bitsSchema("4"), `"x"`, "!type"},
		{"STRING", bitsSchema("100000"), `"AQ=="`, "!length"},
		{"STRING", decimalSchema("2"), `"x"`, "!type"},
		{"STRING", sem("string", "com.example.New"), `"v"`, "v"},
		{"STRING", sem("int64", "com.example.New"), "5", "5"},
	})
}

func TestConvert_Binary(t *testing.T) {
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\xff\x00", 500)))
	checkConversions(t, nil, []conversion{
		{"BYTES", lit("bytes"), `"AP8Q"`, "00ff10"},
		{"BYTES", lit("bytes"), `""`, ""},
		{"BYTES", lit("bytes"), `"` + long + `"`, strings.Repeat("ff00", 500)},
		{"VARBINARY(2)", lit("bytes"), `"AP8="`, "00ff"},
		{"VARBINARY(2)", lit("bytes"), `"AP8Q"`, "!length"},
		{"BINARY(4)", lit("bytes"), `"AQI="`, "01020000"},
		{"BINARY(2)", lit("bytes"), `"AP8Q"`, "!length"},
		{"BYTES", lit("bytes"), `"AP8"`, "!type"},
		{"BYTES", lit("bytes"), `"AP 8"`, "!type"},
		{"BYTES", lit("bytes"), `"AP8Q\nAP8"`, "!type"},
		{"BYTES", lit("bytes"), `"-_8="`, "!type"},
		{"BYTES", lit("bytes"), "1", "!type"},
		{"BYTES", noSchema, `"AP8Q"`, "00ff10"},
		{"BYTES", noPlain, `"3q2+7w=="`, "deadbeef"},
		{"BYTES", lit("string"), `"3q2+7w=="`, "deadbeef"},
		{"BYTES", noPlain, "[1]", "!type"},
		{"BINARY(16)", sem("string", "io.debezium.data.Uuid"), `"3F2504e0-4f89-11d3-9a0c-0305e82c3301"`, "3f2504e04f8911d39a0c0305e82c3301"},
		{"BINARY(16)", sem("string", "io.debezium.data.Uuid"), `"3f2504e04f89-11d3-9a0c-0305e82c330111"`, "!type"},
		{"BINARY(16)", sem("string", "io.debezium.data.Uuid"), `"x"`, "!type"},
		{"BYTES", bitsSchema("16"), `"AgE="`, "0102"},
		{"BYTES", bitsSchema("12"), `"AQ=="`, "0001"},
		{"BYTES", bitsSchema("4"), `""`, "00"},
		{"BYTES", bitsSchema("2147483647"), `"AgE="`, "0102"},
		{"VARBINARY(1)", bitsSchema("16"), `"AgE="`, "!length"},
		{"BYTES", bitsSchema("16"), `"x"`, "!type"},
		{"BYTES", bitsSchema("100000"), `"AQ=="`, "!length"},
		{"BINARY(16)", sem("string", "io.debezium.data.Uuid"), `"3f2504e0-4f89-11d3-9a0c-0305e82c330g"`, "!type"},
		{"BYTES", sem("struct", "io.debezium.data.geometry.Geometry"), `{"wkb":"AQ=="}`, "!type"},
		{"BYTES", decimalSchema("2"), `"AQ=="`, "!type"},
		{"BYTES", sem("int32", "io.debezium.time.Date"), "1", "!type"},
	})
	checkConversions(t, func(o *Options) { o.Binary = BinaryHex }, []conversion{
		{"BYTES", lit("string"), `"00fF10"`, "00ff10"},
		{"BYTES", noSchema, `"\\xdeadbeef"`, "deadbeef"},
		{"BYTES", noPlain, `"0xdeadbeef"`, "deadbeef"},
		{"BYTES", noPlain, `""`, ""},
		{"BYTES", noPlain, `"abc"`, "!type"},
		{"BYTES", noPlain, `"zz"`, "!type"},
		{"BYTES", lit("bytes"), `"AP8Q"`, "00ff10"},
	})
	checkConversions(t, func(o *Options) { o.Binary = BinaryBase64URL }, []conversion{
		{"BYTES", lit("string"), `"-_8="`, "fbff"},
		{"BYTES", lit("string"), `"+/8="`, "!type"},
		{"BYTES", lit("bytes"), `"+/8="`, "fbff"},
	})
}
