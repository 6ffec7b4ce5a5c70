package merger

import (
	"context"

	"applier/ingest/change"
)

// Status is a snapshot of the loop's state for other goroutines.
type Status struct {
	Phase      Phase
	Paused     bool
	Quiet      bool // paused, and nothing more is published until resumed
	Halt       *Halt
	Halts      uint64 // how often the loop came to stand still
	Retries    int    // consecutive failures of what is tried now
	Failures   int64  // steps of attempts that could not be done
	Failure    string // the last one, while it is tried again
	Positions  change.Positions
	Snapshot   SnapRef
	Seq        int64
	Epoch      int64
	Rebuild    float64 // progress of an index rebuild, 0..1; 1 when there is none
	IndexKeys  int64
	IndexBytes int64
	Behind     int64 // snapshots above the pinned one; 0 without a pin
	Duplicates int64 // foreign rows whose key the table already had
	// Deletes are remembered (order_by.remember_deletes), in DeletesBytes of memory.
	Deletes      int
	DeletesBytes int64
	// Deletes committed from ForgottenSince to ForgottenUntil are forgotten although
	// they should be remembered; milliseconds since the epoch, 0 if none are.
	ForgottenSince, ForgottenUntil int64
	Figures
}

// Await blocks until the status fulfils a condition; false if ctx, or the loop,
// ended first.
func (a *Applier) Await(ctx context.Context, cond func(Status) bool) bool {
	for {
		a.mu.Lock()
		s, changed := a.status, a.changed
		a.mu.Unlock()
		if cond(s) {
			return true
		}
		select {
		case <-changed:
		case <-a.ended:
			a.mu.Lock()
			defer a.mu.Unlock()
			return cond(a.status)
		case <-ctx.Done():
			return false
		}
	}
}

// Status returns the loop's current state.
func (a *Applier) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.status
	if total := a.view.total.Load(); total > 0 {
		s.Rebuild = float64(a.view.done.Load()) / float64(total)
	}
	return s
}

// publish makes the current state visible.
func (a *Applier) publish() {
	s := Status{
		Phase: a.state.Phase, Paused: a.state.Paused, Quiet: a.state.Quiet(), Halt: a.state.Halt, Halts: a.halts,
		Retries: a.state.Retries, Failures: a.failures, Positions: a.state.Positions, Snapshot: a.state.Known,
		Seq: a.state.Seq, Epoch: a.state.Epoch, Rebuild: 1, Duplicates: a.view.duplicates,
	}
	if a.state.Retries > 0 && a.failure != nil {
		s.Failure = a.failure.Error()
	}
	if a.view.index != nil {
		st := a.view.index.Stats()
		s.IndexKeys, s.IndexBytes = st.Live, st.Bytes
		s.Figures = a.view.figures()
	}
	s.Deletes, s.DeletesBytes = a.deletes.set.Len(), a.deletes.bytes()
	s.ForgottenSince, s.ForgottenUntil = a.deletes.forgotten()
	if a.earliest > 0 {
		s.Snapshots = s.Snapshot.ID - a.earliest + 1
	}
	if a.set.Pin && a.pinnedAt > 0 {
		s.Behind = max(s.Snapshot.ID-a.pinnedAt, 0)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.status
	a.status = s
	if old.Phase != s.Phase || old.Halt != s.Halt || old.Paused != s.Paused || old.Quiet != s.Quiet || old.Halts != s.Halts || old.Snapshot != s.Snapshot {
		close(a.changed)
		a.changed = make(chan struct{})
	}
}
