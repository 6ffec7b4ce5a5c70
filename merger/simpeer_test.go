package merger

import (
	"context"
	"errors"
	"slices"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
)

// peerPlan is a foreign commit in its first phase: planned on a snapshot,
// published later under the rules of Paimon's Java conflict check.
type peerPlan struct {
	kind string // insert, delete, compact
	ch   paimon.Changes
	// what the conflict check compares: files that must still be live with the
	// vector they had.
	files   []manifest.Entry
	vectors map[paimon.FileKey]paimon.VectorRef
	changes []paimon.VectorChange
	objects []objstore.Object
	effect  func(*simState)
}

func (w *world) latest(ctx context.Context) (*paimon.State, error) {
	id, err := paimon.LatestSnapshotID(ctx, w.disk, w.table.Paths())
	if err != nil || id == 0 {
		return nil, err
	}
	s, err := paimon.ReadSnapshot(ctx, w.disk, w.table.Paths(), id)
	if err != nil {
		return nil, err
	}
	return w.table.State(ctx, s)
}

// peerPlans makes a plan on the latest snapshot.
func (w *world) peerPlans() {
	ctx := context.Background()
	st, err := w.latest(ctx)
	if err != nil {
		w.fail("peer: %v", err)
		return
	}
	if st == nil {
		return
	}
	files, err := w.table.Files(ctx, st, nil)
	if err != nil {
		w.fail("peer: %v", err)
		return
	}
	refs, _ := paimon.VectorRefs(st.Index)
	var p *peerPlan
	switch x := w.rng.IntN(3); {
	case x == 0 || len(files) == 0:
		p, err = w.planInsert()
	case x == 1:
		p, err = w.planDelete(ctx, files, refs)
	default:
		p, err = w.planCompact(ctx, files, refs)
	}
	if err != nil {
		w.fail("peer: %v", err)
		return
	}
	if p != nil {
		w.log("peer plans %s on snapshot %d", p.kind, st.Snapshot.ID)
		w.peers = append(w.peers, p)
	}
}

func (w *world) writerFor() *paimon.DataFileWriter {
	wr, err := w.table.NewDataFileWriter(paimon.WriterSettings{Now: w.clock, NewUUID: w.uuid})
	if err != nil {
		panic(err)
	}
	return wr
}

// writeRows makes data files of (key, value) rows, a partition at a time.
func (w *world) writeRows(p *peerPlan, rows [][2]int64) error {
	b := types.NewBatch(simFields())
	groups := map[int32][]uint32{}
	for i, r := range rows {
		b.Cols[0].AppendInt32(int32(r[0]))
		b.Cols[1].AppendInt64(r[1])
		b.Cols[2].AppendInt32(int32(r[1] % 2))
		g := int32(0)
		if w.parted {
			g = int32(r[1] % 2)
		}
		groups[g] = append(groups[g], uint32(i))
	}
	for _, g := range []int32{0, 1} {
		sel := groups[g]
		if len(sel) == 0 {
			continue
		}
		part, err := w.table.PartitionOf(b, int(sel[0]))
		if err != nil {
			return err
		}
		out, err := w.writerFor().Write(part, b, sel)
		if err != nil {
			return err
		}
		for _, f := range out {
			p.ch.Add = append(p.ch.Add, f.Entry)
			p.objects = append(p.objects, f.Object)
		}
	}
	return nil
}

func (w *world) planInsert() (*peerPlan, error) {
	p := &peerPlan{kind: "insert"}
	var rows [][2]int64
	for range 1 + w.rng.IntN(3) {
		k := int64(w.rng.IntN(w.keys)) // a key of ours: what only the peer can get wrong
		if w.chance(70) {
			k = -1 - int64(w.rng.IntN(5))
		}
		rows = append(rows, [2]int64{k, int64(w.rng.IntN(1 << 30))})
	}
	p.effect = func(s *simState) {
		for _, r := range rows {
			s.rows[int32(r[0])] = append(s.rows[int32(r[0])], r[1])
		}
	}
	return p, w.writeRows(p, rows)
}

// liveRows reads a file's live rows with their positions.
func (w *world) liveRows(ctx context.Context, e *manifest.Entry, refs map[paimon.FileKey]paimon.VectorRef) (rows [][3]int64, dead *roaring.Bitmap, err error) {
	dead = roaring.New()
	if r, ok := refs[paimon.KeyOf(e)]; ok {
		if dead, err = w.table.ReadVector(ctx, r, e.File.Rows); err != nil {
			return nil, nil, err
		}
	}
	err = w.table.ReadFile(ctx, e, []int{0, 1}, func(start int64, b *types.Batch) error {
		for i := range b.Len() {
			if pos := uint32(start) + uint32(i); !dead.Contains(pos) {
				rows = append(rows, [3]int64{int64(b.Cols[0].I32[i]), b.Cols[1].I64[i], int64(pos)})
			}
		}
		return nil
	})
	return rows, dead, err
}

func (w *world) planDelete(ctx context.Context, files []manifest.Entry, refs map[paimon.FileKey]paimon.VectorRef) (*peerPlan, error) {
	p := &peerPlan{kind: "delete", vectors: map[paimon.FileKey]paimon.VectorRef{}}
	gone := map[int64][]int64{}
	for i := range files {
		if !w.chance(50) {
			continue
		}
		rows, dead, err := w.liveRows(ctx, &files[i], refs)
		if err != nil {
			return nil, err
		}
		m := dead.Clone()
		for _, r := range rows {
			if w.chance(40) {
				m.Add(uint32(r[2]))
				gone[r[0]] = append(gone[r[0]], r[1])
			}
		}
		if m.GetCardinality() == dead.GetCardinality() {
			continue
		}
		k := paimon.KeyOf(&files[i])
		p.files = append(p.files, files[i])
		p.vectors[k] = refs[k]
		p.changes = append(p.changes, paimon.VectorChange{File: k, Vector: m})
	}
	if len(p.changes) == 0 {
		return nil, nil
	}
	p.effect = func(s *simState) {
		for k, vals := range gone {
			for _, v := range vals {
				if i := slices.Index(s.rows[int32(k)], v); i >= 0 {
					s.rows[int32(k)] = slices.Delete(s.rows[int32(k)], i, i+1)
				}
			}
		}
	}
	return p, nil
}

