package compact

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"applier/storage/objstore"
	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

// keeper starts one on the world's table; done collects what it tells.
func (w *world) keeper(u Upkeep, mine func() bool, done *[]Done) *Keeper {
	w.wall = true
	return &Keeper{
		Upkeep: u, Mine: mine, CommitRows: func() int64 { return 5 }, Tell: func(d Done) { *done = append(*done, d) },
		Open:    func(ctx context.Context) (*paimon.Table, error) { return paimon.OpenTable(ctx, w.bucket, paimon.Write) },
		Options: w.options(Policy{}), Log: slog.New(slog.DiscardHandler),
	}
}

func always() bool { return true }

// A day of small commits with deletes: files and snapshots stay few, rows right.
func TestKeeper_KeepsATableInShapeWhileOthersWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, map[string]string{"deletion-vectors.enabled": "true", "snapshot.time-retained": "1 h", "snapshot.num-retained.min": "3"})
		var done []Done
		k := w.keeper(Upkeep{Compact: true, Expire: true, Orphans: true, Every: time.Minute}, always, &done)
		ctx, stop := context.WithCancel(t.Context())
		go k.Run(ctx)
		// The world belongs to one goroutine at a time: rounds come at whole minutes,
		// other commits half a minute later.
		time.Sleep(30 * time.Second)
		for range 144 {
			w.insert(5)
			if w.rng.IntN(2) == 0 {
				w.delete(0.1)
			}
			time.Sleep(10 * time.Minute)
		}
		synctest.Wait()
		w.holds()
		_, files, err := Survey(t.Context(), w.table)
		require.NoError(t, err)
		require.Less(t, len(files), 12)
		ids, err := paimon.ListSnapshotIDs(t.Context(), w.bucket, w.table.Paths())
		require.NoError(t, err)
		require.Less(t, len(ids), 40)
		require.Greater(t, w.state().Snapshot.ID, int64(200))
		expired, purged := int64(0), int64(0)
		for _, d := range done {
			require.NoError(t, d.Err)
			expired += d.Expired
			purged += d.Compaction.RowsPurged
		}
		require.Greater(t, expired, int64(150))
		require.Greater(t, purged, int64(100))
		stop()
		synctest.Wait()
	})
}

func TestKeeper_LeavesAloneWhatIsNotItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		options map[string]string
		upkeep  Upkeep
		mine    func() bool
	}{
		"a table of another instance":       {nil, Upkeep{Compact: true, Expire: true, Every: time.Minute}, func() bool { return false }},
		"a table that another job compacts": {map[string]string{"write-only": "true"}, Upkeep{Compact: true, Expire: true, Every: time.Minute}, always},
		"outside of the window":             {nil, Upkeep{Compact: true, Every: time.Minute, Window: Window{5 * time.Hour, 6 * time.Hour}}, always},
		"switched off":                      {nil, Upkeep{Every: time.Minute}, always},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := map[string]string{"deletion-vectors.enabled": "true", "snapshot.time-retained": "1 s"}
				for k, v := range c.options {
					options[k] = v
				}
				w := newWorld(t, 2, options)
				var done []Done
				k := w.keeper(c.upkeep, c.mine, &done)
				for range 12 {
					w.insert(3)
				}
				ctx, stop := context.WithCancel(t.Context())
				go k.Run(ctx)
				time.Sleep(3 * time.Hour) // the bubble begins at midnight
				synctest.Wait()
				require.Empty(t, done)
				require.EqualValues(t, 12, w.state().Snapshot.ID)
				stop()
				synctest.Wait()
			})
		})
	}
}

