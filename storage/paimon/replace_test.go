package paimon

import (
	"testing"

	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

// What is left of several files and the new rows make one file: copies are as they
// were, a new CHAR has its blanks, and the writer goes on with copies as ever.
func TestReplace_PutsNewRowsBehindTheCopies(t *testing.T) {
	fields := []types.Field{field(0, "a", types.IntType()), field(1, "c", types.CharType(4))}
	f := newFixture(t, fields, nil, [2]string{OptDeletionVectors, "false"})
	old := types.NewBatch(fields)
	for i := range 3 {
		old.AppendDatums([]types.Datum{types.IntDatum(int64(i)), types.StringDatum("ab")})
	}
	one, two := f.foreignFile(fields, old), f.foreignFile(fields, old)
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(t, err)
	fresh := f.batch([]types.Datum{types.IntDatum(7), types.StringDatum("x")}, []types.Datum{types.IntDatum(8), types.StringDatum("y")})
	parts := []Part{{&one, roaring.BitmapOf(0, 2)}, {&two, roaring.BitmapOf(1)}}
	out, err := w.Replace(bg, parts, &Fresh{Rows: fresh, Sel: []uint32{1}, Sequence: 40})
	require.NoError(t, err)
	require.Equal(t, []string{`1, "ab"`, `0, "ab"`, `2, "ab"`, `8, "y   "`}, fileBits(t, f.tab, out, nil))
	require.Equal(t, manifest.SourceAppend, *out.File.Source)
	require.Equal(t, [2]int64{40, 43}, [2]int64{out.File.MinSequence, out.File.MaxSequence})
	again, err := w.Replace(bg, parts[:1], nil)
	require.NoError(t, err)
	require.Equal(t, []string{`1, "ab"`}, fileBits(t, f.tab, again, nil))
	require.Equal(t, one.File.MinSequence, again.File.MinSequence)
}

// With row tracking a file of copies and new versions says what it knows of their
// sequence numbers, and leaves the rest to the commit (row-level.md §5.1).
func TestReplace_KeepsRowIDsOfCopiesAndVersions(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "a", types.IntType())}, nil, [2]string{OptDeletionVectors, "false"}, [2]string{OptRowTracking, "true"})
	row := func(v int64) []types.Datum { return []types.Datum{types.IntDatum(v)} }
	f.insert(row(10), row(11), row(12))
	before, err := f.tab.Files(bg, f.st, nil)
	require.NoError(t, err)
	file := before[0]
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(t, err)
	versions := VersionBatch(f.batch(row(99)), []int64{1})
	out, err := w.Replace(bg, []Part{{&file, roaring.BitmapOf(1)}}, &Fresh{Rows: versions, Sel: []uint32{0}})
	require.NoError(t, err)
	require.Equal(t, [2]int64{1, 0}, [2]int64{out.File.MinSequence, out.File.MaxSequence})
	f.commit(Changes{Delete: []manifest.Entry{file}, Add: []manifest.Entry{*out}}, OperationUpdate)
	live, err := f.tab.Files(bg, f.st, nil)
	require.NoError(t, err)
	require.Len(t, live, 1)
	require.Equal(t, [2]int64{1, 2}, [2]int64{live[0].File.MinSequence, live[0].File.MaxSequence})
	var got [][3]int64
	require.NoError(t, f.tab.ReadFile(bg, &live[0], []int{0, RowIDColumn, SequenceColumn}, func(_ int64, b *types.Batch) error {
		for i := range b.Len() {
			got = append(got, [3]int64{b.Cols[0].Datum(i).I, b.Cols[1].Datum(i).I, b.Cols[2].Datum(i).I})
		}
		return nil
	}))
	require.Equal(t, [][3]int64{{10, 0, 1}, {12, 2, 1}, {99, 1, 2}}, got)
}

func TestSelected_AreTheFilesThatScanReads(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "a", types.IntType()), field(1, "p", types.IntType())}, []string{"p"})
	for i := range int64(4) {
		f.insert([]types.Datum{types.IntDatum(10 * i), types.IntDatum(i % 2)}, []types.Datum{types.IntDatum(10*i + 5), types.IntDatum(i % 2)})
	}
	for _, c := range []struct {
		where []Condition
		files int
	}{
		{nil, 4},
		{[]Condition{{Column: 1, Op: Equal, Value: types.IntDatum(1)}}, 2},
		{[]Condition{{Column: 0, Op: Greater, Value: types.IntDatum(15)}}, 2},
		{[]Condition{{Column: 0, Op: Greater, Value: types.IntDatum(15)}, {Column: 1, Op: Equal, Value: types.IntDatum(0)}}, 1},
		{[]Condition{{Column: 0, Op: IsNull}}, 0},
	} {
		files, err := f.tab.Selected(bg, f.st, c.where)
		require.NoError(t, err)
		require.Len(t, files, c.files, "%v", c.where)
	}
}
