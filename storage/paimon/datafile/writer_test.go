package datafile

import (
	"bytes"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

func TestWriter_NullInNotNull(t *testing.T) {
	row := types.RowType(types.Field{ID: 7, Name: "x", Type: types.IntType().NonNull()}).NonNull()
	for _, tc := range []struct {
		name string
		t    types.Type
		v    types.Datum
		want string
	}{
		{"scalar", types.IntType().NonNull(), types.Null, "column caa INT NOT NULL"},
		{"list", types.ArrayType(types.IntType()).NonNull(), types.Null, "column caa ARRAY<INT> NOT NULL"},
		{"element", types.ArrayType(types.IntType().NonNull()), types.Datum{L: []types.Datum{types.Null}}, "element INT NOT NULL"},
		{"map key, though nullable in the schema", types.MapType(types.IntType(), types.IntType()), types.Datum{L: []types.Datum{types.Null, types.Null}}, "key INT NOT NULL"},
		{"multiset element", types.MultisetType(types.IntType()), types.Datum{L: []types.Datum{types.Null, types.IntDatum(1)}}, "key INT NOT NULL"},
		{"field of a row", row, types.Datum{L: []types.Datum{types.Null}}, "x INT NOT NULL"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fs := fieldsOf(tc.t)
			var buf bytes.Buffer
			w, err := NewWriter(&buf, WriterOptions{Fields: fs})
			require.NoError(t, err)
			err = w.Write(batchOf(fs, [][]types.Datum{{tc.v}}))
			require.ErrorIs(t, err, ErrNotNull)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, "column caa")
			_, again := w.Close()
			require.ErrorIs(t, again, ErrNotNull, "the file is lost")
			require.Zero(t, buf.Len())
		})
	}
}

func TestWriter_NullParentHidesNotNullChildren(t *testing.T) {
	fs := fieldsOf(types.RowType(types.Field{ID: 7, Name: "x", Type: types.IntType().NonNull()}))
	rows := [][]types.Datum{{types.Null}, {{L: []types.Datum{types.IntDatum(1)}}}}
	data, info := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	sameRows(t, rows, readAll(t, openFile(t, data, ReadOptions{Fields: fs})))
	require.Equal(t, []ColumnStats{{NullCount: 1}}, info.Columns)
}

func TestWriter_ValuesOutsideTheTypeAreRefused(t *testing.T) {
	for _, tc := range []struct {
		t types.Type
		v types.Datum
	}{
		{types.TinyIntType(), types.IntDatum(128)},
		{types.TinyIntType(), types.IntDatum(-129)},
		{types.SmallIntType(), types.IntDatum(40000)},
		{types.DecimalType(9, 2), types.IntDatum(1_000_000_000)},
		{types.DecimalType(9, 2), types.IntDatum(1 << 40)},
		{types.DecimalType(18, 0), types.IntDatum(math.MinInt64)},
		{types.DecimalType(20, 0), types.Datum{D: types.Pow10(20)}},
		{types.DecimalType(38, 0), types.Datum{D: types.Pow10(38).Neg()}},
		{types.TimeType(3), types.IntDatum(86_400_000)},
		{types.TimeType(3), types.IntDatum(-1)},
	} {
		fs := fieldsOf(tc.t)
		w, err := NewWriter(io.Discard, WriterOptions{Fields: fs})
		require.NoError(t, err)
		err = w.Write(batchOf(fs, [][]types.Datum{{types.Null}, {tc.v}}))
		require.ErrorIs(t, err, ErrRange, "%v in %s", tc.v, tc.t)
	}
}

