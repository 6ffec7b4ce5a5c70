package datafile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"runtime"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// anyError are the errors that reading broken bytes may end in.
func knownError(err error) bool {
	for _, known := range []error{ErrCorrupt, ErrUnsupported, ErrSchema, ErrTooLarge, ErrRange} {
		if errors.Is(err, known) {
			return true
		}
	}
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// readBroken reads all of a file that may be broken, in both ways.
func readBroken(data []byte, fs []types.Field) error {
	f, err := Open(bytes.NewReader(data), int64(len(data)), ReadOptions{Fields: fs, MaxPageBytes: 1 << 20})
	if err != nil {
		return err
	}
	cols := allCols(len(fs))
	n := 0
	err = f.Read(cols, func(start int64, b *types.Batch) error {
		if n++; n > 100 { // a page of NULLs costs nothing and may claim any number
			return io.ErrUnexpectedEOF
		}
		for i := range min(b.Len(), 3) {
			b.Row(i)
		}
		return nil
	})
	out := f.NewBatch(cols)
	var positions []uint32
	for p := range min(f.Rows(), 5) {
		positions = append(positions, uint32(p*f.Rows()/5+p))
	}
	if len(positions) == 5 && f.Rows() < 1000 {
		err = errors.Join(err, f.ReadRows(cols, []uint32{0, uint32(f.Rows() - 1)}, out))
	}
	for g := range f.meta.RowGroups {
		for i := range fs {
			RowGroupStats{f: f, Ordinal: g, Rows: f.meta.RowGroups[g].NumRows}.Column(i)
		}
	}
	return err
}

func smallNested(t testing.TB) ([]byte, []types.Field, [][]types.Datum) {
	fs, rows := foreignTable()
	data, _ := writeFile(t, WriterOptions{Fields: fs, PageRows: 20, RowGroupRows: 70, Compression: "none"}, batchOf(fs, rows))
	return data, fs, rows
}

func TestCorrupt_EveryTruncationIsAnError(t *testing.T) {
	fs, rows := edgeTable()
	data, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	for n := range len(data) {
		err := readBroken(data[:n], fs)
		require.Error(t, err, "%d of %d bytes", n, len(data))
		require.True(t, knownError(err), "%v", err)
	}
}

// TestCorrupt_FlippedBytesInPagesAreFound: the checksums cover all of a page but
// its header, whose fields are checked against each other.
func TestCorrupt_FlippedBytesInPagesAreFound(t *testing.T) {
	data, fs, rows := smallNested(t)
	f := openFile(t, data, ReadOptions{Fields: fs})
	end := f.meta.RowGroups[0].Columns[0].OffsetIndexOffset
	for at := int64(4); at < end; at += 41 {
		broken := bytes.Clone(data)
		broken[at] ^= 1 << (at % 8)
		got, err := readRowsOf(openFile(t, broken, ReadOptions{Fields: fs}))
		if err != nil {
			require.True(t, knownError(err), "%v", err)
			require.ErrorContains(t, err, "column ")
			continue
		}
		// A flip in a header that means nothing to a reader.
		sameRows(t, rows, got)
	}
}

func TestCorrupt_FlippedBytesInTheFooterNeverPanic(t *testing.T) {
	data, fs, _ := smallNested(t)
	for at := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:])); at < len(data); at += 7 {
		broken := bytes.Clone(data)
		broken[at] ^= 1 << (at % 8)
		if err := readBroken(broken, fs); err != nil {
			require.True(t, knownError(err), "%v", err)
		}
	}
}

// editFooter writes the file again with a changed footer.
func editFooter(t *testing.T, data []byte, edit func(m *fileMetaData)) []byte {
	m, _, end, err := readFooter(bytes.NewReader(data), int64(len(data)), 1<<20, 1)
	require.NoError(t, err)
	edit(m)
	out, err := appendFooter(bytes.Clone(data[:end]), m)
	require.NoError(t, err)
	return out
}

// onePage is a file of one chunk whose only page is the given one.
func onePage(t *testing.T, typ types.Type, h pageHeader, body []byte, values int64) []byte {
	fs := fieldsOf(typ)
	s, err := newSchema(fs)
	require.NoError(t, err)
	out := []byte(magic)
	h.raw, h.packed, h.crc = int32(len(body)), int32(len(body)), crc32.ChecksumIEEE(body)
	out = append(h.append(out), body...)
	m := &fileMetaData{Version: 1, Schema: s.elements, NumRows: values, RowGroups: thrift.Slice[rowGroup]{{
		NumRows: values,
		Columns: thrift.Slice[columnChunk]{{MetaData: columnMetaData{
			Type: s.leaves[0].phys, Encoding: thrift.Slice[format.Encoding]{}, PathInSchema: s.leaves[0].path, Codec: format.Uncompressed,
			NumValues: values, TotalCompressedSize: int64(len(out) - 4), TotalUncompressedSize: int64(len(out) - 4), DataPageOffset: 4,
		}}},
	}}}
	out, err = appendFooter(out, m)
	require.NoError(t, err)
	return out
}

