package merger

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
)

// peerPlan is a foreign commit in its first phase: planned on a snapshot,
// published later under the rules of Paimon's Java conflict check.
type peerPlan struct {
	kind string // insert, delete, merge, compact
	ch   paimon.Changes
	// what the conflict check compares: files that must still be live with the
	// vector they had.
	files   []manifest.Entry
	vectors map[paimon.FileKey]paimon.VectorRef
	changes []paimon.VectorChange
	objects []objstore.Object
	effect  func(*simState)
	keys    []int64 // of the rows that go, in order
	built   *paimon.Commit
	base    string // identity of the snapshot that built stands on
}

// latest is the table as peers find it; nil if there is no snapshot.
func (w *world) latest(ctx context.Context) (*paimon.State, error) {
	if w.absent() {
		return nil, nil
	}
	id, err := paimon.LatestSnapshotID(ctx, w.disk, w.paths())
	if err != nil || id == 0 {
		return nil, err
	}
	s, err := paimon.ReadSnapshot(ctx, w.disk, w.paths(), id)
	if err != nil {
		return nil, err
	}
	return w.table.State(ctx, s)
}

// peerPlans makes a plan on the latest snapshot.
func (w *world) peerPlans(kind string) {
	ctx := context.Background()
	st, err := w.latest(ctx)
	if err != nil {
		w.fail("peer", "%v", err)
		return
	}
	if st == nil || w.schemas[len(w.schemas)-1].off {
		return
	}
	files, err := w.table.Files(ctx, st, nil)
	if err != nil {
		w.fail("peer", "%v", err)
		return
	}
	refs, _ := paimon.VectorRefs(st.Index)
	var p *peerPlan
	switch {
	case kind == "insert" || len(files) == 0:
		p, err = w.planInsert()
	case kind == "delete":
		p, err = w.planDelete(ctx, files, refs)
	case kind == "merge":
		p, err = w.planMerge(ctx, files, refs)
	default:
		p, err = w.planCompact(ctx, files, refs)
	}
	if err != nil {
		w.fail("peer", "%v", err)
		return
	}
	if p != nil {
		w.log("peer plans %s on snapshot %d", p.kind, st.Snapshot.ID)
		w.peers = append(w.peers, p)
	}
}

// planMerge updates rows of keys that may be ours, and inserts others, as Spark's
// MERGE does: deletion vectors and new files in one commit.
func (w *world) planMerge(ctx context.Context, files []manifest.Entry, refs map[paimon.FileKey]paimon.VectorRef) (*peerPlan, error) {
	p, err := w.planDelete(ctx, files, refs)
	if p == nil || err != nil {
		return p, err
	}
	p.kind = "merge"
	var rows [][2]int64
	for _, k := range p.keys {
		rows = append(rows, [2]int64{k, int64(w.rng.IntN(1 << 30))})
	}
	remove := p.effect
	p.effect = func(s *simState) {
		remove(s)
		for _, r := range rows {
			s.rows[int32(r[0])] = append(s.rows[int32(r[0])], r[1])
		}
	}
	return p, w.writeRows(p, rows)
}

func (w *world) writerFor() *paimon.DataFileWriter {
	wr, err := w.javaTable.NewDataFileWriter(paimon.WriterSettings{Now: w.clock, NewUUID: w.uuid})
	if err != nil {
		panic(err)
	}
	return wr
}

