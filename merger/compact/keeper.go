package compact

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"applier/storage/paimon"
)

// Upkeep says how a table is kept in shape.
type Upkeep struct {
	Compact, Expire, Orphans bool
	// Every is how often a table is looked at.
	Every time.Duration
	// Window bounds the time of day of compactions; the zero Window does not.
	Window Window
	// Rate bounds the bytes a second that compactions read; 0 does not.
	Rate int64
	// DeletedRatio is the share of deleted rows at which a file is written again; 0
	// follows the sizes of commits and table (PurgeRatio).
	DeletedRatio float64
}

// Done is what a round has done.
type Done struct {
	Compaction Result
	Expired    int64 // snapshots
	Orphans    int
	Took       time.Duration
	Err        error
}

// Keeper keeps one table in shape, round after round, until its context ends. It
// belongs to one goroutine.
type Keeper struct {
	Upkeep Upkeep
	// Open opens the table at its latest schema, for writing.
	Open func(ctx context.Context) (*paimon.Table, error)
	// Mine reports whether this process is the one to keep the table.
	Mine func() bool
	// CommitRows is about how many rows one commit of the pipeline has; 0 if nobody knows.
	CommitRows func() int64
	// Tell is told of every round that did or met something.
	Tell    func(Done)
	Options Options // User, NewUUID, Now and Log
	Log     *slog.Logger

	orphans time.Time // last search
}

// orphanAge and orphanEvery are those of the search for orphans: rarely, and only
// for what is long past.
const (
	orphanAge   = 3 * 24 * time.Hour
	orphanEvery = 24 * time.Hour
)

// Run goes on until ctx ends. Errors are told and do not end it.
func (k *Keeper) Run(ctx context.Context) {
	t := time.NewTicker(k.Upkeep.Every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if !k.Mine() {
			continue
		}
		start := time.Now()
		d := k.round(ctx)
		d.Took = time.Since(start)
		if ctx.Err() != nil {
			return
		}
		if d.Err != nil || d.Compaction.Commits > 0 || d.Expired > 0 || d.Orphans > 0 {
			k.tell(d)
		}
	}
}

func (k *Keeper) tell(d Done) {
	if d.Err != nil {
		k.Log.Warn("keeping the table in shape failed; it is tried again", "err", d.Err)
	}
	if c := d.Compaction; c.Commits > 0 {
		k.Log.Info("compacted", "files", c.FilesBefore, "became", c.FilesAfter, "rows_purged", c.RowsPurged,
			"bytes_read", c.BytesRead, "bytes_written", c.BytesWritten, "abandoned", c.Abandoned, "snapshot", c.Snapshot)
	}
	if d.Expired > 0 || d.Orphans > 0 {
		k.Log.Info("cleaned", "snapshots_expired", d.Expired, "orphans_deleted", d.Orphans)
	}
	k.Tell(d)
}

// round looks at the table once.
func (k *Keeper) round(ctx context.Context) (d Done) {
	t, err := k.Open(ctx)
	if err != nil {
		return Done{Err: err}
	}
	if t.Options().WriteOnly {
		return d // write-only: another job does this
	}
	if k.Upkeep.Compact && k.Upkeep.Window.Holds(k.Options.Now()) {
		d.Compaction, d.Err = k.compact(ctx, t)
		if d.Err != nil {
			return d
		}
	}
	if k.Upkeep.Expire {
		if d.Expired, d.Err = k.expire(ctx, t); d.Err != nil {
			return d
		}
	}
	if now := k.Options.Now(); k.Upkeep.Orphans && now.Sub(k.orphans) >= orphanEvery {
		k.orphans = now
		found, err := t.FindOrphans(ctx, now, now.Add(-orphanAge))
		if err == nil {
			err = t.DeleteOrphans(ctx, found)
		}
		d.Orphans, d.Err = len(found), err
	}
	return d
}

func (k *Keeper) compact(ctx context.Context, t *paimon.Table) (Result, error) {
	o := k.Options
	ratio := k.Upkeep.DeletedRatio
	if ratio == 0 {
		st, files, err := Survey(ctx, t)
		if err != nil || st.Snapshot == nil {
			return Result{}, err
		}
		rows := int64(0)
		for _, f := range files {
			rows += f.Entry.File.Rows - f.Deleted
		}
		ratio = PurgeRatio(k.CommitRows(), rows)
	}
	o.Policy = NewPolicy(t, ratio)
	o.Throttle = throttle(k.Upkeep.Rate, func() bool { return k.Mine() && k.Upkeep.Window.Holds(k.Options.Now()) })
	r, err := Run(ctx, t, o)
	switch {
	case err == errWindow: // and nothing else: what was joined is committed
		return r, nil
	case errors.Is(err, paimon.ErrSchemaChanged): // the next round opens the table anew
		return r, nil
	}
	return r, err
}

// expireRounds bounds the runs of one round: an expiry that was off for long
// catches up over several.
const expireRounds = 10

func (k *Keeper) expire(ctx context.Context, t *paimon.Table) (n int64, err error) {
	for range expireRounds {
		p, err := PlanExpire(ctx, t, t.Options().ExpireOptions(k.Options.Now()))
		if err != nil || p.Snapshots() == 0 {
			return n, err
		}
		if err := t.Expire(ctx, p); err != nil {
			return n, err
		}
		n += p.Snapshots()
	}
	return n, nil
}

var errWindow = errors.New("the time for compactions has ended")

// throttle spreads bytes over time, and stops where open says so.
func throttle(rate int64, open func() bool) func(context.Context, int64) error {
	var next time.Time
	return func(ctx context.Context, bytes int64) error {
		if !open() {
			return errWindow
		}
		if rate <= 0 {
			return ctx.Err()
		}
		now := time.Now()
		if wait := next.Sub(now); wait > 0 {
			t := time.NewTimer(wait)
			defer t.Stop()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-t.C:
			}
			if !open() {
				return errWindow
			}
		} else {
			next = now
		}
		next = next.Add(time.Duration(float64(bytes) / float64(rate) * float64(time.Second)))
		return nil
	}
}
