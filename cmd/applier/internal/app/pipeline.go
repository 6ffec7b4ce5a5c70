package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"applier/batcher"
	"applier/config"
	"applier/ingest"
	"applier/ingest/change"
	"applier/ingest/decode"
	"applier/merger"
	"applier/metrics"
	"applier/metrics/admin"
	"applier/storage/failpoint"
	"applier/storage/objstore"
	"applier/storage/paimon"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// pipeline is one configured stream into one table.
type pipeline struct {
	app    *App
	cfg    *config.Pipeline
	name   string
	target string
	log    *slog.Logger

	// Set when the pipeline was started; guarded by mu for other goroutines.
	mu       sync.Mutex
	bound    *bound
	applier  *merger.Applier
	consumer *ingest.Consumer
	batcher  *batcher.Batcher
	letters  *ingest.DeadLetters // nil unless something is sent to them
	opening  error               // why it is not started yet
	paused   bool                // was, when its table was to be opened anew; of run's goroutine
	since    time.Time
	lags     map[change.Partition]ingest.Lag
	last     merger.Commit
	lastTime time.Time
	visible  time.Time // all input up to here is in the table; zero: not known
	behind   time.Time // the same while newer input waits; zero: caught up
	judged   bool      // behind is known
	commits  []admin.CommitStatus
	totals   totals

	advisory    chan change.Positions
	inFlight    atomic.Int64
	openBytes   atomic.Int64
	openRecords atomic.Int64
	debt        atomic.Int64 // since when compaction has something to do, as Unix milliseconds; 0: it has not
	fetched     atomic.Int64
	errors      atomic.Int64
	ledger      *batcher.Account
	ages        ages
	alarms      alarms
	upkeep      upkeep
	evolution   evolutions
	away        time.Time                                 // since when Kafka has not answered, of watch's goroutine
	told        bool                                      // that it does not; of watch's goroutine
	lookups     struct{ hits, misses, collisions rising } // of watch's goroutine
	duplicates  rising                                    // of watch's goroutine
	failures    rising                                    // of watch's goroutine
	starts      *starts
	crashed     *merger.Halt  // why reading ended by a panic; guarded by mu
	revive      chan struct{} // an operator wants it to be tried again
}

// totals count since the start of the process.
type totals struct {
	inserted, updated, deleted, unchanged, collapsed, dropped, commits int64
}

