package merger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"applier/storage/mutant"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
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
	if !e.Confirm { // or else write has asked
		a.forgetStill()
		defer a.ahead(ctx, a.lookAsks(e)...)()
	}
	halt, reopen, err := a.checkTable(ctx)
	if halt != nil || reopen || err != nil {
		return Looked{Problem: halt, Reopen: reopen}, err
	}
	w, halt, err := a.walk(ctx, e)
	if err != nil {
		return nil, err
	}
	if halt != nil {
		return w.broken(halt), nil
	}
	l := Looked{KnownIntact: a.intact(ctx, e.Known, w)}
	a.earliest = w.earliest
	if w.latest != nil {
		l.Latest = w.latest.ref
	}
	if w.record != nil {
		l.Record, l.RecordAt = w.record.own, w.record.ref
	}
	if l.Problem, err = a.judge(ctx, w); l.Problem != nil || err != nil {
		return l, err
	}
	if e.Confirm && l.Latest == e.Known {
		return l, nil // the rest is for loops that rest
	}
	l.Stale = a.stale(w)
	l.Marker, l.Pinned = a.marks(ctx, l.RecordAt)
	if l.Record == nil && !l.Marker && !a.stating && a.replaced() {
		l.Problem = &Halt{CodeReplaced, fmt.Sprintf("table %s is another one than this pipeline committed to before", a.name)}
	}
	return l, nil
}

// broken is what can be said of a chain that does not hold: enough for a command
// that states where the table stands.
func (w *walk) broken(halt *Halt) Looked {
	l := Looked{Problem: halt, KnownIntact: true}
	if w == nil || w.latest == nil {
		return l
	}
	l.Latest = w.latest.ref
	if w.record != nil {
		l.Record, l.RecordAt = w.record.own, w.record.ref
	}
	return l
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
			earliest, err := a.findEarliest(ctx)
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
	a.chain.forget(0) // a full look trusts no memory
	if len(ids) == 0 {
		return &walk{}, nil, nil
	}
	return a.chain.follow(ctx, ids[len(ids)-1], ids[0])
}

// findEarliest is the earliest snapshot: most often that of the look before. The hint
// is there only once snapshots have expired, and without it their folder is listed.
func (a *Applier) findEarliest(ctx context.Context) (int64, error) {
	b, p := a.table.Bucket(), a.table.Paths()
	if same, err := paimon.IsEarliest(ctx, b, p, a.earliest); same || err != nil {
		return a.earliest, err
	}
	return paimon.EarliestSnapshotID(ctx, b, p)
}

// intact reports whether a snapshot seen before is still the same.
func (a *Applier) intact(ctx context.Context, known SnapRef, w *walk) bool {
	if known.ID == 0 || w.earliest > known.ID {
		return true // never seen one, or it has expired in order
	}
	if w.latest != nil && w.latest.ref.ID == known.ID {
		return w.latest.ref == known // read a moment ago, in this walk
	}
	l, err := a.chain.fresh(ctx, known.ID)
	if errors.Is(err, objstore.ErrNotExist) {
		return false
	}
	return err != nil || l.ref == known
}

// checkTable looks whether this is still the table we opened.
// A newer schema that the pipeline can follow is no problem: it is to be opened anew.
func (a *Applier) checkTable(ctx context.Context) (halt *Halt, reopen bool, err error) {
	if halt, err := a.sameTable(ctx); halt != nil || err != nil {
		return halt, false, err
	}
	b, p := a.table.Bucket(), a.table.Paths()
	ids, err := paimon.ListSchemaIDs(ctx, b, p)
	if err != nil {
		return nil, false, err
	}
	if len(ids) == 0 || mutant.On(mutant.SchemaCheck) {
		return nil, false, nil
	}
	if ids[len(ids)-1] == a.table.Schema().ID {
		same, err := a.sameSchema(ctx)
		if same || err != nil {
			return nil, false, err
		}
	}
	return a.newSchema(ctx)
}

// Outdated reports whether the table has a newer schema than the one this loop was
// made for, which the pipeline can follow: it is to be opened anew. What else may be
// wrong with the table, or with looking at it, is for the next batch to find. It may
// be called from any goroutine.
func (a *Applier) Outdated(ctx context.Context) bool {
	halt, reopen, err := a.checkTable(ctx)
	return halt == nil && err == nil && reopen
}

