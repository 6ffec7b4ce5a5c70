package paimon

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/types"
)

func TestOpenFile_FollowsColumnsByID(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "a", types.IntType()), field(1, "b", types.StringType()), field(2, "c", types.FloatType())}, nil)
	s := types.StringDatum
	f.insert([]types.Datum{types.IntDatum(1), s("x"), types.FloatDatum(1.5)})
	f.alter(func(s *Schema) { // b renamed to a, a dropped and added again as b, c widened
		s.Fields = []types.Field{field(3, "b", types.StringType()), field(2, "c", types.DoubleType()), field(1, "a", types.StringType())}
		s.HighestFieldID = 3
	})
	f.insert([]types.Datum{s("new"), types.FloatDatum(2.5), s("y")})
	want := [][]types.Datum{{types.Null, types.FloatDatum(1.5), s("x")}, {s("new"), types.FloatDatum(2.5), s("y")}}
	require.Equal(t, want, scanRows(t, f.tab, f.st, ScanOptions{}))
	// As readers of the first schema see it.
	old, err := f.tab.AtSchema(t.Context(), 0)
	require.NoError(t, err)
	_, err = old.State(t.Context(), f.st.Snapshot)
	require.NoError(t, err)
	err = old.Scan(t.Context(), f.st, ScanOptions{}, func(*types.Batch) error { return nil })
	require.ErrorIs(t, err, ErrTypeChanged, "DOUBLE is not read as FLOAT")
	require.ErrorContains(t, err, "column c: ")
	require.ErrorContains(t, err, f.name(t, 1))
	require.Equal(t, [][]types.Datum{{types.IntDatum(1), s("x")}, {types.Null, s("y")}}, scanRows(t, old, f.st, ScanOptions{Columns: []int{0, 1}}))
	_, err = f.tab.AtSchema(t.Context(), 7)
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

// name returns the name of a live file.
func (f *fixture) name(t *testing.T, i int) string {
	files, err := f.tab.Files(t.Context(), f.st, nil)
	require.NoError(t, err)
	return files[i].File.Name
}

// Partition columns are the entry's, whatever the file says; the file's are not
// even read.
func TestOpenFile_TakesPartitionColumnsFromTheEntry(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "p", types.StringType()), field(1, "v", types.IntType())}, []string{"p"})
	files := f.insert([]types.Datum{types.StringDatum("one"), types.IntDatum(1)}, []types.Datum{types.StringDatum("one"), types.IntDatum(2)})
	from, err := f.tab.Paths().Data(&files[0])
	require.NoError(t, err)
	data, err := f.bucket.Get(t.Context(), from)
	require.NoError(t, err)
	moved := files[0]
	moved.Partition, err = f.tab.PartitionOf(f.batch([]types.Datum{types.Null, types.Null}), 0)
	require.NoError(t, err)
	to, err := f.tab.Paths().Data(&moved)
	require.NoError(t, err)
	require.NotEqual(t, from, to)
	require.NoError(t, f.bucket.PutAll(t.Context(), []objstore.Object{{Key: to, Data: data}}))
	for _, cols := range [][]int{{0, 1}, {1, 0, 1}, {0}} {
		out := [][]types.Datum{}
		require.NoError(t, f.tab.ReadFile(t.Context(), &moved, cols, func(_ int64, b *types.Batch) error {
			for i := range b.Len() {
				out = append(out, b.Row(i))
			}
			return nil
		}))
		require.Len(t, out, 2)
		for i, row := range out {
			for k, c := range cols {
				require.Equal(t, []types.Datum{types.Null, types.IntDatum(int64(i + 1))}[c], row[k])
			}
		}
	}
	rows := types.NewBatch(f.tab.Schema().Fields)
	require.NoError(t, f.tab.ReadRows(t.Context(), &files[0], []int{0, 1}, []uint32{1}, rows))
	require.NoError(t, f.tab.ReadRows(t.Context(), &moved, []int{0, 1}, []uint32{0, 1}, rows))
	require.Equal(t, 3, rows.Len())
	require.Equal(t, "one", string(rows.Cols[0].Bytes(0)))
	require.True(t, rows.Cols[0].IsNull(1) && rows.Cols[0].IsNull(2))
	require.Equal(t, []int32{2, 1, 2}, rows.Cols[1].I32)
}

