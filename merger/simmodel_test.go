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

// The invariants of reliability.md §3.9 and where they are checked. After every
// visible snapshot, here:
//
//	I1  the records below the positions have their effect exactly once
//	I2  a key's rows are what the last record by order left
//	I3  positions move forward along the chain; a commit begins where the table stands
//	I4  record counts: total, delta, and the sum over the live files
//	I5  a live file has at most one deletion vector, which grows or stays
//	I6  no vector of a file that is not live, no file twice
//	I7  live rows = total − deleted = before + inserted − deleted
//	I8  every file that a snapshot names is there, with its size
//	I9  ids without holes, every base link holds, time does not go back
//	I10 schemas of snapshot and files exist, and none that was replaced before the
//	    attempt looked is written
//	I11 a snapshot reads the same as long as it is retained
//
// At every operation of an instance, in siminstance_test.go:
//
//	I12 nothing is written outside of the table's folders
//	I13 what is deleted was made by the same call, and no snapshot names it
//
// At the end of a seed and of a run, in sim_test.go:
//
//	I14 goroutines and memory return to where they were
//
// At every halt, in simoperator_test.go:
//
//	I15 a halt has a code, facts, a command, and a cause
//
// Elsewhere as well: I1–I10 by `applier verify` on tables on disk; I15 for the
// manual by tidy.
// Beside them: "durable" (what was acknowledged survives a power cut), "liveness"
// (everything is applied once the faults end), and what single rules promise:
// "pause", "revoke", "carry", "read-back", "table", "partial", "operator" (a
// documented command works).

// simState is the sequential model of the table: the values of each key, a
// multiset as MERGE sees it, and how far the log is applied.
type simState struct {
	rows  map[int32][]int64
	pos   map[int32]simNext
	topic string
	rec   bool // a position record exists
	// applied: it is not that of a start only.
	applied bool
	// of the snapshot as it was read:
	total, live int64
	time        int64
	vectors     map[paimon.FileKey]uint64
}

// simNext is a position.
type simNext struct {
	Next  int64
	Epoch int32
}

func (s *simState) clone() *simState {
	c := &simState{rows: map[int32][]int64{}, pos: map[int32]simNext{}}
	if s != nil {
		*c = simState{rows: c.rows, pos: maps.Clone(s.pos), topic: s.topic, rec: s.rec, applied: s.applied, total: s.total, live: s.live, time: s.time, vectors: s.vectors}
		for k, v := range s.rows {
			c.rows[k] = slices.Clone(v)
		}
	}
	return c
}

