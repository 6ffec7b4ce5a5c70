package app

import (
	"strings"
	"testing"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// body is a plan without its comments.
func body(t *testing.T, plan string) string {
	var out []string
	for _, line := range strings.Split(plan, "\n") {
		if !strings.HasPrefix(line, "--") {
			out = append(out, line)
		}
	}
	_, err := sqlparse.Parse(plan)
	require.NoError(t, err, "it is a statement")
	return strings.Join(out, "\n")
}

func TestPlan_IsTheStatementThatDoesTheSame(t *testing.T) {
	const head = "MERGE INTO shop.orders AS t\nUSING changes AS s\nON t.id = s.id\nWHEN "
	for _, c := range []struct{ name, pipeline, want string }{
		{"mirror", "    key: [id]\n", head + "MATCHED AND s.__op = 'd' THEN DELETE\nWHEN MATCHED THEN UPDATE SET *\nWHEN NOT MATCHED AND s.__op <> 'd' THEN INSERT *"},
		{"upsert, ordered", "    key: [id, 'a b']\n    apply: upsert\n    order_by: [ver]\n", "MERGE INTO shop.orders AS t\nUSING changes AS s\nON t.id = s.id AND t.`a b` = s.`a b`\nWHEN " +
			"MATCHED AND s.__op <> 'd' AND struct(s.ver) >= struct(t.ver) THEN UPDATE SET *\nWHEN NOT MATCHED AND s.__op <> 'd' THEN INSERT *"},
		{"insert_only", "    key: [id]\n    apply: insert_only\n", head + "NOT MATCHED AND s.__op <> 'd' THEN INSERT *"},
		{"soft_delete, ordered", "    key: [id]\n    apply: soft_delete\n    order_by: { by: [ver, n], on_tie: first_offset }\n", head +
			"MATCHED AND s.__op = 'd' AND struct(s.ver, s.n) > struct(t.ver, t.n) THEN UPDATE SET deleted_at = s.__ts, ver = s.ver, n = s.n\n" +
			"WHEN MATCHED AND struct(s.ver, s.n) > struct(t.ver, t.n) THEN UPDATE SET *\nWHEN NOT MATCHED AND s.__op <> 'd' THEN INSERT *"},
		{"append", "    apply: append\n", "INSERT INTO shop.orders SELECT * FROM changes"},
		{"clauses", "    key: [id]\n    merge: { when: [NOT MATCHED THEN INSERT *, MATCHED AND s.n > t.n THEN UPDATE SET n = s.n, MATCHED THEN DELETE] }\n", head +
			"MATCHED AND s.n > t.n THEN UPDATE SET n = s.n\nWHEN MATCHED THEN DELETE\nWHEN NOT MATCHED THEN INSERT *"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pipeline := strings.ReplaceAll(c.pipeline, "[NOT MATCHED THEN INSERT *, MATCHED AND s.n > t.n THEN UPDATE SET n = s.n, MATCHED THEN DELETE]",
				"['NOT MATCHED THEN INSERT *', 'MATCHED AND s.n > t.n THEN UPDATE SET n = s.n', MATCHED THEN DELETE]")
			w := newWorld(t, pipeline)
			got, note, err := Plan(testContext(t), w.cfg, "p")
			require.NoError(t, err)
			require.Contains(t, note, "does not exist yet")
			require.Equal(t, c.want, body(t, got))
		})
	}
}

func TestPlan_TellsWhatDoesNotFitTheTable(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    merge: { when: [MATCHED AND s.price > 1 THEN DELETE] }\n")
	w.create(orders(), nil)
	got, note, err := Plan(testContext(t), w.cfg, "p")
	require.ErrorContains(t, err, "merge.when[0]: line 1, column 13: [UNRESOLVED_COLUMN.WITH_SUGGESTION] there is no column s.price")
	require.Empty(t, note)
	require.Contains(t, got, "s.price > 1")
	_, _, err = Plan(testContext(t), w.cfg, "q")
	require.ErrorContains(t, err, "the configuration has p")
}

// A stored NULL is older than everything: a comparison of structs sees it so.
func TestPlan_OrderTakesAStoredNullForTheOldest(t *testing.T) {
	scope := &expr.Scope{}
	for i, q := range []string{"s", "t"} {
		c, ok := expr.TableColumn([]string{q}, types.Field{Name: "ver", Type: types.IntType()}, i)
		require.True(t, ok)
		scope.Columns = append(scope.Columns, c)
	}
	for _, c := range []struct {
		s, t types.Datum
		want bool
	}{
		{types.IntDatum(1), types.Null, true},
		{types.IntDatum(1), types.IntDatum(1), true},
		{types.IntDatum(1), types.IntDatum(2), false},
		{types.IntDatum(3), types.IntDatum(2), true},
	} {
		e, err := sqlparse.ParseExpr("struct(s.ver) >= struct(t.ver)")
		require.NoError(t, err)
		x, err := expr.CompileBool(e, scope)
		require.NoError(t, err)
		got, err := x.Test(expr.Row{c.s, c.t})
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c)
	}
}
