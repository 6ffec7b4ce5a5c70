package ingest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"applier/ingest/change"
	"applier/ingest/decode"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Policy says what happens to a record that cannot be applied.
type Policy string

// The policies.
const (
	OnErrorPause      Policy = "pause"
	OnErrorSkip       Policy = "skip"
	OnErrorDeadLetter Policy = "dead_letter"
)

// Collector takes the decoded changes. All calls come from the consumer's own
// goroutine. batcher.Batcher has these methods but Flush and Count.
type Collector interface {
	// Reset starts anew from a position vector; partitions gives the meaning of
	// the ordinals in changes.
	Reset(start change.Positions, partitions []change.Partition, generation uint64)
	// Changes is where decoders append.
	Changes() *change.Batch
	// Record passes a record's position after it was decoded, skipped or sent away.
	Record(part int32, offset int64, epoch int32, key, value []byte, now time.Time)
	// Truncate lets the open batch begin with a truncation; false if something is in
	// it already, which is to be flushed first.
	Truncate(t *change.Truncation) bool
	// Mark remembers the end of the open batch, where one partition is read; Before
	// says whether anything was in it; Rewind takes back what came behind it.
	Mark()
	Before() bool
	Rewind()
	// Advance passes a position that carries no record.
	Advance(part int32, next int64, epoch int32, now time.Time)
	// Position returns where a partition stands.
	Position(part int32) (change.Position, bool)
	// Count counts a record that changes no row.
	Count(what Uncounted)
	// Due says whether the batch is to be closed now and why; Deadline when time
	// alone will close it (zero: never).
	Due(now time.Time) (reason string, due bool)
	Deadline() time.Time
	Empty() bool
	// Flush closes the batch and hands it over; it blocks until it is taken.
	Flush(ctx context.Context, reason string) error
	// Full says that the memory budget is exceeded; Freed is closed when it may
	// not be any more.
	Full() (freed <-chan struct{}, full bool)
}

// Uncounted says why a record changed no row.
type Uncounted uint8

// The reasons.
const (
	CountSkipped Uncounted = iota
	CountDeadLetter
	CountDropped
)

// Owner is told about the group and about trouble; it owns the table.
type Owner interface {
	// Assigned: all partitions are ours.
	Assigned()
	// Revoked: they are not any more. It returns when no commit can follow, or
	// after a bounded time when an outcome stays unknown.
	Revoked()
	// Halted: reading stopped with a problem; the batches before it were handed
	// over. generation is the one it read under.
	Halted(p Problem, generation uint64)
	// Evolve: reading stopped before a record whose schema asks for a change of the
	// table's; the batches before it were handed over. Where it is read again, a
	// decoder for the changed table is needed. Without a change it is the table that
	// has another schema already (Outdated).
	Evolve(c *decode.SchemaChange, at change.Partition, offset int64, generation uint64)
	// Outdated says whether the table has another schema by now than the one that
	// records are decoded for, and one that can be followed.
	Outdated(ctx context.Context) bool
}

// Metrics are hooks; any may be nil.
type Metrics struct {
	Record   func(kind string, bytes int)                   // a change kind, or a skip reason
	RowError func(class string)                             // a record that cannot be applied
	Dropped  func(reason string)                            // a record that was given up
	Held     func(partitions int)                           // new partitions that wait
	Head     func(p change.Partition, offset, millis int64) // first record of a fetch
	Paused   func(reason string, d time.Duration)           // backpressure
	Buffered func(bytes int64)                              // held by the Kafka client
	Fetched  func(p change.Partition, high, stable int64)   // watermarks of a fetch
}

// KindNone is the kind of a record that carries nothing and is not skipped either.
const KindNone = "none"

// Options configure a Consumer.
type Options struct {
	Client   ClientOptions
	Pipeline string
	Group    string
	Topics   []string
	OnError  Policy
	// OnTruncate says what a record does that says that the source's table was emptied.
	OnTruncate TruncatePolicy
	// Ordered: order_by says what is newer, also between partitions.
	Ordered bool
	// Letters is needed for OnErrorDeadLetter.
	Letters *DeadLetters
	// Start is where a first start begins.
	Start Start
	// FetchBytes caps what the client fetches and buffers.
	FetchBytes int32
	// MaxRecordBytes refuses larger records (key and value).
	MaxRecordBytes int
	// SessionTimeout of the group; zero is the client's default.
	SessionTimeout time.Duration
	Log            *slog.Logger
	Metrics        Metrics
}

