package paimon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// cellBits is a cell with every bit it has, in text.
func cellBits(v *types.Vector, i int) string {
	if v.IsNull(i) {
		return "NULL"
	}
	switch v.Layout {
	case types.LayoutBool:
		return fmt.Sprint(v.U8[i])
	case types.LayoutInt32:
		return fmt.Sprint(v.I32[i])
	case types.LayoutInt64:
		return fmt.Sprint(v.I64[i])
	case types.LayoutFloat:
		return fmt.Sprintf("%08x", math.Float32bits(v.F32[i]))
	case types.LayoutDouble:
		return fmt.Sprintf("%016x", math.Float64bits(v.F64[i]))
	case types.LayoutInt128:
		return fmt.Sprint(v.I128[i])
	case types.LayoutNano:
		return fmt.Sprint(v.I64[i], "+", v.I32[i])
	case types.LayoutBytes:
		return fmt.Sprintf("%q", v.Bytes(i))
	}
	from, to := i, i+1
	if v.Layout != types.LayoutStruct {
		from, to = int(v.Off[i]), int(v.Off[i+1])
	}
	var parts []string
	for j := from; j < to; j++ {
		for _, k := range v.Child {
			parts = append(parts, cellBits(k, j))
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// fileBits reads a file's rows, without those of drop.
func fileBits(t require.TestingT, tab *Table, e *manifest.Entry, drop *roaring.Bitmap) []string {
	rows := []string{}
	require.NoError(t, tab.ReadFile(bg, e, everyColumn(tab.schema), func(start int64, b *types.Batch) error {
		for i := range b.Len() {
			if drop != nil && drop.Contains(uint32(start)+uint32(i)) {
				continue
			}
			var cells []string
			for _, c := range b.Cols {
				cells = append(cells, cellBits(c, i))
			}
			rows = append(rows, strings.Join(cells, ", "))
		}
		return nil
	}))
	return rows
}

// Every file of every golden table, written by Spark and Flink under any schema,
// is copied without some rows; the copies are the originals bit for bit.
func TestRewrite_GoldenFilesBitForBit(t *testing.T) {
	files, rows, joined := 0, 0, 0
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		s := g.latestSchema(t, "")
		if Refuse(s, Read) != nil {
			return
		}
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(g.dir)))
		bucket, err := objstore.NewLocal(dir, objstore.LocalOptions{})
		require.NoError(t, err)
		tab, err := openAt(bucket, s, "", Read)
		require.NoError(t, err)
		n := 0
		w, err := tab.NewDataFileWriter(WriterSettings{NewUUID: func() string { n++; return fmt.Sprint("new-", n) }})
		require.NoError(t, err)
		id, err := LatestSnapshotID(bg, bucket, tab.Paths())
		require.NoError(t, err)
		if id == 0 {
			return // no snapshot yet
		}
		snap, err := ReadSnapshot(bg, bucket, tab.Paths(), id)
		require.NoError(t, err)
		st, err := tab.State(bg, snap)
		require.NoError(t, err)
		live, err := tab.Files(bg, st, nil)
		require.NoError(t, err)
		for i := range live {
			e := &live[i]
			drop := roaring.New()
			for p := uint32(0); int64(p) < e.File.Rows && e.File.Rows > 1; p += 3 {
				drop.Add(p)
			}
			want := fileBits(t, tab, e, drop)
			copied, err := w.Rewrite(bg, e, drop)
			require.NoError(t, err)
			require.Equal(t, want, fileBits(t, tab, copied, nil))
			require.EqualValues(t, len(want), copied.File.Rows)
			require.Equal(t, e.Partition, copied.Partition)
			require.Equal(t, [2]int32{e.Bucket, e.TotalBuckets}, [2]int32{copied.Bucket, copied.TotalBuckets})
			require.Equal(t, s.ID, copied.File.SchemaID)
			require.Equal(t, manifest.SourceAppend, *copied.File.Source)
			files, rows = files+1, rows+len(want)
		}
		joined += joinGolden(t, tab, w, live)
	})
	require.Greater(t, joined, 25)
	require.Greater(t, files, 100)
	require.Greater(t, rows, 5000)
	t.Logf("%d files, %d rows", files, rows)
}

// joinGolden joins the files of each partition and bucket, with rows decoded and
// with row groups copied as they are, and compares both with the originals.
func joinGolden(t *testing.T, tab *Table, w *DataFileWriter, live []manifest.Entry) (joined int) {
	groups := map[BucketKey][]Part{}
	for i := range live {
		k := BucketKey{string(live[i].Partition), live[i].Bucket}
		groups[k] = append(groups[k], Part{Entry: &live[i]})
	}
	for _, parts := range groups {
		if len(parts) < 2 {
			continue
		}
		var want []string
		for _, p := range parts {
			want = append(want, fileBits(t, tab, p.Entry, nil)...)
		}
		w.verbatim = verbatimGroup
		decoded, err := w.Join(bg, parts)
		require.NoError(t, err)
		w.verbatim = 1
		asIs, err := w.Join(bg, parts)
		require.NoError(t, err)
		for _, e := range []*manifest.Entry{decoded, asIs} {
			require.Equal(t, want, fileBits(t, tab, e, nil))
			require.Equal(t, manifest.SourceCompact, *e.File.Source)
			if !tab.options.RowTracking {
				require.Equal(t, parts[0].Entry.File.MinSequence, e.File.MinSequence)
			}
		}
		require.Equal(t, decoded.File.ValueStats.NullCounts, asIs.File.ValueStats.NullCounts)
		joined++
	}
	return joined
}

