package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/ingest/decode"
	"applier/itest/harness"
	"applier/merger/keyindex"
	"applier/storage/paimon"
	"applier/storage/paimon/dv"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// kernel is one part of the work, alone on one core.
type kernel struct {
	Name  string
	Value float64
	Unit  string
	What  string
}

const (
	kernelRows   = 100_000 // rows of a batch
	kernelKeys   = 10 * million
	kernelRounds = 7
)

// kernels measures K1 to K8 of the design's page on performance, and whole tables.
// Times are CPU times of one core, the median of several rounds.
func kernels(ctx context.Context, dir string, small bool) ([]kernel, error) {
	k := &kernelBench{dir: dir, rows: kernelRows, keys: kernelKeys}
	if small {
		k.rows, k.keys = kernelRows/10, kernelKeys/10
	}
	for _, f := range []func(context.Context) error{k.decode, k.dedup, k.index, k.vectors, k.encode, k.zstd, k.fsync, k.pageFault, k.tables} {
		if err := f(ctx); err != nil {
			return nil, fmt.Errorf("kernels: %w", err)
		}
	}
	return k.out, nil
}

type kernelBench struct {
	dir        string
	rows, keys int
	fields     []types.Field
	records    []decode.Record
	batch      *types.Batch // the rows of records
	out        []kernel
}

func (k *kernelBench) add(name string, v float64, unit, what string) {
	k.out = append(k.out, kernel{name, v, unit, what})
}

// rounds returns the median CPU time of f, which a first call has warmed up. f
// returns what of its own work does not count.
func rounds(f func() (off time.Duration, err error)) (time.Duration, error) {
	var ds []time.Duration
	for i := range kernelRounds + 1 {
		start := ownCPU()
		off, err := f()
		if err != nil {
			return 0, err
		}
		if i > 0 {
			ds = append(ds, ownCPU()-start-off)
		}
	}
	return percentile(ds, 50), nil
}

func perRow(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n) }

// decode is K1: change events into typed columns.
func (k *kernelBench) decode(context.Context) error {
	var err error
	if k.fields, err = mergeFields(); err != nil {
		return err
	}
	load := harness.MergeLoad{Seed: seed}
	bytes := 0
	for i := range int64(k.rows) {
		r := decode.Record{Offset: i, Key: appendKey(nil, i), Value: appendValue(nil, load.Row(i, 1), i, false)}
		bytes += len(r.Value)
		k.records = append(k.records, r)
	}
	d, err := decode.New("debezium-json", decode.Options{Fields: k.fields, Key: []int{0}})
	if err != nil {
		return err
	}
	out := change.NewBatch(k.fields, k.fields[:1])
	took, err := rounds(func() (time.Duration, error) {
		out.Reset()
		return 0, decodeAll(d, k.records, out)
	})
	if err != nil {
		return err
	}
	k.batch = types.NewBatch(k.fields)
	for c := range out.Cols {
		k.batch.Cols[c].AppendRange(out.Cols[c].Vector, 0, out.Len())
	}
	k.add("K1", perRow(took, k.rows), "ns/row", fmt.Sprintf("decode a change event of %d bytes", bytes/k.rows))
	return nil
}

func decodeAll(d decode.Decoder, records []decode.Record, out *change.Batch) error {
	for i := range records {
		if _, err := d.Decode(&records[i], out); err != nil {
			return err
		}
	}
	return nil
}

// dedup is K2: close a batch, one change a key.
func (k *kernelBench) dedup(context.Context) error {
	b, err := batcher.New(batcher.Options{Fields: k.fields, Key: []int{0}, Apply: batcher.Mirror, Limits: batcher.Limits{Rows: 1 << 30, Bytes: 1 << 40}})
	if err != nil {
		return err
	}
	p := change.Partition{Topic: topic}
	b.Reset(change.Positions{p: {}}, []change.Partition{p}, 1)
	d, err := decode.New("debezium-json", decode.Options{Fields: k.fields, Key: []int{0}})
	if err != nil {
		return err
	}
	took, err := rounds(func() (time.Duration, error) {
		start := ownCPU()
		if err := decodeAll(d, k.records, b.Changes()); err != nil {
			return 0, err
		}
		off := ownCPU() - start
		b.Recycle(b.Seal(batcher.FlushRows))
		return off, nil
	})
	k.add("K2", perRow(took, k.rows), "ns/row", "close a batch: one change a key")
	return err
}

