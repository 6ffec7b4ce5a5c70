package datafile

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// numbered is a file of n rows: id, text, and a list of both.
func numbered(t testing.TB, n int, o WriterOptions) ([]byte, []types.Field, [][]types.Datum) {
	fs := fieldsOf(types.BigIntType(), types.StringType(), types.ArrayType(types.IntType()))
	var rows [][]types.Datum
	for i := range n {
		list := types.Datum{L: []types.Datum{}}
		for j := range i % 4 {
			list.L = append(list.L, types.IntDatum(int64(i*j)))
		}
		rows = append(rows, []types.Datum{types.IntDatum(int64(i)), types.StringDatum(fmt.Sprint("row ", i)), list})
	}
	o.Fields = fs
	data, _ := writeFile(t, o, batchOf(fs, rows))
	return data, fs, rows
}

func TestRead_BatchesAreBoundedAndNumbered(t *testing.T) {
	data, fs, rows := numbered(t, 1000, WriterOptions{RowGroupRows: 300, PageRows: 70})
	f := openFile(t, data, ReadOptions{Fields: fs, BatchRows: 64})
	var starts []int64
	var n int64
	require.NoError(t, f.Read([]int{2, 0}, func(start int64, b *types.Batch) error {
		require.Equal(t, n, start)
		require.LessOrEqual(t, b.Len(), 64)
		require.Equal(t, start, b.Cols[1].I64[0], "columns come in the order asked for")
		require.True(t, sameDatum(rows[start][2], b.Cols[0].Datum(0)))
		starts = append(starts, start)
		n += int64(b.Len())
		return nil
	}))
	require.EqualValues(t, 1000, n)
	require.Contains(t, starts, int64(300), "a batch ends with its row group")
}

func TestRead_LargeRowsMakeSmallBatches(t *testing.T) {
	fs := fieldsOf(types.StringType(), types.IntType(), types.ArrayType(types.BytesType()))
	big := bytes.Repeat([]byte("x"), 10_000)
	for _, tc := range []struct {
		name string
		noD  bool
	}{{"plain", true}, {"dictionary", false}} {
		t.Run(tc.name, func(t *testing.T) {
			b := types.NewBatch(fs)
			for i := range 200 {
				b.Cols[0].AppendBytes(big)
				b.Cols[1].AppendInt32(int32(i))
				b.Cols[2].Child[0].AppendBytes(big[:5000])
				b.Cols[2].EndRow()
			}
			data, _ := writeFile(t, WriterOptions{Fields: fs, NoDictionary: tc.noD, PageBytes: 50_000}, b)
			f := openFile(t, data, ReadOptions{Fields: fs, BatchBytes: 100_000})
			n, batches := 0, 0
			require.NoError(t, f.Read([]int{0, 1, 2}, func(start int64, b *types.Batch) error {
				require.Less(t, len(b.Cols[0].Data), 200_000)
				require.Less(t, len(b.Cols[2].Child[0].Data), 200_000)
				for i := range b.Len() {
					require.EqualValues(t, n, b.Cols[1].I32[i])
					require.Len(t, b.Cols[0].Bytes(i), 10_000)
					require.EqualValues(t, 5000, len(b.Cols[2].Child[0].Bytes(i)))
					n++
				}
				batches++
				return nil
			}))
			require.Equal(t, 200, n)
			require.GreaterOrEqual(t, batches, 10)
		})
	}
}

func TestRead_StopsWithTheCallersError(t *testing.T) {
	data, fs, _ := numbered(t, 1000, WriterOptions{})
	f := openFile(t, data, ReadOptions{Fields: fs, BatchRows: 10})
	stop := errors.New("stop")
	calls := 0
	err := f.Read([]int{0}, func(int64, *types.Batch) error { calls++; return stop })
	require.Equal(t, stop, err)
	require.Equal(t, 1, calls)
}

