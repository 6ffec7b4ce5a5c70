package merger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// Operators change the table under the daemons, and resolve halts: only with what
// the texts of the codes say.

// schemaChange notes when a schema came.
type schemaChange struct {
	id   int64
	step int
	off  bool // with an option that is not written
}

// absent: the table was dropped and not restored yet.
func (w *world) absent() bool { return w.backup != nil }

func (w *world) pauseOrResume() {
	i := w.any()
	switch {
	case i.a == nil:
	case i.a.state.Paused:
		w.log("i%d is resumed", i.n)
		i.a.step(ResumeAsked{})
	default:
		w.log("i%d is paused", i.n)
		w.meet("paused in " + i.a.state.Phase.String())
		i.a.step(PauseAsked{})
	}
}

// terminate sends SIGTERM; the instance comes back later.
func (w *world) terminate() {
	i := w.any()
	if i.a == nil {
		return
	}
	w.log("i%d is asked to stop", i.n)
	w.meet("stop in " + i.a.state.Phase.String())
	i.a.step(StopAsked{})
	i.ended()
}

// rollTo removes all snapshots above one, as rollback_to does: the hint first,
// then from the newest downwards.
func (w *world) rollTo(id int64) {
	ctx := context.Background()
	ids, err := paimon.ListSnapshotIDs(ctx, w.disk, w.paths())
	if err != nil {
		w.fail("operator", "%v", err)
		return
	}
	if id > 0 {
		_ = paimon.WriteLatestHint(ctx, w.disk, w.paths(), id)
	}
	for _, above := range slices.Backward(ids) {
		if above > id {
			_ = w.disk.Delete(ctx, w.paths().Snapshot(above))
			w.forget(above)
		}
	}
	w.dirty = true
	w.lastAsLatest = min(w.lastAsLatest, id)
}

func (w *world) rollback() {
	ids, err := w.ids()
	if err != nil || len(ids) < 2 {
		return
	}
	to := ids[len(ids)-2-w.rng.IntN(min(len(ids)-1, 5))]
	w.log("rollback from %d to %d", ids[len(ids)-1], to)
	w.cause("rollback")
	for _, i := range w.instances {
		if i.a != nil && i.a.state.Phase == PhaseIdle {
			w.meet("rollback under an idle instance")
		}
	}
	w.rollTo(to)
}

// ids lists the snapshots; none of a table that is not there.
func (w *world) ids() ([]int64, error) {
	if w.absent() {
		return nil, nil
	}
	return paimon.ListSnapshotIDs(context.Background(), w.disk, w.paths())
}

// holeIn returns the snapshot below the first hole, if there is one.
func holeIn(ids []int64) (below int64, found bool) {
	for n := 1; n < len(ids); n++ {
		if ids[n] != ids[n-1]+1 {
			return ids[n-1], true
		}
	}
	return 0, false
}

