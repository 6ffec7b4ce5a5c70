package defaults

import (
	"testing"
	"time"

	"applier/merger/expr"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// The texts are such as Spark, Flink and applier store.
func TestConstant_ReadsTextsAsTheyWereMeant(t *testing.T) {
	list := types.ArrayType(types.StringType())
	for _, c := range []struct {
		t    types.Type
		text string
		want string // "" for no default
	}{
		{types.IntType(), "5", "5"},
		{types.IntType(), "-5", "-5"},
		{types.StringType(), "'my_value'", "my_value"},
		{types.StringType(), "my_value", "my_value"},
		{types.StringType(), "'it's'", "it's"},
		{types.StringType(), "'it''s'", "it's"},
		{types.StringType(), "upper('q')", "upper('q')"},
		{types.StringType(), "007", "007"},
		{types.BooleanType(), "'yes'", "true"},
		{types.DateType(), "'2024-01-02'", "2024-01-02"},
		{list, "ARRAY('a', 'b')", `["a","b"]`},
		{list, "[a, b]", `["a","b"]`},
		{types.MapType(types.StringType(), types.StringType()), "MAP('key1','value1')", `{"key1":"value1"}`},
		{types.MapType(types.StringType(), types.StringType()), `MAP("key1", "value1")`, `{"key1":"value1"}`},
		{types.RowType(types.Field{Name: "x", Type: types.IntType()}, types.Field{Name: "y", Type: types.StringType()}), "STRUCT(42, 'dv')", `{"x":42,"y":"dv"}`},
		{types.MapType(types.IntType(), types.IntType()), "NULL", ""},
	} {
		d, err := Constant(types.Field{Name: "c", Type: c.t, Default: &c.text})
		require.NoError(t, err, c.text)
		got := ""
		if d != nil {
			got = string(types.AppendText(nil, c.t, *d))
		}
		require.Equal(t, c.want, got, c.text)
	}
	_, err := Constant(types.Field{Name: "c", Type: types.IntType(), Default: new("abc")})
	require.ErrorIs(t, err, paimon.ErrDefault)
}

func TestValues_EvaluatesFunctionsOfTimeOnce(t *testing.T) {
	now := time.Date(2026, 9, 10, 12, 34, 56, 0, time.UTC)
	s, err := paimon.NewSchema([]types.Field{{Name: "a", Type: types.IntType()}, {Name: "d", Type: types.DateType()}}, nil,
		map[string]string{OptDynamic + "1": "current_date()"}, nil, 1)
	require.NoError(t, err)
	list, err := Values(s, &expr.Env{Now: now})
	require.NoError(t, err)
	require.Nil(t, list[0])
	require.Equal(t, "2026-09-10", string(types.AppendText(nil, types.DateType(), *list[1])))
	require.True(t, Dynamic(s))
}

func TestDisputed_NamesWhatJavaReadsOtherwise(t *testing.T) {
	list := types.ArrayType(types.StringType())
	here, java, differ := Disputed(types.Field{Name: "c", Type: list, Default: new("ARRAY('a')")})
	require.True(t, differ)
	require.Equal(t, `["a"]`, here)
	require.Equal(t, `["'a'"]`, java)
	for _, f := range []types.Field{{Name: "c", Type: list, Default: new("[a]")}, {Name: "c", Type: list}, {Name: "c", Type: types.IntType(), Default: new("5")}} {
		_, _, differ = Disputed(f)
		require.False(t, differ)
	}
}
