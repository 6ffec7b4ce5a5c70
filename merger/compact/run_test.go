package compact

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// identities are the parts of row texts that must not change.
func (w *world) keeps(before map[int64]string) {
	w.t.Helper()
	after := w.holds()
	for id := range w.rows {
		require.Equal(w.t, before[id], after[id], "row %d", id)
	}
}

// A history of inserts, deletes and compactions, with other commits between the
// reading and the commit of a compaction: the rows are the model's, and with row
// tracking every row keeps its id and its sequence number.
func TestRun_AnyHistoryKeepsTheRows(t *testing.T) {
	for mode, options := range modes {
		t.Run(mode, func(t *testing.T) {
			commits, abandoned := 0, 0
			for seed := range uint64(12) {
				w := newWorld(t, seed, options)
				w.insert(20)
				for range 8 {
					for range w.rng.IntN(4) {
						w.insert(1 + w.rng.IntN(12))
					}
					if w.rng.IntN(2) == 0 {
						w.delete(w.rng.Float64() / 2)
					}
					p := NewPolicy(w.table, 0.1+w.rng.Float64()/2)
					p.Full = w.rng.IntN(3) == 0
					p.MinFiles = 2 + w.rng.IntN(3)
					r := runner{t: w.table, o: w.options(p), writer: w.writer()}
					st, files, err := Survey(bg, w.table)
					require.NoError(t, err)
					for _, g := range Plan(files, p) {
						require.NoError(t, r.join(bg, st, g))
					}
					switch w.rng.IntN(4) { // what others commit meanwhile
					case 0:
						w.delete(w.rng.Float64() / 3)
					case 1:
						w.delete(1)
						w.insert(5)
					case 2:
						w.insert(3)
					}
					before := w.holds()
					require.NoError(t, r.commit(bg))
					w.keeps(before)
					commits += r.result.Commits
					abandoned += r.result.Abandoned
				}
			}
			require.Greater(t, commits, 30)
			if options["deletion-vectors.enabled"] == "" {
				require.Greater(t, abandoned, 5, "deletes rewrite files, so that some joins fit no more")
			}
		})
	}
}

func TestRun_FullLeavesOneFileAPartitionAndBucketAndNoDeletedRow(t *testing.T) {
	for mode, options := range modes {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, 3, options)
			for range 12 {
				w.insert(10)
			}
			w.delete(0.4)
			before := w.holds()
			p := NewPolicy(w.table, 0)
			p.Full = true
			r, err := Run(bg, w.table, w.options(p))
			require.NoError(t, err)
			require.Equal(t, 1, r.Commits)
			w.keeps(before)
			st, files, err := Survey(bg, w.table)
			require.NoError(t, err)
			places := map[paimon.BucketKey]bool{}
			for _, f := range files {
				k := paimon.BucketKey{Partition: string(f.Entry.Partition), Bucket: f.Entry.Bucket}
				require.False(t, places[k])
				places[k] = true
				require.Zero(t, f.Deleted)
			}
			require.Equal(t, paimon.CommitCompact, st.Snapshot.CommitKind)
			require.EqualValues(t, len(w.rows), st.Snapshot.TotalRecordCount)
			require.Equal(t, r.FilesAfter, len(files))
			again, err := Run(bg, w.table, w.options(p))
			require.NoError(t, err)
			require.Zero(t, again.Commits, "nothing is left to do")
		})
	}
}

func TestRun_ATableWhoseRowsAreAllDeletedBecomesEmpty(t *testing.T) {
	w := newWorld(t, 2, modes["deletion vectors"])
	w.insert(10)
	w.insert(10)
	r := runner{t: w.table, o: w.options(Policy{Full: true, TargetBytes: 1 << 20, SmallRatio: 1, MinFiles: 2}), writer: w.writer()}
	st, files, err := Survey(bg, w.table)
	require.NoError(t, err)
	w.delete(0.5)
	for _, g := range Plan(files, r.o.Policy) {
		require.NoError(t, r.join(bg, st, g))
	}
	// The files are joined already, and now the last rows of both go: one by one,
	// so that each keeps a vector.
	_, files, err = Survey(bg, w.table)
	require.NoError(t, err)
	require.Len(t, files, 2)
	w.delete(1)
	w.rows = map[int64]string{}
	require.NoError(t, r.commit(bg))
	w.holds()
}

// Others are faster, again and again: the commit is built anew each time, and the files
// that they have added since the plan stay (N10 of row-level.md).
func TestRun_CommitsOnTopOfWhoeverWasFaster(t *testing.T) {
	w := newWorld(t, 4, modes["deletion vectors"])
	for range 6 {
		w.insert(5)
	}
	overtaken := 0
	o := w.options(Policy{Full: true, TargetBytes: 1 << 20, SmallRatio: 1, MinFiles: 2})
	uuid := o.NewUUID
	o.NewUUID = func() string {
		if overtaken < 3 { // between the look at the newest snapshot and its successor
			overtaken++
			w.insert(1)
		}
		return uuid()
	}
	r := runner{t: w.table, o: o, writer: w.writer()}
	st, files, err := Survey(bg, w.table)
	require.NoError(t, err)
	for _, g := range Plan(files, o.Policy) {
		require.NoError(t, r.join(bg, st, g))
	}
	require.NoError(t, r.commit(bg))
	require.Equal(t, 3, overtaken)
	require.Equal(t, 1, r.result.Commits)
	w.holds()
}