// sameSchema reports whether the schema that is known is still the one of its number.
// Numbers are given again where the schema went back and was changed anew: a branch
// became the main one, or somebody rolled the schema back.
func (a *Applier) sameSchema(ctx context.Context) (bool, error) {
	known := a.table.Schema()
	if known.ID == 0 {
		return true, nil // sameTable has compared it
	}
	raw, err := a.table.Bucket().Get(ctx, a.table.Paths().Schema(known.ID))
	if err != nil {
		return false, err
	}
	if compared := a.schema.Load(); compared != nil && bytes.Equal(raw, *compared) {
		return true, nil
	}
	s, err := paimon.ParseSchema(raw)
	if err != nil {
		return false, nil // what is wrong with it is told where it is opened
	}
	now, err := s.Encode()
	if err != nil {
		return false, err
	}
	was, err := known.Encode()
	if err != nil || !bytes.Equal(now, was) {
		return false, err
	}
	a.schema.Store(&raw)
	return true, nil
}

// newSchema asks whether the pipeline can go on with a schema that is newer than
// its own.
func (a *Applier) newSchema(ctx context.Context) (*Halt, bool, error) {
	t, err := paimon.OpenTable(ctx, a.table.Bucket(), paimon.Write)
	switch {
	case errors.Is(err, paimon.ErrRefused) && mutant.On(mutant.OptionsCheck):
		return nil, false, nil
	case errors.Is(err, paimon.ErrRefused):
		return &Halt{CodeOptions, err.Error()}, false, nil
	case err != nil:
		return nil, false, err
	}
	what := fmt.Sprintf("the schema of table %s is number %d now, the pipeline started with %d", a.name, t.Schema().ID, a.table.Schema().ID)
	if a.fits == nil {
		return &Halt{CodeSchema, what}, false, nil
	}
	if err := a.fits(t); err != nil {
		return &Halt{CodeSchema, what + ", which it cannot follow: " + err.Error()}, false, nil
	}
	return nil, true, nil
}

// sameTable looks for the first schema, which no change of a table touches.
func (a *Applier) sameTable(ctx context.Context) (*Halt, error) {
	first, err := a.table.Bucket().Get(ctx, a.table.Paths().Schema(0))
	if errors.Is(err, objstore.ErrNotExist) {
		return &Halt{CodeGone, fmt.Sprintf("table %s has no schema any more", a.name)}, nil
	}
	if err != nil {
		return nil, err
	}
	if id := Identity(a.name, first); id != a.identity && !mutant.On(mutant.TableIdentity) {
		return &Halt{CodeReplaced, fmt.Sprintf("table %s has another first schema than when the pipeline started", a.name)}, nil
	}
	return nil, nil
}

// judge finds what in the chain forbids going on.
func (a *Applier) judge(ctx context.Context, w *walk) (*Halt, error) {
	for _, id := range sortedKeys(w.others) {
		r := w.others[id]
		for _, t := range a.set.Topics {
			if _, shared := r.Topics[t]; shared && w.record == nil {
				return &Halt{CodeSecondGroup, fmt.Sprintf("pipeline id %q has committed records of topic %s to this table", id, t)}, nil
			}
		}
	}
	if h, err := a.rolledBack(ctx, w); h != nil || err != nil {
		return h, err
	}
	if w.record == nil {
		return nil, nil
	}
	r := w.record.own
	switch {
	case r.Table != a.identity:
		return &Halt{CodeClone, fmt.Sprintf("the position record in snapshot %d was written for another table", w.record.ref.ID)}, nil
	case r.Config != a.config:
		return &Halt{CodeConfig, fmt.Sprintf("the position record in snapshot %d was written under other settings: %s", w.record.ref.ID, configChange(r.Config, a.config))}, nil
	}
	return nil, nil
}

// rolledBack looks for a rollback that was made by adding a snapshot: it then
// stands between us and a record that no longer describes the content. Its signs
// are an index manifest that is that of an older snapshot and not of the
// predecessor, or exactly the content of a snapshot below our newest record.
func (a *Applier) rolledBack(ctx context.Context, w *walk) (*Halt, error) {
	if mutant.On(mutant.RollbackSign) {
		return nil, nil
	}
	for _, l := range w.foreign {
		if l.snap.CommitKind != paimon.CommitOverwrite || l.ref.ID <= w.earliest+1 {
			continue
		}
		if h := a.tookVectorsBack(ctx, w, l); h != nil {
			return h, nil
		}
		if w.record == nil || l.snap.Operation != "" { // Java names every operation but this one
			continue
		}
		id, err := a.restores(ctx, w, l)
		if err != nil {
			return nil, fmt.Errorf("looking for the snapshot that snapshot %d may go back to: %w", l.ref.ID, err)
		}
		if id > 0 {
			return &Halt{CodeRollback, fmt.Sprintf("snapshot %d has exactly the content of snapshot %d, below the newest position record in snapshot %d",
				l.ref.ID, id, w.record.ref.ID)}, nil
		}
	}
	return nil, nil
}

