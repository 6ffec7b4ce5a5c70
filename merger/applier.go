package merger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger/defaults"

	"applier/storage/failpoint"
	"applier/storage/mutant"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// Source is where batches come from, as the commit loop needs it.
type Source interface {
	// ResolveStart asks where a first start begins.
	ResolveStart(ctx context.Context) (pos change.Positions, topics map[string]string, cluster string, err error)
	// Resume checks positions against Kafka and reads from there; an error that
	// is a *Halt stops the pipeline. Batches of an older generation are void.
	Resume(ctx context.Context, pos change.Positions, topics map[string]string, cluster string) (generation uint64, err error)
	// Refuse says that a record, which was read, cannot be applied: reading from
	// now on ends right before it, with what OnRowError pause means.
	Refuse(p change.Partition, offset int64, err *change.RowError)
	// Stop says that nothing is taken before the next Resume.
	Stop()
	// Owned says that the group still gives us the table.
	Owned() bool
	// Committed tells the group where the table stands. It must not block long.
	Committed(pos change.Positions)
	// Release gives a batch back.
	Release(b *batcher.Batch)
}

// Letters takes rows that cannot be applied. Flush returns nil when everything
// sent through this value since the last Flush is written.
type Letters interface {
	SendRow(ctx context.Context, p change.Partition, offset int64, raw *change.RawRecord, err *change.RowError)
	Flush(ctx context.Context) error
}

// Commit describes a committed batch to the Observer.
type Commit struct {
	Batch    *batcher.Batch // nil for empty commits; valid during the call
	Op       string
	Snapshot int64
	Counts   Counts
	Holes    HoleCounts
	Bytes    CommitBytes
	Attempts int
	Took     time.Duration // from the batch's arrival at the loop
	Stages   map[string]time.Duration
	Store    objstore.Usage // all that the batch asked of the table's store, lost attempts included
}

// Observer is told what happens, for metrics, logs and the demo. Calls come
// from the loop's goroutine and must be quick.
type Observer interface {
	Noticed(n Notice)
	Committed(c Commit)
	Halted(h *Halt) // nil: the halt is over
	TwoPartitions(changes int64)
	DeadLetter(class string)
	Rebuilt(rows int64, took time.Duration)
	Stage(name string, took time.Duration)
}

// Applier runs the commit loop of one pipeline: it performs what the core asks.
// Run belongs to one goroutine; the other methods may be called from any.
type Applier struct {
	set      Settings
	name     string
	table    *paimon.Table
	schema   atomic.Pointer[[]byte] // the file of the table's schema, once it was compared; not of schema 0
	identity string
	config   string
	user     string
	src      Source
	letters  Letters
	obs      Observer
	fits     func(*paimon.Table) error
	chain    *chain
	view     view
	deletes  *deletes
	planner  planner
	writer   *paimon.DataFileWriter
	copiers  chan *paimon.DataFileWriter // writers of copyFiles that are idle
	// copied are the copies of files that attempts for the batch in hand have made.
	copied map[paimon.FileKey]*fileCopy

	state          State
	due            Effect
	wait           *time.Timer    // of the Wait under way, nil for none
	batch          *batcher.Batch // the data behind state.Batch, nil for empty ones
	planned        *plan
	attempt        *attempt
	generation     uint64
	identifier     int64
	batchIDs       uint64
	acceptTwoParts bool
	committed      bool  // at least once
	pinned, marked bool  // the marks are known to be there, durably
	pinnedAt       int64 // snapshot that the consumer file names; 0 unknown
	earliest       int64 // snapshot, at the last look
	stating        bool  // this loop commits one statement of an operator
	starving       bool  // it was told that the batch in hand loses its races
	missing        int   // consecutive "file not found" of the attempts for a batch
	halts          uint64
	failures       int64
	failure        error // of the last effect that failed
	taken          time.Time
	busy           atomic.Pointer[Busy]
	stages         map[string]time.Duration
	stillAsked     func()         // forgets what askStill asked
	usage          objstore.Usage // of the table's store when the batch in hand was taken

	control chan Event
	batches chan *batcher.Batch
	ended   chan struct{} // closed when Run returns

	mu        sync.Mutex
	status    Status
	changed   chan struct{}
	interrupt context.CancelFunc // of the effect under way, if nothing can come of it yet
}

