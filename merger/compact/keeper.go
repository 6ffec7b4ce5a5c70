package compact

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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
	// Young is the age below which no snapshot is removed, whatever the table's
	// options say (PlanExpire).
	Young time.Duration
}

// Action is a kind of upkeep.
type Action string

// The actions, in the order of a round.
const (
	ActionCompact Action = "compact"
	ActionExpire  Action = "expire"
	ActionOrphans Action = "orphans"
)

// Step is one action of a round.
type Step struct {
	Action Action
	Did    bool // there was something to do, and it was done
	Took   time.Duration
	Err    error
}

// Done is what a round has done.
type Done struct {
	Steps      []Step
	Compaction Result
	Expired    int64 // snapshots
	Orphans    int
	Took       time.Duration
	Err        error // of all steps
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
	// Tell is told of every round that looked at the table.
	Tell    func(Done)
	Options Options // User, NewUUID, Now and Log
	Log     *slog.Logger

	orphans time.Time // last search
	next    time.Time // round; zero before the first Run
}

// firstRound is after how long the first round comes at the latest: a process that
// starts again and again would otherwise never come to one.
const firstRound = time.Minute

// orphanAge and orphanEvery are those of the search for orphans: rarely, and only
// for what is long past.
const (
	orphanAge   = 3 * 24 * time.Hour
	orphanEvery = 24 * time.Hour
)

// Run goes on until ctx ends. Errors are told and do not end it. A later Run goes on
// in the same rhythm.
func (k *Keeper) Run(ctx context.Context) {
	if k.next.IsZero() {
		k.next = time.Now().Add(min(k.Upkeep.Every, firstRound))
	}
	for k.wait(ctx) {
		k.next = time.Now().Add(k.Upkeep.Every)
		if !k.Mine() {
			continue
		}
		start := time.Now()
		d := k.round(ctx)
		d.Took = time.Since(start)
		if ctx.Err() != nil {
			return
		}
		if len(d.Steps) > 0 {
			k.tell(d)
		}
	}
}

// wait returns when the next round is due, false if ctx ends before.
func (k *Keeper) wait(ctx context.Context) bool {
	t := time.NewTimer(time.Until(k.next))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
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

// due returns the actions that this round is for.
func (k *Keeper) due() (actions []Action) {
	now := k.Options.Now()
	if k.Upkeep.Compact && k.Upkeep.Window.Holds(now) {
		actions = append(actions, ActionCompact)
	}
	if k.Upkeep.Expire {
		actions = append(actions, ActionExpire)
	}
	if k.Upkeep.Orphans && now.Sub(k.orphans) >= orphanEvery {
		actions = append(actions, ActionOrphans)
	}
	return actions
}

// round looks at the table once. What fails does not keep the rest from being done.
func (k *Keeper) round(ctx context.Context) (d Done) {
	due := k.due()
	if len(due) == 0 {
		return d
	}
	var t *paimon.Table
	d.Err = k.guard(func() (err error) {
		t, err = k.Open(ctx)
		return err
	})
	if d.Err != nil {
		for _, a := range due {
			d.Steps = append(d.Steps, Step{Action: a, Err: d.Err})
		}
		return d
	}
	if t.Options().WriteOnly {
		return d // write-only: another job does this
	}
	for _, a := range due {
		if ctx.Err() != nil || !k.Mine() {
			return d
		}
		s, from := Step{Action: a}, time.Now()
		s.Err = k.guard(func() (err error) {
			s.Did, err = k.act(ctx, t, a, &d)
			return err
		})
		s.Took = time.Since(from)
		if s.Err != nil {
			s.Err = fmt.Errorf("%s: %w", a, s.Err)
		}
		d.Steps, d.Err = append(d.Steps, s), errors.Join(d.Err, s.Err)
	}
	return d
}

// ErrPanic says that an action ended by a panic. It did no more harm than any
// other error: what is not committed is in nobody's way.
var ErrPanic = errors.New("panic")

// guard turns a panic into an error.
func (k *Keeper) guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			k.Log.Error("panic while keeping the table in shape", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", ErrPanic, r)
		}
	}()
	return f()
}

// act performs one action and adds to what the round has done.
func (k *Keeper) act(ctx context.Context, t *paimon.Table, a Action, d *Done) (did bool, err error) {
	switch a {
	case ActionCompact:
		d.Compaction, err = k.compact(ctx, t)
		return d.Compaction.Commits > 0, err
	case ActionExpire:
		d.Expired, err = k.expire(ctx, t)
		return d.Expired > 0, err
	}
	now := k.Options.Now()
	found, err := t.FindOrphans(ctx, now, now.Add(-orphanAge))
	if err != nil {
		return false, err
	}
	if err := t.DeleteOrphans(ctx, found); err != nil {
		return false, err
	}
	k.orphans, d.Orphans = now, len(found)
	if _, err := t.Uploads(ctx, now, now.Add(-orphanAge), true); err != nil {
		return len(found) > 0, err
	}
	return len(found) > 0, nil
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
		if !k.Mine() {
			return n, nil
		}
		p, err := PlanExpire(ctx, t, t.Options().ExpireOptions(k.Options.Now()), k.Upkeep.Young)
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
