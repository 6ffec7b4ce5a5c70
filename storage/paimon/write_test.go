package paimon

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

func allScalars() []types.Field {
	var fields []types.Field
	for _, typ := range []types.Type{
		types.BooleanType(), types.TinyIntType(), types.SmallIntType(), types.IntType(), types.BigIntType(), types.FloatType(), types.DoubleType(), types.DecimalType(9, 2),
		types.DecimalType(18, 4), types.DecimalType(38, 18), types.CharType(4), types.VarCharType(20), types.StringType(), types.BinaryType(4), types.BytesType(), types.DateType(), types.TimeType(3),
		types.TimestampType(0), types.TimestampType(3), types.TimestampType(6), types.TimestampType(9), types.TimestampLTZType(3), types.TimestampLTZType(6),
	} {
		fields = append(fields, field(len(fields), fmt.Sprint("c", len(fields)), typ))
	}
	return fields
}

// What the manifest says of a file is what its rows are.
func TestDataFileWriter_EntryIsTheRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t, allScalars(), nil, [2]string{"metadata.stats-mode", rapid.SampledFrom([]string{"truncate(2)", "truncate(16)", "full", "counts", "none"}).Draw(t, "mode")},
			[2]string{"metadata.stats-dense-store", rapid.SampledFrom([]string{"true", "false"}).Draw(t, "dense")}, [2]string{"fields.c4.stats-mode", "full"})
		fields := f.tab.Schema().Fields
		var rows [][]types.Datum
		for range rapid.IntRange(1, 8).Draw(t, "rows") {
			var row []types.Datum
			for _, c := range fields {
				row = append(row, datumGen(c.Type).Draw(t, c.Name))
			}
			rows = append(rows, row)
		}
		files := f.write(WriterSettings{}, rows...)
		require.Len(t, files, 1)
		e := files[0].File
		require.EqualValues(t, len(rows), e.Rows)
		require.EqualValues(t, 0, e.MinSequence)
		require.EqualValues(t, len(rows)-1, e.MaxSequence)
		evolution := NewStatsEvolution(f.tab.Schema(), f.tab.Schema())
		for i, c := range fields {
			got, err := evolution.Column(&e, i)
			require.NoError(t, err)
			column := columnOf(rows, i)
			want := f.tab.Options().StatsModeOf(i, c.Name).Apply(c.Type, writtenStats(c.Type, column))
			if want.None {
				require.True(t, got.None || got.Nulls == manifest.UnknownCount)
				continue
			}
			require.Equal(t, want.Nulls, got.Nulls)
			require.Zero(t, types.CompareDatums(c.Type, want.Min, got.Min), "%s: %v, %v", c.Type, want, got)
			require.Zero(t, types.CompareDatums(c.Type, want.Max, got.Max), "%s: %v, %v", c.Type, want, got)
		}
		f.commit(Changes{Add: files}, OperationWrite)
		require.True(t, sameRows(f.tab.Schema(), rows, scanRows(t, f.tab, f.st, ScanOptions{})))
		for col := range fields { // and no predicate loses a row
			c := Condition{col, rapid.SampledFrom(allOperators).Draw(t, "operator"), datumGen(fields[col].Type).Draw(t, "value")}
			checkPruned(t, f.tab, f.st, rows, c)
		}
	})
}

func columnOf(rows [][]types.Datum, i int) (out []types.Datum) {
	for _, r := range rows {
		out = append(out, r[i])
	}
	return out
}

// writtenStats are the bounds of values as they are in the file: CHAR with its
// blanks, none of bytes and TIMESTAMP(7..9).
func writtenStats(typ types.Type, values []types.Datum) datafile.ColumnStats {
	var stored []types.Datum
	for _, v := range values {
		if typ.Kind == types.Char && !v.Null {
			v.B = append(bytes.Clone(v.B), strings.Repeat(" ", max(0, typ.Length-len([]rune(string(v.B)))))...)
		}
		stored = append(stored, v)
	}
	c := trueStats(typ, stored)
	if typ.IsTimestamp() && typ.Precision > 6 || typ.IsBinary() {
		c.HasBounds = false
	}
	if !c.HasBounds {
		c.Min, c.Max = types.Null, types.Null
	}
	return c
}

