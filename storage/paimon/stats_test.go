package paimon

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/paimon/binrow"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

func statsSchema(t require.TestingT, id int64, fields ...types.Field) *Schema {
	s := &Schema{Version: 3, ID: id, Fields: fields, Options: map[string]string{}}
	require.NoError(t, s.index())
	return s
}

func field(id int, name string, typ types.Type) types.Field {
	return types.Field{ID: id, Name: name, Type: typ}
}

func counted(nulls int64, low, high types.Datum) ColumnStats {
	return ColumnStats{Nulls: nulls, Min: low, Max: high}
}

var unknownStats = ColumnStats{None: true, Nulls: manifest.UnknownCount, Min: types.Null, Max: types.Null}

// allColumns reads the statistics of every current column.
func allColumns(e *StatsEvolution, f *manifest.DataFile) ([]ColumnStats, error) {
	var out []ColumnStats
	for i := range e.source {
		c, err := e.Column(f, i)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// statsFile makes a data file of encoded statistics.
func statsFile(t require.TestingT, rows int64, written []types.Field, stats []ColumnStats, dense bool) *manifest.DataFile {
	v, names, err := EncodeStats(written, stats, dense)
	require.NoError(t, err)
	return &manifest.DataFile{Name: "f", Rows: rows, ValueStats: v, StatsColumns: names}
}

func TestStatsMode_Apply(t *testing.T) {
	s, i := types.StringDatum, types.IntDatum
	full := datafile.ColumnStats{NullCount: 2, HasBounds: true, Min: s("abcdef"), Max: s("uvwxyz")}
	require.Equal(t, ColumnStats{None: true}, StatsMode{}.Apply(types.StringType(), full))
	require.Equal(t, counted(2, types.Null, types.Null), StatsMode{Kind: StatsCounts}.Apply(types.StringType(), full))
	require.Equal(t, counted(2, s("abcdef"), s("uvwxyz")), StatsMode{Kind: StatsFull}.Apply(types.StringType(), full))
	require.Equal(t, counted(2, s("abc"), s("uvx")), StatsMode{StatsTruncate, 3}.Apply(types.StringType(), full))
	require.Equal(t, counted(0, i(-5), i(5)), StatsMode{StatsTruncate, 1}.Apply(types.IntType(), datafile.ColumnStats{HasBounds: true, Min: i(-5), Max: i(5)}))
	top := datafile.ColumnStats{HasBounds: true, Min: s("a"), Max: s("\U0010ffff\U0010ffffx")}
	require.Equal(t, counted(0, types.Null, types.Null), StatsMode{StatsTruncate, 2}.Apply(types.StringType(), top), "nothing can be incremented")
	for _, kind := range []StatsKind{StatsTruncate, StatsFull} {
		got := StatsMode{kind, 16}.Apply(types.StringType(), datafile.ColumnStats{NullCount: 3})
		require.Equal(t, counted(3, types.Null, types.Null), got, "no values, no bounds")
	}
}

// Java 1.4.2 orders bytes signed when it compares conditions with bounds: with
// bounds 00 and ff it would find no file for any value.
func TestEncodeStats_LeavesBoundsOfBytesOut(t *testing.T) {
	b := types.BytesDatum
	for _, typ := range []types.Type{types.BytesType(), types.VarBinaryType(8), types.BinaryType(1)} {
		cols := []types.Field{field(0, "b", typ)}
		f := statsFile(t, 3, cols, []ColumnStats{counted(1, b([]byte{0}), b([]byte{0xff}))}, true)
		got, err := NewStatsEvolution(statsSchema(t, 0, cols...), statsSchema(t, 0, cols...)).Column(f, 0)
		require.NoError(t, err)
		require.Equal(t, counted(1, types.Null, types.Null), got)
	}
}

func TestEncodeStats_DenseNamesColumnsUnlessItHasAll(t *testing.T) {
	i := types.IntDatum
	cols := []types.Field{field(0, "a", types.IntType().NonNull()), field(1, "b", types.StringType()), field(2, "l", types.ArrayType(types.IntType()))}
	stats := []ColumnStats{counted(0, i(1), i(2)), counted(3, types.Null, types.Null), {None: true}}

	v, names, err := EncodeStats(cols[:2], stats[:2], true)
	require.NoError(t, err)
	require.Nil(t, names)
	require.Equal(t, []int64{0, 3}, v.NullCounts)

	v, names, err = EncodeStats(cols, stats, true)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	n, err := binrow.Arity(v.Min)
	require.NoError(t, err)
	require.Equal(t, 2, n)

	v, names, err = EncodeStats(cols, stats, false)
	require.NoError(t, err)
	require.Nil(t, names)
	require.Equal(t, []int64{0, 3, manifest.UnknownCount}, v.NullCounts)

	v, names, err = EncodeStats(cols, []ColumnStats{{None: true}, {None: true}, counted(1, types.Null, types.Null)}, true)
	require.NoError(t, err)
	require.Equal(t, []string{}, names, "none at all, not null, which would mean all")
	require.Equal(t, manifest.Stats{Min: binrow.Empty(), Max: binrow.Empty(), NullCounts: []int64{}}, v)

	_, _, err = EncodeStats(cols, stats[:1], true)
	require.Error(t, err)
	_, _, err = EncodeStats(cols[:1], []ColumnStats{counted(0, i(1<<40), i(0))}, true)
	require.ErrorIs(t, err, binrow.ErrValue)
	_, _, err = EncodeStats(cols[:1], []ColumnStats{counted(0, i(0), i(1<<40))}, true)
	require.ErrorIs(t, err, binrow.ErrValue)
}

func TestEncodeStats_LeavesOutWhatMustNotBeTrusted(t *testing.T) {
	f := types.FloatDatum
	back := func(typ types.Type, low, high types.Datum) ColumnStats {
		s := statsSchema(t, 0, field(0, "a", typ))
		out, err := allColumns(NewStatsEvolution(s, s), statsFile(t, 9, s.Fields, []ColumnStats{counted(1, low, high)}, true))
		require.NoError(t, err)
		return out[0]
	}
	for _, typ := range []types.Type{types.FloatType(), types.DoubleType()} {
		require.Equal(t, counted(1, types.Null, types.Null), back(typ, f(1), f(math.NaN())))
		require.Equal(t, counted(1, types.Null, types.Null), back(typ, f(math.NaN()), f(1)))
		zero := back(typ, f(0), f(math.Copysign(0, -1)))
		require.True(t, math.Signbit(zero.Min.F))
		require.False(t, math.Signbit(zero.Max.F))
	}
	require.Equal(t, counted(1, types.Null, types.Null), back(types.TimestampType(9), types.IntDatum(1), types.IntDatum(2)))
	require.Equal(t, counted(1, types.IntDatum(1), types.IntDatum(2)), back(types.TimestampType(6), types.IntDatum(1), types.IntDatum(2)))
	require.Equal(t, counted(1, types.Null, types.Null), back(types.IntType(), types.IntDatum(1), types.Null), "half a pair of bounds is none")
}

func TestStatsEvolution_FollowsColumnsByID(t *testing.T) {
	i, s := types.IntDatum, types.StringDatum
	old := statsSchema(t, 0, field(0, "a", types.IntType()), field(1, "b", types.StringType()), field(2, "gone", types.IntType()), field(3, "c", types.IntType()),
		field(5, "w", types.VarCharType(3)), field(6, "n", types.VarCharType(9)))
	now := statsSchema(t, 1, field(1, "renamed", types.StringType()), field(4, "gone", types.IntType()), field(0, "a", types.BigIntType()), field(3, "c", types.StringType()),
		field(5, "w", types.StringType()), field(6, "n", types.VarCharType(5)))
	f := statsFile(t, 10, old.Fields, []ColumnStats{
		counted(0, i(1), i(9)), counted(2, s("x"), s("y")), counted(0, i(5), i(5)), counted(0, i(7), i(70)),
		counted(1, s("p"), s("q")), counted(1, s("p"), s("q")),
	}, true)
	got, err := allColumns(NewStatsEvolution(now, old), f)
	require.NoError(t, err)
	require.Equal(t, []ColumnStats{
		counted(2, s("x"), s("y")),               // renamed
		counted(10, types.Null, types.Null),      // another column of an old name: NULL in every row
		counted(0, i(1), i(9)),                   // widened
		unknownStats,                             // numbers as text are ordered otherwise
		counted(1, s("p"), s("q")), unknownStats, // longer, shorter
	}, got)
}

func TestStatsEvolution_ReadsColumnsThatAreWrittenInPart(t *testing.T) {
	i := types.IntDatum
	s := statsSchema(t, 0, field(0, "a", types.IntType()), field(1, "b", types.IntType()), field(2, "c", types.IntType()))
	e := NewStatsEvolution(s, s)
	sys := []types.Field{field(0, "a", types.IntType()), field(FieldIDRowID, ColumnRowID, types.BigIntType()), field(FieldIDSequenceNumber, ColumnSequenceNumber, types.BigIntType())}
	f := statsFile(t, 4, sys, []ColumnStats{counted(0, i(1), i(2)), counted(0, i(100), i(200)), counted(1, i(3), i(3))}, true)
	f.WriteColumns = []string{"a", ColumnRowID, ColumnSequenceNumber}
	got, err := allColumns(e, f)
	require.NoError(t, err)
	allNull := counted(4, types.Null, types.Null)
	require.Equal(t, []ColumnStats{counted(0, i(1), i(2)), allNull, allNull}, got)

	// Statistics of some columns only.
	f = statsFile(t, 4, s.Fields, []ColumnStats{{None: true}, counted(0, i(1), i(2)), {None: true}}, true)
	got, err = allColumns(e, f)
	require.NoError(t, err)
	require.Equal(t, []ColumnStats{unknownStats, counted(0, i(1), i(2)), unknownStats}, got)
	f.StatsColumns[0] = "unheard of"
	got, err = allColumns(e, f)
	require.NoError(t, err)
	require.Equal(t, []ColumnStats{unknownStats, unknownStats, unknownStats}, got)
}

func TestStatsEvolution_TakesOddStatisticsForUnknown(t *testing.T) {
	i := types.IntDatum
	s := statsSchema(t, 0, field(0, "a", types.IntType()), field(1, "l", types.ArrayType(types.IntType())), field(2, "d", types.DoubleType()))
	e := NewStatsEvolution(s, s)
	f := statsFile(t, 4, s.Fields[:1], []ColumnStats{counted(0, i(1), i(2))}, true)
	got, err := allColumns(e, f) // one field where three columns are announced
	require.NoError(t, err)
	require.Equal(t, []ColumnStats{unknownStats, unknownStats, unknownStats}, got)

	// The older form with slots for nested columns, and NaN as Java writes it.
	ts := []types.Type{types.IntType(), types.BigIntType(), types.DoubleType()}
	low, err := binrow.Encode(ts, []types.Datum{i(1), i(5), types.FloatDatum(1)})
	require.NoError(t, err)
	high, err := binrow.Encode(ts, []types.Datum{i(2), i(5), types.FloatDatum(math.NaN())})
	require.NoError(t, err)
	f = &manifest.DataFile{Rows: 4, ValueStats: manifest.Stats{Min: low, Max: high, NullCounts: []int64{0}}}
	got, err = allColumns(e, f)
	require.NoError(t, err)
	require.Equal(t, []ColumnStats{counted(0, i(1), i(2)), unknownStats, {Nulls: manifest.UnknownCount, Min: types.Null, Max: types.Null}}, got)

	for _, broken := range []manifest.Stats{{Min: nil, Max: high}, {Min: low, Max: nil}, {Min: low[:20], Max: high}} {
		_, err = allColumns(e, &manifest.DataFile{Name: "f", ValueStats: broken})
		require.ErrorIs(t, err, binrow.ErrCorrupt)
	}
	text := statsSchema(t, 0, field(0, "s", types.StringType()))
	bad := append([]byte{0, 0, 0, 1}, make([]byte, 8)...)
	bad = append(bad, 1, 0, 0, 0, 99, 0, 0, 0) // points behind the row
	_, err = NewStatsEvolution(text, text).Column(&manifest.DataFile{ValueStats: manifest.Stats{Min: bad, Max: bad}}, 0)
	require.ErrorIs(t, err, binrow.ErrCorrupt)
}

// Bounds that went through a manifest still hold for every value, in the order
// in which values are compared.
func TestStats_BoundsHoldForEveryValue(t *testing.T) {
	columns := map[string]types.Type{
		"int": types.IntType(), "bigint": types.BigIntType(), "double": types.DoubleType(), "float": types.FloatType(), "string": types.StringType(),
		"char": types.CharType(4), "bytes": types.BytesType(), "decimal": types.DecimalType(38, 3), "ts": types.TimestampType(3), "bool": types.BooleanType(),
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"int", "bigint", "double", "float", "string", "char", "bytes", "decimal", "ts", "bool"}).Draw(t, "type")
		typ := columns[name]
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) types.Datum { return drawValue(t, typ) }), 1, 12).Draw(t, "values")
		c := datafile.ColumnStats{HasBounds: true, Min: values[0], Max: values[0]}
		for _, v := range values {
			if types.CompareDatums(typ, v, c.Min) < 0 {
				c.Min = v
			}
			if types.CompareDatums(typ, v, c.Max) > 0 {
				c.Max = v
			}
		}
		mode := rapid.SampledFrom([]StatsMode{{StatsTruncate, 1}, {StatsTruncate, 2}, {StatsTruncate, 16}, {Kind: StatsFull}}).Draw(t, "mode")
		s := statsSchema(t, 0, field(0, "a", typ))
		got, err := allColumns(NewStatsEvolution(s, s), statsFile(t, int64(len(values)), s.Fields, []ColumnStats{mode.Apply(typ, c)}, rapid.Bool().Draw(t, "dense")))
		require.NoError(t, err)
		if got[0].Min.Null {
			return
		}
		for _, v := range values {
			require.LessOrEqual(t, types.CompareDatums(typ, got[0].Min, v), 0, fmt.Sprintf("%+v", v))
			require.GreaterOrEqual(t, types.CompareDatums(typ, got[0].Max, v), 0, fmt.Sprintf("%+v", v))
		}
	})
}

