package datafile

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// benchFields are the eight nullable columns of performance.md §1.
func benchFields() []types.Field {
	return []types.Field{
		{ID: 0, Name: "id", Type: types.BigIntType()},
		{ID: 1, Name: "account", Type: types.BigIntType()},
		{ID: 2, Name: "email", Type: types.StringType()},
		{ID: 3, Name: "city", Type: types.StringType()},
		{ID: 4, Name: "score", Type: types.DoubleType()},
		{ID: 5, Name: "amount", Type: types.DecimalType(18, 2)},
		{ID: 6, Name: "at", Type: types.TimestampType(6)},
		{ID: 7, Name: "day", Type: types.DateType()},
	}
}

// benchBatches are n rows in batches of 8192; nullEvery > 0 makes cells NULL.
func benchBatches(n, nullEvery int) []*types.Batch {
	r := rand.New(rand.NewPCG(1, 2))
	fs := benchFields()
	var out []*types.Batch
	b := types.NewBatch(fs)
	for i := range n {
		row := []types.Datum{
			types.IntDatum(int64(i)),
			types.IntDatum(r.Int64N(100_000)),
			types.StringDatum(fmt.Sprintf("cust-%d-%x", i, r.Int64N(1<<32))),
			types.StringDatum(fmt.Sprintf("city-%d", r.Int64N(1000))),
			types.FloatDatum(float64(r.Int64N(10_000_000)) / 100),
			types.IntDatum(r.Int64N(100_000_000)),
			types.IntDatum(1_780_000_000_000_000 + int64(i)*1000),
			types.IntDatum(20000 + r.Int64N(100)),
		}
		if nullEvery > 0 {
			for c := range row {
				if r.IntN(nullEvery) == 0 {
					row[c] = types.Null
				}
			}
		}
		b.AppendDatums(row)
		if b.Len() == 8192 {
			out = append(out, b)
			b = types.NewBatch(fs)
		}
	}
	if b.Len() > 0 {
		out = append(out, b)
	}
	return out
}

// cpuTime is what the process has used: other work on the machine does not count.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchWrite(b *testing.B, o WriterOptions, batches []*types.Batch) {
	o.Fields = benchFields()
	w, err := NewWriter(io.Discard, o)
	require.NoError(b, err)
	rows := 0
	for _, x := range batches {
		rows += x.Len()
	}
	var info Info
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	for b.Loop() {
		w.Reset(io.Discard)
		for _, x := range batches {
			if err := w.Write(x); err != nil {
				b.Fatal(err)
			}
		}
		if info, err = w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/float64(rows), "cpu-ns/row")
	b.ReportMetric(float64(info.Bytes)/float64(rows), "B/row")
}

func BenchmarkWrite8Columns(b *testing.B) {
	batches := benchBatches(100_000, 0)
	for _, c := range []string{"zstd", "snappy", "none"} {
		b.Run(c, func(b *testing.B) { benchWrite(b, WriterOptions{Compression: c}, batches) })
	}
	b.Run("zstd/2goroutines", func(b *testing.B) { benchWrite(b, WriterOptions{Concurrency: 2}, batches) })
	b.Run("zstd/delta", func(b *testing.B) { benchWrite(b, WriterOptions{Delta: true}, batches) })
	b.Run("zstd/noDictionary", func(b *testing.B) { benchWrite(b, WriterOptions{NoDictionary: true}, batches) })
	b.Run("zstd/groups10k", func(b *testing.B) { benchWrite(b, WriterOptions{RowGroupRows: 10_000}, batches) })
	million := benchBatches(1_000_000, 0)
	b.Run("zstd/1M", func(b *testing.B) { benchWrite(b, WriterOptions{}, million) })
	nulls := benchBatches(100_000, 10)
	b.Run("zstd/nulls10%", func(b *testing.B) { benchWrite(b, WriterOptions{}, nulls) })
	b.Run("none/nulls10%", func(b *testing.B) { benchWrite(b, WriterOptions{Compression: "none"}, nulls) })
}