func TestRead_APanicOfTheCallerIsNotACorruptFile(t *testing.T) {
	data, fs, _ := numbered(t, 10, WriterOptions{})
	f := openFile(t, data, ReadOptions{Fields: fs})
	require.PanicsWithValue(t, "mine", func() {
		_ = f.Read([]int{0}, func(int64, *types.Batch) error { panic("mine") })
	})
}

// TestRead_NullItemsAreZero: the vectors' contract, on which merge keys and
// gathers rely.
func TestRead_NullItemsAreZero(t *testing.T) {
	fs, rows := edgeTable()
	var mixed [][]types.Datum
	null := rows[0]
	for _, r := range rows[1:] {
		mixed = append(mixed, r, null, null)
	}
	data, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, mixed))
	f := openFile(t, data, ReadOptions{Fields: fs})
	for range 2 { // the second batch is read into used memory
		require.NoError(t, f.Read(allCols(len(fs)), func(_ int64, b *types.Batch) error {
			want := batchOf(fs, mixed)
			for c := range b.Cols {
				require.True(t, reflect.DeepEqual(normal(want.Cols[c]), normal(b.Cols[c])), fs[c].Type)
			}
			return nil
		}))
	}
}

// normal is what two equal vectors have in common; NaN as its bits.
func normal(v *types.Vector) []any {
	return []any{string(v.U8), fmt.Sprint(v.I32), fmt.Sprint(v.I64), bits32(v.F32), bits64(v.F64), fmt.Sprint(v.I128), fmt.Sprint(v.Off), string(v.Data), v.Nulls.Count(), v.Len()}
}

func TestRead_ColumnsAreFoundByExactName(t *testing.T) {
	data, fs, _ := numbered(t, 5, WriterOptions{})
	want := []types.Field{
		{ID: 99, Name: fs[0].Name, Type: types.BigIntType()}, // another id
		{ID: 0, Name: "CAA", Type: types.BigIntType()},
		{ID: 1, Name: "missing", Type: types.ArrayType(types.StringType())},
		{ID: 2, Name: "gone", Type: types.RowType(types.Field{Name: "x", Type: types.IntType().NonNull()}).NonNull()},
	}
	f := openFile(t, data, ReadOptions{Fields: want})
	require.Equal(t, []bool{true, false, false, false}, []bool{f.Has(0), f.Has(1), f.Has(2), f.Has(3)})
	for i, r := range readAll(t, f) {
		require.EqualValues(t, i, r[0].I)
		for _, d := range r[1:] {
			require.True(t, d.Null)
		}
	}
	out := f.NewBatch([]int{3, 0})
	require.NoError(t, f.ReadRows([]int{3, 0}, []uint32{1, 4}, out))
	require.Equal(t, []int64{1, 4}, out.Cols[1].I64)
	require.True(t, out.Cols[0].IsNull(1))
}

func TestRead_AskedForWrongly(t *testing.T) {
	data, fs, _ := numbered(t, 5, WriterOptions{})
	f := openFile(t, data, ReadOptions{Fields: fs})
	nop := func(int64, *types.Batch) error { return nil }
	require.ErrorIs(t, f.Read([]int{3}, nop), ErrSchema)
	require.ErrorIs(t, f.Read([]int{-1}, nop), ErrSchema)
	require.NoError(t, f.Read(nil, nop))
	out := f.NewBatch([]int{0})
	require.ErrorIs(t, f.ReadRows([]int{0, 1}, []uint32{1}, out), ErrSchema)
	for _, p := range [][]uint32{{5}, {2, 2}, {3, 1}} {
		require.ErrorContains(t, f.ReadRows([]int{0}, p, out), "position")
	}
	require.NoError(t, f.ReadRows([]int{0}, nil, out))
	require.Zero(t, out.Len())
}

