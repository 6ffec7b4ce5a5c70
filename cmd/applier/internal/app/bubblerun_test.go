//go:build synctests

package app

import (
	"context"
	"testing"
	"time"

	"applier/metrics"

	"github.com/stretchr/testify/require"
)

// TestBubble_MemoryThatIsUsedUpPausesReading until some is freed; nothing is lost
// and the group is kept.
func TestBubble_MemoryThatIsUsedUpPausesReading(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		generation := b.brokers.GroupInfo("applier.p").Epoch
		hog := m.app.budget.Account()
		hog.Set(1 << 50)
		time.Sleep(5 * time.Second)
		from := pausedFor(m)
		for i := range 30 {
			b.put(keyed{int32(i % 2), i, "x"})
			time.Sleep(time.Second)
		}
		require.Greater(t, pausedFor(m)-from, 10.0, "seconds without reading")
		require.Equal(t, generation, b.brokers.GroupInfo("applier.p").Epoch, "it stayed in the group")
		at := time.Now()
		hog.Set(0)
		b.holds(5 * time.Second)
		t.Log("applied after", time.Since(at))
		time.Sleep(2 * time.Second) // the last pause is counted at its end
		paused := pausedFor(m)
		time.Sleep(time.Minute)
		require.Equal(t, paused, pausedFor(m))
	})
}

// TestBubble_PausedItWritesNothing and goes on where it was.
func TestBubble_PausedItWritesNothing(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		ctx := context.Background()
		require.NoError(t, m.app.Pause(ctx, "p"))
		b.put(keyed{0, 1, "b"}, keyed{1, 2, "c"})
		before, writes := b.rows(), len(m.store.Calls())
		time.Sleep(time.Hour)
		require.Equal(t, before, b.rows())
		for _, call := range m.store.Calls()[writes:] {
			require.NotContains(t, call, "put", "it writes while it is paused")
		}
		require.Equal(t, metrics.StatePaused, m.app.Status().Pipelines[0].State)
		require.NoError(t, m.app.Resume(ctx, "p"))
		b.holds(time.Minute)
		require.NoError(t, m.app.Pause(ctx, "p"))
		b.put(keyed{0, 1, "d"})
		m.drain()
		b.join()
		b.holds(time.Minute)
	})
}

// TestBubble_IdleItDoesLittle: a quiet pipeline looks at its table now and then,
// writes no snapshots, and is still in the group after a day.
func TestBubble_IdleItDoesLittle(t *testing.T) {
	inBubble(t, mirror, func(b *bubble) {
		m := b.join()
		b.put(keyed{0, 1, "a"})
		b.holds(time.Minute)
		before, calls := snapshots(b), len(m.store.Calls())
		const quiet = 2 * time.Hour
		time.Sleep(quiet)
		require.Equal(t, before, snapshots(b))
		perTick := float64(len(m.store.Calls())-calls) / (quiet.Seconds() / 5)
		require.Less(t, perTick, 12.0, "calls to the store each five seconds")
		require.Greater(t, perTick, 0.5, "the table is not looked at")
		b.put(keyed{0, 1, "b"})
		b.holds(2 * time.Second)
	})
}
