package main

import (
	"strings"
	"testing"
	"time"

	"applier/metrics"
	"applier/metrics/admin"

	"github.com/stretchr/testify/require"
)

func TestPrintStatus_SaysWhyAPipelineIsStuckAndHowItsTableIs(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := admin.Status{Pipelines: []admin.PipelineStatus{
		{
			Name: "orders", State: metrics.StateRunning, Table: "sales.orders", Snapshot: 12, LagRecords: 40, FreshnessSeconds: 90, FreshnessSLOSeconds: 60,
			LastCommit: now.Add(-1500 * time.Millisecond), Rows: admin.RowCounts{Commits: 3}, Index: admin.IndexStatus{Keys: 1000, MemoryBytes: 3 << 19},
			Why:     "tried again: no space\x1b[2Jleft",
			Commits: []admin.CommitStatus{{Snapshot: 12, Time: now.Add(-1500 * time.Millisecond), Records: 30, Inserted: 10, Updated: 19, Deleted: 1, Seconds: .0354}},
			Health:  &admin.TableHealth{LiveRows: 1000, DeletedRows: 7, Files: 4, SmallFiles: 2, Snapshots: 9, UncompactedSeconds: 3 * 86400},
		},
		{
			Name: "stopped", State: metrics.StateFailed, Table: "sales.stopped", Snapshot: 3, Health: &admin.TableHealth{Files: 1, LiveRows: 5}, FreshnessKnown: true,
			Halt: &admin.Halt{Code: "K-GAP", Message: "Records are gone.", Remedy: "Skip them."}, Why: "not said beside a halt",
			Alarms: []admin.Halt{{Code: "K-LSO", Message: "A transaction.", Remedy: "End it."}},
		},
		{Name: "young", State: metrics.StateStandby, Why: "another instance", Health: &admin.TableHealth{}},
		{Name: "new", State: metrics.StateBackoff, Table: "sales.new", LastError: "the table does not exist"},
	}}
	var b strings.Builder
	printStatus(&b, s, now)
	require.Equal(t, strings.TrimPrefix(`
orders               running          table sales.orders, snapshot 12, lag 40 records, 3 commits
    tried again: no space [2Jleft
    fresh: as of 1m30s ago, promised within 1m0s: LATE; last commit 1.5s ago
    table: 1000 rows and 7 deleted ones in 4 files (2 small), 9 snapshots, to be compacted since 3 days
    index: 1000 keys in 1.5 MiB
    commit 12 1.5s ago: 30 records, 10 inserted, 19 updated, 1 deleted, in 35ms
stopped              failed           table sales.stopped, snapshot 3, lag 0 records, 0 commits
    K-GAP: Records are gone.
    Skip them.
    K-LSO: A transaction.
    End it.
    fresh: everything in Kafka is in the table
    table: 5 rows and 0 deleted ones in 1 files (0 small), 0 snapshots
    index: 0 keys in 0.0 MiB
young                standby          table , snapshot 0, lag 0 records, 0 commits
    another instance
    fresh: not known
    table: 0 rows and 0 deleted ones in 0 files (0 small), 0 snapshots
    index: 0 keys in 0.0 MiB
new                  backoff          table sales.new, snapshot 0, lag 0 records, 0 commits
    the table does not exist
`, "\n"), b.String())
}
