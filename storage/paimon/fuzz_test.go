package paimon

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// seeds adds files of the golden tables and of Java.
func seeds(f *testing.F, patterns ...string) {
	for _, p := range patterns {
		files, err := filepath.Glob("testdata/" + p)
		require.NoError(f, err)
		require.NotEmpty(f, files)
		for _, name := range files[:min(len(files), 12)] {
			b, err := os.ReadFile(name)
			require.NoError(f, err)
			f.Add(b)
		}
	}
}

func FuzzParseSchema(f *testing.F) {
	seeds(f, "golden/*/warehouse/*/*/schema/schema-*", "java/schema-*.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseSchema(b)
		if err != nil {
			require.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrRefused), err)
			return
		}
		_, _, _ = Refuse(s, Write), s.PartitionTypes(), s.BucketKeys()
		again, err := s.Encode()
		require.NoError(t, err)
		back, err := ParseSchema(again)
		require.NoError(t, err)
		third, err := back.Encode()
		require.NoError(t, err)
		require.Equal(t, string(again), string(third))
	})
}

func FuzzParseTag(f *testing.F) {
	seeds(f, "golden/*/warehouse/*/*/snapshot/snapshot-*", "java/snapshot-*.json", "java/tag-*.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		tag, err := ParseTag(b)
		if err != nil {
			require.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrNewer), err)
			return
		}
		again, err := tag.Encode()
		require.NoError(t, err)
		back, err := ParseTag(again)
		require.NoError(t, err)
		third, err := back.Encode()
		require.NoError(t, err)
		require.Equal(t, string(again), string(third))
		plain, err := ParseSnapshot(b)
		require.NoError(t, err)
		require.Equal(t, tag.ID, plain.ID)
	})
}

func FuzzParseConsumer(f *testing.F) {
	seeds(f, "java/consumer.json")
	f.Fuzz(func(t *testing.T, b []byte) {
		if next, err := ParseConsumer(b); err == nil {
			back, err := ParseConsumer(EncodeConsumer(next))
			require.NoError(t, err)
			require.Equal(t, next, back)
		}
	})
}

func FuzzUnits(f *testing.F) {
	f.Add("128 mb", "truncate(16)")
	f.Add("1 h", "full")
	f.Fuzz(func(t *testing.T, s, mode string) {
		if n, err := ParseSize(s); err == nil {
			require.GreaterOrEqual(t, n, int64(0))
		}
		if d, err := ParseDuration(s); err == nil {
			require.GreaterOrEqual(t, int64(d), int64(0))
		}
		if m, err := ParseStatsMode(mode); err == nil && m.Kind == StatsTruncate {
			require.Positive(t, m.Length)
		}
		_ = UnescapePathName(s)
		require.Equal(t, s, UnescapePathName(EscapePathName(s)))
	})
}

func FuzzStatsColumn(f *testing.F) {
	s := &Schema{Fields: []types.Field{
		field(0, "a", types.IntType()), field(1, "s", types.StringType()), field(2, "d", types.DecimalType(38, 2)),
		field(3, "t", types.TimestampType(6)), field(4, "l", types.ArrayType(types.StringType())),
	}}
	require.NoError(f, s.index())
	e := NewStatsEvolution(s, s)
	file := statsFile(f, 5, s.Fields, []ColumnStats{
		counted(0, types.IntDatum(1), types.IntDatum(2)), counted(0, types.StringDatum("a long text"), types.StringDatum("b")),
		counted(0, types.Datum{}, types.Datum{}), counted(0, types.IntDatum(1), types.IntDatum(2)),
		{},
	}, true)
	f.Add(file.ValueStats.Min, file.ValueStats.Max, true)
	f.Fuzz(func(t *testing.T, low, high []byte, named bool) {
		d := &manifest.DataFile{Rows: 5, ValueStats: manifest.Stats{Min: low, Max: high}}
		if named {
			d.StatsColumns = file.StatsColumns
		}
		out, err := allColumns(e, d)
		if err == nil {
			require.Len(t, out, len(s.Fields))
		}
	})
}
