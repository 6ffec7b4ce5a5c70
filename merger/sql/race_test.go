package sql

import (
	"context"
	"fmt"
	"testing"

	"applier/merger/sqlparse"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// N04, N05: sessions that merge the same new keys at the same time end with one row
// a key, whoever was first: the loser plans again and finds the winner's rows.
func TestMerge_OfManySessionsKeepsKeysUnique(t *testing.T) {
	for _, mode := range []string{"true", "false"} {
		t.Run("vectors "+mode, func(t *testing.T) {
			s, _ := newSession(t)
			must(t, s, "CREATE TABLE t (k INT, n INT) TBLPROPERTIES ('deletion-vectors.enabled'='"+mode+"')")
			group, ctx := errgroup.WithContext(t.Context())
			for worker := range 3 {
				group.Go(func() error { return mergeKeys(ctx, New(s.o), worker) })
			}
			require.NoError(t, group.Wait())
			require.Equal(t, []string{"9  9  45"}, rows(t, s, "SELECT count(*), count(DISTINCT k), sum(n) FROM t"))
		})
	}
}

// mergeKeys adds one to each of nine keys, five times.
func mergeKeys(ctx context.Context, s *Session, worker int) error {
	for round := range 5 {
		for part := range 3 {
			from := 3 * ((part + worker) % 3)
			stmt, err := sqlparse.Parse(fmt.Sprintf("MERGE INTO t USING (SELECT id AS k FROM range(%d, %d)) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET n = t.n + CAST(%d = 0 AS INT) WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, CAST(%d = 0 AS INT))",
				from, from+3, worker, worker))
			if err != nil {
				return err
			}
			if _, err := s.Execute(ctx, stmt); err != nil {
				return fmt.Errorf("worker %d, round %d: %w", worker, round, err)
			}
		}
	}
	return nil
}