func TestOpen_TypesThatDoNotFit(t *testing.T) {
	row := func(name string, t types.Type) types.Type { return types.RowType(types.Field{Name: name, Type: t}) }
	have := []types.Field{
		{ID: 0, Name: "i", Type: types.IntType()},
		{ID: 1, Name: "s", Type: types.StringType()},
		{ID: 2, Name: "d", Type: types.DecimalType(9, 2)},
		{ID: 3, Name: "l", Type: types.ArrayType(types.IntType())},
		{ID: 4, Name: "m", Type: types.MapType(types.IntType(), types.IntType())},
		{ID: 5, Name: "r", Type: row("x", types.IntType())},
		{ID: 7, Name: "b", Type: types.BooleanType()},
	}
	data, _ := writeFile(t, WriterOptions{Fields: have})
	for _, tc := range []struct {
		name string
		t    types.Type
	}{
		{"i", types.StringType()},
		{"i", types.DoubleType()},
		{"i", types.BooleanType()},
		{"i", types.ArrayType(types.IntType())},
		{"i", row("x", types.IntType())},
		{"s", types.IntType()},
		{"s", types.TimestampType(3)},
		{"d", types.DecimalType(9, 3)},
		{"l", types.IntType()},
		{"l", types.MapType(types.IntType(), types.IntType())},
		{"l", types.ArrayType(types.StringType())},
		{"m", types.ArrayType(types.IntType())},
		{"m", row("x", types.IntType())},
		{"r", types.ArrayType(types.IntType())},
		{"r", row("y", types.IntType())},
		{"r", row("x", types.StringType())},
		{"r", types.IntType()},
		{"b", types.IntType()},
		{"r", types.RowType()},
	} {
		_, err := Open(bytes.NewReader(data), int64(len(data)), ReadOptions{Fields: []types.Field{{Name: tc.name, Type: tc.t}}})
		require.ErrorIs(t, err, ErrSchema, "%s as %s", tc.name, tc.t)
		require.ErrorContains(t, err, "column "+tc.name)
	}
	_, err := Open(bytes.NewReader(data), int64(len(data)), ReadOptions{Fields: []types.Field{{Name: "i", Type: types.Type{Kind: types.Blob}}}})
	require.ErrorIs(t, err, ErrUnsupported)
}

// TestRead_NumbersAreConverted: what Java reads from another physical type.
func TestRead_NumbersAreConverted(t *testing.T) {
	for _, tc := range []struct {
		from, to  types.Type
		in, out   types.Datum
		wantError bool
	}{
		{types.IntType(), types.BigIntType(), types.IntDatum(-5), types.IntDatum(-5), false},
		{types.BigIntType(), types.IntType(), types.IntDatum(-5), types.IntDatum(-5), false},
		{types.BigIntType(), types.SmallIntType(), types.IntDatum(1 << 40), types.Null, true},
		{types.FloatType(), types.DoubleType(), types.FloatDatum(1.5), types.FloatDatum(1.5), false},
		{types.DoubleType(), types.FloatType(), types.FloatDatum(1.1), types.FloatDatum(float64(float32(1.1))), false},
		{types.IntType(), types.DecimalType(9, 2), types.IntDatum(-7), types.IntDatum(-7), false},
		{types.IntType(), types.DecimalType(20, 2), types.IntDatum(-7), types.Datum{D: types.Int128From(-7)}, false},
		{types.BigIntType(), types.DecimalType(20, 2), types.IntDatum(-7), types.Datum{D: types.Int128From(-7)}, false},
		{types.BytesType(), types.DecimalType(5, 2), types.BytesDatum([]byte{0xff, 0x01}), types.IntDatum(-255), false},
		{types.BytesType(), types.DecimalType(30, 2), types.BytesDatum([]byte{}), types.Datum{}, false},
		{types.BytesType(), types.DecimalType(5, 2), types.BytesDatum(bytes.Repeat([]byte{1}, 9)), types.Null, true},
		{types.BigIntType(), types.TimestampType(3), types.IntDatum(-5), types.IntDatum(-5000), false},
		{types.BigIntType(), types.TimestampType(6), types.IntDatum(-5), types.IntDatum(-5), false},
		{types.BigIntType(), types.TimestampType(9), types.IntDatum(-5), types.Datum{I: -1, N: 995}, false},
		{types.BigIntType(), types.TimestampType(3), types.IntDatum(1 << 62), types.Null, true},
		{types.TimestampType(3), types.TimestampType(9), types.IntDatum(-5000), types.Datum{I: -5000}, false},
		{types.TimestampType(9), types.TimestampType(3), types.Datum{I: -1, N: 1}, types.IntDatum(-1), false},
		{types.TimestampType(6), types.TimestampLTZType(6), types.IntDatum(7), types.IntDatum(7), false},
		{types.DateType(), types.IntType(), types.IntDatum(7), types.IntDatum(7), false},
		{types.StringType(), types.BytesType(), types.StringDatum("x"), types.StringDatum("x"), false},
	} {
		fs := fieldsOf(tc.from)
		data, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, [][]types.Datum{{tc.in}, {types.Null}}))
		f := openFile(t, data, ReadOptions{Fields: fieldsOf(tc.to)})
		got, err := readRowsOf(f)
		if tc.wantError {
			require.ErrorIs(t, err, ErrRange, "%s to %s", tc.from, tc.to)
			continue
		}
		require.NoError(t, err)
		sameRows(t, [][]types.Datum{{tc.out}, {types.Null}}, got)
	}
}