// levelsOf is a run of n equal levels as a V1 page has it.
func levelsOf(n uint64, level byte) []byte {
	run := append(binary.AppendUvarint(nil, n<<1), level)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(run))), run...)
}

func allocated(f func()) uint64 {
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	f()
	runtime.ReadMemStats(&b)
	return b.TotalAlloc - a.TotalAlloc
}

// TestCorrupt_ClaimsDoNotAllocate: a few bytes that claim billions of values,
// elements or list items end in an error or a stream, never in that memory.
func TestCorrupt_ClaimsDoNotAllocate(t *testing.T) {
	page := pageHeader{kind: format.DataPage, values: math.MaxInt32, encoding: format.Plain}
	dict := page
	dict.encoding = format.RLEDictionary
	delta := page
	delta.encoding = format.DeltaBinaryPacked
	const n = math.MaxInt32
	hugeDelta := append(levelsOf(n, 1), 128, 1, 4)
	hugeDelta = append(binary.AppendUvarint(hugeDelta, n), 0, 0, 0, 0, 0, 0)
	array := types.ArrayType(types.IntType())
	oneRow := append(append(binary.LittleEndian.AppendUint32(nil, 9), 2, 0), binary.AppendUvarint(nil, uint64(n-1)<<1)...)
	oneRow = append(append(oneRow, 1, 0), levelsOf(n, 2)...) // one row of 2^31 NULL elements
	for _, tc := range []struct {
		name string
		data []byte
		t    types.Type
		want error
	}{
		{"values that are not there", onePage(t, types.IntType(), page, levelsOf(n, 1), n), types.IntType(), ErrCorrupt},
		{"indexes without dictionary", onePage(t, types.StringType(), dict, append(levelsOf(n, 1), 1, 2, 0), n), types.StringType(), ErrCorrupt},
		{"delta header", onePage(t, types.IntType(), delta, hugeDelta, n), types.IntType(), ErrTooLarge},
		{"one endless list", onePage(t, array, page, oneRow, n), array, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fs := fieldsOf(tc.t)
			data := tc.data
			if tc.t.Kind == types.Array {
				data = editFooter(t, data, func(m *fileMetaData) { m.NumRows, m.RowGroups[0].NumRows = 1, 1 })
			}
			var err error
			used := allocated(func() {
				var f *File
				if f, err = Open(bytes.NewReader(data), int64(len(data)), ReadOptions{Fields: fs, MaxPageBytes: 1 << 20}); err == nil {
					f.maxEntries = 1 << 20
					err = f.Read([]int{0}, func(int64, *types.Batch) error { return nil })
				}
			})
			if tc.want != nil {
				require.ErrorIs(t, err, tc.want)
				require.Less(t, used, uint64(16<<20))
				return
			}
			require.ErrorIs(t, err, ErrTooLarge)
			require.Less(t, used, uint64(64<<20))
		})
	}
}

// TestCorrupt_NullsStream: 2^31 NULLs from a few bytes are a valid file; they
// come in batches.
func TestCorrupt_NullsStream(t *testing.T) {
	h := pageHeader{kind: format.DataPage, values: math.MaxInt32, encoding: format.Plain}
	fs := fieldsOf(types.BigIntType())
	data := onePage(t, fs[0].Type, h, levelsOf(math.MaxInt32, 0), math.MaxInt32)
	f := openFile(t, data, ReadOptions{Fields: fs})
	stop := errors.New("enough")
	batches := 0
	used := allocated(func() {
		err := f.Read([]int{0}, func(start int64, b *types.Batch) error {
			require.Equal(t, DefaultBatchRows, b.Len())
			require.True(t, b.Cols[0].IsNull(0))
			if batches++; batches == 50 {
				return stop
			}
			return nil
		})
		require.ErrorIs(t, err, stop)
	})
	require.Less(t, used, uint64(8<<20))
}

