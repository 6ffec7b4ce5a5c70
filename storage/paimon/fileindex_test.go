package paimon

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/paimon/fileindex"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// indexOf returns the file index of a data file.
func indexOf(t *testing.T, b objstore.Bucket, p Paths, e *manifest.Entry) []byte {
	t.Helper()
	if e.File.EmbeddedIndex != nil {
		require.Empty(t, e.File.ExtraFiles)
		return e.File.EmbeddedIndex
	}
	require.Equal(t, []string{e.File.Name + ".index"}, e.File.ExtraFiles)
	key, err := p.Data(e)
	require.NoError(t, err)
	data, err := b.Get(t.Context(), path.Dir(key)+"/"+e.File.ExtraFiles[0])
	require.NoError(t, err)
	return data
}

// Written anew, the files of the golden table have the indexes that Spark gave them, to
// the last bit.
func TestGolden_FileIndexesAreSparks(t *testing.T) {
	compared := 0
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		if g.short() != "options_cow.t" {
			return
		}
		s := g.latestSchema(t, "")
		tab := g.open(t, s, "")
		for id := int64(1); id <= 2; id++ {
			snap, err := ReadSnapshot(t.Context(), g.bucket, tab.Paths(), id)
			require.NoError(t, err)
			st, err := tab.State(t.Context(), snap)
			require.NoError(t, err)
			files, err := tab.Files(t.Context(), st, nil)
			require.NoError(t, err)
			for i := range files {
				f := &fixture{t: t, bucket: objstore.NewMem(objstore.MemOptions{})}
				require.NoError(t, CreateTable(bg, f.bucket, s))
				f.reopen()
				var rows [][]types.Datum
				require.NoError(t, tab.ReadFile(bg, &files[i], everyColumn(s), func(_ int64, b *types.Batch) error {
					for r := range b.Len() {
						rows = append(rows, b.Row(r))
					}
					return nil
				}))
				ours := f.write(WriterSettings{}, rows...)
				require.Len(t, ours, 1)
				require.Equal(t, indexOf(t, g.bucket, tab.Paths(), &files[i]), indexOf(t, f.bucket, f.tab.Paths(), &ours[0]))
				compared++
			}
		}
	})
	require.Equal(t, 4, compared)
}

func bloomTable(t *testing.T, options ...[2]string) *fixture {
	return newFixture(t, []types.Field{
		field(0, "id", types.IntType()), field(1, "c", types.CharType(4)), field(2, "s", types.StringType()), field(3, "d", types.DoubleType()),
	}, nil, append([][2]string{
		{"file-index.bloom-filter.columns", "id, c,s,d"},
		{"file-index.bloom-filter.id.items", "50"},
		{"file-index.bloom-filter.c.items", "50"},
		{"file-index.bloom-filter.s.items", "50"},
		{"file-index.bloom-filter.s.fpp", "0.001"},
		{"file-index.bloom-filter.d.items", "50"},
	}, options...)...)
}

func bloomRows(from, to int) (rows [][]types.Datum) {
	for i := from; i < to; i++ {
		row := []types.Datum{types.IntDatum(int64(i)), types.StringDatum(fmt.Sprint(i % 100)), types.StringDatum(fmt.Sprint("text ", i)), {F: float64(i)}}
		if i%7 == 0 {
			row[2] = types.Null
		}
		rows = append(rows, row)
	}
	return rows
}

// holds checks a file's filters against its rows: every value is in, most others are not.
func holds(t *testing.T, f *fixture, e *manifest.Entry, rows [][]types.Datum) {
	t.Helper()
	blooms, err := fileindex.Blooms(indexOf(t, f.bucket, f.tab.Paths(), e))
	require.NoError(t, err)
	require.Len(t, blooms, 4)
	for c, field := range f.tab.Schema().Fields {
		hash, err := fileindex.Hasher(field.Type)
		require.NoError(t, err)
		v := types.NewVector(field.Type)
		for i, row := range rows {
			d := row[c]
			if field.Type.Kind == types.Char { // as stored, and as Java's readers look for it
				d = types.StringDatum(fmt.Sprintf("%-4s", d.B))
			}
			v.AppendDatum(d)
			require.True(t, d.Null || blooms[field.Name].Has(hash(v, i)), "%s of row %d", field.Name, i)
		}
	}
	hash, err := fileindex.Hasher(types.StringType())
	require.NoError(t, err)
	v, others := types.NewVector(types.StringType()), 0
	for i := range 1000 {
		v.AppendDatum(types.StringDatum(fmt.Sprint("other ", i)))
		if blooms["s"].Has(hash(v, i)) {
			others++
		}
	}
	require.Less(t, others, 50)
}