func TestWriter_BatchMustFit(t *testing.T) {
	fs := fieldsOf(types.IntType(), types.ArrayType(types.IntType()))
	w, err := NewWriter(io.Discard, WriterOptions{Fields: fs})
	require.NoError(t, err)
	for _, b := range []*types.Batch{
		types.NewBatch(fs[:1]),
		types.NewBatch(fieldsOf(types.IntType(), types.ArrayType(types.BigIntType()))),
		types.NewBatch(fieldsOf(types.BigIntType(), types.ArrayType(types.IntType()))),
		{Cols: []*types.Vector{batchOf(fs[:1], [][]types.Datum{{types.IntDatum(1)}}).Cols[0], types.NewVector(fs[1].Type)}},
	} {
		w.Reset(io.Discard)
		require.ErrorIs(t, w.Write(b), ErrSchema)
	}
}

func TestNewWriter_RefusesWhatCannotBeWritten(t *testing.T) {
	for _, tc := range []struct {
		o    WriterOptions
		want error
	}{
		{WriterOptions{}, ErrSchema},
		{WriterOptions{Fields: []types.Field{{Name: ""}}}, ErrSchema},
		{WriterOptions{Fields: append(fieldsOf(types.IntType()), fieldsOf(types.IntType())...)}, ErrSchema},
		{WriterOptions{Fields: fieldsOf(types.Type{Kind: types.Blob})}, ErrUnsupported},
		{WriterOptions{Fields: fieldsOf(types.ArrayType(types.Type{Kind: types.Geometry}))}, ErrUnsupported},
		{WriterOptions{Fields: fieldsOf(types.RowType())}, ErrUnsupported},
		{WriterOptions{Fields: fieldsOf(types.DecimalType(39, 0))}, ErrUnsupported},
		{WriterOptions{Fields: fieldsOf(types.DecimalType(5, 6))}, ErrUnsupported},
		{WriterOptions{Fields: fieldsOf(types.IntType()), Compression: "brotli"}, ErrUnsupported},
		{WriterOptions{Fields: fieldsOf(types.IntType()), KeyColumns: []int{1}}, ErrSchema},
	} {
		_, err := NewWriter(io.Discard, tc.o)
		require.ErrorIs(t, err, tc.want)
	}
	deep := types.IntType()
	for range maxLevel {
		deep = types.ArrayType(deep)
	}
	_, err := NewWriter(io.Discard, WriterOptions{Fields: fieldsOf(deep)})
	require.ErrorIs(t, err, ErrUnsupported)
}

func TestWriter_CompressionNames(t *testing.T) {
	fs := fieldsOf(types.IntType())
	for name, want := range map[string]format.CompressionCodec{
		"": format.Zstd, "ZSTD": format.Zstd, "snappy": format.Snappy, "gzip": format.Gzip, "lz4": format.Lz4Raw,
		"LZ4_RAW": format.Lz4Raw, "none": format.Uncompressed, "uncompressed": format.Uncompressed,
	} {
		data, _ := writeFile(t, WriterOptions{Fields: fs, Compression: name}, batchOf(fs, [][]types.Datum{{types.IntDatum(1)}}))
		f := openFile(t, data, ReadOptions{Fields: fs})
		require.Equal(t, want, f.meta.RowGroups[0].Columns[0].MetaData.Codec, name)
	}
}

func TestWriter_EmptyFile(t *testing.T) {
	fs, _ := edgeTable()
	data, info := writeFile(t, WriterOptions{Fields: fs}, types.NewBatch(fs))
	require.Zero(t, info.Rows)
	require.Zero(t, info.RowGroups)
	for _, c := range info.Columns {
		require.Equal(t, ColumnStats{}, c)
	}
	f := openFile(t, data, ReadOptions{Fields: fs})
	require.Zero(t, f.Rows())
	require.Empty(t, readAll(t, f))
	_, cols := parquetGoColumns(t, data)
	require.Len(t, cols, len(fs))
}

