package paimon

import (
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/types"
)

// BenchmarkRewrite copies a file of 500,000 rows without one in a thousand.
func BenchmarkRewrite(b *testing.B) {
	const rows = 500_000
	f := newFixture(b, []types.Field{
		field(0, "id", types.BigIntType()), field(1, "a", types.StringType()), field(2, "d", types.DecimalType(18, 2)), field(3, "t", types.TimestampType(6)),
		field(4, "n", types.DoubleType()),
	}, nil, [2]string{OptDeletionVectors, "false"})
	batch, drop := types.NewBatch(f.tab.schema.Fields), roaring.New()
	sel := make([]uint32, rows)
	for i := range int64(rows) {
		sel[i] = uint32(i)
		batch.AppendDatums([]types.Datum{
			types.IntDatum(i), types.StringDatum(fmt.Sprintf("customer %d of %d", i*7919%rows, i%97)), types.IntDatum(i * 31 % 1_000_003),
			types.IntDatum(1_700_000_000_000_000 + i*1_000_003), types.FloatDatum(float64(i) * 1.1),
		})
		if i%1000 == 0 {
			drop.Add(uint32(i))
		}
	}
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid, KeyColumns: []int{0}})
	require.NoError(b, err)
	p, err := f.tab.PartitionOf(batch, 0)
	require.NoError(b, err)
	files, err := w.Write(p, batch, sel)
	require.NoError(b, err)
	require.NoError(b, f.bucket.PutAll(bg, []objstore.Object{files[0].Object}))
	b.ReportAllocs()
	b.SetBytes(files[0].Entry.File.Size)
	for b.Loop() {
		e, err := w.Rewrite(bg, &files[0].Entry, drop)
		require.NoError(b, err)
		require.EqualValues(b, rows-rows/1000, e.File.Rows)
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkJoin joins files of 500,000 rows, decoding them and copying their row
// groups as they are.
func BenchmarkJoin(b *testing.B) {
	const rows = 500_000
	f := newFixture(b, []types.Field{
		field(0, "id", types.BigIntType()), field(1, "a", types.StringType()), field(2, "d", types.DecimalType(18, 2)),
	}, nil)
	batch, sel := types.NewBatch(f.tab.schema.Fields), make([]uint32, rows)
	for i := range int64(rows) {
		sel[i] = uint32(i)
		batch.AppendDatums([]types.Datum{types.IntDatum(i), types.StringDatum(fmt.Sprintf("customer %d of %d", i*7919%rows, i%97)), types.IntDatum(i * 31 % 1_000_003)})
	}
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(b, err)
	p, err := f.tab.PartitionOf(batch, 0)
	require.NoError(b, err)
	var parts []Part
	size := int64(0)
	for range 2 {
		files, err := w.Write(p, batch, sel)
		require.NoError(b, err)
		require.NoError(b, f.bucket.PutAll(bg, []objstore.Object{files[0].Object}))
		parts = append(parts, Part{Entry: &files[0].Entry})
		size += files[0].Entry.File.Size
	}
	for name, limit := range map[string]int64{"decoded": 1 << 60, "verbatim": 1} {
		b.Run(name, func(b *testing.B) {
			w.verbatim = limit
			b.SetBytes(size)
			for b.Loop() {
				e, err := w.Join(bg, parts)
				require.NoError(b, err)
				require.EqualValues(b, 2*rows, e.File.Rows)
			}
			b.ReportMetric(2*rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