// Consumer reads one pipeline's topics as a member of its group. Run polls
// until its context ends; the other methods may be called from any goroutine.
type Consumer struct {
	o     Options
	cl    *kgo.Client
	admin *Admin
	dec   decode.Decoder
	col   Collector
	owner Owner
	// disconnect ends every request of the client.
	disconnect context.CancelFunc
	// running is closed by Run. The client joins the group as soon as it is made;
	// what it says about the group waits until everybody is there to hear it.
	running chan struct{}

	mu       sync.Mutex
	calls    []func()                   // what Run's goroutine is to do, in order
	wake     context.CancelFunc         // ends a poll or a pause that waits
	abandon  context.CancelFunc         // ends a hand-over that waits; nil without one
	outdated bool                       // the client knows a topic by an id that its broker does not
	suspect  bool                       // reading ended with an error that may pass by itself
	trial    chan Problem               // where a Resume on trial hears of the next one; nil without
	diverted bool                       // what is read now is in vain; until the next seek
	advisory map[change.Partition]int64 // what the group had committed at the last assignment
	assigned map[change.Partition]bool

	generation atomic.Uint64
	refused    map[change.Partition]refusal // guarded by mu; records that the table refused
	repeating  bool                         // of Run's goroutine; what is taken was taken before
	half       []*kgo.Record                // of Run's goroutine; the first half of a key change and its tombstone, at the end of the open batch
	truncated  *place                       // guarded by mu; the truncation that reading stopped at
	stepOver   *place                       // guarded by mu; the one that an operator lets pass

	// The rest belongs to the goroutine of Run.
	compared   bool // the group's offsets were found to differ, and it was said
	active     bool // positions are set and nothing is wrong
	suspended  bool // by an operator
	partitions []change.Partition
	ordinal    map[string][]int32
	held       map[change.Partition]int64 // new partitions and their start
	passing    map[change.Partition]int64 // where the old ones must come to release them
	rec        decode.Record
	headers    []change.Header
	notes      map[string]bool
	failing    int                            // polls in a row that brought errors only
	trouble    map[change.Partition]*troubled // partitions whose last fetch went wrong
	now        time.Time                      // while records are taken: read every clockEvery of them
	fresh      bool                           // the table's schema was looked at since the last poll, and is the decoder's
}

