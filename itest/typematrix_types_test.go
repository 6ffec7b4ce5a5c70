//go:build itest

package itest

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"applier/storage/types"
)

// typeGroup is a set of column types that stand in one table: what an engine
// refuses makes all of a table unreadable for it.
type typeGroup struct {
	name  string
	types []string
	widen []widening
}

// widening is a legal change of a column's type. Values go through as they are in
// from, and after says what is read of them then, as to.
type widening struct {
	from, to string
	path     []string // inside of the column, for java and SQL; empty: the column itself
	leaf     string   // the type at the path, if there is one
	before   []string // none: the edges of from
	after    func(text string) string
	fresh    []string // values of new rows; none: the edges of to, or those of before
}

func typeGroups() []typeGroup {
	scalars := slices.DeleteFunc(slices.Clone(edgeTypes), hasNanos)
	nested := append(slices.Clone(nestedTypes), deepTypes...)
	for _, s := range scalars {
		nested = append(nested, "ARRAY<"+s+">")
	}
	return []typeGroup{
		{name: "scalars", types: scalars, widen: scalarWidenings()},
		{name: "nested", types: nested, widen: nestedWidenings()},
		{name: "nanoseconds", types: slices.DeleteFunc(slices.Clone(edgeTypes), func(s string) bool { return !hasNanos(s) }), widen: nanoWidenings()},
		{name: "multisets", types: []string{"MULTISET<STRING>", "MULTISET<INT>", "ARRAY<MULTISET<STRING>>"}},
		{name: "variants", types: []string{"VARIANT", "ROW<v VARIANT, n INT>", "ARRAY<VARIANT>"}},
	}
}

func hasNanos(text string) bool {
	t := mustType(text)
	return t.IsTimestamp() && t.Precision > 6
}

func mustType(text string) types.Type {
	t, err := types.ParseType(text)
	if err != nil {
		panic(err)
	}
	return t
}

// moreEdges are those of types that are no column of the other tests.
var moreEdges = map[string][]string{
	"CHAR(8)":       {`"        "`, `"a       "`, `"日本日本日本日本"`},
	"VARCHAR(8)":    {`""`, `"a    "`, `"日本日本日本日本"`},
	"VARCHAR(40)":   {`""`, `"` + strings.Repeat("😀", 40) + `"`},
	"BINARY(8)":     {`"0000000000000000"`, `"80000000000000ff"`},
	"VARBINARY(16)": {`""`, `"80000000000000ff00000000000000ff"`},

	"ARRAY<INT>":                                   {`[]`, `[null]`, `[1,null,-2147483648]`},
	"ARRAY<STRING>":                                {`[]`, `[""]`, `["日本",null,"a\"b"]`},
	"MAP<STRING, BIGINT>":                          {`{}`, `{"":null}`, `{"a":1,"日本":-9223372036854775808}`},
	"MAP<INT, DATE>":                               {`[]`, `[[-1,null],[2,"1969-12-31"]]`},
	"ROW<a INT, b ARRAY<DECIMAL(10, 2)>>":          {`{"a":null,"b":null}`, `{"a":1,"b":[]}`, `{"a":-1,"b":["-99999999.99",null,"0.01"]}`},
	"ARRAY<ROW<x DOUBLE, y TIMESTAMP(3)>>":         {`[]`, `[null]`, `[{"x":null,"y":null},{"x":"NaN","y":"1969-12-31T23:59:59.999"}]`, `[{"x":-0,"y":null}]`},
	"ARRAY<ARRAY<INT>>":                            {`[]`, `[[]]`, `[null,[1,null],[]]`},
	"MAP<STRING, ARRAY<ROW<a INT, b STRING>>>":     {`{}`, `{"k":null}`, `{"a":[],"b":[null,{"a":1,"b":null},{"a":null,"b":"x"}]}`},
	"ROW<r ROW<s ROW<t BIGINT, u ARRAY<STRING>>>>": {`{"r":null}`, `{"r":{"s":null}}`, `{"r":{"s":{"t":null,"u":null}}}`, `{"r":{"s":{"t":9223372036854775807,"u":["a",null]}}}`},
	"MAP<BIGINT, MAP<STRING, DOUBLE>>":             {`[]`, `[[1,null],[2,{}]]`, `[[-9223372036854775808,{"a":0.1,"b":null}]]`},
	"ARRAY<MAP<STRING, ROW<d DATE, f FLOAT>>>":     {`[]`, `[null,{}]`, `[{"a":null,"b":{"d":"0001-01-01","f":null}},{"c":{"d":null,"f":"-Infinity"}}]`},
	"ROW<a ARRAY<BYTES>, m MAP<DATE, BOOLEAN>>":    {`{"a":null,"m":null}`, `{"a":[],"m":[]}`, `{"a":["","00ff",null],"m":[["1582-10-15",true],["9999-12-31",null]]}`},

	"MULTISET<STRING>":        {`{}`, `{"":1}`, `{"a":1,"日本":2147483647}`},
	"MULTISET<INT>":           {`[]`, `[[-1,1],[7,3]]`},
	"ARRAY<MULTISET<STRING>>": {`[]`, `[null,{},{"a":2}]`},

	// Variants as they are stored: null, true, 5, "a", {"a":1}.
	"VARIANT": {
		`{"value":"00","metadata":"010000"}`, `{"value":"04","metadata":"010000"}`, `{"value":"0c05","metadata":"010000"}`,
		`{"value":"0561","metadata":"010000"}`, `{"value":"02010000020c01","metadata":"0101000161"}`,
	},
	"ROW<v VARIANT, n INT>": {`{"v":null,"n":null}`, `{"v":{"value":"0c05","metadata":"010000"},"n":1}`},
	"ARRAY<VARIANT>":        {`[]`, `[null,{"value":"02010000020c01","metadata":"0101000161"}]`},
}

