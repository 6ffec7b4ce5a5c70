package datafile

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/types"
)

// drawType draws a type of at most the given depth.
func drawType(t *rapid.T, depth int) types.Type {
	edges := scalarEdges()
	kinds := len(edges)
	if depth > 0 {
		kinds += 12
	}
	k := rapid.IntRange(0, kinds-1).Draw(t, "kind")
	var typ types.Type
	if k < len(edges) {
		typ = edges[k].t
	} else {
		switch (k - len(edges)) % 5 {
		case 0:
			typ = types.ArrayType(drawType(t, depth-1))
		case 1:
			typ = types.MapType(drawType(t, 0).NonNull(), drawType(t, depth-1))
		case 2:
			typ = types.MultisetType(drawType(t, 0).NonNull())
		case 3:
			typ = types.Type{Kind: types.Variant}
		case 4:
			var fs []types.Field
			for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
				fs = append(fs, types.Field{ID: 100 + 10*depth + i, Name: string(rune('p' + i)), Type: drawType(t, depth-1)})
			}
			typ = types.RowType(fs...)
		}
	}
	typ.NotNull = rapid.IntRange(0, 3).Draw(t, "null") == 0
	return typ
}

// drawDatum draws a value of typ.
func drawDatum(t *rapid.T, typ types.Type) types.Datum {
	if !typ.NotNull && rapid.IntRange(0, 4).Draw(t, "isNull") == 0 {
		return types.Null
	}
	d := types.Datum{}
	switch types.LayoutOf(typ) {
	case types.LayoutList, types.LayoutMap:
		d.L = []types.Datum{}
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			switch typ.Kind {
			case types.Array:
				d.L = append(d.L, drawDatum(t, *typ.Elem))
			case types.Map:
				d.L = append(d.L, drawDatum(t, *typ.Key), drawDatum(t, *typ.Elem))
			case types.Multiset:
				d.L = append(d.L, drawDatum(t, *typ.Elem), types.IntDatum(int64(rapid.Int32().Draw(t, "count"))))
			}
		}
		return d
	case types.LayoutStruct:
		for _, f := range typ.StructFields() {
			d.L = append(d.L, drawDatum(t, f.Type))
		}
		return d
	case types.LayoutBytes:
		if rapid.Bool().Draw(t, "free") {
			return drawBytes(t, typ)
		}
	}
	for _, e := range scalarEdges() {
		if e.t.EqualIgnoringNull(typ) {
			return rapid.SampledFrom(e.values).Draw(t, "value")
		}
	}
	panic("no values of " + typ.String())
}

func drawBytes(t *rapid.T, typ types.Type) types.Datum {
	if typ.IsBinary() {
		return types.BytesDatum(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
	}
	s := rapid.StringN(0, 20, -1).Draw(t, "text")
	if typ.Kind == types.Char {
		for utf8.RuneCountInString(s) > typ.Length {
			_, k := utf8.DecodeLastRuneInString(s)
			s = s[:len(s)-k]
		}
		s += strings.Repeat(" ", typ.Length-utf8.RuneCountInString(s))
	}
	return types.StringDatum(s)
}

func drawTable(t *rapid.T, depth int) ([]types.Field, [][]types.Datum) {
	var ts []types.Type
	for range rapid.IntRange(1, 4).Draw(t, "columns") {
		ts = append(ts, drawType(t, depth))
	}
	fs := fieldsOf(ts...)
	rows := make([][]types.Datum, rapid.IntRange(0, 60).Draw(t, "rows"))
	for i := range rows {
		for _, f := range fs {
			rows[i] = append(rows[i], drawDatum(t, f.Type))
		}
	}
	return fs, rows
}

// drawOptions draws small pages and row groups, so that their borders are met.
func drawOptions(t *rapid.T, fs []types.Field) WriterOptions {
	return WriterOptions{
		Fields:       fs,
		Compression:  rapid.SampledFrom([]string{"zstd", "snappy", "none"}).Draw(t, "codec"),
		PageRows:     rapid.IntRange(1, 50).Draw(t, "pageRows"),
		PageBytes:    rapid.IntRange(1, 400).Draw(t, "pageBytes"),
		RowGroupRows: int64(rapid.IntRange(0, 40).Draw(t, "groupRows")),
		NoDictionary: rapid.Bool().Draw(t, "noDict"),
		Delta:        rapid.Bool().Draw(t, "delta"),
		Concurrency:  rapid.IntRange(1, 2).Draw(t, "concurrency"),
	}
}

// writeParts writes rows in several batches, some of them through a selection.
func writeParts(t *rapid.T, o WriterOptions, rows [][]types.Datum) []byte {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, o)
	require.NoError(t, err)
	for from := 0; from < len(rows); {
		to := rapid.IntRange(from+1, len(rows)).Draw(t, "batch")
		b := batchOf(o.Fields, rows[from:to])
		if rapid.Bool().Draw(t, "selected") {
			// Reverse the batch and select it back.
			rev := types.NewBatch(o.Fields)
			var sel []uint32
			for i := to - 1; i >= from; i-- {
				rev.AppendRow(b, i-from)
				sel = append(sel, uint32(i-from))
			}
			require.NoError(t, w.WriteSelected(rev, sel))
		} else {
			require.NoError(t, w.Write(b))
		}
		from = to
	}
	info, err := w.Close()
	require.NoError(t, err)
	require.EqualValues(t, len(rows), info.Rows)
	return buf.Bytes()
}

func TestRoundTrip_RandomNestedTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs, rows := drawTable(t, 3)
		data := writeParts(t, drawOptions(t, fs), rows)
		f, err := Open(bytes.NewReader(data), int64(len(data)), ReadOptions{
			Fields:    fs,
			BatchRows: rapid.IntRange(1, 70).Draw(t, "batchRows"),
			ReadAhead: int64(rapid.IntRange(1, 5000).Draw(t, "ahead")),
		})
		require.NoError(t, err)
		got, err := readRowsOf(f)
		require.NoError(t, err)
		sameRows(t, rows, got)

		var positions []uint32
		var want [][]types.Datum
		for i := range rows {
			if rapid.IntRange(0, 2).Draw(t, "wanted") == 0 {
				positions = append(positions, uint32(i))
				want = append(want, rows[i])
			}
		}
		out := types.NewBatch(fs)
		require.NoError(t, f.ReadRows(allCols(len(fs)), positions, out))
		var some [][]types.Datum
		for i := range out.Len() {
			some = append(some, out.Row(i))
		}
		sameRows(t, want, some)
	})
}