func TestDataFileWriter_RollsAtTheTargetSize(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.BigIntType()), field(1, "s", types.StringType()), field(2, "p", types.StringType())}, []string{"p"},
		[2]string{"target-file-size", "64 kb"}, [2]string{"data-file.prefix", "part-"}, [2]string{"file.suffix.include.compression", "true"})
	var rows [][]types.Datum
	for i := range 20_000 {
		rows = append(rows, []types.Datum{types.IntDatum(int64(i)), types.StringDatum(fmt.Sprintf("%x", math.Sin(float64(i)))), types.StringDatum("a/b")})
	}
	zone := time.FixedZone("somewhere", 2*3600)
	now := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, zone)
	files := f.write(WriterSettings{Now: func() time.Time { return now }}, rows...)
	require.Greater(t, len(files), 3)
	names, next := map[string]bool{}, int64(0)
	for i, e := range files {
		names[e.File.Name] = true
		require.Equal(t, fmt.Sprintf("-%d.zstd.parquet", i), e.File.Name[len("part-")+36:])
		require.True(t, strings.HasPrefix(e.File.Name, "part-"))
		key, err := f.tab.Paths().Data(&e)
		require.NoError(t, err)
		require.Equal(t, "p=a%2Fb/bucket-0/"+e.File.Name, key)
		info, err := f.bucket.Stat(bg, key)
		require.NoError(t, err)
		require.Equal(t, info.Size, e.File.Size)
		require.Less(t, e.File.Size, int64(100<<10))
		require.Equal(t, next, e.File.MinSequence, "one counter")
		require.Equal(t, next+e.File.Rows-1, e.File.MaxSequence)
		next += e.File.Rows
		require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC).UnixMilli(), *e.File.CreationTime, "the local clock, as if it were UTC")
		require.Equal(t, manifest.SourceAppend, *e.File.Source)
		require.Zero(t, *e.File.DeleteRows)
		require.EqualValues(t, 0, e.Bucket)
		require.Equal(t, manifest.UnawareBuckets, e.TotalBuckets)
		require.Equal(t, []string{}, e.File.ExtraFiles)
		require.Nil(t, e.File.WriteColumns)
	}
	require.EqualValues(t, len(rows), next)
	require.Len(t, names, len(files))
	f.commit(Changes{Add: files}, OperationWrite)
	require.True(t, sameRows(f.tab.Schema(), rows, scanRows(t, f.tab, f.st, ScanOptions{})))
	more := f.write(WriterSettings{TargetBytes: 1}, rows[:2500]...)
	require.Len(t, more, 3, "a look every 1000 rows")
	require.False(t, names[more[0].File.Name])
}

// One writer writes file after file, and none for no rows.
func TestDataFileWriter_IsUsedAgain(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.IntType())}, []string{"p"})
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(t, err)
	b := f.batch(ints(1, 1), ints(2, 2), ints(3, 1))
	seen := map[string]int64{}
	for i, sel := range [][]uint32{{0, 2}, {1}, nil, {2}} {
		p, err := f.tab.PartitionOf(b, int([]uint32{0, 1, 0, 2}[i]))
		require.NoError(t, err)
		files, err := w.Write(p, b, sel)
		require.NoError(t, err)
		require.Len(t, files, min(1, len(sel)))
		for _, x := range files {
			require.Equal(t, sel, x.Rows)
			require.Equal(t, int64(len(x.Object.Data)), x.Entry.File.Size)
			require.WithinDuration(t, time.Now(), time.UnixMilli(*x.Entry.File.CreationTime).UTC(), 48*time.Hour)
			seen[x.Object.Key] = x.Entry.File.Rows
		}
	}
	require.Len(t, seen, 3)
	_, err = w.Write(nil, f.batch(ints(1, 1)), []uint32{0})
	require.Error(t, err, "no partition row")
	text := types.NewBatch([]types.Field{field(0, "id", types.StringType()), field(1, "p", types.IntType())})
	text.AppendDatums([]types.Datum{types.StringDatum("x"), types.IntDatum(1)})
	_, err = w.Write(nil, text, []uint32{0})
	require.ErrorIs(t, err, datafile.ErrSchema)
	_, err = f.tab.NewDataFileWriter(WriterSettings{KeyColumns: []int{2}})
	require.ErrorIs(t, err, datafile.ErrSchema)
}

// A partition is its bytes: the same values give the same ones, whoever pads.
func TestPartitionOf_IsTheSameForEqualValues(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "c", types.CharType(5)), field(1, "v", types.IntType()), field(2, "d", types.DateType())}, []string{"d", "c"})
	s, one := types.StringDatum, types.IntDatum(1)
	b := f.batch([]types.Datum{s("ab"), one, one}, []types.Datum{s("ab   "), one, one}, []types.Datum{types.Null, one, types.Null}, []types.Datum{s("é"), one, one}, []types.Datum{s("é    "), one, one})
	parts := make([]string, b.Len())
	for i := range parts {
		p, err := f.tab.AppendPartition([]byte("x"), b, i)
		require.NoError(t, err)
		parts[i] = string(p[1:])
	}
	require.Equal(t, parts[0], parts[1])
	require.Equal(t, parts[3], parts[4])
	require.NotEqual(t, parts[0], parts[2])
	require.Equal(t, "ab", string(b.Cols[0].Bytes(0)), "the batch stays as it is")
	dir, err := f.tab.Paths().BucketDir([]byte(parts[0]), 0)
	require.NoError(t, err)
	require.Equal(t, "d=1/c=ab   /bucket-0", dir, "as Java names it")
	long := newFixture(t, []types.Field{field(0, "c", types.CharType(300)), field(1, "v", types.IntType())}, []string{"c"})
	p, err := long.tab.PartitionOf(long.batch([]types.Datum{s("x"), one}), 0)
	require.NoError(t, err)
	_, err = long.tab.Paths().BucketDir(p, 0)
	require.ErrorIs(t, err, ErrPartitionValue)
}
