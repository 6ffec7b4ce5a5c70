package sql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/merger/expr"
	"applier/storage/types"
)

// What Spark 4.1.2 does on an Iceberg table with the same rows.
func TestMerge_TakesSubqueriesInValuesAndNotInConditions(t *testing.T) {
	s, _ := newSession(t)
	run := func(sql string) (*Result, error) { return exec(t, s, sql) }
	for _, sql := range []string{
		"CREATE TABLE t (id INT, a INT)", "INSERT INTO t VALUES (1, 10), (2, 20)",
		"MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET a = (SELECT max(id) FROM t)",
	} {
		_, err := run(sql)
		require.NoError(t, err, sql)
	}
	res, err := run("SELECT * FROM t ORDER BY id")
	require.NoError(t, err)
	require.Equal(t, []expr.Row{{types.IntDatum(1), types.IntDatum(2)}, {types.IntDatum(2), types.IntDatum(20)}}, res.Rows)
	for _, sql := range []string{
		"MERGE INTO t USING (SELECT 3 AS id) s ON t.id = s.id AND t.id IN (SELECT id FROM t) WHEN MATCHED THEN DELETE",
		"MERGE INTO t USING (SELECT 3 AS id) s ON t.id = s.id WHEN NOT MATCHED AND s.id IN (SELECT id + 2 FROM t) THEN INSERT (id) VALUES (s.id)",
		"MERGE INTO t USING (SELECT 3 AS id) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id > (SELECT max(id) FROM t) THEN DELETE",
	} {
		_, err := run(sql)
		require.Equal(t, "UNSUPPORTED_MERGE_CONDITION.SUBQUERY", Describe(err).Class, sql)
	}
}

// A constant that cannot be computed fails without a row that needs it, as in Spark 4.1.2;
// not in UPDATE's values.
func TestExecute_ConstantsFailOnEmptyTables(t *testing.T) {
	s, _ := newSession(t)
	_, err := exec(t, s, "CREATE TABLE t (id INT, a INT)")
	require.NoError(t, err)
	for sql, class := range map[string]string{
		"SELECT 1 / 0 FROM t": "DIVIDE_BY_ZERO", "SELECT id FROM t WHERE id > 3 AND a = 'abc'": "CAST_INVALID_INPUT", "SELECT coalesce(id, 1 / 0) FROM t": "",
		"DELETE FROM t WHERE id = 'abc'": "CAST_INVALID_INPUT", "UPDATE t SET a = 1 WHERE id = 'abc'": "CAST_INVALID_INPUT",
		"UPDATE t SET a = 1 / 0 WHERE id = 3": "", "UPDATE t SET a = 3000000000": "",
		"MERGE INTO t USING (SELECT 1 AS id WHERE false) s ON t.id = s.id WHEN MATCHED AND t.a = 'abc' THEN DELETE": "CAST_INVALID_INPUT",
	} {
		_, err := exec(t, s, sql)
		if class == "" {
			require.NoError(t, err, sql)
		} else {
			require.Equal(t, class, Describe(err).Class, sql)
		}
	}
}
