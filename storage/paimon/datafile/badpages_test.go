package datafile

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// page is one page of a chunk made by hand, with a right checksum.
type page struct {
	kind   format.PageType
	enc    format.Encoding
	values int32
	body   []byte
}

func dataPage(enc format.Encoding, values int32, parts ...[]byte) page {
	return page{format.DataPage, enc, values, bytes.Join(parts, nil)}
}

func dictPage(values int32, parts ...[]byte) page {
	return page{format.DictionaryPage, format.Plain, values, bytes.Join(parts, nil)}
}

// bytesOf are PLAIN byte arrays.
func bytesOf(values ...string) []byte {
	var b []byte
	for _, v := range values {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(v))), v...)
	}
	return b
}

// pagesFile is a file with one uncompressed chunk of these pages.
func pagesFile(t *testing.T, typ types.Type, rows, values int64, pages ...page) []byte {
	s, err := newSchema(fieldsOf(typ))
	require.NoError(t, err)
	comp, err := newCompressor("none", 0, 1)
	require.NoError(t, err)
	c := newChunkWriter(&s.leaves[0], &settings{pageRows: 1, maxPage: 1 << 20, comp: comp})
	out := []byte(magic)
	m := columnMetaData{
		Type: s.leaves[0].phys, Encoding: thrift.Slice[format.Encoding]{}, PathInSchema: s.leaves[0].path,
		NumValues: values, DataPageOffset: 4,
	}
	for _, p := range pages {
		h := pageHeader{kind: p.kind, values: p.values, encoding: p.enc}
		out, err = c.appendPage(out, &h, p.body)
		require.NoError(t, err)
	}
	m.TotalCompressedSize = int64(len(out) - 4)
	out, err = appendFooter(out, &fileMetaData{
		Version: 1, Schema: s.elements, NumRows: rows,
		RowGroups: []rowGroup{{NumRows: rows, Columns: []columnChunk{{MetaData: m}}}},
	})
	require.NoError(t, err)
	return out
}

// TestPages_ByHand reads pages as other writers may lay them out.
func TestPages_ByHand(t *testing.T) {
	index := page{kind: format.IndexPage, body: []byte("whatever")}
	text := types.StringType().NonNull()
	s := func(v ...string) (rows [][]types.Datum) {
		for _, x := range v {
			rows = append(rows, []types.Datum{types.StringDatum(x)})
		}
		return rows
	}
	two := []byte{1, 2 << 1, 1} // two times index 1 of one bit
	for _, tc := range []struct {
		name  string
		t     types.Type
		pages []page
		want  [][]types.Datum
	}{
		{"index pages are skipped", text, []page{index, dataPage(format.Plain, 1, bytesOf("a")), index, dataPage(format.Plain, 1, bytesOf("b"))}, s("a", "b")},
		{"empty pages are skipped", text, []page{dataPage(format.Plain, 0), dataPage(format.Plain, 2, bytesOf("a", "b")), dataPage(format.Plain, 0)}, s("a", "b")},
		{"a dictionary without an offset in the footer", text, []page{dictPage(2, bytesOf("a", "b")), dataPage(plainDictionary, 2, two)}, s("b", "b")},
		{"from dictionary to plain and back", text, []page{
			dictPage(2, bytesOf("a", "b")), dataPage(format.RLEDictionary, 2, two),
			dataPage(format.Plain, 1, bytesOf("c")), dataPage(format.RLEDictionary, 2, two),
		}, s("b", "b", "c", "b", "b")},
		{
			"an empty dictionary of NULLs only", types.StringType(),
			[]page{dictPage(0), dataPage(format.RLEDictionary, 2, levelsOf(2, 0))},
			[][]types.Datum{{types.Null}, {types.Null}},
		},
		{
			"booleans as runs", types.BooleanType().NonNull(),
			[]page{dataPage(format.RLE, 3, []byte{4, 0, 0, 0, 2 << 1, 1, 1 << 1, 0})},
			[][]types.Datum{{v(1)}, {v(1)}, {v(0)}},
		},
		{"the last packed run is cut", text, []page{dictPage(2, bytesOf("a", "b")), dataPage(format.RLEDictionary, 3, []byte{1, 2<<1 | 1, 0b101})}, s("b", "a", "b")},
		{"runs of no values", text, []page{dictPage(2, bytesOf("a", "b")), dataPage(format.RLEDictionary, 2, []byte{1, 0, 0, 1}, two[1:])}, s("b", "b")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data := pagesFile(t, tc.t, int64(len(tc.want)), int64(len(tc.want)), tc.pages...)
			f := openFile(t, data, ReadOptions{Fields: fieldsOf(tc.t)})
			sameRows(t, tc.want, readAll(t, f))
			for p := range tc.want {
				out := f.NewBatch([]int{0})
				require.NoError(t, f.ReadRows([]int{0}, []uint32{uint32(p)}, out))
				require.True(t, sameDatum(tc.want[p][0], out.Cols[0].Datum(0)), "row %d", p)
			}
		})
	}
}