// rollbackAsLatest adds a snapshot with the content of an older one: Java takes
// the difference of the live files, the older index manifest and its properties.
func (w *world) rollbackAsLatest() {
	ctx := context.Background()
	ids, err := w.ids()
	if _, torn := holeIn(ids); err != nil || len(ids) < 3 || torn {
		return
	}
	st, err := w.latest(ctx)
	if err != nil || st == nil {
		return
	}
	to := ids[len(ids)-2-w.rng.IntN(min(len(ids)-1, 5))]
	target, err := paimon.ReadSnapshot(ctx, w.disk, w.paths(), to)
	if err != nil {
		return
	}
	old, err := w.table.State(ctx, target)
	if err != nil {
		w.fail("operator", "%v", err)
		return
	}
	ch, err := w.difference(ctx, st, old)
	if err != nil {
		w.fail("operator", "%v", err)
		return
	}
	if len(ch.Add) > 0 {
		// A file that comes back stands behind its own DELETE. Merging only the
		// manifests with these two fails (ours with T-CORRUPT, Java's the same way),
		// so such a table is not for long.
		return
	}
	bare := *st
	bare.Index = nil
	c, err := w.javaTable.BuildCommit(ctx, &bare, ch, paimon.CommitInfo{
		UUID: w.uuid(), User: "spark", Identifier: paimon.BatchCommitIdentifier, Properties: target.Properties, TimeMillis: w.now.UnixMilli(), NewUUID: w.uuid,
	})
	if err != nil {
		w.fail("operator", "%v", err)
		return
	}
	c.Snapshot.IndexManifest, c.Snapshot.CommitKind = target.IndexManifest, paimon.CommitOverwrite
	if c.Bytes, err = c.Snapshot.Encode(); err != nil {
		w.fail("operator", "%v", err)
		return
	}
	content := w.expected[w.seen[to]]
	if err := w.java.PutAll(ctx, c.Objects); err != nil || content == nil {
		return
	}
	w.foreign[c.Snapshot.UUID] = func(s *simState) { *s = *content.clone() }
	own, _, err := RecordIn(target.Properties, "p")
	if err != nil || own == nil && len(ch.Add)+len(ch.Delete) == 0 && sameIndex(target, st.Snapshot) {
		// It changes nothing and names no positions: those that are there still hold.
		w.foreign[c.Snapshot.UUID] = func(*simState) {}
	}
	if err := w.javaTable.Publish(ctx, c); err != nil {
		return
	}
	w.dirty = true
	w.log("rollback to %d as snapshot %d", to, c.Snapshot.ID)
	w.lastAsLatest = c.Snapshot.ID
	w.cause("as latest")
}

// difference is what leads from one state's live files to another's.
func (w *world) difference(ctx context.Context, from, to *paimon.State) (ch paimon.Changes, err error) {
	now, err := w.table.Files(ctx, from, nil)
	if err != nil {
		return ch, err
	}
	then, err := w.table.Files(ctx, to, nil)
	if err != nil {
		return ch, err
	}
	without := func(a, b []manifest.Entry) (out []manifest.Entry) {
		have := map[paimon.FileKey]bool{}
		for i := range b {
			have[paimon.KeyOf(&b[i])] = true
		}
		for i := range a {
			if !have[paimon.KeyOf(&a[i])] {
				out = append(out, a[i])
			}
		}
		return out
	}
	ch.Add, ch.Delete = without(then, now), without(now, then)
	return ch, nil
}

// alter writes the next schema.
func (w *world) alter(what string, change func(*paimon.Schema)) {
	if w.absent() {
		return
	}
	ctx := context.Background()
	s, err := paimon.LatestSchema(ctx, w.disk, paimon.Paths{})
	if err != nil {
		w.fail("operator", "%v", err)
		return
	}
	s.ID++
	s.TimeMillis = w.now.UnixMilli()
	change(s)
	data, err := s.Encode()
	if err == nil {
		err = w.disk.PutIfAbsent(ctx, w.paths().Schema(s.ID), data)
	}
	off := s.Options["changelog-producer"] == "input"
	if err == nil && !off {
		err = w.openTables()
	}
	if err != nil {
		w.fail("operator", "ALTER TABLE: %v", err)
		return
	}
	w.schemas = append(w.schemas, schemaChange{s.ID, w.steps, off})
	w.log("ALTER TABLE: %s, schema %d", what, s.ID)
	w.cause("alter")
	for _, i := range w.instances {
		if i.a != nil && (i.a.state.Phase == PhaseWrite || i.a.state.Phase == PhaseStill || i.a.state.Phase == PhasePublish) {
			w.meet("schema change between plan and publish")
		}
	}
}

func (w *world) addColumn() {
	if len(w.table.Schema().Fields) >= 6 {
		return
	}
	w.alter("ADD COLUMN", func(s *paimon.Schema) {
		s.HighestFieldID++
		s.Fields = append(slices.Clone(s.Fields), types.Field{ID: s.HighestFieldID, Name: fmt.Sprint("x", s.HighestFieldID), Type: types.BigIntType()})
	})
}

