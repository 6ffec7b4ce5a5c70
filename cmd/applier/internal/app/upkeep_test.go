package app

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"applier/merger/compact"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

// Small batches are joined while the pipeline goes on, and no row is lost or twice.
func TestApp_MaintenanceJoinsSmallFilesBesideThePipeline(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    batch: { interval: 200ms, idle_flush: 20ms }\n    maintenance: { compact: true, every: 1s }\n")
	table := w.create(orders(), map[string]string{paimon.OptBucket: "-1", paimon.OptDeletionVectors: "true"})
	r := w.run()
	m := r.app.metrics
	compactions := func() float64 {
		return testutil.ToFloat64(m.Storage.Maintenance.Runs.WithLabelValues("p", "shop.orders", "compact", "done"))
	}
	want := map[int64]string{}
	batches := 0
	change := func() {
		id, note := int64(batches%7), fmt.Sprint("n", batches)
		w.produce(int32(id%2), fmt.Sprintf(`{"id":%d,"note":%q}`, id, note))
		r.records(t, 1)
		want[id] = note
		batches++
	}
	for end := time.Now().Add(patience); compactions() < 2 && time.Now().Before(end); {
		change()
	}
	require.GreaterOrEqual(t, compactions(), 2.0)
	for range 5 {
		change()
	}
	require.Positive(t, testutil.ToFloat64(m.Storage.Maintenance.FilesCompacted.WithLabelValues("p", "shop.orders")))
	require.Zero(t, testutil.ToFloat64(m.Storage.Maintenance.Runs.WithLabelValues("p", "shop.orders", "compact", "failed")))
	r.stop()

	var got, model []string
	peer := w.peer(table)
	peer.live(peer.latest(testContext(t)), func(_ paimon.FileKey, _ uint32, row []types.Datum) {
		got = append(got, fmt.Sprintf("%d %s", row[0].I, row[1].B))
	})
	for id, note := range want {
		model = append(model, fmt.Sprintf("%d %s", id, note))
	}
	slices.Sort(got)
	slices.Sort(model)
	require.Equal(t, model, got)
}

// Whatever the configuration accepts as a window is one.
func TestKeeper_TakesTheWindowsOfTheConfiguration(t *testing.T) {
	for text, want := range map[string]compact.Window{
		"":            {},
		"22:00-06:00": {From: 22 * time.Hour, To: 6 * time.Hour},
		"00:00-23:59": {To: 24*time.Hour - time.Minute},
	} {
		w := newWorld(t, fmt.Sprintf("    key: [id]\n    maintenance: { compact: true, window: %q, rate: 1MiB, deleted_ratio: 0.25, every: 5m }\n", text))
		a, err := New(w.cfg, Options{Log: discard()})
		require.NoError(t, err)
		k, err := a.pipelines["p"].keeper()
		require.NoError(t, err)
		require.EqualValues(t, w.cfg.Memory/8, k.Options.MemoryBytes)
		require.NotNil(t, k.Options.Enter, "joins count against config memory")
		require.Equal(t, compact.Upkeep{Compact: true, Every: 5 * time.Minute, Window: want, Rate: 1 << 20, DeletedRatio: 0.25, Young: 15 * time.Minute}, k.Upkeep)
	}
}
