package compact

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

var bg = context.Background()

// modes are the kinds of tables that are compacted.
var modes = map[string]map[string]string{
	"deletion vectors":   {"deletion-vectors.enabled": "true"},
	"64-bit vectors":     {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"},
	"copy-on-write":      {},
	"tracked, vectors":   {"deletion-vectors.enabled": "true", "row-tracking.enabled": "true"},
	"tracked, rewriting": {"row-tracking.enabled": "true"},
	"buckets, vectors":   {"deletion-vectors.enabled": "true", "bucket": "2", "bucket-key": "id"},
	"buckets, rewriting": {"bucket": "2", "bucket-key": "id"},
}

// world is a table in memory with a writer beside the one under test, and what
// must be in it.
type world struct {
	t      testing.TB
	rng    *rand.Rand
	bucket *objstore.Mem
	table  *paimon.Table
	rows   map[int64]string // by id: text, and identity where the table tracks it
	next   int64
	uuids  int
	clock  int64
	wall   bool // the time is that of the bubble
}

func newWorld(t testing.TB, seed uint64, options map[string]string) *world {
	t.Helper()
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), bucket: objstore.NewMem(objstore.MemOptions{}),
		rows: map[int64]string{}, next: 1, clock: 1_700_000_000_000,
	}
	partition := []string{}
	if seed%2 == 1 {
		partition = []string{"p"}
	}
	all := map[string]string{"bucket": "-1", "deletion-vector.index-file.target-size": "100 b"}
	for k, v := range options {
		all[k] = v
	}
	fields := []types.Field{{ID: 0, Name: "id", Type: types.BigIntType()}, {ID: 1, Name: "p", Type: types.IntType()}, {ID: 2, Name: "s", Type: types.StringType()}}
	s, err := paimon.NewSchema(fields, partition, all, nil, 1)
	require.NoError(t, err)
	require.NoError(t, paimon.CreateTable(bg, w.bucket, s))
	w.table, err = paimon.OpenTable(bg, w.bucket, paimon.Write)
	require.NoError(t, err)
	return w
}

func (w *world) uuid() string {
	w.uuids++
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", w.uuids, w.uuids)
}

func (w *world) now() time.Time {
	if w.wall {
		return time.Now()
	}
	w.clock += 1000
	return time.UnixMilli(w.clock)
}

func (w *world) options(p Policy) Options {
	return Options{Policy: p, User: "compactor", NewUUID: w.uuid, Now: w.now, Log: slog.New(slog.DiscardHandler)}
}

func (w *world) state() *paimon.State {
	_, st, err := w.table.Version(bg, paimon.Version{})
	require.NoError(w.t, err)
	return st
}

func (w *world) publish(st *paimon.State, ch paimon.Changes) {
	c, err := w.table.BuildCommit(bg, st, ch, paimon.CommitInfo{UUID: w.uuid(), User: "other", Identifier: 1, TimeMillis: w.now().UnixMilli(), NewUUID: w.uuid})
	require.NoError(w.t, err)
	objects := c.Objects
	if ch.Index != nil {
		objects = append(objects, ch.Index.Objects...)
	}
	require.NoError(w.t, w.bucket.PutAll(bg, objects))
	require.NoError(w.t, w.table.Publish(bg, c))
}

func (w *world) writer() *paimon.DataFileWriter {
	x, err := w.table.NewDataFileWriter(paimon.WriterSettings{Now: w.now, NewUUID: w.uuid})
	require.NoError(w.t, err)
	return x
}

// insert commits n new rows.
func (w *world) insert(n int) {
	b := types.NewBatch(w.table.Schema().Fields)
	st := w.state()
	files, err := w.table.Files(bg, st, nil)
	require.NoError(w.t, err)
	buckets := paimon.NewBucketStates(files)
	groups := map[paimon.BucketKey][]uint32{}
	for i := range n {
		id := w.next
		w.next++
		s := fmt.Sprintf("row %d", id)
		b.AppendDatums([]types.Datum{types.IntDatum(id), types.IntDatum(id % 3 / 2), types.StringDatum(s)})
		p, err := w.table.PartitionOf(b, i)
		require.NoError(w.t, err)
		k, err := w.table.BucketOf(b, i)
		require.NoError(w.t, err)
		key := paimon.BucketKey{Partition: string(p), Bucket: k}
		groups[key] = append(groups[key], uint32(i))
		w.rows[id] = s
	}
	ch := paimon.Changes{}
	keys := []paimon.BucketKey{}
	for k := range groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b paimon.BucketKey) int {
		return slices.Compare([]byte(a.Partition+string(rune(a.Bucket))), []byte(b.Partition+string(rune(b.Bucket))))
	})
	for _, k := range keys {
		to := paimon.Target{Partition: []byte(k.Partition), Bucket: k.Bucket}
		if w.table.Buckets() > 0 {
			to, err = buckets.Target(w.table, k)
			require.NoError(w.t, err)
		}
		written, err := w.writer().WriteTo(to, b, groups[k])
		require.NoError(w.t, err)
		for _, x := range written {
			require.NoError(w.t, w.bucket.PutAll(bg, []objstore.Object{x.Object}))
			ch.Add = append(ch.Add, x.Entry)
		}
	}
	w.publish(st, ch)
}

