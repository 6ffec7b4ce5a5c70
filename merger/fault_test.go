package merger

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"applier/batcher"
	"applier/storage/objstore"
	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

// TestFault_G16_FilesThatWereCleanedAwayAreWrittenAgain: an orphan cleaner takes
// what an attempt has written and not published for hours. The publish must not
// name files that are gone.
func TestFault_G16_FilesThatWereCleanedAwayAreWrittenAgain(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"data", "index", "manifest"} {
		t.Run(kind, func(t *testing.T) {
			r := committed3(t, rigOptions{})
			for _, k := range []int64{5, 6, 7} {
				r.put(0, k, "c")
			}
			r.commit()
			attempts := 0
			r.onStage = func(name string) {
				if name != "still" {
					return
				}
				if attempts++; attempts > 1 {
					return
				}
				r.now = r.now.Add(freshFor)
				removed := 0
				for _, key := range r.a.attempt.keys {
					if keyKind(key) == kind {
						require.NoError(t, r.disk.Delete(ctx, key))
						removed++
					}
				}
				require.NotZero(t, removed)
			}
			r.put(0, 5, "z") // a file of three rows: it gets a vector
			c := r.commit()
			require.Equal(t, 2, c.Attempts)
			require.Contains(t, r.seen.notices, NoticeVoid)
			require.Equal(t, []string{"k=1 v=a", "k=2 v=b", "k=5 v=z", "k=6 v=c", "k=7 v=c"}, r.rows())
		})
	}
}

func keyKind(key string) string {
	switch {
	case strings.HasPrefix(key, "manifest/"):
		return "manifest"
	case strings.HasPrefix(key, "index/"):
		return "index"
	}
	return "data"
}

// A publish whose outcome stays unknown for hours is tried again with the same
// bytes only as long as what they name is there.
func TestFault_G16_AlsoBeforeALateSecondTry(t *testing.T) {
	ctx := context.Background()
	broken := false
	r := kvRig(t, rigOptions{apply: batcher.Mirror, fault: func(op objstore.Op) objstore.Fault {
		if broken && op.Kind == objstore.OpLink {
			return objstore.Fault{Err: context.DeadlineExceeded}
		}
		return objstore.Fault{}
	}})
	r.begin()
	r.put(0, 1, "a")
	broken = true
	r.flush()
	require.IsType(t, Wait{}, r.a.due)
	require.True(t, r.a.state.InFlight)
	for _, key := range r.a.attempt.keys {
		require.NoError(t, r.disk.Delete(ctx, key))
	}
	broken = false
	r.now = r.now.Add(freshFor)
	r.retry()
	require.Equal(t, PhaseIdle, r.a.state.Phase, "%v", r.a.failure)
	require.Contains(t, r.seen.notices, NoticeVoid)
	require.Equal(t, []string{"k=1 v=a"}, r.rows())
}

// TestFault_G28_ABatchThatLosesItsRacesIsToldOnceAndCommitted: others are faster a
// hundred times. Nothing is given up, and after 30 seconds it shows.
func TestFault_G28_ABatchThatLosesItsRacesIsToldOnceAndCommitted(t *testing.T) {
	r := committed3(t, rigOptions{})
	const faster = 100
	n := int64(0)
	r.onStage = func(name string) {
		if name == "still" && n < faster {
			n++
			r.now = r.now.Add(time.Second)
			r.foreign(kvRow(1000+n, "theirs"))
		}
	}
	r.put(0, 1, "ours")
	c := r.commit()
	require.Equal(t, faster+1, c.Attempts)
	starved := 0
	for _, n := range r.seen.notices {
		if n == NoticeStarved {
			starved++
		}
	}
	require.Equal(t, 1, starved)
	require.Len(t, r.rows(), 2+faster)
	require.Contains(t, r.rows(), "k=1 v=ours")
	// The next batch starts counting anew.
	r.put(0, 1, "again")
	require.Equal(t, 1, r.commit().Attempts)
}

// TestFault_G23_AVectorOfAFileThatIsNotLiveIsCarriedAlong: a compaction of another
// engine left it behind, in the index file of one that counts (Paimon #8783).
func TestFault_G23_AVectorOfAFileThatIsNotLiveIsCarriedAlong(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	for _, k := range []int64{5, 6, 7} {
		r.put(0, k, "x")
	}
	r.commit()
	r.put(0, 5, "y") // the file of 5, 6 and 7 gets a vector
	r.commit()
	leaveVector(ctx, t, r, "data-gone.parquet")
	for i, k := range []int64{6, 100} { // rewrites the index file; and goes on
		if i == 1 {
			r.restart(t, "") // a rebuilt index sees it too
		}
		r.put(0, k, "z")
		r.commit()
		refs, err := paimon.VectorRefs(r.latest().Index)
		require.NoError(t, err)
		ref, kept := refs[paimon.FileKey{Partition: string(noPartition(t, r)), Name: "data-gone.parquet"}]
		require.True(t, kept)
		m, err := r.table.ReadVector(ctx, ref, 100)
		require.NoError(t, err)
		require.Equal(t, []uint32{3, 4}, m.ToArray())
	}
	require.Equal(t, []string{"k=1 v=a", "k=100 v=z", "k=2 v=b", "k=5 v=y", "k=6 v=z", "k=7 v=x"}, r.rows())
}