// typeValues are the values that rows of a type go through, NULL not among them.
func typeValues(text string) []string {
	if v, ok := moreEdges[text]; ok {
		return v
	}
	if element, ok := strings.CutPrefix(text, "ARRAY<"); ok {
		edges := typeValues(strings.TrimSuffix(element, ">"))
		half := len(edges) / 2
		return []string{"[]", "[null," + strings.Join(edges[:half], ",") + "]", "[" + strings.Join(edges[half:], ",") + ",null]"}
	}
	return edgesOf(text)
}

// scalarWidenings are the changes of type that lose nothing: Java's implicit casts
// (those that are exact), and those to STRING.
func scalarWidenings() []widening {
	var out []widening
	for _, w := range []struct{ from, to string }{
		{"TINYINT", "SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL(3,0) DECIMAL(10,2) STRING"},
		{"SMALLINT", "INT BIGINT FLOAT DOUBLE DECIMAL(5,0) STRING"},
		{"INT", "BIGINT DOUBLE DECIMAL(10,0) DECIMAL(20,2) STRING"},
		{"BIGINT", "DECIMAL(19,0) DECIMAL(38,18) STRING"},
		{"FLOAT", "DOUBLE STRING"},
		{"DOUBLE", "STRING"},
		{"BOOLEAN", "STRING"},
		{"DATE", "STRING"},
		{"DECIMAL(5,0)", "DECIMAL(9,0) DECIMAL(9,2) DECIMAL(18,4) DECIMAL(38,18) STRING"},
		{"DECIMAL(9,2)", "DECIMAL(10,2) DECIMAL(18,4) DECIMAL(19,2) DECIMAL(38,18) STRING"},
		{"DECIMAL(18,4)", "DECIMAL(19,4) DECIMAL(38,18) STRING"},
		{"DECIMAL(19,19)", "DECIMAL(38,38)"},
		{"CHAR(5)", "CHAR(8) VARCHAR(8) STRING"},
		{"VARCHAR(20)", "VARCHAR(40) STRING"},
		{"BINARY(4)", "BINARY(8) VARBINARY(8) BYTES"},
		{"VARBINARY(8)", "VARBINARY(16) BYTES"},
		{"TIMESTAMP(0)", "TIMESTAMP(3) TIMESTAMP(6) STRING"},
		{"TIMESTAMP(3)", "TIMESTAMP(6) STRING"},
		{"TIMESTAMP(6)", "STRING"},
		{"TIMESTAMP(0) WITH LOCAL TIME ZONE", "TIMESTAMP(3)_LTZ TIMESTAMP(6)_LTZ"},
		{"TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP(6)_LTZ STRING"},
	} {
		out = append(out, widenings(w.from, w.to)...)
	}
	return out
}

