package merger

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// The simulation runs the product's own commit loop, planner, index and table
// code in a seeded world: one thread, a disk in memory with fsync semantics, a
// Kafka that is two slices, peers that commit in two phases. Every decision is
// drawn from one seed, so a seed is a run.

// simRecord is one record of the simulated topic.
type simRecord struct {
	key    int32
	val    int64
	delete bool
}

const (
	simTopic = "t"
	simTable = "db.t"
)

// world is everything around the instances.
type world struct {
	seed      uint64
	rng       *rand.Rand
	marks     *objstore.Mem // the instances' state folders, on one disk
	disk      *objstore.Mem // an observer's user of the disk, without faults
	table     *paimon.Table // the observer's
	java      *objstore.Mem // the peers' user of the disk: it never syncs
	javaTable *paimon.Table
	apply     batcher.Apply
	parted    bool
	logs      [][]simRecord
	keys      int
	instances []*instance
	owner     int // the instance that the group gives the table
	peers     []*peerPlan
	expected  map[string]*simState // by snapshot identity
	foreign   map[string]func(*simState)
	seen      map[int64]string
	bytes     map[int64][]byte
	acked     map[string]bool // snapshots whose commit was acknowledged
	applied   int             // delayed publishes delivered so far
	now       time.Time
	uuids     int
	faults    bool
	met       map[string]int // sometimes-assertions
	trace     []string
	failure   string
	steps     int
}

func (w *world) log(format string, a ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%4d ", w.steps)+fmt.Sprintf(format, a...))
}

func (w *world) fail(format string, a ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, a...)
		w.log("FAILURE %s", w.failure)
	}
}

func (w *world) uuid() string {
	w.uuids++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", w.seed, w.uuids)
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

func (w *world) clock() time.Time { return w.now }

func simFields() []types.Field {
	return []types.Field{{ID: 0, Name: "k", Type: types.IntType()}, {ID: 1, Name: "v", Type: types.BigIntType()}, {ID: 2, Name: "p", Type: types.IntType()}}
}

// newWorld makes an empty table and one or two instances.
func newWorld(seed uint64) *world {
	w := &world{
		seed: seed, rng: rand.New(rand.NewPCG(seed, 42)), expected: map[string]*simState{}, foreign: map[string]func(*simState){},
		seen: map[int64]string{}, bytes: map[int64][]byte{}, acked: map[string]bool{}, met: map[string]int{}, now: time.UnixMilli(1_800_000_000_000), faults: true,
	}
	w.disk = objstore.NewMem(objstore.MemOptions{Now: w.clock})
	w.marks = objstore.NewMem(objstore.MemOptions{Now: w.clock})
	w.apply = []batcher.Apply{batcher.Mirror, batcher.Mirror, batcher.Append, batcher.Upsert, batcher.InsertOnly}[w.rng.IntN(5)]
	w.parted = w.chance(50)
	w.keys = 1 + w.rng.IntN(12)
	w.logs = make([][]simRecord, 1+w.rng.IntN(3))
	var parts []string
	if w.parted {
		parts = []string{"p"}
	}
	schema, err := paimon.NewSchema(simFields(), parts, map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}, nil, w.now.UnixMilli())
	if err == nil {
		err = paimon.CreateTable(context.Background(), w.disk, schema)
	}
	if err == nil {
		err = w.openTables()
	}
	if err != nil {
		panic(err)
	}
	for range 1 + w.rng.IntN(2) {
		w.instances = append(w.instances, &instance{w: w, n: len(w.instances)})
	}
	return w
}

// produce appends records; a key always goes to the same partition.
func (w *world) produce() {
	for range 1 + w.rng.IntN(6) {
		k := w.rng.IntN(w.keys)
		p := k % len(w.logs)
		w.logs[p] = append(w.logs[p], simRecord{int32(k), int64(w.rng.IntN(1 << 30)), w.chance(25)})
	}
}

