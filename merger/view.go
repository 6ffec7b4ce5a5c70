package merger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"applier/merger/keyindex"
	"applier/storage/mutant"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"
)

// dataFile is a live data file as the index knows it.
type dataFile struct {
	seg    uint32
	entry  manifest.Entry
	vector *roaring.Bitmap // nil: nothing deleted; shared with the index, never changed
	ref    paimon.VectorRef
	// removed are rows that are not in the file any more (copy-on-write tables).
	removed *removed
}

// view is the table at one snapshot: its lists, and for pipelines with a key
// its live files, their deletion vectors and the key index. It is a cache: it
// is rebuilt from the table whenever anything about it is in doubt.
type view struct {
	table *paimon.Table
	s     *Settings
	enc   *types.KeyEncoder // nil for append: then only the state is kept
	chain *chain
	// beside returns the memory that is taken beside the index from the same ceiling.
	beside func() int64
	ref    SnapRef
	state  *paimon.State
	// durable is the newest snapshot that is known to survive a power cut.
	durable SnapRef
	files   map[paimon.FileKey]*dataFile
	bySeg   map[uint32]*dataFile
	index   *keyindex.Index
	// progress of a rebuild in rows, for metrics; total 0: none under way.
	done, total atomic.Int64
	// duplicates counts foreign rows whose key the table already had.
	duplicates int64
	rebuilt    func(rows int64)
	buckets    knownBuckets
	// counted are the figures of the snapshot figuresOf.
	counted   Figures
	figuresOf SnapRef
}

// drop forgets the index; the next sync builds another one.
func (v *view) drop() {
	if v.index != nil {
		if err := v.index.Close(); err != nil {
			v.s.Log.Warn("closing the key index", "err", err)
		}
	}
	v.index, v.files, v.bySeg, v.ref, v.state = nil, nil, nil, SnapRef{}, nil
}

// at reports whether the view is that of a snapshot: ids are used again, so the
// identity must be the same.
func (v *view) at(ref SnapRef) bool {
	return v.ref == ref || mutant.On(mutant.IndexIdentity) && v.ref.ID == ref.ID
}

// stateOnly brings the lists to a snapshot, for commits without rows.
func (v *view) stateOnly(ctx context.Context, to *link) (*paimon.State, error) {
	if to == nil {
		return v.table.State(ctx, nil)
	}
	if v.state != nil && v.at(to.ref) {
		return v.state, nil
	}
	return v.table.State(ctx, to.snap)
}

