package datafile

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/types"
)

// TestBounds_AreTheSmallestAndLargestOfTheFile compares the statistics of a file,
// written in parts and through selections, with a scan of its rows, and those of
// its row groups with a scan of theirs.
func TestBounds_AreTheSmallestAndLargestOfTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		edges := scalarEdges()
		typ := edges[rapid.IntRange(0, len(edges)-1).Draw(t, "type")].t
		fs := fieldsOf(typ)
		rows := make([][]types.Datum, rapid.IntRange(1, 150).Draw(t, "rows"))
		for i := range rows {
			rows[i] = []types.Datum{drawDatum(t, typ)}
		}
		o := drawOptions(t, fs)
		var buf writtenFile
		buf.write(t, o, rows)
		checkStats(t, typ, rows, buf.info.Columns[0])

		f := openFile(t, buf.data, ReadOptions{Fields: fs})
		start := int64(0)
		for g := range f.meta.RowGroups {
			n := f.meta.RowGroups[g].NumRows
			s := RowGroupStats{f: f, Ordinal: g, Start: start, Rows: n}.Column(0)
			if len(f.meta.RowGroups[g].Columns[0].MetaData.Statistics.MinValue) > 0 || s.HasBounds {
				checkStats(t, typ, rows[start:start+n], s)
			}
			start += n
		}
	})
}

// writtenFile is a file with what its writer said about it.
type writtenFile struct {
	data []byte
	info Info
}

func (f *writtenFile) write(t *rapid.T, o WriterOptions, rows [][]types.Datum) {
	f.data, f.info = writeFile(t, o, batchOf(o.Fields, rows))
}

// checkStats compares statistics with a scan.
func checkStats(t tb, typ types.Type, rows [][]types.Datum, got ColumnStats) {
	var lo, hi *types.Datum
	nulls, nan := int64(0), false
	for i := range rows {
		d := &rows[i][0]
		if d.Null {
			nulls++
			continue
		}
		nan = nan || d.F != d.F
		if lo == nil || types.CompareDatums(typ, *d, *lo) < 0 {
			lo = d
		}
		if hi == nil || types.CompareDatums(typ, *d, *hi) > 0 {
			hi = d
		}
	}
	require.Equal(t, nulls, got.NullCount)
	if lo == nil || nan || types.LayoutOf(typ) == types.LayoutNano {
		require.False(t, got.HasBounds, "%s", typ)
		return
	}
	require.True(t, got.HasBounds, "%s", typ)
	require.Zero(t, types.CompareDatums(typ, *lo, got.Min), "%s: %v", typ, got.Min)
	require.Zero(t, types.CompareDatums(typ, *hi, got.Max), "%s: %v", typ, got.Max)
	if got.Min.F == 0 {
		require.Equal(t, typ.Kind == types.Float || typ.Kind == types.Double, math.Signbit(got.Min.F))
	}
	require.False(t, got.Max.F == 0 && math.Signbit(got.Max.F))
}

func TestBounds_PrefixesOrderLikeTheirBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0x7f, 0x80, 0xff}), 0, 12)
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if prefix64(a) < prefix64(b) {
			require.Less(t, string(a), string(b))
		}
	})
}

func TestBounds_ResetForgets(t *testing.T) {
	b := bounds{layout: types.LayoutBytes}
	v := types.NewVector(types.StringType())
	v.AppendString("m")
	b.add(v, rows{to: 1})
	require.True(t, b.known())
	b.reset()
	require.False(t, b.known())
	v.AppendString("z")
	b.add(v, rows{sel: []uint32{1}})
	lo, hi := b.datums()
	require.Equal(t, "z", string(lo.B))
	require.Equal(t, "z", string(hi.B))
	b.add(v, rows{sel: []uint32{}})
	require.Equal(t, "z", string(b.blo))
}

func TestBounds_MergeOfNothing(t *testing.T) {
	b, empty := bounds{layout: types.LayoutInt64}, bounds{layout: types.LayoutInt64}
	b.merge(&empty)
	require.False(t, b.known())
	b.addInt(5, 7)
	b.merge(&empty)
	require.True(t, b.known())
	empty.merge(&b)
	require.Equal(t, int64(5), empty.lo)
	require.Equal(t, int64(7), empty.hi)
}
