package merger

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

var bg = context.Background()

// figuresOf prints what the latest snapshot says of itself and its delta.
func (r *rig) figuresOf() string {
	st := r.latest()
	delta, err := r.table.Delta(bg, st.Snapshot)
	require.NoError(r.t, err)
	text := fmt.Sprintf("%s %s %+d / %d:", st.Snapshot.CommitKind, st.Snapshot.Operation, st.Snapshot.DeltaRecordCount, st.Snapshot.TotalRecordCount)
	for _, e := range delta {
		sign := map[manifest.Kind]string{manifest.Add: "+", manifest.Delete: "-"}[e.Kind]
		text += fmt.Sprintf(" %sf(%d)", sign, e.File.Rows)
	}
	return text
}

// The counts of row-level.md §4, with new rows in files of their own.
func TestCopyOnWrite_FiguresOfSnapshots(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, options: tableModes["copy on write"]})
	r.begin()
	commit := func(changes ...[2]any) string {
		for _, c := range changes {
			r.put(0, int64(c[0].(int)), c[1].(string))
		}
		r.commit()
		r.checkIndex()
		return r.figuresOf()
	}
	require.Equal(t, "APPEND MERGE +4 / 4: +f(4)", commit([2]any{1, "a"}, [2]any{2, "a"}, [2]any{3, "a"}, [2]any{4, "a"}))
	require.Equal(t, "OVERWRITE MERGE +0 / 4: +f(1) +f(3) -f(4)", commit([2]any{1, "b"}), "an update")
	require.Equal(t, "OVERWRITE MERGE -1 / 3: +f(2) -f(3)", commit([2]any{3, "-"}), "a delete")
	require.Equal(t, "OVERWRITE MERGE -2 / 1: -f(2)", commit([2]any{2, "-"}, [2]any{4, "-"}), "a file without rows goes")
	require.Equal(t, "APPEND MERGE +1 / 2: +f(1)", commit([2]any{9, "x"}), "an insert")
	require.Equal(t, "APPEND  +0 / 2:", commit([2]any{77, "-"}), "nothing")
	require.Equal(t, []string{"k=1 v=b", "k=9 v=x"}, r.rows())
	require.Nil(t, r.latest().Snapshot.IndexManifest)
	// Old snapshots keep their rows: nothing is deleted.
	s, err := paimon.ReadSnapshot(bg, r.disk, r.table.Paths(), 2)
	require.NoError(t, err)
	st, err := r.table.State(bg, s)
	require.NoError(t, err)
	require.Equal(t, []string{"k=1 v=a", "k=2 v=a", "k=3 v=a", "k=4 v=a"}, r.rowsOf(st))
}

// Somebody else takes a row of the file while we are about to publish its copy: the
// copy is made again from what is there then.
func TestCopyOnWrite_ALostRaceCopiesWhatIsThereNow(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, options: tableModes["copy on write"]})
	r.foreign(kvRow(1, "a"), kvRow(2, "a"), kvRow(3, "a"))
	r.begin()
	raced := false
	r.onStage = func(name string) {
		if name != "still" || raced {
			return
		}
		raced = true
		live, err := r.table.Files(bg, r.latest(), nil)
		require.NoError(t, err)
		w, err := r.table.NewDataFileWriter(paimon.WriterSettings{Now: r.clock, NewUUID: r.uuid})
		require.NoError(t, err)
		copied, err := w.Rewrite(bg, &live[0], roaring.BitmapOf(1))
		require.NoError(t, err)
		r.publishForeign(bg, paimon.Changes{Add: []manifest.Entry{*copied}, Delete: live[:1]}, nil)
	}
	r.put(0, 1, "b")
	r.commit()
	require.True(t, raced)
	require.Contains(t, r.seen.notices, NoticeLostRace)
	require.Equal(t, []string{"k=1 v=b", "k=3 v=a"}, r.rows(), "2 does not come back")
	r.checkIndex()
}

// Others commit all the time: what was copied once for a batch is not copied again.
func TestCopyOnWrite_AnAttemptTakesOverTheCopiesOfTheOneBefore(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, options: tableModes["copy on write"]})
	r.foreign(kvRow(1, "a"), kvRow(2, "a"))
	r.foreign(kvRow(3, "a"), kvRow(4, "a"))
	r.begin()
	races := 0
	r.onStage = func(name string) {
		if name == "still" && races < 3 {
			races++
			r.foreign(kvRow(100, fmt.Sprint(races)))
		}
	}
	r.put(0, 1, "b")
	r.put(0, 3, "-")
	c := r.commit()
	require.Equal(t, 4, c.Attempts)
	require.Equal(t, []string{"k=1 v=b", "k=100 v=1", "k=100 v=2", "k=100 v=3", "k=2 v=a", "k=4 v=a"}, r.rows())
	r.checkIndex()
	files := 0
	require.NoError(t, r.disk.List(bg, "bucket-0", func(objstore.Info) error { files++; return nil }))
	require.Equal(t, 2+3+2+4, files, "the old ones, the foreign ones, two copies, and the new rows of four attempts")
	require.Empty(t, r.a.copied)
}

