//go:build itest

package itest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// The key index is a cache that is built from the table at every start; on disk are
// only the keys that do not fit a few bytes, in files without names. So what these
// rows do to its files must not matter.

// longKeys makes a rig whose keys are long enough to go to disk.
func longKeys(t *testing.T) *faulty {
	f := newFaulty(t, "", "create: { types: { id: BIGINT, k: STRING, v: STRING } }\nbatch: { rows: 1000, interval: 200ms, idle_flush: 50ms }")
	f.pipes[0].Key = "[id, k]"
	f.configure("")
	f.m = newModel([]string{"id", "k", "v"}, []string{"id", "k"})
	return f
}

// produceLong writes n rows of long keys from a number on.
func (f *faulty) produceLong(from, n int) {
	f.t.Helper()
	recs := make([]*kgo.Record, n)
	for i := range recs {
		id := from + i
		recs[i] = put(f.topic, int32(id%2), fmt.Sprintf(`{"id":%d,"k":"%s","v":"%d"}`, id, strings.Repeat("k", 40), f.next))
		f.m.apply(recs[i])
		f.next++
	}
	f.kafka.Produce(f.t, recs...)
}

func TestFault_H1(t *testing.T) {
	f := longKeys(t)
	f.produceLong(0, 1500)
	p := f.start()
	f.waitApplied(p)
	f.exact(p)
	require.NoError(t, os.RemoveAll(f.State))
	f.produceLong(700, 1500)
	p = f.start()
	f.waitApplied(p)
	harness.MustSay(t, p, "key index built")
	f.waitMetric("applier_index_rebuild_progress", func(v float64) bool { return v == 1 })
	require.NotEmpty(t, f.filesIn("consumer"), "the record is pinned meanwhile")
	f.exact(p)
}

func TestFault_H3(t *testing.T) {
	f := longKeys(t)
	f.produceLong(0, 1500)
	p := f.start()
	f.waitApplied(p)
	harness.MustStop(t, p)
	old := filepath.Join(t.TempDir(), "old")
	require.NoError(t, os.CopyFS(old, os.DirFS(f.State)))
	f.produceLong(500, 1500)
	p = f.start()
	f.waitApplied(p)
	f.exact(p)
	require.NoError(t, os.RemoveAll(f.State))
	require.NoError(t, os.CopyFS(f.State, os.DirFS(old)))
	f.produceLong(0, 1500)
	p = f.start()
	f.waitApplied(p)
	f.exact(p)
}

// H4: the table was rolled back while the daemon was away: its index, and what it
// remembers, are newer than the table.
func TestFault_H4(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	at := snapshotIDs(f.ref())
	harness.MustStop(t, f.filled(100))
	require.NoError(t, harness.Java(t).Rollback(t.Context(), f.ref(), at[len(at)-1]))
	f.again() // reads again what was rolled back
}

// H5: rolled back under a running daemon, and the ids that it knows were used again.
func TestFault_H5(t *testing.T) {
	f := newFaulty(t, "", "")
	p := f.filled(100)
	at := snapshotIDs(f.ref())
	f.produce(100)
	f.waitApplied(p)
	f.must("pause", "p")
	require.NoError(t, harness.Java(t).Rollback(t.Context(), f.ref(), at[len(at)-1]))
	f.foreignInsert(1000)
	f.foreignInsert(1001)
	f.must("resume", "p")
	f.produce(50)
	f.waitApplied(p)
	f.exact(p)
}

// H6: the files in the state folder are those of another table. Those of the index
// are not used. A marker that says that this pipeline has committed to another table
// halts it, as the table may have been created anew; a command says that it is meant.
func TestFault_H6(t *testing.T) {
	other := longKeys(t)
	other.produceLong(0, 1500)
	p := other.start()
	other.waitApplied(p)
	f := &faulty{rig: newRig(t, "", pipe{Topic: topicName(t.Name() + "2"), Key: "[id, k]", More: other.pipes[0].More}), t: t, m: newModel([]string{"id", "k", "v"}, []string{"id", "k"})}
	f.topic = f.pipes[0].Topic
	f.kafka.CreateTopic(t, harness.Topic{Name: f.topic, Partitions: 2})
	require.NoError(t, os.CopyFS(f.State, os.DirFS(other.State)))
	require.NoError(t, os.Rename(filepath.Join(f.State, other.pipes[0].ID), filepath.Join(f.State, f.pipes[0].ID)))
	require.NoError(t, os.Rename(filepath.Join(f.State, other.pipes[0].ID+".marker"), filepath.Join(f.State, f.pipes[0].ID+".marker")))
	f.produceLong(700, 1500)
	q := f.start()
	s := f.waitHalt(q, "T-REPLACED")
	require.Contains(t, s.Halt.Remedy, "offsets set")
	f.end(q)
	require.NoError(t, os.Remove(filepath.Join(f.State, f.pipes[0].ID+".marker")))
	q = f.start()
	f.waitApplied(q)
	f.exact(q)
	other.exact(p)
}

func TestFault_H7(t *testing.T) {
	f := longKeys(t)
	disk := harness.Tmpfs(t, "size=8m")
	f.State = filepath.Join(disk, "state")
	f.configure("")
	f.produceLong(0, 1500)
	p := f.start()
	f.waitApplied(p)
	free := harness.Fill(t, disk)
	f.produceLong(1000, 1500)
	f.haltRetries(p, "I-FULL", []string{"no space left on device"}, free)
	f.exact(p)
	harness.Remount(t, disk, true)
	f.produceLong(3000, 1500)
	p = f.start()
	f.haltRetries(p, "I-FULL", []string{"read-only file system"}, func() { harness.Remount(t, disk, false) })
	f.exact(p)
}

// H8: the index names a wrong row. The row's key is read before it is marked.
func TestFault_H8(t *testing.T) {
	f := newFaulty(t, "", "")
	harness.MustStop(t, f.filled(100))
	before := len(snapshotIDs(f.ref()))
	f.produce(50)
	p := f.armed("keyindex/lookup=error@1")
	s := f.waitHalt(p, "I-MISMATCH")
	require.Contains(t, s.Halt.Message, "does not have the key the index says")
	require.Len(t, snapshotIDs(f.ref()), before, "nothing was published")
	f.must("resume", "p") // builds it again
	f.healed(p)
	f.exact(p)
}
