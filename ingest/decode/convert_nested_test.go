package decode

import (
	"fmt"
	"math"
	"testing"

	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func arraySchema(items string) string { return `{"type":"array","items":` + items + `}` }

func mapSchema(keys, values string) string {
	return `{"type":"map","keys":` + keys + `,"values":` + values + `}`
}

func structSchema(fields ...string) string {
	text := `{"type":"struct","fields":[`
	for i, f := range fields {
		if i > 0 {
			text += ","
		}
		text += f
	}
	return text + "]}"
}

func field(name, schema string) string { return schema[:len(schema)-1] + `,"field":"` + name + `"}` }

func TestConvert_Arrays(t *testing.T) {
	checkConversions(t, nil, []conversion{
		{"ARRAY<INT>", lit("array"), "[1, 2 ,3]", "[1,2,3]"},
		{"ARRAY<INT>", noPlain, "[ ]", "[]"},
		{"ARRAY<INT>", noPlain, "[null,1]", "[null,1]"},
		{"ARRAY<INT NOT NULL>", noPlain, "[1,null]", "!not_null"},
		{"ARRAY<INT>", noPlain, `["x"]`, "!type"},
		{"ARRAY<TINYINT>", noPlain, "[1,300]", "!range"},
		{"ARRAY<INT>", noPlain, `{"a":1}`, "!type"},
		{"ARRAY<INT>", noPlain, "1", "!type"},
		{"ARRAY<ARRAY<STRING>>", noPlain, `[["a\"b"],null,[]]`, `[["a\"b"],null,[]]`},
		{"ARRAY<DATE>", arraySchema(sem("int32", "io.debezium.time.Date")), "[0,null,19000]", `["1970-01-01",null,"2022-01-08"]`},
		{"ARRAY<TIMESTAMP(6)>", arraySchema(sem("int64", "io.debezium.time.MicroTimestamp")), "[1]", `["1970-01-01T00:00:00.000001"]`},
		{"ARRAY<DECIMAL(12, 2)>", arraySchema(decimalSchema("2")), `["AQ=="]`, `["0.01"]`},
		{"STRING", arraySchema(lit("int32")), "[1, 2]", "[1, 2]"},
	})
}

func TestConvert_Maps(t *testing.T) {
	checkConversions(t, nil, []conversion{
		{"MAP<STRING, INT>", noPlain, `{"b":1, "a":null}`, `{"b":1,"a":null}`},
		{"MAP<STRING, INT>", noPlain, `{}`, `{}`},
		{"MAP<STRING, INT>", noPlain, `[["a",1]]`, `{"a":1}`},
		{"MAP<STRING, INT>", noPlain, `{"a":1,"a":2}`, "!type"},
		{"MAP<STRING, INT>", noPlain, `{"a":1,"\u0061":2}`, "!type"},
		{"MAP<STRING, INT NOT NULL>", noPlain, `{"a":null}`, "!not_null"},
		{"MAP<STRING, INT>", noPlain, `[["a",1],["a",2]]`, "!type"},
		{"MAP<STRING, INT>", noPlain, `[[null,1]]`, "!not_null"},
		{"MAP<STRING, INT>", noPlain, `[["a"]]`, "!type"},
		{"MAP<STRING, INT>", noPlain, `[["a",1,2]]`, "!type"},
		{"MAP<STRING, INT>", noPlain, `["a"]`, "!type"},
		{"MAP<INT, STRING>", mapSchema(lit("int32"), lit("string")), `[[1,"x"],[2,null]]`, `[[1,"x"],[2,null]]`},
		{"MAP<INT, STRING>", noPlain, `{"1":"x"}`, `[[1,"x"]]`},
		{"MAP<INT, STRING>", mapSchema(lit("int32"), lit("string")), `{"1":"x"}`, "!type"},
		{"MAP<DATE, ARRAY<INT>>", noPlain, `[["2024-01-02",[1]]]`, `[["2024-01-02",[1]]]`},
		{"MULTISET<STRING>", noPlain, `{"a":2,"b":1}`, `{"a":2,"b":1}`},
		{"MULTISET<STRING>", noPlain, `{"a":0}`, "!range"},
		{"MULTISET<INT>", noPlain, `[[7,2]]`, `[[7,2]]`},
	})
}

func TestConvert_MapsOfManyKeysNoticeADuplicate(t *testing.T) {
	text := "["
	for i := range 40 {
		text += fmt.Sprintf(`["k%d",%d],`, i, i)
	}
	require.Equal(t, "!type", convertCell(t, "MAP<STRING, INT>", noPlain, text+`["k17",1]]`, nil))
	require.Contains(t, convertCell(t, "MAP<STRING, INT>", noPlain, text+`["k40",1]]`, nil), `"k40":1`)
}

func TestConvert_Rows(t *testing.T) {
	checkConversions(t, nil, []conversion{
		{"ROW<a INT, b STRING>", noPlain, `{"b":"x","a":1}`, `{"a":1,"b":"x"}`},
		{"ROW<a INT, b STRING>", noPlain, `{"a":1}`, `{"a":1,"b":null}`},
		{"ROW<a INT, b STRING>", noPlain, `{}`, `{"a":null,"b":null}`},
		{"ROW<a INT NOT NULL, b STRING>", noPlain, `{"b":"x"}`, "!not_null"},
		{"ROW<a INT NOT NULL>", noPlain, `{"a":null}`, "!not_null"},
		{"ROW<a INT>", noPlain, `{"a":1,"other":{"x":[1]}}`, `{"a":1}`},
		{"ROW<a INT>", noPlain, `{"a":1,"a":2}`, "!syntax"},
		{"ROW<a INT>", noPlain, `[1]`, "!type"},
		{"ROW<a ROW<b ARRAY<INT>>>", noPlain, `{"a":{"b":[1]}}`, `{"a":{"b":[1]}}`},
		{"ROW<d DATE>", structSchema(field("d", sem("int32", "io.debezium.time.Date"))), `{"d":1}`, `{"d":"1970-01-02"}`},
		{"ROW<wkb BYTES, srid INT>", sem("struct", "io.debezium.data.geometry.Geometry"), `{"wkb":"AQ==","srid":null}`, `{"wkb":"01","srid":null}`},
		{"DATE", sem("struct", "io.debezium.time.StructuredDate"), `{"year":1}`, "!unsupported"},
		{"VARIANT", noPlain, `{"a":1}`, "!unsupported"},
	})
}

func TestConvert_NestedMembersWithoutAFieldAreReportedByTheirPath(t *testing.T) {
	o := options(t, "id INT; x ROW<a ARRAY<ROW<b INT>>>")
	d := mustNew(t, "json", o)
	_, err := d.Decode(record("null", `{"id":1,"x":{"a":[{"b":1,"c":2}],"z":3}}`), newBatch(o))
	require.NoError(t, err)
	require.Equal(t, []string{"x.a.element.c", "x.z"}, d.UnknownColumns())
}

func TestConvert_AFaultInsideANestedValueLeavesTheBatchAsItWas(t *testing.T) {
	o := options(t, "id INT; x ROW<a ARRAY<MAP<STRING, INT>>, b INT>")
	d, out := mustNew(t, "json", o), newBatch(o)
	good := `{"id":1,"x":{"a":[{"k":1},{}],"b":2}}`
	for range 3 {
		_, err := d.Decode(record("null", good), out)
		require.NoError(t, err)
		_, err = d.Decode(record("null", `{"id":1,"x":{"b":1,"a":[{"k":1},{"k":2,"l":"x"}]}}`), out)
		require.Error(t, err)
	}
	require.Equal(t, 3, out.Len())
	for i := range 3 {
		require.Equal(t, `{"a":[{"k":1},{}],"b":2}`, cellText(&out.Cols[1], i))
	}
}

// drawNested draws a type whose values have a JSON form that says all of them.
func drawNested(t *rapid.T, depth int) types.Type {
	atoms := []types.Type{
		types.BooleanType(), types.IntType(), types.BigIntType(), types.DoubleType(), types.StringType(), types.BytesType(),
		types.DateType(), types.TimeType(3), types.TimestampType(6), types.TimestampLTZType(9), types.DecimalType(20, 3),
	}
	typ := rapid.SampledFrom(atoms).Draw(t, "atom")
	if depth > 0 {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			typ = types.ArrayType(drawNested(t, depth-1))
		case 1:
			typ = types.MapType(rapid.SampledFrom(atoms).Draw(t, "key").NonNull(), drawNested(t, depth-1))
		case 2:
			typ = types.MultisetType(rapid.SampledFrom(atoms).Draw(t, "element").NonNull())
		case 3:
			typ = types.RowType()
			for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
				typ.Fields = append(typ.Fields, types.Field{ID: i, Name: string(rune('a' + i)), Type: drawNested(t, depth-1)})
			}
		}
	}
	typ.NotNull = rapid.Bool().Draw(t, "not null")
	return typ
}