// What nobody here would write and must survive all the same: NULLs where a
// default would stand now, CHAR values without their blanks, payloads of NaN,
// and a NULL that is older than the column's NOT NULL.
func TestRewrite_TouchesNoCarriedValue(t *testing.T) {
	def := "7"
	fields := []types.Field{
		field(0, "a", types.IntType()), field(1, "c", types.CharType(5)), field(2, "f", types.FloatType()), field(3, "d", types.DoubleType()), field(4, "n", types.IntType()),
	}
	f := newFixture(t, fields, nil, [2]string{OptDeletionVectors, "false"})
	b := types.NewBatch(fields)
	for i := range 4 {
		b.AppendDatums([]types.Datum{types.Null, types.StringDatum("ab"), types.Null, types.Null, types.Null})
		b.Cols[2].Truncate(i)
		b.Cols[2].AppendFloat(math.Float32frombits(0x7fa00001 + uint32(i)))
		b.Cols[3].Truncate(i)
		b.Cols[3].AppendDouble(math.Copysign(0, -1))
	}
	file := f.foreignFile(fields, b)
	f.commit(Changes{Add: []manifest.Entry{file}}, OperationWrite)
	f.alter(func(s *Schema) { s.Fields[0].Default, s.Fields[4].Type = &def, s.Fields[4].Type.NonNull() })
	drop := roaring.BitmapOf(1)
	want := fileBits(t, f.tab, &file, drop)
	require.Contains(t, want[0], `"ab"`)
	require.Equal(t, `NULL, "ab", 7fa00003, 8000000000000000, NULL`, want[1])
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(t, err)
	copied, err := w.Rewrite(bg, &file, drop)
	require.NoError(t, err)
	require.Equal(t, want, fileBits(t, f.tab, copied, nil))
	require.EqualValues(t, 1, copied.File.SchemaID, "under the current schema")
	// The writer goes on with new rows as ever.
	files, err := w.Write(nilPartition(t, f), f.batch([]types.Datum{types.IntDatum(1), types.StringDatum("x"), types.FloatDatum(1), types.FloatDatum(1), types.IntDatum(1)}), []uint32{0})
	require.NoError(t, err)
	require.NoError(t, f.bucket.PutAll(bg, []objstore.Object{files[0].Object}))
	require.Equal(t, []string{`1, "x    ", 3f800000, 3ff0000000000000, 1`}, fileBits(t, f.tab, &files[0].Entry, nil))
}

func nilPartition(t *testing.T, f *fixture) []byte {
	p, err := f.tab.PartitionOf(f.batch(), 0)
	require.NoError(t, err)
	return p
}

// foreignFile stores a file whose values are as they are in the batch.
func (f *fixture) foreignFile(fields []types.Field, b *types.Batch) manifest.Entry {
	var out strings.Builder
	w, err := datafile.NewWriter(&out, datafile.WriterOptions{Fields: fields, KeepChars: true})
	require.NoError(f.t, err)
	require.NoError(f.t, w.Write(b))
	info, err := w.Close()
	require.NoError(f.t, err)
	dw, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid, Now: func() time.Time { return time.UnixMilli(f.clock) }})
	require.NoError(f.t, err)
	p, err := f.tab.PartitionOf(b, 0)
	require.NoError(f.t, err)
	e, err := dw.entry(f.tab.schema.Fields, Target{Partition: p}, f.tab.options.DataName(f.uuid(), 0), info)
	require.NoError(f.t, err)
	key, err := f.tab.paths.Data(&e)
	require.NoError(f.t, err)
	require.NoError(f.t, f.bucket.PutAll(bg, []objstore.Object{{Key: key, Data: []byte(out.String())}}))
	return e
}

func TestRewrite_LeavesNothingBehindAnError(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.IntType())}, []string{"p"}, [2]string{OptDeletionVectors, "false"})
	file := f.insert(ints(1, 1), ints(2, 1), ints(3, 1))[0]
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(t, err)
	names := func() (out []string) {
		require.NoError(t, f.bucket.List(bg, "p=1/bucket-0", func(i objstore.Info) error {
			out = append(out, i.Key)
			return nil
		}))
		return out
	}
	before := names()
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err = w.Rewrite(ctx, &file, roaring.BitmapOf(0))
	require.ErrorIs(t, err, context.Canceled)
	gone := file
	gone.File.Name = "data-none-0.parquet"
	_, err = w.Rewrite(bg, &gone, roaring.BitmapOf(0))
	require.ErrorIs(t, err, objstore.ErrNotExist)
	require.ErrorContains(t, err, gone.File.Name)
	_, err = w.Rewrite(bg, &file, roaring.BitmapOf(0, 3))
	require.ErrorIs(t, err, ErrCorrupt, "a position behind the end")
	require.Equal(t, before, names())
	copied, err := w.Rewrite(bg, &file, roaring.BitmapOf(0, 2))
	require.NoError(t, err)
	require.Equal(t, []string{"2, 1"}, fileBits(t, f.tab, copied, nil))
	require.Len(t, names(), len(before)+1)
	f.bucket = f.bucket.Attach(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
		if op.Kind == objstore.OpWrite {
			return objstore.Fault{Err: errors.New("boom")}
		}
		return objstore.Fault{}
	}})
	f.reopen()
	w, err = f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(t, err)
	_, err = w.Rewrite(bg, &file, roaring.BitmapOf(0))
	require.ErrorContains(t, err, "boom")
	require.Len(t, names(), len(before)+1)
}