func TestKeeper_TellsOfErrorsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, modes["deletion vectors"])
		for range 6 {
			w.insert(3)
		}
		var done []Done
		k := w.keeper(Upkeep{Compact: true, Every: time.Minute}, always, &done)
		open, gone := k.Open, errors.New("the disk is gone")
		k.Open = func(ctx context.Context) (*paimon.Table, error) {
			if len(done) < 2 {
				return nil, gone
			}
			return open(ctx)
		}
		ctx, stop := context.WithCancel(t.Context())
		go k.Run(ctx)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		stop()
		synctest.Wait()
		require.GreaterOrEqual(t, len(done), 4)
		require.ErrorIs(t, done[0].Err, gone)
		require.Equal(t, []Step{{Action: ActionCompact, Err: gone}}, done[1].Steps)
		require.Equal(t, 1, done[2].Compaction.Commits)
		require.Equal(t, []Step{{Action: ActionCompact, Did: true}}, done[2].Steps)
		require.Equal(t, []Step{{Action: ActionCompact}}, done[3].Steps, "nothing is left to do")
		w.holds()
	})
}

// A panic is an error like others, and no error keeps other actions from being done.
func TestKeeper_SurvivesPanicsAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, map[string]string{"deletion-vectors.enabled": "true", "snapshot.time-retained": "1 s", "snapshot.num-retained.min": "1"})
		var done []Done
		k := w.keeper(Upkeep{Compact: true, Expire: true, Every: time.Minute}, always, &done)
		for range 6 {
			w.insert(3)
		}
		open, rows := k.Open, k.CommitRows
		k.Open = func(ctx context.Context) (*paimon.Table, error) {
			if len(done) == 0 {
				panic("while opening")
			}
			return open(ctx)
		}
		k.CommitRows = func() int64 {
			if len(done) == 1 {
				panic("while compacting")
			}
			return rows()
		}
		ctx, stop := context.WithCancel(t.Context())
		go k.Run(ctx)
		time.Sleep(3*time.Minute + time.Second)
		synctest.Wait()
		stop()
		synctest.Wait()
		require.Len(t, done, 3)
		require.ErrorIs(t, done[0].Err, ErrPanic)
		require.ErrorIs(t, done[1].Steps[0].Err, ErrPanic)
		require.Equal(t, Step{Action: ActionExpire, Did: true}, done[1].Steps[1])
		require.True(t, done[2].Steps[0].Did)
		w.holds()
	})
}

// A snapshot that is young stays, whatever the table's options say.
func TestKeeper_KeepsYoungSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, map[string]string{"deletion-vectors.enabled": "true", "snapshot.time-retained": "1 s", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"})
		var done []Done
		k := w.keeper(Upkeep{Expire: true, Every: time.Minute, Young: 15 * time.Minute}, always, &done)
		ctx, stop := context.WithCancel(t.Context())
		go k.Run(ctx)
		for range 40 {
			w.insert(1)
			time.Sleep(time.Minute + time.Second)
			ids, err := paimon.ListSnapshotIDs(ctx, w.bucket, w.table.Paths())
			require.NoError(t, err)
			require.GreaterOrEqual(t, w.state().Snapshot.ID-ids[0], min(w.state().Snapshot.ID-1, 13))
			require.LessOrEqual(t, len(ids), 17)
		}
		synctest.Wait()
		stop()
		synctest.Wait()
		for _, d := range done {
			require.NoError(t, d.Err)
		}
		w.holds()
	})
}

// The rate spreads reading over time, and what is joined when the window ends is
// committed.
func TestKeeper_KeepsRateAndWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, modes["deletion vectors"]) // two partitions
		for range 12 {
			w.insert(6)
		}
		var done []Done
		k := w.keeper(Upkeep{Compact: true, Every: time.Hour, Rate: 1, Window: Window{time.Hour, 2 * time.Hour}}, always, &done)
		ctx, stop := context.WithCancel(t.Context())
		go k.Run(ctx)
		time.Sleep(6 * time.Hour)
		synctest.Wait()
		stop()
		synctest.Wait()
		require.Len(t, done, 1)
		require.NoError(t, done[0].Err)
		require.Equal(t, 1, done[0].Compaction.FilesAfter, "one of two groups: a byte a second takes until after the window")
		w.holds()
	})
}