// TestPages_Broken reads pages whose checksums are right and whose content is
// not, as a broken or hostile writer makes them. Streaming and picking rows end
// in the same kind of error.
func TestPages_Broken(t *testing.T) {
	text, num := types.StringType().NonNull(), types.IntType().NonNull()
	array := types.ArrayType(num).NonNull()
	ab := bytesOf("a", "b")
	head := func(block, minis, total byte) []byte { return []byte{block, 1, minis, total, 0} }
	for _, tc := range []struct {
		name  string
		t     types.Type
		n     int64
		pages []page
		want  error
		text  string
	}{
		{"nothing at all", num, 2, nil, ErrCorrupt, "2 values are missing"},
		{"too few pages", num, 2, []page{dataPage(format.Plain, 1, make([]byte, 4))}, ErrCorrupt, "1 values are missing"},
		{"too many values", num, 2, []page{dataPage(format.Plain, 3, make([]byte, 12))}, ErrCorrupt, "3 values where 2 are left"},
		{"values cut", num, 2, []page{dataPage(format.Plain, 2, make([]byte, 7))}, ErrCorrupt, "fewer than its"},
		{"no levels", types.IntType(), 2, []page{dataPage(format.Plain, 2, []byte{1, 0})}, ErrCorrupt, "no levels"},
		{"levels cut", types.IntType(), 2, []page{dataPage(format.Plain, 2, []byte{9, 0, 0, 0, 2})}, ErrCorrupt, "9 bytes of levels"},
		{"levels end", types.IntType(), 2, []page{dataPage(format.Plain, 2, []byte{1, 0, 0, 0, 2})}, ErrCorrupt, "too early"},
		{"level too high", types.IntType(), 2, []page{dataPage(format.Plain, 2, levelsOf(2, 2))}, ErrCorrupt, "in 1 bits"},
		{"booleans cut", types.BooleanType().NonNull(), 9, []page{dataPage(format.Plain, 9, []byte{255})}, ErrCorrupt, "fewer than its"},
		{"boolean runs cut", types.BooleanType().NonNull(), 9, []page{dataPage(format.RLE, 9, []byte{2, 0, 0, 0, 2, 1})}, ErrCorrupt, "too early"},
		{"runs without length", types.BooleanType().NonNull(), 2, []page{dataPage(format.RLE, 2, []byte{2})}, ErrCorrupt, "as RLE"},
		{"runs of integers", num, 2, []page{dataPage(format.RLE, 2, make([]byte, 9))}, ErrCorrupt, "INT32 as RLE"},
		{"text cut in its length", text, 2, []page{dataPage(format.Plain, 2, ab[:7])}, ErrCorrupt, "fewer than its"},
		{"text cut", text, 2, []page{dataPage(format.Plain, 2, ab[:9])}, ErrCorrupt, ""},
		{"text of 4 GiB", text, 2, []page{dataPage(format.Plain, 2, []byte{255, 255, 255, 255, 1})}, ErrCorrupt, ""},
		{"dictionary cut", text, 2, []page{dictPage(3, ab), dataPage(format.RLEDictionary, 2, []byte{1, 4, 1})}, ErrCorrupt, "fewer than its"},
		{"dictionary of another encoding", text, 2, []page{{format.DictionaryPage, format.DeltaByteArray, 2, ab}}, ErrUnsupported, "dictionary encoding"},
		{"two dictionaries", text, 2, []page{dictPage(2, ab), dictPage(2, ab)}, ErrCorrupt, "second dictionary"},
		{"index beyond the dictionary", text, 2, []page{dictPage(2, ab), dataPage(format.RLEDictionary, 2, []byte{2, 4, 3})}, ErrCorrupt, "index 3 in a dictionary of 2"},
		{"indexes of 33 bits", text, 2, []page{dictPage(2, ab), dataPage(format.RLEDictionary, 2, []byte{33, 4, 1})}, ErrCorrupt, "33 bits"},
		{"indexes end", text, 2, []page{dictPage(2, ab), dataPage(format.RLEDictionary, 2, []byte{1, 2, 1})}, ErrCorrupt, "too early"},
		{"no indexes", text, 2, []page{dictPage(2, ab), dataPage(format.RLEDictionary, 2)}, ErrCorrupt, "too early"},
		{"a run of too many", text, 2, []page{dictPage(2, ab), dataPage(format.RLEDictionary, 2, []byte{1, 255, 255, 255, 255, 255, 1, 1})}, ErrCorrupt, "a run of"},
		{"packed run cut", text, 9, []page{dictPage(2, ab), dataPage(format.RLEDictionary, 9, []byte{1, 2<<1 | 1, 255})}, ErrCorrupt, "too early"},
		{"deltas without header", num, 2, []page{dataPage(format.DeltaBinaryPacked, 2, []byte{128})}, ErrCorrupt, "delta"},
		{"deltas of more than the page", num, 2, []page{dataPage(format.DeltaBinaryPacked, 2, head(128, 4, 3))}, ErrCorrupt, "delta"},
		{"deltas in no miniblocks", num, 2, []page{dataPage(format.DeltaBinaryPacked, 2, head(128, 0, 2))}, ErrCorrupt, "delta"},
		{"deltas without their block", num, 2, []page{dataPage(format.DeltaBinaryPacked, 2, head(128, 4, 2))}, ErrCorrupt, "delta"},
		{"deltas of 65 bits", num, 2, []page{dataPage(format.DeltaBinaryPacked, 2, head(128, 4, 2), []byte{0, 65, 0, 0, 0}, make([]byte, 999))}, ErrCorrupt, "delta"},
		{"deltas cut", num, 2, []page{dataPage(format.DeltaBinaryPacked, 2, head(128, 4, 2), []byte{0, 8, 0, 0, 0, 1})}, ErrCorrupt, "delta"},
		{"fewer deltas than values", num, 2, []page{dataPage(format.DeltaBinaryPacked, 2, head(128, 4, 1))}, ErrCorrupt, "fewer than its"},
		{"negative length", text, 2, []page{dataPage(format.DeltaLengthByteArray, 2, []byte{128, 1, 4, 1, 1})}, ErrCorrupt, "delta"},
		{"text behind lengths cut", text, 1, []page{dataPage(format.DeltaLengthByteArray, 1, []byte{128, 1, 4, 1, 20}, []byte("abc"))}, ErrCorrupt, "delta"},
		{"lengths broken", text, 1, []page{dataPage(format.DeltaLengthByteArray, 1, []byte{128})}, ErrCorrupt, "delta"},
		{"prefix of nothing", text, 1, []page{dataPage(format.DeltaByteArray, 1, []byte{128, 1, 4, 1, 4}, []byte{128, 1, 4, 1, 4}, []byte("ab"))}, ErrCorrupt, "delta"},
		{"prefixes without suffixes", text, 1, []page{dataPage(format.DeltaByteArray, 1, []byte{128, 1, 4, 1, 0}, []byte{128, 1, 4, 0, 0})}, ErrCorrupt, "delta"},
		{"prefixes only", text, 1, []page{dataPage(format.DeltaByteArray, 1, []byte{128, 1, 4, 1, 0})}, ErrCorrupt, "delta"},
		{"unknown encoding", num, 2, []page{dataPage(99, 2, make([]byte, 8))}, ErrUnsupported, "INT32 values as"},
		{"a page that continues a row", array, 2, []page{dataPage(format.Plain, 2, levelsOf(2, 1), levelsOf(2, 1), make([]byte, 8))}, ErrCorrupt, "inside of a row"},
		{"repetition too high", array, 2, []page{dataPage(format.Plain, 2, levelsOf(2, 3), levelsOf(2, 1), make([]byte, 8))}, ErrCorrupt, "in 1 bits"},
		{"nested values cut", array, 2, []page{dataPage(format.Plain, 2, levelsOf(2, 0), levelsOf(2, 1), make([]byte, 7))}, ErrCorrupt, "fewer than its"},
		{"nested levels end", array, 2, []page{dataPage(format.Plain, 2, levelsOf(2, 0), levelsOf(1, 1), make([]byte, 8))}, ErrCorrupt, "too early"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data := pagesFile(t, tc.t, tc.n, tc.n, tc.pages...)
			f := openFile(t, data, ReadOptions{Fields: fieldsOf(tc.t)})
			_, err := readRowsOf(f)
			require.ErrorIs(t, err, tc.want)
			require.ErrorContains(t, err, tc.text)
			require.ErrorContains(t, err, "column caa")
			err = f.ReadRows([]int{0}, []uint32{uint32(tc.n - 1)}, f.NewBatch([]int{0}))
			require.ErrorIs(t, err, tc.want)
		})
	}
}

