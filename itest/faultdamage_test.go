//go:build itest

package itest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"applier/itest/harness"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
)

// The faults G that are damage or oddities of the table's own files, made by hand.

// handmade is a table opened to be changed in ways that no engine here offers.
type handmade struct {
	t      *testing.T
	bucket *objstore.Local
	table  *paimon.Table
}

func openByHand(t *testing.T, ref harness.Ref) handmade {
	t.Helper()
	b, err := objstore.NewLocal(tableDir(ref), objstore.LocalOptions{})
	require.NoError(t, err)
	table, err := paimon.OpenTable(t.Context(), b, paimon.Write)
	require.NoError(t, err)
	return handmade{t, b, table}
}

// state reads a snapshot; 0 is the latest.
func (h handmade) state(id int64) *paimon.State {
	h.t.Helper()
	ctx := context.Background()
	if id == 0 {
		var err error
		id, err = paimon.LatestSnapshotID(ctx, h.bucket, h.table.Paths())
		require.NoError(h.t, err)
	}
	s, err := paimon.ReadSnapshot(ctx, h.bucket, h.table.Paths(), id)
	require.NoError(h.t, err)
	st, err := h.table.State(ctx, s)
	require.NoError(h.t, err)
	return st
}

func (h handmade) files(st *paimon.State) []manifest.Entry {
	h.t.Helper()
	files, err := h.table.Files(context.Background(), st, nil)
	require.NoError(h.t, err)
	return files
}

// commit adds a snapshot with these changes; edit may change its JSON.
func (h handmade) commit(ch paimon.Changes, properties map[string]string, edit func(map[string]any)) {
	h.t.Helper()
	ctx := context.Background()
	base := h.state(0)
	c, err := h.table.BuildCommit(ctx, base, ch, paimon.CommitInfo{
		UUID: uuid.NewString(), User: "by hand", Identifier: paimon.BatchCommitIdentifier, Properties: properties,
		TimeMillis: base.Snapshot.TimeMillis, NewUUID: uuid.NewString,
	})
	require.NoError(h.t, err)
	objects := c.Objects
	if ch.Index != nil {
		objects = append(objects, ch.Index.Objects...)
	}
	require.NoError(h.t, h.bucket.PutAll(ctx, objects))
	raw := c.Bytes
	if edit != nil {
		raw = editJSON(h.t, raw, edit)
	}
	require.NoError(h.t, h.bucket.PutIfAbsent(ctx, h.table.Paths().Snapshot(c.Snapshot.ID), raw))
	require.NoError(h.t, paimon.WriteLatestHint(ctx, h.bucket, h.table.Paths(), c.Snapshot.ID))
}

// editJSON changes members of an object and keeps the numbers of all others.
func editJSON(t *testing.T, raw []byte, edit func(map[string]any)) []byte {
	t.Helper()
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&m))
	edit(m)
	raw, err := json.Marshal(m)
	require.NoError(t, err)
	return raw
}

// editSnapshot changes a snapshot's file in place.
func editSnapshot(t *testing.T, ref harness.Ref, id int64, edit func(map[string]any)) {
	t.Helper()
	raw, err := os.ReadFile(snapshotFile(ref, id))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(snapshotFile(ref, id), editJSON(t, raw, edit), 0o644))
}

// asLatest is the procedure rollback_to_as_latest of Paimon's next version: a new
// snapshot with the content, the index manifest and the properties of an older one.
func asLatest(t *testing.T, ref harness.Ref, id int64) {
	t.Helper()
	h := openByHand(t, ref)
	now, then := h.state(0), h.state(id)
	var ch paimon.Changes
	ch.Add = without(h.files(then), h.files(now))
	ch.Delete = without(h.files(now), h.files(then))
	ch.Index = &paimon.IndexChange{Add: withoutIndex(then.Index, now.Index), Delete: withoutIndex(now.Index, then.Index)}
	h.commit(ch, then.Snapshot.Properties, func(m map[string]any) {
		m["commitKind"] = "OVERWRITE"
		delete(m, "indexManifest")
		if then.Snapshot.IndexManifest != nil {
			m["indexManifest"] = *then.Snapshot.IndexManifest
		}
	})
}

func without(all, less []manifest.Entry) (out []manifest.Entry) {
	for _, e := range all {
		if !slices.ContainsFunc(less, func(x manifest.Entry) bool { return x.File.Name == e.File.Name }) {
			out = append(out, e)
		}
	}
	return out
}

func withoutIndex(all, less []manifest.IndexEntry) (out []manifest.IndexEntry) {
	for _, e := range all {
		if !slices.ContainsFunc(less, func(x manifest.IndexEntry) bool { return x.Name == e.Name }) {
			out = append(out, e)
		}
	}
	return out
}

