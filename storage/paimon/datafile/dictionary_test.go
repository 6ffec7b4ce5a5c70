package datafile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// textColumn writes n texts and returns the file, its chunk and the rows.
func textColumn(t *testing.T, typ types.Type, n int, o WriterOptions, value func(i int) string) (*File, columnMetaData, [][]types.Datum) {
	fs := fieldsOf(typ)
	var rows [][]types.Datum
	for i := range n {
		d := types.Null
		if v := value(i); v != "NULL" {
			d = types.StringDatum(v)
		}
		rows = append(rows, []types.Datum{d})
	}
	o.Fields = fs
	var parts []*types.Batch
	for from := 0; from < n; from += 1000 {
		parts = append(parts, batchOf(fs, rows[from:min(from+1000, n)]))
	}
	data, _ := writeFile(t, o, parts...)
	f := openFile(t, data, ReadOptions{Fields: fs})
	sameRows(t, rows, readAll(t, f))
	if n > 0 {
		_, cols := parquetGoColumns(t, data)
		require.Equal(t, stripeRows(fs, rows), cols)
	}
	return f, f.meta.RowGroups[0].Columns[0].MetaData, rows
}

func usesDictionary(m columnMetaData) bool { return m.DictionaryPageOffset > 0 }

func TestDictionary_IsChosenForFewDifferentTexts(t *testing.T) {
	for _, typ := range []types.Type{types.StringType(), types.CharType(12), types.BytesType()} {
		_, m, _ := textColumn(t, typ, 20_000, WriterOptions{}, func(i int) string { return fmt.Sprintf("city-%07d", i*i/7%1000) })
		require.True(t, usesDictionary(m), typ)
		require.Contains(t, m.Encoding, format.RLEDictionary)
		require.Less(t, m.DictionaryPageOffset, m.DataPageOffset)
		require.Equal(t, format.DictionaryPage, m.EncodingStats[0].PageType)
	}
}

func TestDictionary_IsNotChosenForManyDifferentTexts(t *testing.T) {
	_, m, _ := textColumn(t, types.StringType(), 20_000, WriterOptions{}, func(i int) string { return fmt.Sprint("user-", i) })
	require.False(t, usesDictionary(m))
	require.NotContains(t, m.Encoding, format.RLEDictionary)
}

func TestDictionary_OptionSwitchesItOff(t *testing.T) {
	_, m, _ := textColumn(t, types.StringType(), 5000, WriterOptions{NoDictionary: true}, func(i int) string { return "same" })
	require.False(t, usesDictionary(m))
}

func TestDictionary_SmallChunksDecideAtTheirEnd(t *testing.T) {
	_, m, _ := textColumn(t, types.StringType(), 200, WriterOptions{}, func(i int) string { return "a longer text " + fmt.Sprint(i%3) })
	require.True(t, usesDictionary(m))
	_, m, _ = textColumn(t, types.StringType(), 20, WriterOptions{}, func(i int) string { return "a longer text" })
	require.False(t, usesDictionary(m), "not worth a page")
}

func TestDictionary_OneValueHasIndexesOfNoBits(t *testing.T) {
	_, m, _ := textColumn(t, types.StringType(), 3000, WriterOptions{}, func(i int) string { return "the only one" })
	require.True(t, usesDictionary(m))
}

func TestDictionary_NullsAreNotInIt(t *testing.T) {
	_, m, _ := textColumn(t, types.StringType(), 9000, WriterOptions{PageRows: 700}, func(i int) string {
		if i%3 == 0 {
			return "NULL"
		}
		return fmt.Sprint("city number ", i%50)
	})
	require.True(t, usesDictionary(m))
	n, _ := m.Statistics.NullCount.Get()
	require.EqualValues(t, 3000, n)
}

// TestDictionary_StopsWhenItGetsLarge: the rest of the chunk is PLAIN, and the
// bounds still cover everything.
func TestDictionary_StopsWhenItGetsLarge(t *testing.T) {
	f, m, rows := textColumn(t, types.StringType(), 60_000, WriterOptions{}, func(i int) string {
		if i < 10_000 {
			return fmt.Sprintf("city-%020d", i%100)
		}
		return fmt.Sprintf("user-%020d", i)
	})
	require.True(t, usesDictionary(m))
	require.Contains(t, m.Encoding, format.Plain)
	pages := map[format.Encoding]int32{}
	for _, s := range m.EncodingStats {
		if s.PageType == format.DataPage {
			pages[s.Encoding] = s.Count
		}
	}
	require.Positive(t, pages[format.Plain])
	require.Positive(t, pages[format.RLEDictionary])
	var dict pageHeader
	b := make([]byte, 100)
	_, err := f.r.ReadAt(b, m.DictionaryPageOffset)
	require.NoError(t, err)
	_, err = dict.decode(b)
	require.NoError(t, err)
	require.Less(t, int(dict.raw), 2*dictMaxBytes+DefaultPageBytes)
	require.Equal(t, rows[0][0].B, m.Statistics.MinValue)
	require.Equal(t, rows[len(rows)-1][0].B, m.Statistics.MaxValue)
}

func TestDictionary_NestedLeaves(t *testing.T) {
	fs := fieldsOf(types.MapType(types.StringType().NonNull(), types.StringType()))
	var rows [][]types.Datum
	for i := range 4000 {
		d := types.Datum{L: []types.Datum{}}
		for j := range i % 4 {
			v := types.StringDatum(fmt.Sprint("unique value ", i, j))
			if i%7 == 0 {
				v = types.Null
			}
			d.L = append(d.L, types.StringDatum(fmt.Sprint("a frequent key ", j)), v)
		}
		rows = append(rows, []types.Datum{d})
	}
	data, _ := writeFile(t, WriterOptions{Fields: fs}, batchOf(fs, rows))
	f := openFile(t, data, ReadOptions{Fields: fs})
	sameRows(t, rows, readAll(t, f))
	require.True(t, usesDictionary(f.meta.RowGroups[0].Columns[0].MetaData))
	require.False(t, usesDictionary(f.meta.RowGroups[0].Columns[1].MetaData))
	_, cols := parquetGoColumns(t, data)
	require.Equal(t, stripeRows(fs, rows), cols)
}

func TestDictionary_EachRowGroupHasItsOwn(t *testing.T) {
	f, _, _ := textColumn(t, types.StringType(), 6000, WriterOptions{RowGroupRows: 2000}, func(i int) string {
		return strings.Repeat(string(rune('a'+i/2000)), 10) + fmt.Sprint(i%5)
	})
	for g, want := range []string{"aaaaaaaaaa0", "bbbbbbbbbb0", "cccccccccc0"} {
		m := f.meta.RowGroups[g].Columns[0].MetaData
		require.True(t, usesDictionary(m))
		require.Equal(t, want, string(m.Statistics.MinValue))
	}
}
