package expr

import (
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// scalarTypes are the types that values are drawn of.
var scalarTypes = []Type{
	tBool, tByte, tShort, tInt, tLong, tFloat, tDouble, decimalOf(9, 2), decimalOf(38, 10), tString, tBinary, tDate, tStamp, tNTZ,
	tDayTime, tYearMon,
}

func drawType(t *rapid.T, depth int) Type {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "nest") > 0 {
		return rapid.SampledFrom(scalarTypes).Draw(t, "type")
	}
	if rapid.Bool().Draw(t, "array") {
		return arrayOf(drawType(t, depth-1))
	}
	return structOf(Field{Name: "x", Type: drawType(t, depth-1)}, Field{Name: "y", Type: drawType(t, depth-1)})
}

// drawValue draws a value of a type, edges and NULL often among them.
func drawValue(t *rapid.T, typ Type, null bool) types.Datum {
	if null && rapid.IntRange(0, 5).Draw(t, "null") == 0 {
		return types.Null
	}
	switch typ.Kind {
	case Boolean:
		return types.BoolDatum(rapid.Bool().Draw(t, "bool"))
	case Float, Double:
		f := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1.5})).Draw(t, "float")
		if typ.Kind == Float {
			f = float64(float32(f))
		}
		return types.FloatDatum(f)
	case Decimal:
		return decimalDatum(typ, drawDigits(t, typ.Precision))
	case String:
		return types.StringDatum(rapid.StringN(0, 6, 24).Draw(t, "text"))
	case Binary:
		return types.BytesDatum(rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "bytes"))
	case Date:
		return types.IntDatum(rapid.Int64Range(-719162, 2932896).Draw(t, "days"))
	case Timestamp, TimestampNTZ:
		return types.IntDatum(rapid.Int64Range(-62135596800000000, 253402300799999999).Draw(t, "micros"))
	case Array, Struct:
		n := len(typ.Fields)
		if typ.Kind == Array {
			n = rapid.IntRange(0, 3).Draw(t, "n")
		}
		d := types.Datum{L: make([]types.Datum, n)}
		for i := range d.L {
			d.L[i] = drawValue(t, typ.item(i), true)
		}
		return d
	}
	return types.IntDatum(rapid.OneOf(rapid.Int64Range(minOf(typ), maxOf(typ)), rapid.SampledFrom([]int64{minOf(typ), maxOf(typ), 0, -1, 1})).Draw(t, "int"))
}

func drawDigits(t *rapid.T, precision int) *big.Int {
	s := rapid.StringMatching(`-?[0-9]{1,38}`).Draw(t, "digits")
	if neg := strings.HasPrefix(s, "-"); len(s) > precision {
		s = s[:precision]
		if neg && len(s) == 1 {
			s = "-1"
		}
	}
	v, _ := new(big.Int).SetString(s, 10)
	return v
}

func TestCompareNullable_IsATotalOrderAndGroupKeyItsEquality(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := drawType(t, 2)
		a, b, c := drawValue(t, typ, true), drawValue(t, typ, true), drawValue(t, typ, true)
		ab, ba := CompareNullable(typ, a, b), CompareNullable(typ, b, a)
		if ab != -ba {
			t.Fatalf("%v and %v of %s: %d one way, %d the other", a, b, typ, ab, ba)
		}
		if CompareNullable(typ, a, a) != 0 {
			t.Fatalf("%v of %s does not equal itself", a, typ)
		}
		if ab <= 0 && CompareNullable(typ, b, c) <= 0 && CompareNullable(typ, a, c) > 0 {
			t.Fatalf("the order of %v, %v, %v of %s is not transitive", a, b, c, typ)
		}
		if same := string(GroupKey(nil, typ, a)) == string(GroupKey(nil, typ, b)); same != (ab == 0) {
			t.Fatalf("%v and %v of %s: equal %v, keys equal %v", a, b, typ, ab == 0, same)
		}
	})
}