// TestRead_Int96OfJavaBefore1970: a day rounded towards 1970 and negative
// nanoseconds of the day.
func TestRead_Int96OfJavaBefore1970(t *testing.T) {
	p := &leafPlan{t: types.TimestampType(9), conv: convInt96, width: 12}
	for _, tc := range []struct {
		day    uint32
		nanos  int64
		micros int64
		rest   int32
	}{
		{julianEpoch, -1, -1, 999},
		{julianEpoch - 1, 86_400_000_000_000 - 1, -1, 999},
		{julianEpoch - 1, -1_000, -86_400_000_001, 0},
		{julianEpoch, 0, 0, 0},
		{0, 0, -julianEpoch * microsPerDay, 0},
	} {
		v := types.NewVector(p.t)
		b := le64(uint64(tc.nanos))
		b = append(b, byte(tc.day), byte(tc.day>>8), byte(tc.day>>16), byte(tc.day>>24))
		require.NoError(t, p.appendFixed(v, b, 1))
		require.Equal(t, types.Datum{I: tc.micros, N: tc.rest}, v.Datum(0))
	}
	v := types.NewVector(p.t)
	require.ErrorIs(t, p.appendFixed(v, append(le64(0), 255, 255, 255, 127), 1), ErrRange)
}

func le64(v uint64) []byte {
	var b []byte
	for range 8 {
		b, v = append(b, byte(v)), v>>8
	}
	return b
}

// TestRead_ListsOfTwoLevels turns our three-level lists into the older forms,
// whose levels are the same.
func TestRead_ListsOfTwoLevels(t *testing.T) {
	point := types.RowType(types.Field{Name: "x", Type: types.IntType()}, types.Field{Name: "y", Type: types.IntType()}).NonNull()
	one := types.RowType(types.Field{Name: "x", Type: types.IntType()}).NonNull()
	ints := []types.Datum{types.IntDatum(1), types.IntDatum(2)}
	for _, tc := range []struct {
		name string
		elem types.Type
		rep  string // name of the repeated field that replaces list.element
		vals []types.Datum
	}{
		{"repeated scalar", types.IntType().NonNull(), "element", ints},
		{"any name", types.IntType().NonNull(), "bag", ints},
		{"group of two", point, "element", []types.Datum{{L: ints}, {L: ints}}},
		{"group of one named array", one, "array", []types.Datum{{L: ints[:1]}, {L: ints[1:]}}},
		{"group of one named for its list", one, "caa_tuple", []types.Datum{{L: ints[:1]}}},
		{"group of one with the wanted field", one, "bag", []types.Datum{{L: ints[:1]}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fs := fieldsOf(types.ArrayType(tc.elem))
			rows := [][]types.Datum{{{L: tc.vals}}, {types.Null}, {{L: []types.Datum{}}}, {{L: tc.vals[:1]}}}
			data, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
			data = editFooter(t, data, func(m *fileMetaData) {
				// caa (LIST) { repeated list { element } } → caa (LIST) { repeated element }
				e := m.Schema[3]
				e.Name = tc.rep
				e.RepetitionType.Set(format.Repeated)
				m.Schema = append(append(m.Schema[:2:2], e), m.Schema[4:]...)
			})
			sameRows(t, rows, readAll(t, openFile(t, data, ReadOptions{Fields: fs})))
		})
	}
}

