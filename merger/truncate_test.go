package merger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// truncated lets the open batch begin with a truncation at a place in the order, and
// passes its record.
func (r *rig) truncated(ord int64) {
	require.True(r.t, r.truncate(ord, 7000))
	r.record(0)
}

// newestRecord is that of the latest snapshot.
func (r *rig) newestRecord() *Record {
	rec, _, err := RecordIn(r.latest().Snapshot.Properties, "p")
	require.NoError(r.t, err)
	require.NotNil(r.t, rec)
	return rec
}

func TestTruncate_FilesGoAsTheyAreInEveryKindOfTable(t *testing.T) {
	for _, mode := range slices.Sorted(maps.Keys(tableModes)) {
		for _, partition := range [][]string{nil, {"p"}} {
			t.Run(fmt.Sprint(mode, partition), func(t *testing.T) {
				r := newRig(t, rigOptions{
					fields: []types.Field{
						{ID: 0, Name: "k", Type: types.IntType().NonNull()},
						{ID: 1, Name: "v", Type: types.StringType()},
						{ID: 2, Name: "p", Type: types.BigIntType()},
					},
					partition: partition, apply: batcher.Mirror, key: []int{0}, options: tableModes[mode],
				})
				defer func() { r.close() }()
				r.begin()
				for k := range int64(20) {
					r.at(k, k%3, "old")
				}
				r.commit()
				r.at(1, 1, "-") // vectors, or files that were rewritten
				r.at(2, 2, "newer")
				r.commit()
				before := r.a.view.index.Stats()
				require.Positive(t, before.Entries)

				r.truncated(0)
				c := r.commit()
				require.Equal(t, Counts{Deleted: 19, Truncates: 1}, c.Counts)
				require.Empty(t, r.rows())
				require.Zero(t, c.Bytes.Data, "no file is written")
				s := r.latest().Snapshot
				require.Equal(t, paimon.OperationTruncate, s.Operation)
				require.Equal(t, paimon.CommitOverwrite, s.CommitKind)
				require.Zero(t, s.TotalRecordCount)
				require.Empty(t, r.latest().Index, "nor is a vector left")
				require.True(t, r.newestRecord().Truncated)
				require.Zero(t, r.a.view.index.Stats().Entries, "the index starts anew")
				r.checkIndex()

				r.at(1, 1, "new")
				r.commit()
				r.truncated(0) // and what follows it in the same batch
				r.at(2, 2, "after")
				r.at(3, 0, "after")
				r.at(3, 0, "-")
				c = r.commit()
				require.Equal(t, Counts{Deleted: 1, Inserted: 1, Unchanged: 1, Truncates: 1}, c.Counts)
				require.Equal(t, paimon.OperationMerge, r.latest().Snapshot.Operation)
				require.Equal(t, []string{"k=2 v=after p=2"}, r.rows())
				r.at(2, 2, "changed")
				require.EqualValues(t, 1, r.commit().Counts.Updated)
				require.False(t, r.newestRecord().Truncated)
				r.checkIndex()
				r.checkBuckets()
				r.checkFigures()
			})
		}
	}
}

func TestTruncate_OfAnEmptyTableIsAnEmptyCommit(t *testing.T) {
	r, _ := deletesRig(t, nil)
	defer func() { r.close() }()
	r.begin()
	r.truncated(5)
	require.Equal(t, Counts{Truncates: 1}, r.commit().Counts)
	require.Equal(t, paimon.CommitAppend, r.latest().Snapshot.CommitKind)
	r.at(1, 4, "late")
	require.EqualValues(t, 1, r.commit().Counts.Late, "what is older than it is late all the same")
	require.Empty(t, r.rows())
}

func TestTruncate_UnderOrderByRowsThatAreNewerStay(t *testing.T) {
	for _, mode := range slices.Sorted(maps.Keys(tableModes)) {
		t.Run(mode, func(t *testing.T) {
			r, _ := deletesRig(t, nil)
			r.close()
			r = newRig(t, rigOptions{
				fields: r.table.Schema().Fields, apply: batcher.Mirror, key: []int{0}, orderBy: []int{2}, options: tableModes[mode],
				settings: func(s *Settings) { s.RememberDeletes = 24 * time.Hour },
			})
			defer func() { r.close() }()
			r.begin()
			for k := range int64(6) {
				r.at(k, 10*k, "a")
			}
			r.commit()
			for k := range int64(6) { // older and newer rows share files
				r.at(10+k, 10*k, "b")
			}
			r.at(1, 11, "-")
			r.at(2, 22, "-") // newer than the truncation to come
			r.commit()

			r.truncated(20)
			c := r.commit()
			require.Equal(t, Counts{Deleted: 4, Truncates: 1}, c.Counts)
			want := []string{"k=13 v=b ord=30", "k=14 v=b ord=40", "k=15 v=b ord=50", "k=3 v=a ord=30", "k=4 v=a ord=40", "k=5 v=a ord=50"}
			require.Equal(t, want, r.rows())
			require.EqualValues(t, 2, r.a.Status().Deletes, "the delete that is newer, and the truncation in place of all others")
			r.checkIndex()
			r.checkFigures()

			r.reopen()
			r.at(0, 19, "late") // as a producer that was killed sends it again
			r.at(1, 10, "late")
			r.at(2, 21, "late")
			r.at(7, 20, "same place") // a key that never was; ties go to the last
			r.at(3, 29, "late")
			require.EqualValues(t, 4, r.commit().Counts.Late)
			r.truncated(20)
			require.Equal(t, Counts{Deleted: 1, Truncates: 1}, r.commit().Counts, "sent again, it takes what is not newer")
			r.truncated(15)
			require.Equal(t, Counts{Late: 1}, r.commit().Counts, "an older one has no effect")
			require.Equal(t, want, r.rows())
			r.at(0, 21, "c")
			r.at(2, 23, "c")
			require.EqualValues(t, 2, r.commit().Counts.Inserted)
			r.checkIndex()
		})
	}
}

