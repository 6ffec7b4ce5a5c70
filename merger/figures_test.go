package merger

import (
	"context"
	"fmt"
	"testing"

	"applier/batcher"
	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

func TestStatus_FiguresDescribeTheTableAndTheIndex(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	for k := range int64(4) {
		r.put(0, k, "a")
	}
	r.commit()
	r.put(0, 1, "b")
	r.put(0, 2, "-")
	r.put(0, 9, "new")
	r.commit()
	s := r.a.Status()
	require.Equal(t, 2, s.Files)
	require.Equal(t, 2, s.SmallFiles, "both are tiny")
	require.Equal(t, 1, s.Partitions)
	require.EqualValues(t, 4, s.LiveRows)
	require.EqualValues(t, 2, s.Deleted)
	require.Positive(t, s.DVBytes)
	require.EqualValues(t, 3, s.Snapshots, "the empty first one and two batches")
	require.EqualValues(t, 2, s.Hits)
	require.EqualValues(t, 5, s.Misses)
}

func TestStatus_BehindCountsSnapshotsAboveThePinnedOne(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "a")
	r.commit()
	require.Zero(t, r.a.Status().Behind, "our own commit moves the pin")
	for k := range int64(3) {
		r.foreign(kvRow(100+k, "x"))
	}
	r.post(Tick{})
	require.EqualValues(t, 3, r.a.Status().Behind)
	r.put(0, 2, "b")
	r.commit()
	require.Zero(t, r.a.Status().Behind)

	off := kvRig(t, rigOptions{apply: batcher.Mirror, settings: func(s *Settings) { s.Pin = false }})
	off.begin()
	off.foreign(kvRow(1, "x"))
	off.post(Tick{})
	require.Zero(t, off.a.Status().Behind, "without a pin nothing is kept")
}

func TestStatus_BehindKnowsAPinThatWasThereBefore(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.foreign(kvRow(1, "x"))
	r.close()
	id, err := paimon.ReadConsumer(context.Background(), r.disk, r.table.Paths(), "applier-p")
	require.NoError(t, err)
	require.EqualValues(t, 1, id)
	r.open(nil)
	r.begin()
	s := r.a.Status()
	require.Equal(t, s.Snapshot.ID-1, s.Behind)
}

func TestCommit_SaysWhereHolesWereFilled(t *testing.T) {
	for _, c := range []struct {
		name  string
		batch func(r *rig)
		want  HoleCounts
	}{
		{"by the row of the table", func(r *rig) { r.put(0, 1, "?") }, HoleCounts{Table: 1}},
		{"by an earlier change of the batch", func(r *rig) { r.put(0, 1, "n"); r.put(0, 1, "?") }, HoleCounts{Batch: 1}},
		{"by nothing", func(r *rig) { putAbsent(r, 7) }, HoleCounts{Unfilled: 1}},
		{"without a hole", func(r *rig) { r.put(0, 1, "n") }, HoleCounts{}},
		{"a hole that a later change covers", func(r *rig) { r.put(0, 1, "?"); r.put(0, 1, "n") }, HoleCounts{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := kvRig(t, rigOptions{apply: batcher.Mirror})
			r.begin()
			r.put(0, 1, "stored")
			r.commit()
			c.batch(r)
			require.Equal(t, c.want, r.commit().Holes, fmt.Sprint(r.rows()))
		})
	}
}

// putAbsent appends a change that says nothing about v.
func putAbsent(r *rig, k int32) {
	c := r.b.Changes()
	n := c.Len()
	c.Cols[0].AppendInt32(k)
	c.Cols[1].AppendNull()
	c.Cols[1].Absent.Set(n)
	c.EndRow(0, 0, r.offsets[0], r.now.UnixMilli())
	r.record(0)
}