func TestOpen_OddSchemas(t *testing.T) {
	fs := fieldsOf(types.IntType(), types.ArrayType(types.IntType()))
	data, _ := writeFile(t, WriterOptions{Fields: fs})
	for name, tc := range map[string]struct {
		edit func(m *fileMetaData)
		want error
	}{
		"unsigned":               {func(m *fileMetaData) { m.Schema[1].LogicalType.Value = &format.IntType{BitWidth: 32} }, ErrSchema},
		"repeated column":        {func(m *fileMetaData) { m.Schema[1].RepetitionType.Set(format.Repeated) }, ErrSchema},
		"list without repeated":  {func(m *fileMetaData) { m.Schema[3].RepetitionType.Set(format.Required) }, ErrSchema},
		"list of repeated":       {func(m *fileMetaData) { m.Schema[4].RepetitionType.Set(format.Repeated) }, ErrSchema},
		"fixed without a length": {func(m *fileMetaData) { m.Schema[1].Type.Set(format.FixedLenByteArray) }, ErrSchema},
		"no schema":              {func(m *fileMetaData) { m.Schema = thrift.Slice[schemaElement]{} }, ErrCorrupt},
		"elements left over":     {func(m *fileMetaData) { m.Schema = append(m.Schema, m.Schema[1]) }, ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			broken := editFooter(t, data, tc.edit)
			_, err := Open(bytes.NewReader(broken), int64(len(broken)), ReadOptions{Fields: fs})
			if name == "fixed without a length" {
				require.ErrorIs(t, err, ErrCorrupt)
				return
			}
			require.ErrorIs(t, err, tc.want)
		})
	}
}

// countingReader adds up what is read.
type countingReader struct {
	*bytes.Reader
	mu    sync.Mutex
	bytes int64
	calls int
}

func (r *countingReader) ReadAt(b []byte, off int64) (int, error) {
	r.mu.Lock()
	r.bytes += int64(len(b))
	r.calls++
	r.mu.Unlock()
	return r.Reader.ReadAt(b, off)
}

func TestReadRows_ReadsOnlyThePagesNeeded(t *testing.T) {
	data, fs, rows := numbered(t, 100_000, WriterOptions{Compression: "none", PageRows: 1000})
	r := &countingReader{Reader: bytes.NewReader(data)}
	f, err := Open(r, int64(len(data)), ReadOptions{Fields: fs})
	require.NoError(t, err)
	for _, tc := range []struct {
		positions []uint32
		pages     int64
	}{
		{[]uint32{50_500}, 1},
		{[]uint32{999, 1000}, 2},
		{[]uint32{0, 30_000, 60_000, 99_999}, 4},
	} {
		r.bytes, r.calls = 0, 0
		out := f.NewBatch([]int{0, 2})
		require.NoError(t, f.ReadRows([]int{0, 2}, tc.positions, out))
		for i, p := range tc.positions {
			require.True(t, sameDatum(rows[p][0], out.Cols[0].Datum(i)))
			require.True(t, sameDatum(rows[p][2], out.Cols[1].Datum(i)))
		}
		require.Less(t, r.bytes, tc.pages*(8_100+7_500)+2*3000, "%v", tc.positions)
		require.LessOrEqual(t, r.calls, int(tc.pages)*2+2)
	}
}

