package app

import (
	"fmt"
	"testing"
	"time"

	"applier/ingest/change"
	"applier/merger"
	"applier/metrics"
	"applier/metrics/admin"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// records takes commits until they cover n records and returns the last.
func (r *running) records(t *testing.T, n int64) commit {
	t.Helper()
	for {
		c := take(t, r.commits)
		n -= c.records
		if n <= 0 {
			return c
		}
	}
}

func TestApp_StatusPauseResumeThroughTheAdminPort(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    batch: { interval: 1s, idle_flush: 50ms }\n")
	w.create(orders(), nil)
	w.produce(0, `{"id":1,"note":"a"}`, `{"id":2,"note":"b"}`, `{"id":3}`)
	r := w.run()
	ctx := testContext(t)
	cl := admin.NewClient(r.admin, "")
	r.records(t, 3)
	s, err := cl.Status(ctx)
	require.NoError(t, err)
	require.Len(t, s.Pipelines, 1)
	p := s.Pipelines[0]
	require.Equal(t, "p", p.Name)
	require.Equal(t, "shop.orders", p.Table)
	require.Equal(t, metrics.StateRunning, p.State)
	require.EqualValues(t, 3, p.Rows.Inserted)
	require.Empty(t, r.app.Ready())
	require.False(t, r.app.Halted())

	require.NoError(t, cl.Pause(ctx, "p"))
	s, err = cl.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, metrics.StatePaused, s.Pipelines[0].State)
	w.produce(0, `{"id":4,"note":"d"}`)
	require.NoError(t, cl.Resume(ctx, "p"))
	r.records(t, 1)
	require.NoError(t, cl.Flush(ctx, "p"))

	o, err := cl.Offsets(ctx, "p")
	require.NoError(t, err)
	require.Equal(t, []int64{4, 0}, nexts(o))
	require.Error(t, cl.Pause(ctx, "q"))
	_, err = r.app.Offsets(ctx, "q")
	require.ErrorIs(t, err, admin.ErrNotFound)
	_, err = r.app.ChangeOffsets(ctx, "q", admin.OffsetChange{})
	require.ErrorIs(t, err, admin.ErrNotFound)

	pipe := r.app.pipelines["p"]
	pipe.gauges(pipe.applier.Status())
	m := r.app.metrics
	require.EqualValues(t, 4, testutil.ToFloat64(m.Merger.IndexLookups.WithLabelValues("p", "shop.orders", "miss")))
	require.EqualValues(t, 1, testutil.ToFloat64(m.Batcher.Holes.WithLabelValues("p", "shop.orders", "unfilled")))
	require.EqualValues(t, 2, testutil.ToFloat64(m.Storage.SmallFiles.WithLabelValues("p", "shop.orders")))
	require.EqualValues(t, 0, testutil.ToFloat64(m.Storage.SnapshotsPinned.WithLabelValues("p", "shop.orders")))
	r.stop()
	require.Equal(t, []string{"shutting down"}, r.app.Ready())
}

func TestApp_APoisonRecordHaltsUntilItIsSteppedOver(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    batch: { interval: 1s, idle_flush: 50ms }\n")
	w.create(orders(), nil)
	w.produce(0, `{"id":1}`, `not json`, `{"id":3}`)
	r := w.run()
	ctx := testContext(t)
	cl := admin.NewClient(r.admin, "")
	r.records(t, 1)
	applier := r.app.pipelines["p"].applier
	require.True(t, applier.Await(ctx, func(s merger.Status) bool { return s.Halt != nil }))
	require.Equal(t, []string{"p: halted with D-ROW"}, r.app.Ready())
	require.True(t, r.app.Halted())
	s, err := cl.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, metrics.StateFailed, s.Pipelines[0].State)
	require.Equal(t, "D-ROW", s.Pipelines[0].Halt.Code)
	require.NotEmpty(t, s.Pipelines[0].Halt.Remedy)
	_, err = cl.ChangeOffsets(ctx, "p", admin.OffsetChange{Action: admin.ActionSkip, Positions: []admin.Position{position(0, 2)}})
	require.NoError(t, err)
	c := r.records(t, 1)
	require.EqualValues(t, 1, c.counts.Inserted)
	require.False(t, r.app.Halted())
}