func drawNestedValue(t *rapid.T, typ types.Type) types.Datum {
	if !typ.NotNull && rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return types.Null
	}
	switch typ.Kind {
	case types.Array:
		d := types.Datum{L: []types.Datum{}}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			d.L = append(d.L, drawNestedValue(t, *typ.Elem))
		}
		return d
	case types.Map, types.Multiset:
		return drawEntries(t, typ)
	case types.Row:
		d := types.Datum{}
		for _, f := range typ.Fields {
			d.L = append(d.L, drawNestedValue(t, f.Type))
		}
		return d
	case types.Boolean:
		return types.BoolDatum(rapid.Bool().Draw(t, "bool"))
	case types.Double:
		return types.FloatDatum(rapid.SampledFrom([]float64{0, 1.5, -2e300, math.Inf(1), 1e-7}).Draw(t, "double"))
	case types.VarChar:
		return types.StringDatum(rapid.SampledFrom([]string{"", "a", "\"\\\n", "é日", "null"}).Draw(t, "text"))
	case types.VarBinary:
		return types.BytesDatum(rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "bytes"))
	case types.Time:
		return types.IntDatum(rapid.Int64Range(0, 86_399_999).Draw(t, "time"))
	case types.Decimal:
		return types.Datum{D: types.Int128From(rapid.Int64().Draw(t, "decimal"))}
	case types.BigInt:
		return types.IntDatum(rapid.Int64().Draw(t, "long"))
	case types.TimestampLTZ:
		return types.Datum{I: rapid.Int64Range(-1e15, 1e15).Draw(t, "micros"), N: rapid.Int32Range(0, 999).Draw(t, "nanos")}
	case types.Date:
		return types.IntDatum(rapid.Int64Range(-700_000, 2_000_000).Draw(t, "days"))
	}
	return types.IntDatum(rapid.Int64Range(math.MinInt32, math.MaxInt32).Draw(t, "int"))
}

