//go:build itest && itestfull

package itest

import (
	"encoding/base64"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// TestMemoryGroup_CompactionStaysWithinMemory: 25 files, whose rows together are more
// than memory, become a few beside the pipeline, inside a group that kills the daemon
// a little above memory.
func TestMemoryGroup_CompactionStaysWithinMemory(t *testing.T) {
	const files, rows = 25, 20_000
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: "create: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 20000, interval: 1m, idle_flush: 1s }"})
	r.configure("memory: 512MiB")
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, 180)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	produce := func(step int) {
		var recs []*kgo.Record
		for id := 0; id < files*rows; id += step {
			recs = append(recs, put(topic, 0, row(id, text())))
		}
		r.kafka.Produce(t, recs...)
	}
	produce(1)
	p := r.start()
	r.waitApplied(p)
	produce(1000) // a deleted row in every file: each is written again
	r.waitApplied(p)
	r.metricIs(files+1, "applier_table_files")
	harness.MustStop(t, p)

	r.set("batch: { rows: 20000, interval: 1m, idle_flush: 1s }\nmaintenance: { compact: true, every: 1s, deleted_ratio: 0.0001 }")
	r.configure("memory: 128MiB")
	g := harness.NewMemoryGroup(t, 160<<20)
	p = r.start(harness.Run{Memory: g})
	r.waitMetric("applier_maintenance_rows_purged_total", func(v float64) bool { return v >= files*rows/1000 })
	produce(1000)
	r.waitApplied(p)
	harness.MustStop(t, p)
	kills, err := g.OOMKills()
	require.NoError(t, err)
	require.Zero(t, kills)
	peak, err := g.Peak()
	require.NoError(t, err)
	t.Logf("peak %d MiB", peak>>20)
	n, err := harness.Java(t).Count(t.Context(), r.ref(), harness.Query{})
	require.NoError(t, err)
	require.EqualValues(t, files*rows, n)
}
