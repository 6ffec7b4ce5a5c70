package datafile

import (
	"bytes"
	"io"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

// everything has each kind of Thrift value, to be walked over.
type everything struct {
	A bool               `thrift:"1"`
	B int8               `thrift:"2"`
	C int16              `thrift:"3"`
	D int32              `thrift:"4"`
	E int64              `thrift:"5"`
	F float64            `thrift:"6"`
	G string             `thrift:"7"`
	H []int64            `thrift:"8"`
	I []bool             `thrift:"9"`
	J []everything       `thrift:"10"`
	K map[string]int32   `thrift:"11"`
	L map[int64]struct{} `thrift:"12"`
	M *everything        `thrift:"400"` // the long form of a field header
	N []string           `thrift:"401"`
}

func thriftBytes(t *testing.T, v any) []byte {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	require.NoError(t, err)
	return b
}

func sampleOfEverything() everything {
	e := everything{
		A: true, B: -3, C: 300, D: -70000, E: 1 << 60, F: 1.5, G: "text", H: make([]int64, 20), I: []bool{true, false, true},
		K: map[string]int32{"k": 1, "l": 2}, L: map[int64]struct{}{5: {}}, N: []string{"", "x"},
	}
	inner := e
	e.J = []everything{inner, {}, inner}
	e.M = &inner
	return e
}

func TestCompact_WalksOverEveryKindOfValue(t *testing.T) {
	b := thriftBytes(t, sampleOfEverything())
	c := &compactReader{b: b}
	require.NoError(t, c.walkStruct(inOther, 0))
	require.Equal(t, len(b), c.p)
	for n := range len(b) {
		c := &compactReader{b: b[:n]}
		require.ErrorIs(t, c.walkStruct(inOther, 0), io.ErrUnexpectedEOF, "%d of %d bytes", n, len(b))
	}
}

func TestCompact_Malformed(t *testing.T) {
	for name, b := range map[string][]byte{
		"unknown type":       {1<<4 | 14, 0, 0},
		"varint of 11 bytes": append([]byte{1<<4 | ctI64}, bytes.Repeat([]byte{0xff}, 11)...),
		"nesting":            bytes.Repeat([]byte{1<<4 | ctStruct}, 100),
		"nested lists":       append([]byte{1<<4 | ctList}, bytes.Repeat([]byte{1<<4 | ctList}, 100)...),
	} {
		c := &compactReader{b: b}
		require.ErrorIs(t, c.walkStruct(inOther, 0), errThrift, name)
	}
	c := &compactReader{b: []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 1}}
	_, err := c.i32()
	require.ErrorIs(t, err, errThrift, "64 bits in a 32-bit field")
}

// TestPageHeader_IsParquetGos: what we write, parquet-go's model reads alike, and
// the reverse, with members we do not know or need in between.
func TestPageHeader_IsParquetGos(t *testing.T) {
	ours := pageHeader{kind: format.DataPage, raw: 1000, packed: 900, crc: 0xdeadbeef, values: 77, encoding: format.RLEDictionary}
	var theirs format.PageHeader
	require.NoError(t, thrift.Unmarshal(new(thrift.CompactProtocol), ours.append(nil), &theirs))
	want := format.PageHeader{Type: format.DataPage, UncompressedPageSize: 1000, CompressedPageSize: 900, CRC: -559038737}
	want.DataPageHeader = thrift.New(format.DataPageHeader{
		NumValues: 77, Encoding: format.RLEDictionary,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
	})
	require.Equal(t, want, theirs)

	want.DataPageHeader.V.Statistics = format.Statistics{MinValue: []byte("a"), MaxValue: bytes.Repeat([]byte("b"), 300), NullCount: 3}
	var back pageHeader
	b := thriftBytes(t, want)
	n, err := back.decode(append(b, 1, 2, 3))
	require.NoError(t, err)
	require.Equal(t, len(b), n)
	ours.hasCRC, ours.defEnc, ours.repEnc = true, format.RLE, format.RLE
	require.Equal(t, ours, back)

	v2 := format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: 50, CompressedPageSize: 40}
	v2.DataPageHeaderV2 = thrift.New(format.DataPageHeaderV2{
		NumValues: 9, NumNulls: 2, NumRows: 7, Encoding: format.DeltaByteArray,
		DefinitionLevelsByteLength: 6, RepetitionLevelsByteLength: 5, IsCompressed: thrift.New(false),
	})
	_, err = back.decode(thriftBytes(t, v2))
	require.NoError(t, err)
	require.Equal(t, pageHeader{
		kind: format.DataPageV2, raw: 50, packed: 40, values: 9, encoding: format.DeltaByteArray, rows: 7,
		defLen: 6, repLen: 5, uncompressed: true,
	}, back)
	v2.DataPageHeaderV2.V.IsCompressed = thrift.New(true)
	_, err = back.decode(thriftBytes(t, v2))
	require.NoError(t, err)
	require.False(t, back.uncompressed)
}

