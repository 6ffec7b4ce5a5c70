package keyindex

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"golang.org/x/sys/unix"

	"applier/storage/types"
)

var big = flag.Bool("keyindex.big", false, "benchmarks with 100 million keys too")

const benchChunk = 16 << 10

// benchKeys makes the keys of the row numbers [from, to), or of those in rows.
type benchKeys struct {
	k   types.Keys
	buf []byte
}

func (b *benchKeys) fill(class types.KeyClass, n int, row func(i int) uint64) *types.Keys {
	k := &b.k
	k.Class, k.Hash, k.Low, k.Data = class, k.Hash[:0], k.Low[:0], k.Data[:0]
	k.Off = append(k.Off[:0], 0)
	for i := range n {
		r := row(i)
		switch class {
		case types.Key64:
			k.Hash = append(k.Hash, types.Mix64(r))
		case types.Key128:
			k.Hash, k.Low = append(k.Hash, types.Mix64(r)), append(k.Low, r*7)
		case types.KeyBytes:
			b.buf = append(b.buf[:0], "customer/eu-central-1/"...)
			b.buf = binary.BigEndian.AppendUint64(b.buf, r)
			k.Hash, k.Data = append(k.Hash, hashBytes(b.buf)), append(k.Data, b.buf...)
			k.Off = append(k.Off, uint32(len(k.Data)))
		}
	}
	return k
}

// cpu is the CPU time of the process in ns, which a busy machine disturbs less
// than the wall clock.
func cpu() float64 {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano() + r.Stime.Nano())
}

// best keeps the time per key of the quietest moment: other work on the machine
// only ever adds.
type best float64

func (f *best) since(t time.Time, keys int) {
	if d := float64(time.Since(t).Nanoseconds()) / float64(keys); *f == 0 || best(d) < *f {
		*f = best(d)
	}
}

func (f best) report(b *testing.B) { b.ReportMetric(float64(f), "best-ns/key") }

const benchFile = 1 << 20 // rows of a data file

func benchSizes() []int {
	sizes := []int{1_000_000, 10_000_000}
	if *big {
		sizes = append(sizes, 100_000_000)
	}
	return sizes
}

var benchClasses = map[types.KeyClass]string{types.Key64: "key64", types.Key128: "key128", types.KeyBytes: "bytes30"}

func forSizes(b *testing.B, f func(b *testing.B, class types.KeyClass, n int)) {
	for _, class := range []types.KeyClass{types.Key64, types.Key128, types.KeyBytes} {
		for _, n := range benchSizes() {
			b.Run(fmt.Sprintf("%s/%dM", benchClasses[class], n/1_000_000), func(b *testing.B) { f(b, class, n) })
		}
	}
}

