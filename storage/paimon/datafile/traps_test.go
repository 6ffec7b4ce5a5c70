package datafile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// Each trap of ecosystem.md §9 that lost rows or made an engine refuse a file,
// with its remedy.

// chunkStats writes the values as one nullable column and returns its footer
// statistics and file statistics.
func chunkStats(t *testing.T, typ types.Type, values ...types.Datum) (statistics, ColumnStats) {
	t.Helper()
	fs := fieldsOf(typ)
	var rows [][]types.Datum
	for _, v := range values {
		rows = append(rows, []types.Datum{v})
	}
	data, info := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	f := openFile(t, data, ReadOptions{Fields: fs})
	return f.meta.RowGroups[0].Columns[0].MetaData.Statistics, info.Columns[0]
}

func TestTrap_FixedDecimalBoundsCompareSigned(t *testing.T) {
	neg, pos := types.Int128From(-128).Neg().Neg(), types.Int128From(5)
	s, c := chunkStats(t, types.DecimalType(38, 18), types.Datum{D: pos}, types.Datum{}, types.Datum{D: neg}, types.Null)
	lo, _ := types.Int128FromBytes(s.MinValue)
	hi, _ := types.Int128FromBytes(s.MaxValue)
	require.Equal(t, neg, lo)
	require.Equal(t, pos, hi)
	require.Len(t, s.MinValue, 16)
	require.Nil(t, s.Min, "the deprecated bounds have no order here")
	require.Equal(t, thrift.New(int64(1)), s.NullCount)
	require.Equal(t, ColumnStats{NullCount: 1, HasBounds: true, Min: types.Datum{D: neg}, Max: types.Datum{D: pos}}, c)
}

func TestTrap_NaNLeavesNoBounds(t *testing.T) {
	for _, typ := range []types.Type{types.FloatType(), types.DoubleType()} {
		for _, at := range []int{0, 1, 2} {
			values := []types.Datum{types.FloatDatum(1), types.FloatDatum(2), types.FloatDatum(3)}
			values[at] = types.FloatDatum(math.NaN())
			s, c := chunkStats(t, typ, values...)
			require.Equal(t, statistics{NullCount: thrift.New(int64(0))}, s)
			require.Equal(t, ColumnStats{}, c)
		}
	}
}

func TestTrap_NaNInOneRowGroupOnly(t *testing.T) {
	fs := fieldsOf(types.DoubleType())
	rows := [][]types.Datum{{types.FloatDatum(1)}, {types.FloatDatum(math.NaN())}, {types.FloatDatum(7)}}
	data, info := writeFile(t, WriterOptions{Fields: fs, RowGroupRows: 1}, batchOf(fs, rows))
	require.False(t, info.Columns[0].HasBounds, "the file has a NaN")
	f := openFile(t, data, ReadOptions{Fields: fs})
	for g, want := range []bool{true, false, true} {
		require.Equal(t, want, f.meta.RowGroups[g].Columns[0].MetaData.Statistics.MinValue != nil)
	}
}

func TestTrap_ZerosOfFloatsAreWidened(t *testing.T) {
	for _, zero := range []float64{0, math.Copysign(0, -1)} {
		s, c := chunkStats(t, types.DoubleType(), types.FloatDatum(zero))
		require.Equal(t, uint64(1)<<63, binary.LittleEndian.Uint64(s.MinValue), "-0.0")
		require.Zero(t, binary.LittleEndian.Uint64(s.MaxValue))
		require.True(t, math.Signbit(c.Min.F))
		require.False(t, math.Signbit(c.Max.F))
	}
}