func TestReadRows_NeighbourPagesComeInOneRead(t *testing.T) {
	data, fs, _ := numbered(t, 20_000, WriterOptions{Compression: "none", PageRows: 500})
	r := &countingReader{Reader: bytes.NewReader(data)}
	f, err := Open(r, int64(len(data)), ReadOptions{Fields: fs})
	require.NoError(t, err)
	var positions []uint32
	for i := range 40 {
		positions = append(positions, uint32(i*500))
	}
	r.calls = 0
	out := f.NewBatch([]int{0})
	require.NoError(t, f.ReadRows([]int{0}, positions, out))
	require.Equal(t, 1, r.calls, "all pages; the offset index came with the footer")
	for i, p := range positions {
		require.EqualValues(t, p, out.Cols[0].I64[i])
	}
}

func TestRead_SmallFilesAndRowGroupsComeInOneRead(t *testing.T) {
	for _, tc := range []struct {
		rows, group, calls int
	}{{500, 0, 1}, {60_000, 20_000, 4}} {
		data, fs, rows := numbered(t, tc.rows, WriterOptions{Compression: "none", RowGroupRows: int64(tc.group)})
		r := &countingReader{Reader: bytes.NewReader(data)}
		f, err := Open(r, int64(len(data)), ReadOptions{Fields: fs})
		require.NoError(t, err)
		sameRows(t, rows, readAll(t, f))
		require.Equal(t, tc.calls, r.calls)
		require.Less(t, r.bytes, int64(len(data))+tailBytes+1)
	}
}

// TestReadRows_WithoutOffsetIndex: flat pages in front are skipped undecoded,
// nested ones walked.
func TestReadRows_WithoutOffsetIndex(t *testing.T) {
	data, fs, rows := numbered(t, 5000, WriterOptions{PageRows: 300, RowGroupRows: 2000})
	data = editFooter(t, data, func(m *fileMetaData) {
		for g := range m.RowGroups {
			for c := range m.RowGroups[g].Columns {
				m.RowGroups[g].Columns[c].OffsetIndexOffset, m.RowGroups[g].Columns[c].OffsetIndexLength = 0, 0
			}
		}
	})
	f := openFile(t, data, ReadOptions{Fields: fs})
	var positions []uint32
	for i := 1; i < 5000; i += 1 + i%37 {
		positions = append(positions, uint32(i))
	}
	out := f.NewBatch(allCols(3))
	require.NoError(t, f.ReadRows(allCols(3), positions, out))
	for i, p := range positions {
		sameRows(t, [][]types.Datum{rows[p]}, [][]types.Datum{out.Row(i)})
	}
}

func TestReadRows_AppendsToTheBatch(t *testing.T) {
	data, fs, rows := numbered(t, 3000, WriterOptions{})
	f := openFile(t, data, ReadOptions{Fields: fs})
	out := f.NewBatch(allCols(3))
	var want [][]types.Datum
	for _, p := range [][]uint32{{3, 4, 5}, {1}, {2999}} {
		require.NoError(t, f.ReadRows(allCols(3), p, out))
		for _, i := range p {
			want = append(want, rows[i])
		}
	}
	var got [][]types.Datum
	for i := range out.Len() {
		got = append(got, out.Row(i))
	}
	sameRows(t, want, got)
}

func TestFile_IsSafeForConcurrentReads(t *testing.T) {
	data, fs, rows := numbered(t, 20_000, WriterOptions{RowGroupRows: 7000})
	buffers, err := NewBuffers()
	require.NoError(t, err)
	f := openFile(t, data, ReadOptions{Fields: fs, Buffers: buffers})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			var n int64
			err := f.Read([]int{0, 1, 2}, func(_ int64, b *types.Batch) error {
				for i := range b.Len() {
					if !sameDatum(rows[n][w%3], b.Cols[w%3].Datum(i)) {
						return fmt.Errorf("row %d", n)
					}
					n++
				}
				return nil
			})
			out := f.NewBatch([]int{1})
			err = errors.Join(err, f.ReadRows([]int{1}, []uint32{uint32(w), 15_000}, out))
			if err != nil || n != 20_000 || string(out.Cols[0].Bytes(1)) != "row 15000" {
				t.Error(err, n)
			}
		})
	}
	wg.Wait()
}

