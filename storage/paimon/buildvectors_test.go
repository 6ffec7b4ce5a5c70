package paimon

import (
	"errors"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/paimon/dv"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// Survivors go into files of their own, new vectors into others, each rolled at
// the target size; what is not touched stays (paimon-format.md §7.4).
func TestBuildVectors_Layout(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil, [2]string{"deletion-vector.index-file.target-size", "60 b"})
	var files []manifest.Entry
	for i := range 7 {
		files = append(files, f.insert(ints(int64(i)), ints(int64(i)))...)
	}
	mark := func(i int, positions ...uint32) VectorChange {
		return VectorChange{KeyOf(&files[i]), roaring.BitmapOf(positions...)}
	}
	names := func(e manifest.IndexEntry) (out []int) {
		for _, v := range e.Vectors {
			for i := range files {
				if files[i].File.Name == v.DataFile {
					out = append(out, i)
				}
			}
		}
		return out
	}
	layout := func() (out [][]int) {
		for _, e := range f.st.Index {
			out = append(out, names(e))
		}
		return out
	}
	f.commit(Changes{Index: f.vectors(mark(0, 0), mark(1, 0), mark(2, 0), mark(3, 0), mark(4, 0))}, OperationDelete)
	require.Equal(t, [][]int{{0, 1}, {2, 3}, {4}}, layout(), "two vectors of 30 bytes pass the target")
	x := f.vectors(mark(5, 1), mark(2, 0, 1))
	require.Len(t, x.Delete, 1)
	require.Len(t, x.Objects, 2)
	require.EqualValues(t, len(x.Objects[0].Data)+len(x.Objects[1].Data), x.Bytes)
	require.Equal(t, []int{3}, names(x.Add[0]))
	require.Equal(t, []int{5, 2}, names(x.Add[1]))
	require.NotEqual(t, x.Add[0].Name, x.Add[1].Name)
	f.commit(Changes{Index: x}, OperationDelete)
	require.Equal(t, [][]int{{0, 1}, {4}, {3}, {5, 2}}, layout())
	// A file that goes takes its vector along, and one without has none to take.
	x = f.vectors(VectorChange{File: KeyOf(&files[4])}, VectorChange{File: KeyOf(&files[6])}, VectorChange{KeyOf(&files[0]), roaring.New()})
	f.commit(Changes{Index: x, Delete: []manifest.Entry{files[4], files[6]}}, OperationDelete)
	require.Equal(t, [][]int{{3}, {5, 2}, {1}}, layout())
	x = f.vectors(VectorChange{File: KeyOf(&files[0])})
	require.Empty(t, x.Add)
	require.Empty(t, x.Delete)
	for i := range f.st.Index {
		for _, v := range f.st.Index[i].Vectors {
			require.NotNil(t, v.Cardinality)
		}
	}
}

func TestBuildVectors_PartitionsInTheOrderOfTheirChanges(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.IntType())}, []string{"p"})
	a, b := f.insert(ints(1, 1), ints(1, 1))[0], f.insert(ints(2, 2), ints(2, 2))[0]
	c := f.insert(ints(3, 1), ints(3, 1))[0]
	one := roaring.BitmapOf(0)
	x := f.vectors(VectorChange{KeyOf(&b), one}, VectorChange{KeyOf(&a), one}, VectorChange{KeyOf(&c), one})
	require.Len(t, x.Add, 2)
	require.Equal(t, b.Partition, x.Add[0].Partition)
	require.Equal(t, a.Partition, x.Add[1].Partition)
	require.Len(t, x.Add[1].Vectors, 2, "need not be next to each other")
	require.NotEqual(t, x.Add[0].Name[:42], x.Add[1].Name[:42], "a uuid each")
	// A vector is the partition's: the same name elsewhere is another file.
	same := KeyOf(&a)
	same.Partition = string(b.Partition)
	f.commit(Changes{Index: x}, OperationDelete)
	y := f.vectors(VectorChange{same, one})
	require.Empty(t, y.Delete)
}