// delete commits the deletion of about a share of the rows.
func (w *world) delete(share float64) {
	st := w.state()
	files, err := w.table.Files(bg, st, nil)
	require.NoError(w.t, err)
	refs, err := w.table.LiveVectors(st.Index)
	require.NoError(w.t, err)
	ch, vectors := paimon.Changes{}, []paimon.VectorChange{}
	for i := range files {
		e := &files[i]
		m := roaring.New()
		if ref, ok := refs[paimon.KeyOf(e)]; ok {
			m, err = w.table.ReadVector(bg, ref, e.File.Rows)
			require.NoError(w.t, err)
		}
		before := m.GetCardinality()
		require.NoError(w.t, w.table.ReadFile(bg, e, []int{0}, func(start int64, b *types.Batch) error {
			for k := range b.Len() {
				if pos := uint32(start) + uint32(k); !m.Contains(pos) && w.rng.Float64() < share {
					m.Add(pos)
					delete(w.rows, b.Cols[0].I64[k])
				}
			}
			return nil
		}))
		if m.GetCardinality() == before {
			continue
		}
		vectors = append(vectors, w.marked(&ch, e, m, before)...)
	}
	if len(vectors) > 0 {
		ch.Index, err = w.table.BuildVectors(st, vectors, func(k paimon.FileKey) (*roaring.Bitmap, error) {
			for i := range files {
				if paimon.KeyOf(&files[i]) == k {
					return w.table.ReadVector(bg, refs[k], files[i].File.Rows)
				}
			}
			return nil, fmt.Errorf("no file %s", k.Name)
		}, w.uuid)
		require.NoError(w.t, err)
	}
	if len(ch.Delete) > 0 || ch.Index != nil {
		w.publish(st, ch)
	}
}

// marked deletes the rows m of a file the way its table does.
func (w *world) marked(ch *paimon.Changes, e *manifest.Entry, m *roaring.Bitmap, before uint64) []paimon.VectorChange {
	all := int64(m.GetCardinality()) == e.File.Rows
	if !w.table.Options().DeletionVectors {
		ch.Delete = append(ch.Delete, *e)
		if !all {
			x, err := w.writer().Rewrite(bg, e, m)
			require.NoError(w.t, err)
			ch.Add = append(ch.Add, *x)
		}
		return nil
	}
	if !all {
		return []paimon.VectorChange{{File: paimon.KeyOf(e), Vector: m}}
	}
	ch.Delete = append(ch.Delete, *e)
	if before == 0 {
		return nil
	}
	return []paimon.VectorChange{{File: paimon.KeyOf(e)}}
}

// columns are what check reads: those of row tracking, too, where there are any.
func (w *world) columns() []int {
	if w.table.Options().RowTracking {
		return []int{0, 2, paimon.RowIDColumn, paimon.SequenceColumn}
	}
	return []int{0, 2}
}

// read returns the rows of the newest snapshot by id, as text.
func (w *world) read() map[int64]string {
	w.t.Helper()
	table, err := paimon.OpenTable(bg, w.bucket, paimon.Read)
	require.NoError(w.t, err)
	_, st, err := table.Version(bg, paimon.Version{})
	require.NoError(w.t, err)
	got := map[int64]string{}
	require.NoError(w.t, table.Scan(bg, st, paimon.ScanOptions{Columns: w.columns()}, func(b *types.Batch) error {
		for i := range b.Len() {
			id := b.Cols[0].I64[i]
			require.NotContains(w.t, got, id)
			got[id] = string(b.Cols[1].Bytes(i))
			if len(b.Cols) > 2 {
				got[id] += fmt.Sprintf(" %d %d", b.Cols[2].I64[i], b.Cols[3].I64[i])
			}
		}
		return nil
	}))
	return got
}

// holds fails unless the table has the model's rows; it returns their texts with
// their identity.
func (w *world) holds() map[int64]string {
	w.t.Helper()
	got := w.read()
	require.Len(w.t, got, len(w.rows))
	for id, s := range w.rows {
		require.Contains(w.t, got[id], s, "row %d", id)
	}
	return got
}
