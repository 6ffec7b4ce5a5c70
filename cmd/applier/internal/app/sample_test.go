package app

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"testing"

	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

// files lists everything below the world's folder.
func (w *world) files() (out []string) {
	w.t.Helper()
	require.NoError(w.t, filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, err error) error {
		out = append(out, path)
		return err
	}))
	return out
}

// A sample says what the pipeline then does, and leaves no trace.
func TestSample_TellsWhatTheNextRecordsDo(t *testing.T) {
	for _, c := range []struct{ name, settings, acted string }{
		{
			"clauses", "merge: { when: [\"MATCHED AND s.note = 'gone' THEN DELETE\", MATCHED AND s.note <> t.note THEN UPDATE SET *, NOT MATCHED AND s.id < 100 THEN INSERT *] }",
			"  rows      1  WHEN MATCHED AND s.note = 'gone' THEN DELETE\n  rows      2  WHEN MATCHED AND s.note <> t.note THEN UPDATE SET *\n  rows      2  WHEN NOT MATCHED AND s.id < 100 THEN INSERT *\n",
		},
		{"preset", "apply: upsert", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, "    key: [id]\n    on_error: skip\n    batch: { interval: 2s, idle_flush: 300ms }\n    "+c.settings+"\n")
			table := w.create(orders(), nil)
			r := w.run()
			w.produce(0, `{"id":1,"note":"a"}`, `{"id":2,"note":"b"}`, `{"id":3,"note":"c"}`)
			r.records(t, 3)
			r.stop()

			w.produce(0, `{"id":1,"note":"gone"}`, `{"id":2,"note":"b2"}`, `{"id":4,"note":"new"}`, `{"id":4,"note":"newer"}`, `{"id":"x"}`)
			w.produce(1, `{"id":5,"note":"other partition"}`, `{"id":3,"note":"c"}`, `{"id":200,"note":"too high"}`)
			before := w.files()
			s, err := TakeSample(testContext(t), w.cfg, "p", w.kafka(), 100, discard())
			require.NoError(t, err)
			require.Equal(t, before, w.files(), "nothing is written")
			require.EqualValues(t, 8, s.Records)
			require.EqualValues(t, 1, s.Failed["type"])
			var text bytes.Buffer
			s.Print(&text)
			require.Contains(t, text.String(), "sample: 8 records")
			require.Contains(t, text.String(), "  refused (type) 1\n"+c.acted)

			few, err := TakeSample(testContext(t), w.cfg, "p", w.kafka(), 3, discard())
			require.NoError(t, err)
			require.EqualValues(t, 3, few.Records)

			r = w.run()
			var inserted, updated, deleted int64
			for n := int64(0); n < 8; {
				got := take(t, r.commits)
				n += got.records
			}
			rows := r.pipeline().status().Rows
			inserted, updated, deleted = rows.Inserted, rows.Updated, rows.Deleted
			r.stop()
			require.Equal(t, []int64{inserted, updated, deleted}, []int64{s.Trial.Counts.Inserted, s.Trial.Counts.Updated, s.Trial.Counts.Deleted})
			id, err := paimon.LatestSnapshotID(testContext(t), table.Bucket(), table.Paths())
			require.NoError(t, err)
			require.Greater(t, id, s.Trial.Snapshot)
		})
	}
}