// secure makes the snapshot that a commit is built on durable, with those of
// other writers below it down to the last one of ours: they may not have synced
// anything, and a commit of ours that outlives what it stands on in a power cut
// would leave a broken chain. It is done for every commit, with rows or without.
func (v *view) secure(ctx context.Context, to *link) error {
	if to == nil || v.durable == to.ref || mutant.On(mutant.SecureForeign) {
		return nil
	}
	var foreign []*link
	for l := to; !l.ours() && l.ref != v.durable && v.mayBeLost(l); {
		foreign = append(foreign, l)
		below, err := v.chain.fresh(ctx, l.ref.ID-1) // it may have expired since it was seen
		if errors.Is(err, objstore.ErrNotExist) {
			// The earliest: what expired snapshots added is in it, durable or not.
			if err := v.table.SyncLive(ctx, l.snap, v.s.Now().Add(-writeBack-anyZone).UnixMilli()); err != nil {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
		l = below
	}
	for _, l := range slices.Backward(foreign) {
		if err := v.table.SyncSnapshot(ctx, l.snap); err != nil {
			return err
		}
	}
	v.durable = to.ref
	return nil
}

// writeBack is the age from which on an operating system has long written by
// itself what was not synced.
const writeBack = 10 * time.Minute

// anyZone covers what a data file's creation time, a local wall clock read as if
// it were UTC, may be off by.
const anyZone = 26 * time.Hour

func (v *view) mayBeLost(l *link) bool {
	return l.snap.TimeMillis > v.s.Now().Add(-writeBack).UnixMilli()
}

// sync brings the view to a snapshot (nil: a table without one): by the deltas
// in between if they are all there, else from the table.
func (v *view) sync(ctx context.Context, to *link) error {
	var ref SnapRef
	if to != nil {
		ref = to.ref
	}
	if v.state != nil && v.at(ref) {
		return nil
	}
	st, err := v.stateOnly(ctx, to)
	if err != nil {
		return err
	}
	if v.enc == nil {
		v.ref, v.state = ref, st
		return nil
	}
	if v.index != nil && to != nil && v.ref.ID < ref.ID {
		steps, err := v.steps(ctx, to)
		if err != nil {
			return err
		}
		if steps != nil {
			err := v.roll(ctx, steps)
			if err == nil {
				v.ref, v.state = ref, st
				return nil
			}
			if !errors.Is(err, keyindex.ErrLost) && !errors.Is(err, objstore.ErrNotExist) {
				return err
			}
			v.s.Log.Info("the key index cannot follow the table and is built again", "snapshot", ref.ID, "why", err)
		}
	}
	if err := v.rebuild(ctx, st); err != nil {
		v.drop()
		return err
	}
	v.ref, v.state = ref, st
	return nil
}

// steps returns the snapshots after the view up to to, nil if the view's own
// snapshot is not below them any more, or one of ours does not stand on the one
// below it (an operator may have accepted such a chain).
func (v *view) steps(ctx context.Context, to *link) ([]*link, error) {
	var steps []*link
	for id := v.ref.ID + 1; id < to.ref.ID; id++ {
		l, err := v.chain.at(ctx, id)
		if err != nil {
			return nil, nil // expired or gone: build anew
		}
		steps = append(steps, l)
	}
	if v.ref.ID > 0 {
		base, err := v.chain.at(ctx, v.ref.ID)
		if err != nil || base.ref != v.ref && !mutant.On(mutant.IndexIdentity) {
			return nil, nil
		}
	}
	below := v.ref
	for _, l := range append(steps, to) {
		if l.ours() && l.own.Base != below.Ident {
			return nil, nil
		}
		below = l.ref
	}
	return append(steps, to), nil
}

// roll applies foreign snapshots one by one. An error in between leaves a view
// that is neither here nor there: it is dropped.
func (v *view) roll(ctx context.Context, steps []*link) error {
	for _, l := range steps {
		if err := v.apply(ctx, l.snap); err != nil {
			if !errors.Is(err, keyindex.ErrLost) {
				v.drop()
			}
			return fmt.Errorf("following snapshot %d: %w", l.ref.ID, err)
		}
		v.ref = l.ref
	}
	return nil
}

// apply follows one snapshot of somebody else: vectors first, then files that
// go, then files that come (the order the index asks for).
func (v *view) apply(ctx context.Context, s *paimon.Snapshot) error {
	delta, err := v.table.Delta(ctx, s)
	if err != nil {
		return err
	}
	index, err := v.table.Index(ctx, s)
	if err != nil {
		return err
	}
	refs, err := v.table.LiveVectors(index)
	if err != nil {
		return err
	}
	gone := map[paimon.FileKey]bool{}
	for i := range delta {
		if delta[i].Kind == manifest.Delete {
			gone[paimon.KeyOf(&delta[i])] = true
		}
	}
	if err := v.applyVectors(ctx, refs, gone); err != nil {
		return err
	}
	for i := range delta {
		if k := paimon.KeyOf(&delta[i]); gone[k] && v.files[k] != nil {
			if err := v.remove(k); err != nil {
				return err
			}
		}
	}
	before := v.duplicates
	var added []manifest.Entry
	for i := range delta {
		if delta[i].Kind == manifest.Add && !gone[paimon.KeyOf(&delta[i])] {
			added = append(added, delta[i])
		}
	}
	for i := range added {
		if err := v.add(ctx, &added[i], refs, s.CommitKind != paimon.CommitCompact); err != nil {
			return err
		}
	}
	if n := v.duplicates - before; n > 0 {
		v.s.Log.Warn("another writer inserted keys that the table already had; their next change updates all of their rows", "snapshot", s.ID, "rows", n)
	}
	return nil
}

// applyVectors takes over the vectors of known files that changed.
func (v *view) applyVectors(ctx context.Context, refs map[paimon.FileKey]paimon.VectorRef, gone map[paimon.FileKey]bool) error {
	for _, f := range v.sorted() {
		k := paimon.KeyOf(&f.entry)
		ref, has := refs[k]
		switch {
		case gone[k], !has && f.vector == nil, has && ref.Same(f.ref), mutant.On(mutant.FollowVectors):
		case !has:
			return fmt.Errorf("%w: data file %s lost its deletion vector", keyindex.ErrLost, k.Name)
		default:
			m, err := v.table.ReadVector(ctx, ref, f.entry.File.Rows)
			if err != nil {
				return err
			}
			if err := v.setVector(f, m, ref); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *view) setVector(f *dataFile, m *roaring.Bitmap, ref paimon.VectorRef) error {
	if err := v.index.SetDeleted(f.seg, m); err != nil {
		return err
	}
	f.vector, f.ref = m, ref
	return nil
}

// sorted returns the files in the order of their segments.
func (v *view) sorted() []*dataFile {
	out := make([]*dataFile, 0, len(v.bySeg))
	for _, f := range v.bySeg {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b *dataFile) int { return int(a.seg) - int(b.seg) })
	return out
}

func (v *view) remove(k paimon.FileKey) error {
	f := v.files[k]
	delete(v.files, k)
	delete(v.bySeg, f.seg)
	return v.index.RemoveSegment(f.seg)
}

// register makes a file known to the index, without its keys.
func (v *view) register(e *manifest.Entry) (*dataFile, error) {
	if err := v.accept(e); err != nil {
		return nil, err
	}
	seg, err := v.index.AddSegment(uint32(e.File.Rows))
	if err != nil {
		return nil, err
	}
	f := &dataFile{seg: seg, entry: *e}
	v.files[paimon.KeyOf(e)], v.bySeg[seg] = f, f
	return f, nil
}

// accept refuses files that this version cannot change.
func (v *view) accept(e *manifest.Entry) error {
	switch {
	case e.File.SchemaID > v.table.Schema().ID: // files of older ones are cast when they are read
		// The schema was changed after the look: the next one finds it.
		return fmt.Errorf("%w: data file %s was written with schema %d, newer than the pipeline's %d", errMovedOn, e.File.Name, e.File.SchemaID, v.table.Schema().ID)
	case (e.TotalBuckets > 0) != (v.table.Buckets() > 0):
		return &Halt{CodeOptions, fmt.Sprintf("data file %s is in bucket %d of %d, the table's option bucket says %d", e.File.Name, e.Bucket, e.TotalBuckets, v.table.Options().Bucket)}
	case !v.table.Options().RowTracking && (e.File.FirstRowID != nil || e.File.WriteColumns != nil):
		return &Halt{CodeOptions, fmt.Sprintf("data file %s carries row ids or only some columns", e.File.Name)}
	case e.File.Rows > 1<<31-1:
		return &Halt{CodeOptions, fmt.Sprintf("data file %s has %d rows, more than a deletion vector can name", e.File.Name, e.File.Rows)}
	}
	if err := v.table.CheckPlace(e); err != nil {
		return &Halt{CodeOptions, fmt.Sprintf("data file %s: %v", e.File.Name, err)}
	}
	if v.table.Options().RowTracking {
		if _, _, err := paimon.RowIDsFrom(&e.File); err != nil {
			return &Halt{CodeOptions, fmt.Sprintf("%v; row tracking begins with a table: roll it back to a snapshot without the file, or create another one", err)}
		}
	}
	return nil
}

// add follows a new file of somebody else.
func (v *view) add(ctx context.Context, e *manifest.Entry, refs map[paimon.FileKey]paimon.VectorRef, count bool) error {
	f, err := v.register(e)
	if err != nil {
		return err
	}
	if ref, ok := refs[paimon.KeyOf(e)]; ok {
		m, err := v.table.ReadVector(ctx, ref, e.File.Rows)
		if err != nil {
			return err
		}
		if err := v.setVector(f, m, ref); err != nil {
			return err
		}
	}
	count = count && e.File.Rows <= maxCounted
	var chunks []*types.Keys
	pos, keys := uint32(0), &types.Keys{}
	err = v.table.ReadFile(ctx, e, v.s.Key, func(_ int64, b *types.Batch) error {
		if count {
			keys = &types.Keys{}
			chunks = append(chunks, keys)
		}
		keys.Reset()
		v.enc.Append(keys, b.Cols, 0, b.Len())
		err := v.index.Add(f.seg, pos, keys)
		pos += uint32(b.Len())
		return err
	})
	if err != nil {
		return err
	}
	return v.countDuplicates(chunks)
}

// maxCounted is the size of foreign files, in rows, up to which their keys are
// compared with what was there.
const maxCounted = 1 << 20

// countDuplicates counts rows of a foreign file whose key has another live row:
// only a writer of keys that we manage makes them (reliability.md G2).
func (v *view) countDuplicates(chunks []*types.Keys) error {
	var m keyindex.Matches
	for _, k := range chunks {
		if err := v.index.Lookup(k, nil, &m); err != nil {
			return err
		}
		for j := range k.Len() {
			if len(m.Rows(j)) > 1 {
				v.duplicates++
			}
		}
	}
	return nil
}

// rebuild makes a new index from the key columns of all live files.
func (v *view) rebuild(ctx context.Context, st *paimon.State) error {
	v.drop()
	files, err := v.table.Files(ctx, st, nil)
	if err != nil {
		return err
	}
	refs, err := v.table.LiveVectors(st.Index)
	if err != nil {
		return err
	}
	rows := int64(0)
	for i := range files {
		rows += files[i].File.Rows
		if r, ok := refs[paimon.KeyOf(&files[i])]; ok && r.At.Cardinality > 0 {
			rows -= r.At.Cardinality
		}
	}
	if err := v.open(rows); err != nil {
		return err
	}
	for i := range files {
		f, err := v.register(&files[i])
		if err != nil {
			return err
		}
		ref, ok := refs[paimon.KeyOf(&files[i])]
		if !ok {
			continue
		}
		m, err := v.table.ReadVector(ctx, ref, f.entry.File.Rows)
		if err != nil {
			return err
		}
		if err := v.setVector(f, m, ref); err != nil {
			return err
		}
	}
	return v.fill(ctx, rows)
}

// open makes an empty index after asking whether it will fit.
func (v *view) open(rows int64) error {
	need, ceiling := keyindex.Estimate(v.enc.Class(), rows), int64(0)
	if v.s.IndexCeiling != nil {
		if ceiling = v.s.IndexCeiling() - v.beside(); need > ceiling {
			return &Halt{CodeMemory, fmt.Sprintf("the key index of %d rows needs %d MiB, but only %d MiB of `memory` are left for it; raise `memory` by %d MiB",
				rows, need>>20, ceiling>>20, (need-ceiling)>>20+1)}
		}
	}
	index, err := keyindex.New(keyindex.Options{Class: v.enc.Class(), Dir: v.s.StateDir, Seed: 1, ExpectedKeys: rows, MaxBytes: ceiling})
	if err != nil {
		return err
	}
	v.index, v.files, v.bySeg = index, map[paimon.FileKey]*dataFile{}, map[uint32]*dataFile{}
	return nil
}

// renew starts the index anew for a table without rows: entries of rows that are
// gone would keep their memory.
func (v *view) renew() error {
	ref, state := v.ref, v.state
	v.drop()
	if err := v.open(0); err != nil {
		return err
	}
	v.ref, v.state = ref, state
	return nil
}

// fill reads the key columns, files side by side.
func (v *view) fill(ctx context.Context, rows int64) error {
	v.done.Store(0)
	v.total.Store(max(rows, 1))
	defer v.total.Store(0)
	b, err := v.index.NewBuilder(rows)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(v.s.EncodeConcurrency, 1))
	for _, f := range v.sorted() {
		g.Go(func() error {
			pos := uint32(0)
			var keys types.Keys
			return v.table.ReadFile(ctx, &f.entry, v.s.Key, func(_ int64, batch *types.Batch) error {
				keys.Reset()
				v.enc.Append(&keys, batch.Cols, 0, batch.Len())
				err := b.Add(f.seg, pos, &keys)
				pos += uint32(batch.Len())
				v.done.Add(int64(batch.Len()))
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := b.Finish(); err != nil {
		return err
	}
	if v.rebuilt != nil {
		v.rebuilt(rows)
	}
	return nil
}

// readRows appends rows of the table by their places, ascending.
func (v *view) readRows(ctx context.Context, locs []keyindex.Loc, cols []int, out *types.Batch) error {
	var positions []uint32
	for i := 0; i < len(locs); {
		seg := locs[i].Segment()
		f := v.bySeg[seg]
		if f == nil {
			return &Halt{CodeMismatch, fmt.Sprintf("the index names a row of a data file (segment %d) that is not live", seg)}
		}
		positions = positions[:0]
		for ; i < len(locs) && locs[i].Segment() == seg; i++ {
			positions = append(positions, f.place(locs[i].Pos()))
		}
		if err := v.table.ReadRows(ctx, &f.entry, cols, positions, out); err != nil {
			return err
		}
	}
	return nil
}