func TestCorrupt_FooterListsMustBeThere(t *testing.T) {
	list := func(id byte, n uint64, elem byte) []byte {
		return binary.AppendUvarint([]byte{2<<4 | ctI32 - 1<<4, 2, id<<4 | ctList, 15<<4 | elem}, n)
	}
	for _, b := range [][]byte{
		list(1, 1<<31, ctStruct), // schema elements
		list(3, 1<<31, ctStruct), // row groups
		bytes.Repeat([]byte{1<<4 | ctStruct}, 1000),
		{},
		{1 << 4},
		{1<<4 | 14, 0},
		append([]byte{1<<4 | ctBinary}, binary.AppendUvarint(nil, 1<<40)...),
		append([]byte{1<<4 | ctMap}, append(binary.AppendUvarint(nil, 1<<30), ctI32<<4|ctI32)...),
	} {
		var err error
		used := allocated(func() { _, err = decodeFooter(b) })
		require.ErrorIs(t, err, ErrCorrupt)
		require.Less(t, used, uint64(1<<20))
	}
}

func TestCorrupt_ContradictionsAreNamed(t *testing.T) {
	fs := fieldsOf(types.IntType(), types.StringType())
	rows := make([][]types.Datum, 300)
	for i := range rows {
		rows[i] = []types.Datum{types.IntDatum(int64(i)), types.StringDatum("v")}
	}
	data, _ := writeFile(t, WriterOptions{Fields: fs, PageRows: 100}, batchOf(fs, rows))
	chunk := func(m *fileMetaData, c int) *columnChunk { return &m.RowGroups[0].Columns[c] }
	for name, tc := range map[string]struct {
		edit func(m *fileMetaData)
		want string
	}{
		"rows of the file":       {func(m *fileMetaData) { m.NumRows++ }, "row groups of 300 rows in a file of 301"},
		"rows of the group":      {func(m *fileMetaData) { m.NumRows, m.RowGroups[0].NumRows = 301, 301 }, "300 values for 301 rows"},
		"negative rows":          {func(m *fileMetaData) { m.NumRows, m.RowGroups[0].NumRows = -1, -1 }, "-1 rows"},
		"values of the chunk":    {func(m *fileMetaData) { chunk(m, 0).MetaData.NumValues = -1 }, "-1 values"},
		"missing chunk":          {func(m *fileMetaData) { m.RowGroups[0].Columns = m.RowGroups[0].Columns[:1] }, "1 column chunks for 2 columns"},
		"another file":           {func(m *fileMetaData) { chunk(m, 0).FilePath = "x" }, "another file"},
		"chunk beyond the end":   {func(m *fileMetaData) { chunk(m, 0).MetaData.TotalCompressedSize = 1 << 40 }, "chunk at 4"},
		"chunk overflow":         {func(m *fileMetaData) { chunk(m, 0).MetaData.TotalCompressedSize = math.MaxInt64 }, "chunk at 4"},
		"chunk before the start": {func(m *fileMetaData) { chunk(m, 0).MetaData.DataPageOffset = -5 }, "chunk at -5"},
		"short chunk":            {func(m *fileMetaData) { chunk(m, 0).MetaData.TotalCompressedSize = 40 }, "column caa"},
		"chunk type":             {func(m *fileMetaData) { chunk(m, 0).MetaData.Type = format.Int64 }, "chunk of type INT64"},
		"codec":                  {func(m *fileMetaData) { chunk(m, 0).MetaData.Codec = format.Snappy }, "a page of 40 bytes instead of"},
		"children":               {func(m *fileMetaData) { m.Schema[0].NumChildren.Set(7) }, "7 children"},
		"negative children":      {func(m *fileMetaData) { m.Schema[0].NumChildren.Set(-7) }, "-7 children"},
		"repetition":             {func(m *fileMetaData) { m.Schema[1].RepetitionType.Set(9) }, "repetition"},
		"physical type":          {func(m *fileMetaData) { m.Schema[1].Type.Set(99) }, "physical type 99"},
	} {
		t.Run(name, func(t *testing.T) {
			err := readBroken(editFooter(t, data, tc.edit), fs)
			require.ErrorContains(t, err, tc.want)
			require.True(t, knownError(err), "%v", err)
		})
	}
}