// leaveVector commits a vector of a file there is not, beside those there are.
func leaveVector(ctx context.Context, t *testing.T, r *rig, file string) {
	st := r.latest()
	refs, err := paimon.VectorRefs(st.Index)
	require.NoError(t, err)
	gone := newBitmap()
	gone.AddMany([]uint32{3, 4})
	changes := []paimon.VectorChange{{File: paimon.FileKey{Partition: string(noPartition(t, r)), Name: file}, Vector: gone}}
	for k, ref := range refs {
		m, err := r.table.ReadVector(ctx, ref, 100)
		require.NoError(t, err)
		changes = append(changes, paimon.VectorChange{File: k, Vector: m})
	}
	index, err := r.table.BuildVectors(st, changes, nil, r.uuid)
	require.NoError(t, err)
	require.Len(t, index.Add, 1, "one index file for both")
	r.publishForeign(ctx, paimon.Changes{Index: index}, index.Objects)
}

func noPartition(t *testing.T, r *rig) []byte {
	files, err := r.table.Files(context.Background(), r.latest(), nil)
	require.NoError(t, err)
	return files[0].Partition
}

// TestFault_G10_ACopiedRecordIsNoCommitOfOurs: Java copies the properties of the
// snapshot before when it compacts manifests. The record then holds, and what it says
// of its base does not.
func TestFault_G10_ACopiedRecordIsNoCommitOfOurs(t *testing.T) {
	r := committed3(t, rigOptions{})
	three, err := paimon.ReadSnapshot(context.Background(), r.disk, r.table.Paths(), 3)
	require.NoError(t, err)
	r.publishForeign(context.Background(), paimon.Changes{}, nil)
	r.edit(4, func(m map[string]any) {
		m["commitKind"] = "COMPACT"
		m["properties"] = map[string]any{"applier.p": three.Properties["applier.p"]}
	})
	r.post(Tick{})
	require.Equal(t, PhaseIdle, r.a.state.Phase, "%v", r.a.state.Halt)
	r.restart(t, "")
	r.put(0, 3, "c")
	r.commit()
	require.Equal(t, []string{"k=1 v=a", "k=2 v=b", "k=3 v=c"}, r.rows())
}

// TestFault_G14_ATableReplacedAfterTheLastLookGetsNothing: dropped and created again
// between step 10 and the publish.
func TestFault_G14_ATableReplacedAfterTheLastLookGetsNothing(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	r.onStage = func(name string) {
		if name == "still" {
			raw, err := r.disk.Get(ctx, r.table.Paths().Schema(0))
			require.NoError(t, err)
			require.NoError(t, r.disk.Replace(ctx, r.table.Paths().Schema(0), append(raw, '\n')))
		}
	}
	r.put(0, 1, "never")
	r.flush()
	require.Equal(t, CodeReplaced, r.a.state.Halt.Code)
	ids, err := paimon.ListSnapshotIDs(ctx, r.disk, r.table.Paths())
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2, 3}, ids)
}

// D1 and D2: the wall clock jumps by a day between two commits. Rows and positions
// do not care; snapshot times never go back, and follow again when the clock does.
func jumpingClock(t *testing.T, by time.Duration) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "before")
	r.commit()
	times := func() (out []int64) {
		for id := int64(1); id <= r.a.state.Known.ID; id++ {
			l, err := r.a.chain.fresh(t.Context(), id)
			require.NoError(t, err)
			out = append(out, l.snap.TimeMillis)
		}
		return out
	}
	r.now = r.now.Add(by)
	r.put(0, 1, "after")
	r.put(0, 2, "new")
	r.commit()
	r.now = r.now.Add(-by)
	r.put(0, 3, "and back")
	r.commit()
	require.Equal(t, []string{"k=1 v=after", "k=2 v=new", "k=3 v=and back"}, r.rows())
	at := times()
	for i := 1; i < len(at); i++ {
		require.GreaterOrEqual(t, at[i], at[i-1], "snapshot %d is older than the one before", i+1)
	}
	require.GreaterOrEqual(t, at[len(at)-1], r.now.UnixMilli())
	// Another process on the table finds everything as it is.
	r.close()
	r.open(nil)
	r.begin()
	r.put(0, 4, "again")
	r.commit()
	require.Equal(t, []string{"k=1 v=after", "k=2 v=new", "k=3 v=and back", "k=4 v=again"}, r.rows())
}

func TestFault_D1(t *testing.T) { jumpingClock(t, 24*time.Hour) }

func TestFault_D2(t *testing.T) { jumpingClock(t, -24*time.Hour) }

func TestPublish_AFailureThatLastsIsShown(t *testing.T) {
	s := State{Phase: PhasePublish, Owned: true, Waiting: true, InFlight: true, Retries: retriesBeforeHalt, Target: 5, Batch: &BatchInfo{}}
	s, effects := Step(s, PublishFailed{Halt{CodeFull, "no space"}})
	require.Empty(t, effects)
	s, _ = Step(s, Published{Result: PublishUnknown})
	require.Equal(t, PhaseSlot, s.Phase, "it is read first")
	s, effects = Step(s, Slot{SlotAbsent})
	require.Equal(t, &Halt{CodeFull, "no space"}, s.Halt)
	require.Equal(t, PhaseBackoff, s.Phase, "and tried again")
	require.Contains(t, fmt.Sprint(effects), "no space")
	s, _ = Step(s, Waited{})
	require.Equal(t, PhasePublish, s.Phase)
	require.Nil(t, s.Doubt)
}

func TestConfigChange_NamesTheSettings(t *testing.T) {
	require.Equal(t, "key", configChange("apply:1,key:2,order_by:3,topics:4", "apply:1,key:9,order_by:3,topics:4"))
	require.Equal(t, "apply, topics", configChange("apply:1,key:2,order_by:3,topics:4", "apply:8,key:2,order_by:3,topics:9"))
	require.Equal(t, "apply, key", configChange("what an older program wrote", "apply:1,key:2"))
}