func nanoWidenings() []widening {
	var out []widening
	for _, p := range []string{"0", "3", "6", "7"} {
		out = append(out, widenings("TIMESTAMP("+p+")", "TIMESTAMP(9)")...)
		out = append(out, widenings("TIMESTAMP("+p+") WITH LOCAL TIME ZONE", "TIMESTAMP(9)_LTZ")...)
	}
	return append(out, widenings("TIMESTAMP(9)", "STRING")...)
}

// widenings spells types out as Paimon does.
func widenings(from, to string) []widening {
	spell := strings.NewReplacer(",", ", ", "_LTZ", " WITH LOCAL TIME ZONE")
	from = spell.Replace(from)
	var out []widening
	for _, text := range strings.Fields(to) {
		text := spell.Replace(text)
		out = append(out, widening{from: from, to: text, after: func(v string) string { return widened(mustType(from), mustType(text), v) }})
	}
	return out
}

// nestedWidenings change what collections and rows consist of.
func nestedWidenings() []widening {
	return []widening{
		{from: "ARRAY<INT>", to: "ARRAY<BIGINT>", path: []string{"element"}, leaf: "BIGINT", fresh: []string{`[9223372036854775807,null]`}},
		{from: "MAP<STRING, INT>", to: "MAP<STRING, DOUBLE>", path: []string{"value"}, leaf: "DOUBLE", before: []string{`{}`, `{"a":-2147483648,"b":null}`}, fresh: []string{`{"a":0.1}`}},
		{
			from: "ROW<a INT, b STRING>", to: "ROW<a DECIMAL(12, 2), b STRING>", path: []string{"a"}, leaf: "DECIMAL(12, 2)",
			before: []string{`{"a":null,"b":null}`, `{"a":2147483647,"b":"x"}`}, fresh: []string{`{"a":"-9999999999.99","b":"y"}`},
			after: func(v string) string { return strings.Replace(v, `2147483647`, `"2147483647.00"`, 1) },
		},
		{
			from: "ARRAY<ROW<x FLOAT>>", to: "ARRAY<ROW<x DOUBLE>>", path: []string{"element", "x"}, leaf: "DOUBLE",
			before: []string{`[]`, `[null,{"x":0.1},{"x":null},{"x":"NaN"}]`}, fresh: []string{`[{"x":1.7976931348623157e+308}]`},
			after: func(v string) string { return strings.Replace(v, `0.1`, `0.10000000149011612`, 1) },
		},
		{
			from: "MAP<INT, ROW<x DECIMAL(9, 2)>>", to: "MAP<INT, ROW<x DECIMAL(38, 2)>>", path: []string{"value", "x"}, leaf: "DECIMAL(38, 2)",
			before: []string{`[]`, `[[1,{"x":"-9999999.99"}],[2,null]]`}, fresh: []string{`[[1,{"x":"999999999999999999999999999999999999.99"}]]`},
		},
	}
}

