package expr

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// assign compiles and evaluates an assignment to a column written as Spark's DDL.
func assign(t testing.TB, src string, to types.Type) (types.Datum, error) {
	ast, err := sqlparse.ParseExpr(src)
	require.NoError(t, err, src)
	x, err := Compile(ast, &Scope{Env: recordedEnv()})
	if err != nil {
		return types.Null, err
	}
	if x, err = AssignmentCast(x, "c", to); err != nil {
		return types.Null, err
	}
	return x.Eval(nil)
}

// columnType reads a column's type as CREATE TABLE does.
func columnType(t testing.TB, ddl string) types.Type {
	ast, err := sqlparse.ParseType(ddl)
	require.NoError(t, err)
	typ, err := TypeOf(ast)
	require.NoError(t, err)
	st, ok := typ.ToStorage()
	require.True(t, ok)
	return st
}

func TestAssignmentCast_AgreesWithEveryRecordedAssignment(t *testing.T) {
	f, err := os.Open("testdata/assign.jsonl.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	stored, refused := 0, 0
	for s := bufio.NewScanner(z); s.Scan(); {
		var r struct {
			Column, Expr, Error string
			Value               json.RawMessage
		}
		require.NoError(t, json.Unmarshal(s.Bytes(), &r))
		to := columnType(t, r.Column)
		d, err := assign(t, r.Expr, to)
		var e *Error
		switch {
		case r.Error != "":
			require.Truef(t, errors.As(err, &e), "%s := %s: stored, recorded %s", r.Column, r.Expr, r.Error)
			require.Equal(t, r.Error, e.Class, "%s := %s", r.Column, r.Expr)
			refused++
		default:
			require.NoError(t, err, "%s := %s", r.Column, r.Expr)
			typ, _ := FromStorage(to)
			require.Equal(t, canonical(r.Value, typ), string(appendRecorded(nil, typ, d)), "%s := %s", r.Column, r.Expr)
			stored++
		}
	}
	require.Equal(t, 896, stored+refused)
	t.Logf("%d values stored, %d refused, as recorded", stored, refused)
}

func TestAssignmentCast_HoldsTextsToTheirLength(t *testing.T) {
	for _, c := range []struct{ expr, column, want, class string }{
		{"'ab'", "CHAR(4)", "ab  ", ""},
		{"'ab    '", "CHAR(4)", "ab  ", ""},
		{"'abcde'", "CHAR(4)", "", ClassLength},
		{"'日本  '", "VARCHAR(2)", "日本", ""},
		{"'日本語'", "VARCHAR(2)", "", ClassLength},
		{"'ab '", "VARCHAR(3)", "ab ", ""},
		{"NULL", "VARCHAR(3)", "NULL", ""},
	} {
		d, err := assign(t, c.expr, columnType(t, c.column))
		requireText(t, c.expr+" into "+c.column, d, err, c.want, c.class)
	}
}

func requireText(t *testing.T, what string, d types.Datum, err error, want, class string) {
	t.Helper()
	if class != "" {
		var e *Error
		require.ErrorAs(t, err, &e, what)
		require.Equal(t, class, e.Class, what)
		require.Contains(t, e.Message, "c", "the column is named")
		return
	}
	require.NoError(t, err, what)
	if want == "NULL" {
		require.True(t, d.Null, what)
		return
	}
	require.Equal(t, want, string(d.B), what)
}

func TestAssignmentCast_RefusesNullWhereverItIsForbidden(t *testing.T) {
	notNull := types.IntType().NonNull()
	row := types.RowType(types.Field{Name: "x", Type: notNull})
	for _, c := range []struct {
		expr string
		to   types.Type
		path string
	}{
		{"NULL", notNull, "c"},
		{"CAST(NULL AS INT)", notNull, "c"},
		{"array(1, NULL)", types.ArrayType(notNull), "c.element"},
		{"map('a', CAST(NULL AS INT))", types.MapType(types.StringType(), notNull), "c.value"},
		{"named_struct('x', NULL)", row, "c.x"},
		{"array(named_struct('x', CAST(NULL AS INT)))", types.ArrayType(row), "c.element.x"},
		{"double('NaN')", types.DecimalType(5, 2).NonNull(), "c"},
	} {
		_, err := assign(t, c.expr, c.to)
		var e *Error
		require.ErrorAs(t, err, &e, c.expr)
		require.Equal(t, ClassNotNull, e.Class, c.expr)
		require.Contains(t, e.Message, c.path+",", c.expr)
	}
	d, err := assign(t, "CAST(NULL AS STRUCT<x: INT>)", row)
	require.NoError(t, err)
	require.True(t, d.Null, "a NULL struct stays NULL and is no struct of NULLs")
}

func TestAssignmentCast_AlignsStructsByName(t *testing.T) {
	to := columnType(t, "STRUCT<x: INT, y: STRING>")
	for _, src := range []string{
		"named_struct('x', 1, 'y', 'a')", "named_struct('y', 'a', 'x', 1)", "named_struct('Y', 'a', 'X', '1')",
		"named_struct('z', 9, 'x', 1.2, 'y', 'a')",
	} {
		d, err := assign(t, src, to)
		require.NoError(t, err, src)
		require.Equal(t, int64(1), d.L[0].I, src)
		require.Equal(t, "a", string(d.L[1].B), src)
	}
	_, err := assign(t, "named_struct('x', 5)", to)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, ClassMissingField, e.Class)
	require.True(t, e.Analysis)
	d, err := assign(t, "array(named_struct('y', NULL, 'x', 2))", types.ArrayType(to))
	require.NoError(t, err)
	require.Equal(t, int64(2), d.L[0].L[0].I)
	require.True(t, d.L[0].L[1].Null)
}

func TestAssignmentCast_CutsTimesToTheColumnsPrecision(t *testing.T) {
	const text = "TIMESTAMP_NTZ'2024-02-29 12:34:56.789123'"
	for precision, want := range map[int]int64{0: 0, 3: 789000, 6: 789123, 9: 789123} {
		d, err := assign(t, text, types.TimestampType(precision))
		require.NoError(t, err)
		require.Equal(t, want, d.I%1_000_000, "precision %d", precision)
	}
	d, err := assign(t, "TIME'00:00:01.5'", types.TimeType(3))
	require.NoError(t, err)
	require.Equal(t, int64(1500), d.I, "TIME columns hold milliseconds")
	col, ok := TableColumn(nil, types.Field{Name: "c", Type: types.TimeType(3)}, 0)
	require.True(t, ok)
	x, err := Compile(&sqlparse.ColumnRef{Name: sqlparse.Name{Parts: []sqlparse.Ident{{Name: "c"}}}}, &Scope{Columns: []Column{col}})
	require.NoError(t, err)
	back, err := x.Eval(Row{d})
	require.NoError(t, err)
	require.Equal(t, "00:00:01.5", Text(x.Type(), back, nil))
}