func TestPrune_SkipsRowGroupsAndKeepsPositions(t *testing.T) {
	data, fs, _ := numbered(t, 1000, WriterOptions{RowGroupRows: 250})
	var asked []RowGroupStats
	f := openFile(t, data, ReadOptions{Fields: fs, Prune: func(rg RowGroupStats) bool {
		asked = append(asked, rg)
		c := rg.Column(0)
		require.True(t, c.HasBounds)
		require.Zero(t, c.NullCount)
		return c.Max.I < 300 || c.Min.I > 600 // only rows of 300 to 600 are wanted
	}})
	var starts, ids []int64
	require.NoError(t, f.Read([]int{0}, func(start int64, b *types.Batch) error {
		starts = append(starts, start)
		ids = append(ids, b.Cols[0].I64...)
		return nil
	}))
	require.Equal(t, []int64{250, 500}, starts)
	require.Len(t, ids, 500)
	require.Equal(t, int64(250), ids[0])
	require.Len(t, asked, 4)
	for g, rg := range asked {
		require.Equal(t, rg, f.RowGroup(g))
		require.Equal(t, g, rg.Ordinal)
		require.EqualValues(t, 250, rg.Rows)
		require.EqualValues(t, g*250, rg.Start)
	}
}

func TestRowGroupStats_EqualTheWritersForEveryType(t *testing.T) {
	fs, rows := edgeTable()
	data, info := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	f := openFile(t, data, ReadOptions{Fields: fs})
	known := 0
	for i := range fs {
		got := RowGroupStats{f: f, Rows: f.Rows()}.Column(i)
		want := info.Columns[i]
		if len(want.Min.B)+len(want.Max.B) > maxStatBytes {
			want = ColumnStats{NullCount: want.NullCount}
		}
		require.Equal(t, want.HasBounds, got.HasBounds, fs[i].Type)
		require.Equal(t, want.NullCount, got.NullCount)
		if want.HasBounds {
			require.True(t, sameDatum(want.Min, got.Min) && sameDatum(want.Max, got.Max), "%s: %v is not %v", fs[i].Type, got, want)
			known++
		}
	}
	require.Greater(t, known, 20)
}

func TestRowGroupStats_OfMissingAndNestedColumns(t *testing.T) {
	data, fs, _ := numbered(t, 10, WriterOptions{})
	f := openFile(t, data, ReadOptions{Fields: append(fs, types.Field{Name: "missing", Type: types.IntType()})})
	s := RowGroupStats{f: f, Rows: 10}
	require.Equal(t, ColumnStats{NullCount: 10}, s.Column(3))
	require.Equal(t, ColumnStats{NullCount: -1}, s.Column(2))
}

