package datafile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// list and v build values shortly.
func list(d ...types.Datum) types.Datum { return types.Datum{L: append([]types.Datum{}, d...)} }

func v(i int64) types.Datum { return types.IntDatum(i) }

// leafLevels writes rows and shows the entries of every leaf as rep/def=value.
func leafLevels(t *testing.T, typ types.Type, rows ...types.Datum) (*File, []string) {
	fs := fieldsOf(typ)
	var table [][]types.Datum
	for _, r := range rows {
		table = append(table, []types.Datum{r})
	}
	data, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, table))
	f := openFile(t, data, ReadOptions{Fields: fs})
	sameRows(t, table, readAll(t, f))
	_, cols := parquetGoColumns(t, data)
	var out []string
	for _, c := range cols {
		var parts []string
		for _, e := range c {
			s := fmt.Sprintf("%d/%d", e.rep, e.def)
			if e.value != "" {
				s += "=" + e.value
			}
			parts = append(parts, s)
		}
		out = append(out, strings.Join(parts, " "))
	}
	return f, out
}

// TestShred_LevelsByHand: the levels as the Parquet documentation defines them,
// worked out by hand.
func TestShred_LevelsByHand(t *testing.T) {
	i := types.IntType()
	pair := types.RowType(types.Field{ID: 1, Name: "x", Type: i}, types.Field{ID: 2, Name: "y", Type: i.NonNull()})
	for _, tc := range []struct {
		name string
		t    types.Type
		rows []types.Datum
		want []string
	}{
		{"scalar", i, []types.Datum{v(7), types.Null}, []string{"0/1=7 0/0"}},
		{
			"list", types.ArrayType(i),
			[]types.Datum{list(v(1), types.Null, v(2)), list(), types.Null, list(v(3))},
			[]string{"0/3=1 1/2 1/3=2 0/1 0/0 0/3=3"},
		},
		{
			"required list of required", types.ArrayType(i.NonNull()).NonNull(),
			[]types.Datum{list(v(1), v(2)), list()},
			[]string{"0/1=1 1/1=2 0/0"},
		},
		{
			"list of lists", types.ArrayType(types.ArrayType(i)),
			[]types.Datum{list(list(v(1), v(2)), list(), types.Null, list(v(3))), list(), types.Null},
			[]string{"0/5=1 2/5=2 1/3 1/2 1/5=3 0/1 0/0"},
		},
		{
			"row", pair,
			[]types.Datum{list(v(1), v(2)), list(types.Null, v(3)), types.Null},
			[]string{"0/2=1 0/1 0/0", "0/1=2 0/1=3 0/0"},
		},
		{
			"list of rows", types.ArrayType(pair),
			[]types.Datum{list(list(v(1), v(2)), types.Null), list()},
			[]string{"0/4=1 1/2 0/1", "0/3=2 1/2 0/1"},
		},
		{
			"map", types.MapType(i, i),
			[]types.Datum{list(v(1), v(10), v(2), types.Null), list(), types.Null},
			[]string{"0/2=1 1/2=2 0/1 0/0", "0/3=10 1/2 0/1 0/0"},
		},
		{
			"multiset", types.MultisetType(i),
			[]types.Datum{list(v(5), v(2)), types.Null},
			[]string{"0/2=5 0/0", "0/2=2 0/0"},
		},
		{
			"row of a list and a map", types.RowType(
				types.Field{ID: 1, Name: "l", Type: types.ArrayType(i)}, types.Field{ID: 2, Name: "m", Type: types.MapType(i, types.ArrayType(i))}),
			[]types.Datum{list(list(v(1)), list(v(2), list(v(3), v(4)), v(5), list())), types.Null, list(types.Null, types.Null)},
			[]string{"0/4=1 0/0 0/1", "0/3=2 1/3=5 0/0 0/1", "0/6=3 2/6=4 1/4 0/0 0/1"},
		},
		{
			"variant",
			types.Type{Kind: types.Variant},
			[]types.Datum{list(types.StringDatum("v"), types.StringDatum("m")), types.Null},
			[]string{"0/1=76 0/0", "0/1=6d 0/0"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, got := leafLevels(t, tc.t, tc.rows...)
			require.Equal(t, tc.want, got)
		})
	}
}

