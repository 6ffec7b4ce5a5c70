package paimon

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/paimon/binrow"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

var allOperators = []Compare{Equal, Less, LessEqual, Greater, GreaterEqual, IsNull, NotNull}

// sampleValues picks values of a column to compare with: the ends and some in
// between, NaN and both zeros for floating point.
func sampleValues(typ types.Type, rows [][]types.Datum, col int) []types.Datum {
	var all []types.Datum
	for _, row := range rows {
		if !row[col].Null {
			all = append(all, row[col])
		}
	}
	slices.SortFunc(all, func(a, b types.Datum) int { return types.CompareDatums(typ, a, b) })
	all = slices.CompactFunc(all, func(a, b types.Datum) bool { return types.CompareDatums(typ, a, b) == 0 })
	if n := len(all); n > 6 {
		all = []types.Datum{all[0], all[1], all[n/3], all[n/2], all[n-2], all[n-1]}
	}
	if typ.Kind == types.Float || typ.Kind == types.Double {
		all = append(all, types.FloatDatum(math.NaN()), types.FloatDatum(0), types.FloatDatum(math.Copysign(0, -1)), types.FloatDatum(math.Inf(1)))
	}
	return append(all, types.Null)
}

// checkPruned compares a scan under conditions with filtering all rows.
func checkPruned(t require.TestingT, tab *Table, st *State, rows [][]types.Datum, where ...Condition) int {
	want := [][]types.Datum{}
	for _, row := range rows {
		ok := true
		for _, c := range where {
			ok = ok && c.Match(tab.Schema().Fields[c.Column].Type, row[c.Column])
		}
		if ok {
			want = append(want, row)
		}
	}
	got := scanRows(t, tab, st, ScanOptions{Where: where})
	require.True(t, sameRows(tab.Schema(), want, got), "%+v: %d rows, not %d", where, len(got), len(want))
	return len(got)
}

// sameRows compares rows in their order.
func sameRows(s *Schema, a, b [][]types.Datum) bool {
	return slices.EqualFunc(a, b, func(x, y []types.Datum) bool {
		for i, f := range s.Fields {
			if types.CompareDatums(f.Type, x[i], y[i]) != 0 || math.Signbit(x[i].F) != math.Signbit(y[i].F) {
				return false
			}
		}
		return true
	})
}

func TestGolden_PrunedScansLoseNothing(t *testing.T) {
	scans, hits := 0, 0
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		for branch, head := range g.dump.Heads {
			s := g.latestSchema(t, branch)
			if Refuse(s, Read) != nil || len(head.Snapshots) == 0 {
				continue
			}
			tab := g.open(t, s, branch)
			id, err := LatestSnapshotID(t.Context(), g.bucket, tab.Paths())
			require.NoError(t, err)
			snap, err := ReadSnapshot(t.Context(), g.bucket, tab.Paths(), id)
			require.NoError(t, err)
			st, err := tab.State(t.Context(), snap)
			require.NoError(t, err)
			rows := scanRows(t, tab, st, ScanOptions{})
			for col, f := range s.Fields {
				values := sampleValues(f.Type, rows, col)
				if len(rows) > 10_000 {
					values = values[:2]
				}
				for _, v := range values {
					for _, op := range allOperators {
						hits += checkPruned(t, tab, st, rows, Condition{col, op, v})
						scans++
					}
				}
			}
			if last := len(s.Fields) - 1; len(rows) > 0 && len(rows) < 10_000 { // two conditions at once
				row := rows[len(rows)/2]
				hits += checkPruned(t, tab, st, rows, Condition{0, GreaterEqual, row[0]}, Condition{last, Equal, row[last]})
			}
		}
	})
	require.Greater(t, scans, 4000)
	require.Greater(t, hits, 10_000)
}

// Bounds of any values of a column, cut by any mode, hide no matching value: not
// under the table's own order, whatever the value that is compared with.
func TestCondition_BoundsNeverHideAMatch(t *testing.T) {
	all := []types.Type{
		types.IntType(), types.BigIntType(), types.FloatType(), types.DoubleType(), types.DecimalType(9, 2), types.DecimalType(30, 2), types.CharType(4), types.CharType(20),
		types.VarCharType(8), types.StringType(), types.BinaryType(3), types.BytesType(), types.DateType(), types.TimestampType(3), types.TimestampLTZType(6), types.TimestampType(9), types.BooleanType(),
	}
	pruned := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			checkBounds(t, rapid.SampledFrom(all).Draw(t, "type"), &pruned)
		}
	})
	require.Greater(t, pruned, 1000)
}

