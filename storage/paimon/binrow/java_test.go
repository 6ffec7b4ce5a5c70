package binrow

import (
	"bufio"
	"encoding/hex"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// javaRow is one line of testdata/java-rows.txt, written by JavaRows.java
// beside it with Paimon's own classes.
type javaRow struct {
	row                []byte
	hash, def          string
	modBucket, hiveOne string
}

func javaRows(t testing.TB) map[string]javaRow {
	f, err := os.Open("testdata/java-rows.txt")
	require.NoError(t, err)
	defer f.Close()
	m := map[string]javaRow{}
	for s := bufio.NewScanner(f); s.Scan(); {
		p := strings.Fields(s.Text())
		require.Len(t, p, 6)
		b, err := hex.DecodeString(p[1])
		require.NoError(t, err)
		m[p[0]] = javaRow{b, p[2], p[3], p[4], p[5]}
	}
	return m
}

func str(s string) types.Datum { return types.StringDatum(s) }

func dec38(s string, scale int) types.Datum {
	v, err := types.ParseDecimal([]byte(s), 38, scale)
	if err != nil {
		panic(err)
	}
	return types.Datum{D: v}
}

func dec10(s string) types.Datum { return types.IntDatum(int64(dec38(s, 2).D.Lo)) }

func list(l ...types.Datum) types.Datum { return types.Datum{L: append([]types.Datum{}, l...)} }

// namedRow is a row of JavaRows.java in our terms.
type namedRow struct {
	ts  []types.Type
	row []types.Datum
}

func scalarRows() map[string]namedRow {
	m := map[string]namedRow{"empty": {nil, nil}}
	one := func(name string, t types.Type, d types.Datum) { m[name] = namedRow{[]types.Type{t}, []types.Datum{d}} }
	i := types.IntDatum
	one("bool_true", types.BooleanType(), i(1))
	one("bool_false", types.BooleanType(), i(0))
	one("tinyint_min", types.TinyIntType(), i(-128))
	one("smallint_258", types.SmallIntType(), i(258))
	one("int_min", types.IntType(), i(math.MinInt32))
	one("int_-7", types.IntType(), i(-7))
	one("int_null", types.IntType(), types.Null)
	one("bigint_min", types.BigIntType(), i(math.MinInt64))
	one("bigint_big", types.BigIntType(), i(1234567890123))
	one("float_1.5", types.FloatType(), types.FloatDatum(1.5))
	one("float_-0", types.FloatType(), types.FloatDatum(math.Copysign(0, -1)))
	one("float_nan", types.FloatType(), types.FloatDatum(math.NaN()))
	one("double_-2.5", types.DoubleType(), types.FloatDatum(-2.5))
	one("double_0", types.DoubleType(), types.FloatDatum(0))
	one("double_-0", types.DoubleType(), types.FloatDatum(math.Copysign(0, -1)))
	one("double_nan", types.DoubleType(), types.FloatDatum(math.Float64frombits(0x7ff8000000000000)))
	one("date_20454", types.DateType(), i(20454))
	one("date_-719164", types.DateType(), i(-719164))
	one("time_3723000", types.TimeType(3), i(3723000))
	for name, s := range map[string]string{
		"string_0": "", "string_1": "", "string_7": "äbcdef", "string_8": "äbcdefg",
		"string_9": "äbcdefgh", "string_16": "äbcdefghijklmno", "string_17": "äbcdefghijklmnop",
	} {
		one(name, types.StringType(), str(s))
	}
	one("char_5", types.CharType(5), str("ab   "))
	one("bytes_ff", types.BytesType(), types.BytesDatum([]byte{0xff, 0, 127}))
	one("bytes_long", types.BytesType(), types.BytesDatum([]byte{255, 254, 253, 252, 251, 250, 249, 248, 247}))
	one("string_null", types.StringType(), types.Null)
	for _, s := range []string{"0", "12345.67", "-12345.67", "100", "-0.10"} {
		one("decimal10_"+s, types.DecimalType(10, 2), dec10(s))
		one("decimal20_"+s, types.DecimalType(20, 2), dec38(s, 2))
	}
	one("decimal38_max", types.DecimalType(38, 0), dec38(strings.Repeat("9", 38), 0))
	one("decimal38_min", types.DecimalType(38, 18), dec38("-"+strings.Repeat("9", 20)+"."+strings.Repeat("9", 18), 18))
	one("decimal38_-128", types.DecimalType(38, 0), dec38("-128", 0))
	one("decimal38_128", types.DecimalType(38, 0), dec38("128", 0))
	one("decimal20_null", types.DecimalType(20, 2), types.Null)
	one("decimal18_null", types.DecimalType(18, 2), types.Null)
	for p, ts := range map[string]types.Datum{"0": i(1767225600123000), "3": i(1767225600123000), "6": i(1767225600123456), "9": {I: 1767225600123456, N: 789}} {
		prec := int(p[0] - '0')
		one("ts"+p, types.TimestampType(prec), ts)
		neg := i(-1000)
		if prec > 3 {
			neg = i(-1)
		}
		one("ltz"+p+"_neg", types.TimestampLTZType(prec), neg)
		one("ts"+p+"_null", types.TimestampType(prec), types.Null)
	}
	return m
}

func severalFieldRows() map[string]namedRow {
	i, s := types.IntType(), types.StringType()
	wide := namedRow{}
	for k := range 60 {
		wide.ts = append(wide.ts, i)
		d := types.IntDatum(int64(k))
		if k%3 == 0 {
			d = types.Null
		}
		wide.row = append(wide.row, d)
	}
	return map[string]namedRow{
		"int_string": {[]types.Type{i, s}, []types.Datum{types.IntDatum(42), str("hello-world")}},
		"partition":  {[]types.Type{s, i}, []types.Datum{str("20260101"), types.IntDatum(5)}},
		"mixed": {
			[]types.Type{i, s, types.DecimalType(20, 2), types.TimestampType(6), s},
			[]types.Datum{types.Null, str("abc"), dec38("12345.67", 2), types.IntDatum(1767225600123456), str("8chars!!")},
		},
		"null_between": {
			[]types.Type{s, types.DecimalType(38, 18), types.TimestampType(9), s},
			[]types.Datum{str("a long text"), types.Null, types.Null, str("another one")},
		},
		"wide_60": wide,
	}
}

func nestedRows() map[string]namedRow {
	m := map[string]namedRow{}
	one := func(name string, t types.Type, d types.Datum) { m[name] = namedRow{[]types.Type{t}, []types.Datum{d}} }
	i, n := types.IntDatum, types.Null
	one("array_int", types.ArrayType(types.IntType()), list(i(1), n, i(3)))
	one("array_empty", types.ArrayType(types.IntType()), list())
	one("array_bool", types.ArrayType(types.BooleanType()), list(i(1), n, i(0)))
	one("array_smallint", types.ArrayType(types.SmallIntType()), list(i(1), i(-1), n))
	one("array_string", types.ArrayType(types.StringType()), list(str("a"), n, str("longer than 7"), str("")))
	one("array_decimal", types.ArrayType(types.DecimalType(20, 2)), list(dec38("1.50", 2), n, dec38("-2.25", 2)))
	one("array_decimal10", types.ArrayType(types.DecimalType(10, 2)), list(dec10("1.50"), n))
	one("array_ts6", types.ArrayType(types.TimestampType(6)), list(i(5007), n))
	forty := types.Datum{}
	for range 40 {
		forty.L = append(forty.L, n)
	}
	one("array_40", types.ArrayType(types.BigIntType()), forty)
	one("array_array", types.ArrayType(types.ArrayType(types.IntType())), list(list(i(1), i(2)), n, list()))
	one("map_one", types.MapType(types.StringType(), types.IntType()), list(str("k1"), i(10)))
	one("map_two", types.MapType(types.StringType(), types.IntType()), list(str("k1"), i(10), str("a longer key"), n))
	one("multiset", types.MultisetType(types.StringType()), list(str("x"), i(2)))
	rt := types.RowType(types.Field{ID: 0, Name: "a", Type: types.IntType()}, types.Field{ID: 1, Name: "b", Type: types.StringType()},
		types.Field{ID: 2, Name: "c", Type: types.DecimalType(20, 2)})
	one("row", rt, list(i(7), str("a longer text"), n))
	one("array_row", types.ArrayType(rt), list(list(n, str("x"), dec38("1", 2)), n))
	one("variant", types.Type{Kind: types.Variant},
		list(types.BytesDatum([]byte{2, 1, 0, 0, 2, 0x0c, 1}), types.BytesDatum([]byte{1, 1, 0, 1, 'a'})))
	return m
}

func allRows() map[string]namedRow {
	m := scalarRows()
	for _, more := range []map[string]namedRow{severalFieldRows(), nestedRows()} {
		for k, v := range more {
			m[k] = v
		}
	}
	return m
}
