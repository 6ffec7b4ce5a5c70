package merger

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"syscall"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/mutant"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// instance is one daemon: what lives in its memory is gone with a crash.
type instance struct {
	w   *world
	n   int
	mem *objstore.Mem
	a   *Applier
	b   *batcher.Batcher
	// want is what the group gives it, have what it has heard of: a zombie has more.
	want, have map[change.Partition]bool
	reading    bool
	gen        uint64
	topicID    string
	parts      []change.Partition
	passing    map[int32]int64 // ends of the old partitions that new ones wait for
	held       *batcher.Batch
	downFor    int
	deafFor    int             // steps in which it does nothing: stopped, swapped out, in a long pause
	idleStale  int             // looks in a row at a record that grows old
	lookedAt   int             // step of its last look
	tookAt     int             // step in which it took the batch in hand
	table      int             // generation of the table that it opened
	created    map[string]bool // by the step under way
	offered    string          // the attempt whose publish was under way when the table was revoked
}

// start boots the daemon on the disk as it is.
func (i *instance) start() {
	w := i.w
	i.mem = w.disk.Attach(objstore.MemOptions{Now: w.clock, Fault: i.fault})
	i.created, i.table = map[string]bool{}, w.tables
	table, err := paimon.OpenTable(context.Background(), i.mem, paimon.Write)
	if err == nil {
		err = fits(table)
	}
	if err != nil {
		i.crash("open: " + err.Error())
		return
	}
	s := Settings{
		ID: "p", Apply: w.apply, Merge: w.merge, Topics: []string{simTopic}, Instance: fmt.Sprint("i", i.n), Pin: w.pin, Marks: w.marks, VerifySample: 1,
		EncodeConcurrency: 1, CommitUserPrefix: "applier-", Log: slog.New(slog.DiscardHandler), Now: w.clock, UUID: w.uuid,
	}
	if w.apply != batcher.Append {
		s.Key = []int{0}
	}
	i.a, err = New(context.Background(), s, Deps{Name: simTable, Table: table, Source: i, Observer: simObserver{i}, Fits: fits})
	if err == nil {
		i.b, err = batcher.New(batcher.Options{Fields: table.Schema().Fields, Key: s.Key, Apply: w.apply, Limits: batcher.Limits{Rows: 1000}})
	}
	if err != nil {
		i.crash("new: " + err.Error())
		return
	}
	i.have, i.reading, i.held, i.gen, i.idleStale = nil, false, nil, 0, 0
	w.log("i%d starts", i.n)
}

// fits is what the daemon says about its configuration.
func fits(t *paimon.Table) error {
	if t.Schema().Column("v") < 0 {
		return fmt.Errorf("no column v")
	}
	return nil
}

func (i *instance) crash(why string) {
	i.w.log("i%d ends: %s", i.n, why)
	if i.a != nil {
		i.a.view.drop()
	}
	i.a, i.mem, i.held = nil, nil, nil
	i.have, i.reading = nil, false
	i.downFor = i.w.rng.IntN(10)
}

// fault decides about each primitive operation of this instance, and checks what
// it may never do.
func (i *instance) fault(op objstore.Op) objstore.Fault {
	w := i.w
	i.checkOp(op)
	if !w.faults || w.o.calm[w.steps] {
		return objstore.Fault{}
	}
	x := w.frng.IntN(4000)
	switch {
	case x < 12 && w.on("kill"):
		w.log("i%d killed at %s", i.n, op)
		w.meet("crash in " + string(op.Kind))
		return objstore.Fault{Crash: true, Applied: w.frng.IntN(2) == 0}
	case x < 24 && w.on("disk"):
		w.log("i%d: %s fails", i.n, op)
		w.meet("error in " + string(op.Kind))
		return objstore.Fault{Err: syscall.EIO, Applied: op.Kind == objstore.OpRename && x%2 == 0}
	case x < 32 && w.on("disk"):
		w.meet("no space")
		return objstore.Fault{Err: syscall.ENOSPC}
	case op.Kind == objstore.OpSync && x < 80 && w.on("disk"):
		w.log("i%d: %s fails, and lies from then on", i.n, op)
		return objstore.Fault{Err: syscall.EIO}
	case op.Kind == objstore.OpSyncDir && x < 120 && w.on("disk"):
		w.log("i%d: %s fails", i.n, op)
		return objstore.Fault{Err: syscall.EIO}
	case op.Kind == objstore.OpLink && x < 500 && w.on("publish"):
		w.log("i%d: %s applied but reported as failed", i.n, op)
		w.meet("publish applied but reported as failed")
		return objstore.Fault{Err: syscall.EIO, Applied: true}
	case op.Kind == objstore.OpLink && x < 900 && w.on("publish"):
		w.log("i%d: %s is under way, the answer is an error", i.n, op)
		return objstore.Fault{Delay: true}
	}
	return objstore.Fault{}
}

