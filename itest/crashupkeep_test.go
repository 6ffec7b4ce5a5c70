//go:build itest && itestfull

package itest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// TestCrash_MaintenanceIsKilledAtEveryStep: the daemon, which compacts and expires
// beside its commits, is killed at every step of both, and no row is lost or doubled.
func TestCrash_MaintenanceIsKilledAtEveryStep(t *testing.T) {
	topic := newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic, More: `create: { types: { id: BIGINT, v: STRING }, options: { snapshot.time-retained: 1 s, snapshot.num-retained.min: "2", compaction.min.file-num: "2" } }
batch: { rows: 40, interval: 100ms, idle_flush: 20ms }
maintenance: { compact: true, expire: true, every: 1s }`})
	r.configure("stuck_after: 5s") // younger snapshots stay
	m := newModel([]string{"id", "v"}, []string{"id"})
	rnd := rand.New(rand.NewPCG(1, 1))
	var kills int
	points := []string{
		"compact/joined=kill", "compact/publish=kill", "objstore/delete/unlinked=kill@2", "objstore/delete/unlinked=kill@5",
	}
	for cycle, point := range points {
		var recs []*kgo.Record
		for i := range 300 {
			id := rnd.IntN(200)
			rec := put(topic, 0, row(id, fmt.Sprintf("cycle %d, %d", cycle, i)))
			if rnd.IntN(5) == 0 {
				rec = del(topic, 0, fmt.Sprintf(`{"id":%d}`, id))
			}
			m.apply(rec)
			recs = append(recs, rec)
		}
		r.kafka.Produce(t, recs...)
		if cycle%4 >= 2 { // something old enough to expire, and something to compact again
			p := r.start()
			r.waitApplied(p)
			r.waitMetric("applier_maintenance_files_compacted_total", func(v float64) bool { return v > 0 })
			harness.MustStop(t, p)
		}
		kills += crashCycle(t, r, rnd, point)
	}
	require.Equal(t, len(points), kills)
	p := r.start()
	r.waitApplied(p)
	r.waitMetric("applier_maintenance_snapshots_expired_total", func(v float64) bool { return v > 0 })
	harness.MustStop(t, p)
	r.holds(m)
	r.proven()
	require.Greater(t, snapshotIDs(r.ref())[0], int64(1))
}
