package datafile

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// foreignColumns hold the formulas of testdata/foreign/generate.py.
func foreignColumns() []struct {
	name  string
	t     types.Type
	value func(i int64) types.Datum
} {
	ints := func(f func(i int64) int64) func(int64) types.Datum {
		return func(i int64) types.Datum { return types.IntDatum(f(i)) }
	}
	list := func(d ...types.Datum) types.Datum { return types.Datum{L: append([]types.Datum{}, d...)} }
	text := func(format string, a ...any) types.Datum { return types.StringDatum(fmt.Sprintf(format, a...)) }
	us := func(i int64) int64 { return (i*1_000_000_000-60_000_000_000)*1000 + i }
	return []struct {
		name  string
		t     types.Type
		value func(i int64) types.Datum
	}{
		{"bo", types.BooleanType(), func(i int64) types.Datum { return types.BoolDatum(i%2 == 0) }},
		{"i8", types.TinyIntType(), ints(func(i int64) int64 { return i*37%256 - 128 })},
		{"i16", types.SmallIntType(), ints(func(i int64) int64 { return i*111 - 6000 })},
		{"i32", types.IntType(), ints(func(i int64) int64 { return i*7_000_000 - 400_000_000 })},
		{"i64", types.BigIntType(), ints(func(i int64) int64 { return i*1e15 - 6e16 })},
		{"f32", types.FloatType(), func(i int64) types.Datum { return types.FloatDatum(float64(i)/4 - 10) }},
		{"f64", types.DoubleType(), func(i int64) types.Datum { return types.FloatDatum(float64(i)/8 - 10) }},
		{"d9", types.DecimalType(9, 2), ints(func(i int64) int64 { return i*12345 - 700_000 })},
		{"d18", types.DecimalType(18, 4), ints(func(i int64) int64 { return i*1e14 - 6e15 })},
		{"d38", types.DecimalType(38, 18), func(i int64) types.Datum {
			v, err := types.ParseDecimal(fmt.Appendf(nil, "%de35", i-60), 38, 0)
			if err != nil {
				panic(err)
			}
			return types.Datum{D: v}
		}},
		{"s", types.StringType(), func(i int64) types.Datum {
			return types.StringDatum(strings.Repeat(fmt.Sprintf("text-%d", i%20), int(i%3)))
		}},
		{"b", types.BytesType(), func(i int64) types.Datum { return types.StringDatum(strings.Repeat(string([]byte{byte(i)}), int(i%5))) }},
		{"fb", types.BinaryType(3), func(i int64) types.Datum { return types.BytesDatum([]byte{0, 0, byte(i)}) }},
		{"da", types.DateType(), ints(func(i int64) int64 { return i*100 - 6000 })},
		{"tm", types.TimeType(3), ints(func(i int64) int64 { return i * 1001 })},
		{"tu", types.TimeType(6), ints(func(i int64) int64 { return i * 1000123 / 1000 })},
		{"ms", types.TimestampType(3), ints(func(i int64) int64 { return (i*1e9 - 6e10) * 1000 })},
		{"us", types.TimestampType(6), ints(us)},
		{"ns", types.TimestampType(9), func(i int64) types.Datum {
			ns := i*1e15 - 6e16 + i
			return types.Datum{I: types.FloorDiv(ns, 1000), N: int32(ns - 1000*types.FloorDiv(ns, 1000))}
		}},
		{"lz", types.TimestampLTZType(6), ints(func(i int64) int64 { return i - 60 })},
		{"li", types.ArrayType(types.IntType()), func(i int64) types.Datum {
			return list([]types.Datum{types.IntDatum(i), types.Null, types.IntDatum(i + 1)}[:i%4]...)
		}},
		{"ma", types.MapType(types.StringType().NonNull(), types.BigIntType()), func(i int64) types.Datum {
			d := list()
			for j := range i % 3 {
				d.L = append(d.L, text("k%d", j), types.IntDatum(i*j))
			}
			return d
		}},
		{"st", types.RowType(types.Field{Name: "x", Type: types.IntType()}, types.Field{Name: "y", Type: types.ArrayType(types.StringType())}), func(i int64) types.Datum {
			x, y := types.IntDatum(i), types.Null
			if i%5 == 0 {
				x = types.Null
			}
			if i%3 != 0 {
				y = list([]types.Datum{text("v")}[:i%2]...)
			}
			return list(x, y)
		}},
		{"ls", types.ArrayType(types.RowType(types.Field{Name: "a", Type: types.IntType()}, types.Field{Name: "b", Type: types.StringType()})), func(i int64) types.Datum {
			d := list()
			for j := range i % 4 {
				if j == 1 {
					d.L = append(d.L, types.Null)
				} else {
					d.L = append(d.L, list(types.IntDatum(i*j), text("b%d", j)))
				}
			}
			return d
		}},
	}
}