// TestFault_G17_LiveFilesThatWereDeletedAreNamed: an orphan cleaner that was wrong
// (Paimon #7710). Nothing is written on what cannot be read.
func TestFault_G17_LiveFilesThatWereDeletedAreNamed(t *testing.T) {
	for _, kind := range []string{"data-*.parquet", "index-*", "manifest-list-*", "manifest-????????-*"} {
		t.Run(topicName(kind), func(t *testing.T) {
			java := harness.Java(t)
			r, p, m := raceRig(t, "", "", vectorOptions)
			r.waitApplied(p)
			r.feed(m, put(r.pipes[0].Topic, 0, row(1, "marks a file"))) // so that there is a vector
			r.waitApplied(p)
			harness.MustStop(t, p)
			before, err := java.Files(t.Context(), r.ref(), harness.Query{})
			require.NoError(t, err)
			var lost string
			files := find(t, r.ref(), kind)
			if strings.HasPrefix(kind, "data") {
				files = slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) != before[0].Name })
			}
			lost = files[len(files)-1]
			if strings.HasPrefix(kind, "manifest-list") { // those of the latest snapshot
				s, err := readSnapshot(r.ref(), last(snapshotIDs(r.ref())))
				require.NoError(t, err)
				var lists struct{ BaseManifestList string }
				require.NoError(t, json.Unmarshal(s.JSON, &lists))
				lost = filepath.Join(tableDir(r.ref()), "manifest", lists.BaseManifestList)
			}
			content, err := os.ReadFile(lost)
			require.NoError(t, err)
			require.NoError(t, os.Remove(lost))
			r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(2, "after")))
			p = r.start()
			s := r.waitHalt(p, "T-CORRUPT")
			require.Contains(t, s.Halt.Message, filepath.Base(lost))
			require.NoError(t, os.WriteFile(lost, content, 0o644)) // restored
			m.upsert(row(2, "after"))
			r.resumed(p)
			r.waitApplied(p)
			harness.MustStop(t, p)
			r.equals(m)
		})
	}
}

// find lists files of a table by the pattern of their names, in any folder.
func find(t *testing.T, ref harness.Ref, pattern string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(tableDir(ref), func(path string, d os.DirEntry, err error) error {
		if ok, _ := filepath.Match(pattern, d.Name()); ok && err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	}))
	require.NotEmpty(t, out, pattern)
	return out
}

// TestFault_G21_HintsAreOnlyHints: torn, empty, stale, too high; while the daemon
// runs, at its start, and for Java after our commits.
func TestFault_G21_HintsAreOnlyHints(t *testing.T) {
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	for i, junk := range []string{"", "1", "9", "999999", "-1", "abc", "\x00\xff\x00", "99999999999999999999999", strings.Repeat("7", 10_000)} {
		for _, hint := range []string{"LATEST", "EARLIEST"} {
			require.NoError(t, os.WriteFile(filepath.Join(tableDir(r.ref()), "snapshot", hint), []byte(junk), 0o644))
		}
		if i%3 == 2 {
			harness.MustStop(t, p)
			p = r.start()
		}
		r.feed(m, put(r.pipes[0].Topic, 0, row(1, fmt.Sprint("hint ", i))))
		r.waitApplied(p)
		harness.SameRows(t.Context(), t, m.texts(), r.ref(), harness.Query{}, cat(t))
	}
	require.NoError(t, os.Remove(filepath.Join(tableDir(r.ref()), "snapshot", "EARLIEST"))) // what Java makes of it is its own affair
	r.feed(m, put(r.pipes[0].Topic, 0, row(2, "the end")))
	r.waitApplied(p)
	harness.MustStop(t, p)
	ids := snapshotIDs(r.ref())
	require.Len(t, ids, int(last(ids)), "no hole")
	r.equals(m)
}

// TestFault_G22_AHoleInTheSnapshotsHalts, wherever it is, until the file is back.
func TestFault_G22_AHoleInTheSnapshotsHalts(t *testing.T) {
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	harness.MustStop(t, p)
	for _, id := range snapshotIDs(r.ref()) {
		if id == 1 || id == last(snapshotIDs(r.ref())) {
			continue // the ends are expiry and rollback
		}
		name := snapshotFile(r.ref(), id)
		require.NoError(t, os.Rename(name, name+".away"))
		rec := put(r.pipes[0].Topic, 0, row(1, fmt.Sprint("after the hole ", id)))
		r.kafka.Produce(t, rec)
		before := snapshotIDs(r.ref())
		p = r.start()
		s := r.waitHalt(p, "T-HOLE")
		require.Contains(t, s.Halt.Message, fmt.Sprintf("%d follows %d", id+1, id-1))
		require.Equal(t, before, snapshotIDs(r.ref()))
		require.NoError(t, os.Rename(name+".away", name))
		m.apply(rec)
		r.resumed(p)
		r.waitApplied(p)
		harness.MustStop(t, p)
		r.equals(m)
	}
}