func TestTruncate_IsForgottenWithTheDeletes(t *testing.T) {
	r, _ := deletesRig(t, nil)
	defer func() { r.close() }()
	r.begin()
	r.at(1, 5, "a")
	r.commit()
	r.truncated(10)
	r.commit()
	r.now = r.now.Add(23 * time.Hour)
	r.at(1, 9, "late")
	require.EqualValues(t, 1, r.commit().Counts.Late)
	r.now = r.now.Add(2 * time.Hour)
	r.at(1, 9, "back")
	require.EqualValues(t, 1, r.commit().Counts.Inserted)
}

// What another engine brought before the commit is in the table when the source's
// is emptied here, so it goes too.
func TestTruncate_ALostRacePlansAgain(t *testing.T) {
	r, _ := deletesRig(t, nil)
	defer func() { r.close() }()
	r.begin()
	r.at(1, 1, "a")
	r.commit()
	once := true
	r.onStage = func(name string) {
		if name == "write" && once {
			once = false
			r.foreign([]types.Datum{types.IntDatum(7), types.StringDatum("theirs"), types.IntDatum(2)})
		}
	}
	r.truncated(5)
	r.at(2, 6, "b")
	c := r.commit()
	require.Equal(t, 2, c.Attempts)
	require.Equal(t, Counts{Deleted: 2, Inserted: 1, Truncates: 1}, c.Counts)
	require.Equal(t, []string{"k=2 v=b ord=6"}, r.rows())
	r.checkIndex()
}

// The positions are in the snapshot that empties the table: a process that dies
// around the commit reads the truncation again only if it was not applied.
func TestTruncate_ACrashAroundTheCommitEmptiesTheTableOnce(t *testing.T) {
	for _, applied := range []bool{false, true} {
		t.Run(fmt.Sprint("applied ", applied), func(t *testing.T) {
			r, _ := deletesRig(t, nil)
			defer func() { r.close() }()
			r.begin()
			r.at(1, 1, "a")
			r.commit()
			armed := false
			r.close()
			r.open(func(op objstore.Op) objstore.Fault {
				if armed && op.Kind == objstore.OpLink && op.To == "snapshot/snapshot-3" {
					return objstore.Fault{Crash: true, Applied: applied, Err: syscall.EIO}
				}
				return objstore.Fault{}
			})
			r.begin()
			require.Equal(t, change.Position{Next: 1, Epoch: 3}, r.resumed[r.parts[0]])
			armed = true
			r.truncated(5)
			r.at(2, 6, "b")
			r.flush()

			r.disk = r.disk.Crash(nil, 1)
			r.open(nil)
			r.begin()
			if !applied {
				require.Equal(t, []string{"k=1 v=a ord=1"}, r.rows())
				require.EqualValues(t, 1, r.resumed[r.parts[0]].Next, "it is read again")
				return
			}
			require.Equal(t, []string{"k=2 v=b ord=6"}, r.rows())
			require.EqualValues(t, 3, r.resumed[r.parts[0]].Next, "it is behind us")
			r.at(3, 7, "c")
			r.commit()
			require.Equal(t, []string{"k=2 v=b ord=6", "k=3 v=c ord=7"}, r.rows())
		})
	}
}

func TestTruncate_AFileThatCannotBeReadIsNoEmptyOne(t *testing.T) {
	r, _ := deletesRig(t, nil)
	defer func() { r.close() }()
	r.begin()
	r.at(1, 1, "a")
	r.commit()
	files, err := r.table.Files(context.Background(), r.latest(), nil)
	require.NoError(t, err)
	key, err := r.table.Paths().Data(&files[0])
	require.NoError(t, err)
	require.NoError(t, r.disk.Delete(context.Background(), key))
	id := r.latest().Snapshot.ID
	r.truncated(5)
	r.flush()
	require.Equal(t, id, r.latest().Snapshot.ID, "nothing is committed")
	require.NotEqual(t, PhaseIdle, r.a.state.Phase)
}