// TestRowGroupStats_ForeignBoundsAreNotTrustedBlindly: what other writers are
// known to get wrong, or leave open, gives no bounds.
func TestRowGroupStats_ForeignBoundsAreNotTrustedBlindly(t *testing.T) {
	fs := fieldsOf(types.DecimalType(38, 0), types.DoubleType(), types.BigIntType(), types.StringType())
	row := []types.Datum{{D: types.Int128From(5)}, types.FloatDatum(1), types.IntDatum(2), types.StringDatum("x")}
	data, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, [][]types.Datum{row}))
	stats := func(edit func(m *fileMetaData, st []*statistics)) []bool {
		f := openFile(t, editFooter(t, data, func(m *fileMetaData) {
			var st []*statistics
			for c := range m.RowGroups[0].Columns {
				st = append(st, &m.RowGroups[0].Columns[c].MetaData.Statistics)
			}
			edit(m, st)
		}), ReadOptions{Fields: fs})
		var known []bool
		for i := range fs {
			known = append(known, RowGroupStats{f: f, Rows: 1}.Column(i).HasBounds)
		}
		return known
	}
	require.Equal(t, []bool{true, true, true, true}, stats(func(*fileMetaData, []*statistics) {}))
	by := func(name string) func(m *fileMetaData, _ []*statistics) {
		return func(m *fileMetaData, _ []*statistics) { m.CreatedBy = name }
	}
	require.Equal(t, []bool{false, false, true, true}, stats(by("github.com/parquet-go/parquet-go version 0.32")), "unsigned decimals, NaN left out")
	require.Equal(t, []bool{true, false, true, true}, stats(by("parquet-cpp-arrow version 26")), "NaN left out")
	require.Equal(t, []bool{true, true, true, true}, stats(by("parquet-mr version 1.16.0")))
	require.Equal(t, []bool{false, false, true, false}, stats(func(_ *fileMetaData, st []*statistics) {
		for _, s := range st {
			s.Min, s.Max, s.MinValue, s.MaxValue = s.MinValue, s.MaxValue, nil, nil // the old, signed fields only
		}
		st[1].Min = []byte{1, 2, 3} // a wrong length
	}))
	require.Equal(t, []bool{true, false, false, false}, stats(func(_ *fileMetaData, st []*statistics) {
		st[1].MaxValue = []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f} // NaN
		st[2].MinValue, st[2].MaxValue = le64(9), le64(1)     // upside down
		st[3].MaxValue = nil
	}))
	f := openFile(t, editFooter(t, data, func(m *fileMetaData) {
		m.RowGroups[0].Columns[2].MetaData.Statistics.NullCount = thrift.Null[int64]{}
	}), ReadOptions{Fields: fs})
	require.EqualValues(t, -1, RowGroupStats{f: f, Rows: 1}.Column(2).NullCount, "absent is not 0")
}

// TestRead_FilesOfParquetGo reads what parquet-go's own writer makes.
func TestRead_FilesOfParquetGo(t *testing.T) {
	type row struct {
		ID   int64            `parquet:"id"`
		Name *string          `parquet:"name,optional,dict"`
		Tags []string         `parquet:"tags,list"`
		Attr map[string]int32 `parquet:"attr"`
		D    int64            `parquet:"d,decimal(2:18)"`
		U    [16]byte         `parquet:"u"`
	}
	fs := []types.Field{
		{Name: "id", Type: types.BigIntType()},
		{Name: "name", Type: types.StringType()},
		{Name: "tags", Type: types.ArrayType(types.StringType())},
		{Name: "attr", Type: types.MapType(types.StringType(), types.IntType())},
		{Name: "d", Type: types.DecimalType(18, 2)},
		{Name: "u", Type: types.BinaryType(16)},
	}
	for _, v := range []int{1, 2} {
		var in []row
		var want [][]types.Datum
		for i := range 500 {
			r := row{ID: int64(i), D: int64(-i), U: [16]byte{byte(i)}, Attr: map[string]int32{}}
			d := []types.Datum{types.IntDatum(int64(i)), types.Null, {L: []types.Datum{}}, {L: []types.Datum{}}, types.IntDatum(int64(-i)), types.BytesDatum(r.U[:])}
			if i%3 > 0 {
				s := fmt.Sprint("n", i%10)
				r.Name, d[1] = &s, types.StringDatum(s)
			}
			for j := range i % 3 {
				r.Tags = append(r.Tags, fmt.Sprint(j))
				d[2].L = append(d[2].L, types.StringDatum(fmt.Sprint(j)))
			}
			if i%2 == 0 {
				r.Attr["k"] = int32(i)
				d[3].L = append(d[3].L, types.StringDatum("k"), types.IntDatum(int64(i)))
			}
			in, want = append(in, r), append(want, d)
		}
		var buf bytes.Buffer
		w := parquet.NewGenericWriter[row](&buf, parquet.DataPageVersion(v), parquet.PageBufferSize(300), parquet.Compression(&parquet.Snappy))
		_, err := w.Write(in)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		sameRows(t, want, readAll(t, openFile(t, buf.Bytes(), ReadOptions{Fields: fs})))
	}
}
