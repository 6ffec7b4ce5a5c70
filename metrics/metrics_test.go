package metrics

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

// full returns all metrics with at least one series each.
func full(t *testing.T) (*prometheus.Registry, *Metrics) {
	t.Helper()
	reg := prometheus.NewRegistry()
	m := New(reg)
	m.Start("orders", "sales.orders")
	for _, v := range m.vectors {
		values := make([]string, len(v.desc.Labels))
		for i, l := range v.desc.Labels {
			values[i] = "x"
			if len(l.Values) > 0 {
				values[i] = l.Values[0]
			}
		}
		v.touch(values...)
	}
	return reg, m
}

func TestTable_NamesFollowPrometheusConventions(t *testing.T) {
	reg, _ := full(t)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestTable_EveryMetricIsBuiltOnceAndNoOther(t *testing.T) {
	_, m := full(t)
	built := map[string]int{"applier_build_info": 1} // NewRegistry builds it
	for _, v := range m.vectors {
		built[v.desc.Name]++
		require.NotEmpty(t, v.desc.Room, "%s is not in the table", v.desc.Name)
	}
	for _, d := range Table() {
		require.Equal(t, 1, built[d.Name], d.Name)
		delete(built, d.Name)
	}
	require.Empty(t, built)
}

func TestTable_EntriesAreComplete(t *testing.T) {
	reg, _ := full(t)
	types := map[string]string{}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		types[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	seen := map[string]bool{}
	for _, d := range Table() {
		require.False(t, seen[d.Name], "%s is declared twice", d.Name)
		seen[d.Name] = true
		require.Regexp(t, `^applier_[a-z][a-z_]*$`, d.Name)
		require.Regexp(t, `\.$`, d.Help, d.Name)
		if d.Unit == "seconds" || d.Unit == "bytes" {
			require.Regexp(t, "_"+d.Unit+"(_total)?$", d.Name)
		}
		if d.Name != "applier_build_info" {
			require.Equal(t, string(d.Type), types[d.Name], d.Name)
		}
		names := d.labelNames()
		require.Equal(t, len(names), len(slices.Compact(slices.Sorted(slices.Values(names)))), d.Name)
		for _, l := range d.Labels {
			require.NotContains(t, []string{"key", "offset", "snapshot", "file"}, l.Name, d.Name)
		}
	}
}

// Names are a contract with dashboards: removing one is a breaking change.
func TestTable_KeepsThePublishedNames(t *testing.T) {
	have := map[string]bool{}
	for _, d := range Table() {
		have[d.Name] = true
	}
	for _, name := range strings.Fields(`applier_build_info applier_pipeline_up applier_pipeline_state applier_pipeline_halted
		applier_freshness_seconds applier_event_to_commit_seconds applier_source_records_total applier_source_bytes_total
		applier_source_lag_records applier_source_lag_seconds applier_fetch_paused_seconds_total applier_records_dropped_total
		applier_dead_letters_total applier_batch_records applier_batch_keys applier_rows_applied_total applier_batch_stage_seconds
		applier_commits_total applier_last_commit_timestamp_seconds applier_last_snapshot_id applier_commit_bytes_total
		applier_table_live_rows applier_table_deleted_rows applier_table_files applier_table_small_files applier_table_dv_bytes
		applier_table_snapshots applier_table_partitions applier_index_keys applier_index_bytes applier_index_memory_bytes
		applier_index_lookups_total applier_index_rebuild_progress_ratio applier_store_requests_total
		applier_store_request_seconds applier_memory_budget_bytes applier_memory_used_bytes
		applier_source_retention_headroom_seconds applier_source_lso_lag_records applier_snapshots_pinned
		applier_batch_flushes_total applier_foreign_commits_absorbed_total applier_batches_fenced_total
		applier_ownership_flaps_total applier_freshness_slo_seconds applier_lease_held applier_source_retention_seconds
		applier_table_oldest_uncompacted_seconds applier_verify_mismatches_total applier_schema_changes_total
		applier_maintenance_runs_total applier_maintenance_seconds applier_maintenance_bytes_total applier_config_reloads_total
		applier_config_last_reload_success_timestamp_seconds applier_config_hash`) {
		require.True(t, have[name], name)
	}
}

func TestNew_WorksWithoutARegisterer(t *testing.T) {
	m := New(nil)
	m.Start("p", "db.t")
	m.Merger.Commits.WithLabelValues("p", "db.t", "committed").Inc()
	m.Pipeline.Halt("p", "db.t", "K-GAP")
	m.Forget("p")
	for _, room := range []any{
		NewProcess(nil), NewPipeline(nil), NewIngest(nil), NewBatcher(nil), NewMerger(nil), NewStorage(nil),
	} {
		v := reflect.ValueOf(room).Elem()
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Pointer {
				require.False(t, f.IsNil(), "%s.%s", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
}

func TestNew_TwiceOnOneRegistryCountsTogether(t *testing.T) {
	reg := prometheus.NewRegistry()
	a, b := New(reg), New(reg)
	a.Merger.Commits.WithLabelValues("p", "t", "committed").Inc()
	b.Merger.Commits.WithLabelValues("p", "t", "committed").Inc()
	require.EqualValues(t, 2, testutil.ToFloat64(a.Merger.Commits.WithLabelValues("p", "t", "committed")))
	a.Pipeline.Freshness.CaughtUp("p", "t")
	b.Pipeline.Freshness.CaughtUp("p", "t")
	n, err := testutil.GatherAndCount(reg, "applier_freshness_seconds")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestStart_CreatesCountersWithZeroAndNoGauges(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg)
	m.Start("orders", "sales.orders")
	count := func(name string) int {
		n, err := testutil.GatherAndCount(reg, name)
		require.NoError(t, err)
		return n
	}
	require.Equal(t, 5, count("applier_commits_total"))
	require.Equal(t, 8, count("applier_rows_applied_total"))
	require.Equal(t, 9, count("applier_batch_flushes_total"))
	require.Equal(t, 14, count("applier_batch_stage_seconds"))
	require.Equal(t, 1, count("applier_batch_records"))
	require.Equal(t, len(States()), count("applier_pipeline_state"))
	require.Equal(t, 1, count("applier_config_reload_errors_total"))
	require.Zero(t, count("applier_last_commit_timestamp_seconds"))
	require.Zero(t, count("applier_freshness_seconds"))
	require.Zero(t, count("applier_pipeline_halted"))
	require.Zero(t, count("applier_source_lag_records"))
}

func TestForget_LeavesNothingOfThePipeline(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg)
	for _, p := range []string{"a", "b"} {
		m.Start(p, "db."+p)
		m.Ingest.LagRecords.WithLabelValues(p, "db."+p, "topic", "0").Set(1)
		m.Pipeline.Freshness.CaughtUp(p, "db."+p)
		m.Pipeline.Halt(p, "db."+p, "K-GAP")
		m.Pipeline.Committed(p, "db."+p, 7, time.Now(), time.Now())
	}
	m.Forget("a")
	families, err := reg.Gather()
	require.NoError(t, err)
	text := ""
	for _, f := range families {
		text += f.String()
	}
	require.NotContains(t, text, `value:"a"`)
	require.Contains(t, text, `value:"b"`)
}

func TestForgetPartition_RemovesOnlyThatPartition(t *testing.T) {
	m := NewIngest(nil)
	for _, v := range []*prometheus.GaugeVec{m.LagRecords, m.LagSeconds, m.LSOLagRecords, m.RetentionHeadroom} {
		for _, p := range []string{"0", "1", "10"} {
			v.WithLabelValues("p", "db.t", "topic", p).Set(1)
		}
	}
	m.ForgetPartition("p", "topic", 1)
	require.Equal(t, 2, testutil.CollectAndCount(m.LagRecords))
	require.Equal(t, 2, testutil.CollectAndCount(m.RetentionHeadroom))
	m.Retention.WithLabelValues("p", "db.t", "topic").Set(1)
	m.ForgetPartition("other", "topic", 0)
	require.Equal(t, 1, testutil.CollectAndCount(m.Retention))
	m.ForgetPartition("p", "topic", 7)
	require.Equal(t, 0, testutil.CollectAndCount(m.Retention), "it is that of a topic whose partitions are forgotten one by one")
	require.Equal(t, 2, testutil.CollectAndCount(m.LagSeconds))
}

func TestSetState_IsOneHotAndClearsTheHaltCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewPipeline(nil)
		m.SetState("p", "t", StateRunning)
		began := time.Now()
		require.EqualValues(t, 1, testutil.ToFloat64(m.up.WithLabelValues("p", "t")))
		time.Sleep(time.Minute)
		m.SetState("p", "t", StateRunning) // no change: the time stays
		require.EqualValues(t, began.Unix(), testutil.ToFloat64(m.since.WithLabelValues("p", "t")))

		m.Halt("p", "t", "K-GAP")
		m.Halt("p", "t", "T-CHAIN")
		require.EqualValues(t, 0, testutil.ToFloat64(m.up.WithLabelValues("p", "t")))
		require.EqualValues(t, 1, testutil.ToFloat64(m.halted.WithLabelValues("p", "t", "T-CHAIN")))
		require.Equal(t, 1, testutil.CollectAndCount(m.halted))
		require.EqualValues(t, began.Add(time.Minute).Unix(), testutil.ToFloat64(m.since.WithLabelValues("p", "t")))
		sum := 0.0
		for _, s := range States() {
			sum += testutil.ToFloat64(m.state.WithLabelValues("p", "t", s))
		}
		require.EqualValues(t, 1, sum)

		m.SetState("p", "t", StatePaused)
		require.Zero(t, testutil.CollectAndCount(m.halted))
		require.EqualValues(t, 0, testutil.ToFloat64(m.up.WithLabelValues("p", "t")))
	})
}

func TestFreshness_GrowsWhileNobodySetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		f := NewPipeline(reg).Freshness
		value := func() float64 { return testutil.ToFloat64(f) }
		f.CaughtUp("p", "t")
		time.Sleep(time.Hour)
		require.EqualValues(t, 0, value(), "an idle pipeline is fresh")
		f.Behind("p", "t", time.Now().Add(-5*time.Second))
		require.EqualValues(t, 5, value())
		time.Sleep(time.Minute)
		require.EqualValues(t, 65, value())
		f.Behind("p", "t", time.Now().Add(time.Hour))
		require.EqualValues(t, 0, value(), "a clock ahead of ours is not negative age")
		f.CaughtUp("q", "t")
		f.Forget("p")
		n, err := testutil.GatherAndCount(reg, "applier_freshness_seconds")
		require.NoError(t, err)
		require.Equal(t, 1, n, "nothing is said of a table that another instance has")
	})
}

