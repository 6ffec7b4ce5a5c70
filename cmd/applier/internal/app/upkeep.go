package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"applier/merger"
	"applier/merger/compact"
	"applier/metrics"
	"applier/storage/catalog"
	"applier/storage/paimon"

	"github.com/google/uuid"
)

// upkeep is the maintenance of a pipeline's table (config maintenance). It has a
// table handle and a commit user of its own: to the commit loop it is a foreign
// writer, and nothing that goes wrong with it touches the pipeline.
type upkeep struct {
	mu     sync.Mutex
	cancel context.CancelFunc // of the round under way; nil while none can be
	idle   chan struct{}      // is closed when that is over
}

// keep looks after the table until ctx ends.
func (p *pipeline) keep(ctx context.Context) {
	if !p.cfg.Maintenance.On() {
		return
	}
	k, err := p.keeper()
	if err != nil {
		p.log.Error("the table is not maintained", "err", err)
		return
	}
	for ctx.Err() == nil {
		rounds, cancel := context.WithCancel(ctx)
		over := p.upkeep.begin(cancel)
		// A panic has been logged; like an interruption it costs one round.
		_ = p.guard("in maintenance", func() error { k.Run(rounds); return nil })
		cancel()
		over()
	}
}

// begin notes how rounds can be ended; the function returned notes that they have.
func (u *upkeep) begin(cancel context.CancelFunc) func() {
	idle := make(chan struct{})
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancel, u.idle = cancel, idle
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.cancel, u.idle = nil, nil
		close(idle)
	}
}

// interrupt ends the round under way, if there is one. The next one begins when
// its time has come and the pipeline is at work. The channel returned, nil if
// there is nothing to wait for, is closed when the round is over.
func (u *upkeep) interrupt() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cancel != nil {
		u.cancel()
	}
	return u.idle
}

// quiet interrupts and waits: nothing is published any more.
func (u *upkeep) quiet(ctx context.Context) {
	idle := u.interrupt()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// keeper is what keeps the pipeline's table in shape.
func (p *pipeline) keeper() (*compact.Keeper, error) {
	m := p.cfg.Maintenance
	window, err := compact.ParseWindow(m.Window)
	if err != nil {
		return nil, fmt.Errorf("maintenance.window: %w", err)
	}
	name, err := catalog.ParseName(p.target)
	if err != nil {
		return nil, err
	}
	return &compact.Keeper{
		Upkeep: compact.Upkeep{
			Compact: m.Compact, Expire: m.Expire, Orphans: m.Orphans,
			Every: m.Every, Window: window, Rate: int64(m.Rate), DeletedRatio: float64(m.DeletedRatio),
			Young: Young(p.app.cfg.StuckAfter),
		},
		Open: func(ctx context.Context) (*paimon.Table, error) { return p.app.catalog.Open(ctx, name, paimon.Write) },
		Mine: p.mayKeep, CommitRows: p.commitRows, Tell: p.kept,
		Options: compact.Options{
			User: "applier-compact-" + uuid.NewString(), NewUUID: uuid.NewString, Now: time.Now, Log: p.log,
			MemoryBytes: p.app.joining.bytes, Enter: p.app.joining.enter,
		},
		Log: p.log,
	}, nil
}

// unwatched is how long a publish may hang, about, where no watchdog ends it.
const unwatched = time.Hour

// Young is the age below which maintenance leaves snapshots alone: an instance that
// hangs while it publishes ends itself by then (config stuck_after; 0 is never).
func Young(stuckAfter time.Duration) time.Duration {
	if stuckAfter > 0 {
		return stuckAfter
	}
	return unwatched
}

// mayKeep reports whether the table is this instance's, and the pipeline at work.
func (p *pipeline) mayKeep() bool {
	return p.consumer.Owned() && stateOf(p.applier.Status()) == metrics.StateRunning
}

// commitRows is how many rows a commit has changed on average.
func (p *pipeline) commitRows() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.totals
	return (t.inserted + t.updated + t.deleted) / max(t.commits, 1)
}

// kept counts what a round of maintenance has done.
func (p *pipeline) kept(d compact.Done) {
	m := &p.app.metrics.Storage.Maintenance
	for _, s := range d.Steps {
		result := "nothing"
		switch {
		case s.Err != nil:
			result = "failed"
		case s.Did:
			result = "done"
		}
		m.Runs.WithLabelValues(p.name, p.target, string(s.Action), result).Inc()
		m.Seconds.WithLabelValues(p.name, p.target, string(s.Action)).Observe(s.Took.Seconds())
	}
	c := d.Compaction
	m.Bytes.WithLabelValues(p.name, p.target, "read").Add(float64(c.BytesRead))
	m.Bytes.WithLabelValues(p.name, p.target, "written").Add(float64(c.BytesWritten))
	if c.Commits > 0 {
		p.applier.Post(merger.Maintained{}) // or the next batch is built on what it has replaced
		m.FilesCompacted.WithLabelValues(p.name, p.target).Add(float64(c.FilesBefore))
		m.RowsPurged.WithLabelValues(p.name, p.target).Add(float64(c.RowsPurged))
	}
	m.SnapshotsExpired.WithLabelValues(p.name, p.target).Add(float64(d.Expired))
	m.OrphansDeleted.WithLabelValues(p.name, p.target).Add(float64(d.Orphans))
}
