package compact

import (
	"testing"
	"time"

	"applier/merger"
	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

// record commits an empty snapshot with the record of a pipeline.
func (w *world) record(pipeline string) {
	c, err := w.table.BuildCommit(bg, w.state(), paimon.Changes{}, paimon.CommitInfo{
		UUID: w.uuid(), User: "p", TimeMillis: w.now().UnixMilli(), NewUUID: w.uuid,
		Properties: map[string]string{merger.PropertyPrefix + pipeline: `{"v":1}`},
	})
	require.NoError(w.t, err)
	require.NoError(w.t, w.bucket.PutAll(bg, c.Objects))
	require.NoError(w.t, w.table.Publish(bg, c))
}

func TestPlanExpire_KeepsTheNewestPositionsOfEveryPipeline(t *testing.T) {
	w := newWorld(t, 1, modes["deletion vectors"])
	all := paimon.ExpireOptions{RetainMin: 1, RetainMax: 1, Now: time.UnixMilli(1 << 50)}
	w.insert(1)
	w.record("a") // 2
	w.record("b") // 3
	w.insert(1)
	w.record("a") // 5
	w.insert(1)
	p, err := PlanExpire(bg, w.table, all, 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, p.To)
	require.Equal(t, "it has the newest Kafka positions of pipeline b", p.HeldBy)
	require.NoError(t, w.table.Expire(bg, p))
	w.holds()

	w.record("b") // 7: its older record is needed no more, that of a is the oldest now
	p, err = PlanExpire(bg, w.table, all, 0)
	require.NoError(t, err)
	require.EqualValues(t, 5, p.To)
	all.KeepFrom, all.KeptFor = 4, "the caller says so"
	p, err = PlanExpire(bg, w.table, all, 0)
	require.NoError(t, err)
	require.EqualValues(t, 4, p.To)
	require.Equal(t, "the caller says so", p.HeldBy)
}

func TestPlanExpire_OfATableWithoutPipelinesFollowsItsOptions(t *testing.T) {
	w := newWorld(t, 1, modes["deletion vectors"])
	for range 5 {
		w.insert(1)
	}
	p, err := PlanExpire(bg, w.table, paimon.ExpireOptions{RetainMin: 2, RetainMax: 2, Now: time.UnixMilli(1 << 50)}, 0)
	require.NoError(t, err)
	require.EqualValues(t, 4, p.To)
}

// The world's clock moves a second a commit: snapshot n+1 is a second younger than n.
func TestPlanExpire_KeepsWhatIsYoung(t *testing.T) {
	w := newWorld(t, 2, modes["deletion vectors"])
	for range 10 {
		w.insert(1)
	}
	last, err := paimon.ReadSnapshot(bg, w.bucket, w.table.Paths(), 10)
	require.NoError(t, err)
	o := paimon.ExpireOptions{RetainMin: 1, RetainMax: 1, Now: time.UnixMilli(last.TimeMillis)}
	step := func(id int64) time.Duration {
		s, err := paimon.ReadSnapshot(bg, w.bucket, w.table.Paths(), id)
		require.NoError(t, err)
		return time.Duration(last.TimeMillis-s.TimeMillis) * time.Millisecond
	}
	for _, c := range []struct {
		young time.Duration
		to    int64
		held  string
	}{
		{0, 10, "the 1 newest snapshots stay"},
		{time.Millisecond, 10, "the 1 newest snapshots stay"},
		{step(7), 8, "younger than"}, // 7 is exactly as old
		{step(7) + time.Millisecond, 7, "younger than"},
		{time.Hour, 1, "younger than"},
	} {
		p, err := PlanExpire(bg, w.table, o, c.young)
		require.NoError(t, err)
		require.Equal(t, c.to, p.To, c.young)
		require.Contains(t, p.HeldBy, c.held)
	}
	w.record("a")
	w.insert(1)
	w.record("a")
	w.insert(1)
	o.Now = w.now()
	p, err := PlanExpire(bg, w.table, o, time.Millisecond)
	require.NoError(t, err)
	require.EqualValues(t, 13, p.To, "what lies further back holds")
	require.Contains(t, p.HeldBy, "pipeline a")
}