func TestPageHeader_Nonsense(t *testing.T) {
	header := func(edit func(h *format.PageHeader)) []byte {
		h := format.PageHeader{Type: format.DataPageV2, UncompressedPageSize: 50, CompressedPageSize: 40}
		h.DataPageHeaderV2 = thrift.New(format.DataPageHeaderV2{NumValues: 9, NumRows: 9, DefinitionLevelsByteLength: 6})
		edit(&h)
		return thriftBytes(t, h)
	}
	for name, edit := range map[string]func(h *format.PageHeader){
		"negative size":          func(h *format.PageHeader) { h.CompressedPageSize = -1 },
		"negative raw size":      func(h *format.PageHeader) { h.UncompressedPageSize = -1 },
		"page type":              func(h *format.PageHeader) { h.Type = 9 },
		"negative values":        func(h *format.PageHeader) { h.DataPageHeaderV2.V.NumValues = -1 },
		"negative rows":          func(h *format.PageHeader) { h.DataPageHeaderV2.V.NumRows = -1 },
		"negative levels":        func(h *format.PageHeader) { h.DataPageHeaderV2.V.RepetitionLevelsByteLength = -1 },
		"levels beyond the page": func(h *format.PageHeader) { h.DataPageHeaderV2.V.RepetitionLevelsByteLength = 35 },
		"no body":                func(h *format.PageHeader) { h.DataPageHeaderV2 = thrift.Null[format.DataPageHeaderV2]{} },
	} {
		var h pageHeader
		_, err := h.decode(header(edit))
		require.ErrorIs(t, err, errThrift, name)
	}
}

func TestOffsetIndex_IsParquetGos(t *testing.T) {
	for _, n := range []int{0, 1, 14, 15, 300} {
		var pages []pageLoc
		var want thrift.Slice[format.PageLocation]
		for i := range n {
			p := pageLoc{offset: int64(i) << 33, size: int32(i + 1), row: int64(i) << 20}
			pages = append(pages, p)
			want = append(want, format.PageLocation{Offset: p.offset + 4, CompressedPageSize: p.size, FirstRowIndex: p.row})
		}
		b := appendOffsetIndex(nil, pages, 4)
		var theirs format.OffsetIndex
		require.NoError(t, thrift.Unmarshal(new(thrift.CompactProtocol), b, &theirs))
		require.Equal(t, len(want), len(theirs.PageLocations))
		for i := range want {
			require.Equal(t, want[i], theirs.PageLocations[i])
		}
		theirs.UnencodedByteArrayDataBytes = []int64{1, 2, 3} // a member we skip
		back, err := decodeOffsetIndex(thriftBytes(t, theirs))
		require.NoError(t, err)
		require.Len(t, back, n)
		for i := range back {
			require.Equal(t, pages[i].offset+4, back[i].offset)
			require.Equal(t, pages[i].row, back[i].row)
		}
	}
}

func TestSource_MovesItsWindow(t *testing.T) {
	data := make([]byte, 1000)
	for i := range data {
		data[i] = byte(i)
	}
	r := &countingReader{Reader: bytes.NewReader(data)}
	s := source{r: r, ahead: 100}
	s.seek(10, 900)
	b, err := s.peek(5)
	require.NoError(t, err)
	require.Equal(t, data[10:15], b)
	require.EqualValues(t, 100, r.bytes, "as much as ahead says")
	s.skip(60)
	b, err = s.peek(70) // 40 are there
	require.NoError(t, err)
	require.Equal(t, data[70:140], b)
	require.Equal(t, 2, r.calls)
	require.EqualValues(t, 160, r.bytes, "what is there is not read again")
	s.seek(75, 900)
	_, err = s.peek(50)
	require.NoError(t, err)
	require.Equal(t, 2, r.calls, "back inside of the window")
	s.skip(500)
	require.EqualValues(t, 575, s.at())
	b, err = s.peek(325)
	require.NoError(t, err)
	require.Equal(t, data[575:900], b)
	_, err = s.peek(326)
	require.ErrorIs(t, err, ErrCorrupt)
	require.EqualValues(t, 325, s.left())
}

func TestBuffers_KeepNoLargeOnes(t *testing.T) {
	b, err := NewBuffers()
	require.NoError(t, err)
	b.put(nil)
	b.put(make([]byte, 0, maxPooled+1))
	require.Zero(t, cap(b.get()))
}