const foreignRows = 120

func foreignTable() (fs []types.Field, rows [][]types.Datum) {
	cols := foreignColumns()
	for c, col := range cols {
		fs = append(fs, types.Field{ID: c, Name: col.name, Type: col.t})
	}
	for i := range foreignRows {
		row := make([]types.Datum, len(cols))
		for c, col := range cols {
			if row[c] = types.Null; (i+c)%7 != 0 {
				row[c] = col.value(int64(i))
			}
		}
		rows = append(rows, row)
	}
	return fs, rows
}

func foreignFile(t testing.TB, name string) []byte {
	data, err := os.ReadFile("testdata/foreign/" + name + ".parquet")
	require.NoError(t, err)
	return data
}

func TestForeign_FilesOfArrowAndArrowRs(t *testing.T) {
	fs, rows := foreignTable()
	for _, name := range []string{"arrow_dictionary", "arrow_plain_old_names", "arrow_v2_pages", "arrow_int96", "arrow_delta", "arrow_rs"} {
		t.Run(name, func(t *testing.T) {
			want := cutNanos(name, rows)
			f := openFile(t, foreignFile(t, name), ReadOptions{Fields: fs, BatchRows: 50})
			sameRows(t, want, readAll(t, f))

			var positions []uint32
			var some [][]types.Datum
			for i := 3; i < foreignRows; i += 1 + i%5 {
				positions = append(positions, uint32(i))
				some = append(some, want[i])
			}
			out := f.NewBatch(allCols(len(fs)))
			require.NoError(t, f.ReadRows(allCols(len(fs)), positions, out))
			var got [][]types.Datum
			for i := range out.Len() {
				got = append(got, out.Row(i))
			}
			sameRows(t, some, got)
		})
	}
}

// cutNanos gives what a file without nanoseconds holds.
func cutNanos(name string, rows [][]types.Datum) [][]types.Datum {
	if name != "arrow_plain_old_names" {
		return rows
	}
	var out [][]types.Datum
	for _, r := range rows {
		r = cloneRow(r)
		for c := range r {
			if r[c].N > 0 && r[c].I < 0 {
				r[c].I++ // Arrow rounds towards zero
			}
			r[c].N = 0
		}
		out = append(out, r)
	}
	return out
}

// TestForeign_EveryEncodingIsThere keeps the fixtures from losing what they are for.
func TestForeign_EveryEncodingIsThere(t *testing.T) {
	seen := map[format.Encoding]bool{}
	codecs := map[format.CompressionCodec]bool{}
	for _, name := range []string{"arrow_dictionary", "arrow_plain_old_names", "arrow_v2_pages", "arrow_int96", "arrow_delta", "arrow_rs"} {
		f := openFile(t, foreignFile(t, name), ReadOptions{})
		for _, g := range f.meta.RowGroups {
			for _, c := range g.Columns {
				codecs[c.MetaData.Codec] = true
				for _, e := range c.MetaData.Encoding {
					seen[e] = true
				}
			}
		}
	}
	for _, e := range []format.Encoding{
		format.Plain, format.RLE, format.RLEDictionary, format.DeltaBinaryPacked,
		format.DeltaByteArray, format.DeltaLengthByteArray, format.ByteStreamSplit,
	} {
		require.True(t, seen[e], e)
	}
	for _, c := range []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Gzip, format.Zstd, format.Lz4Raw} {
		require.True(t, codecs[c], c)
	}
}

func TestForeign_UnsupportedCodecIsNamed(t *testing.T) {
	fs, _ := foreignTable()
	_, err := readRowsOf(openFile(t, foreignFile(t, "arrow_brotli"), ReadOptions{Fields: fs}))
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "BROTLI")
	require.ErrorContains(t, err, "column bo")
}