func TestTrap_BoundsOldAndNewAsJavaWritesThem(t *testing.T) {
	for _, tc := range []struct {
		t    types.Type
		v    types.Datum
		want []byte
		old  bool
	}{
		{types.BooleanType(), types.BoolDatum(true), []byte{1}, true},
		{types.TinyIntType(), types.IntDatum(-1), []byte{255, 255, 255, 255}, true},
		{types.BigIntType(), types.IntDatum(1), []byte{1, 0, 0, 0, 0, 0, 0, 0}, true},
		{types.DateType(), types.IntDatum(1), []byte{1, 0, 0, 0}, true},
		{types.TimeType(3), types.IntDatum(1), []byte{1, 0, 0, 0}, true},
		{types.TimestampType(3), types.IntDatum(-1000), []byte{255, 255, 255, 255, 255, 255, 255, 255}, true},
		{types.TimestampLTZType(6), types.IntDatum(1), []byte{1, 0, 0, 0, 0, 0, 0, 0}, true},
		{types.FloatType(), types.FloatDatum(1), []byte{0, 0, 128, 63}, true},
		{types.DecimalType(9, 2), types.IntDatum(1), []byte{1, 0, 0, 0}, false},
		{types.DecimalType(18, 2), types.IntDatum(1), []byte{1, 0, 0, 0, 0, 0, 0, 0}, false},
		{types.StringType(), types.StringDatum(""), []byte{}, false},
		{types.BytesType(), types.StringDatum("x"), []byte("x"), false},
		{types.CharType(3), types.StringDatum("a"), []byte("a  "), false},
	} {
		s, c := chunkStats(t, tc.t, tc.v)
		require.Equal(t, tc.want, s.MinValue, tc.t)
		require.NotNil(t, s.MaxValue, "an empty bound is a bound")
		require.Equal(t, tc.want, s.MaxValue, tc.t)
		require.Equal(t, tc.old, s.Min != nil && s.Max != nil, tc.t)
		require.True(t, c.HasBounds)
	}
}

func TestTrap_Int96HasNoBoundsAndFloorsTheDay(t *testing.T) {
	fs := fieldsOf(types.TimestampType(9).NonNull())
	data, info := writeFile(t, WriterOptions{Fields: fs, Compression: "none"}, batchOf(fs, [][]types.Datum{{{I: -1, N: 999}}}))
	require.False(t, info.Columns[0].HasBounds)
	f := openFile(t, data, ReadOptions{Fields: fs})
	m := f.meta.RowGroups[0].Columns[0].MetaData
	require.Nil(t, m.Statistics.MinValue)
	var h pageHeader
	n, err := h.decode(data[m.DataPageOffset:])
	require.NoError(t, err)
	v := data[int(m.DataPageOffset)+n:]
	require.EqualValues(t, 86_400_000_000_000-1, binary.LittleEndian.Uint64(v), "nanoseconds of the day are never negative")
	require.EqualValues(t, julianEpoch-1, binary.LittleEndian.Uint32(v[8:]))
}

func TestTrap_LongBoundsStayOutOfTheFooter(t *testing.T) {
	long := strings.Repeat("x", 3000)
	s, c := chunkStats(t, types.StringType(), types.StringDatum(long), types.StringDatum(long+"y"))
	require.Nil(t, s.MinValue)
	require.Nil(t, s.MaxValue)
	require.Equal(t, thrift.New(int64(0)), s.NullCount)
	require.Equal(t, long, string(c.Min.B))
	require.Equal(t, long+"y", string(c.Max.B))
}

func TestTrap_AllNullHasNoBounds(t *testing.T) {
	for _, e := range scalarEdges() {
		s, c := chunkStats(t, e.t, types.Null, types.Null)
		require.Equal(t, statistics{NullCount: thrift.New(int64(2))}, s, e.t)
		require.Equal(t, ColumnStats{NullCount: 2}, c, e.t)
	}
}

// TestTrap_OffsetIndexWithoutColumnIndex: an empty or gappy column index makes
// Spark and paimon-rust refuse a file; we have none, and parquet-go opens it.
func TestTrap_OffsetIndexWithoutColumnIndex(t *testing.T) {
	fs, rows := edgeTable()
	data, _ := writeFile(t, WriterOptions{Fields: fs, PageRows: 2, RowGroupRows: 5}, batchOf(fs, rows))
	f := openFile(t, data, ReadOptions{Fields: fs})
	for _, g := range f.meta.RowGroups {
		for _, c := range g.Columns {
			require.Zero(t, c.ColumnIndexLength)
			require.Zero(t, c.ColumnIndexOffset)
			require.Positive(t, c.OffsetIndexLength)
		}
	}
	pf, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Len(t, pf.OffsetIndexes(), len(fs)*len(f.meta.RowGroups))
	for g, rg := range pf.RowGroups() {
		for _, c := range rg.ColumnChunks() {
			index, err := c.OffsetIndex()
			require.NoError(t, err)
			require.EqualValues(t, (rg.NumRows()+1)/2, index.NumPages(), "row group %d", g)
			require.EqualValues(t, 0, index.FirstRowIndex(0))
		}
	}
}