func TestCommitted_ObservesOldestAndNewestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := NewPipeline(reg)
		m.Committed("p", "t", 42, time.Now().Add(-2*time.Second), time.Now().Add(time.Second))
		m.Committed("p", "t", 43, time.Time{}, time.Time{})
		require.EqualValues(t, 43, testutil.ToFloat64(m.LastSnapshot.WithLabelValues("p", "t")))
		require.EqualValues(t, time.Now().Unix(), testutil.ToFloat64(m.LastCommit.WithLabelValues("p", "t")))
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "applier_event_to_commit_seconds" {
				h := f.GetMetric()[0].GetHistogram()
				require.EqualValues(t, 2, h.GetSampleCount())
				require.EqualValues(t, 2, h.GetSampleSum())
				return
			}
		}
		t.Fatal("no histogram")
	})
}

func TestPipeline_IsSafeForConcurrentUse(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New(reg)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := string(rune('a' + i%2))
			for range 50 {
				m.Start(name, "t")
				m.Pipeline.Halt(name, "t", "K-GAP")
				m.Pipeline.Freshness.Behind(name, "t", time.Now())
				_, err := reg.Gather()
				require.NoError(t, err)
				m.Forget(name)
			}
		})
	}
	wg.Wait()
}

func TestNewRegistry_HasBuildGoAndProcessMetrics(t *testing.T) {
	reg := NewRegistry(Build{"1.2.3", "abc", "go1.26"})
	New(reg)
	families, err := reg.Gather()
	require.NoError(t, err)
	names := ""
	for _, f := range families {
		names += f.GetName() + " "
	}
	require.Regexp(t, regexp.MustCompile(`applier_build_info .*go_goroutines .*process_`), names)
}

func TestReference_IsThePageInDocs(t *testing.T) {
	path := filepath.Join("..", "docs", "metrics.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(Reference()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), Reference())
	for _, d := range Table() {
		require.Contains(t, Reference(), "`"+d.Name+"`")
	}
}

func BenchmarkCounter_ResolvedSeries(b *testing.B) {
	c := NewIngest(nil).Records.WithLabelValues("p", "db.t", "insert")
	b.ReportAllocs()
	for b.Loop() {
		c.Add(3)
	}
}