func TestApp_APipelineThatCannotStartIsToldInTheStatus(t *testing.T) {
	w := newWorld(t, "    key: [id]\n")
	r := w.run()
	cl := admin.NewClient(r.admin, "")
	require.Eventually(t, func() bool {
		return len(r.app.Ready()) == 1 && r.app.Ready()[0] == "p: cannot start: the table does not exist"
	}, patience, time.Millisecond)
	s, err := cl.Status(testContext(t))
	require.NoError(t, err)
	require.Equal(t, metrics.StateBackoff, s.Pipelines[0].State)
	require.Contains(t, s.Pipelines[0].LastError, "create: {}")
	require.ErrorIs(t, r.app.Pause(testContext(t), "p"), admin.ErrConflict)
}

func TestAges_TheOldestRecordThatWaits(t *testing.T) {
	p := change.Partition{Topic: "t"}
	now := time.UnixMilli(100_000)
	var a ages
	require.Zero(t, a.age(p, 0, 5, now), "nothing was fetched yet")
	for i := range int64(3) {
		a.head(p, 10*i, 1000*i)
	}
	require.Equal(t, 100*time.Second, a.age(p, 5, 20, now))
	require.Equal(t, 99*time.Second, a.age(p, 10, 20, now))
	a.head(p, 10, 50_000) // reading began again there
	require.Equal(t, 50*time.Second, a.age(p, 12, 20, now))
	require.Zero(t, a.age(p, 30, 0, now))
	require.Zero(t, a.age(p, 30, 1, now), "and is forgotten")
	a.head(p, 40, 200_000)
	require.Zero(t, a.age(p, 40, 1, now), "clocks differ")
	for i := range int64(2 * maxHeads) {
		a.head(p, 100+i, 0)
	}
	require.LessOrEqual(t, len(a.heads[p]), maxHeads)
}

func TestRising_FollowsACounterThatIsReplaced(t *testing.T) {
	var r rising
	var got []int64
	for _, n := range []int64{3, 3, 10, 2, 4} {
		got = append(got, r.advance(n))
	}
	require.Equal(t, []int64{3, 0, 7, 2, 2}, got, fmt.Sprint(r))
}

func TestFreshness_GrowsWhileInputWaits(t *testing.T) {
	w := newWorld(t, "    key: [id]\n")
	a, err := New(w.cfg, Options{Log: discard()})
	require.NoError(t, err)
	p := a.pipelines["p"]
	a.metrics.Start("p", p.target)
	value := func() float64 {
		t.Helper()
		families, err := a.registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "applier_freshness_seconds" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		require.FailNow(t, "no such metric")
		return 0
	}
	p.advanceVisible(time.Now().Add(-time.Hour))
	p.fresh(false, time.Now())
	require.GreaterOrEqual(t, value(), 3600.0)
	p.fresh(true, time.Now())
	require.Zero(t, value())
	p.advanceVisible(time.Now().Add(-time.Hour))
	p.fresh(false, time.Now())
	require.Less(t, value(), 3600.0, "it was caught up a moment ago")
}

func TestApp_LateChangesAreCountedWhereverTheyAreFound(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    apply: upsert\n    order_by: [note]\n    batch: { interval: 1s, idle_flush: 50ms }\n")
	w.create(orders(), nil)
	w.produce(0, `{"id":1,"note":"c"}`, `{"id":1,"note":"b"}`) // late in its batch
	r := w.run()
	r.records(t, 2)
	w.produce(0, `{"id":1,"note":"a"}`) // late against the table
	r.records(t, 1)
	require.EqualValues(t, 2, testutil.ToFloat64(r.app.metrics.Ingest.Dropped.WithLabelValues("p", "shop.orders", "late")))
	s, err := admin.NewClient(r.admin, "").Status(testContext(t))
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Pipelines[0].Rows.Inserted)
	require.Zero(t, s.Pipelines[0].Rows.Updated)
	r.stop()
}