func TestCaster_ReadsBackWhatItWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(scalarTypes).Draw(t, "type")
		d := drawValue(t, typ, false)
		zone := rapid.SampledFrom([]string{"UTC", "+05:30"}).Draw(t, "zone")
		loc, _ := zoneOf(zone)
		env := &Env{Zone: loc}
		text, err := caster(typ, tString, false, env)(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := caster(tString, typ, false, env)(text)
		if err != nil || CompareValues(typ, d, back) != 0 {
			t.Fatalf("%s of %s reads back as %v, %v", text.B, typ, back, err)
		}
	})
}

func TestCaster_WidensAndNarrowsBack(t *testing.T) {
	wider := map[Kind][]Type{
		TinyInt: {tShort, tInt, tLong, tFloat, tDouble, decimalOf(3, 0)}, SmallInt: {tInt, tLong, tFloat, tDouble, decimalOf(5, 0)},
		Int: {tLong, tDouble, decimalOf(10, 0), decimalOf(38, 10)}, BigInt: {decimalOf(20, 0)}, Float: {tDouble}, Date: {tStamp, tNTZ},
	}
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]Type{tByte, tShort, tInt, tLong, tFloat, tDate}).Draw(t, "from")
		to := rapid.SampledFrom(wider[from.Kind]).Draw(t, "to")
		d := drawValue(t, from, false)
		w, err := caster(from, to, false, nil)(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := caster(to, from, false, nil)(w)
		if err != nil || CompareValues(from, d, back) != 0 {
			t.Fatalf("%v of %s as %s and back: %v, %v", d, from, to, back, err)
		}
	})
}

// truths are the values of three-valued logic as SQL literals.
var truths = []string{"true", "false", "CAST(NULL AS BOOLEAN)"}

func TestLogic_FollowsTheLawsOfThreeValuedLogic(t *testing.T) {
	laws := [][2]string{
		{"NOT (a AND b)", "(NOT a) OR (NOT b)"},
		{"NOT (a OR b)", "(NOT a) AND (NOT b)"},
		{"a AND b", "b AND a"},
		{"a OR b", "b OR a"},
		{"a AND (b OR c)", "(a AND b) OR (a AND c)"},
		{"a OR (b AND c)", "(a OR b) AND (a OR c)"},
		{"NOT NOT a", "a"},
		{"a <=> b", "(a IS NULL AND b IS NULL) OR coalesce(a = b, false)"},
		{"a IN (b, c)", "a = b OR a = c"},
		{"a NOT IN (b, c)", "a <> b AND a <> c"},
		{"a BETWEEN b AND c", "a >= b AND a <= c"},
		{"a IS NOT TRUE", "NOT coalesce(a, false)"},
		{"a IS DISTINCT FROM b", "NOT (a <=> b)"},
		{"CASE WHEN a THEN b ELSE c END", "if(a, b, c)"},
		{"nullif(a, b)", "CASE WHEN a = b THEN NULL ELSE a END"},
	}
	for _, law := range laws {
		for i := range 27 {
			values := map[string]string{"a": truths[i%3], "b": truths[i/3%3], "c": truths[i/9]}
			left, right := bind(t, law[0], values), bind(t, law[1], values)
			require.Equal(t, left, right, "%s and %s with %v", law[0], law[1], values)
		}
	}
}

// bind evaluates an expression over columns a, b and c of BOOLEAN.
func bind(t *testing.T, src string, values map[string]string) types.Datum {
	scope := &Scope{}
	var row Row
	for i, name := range []string{"a", "b", "c"} {
		scope.Columns = append(scope.Columns, Column{Name: name, Type: tBool, Slot: i})
		_, d, err := evaluate(values[name])
		require.NoError(t, err)
		row = append(row, d)
	}
	ast, err := sqlparse.ParseExpr(src)
	require.NoError(t, err)
	x, err := Compile(ast, scope)
	require.NoError(t, err)
	d, err := x.Eval(row)
	require.NoError(t, err)
	return d
}