func TestTrap_FieldIDZeroIsWritten(t *testing.T) {
	fs := fieldsOf(types.IntType(), types.IntType())
	data, _ := writeFile(t, WriterOptions{Fields: fs})
	f := openFile(t, data, ReadOptions{Fields: fs})
	require.Equal(t, thrift.New(int32(0)), f.meta.Schema[1].FieldID)
	require.Equal(t, thrift.New(int32(1)), f.meta.Schema[2].FieldID)
	require.False(t, f.meta.Schema[0].FieldID.Valid)
}

func TestTrap_ColumnsKeepTheirOrder(t *testing.T) {
	fs := []types.Field{
		{ID: 3, Name: "z", Type: types.IntType()},
		{ID: 1, Name: "a", Type: types.RowType(types.Field{ID: 5, Name: "y", Type: types.IntType()}, types.Field{ID: 4, Name: "b", Type: types.IntType()})},
		{ID: 2, Name: "M", Type: types.IntType()},
	}
	data, _ := writeFile(t, WriterOptions{Fields: fs})
	require.Equal(t, []string{
		"optional int32 z = 3", "optional group a = 1", "  optional int32 y = 5", "  optional int32 b = 4", "optional int32 M = 2",
	}, schemaLines(openFile(t, data, ReadOptions{Fields: fs}).meta.Schema))
}

// TestTrap_PagesAreCheckedAndCarryNoBounds decodes every page header with
// parquet-go's own model.
func TestTrap_PagesAreCheckedAndCarryNoBounds(t *testing.T) {
	fs, rows := edgeTable()
	data, _ := writeFile(t, WriterOptions{Fields: fs, PageRows: 3}, batchOf(fs, rows))
	f := openFile(t, data, ReadOptions{Fields: fs})
	pages := 0
	for _, c := range f.meta.RowGroups[0].Columns {
		start, end := c.MetaData.span()
		for start < end {
			r := new(thrift.CompactProtocol).NewReaderFromBytes(data[start:end])
			var h format.PageHeader
			require.NoError(t, thrift.NewDecoder(r).Decode(&h))
			body := data[start+int64(r.BytesRead()):][:h.CompressedPageSize]
			require.Equal(t, crc32.ChecksumIEEE(body), uint32(h.CRC))
			require.Equal(t, format.DataPage, h.Type, "pages V1, as Java writes")
			require.Zero(t, h.DataPageHeader.V.Statistics)
			start += int64(r.BytesRead()) + int64(h.CompressedPageSize)
			pages++
		}
		require.Equal(t, end, start)
	}
	require.Greater(t, pages, 2*len(fs))
}

// TestTrap_OneLargeCallMakesManyPagesAndRowGroups: parquet-go's ColumnWriter
// ended a page only after a call and a row group never.
func TestTrap_OneLargeCallMakesManyPagesAndRowGroups(t *testing.T) {
	fs := fieldsOf(types.BigIntType(), types.StringType())
	b := types.NewBatch(fs)
	for i := range 100_000 {
		b.Cols[0].AppendInt64(int64(i))
		b.Cols[1].AppendString("a text of twenty-four by")
	}
	data, info := writeFile(t, WriterOptions{Fields: fs, RowGroupRows: 40_000, NoDictionary: true}, b)
	require.Equal(t, 3, info.RowGroups)
	f := openFile(t, data, ReadOptions{Fields: fs})
	for g, rows := range []int64{40_000, 40_000, 20_000} {
		rg := &f.meta.RowGroups[g]
		require.Equal(t, rows, rg.NumRows)
		require.Equal(t, thrift.New(int16(g)), rg.Ordinal)
		for c := range rg.Columns {
			r := f.newColumnReader(f.cols[c])
			require.NoError(t, r.open(rg))
			pages, err := r.leaves[0].pageIndex(&rg.Columns[c], rg.NumRows)
			require.NoError(t, err)
			require.GreaterOrEqual(t, int64(len(pages)), rows/DefaultPageRows)
			if c == 1 {
				require.Greater(t, int64(len(pages)), rows*28/DefaultPageBytes)
			}
		}
	}
}

func TestWriter_RowGroupEndsByBytes(t *testing.T) {
	fs := fieldsOf(types.BigIntType())
	b := types.NewBatch(fs)
	for i := range 50_000 {
		b.Cols[0].AppendInt64(int64(i))
	}
	_, info := writeFile(t, WriterOptions{Fields: fs, RowGroupBytes: 100_000}, b)
	require.InDelta(t, 4, info.RowGroups, 1)
}
