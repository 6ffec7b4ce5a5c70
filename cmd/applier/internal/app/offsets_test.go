package app

import (
	"testing"

	"applier/metrics/admin"
	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

// nexts are the positions of an answer, by partition.
func nexts(o admin.Offsets) []int64 {
	var n []int64
	for _, p := range o.Partitions {
		n = append(n, p.Next)
	}
	return n
}

func (w *world) show() admin.Offsets {
	w.t.Helper()
	o, err := ShowOffsets(testContext(w.t), w.cfg, "p", w.kafka(), discard())
	require.NoError(w.t, err)
	return o
}

func (w *world) change(c admin.OffsetChange) (admin.Offsets, error) {
	return ChangeOffsets(testContext(w.t), w.cfg, "p", w.kafka(), c, discard())
}

func position(partition int32, next int64) admin.Position {
	return admin.Position{Topic: topic, Partition: partition, Next: next}
}

func TestOffsets_SetSkipShow(t *testing.T) {
	w := newWorld(t, "    key: [id]\n")
	w.create(orders(), nil)
	w.produce(0, "1", "2", "3", "4")
	w.produce(1, "1")
	o := w.show()
	require.Equal(t, []int64{-1, -1}, nexts(o))
	require.Contains(t, o.Note, "no position record")
	require.EqualValues(t, 4, o.Partitions[0].End)

	_, err := w.change(admin.OffsetChange{Action: admin.ActionSkip})
	require.ErrorIs(t, err, admin.ErrConflict, "nothing to move yet")
	_, err = w.change(admin.OffsetChange{Action: admin.ActionAdopt})
	require.ErrorIs(t, err, admin.ErrConflict)

	o, err = w.change(admin.OffsetChange{Action: admin.ActionSet, Positions: []admin.Position{position(0, 1)}, DryRun: true})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 0}, nexts(o))
	require.Equal(t, []int64{-1, -1}, nexts(w.show()), "a dry run writes nothing")

	o, err = w.change(admin.OffsetChange{Action: admin.ActionSet, Positions: []admin.Position{position(0, 1)}})
	require.NoError(t, err)
	require.EqualValues(t, 1, o.Snapshot)
	require.Equal(t, []int64{1, 0}, nexts(w.show()))

	o, err = w.change(admin.OffsetChange{Action: admin.ActionSkip, Positions: []admin.Position{position(0, 3)}})
	require.NoError(t, err)
	require.Contains(t, o.Note, "2 offsets are skipped, and the record says so")
	require.Equal(t, []int64{3, 0}, nexts(w.show()), "partition 1 stays")
	require.EqualValues(t, 2, w.show().Snapshot)
}

func TestOffsets_SkipWithoutPositionsStepsOverWhatKafkaRemoved(t *testing.T) {
	w := newWorld(t, "    key: [id]\n")
	w.create(orders(), nil)
	w.produce(0, "1", "2", "3")
	_, err := w.change(admin.OffsetChange{Action: admin.ActionSet})
	require.NoError(t, err)
	_, err = w.change(admin.OffsetChange{Action: admin.ActionSkip})
	require.ErrorContains(t, err, "nothing to skip")
	require.NoError(t, w.broker.DeleteRecords(topic, 0, 2))
	o, err := w.change(admin.OffsetChange{Action: admin.ActionSkip})
	require.NoError(t, err)
	require.Equal(t, []int64{2, 0}, nexts(o))
}

func TestOffsets_RefuseWhatCannotBeMeant(t *testing.T) {
	w := newWorld(t, "    key: [id]\n")
	w.create(orders(), nil)
	w.produce(0, "1", "2")
	_, err := w.change(admin.OffsetChange{Action: admin.ActionSet, Positions: []admin.Position{position(0, 2)}})
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		change admin.OffsetChange
		err    string
	}{
		{"another action", admin.OffsetChange{Action: "jump"}, `action "jump"`},
		{"no such partition", admin.OffsetChange{Action: admin.ActionSet, Positions: []admin.Position{position(7, 0)}}, "there is no partition shop.orders/7"},
		{"outside of the log", admin.OffsetChange{Action: admin.ActionSet, Positions: []admin.Position{position(0, 3)}}, "offset 3 is outside of the log [0, 2]"},
		{"skip goes back", admin.OffsetChange{Action: admin.ActionSkip, Positions: []admin.Position{position(0, 1)}}, "skip cannot go back from 2 to 1; use set"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.change(c.change)
			require.ErrorIs(t, err, admin.ErrInvalid)
			require.ErrorContains(t, err, c.err)
		})
	}
	require.EqualValues(t, 1, w.show().Snapshot)
	_, err = ShowOffsets(testContext(t), w.cfg, "q", w.kafka(), discard())
	require.ErrorIs(t, err, admin.ErrNotFound)
}

func TestOffsets_AdoptTakesTheRecordOfAnotherIdOver(t *testing.T) {
	w := newWorld(t, "    key: [id]\n    id: old\n")
	w.create(orders(), nil)
	w.produce(0, "1", "2")
	_, err := w.change(admin.OffsetChange{Action: admin.ActionSet, Positions: []admin.Position{position(0, 2)}})
	require.NoError(t, err)
	w.configure("    key: [id]\n    id: new\n")
	o := w.show()
	require.Equal(t, []int64{-1, -1}, nexts(o))
	require.Contains(t, o.Note, "there is one of pipeline old")
	o, err = w.change(admin.OffsetChange{Action: admin.ActionAdopt})
	require.NoError(t, err)
	require.Equal(t, []int64{2, 0}, nexts(o))
	require.Equal(t, []int64{2, 0}, nexts(w.show()))
}

func TestOffsets_ATopicThatWasCreatedAgainStartsAnew(t *testing.T) {
	w := newWorld(t, "    key: [id]\n")
	w.create(orders(), nil)
	w.produce(0, "1", "2")
	_, err := w.change(admin.OffsetChange{Action: admin.ActionSet, Positions: []admin.Position{position(0, 2)}})
	require.NoError(t, err)
	require.NoError(t, w.broker.DeleteTopic(topic))
	require.NoError(t, w.broker.CreateTopic(topic, 1, nil))
	o, err := w.change(admin.OffsetChange{Action: admin.ActionSet})
	require.NoError(t, err)
	require.Equal(t, []int64{0}, nexts(o), "old offsets mean nothing there, and the second partition is gone")
	require.Equal(t, []int64{0}, nexts(w.show()))
}

func TestOffsets_WithoutKafkaTheTableStillAnswers(t *testing.T) {
	w := newWorld(t, "    key: [id]\n")
	table := w.create(orders(), nil)
	_, err := w.change(admin.OffsetChange{Action: admin.ActionSet})
	require.NoError(t, err)
	require.NoError(t, w.broker.DeleteTopic(topic))
	o := w.show()
	require.Equal(t, []int64{0, 0}, nexts(o))
	require.EqualValues(t, -1, o.Partitions[0].End)
	_, err = w.change(admin.OffsetChange{Action: admin.ActionSet})
	require.ErrorIs(t, err, admin.ErrConflict)
	id, err := paimon.LatestSnapshotID(testContext(t), table.Bucket(), table.Paths())
	require.NoError(t, err)
	require.EqualValues(t, 1, id)
}
