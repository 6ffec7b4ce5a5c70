package merger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"applier/batcher"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// simState is the sequential model of the table: the values of each key, a
// multiset as MERGE sees it, and how far the log is applied.
type simState struct {
	rows map[int32][]int64
	next []int64
	rec  bool // a position record exists
}

func (s *simState) clone(partitions int) *simState {
	c := &simState{rows: map[int32][]int64{}, next: make([]int64, partitions)}
	if s != nil {
		c.rec = s.rec
		copy(c.next, s.next)
		for k, v := range s.rows {
			c.rows[k] = slices.Clone(v)
		}
	}
	return c
}

// record applies one record as the preset says.
func (s *simState) record(a batcher.Apply, r simRecord) {
	switch {
	case a == batcher.Append:
		if !r.delete {
			s.rows[r.key] = append(s.rows[r.key], r.val)
		}
	case r.delete:
		if a == batcher.Mirror {
			delete(s.rows, r.key)
		}
	case len(s.rows[r.key]) == 0:
		s.rows[r.key] = []int64{r.val}
	case a == batcher.InsertOnly: // first wins
	default:
		for i := range s.rows[r.key] {
			s.rows[r.key][i] = r.val
		}
	}
}

// observe looks at every snapshot that appeared, reads it, and compares it with
// the model of its predecessor plus what the snapshot says it did.
func (w *world) observe() {
	ctx := context.Background()
	ids, err := paimon.ListSnapshotIDs(ctx, w.disk, w.table.Paths())
	if err != nil {
		w.fail("listing snapshots: %v", err)
		return
	}
	if err := paimon.CheckContiguous(ids); err != nil {
		w.fail("%v", err)
		return
	}
	for _, id := range ids {
		raw, err := w.disk.Get(ctx, w.table.Paths().Snapshot(id))
		if err != nil {
			w.fail("reading snapshot %d: %v", id, err)
			return
		}
		if bytes.Equal(w.bytes[id], raw) {
			continue
		}
		s, err := paimon.ParseSnapshot(raw)
		if err != nil {
			w.fail("snapshot %d: %v", id, err)
			return
		}
		ident := identify(s, raw)
		w.bytes[id] = raw
		if old, was := w.seen[id]; was {
			w.fail("snapshot %d changed from %s to %s", id, old, ident)
		}
		w.seen[id] = ident
		w.check(ctx, s, ident)
	}
}

// check derives the expected state of a new snapshot and compares.
func (w *world) check(ctx context.Context, s *paimon.Snapshot, ident string) {
	var before *simState
	if s.ID > 1 {
		before = w.expected[w.seen[s.ID-1]]
		if before == nil {
			w.fail("snapshot %d stands on an unknown snapshot", s.ID)
			return
		}
	}
	exp := before.clone(len(w.logs))
	own, _, err := RecordIn(s.Properties, "p")
	if err != nil {
		w.fail("snapshot %d: %v", s.ID, err)
		return
	}
	switch f := w.foreign[ident]; {
	case own != nil:
		w.applyRecord(s, own, exp)
	case f != nil:
		f(exp)
		w.log("snapshot %d is a peer's (%s)", s.ID, s.CommitKind)
	default:
		w.fail("snapshot %d is nobody's", s.ID)
	}
	w.expected[ident] = exp
	w.compare(ctx, s, exp)
}

// applyRecord folds the records that a snapshot of ours claims (I1–I3).
func (w *world) applyRecord(s *paimon.Snapshot, r *Record, exp *simState) {
	pos, err := r.Positions()
	if err != nil {
		w.fail("snapshot %d: %v", s.ID, err)
		return
	}
	if s.ID > 1 && r.Base != w.seen[s.ID-1] {
		w.fail("snapshot %d says it was built on %s, below it is %s", s.ID, r.Base, w.seen[s.ID-1])
	}
	if exp.rec && r.Op == "start" {
		w.fail("snapshot %d starts anew although a record exists", s.ID)
	}
	exp.rec = true
	for p, v := range pos {
		from, to := exp.next[p.Partition], v.Next
		if to < from {
			w.fail("snapshot %d moves partition %d back from %d to %d", s.ID, p.Partition, from, to)
			return
		}
		for o := from; o < to; o++ {
			exp.record(w.apply, w.logs[p.Partition][o])
		}
		exp.next[p.Partition] = to
	}
	w.log("snapshot %d is ours: seq %d epoch %d owner %s next %v", s.ID, r.Seq, r.Epoch, r.Owner, exp.next)
}

// compare reads a snapshot and checks content and metadata (I2, I4–I7).
func (w *world) compare(ctx context.Context, s *paimon.Snapshot, exp *simState) {
	st, err := w.table.State(ctx, s)
	if err != nil {
		w.fail("state of snapshot %d: %v", s.ID, err)
		return
	}
	w.checkMetadata(ctx, s, st)
	got := map[int32][]int64{}
	err = w.table.Scan(ctx, st, paimon.ScanOptions{}, func(b *types.Batch) error {
		for i := range b.Len() {
			k, v := b.Cols[0].I32[i], b.Cols[1].I64[i]
			got[k] = append(got[k], v)
			if b.Cols[2].I32[i] != int32(v%2) {
				return fmt.Errorf("row of key %d has partition value %d and value %d", k, b.Cols[2].I32[i], v)
			}
		}
		return nil
	})
	if err != nil {
		w.fail("reading snapshot %d: %v", s.ID, err)
		return
	}
	for k := range got {
		slices.Sort(got[k])
	}
	want := map[int32][]int64{}
	for k, v := range exp.rows {
		if len(v) > 0 {
			want[k] = slices.Sorted(slices.Values(v))
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal[[]int64]) {
		w.fail("snapshot %d holds %v, the model %v", s.ID, got, want)
	}
}

func (w *world) checkMetadata(ctx context.Context, s *paimon.Snapshot, st *paimon.State) {
	files, err := w.table.Files(ctx, st, nil)
	if err != nil {
		w.fail("files of snapshot %d: %v", s.ID, err)
		return
	}
	live := map[paimon.FileKey]int64{}
	var total int64
	for i := range files {
		live[paimon.KeyOf(&files[i])] = files[i].File.Rows
		total += files[i].File.Rows
		key, err := w.table.Paths().Data(&files[i])
		if err == nil {
			var info objstore.Info
			if info, err = w.disk.Stat(ctx, key); err == nil && info.Size != files[i].File.Size {
				err = errors.New("size differs")
			}
		}
		if err != nil {
			w.fail("snapshot %d names file %s: %v", s.ID, files[i].File.Name, err)
		}
	}
	if total != s.TotalRecordCount {
		w.fail("snapshot %d says %d rows, its files have %d", s.ID, s.TotalRecordCount, total)
	}
	refs, err := paimon.VectorRefs(st.Index)
	if err != nil {
		w.fail("snapshot %d: %v", s.ID, err)
	}
	for k, r := range refs {
		rows, ok := live[k]
		if !ok {
			w.fail("snapshot %d has a deletion vector for %s, which is not live", s.ID, k.Name)
			continue
		}
		m, err := w.table.ReadVector(ctx, r, rows)
		if err != nil || int64(m.GetCardinality()) > rows {
			w.fail("snapshot %d: deletion vector of %s: %v", s.ID, k.Name, err)
		}
	}
}
