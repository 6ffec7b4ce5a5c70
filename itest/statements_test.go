//go:build itest

package itest

import (
	"fmt"
	"os/user"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// TestStatements_OnATableThatTheDaemonWrites runs UPDATE, DELETE, MERGE and INSERT in a
// loop while a daemon merges batches into the same rows: the records set one column, the
// statements another, so that whatever is lost shows, in whichever order they come.
// Statements that are overtaken are planned again, and each makes one snapshot or none.
func TestStatements_OnATableThatTheDaemonWrites(t *testing.T) {
	for name, vectors := range map[string]string{"copy on write": "false", "deletion vectors": "true"} {
		t.Run(name, func(t *testing.T) { statementsBesideTheDaemon(t, vectors) })
	}
}

func statementsBesideTheDaemon(t *testing.T, vectors string) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: "batch: { rows: 10, interval: 50ms, idle_flush: 20ms }"})
	sql := func(statements ...string) []harness.SQLAnswer {
		answers, err := harness.ApplierSQL(t.Context(), t, r.Warehouse, statements...)
		require.NoError(t, err)
		for i, a := range answers {
			require.Nil(t, a.Error, "%s", statements[i])
		}
		return answers
	}
	sql("CREATE DATABASE db", "CREATE TABLE db.t (id BIGINT NOT NULL, v STRING, n INT) TBLPROPERTIES ('bucket'='-1', 'deletion-vectors.enabled'='"+vectors+"')")
	m := newModel([]string{"id", "v", "n"}, []string{"id"})
	var first []*kgo.Record
	for id := range 60 {
		first = append(first, put(topic, 0, fmt.Sprintf(`{"id":%d,"v":"first","n":0}`, id)))
	}
	r.feed(m, first...)
	p := r.start()
	r.waitApplied(p)
	before := len(snapshotIDs(r.ref()))
	statements, changes := statementsOf(m)
	done := make(chan []harness.SQLAnswer)
	go func() {
		defer close(done)
		answers, err := harness.ApplierSQL(t.Context(), t, r.Warehouse, statements...)
		if err == nil {
			done <- answers
		}
	}()
	var answers []harness.SQLAnswer
	for round := 0; answers == nil; round++ {
		for i := range 8 {
			r.feed(m, put(topic, 0, row((5*round+i)%40, fmt.Sprint("round ", round))))
		}
		r.waitApplied(p)
		select {
		case a, ok := <-done:
			require.True(t, ok, "the statements were not run")
			answers = a
		default:
		}
	}
	for i, a := range answers {
		require.Nil(t, a.Error, "%s", statements[i])
	}
	harness.MustStop(t, p)
	r.holds(m)
	r.proven()
	who, turns := whoCommitted(t, r)
	require.Equal(t, changes, who["statements"], "a statement makes one snapshot or none")
	require.Greater(t, turns, 4, "the two took turns")
	lost := strings.Count(p.Output.String(), "what=lost_race") + strings.Count(p.Output.String(), "what=still_moved")
	t.Logf("%d snapshots before; of the daemon %d, of statements %d, in %d turns; the daemon was overtaken %d times", before, who["daemon"], changes, turns, lost)
}

// statementsOf are the statements, how many of them change something, and what they do
// to the model: n of the ids 0 to 19 grows, 40 to 51 go, others come.
func statementsOf(m *model) (list []string, changes int) {
	n := make([]int, 20)
	change := func(sql string) { list, changes = append(list, sql), changes+1 }
	for i := range 12 {
		change(fmt.Sprintf("UPDATE db.t SET n = n + 1 WHERE id >= %d AND id < %d", i, i+8))
		for id := i; id < i+8; id++ {
			n[id]++
		}
		change(fmt.Sprintf("DELETE FROM db.t WHERE id = %d", 40+i))
		m.remove(fmt.Sprintf(`{"id":%d}`, 40+i))
		change(fmt.Sprintf("INSERT INTO db.t VALUES (%d, 'by hand', NULL)", 1000+i))
		m.insert(fmt.Sprintf(`{"id":%d,"v":"by hand"}`, 1000+i))
		change(fmt.Sprintf("MERGE INTO db.t t USING (SELECT * FROM VALUES (%d), (%d) AS v(id)) s ON t.id = s.id "+
			"WHEN MATCHED THEN UPDATE SET n = t.n + 100 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'merged')", i, 2000+i))
		n[i] += 100
		m.insert(fmt.Sprintf(`{"id":%d,"v":"merged"}`, 2000+i))
		list = append(list, "UPDATE db.t SET n = 7 WHERE id = -1")
	}
	for id, n := range n {
		m.upsert(fmt.Sprintf(`{"id":%d,"n":%d}`, id, n))
	}
	return list, changes
}

// whoCommitted counts the snapshots of the daemon and of statements by their users, and
// how often the one came after the other.
func whoCommitted(t *testing.T, r *rig) (who map[string]int, turns int) {
	me, err := user.Current()
	require.NoError(t, err)
	answers, err := harness.ApplierSQL(t.Context(), t, r.Warehouse, "SELECT commit_user FROM `db`.`t$snapshots` ORDER BY snapshot_id")
	require.NoError(t, err)
	require.Nil(t, answers[0].Error)
	who = map[string]int{}
	last := ""
	for _, row := range answers[0].Rows {
		now := "daemon"
		if strings.HasPrefix(string(row), `["`+me.Username+"-") {
			now = "statements"
		}
		if who[now]++; now != last && last != "" {
			turns++
		}
		last = now
	}
	return who, turns
}

// TestStatements_StreamsDoNotSeeRowsThatReplaceOthers: a MERGE that updates and inserts
// is a snapshot that replaces rows, which Paimon's streaming readers pass over unless
// they are asked to read such ones (N19 of row-level.md); one that only inserts is seen.
func TestStatements_StreamsDoNotSeeRowsThatReplaceOthers(t *testing.T) {
	java, ctx := harness.Java(t), t.Context()
	for _, vectors := range []string{"false", "true"} {
		ref := harness.Ref{Warehouse: t.TempDir(), Table: "default.t"}
		answers, err := harness.ApplierSQL(ctx, t, ref.Warehouse,
			"CREATE TABLE t (id INT, v STRING) TBLPROPERTIES ('deletion-vectors.enabled'='"+vectors+"')",
			"INSERT INTO t VALUES (1, 'first'), (2, 'first')",
			"MERGE INTO t USING (SELECT * FROM VALUES (1, 'merged'), (3, 'merged') AS v(id, v)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
			"MERGE INTO t USING (SELECT 4 AS id, 'new' AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *")
		require.NoError(t, err)
		for _, a := range answers {
			require.Nil(t, a.Error)
		}
		seen, err := java.Stream(ctx, ref, 1, false)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{`{"id":1,"v":"first"}`, `{"id":2,"v":"first"}`, `{"id":4,"v":"new"}`}, seen, "vectors %s", vectors)
		seen, err = java.Stream(ctx, ref, 1, true)
		require.NoError(t, err)
		require.Subset(t, seen, []string{`{"id":1,"v":"merged"}`, `{"id":3,"v":"merged"}`, `{"id":4,"v":"new"}`}, "vectors %s", vectors)
	}
}