func TestBuildVectors_Refuses(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	a, b := f.insert(ints(1), ints(2))[0], f.insert(ints(3), ints(4))[0]
	one := roaring.BitmapOf(0)
	f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&a), one}, VectorChange{KeyOf(&b), one})}, OperationDelete)
	boom := errors.New("boom")
	build := func(unchanged func(FileKey) (*roaring.Bitmap, error), changes ...VectorChange) error {
		_, err := f.tab.BuildVectors(f.st, changes, unchanged, f.uuid)
		return err
	}
	same := func(FileKey) (*roaring.Bitmap, error) { return one, nil }
	require.NoError(t, build(same, VectorChange{KeyOf(&a), one}))
	require.ErrorContains(t, build(same, VectorChange{KeyOf(&a), one}, VectorChange{File: KeyOf(&a)}), "twice")
	require.Equal(t, boom, build(func(FileKey) (*roaring.Bitmap, error) { return nil, boom }, VectorChange{KeyOf(&a), one}))
	require.ErrorContains(t, build(func(FileKey) (*roaring.Bitmap, error) { return nil, nil }, VectorChange{KeyOf(&a), one}), b.File.Name)
	bucket := KeyOf(&a)
	bucket.Bucket = 1
	require.ErrorContains(t, build(same, VectorChange{bucket, one}), "bucket 1")
	require.ErrorIs(t, build(same, VectorChange{KeyOf(&a), roaring.BitmapOf(1 << 31)}), dv.ErrTooLarge)
}

// The option says how wide vectors are written, whatever those are that they
// replace: Java cannot merge the two and fails on such a table.
func TestBuildVectors_WritesTheWidthOfTheOptionAndConvertsTheOther(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	a, b := f.insert(ints(1), ints(2), ints(3))[0], f.insert(ints(4), ints(5), ints(6))[0]
	f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&a), roaring.BitmapOf(0)}, VectorChange{KeyOf(&b), roaring.BitmapOf(1)})}, OperationDelete)
	widths := func() (out []dv.Version) {
		for i := range f.st.Index {
			key, err := f.tab.Paths().Index(&f.st.Index[i])
			require.NoError(t, err)
			file, err := f.bucket.Get(bg, key)
			require.NoError(t, err)
			var at []dv.Range
			for _, v := range f.st.Index[i].Vectors {
				at = append(at, vectorRange(v))
			}
			vectors, err := dv.ReadAll(file, at)
			require.NoError(t, err)
			for _, v := range vectors {
				out = append(out, v.Version)
			}
		}
		return out
	}
	require.Equal(t, []dv.Version{dv.Bits32, dv.Bits32}, widths())
	for _, c := range []struct {
		wide string
		want []dv.Version
	}{
		{"true", []dv.Version{dv.Bits64, dv.Bits64}},  // the one that shared the index file moves, and is converted too
		{"false", []dv.Version{dv.Bits64, dv.Bits32}}, // what is not touched stays as it is
	} {
		f.alter(func(s *Schema) {
			s.Options = map[string]string{OptDeletionVectors: "true", OptDeletionVectorsBitmap64: c.wide}
		})
		f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&a), roaring.BitmapOf(0, 2)})}, OperationDelete)
		require.Equal(t, c.want, widths())
		require.Equal(t, [][]types.Datum{ints(2), ints(4), ints(6)}, scanRows(t, f.tab, f.st, ScanOptions{}))
	}
}

func TestVectorRefs_RefusesTwoVectorsOfAFile(t *testing.T) {
	e := manifest.IndexEntry{Type: manifest.IndexDeletionVectors, Name: "i", Vectors: []manifest.DeletionVector{{DataFile: "f"}}}
	other := e
	other.Bucket = 1
	foreign := e
	foreign.Type = "OTHER"
	refs, err := VectorRefs([]manifest.IndexEntry{e, other, foreign})
	require.NoError(t, err)
	require.Len(t, refs, 2)
	require.True(t, refs[FileKey{"", 0, "f"}].Same(refs[FileKey{"", 0, "f"}]))
	require.False(t, VectorRef{}.Same(VectorRef{}), "no vector is no other's")
	_, err = VectorRefs([]manifest.IndexEntry{e, e})
	require.ErrorIs(t, err, ErrCorrupt)
}
