package sql

import (
	"context"
	"fmt"
	"testing"

	"applier/merger"
	"applier/merger/sqlparse"

	"github.com/stretchr/testify/require"
)

// Statements run while a pipeline merges batches into the same rows: the batches set one
// column, the statements another, so that whatever is lost shows, in whichever order
// they come. Each statement makes one snapshot or none. itest has the same with the real
// daemon (TestStatements_OnATableThatTheDaemonWrites).
func TestStatements_BesideAPipeline(t *testing.T) {
	for _, properties := range twinTables {
		t.Run(properties, func(t *testing.T) { besideAPipeline(t, properties) })
	}
}

func besideAPipeline(t *testing.T, properties string) {
	s, _ := newSession(t)
	must(t, s, "CREATE TABLE pipeline (k INT NOT NULL, a INT, b STRING, c DECIMAL(6,2), at TIMESTAMP) TBLPROPERTIES ("+properties+")",
		"INSERT INTO pipeline (k, a, b, c) SELECT CAST(id AS INT), 0, 'x', 0 FROM range(40)")
	clauses, err := merger.ParseMerge([]string{"MATCHED THEN UPDATE SET a = s.a", "NOT MATCHED THEN INSERT (k, a) VALUES (s.k, s.a)"})
	require.NoError(t, err)
	p := startTwin(t, t, s, &merger.Merge{Clauses: clauses})
	defer p.stop()
	done, statements := make(chan error, 1), make(chan struct{}, 1000)
	go func() { done <- runBeside(t.Context(), New(s.o), statements) }()
	rounds, running, ahead := int64(0), true, 0
	for running {
		rounds++
		if ahead++; ahead > besideAhead { // a statement cannot win every race against one who never rests
			select {
			case <-statements:
				ahead = 0
			case err := <-done:
				require.NoError(t, err)
				running = false
			}
		}
		var changes []twinChange
		for k := range int64(20) {
			changes = append(changes, twinChange{k: k, a: &rounds})
		}
		p.apply(t, changes)
		select {
		case err := <-done:
			require.NoError(t, err)
			running = false
		case <-statements:
			ahead = 0
		default:
		}
	}
	require.Equal(t, []string{fmt.Sprintf("20  %d  %d", 20*rounds, 8*besideRounds+100*besideRounds)}, rows(t, s, "SELECT count(*), sum(a), CAST(sum(c) AS INT) FROM pipeline WHERE k < 20"))
	require.Equal(t, []string{fmt.Sprint(20 - besideRounds)}, rows(t, s, "SELECT count(*) FROM pipeline WHERE k BETWEEN 20 AND 39"))
	require.Equal(t, []string{fmt.Sprint(2 * besideRounds)}, rows(t, s, "SELECT count(*) FROM pipeline WHERE k >= 1000"))
	require.Equal(t, []string{fmt.Sprint(1 + 4*besideRounds)}, rows(t, s, "SELECT count(*) FROM `pipeline$snapshots` WHERE commit_user = 'test'"), "a statement makes one snapshot or none")
	t.Logf("%d batches", rounds)
}

const (
	besideRounds = 4
	// besideAhead is how many batches come while one statement is under way.
	besideAhead = 12
)

// runBeside sends to finished behind each statement.
func runBeside(ctx context.Context, s *Session, finished chan<- struct{}) error {
	for i := range besideRounds {
		for _, sql := range []string{
			fmt.Sprintf("UPDATE pipeline SET c = c + 1 WHERE k >= %d AND k < %d", i, i+8),
			fmt.Sprintf("DELETE FROM pipeline WHERE k = %d", 20+i),
			fmt.Sprintf("INSERT INTO pipeline (k) VALUES (%d)", 1000+i),
			fmt.Sprintf("MERGE INTO pipeline t USING (SELECT * FROM VALUES (%d), (%d) AS v(k)) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET c = t.c + 100 WHEN NOT MATCHED THEN INSERT (k) VALUES (s.k)", i, 2000+i),
			"UPDATE pipeline SET c = 7 WHERE k = -1",
		} {
			stmt, err := sqlparse.Parse(sql)
			if err != nil {
				return err
			}
			if _, err := s.Execute(ctx, stmt); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
			finished <- struct{}{}
		}
	}
	return nil
}