// buildBench builds an index of rows 0 … n-1 with two readers.
func buildBench(b *testing.B, class types.KeyClass, n int) *Index {
	x, err := New(Options{Class: class, Dir: b.TempDir(), ExpectedKeys: int64(n)})
	require.NoError(b, err)
	var segs []uint32
	for from := 0; from < n; from += benchFile {
		seg, err := x.AddSegment(uint32(min(benchFile, n-from)))
		require.NoError(b, err)
		segs = append(segs, seg)
	}
	bl, err := x.NewBuilder(int64(n))
	require.NoError(b, err)
	var wg sync.WaitGroup
	for reader := range 2 {
		wg.Go(func() {
			var bk benchKeys
			for f := reader; f < len(segs); f += 2 {
				from, to := f*benchFile, min((f+1)*benchFile, n)
				for at := from; at < to; at += benchChunk {
					keys := bk.fill(class, min(benchChunk, to-at), func(i int) uint64 { return uint64(at + i) })
					if err := bl.Add(segs[f], uint32(at-from), keys); err != nil {
						b.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	require.NoError(b, bl.Finish())
	return x
}

func BenchmarkRebuild(b *testing.B) {
	forSizes(b, func(b *testing.B, class types.KeyClass, n int) {
		var st Stats
		spent := 0.0
		var f best
		for b.Loop() {
			before, start := cpu(), time.Now()
			x := buildBench(b, class, n)
			f.since(start, n)
			spent += cpu() - before
			st = x.Stats()
			b.StopTimer()
			require.NoError(b, x.Close())
			runtime.GC()
			b.StartTimer()
		}
		b.ReportMetric(1e3/float64(f), "best-Mkeys/s")
		b.ReportMetric(spent/float64(b.N)/float64(n), "cpu-ns/key")
		b.ReportMetric(st.BytesPerEntry, "B/key")
		b.ReportMetric(float64(st.PeakBytes)/float64(n), "peakB/key")
	})
}

func benchLookup(b *testing.B, dead float64, row func(n int) uint64, hits bool) {
	forSizes(b, func(b *testing.B, class types.KeyClass, n int) {
		x := buildBench(b, class, n)
		defer x.Close()
		if dead > 0 {
			require.NoError(b, x.segs.each(func(seg uint32, g *segment) error {
				dv := roaring.New()
				for range int(float64(g.rows) * dead) {
					dv.Add(rand.Uint32N(g.rows))
				}
				return x.SetDeleted(seg, dv)
			}))
		}
		const batch = 10_000
		batches := make([]benchKeys, 50)
		for i := range batches {
			batches[i].fill(class, batch, func(int) uint64 { return row(n) })
		}
		var m Matches
		i, keys := 0, 0
		var f best
		b.ReportAllocs()
		for b.Loop() {
			start := time.Now()
			if err := x.Lookup(&batches[i%len(batches)].k, nil, &m); err != nil {
				b.Fatal(err)
			}
			f.since(start, batch)
			i++
			keys += batch
			if dead == 0 && hits != (len(m.Loc) == batch) {
				b.Fatal(len(m.Loc))
			}
		}
		f.report(b)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(keys), "ns/key")
	})
}

func BenchmarkLookupHit(b *testing.B) {
	benchLookup(b, 0, func(n int) uint64 { return rand.Uint64N(uint64(n)) }, true)
}

func BenchmarkLookupHitOneTenthDeleted(b *testing.B) {
	benchLookup(b, 0.1, func(n int) uint64 { return rand.Uint64N(uint64(n)) }, true)
}

func BenchmarkLookupMiss(b *testing.B) {
	benchLookup(b, 0, func(n int) uint64 { return uint64(n) + rand.Uint64N(1<<40) }, false)
}

// BenchmarkInsert enters new keys into an index of n keys, in chunks.
func BenchmarkInsert(b *testing.B) {
	for _, chunk := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("chunk%d", chunk), func(b *testing.B) {
			forSizes(b, func(b *testing.B, class types.KeyClass, n int) {
				x := buildBench(b, class, n)
				defer x.Close()
				var bk benchKeys
				at, keys, spent := uint64(n), 0, 0.0
				var f best
				for b.Loop() {
					b.StopTimer()
					k := bk.fill(class, chunk, func(i int) uint64 { return at + uint64(i) })
					at += uint64(chunk)
					before := cpu()
					b.StartTimer()
					start := time.Now()
					seg, err := x.AddSegment(uint32(chunk))
					if err == nil {
						err = x.Add(seg, 0, k)
					}
					if err != nil {
						b.Fatal(err)
					}
					f.since(start, chunk)
					keys += chunk
					b.StopTimer()
					spent += cpu() - before
					b.StartTimer()
				}
				f.report(b)
				b.ReportMetric(spent/float64(keys), "cpu-ns/key")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(keys), "ns/key")
				b.ReportMetric(x.Stats().BytesPerEntry, "B/key")
			})
		})
	}
}

// BenchmarkUpsert replaces random rows: look up, delete, add.
func BenchmarkUpsert(b *testing.B) {
	forSizes(b, func(b *testing.B, class types.KeyClass, n int) {
		x := buildBench(b, class, n)
		defer x.Close()
		const batch = 10_000
		var bk benchKeys
		var m Matches
		dvs := map[uint32]*roaring.Bitmap{}
		keys := 0
		var f best
		var perm []uint64
		for b.Loop() {
			b.StopTimer()
			perm = perm[:0]
			seen := map[uint64]bool{}
			for len(perm) < batch {
				if r := rand.Uint64N(uint64(n)); !seen[r] {
					seen[r] = true
					perm = append(perm, r)
				}
			}
			k := bk.fill(class, batch, func(i int) uint64 { return perm[i] })
			b.StartTimer()
			start := time.Now()
			if err := x.Lookup(k, nil, &m); err != nil || len(m.Loc) != batch {
				b.Fatal(err, len(m.Loc))
			}
			spent := time.Since(start)
			b.StopTimer()
			changed := map[uint32]bool{}
			for _, l := range m.Loc {
				if !changed[l.Segment()] {
					changed[l.Segment()] = true
					if dvs[l.Segment()] == nil {
						dvs[l.Segment()] = roaring.New()
					}
					dvs[l.Segment()] = dvs[l.Segment()].Clone()
				}
				dvs[l.Segment()].Add(l.Pos())
			}
			b.StartTimer()
			start = time.Now()
			for seg := range changed {
				if err := x.SetDeleted(seg, dvs[seg]); err != nil {
					b.Fatal(err)
				}
			}
			seg, err := x.AddSegment(batch)
			if err == nil {
				err = x.Add(seg, 0, k)
			}
			if err != nil {
				b.Fatal(err)
			}
			f.since(start.Add(-spent), batch)
			keys += batch
		}
		f.report(b)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(keys), "ns/key")
		b.ReportMetric(x.Stats().BytesPerEntry, "B/key")
	})
}

// BenchmarkGoMap is the obvious alternative, for comparison on the same machine:
// it holds one row a key and neither order nor a limit.
func BenchmarkGoMap(b *testing.B) {
	for _, n := range benchSizes() {
		b.Run(fmt.Sprintf("key64/%dM", n/1_000_000), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			start := time.Now()
			m := map[uint64]uint64{}
			for i := range n {
				m[types.Mix64(uint64(i))] = uint64(i) + 1<<32
			}
			insert := float64(time.Since(start).Nanoseconds()) / float64(n)
			runtime.GC()
			runtime.ReadMemStats(&after)
			const batch = 10_000
			keys := make([]uint64, batch)
			out := make([]uint64, 0, batch)
			var f best
			for b.Loop() {
				b.StopTimer()
				for i := range keys {
					keys[i] = types.Mix64(rand.Uint64N(uint64(n)))
				}
				b.StartTimer()
				start := time.Now()
				out = out[:0]
				for _, k := range keys {
					if l, ok := m[k]; ok {
						out = append(out, l)
					}
				}
				f.since(start, batch)
			}
			require.Len(b, out, batch)
			f.report(b)
			b.ReportMetric(insert, "insert-ns/key")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/key")
		})
	}
}

// BenchmarkSweep drops a tenth of all entries.
func BenchmarkSweep(b *testing.B) {
	forSizes(b, func(b *testing.B, class types.KeyClass, n int) {
		var f best
		for b.Loop() {
			b.StopTimer()
			x := buildBench(b, class, n)
			require.NoError(b, x.segs.each(func(seg uint32, g *segment) error {
				dv := roaring.New()
				for pos := uint32(seg % 10); pos < g.rows; pos += 10 {
					dv.Add(pos)
				}
				return x.SetDeleted(seg, dv)
			}))
			b.StartTimer()
			start := time.Now()
			_, err := x.Sweep(0)
			f.since(start, n)
			require.NoError(b, err)
			b.StopTimer()
			require.NoError(b, x.Close())
			b.StartTimer()
		}
		f.report(b)
	})
}