// Deps are what an Applier works with.
type Deps struct {
	Name     string // db.table
	Table    *paimon.Table
	Source   Source
	Letters  Letters // needed for OnRowError dead_letter
	Observer Observer
	// Fits says whether the pipeline can go on with the table as it was opened now,
	// with a newer schema, in another loop: Run then ends with ErrReopen. The error
	// says what does not fit, and the loop halts with it. Nil: no newer schema fits.
	Fits func(*paimon.Table) error
}

// ErrReopen is how Run ends when the table is to be opened anew, with its newest
// schema.
var ErrReopen = errors.New("the table is to be opened anew")

// New prepares a commit loop. Settings must fit the table.
func New(ctx context.Context, s Settings, d Deps) (*Applier, error) {
	if len(s.Order.By) > 0 && !s.Apply.Ordered(s.RememberDeletes > 0) {
		return nil, fmt.Errorf("order_by: apply %s leaves no row that a late change could be compared with", s.Apply)
	}
	if (s.Merge != nil) != (s.Apply == batcher.Merge) {
		return nil, fmt.Errorf("apply %s: clauses of MERGE go with %s, and with nothing else", s.Apply, batcher.Merge)
	}
	first, err := d.Table.Bucket().Get(ctx, d.Table.Paths().Schema(0))
	if err != nil {
		return nil, fmt.Errorf("reading the first schema of table %s: %w", d.Name, err)
	}
	a := &Applier{
		set: s, name: d.Name, table: d.Table, identity: Identity(d.Name, first), src: d.Source, letters: d.Letters, fits: d.Fits,
		obs: d.Observer, user: s.CommitUserPrefix + s.UUID(), control: make(chan Event, 64), batches: make(chan *batcher.Batch),
		ended: make(chan struct{}), changed: make(chan struct{}), stages: map[string]time.Duration{},
		copiers: make(chan *paimon.DataFileWriter, maxCopies), copied: map[paimon.FileKey]*fileCopy{},
	}
	a.config = configDigest(s, d.Table.Schema())
	a.chain = newChain(d.Table.Bucket(), d.Table.Paths(), s.ID)
	a.deletes = newDeletes(&a.set, deletesLayout(a.identity, s, d.Table.Schema()))
	a.view = view{table: d.Table, s: &a.set, chain: a.chain, beside: a.deletes.bytes}
	if err := a.preparePlanner(); err != nil {
		return nil, err
	}
	if s.Apply != batcher.Append {
		key := make([]types.Type, len(s.Key))
		for i, c := range s.Key {
			key[i] = d.Table.Schema().Fields[c].Type
		}
		if a.view.enc, err = types.NewKeyEncoder(key); err != nil {
			return nil, err
		}
	}
	if a.writer, err = a.newWriter(s.EncodeConcurrency); err != nil {
		return nil, err
	}
	a.publish() // a loop that waits for the group has a status too
	return a, nil
}

// newWriter makes a writer that encodes so many columns at a time.
func (a *Applier) newWriter(concurrency int) (*paimon.DataFileWriter, error) {
	return a.table.NewDataFileWriter(paimon.WriterSettings{
		KeyColumns: a.set.Key, TargetBytes: a.set.TargetFileBytes, Concurrency: concurrency, CopyBytes: a.set.CopyBytes, Now: a.set.Now, NewUUID: a.set.UUID,
	})
}

func (a *Applier) preparePlanner() error {
	fields := a.table.Schema().Fields
	pl := &a.planner
	*pl = planner{s: &a.set, fields: fields, deletedAt: -1, tracking: a.table.Options().RowTracking, dynamic: defaults.Dynamic(a.table.Schema())}
	if err := a.readDefaults(a.set.Now()); err != nil {
		return err
	}
	a.warnOfDefaults()
	if a.set.Apply == batcher.SoftDelete {
		at, err := deletedAtColumn(fields)
		if err != nil {
			return err
		}
		pl.deletedAt = at
		pl.defaults[at] = nil // NULL says that the row lives
	}
	return nil
}

