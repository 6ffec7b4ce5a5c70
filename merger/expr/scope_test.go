package expr

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// mergeScope is what a MERGE sees: a target t and a source s.
func mergeScope() *Scope {
	st := structOf(Field{Name: "f", Type: tInt}, Field{Name: "g", Type: arrayOf(structOf(Field{Name: "x", Type: tString}))})
	return &Scope{Columns: []Column{
		{Qualifier: []string{"p", "db", "t"}, Name: "id", Type: tInt, Slot: 0},
		{Qualifier: []string{"p", "db", "t"}, Name: "Name", Type: tString, Slot: 1},
		{Qualifier: []string{"s"}, Name: "id", Type: tLong, Slot: 2},
		{Qualifier: []string{"s"}, Name: "s", Type: st, Slot: 3},
		{Qualifier: []string{"s"}, Name: "_seq", Type: tLong, Slot: 4, Hidden: true},
	}}
}

func mergeRow() Row {
	item := types.Datum{L: []types.Datum{types.StringDatum("deep")}}
	return Row{
		types.IntDatum(1), types.StringDatum("ann"), types.IntDatum(2),
		{L: []types.Datum{types.IntDatum(7), {L: []types.Datum{item, types.Null}}}},
		types.IntDatum(99),
	}
}

func TestCompile_FindsNamesByTheirQualifiers(t *testing.T) {
	for src, want := range map[string]string{
		"t.id": "1", "db.t.id": "1", "p.db.t.id": "1", "s.id": "2", "NAME": "ann", "T.name": "ann", "`Name`": "ann",
		"s.s.f": "7", "s.f": "7", "s.s.g[0].x": "deep", "s.s.g.x": "[deep, null]", "s._seq": "99", "_SEQ": "99",
		"t.id + s.id": "3", "transform(array(1), id -> id + t.id)": "[2]", "transform(array(array(1)), id -> transform(id, Name -> Name))": "[[1]]",
	} {
		ast, err := sqlparse.ParseExpr(src)
		require.NoError(t, err)
		x, err := Compile(ast, mergeScope())
		require.NoError(t, err, src)
		d, err := x.Eval(mergeRow())
		require.NoError(t, err, src)
		require.Equal(t, want, Text(x.Type(), d, nil), src)
	}
}

func TestCompile_SaysWhatIsWrongAndWhere(t *testing.T) {
	for _, c := range []struct {
		src, class, message string
		col                 int
	}{
		{"1 + id", "AMBIGUOUS_REFERENCE", "p.db.t.id or s.id", 5},
		{"t.nmae", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "did you mean Name?", 1},
		{"zzzzzz", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "there are id, Name", 1},
		{"k.y.z.id", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "there is no column k.y.z.id", 1},
		{"s.s.q", "FIELD_NOT_FOUND", "there is no field q", 1},
		{"t.id.f", "INVALID_EXTRACT_BASE_FIELD_TYPE", "has no fields", 1},
		{"uper(Name)", "UNRESOLVED_ROUTINE", "did you mean upper", 1},
		{"lenght(Name)", "UNRESOLVED_ROUTINE", "did you mean length?", 1},
		{"1 + sum(t.id)", "UNSUPPORTED_EXPR_FOR_OPERATOR", "the aggregate sum has no place here", 5},
		{"upper(Name, 1)", classArgs, "upper takes 1 argument, not 2", 1},
		{"substring(Name)", classArgs, "substring takes 2 to 3 arguments, not 1", 1},
		{"CASE WHEN t.id THEN 1 END", classUnexpected, "must be \"BOOLEAN\"", 11},
		{"Name AND 1", classDiffTypes, "AND", 1},
		{"DEFAULT", "DEFAULT_PLACEMENT_INVALID", "whole value", 1},
		{"t.id = DATE'2024-01-01'", classDiffTypes, "does not compare", 1},
		{"upper(x -> 1)", "INVALID_LAMBDA_FUNCTION_CALL.PARAMETER_DOES_NOT_ACCEPT_LAMBDA_FUNCTION", "no lambda", 7},
		{"t.id IN (SELECT 1)", "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY", "cannot stand here", 1},
	} {
		ast, err := sqlparse.ParseExpr(c.src)
		require.NoError(t, err, c.src)
		_, err = Compile(ast, mergeScope())
		var e *Error
		require.ErrorAs(t, err, &e, c.src)
		require.Equal(t, c.class, e.Class, c.src)
		require.Contains(t, e.Message, c.message, c.src)
		require.Equal(t, c.col, e.Pos.Col, c.src)
		require.True(t, e.Analysis)
	}
}

