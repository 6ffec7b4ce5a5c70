package sql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplain_OfSchemaEvolutionAddsNothing(t *testing.T) {
	s, root := newSession(t)
	must(t, s, "CREATE TABLE t (a INT, b INT)", "INSERT INTO t VALUES (1, 10)")
	j := &judge{t: t, root: root}
	before := j.files()
	for sql, want := range map[string]string{
		"WHEN MATCHED THEN UPDATE SET *": "new columns: c int, s struct<x:int>",
		"WHEN MATCHED THEN UPDATE SET c = v.c WHEN NOT MATCHED THEN INSERT (a, c) VALUES (1, 2)": "new columns: c int",
		"WHEN MATCHED THEN DELETE": "table default.t (copy-on-write), planned on snapshot 1",
	} {
		got := rows(t, s, "EXPLAIN MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS a, 3 AS c, named_struct('x', 1) AS s) v ON t.a = v.a "+sql)
		require.Equal(t, want, got[0], sql)
		require.Contains(t, got, "snapshot 2: kind OVERWRITE, operation MERGE", sql)
	}
	require.Equal(t, before, j.files())
}

// What cannot be added is refused before anything is written.
func TestMerge_EvolutionRefusesWhatATableCannotHold(t *testing.T) {
	s, root := newSession(t)
	must(t, s, "CREATE TABLE t (a INT, l ARRAY<INT>)", "INSERT INTO t VALUES (1, NULL)")
	j := &judge{t: t, root: root}
	before := j.files()
	for sql, class := range map[string]string{
		"MERGE WITH SCHEMA EVOLUTION INTO nowhere USING (SELECT 1 AS a) v ON true WHEN MATCHED THEN UPDATE SET *":                ClassNoTable,
		"MERGE WITH SCHEMA EVOLUTION INTO t USING nowhere v ON true WHEN MATCHED THEN UPDATE SET *":                              ClassNoTable,
		"MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS a) v ON t.a = v.a WHEN MATCHED THEN UPDATE SET z = 1":             ClassNoColumn,
		"MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS a, NULL AS n) v ON t.a = v.zz WHEN MATCHED THEN UPDATE SET a = 1": ClassNoColumn,
	} {
		_, err := exec(t, s, sql)
		require.Equal(t, class, Describe(err).Class, "%s: %v", sql, err)
		require.Equal(t, before, j.files(), sql)
	}
}