// A power cut after every operation of a round that compacts, expires and searches for
// orphans: the table has its rows, the next round does the rest, and nothing is left.
func TestKeeper_APowerCutAnywhereInARoundLeavesTheRows(t *testing.T) {
	centuries := func() time.Time { return time.Now().Add(100 * 365 * 24 * time.Hour) } // whatever nothing names is an orphan
	cuts, removed, swept := 0, int64(0), 0
	for ended := false; !ended; {
		cuts++
		w := newWorld(t, 6, map[string]string{"deletion-vectors.enabled": "true", "snapshot.time-retained": "1 s", "snapshot.num-retained.min": "1"})
		for range 5 {
			w.insert(4)
		}
		w.delete(0.3)
		require.NoError(t, w.bucket.PutIfAbsent(bg, "bucket-0/data-of-a-lost-attempt-0.parquet", []byte("x")))
		before := w.holds()
		round := func(b objstore.Bucket) Done {
			var done []Done
			k := w.keeper(Upkeep{Compact: true, Expire: true, Orphans: true, DeletedRatio: 0.01}, always, &done)
			k.Options.Now = centuries
			k.Open = func(ctx context.Context) (*paimon.Table, error) { return paimon.OpenTable(ctx, b, paimon.Write) }
			return k.round(bg)
		}
		cut := round(&crashing{Bucket: w.bucket, left: cuts})
		ended = cut.Err == nil
		if !ended {
			require.ErrorIs(t, cut.Err, errCut)
		}
		w.bucket = w.bucket.Crash(w.rng, w.rng.Float64())
		var err error
		w.table, err = paimon.OpenTable(bg, w.bucket, paimon.Write)
		require.NoError(t, err)
		w.keeps(before)

		rest := round(w.bucket)
		require.NoError(t, rest.Err, "after a cut at operation %d", cuts)
		w.keeps(before)
		ids, err := paimon.ListSnapshotIDs(bg, w.bucket, w.table.Paths())
		require.NoError(t, err)
		require.LessOrEqual(t, len(ids), 2, "the one before the compaction is a moment old")
		orphans, err := w.table.FindOrphans(bg, centuries(), centuries().Add(-orphanAge))
		require.NoError(t, err)
		require.Empty(t, orphans)
		removed, swept = removed+rest.Expired, swept+rest.Orphans
	}
	require.Greater(t, cuts, 20, "operations of a round")
	require.Positive(t, removed)
	require.Positive(t, swept)
}

func TestWindow(t *testing.T) {
	day := func(clock string) time.Time {
		at, err := time.Parse("15:04", clock)
		require.NoError(t, err)
		return at
	}
	for _, c := range []struct {
		window   string
		in, outs []string
	}{
		{"", []string{"00:00", "13:00"}, nil},
		{"01:00-05:30", []string{"01:00", "05:29"}, []string{"00:59", "05:30", "23:00"}},
		{"22:00-02:00", []string{"22:00", "23:59", "00:00", "01:59"}, []string{"02:00", "12:00", "21:59"}},
	} {
		w, err := ParseWindow(c.window)
		require.NoError(t, err)
		for _, x := range c.in {
			require.True(t, w.Holds(day(x)), "%s in %s", x, c.window)
		}
		for _, x := range c.outs {
			require.False(t, w.Holds(day(x)), "%s in %s", x, c.window)
		}
	}
	for _, bad := range []string{"1:00-2:00", "01:00", "01:00-25:00", "01:00-01:00", "01:00 05:00", "aa:bb-cc:dd"} {
		_, err := ParseWindow(bad)
		require.Error(t, err, bad)
	}
}

// A process that starts often comes to its rounds all the same, and what interrupts a
// Keeper does not put its next round off.
func TestKeeper_ComesToItsRoundsHoweverOftenItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, map[string]string{"deletion-vectors.enabled": "true"})
		for range 6 {
			w.insert(3)
		}
		var done []Done
		k := w.keeper(Upkeep{Compact: true, Every: 6 * time.Hour}, always, &done)
		for range 4 { // interrupted every 25 seconds
			ctx, stop := context.WithTimeout(t.Context(), 25*time.Second)
			k.Run(ctx)
			stop()
		}
		require.Len(t, done, 1, "after a minute, not after hours")
		for range 9 {
			ctx, stop := context.WithTimeout(t.Context(), time.Hour)
			k.Run(ctx)
			stop()
		}
		require.Len(t, done, 2, "and then in its own rhythm")
	})
}