// tookVectorsBack compares the index manifest of l with those of older snapshots.
func (a *Applier) tookVectorsBack(ctx context.Context, w *walk, l *link) *Halt {
	for id := l.ref.ID - 1; l.snap.IndexManifest != nil && id >= w.earliest && id > l.ref.ID-chainMemory/2; id-- {
		older, err := a.chain.at(ctx, id)
		if err != nil {
			break
		}
		same := sameIndex(older.snap, l.snap)
		if id == l.ref.ID-1 && same {
			break // carried on from the one before, as every append does
		}
		if same {
			return &Halt{CodeRollback, fmt.Sprintf("snapshot %d took the deletion vectors of snapshot %d back", l.ref.ID, id)}
		}
	}
	return nil
}

// restores returns the snapshot below our newest record whose live files and
// deletion vectors are those of l, 0 if there is none: the changes in between,
// taken together, are none.
func (a *Applier) restores(ctx context.Context, w *walk, l *link) (int64, error) {
	if l.restores != nil {
		return *l.restores, nil
	}
	found := int64(0)
	net := map[paimon.FileKey]int{}
	for s := l; found == 0 && s.ref.ID > w.earliest && s.ref.ID > l.ref.ID-chainMemory/2; {
		delta, err := a.table.Delta(ctx, s.snap)
		if errors.Is(err, objstore.ErrNotExist) {
			break // expired
		}
		if err != nil {
			return 0, err
		}
		for i := range delta {
			k := paimon.KeyOf(&delta[i])
			if delta[i].Kind == manifest.Add {
				net[k]++
			} else {
				net[k]--
			}
			if net[k] == 0 {
				delete(net, k)
			}
		}
		below, err := a.chain.at(ctx, s.ref.ID-1)
		if err != nil {
			break
		}
		if len(net) == 0 && sameIndex(below.snap, l.snap) {
			if s == l {
				break // it changed nothing
			}
			if below.ref.ID < w.record.ref.ID {
				found = below.ref.ID
			}
		}
		s = below
	}
	l.restores = &found
	return found, nil
}

// sameIndex reports whether two snapshots have the same deletion vectors.
func sameIndex(a, b *paimon.Snapshot) bool {
	if a.IndexManifest == nil || b.IndexManifest == nil {
		return a.IndexManifest == b.IndexManifest
	}
	return *a.IndexManifest == *b.IndexManifest
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
	same, err := a.standsOn(ctx, e.Base)
	if err != nil || !same {
		return Stilled{}, err
	}
	_, err = a.table.Bucket().Stat(ctx, a.table.Paths().Snapshot(e.Base.ID+1))
	if errors.Is(err, objstore.ErrNotExist) {
		return Stilled{Same: a.src.Owned() || a.batchOp() != "" || mutant.On(mutant.DropOnRevoke)}, nil
	}
	return Stilled{}, err
}

// standsOn reports whether the base of an attempt is there unchanged; without one,
// whether this is the table that was looked at.
func (a *Applier) standsOn(ctx context.Context, base SnapRef) (bool, error) {
	if base.ID == 0 {
		halt, reopen, err := a.checkTable(ctx)
		return halt == nil && !reopen, err
	}
	l, err := a.chain.fresh(ctx, base.ID)
	if errors.Is(err, objstore.ErrNotExist) {
		return false, nil
	}
	return err == nil && l.ref == base, err
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
	if mutant.On(mutant.SyncFound) {
		return Slot{SlotOurs}
	}
	if err := a.table.Bucket().Sync(ctx, a.table.Paths().Snapshot(e.Target)); err != nil {
		a.set.Log.Warn("our snapshot is there, but cannot be made durable", "snapshot", e.Target, "err", err)
		return Slot{SlotUnreadable}
	}
	return Slot{SlotOurs}
}

// readBack is step 13: our snapshot is there, and so is what it stands on.
func (a *Applier) readBack(ctx context.Context, e ReadBack) (Event, error) {
	if mutant.On(mutant.ReadBack) {
		return ReadBacked{BackSound}, nil
	}
	defer a.askReadBack(ctx, e)()
	l, err := a.chain.fresh(ctx, e.Target)
	if errors.Is(err, objstore.ErrNotExist) {
		expired, err := a.expired(ctx, e.Target)
		if expired || err != nil {
			return ReadBacked{BackSound}, err
		}
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

// expired reports whether only later snapshots than id are left: it went as all
// old ones do, and what it did is in those.
func (a *Applier) expired(ctx context.Context, id int64) (bool, error) {
	ids, err := paimon.ListSnapshotIDs(ctx, a.table.Bucket(), a.table.Paths())
	if errors.Is(err, objstore.ErrNotExist) {
		return false, nil // the table is gone, which the next look says
	}
	return err == nil && len(ids) > 0 && ids[0] > id, err
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
