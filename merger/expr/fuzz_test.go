package expr

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// fuzzColumns are columns of all types, named a to z by their place.
func fuzzColumns() (cols []Column) {
	list := []Type{
		tInt, tString, structOf(Field{Name: "x", Type: arrayOf(tDouble)}), tBool, tByte, tShort, tLong, tFloat, tDouble,
		{Kind: Decimal, Precision: 9, Scale: 2},
		{Kind: Decimal, Precision: 38, Scale: 18},
		tBinary, tDate,
		{Kind: Timestamp},
		{Kind: TimestampNTZ},
		arrayOf(tInt), arrayOf(arrayOf(tString)),
		mapOf(tString, tInt), mapOf(tInt, arrayOf(tString)), structOf(Field{Name: "y", Type: tString}, Field{Name: "z", Type: mapOf(tString, tDate)}),
	}
	for i, t := range list {
		cols = append(cols, Column{Name: string(rune('a' + i)), Type: t, Slot: i})
	}
	return cols
}

// fuzzValue makes a value of a type, often one at its edge.
func fuzzValue(r *rand.Rand, t Type, depth int) types.Datum {
	if r.IntN(6) == 0 {
		return types.Null
	}
	switch t.Kind {
	case Boolean:
		return types.BoolDatum(r.IntN(2) == 0)
	case Float, Double:
		f := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1.5, 1e300, -1e-300, r.NormFloat64() * 1e6}[r.IntN(9)]
		if t.Kind == Float {
			f = float64(float32(f))
		}
		return types.FloatDatum(f)
	case Decimal:
		return decimalDatum(t, new(big.Int).Mod(new(big.Int).Mul(big.NewInt(r.Int64()), big.NewInt(r.Int64())), bigPow10(t.Precision)))
	case String:
		return types.StringDatum([]string{"", "x", "a%_b", "ä€😀", "2024-02-29 12:30:00", "-17.50", "true", "{\"a\":[1,null]}", " pad ", "\x00\n"}[r.IntN(10)])
	case Binary:
		return types.BytesDatum([]byte{0xff, 0, byte(r.IntN(256))}[:r.IntN(4)])
	case Date:
		return types.IntDatum(r.Int64N(3652059) - 719162)
	case Timestamp, TimestampNTZ:
		return types.IntDatum(r.Int64N(315537897600000000) - 62135596800000000)
	case Struct:
		d := types.Datum{L: make([]types.Datum, len(t.Fields))}
		for i := range d.L {
			d.L[i] = fuzzValue(r, t.Fields[i].Type, depth+1)
		}
		return d
	case Array:
		d := types.Datum{L: make([]types.Datum, r.IntN(4))}
		for i := range d.L {
			d.L[i] = fuzzValue(r, *t.Elem, depth+1)
		}
		return d
	case Map:
		return fuzzMap(r, t, depth)
	}
	return types.IntDatum([]int64{minOf(t), maxOf(t), 0, -1, 1, r.Int64N(1000)%maxOf(t) - 5}[r.IntN(6)])
}

// fuzzMap makes a map of different keys.
func fuzzMap(r *rand.Rand, t Type, depth int) types.Datum {
	var d types.Datum
	seen := map[string]bool{}
	for range r.IntN(4) {
		k := fuzzValue(r, *t.Key, depth+1)
		if key := string(GroupKey(nil, *t.Key, k)); !k.Null && !seen[key] {
			seen[key] = true
			d.L = append(d.L, k, fuzzValue(r, *t.Elem, depth+1))
		}
	}
	return d
}

// size counts what a value holds: bytes and elements.
func size(d types.Datum) int {
	n := 1 + len(d.B)
	for _, item := range d.L {
		n += size(item)
	}
	return n
}