// NewConsumer prepares a consumer that calls nobody and takes nothing before
// Run, which must be called once: it also closes what was made here.
func NewConsumer(o Options, dec decode.Decoder, col Collector, owner Owner) (*Consumer, error) {
	c := &Consumer{o: o, dec: dec, col: col, owner: owner, running: make(chan struct{}), notes: map[string]bool{}}
	opts := []kgo.Opt{
		kgo.ConsumerGroup(o.Group),
		kgo.ConsumeTopics(o.Topics...),
		kgo.Balancers(&affineBalancer{}),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		// Without a position there is an error, never a silent jump; partitions
		// that appear later begin at their start (reliability.md §1.11).
		kgo.ConsumeResetOffset(kgo.NoResetOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.KeepRetryableFetchErrors(),
		kgo.FetchMaxBytes(o.FetchBytes),
		kgo.FetchMaxPartitionBytes(o.FetchBytes / 4),
		kgo.FetchMaxWait(time.Second),
		// A new leader is looked for every second; fenced fetches are repeated
		// without a pause until it is found.
		kgo.MetadataMinAge(time.Second),
		kgo.OnPartitionsAssigned(c.onAssigned),
		kgo.OnPartitionsRevoked(c.onRevoked),
		kgo.OnPartitionsLost(c.onRevoked),
		kgo.AdjustFetchOffsetsFn(c.adjust),
		kgo.OnPartitionsCallbackBlocked(func(context.Context, *kgo.Client) { c.interrupt() }),
	}
	opts = append(opts, kgo.WithHooks(connectHook{c.refusedByTLS}))
	if o.SessionTimeout > 0 {
		opts = append(opts, kgo.SessionTimeout(o.SessionTimeout), kgo.HeartbeatInterval(o.SessionTimeout/10))
	}
	ctx, disconnect := context.WithCancel(context.Background())
	cl, err := NewClient(o.Client, append(opts, kgo.WithContext(ctx))...)
	if err != nil {
		disconnect()
		return nil, err
	}
	c.cl, c.disconnect = cl, disconnect
	c.admin = NewAdmin(cl)
	// Nothing is fetched before the table said from where.
	cl.PauseFetchTopics(o.Topics...)
	return c, nil
}

// Admin asks the same brokers.
func (c *Consumer) Admin() *Admin { return c.admin }

func (c *Consumer) onAssigned(ctx context.Context, _ *kgo.Client, added map[string][]int32) {
	select {
	case <-c.running:
	case <-ctx.Done():
		return
	}
	c.mu.Lock()
	if c.assigned == nil {
		c.assigned = map[change.Partition]bool{}
	}
	for topic, parts := range added {
		for _, p := range parts {
			c.assigned[change.Partition{Topic: topic, Partition: p}] = true
		}
	}
	any := len(c.assigned) > 0
	c.mu.Unlock()
	c.cl.PauseFetchTopics(c.o.Topics...)
	c.call(func() { c.forget(change.Partition{}) }) // the group answered
	if !any {
		c.owner.Revoked() // somebody else has the table: standing by is well
		return
	}
	c.elsewhere()
	c.call(func() { c.active = false })
	c.owner.Assigned()
}

// onRevoked runs for revoked and lost partitions alike: the balancer moves all
// or nothing, so any loss is the loss of the table.
func (c *Consumer) onRevoked(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	if len(gone) == 0 {
		return
	}
	<-c.running // it follows an assignment, which waited for this
	c.mu.Lock()
	for topic, parts := range gone {
		for _, p := range parts {
			delete(c.assigned, change.Partition{Topic: topic, Partition: p})
		}
	}
	c.mu.Unlock()
	c.cl.PauseFetchTopics(c.o.Topics...)
	c.elsewhere()
	c.call(func() { c.active = false })
	c.owner.Revoked()
}

// adjust replaces the group's offsets: they are advisory, and fetching is
// paused until Resume sets the table's. Offset 0 only keeps the client from
// asking the broker for a reset.
func (c *Consumer) adjust(_ context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advisory = map[change.Partition]int64{}
	for topic, parts := range offsets {
		for p, o := range parts {
			if at := o.EpochOffset().Offset; at >= 0 {
				c.advisory[change.Partition{Topic: topic, Partition: p}] = at
			}
			parts[p] = kgo.NewOffset().At(0)
		}
	}
	return offsets, nil
}

// compare says, once, that the group's offsets are not where the table stands:
// somebody may have moved them and wait for an effect.
func (c *Consumer) compare(pos change.Positions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range pos.Sorted() {
		at, known := c.advisory[p]
		if !known || at == pos[p].Next || c.compared {
			continue
		}
		c.compared = true
		c.o.Log.Warn("the group's offsets are not those of the table, and are ignored: the table decides; to move it, use applier offsets set",
			"partition", p.String(), "group", at, "table", pos[p].Next)
	}
}

// call runs f in Run's goroutine, soon and after what was asked before.
func (c *Consumer) call(f func()) {
	c.mu.Lock()
	c.calls = append(c.calls, f)
	c.mu.Unlock()
	c.interrupt()
}

// interrupt ends a poll that waits.
func (c *Consumer) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wake != nil {
		c.wake()
	}
}

// ResolveStart asks where a first start begins.
func (c *Consumer) ResolveStart(ctx context.Context) (change.Positions, *Cluster, error) {
	return c.admin.Resolve(ctx, c.o.Topics, c.o.Start)
}