// writeRows makes data files of (key, value) rows, a partition at a time.
func (w *world) writeRows(p *peerPlan, rows [][2]int64) error {
	b := types.NewBatch(w.javaTable.Schema().Fields)
	groups := map[int32][]uint32{}
	for i, r := range rows {
		b.Cols[0].AppendInt32(int32(r[0]))
		b.Cols[1].AppendInt64(r[1])
		b.Cols[2].AppendInt32(int32(r[1] % 2))
		for _, v := range b.Cols[3:] {
			v.AppendNull()
		}
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
			p.objects = append(p.objects, f.Objects()...)
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
				p.keys = append(p.keys, r[0])
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
	p := w.peerBuilds()
	if p == nil {
		return
	}
	if err := w.javaTable.Publish(context.Background(), p.built); errors.Is(err, objstore.ErrExist) {
		return
	} else if err != nil {
		w.fail("peer", "%v", err)
		return
	}
	w.peerPublished(p)
}

func (w *world) peerPublished(p *peerPlan) {
	w.dirty = true
	w.meet("peer " + p.kind)
	w.log("peer publishes %s as snapshot %d", p.kind, p.built.Snapshot.ID)
	for _, i := range w.instances {
		if i.a != nil && i.a.due != nil && i.a.state.Batch != nil {
			w.meet("peer " + p.kind + " before our " + effectName(i.a.due))
		}
	}
}

// peerBuilds makes the snapshot of the oldest plan that is not built yet.
func (w *world) peerBuilds() *peerPlan {
	if len(w.peers) == 0 || w.absent() || w.schemas[len(w.schemas)-1].off {
		return nil
	}
	p := w.peers[0]
	w.peers = w.peers[1:]
	if p.built != nil {
		return nil // it is late, and gives up
	}
	ctx := context.Background()
	st, err := w.latest(ctx)
	if err != nil || st == nil {
		if err != nil {
			w.fail("peer", "%v", err)
		}
		return nil
	}
	if !w.stillFits(ctx, p, st) {
		w.log("peer's %s conflicts", p.kind)
		w.meet("peer conflict")
		return nil
	}
	if err := w.buildPeer(ctx, p, st); err != nil {
		w.fail("peer", "%v", err)
		return nil
	}
	return p
}

func (w *world) buildPeer(ctx context.Context, p *peerPlan, st *paimon.State) (err error) {
	slices.SortStableFunc(p.changes, func(a, b paimon.VectorChange) int { return strings.Compare(a.File.Partition, b.File.Partition) })
	refs, _ := paimon.VectorRefs(st.Index)
	unchanged := func(k paimon.FileKey) (*roaring.Bitmap, error) { return w.table.ReadVector(ctx, refs[k], 1<<31-1) }
	if len(p.changes) > 0 {
		if p.ch.Index, err = w.table.BuildVectors(st, p.changes, unchanged, w.uuid); err != nil {
			return err
		}
		p.objects = append(p.objects, p.ch.Index.Objects...)
	}
	p.built, err = w.javaTable.BuildCommit(ctx, st, p.ch, paimon.CommitInfo{
		UUID: w.uuid(), User: "spark", Identifier: paimon.BatchCommitIdentifier,
		Operation: paimon.OperationWrite, TimeMillis: w.now.UnixMilli(), NewUUID: w.uuid,
	})
	if err != nil {
		return err
	}
	p.base = w.seen[st.Snapshot.ID]
	w.foreign[p.built.Snapshot.UUID] = p.effect
	return w.java.PutAll(ctx, append(p.objects, p.built.Objects...))
}

// peerClobbers is a writer that checks that a name is free and then renames over
// it, with time in between, but not so much that the next snapshot is there: what is
// overwritten below ours only a full look finds.
func (w *world) peerClobbers() {
	ctx := context.Background()
	if len(w.peers) == 0 || w.peers[0].built == nil {
		if p := w.peerBuilds(); p != nil {
			w.peers = append([]*peerPlan{p}, w.peers...)
		}
		return
	}
	p := w.peers[0]
	w.peers = w.peers[1:]
	id := p.built.Snapshot.ID
	ids, err := w.ids()
	if err != nil || len(ids) == 0 || ids[len(ids)-1] < id-1 || ids[len(ids)-1] > id || w.seen[id-1] != p.base {
		return
	}
	if w.seen[id] != "" {
		w.log("the peer overwrites snapshot %d", id)
		w.cause("clobber")
	}
	if err := w.java.Replace(ctx, w.paths().Snapshot(id), p.built.Bytes); err != nil {
		w.fail("peer", "%v", err)
	}
	w.peerPublished(p)
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

// records lists the snapshots and finds the newest one with a position record.
func (w *world) records() (ids []int64, record int64) {
	ids, err := w.ids()
	if err != nil {
		return nil, 0
	}
	for _, id := range slices.Backward(ids) {
		s, err := paimon.ReadSnapshot(context.Background(), w.disk, w.paths(), id)
		if err != nil {
			return ids, 0
		}
		if own, _, err := RecordIn(s.Properties, "p"); err == nil && own != nil {
			return ids, id
		}
	}
	return ids, 0
}

// expire removes old snapshots as Java's expiry does: never the newest ones that
// the table's options keep, never behind a consumer's mark; and with them the data
// files that no snapshot names any more.
func (w *world) expire() {
	ctx := context.Background()
	ids, err := w.ids()
	keep := w.table.Options().SnapshotRetainMin
	if _, torn := holeIn(ids); err != nil || len(ids) <= keep || torn {
		return
	}
	w.observe()
	if _, record := w.records(); record < w.lastAsLatest {
		return // a rollback is recognised as long as its target is there
	}
	end := ids[len(ids)-keep]
	consumers, err := paimon.ListConsumers(ctx, w.disk, w.paths())
	if err != nil {
		w.meet("expiry refused: consumer unreadable") // as Java does
		return
	}
	for _, c := range consumers {
		end = min(end, c.Next)
	}
	gone, kept := map[string]bool{}, map[string]bool{}
	for _, id := range ids {
		files := kept
		if id < end {
			files = gone
		}
		for _, f := range w.filesOf[w.seen[id]] {
			files[f] = true
		}
	}
	for _, id := range ids {
		if id < end {
			_ = w.disk.Delete(ctx, w.paths().Snapshot(id))
			w.expired[w.seen[id]] = true
			w.meet("expired")
			w.causes["expired"] = true
		}
	}
	for _, f := range slices.Sorted(maps.Keys(gone)) {
		if !kept[f] {
			_ = w.disk.Delete(ctx, f)
		}
	}
	if end > ids[0] {
		w.log("snapshots below %d expire", end)
		_ = paimon.WriteEarliestHint(ctx, w.disk, w.paths(), end)
	}
}