// index is K3: lookups that find a row, that find none, and new rows.
func (k *kernelBench) index(context.Context) error {
	x, err := keyindex.New(keyindex.Options{Class: types.Key64, Dir: k.dir, ExpectedKeys: int64(k.keys)})
	if err != nil {
		return err
	}
	defer x.Close()
	start := ownCPU()
	if err := k.build(x); err != nil {
		return err
	}
	k.add("K3 build", perRow(ownCPU()-start, k.keys), "ns/key", fmt.Sprintf("build an index of %s keys", short(int64(k.keys))))
	var m keyindex.Matches
	var round uint64
	for _, c := range []struct {
		name, what string
		base       uint64
		hits       int
	}{{"K3 hit", "look a key up", 0, k.rows}, {"K3 miss", "look an unknown key up", 1 << 40, 0}} {
		took, err := rounds(func() (time.Duration, error) {
			start := ownCPU()
			round++
			keys := hashes(k.rows, func(i int) uint64 {
				return c.base + types.Mix64(uint64(i)+round<<32)%uint64(k.keys)
			})
			off := ownCPU() - start
			if err := x.Lookup(keys, nil, &m); err != nil {
				return 0, err
			}
			if len(m.Loc) != c.hits {
				return 0, fmt.Errorf("%d of %d keys found", len(m.Loc), c.hits)
			}
			return off, nil
		})
		if err != nil {
			return err
		}
		k.add(c.name, perRow(took, k.rows), "ns/key", c.what)
	}
	next := uint64(k.keys)
	took, err := rounds(func() (time.Duration, error) {
		start := ownCPU()
		keys := hashes(k.rows, func(i int) uint64 { return next + uint64(i) })
		next += uint64(k.rows)
		off := ownCPU() - start
		seg, err := x.AddSegment(uint32(k.rows))
		if err == nil {
			err = x.Add(seg, 0, keys)
		}
		return off, err
	})
	if err != nil {
		return err
	}
	k.add("K3 insert", perRow(took, k.rows), "ns/key", "add a row to the index")
	k.add("index", x.Stats().BytesPerEntry, "B/key", "size of the index")
	return nil
}

func (k *kernelBench) build(x *keyindex.Index) error {
	var segs []uint32
	for from := 0; from < k.keys; from += fileRows {
		seg, err := x.AddSegment(uint32(min(fileRows, k.keys-from)))
		if err != nil {
			return err
		}
		segs = append(segs, seg)
	}
	b, err := x.NewBuilder(int64(k.keys))
	if err != nil {
		return err
	}
	const chunk = 16 << 10
	for f, seg := range segs {
		for at := f * fileRows; at < min((f+1)*fileRows, k.keys); at += chunk {
			n := min(chunk, min((f+1)*fileRows, k.keys)-at)
			keys := hashes(n, func(i int) uint64 { return uint64(at + i) })
			if err := b.Add(seg, uint32(at-f*fileRows), keys); err != nil {
				return err
			}
		}
	}
	return b.Finish()
}

func hashes(n int, key func(i int) uint64) *types.Keys {
	keys := &types.Keys{Class: types.Key64, Hash: make([]uint64, n)}
	for i := range keys.Hash {
		keys.Hash[i] = types.Mix64(key(i))
	}
	return keys
}