// instance is one daemon: what lives in its memory is gone with a crash.
type instance struct {
	w        *world
	n        int
	mem      *objstore.Mem
	a        *Applier
	b        *batcher.Batcher
	owned    bool // what the group says to it (it may not have heard yet)
	believes bool // what it has heard
	reading  bool
	gen      uint64
	held     *batcher.Batch
	downFor  int
}

// start boots the daemon on the disk as it is.
func (i *instance) start() {
	w := i.w
	i.mem = w.disk.Attach(objstore.MemOptions{Now: w.clock, Fault: i.fault})
	table, err := paimon.OpenTable(context.Background(), i.mem, paimon.Write)
	if err != nil {
		i.crash("open: " + err.Error())
		return
	}
	s := Settings{
		ID: "p", Apply: w.apply, Topics: []string{simTopic}, Instance: fmt.Sprint("i", i.n), Pin: true, Marks: w.marks, VerifySample: 1,
		EncodeConcurrency: 1, CommitUserPrefix: "applier-", Log: slog.New(slog.DiscardHandler), Now: w.clock, UUID: w.uuid,
	}
	if w.apply != batcher.Append {
		s.Key = []int{0}
	}
	i.a, err = New(context.Background(), s, Deps{Name: simTable, Table: table, Source: i, Observer: simObserver{i}})
	if err == nil {
		i.b, err = batcher.New(batcher.Options{Fields: table.Schema().Fields, Key: s.Key, Apply: w.apply, Limits: batcher.Limits{Rows: 1000}})
	}
	if err != nil {
		i.crash("new: " + err.Error())
		return
	}
	i.believes, i.reading, i.held, i.gen = false, false, nil, 0
	w.log("i%d starts", i.n)
}

func (i *instance) crash(why string) {
	i.w.log("i%d crashes: %s", i.n, why)
	if i.a != nil {
		i.a.view.drop()
	}
	i.a, i.mem, i.held = nil, nil, nil
	i.believes, i.reading = false, false
	i.downFor = i.w.rng.IntN(10)
}

// fault decides about each primitive operation of this instance.
func (i *instance) fault(op objstore.Op) objstore.Fault {
	w := i.w
	if !w.faults {
		return objstore.Fault{}
	}
	switch x := w.rng.IntN(2000); {
	case x < 8:
		w.log("i%d killed at %s", i.n, op)
		w.met["crash in "+string(op.Kind)]++
		return objstore.Fault{Crash: true, Applied: w.chance(50)}
	case x < 14:
		w.log("i%d: %s fails", i.n, op)
		return objstore.Fault{Err: syscall.EIO}
	case x < 18:
		w.log("i%d: no space for %s", i.n, op)
		return objstore.Fault{Err: syscall.ENOSPC}
	case op.Kind == objstore.OpLink && x < 300:
		w.log("i%d: %s applied but reported as failed", i.n, op)
		return objstore.Fault{Err: syscall.EIO, Applied: true}
	case op.Kind == objstore.OpLink && x < 500:
		w.log("i%d: %s is under way, the answer is an error", i.n, op)
		return objstore.Fault{Delay: true}
	}
	return objstore.Fault{}
}

// ResolveStart implements Source.
func (i *instance) ResolveStart(context.Context) (change.Positions, map[string]string, string, error) {
	pos := change.Positions{}
	for p := range i.w.logs {
		pos[change.Partition{Topic: simTopic, Partition: int32(p)}] = change.Position{Next: 0, Epoch: -1}
	}
	return pos, map[string]string{simTopic: "id"}, "cluster", nil
}

// Resume implements Source.
func (i *instance) Resume(_ context.Context, pos change.Positions, _ map[string]string, _ string) (uint64, error) {
	i.gen++
	i.b.Reset(pos, pos.Sorted(), i.gen)
	i.held = nil
	i.reading = true
	return i.gen, nil
}

// Refuse implements Source: no record of the simulation is refused.
func (i *instance) Refuse(p change.Partition, offset int64, err *change.RowError) {
	i.w.fail("i%d refuses %s offset %d: %v", i.n, p, offset, err)
}