// TestWriter_ResetMakesTheSameFile: nothing of one file, not even of a failed
// one, is left in the next.
func TestWriter_ResetMakesTheSameFile(t *testing.T) {
	fs, rows := foreignTable()
	o := WriterOptions{Fields: fs, PageRows: 33, RowGroupRows: 50}
	want, wantInfo := writeFile(t, o, batchOf(fs, rows))
	var buf bytes.Buffer
	w, err := NewWriter(&buf, o)
	require.NoError(t, err)
	before := []func(){
		func() {},
		func() { w.Reset(io.Discard); require.NoError(t, w.Write(batchOf(fs, rows[:77]))) },
		func() { require.Error(t, w.Write(&types.Batch{})) },
		func() { w.Reset(io.Discard); _, err := w.Close(); require.NoError(t, err) },
	}
	for _, f := range before {
		f()
		buf.Reset()
		w.Reset(&buf)
		require.NoError(t, w.Write(batchOf(fs, rows)))
		info, err := w.Close()
		require.NoError(t, err)
		require.Equal(t, wantInfo, info)
		require.Equal(t, want, buf.Bytes())
		require.ErrorContains(t, w.Write(batchOf(fs, rows)), "closed")
	}
}

func TestWriter_BytesDependOnlyOnTheRows(t *testing.T) {
	fs, rows := foreignTable()
	want, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	var parts []*types.Batch
	for _, r := range rows {
		parts = append(parts, batchOf(fs, [][]types.Datum{r}))
	}
	got, _ := writeFile(t, WriterOptions{Fields: fs, Concurrency: 3}, parts...)
	sameRows(t, rows, readAll(t, openFile(t, got, ReadOptions{Fields: fs})))
	again, _ := writeFile(t, WriterOptions{Fields: fs, Concurrency: 2}, batchOf(fs, rows))
	require.Equal(t, want, again)
}

func TestWriter_WriteErrorsEndTheFile(t *testing.T) {
	fs := fieldsOf(types.IntType())
	w, err := NewWriter(failingWriter{}, WriterOptions{Fields: fs, RowGroupRows: 50_000})
	require.NoError(t, err)
	require.NoError(t, w.Write(batchOf(fs, [][]types.Datum{{types.IntDatum(1)}})))
	_, err = w.Close()
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, w.Write(batchOf(fs, nil)), errDisk)

	b := types.NewBatch(fs)
	for i := range 100_000 {
		b.Cols[0].AppendInt32(int32(uint32(i) * 0x9e3779b1))
	}
	w.Reset(shortWriter{})
	for err = nil; err == nil; err = w.Write(b) {
		require.Less(t, w.Rows(), int64(1_000_000))
	}
	require.ErrorIs(t, err, io.ErrShortWrite)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errDisk }

type shortWriter struct{}

func (shortWriter) Write(b []byte) (int, error) { return len(b) - 1, nil }

func TestWriter_CharIsPaddedToCodePoints(t *testing.T) {
	fs := fieldsOf(types.CharType(4), types.ArrayType(types.CharType(2)))
	rows := [][]types.Datum{
		{types.StringDatum("ab"), types.Datum{L: []types.Datum{types.StringDatum("x"), types.Null}}},
		{types.StringDatum("😀"), types.Null},
		{types.StringDatum("abcd"), types.Datum{L: []types.Datum{}}},
		{types.StringDatum("too long"), types.Null},
		{types.Null, types.Null},
	}
	data, info := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	var got []string
	for _, r := range readAll(t, openFile(t, data, ReadOptions{Fields: fs})) {
		got = append(got, string(types.AppendJSON(nil, fs[0].Type, r[0]))+string(types.AppendJSON(nil, fs[1].Type, r[1])))
	}
	require.Equal(t, []string{`"ab  "["x ",null]`, `"😀   "null`, `"abcd"[]`, `"too long"null`, `nullnull`}, got)
	require.Equal(t, "ab  ", string(info.Columns[0].Min.B))
	require.Equal(t, "😀   ", string(info.Columns[0].Max.B))
}