func BenchmarkWriteSelected(b *testing.B) {
	batches := benchBatches(8192, 0)
	sel := make([]uint32, 0, 8192)
	for i := 0; i < 8192; i += 2 {
		sel = append(sel, uint32(i))
	}
	w, err := NewWriter(io.Discard, WriterOptions{Fields: benchFields(), Compression: "none"})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if w.Rows() > 500_000 {
			w.Reset(io.Discard)
		}
		if err := w.WriteSelected(batches[0], sel); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(sel)), "ns/row")
}

// BenchmarkWriteSmallFiles is the cost of a file of few rows and many columns.
func BenchmarkWriteSmallFiles(b *testing.B) {
	for _, s := range []struct{ cols, rows int }{{8, 1}, {8, 10}, {8, 1000}, {100, 10}, {100, 1000}} {
		b.Run(fmt.Sprintf("%dcolumns/%drows", s.cols, s.rows), func(b *testing.B) {
			var fs []types.Field
			for i := range s.cols {
				f := benchFields()[i%8]
				f.ID, f.Name = i, fmt.Sprintf("column_%d", i)
				fs = append(fs, f)
			}
			src := benchBatches(s.rows, 0)[0]
			batch := &types.Batch{}
			for i := range fs {
				batch.Cols = append(batch.Cols, src.Cols[i%8])
			}
			w, err := NewWriter(io.Discard, WriterOptions{Fields: fs})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				w.Reset(io.Discard)
				if err := w.Write(batch); err != nil {
					b.Fatal(err)
				}
				if _, err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchFile(b *testing.B, nullEvery int, o WriterOptions) []byte {
	o.Fields = benchFields()
	data, _ := writeFile(b, o, benchBatches(1_000_000, nullEvery)...)
	return data
}

func benchRead(b *testing.B, data []byte, cols []int) {
	f := openFile(b, data, ReadOptions{Fields: benchFields()})
	rows := 0
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	for b.Loop() {
		rows = 0
		if err := f.Read(cols, func(_ int64, x *types.Batch) error { rows += x.Len(); return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/float64(rows), "cpu-ns/row")
}

func BenchmarkRead(b *testing.B) {
	key := WriterOptions{KeyColumns: []int{0}}
	data := benchFile(b, 0, key)
	plain := benchFile(b, 0, WriterOptions{Compression: "none"})
	nulls := benchFile(b, 10, key)
	b.Run("key/zstd", func(b *testing.B) { benchRead(b, data, []int{0}) })
	b.Run("key/none", func(b *testing.B) { benchRead(b, plain, []int{0}) })
	b.Run("bigint_random/zstd", func(b *testing.B) { benchRead(b, data, []int{1}) })
	b.Run("key_nulls10%/zstd", func(b *testing.B) { benchRead(b, nulls, []int{0}) })
	b.Run("dictionary/zstd", func(b *testing.B) { benchRead(b, data, []int{3}) })
	b.Run("all/zstd", func(b *testing.B) { benchRead(b, data, allCols(8)) })
	b.Run("all/none", func(b *testing.B) { benchRead(b, plain, allCols(8)) })
	b.Run("all_nulls10%/zstd", func(b *testing.B) { benchRead(b, nulls, allCols(8)) })
}

func BenchmarkReadRows(b *testing.B) {
	data := benchFile(b, 0, WriterOptions{KeyColumns: []int{0}})
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("%dof1M", n), func(b *testing.B) {
			f := openFile(b, data, ReadOptions{Fields: benchFields()})
			var positions []uint32
			for i := range n {
				positions = append(positions, uint32(i*(1_000_000/n)+7))
			}
			out := f.NewBatch(allCols(8))
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				if err := f.ReadRows(allCols(8), positions, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	fs, rows := edgeTable()
	data, _ := writeFile(b, WriterOptions{Fields: fs}, batchOf(fs, rows))
	buffers, err := NewBuffers()
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(bytes.NewReader(data), int64(len(data)), ReadOptions{Fields: fs, Buffers: buffers}); err != nil {
			b.Fatal(err)
		}
	}
}
