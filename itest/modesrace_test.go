//go:build itest

package itest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// TestRace_InOtherTableModes has Java commit right before our publish, on files of
// the batch: they are copied, marked or numbered again.
func TestRace_InOtherTableModes(t *testing.T) {
	for name, options := range map[string]map[string]string{
		"copy on write":               {"bucket": "-1"},
		"row tracking, copy on write": {"bucket": "-1", "row-tracking.enabled": "true"},
		"buckets, vectors":            {"bucket": "1", "bucket-key": "id", "deletion-vectors.enabled": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range foreigns() {
				switch f.name {
				case "DELETE of another row of the same file", "UPDATE of a row the batch updates", "INSERT of a key the batch inserts", "compaction of the files":
					t.Run(f.name, func(t *testing.T) { raceOnce(t, "commit/publish", f, options) })
				}
			}
		})
	}
}

// TestBuckets_JavaForgetsWhatWasDeletedMeanwhile shows what docs/engines.md says: a
// Java delete that was prepared before a commit of ours and is committed after it
// replaces the bucket's deletion vectors (Java checks nothing there). The old version
// of a row of ours is back; the next change of its key updates both.
func TestBuckets_JavaForgetsWhatWasDeletedMeanwhile(t *testing.T) {
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", map[string]string{"bucket": "1", "bucket-key": "id", "deletion-vectors.enabled": "true"})
	r.waitApplied(p)
	topic := r.pipes[0].Topic
	w, err := java.Prepare(t.Context(), r.ref(), harness.DeleteKeys([]string{"id"}, []any{4}))
	require.NoError(t, err)
	batch := []*kgo.Record{put(topic, 0, row(1, "ours")), put(topic, 0, row(7, "ours")), put(topic, 0, row(8, "ours"))}
	for _, rec := range batch {
		m.apply(rec)
	}
	r.kafka.Produce(t, batch...)
	r.waitApplied(p)
	r.holds(m)
	_, err = w.Commit(t.Context())
	require.NoError(t, err, "no conflict is seen")
	m.remove(`{"id":4}`)
	m.insert(row(1, "first"))
	r.holds(m)
	again := put(topic, 0, row(1, "again"))
	m.apply(again)
	r.kafka.Produce(t, again)
	r.waitApplied(p)
	r.holds(m)
	harness.MustStop(t, p)
}