func TestDecimalArithmetic_IsExactToTheResultsScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p1, p2 := rapid.IntRange(1, 18).Draw(t, "p1"), rapid.IntRange(1, 18).Draw(t, "p2")
		a := decimalOf(p1, rapid.IntRange(0, p1).Draw(t, "s1"))
		b := decimalOf(p2, rapid.IntRange(0, p2).Draw(t, "s2"))
		x, y := drawDigits(t, p1), drawDigits(t, p2)
		op := rapid.SampledFrom([]string{"+", "-", "*", "/"}).Draw(t, "op")
		if op == "/" && y.Sign() == 0 {
			t.Skip("division by zero")
		}
		r := decimalResult(op, a, b)
		got, err := decimalOp(op, x, a, y, b, r)
		if err != nil {
			t.Fatalf("%s %s %s: %v", decimalText(x, a.Scale), op, decimalText(y, b.Scale), err)
		}
		exact := new(big.Rat)
		rx, ry := new(big.Rat).SetFrac(x, bigPow10(a.Scale)), new(big.Rat).SetFrac(y, bigPow10(b.Scale))
		switch op {
		case "+":
			exact.Add(rx, ry)
		case "-":
			exact.Sub(rx, ry)
		case "*":
			exact.Mul(rx, ry)
		case "/":
			exact.Quo(rx, ry)
		}
		diff := new(big.Rat).Sub(exact, new(big.Rat).SetFrac(unscaled(r, got), bigPow10(r.Scale)))
		unit := new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Mul(big.NewInt(2), bigPow10(r.Scale)))
		unit.Add(unit, new(big.Rat).SetFrac(big.NewInt(1), bigPow10(38))) // Spark rounds quotients twice
		if diff.Abs(diff).Cmp(unit) > 0 {
			t.Fatalf("%s %s %s = %s: off by %s", decimalText(x, a.Scale), op, decimalText(y, b.Scale), decimalText(unscaled(r, got), r.Scale), diff.FloatString(40))
		}
	})
}

func TestIntOp_OverflowsExactlyWhereTheResultDoesNotFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]Type{tByte, tShort, tInt, tLong}).Draw(t, "type")
		a, b := drawValue(t, typ, false).I, drawValue(t, typ, false).I
		op := rapid.SampledFrom([]string{"+", "-", "*"}).Draw(t, "op")
		exact := new(big.Int)
		switch op {
		case "+":
			exact.Add(big.NewInt(a), big.NewInt(b))
		case "-":
			exact.Sub(big.NewInt(a), big.NewInt(b))
		case "*":
			exact.Mul(big.NewInt(a), big.NewInt(b))
		}
		fits := exact.IsInt64() && exact.Int64() >= minOf(typ) && exact.Int64() <= maxOf(typ)
		v, err := intOp(op, typ)(a, b)
		if (err == nil) != fits || fits && v != exact.Int64() {
			t.Fatalf("%d %s %d of %s = %d, %v; exactly %s", a, op, b, typ, v, err, exact)
		}
	})
}

func TestFromLocal_UndoesToLocal(t *testing.T) {
	zones := []string{"Europe/Paris", "America/New_York", "Australia/Lord_Howe", "+03:00", "UTC"}
	rapid.Check(t, func(t *rapid.T) {
		zone, ok := zoneOf(rapid.SampledFrom(zones).Draw(t, "zone"))
		if !ok {
			t.Fatal("no time zones on this machine")
		}
		v := rapid.Int64Range(0, 4102444800000000).Draw(t, "micros")
		back := fromLocal(toLocal(v, zone), zone)
		if back != v && toLocal(back, zone) != toLocal(v, zone) { // of two instants with one clock it is the first
			t.Fatalf("%s in %s comes back as %s", time.UnixMicro(v), zone, time.UnixMicro(back))
		}
		if back > v {
			t.Fatalf("%s in %s comes back later, as %s", time.UnixMicro(v), zone, time.UnixMicro(back))
		}
	})
}
