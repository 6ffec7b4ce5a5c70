package merger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// The simulation runs the product's own commit loop, planner, index and table
// code in a seeded world: one thread, a disk in memory with fsync semantics, a
// Kafka that is some slices, peers that commit in two phases, an operator who
// breaks things and repairs them with the documented commands. A seed is a run:
// each step draws from its own stream, made of the seed and the step's number, so
// that a step can be left out without changing what the others draw (simshrink).

const simTable = "db.t"

// simOptions say which run of a seed is meant.
type simOptions struct {
	seed  uint64
	steps int
	// The shrinker's: steps left out, and steps without faults of the disk and kills.
	drop, calm map[int]bool
	trace      bool
}

// world is everything around the instances.
type world struct {
	o            simOptions
	pcg, fpcg    *rand.PCG
	rng, frng    *rand.Rand // of the step; frng is for faults
	features     map[string]bool
	actions      []simAction
	total        int           // of the actions' weights
	marks        *objstore.Mem // the instances' state folders, on one disk
	disk         *objstore.Mem // an observer's user of the disk, without faults
	table        *paimon.Table // the observer's
	java         *objstore.Mem // the peers' user of the disk: it never syncs
	javaTable    *paimon.Table
	backup       *objstore.Mem // what a dropped table is restored from
	tables       int           // how often the table was created anew
	createdAt    int           // the step of it
	apply        batcher.Apply
	clauses      *simClauses // where apply is Merge, with merge
	merge        *Merge
	parted       bool
	empties      bool // the source's table is emptied now and then; the topic has one partition
	pin          bool
	keys         int
	kafka        *simKafka
	topics       int
	grown        bool
	offsets      change.Positions // committed to the group
	instances    []*instance
	owner        int // the instance that the group gives the table
	peers        []*peerPlan
	expected     map[string]*simState // by snapshot identity
	foreign      map[string]func(*simState)
	seen         map[int64]string // identities of the snapshots that are there
	bytes        map[int64][]byte
	acked        map[string]bool     // snapshots whose commit was acknowledged
	looked       map[string]int      // by identity: the step of the look that the attempt is built on
	expired      map[string]bool     // identities that expiry removed
	undone       map[string]bool     // identities that were rolled back, overwritten or lost
	broken       map[string]int      // by identity: since which step the snapshot does not stand on its base
	filesOf      map[string][]string // data files by the identity of the snapshot
	named        map[string]bool     // files that a snapshot that was seen names
	schemas      []schemaChange
	lastAsLatest int64 // snapshot of the last rollback by a new one
	applied      int   // delayed publishes delivered so far
	now          time.Time
	uuids        int
	faults       bool
	dirty        bool // snapshots may have changed
	steps        int
	causes       map[string]bool
	met          map[string]int // sometimes-assertions
	snapshots    int            // looked at
	trace        []string
	failure      string
	failureID    string
	failedStep   int
}

// simAction is something that may happen in a step.
type simAction struct {
	name   string
	weight int
	do     func()
}

func (w *world) log(format string, a ...any) {
	if w.o.trace {
		w.trace = append(w.trace, fmt.Sprintf("%4d ", w.steps)+fmt.Sprintf(format, a...))
	}
}

// fail notes the first violation; id is that of the invariant (simmodel_test.go).
func (w *world) fail(id, format string, a ...any) {
	if w.failure == "" {
		w.failureID, w.failedStep = id, w.steps
		w.failure = id + ": " + fmt.Sprintf(format, a...)
		w.log("FAILURE %s", w.failure)
	}
}

func (w *world) meet(what string)    { w.met[what]++ }
func (w *world) cause(what string)   { w.causes[what] = true; w.met[what]++ }
func (w *world) on(what string) bool { return w.features[what] }
func (w *world) chance(pct int) bool { return w.rng.IntN(100) < pct }
func (w *world) clock() time.Time    { return w.now }
func (w *world) any() *instance      { return w.instances[w.rng.IntN(len(w.instances))] }
func (w *world) paths() paimon.Paths { return w.table.Paths() }
func (w *world) uuid() string {
	w.uuids++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", w.o.seed, w.uuids)
}

func simFields() []types.Field {
	return []types.Field{{ID: 0, Name: "k", Type: types.IntType()}, {ID: 1, Name: "v", Type: types.BigIntType()}, {ID: 2, Name: "p", Type: types.IntType()}}
}

// simFeatures are what a seed's world may hold. Each seed has its own choice:
// a world with everything in it seldom gets far with anything.
var simFeatures = []string{
	"kill", "power", "disk", "publish", "rebalance", "partial", "stall", "stop", "pause",
	"insert", "delete", "merge", "compact", "expire", "clobber", "stale hint",
	"rollback", "as latest", "alter", "rename", "options", "drop", "recreate",
	"truncate", "topic", "retention", "grow",
}