func TestEval_PlacesErrorsAtTheFailingPart(t *testing.T) {
	for src, col := range map[string]int{
		"1 + 2147483647 + 1": 1, "coalesce(NULL, 1 / 0)": 16, "t.id = 1 AND CAST(Name AS INT) = 1": 14, "array(1, 2)[t.id + 5]": 1,
		"upper(concat(Name, CAST(1 / (t.id - 1) AS STRING)))": 25,
	} {
		ast, err := sqlparse.ParseExpr(src)
		require.NoError(t, err)
		x, err := Compile(ast, mergeScope())
		if err == nil { // a constant fails when it is compiled
			_, err = x.Eval(mergeRow())
		}
		var e *Error
		require.ErrorAs(t, err, &e, src)
		require.Equal(t, col, e.Pos.Col, "%s: %v", src, err)
		require.False(t, e.Analysis)
		require.Contains(t, e.Detail(src), "^")
	}
}

func TestCompileBool_RefusesWhatIsNoCondition(t *testing.T) {
	for _, src := range []string{"t.id", "NULL", "'a'", "1"} {
		ast, err := sqlparse.ParseExpr(src)
		require.NoError(t, err)
		_, err = CompileBool(ast, mergeScope())
		var e *Error
		require.ErrorAs(t, err, &e, src)
		require.Equal(t, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", e.Class)
	}
	ast, err := sqlparse.ParseExpr("CAST(NULL AS BOOLEAN) OR t.id > 5")
	require.NoError(t, err)
	x, err := CompileBool(ast, mergeScope())
	require.NoError(t, err)
	hit, err := x.Test(mergeRow())
	require.NoError(t, err)
	require.False(t, hit, "NULL is not true")
}

func TestEval_OfTheClockIsTheStatements(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Tokyo")
	require.NoError(t, err)
	env := &Env{Now: time.Date(2024, 3, 1, 20, 30, 0, 123456000, time.UTC), Zone: zone}
	for src, want := range map[string]string{
		"current_date":                               "2024-03-02",
		"current_timestamp":                          "2024-03-02 05:30:00.123456",
		"now() = current_timestamp()":                "true",
		"localtimestamp()":                           "2024-03-02 05:30:00.123456",
		"CAST('12:00:00' AS TIMESTAMP)":              "2024-03-02 12:00:00",
		"CAST('2024-01-01' AS TIMESTAMP)":            "2024-01-01 00:00:00",
		"unix_timestamp('2024-01-01', 'yyyy-MM-dd')": "1704034800",
		"hour(TIMESTAMP'2024-01-01 00:00:00Z')":      "9",
		"date_format(TIMESTAMP'2024-01-01 00:00:00Z', 'yyyy-MM-dd HH XXX VV')": "2024-01-01 09 +09:00 Asia/Tokyo",
	} {
		ast, err := sqlparse.ParseExpr(src)
		require.NoError(t, err)
		x, err := Compile(ast, &Scope{Env: env})
		require.NoError(t, err, src)
		d, err := x.Eval(nil)
		require.NoError(t, err, src)
		require.Equal(t, want, Text(x.Type(), d, zone), src)
	}
}

func TestEval_KeepsTheClockOverChangesOfSummerTime(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Paris")
	require.NoError(t, err)
	for src, want := range map[string]string{
		"TIMESTAMP'2024-03-30 12:00:00' + INTERVAL 1 DAY":   "2024-03-31 12:00:00",
		"TIMESTAMP'2024-03-30 12:00:00' + INTERVAL 24 HOUR": "2024-03-31 12:00:00", // Spark: whole days of an interval are days
		"TIMESTAMP'2024-03-30 12:00:00' + INTERVAL 23 HOUR": "2024-03-31 12:00:00",
		"TIMESTAMP'2024-03-31 02:30:00'":                    "2024-03-31 03:30:00",
		"date_trunc('DAY', TIMESTAMP'2024-03-31 12:00:00')": "2024-03-31 00:00:00",
	} {
		ast, err := sqlparse.ParseExpr(src)
		require.NoError(t, err)
		x, err := Compile(ast, &Scope{Env: &Env{Zone: zone}})
		require.NoError(t, err, src)
		d, err := x.Eval(nil)
		require.NoError(t, err, src)
		require.Equal(t, want, Text(x.Type(), d, zone), src)
	}
}

func TestCompile_ComparesCharWithoutTrailingBlanks(t *testing.T) {
	char := func(n int) Type { return Type{Kind: String, Length: n, Char: true} }
	scope := &Scope{Columns: []Column{
		{Name: "c4", Type: char(4)}, {Name: "c6", Type: char(6), Slot: 1}, {Name: "v", Type: tString, Slot: 2},
	}}
	row := Row{types.StringDatum("ab"), types.StringDatum("ab    "), types.StringDatum("ab")}
	for src, want := range map[string]bool{
		"c4 = 'ab'": true, "c4 = c6": true, "'ab  ' = c4": true, "c4 = 'ab x'": false, "c4 IN ('x', 'ab')": true, "c4 <=> 'ab'": true,
		"length(c4) = 4": true, "v = 'ab '": false, "c4 = v": false, "c4 < 'b'": true, "c4 BETWEEN 'ab' AND 'ab'": true,
	} {
		ast, err := sqlparse.ParseExpr(src)
		require.NoError(t, err)
		x, err := CompileBool(ast, scope)
		require.NoError(t, err, src)
		hit, err := x.Test(row)
		require.NoError(t, err)
		require.Equal(t, want, hit, src)
	}
}

func TestEval_AllocatesNothingForNumbersAndComparisons(t *testing.T) {
	for _, src := range []string{
		"t.id + s.id * 2 - 1", "t.id = 1 AND s.id > 0 OR NOT t.id <= 5", "t.id IN (1, 2, 3)", "t.id BETWEEN 0 AND 9", "Name = 'ann'", "Name < 'b'",
		"CASE WHEN t.id > 1 THEN 2 ELSE s.id END", "coalesce(t.id, 0) % 3", "t.id IS NOT NULL", "CAST(t.id AS DOUBLE) * 1.5D", "abs(-t.id)", "t.id <=> s.id",
	} {
		ast, err := sqlparse.ParseExpr(src)
		require.NoError(t, err)
		x, err := Compile(ast, mergeScope())
		require.NoError(t, err, src)
		row := mergeRow()
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if _, err := x.Eval(row); err != nil {
				t.Error(err)
			}
		}), src)
	}
}