// Stop implements Source.
func (i *instance) Stop() { i.reading, i.held = false, nil }

// Owned implements Source.
func (i *instance) Owned() bool { return i.believes }

// Committed implements Source.
func (i *instance) Committed(change.Positions) {}

// Release implements Source.
func (i *instance) Release(b *batcher.Batch) { i.b.Recycle(b) }

// step lets the instance do one thing: perform the effect under way, or take
// the next batch.
func (i *instance) step() {
	w := i.w
	if i.a == nil {
		if i.downFor--; i.downFor < 0 {
			i.start()
		}
		return
	}
	if i.owned != i.believes && w.chance(30) { // hears of the group late: a zombie until then
		i.believes = i.owned
		if i.owned {
			i.a.step(Assigned{})
		} else {
			i.a.step(Revoked{})
			i.reading, i.held = false, nil
		}
		return
	}
	switch {
	case i.a.due != nil:
		i.perform()
	case i.held != nil:
		b := i.held
		i.held = nil
		i.a.take(b)
	case i.a.state.Phase == PhaseIdle && i.reading && i.gather():
	case w.chance(30):
		i.a.step(Tick{})
	}
	if i.mem != nil && i.mem.Crashed() {
		i.crash("killed")
	}
}

func (i *instance) perform() {
	a := i.a
	eff := a.due
	name := effectName(eff)
	i.w.log("i%d %s %s", i.n, name, describe(eff))
	i.w.met["step "+name]++
	if _, ok := eff.(Wait); ok {
		a.due = nil
		a.step(Waited{})
		return
	}
	a.advanceDue(context.Background())
	if f := a.state.Phase; f == PhaseBackoff || f == PhaseHalted {
		i.w.log("i%d → %s retries %d halt %v", i.n, f, a.state.Retries, a.state.Halt)
	}
}

func describe(e Effect) string {
	if r, ok := e.(Resume); ok {
		return (&BatchInfo{Next: r.Positions}).String()
	}
	s := fmt.Sprintf("%v", e)
	return s[:min(len(s), 120)]
}

// gather closes a batch of what the log has.
func (i *instance) gather() bool {
	w := i.w
	n := 0
	for p, log := range w.logs {
		at, _ := i.b.Position(int32(p))
		for o := at.Next; o < int64(len(log)) && o < at.Next+int64(1+w.rng.IntN(5)); o++ {
			i.add(int32(p), o, log[o])
			n++
		}
	}
	if n > 0 {
		i.held = i.b.Seal(batcher.FlushRows)
	}
	return n > 0
}

func (i *instance) add(p int32, offset int64, r simRecord) {
	c := i.b.Changes()
	kind := change.Update
	if r.delete {
		kind = change.Delete
	}
	if !r.delete || i.w.apply != batcher.Append {
		c.Cols[0].AppendInt32(r.key)
		if r.delete {
			c.Cols[1].AppendNull()
			c.Cols[2].AppendNull()
		} else {
			c.Cols[1].AppendInt64(r.val)
			c.Cols[2].AppendInt32(int32(r.val % 2))
		}
		c.EndRow(kind, p, offset, i.w.now.UnixMilli())
	}
	i.b.Record(p, offset, 0, []byte{byte(r.key)}, []byte(fmt.Sprint(r.val)), i.w.now)
}

// simObserver counts what the loop noticed.
type simObserver struct{ i *instance }

func (o simObserver) Noticed(n Notice) { o.i.w.met["notice "+string(n)]++ }
func (o simObserver) Committed(c Commit) {
	o.i.w.met["committed "+c.Op]++
	o.i.w.acked[o.i.a.state.Txn] = true
}
func (o simObserver) TwoPartitions(int64)          {}
func (o simObserver) DeadLetter(string)            {}
func (o simObserver) Rebuilt(int64, time.Duration) { o.i.w.met["index rebuilt"]++ }
func (o simObserver) Stage(string, time.Duration)  {}
func (o simObserver) Halted(h *Halt) {
	if h != nil {
		o.i.w.log("i%d HALT %s", o.i.n, h)
		o.i.w.met["halt "+string(h.Code)]++
	}
}