// renameColumn renames the value's column, which the pipelines cannot follow, or
// gives it its name back.
func (w *world) renameColumn() {
	w.cause("rename")
	w.alter("RENAME COLUMN", func(s *paimon.Schema) {
		s.Fields = slices.Clone(s.Fields)
		if s.Fields[1].Name == "v" {
			s.Fields[1].Name = "w"
		} else {
			s.Fields[1].Name = "v"
		}
	})
}

func (w *world) setBadOption() {
	if w.schemas[len(w.schemas)-1].off {
		return
	}
	w.cause("options")
	w.alter("a changelog producer", func(s *paimon.Schema) { s.Options["changelog-producer"] = "input" })
}

// undo takes back what pipelines cannot live with.
func (w *world) undo() {
	if w.schemas[len(w.schemas)-1].off {
		w.alter("no changelog producer", func(s *paimon.Schema) { s.Options["changelog-producer"] = "none" })
	}
	if w.table.Schema().Fields[1].Name != "v" {
		w.renameColumn()
	}
}

func (w *world) drop() {
	if w.absent() {
		return
	}
	w.log("DROP TABLE")
	w.cause("drop")
	w.backup = w.disk.Clone()
	_ = w.disk.RemoveAll("")
}

func (w *world) restoreAll() {
	if w.absent() {
		w.log("the table is restored")
		w.disk.Restore(w.backup)
		w.backup, w.dirty = nil, true
	}
	w.undo()
}

// recreate drops the table and makes another one of its name. It is done, as the
// documentation asks for, while no publish is under way.
func (w *world) recreate() {
	if w.absent() {
		return
	}
	for _, i := range w.instances {
		if i.a != nil && i.a.state.InFlight {
			return
		}
	}
	w.observe()
	w.log("DROP TABLE, CREATE TABLE")
	w.cause("recreate")
	fresh := objstore.NewMem(objstore.MemOptions{Now: w.clock})
	if err := w.createTable(fresh); err != nil {
		w.fail("operator", "%v", err)
		return
	}
	_ = w.disk.RemoveAll("")
	w.disk.Restore(fresh)
	for _, id := range sortedIDs(w.seen) {
		w.forget(id)
	}
	w.tables++
	w.createdAt, w.dirty, w.peers, w.applied, w.lastAsLatest = w.steps, true, nil, len(w.disk.Delayed()), 0
	if err := w.openTables(); err != nil {
		w.fail("operator", "%v", err)
	}
}

// tearHint leaves something else in a hint file, as a writer that dies in the
// middle does, or one that is slow.
func (w *world) tearHint() {
	ids, err := w.ids()
	if err != nil || len(ids) == 0 {
		return
	}
	hint := []string{"", "1x", fmt.Sprint(ids[0]), fmt.Sprint(ids[max(0, len(ids)-2)]), fmt.Sprint(ids[len(ids)-1] + 3)}[w.rng.IntN(5)]
	key := []string{w.paths().LatestHint(), w.paths().EarliestHint()}[w.rng.IntN(2)]
	_ = w.disk.Replace(context.Background(), key, []byte(hint))
	w.meet("stale hint")
}

// causes says what must have happened before a code may show.
var codeCauses = map[Code][]string{
	CodeHole:       {"rollback", "clobber"},
	CodeChain:      {"rollback", "clobber"},
	CodeRollback:   {"as latest"},
	CodeOffsetLost: {"expired", "rollback", "as latest", "recreate", "power cut"},
	CodeGone:       {"drop", "recreate"},
	CodeReplaced:   {"recreate"},
	CodeSchema:     {"rename"},
	CodeOptions:    {"options"},
	CodeGap:        {"retention"},
	CodeTruncated:  {"truncated"},
	CodeRecreated:  {"recreated"},
	CodePartial:    {"partial assignment", "grown"},
	CodeTwoParts:   {"grown"},
}

