//go:build synctests

package app

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"applier/storage/objstore"
	"applier/storage/paimon"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

const maintained = mirror + "    maintenance: { compact: true, expire: true, orphans: true, every: 1m }\n"

// rounds counts a member's rounds of maintenance.
func (m *member) rounds(action, result string) float64 {
	return testutil.ToFloat64(m.app.metrics.Storage.Maintenance.Runs.WithLabelValues("p", "shop.orders", action, result))
}

// TestBubble_MaintenanceKeepsTheTableInShape over hours of small commits, beside the
// pipeline, which follows what maintenance commits; an instance that stands by does
// nothing, and one that starts anew finds its positions.
func TestBubble_MaintenanceKeepsTheTableInShape(t *testing.T) {
	inBubble(t, maintained, func(b *bubble) {
		rng := rand.New(rand.NewPCG(7, 7))
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		standby := b.join()
		for range 50 {
			b.put(b.want.some(rng, 4, 2)...)
			time.Sleep(3 * time.Minute)
			require.Empty(t, m.code(), "%s", b.story())
		}
		b.holds(time.Minute)
		owner := m
		if standby.pipeline().consumer.Owned() {
			owner = standby
		}
		s, _ := owner.status()
		require.Less(t, s.Files, 15, "%s", b.story())
		ids, err := paimon.ListSnapshotIDs(context.Background(), b.disk, b.table.Paths())
		require.NoError(t, err)
		require.Less(t, len(ids), 45, "an hour of snapshots is kept")
		require.Greater(t, ids[0], int64(20))
		for _, action := range []string{"compact", "expire"} {
			require.Greater(t, m.rounds(action, "done")+standby.rounds(action, "done"), 4.0, action)
			require.Greater(t, m.rounds(action, "nothing")+standby.rounds(action, "nothing"), 4.0, action)
			require.Zero(t, m.rounds(action, "failed")+standby.rounds(action, "failed"), "%s", b.story())
		}
		require.EqualValues(t, 1, owner.rounds("orphans", "nothing"), "once a day")
		mm := owner.app.metrics.Storage.Maintenance
		require.Positive(t, testutil.ToFloat64(mm.FilesCompacted.WithLabelValues("p", "shop.orders")))
		require.Positive(t, testutil.ToFloat64(mm.SnapshotsExpired.WithLabelValues("p", "shop.orders")))
		require.Positive(t, testutil.ToFloat64(mm.Bytes.WithLabelValues("p", "shop.orders", "written")))
		if owner == m {
			require.Zero(t, standby.rounds("compact", "nothing"), "it stood by")
		}

		for _, x := range b.members {
			x.drain()
		}
		b.put(b.want.some(rng, 4, 2)...)
		b.join()
		b.holds(time.Minute)
	})
}

// TestBubble_MaintenanceThatFailsStopsNothing: it is told, counted and tried again.
func TestBubble_MaintenanceThatFailsStopsNothing(t *testing.T) {
	inBubble(t, maintained, func(b *bubble) {
		m := b.join()
		sick := errors.New("the disk is sick")
		for _, op := range []string{"open", "read", "get"} {
			m.store.Add(objstore.Rule{Op: op, Key: "bucket-0/*", Err: sick}) // the pipeline only writes there
		}
		for i := range 30 {
			b.put(keyed{int32(i % 2), i, "x"})
			time.Sleep(30 * time.Second)
			require.Empty(t, m.code(), "%s", b.story())
		}
		b.holds(time.Minute)
		require.Greater(t, m.rounds("compact", "failed"), 3.0, "%s", b.story())
		require.Zero(t, m.rounds("compact", "done"))
		require.Positive(t, m.rounds("expire", "nothing"), "the rest is done")
		require.True(t, m.log.has("WARN", "keeping the table in shape failed", sick.Error()), "%s", m.log)
		m.heal()
		b.eventually(5*time.Minute, "a compaction", func() bool { return m.rounds("compact", "done") > 0 })
		b.put(keyed{0, 1, "y"})
		b.holds(time.Minute)
	})
}

// TestBubble_APauseEndsMaintenance at once, and none begins while it lasts.
func TestBubble_APauseEndsMaintenance(t *testing.T) {
	inBubble(t, maintained, func(b *bubble) {
		m := b.join()
		m.store.Add(objstore.Rule{Op: "open", Key: "bucket-0/*", Delay: 24 * time.Hour})
		for i := range 12 {
			b.put(keyed{int32(i % 2), i, "x"})
			time.Sleep(5 * time.Second)
		}
		b.holds(time.Minute)
		time.Sleep(time.Minute) // a round is at it, and waits for the disk
		told := func() float64 {
			return m.rounds("compact", "done") + m.rounds("compact", "nothing") + m.rounds("compact", "failed")
		}
		rounds := told()
		time.Sleep(10 * time.Minute)
		require.Equal(t, rounds, told(), "%s", b.story())
		at := time.Now()
		require.NoError(t, m.app.Pause(context.Background(), "p"))
		require.Less(t, time.Since(at), time.Second)
		m.heal()
		before, calls := b.rows(), len(m.store.Calls())
		time.Sleep(3 * time.Hour)
		require.Equal(t, before, b.rows())
		for _, call := range m.store.Calls()[calls:] {
			require.NotContains(t, call, "put", "it writes while it is paused")
		}
		require.Zero(t, m.rounds("compact", "done"))
		require.NoError(t, m.app.Resume(context.Background(), "p"))
		b.eventually(5*time.Minute, "a compaction", func() bool { return m.rounds("compact", "done") > 0 })
		b.put(keyed{0, 1, "y"})
		b.holds(time.Minute)
	})
}