// Post tells the loop something; it never blocks long.
func (a *Applier) Post(ev Event) {
	select {
	case a.control <- ev:
	case <-a.ended:
	}
}

// Submit hands a closed batch over and blocks until the loop takes it.
func (a *Applier) Submit(ctx context.Context, b *batcher.Batch) error {
	select {
	case a.batches <- b:
		return nil
	case <-a.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errEnded = errors.New("the commit loop has ended")

// Revoke tells the loop that the table is not ours any more and waits until no
// commit can follow, or until ctx ends (then an outcome is unknown, and the
// fence decides). What is under way before a publish is cut short: the loop may
// be waiting for the source, and the source, which is in the middle of a
// rebalance, for this call.
func (a *Applier) Revoke(ctx context.Context) {
	a.Post(Revoked{})
	a.mu.Lock()
	if a.interrupt != nil {
		a.interrupt()
	}
	a.mu.Unlock()
	a.Await(ctx, func(s Status) bool {
		return s.Phase == PhaseStandby || s.Phase == PhaseHalted || s.Phase == PhaseStopped
	})
}

// idleTick is how often an idle table is looked at.
const idleTick = 5 * time.Second

// Run performs the loop until it is stopped (StopAsked) or ctx ends, which
// abandons what is under way, or with ErrReopen until another loop must take its
// place.
//
// While an effect is performed nobody listens, so whatever an effect waits for
// must not wait for the loop: Source.Resume needs the source's own goroutine,
// which may be blocked in Submit (it must give up when it is asked to read from
// elsewhere) or in a rebalance that waits for Revoke (which interrupts Resume).
func (a *Applier) Run(ctx context.Context) error {
	defer a.end()
	tick := time.NewTicker(idleTick)
	defer tick.Stop()
	for a.state.Phase != PhaseStopped && ctx.Err() == nil {
		if a.hear() {
			a.endWait() // a command or the group may have changed what is worth waiting for
		}
		if _, waiting := a.due.(Wait); a.due != nil && !waiting {
			a.advanceDue(ctx)
			continue
		}
		select {
		case ev := <-a.control:
			a.step(ev)
			a.endWait()
		case b := <-a.acceptBatches():
			a.take(b)
		case <-a.waiting():
			a.endWait()
		case <-tick.C:
			a.step(Tick{})
		case <-ctx.Done():
		}
	}
	if a.state.Reopen && ctx.Err() == nil {
		return ErrReopen
	}
	return nil
}

// end tells everybody that nothing follows.
func (a *Applier) end() {
	if a.wait != nil {
		a.wait.Stop()
	}
	a.forgetStill()
	a.view.drop()
	if a.batch != nil {
		a.src.Release(a.batch)
		a.batch = nil
	}
	a.state.Phase = PhaseStopped
	a.publish()
	close(a.ended)
}

// hear takes the control events that are there and reports whether there were any.
func (a *Applier) hear() (any bool) {
	for {
		select {
		case ev := <-a.control:
			a.step(ev)
			any = true
		default:
			return any
		}
	}
}

// waiting starts the timer of a Wait and returns what it fires on; nil without one.
func (a *Applier) waiting() <-chan time.Time {
	e, ok := a.due.(Wait)
	if !ok {
		return nil
	}
	if a.wait == nil {
		a.wait = time.NewTimer(backoff(e.Retries))
	}
	return a.wait.C
}

// endWait answers a Wait, if one is under way.
func (a *Applier) endWait() {
	if _, ok := a.due.(Wait); !ok {
		return
	}
	if a.wait != nil {
		a.wait.Stop()
		a.wait = nil
	}
	a.due = nil
	a.step(Waited{})
}

// backoff is 50 ms, doubled with each try, at most 30 s.
func backoff(retries int) time.Duration {
	return min(50*time.Millisecond<<min(retries, 10), 30*time.Second)
}

// acceptBatches is nil while a batch would only have to wait or be dropped.
func (a *Applier) acceptBatches() <-chan *batcher.Batch {
	if a.state.Phase != PhaseIdle || a.state.Batch != nil {
		return nil
	}
	return a.batches
}

// take accepts a batch of the source, unless it was read before the loop last
// said from where.
func (a *Applier) take(b *batcher.Batch) {
	if b.Generation != a.generation || a.state.Batch != nil {
		a.src.Release(b)
		return
	}
	a.taken, a.starving, a.usage = a.set.Now(), false, a.storeUsage()
	clear(a.stages)
	a.batch = b
	a.batchIDs++
	a.step(BatchReady{&BatchInfo{ID: a.batchIDs, Start: b.Start, Next: b.Next}})
}

// advanceDue performs the effect under way and feeds its answer back. What was
// posted meanwhile is heard first: a revocation that interrupted the effect then
// explains its failure.
func (a *Applier) advanceDue(ctx context.Context) {
	eff := a.due
	a.due = nil
	ev := a.perform(ctx, eff)
	a.hear()
	a.step(ev)
}

// step feeds an event to the core and performs the effects without answers.
func (a *Applier) step(ev Event) {
	switch e := ev.(type) {
	case ResumeAsked:
		if a.state.Halt != nil && a.state.Halt.Code == CodeTwoParts {
			a.acceptTwoParts = true
		}
	case SourceHalted:
		if e.Generation != 0 && e.Generation != a.generation {
			return // it was told to read from elsewhere meanwhile
		}
	case ReopenAsked:
		if e.Generation != a.generation {
			return
		}
	}
	before, phase := a.state.Halt, a.state.Phase
	var effects []Effect
	a.state, effects = Step(a.state, ev)
	for _, e := range effects {
		switch e := e.(type) {
		case Drop:
			a.release(e.Batch)
		case Discard:
			a.discard()
		case Mark:
			a.mark(e.At)
		case Halted:
			a.set.Log.Error("pipeline halted", "code", e.Halt.Code, "facts", e.Halt.Facts, "do", e.Halt.Code.Info().Do)
			a.obs.Halted(&e.Halt)
		case Note:
			a.obs.Noticed(e.What)
			switch e.What {
			case NoticeLostRace, NoticeStillMoved, NoticeConflict:
				a.watchStarving()
			}
		default:
			a.due = e
		}
	}
	if before != nil && a.state.Halt == nil {
		a.obs.Halted(nil)
	}
	if a.state.Phase == PhaseHalted && phase != PhaseHalted {
		a.halts++
		a.src.Stop()
	}
	a.publish()
}

// discard forgets what an attempt planned. Its files stay: that it failed is not
// known before the name it asked for is somebody else's for good.
func (a *Applier) discard() {
	a.forgetStill()
	if mutant.On(mutant.NeverDelete) && a.attempt != nil {
		for _, f := range a.attempt.files {
			for _, o := range f.Objects() {
				_ = a.table.Bucket().Delete(context.Background(), o.Key)
			}
		}
	}
	a.attempt = nil
	if !mutant.On(mutant.LookupAgain) {
		a.planned = nil
	}
}

// release gives the batch behind info back, if it is the one in hand.
func (a *Applier) release(info *BatchInfo) {
	a.forgetStill()
	a.attempt, a.planned = nil, nil
	clear(a.copied)
	if a.batch != nil && info.Op == "" {
		a.src.Release(a.batch)
		a.batch = nil
	}
}

func (a *Applier) batchOp() string {
	if a.state.Batch == nil {
		return ""
	}
	return a.state.Batch.Op
}

// perform does one effect and returns its answer. A panic halts the pipeline, not
// the process.
func (a *Applier) perform(ctx context.Context, eff Effect) (ev Event) {
	name := effectName(eff)
	from := a.set.Now()
	ctx, done := a.interruptible(ctx, eff)
	defer done()
	a.begins(name, from)
	defer a.ends()
	defer func() {
		if r := recover(); r != nil {
			a.set.Log.Error("panic in the commit loop", "effect", name, "panic", r, "stack", string(debug.Stack()))
			a.view.drop() // it may be neither here nor there
			ev = a.failed(fmt.Errorf("%w: %v", errPanic, r), eff)
		}
		a.took(name, from)
	}()
	if err := failpoint.Hit("commit/" + name); err != nil {
		return a.failed(err, eff)
	}
	ev, err := a.do(ctx, eff)
	if err != nil {
		return a.failed(err, eff)
	}
	return ev
}

// took tells the time of a step that began at from.
func (a *Applier) took(step string, from time.Time) {
	took := a.set.Now().Sub(from)
	a.stages[step] += took
	a.obs.Stage(step, took)
}

var (
	errPanic = errors.New("panic")
	// errMovedOn: the table is newer than what was looked at.
	errMovedOn = errors.New("the table moved on")
)

// interruptible lets Revoke end an effect before whose end nothing is published.
func (a *Applier) interruptible(ctx context.Context, eff Effect) (context.Context, func()) {
	switch eff.(type) {
	case Publish, ReadSlot, ReadBack, WriteHint, Acknowledge:
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	a.mu.Lock()
	a.interrupt = cancel
	a.mu.Unlock()
	return ctx, func() {
		a.mu.Lock()
		a.interrupt = nil
		a.mu.Unlock()
		cancel()
	}
}

func effectName(e Effect) string {
	switch e.(type) {
	case Look:
		return "look"
	case ResolveStart:
		return "resolve"
	case Resume:
		return "resume"
	case Sync:
		return "sync"
	case Plan:
		return "plan"
	case Write:
		return "write"
	case Still:
		return "still"
	case Publish:
		return "publish"
	case ReadSlot:
		return "classify"
	case ReadBack:
		return "after"
	case WriteHint:
		return "hint"
	case Acknowledge:
		return "ack"
	}
	return "wait"
}

func (a *Applier) do(ctx context.Context, eff Effect) (Event, error) {
	switch e := eff.(type) {
	case Look:
		return a.look(ctx, e)
	case ResolveStart:
		pos, topics, cluster, err := a.src.ResolveStart(ctx)
		return Resolved{Start: pos, Topics: topics, Cluster: cluster}, err
	case Resume:
		// The index is built before anything is read: one that does not fit is
		// refused at the start and not with the first record.
		if err := a.sync(ctx, Sync{To: a.state.Known, Batch: &BatchInfo{}, Deletes: e.Deletes}); err != nil {
			return nil, err
		}
		a.ends() // waiting for Kafka is nothing a new process could do better
		generation, err := a.src.Resume(ctx, e.Positions, e.Topics, e.Cluster)
		if err == nil {
			a.generation = generation
		}
		return Resumed{}, err
	case Sync:
		return Synced{}, a.sync(ctx, e)
	case Plan:
		return a.doPlan(ctx, e)
	case Write:
		return a.write(ctx, e)
	case Still:
		return a.still(ctx, e)
	case Publish:
		return a.doPublish(ctx), nil
	case ReadSlot:
		return a.readSlot(ctx, e), nil
	case ReadBack:
		return a.readBack(ctx, e)
	case WriteHint:
		if err := paimon.WriteLatestHint(ctx, a.table.Bucket(), a.table.Paths(), e.Target); err != nil {
			a.set.Log.Debug("the LATEST hint could not be written; readers list instead", "err", err)
		}
		return Hinted{}, nil
	case Acknowledge:
		record := a.attempt.record
		return Acked{record}, a.acknowledge(ctx, e)
	}
	return nil, fmt.Errorf("effect %T is not known", eff)
}

func (a *Applier) sync(ctx context.Context, e Sync) error {
	to, err := a.baseLink(ctx, e.To)
	if err != nil {
		return err
	}
	if err := a.view.secure(ctx, to); err != nil {
		return err
	}
	if e.Batch == nil || e.Batch.Op != "" {
		return nil // empty commits need the lists only, which Write reads
	}
	from := a.set.Now()
	a.view.rebuilt = func(rows int64) { a.obs.Rebuilt(rows, a.set.Now().Sub(from)) }
	if err := a.view.sync(ctx, to); err != nil {
		return err
	}
	return a.deletes.follow(ctx, e.Deletes, a.deletesRoom())
}

func (a *Applier) doPlan(ctx context.Context, e Plan) (Event, error) {
	if mutant.On(mutant.LookupAgain) && a.planned != nil {
		return Planned{}, nil
	}
	a.planned = nil
	if e.Batch.Op != "" {
		return Planned{}, nil
	}
	p, err := a.planBatch(ctx, a.batch)
	if err != nil {
		return nil, err
	}
	refused, err := a.sendLetters(ctx, a.batch, p)
	if err != nil || refused {
		return Planned{Refused: refused}, err
	}
	a.planned = p
	return Planned{}, nil
}

// acknowledge is step 15. The commit stands whatever happens here; an index
// that cannot follow is built again.
func (a *Applier) acknowledge(ctx context.Context, e Acknowledge) error {
	if err := a.advance(a.attempt); err != nil {
		a.set.Log.Warn("the key index could not follow a commit and is built again", "snapshot", e.Target, "err", err)
	}
	a.deletes.advance(ctx, a.attempt)
	a.mark(SnapRef{ID: e.Target})
	a.src.Committed(e.Batch.Next)
	c := Commit{Op: e.Batch.Op, Snapshot: e.Target, Bytes: a.attempt.bytes, Attempts: a.state.Attempt, Stages: maps.Clone(a.stages)}
	now := a.storeUsage()
	c.Store, a.usage = now.Since(a.usage), now
	if e.Batch.Op == "" {
		c.Took = a.set.Now().Sub(a.taken)
		c.Batch = a.batch
		c.Counts = a.attempt.plan.counts
		c.Holes = a.attempt.plan.holes
		if a.batch.Counts.TwoPartitions > 0 {
			a.acceptTwoParts = false // it was accepted once
		}
		if c.Counts.Letters > 0 {
			for _, l := range a.attempt.plan.sent {
				a.obs.DeadLetter(string(l.err.Class))
			}
		}
	}
	a.committed = true
	a.obs.Committed(c)
	if e.Batch.Op == "" && a.batch != nil {
		a.src.Release(a.batch)
		a.batch = nil
	}
	a.attempt, a.planned, a.missing = nil, nil, 0
	clear(a.copied)
	return nil
}

// storeUsage is what the table's store was asked so far.
func (a *Applier) storeUsage() objstore.Usage {
	if b, ok := a.table.Bucket().(interface{ Usage() objstore.Usage }); ok {
		return b.Usage()
	}
	return objstore.Usage{}
}

func (a *Applier) nextIdentifier() int64 {
	a.identifier++
	return a.identifier
}

// failed turns an error of an effect into an event.
func (a *Applier) failed(err error, eff Effect) Event {
	a.failure = err
	var halt *Halt
	if errors.As(err, &halt) {
		if halt.Code == CodeMismatch || halt.Code == CodeCorrupt {
			a.view.drop()
		}
		return problemEvent(eff, halt)
	}
	code := classify(err)
	if errors.Is(err, objstore.ErrNotExist) {
		// Expiry may have taken what we were about to read: look again first.
		if a.missing++; a.missing > retriesBeforeHalt {
			code = CodeCorrupt
		}
	}
	if code == CodeMismatch || code == CodeCorrupt {
		a.view.drop()
	}
	if errors.Is(err, context.Canceled) { // Revoke or the end of the program
		a.set.Log.Debug("a step of the commit was cut short", "step", effectName(eff))
		return Failed{Code: CodeIO, Facts: err.Error()}
	}
	if a.state.Batch != nil {
		a.failures++
	}
	a.set.Log.Warn("a step of the commit failed", "step", effectName(eff), "code", code, "err", err)
	return Failed{Code: code, Facts: err.Error()}
}

// problemEvent answers an effect with a problem that stops the pipeline.
func problemEvent(eff Effect, h *Halt) Event {
	switch eff.(type) {
	case Look:
		return Looked{Problem: h}
	case ResolveStart:
		return Resolved{Problem: h}
	case Resume:
		return Resumed{Problem: h}
	case Sync:
		return Synced{Problem: h}
	case Plan:
		return Planned{Problem: h}
	}
	return Failed{Code: h.Code, Facts: h.Facts}
}
