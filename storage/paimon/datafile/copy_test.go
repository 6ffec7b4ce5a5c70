package datafile

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/types"
)

// copied writes rows, then row groups of files as they are, then rows again.
func copied(t tb, o WriterOptions, parts ...any) ([]byte, Info) {
	var buf bytes.Buffer
	w, err := NewWriter(&buf, o)
	require.NoError(t, err)
	for _, p := range parts {
		switch p := p.(type) {
		case [][]types.Datum:
			require.NoError(t, w.Write(batchOf(o.Fields, p)))
		case *File:
			require.True(t, w.CanCopy(p))
			require.NoError(t, w.CopyGroups(p))
		}
	}
	info, err := w.Close()
	require.NoError(t, err)
	require.EqualValues(t, buf.Len(), info.Bytes)
	return buf.Bytes(), info
}

// A file made of copied row groups between rows reads as all of them, as a whole
// and by position, and has the statistics of a file that was written at once.
func TestCopyGroups_ReadsAsIfItHadBeenWrittenAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fs []types.Field
		for range rapid.IntRange(1, 4).Draw(t, "columns") {
			fs = append(fs, types.Field{Type: drawType(t, 2)})
		}
		for i := range fs {
			fs[i].ID, fs[i].Name = i, string(rune('a'+i))
		}
		rows := func(what string) [][]types.Datum {
			out := make([][]types.Datum, rapid.IntRange(0, 30).Draw(t, what))
			for i := range out {
				for _, f := range fs {
					out[i] = append(out[i], drawDatum(t, f.Type))
				}
			}
			return out
		}
		before, after := rows("before"), rows("after")
		all := append([][]types.Datum{}, before...)
		parts := []any{before}
		for range rapid.IntRange(1, 3).Draw(t, "files") {
			part := rows("copied")
			data, _ := writeFile(t, drawOptions(t, fs), batchOf(fs, part))
			parts = append(parts, openFile(t, data, ReadOptions{Fields: fs}))
			all = append(all, part...)
		}
		parts, all = append(parts, after), append(all, after...)
		o := drawOptions(t, fs)
		data, info := copied(t, o, parts...)
		require.EqualValues(t, len(all), info.Rows)

		f := openFile(t, data, ReadOptions{Fields: fs})
		sameRows(t, all, readAll(t, f))
		var at []uint32
		var want [][]types.Datum
		for i := range all {
			if rapid.IntRange(0, 2).Draw(t, "by position") == 0 {
				at, want = append(at, uint32(i)), append(want, all[i])
			}
		}
		out := f.NewBatch(allCols(len(fs)))
		require.NoError(t, f.ReadRows(allCols(len(fs)), at, out))
		for i := range want {
			for c := range fs {
				require.True(t, sameDatum(want[i][c], out.Cols[c].Datum(i)))
			}
		}
		_, once := writeFile(t, o, batchOf(fs, all))
		for c := range fs {
			if fs[c].Type.IsNested() || fs[c].Type.Kind == types.Variant {
				continue
			}
			require.Equal(t, once.Columns[c].NullCount, info.Columns[c].NullCount)
			if once.Columns[c].HasBounds && !info.Columns[c].HasBounds {
				// A footer cannot tell an empty bound from none.
				require.Equal(t, types.LayoutBytes, types.LayoutOf(fs[c].Type))
				require.Empty(t, once.Columns[c].Min.B)
			}
			if info.Columns[c].HasBounds {
				require.True(t, sameDatum(once.Columns[c].Min, info.Columns[c].Min), "%s", fs[c].Type)
				require.True(t, sameDatum(once.Columns[c].Max, info.Columns[c].Max), "%s", fs[c].Type)
			}
		}
	})
}

// Files of Spark and Flink: what can be copied reads as it did.
func TestCopyGroups_OfGoldenFilesKeepsTheirRows(t *testing.T) {
	schemas, copies, refused := goldenSchemas(t), 0, 0
	for name, data := range goldenFiles(t) {
		meta := openFile(t, data, ReadOptions{}).meta
		fs := fieldsForFile(t, meta, schemas[tableDir(name)])
		if fs == nil {
			continue
		}
		f := openFile(t, data, ReadOptions{Fields: fs})
		w, err := NewWriter(&bytes.Buffer{}, WriterOptions{Fields: fs})
		if err != nil || !w.CanCopy(f) {
			refused++
			continue
		}
		copies++
		twice, info := copied(t, WriterOptions{Fields: fs}, f, f)
		want := readAll(t, f)
		require.EqualValues(t, 2*len(want), info.Rows)
		sameRows(t, append(append([][]types.Datum{}, want...), want...), readAll(t, openFile(t, twice, ReadOptions{Fields: fs})))
	}
	t.Logf("%d files copied, %d not", copies, refused)
	require.Greater(t, copies, 100)
}

func TestCanCopy_RefusesOtherColumns(t *testing.T) {
	base := []types.Field{{ID: 0, Name: "a", Type: types.IntType()}, {ID: 1, Name: "b", Type: types.StringType()}}
	data, _ := writeFile(t, WriterOptions{Fields: base}, batchOf(base, [][]types.Datum{{types.IntDatum(1), types.StringDatum("x")}}))
	for name, fs := range map[string][]types.Field{
		"another order":        {base[1], base[0]},
		"fewer columns":        {base[0]},
		"another type":         {{ID: 0, Name: "a", Type: types.BigIntType()}, base[1]},
		"another id":           {{ID: 7, Name: "a", Type: types.IntType()}, base[1]},
		"another name":         {{ID: 0, Name: "z", Type: types.IntType()}, base[1]},
		"NOT NULL":             {{ID: 0, Name: "a", Type: types.IntType().NonNull()}, base[1]},
		"a column that is new": {base[0], base[1], {ID: 2, Name: "c", Type: types.IntType()}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := NewWriter(&bytes.Buffer{}, WriterOptions{Fields: fs})
			require.NoError(t, err)
			f, err := Open(bytes.NewReader(data), int64(len(data)), ReadOptions{Fields: fs})
			if err == nil {
				require.False(t, w.CanCopy(f))
			}
		})
	}
	w, err := NewWriter(&bytes.Buffer{}, WriterOptions{Fields: base})
	require.NoError(t, err)
	require.True(t, w.CanCopy(openFile(t, data, ReadOptions{Fields: base})))
}