// vectors is K4: join a batch's deletes with the vectors of ten files of which
// a hundredth is deleted, and write them.
func (k *kernelBench) vectors(context.Context) error {
	const files = 10
	var old [files]*roaring.Bitmap
	for f := range old {
		old[f] = roaring.New()
		for i := range uint64(fileRows / 100) {
			old[f].Add(uint32(types.Mix64(i+uint64(f)<<32) % fileRows))
		}
	}
	n := k.rows * 9 / 10
	var round uint64
	bytes := 0
	took, err := rounds(func() (time.Duration, error) {
		round++
		start := ownCPU()
		var positions [files][]uint32
		for i := range uint64(n) {
			f := i % files
			positions[f] = append(positions[f], uint32(types.Mix64(i+round<<40)%fileRows))
		}
		off := ownCPU() - start
		b := dv.NewBuilder(dv.Bits32)
		for f := range old {
			slices.Sort(positions[f])
			m := old[f].Clone()
			m.AddMany(positions[f])
			if err := b.Add(fmt.Sprintf("data-%d.parquet", f), m); err != nil {
				return 0, err
			}
		}
		data, _, _ := b.Finish()
		bytes = len(data)
		return off, nil
	})
	k.add("K4", perRow(took, n), "ns/row", fmt.Sprintf("mark a row deleted: ten vectors, %d kB together", bytes/1000))
	return err
}

// encode is K5: rows into a Parquet file.
func (k *kernelBench) encode(ctx context.Context) error {
	dir, err := os.MkdirTemp(k.dir, "kernel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := createTable(ctx, dir)
	if err != nil {
		return err
	}
	w, err := t.NewDataFileWriter(paimon.WriterSettings{KeyColumns: []int{0}, NewUUID: uuid.NewString})
	if err != nil {
		return err
	}
	partition, err := t.PartitionOf(k.batch, 0)
	if err != nil {
		return err
	}
	sel, size := all(k.rows), int64(0)
	took, err := rounds(func() (time.Duration, error) {
		files, err := w.Write(partition, k.batch, sel)
		if err == nil {
			size = files[0].Entry.File.Size
		}
		return 0, err
	})
	k.add("K5", perRow(took, k.rows), "ns/row", fmt.Sprintf("encode a row as Parquet, %.1f bytes", float64(size)/float64(k.rows)))
	return err
}

// zstd is K6: compress pages of one column of numbers and one of texts.
func (k *kernelBench) zstd(context.Context) error {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderCRC(false))
	if err != nil {
		return err
	}
	data := k.batch.Cols[2].Data
	var out []byte
	took, err := rounds(func() (time.Duration, error) {
		for from := 0; from < len(data); from += 256 << 10 {
			out = z.EncodeAll(data[from:min(from+256<<10, len(data))], out[:0])
		}
		return 0, nil
	})
	k.add("K6", float64(len(data))/1e6/took.Seconds(), "MB/s", "zstd on pages of the text column")
	return err
}

// fsync is K7: a new file of 4 KiB, synced; wall time.
func (k *kernelBench) fsync(context.Context) error {
	dir, err := os.MkdirTemp(k.dir, "kernel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var ds []time.Duration
	data := make([]byte, 4<<10)
	for i := range 200 {
		start := time.Now()
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err == nil {
			err = f.Sync()
		}
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
		ds = append(ds, time.Since(start))
	}
	k.add("K7", millis(percentile(ds, 50)), "ms", fmt.Sprintf("create, write 4 KiB, fsync: p50 (p99 %.2f ms)", millis(percentile(ds, 99))))
	return nil
}

// pageFault is K8: the first touch of a page of memory.
func (k *kernelBench) pageFault(context.Context) error {
	const size, page = 64 << 20, 4 << 10
	took, err := rounds(func() (time.Duration, error) {
		m, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			return 0, err
		}
		for i := 0; i < size; i += page {
			m[i] = 1
		}
		return 0, syscall.Munmap(m)
	})
	k.add("K8", perRow(took, size/page)/1000, "µs", "page fault of 4 KiB")
	return err
}

// floor is the CPU time of a row of a merge with these kernels, ns: 90 % of the
// rows are found and marked deleted.
func floor(ks []kernel) float64 {
	share := map[string]float64{"K1": 1, "K2": 1, "K3 hit": 0.9, "K3 miss": 0.1, "K3 insert": 1, "K4": 0.9, "K5": 1}
	sum := 0.0
	for _, k := range ks {
		sum += share[k.Name] * k.Value
	}
	return sum
}