// TestFault_G23_AVectorOfAFileThereIsNotIsKeptAndNotBuiltOn: left behind by a
// compaction (Paimon #8778, #8783), in the index file of one that counts.
func TestFault_G23_AVectorOfAFileThereIsNotIsKeptAndNotBuiltOn(t *testing.T) {
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	r.feed(m, put(r.pipes[0].Topic, 0, row(1, "marks a file")))
	r.waitApplied(p)
	h := openByHand(t, r.ref())
	st := h.state(0)
	files := h.files(st)
	refs, err := paimon.VectorRefs(st.Index)
	require.NoError(t, err)
	leftover := paimon.FileKey{Partition: string(files[0].Partition), Name: "data-gone-0.parquet"}
	changes := []paimon.VectorChange{{File: leftover, Vector: roaring.BitmapOf(7)}}
	for k, ref := range refs {
		v, err := h.table.ReadVector(t.Context(), ref, 1<<20)
		require.NoError(t, err)
		changes = append(changes, paimon.VectorChange{File: k, Vector: v})
	}
	index, err := h.table.BuildVectors(st, changes, nil, uuid.NewString)
	require.NoError(t, err)
	h.commit(paimon.Changes{Index: index}, nil, nil)
	for i := range 2 {
		r.feed(m, put(r.pipes[0].Topic, 0, row(2+i, "marks it again")))
		r.waitApplied(p)
		refs, err = paimon.VectorRefs(h.state(0).Index)
		require.NoError(t, err)
		require.Contains(t, refs, leftover, "not ours to remove")
		if i == 0 { // also for an index that is built anew
			harness.MustStop(t, p)
			harness.MustSay(t, p, "data-gone-0.parquet")
			p = r.start()
		}
	}
	harness.MustStop(t, p)
	r.equals(m)
}

// TestFault_G24_TwoVectorsForAFileHalt: no reader could tell which counts.
func TestFault_G24_TwoVectorsForAFileHalt(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprint("running ", running), func(t *testing.T) {
			r, p, m := raceRig(t, "", "", vectorOptions)
			r.waitApplied(p)
			r.feed(m, put(r.pipes[0].Topic, 0, row(1, "marks a file")))
			r.waitApplied(p)
			if !running {
				harness.MustStop(t, p)
			}
			h := openByHand(t, r.ref())
			st := h.state(0)
			refs, err := paimon.VectorRefs(st.Index)
			require.NoError(t, err)
			var file paimon.FileKey
			for k := range refs {
				file = k
			}
			empty := *st
			empty.Index = nil
			second, err := h.table.BuildVectors(&empty, []paimon.VectorChange{{File: file, Vector: roaring.BitmapOf(2)}}, nil, uuid.NewString)
			require.NoError(t, err)
			codec, err := manifest.NewCodec(manifest.Options{})
			require.NoError(t, err)
			raw, err := codec.EncodeIndex(append(slices.Clone(st.Index), second.Add...))
			require.NoError(t, err)
			twice := "index-manifest-" + uuid.NewString() + "-0"
			key, err := h.table.Paths().Manifest(twice)
			require.NoError(t, err)
			require.NoError(t, h.bucket.PutAll(t.Context(), append(second.Objects, objstore.Object{Key: key, Data: raw})))
			h.commit(paimon.Changes{}, nil, func(m map[string]any) { m["indexManifest"] = twice })
			r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(2, "after")))
			if !running {
				p = r.start()
			}
			s := r.waitHalt(p, "T-CORRUPT")
			require.Contains(t, s.Halt.Message, file.Name+" has two deletion vectors")
			// The remedy: roll back to the snapshot before, which has our record.
			require.NoError(t, harness.Java(t).Rollback(t.Context(), r.ref(), st.Snapshot.ID))
			m.upsert(row(2, "after"))
			r.resumed(p)
			r.waitApplied(p)
			harness.MustStop(t, p)
			r.equals(m)
		})
	}
}

// TestFault_G25_ASnapshotOfANewerFormatHalts, whether it is foreign or ours.
func TestFault_G25_ASnapshotOfANewerFormatHalts(t *testing.T) {
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	do(t, harness.Java(t), r.ref(), harness.InsertRows(theirs(50)))
	m.insert(theirs(50))
	newest := last(snapshotIDs(r.ref()))
	editSnapshot(t, r.ref(), newest, func(m map[string]any) { m["version"] = 9 })
	r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(1, "after")))
	s := r.waitHalt(p, "T-VERSION")
	require.Contains(t, s.Halt.Message, fmt.Sprintf("snapshot-%d", newest))
	r.end(p)
	p = r.start()
	r.waitHalt(p, "T-VERSION")
	require.Equal(t, newest, last(snapshotIDs(r.ref())), "nothing is built on it")
	editSnapshot(t, r.ref(), newest, func(m map[string]any) { m["version"] = 3 })
	m.upsert(row(1, "after"))
	r.resumed(p)
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.equals(m)
}