func checkBounds(t *rapid.T, typ types.Type, pruned *int) {
	values := rapid.SliceOfN(datumGen(typ), 0, 6).Draw(t, "values")
	mode := rapid.SampledFrom([]StatsMode{{}, {Kind: StatsCounts}, {StatsTruncate, 1}, {StatsTruncate, 2}, {StatsTruncate, 16}, {Kind: StatsFull}}).Draw(t, "mode")
	s := statsSchema(t, 0, field(0, "a", typ))
	f := statsFile(t, int64(len(values)), s.Fields, []ColumnStats{mode.Apply(typ, trueStats(typ, values))}, rapid.Bool().Draw(t, "dense"))
	if rapid.Bool().Draw(t, "by pypaimon") {
		f = foreignStats(t, typ, values)
	}
	stats, err := NewStatsEvolution(s, s).Column(f, 0)
	require.NoError(t, err)
	for _, op := range allOperators {
		for _, v := range append(rapid.SliceOfN(datumGen(typ), 1, 6).Draw(t, "others"), values...) {
			c := Condition{0, op, v}
			if c.mayMatch(typ, stats, f.Rows) {
				continue
			}
			*pruned++
			for _, x := range values {
				require.False(t, c.Match(typ, x), "%v matches %+v, bounds %+v", x, c, stats)
			}
		}
	}
}

// datumGen draws values of few kinds, so that they meet, and NULL.
func datumGen(typ types.Type) *rapid.Generator[types.Datum] {
	return rapid.Custom(func(t *rapid.T) types.Datum {
		if rapid.IntRange(0, 5).Draw(t, "null") == 0 {
			return types.Null
		}
		small := rapid.Int64Range(-3, 3).Draw(t, "small")
		switch types.LayoutOf(typ) {
		case types.LayoutBool:
			return types.BoolDatum(small > 0)
		case types.LayoutFloat, types.LayoutDouble:
			return types.FloatDatum(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), 0.5}).Draw(t, "f"))
		case types.LayoutInt128:
			return types.Datum{D: types.Int128From(small)}
		case types.LayoutNano:
			return types.Datum{I: small, N: rapid.Int32Range(0, 2).Draw(t, "nanos")}
		case types.LayoutBytes:
			if typ.IsBinary() {
				return types.BytesDatum(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x80, 0xff}), 0, 4).Draw(t, "bytes"))
			}
			text := rapid.StringOfN(rapid.RuneFrom([]rune("ab \x01~é\U0010ffff\ud7ff")), 0, min(typ.Length, 4), -1).Draw(t, "text")
			if typ.Kind == types.Char && rapid.Bool().Draw(t, "padded") {
				text += strings.Repeat(" ", typ.Length-len([]rune(text)))
			}
			return types.StringDatum(text)
		}
		switch {
		case typ.IsTimestamp():
			for range max(6-typ.Precision, 0) {
				small *= 10
			}
		case typ.Kind == types.Time:
			small += 3
		}
		return types.IntDatum(small)
	})
}

// trueStats are the bounds that our writer finds: text and binary in the order of
// bytes, none with NaN.
func trueStats(typ types.Type, values []types.Datum) datafile.ColumnStats {
	var c datafile.ColumnStats
	order := typ
	if typ.Kind == types.Char {
		order = types.StringType()
	}
	for _, v := range values {
		switch {
		case v.Null:
			c.NullCount++
			continue
		case math.IsNaN(v.F):
			return datafile.ColumnStats{NullCount: int64(countNulls(values))}
		case !c.HasBounds:
			c.Min, c.Max, c.HasBounds = v, v, true
		}
		if types.CompareDatums(order, v, c.Min) < 0 {
			c.Min = v
		}
		if types.CompareDatums(order, v, c.Max) > 0 {
			c.Max = v
		}
	}
	return c
}

func countNulls(values []types.Datum) (n int) {
	for _, v := range values {
		if v.Null {
			n++
		}
	}
	return n
}

// foreignStats are bounds as pyarrow finds them: NaN is passed over, and what is
// below the microsecond of a timestamp lost.
func foreignStats(t require.TestingT, typ types.Type, values []types.Datum) *manifest.DataFile {
	var rest []types.Datum
	for _, v := range values {
		if !math.IsNaN(v.F) {
			v.N = 0
			rest = append(rest, v)
		}
	}
	c := trueStats(typ, rest)
	if !c.HasBounds {
		c.Min, c.Max = types.Null, types.Null
	}
	low, err := binrow.Encode([]types.Type{typ}, []types.Datum{c.Min})
	require.NoError(t, err)
	high, err := binrow.Encode([]types.Type{typ}, []types.Datum{c.Max})
	require.NoError(t, err)
	return &manifest.DataFile{Rows: int64(len(values)), ValueStats: manifest.Stats{Min: low, Max: high, NullCounts: []int64{c.NullCount}}}
}
