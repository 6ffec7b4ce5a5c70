package expr

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// aggregateOver evaluates an aggregate over values of a column v.
func aggregateOver(t *testing.T, src string, typ Type, values ...types.Datum) (string, string, error) {
	ast, err := sqlparse.ParseExpr(src)
	require.NoError(t, err, src)
	a, err := CompileAggregate(ast.(*sqlparse.Call), &Scope{Columns: []Column{{Name: "v", Type: typ}}})
	if err != nil {
		return "", "", err
	}
	acc := a.New()
	for _, v := range values {
		if err := acc.Add(Row{v}, nil); err != nil {
			return "", "", err
		}
	}
	d, err := acc.Result()
	if err != nil {
		return "", "", err
	}
	if d.Null {
		return "NULL", a.Type().String(), nil
	}
	return Text(a.Type(), d, nil), a.Type().String(), nil
}

func TestAggregate_LeavesNullOutAndCountsNaNAndZerosOnce(t *testing.T) {
	nan, zero, neg := must(t, "double('NaN')"), types.FloatDatum(0), must(t, "-0.0D")
	ints := []types.Datum{types.IntDatum(3), types.Null, types.IntDatum(1), types.IntDatum(3)}
	for _, c := range []struct {
		src       string
		typ       Type
		values    []types.Datum
		want, has string
	}{
		{"count(*)", tInt, ints, "4", "bigint"},
		{"count(v)", tInt, ints, "3", "bigint"},
		{"count(DISTINCT v)", tInt, ints, "2", "bigint"},
		{"count(DISTINCT v)", tDouble, []types.Datum{nan, nan, zero, neg, types.Null}, "2", "bigint"},
		{"sum(v)", tInt, ints, "7", "bigint"},
		{"sum(DISTINCT v)", tInt, ints, "4", "bigint"},
		{"sum(v)", tInt, nil, "NULL", "bigint"},
		{"sum(v) FILTER (WHERE v > 1)", tInt, ints, "6", "bigint"},
		{"count_if(v > 1)", tInt, ints, "2", "bigint"},
		{"avg(v)", tInt, ints, "2.3333333333333335", "double"},
		{"avg(v)", decimalOf(9, 2), []types.Datum{types.IntDatum(100), types.IntDatum(101)}, "1.005000", "decimal(13,6)"},
		{"sum(v)", decimalOf(9, 2), []types.Datum{types.IntDatum(100), types.IntDatum(101)}, "2.01", "decimal(19,2)"},
		{"sum(v)", tString, []types.Datum{types.StringDatum("1.5"), types.StringDatum(" 2 ")}, "3.5", "double"},
		{"min(v)", tDouble, []types.Datum{nan, types.FloatDatum(5)}, "5.0", "double"},
		{"max(v)", tDouble, []types.Datum{types.FloatDatum(5), nan}, "NaN", "double"},
		{"max(struct(v, 'x'))", tInt, ints, "{3, x}", "struct<v:int,col2:string>"},
		{"max_by(v, -v)", tInt, ints, "1", "int"},
		{"collect_list(v)", tInt, ints, "[3, 1, 3]", "array<int>"},
		{"collect_set(v)", tInt, ints, "[3, 1]", "array<int>"},
		{"first(v)", tInt, ints[1:], "NULL", "int"},
		{"last(v)", tInt, ints, "3", "int"},
		{"bool_and(v > 0)", tInt, ints, "true", "boolean"},
		{"bool_or(v > 9)", tInt, ints, "false", "boolean"},
		{"bool_or(v > 9)", tInt, nil, "NULL", "boolean"},
		{"sum(v)", tDayTime, []types.Datum{types.IntDatum(microHour), types.IntDatum(microDay)}, "INTERVAL '1 01:00:00' DAY TO SECOND", "interval day to second"},
	} {
		got, has, err := aggregateOver(t, c.src, c.typ, c.values...)
		require.NoError(t, err, c.src)
		require.Equal(t, c.want, got, c.src)
		require.Equal(t, c.has, has, c.src)
	}
}

func must(t *testing.T, src string) types.Datum {
	_, d, err := evaluate(src)
	require.NoError(t, err)
	return d
}

func TestAggregate_RefusesWhatDoesNotFit(t *testing.T) {
	for src, class := range map[string]string{
		"sum(v)": classOverflow, "sum(CAST(v AS BOOLEAN))": classUnexpected, "max(map(v, v))": classOrdering, "sum()": classArgs,
		"sum(v, v)": classArgs, "max_by(v)": classArgs, "sum(sum(v))": "UNSUPPORTED_EXPR_FOR_OPERATOR", "summ(v)": classRoutine,
	} {
		_, _, err := aggregateOver(t, src, tLong, types.IntDatum(maxOf(tLong)), types.IntDatum(1))
		var e *Error
		require.ErrorAs(t, err, &e, src)
		require.Equal(t, class, e.Class, src)
	}
}