// checkOp holds the instance to what it promises about the disk (I12, I13), and
// notes what it is about to publish.
func (i *instance) checkOp(op objstore.Op) {
	w := i.w
	snapshot := op.Kind == objstore.OpLink && strings.HasPrefix(op.To, "snapshot/snapshot-")
	switch op.Kind {
	case objstore.OpCreate, objstore.OpLink, objstore.OpRename, objstore.OpRenameNew, objstore.OpMkdir:
		name := op.Path
		if op.To != "" {
			name = op.To
		}
		if !ownFolder(name) {
			w.fail("I12", "i%d: %s is outside of the table's folders", i.n, op)
		}
		i.created[name] = true
	case objstore.OpUnlink:
		w.dirty = true
		hidden := strings.Contains(op.Path, "/.")
		if !hidden && (!i.created[op.Path] || w.named[op.Path]) {
			w.fail("I13", "i%d removes %s, which this step has not made", i.n, op.Path)
		}
	}
	if !snapshot || i.a == nil {
		return
	}
	w.dirty = true
	if i.a.state.Txn != "" {
		w.looked[i.a.state.Txn] = i.lookedAt
	}
	if i.a.state.Quiet() {
		w.fail("pause", "i%d publishes while it says that it is quiet", i.n)
	}
	if b := i.a.state.Batch; b != nil && b.Op == "" && i.lookedAt <= i.tookAt {
		w.fail("look", "i%d publishes without having looked at the table since it took the batch", i.n)
	}
	if len(i.have) == 0 && i.a.state.Txn != i.offered {
		w.fail("revoke", "i%d publishes what it had not offered before it heard that the table is not its own", i.n)
	}
}

// ownFolder says where a pipeline may write below the table's root; a schema only
// to renew one whose fsync failed.
func ownFolder(path string) bool {
	for _, dir := range []string{"schema/", "snapshot", "manifest", "index", "consumer", "bucket-0", "p="} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return path == ""
}

// step lets the instance do one thing: perform the effect under way, or take
// the next batch.
func (i *instance) step() {
	w := i.w
	switch {
	case i.deafFor > 0 && w.faults:
		i.deafFor--
		return
	case i.a == nil:
		if i.downFor--; i.downFor < 0 {
			i.start()
		}
		return
	}
	defer i.ended()
	if !maps.Equal(i.want, i.have) && (w.chance(30) || !w.faults) { // it hears of the group late
		i.hear()
		return
	}
	before := i.a.state
	switch {
	case i.a.due != nil:
		i.perform()
	case i.held != nil && i.a.acceptBatches() != nil:
		b := i.held
		i.held, i.tookAt = nil, w.steps
		i.a.take(b)
	case i.held == nil && i.reading && i.a.acceptBatches() != nil && i.gather():
	case w.chance(30):
		i.a.step(Tick{})
	}
	if i.a != nil && before.Phase == PhaseIdle && before.Paused && i.a.state.Batch != nil && (i.a.state.Phase == PhaseLook || i.a.state.Phase == PhaseSync) {
		w.fail("pause", "i%d begins a batch while it is paused", i.n)
	}
}

// ended notices that the process is gone.
func (i *instance) ended() {
	switch {
	case i.a == nil:
	case i.mem.Crashed():
		i.crash("killed")
	case i.a.state.Phase == PhaseStopped && i.a.state.Reopen:
		i.crash("opened anew")
		i.downFor = 0
	case i.a.state.Phase == PhaseStopped:
		i.w.meet("drained")
		i.crash("stopped")
	}
}

func (i *instance) hear() {
	if i.a.due != nil {
		i.w.meet("rebalance in " + effectName(i.a.due))
	}
	if len(i.have) > 0 {
		i.have, i.offered = nil, ""
		if _, under := i.a.due.(Publish); under {
			i.offered = i.a.state.Txn
		}
		i.reading, i.held = false, nil
		i.a.step(Revoked{})
		return
	}
	i.have = i.want
	i.a.step(Assigned{})
}