// Resume checks positions against Kafka and reads from there. Batches closed
// from now on carry the returned generation; older ones are void. Errors that
// are a *Problem must stop the pipeline.
func (c *Consumer) Resume(ctx context.Context, pos change.Positions, ids map[string]string, cluster string) (uint64, error) {
	added, err := c.admin.Check(ctx, c.o.Topics, pos, ids, cluster)
	if err != nil {
		return 0, err
	}
	if c.relearn() {
		return 0, errors.New("a topic was created again, and the group is joined anew for it")
	}
	starts, ends := map[change.Partition]int64{}, map[change.Partition]int64{}
	if len(added) > 0 {
		if starts, err = c.admin.Starts(ctx, c.o.Topics); err != nil {
			return 0, err
		}
		if ends, err = c.admin.Ends(ctx, c.o.Topics); err != nil {
			return 0, err
		}
	}
	if missing := c.missing(pos, added); missing != nil {
		return 0, missing
	}
	trial, end := c.onTrial()
	defer end()
	done := make(chan struct{})
	generation := c.generation.Add(1)
	c.elsewhere()
	c.call(func() {
		if c.generation.Load() != generation {
			return // asked to read from elsewhere meanwhile
		}
		c.seek(pos, added, starts, ends, generation)
		close(done)
	})
	select {
	case <-done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if trial == nil {
		return generation, nil
	}
	select {
	case p := <-trial:
		return 0, &p
	case <-time.After(trialTime):
		c.mu.Lock()
		c.suspect = false
		c.mu.Unlock()
		return generation, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// relearn has the client forget the topics' ids, if they may be another topic's:
// it never takes a new one by itself. That joins the group anew.
func (c *Consumer) relearn() bool {
	c.mu.Lock()
	outdated := c.outdated
	c.outdated = false
	if outdated {
		c.stepOver = nil // the same offset is of another record
	}
	c.mu.Unlock()
	if outdated {
		c.cl.PurgeTopicsFromConsuming(slices.Clone(c.o.Topics)...) // it sorts what it is given
		c.cl.AddConsumeTopics(c.o.Topics...)
	}
	return outdated
}

// trialTime is how long reading must go well before it counts as well again.
const trialTime = 2 * time.Second

// onTrial has the next problem answer the Resume under way, if the last one may
// not have passed: else the pipeline would look well between two halts, and
// would try again without a growing pause.
func (c *Consumer) onTrial() (<-chan Problem, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.suspect {
		return nil, func() {}
	}
	c.trial = make(chan Problem, 1)
	return c.trial, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.trial = nil
	}
}

func (c *Consumer) missing(pos change.Positions, added []change.Partition) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Unassigned(pos, added, c.assigned)
}

func (c *Consumer) seek(pos change.Positions, added []change.Partition, starts, ends map[change.Partition]int64, generation uint64) {
	c.dec.Restart()
	c.partitions = append(pos.Sorted(), added...)
	c.ordinal = map[string][]int32{}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	set := func(p change.Partition, at kgo.EpochOffset) {
		if offsets[p.Topic] == nil {
			offsets[p.Topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.Topic][p.Partition] = at
	}
	for i, p := range c.partitions {
		o := c.ordinal[p.Topic]
		for len(o) <= int(p.Partition) {
			o = append(o, -1)
		}
		o[p.Partition] = int32(i)
		c.ordinal[p.Topic] = o
		if at, ok := pos[p]; ok {
			set(p, kgo.EpochOffset{Epoch: at.Epoch, Offset: at.Next})
		} else {
			set(p, kgo.EpochOffset{Epoch: -1, Offset: starts[p]})
		}
	}
	c.compare(pos)
	c.hold(pos, added, starts, ends)
	c.col.Reset(pos, c.partitions, generation)
	c.half = nil
	c.mu.Lock()
	c.diverted, c.truncated = false, nil
	c.mu.Unlock()
	c.cl.SetOffsets(offsets)
	c.active = true
	c.failing, c.trouble = 0, nil
	if !c.suspended {
		c.cl.ResumeFetchTopics(c.o.Topics...)
	}
	c.release() // the old partitions may be quiet, at their ends already
}

// hold keeps new partitions back until the old ones passed the end they had
// when the new ones were discovered: until then a key may have moved.
func (c *Consumer) hold(pos change.Positions, added []change.Partition, starts, ends map[change.Partition]int64) {
	c.held, c.passing = nil, nil
	defer c.tellHeld()
	paused := c.cl.PauseFetchPartitions(nil)
	c.cl.ResumeFetchPartitions(paused)
	if len(added) == 0 {
		return
	}
	c.held, c.passing = map[change.Partition]int64{}, map[change.Partition]int64{}
	parts := map[string][]int32{}
	for _, p := range added {
		c.held[p] = starts[p]
		parts[p.Topic] = append(parts[p.Topic], p.Partition)
	}
	for p := range pos {
		c.passing[p] = ends[p]
	}
	c.cl.PauseFetchPartitions(parts)
	c.o.Log.Info("new partitions wait until the old ones are read up to here", "new", len(added), "topics", c.o.Topics)
}

// release lets held partitions go when every old one has passed its mark.
func (c *Consumer) release() {
	if c.held == nil {
		return
	}
	for p, end := range c.passing {
		if at, ok := c.col.Position(c.ordinalOf(p)); !ok || at.Next < end {
			return
		}
	}
	parts := map[string][]int32{}
	for p, start := range c.held {
		c.col.Advance(c.ordinalOf(p), start, -1, time.Now())
		parts[p.Topic] = append(parts[p.Topic], p.Partition)
	}
	c.held, c.passing = nil, nil
	c.tellHeld()
	c.cl.ResumeFetchPartitions(parts)
	c.o.Log.Info("new partitions are read now", "topics", c.o.Topics)
}

func (c *Consumer) tellHeld() {
	if m := c.o.Metrics.Held; m != nil {
		m(len(c.held))
	}
}

func (c *Consumer) ordinalOf(p change.Partition) int32 {
	o := c.ordinal[p.Topic]
	if p.Partition < 0 || int(p.Partition) >= len(o) {
		return -1
	}
	return o[p.Partition]
}

// Suspend stops reading (an operator's pause) and Unsuspend goes on.
func (c *Consumer) Suspend() {
	c.call(func() {
		c.suspended = true
		c.cl.PauseFetchTopics(c.o.Topics...)
	})
}

// Unsuspend undoes Suspend.
func (c *Consumer) Unsuspend() {
	c.call(func() {
		c.suspended = false
		if c.active {
			c.cl.ResumeFetchTopics(c.o.Topics...)
		}
	})
}

// FlushNow closes the open batch and returns when it is handed over; open is false
// if there was nothing to commit. ctx bounds the waiting only: a hand-over that ends
// early gives its batch up.
func (c *Consumer) FlushNow(ctx context.Context, reason string) (open bool, err error) {
	type result struct {
		open bool
		err  error
	}
	done := make(chan result, 1)
	c.call(func() {
		open := c.active && !c.col.Empty() && !c.onlyHalf()
		done <- result{open, c.flush(context.Background(), reason)}
	})
	select {
	case r := <-done:
		return r.open, r.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Commit tells the group where the table stands, for lag tools; an error
// changes nothing and is returned for the log only.
func (c *Consumer) Commit(ctx context.Context, pos change.Positions) error {
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for p, at := range pos {
		if offsets[p.Topic] == nil {
			offsets[p.Topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[p.Topic][p.Partition] = kgo.EpochOffset{Epoch: at.Epoch, Offset: at.Next}
	}
	errs := make(chan error, 1)
	c.cl.CommitOffsets(ctx, offsets, commitDone(errs))
	select {
	case err := <-errs:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run polls until ctx ends. Before it returns it hands over what is open, if
// drain is still possible.
func (c *Consumer) Run(ctx context.Context) error {
	defer c.close()
	close(c.running)
	for ctx.Err() == nil {
		c.runCalls()
		if err := c.flushDue(ctx); err != nil {
			return err
		}
		if err := c.waitForMemory(ctx); err != nil {
			return err
		}
		fetches := c.poll(ctx)
		if fetches.IsClientClosed() {
			return errors.New("the Kafka client was closed")
		}
		c.handle(ctx, fetches)
		c.cl.AllowRebalance()
		c.pace(ctx, fetches)
	}
	c.runCalls()
	return nil
}

func (c *Consumer) close() {
	// Leaving needs the callbacks, which need the owner; the caller stops the
	// owner after Run returned.
	c.cl.AllowRebalance()
	// Brokers that are silent must not keep a program from ending: they will give
	// the member up by themselves.
	defer time.AfterFunc(leaveTimeout, c.disconnect).Stop()
	c.cl.CloseAllowingRebalance()
	c.disconnect()
}

// leaveTimeout bounds the goodbye to the group.
const leaveTimeout = 5 * time.Second

func (c *Consumer) runCalls() {
	for {
		c.mu.Lock()
		if len(c.calls) == 0 {
			c.mu.Unlock()
			return
		}
		f := c.calls[0]
		c.calls = c.calls[1:]
		c.mu.Unlock()
		f()
	}
}

// poll waits for records, a call, or the batch's deadline.
func (c *Consumer) poll(ctx context.Context) kgo.Fetches {
	ctx, cancel := c.untilCalled(ctx)
	defer cancel()
	return c.cl.PollRecords(ctx, maxPollRecords)
}

// untilCalled returns a context that ends with a call or at the batch's deadline.
func (c *Consumer) untilCalled(ctx context.Context) (context.Context, context.CancelFunc) {
	var cancel context.CancelFunc
	if at := c.col.Deadline(); c.active && !at.IsZero() && !c.onlyHalf() {
		ctx, cancel = context.WithDeadline(ctx, at)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wake = cancel
	if len(c.calls) > 0 {
		cancel()
	}
	return ctx, cancel
}

// maxPollRecords bounds the work between two looks at limits and calls.
const maxPollRecords = 10_000

func (c *Consumer) flushDue(ctx context.Context) error {
	if !c.active || c.onlyHalf() {
		return nil
	}
	if reason, due := c.col.Due(time.Now()); due {
		return c.flush(ctx, reason)
	}
	return nil
}

// flush hands the open batch over. Rebalances may go on meanwhile: a batch that
// is not ours any more is fenced by the table.
func (c *Consumer) flush(ctx context.Context, reason string) error {
	if !c.active || c.col.Empty() || c.onlyHalf() {
		return nil
	}
	if c.half != nil {
		defer c.again(ctx, c.rewind())
	}
	if !c.flushLetters(ctx) {
		return nil
	}
	from := time.Now()
	handing, done := c.handOver(ctx)
	err := c.col.Flush(handing, reason)
	done()
	c.paused("commit", from)
	if err != nil && handing.Err() != nil {
		// The batch is gone; reading goes on where the next Resume says.
		c.active = false
		return nil
	}
	return err
}

// handOver returns a context for a hand-over, which ends early when it is in
// vain: the loop that would take the batch asks to read from elsewhere, or waits
// in a revocation for us.
func (c *Consumer) handOver(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandon = cancel
	if c.diverted {
		cancel() // asked just before this
	}
	return ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.abandon = nil
		cancel()
	}
}

// elsewhere gives up a hand-over that waits.
func (c *Consumer) elsewhere() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.diverted = true
	if c.abandon != nil {
		c.abandon()
	}
}

// flushLetters makes the batch's dead letters durable first. A failure keeps
// the batch open and is tried again.
func (c *Consumer) flushLetters(ctx context.Context) bool {
	if c.o.Letters == nil {
		return true
	}
	err := c.o.Letters.Flush(ctx)
	if err == nil {
		return true
	}
	if ctx.Err() == nil {
		c.mu.Lock()
		c.suspect = true // it may pass, and is well again only when letters go through
		c.mu.Unlock()
		c.stopWith(Problem{"D-DLQ", err.Error()})
	}
	return false
}

func (c *Consumer) paused(reason string, from time.Time) {
	if m := c.o.Metrics.Paused; m != nil {
		m(reason, time.Since(from))
	}
}

// waitForMemory stops fetching while the process's budget is exceeded: first the
// open batch goes, then nothing more is taken until somebody freed memory.
func (c *Consumer) waitForMemory(ctx context.Context) error {
	if m := c.o.Metrics.Buffered; m != nil {
		m(c.cl.BufferedFetchBytes())
	}
	if _, full := c.col.Full(); !full || !c.active {
		return nil
	}
	if err := c.flush(ctx, "memory"); err != nil {
		return err
	}
	freed, full := c.col.Full()
	if !full {
		return nil
	}
	from := time.Now()
	defer c.paused("memory", from)
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for full { // something freed, such as by the batch just committed, need not be enough
		select {
		case <-freed:
		case <-timer.C: // progress even if nobody else ever frees anything
			return nil
		case <-ctx.Done():
			return nil
		}
		freed, full = c.col.Full()
	}
	return nil
}