// record applies one record as the preset says.
func (s *simState) record(a batcher.Apply, r simRecord) {
	switch {
	case r.control:
	case r.empties:
		clear(s.rows)
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
// the model of the snapshot it was built on plus what it says it did.
func (w *world) observe() {
	if !w.dirty || w.absent() || w.failure != "" {
		return
	}
	w.dirty = false
	ctx := context.Background()
	ids, err := w.ids()
	if err != nil {
		w.fail("I9", "listing snapshots: %v", err)
		return
	}
	if below, found := holeIn(ids); found {
		w.meet("hole")
		if !w.causes["rollback"] && !w.causes["clobber"] {
			w.fail("I9", "hole above snapshot %d in %v", below, ids)
		}
	}
	for n, id := range ids {
		if w.seen[id] != "" && n < len(ids)-8 {
			continue // nobody overwrites so far back
		}
		raw, err := w.disk.Get(ctx, w.paths().Snapshot(id))
		if err != nil {
			w.fail("I9", "reading snapshot %d: %v", id, err)
			return
		}
		if bytes.Equal(w.bytes[id], raw) {
			continue
		}
		s, err := paimon.ParseSnapshot(raw)
		if err != nil {
			w.fail("I9", "snapshot %d: %v", id, err)
			return
		}
		w.appeared(ctx, s, identify(s, raw), raw)
	}
	if len(ids) > 0 && w.chance(3) {
		w.readAgain(ctx, ids[w.rng.IntN(len(ids))])
	}
}

// appeared takes in a snapshot that was not there, or not this one.
func (w *world) appeared(ctx context.Context, s *paimon.Snapshot, ident string, raw []byte) {
	if old, was := w.seen[s.ID]; was {
		if w.foreign[ident] == nil && !w.undone[ident] {
			w.fail("I9", "snapshot %d changed from %s to %s", s.ID, old, ident)
		}
		w.forget(s.ID)
		if above := w.seen[s.ID+1]; above != "" && w.foreign[above] == nil {
			w.broken[above] = w.steps
		}
	}
	delete(w.undone, ident) // a rename that a power cut took back
	w.bytes[s.ID], w.seen[s.ID] = raw, ident
	w.snapshots++
	if exp := w.expected[ident]; exp != nil {
		w.compare(ctx, s, exp, exp)
		return
	}
	w.check(ctx, s, ident)
}

// readAgain reads a retained snapshot once more (I11).
func (w *world) readAgain(ctx context.Context, id int64) {
	s, err := paimon.ParseSnapshot(w.bytes[id])
	if exp := w.expected[w.seen[id]]; err == nil && exp != nil {
		w.compare(ctx, s, exp, exp)
		w.meet("an old snapshot read again")
	}
}

// check derives the expected state of a new snapshot and compares.
func (w *world) check(ctx context.Context, s *paimon.Snapshot, ident string) {
	own, _, err := RecordIn(s.Properties, "p")
	if err != nil {
		w.fail("I3", "snapshot %d: %v", s.ID, err)
		return
	}
	before := w.expected[w.seen[s.ID-1]]
	f := w.foreign[ident]
	if f == nil && own != nil {
		before = w.baseOf(s, own, ident)
	}
	if before == nil && (s.ID > 1 || w.failure != "") {
		w.fail("I9", "snapshot %d stands on an unknown snapshot", s.ID)
		return
	}
	exp := before.clone()
	switch {
	case f != nil:
		f(exp)
		w.log("snapshot %d is a peer's (%s)", s.ID, s.CommitKind)
	case own == nil:
		w.fail("I9", "snapshot %d is nobody's", s.ID)
	default:
		w.applyRecord(s, own, exp)
		w.checkSchema(s, ident)
	}
	w.expected[ident] = exp
	w.compare(ctx, s, exp, before)
	if own != nil && f == nil && own.Op == "" {
		if got := before.liveRows() + own.Inserted - own.Deleted; got != exp.live {
			w.fail("I7", "snapshot %d: %d rows before, %d inserted, %d deleted, %d now", s.ID, before.liveRows(), own.Inserted, own.Deleted, exp.live)
		}
	}
}

func (s *simState) liveRows() int64 {
	if s == nil {
		return 0
	}
	return s.live
}

// baseOf returns the state that a snapshot of ours was built on. If that is not
// what stands below it, something must have happened to that since, and nobody may
// have built on such a place who could have known (I9).
func (w *world) baseOf(s *paimon.Snapshot, r *Record, ident string) *simState {
	for id := s.ID - 1; id > 0; id-- {
		below := w.seen[id]
		if below == "" {
			break
		}
		since, broken := w.broken[below]
		if below := w.seen[id-1]; below == "" || w.expired[below] {
			broken = false // what it stood on has expired: nobody can tell
		}
		if at, known := w.looked[ident]; broken && known && since < at && r.Op != "set" && r.Op != "skip" {
			w.fail("I9", "snapshot %d is built on snapshot %d, which does not stand on its base since step %d; it was looked at in step %d", s.ID, id, since, at)
		}
		if w.foreign[below] == nil {
			break // a record of ours: below it, nothing counts
		}
	}
	if r.Base == w.seen[s.ID-1] {
		if s.ID == 1 || r.Base == "" {
			return (*simState)(nil).clone()
		}
		return w.expected[r.Base]
	}
	w.meet("broken link")
	w.log("snapshot %d was built on %s, below it is %s", s.ID, r.Base, w.seen[s.ID-1])
	if !w.undone[r.Base] {
		w.fail("I9", "snapshot %d says it was built on %s, below it is %s", s.ID, r.Base, w.seen[s.ID-1])
	}
	w.broken[ident] = w.steps
	return w.expected[r.Base]
}

// checkSchema: an attempt writes with a schema that was the newest when it looked
// (I10), and none whose options are not written.
func (w *world) checkSchema(s *paimon.Snapshot, ident string) {
	at, known := w.looked[ident]
	if !known {
		return
	}
	for _, c := range w.schemas {
		if c.step < at && c.id > s.SchemaID {
			w.fail("I10", "snapshot %d has schema %d, schema %d is there since step %d, and it was looked at in step %d", s.ID, s.SchemaID, c.id, c.step, at)
		}
		if c.id == s.SchemaID && c.off {
			w.fail("I10", "snapshot %d was written under options that are not written", s.ID)
		}
	}
}

// applyRecord folds the records that a snapshot of ours claims (I1–I3).
func (w *world) applyRecord(s *paimon.Snapshot, r *Record, exp *simState) {
	pos, err := r.Positions()
	if err != nil {
		w.fail("I3", "snapshot %d: %v", s.ID, err)
		return
	}
	if exp.rec && r.Op == "start" && (exp.applied || !w.causes["expired"]) {
		// A start that nothing was applied behind may be lost before its marks are
		// written: starting again loses and doubles nothing.
		w.fail("I3", "snapshot %d starts anew although a record exists", s.ID)
	}
	exp.applied = exp.applied || r.Op != "start"
	if w.tables > 0 && w.createdAt < w.looked[r.Txn] && r.Table != w.identity() {
		w.fail("table", "snapshot %d was meant for another table", s.ID)
	}
	id := r.Topics[simTopic].ID
	if exp.rec && r.Op == "" && id != exp.topic {
		w.fail("I3", "snapshot %d goes on in topic %s behind %s", s.ID, id, exp.topic)
	}
	exp.rec, exp.topic = true, id
	for _, p := range pos.Sorted() {
		v := pos[p]
		w.applyRange(s, r, exp, p.Partition, simNext{v.Next, v.Epoch})
	}
	w.log("snapshot %d is ours: seq %d epoch %d owner %s op %q next %v", s.ID, r.Seq, r.Epoch, r.Owner, r.Op, exp.pos)
}

// applyRange folds the records of one partition up to a position.
func (w *world) applyRange(s *paimon.Snapshot, r *Record, exp *simState, n int32, to simNext) {
	from, known := exp.pos[n]
	exp.pos[n] = to
	if r.Op == "start" || r.Op == "set" || r.Op == "skip" || !known && r.Op != "" {
		return
	}
	part := w.kafka.topics[exp.topic][n]
	if !known {
		from = simNext{0, -1}
		for from.Next < min(part.start, to.Next) { // the partition is new to the table
			from.Next++
		}
	}
	switch {
	case to.Next < from.Next:
		w.fail("I3", "snapshot %d moves partition %d back from %d to %d", s.ID, n, from.Next, to.Next)
		return
	case to.Next == from.Next:
		return
	}
	log := part.branch(to.Next, to.Epoch)
	if log == nil {
		w.fail("I1", "snapshot %d: no log of partition %d has %v", s.ID, n, to)
		return
	}
	if from.Next > 0 && from.Epoch >= 0 && log[from.Next-1].epoch != from.Epoch {
		w.fail("I1", "snapshot %d goes on at %v of partition %d on a log that was cut below", s.ID, from, n)
	}
	if rng, ok := r.Range[simTopic][fmt.Sprint(n)]; known && (!ok || rng != [2]int64{from.Next, to.Next}) {
		w.fail("I3", "snapshot %d says it applied %v of partition %d, the table was at %d", s.ID, rng, n, from.Next)
	}
	for i, rec := range log[from.Next:to.Next] {
		if w.clauses != nil && !rec.control {
			w.clauses.apply(exp, rec, from.Next+int64(i))
			continue
		}
		exp.record(w.apply, rec)
	}
}

// identity is that of the table that is there now.
func (w *world) identity() string {
	first, err := w.disk.Get(context.Background(), w.paths().Schema(0))
	if err != nil {
		return ""
	}
	return Identity(simTable, first)
}

// compare reads a snapshot and checks content and metadata (I2, I4–I8).
func (w *world) compare(ctx context.Context, s *paimon.Snapshot, exp, before *simState) {
	st, err := w.table.State(ctx, s)
	if err != nil {
		w.fail("I8", "state of snapshot %d: %v", s.ID, err)
		return
	}
	w.checkMetadata(ctx, s, st, exp, before)
	got := map[int32][]int64{}
	rows := int64(0)
	err = w.table.Scan(ctx, st, paimon.ScanOptions{}, func(b *types.Batch) error {
		rows += int64(b.Len())
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
		w.fail("I2", "reading snapshot %d: %v", s.ID, err)
		return
	}
	if rows != exp.live {
		w.fail("I7", "snapshot %d has %d rows, its metadata say %d", s.ID, rows, exp.live)
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
		w.fail("I2", "snapshot %d holds %v, the model %v", s.ID, got, want)
	}
}

// checkMetadata checks what a snapshot says about itself, and notes it in exp.
func (w *world) checkMetadata(ctx context.Context, s *paimon.Snapshot, st *paimon.State, exp, before *simState) {
	files, err := w.table.Files(ctx, st, nil)
	if err != nil {
		w.fail("I6", "files of snapshot %d: %v", s.ID, err)
		return
	}
	live := map[paimon.FileKey]int64{}
	var total int64
	var names []string
	for i := range files {
		f := &files[i]
		if _, twice := live[paimon.KeyOf(f)]; twice {
			w.fail("I6", "snapshot %d lists file %s twice", s.ID, f.File.Name)
		}
		live[paimon.KeyOf(f)] = f.File.Rows
		total += f.File.Rows
		key, err := w.paths().Data(f)
		if err == nil {
			w.named[key] = true
			names = append(names, key)
			var info objstore.Info
			if info, err = w.disk.Stat(ctx, key); err == nil && info.Size != f.File.Size {
				err = errors.New("size differs")
			}
		}
		if err != nil {
			w.fail("I8", "snapshot %d names file %s: %v", s.ID, f.File.Name, err)
		}
		if f.File.SchemaID >= int64(len(w.schemas)) {
			w.fail("I10", "file %s has schema %d", f.File.Name, f.File.SchemaID)
		}
	}
	if total != s.TotalRecordCount {
		w.fail("I4", "snapshot %d says %d rows, its files have %d", s.ID, s.TotalRecordCount, total)
	}
	if before != exp && before != nil && before.total+s.DeltaRecordCount != total {
		w.fail("I4", "snapshot %d: %d rows before, a delta of %d, %d now", s.ID, before.total, s.DeltaRecordCount, total)
	}
	if before != exp && before != nil && s.TimeMillis < before.time {
		w.fail("I9", "snapshot %d is older than the one it stands on", s.ID)
	}
	if s.SchemaID >= int64(len(w.schemas)) {
		w.fail("I10", "snapshot %d has schema %d", s.ID, s.SchemaID)
	}
	w.filesOf[w.seen[s.ID]] = names
	vectors, deleted := w.checkVectors(ctx, s, st, live, before)
	exp.total, exp.live, exp.time, exp.vectors = total, total-deleted, s.TimeMillis, vectors
}

func (w *world) checkVectors(ctx context.Context, s *paimon.Snapshot, st *paimon.State, live map[paimon.FileKey]int64, before *simState) (map[paimon.FileKey]uint64, int64) {
	refs, err := paimon.VectorRefs(st.Index)
	if err != nil {
		w.fail("I5", "snapshot %d: %v", s.ID, err)
	}
	vectors := map[paimon.FileKey]uint64{}
	deleted := int64(0)
	for k, r := range refs {
		rows, ok := live[k]
		if !ok {
			w.fail("I6", "snapshot %d has a deletion vector for %s, which is not live", s.ID, k.Name)
			continue
		}
		m, err := w.table.ReadVector(ctx, r, rows)
		if err != nil || int64(m.GetCardinality()) > rows {
			w.fail("I5", "snapshot %d: deletion vector of %s: %v", s.ID, k.Name, err)
			continue
		}
		vectors[k] = m.GetCardinality()
		deleted += int64(vectors[k])
	}
	if before == nil || s.CommitKind == paimon.CommitOverwrite && s.Operation == "" {
		return vectors, deleted // a rollback gives rows back
	}
	for k, n := range before.vectors {
		if _, ok := live[k]; ok && vectors[k] < n {
			w.fail("I5", "snapshot %d: the deletion vector of %s shrinks from %d to %d", s.ID, k.Name, n, vectors[k])
		}
	}
	return vectors, deleted
}