func (i *instance) perform() {
	a, w := i.a, i.w
	eff := a.due
	name := effectName(eff)
	w.log("i%d %s %s", i.n, name, describe(w, eff))
	w.meet("step " + name)
	switch eff.(type) {
	case Wait:
		a.due = nil
		a.step(Waited{})
		return
	case Look:
		i.lookedAt = w.steps
	case Publish:
		for _, other := range w.instances {
			if other != i && other.a != nil {
				if _, both := other.a.due.(Publish); both {
					w.meet("two instances in publish")
				}
			}
		}
	}
	if x := w.frng.IntN(200); w.faults && w.on("kill") && !w.o.calm[w.steps] && x < 4 {
		if x < 2 {
			a.due = nil
			_ = a.perform(context.Background(), eff)
			w.meet("killed after " + name)
		} else {
			w.meet("killed before " + name)
		}
		i.crash("killed at the step " + name)
		return
	}
	stale := i.growsOld(eff)
	clear(i.created)
	a.advanceDue(context.Background())
	i.checkStep(eff, stale)
	if f := a.state.Phase; f == PhaseBackoff || f == PhaseHalted {
		w.log("i%d → %s retries %d halt %v", i.n, f, a.state.Retries, a.state.Halt)
	}
}

// growsOld: the idle look that is due finds a record that must be carried forward.
func (i *instance) growsOld(eff Effect) bool {
	if _, look := eff.(Look); !look || i.a.state.Batch != nil || i.a.state.Paused || i.a.state.Phase != PhaseLook {
		return false
	}
	ids, record := i.w.records()
	return record > 0 && ids[len(ids)-1]-record > int64(i.w.table.Options().SnapshotRetainMin)/2
}

// checkStep holds the steps of the loop to what each is for.
func (i *instance) checkStep(eff Effect, stale bool) {
	a, w := i.a, i.w
	if !stale || a.state.Phase != PhaseIdle {
		i.idleStale = 0
	} else if i.idleStale++; i.idleStale > 2 { // one look may go into the marks
		w.fail("carry", "i%d looked at a record that grows old, and did not carry it forward", i.n)
	}
	if b, ok := eff.(ReadBack); ok && a.state.Phase == PhaseHint {
		raw, err := w.disk.Get(context.Background(), w.table.Paths().Snapshot(b.Target))
		ids, _ := w.ids()
		if len(ids) > 0 && ids[0] > b.Target {
			return // expired
		}
		if err != nil || !strings.Contains(string(raw), b.Txn) {
			w.fail("read-back", "i%d goes on from snapshot %d, which is not its own", i.n, b.Target)
		}
	}
}

func describe(w *world, e Effect) string {
	if !w.o.trace {
		return ""
	}
	if r, ok := e.(Resume); ok {
		return (&BatchInfo{Next: r.Positions}).String()
	}
	s := fmt.Sprintf("%v", e)
	return s[:min(len(s), 120)]
}

// gather closes a batch of what the log has.
func (i *instance) gather() bool {
	i.fetch()
	if !i.reading || i.b.Empty() {
		return false
	}
	for _, p := range i.parts {
		if !i.have[p] {
			i.w.fail("partial", "i%d reads, although partition %s is not assigned to it", i.n, p)
		}
	}
	i.held = i.b.Seal(batcher.FlushRows)
	if i.held.Counts.TwoPartitions > 0 {
		i.w.meet("key in two partitions of a batch")
	}
	return true
}

// groupOffsets is where a mutant reads from: where the group's offsets say.
func (i *instance) groupOffsets(pos change.Positions) change.Positions {
	if !mutant.On(mutant.PositionsFromTable) || len(i.w.offsets) == 0 {
		return pos
	}
	return i.w.offsets
}

// simObserver counts what the loop noticed.
type simObserver struct{ i *instance }

func (o simObserver) Noticed(n Notice) { o.i.w.meet("notice " + string(n)) }
func (o simObserver) Committed(c Commit) {
	o.i.w.meet("committed " + c.Op)
	o.i.w.acked[o.i.a.state.Txn] = true
	if m := o.i.w.clauses; m != nil && c.Op == "" {
		o.i.w.meet("clauses " + m.name)
		if c.Counts.Unchanged > 0 && o.i.w.merge.SkipUnchanged {
			o.i.w.meet("unchanged under clauses")
		}
	}
	if c.Attempts > 1 && c.Op == "" {
		o.i.w.meet("planned again and committed")
	}
	if c.Counts.Truncates > 0 && c.Counts.Deleted > 0 {
		o.i.w.meet("emptied")
		if c.Attempts > 1 {
			o.i.w.meet("planned again and emptied")
		}
	}
}
func (o simObserver) TwoPartitions(int64)          {}
func (o simObserver) DeadLetter(string)            {}
func (o simObserver) Rebuilt(int64, time.Duration) { o.i.w.meet("index rebuilt") }
func (o simObserver) Stage(string, time.Duration)  {}
func (o simObserver) Halted(h *Halt) {
	if h != nil {
		o.i.w.halted(o.i, h)
	}
}