// FuzzEval compiles and evaluates any text on random rows of all types, and on the
// constant row that they become where a statement folds: errors are *Error, nothing
// panics, and time and results are bounded.
func FuzzEval(f *testing.F) {
	for i, r := range readRecorded(f, "testdata/expressions.jsonl.gz") {
		if i%16 == 0 { // all of them take a smoke run's time
			f.Add(r.Expr, uint64(i))
		}
	}
	for i, s := range []string{
		"repeat(repeat('abcdefgh', 10000), 10000)", "sequence(1, 9223372036854775807)", "lpad('a', 2147483647, 'b')", "array_repeat(array_repeat(1, 1000), 100000)",
		"space(2147483647)", "regexp_replace(repeat('a', 10000), '', repeat('b', 10000))", "CAST('1e999999999' AS DECIMAL(38,0))",
		"transform(sequence(1, 1000), x -> transform(sequence(1, 10), y -> x))", "format_string('%2000000000d', 1)", "round(1e300D, 400)",
		"power(1e300D, 1e300D)", "c.x[0] + a", "map(map(1, 2), 3)", "conv(repeat('z', 100000), 36, 2)", "levenshtein(repeat('a', 100000), repeat('b', 100000))",
		"transform(sequence(1, 100000), x -> repeat('a', 10000000))", "aggregate(sequence(1, 100000), '', (s, x) -> s || repeat('b', 1000))",
		"concat_ws(b, transform(sequence(1, 1000), x -> repeat('a', 16000000)))", "flatten(array_repeat(array_repeat(b, 1000000), 1000000))",
		"sequence(m, date_add(m, 2147483647))", "sequence(n, n + INTERVAL 1000000 DAYS, INTERVAL 1 MICROSECOND)", "array_distinct(transform(sequence(1, 300000), x -> x % 7))",
		"element_at(r, b) + o[a]", "t.z[b] - m", "j + k * i", "CAST(p AS STRING) || CAST(r AS STRING) || CAST(t AS STRING)", "to_json(t)", "from_json(b, 'a ARRAY<INT>')",
		"rpad(b, a, b)", "substring(b, e, f)", "overlay(b PLACING b FROM a FOR g)", "date_format(n, b)", "n + make_interval(a, e, f)", "filter(q, x -> size(x) > a)",
		"split(repeat('a,', 1000000), ',')", "regexp_extract_all(repeat('ab', 100000), '(a)(b)', 2)", "rlike(repeat('a', 50000), '(a+)+$')", "map_from_arrays(sequence(1, 300000), sequence(1, 300000))",
		"translate(repeat('a', 1000000), repeat('a', 1000000), b)", "str_to_map(repeat('a:b,', 300000))", "soundex(b)", "bin(g)", "hex(l)", "unhex(b)", "factorial(a)",
	} {
		f.Add(s, uint64(i))
	}
	scope := &Scope{Env: recordedEnv(), Columns: fuzzColumns()}
	f.Fuzz(func(t *testing.T, src string, seed uint64) {
		if len(src) > 400 {
			return
		}
		ast, err := sqlparse.ParseExpr(src)
		if err != nil {
			return
		}
		start := time.Now()
		x, err := Compile(ast, scope)
		isOurs(t, src, err)
		if err != nil {
			return
		}
		r := rand.New(rand.NewPCG(seed, 1))
		for range 3 {
			row := make(Row, len(scope.Columns))
			for i, c := range scope.Columns {
				row[i] = fuzzValue(r, c.Type, 0)
			}
			d, err := x.Eval(row)
			isOurs(t, src, err)
			if err != nil || d.Null {
				continue
			}
			if n := size(d); n > 256<<20 {
				t.Fatalf("%s makes a value of %d bytes and elements", src, n)
			}
			_ = Text(x.Type(), d, nil)
			_ = AppendJSON(nil, x.Type(), d)
		}
		if took := time.Since(start); took > 30*time.Second { // of a machine that does other work
			t.Fatalf("%s took %s", src, took)
		}
	})
}

func isOurs(t *testing.T, src string, err error) {
	var e *Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%s: %T %v is no *Error", src, err, err)
	}
}