// newWorld makes an empty table and the instances.
func newWorld(o simOptions) *world {
	w := &world{
		o: o, expected: map[string]*simState{}, foreign: map[string]func(*simState){}, features: map[string]bool{},
		seen: map[int64]string{}, bytes: map[int64][]byte{}, acked: map[string]bool{}, looked: map[string]int{}, undone: map[string]bool{}, expired: map[string]bool{},
		broken: map[string]int{}, named: map[string]bool{}, filesOf: map[string][]string{}, causes: map[string]bool{}, met: map[string]int{},
		now: time.UnixMilli(1_800_000_000_000), faults: true, dirty: true, pcg: &rand.PCG{}, fpcg: &rand.PCG{},
	}
	w.rng, w.frng = rand.New(w.pcg), rand.New(w.fpcg)
	w.seedStep(-1)
	rare := map[string]bool{"drop": true, "recreate": true, "topic": true, "options": true, "rename": true, "retention": true}
	for _, f := range simFeatures {
		w.features[f] = w.chance(45) && (!rare[f] || w.chance(50))
	}
	w.disk = objstore.NewMem(objstore.MemOptions{Now: w.clock})
	w.marks = objstore.NewMem(objstore.MemOptions{Now: w.clock})
	w.apply = []batcher.Apply{batcher.Mirror, batcher.Mirror, batcher.Append, batcher.Upsert, batcher.InsertOnly}[w.rng.IntN(5)]
	w.parted, w.pin = w.chance(50), w.chance(60)
	w.keys = 1 + w.rng.IntN(12)
	w.kafka = newSimKafka(1 + w.rng.IntN(3))
	if err := w.createTable(w.disk); err != nil {
		panic(err)
	}
	w.disk = w.disk.Crash(nil, 1) // the table is there for long
	if err := w.openTables(); err != nil {
		panic(err)
	}
	for range 1 + w.rng.IntN(3) {
		w.instances = append(w.instances, &instance{w: w, n: len(w.instances)})
	}
	w.chooseClauses()
	if o.seed%8 >= 6 && w.apply.Truncates() { // a choice that leaves other seeds, and what is drawn, as they are
		w.empties, w.kafka = true, newSimKafka(1)
	}
	w.weigh()
	return w
}

// createTable writes the first schema.
func (w *world) createTable(disk *objstore.Mem) error {
	options := map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}
	if w.chance(80) { // the codecs have tests of their own, and cost time
		options["file.compression"], options["manifest.compression"] = "none", "null"
	}
	if w.chance(30) { // several index files a partition
		options["deletion-vector.index-file.target-size"] = "1 b"
	}
	if w.chance(30) {
		options["manifest.merge-min-count"] = "3"
	}
	options["snapshot.num-retained.min"] = []string{"2", "4", "10"}[w.rng.IntN(3)]
	var parts []string
	if w.parted {
		parts = []string{"p"}
	}
	schema, err := paimon.NewSchema(simFields(), parts, options, nil, w.now.UnixMilli())
	if err != nil {
		return err
	}
	w.schemas = []schemaChange{{0, w.steps, false}}
	return paimon.CreateTable(context.Background(), disk, schema)
}

// weigh lists what may happen in this world.
func (w *world) weigh() {
	add := func(feature string, weight int, do func()) {
		if feature == "" || w.on(feature) {
			w.actions = append(w.actions, simAction{feature, weight, do})
			w.total += weight
		}
	}
	add("", 700, func() { w.any().step() })
	add("", 100, w.produce)
	add("", 20, w.deliver)
	add("", 40, func() { w.operator(w.any()) })
	for _, kind := range []string{"insert", "delete", "merge", "compact"} {
		add(kind, 20, func() { w.peerPlans(kind) })
		add(kind, 20, w.peerPublishes)
	}
	add("expire", 20, w.expire)
	add("rebalance", 20, func() { w.group(w.rng.IntN(len(w.instances))) })
	add("partial", 8, w.split)
	add("kill", 10, func() {
		if i := w.any(); i.a != nil {
			i.crash("kill -9")
		}
	})
	add("power", 10, w.powerCut)
	add("stall", 10, func() { w.any().deafFor = 5 + w.rng.IntN(60) })
	add("stop", 8, w.terminate)
	add("pause", 10, w.pauseOrResume)
	add("stale hint", 10, w.tearHint)
	add("clobber", 8, w.peerClobbers)
	add("rollback", 8, w.rollback)
	add("as latest", 8, w.rollbackAsLatest)
	add("alter", 4, w.addColumn)
	add("rename", 4, w.renameColumn)
	add("options", 4, w.setBadOption)
	add("drop", 3, w.drop)
	add("recreate", 3, w.recreate)
	add("truncate", 5, w.truncate)
	add("topic", 3, w.recreateTopic)
	add("retention", 5, w.retain)
	add("grow", 4, w.grow)
}

