package app

import (
	"context"
	"time"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// peer is another writer of the pipeline's table, such as Spark.
type peer struct {
	w     *world
	table *paimon.Table
	user  string
}

func (w *world) peer(table *paimon.Table) *peer { return &peer{w, table, "spark"} }

// latest returns the newest snapshot's state.
func (p *peer) latest(ctx context.Context) *paimon.State {
	t := p.w.t
	id, err := paimon.LatestSnapshotID(ctx, p.table.Bucket(), p.table.Paths())
	require.NoError(t, err)
	s, err := paimon.ReadSnapshot(ctx, p.table.Bucket(), p.table.Paths(), id)
	require.NoError(t, err)
	st, err := p.table.State(ctx, s)
	require.NoError(t, err)
	return st
}

// files writes rows into new data files.
func (p *peer) files(rows [][]types.Datum) (added paimon.Changes, objects []objstore.Object) {
	t := p.w.t
	b := types.NewBatch(p.table.Schema().Fields)
	var sel []uint32
	for i, row := range rows {
		b.AppendDatums(row)
		sel = append(sel, uint32(i))
	}
	if len(rows) == 0 {
		return
	}
	part, err := p.table.PartitionOf(b, 0)
	require.NoError(t, err)
	wr, err := p.table.NewDataFileWriter(paimon.WriterSettings{Now: time.Now, NewUUID: uuid.NewString})
	require.NoError(t, err)
	out, err := wr.Write(part, b, sel)
	require.NoError(t, err)
	for _, f := range out {
		added.Add = append(added.Add, f.Entry)
		objects = append(objects, f.Objects()...)
	}
	return added, objects
}

// commit publishes changes on the latest snapshot.
func (p *peer) commit(ch paimon.Changes, objects []objstore.Object, op paimon.Operation) {
	t, ctx := p.w.t, testContext(p.w.t)
	if ch.Index != nil {
		objects = append(objects, ch.Index.Objects...)
	}
	c, err := p.table.BuildCommit(ctx, p.latest(ctx), ch, paimon.CommitInfo{
		UUID: uuid.NewString(), User: p.user, Identifier: paimon.BatchCommitIdentifier, Operation: op,
		TimeMillis: time.Now().UnixMilli(), NewUUID: uuid.NewString,
	})
	require.NoError(t, err)
	require.NoError(t, p.table.Bucket().PutAll(ctx, append(objects, c.Objects...)))
	require.NoError(t, p.table.Publish(ctx, c))
}

// insert adds rows.
func (p *peer) insert(rows ...[]types.Datum) {
	ch, objects := p.files(rows)
	p.commit(ch, objects, paimon.OperationWrite)
}

// live returns the live rows of all files with their places.
func (p *peer) live(st *paimon.State, fn func(f paimon.FileKey, pos uint32, row []types.Datum)) map[paimon.FileKey]*roaring.Bitmap {
	t, ctx := p.w.t, testContext(p.w.t)
	files, err := p.table.Files(ctx, st, nil)
	require.NoError(t, err)
	refs, err := paimon.VectorRefs(st.Index)
	require.NoError(t, err)
	cols := make([]int, len(p.table.Schema().Fields))
	for i := range cols {
		cols[i] = i
	}
	dead := map[paimon.FileKey]*roaring.Bitmap{}
	for i := range files {
		k := paimon.KeyOf(&files[i])
		dead[k] = roaring.New()
		if ref, ok := refs[k]; ok {
			dead[k], err = p.table.ReadVector(ctx, ref, files[i].File.Rows)
			require.NoError(t, err)
		}
		require.NoError(t, p.table.ReadFile(ctx, &files[i], cols, func(start int64, b *types.Batch) error {
			for r := range b.Len() {
				if pos := uint32(start) + uint32(r); !dead[k].Contains(pos) {
					fn(k, pos, b.Row(r))
				}
			}
			return nil
		}))
	}
	return dead
}

// remove deletes the rows of which match says so, with deletion vectors.
func (p *peer) remove(match func(row []types.Datum) bool) {
	t, ctx := p.w.t, testContext(p.w.t)
	st := p.latest(ctx)
	more := map[paimon.FileKey][]uint32{}
	dead := p.live(st, func(f paimon.FileKey, pos uint32, row []types.Datum) {
		if match(row) {
			more[f] = append(more[f], pos)
		}
	})
	var changes []paimon.VectorChange
	for f, pos := range more {
		v := dead[f].Clone()
		v.AddMany(pos)
		changes = append(changes, paimon.VectorChange{File: f, Vector: v})
	}
	require.NotEmpty(t, changes)
	index, err := p.table.BuildVectors(st, changes, func(k paimon.FileKey) (*roaring.Bitmap, error) { return dead[k], nil }, uuid.NewString)
	require.NoError(t, err)
	p.commit(paimon.Changes{Index: index}, nil, paimon.OperationDelete)
}

// compact rewrites all live rows into one file.
func (p *peer) compact() {
	t, ctx := p.w.t, testContext(p.w.t)
	st := p.latest(ctx)
	var rows [][]types.Datum
	p.live(st, func(_ paimon.FileKey, _ uint32, row []types.Datum) {
		for i := range row {
			row[i].B = append([]byte(nil), row[i].B...)
		}
		rows = append(rows, row)
	})
	ch, objects := p.files(rows)
	files, err := p.table.Files(ctx, st, nil)
	require.NoError(t, err)
	refs, err := paimon.VectorRefs(st.Index)
	require.NoError(t, err)
	var changes []paimon.VectorChange
	for i := range files {
		ch.Delete = append(ch.Delete, files[i])
		if _, ok := refs[paimon.KeyOf(&files[i])]; ok {
			changes = append(changes, paimon.VectorChange{File: paimon.KeyOf(&files[i])})
		}
	}
	if len(changes) > 0 {
		ch.Index, err = p.table.BuildVectors(st, changes, func(paimon.FileKey) (*roaring.Bitmap, error) { return nil, nil }, uuid.NewString)
		require.NoError(t, err)
	}
	ch.Compact = true
	p.commit(ch, objects, "")
}
