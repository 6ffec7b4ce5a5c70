package merger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"applier/storage/objstore"
	"applier/storage/paimon"
)

// Identity names a table: its full name and its first schema file. A table that
// was dropped and created again, or copied under another name, is another one.
func Identity(name string, firstSchema []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", name)
	h.Write(firstSchema)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// look performs steps 2 and 3: latest snapshot, newest record, and everything
// that forbids going on.
func (a *Applier) look(ctx context.Context, e Look) (Event, error) {
	if halt, err := a.checkTable(ctx); halt != nil || err != nil {
		return Looked{Problem: halt}, err
	}
	w, halt, err := a.walk(ctx, e)
	if halt != nil || err != nil {
		return Looked{Problem: halt}, err
	}
	l := Looked{KnownIntact: a.intact(ctx, e.Known, w)}
	a.earliest = w.earliest
	if w.latest != nil {
		l.Latest = w.latest.ref
	}
	if w.record != nil {
		l.Record, l.RecordAt = w.record.own, w.record.ref
	}
	if l.Problem = a.judge(ctx, w); l.Problem != nil {
		return l, nil
	}
	l.Stale = a.stale(w)
	l.Marker, l.Pinned = a.marks(ctx, l.RecordAt)
	return l, nil
}

// walk finds the latest snapshot and follows the chain. A full walk lists the
// folder and refuses holes; the quick one trusts the hint and probes.
func (a *Applier) walk(ctx context.Context, e Look) (*walk, *Halt, error) {
	b, p := a.table.Bucket(), a.table.Paths()
	if !e.Full {
		latest, err := paimon.LatestSnapshotID(ctx, b, p)
		if err != nil {
			return nil, nil, err
		}
		if latest >= e.Known.ID && latest > 0 {
			earliest, err := paimon.EarliestSnapshotID(ctx, b, p)
			if err != nil {
				return nil, nil, err
			}
			return a.chain.follow(ctx, latest, earliest)
		}
	}
	ids, err := paimon.ListSnapshotIDs(ctx, b, p)
	if err != nil {
		return nil, nil, err
	}
	if err := paimon.CheckContiguous(ids); err != nil {
		return nil, &Halt{CodeHole, err.Error()}, nil
	}
	if len(ids) == 0 {
		a.chain.forget(0)
		return &walk{}, nil, nil
	}
	a.chain.forget(ids[len(ids)-1] + 1)
	return a.chain.follow(ctx, ids[len(ids)-1], ids[0])
}

// intact reports whether a snapshot seen before is still the same.
func (a *Applier) intact(ctx context.Context, known SnapRef, w *walk) bool {
	if known.ID == 0 || w.earliest > known.ID {
		return true // never seen one, or it has expired in order
	}
	l, err := a.chain.fresh(ctx, known.ID)
	if errors.Is(err, objstore.ErrNotExist) {
		return false
	}
	return err != nil || l.ref == known
}

// checkTable looks whether this is still the table we opened.
func (a *Applier) checkTable(ctx context.Context) (*Halt, error) {
	b, p := a.table.Bucket(), a.table.Paths()
	first, err := b.Get(ctx, p.Schema(0))
	if errors.Is(err, objstore.ErrNotExist) {
		return &Halt{CodeGone, fmt.Sprintf("table %s has no schema any more", a.name)}, nil
	}
	if err != nil {
		return nil, err
	}
	if id := Identity(a.name, first); id != a.identity {
		return &Halt{CodeReplaced, fmt.Sprintf("table %s has another first schema than when the pipeline started", a.name)}, nil
	}
	ids, err := paimon.ListSchemaIDs(ctx, b, p)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 || ids[len(ids)-1] == a.table.Schema().ID {
		return nil, nil
	}
	s, err := paimon.LatestSchema(ctx, b, p)
	if err != nil {
		return nil, err
	}
	if err := paimon.Refuse(s, paimon.Write); err != nil {
		return &Halt{CodeOptions, err.Error()}, nil
	}
	return &Halt{CodeSchema, fmt.Sprintf("the schema of table %s is number %d now, the pipeline started with %d; restart it to use the new one",
		a.name, s.ID, a.table.Schema().ID)}, nil
}

// judge finds what in the chain forbids going on.
func (a *Applier) judge(ctx context.Context, w *walk) *Halt {
	for _, id := range sortedKeys(w.others) {
		r := w.others[id]
		for _, t := range a.set.Topics {
			if _, shared := r.Topics[t]; shared && w.record == nil {
				return &Halt{CodeSecondGroup, fmt.Sprintf("pipeline id %q has committed records of topic %s to this table", id, t)}
			}
		}
	}
	if h := a.rolledBack(ctx, w); h != nil {
		return h
	}
	if w.record == nil {
		return nil
	}
	r := w.record.own
	switch {
	case r.Table != a.identity:
		return &Halt{CodeClone, fmt.Sprintf("the position record in snapshot %d was written for another table", w.record.ref.ID)}
	case r.Config != a.config:
		return &Halt{CodeConfig, fmt.Sprintf("the position record in snapshot %d was written under other settings: %s", w.record.ref.ID, configChange(r.Config, a.config))}
	}
	return nil
}

// rolledBack looks for the signs of a rollback that was made by adding a
// snapshot: a foreign snapshot whose index manifest is that of an older one but
// not of its predecessor. It then stands between us and a record that no longer
// describes the content.
func (a *Applier) rolledBack(ctx context.Context, w *walk) *Halt {
	for _, l := range w.foreign {
		if l.snap.CommitKind != paimon.CommitOverwrite || l.snap.IndexManifest == nil || l.ref.ID <= w.earliest+1 {
			continue
		}
		name := *l.snap.IndexManifest
		for id := l.ref.ID - 1; id >= w.earliest && id > l.ref.ID-chainMemory/2; id-- {
			older, err := a.chain.at(ctx, id)
			if err != nil {
				break
			}
			same := older.snap.IndexManifest != nil && *older.snap.IndexManifest == name
			if id == l.ref.ID-1 && same {
				break // carried on from the one before, as every append does
			}
			if same {
				return &Halt{CodeRollback, fmt.Sprintf("snapshot %d took the deletion vectors of snapshot %d back", l.ref.ID, id)}
			}
		}
	}
	return nil
}

// stale says that foreign snapshots pile up behind our record, so that expiry
// could soon remove it: carry it forward (reliability.md §1.9).
func (a *Applier) stale(w *walk) bool {
	if w.record == nil || w.latest == w.record {
		return false
	}
	o := a.table.Options()
	age := a.set.Now().UnixMilli() - w.record.snap.TimeMillis
	return w.latest.ref.ID-w.record.ref.ID > int64(o.SnapshotRetainMin)/2 || age > o.SnapshotRetainTime.Milliseconds()/3
}

// still is step 10: nobody moved the table while the attempt was made.
func (a *Applier) still(ctx context.Context, e Still) (Event, error) {
	if e.Base.ID > 0 {
		l, err := a.chain.fresh(ctx, e.Base.ID)
		if errors.Is(err, objstore.ErrNotExist) {
			return Stilled{}, nil
		}
		if err != nil {
			return nil, err
		}
		if l.ref != e.Base {
			return Stilled{}, nil
		}
	}
	_, err := a.table.Bucket().Stat(ctx, a.table.Paths().Snapshot(e.Base.ID+1))
	if errors.Is(err, objstore.ErrNotExist) {
		return Stilled{Same: a.src.Owned() || a.batchOp() != ""}, nil
	}
	return Stilled{}, err
}

// readSlot is step 12: whose snapshot stands under the name.
func (a *Applier) readSlot(ctx context.Context, e ReadSlot) Event {
	l, err := a.chain.fresh(ctx, e.Target)
	switch {
	case errors.Is(err, objstore.ErrNotExist):
		return Slot{SlotAbsent}
	case err != nil:
		a.set.Log.Warn("cannot read the snapshot whose outcome is unknown", "snapshot", e.Target, "err", err)
		return Slot{SlotUnreadable}
	case l.ref.Ident != e.Txn:
		return Slot{SlotOther}
	}
	// It is there, but the sync behind its link may have failed: only a synced
	// name is a commit that may be acknowledged.
	if err := a.table.Bucket().Sync(ctx, a.table.Paths().Snapshot(e.Target)); err != nil {
		a.set.Log.Warn("our snapshot is there, but cannot be made durable", "snapshot", e.Target, "err", err)
		return Slot{SlotUnreadable}
	}
	return Slot{SlotOurs}
}

// readBack is step 13: our snapshot is there, and so is what it stands on.
func (a *Applier) readBack(ctx context.Context, e ReadBack) (Event, error) {
	l, err := a.chain.fresh(ctx, e.Target)
	if errors.Is(err, objstore.ErrNotExist) {
		return ReadBacked{BackReplaced}, nil
	}
	if err != nil {
		return nil, err
	}
	if l.ref.Ident != e.Txn {
		return ReadBacked{BackReplaced}, nil
	}
	if e.Base.ID == 0 {
		return ReadBacked{BackSound}, nil
	}
	b, err := a.chain.fresh(ctx, e.Base.ID)
	if errors.Is(err, objstore.ErrNotExist) {
		if a.chain.missing(ctx, e.Base.ID) == nil {
			return ReadBacked{BackSound}, nil // expired in order
		}
		return ReadBacked{BackBroken}, nil
	}
	if err != nil {
		return nil, err
	}
	if b.ref != e.Base {
		return ReadBacked{BackBroken}, nil
	}
	return ReadBacked{BackSound}, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