// Large files are copied one after another, small ones side by side.
func TestCopyOnWrite_LargeAndSmallFiles(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, options: tableModes["copy on write"], settings: func(s *Settings) { s.EncodeConcurrency, s.UUID = 4, uuid.NewString }})
	big := make([]byte, sideBySide)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(big)
	for i := range int64(12) {
		v := types.StringDatum("small")
		if i == 5 {
			v = types.StringDatum(hex.EncodeToString(big)) // twice as long, and zstd halves it
		}
		r.foreign([]types.Datum{types.IntDatum(10 * i), v}, kvRow(10*i+1, "x"), kvRow(10*i+2, "y"))
	}
	r.begin()
	for i := range int64(12) {
		r.put(0, 10*i+1, "-")
	}
	r.commit()
	r.checkIndex()
	live, err := r.table.Files(bg, r.latest(), nil)
	require.NoError(t, err)
	require.Len(t, live, 12)
	large := 0
	for _, e := range live {
		require.EqualValues(t, 2, e.File.Rows)
		if e.File.Size > sideBySide {
			large++
		}
	}
	require.Equal(t, 1, large)
}

// A table that had deletion vectors and has them no more: readers do not look at
// them, and what goes takes its vector along (row-level.md §4).
// Index and file go apart further with each commit; a new process starts over.
func TestCopyOnWrite_PlacesAfterManyCommits(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, options: tableModes["copy on write"]})
	var rows [][]types.Datum
	want := map[int64]string{}
	for k := range int64(3000) {
		rows = append(rows, kvRow(k, "a"))
		want[k] = "a"
	}
	r.foreign(rows...)
	r.begin()
	for round := range int64(12) {
		for k := round; k < 3000; k += 97 {
			r.put(0, k, fmt.Sprint("r", round))
			want[k] = fmt.Sprint("r", round)
		}
		r.put(0, 50*round, "-")
		delete(want, 50*round)
		r.commit()
	}
	var texts []string
	for _, k := range slices.Sorted(maps.Keys(want)) {
		texts = append(texts, fmt.Sprintf("k=%d v=%s", k, want[k]))
	}
	slices.Sort(texts)
	require.Equal(t, texts, r.rows())
	require.Contains(t, fmt.Sprint(len(r.a.view.bySeg)), "13")
	r.checkIndex()
	r.close()
	r.open(nil)
	r.begin()
	r.put(0, 2999, "new")
	r.commit()
	r.checkIndex()
}

// Long keys lie in a file beside the index, by the places that the index knows.
func TestCopyOnWrite_LongKeys(t *testing.T) {
	fields := []types.Field{{ID: 0, Name: "s", Type: types.StringType()}, {ID: 1, Name: "n", Type: types.IntType()}}
	r := kvRig(t, rigOptions{
		apply: batcher.Mirror, fields: fields, options: tableModes["copy on write"], settings: func(s *Settings) { s.StateDir = t.TempDir() },
	})
	name := func(i int) string { return fmt.Sprintf("a key that is longer than sixteen bytes, number %d", i) }
	var rows [][]types.Datum
	for i := range 500 {
		rows = append(rows, []types.Datum{types.StringDatum(name(i)), types.IntDatum(0)})
	}
	r.foreign(rows...)
	r.begin()
	want := map[int]int{}
	for round := 1; round <= 6; round++ {
		for i := round; i < 500; i += 7 {
			c := r.b.Changes()
			c.Cols[0].AppendString(name(i))
			c.Cols[1].AppendInt32(int32(round))
			c.EndRow(change.Update, 0, r.offsets[0], 1)
			r.record(0)
			want[i] = round
		}
		r.commit()
		r.checkIndex()
	}
	for _, text := range r.rows() {
		var i, n int
		_, err := fmt.Sscanf(text, "s=a key that is longer than sixteen bytes, number %d n=%d", &i, &n)
		require.NoError(t, err)
		require.Equal(t, want[i], n, text)
	}
	require.Len(t, r.rows(), 500)
}

func TestCopyOnWrite_AFileThatCannotBeCopiedIsTriedAgain(t *testing.T) {
	broken := false
	r := kvRig(t, rigOptions{apply: batcher.Mirror, options: tableModes["copy on write"], fault: func(op objstore.Op) objstore.Fault {
		if broken && op.Kind == objstore.OpWrite {
			broken = false
			return objstore.Fault{Err: fmt.Errorf("boom")}
		}
		return objstore.Fault{}
	}})
	r.begin()
	r.put(0, 1, "a")
	r.put(0, 2, "a")
	r.commit()
	r.put(0, 1, "b")
	broken = true
	r.flush()
	r.retry()
	require.Equal(t, []string{"k=1 v=b", "k=2 v=a"}, r.rows())
	r.checkIndex()
}

func TestRemoved_PlacesAreRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "rows")
		f := &dataFile{}
		gone := map[uint32]bool{}
		for range rapid.IntRange(0, 4).Draw(t, "commits") {
			var rows []uint32
			from := rapid.IntRange(0, n-1).Draw(t, "from")
			for p := from; p < n && len(rows) < 700; p += rapid.IntRange(1, 40).Draw(t, "gap") {
				if !gone[uint32(p)] {
					rows = append(rows, uint32(p))
					gone[uint32(p)] = true
				}
			}
			f.removed = f.removed.with(rows)
		}
		place := uint32(0)
		for p := range uint32(n) {
			if gone[p] {
				continue
			}
			require.Equal(t, place, f.place(p))
			place++
		}
	})
}