func TestReadRows_CastsAndFillsWhatTheFileHasNot(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "a", types.IntType())}, nil)
	files := f.insert(ints(1), []types.Datum{types.Null}, ints(3))
	f.alter(func(s *Schema) {
		s.Fields = []types.Field{field(1, "new", types.StringType()), field(0, "a", types.BigIntType())}
	})
	for _, cols := range [][]int{{0, 1}, {0}, {1}} {
		var fields []types.Field
		for _, c := range cols {
			fields = append(fields, f.tab.Schema().Fields[c])
		}
		out := types.NewBatch(fields)
		require.NoError(t, f.tab.ReadRows(t.Context(), &files[0], cols, []uint32{0, 1}, out))
		require.NoError(t, f.tab.ReadRows(t.Context(), &files[0], cols, []uint32{2}, out))
		require.Equal(t, 3, out.Len())
		for k, c := range cols {
			want := []types.Datum{types.Null, types.Null, types.Null}
			if c == 1 {
				want = []types.Datum{types.IntDatum(1), types.Null, types.IntDatum(3)}
			}
			for i := range want {
				require.Equal(t, want[i], out.Cols[k].Datum(i))
			}
		}
	}
	require.Error(t, f.tab.ReadRows(t.Context(), &files[0], []int{0, 1}, []uint32{0}, types.NewBatch(f.tab.Schema().Fields[:1])), "a batch of other columns")
	require.ErrorContains(t, f.tab.ReadRows(t.Context(), &files[0], []int{0}, []uint32{3}, types.NewBatch(f.tab.Schema().Fields[:1])), files[0].File.Name)
}

func TestOpenFile_NamesTheFileInEveryError(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "a", types.IntType()), field(1, "p", types.IntType())}, []string{"p"})
	good := f.insert(ints(1, 1))[0]
	read := func(_ int64, _ *types.Batch) error { return nil }
	outside := "s3://elsewhere/data.parquet"
	for what, c := range map[string]struct {
		change func(*fixture)
		cols   []int
		want   error
	}{
		"size":          {func(*fixture) { good.File.Size++ }, []int{0}, ErrCorrupt},
		"rows":          {func(*fixture) { good.File.Rows++ }, []int{0}, ErrCorrupt},
		"missing":       {func(*fixture) { good.File.Name = "nowhere.parquet" }, []int{0}, objstore.ErrNotExist},
		"schema":        {func(*fixture) { good.File.SchemaID = 99 }, []int{0}, objstore.ErrNotExist},
		"external path": {func(*fixture) { good.File.ExternalPath = &outside }, []int{0}, ErrExternalPath},
		"name":          {func(*fixture) { good.File.Name = "../bucket-0/x.parquet" }, []int{0}, ErrBadName},
		"no columns":    {func(*fixture) {}, nil, errNoColumns},
		"column":        {func(*fixture) {}, []int{2}, nil},
		"partition":     {func(*fixture) { good.Partition = good.Partition[:8] }, []int{0}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			before := good
			defer func() { good = before }()
			c.change(f)
			err := f.tab.ReadFile(t.Context(), &good, c.cols, read)
			require.Error(t, err)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			require.ErrorContains(t, err, good.File.Name)
		})
	}
}

// What a caller's function returns is the caller's, not the file's error.
func TestReadFile_GivesTheCallersErrorBack(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "a", types.IntType())}, nil)
	f.insert(ints(1))
	enough := errors.New("enough")
	err := f.tab.Scan(t.Context(), f.st, ScanOptions{}, func(*types.Batch) error { return enough })
	require.Equal(t, enough, err)
}