// TestPages_MoreThanTheRowGroupSays: entries behind the last row are a sign that
// rows and values do not belong together.
func TestPages_MoreThanTheRowGroupSays(t *testing.T) {
	array := types.ArrayType(types.IntType().NonNull()).NonNull()
	data := pagesFile(t, array, 1, 2, dataPage(format.Plain, 2, levelsOf(2, 0), levelsOf(2, 1), make([]byte, 8)))
	_, err := readRowsOf(openFile(t, data, ReadOptions{Fields: fieldsOf(array)}))
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "more values than rows")
}

// TestPages_DictionaryInFrontOfTheOffsetIndex: the first page of the index says
// where a dictionary can be.
func TestPages_DictionaryInFrontOfTheOffsetIndex(t *testing.T) {
	text := types.StringType().NonNull()
	for _, tc := range []struct {
		name  string
		first page
		want  string
	}{
		{"dictionary", dictPage(2, bytesOf("a", "b")), ""},
		{"data page that the index leaves out", dataPage(format.Plain, 1, bytesOf("x")), "in front of the first one"},
		{"broken dictionary", dictPage(9, bytesOf("a", "b")), "fewer than its"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			second := dataPage(format.RLEDictionary, 2, []byte{1, 2 << 1, 1})
			data := pagesFile(t, text, 2, 2, tc.first, second)
			f := openFile(t, data, ReadOptions{Fields: fieldsOf(text)})
			start, end := f.meta.RowGroups[0].Columns[0].MetaData.span()
			var h pageHeader
			n, err := h.decode(data[start:])
			require.NoError(t, err)
			at := start + int64(n) + int64(h.packed)
			index := appendOffsetIndex(nil, []pageLoc{{offset: at, size: int32(end - at)}}, 0)
			data = append(append(bytes.Clone(data[:end]), index...), data[end:]...)
			data = editFooter(t, data, func(m *fileMetaData) {
				m.RowGroups[0].Columns[0].OffsetIndexOffset = end
				m.RowGroups[0].Columns[0].OffsetIndexLength = int32(len(index))
			})
			f = openFile(t, data, ReadOptions{Fields: fieldsOf(text)})
			out := f.NewBatch([]int{0})
			err = f.ReadRows([]int{0}, []uint32{1}, out)
			if tc.want == "" {
				require.NoError(t, err)
				require.Equal(t, "b", string(out.Cols[0].Bytes(0)))
				return
			}
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, tc.want)
		})
	}
}