// seedStep starts the streams of a step.
func (w *world) seedStep(step int) {
	w.pcg.Seed(w.o.seed, uint64(step+1)<<1)
	w.fpcg.Seed(w.o.seed, uint64(step+1)<<1|1)
}

// healSteps is how many steps of every instance it may take to apply everything.
const healSteps = 1200

// run drives a world: a phase with faults, then a healed one in which everything
// must be applied.
func (w *world) run() {
	w.seedStep(-2)
	w.group(0)
	for w.steps = 0; w.steps < w.o.steps && w.failure == ""; w.steps++ {
		w.now = w.now.Add(100 * time.Millisecond)
		if w.o.drop[w.steps] {
			continue
		}
		w.seedStep(w.steps)
		w.act()
		w.observe()
	}
	if w.failure == "" {
		w.heal()
	}
	w.settle()
	if w.failure == "" && w.on("insert") {
		w.seedStep(w.steps)
		for range 6 { // so many that the record grows old under an idle pipeline
			w.peers = nil
			w.peerPlans("insert")
			w.peerPublishes()
		}
		w.observe()
		for to := w.steps + 40; w.steps < to && w.failure == ""; w.steps++ {
			w.calmStep()
		}
	}
	if w.failure == "" && w.on("rollback") {
		w.seedStep(w.steps)
		w.rollback() // under instances that have nothing to do
		w.observe()
		w.settle()
	}
	for _, i := range w.instances {
		if i.a != nil {
			i.a.view.drop()
		}
	}
}

// settle lets everybody work until everything is applied.
func (w *world) settle() {
	for limit := w.steps + healSteps; w.steps < limit && w.failure == "" && !w.done(); w.steps++ {
		w.calmStep()
	}
	if w.failure == "" && !w.done() {
		w.fail("liveness", "not everything was applied after the faults ended: %s", w.positions())
	}
}

// calmStep lets everybody do one thing.
func (w *world) calmStep() {
	w.seedStep(w.steps)
	w.now = w.now.Add(100 * time.Millisecond)
	for _, i := range w.instances {
		i.step()
		w.operator(i)
	}
	w.observe()
}

// act is one random event.
func (w *world) act() {
	x := w.rng.IntN(w.total)
	for _, a := range w.actions {
		if x -= a.weight; x < 0 {
			a.do()
			return
		}
	}
}

// group moves the table to an instance; all hear of it when they do.
func (w *world) group(owner int) {
	w.owner = owner
	for n, i := range w.instances {
		i.want = nil
		if n == owner {
			i.want = w.kafka.all()
		}
	}
	w.log("the group gives the table to i%d", owner)
}

// split gives a part of the partitions to each of two instances, as another
// assignor in the group would.
func (w *world) split() {
	if len(w.instances) < 2 || len(w.kafka.parts) < 2 {
		return
	}
	w.log("the group splits the table")
	w.cause("partial assignment")
	a := w.rng.IntN(len(w.instances))
	b := (a + 1) % len(w.instances)
	for n, i := range w.instances {
		i.want = nil
		if n != a && n != b {
			continue
		}
		i.want = w.kafka.all()
		for p := range w.kafka.parts {
			if (p%2 == 0) != (n == a) {
				delete(i.want, simPartition(p))
			}
		}
	}
}

// deliver lets a publish arrive whose caller was told of an error, or is dead.
func (w *world) deliver() {
	all := w.disk.Delayed()
	if w.applied >= len(all) {
		return
	}
	d := all[w.applied]
	w.applied++
	earliest, err := paimon.EarliestSnapshotID(context.Background(), w.disk, w.paths())
	var id int64
	if _, e := fmt.Sscanf(d.Key, "snapshot/snapshot-%d", &id); err != nil || e == nil && id < earliest {
		return // no publish is under way for longer than snapshots are kept
	}
	err = d.Apply(w.disk)
	w.dirty = true
	w.log("late arrival of %s: %v", d.Key, err)
	if err == nil {
		w.meet("late arrival took the name")
	}
}

// powerCut restarts the machine: what was not synced may be gone.
func (w *world) powerCut() {
	if w.backup != nil {
		return // it would cut a table that is not there
	}
	w.log("power cut")
	w.cause("power cut")
	for _, i := range w.instances {
		if i.a != nil {
			i.crash("power cut")
		}
	}
	w.disk = w.disk.Crash(w.rng, []float64{0, 0.1, 0.5, 0.9, 1}[w.rng.IntN(5)])
	w.marks = w.marks.Crash(w.rng, 0.5)
	w.applied, w.peers = 0, nil
	w.reopen()
	if w.failure == "" {
		w.forgetLost()
	}
}