// TestAssemble_RefusesLevelsThatMakeNoRows feeds levels that no writer makes.
func TestAssemble_RefusesLevelsThatMakeNoRows(t *testing.T) {
	f, _ := leafLevels(t, types.MapType(types.IntType(), types.IntType()), list(v(1), v(2)))
	n := f.cols[0].node
	for _, tc := range []struct {
		name       string
		key, value levels
		want       string
	}{
		{"an element before its list", levels{rep: []uint8{1}, def: []uint8{2}}, levels{}, "outside of its list"},
		{"more keys than values", levels{rep: []uint8{0, 1}, def: []uint8{2, 2}}, levels{rep: []uint8{0}, def: []uint8{3}}, "nested part"},
		{"fewer keys than values", levels{rep: []uint8{0}, def: []uint8{2}}, levels{rep: []uint8{0, 1}, def: []uint8{3, 3}}, "nested part"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vec := types.NewVector(f.o.Fields[0].Type)
			for k, l := range []levels{tc.key, tc.value} {
				for _, d := range l.def {
					if d >= 2 {
						vec.Child[k].AppendInt32(1)
					}
				}
			}
			err := n.assemble(vec, []levels{tc.key, tc.value})
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// TestReadRows_RowsThatCrossPages: old writers of V1 pages end pages anywhere.
func TestReadRows_RowsThatCrossPages(t *testing.T) {
	fs := fieldsOf(types.ArrayType(types.IntType().NonNull()).NonNull())
	want := [][]types.Datum{{list(v(1), v(2), v(3), v(4), v(5))}, {list()}, {list(v(6), v(7))}, {list(v(8))}}
	entries := []struct {
		rep, def uint8
		v        int32
	}{{0, 1, 1}, {1, 1, 2}, {1, 1, 3}, {1, 1, 4}, {1, 1, 5}, {0, 0, 0}, {0, 1, 6}, {1, 1, 7}, {0, 1, 8}}
	for size := 1; size <= len(entries); size++ {
		data := crossingPages(t, fs, len(want), size, func(i int) (rep, def uint8, v int32, ok bool) {
			if i >= len(entries) {
				return 0, 0, 0, false
			}
			return entries[i].rep, entries[i].def, entries[i].v, true
		})
		f := openFile(t, data, ReadOptions{Fields: fs, BatchRows: 1})
		sameRows(t, want, readAll(t, f))
		for _, positions := range [][]uint32{{0}, {1}, {2}, {3}, {0, 2}, {1, 3}} {
			out := f.NewBatch([]int{0})
			require.NoError(t, f.ReadRows([]int{0}, positions, out), "pages of %d", size)
			for k, p := range positions {
				require.True(t, sameDatum(want[p][0], out.Cols[0].Datum(k)))
			}
		}
	}
}

// crossingPages makes a file whose only chunk has pages of so many entries.
func crossingPages(t *testing.T, fs []types.Field, rows, size int, entry func(i int) (rep, def uint8, v int32, ok bool)) []byte {
	s, err := newSchema(fs)
	require.NoError(t, err)
	comp, err := newCompressor("none", 0, 1)
	require.NoError(t, err)
	c := newChunkWriter(&s.leaves[0], &settings{pageRows: 1 << 20, pageBytes: 1 << 20, maxPage: 1 << 20, comp: comp})
	for i := 0; ; i++ {
		rep, def, val, ok := entry(i)
		if !ok || i%size == 0 {
			require.NoError(t, c.endPage())
		}
		if !ok {
			break
		}
		c.push(rep, def)
		if def == c.leaf.maxDef {
			c.buf = append(c.buf, asBytes([]int32{val})...)
		}
	}
	_, m, err := c.finish()
	require.NoError(t, err)
	m.DataPageOffset += 4
	out := append([]byte(magic), c.out...)
	out, err = appendFooter(out, &fileMetaData{
		Version: 1, Schema: s.elements, NumRows: int64(rows),
		RowGroups: []rowGroup{{NumRows: int64(rows), Columns: []columnChunk{{MetaData: m}}}},
	})
	require.NoError(t, err)
	return out
}