func (w *world) planCompact(ctx context.Context, files []manifest.Entry, refs map[paimon.FileKey]paimon.VectorRef) (*peerPlan, error) {
	p := &peerPlan{kind: "compact", vectors: map[paimon.FileKey]paimon.VectorRef{}, effect: func(*simState) {}}
	p.ch.Compact = true
	var rows [][2]int64
	for i := range files {
		if !w.chance(50) {
			continue
		}
		live, _, err := w.liveRows(ctx, &files[i], refs)
		if err != nil {
			return nil, err
		}
		for _, r := range live {
			rows = append(rows, [2]int64{r[0], r[1]})
		}
		k := paimon.KeyOf(&files[i])
		p.files = append(p.files, files[i])
		p.ch.Delete = append(p.ch.Delete, files[i])
		if r, ok := refs[k]; ok {
			p.vectors[k] = r
			p.changes = append(p.changes, paimon.VectorChange{File: k})
		}
	}
	if len(p.files) == 0 {
		return nil, nil
	}
	return p, w.writeRows(p, rows)
}

// peerPublishes commits the oldest plan if Java's conflict check lets it.
func (w *world) peerPublishes() {
	if len(w.peers) == 0 {
		return
	}
	p := w.peers[0]
	w.peers = w.peers[1:]
	ctx := context.Background()
	st, err := w.latest(ctx)
	if err != nil || st == nil {
		w.fail("peer: %v", err)
		return
	}
	if !w.stillFits(ctx, p, st) {
		w.log("peer's %s conflicts", p.kind)
		w.met["peer conflict"]++
		return
	}
	slices.SortStableFunc(p.changes, func(a, b paimon.VectorChange) int {
		if a.File.Partition < b.File.Partition {
			return -1
		} else if a.File.Partition > b.File.Partition {
			return 1
		}
		return 0
	})
	refs, _ := paimon.VectorRefs(st.Index)
	unchanged := func(k paimon.FileKey) (*roaring.Bitmap, error) { return w.table.ReadVector(ctx, refs[k], 1<<31-1) }
	if len(p.changes) > 0 {
		if p.ch.Index, err = w.table.BuildVectors(st, p.changes, unchanged, w.uuid); err != nil {
			w.fail("peer: %v", err)
			return
		}
		p.objects = append(p.objects, p.ch.Index.Objects...)
	}
	c, err := w.table.BuildCommit(ctx, st, p.ch, paimon.CommitInfo{
		UUID: w.uuid(), User: "spark", Identifier: paimon.BatchCommitIdentifier,
		Operation: paimon.OperationWrite, TimeMillis: w.now.UnixMilli(), NewUUID: w.uuid,
	})
	if err != nil {
		w.fail("peer: %v", err)
		return
	}
	if err := w.java.PutAll(ctx, append(p.objects, c.Objects...)); err != nil {
		w.fail("peer: %v", err)
		return
	}
	w.foreign[c.Snapshot.UUID] = p.effect
	if err := w.javaTable.Publish(ctx, c); errors.Is(err, objstore.ErrExist) {
		return
	} else if err != nil {
		w.fail("peer: %v", err)
		return
	}
	w.met["peer "+p.kind]++
	w.log("peer publishes %s as snapshot %d", p.kind, c.Snapshot.ID)
}

func (w *world) stillFits(ctx context.Context, p *peerPlan, st *paimon.State) bool {
	files, err := w.table.Files(ctx, st, nil)
	if err != nil {
		return false
	}
	live := map[paimon.FileKey]bool{}
	for i := range files {
		live[paimon.KeyOf(&files[i])] = true
	}
	refs, _ := paimon.VectorRefs(st.Index)
	for i := range p.files {
		k := paimon.KeyOf(&p.files[i])
		had, have := p.vectors[k], refs[k]
		if !live[k] || (had.Index == nil) != (have.Index == nil) || had.Index != nil && had.Index.Name != have.Index.Name {
			return false
		}
	}
	return true
}

// expire removes old snapshot files as Java's expiry with small retention does:
// never the newest two, never behind a consumer's mark. Data files stay: what
// counts here is which records are left.
func (w *world) expire() {
	ctx := context.Background()
	ids, err := paimon.ListSnapshotIDs(ctx, w.disk, w.table.Paths())
	if err != nil || len(ids) < 4 {
		return
	}
	end := ids[len(ids)-2]
	consumers, err := paimon.ListConsumers(ctx, w.disk, w.table.Paths())
	if err != nil {
		w.met["expiry refused: consumer unreadable"]++ // as Java does
		return
	}
	for _, c := range consumers {
		end = min(end, c.Next)
	}
	for _, id := range ids {
		if id < end {
			_ = w.disk.Delete(ctx, w.table.Paths().Snapshot(id))
			w.met["expired"]++
		}
	}
	if end > ids[0] {
		w.log("snapshots below %d expire", end)
		_ = paimon.WriteEarliestHint(ctx, w.disk, w.table.Paths(), end)
	}
}