func drawEntries(t *rapid.T, typ types.Type) types.Datum {
	key, value := typ.Key, typ.Elem
	if typ.Kind == types.Multiset {
		key = typ.Elem
	}
	d := types.Datum{L: []types.Datum{}}
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		k := drawNestedValue(t, *key)
		for i := 0; i < len(d.L); i += 2 {
			if types.CompareDatums(*key, d.L[i], k) == 0 {
				return d
			}
		}
		v := types.IntDatum(1)
		if typ.Kind == types.Map {
			v = drawNestedValue(t, *value)
		}
		d.L = append(d.L, k, v)
	}
	return d
}

// TestConvert_NestedValuesReadBackFromTheJSONThatShowsThem: what cat prints is
// one of the forms that records may have.
func TestConvert_NestedValuesReadBackFromTheJSONThatShowsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := drawNested(t, 3).Nullable()
		o := Options{
			Fields: []types.Field{{Name: "id", Type: types.IntType()}, {ID: 1, Name: "x", Type: typ}},
			Key:    []int{0}, Binary: BinaryHex,
		}
		d, out := mustNew(t, "json", o), newBatch(o)
		var want []string
		for range rapid.IntRange(1, 3).Draw(t, "rows") {
			text := string(types.AppendJSON(nil, typ, drawNestedValue(t, typ)))
			_, err := d.Decode(record("null", `{"id":1,"x":`+text+`}`), out)
			require.NoError(t, err, "%s as %s", text, typ)
			want = append(want, text)
		}
		for i, text := range want {
			require.Equal(t, text, string(types.AppendJSON(nil, typ, out.Cols[1].Datum(i))))
		}
	})
}
