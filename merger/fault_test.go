package merger

import (
	"context"
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
			require.Contains(t, r.seen.notices, NoticeFilesGone)
			require.Equal(t, []string{"k=1 v=a", "k=2 v=b", "k=5 v=z", "k=6 v=c", "k=7 v=c"}, r.rows())
		})
	}
}

func keyKind(key string) string {
	switch {
	case len(key) > 9 && key[:9] == "manifest/":
		return "manifest"
	case len(key) > 6 && key[:6] == "index/":
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
	require.Contains(t, r.seen.notices, NoticeFilesGone)
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