func TestEval_BoundsWhatARowMakes(t *testing.T) {
	for _, src := range []string{
		"sequence(1, 9223372036854775807)", "repeat('abcdefgh', 2147483647)", "repeat(repeat('abcdefgh', 1000000), 1000000)", "lpad('a', 2147483647, 'b')",
		"space(2147483647)", "array_repeat(array_repeat(1, 1000000), 1000000)", "transform(sequence(1, 1000000), x -> sequence(1, 1000000))",
		"flatten(transform(sequence(1, 100000), x -> sequence(1, 1000)))", "regexp_replace(repeat('a', 1000000), 'a', repeat('b', 1000000))",
		"format_string('%2000000000d', 1)", "array_insert(array(1), 2147483647, 1)", "replace(repeat('a', 1000000), 'a', repeat('b', 100))",
	} {
		_, _, err := evaluate(src)
		require.Error(t, err, src)
	}
}

func TestSlots_AreWhatTheRowMustHold(t *testing.T) {
	for src, want := range map[string][]int{
		"1 + 1": nil, "t.id": {0}, "s.id + t.id > 0 AND s.id < 5": {0, 2}, "transform(s.s.g, x -> x.x)": {3}, "s._seq": {4},
		"transform(array(1), id -> id)": nil,
	} {
		ast, err := sqlparse.ParseExpr(src)
		require.NoError(t, err)
		x, err := Compile(ast, mergeScope())
		require.NoError(t, err)
		require.Equal(t, want, x.Slots(), src)
		y, err := AssignmentCast(x, "c", types.StringType())
		if err == nil {
			require.Equal(t, want, y.Slots(), src)
		}
	}
}
