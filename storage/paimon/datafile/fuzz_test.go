package datafile

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// inferFields makes wanted columns of whatever a file has, so that a fuzzed
// schema is read and not only refused.
func inferFields(root *fileNode) []types.Field {
	var fs []types.Field
	for _, n := range root.kids {
		fs = append(fs, types.Field{Name: n.e.Name, Type: inferType(n, 0)})
	}
	return fs
}

func inferType(n *fileNode, depth int) types.Type {
	if !n.isGroup() {
		return inferScalar(n)
	}
	if len(n.kids) == 1 && n.kids[0].repeated() && depth < 10 {
		r := n.kids[0]
		if k, v := r.kid("key"), r.kid("value"); k != nil && v != nil {
			return types.MapType(inferType(k, depth+1).NonNull(), inferType(v, depth+1))
		}
		if len(r.kids) == 1 {
			return types.ArrayType(inferType(r.kids[0], depth+1))
		}
		return types.ArrayType(inferType(r, depth+1))
	}
	var fs []types.Field
	for _, k := range n.kids {
		fs = append(fs, types.Field{Name: k.e.Name, Type: inferType(k, depth+1)})
	}
	return types.RowType(fs...)
}

func inferScalar(n *fileNode) types.Type {
	if d, ok := n.e.LogicalType.Value.(*format.DecimalType); ok && d.Precision >= 1 && d.Precision <= 38 {
		return types.DecimalType(int(d.Precision), int(d.Scale))
	}
	if _, ok := n.e.LogicalType.Value.(*format.TimestampType); ok {
		return types.TimestampType(9)
	}
	switch n.e.Type.V {
	case format.Boolean:
		return types.BooleanType()
	case format.Int32:
		return types.IntType()
	case format.Int64:
		return types.BigIntType()
	case format.Int96:
		return types.TimestampType(6)
	case format.Float:
		return types.FloatType()
	case format.Double:
		return types.DoubleType()
	}
	return types.BytesType()
}

func FuzzReadFile(f *testing.F) {
	for path, data := range goldenFiles(f) {
		if len(data) < 20_000 && (strings.Contains(path, "types") || strings.Contains(path, "nested") || strings.Contains(path, "/one/")) {
			f.Add(data)
		}
	}
	for _, name := range []string{"arrow_delta", "arrow_v2_pages", "arrow_rs"} {
		f.Add(foreignFile(f, name))
	}
	fs, rows := edgeTable()
	data, _ := writeFile(f, WriterOptions{Fields: fs}, batchOf(fs, rows))
	f.Add(data)
	data, _, _ = smallNested(f)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, _, _, err := readFooter(bytes.NewReader(data), int64(len(data)), 1<<20, 1)
		if err != nil {
			require.True(t, knownError(err), "%v", err)
			return
		}
		root, _, err := parseSchema(m.Schema)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupt)
			return
		}
		fields := slices.DeleteFunc(inferFields(root), func(f types.Field) bool { return !f.Type.Supported() })
		if err := readBroken(data, fields); err != nil {
			require.True(t, knownError(err), "%v", err)
		}
	})
}

func FuzzPageHeader(f *testing.F) {
	f.Add((&pageHeader{kind: format.DataPage, raw: 10, packed: 8, crc: 1 << 31, values: 3}).append(nil))
	f.Add((&pageHeader{kind: format.DictionaryPage, raw: 10, packed: 8, values: 3}).append(nil))
	f.Add([]byte{0x15, 6, 0x15, 2, 0x15, 2, 0x5c, 0x15, 2, 0x15, 2, 0x15, 2, 0x15, 0, 0x15, 0, 0x15, 0, 0x12, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h pageHeader
		n, err := h.decode(b)
		if err != nil {
			return
		}
		require.True(t, n > 0 && n <= len(b))
		if h.kind == format.DataPage || h.kind == format.DictionaryPage {
			// What we write of it reads back alike.
			h.defEnc, h.repEnc, h.hasCRC = format.RLE, format.RLE, true
			h.rows, h.defLen, h.repLen, h.uncompressed = 0, 0, 0, false
			if h.kind == format.DictionaryPage {
				h.defEnc, h.repEnc = 0, 0
			}
			var again pageHeader
			out := h.append(nil)
			k, err := again.decode(out)
			require.NoError(t, err)
			require.Equal(t, len(out), k)
			require.Equal(t, h, again)
		}
	})
}

func FuzzOffsetIndex(f *testing.F) {
	f.Add(appendOffsetIndex(nil, []pageLoc{{4, 10, 0}, {14, 1 << 20, 1 << 33}}, 7))
	f.Add(appendOffsetIndex(nil, make([]pageLoc, 40), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		pages, err := decodeOffsetIndex(b)
		if err == nil && len(pages) > 0 {
			again, err := decodeOffsetIndex(appendOffsetIndex(nil, pages, 0))
			require.NoError(t, err)
			require.Equal(t, pages, again)
		}
	})
}

func FuzzHybrid(f *testing.F) {
	f.Add([]byte{3, 0xaa, 8, 1}, uint8(1), uint16(20))
	f.Add([]byte{255, 255, 255, 255, 15, 1}, uint8(32), uint16(9))
	f.Add([]byte{16, 1, 2, 3}, uint8(17), uint16(8))
	f.Fuzz(func(t *testing.T, b []byte, width uint8, n uint16) {
		width %= 33
		dst := make([]uint32, n)
		h := newHybrid(b, int(width))
		if hybridRead(&h, dst) != nil {
			return
		}
		for _, v := range dst {
			require.True(t, width == 32 || v>>width == 0)
		}
		// The same values, some at a time.
		h = newHybrid(b, int(width))
		var again []uint32
		for i := 0; len(again) < int(n); i++ {
			part := make([]uint32, min(i%11, int(n)-len(again)))
			require.NoError(t, hybridRead(&h, part))
			again = append(again, part...)
		}
		require.True(t, slices.Equal(dst, again))
	})
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte{128, 1, 4, 3, 2, 2, 0, 0, 0, 0}, uint8(0), uint16(3))
	f.Add([]byte{128, 1, 4, 2, 0, 0, 8, 0, 0, 0, 1, 2, 3, 4}, uint8(2), uint16(100))
	f.Fuzz(func(t *testing.T, b []byte, enc uint8, n uint16) {
		for _, p := range []*leafPlan{{phys: format.Int32, width: 4}, {phys: format.Int64, width: 8}, {phys: format.ByteArray}, {phys: format.FixedLenByteArray, width: 3}} {
			e := []format.Encoding{format.DeltaBinaryPacked, format.DeltaLengthByteArray, format.DeltaByteArray, format.ByteStreamSplit}[enc%4]
			out, err := toPlain(nil, b, p, e, int(n), 1<<16)
			if err != nil {
				require.True(t, knownError(err), "%v", err)
				continue
			}
			require.LessOrEqual(t, len(out), 1<<16+8*len(b)+8)
		}
	})
}