// TestWriter_DeltaIsOffByDefault: other engines are not proven yet.
func TestWriter_DeltaIsOffByDefault(t *testing.T) {
	fs, rows := edgeTable()
	for _, on := range []bool{false, true} {
		data, info := writeFile(t, WriterOptions{Fields: fs, Delta: on}, batchOf(fs, rows))
		f := openFile(t, data, ReadOptions{Fields: fs})
		sameRows(t, rows, readAll(t, f))
		_, cols := parquetGoColumns(t, data)
		require.Equal(t, stripeRows(fs, rows), cols)
		seen := map[format.Encoding]bool{}
		for _, c := range f.meta.RowGroups[0].Columns {
			for _, e := range c.MetaData.Encoding {
				seen[e] = true
			}
		}
		require.Equal(t, on, seen[format.DeltaBinaryPacked])
		require.Equal(t, on, seen[format.DeltaLengthByteArray])
		_, plain := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
		require.True(t, reflect.DeepEqual(plain.Columns, info.Columns))
	}
}

// TestWriter_LongCharsEndTheirPages: the blanks count, not what came in.
func TestWriter_LongCharsEndTheirPages(t *testing.T) {
	fs := fieldsOf(types.CharType(10_000))
	b := types.NewBatch(fs)
	for range 500 {
		b.Cols[0].AppendString("x")
	}
	data, _ := writeFile(t, WriterOptions{Fields: fs, NoDictionary: true}, b)
	f := openFile(t, data, ReadOptions{Fields: fs})
	c := f.meta.RowGroups[0].Columns[0]
	pages, err := decodeOffsetIndex(data[c.OffsetIndexOffset:][:c.OffsetIndexLength])
	require.NoError(t, err)
	require.Len(t, pages, 19, "500 values of 10,004 bytes in pages of 256 KiB")
	_, err = NewWriter(io.Discard, WriterOptions{Fields: fieldsOf(types.CharType(maxCharLength + 1))})
	require.ErrorIs(t, err, ErrUnsupported)
}

func TestWriter_StatisticsSpanRowGroups(t *testing.T) {
	fs, rows := edgeTable()
	_, one := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	_, many := writeFile(t, WriterOptions{Fields: fs, RowGroupRows: 2}, batchOf(fs, rows))
	require.Greater(t, many.RowGroups, 3)
	require.True(t, reflect.DeepEqual(one.Columns, many.Columns))
}

func TestWriter_OneMegabyteValues(t *testing.T) {
	fs := fieldsOf(types.StringType(), types.ArrayType(types.BytesType()))
	var rows [][]types.Datum
	for i := range 5 {
		s := types.StringDatum(strings.Repeat(string(rune('a'+i)), 1<<20))
		rows = append(rows, []types.Datum{s, {L: []types.Datum{s, types.Null}}})
	}
	data, info := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	require.Less(t, len(data), 100_000)
	require.Len(t, info.Columns[0].Max.B, 1<<20)
	sameRows(t, rows, readAll(t, openFile(t, data, ReadOptions{Fields: fs})))
	f := openFile(t, data, ReadOptions{Fields: fs})
	c := f.meta.RowGroups[0].Columns[0]
	pages, err := decodeOffsetIndex(data[c.OffsetIndexOffset:][:c.OffsetIndexLength])
	require.NoError(t, err)
	require.Len(t, pages, 5, "a page ends as soon as it is large enough")
}

func TestWriter_SystemColumns(t *testing.T) {
	fs := append(fieldsOf(types.IntType()),
		types.Field{ID: 2147483642, Name: "_ROW_ID", Type: types.BigIntType().NonNull()},
		types.Field{ID: 2147483646, Name: "_SEQUENCE_NUMBER", Type: types.BigIntType()})
	rows := [][]types.Datum{{types.IntDatum(1), types.IntDatum(7), types.Null}, {types.IntDatum(2), types.IntDatum(9), types.IntDatum(3)}}
	data, info := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	f := openFile(t, data, ReadOptions{Fields: fs})
	sameRows(t, rows, readAll(t, f))
	require.Equal(t, []string{"optional int32 caa = 0", "required int64 _ROW_ID = 2147483642", "optional int64 _SEQUENCE_NUMBER = 2147483646"},
		schemaLines(f.meta.Schema))
	require.EqualValues(t, 1, info.Columns[2].NullCount)
}