func drawValue(t *rapid.T, typ types.Type) types.Datum {
	switch typ.Kind {
	case types.Boolean:
		return types.IntDatum(rapid.Int64Range(0, 1).Draw(t, "v"))
	case types.Int:
		return types.IntDatum(int64(rapid.Int32().Draw(t, "v")))
	case types.Double:
		return types.FloatDatum(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1)})).Draw(t, "v"))
	case types.Float:
		return types.FloatDatum(float64(rapid.Float32().Draw(t, "v")))
	case types.VarChar:
		return types.StringDatum(rapid.StringOf(rapid.RuneFrom([]rune("ab\ud7ff\U0010ffff\uffffz"))).Draw(t, "v"))
	case types.Char:
		return types.StringDatum(rapid.StringMatching(`[ab ]{4}`).Draw(t, "v"))
	case types.VarBinary:
		return types.BytesDatum(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 254, 255}), 0, 4).Draw(t, "v"))
	case types.Decimal:
		return types.Datum{D: types.Int128From(rapid.Int64().Draw(t, "v"))}
	case types.Timestamp:
		return types.IntDatum(rapid.Int64Range(-1e15, 1e15).Draw(t, "v") / 1000 * 1000)
	}
	return types.IntDatum(rapid.Int64().Draw(t, "v"))
}

// One column of a file of 20, as pruning by a predicate needs it.
func BenchmarkStatsColumn(b *testing.B) {
	var fields []types.Field
	var stats []ColumnStats
	for i := range 20 {
		fields = append(fields, field(i, fmt.Sprint("c", i), types.BigIntType()))
		stats = append(stats, counted(0, types.IntDatum(int64(i)), types.IntDatum(int64(i*2))))
	}
	s := statsSchema(b, 0, fields...)
	e, f := NewStatsEvolution(s, s), statsFile(b, 5, fields, stats, true)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Column(f, 13); err != nil {
			b.Fatal(err)
		}
	}
}