func (w *world) report() string {
	from := max(0, len(w.trace)-150)
	return fmt.Sprintf("seed %d (%s, partitioned %v, %d instances): %s\n%s", w.seed, w.apply, w.parted, len(w.instances), w.failure, strings.Join(w.trace[from:], "\n"))
}

// openTables opens the table for the observer and for the peers, whose writes
// reach the page cache and no further, as those of Paimon's Java do.
func (w *world) openTables() (err error) {
	if w.table, err = paimon.OpenTable(context.Background(), w.disk, paimon.Write); err != nil {
		return err
	}
	w.java = w.disk.Attach(objstore.MemOptions{Now: w.clock, Fault: func(op objstore.Op) objstore.Fault {
		return objstore.Fault{Lie: op.Kind == objstore.OpSync || op.Kind == objstore.OpSyncDir}
	}})
	w.javaTable, err = paimon.OpenTable(context.Background(), w.java, paimon.Write)
	return err
}

// reopen gives everybody the disk as it is now, after an operator repaired what a
// power cut did to peers' commits: the first that does not read any more goes, with
// all above it. None of these may be ours.
func (w *world) reopen() {
	if err := w.openTables(); err != nil {
		w.fail("the table does not open after a power cut: %v", err)
		return
	}
	ctx := context.Background()
	ids, err := paimon.ListSnapshotIDs(ctx, w.disk, w.table.Paths())
	if err != nil {
		w.fail("%v", err)
		return
	}
	torn := slices.IndexFunc(ids, func(id int64) bool { return w.readable(ctx, id) != nil })
	if torn < 0 {
		return
	}
	w.met["torn peer commit"]++
	w.log("the power cut tore snapshot %d of %v: %v", ids[torn], ids, w.readable(ctx, ids[torn]))
	for _, id := range slices.Backward(ids[torn:]) {
		if w.foreign[w.seen[id]] == nil {
			w.fail("snapshot %d is ours, and does not survive a power cut", id)
			return
		}
		_ = w.disk.Delete(ctx, w.table.Paths().Snapshot(id))
	}
	if torn > 0 {
		_ = paimon.WriteLatestHint(ctx, w.disk, w.table.Paths(), ids[torn-1])
	}
}

// readable reads everything that a snapshot names.
func (w *world) readable(ctx context.Context, id int64) error {
	s, err := paimon.ReadSnapshot(ctx, w.disk, w.table.Paths(), id)
	if err != nil {
		return err
	}
	st, err := w.table.State(ctx, s)
	if err != nil {
		return err
	}
	return w.table.Scan(ctx, st, paimon.ScanOptions{}, func(*types.Batch) error { return nil })
}

// forgetLost takes back what the observer knows of snapshots that a power cut
// took: an acknowledged commit must not be among them.
func (w *world) forgetLost() {
	ctx := context.Background()
	for id, ident := range w.seen {
		raw, err := w.disk.Get(ctx, w.table.Paths().Snapshot(id))
		if err != nil {
			if w.acked[ident] && !w.gone(ctx, id) {
				w.fail("acknowledged snapshot %d is gone after a power cut", id)
			}
			delete(w.seen, id)
			delete(w.bytes, id)
			continue
		}
		s, err := paimon.ParseSnapshot(raw)
		if err != nil {
			w.fail("snapshot %d is torn after a power cut: %v", id, err)
			return
		}
		if identify(s, raw) != ident {
			w.fail("snapshot %d is another one after a power cut", id)
		}
	}
}

// gone tells an expired snapshot from a lost one.
func (w *world) gone(ctx context.Context, id int64) bool {
	ids, err := paimon.ListSnapshotIDs(ctx, w.disk, w.table.Paths())
	return err == nil && len(ids) > 0 && ids[0] > id
}