func TestDataFileWriter_WritesFileIndexes(t *testing.T) {
	for _, threshold := range []string{"100 b", "1 kb"} {
		f := bloomTable(t, [2]string{"file-index.in-manifest-threshold", threshold})
		rows := bloomRows(0, 40)
		files := f.insert(rows...)
		require.Len(t, files, 1)
		require.Equal(t, threshold == "1 kb", files[0].File.EmbeddedIndex != nil)
		holds(t, f, &files[0], rows)

		// A rewrite without some rows has an index of its own, as has a join.
		w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
		require.NoError(t, err)
		w.verbatim = 1 // nothing is copied unseen
		less, err := w.Rewrite(bg, &files[0], roaring.BitmapOf(0, 1, 2))
		require.NoError(t, err)
		holds(t, f, less, rows[3:])
		joined, err := w.Join(bg, []Part{{Entry: &files[0]}, {Entry: less}})
		require.NoError(t, err)
		holds(t, f, joined, rows)
		keys, err := f.tab.FileKeys(joined)
		require.NoError(t, err)
		require.Len(t, keys, 1+len(joined.File.ExtraFiles))
	}
}

func TestDataFileWriter_EachRolledFileHasItsOwnIndex(t *testing.T) {
	f := bloomTable(t, [2]string{"file-index.in-manifest-threshold", "100 b"})
	rows := bloomRows(0, 3*rollEvery)
	files := f.write(WriterSettings{TargetBytes: 1}, rows...)
	require.Len(t, files, 3)
	for i := range files {
		require.Equal(t, []string{files[i].File.Name + ".index"}, files[i].File.ExtraFiles)
		blooms, err := fileindex.Blooms(indexOf(t, f.bucket, f.tab.Paths(), &files[i]))
		require.NoError(t, err)
		require.Len(t, blooms, 4)
	}
}

// Files that cannot hold a value are not opened, and no row is lost.
func TestScan_IsPrunedByBloomFilters(t *testing.T) {
	for _, read := range []string{"true", "false"} {
		f := bloomTable(t, [2]string{"file-index.in-manifest-threshold", "1 kb"}, [2]string{"metadata.stats-mode", "none"}, [2]string{"file-index.read.enabled", read})
		var rows [][]types.Datum
		for i := range 10 {
			part := bloomRows(i*40, i*40+40)
			f.insert(part...)
			rows = append(rows, part...)
		}
		opened := &openCounter{Bucket: f.bucket}
		tab, err := OpenTable(bg, opened, Read)
		require.NoError(t, err)
		for _, row := range []int{3, 79, 398} {
			for c := range 4 {
				opened.n = 0
				require.Positive(t, checkPruned(t, tab, f.st, rows, Condition{c, Equal, rows[row][c]}))
				if pruned := read == "true" && (c == 0 || c == 2); pruned {
					require.Less(t, opened.n, 8, "column %d", c)
				} else {
					require.Equal(t, 10, opened.n, "column %d", c)
				}
			}
		}
		require.Zero(t, checkPruned(t, tab, f.st, rows, Condition{2, Equal, types.StringDatum("nowhere")}))
	}
}

// openCounter counts the data files that are opened.
type openCounter struct {
	objstore.Bucket
	n int
}

func (o *openCounter) Open(ctx context.Context, key string, size int64) (objstore.Reader, error) {
	if strings.HasSuffix(key, ".parquet") {
		o.n++
	}
	return o.Bucket.Open(ctx, key, size)
}
