package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"applier/ingest"
	"applier/ingest/change"
	"applier/merger"
	"applier/metrics"
	"applier/metrics/admin"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

func (a *App) find(name string) (*pipeline, error) {
	p := a.pipelines[name]
	if p == nil {
		return nil, fmt.Errorf("%w: %s", admin.ErrNotFound, name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.applier == nil {
		return nil, fmt.Errorf("%w: pipeline %s has not started: %v", admin.ErrConflict, name, p.opening)
	}
	return p, nil
}

// Pause implements admin.Control.
func (a *App) Pause(ctx context.Context, name string) error {
	p, err := a.find(name)
	if err != nil {
		return err
	}
	p.log.Info("paused by an operator")
	p.consumer.Suspend()
	p.applier.Post(merger.PauseAsked{})
	p.applier.Await(ctx, func(s merger.Status) bool {
		return s.Paused && (s.Phase == merger.PhaseIdle || s.Phase == merger.PhaseHalted || s.Phase == merger.PhaseStandby)
	})
	p.upkeep.quiet(ctx) // it begins no more, but may be about to commit
	return ctx.Err()
}

// Resume implements admin.Control.
func (a *App) Resume(ctx context.Context, name string) error {
	p, err := a.find(name)
	if err != nil {
		return err
	}
	p.log.Info("resumed by an operator")
	if p.reviveIfCrashed() {
		return nil
	}
	p.consumer.Unsuspend()
	p.consumer.StepOver()
	p.applier.Post(merger.ResumeAsked{})
	p.applier.Await(ctx, func(s merger.Status) bool { return !s.Paused })
	return ctx.Err()
}

// Flush implements admin.Control: it returns when the open batch is committed, at
// once if there is none.
func (a *App) Flush(ctx context.Context, name string) error {
	p, err := a.find(name)
	if err != nil {
		return err
	}
	before := p.applier.Status()
	if before.Paused || before.Halt != nil {
		return fmt.Errorf("%w: pipeline %s is %s; nothing is committed before: applier resume %s", admin.ErrConflict, name, stateOf(before), name)
	}
	open, err := p.consumer.FlushNow(ctx, "manual")
	if err != nil || !open {
		return err
	}
	p.applier.Await(ctx, func(s merger.Status) bool {
		return s.Seq != before.Seq && s.Phase == merger.PhaseIdle || s.Halt != nil || s.Phase == merger.PhaseStandby
	})
	if h := p.applier.Status().Halt; h != nil {
		return fmt.Errorf("%w: the pipeline halted: %s", admin.ErrConflict, h.Code)
	}
	return ctx.Err()
}

// Offsets implements admin.Control.
func (a *App) Offsets(ctx context.Context, name string) (admin.Offsets, error) {
	if _, ok := a.pipelines[name]; !ok {
		return admin.Offsets{}, fmt.Errorf("%w: %s", admin.ErrNotFound, name)
	}
	return ShowOffsets(ctx, a.cfg, name, a.kafka, a.log)
}

// ChangeOffsets implements admin.Control: the statement is committed to the
// table like any batch, then the pipeline looks at the table again.
func (a *App) ChangeOffsets(ctx context.Context, name string, c admin.OffsetChange) (admin.Offsets, error) {
	if _, ok := a.pipelines[name]; !ok {
		return admin.Offsets{}, fmt.Errorf("%w: %s", admin.ErrNotFound, name)
	}
	out, err := ChangeOffsets(ctx, a.cfg, name, a.kafka, c, a.log)
	if err == nil && !c.DryRun {
		if p, e := a.find(name); e == nil {
			p.applier.Post(merger.RecheckAsked{}) // a pause stays one
		}
	}
	return out, err
}

// Ready implements admin.Source.
func (a *App) Ready() []string {
	var why []string
	select {
	case <-a.draining:
		return []string{"shutting down"}
	default:
	}
	for _, name := range a.cfg.Names() {
		p := a.pipelines[name]
		p.mu.Lock()
		applier, opening, crashed := p.applier, p.opening, p.crashed
		p.mu.Unlock()
		switch {
		case crashed != nil:
			why = append(why, fmt.Sprintf("%s: halted with %s", name, crashed.Code))
		case applier == nil && opening == nil:
			why = append(why, name+": starting")
		case applier == nil:
			why = append(why, name+": cannot start: "+causeOf(opening))
		default:
			if s := applier.Status(); s.Halt != nil {
				why = append(why, fmt.Sprintf("%s: halted with %s", name, s.Halt.Code))
			} else if s.Rebuild < 1 {
				why = append(why, name+": building its index")
			}
		}
	}
	return why
}

// causeOf names what keeps a pipeline from starting in words that may be public:
// a Kafka problem by its code, nothing of an error's own text.
func causeOf(err error) string {
	var p *ingest.Problem
	switch {
	case errors.As(err, &p):
		return p.Code
	case errors.Is(err, catalog.ErrNoTable):
		return "the table does not exist"
	case errors.Is(err, paimon.ErrRefused):
		return "the table is of a kind that is not written"
	case errors.Is(err, objstore.ErrNotExclusive):
		return "the warehouse cannot publish snapshots safely"
	}
	return "see applier status"
}

// Status implements admin.Source.
func (a *App) Status() admin.Status {
	notReady := a.Ready()
	s := admin.Status{
		Version: a.build.Version, Revision: a.build.Revision, Instance: a.instance, Started: a.started,
		Ready: len(notReady) == 0, NotReady: notReady, MemoryUsed: a.budget.Used(), MemoryLimit: int64(a.cfg.Memory), Config: a.cfg.Effective(),
	}
	for _, name := range a.cfg.Names() {
		s.Pipelines = append(s.Pipelines, a.pipelines[name].status())
	}
	return s
}

func (p *pipeline) status() admin.PipelineStatus {
	p.mu.Lock()
	applier, opening, lags, last, t, crashed := p.applier, p.opening, p.lags, p.lastTime, p.totals, p.crashed
	behind, judged, commits := p.behind, p.judged, p.commits
	p.mu.Unlock()
	out := admin.PipelineStatus{Name: p.name, ID: p.cfg.ID, Table: p.target, Apply: p.cfg.Preset(), State: metrics.StateStarting, Since: p.since, LastCommit: last, Commits: commits}
	out.FreshnessSLOSeconds = p.cfg.FreshnessSLO.Seconds()
	out.Rows = admin.RowCounts{
		Inserted: t.inserted, Updated: t.updated, Deleted: t.deleted, Unchanged: t.unchanged, Collapsed: t.collapsed,
		Dropped: t.dropped, Errors: p.errors.Load(), Commits: t.commits,
	}
	if applier == nil {
		if opening != nil {
			out.State, out.LastError = metrics.StateBackoff, opening.Error()
		}
		return out
	}
	s := applier.Status()
	if crashed != nil {
		s.Halt = crashed
	}
	out.State, out.Snapshot = stateOf(s), s.Snapshot.ID
	out.Detail = "step: " + s.Phase.String()
	out.Alarms, _ = p.alarms.list()
	out.Index = admin.IndexStatus{Keys: s.IndexKeys, MemoryBytes: s.IndexBytes, Progress: s.Rebuild}
	out.Deletes = p.deletesStatus(s)
	out.LagRecords = p.lagOf(s.Positions, lags)
	out.Batch.Bytes, out.Batch.Records = p.openBytes.Load(), p.openRecords.Load()
	out.Why, out.Health = whyNot(out.State, s), p.health(s)
	if s.Halt != nil {
		info := s.Halt.Code.Info()
		out.Halt = &admin.Halt{Code: string(s.Halt.Code), Message: info.Means + " " + s.Halt.Facts, Remedy: info.Do}
	}
	out.Partitions = partitionStatus(s.Positions, lags)
	out.FreshnessKnown = judged
	if !behind.IsZero() {
		out.FreshnessSeconds = max(time.Since(behind).Seconds(), 0)
	}
	return out
}

// whyNot says what keeps a pipeline from its work.
func whyNot(state string, s merger.Status) string {
	switch state {
	case metrics.StatePaused:
		return "paused by an operator; applier resume lets it go on"
	case metrics.StateRebuildingIndex:
		return fmt.Sprintf("reading the table to build the key index: %.0f %%", s.Rebuild*100)
	case metrics.StateStandby:
		return "another instance has the table, or its consumer group is not joined yet"
	case metrics.StateStarting:
		return "finding out where the table stands"
	}
	if s.Failure != "" {
		return "tried again: " + s.Failure
	}
	return ""
}

// health is nil until the table was read.
func (p *pipeline) health(s merger.Status) *admin.TableHealth {
	if s.Snapshot.ID == 0 {
		return nil
	}
	h := &admin.TableHealth{LiveRows: s.LiveRows, DeletedRows: s.Deleted, Files: s.Files, SmallFiles: s.SmallFiles, Snapshots: s.Snapshots}
	if from := p.debt.Load(); from > 0 {
		h.UncompactedSeconds = max(time.Since(time.UnixMilli(from)).Seconds(), 0)
	}
	return h
}

// deletesStatus is nil if nothing is remembered.
func (p *pipeline) deletesStatus(s merger.Status) *admin.DeletesStatus {
	if p.cfg.OrderBy.RememberDeletes == 0 {
		return nil
	}
	d := &admin.DeletesStatus{Remembered: s.Deletes, MemoryBytes: s.DeletesBytes}
	if s.ForgottenUntil > 0 {
		d.ForgottenSince, d.ForgottenUntil = time.UnixMilli(s.ForgottenSince).UTC(), time.UnixMilli(s.ForgottenUntil).UTC()
	}
	return d
}

func partitionStatus(pos change.Positions, lags map[change.Partition]ingest.Lag) []admin.PartitionStatus {
	var out []admin.PartitionStatus
	for _, part := range pos.Sorted() {
		ps := admin.PartitionStatus{Topic: part.Topic, Partition: part.Partition, Next: pos[part].Next, Received: pos[part].Next, End: -1}
		if l, ok := lags[part]; ok {
			ps.End = l.End
		}
		out = append(out, ps)
	}
	for part, l := range lags {
		if _, known := pos[part]; !known {
			out = append(out, admin.PartitionStatus{Topic: part.Topic, Partition: part.Partition, Next: -1, End: l.End, Note: "new, held back"})
		}
	}
	return out
}