func TestWriter_SizeAndMemoryAreReported(t *testing.T) {
	fs := fieldsOf(types.BigIntType())
	b := types.NewBatch(fs)
	for i := range 200_000 {
		b.Cols[0].AppendInt64(int64(uint64(i) * 0x9e3779b97f4a7c15))
	}
	w, err := NewWriter(io.Discard, WriterOptions{Fields: fs})
	require.NoError(t, err)
	require.NoError(t, w.Write(b))
	require.EqualValues(t, 200_000, w.Rows())
	require.InDelta(t, 1.6e6, float64(w.Size()), 2e5)
	require.Greater(t, w.MemBytes(), int64(1_500_000))
	info, err := w.Close()
	require.NoError(t, err)
	require.InDelta(t, float64(info.Bytes), float64(w.Size()), 1000)
}

// TestWriter_DoesNotAllocatePerRow: what is left are a few allocations a row
// group for its footer entry.
func TestWriter_DoesNotAllocatePerRow(t *testing.T) {
	batches := benchBatches(20_000, 20)
	w, err := NewWriter(io.Discard, WriterOptions{Fields: benchFields()})
	require.NoError(t, err)
	allocs := testing.AllocsPerRun(2, func() {
		w.Reset(io.Discard)
		for _, b := range batches {
			if err := w.Write(b); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
	require.Less(t, allocs, 300.0)
}

func TestWriter_LargeBuffersDoNotSurviveReset(t *testing.T) {
	fs := fieldsOf(types.BytesType())
	b := types.NewBatch(fs)
	for i := range 5 {
		b.Cols[0].AppendBytes(bytes.Repeat([]byte{byte(i)}, 1<<20))
	}
	w, err := NewWriter(io.Discard, WriterOptions{Fields: fs, Compression: "none", RowGroupBytes: 1 << 30})
	require.NoError(t, err)
	require.NoError(t, w.Write(b))
	used := w.MemBytes()
	require.Greater(t, used, int64(6<<20))
	w.Reset(io.Discard)
	require.Equal(t, used, w.MemBytes(), "below the limit buffers are kept")
	w.keep = used - 1
	w.Reset(io.Discard)
	require.Less(t, w.MemBytes(), int64(1<<20))
}

func TestWriter_PageTooLargeIsAnError(t *testing.T) {
	fs := fieldsOf(types.BytesType(), types.ArrayType(types.BytesType()))
	for c := range fs {
		w, err := NewWriter(io.Discard, WriterOptions{Fields: fs})
		require.NoError(t, err)
		for _, l := range w.cols[c].leaves {
			l.set.maxPage = 1000
		}
		row := []types.Datum{types.BytesDatum(nil), {L: []types.Datum{types.BytesDatum(nil)}}}
		if row[0].B = make([]byte, 2000); c == 1 {
			row[0].B, row[1].L[0].B = nil, make([]byte, 2000)
		}
		err = w.Write(batchOf(fs, [][]types.Datum{row}))
		if err == nil {
			_, err = w.Close()
		}
		require.ErrorIs(t, err, ErrTooLarge)
		require.ErrorContains(t, err, fs[c].Name)
	}
}

// TestWriter_SmallFilesTakeOneWrite: not one for each of their chunks.
func TestWriter_SmallFilesTakeOneWrite(t *testing.T) {
	fs, rows := foreignTable()
	var calls countingWriter
	w, err := NewWriter(&calls, WriterOptions{Fields: fs})
	require.NoError(t, err)
	require.NoError(t, w.Write(batchOf(fs, rows)))
	info, err := w.Close()
	require.NoError(t, err)
	require.Equal(t, countingWriter{calls: 1, bytes: info.Bytes}, calls)
}

type countingWriter struct {
	calls int
	bytes int64
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.calls++
	w.bytes += int64(len(b))
	return len(b), nil
}
