package paimon

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// Spark put every row of the bucketed golden tables where we would, under both
// bucket functions and after a rescale.
func TestBuckets_GoldenRowsLieInTheirBucket(t *testing.T) {
	rows, tables := 0, 0
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		s := g.latestSchema(t, "")
		if Refuse(s, Read) != nil || len(s.BucketKeys()) == 0 {
			return
		}
		tables++
		eachGoldenState(t, g, func(what string, tab *Table, st *State, _ [][3]any) {
			files, err := tab.Files(bg, st, nil)
			require.NoError(t, err)
			for i := range files {
				e := &files[i]
				then := *tab // the partition's own number of buckets
				then.buckets.n = int(e.TotalBuckets)
				require.NoError(t, tab.ReadFile(bg, e, everyColumn(tab.schema), func(_ int64, b *types.Batch) error {
					for j := range b.Len() {
						bucket, err := then.BucketOf(b, j)
						require.NoError(t, err)
						require.Equal(t, e.Bucket, bucket, "%s: row %v", what, b.Row(j))
						rows++
					}
					return nil
				}))
			}
		})
	})
	require.Equal(t, 6, tables)
	require.Greater(t, rows, 300)
}

func bucketFixture(t *testing.T, vectors string) *fixture {
	return newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.IntType())}, []string{"p"},
		[2]string{"bucket", "2"}, [2]string{"bucket-key", "id"}, [2]string{OptDeletionVectors, vectors})
}

// insertInto commits rows of one partition into one of its buckets.
func (f *fixture) insertInto(bucket int32, rows ...[]types.Datum) manifest.Entry {
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(f.t, err)
	b := f.batch(rows...)
	p, err := f.tab.PartitionOf(b, 0)
	require.NoError(f.t, err)
	live, err := f.tab.Files(bg, f.st, nil)
	require.NoError(f.t, err)
	to, err := NewBucketStates(live).Target(f.tab, BucketKey{string(p), bucket})
	require.NoError(f.t, err)
	sel := make([]uint32, len(rows))
	for i := range sel {
		sel[i] = uint32(i)
	}
	files, err := w.WriteTo(to, b, sel)
	require.NoError(f.t, err)
	require.NoError(f.t, f.bucket.PutAll(bg, []objstore.Object{files[0].Object}))
	f.commit(Changes{Add: []manifest.Entry{files[0].Entry}}, OperationWrite)
	return files[0].Entry
}

// A bucket's new files stand behind those that are there, and copies stay where
// the originals were.
func TestBuckets_SequenceNumbersKeepTheOrder(t *testing.T) {
	f := bucketFixture(t, "false")
	a := f.insertInto(1, ints(1, 1), ints(2, 1), ints(3, 1))
	b := f.insertInto(1, ints(4, 1), ints(5, 1))
	other := f.insertInto(0, ints(6, 1))
	elsewhere := f.insertInto(1, ints(7, 2))
	span := func(e *manifest.Entry) [2]int64 { return [2]int64{e.File.MinSequence, e.File.MaxSequence} }
	require.Equal(t, [][2]int64{{0, 2}, {3, 4}, {0, 0}, {0, 0}}, [][2]int64{span(&a), span(&b), span(&other), span(&elsewhere)})
	require.Equal(t, [2]int32{1, 2}, [2]int32{a.Bucket, a.TotalBuckets})
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(t, err)
	copied, err := w.Rewrite(bg, &b, roaring.BitmapOf(0))
	require.NoError(t, err)
	require.Equal(t, [2]int64{3, 3}, span(copied))
	require.Equal(t, [2]int32{1, 2}, [2]int32{copied.Bucket, copied.TotalBuckets})
	key, err := f.tab.Paths().Data(copied)
	require.NoError(t, err)
	require.Contains(t, key, "p=1/bucket-1/")

	// The table is rescaled: a partition stays with its number until it is written over.
	f.alter(func(s *Schema) { s.Options = map[string]string{"bucket": "4", "bucket-key": "id"} })
	live, err := f.tab.Files(bg, f.st, nil)
	require.NoError(t, err)
	states := NewBucketStates(live)
	_, err = states.Target(f.tab, BucketKey{string(a.Partition), 3})
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "has 2 buckets, the option bucket says 4")
	fresh, err := f.tab.PartitionOf(f.batch(ints(1, 9)), 0)
	require.NoError(t, err)
	to, err := states.Target(f.tab, BucketKey{string(fresh), 3})
	require.NoError(t, err)
	require.Equal(t, Target{Partition: fresh, Bucket: 3}, to)
}

// A bucket has one index file with all its vectors; that of another bucket stays
// (paimon-format.md §7.5). The old one is taken away by name, for readers that
// would not replace it.
func TestBuildVectors_ABucketHasOneIndexFile(t *testing.T) {
	f := bucketFixture(t, "true")
	a, b := f.insertInto(1, ints(1, 1), ints(2, 1)), f.insertInto(1, ints(3, 1), ints(4, 1))
	other := f.insertInto(0, ints(5, 1), ints(6, 1))
	f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&a), roaring.BitmapOf(0)}, VectorChange{KeyOf(&other), roaring.BitmapOf(1)})}, OperationDelete)
	require.Len(t, f.st.Index, 2)
	stays := f.st.Index[1].Name
	x := f.vectors(VectorChange{KeyOf(&b), roaring.BitmapOf(1)})
	require.Len(t, x.Delete, 1)
	require.Len(t, x.Add, 1)
	require.Equal(t, int32(1), x.Add[0].Bucket)
	require.Len(t, x.Add[0].Vectors, 2)
	f.commit(Changes{Index: x}, OperationDelete)
	require.Len(t, f.st.Index, 2)
	require.Equal(t, stays, f.st.Index[0].Name)
	require.ElementsMatch(t, [][]types.Datum{ints(2, 1), ints(3, 1), ints(5, 1)}, scanRows(t, f.tab, f.st, ScanOptions{}))
	// Both files of the bucket go, and the vectors with them.
	x = f.vectors(VectorChange{File: KeyOf(&a)}, VectorChange{File: KeyOf(&b)})
	require.Empty(t, x.Add)
	f.commit(Changes{Index: x, Delete: []manifest.Entry{a, b}}, OperationDelete)
	require.Equal(t, stays, f.st.Index[0].Name)
	require.Len(t, f.st.Index, 1)
}