// widened is the text of a value under a type that its column was given, by the
// meaning of the types alone.
func widened(from, to types.Type, text string) string {
	plain := strings.Trim(text, `"`)
	switch {
	case text == "null":
		return text
	case to.Kind == types.VarChar && !from.IsText():
		return textOf(from, plain)
	case to.IsInteger(), to.Kind == types.Float, to.Kind == types.Double && from.IsInteger(), to.Kind == types.VarChar, to.Kind == types.VarBinary:
		return text
	case to.Kind == types.Double:
		return doubleOf(text)
	case to.Kind == types.Decimal:
		scale := 0
		if from.Kind == types.Decimal {
			scale = from.Scale
		}
		return `"` + padded(plain, scale, to.Scale, ".") + `"`
	case to.IsTimestamp():
		bare, zoned := strings.CutSuffix(plain, "Z")
		bare = padded(bare, from.Precision, to.Precision, ".")
		if zoned {
			bare += "Z"
		}
		return `"` + bare + `"`
	case to.Kind == types.Char:
		return `"` + plain + strings.Repeat(" ", to.Length-len([]rune(plain))) + `"`
	case to.Kind == types.Binary:
		return `"` + plain + strings.Repeat("00", to.Length-len(plain)/2) + `"`
	}
	panic(fmt.Sprintf("no widening from %s to %s", from, to))
}

// padded gives a number or time more digits behind its point.
func padded(text string, have, want int, point string) string {
	if have == 0 && want > 0 {
		text += point
	}
	return text + strings.Repeat("0", want-have)
}

// doubleOf is the DOUBLE that a FLOAT is.
func doubleOf(text string) string {
	f, err := strconv.ParseFloat(text, 32)
	if err != nil {
		return text // NaN and the infinities
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// textOf is the text that Paimon's Java makes of a value: SQL's, floats as Java
// prints them.
func textOf(from types.Type, plain string) string {
	switch from.Kind {
	case types.Float, types.Double:
		if s, ok := javaTexts[plain]; ok {
			plain = s
		}
	case types.Timestamp, types.TimestampLTZ:
		plain = strings.TrimSuffix(strings.Replace(plain, "T", " ", 1), "Z")
	}
	return `"` + plain + `"`
}

// javaTexts are Float.toString and Double.toString of the edges.
var javaTexts = map[string]string{
	"-0": "-0.0", "0": "0.0", "1e-45": "1.4E-45", "-1e-45": "-1.4E-45", "3.4028235e+38": "3.4028235E38", "-3.4028235e+38": "-3.4028235E38",
	"5e-324": "4.9E-324", "-5e-324": "-4.9E-324", "1.7976931348623157e+308": "1.7976931348623157E308", "-1.7976931348623157e+308": "-1.7976931348623157E308",
}

// sqlType spells a type as `applier sql` takes it in DDL; "" is one it has no
// word for.
func sqlType(t types.Type) string {
	switch t.Kind {
	case types.Binary, types.VarBinary, types.Timestamp, types.TimestampLTZ:
		return map[string]string{
			"BYTES": "BINARY", "TIMESTAMP(6)": "TIMESTAMP_NTZ", "TIMESTAMP(6) WITH LOCAL TIME ZONE": "TIMESTAMP",
		}[t.String()]
	case types.Multiset, types.Variant:
		return ""
	case types.Array, types.Map:
		inner, key := sqlType(*t.Elem), ""
		if t.Key != nil {
			if key = sqlType(*t.Key); key == "" {
				return ""
			}
			key += ", "
		}
		if inner == "" {
			return ""
		}
		return map[types.Kind]string{types.Array: "ARRAY", types.Map: "MAP"}[t.Kind] + "<" + key + inner + ">"
	case types.Row:
		var fields []string
		for _, f := range t.Fields {
			inner := sqlType(f.Type)
			if inner == "" {
				return ""
			}
			fields = append(fields, f.Name+": "+inner)
		}
		return "STRUCT<" + strings.Join(fields, ", ") + ">"
	}
	return t.String()
}