func (w *world) heal() {
	w.seedStep(w.steps)
	w.log("healed")
	w.faults, w.dirty = false, true
	w.restoreAll()
	w.group(w.owner)
	for _, i := range w.instances {
		if i.a != nil {
			i.a.step(ResumeAsked{})
		}
	}
}

// done: the table holds everything, and its owner is at rest.
func (w *world) done() bool {
	i := w.instances[w.owner]
	if i.a == nil || i.a.state.Phase != PhaseIdle || i.a.state.Positions == nil || i.a.state.Halt != nil || i.topicID != w.kafka.id {
		return false
	}
	ids, err := w.ids()
	if err != nil || len(ids) == 0 {
		return false
	}
	exp := w.expected[w.seen[ids[len(ids)-1]]]
	for p, part := range w.kafka.parts {
		if exp == nil || exp.pos[int32(p)].Next != int64(len(part.recs)) {
			return false
		}
	}
	return len(exp.pos) == len(w.kafka.parts)
}

func (w *world) positions() string {
	s := ""
	for _, i := range w.instances {
		if i.a != nil {
			s += fmt.Sprintf("i%d %s %v halt %v; ", i.n, i.a.state.Phase, i.a.state.Positions, i.a.state.Halt)
		}
	}
	for n, p := range w.kafka.parts {
		s += fmt.Sprintf("%s/%d ends at %d; ", w.kafka.id, n, len(p.recs))
	}
	return s
}

// text describes the world for a report.
func (w *world) text() string {
	var on []string
	for _, f := range simFeatures {
		if w.features[f] {
			on = append(on, f)
		}
	}
	apply := w.apply.String()
	if w.clauses != nil {
		apply = fmt.Sprintf("clauses %q, skip_unchanged %v", w.clauses.name, w.merge.SkipUnchanged)
	}
	return fmt.Sprintf("%s, partitioned %v, pin %v, %d instances, %d keys; %s", apply, w.parted, w.pin, len(w.instances), w.keys, strings.Join(on, ", "))
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
	w.dirty = true
	ctx := context.Background()
	if w.schemas[len(w.schemas)-1].off {
		w.undo()
	}
	if err := w.openTables(); err != nil {
		w.fail("durable", "the table does not open after a power cut: %v", err)
		return
	}
	ids, err := paimon.ListSnapshotIDs(ctx, w.disk, w.paths())
	if err != nil {
		w.fail("durable", "%v", err)
		return
	}
	below, lost := holeIn(ids)
	ours := func(id int64) bool { return w.foreign[w.seen[id]] == nil }
	if lost && slices.ContainsFunc(ids, func(id int64) bool { return id > below && ours(id) }) {
		lost = false // not the cut's work, but that of a rollback; what is ours is looked at below
	}
	torn := slices.IndexFunc(ids, func(id int64) bool { return lost && id > below || w.readable(ctx, id) != nil })
	if torn < 0 {
		return
	}
	w.meet("torn peer commit")
	w.log("the power cut tore snapshot %d of %v: %v", ids[torn], ids, w.readable(ctx, ids[torn]))
	for _, id := range ids[torn:] {
		if _, broken := w.broken[w.seen[id]]; broken {
			break // it does not stand on what is below: nobody could make that durable
		}
		if ours(id) {
			w.fail("durable", "snapshot %d is ours, and does not survive a power cut: %v", id, w.readable(ctx, id))
			return
		}
	}
	if below = 0; torn > 0 {
		below = ids[torn-1]
	}
	w.rollTo(below)
}

// readable reads everything that a snapshot names.
func (w *world) readable(ctx context.Context, id int64) error {
	s, err := paimon.ReadSnapshot(ctx, w.disk, w.paths(), id)
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
	for _, id := range sortedIDs(w.seen) {
		ident := w.seen[id]
		raw, e := w.disk.Get(ctx, w.paths().Snapshot(id))
		if e != nil {
			if w.acked[ident] && !w.expired[ident] && !w.undone[ident] {
				w.fail("durable", "acknowledged snapshot %d is gone after a power cut", id)
			}
			w.forget(id)
			continue
		}
		s, e := paimon.ParseSnapshot(raw)
		if e != nil {
			w.fail("durable", "snapshot %d is torn after a power cut: %v", id, e)
			return
		}
		if identify(s, raw) != ident {
			// The rename of a peer over a snapshot may be undone.
			w.log("snapshot %d is another one after the power cut", id)
		}
	}
}

// forget notes that a snapshot is not there any more.
func (w *world) forget(id int64) {
	if ident, ok := w.seen[id]; ok {
		w.undone[ident] = true
	}
	delete(w.seen, id)
	delete(w.bytes, id)
}

func sortedIDs[V any](m map[int64]V) []int64 {
	var ids []int64
	for id := range m {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