// halted checks a halt: it has a code that the manual explains, says what was
// found, and has a cause (I15).
func (w *world) halted(i *instance, h *Halt) {
	w.log("i%d HALT %s", i.n, h)
	w.meet("halt " + string(h.Code))
	if info := h.Code.Info(); info.Means == "unknown code" || h.Facts == "" || info.Do == "" {
		w.fail("I15", "i%d halts with %s and does not say why: %q", i.n, h.Code, h.Facts)
	}
	switch h.Code {
	case CodeIO, CodeFull:
		if !w.faults {
			w.log("after the faults: %s", h.Facts)
		}
		return
	}
	for _, c := range codeCauses[h.Code] {
		if w.causes[c] {
			return
		}
	}
	w.fail("I15", "i%d halts without a cause: %s", i.n, h)
}

// operator resolves a halt with the command that its text names.
func (w *world) operator(i *instance) {
	if i.a == nil || i.a.state.Halt == nil {
		if i.a == nil && !w.absent() {
			w.undo()
		}
		return
	}
	code := i.a.state.Halt.Code
	if code == CodePartial {
		w.group(w.owner) // the foreign member goes
		return
	}
	if i.a.state.Phase != PhaseHalted {
		return
	}
	w.meet("operator " + string(code))
	switch code {
	case CodeGone:
		w.restoreAll()
	case CodeHole:
		w.fillHole()
	case CodeChain:
		if ids, err := w.ids(); !w.fillHole() && err == nil && len(ids) > 1 && w.chance(50) {
			w.rollTo(ids[len(ids)-2])
		}
		w.setOffsets(i, "set")
	case CodeOffsetLost, CodeRollback, CodeTruncated, CodeRecreated, CodeReplaced:
		w.setOffsets(i, "set")
	case CodeGap:
		w.setOffsets(i, "skip")
	case CodeSchema, CodeOptions:
		w.undo()
	}
	switch code {
	case CodeSchema, CodeOptions, CodeReplaced:
		i.crash("restarted by the operator")
		return
	}
	i.a.step(ResumeAsked{})
}

// fillHole rolls the table back to the last snapshot before a hole.
func (w *world) fillHole() bool {
	ids, err := w.ids()
	below, found := holeIn(ids)
	if err != nil || !found {
		return false
	}
	w.log("rollback to %d, below the hole", below)
	w.rollTo(below)
	return true
}

// setOffsets states where the table stands: known to whoever looks at its history
// and at the topic.
func (w *world) setOffsets(i *instance, op string) {
	if w.absent() {
		return
	}
	w.observe()
	// A command that never comes to an end is one that does not work.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	st, err := w.latest(ctx)
	if err != nil {
		w.fail("operator", "%v", err)
		return
	}
	exp := (*simState)(nil).clone()
	if st != nil {
		if exp = w.expected[w.seen[st.Snapshot.ID]]; exp == nil {
			return
		}
	}
	next := w.resolvePositions(exp)
	gaps := int64(0)
	for _, p := range next.Sorted() {
		if old, ok := exp.pos[p.Partition]; op == "skip" && ok {
			gaps += max(next[p].Next-old.Next, 0)
		}
	}
	s := i.a.set
	a, err := New(ctx, s, Deps{Name: simTable, Table: w.table, Source: NoSource{}, Observer: simObserver{i}})
	if err == nil {
		_, err = a.Commit(ctx, OperatorCommit{Op: op, Next: next, Topics: map[string]string{simTopic: w.kafka.id}, Cluster: "cluster", Gaps: gaps})
	}
	w.log("operator: offsets %s %s: %v", op, (&BatchInfo{Next: next}).String(), err)
	if err != nil && w.schemas[len(w.schemas)-1].off {
		return // the option must be undone first
	}
	if h := (*Halt)(nil); errors.As(err, &h) && h.Code == CodeHole {
		w.meet("a command found a hole") // which must be closed before positions can be stated
		w.fillHole()
		return
	}
	if err != nil {
		w.fail("operator", "offsets %s: %v", op, err)
	}
	w.dirty = true
	w.observe()
}