// faulty fails the publishing of a snapshot in chosen ways.
type faulty struct {
	objstore.Bucket
	publish func(put func() error) error
}

func (f *faulty) PutIfAbsent(ctx ctx, key string, data []byte) error {
	return f.publish(func() error { return f.Bucket.PutIfAbsent(ctx, key, data) })
}

func TestRun_AnErrorOfThePublishIsNoFailure(t *testing.T) {
	lost := errors.New("the reply was lost")
	for name, c := range map[string]struct {
		publish func(put func() error) error
		commits int
		err     error
	}{
		"applied, and told as an error": {func(put func() error) error {
			if err := put(); err != nil {
				return err
			}
			return lost
		}, 1, nil},
		"not applied once": {func() func(put func() error) error {
			first := true
			return func(put func() error) error {
				if first {
					first = false
					return lost
				}
				return put()
			}
		}(), 1, nil},
		"never applied": {func(func() error) error { return lost }, 0, ErrUnknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			t.Log(name)
			w := newWorld(t, 5, modes["deletion vectors"])
			for range 4 {
				w.insert(5)
			}
			table, err := paimon.OpenTable(bg, &faulty{w.bucket, c.publish}, paimon.Write)
			require.NoError(t, err)
			r, err := Run(bg, table, w.options(Policy{Full: true, TargetBytes: 1 << 20, SmallRatio: 1, MinFiles: 2}))
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.commits, r.Commits)
			w.holds()
		})
	}
}

// A power cut after every operation of a compaction on a disk that loses what was
// not synced: the table is the one before or the one after.
func TestRun_APowerCutAnywhereLeavesTheRows(t *testing.T) {
	for _, mode := range []string{"deletion vectors", "copy-on-write"} {
		t.Run(mode, func(t *testing.T) {
			seen := map[int64]bool{}
			for cut := 1; ; cut++ {
				w := newWorld(t, 6, modes[mode])
				for range 6 {
					w.insert(4)
				}
				w.delete(0.3)
				before := w.holds()
				from := w.state().Snapshot.ID
				disk := w.bucket
				crash := &crashing{Bucket: disk, left: cut}
				table, err := paimon.OpenTable(bg, crash, paimon.Write)
				require.NoError(t, err)
				_, err = Run(bg, table, w.options(Policy{Full: true, TargetBytes: 1 << 20, SmallRatio: 1, MinFiles: 2}))
				w.bucket = disk.Crash(w.rng, w.rng.Float64())
				w.table, _ = paimon.OpenTable(bg, w.bucket, paimon.Write)
				w.keeps(before)
				seen[w.state().Snapshot.ID-from] = true
				if err == nil {
					break
				}
				require.ErrorIs(t, err, errCut)
			}
			require.Equal(t, map[int64]bool{0: true, 1: true}, seen)
		})
	}
}

func TestRun_ASchemaThatIsNewerMustBeOpenedFirst(t *testing.T) {
	w := newWorld(t, 8, modes["deletion vectors"])
	for range 3 {
		w.insert(3)
	}
	old := w.table
	s := *old.Schema()
	s.ID, s.HighestFieldID = 1, 3
	s.Fields = append(s.Fields, types.Field{ID: 3, Name: "more", Type: types.IntType()})
	data, err := s.Encode()
	require.NoError(t, err)
	require.NoError(t, w.bucket.PutIfAbsent(bg, paimon.Paths{}.Schema(1), data))
	w.table, err = paimon.OpenTable(bg, w.bucket, paimon.Write)
	require.NoError(t, err)
	w.publish(w.state(), paimon.Changes{})
	_, err = Run(bg, old, w.options(Policy{Full: true, TargetBytes: 1 << 20, SmallRatio: 1, MinFiles: 2}))
	require.ErrorIs(t, err, paimon.ErrSchemaChanged)
	before := w.holds()
	r, err := Run(bg, w.table, w.options(Policy{Full: true, TargetBytes: 1 << 20, SmallRatio: 1, MinFiles: 2}))
	require.NoError(t, err)
	require.Equal(t, 1, r.Commits)
	w.keeps(before)
}

func TestRun_WaitsAndStopsAsItsThrottleSays(t *testing.T) {
	w := newWorld(t, 10, modes["deletion vectors"])
	for range 8 {
		w.insert(4)
	}
	o := w.options(Policy{Full: true, TargetBytes: 1 << 20, SmallRatio: 1, MinFiles: 2})
	var asked int64
	o.Throttle = func(_ ctx, n int64) error { asked += n; return nil }
	r, err := Run(bg, w.table, o)
	require.NoError(t, err)
	require.Equal(t, asked, r.BytesRead)
	w.insert(1)
	stop := errors.New("the window has ended")
	o.Throttle = func(ctx, int64) error { return stop }
	_, err = Run(bg, w.table, o)
	require.ErrorIs(t, err, stop)
	w.holds()
}

func TestPurgeRatio_FollowsTheModel(t *testing.T) {
	for _, c := range []struct {
		batch, rows int64
		want        float64
	}{
		{10_000, 50_000_000, 0.07},
		{100_000, 50_000_000, 0.22},
		{100_000, 1_000_000_000, 0.05},
		{1_000_000, 50_000_000, 0.5},
		{0, 100, 0.2},
		{100, 0, 0.2},
	} {
		require.InDelta(t, c.want, PurgeRatio(c.batch, c.rows), 0.01, fmt.Sprint(c))
	}
}