func newPipeline(a *App, cfg *config.Pipeline) *pipeline {
	return &pipeline{
		app: a, cfg: cfg, name: cfg.Name, target: cfg.Target.Table, since: time.Now(), advisory: make(chan change.Positions, 1),
		starts: newStarts(filepath.Join(a.cfg.StateDir, cfg.ID+".running")), revive: make(chan struct{}, 1),
		ledger: a.budget.Account(), log: a.log.With("pipeline", cfg.Name, "table", cfg.Target.Table),
	}
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// account reports the pipeline's memory to the budget.
func (p *pipeline) account() {
	p.ledger.Set(p.inFlight.Load() + p.openBytes.Load() + p.fetched.Load() + p.indexBytes())
}

// indexBytes is the memory of the key index and of the remembered deletes.
func (p *pipeline) indexBytes() int64 {
	p.mu.Lock()
	a := p.applier
	p.mu.Unlock()
	if a == nil {
		return 0
	}
	s := a.Status()
	return s.IndexBytes + s.DeletesBytes
}

func (p *pipeline) release(b *batcher.Batch) {
	p.inFlight.Add(-b.MemBytes())
	p.batcher.Recycle(b)
	p.account()
}

// committed counts a commit and then tells whoever follows: what is asked from
// there on shows it.
func (p *pipeline) committed(c merger.Commit) {
	p.count(c)
	p.starts.committed(p.log)
	if p.app.onCommit != nil {
		p.app.onCommit(p.name, c)
	}
}

func (p *pipeline) count(c merger.Commit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.lastTime = c, time.Now()
	p.last.Batch = nil
	t := &p.totals
	t.commits++
	t.inserted += c.Counts.Inserted
	t.updated += c.Counts.Updated
	t.deleted += c.Counts.Deleted
	t.unchanged += c.Counts.Unchanged
	t.dropped += c.Counts.Late + c.Counts.Tied + c.Counts.Ignored + c.Counts.Dropped
	if c.Batch != nil {
		p.remember(c)
		n := &c.Batch.Counts
		t.collapsed += n.Collapsed
		t.dropped += n.Ignored + n.Late + n.Tied + n.Dropped
	}
}

// commitsShown is how many of the last commits the status shows.
const commitsShown = 5

// remember keeps a commit for the status. p.mu is held.
func (p *pipeline) remember(c merger.Commit) {
	one := admin.CommitStatus{
		Snapshot: c.Snapshot, Time: p.lastTime, Records: c.Batch.Counts.Records,
		Inserted: c.Counts.Inserted, Updated: c.Counts.Updated, Deleted: c.Counts.Deleted, Seconds: c.Took.Seconds(),
	}
	p.commits = append([]admin.CommitStatus{one}, p.commits[:min(len(p.commits), commitsShown-1)]...)
}

// reopenEvery is how often a pipeline that cannot start tries again.
const reopenEvery = 10 * time.Second

// run opens the table and reads until drain ends; then it commits what it has
// and stops. Cancelling ctx abandons everything.
func (p *pipeline) run(ctx context.Context, drain <-chan struct{}) error {
	p.app.metrics.Start(p.name, p.target)
	if slo := p.cfg.FreshnessSLO; slo > 0 {
		p.app.metrics.Pipeline.FreshnessSLO.WithLabelValues(p.name, p.target).Set(slo.Seconds())
	}
	if !p.startSlowly(ctx, drain) {
		return nil
	}
	for {
		err := p.live(ctx, drain)
		if errors.Is(err, merger.ErrReopen) {
			if ended(drain) {
				return nil
			}
			p.log.Info("the table has another schema; it is opened anew")
			p.paused = p.applier.Status().Paused
			continue
		}
		if !errors.Is(err, errPanic) {
			if err == nil && ctx.Err() == nil {
				p.starts.stopped(p.log)
			}
			return err
		}
		if !p.standStill(ctx, drain, err) {
			return nil
		}
	}
}

func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// live opens the pipeline, as often as it takes, and works until it ends.
func (p *pipeline) live(ctx context.Context, drain <-chan struct{}) error {
	for {
		err := p.open(ctx)
		if err == nil {
			break
		}
		p.mu.Lock()
		repeated := p.opening != nil && p.opening.Error() == err.Error()
		p.opening = err
		p.mu.Unlock()
		p.app.metrics.Pipeline.SetState(p.name, p.target, metrics.StateBackoff)
		if !repeated {
			p.log.Error("the pipeline cannot start; it tries again", "err", err)
		}
		select {
		case <-time.After(reopenEvery):
		case <-drain:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	if p.letters != nil {
		defer p.letters.Close()
	}
	return p.work(ctx, drain)
}

// open prepares everything that work needs.
func (p *pipeline) open(ctx context.Context) error {
	table, err := openTable(ctx, p.app.catalog, p.cfg, p.app.kafka, p.log)
	if err != nil {
		return err
	}
	if table, err = p.evolve(ctx, table); err != nil {
		return err
	}
	if err := suitable(table.Bucket(), p.app.cfg.Warehouse.Network); err != nil {
		return err
	}
	if err := objstore.Probe(ctx, table.Bucket(), "snapshot"); err != nil {
		return fmt.Errorf("the warehouse cannot publish snapshots safely: %w", err)
	}
	b, err := bind(p.cfg, table)
	if err != nil {
		return err
	}
	dec, err := p.decoder(b)
	if err != nil {
		return err
	}
	bat, err := p.newBatcher(b)
	if err != nil {
		return err
	}
	letters, err := p.deadLetters()
	if err != nil {
		return err
	}
	opened := false
	defer func() {
		if !opened && letters != nil {
			letters.Close() // the pipeline tries again, with another client
		}
	}()
	settings, err := p.settings(b)
	if err != nil {
		return err
	}
	deps := merger.Deps{Name: p.target, Table: table, Source: source{p}, Observer: observer{p, p.app.metrics, p.log}, Fits: p.fits}
	if letters != nil {
		deps.Letters = letters
	}
	applier, err := merger.New(ctx, settings, deps)
	if err != nil {
		return err
	}
	col := &collector{bat, p}
	consumer, err := ingest.NewConsumer(ingest.Options{
		Client: p.app.kafka, Pipeline: p.name, Group: groupOf(p.cfg), Topics: p.cfg.Source.TopicList(), OnError: ingest.Policy(p.cfg.OnError),
		OnTruncate: ingest.TruncatePolicy(p.cfg.OnTruncate), Ordered: len(p.cfg.OrderBy.By) > 0,
		Letters: letters, Start: start(p.cfg.Source.Start), FetchBytes: p.app.fetchBytes, MaxRecordBytes: int(p.cfg.MaxRecordBytes),
		SessionTimeout: p.app.sessionTimeout, Log: p.log, Metrics: p.ingestMetrics(),
	}, dec, col, owner{p, applier})
	if err != nil {
		return err
	}
	if p.paused { // by an operator, who has not resumed it
		consumer.Suspend()
		applier.Post(merger.PauseAsked{})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound, p.applier, p.consumer, p.batcher, p.letters, p.opening = b, applier, consumer, bat, letters, nil
	opened = true
	return nil
}

func (p *pipeline) decoder(b *bound) (decode.Decoder, error) {
	b.decode.Evolution = evolutionOf(p.cfg, b)
	b.decode.Evolution.Leave = p.evolution.leave()
	return decode.New(p.cfg.Source.Format.Type, b.decode)
}

func (p *pipeline) newBatcher(b *bound) (*batcher.Batcher, error) {
	limits := batcher.Limits{Rows: int(p.cfg.Batch.Rows), Bytes: p.starts.limit(int64(p.cfg.Batch.Bytes)), Interval: p.cfg.Batch.Interval, IdleFlush: p.cfg.Batch.IdleFlush}
	return batcher.New(batcher.Options{
		Fields: b.table.Schema().Fields, Key: b.key, Apply: b.apply, Order: b.order, Remembers: p.cfg.OrderBy.RememberDeletes > 0, Limits: limits,
	})
}

// fits says whether the pipeline suits its table as it is now.
func (p *pipeline) fits(t *paimon.Table) error {
	_, err := bind(p.cfg, t)
	return err
}

// groupOf names the consumer group: the pipeline's identity, as in the record.
func groupOf(p *config.Pipeline) string { return merger.PropertyPrefix + p.ID }

func (p *pipeline) deadLetters() (*ingest.DeadLetters, error) {
	if !p.cfg.DeadLetters() {
		return nil, nil
	}
	letters, err := ingest.NewDeadLetters(p.app.kafka, p.cfg.DeadLetter.Topic, p.name)
	if err != nil {
		return nil, err
	}
	letters.Written = func(class string) {
		p.app.metrics.Ingest.DeadLetters.WithLabelValues(p.name, p.target, class).Inc()
	}
	return letters, nil
}

// settings of the commit loop. Every pipeline has a folder of its own below
// state_dir for the sidecars of its index.
func (p *pipeline) settings(b *bound) (merger.Settings, error) {
	dir := filepath.Join(p.app.cfg.StateDir, p.cfg.ID)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return merger.Settings{}, fmt.Errorf("making the state folder: %w", err)
	}
	if p.cfg.OrderBy.RememberDeletes > 0 { // it holds keys: for our eyes only
		if err := os.MkdirAll(filepath.Join(p.app.cfg.StateDir, merger.DeletesFolder(p.cfg.ID)), 0o700); err != nil {
			return merger.Settings{}, fmt.Errorf("making the folder of remembered deletes: %w", err)
		}
	}
	marks, err := objstore.NewLocal(p.app.cfg.StateDir, objstore.LocalOptions{})
	if err != nil {
		return merger.Settings{}, err
	}
	return merger.Settings{
		ID: p.cfg.ID, Apply: b.apply, Merge: b.merge, Key: b.key, Order: b.order, RememberDeletes: p.cfg.OrderBy.RememberDeletes, Topics: p.cfg.Source.TopicList(),
		OnRowError: string(p.cfg.OnError), Instance: p.app.instance, Pin: p.cfg.Pin, VerifySample: verifySample(),
		IndexCeiling: p.app.indexCeiling(p), StateDir: dir, Marks: marks, CopyBytes: p.app.joining.bytes, EncodeConcurrency: p.app.encoders,
		CommitUserPrefix: "applier-", Log: p.log, Now: time.Now, UUID: uuid.NewString,
	}, nil
}

// verifySample: one matched row in so many is read back before it is marked; each in
// builds that can be made to fail.
func verifySample() int {
	if failpoint.Enabled {
		return 1
	}
	return 1 << 15
}

// drainGrace bounds the last commit on a graceful stop.
const drainGrace = 20 * time.Second

// work runs consumer and commit loop side by side until drain, then stops them
// in order: read no more, commit what was read, leave the group.
func (p *pipeline) work(ctx context.Context, drain <-chan struct{}) error {
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	reading, stopReading := context.WithCancel(ctx)
	defer stopReading()
	g, gctx := errgroup.WithContext(ctx)
	loopDone := make(chan struct{})
	g.Go(func() error {
		defer close(loopDone)
		err := p.applier.Run(gctx)
		if err != nil { // another loop is to take its place
			stopReading()
		}
		return err
	})
	g.Go(func() error {
		defer stopReading() // those below follow
		return p.guard("while reading", func() error { return p.consumer.Run(reading) })
	})
	g.Go(func() error { p.advise(reading); return nil })
	g.Go(func() error { p.watch(reading); return nil })
	g.Go(func() error { p.survey(reading); return nil })
	keeping, stopKeeping := context.WithCancel(reading)
	defer stopKeeping()
	g.Go(func() error { p.keep(keeping); return nil })
	g.Go(func() error {
		select {
		case <-drain:
		case <-gctx.Done():
			return nil
		}
		p.app.metrics.Pipeline.SetState(p.name, p.target, metrics.StateDraining)
		stopKeeping()
		grace, cancel := context.WithTimeout(gctx, drainGrace)
		defer cancel()
		p.consumer.Drain(grace)
		p.applier.Post(merger.StopAsked{})
		select {
		case <-loopDone:
		case <-grace.Done():
			p.log.Warn("the last commit took too long and is abandoned; its records are read again")
			abandon()
		}
		stopReading()
		return nil
	})
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// advise commits group offsets for lag tools, the newest only.
func (p *pipeline) advise(ctx context.Context) {
	for {
		select {
		case pos := <-p.advisory:
			if err := p.consumer.Commit(ctx, pos); err != nil && ctx.Err() == nil {
				p.log.Debug("the advisory group offsets could not be committed", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