func TestCorrupt_OffsetIndexLies(t *testing.T) {
	fs := fieldsOf(types.IntType())
	rows := make([][]types.Datum, 300)
	for i := range rows {
		rows[i] = []types.Datum{types.IntDatum(int64(i))}
	}
	data, _ := writeFile(t, WriterOptions{Fields: fs, PageRows: 100}, batchOf(fs, rows))
	f := openFile(t, data, ReadOptions{Fields: fs})
	c := f.meta.RowGroups[0].Columns[0]
	pages, err := decodeOffsetIndex(data[c.OffsetIndexOffset:][:c.OffsetIndexLength])
	require.NoError(t, err)
	require.Len(t, pages, 3)
	for name, edit := range map[string]func(p []pageLoc){
		"row in another page": func(p []pageLoc) { p[1].row = 50 },
		"rows not ascending":  func(p []pageLoc) { p[2].row = 100 },
		"row beyond the end":  func(p []pageLoc) { p[2].row = 300 },
		"first row":           func(p []pageLoc) { p[0].row = 1 },
		"offset before":       func(p []pageLoc) { p[0].offset = 0 },
		"offset behind":       func(p []pageLoc) { p[2].offset += 1000 },
		"overlap":             func(p []pageLoc) { p[1].offset = p[0].offset },
		"inside of a page":    func(p []pageLoc) { p[1].offset++ },
		"no size":             func(p []pageLoc) { p[0].size = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			p := append([]pageLoc{}, pages...)
			edit(p)
			index := appendOffsetIndex(nil, p, 0)
			at := len(data)
			broken := editFooter(t, data, func(m *fileMetaData) {})
			end := at - footerTail - int(binary.LittleEndian.Uint32(data[at-8:]))
			broken = append(append(bytes.Clone(broken[:end]), index...), broken[end:]...)
			broken = editFooter(t, broken, func(m *fileMetaData) {
				m.RowGroups[0].Columns[0].OffsetIndexOffset = int64(end)
				m.RowGroups[0].Columns[0].OffsetIndexLength = int32(len(index))
			})
			bf := openFile(t, broken, ReadOptions{Fields: fs})
			out := bf.NewBatch([]int{0})
			err := bf.ReadRows([]int{0}, []uint32{120, 130, 250}, out)
			require.ErrorIs(t, err, ErrCorrupt)
			sameRows(t, rows, readAll(t, bf)) // streaming does not need the index
		})
	}
}

func TestOpen_NotParquet(t *testing.T) {
	for _, tc := range []struct {
		data string
		want error
		text string
	}{
		{"", ErrCorrupt, "0 bytes"},
		{"PAR1", ErrCorrupt, "4 bytes"},
		{"PAR1\x00\x00\x00\x00PARE", ErrUnsupported, "encrypted"},
		{"PAR1\x00\x00\x00\x00PAR2", ErrCorrupt, `"PAR2"`},
		{"PAR1\xff\xff\xff\x7fPAR1", ErrCorrupt, "footer of 2147483647 bytes"},
		{"PAR1\x00\x00\x00\x00PAR1", ErrCorrupt, "footer"},
	} {
		_, err := Open(bytes.NewReader([]byte(tc.data)), int64(len(tc.data)), ReadOptions{})
		require.ErrorIs(t, err, tc.want)
		require.ErrorContains(t, err, tc.text)
	}
}

func TestRead_LimitsAreKept(t *testing.T) {
	fs := fieldsOf(types.BigIntType())
	b := types.NewBatch(fs)
	for i := range 10_000 {
		b.Cols[0].AppendInt64(int64(i))
	}
	data, _ := writeFile(t, WriterOptions{Fields: fs}, b)
	_, err := readRowsOf(openFile(t, data, ReadOptions{Fields: fs, MaxPageBytes: 1000}))
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = Open(bytes.NewReader(data), int64(len(data)), ReadOptions{Fields: fs, MaxFooterBytes: 10})
	require.ErrorIs(t, err, ErrTooLarge)
}

// failingReader fails at an offset.
type failingReader struct {
	*bytes.Reader
	from int64
}

var errDisk = errors.New("disk gone")

func (r failingReader) ReadAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > r.from && off < r.from+10 {
		return 0, errDisk
	}
	return r.Reader.ReadAt(b, off)
}

func TestRead_ErrorsOfTheReaderComeThrough(t *testing.T) {
	fs, rows := edgeTable()
	data, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	_, err := Open(failingReader{bytes.NewReader(data), int64(len(data)) - 20}, int64(len(data)), ReadOptions{Fields: fs})
	require.ErrorIs(t, err, errDisk)
	require.NotErrorIs(t, err, ErrCorrupt)
	f, err := Open(failingReader{bytes.NewReader(data), 4}, int64(len(data)), ReadOptions{Fields: fs, ReadAhead: 64})
	require.NoError(t, err)
	_, err = readRowsOf(f)
	require.ErrorIs(t, err, errDisk)
	require.NotErrorIs(t, err, ErrCorrupt)
}
