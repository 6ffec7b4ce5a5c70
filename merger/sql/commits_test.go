package sql

import (
	"fmt"
	"testing"

	"applier/storage/paimon"
	"applier/storage/paimon/manifest"

	"github.com/stretchr/testify/require"
)

// effect is what a statement did to a table: its snapshot, and the files in it.
func effect(t *testing.T, s *Session) string {
	r := &run{Session: s, env: testEnv(s)}
	_, tab, err := r.open(t.Context(), nameOf("t"), paimon.Read)
	require.NoError(t, err)
	tab, st, err := tab.Version(t.Context(), paimon.Version{})
	require.NoError(t, err)
	delta, err := tab.Delta(t.Context(), st.Snapshot)
	require.NoError(t, err)
	gone, added := "", ""
	for _, e := range delta {
		if e.Kind == manifest.Delete {
			gone += fmt.Sprintf(" -%d", e.File.Rows)
		} else {
			added += fmt.Sprintf(" +%d", e.File.Rows)
		}
	}
	masked := int64(0)
	refs, err := tab.LiveVectors(st.Index)
	require.NoError(t, err)
	for _, ref := range refs {
		masked += ref.At.Cardinality
	}
	p := st.Snapshot
	return fmt.Sprintf("%d %s %s %+d/%d live %d:%s", p.ID, p.CommitKind, p.Operation, p.DeltaRecordCount, p.TotalRecordCount, p.TotalRecordCount-masked, gone+added)
}

// The kinds, operations and counts of row-level.md §4: a table of three rows in one
// file, copy-on-write and with deletion vectors.
func TestCommits_HaveKindOperationAndCounts(t *testing.T) {
	const merge = "MERGE INTO t USING (SELECT * FROM VALUES (1, 'm'), (2, 'd'), (9, 'n') AS v(a, c)) s ON t.a = s.a "
	for _, c := range []struct{ sql, cow, dv string }{
		{"INSERT INTO t VALUES (4, 'd'), (5, 'e')", "2 APPEND WRITE +2/5 live 5: +2", "2 APPEND WRITE +2/5 live 5: +2"},
		{"INSERT INTO t SELECT * FROM t WHERE a > 100", "1 APPEND WRITE +3/3 live 3: +3", "1 APPEND WRITE +3/3 live 3: +3"},
		{"UPDATE t SET c = 'x' WHERE a = 1", "2 OVERWRITE UPDATE +0/3 live 3: -3 +3", "2 OVERWRITE UPDATE +1/4 live 3: +1"},
		{"UPDATE t SET c = c", "2 OVERWRITE UPDATE +0/3 live 3: -3 +3", "2 OVERWRITE UPDATE +3/6 live 3: +3"},
		{"UPDATE t SET c = 'x' WHERE a = 7", "1 APPEND WRITE +3/3 live 3: +3", "1 APPEND WRITE +3/3 live 3: +3"},
		{"DELETE FROM t WHERE a = 1", "2 OVERWRITE DELETE -1/2 live 2: -3 +2", "2 OVERWRITE DELETE +0/3 live 2:"},
		{"DELETE FROM t WHERE a < 7", "2 OVERWRITE DELETE -3/0 live 0: -3", "2 OVERWRITE DELETE +0/3 live 0:"},
		{"DELETE FROM t WHERE c = NULL", "1 APPEND WRITE +3/3 live 3: +3", "1 APPEND WRITE +3/3 live 3: +3"},
		{"DELETE FROM t", "2 OVERWRITE TRUNCATE -3/0 live 0: -3", "2 OVERWRITE TRUNCATE -3/0 live 0: -3"},
		{"TRUNCATE TABLE t", "2 OVERWRITE TRUNCATE -3/0 live 0: -3", "2 OVERWRITE TRUNCATE -3/0 live 0: -3"},
		{
			merge + "WHEN MATCHED AND s.c = 'm' THEN UPDATE SET c = s.c WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
			"2 OVERWRITE MERGE +0/3 live 3: -3 +3", "2 OVERWRITE MERGE +2/5 live 3: +2",
		},
		{merge + "WHEN NOT MATCHED THEN INSERT *", "2 APPEND MERGE +1/4 live 4: +1", "2 APPEND MERGE +1/4 live 4: +1"},
		{merge + "WHEN MATCHED AND t.c = 'zz' THEN DELETE", "2 OVERWRITE MERGE +0/3 live 3: -3 +3", "1 APPEND WRITE +3/3 live 3: +3"},
		{merge + "AND t.a > 100 WHEN MATCHED THEN DELETE", "1 APPEND WRITE +3/3 live 3: +3", "1 APPEND WRITE +3/3 live 3: +3"},
		{"INSERT OVERWRITE t VALUES (8, 'o')", "2 OVERWRITE OVERWRITE -2/1 live 1: -3 +1", "2 OVERWRITE OVERWRITE -2/1 live 1: -3 +1"},
	} {
		for mode, want := range map[string]string{"false": c.cow, "true": c.dv} {
			s, _ := newSession(t)
			must(t, s, "CREATE TABLE t (a INT, c STRING) TBLPROPERTIES ('deletion-vectors.enabled'='"+mode+"')", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)", c.sql)
			require.Equal(t, want, effect(t, s), "%s, vectors %s", c.sql, mode)
		}
	}
}

// Truncating a table with vectors takes them along, and an empty table is truncated
// by a snapshot, too.
func TestCommits_TruncateLeavesNoVectors(t *testing.T) {
	s, _ := newSession(t)
	must(t, s, "CREATE TABLE t (a INT, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('deletion-vectors.enabled'='true')",
		"INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'y')", "DELETE FROM t WHERE a = 1", "DELETE FROM t WHERE p = 'x'")
	require.Equal(t, "3 OVERWRITE TRUNCATE -2/1 live 1: -2", effect(t, s))
	must(t, s, "DELETE FROM t WHERE p = 'nowhere'")
	require.Equal(t, "3 OVERWRITE TRUNCATE -2/1 live 1: -2", effect(t, s))
	must(t, s, "DELETE FROM t", "DELETE FROM t")
	require.Equal(t, "5 OVERWRITE TRUNCATE +0/0 live 0:", effect(t, s))
}
