package app

import (
	"context"
	"errors"
	"time"

	"applier/ingest"
	"applier/ingest/change"
	"applier/merger"
	"applier/metrics"
)

// watchEvery is how often lag and table figures are taken.
const watchEvery = 5 * time.Second

// watch keeps the gauges of a running pipeline up to date.
func (p *pipeline) watch(ctx context.Context) {
	defer p.forgetLag()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	from := time.Now()
	var pause forgotten
	for {
		s := p.applier.Status()
		p.gauges(s)
		if d, tell := pause.look(s.Paused, time.Now()); tell {
			p.log.Warn("still paused by an operator; `applier resume` lets it go on", "for", d)
		}
		if time.Since(from) > soundAfter {
			p.starts.sound(p.log)
		}
		p.lag(ctx)
		p.lookOut(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// forgetAfter is how often a pause that lasts is told.
const forgetAfter = time.Hour

// forgotten follows a pause that an operator may have forgotten.
type forgotten struct{ since, told time.Time }

// look returns how long the pause has lasted, and whether to tell of it now.
func (f *forgotten) look(paused bool, now time.Time) (time.Duration, bool) {
	if !paused {
		*f = forgotten{}
		return 0, false
	}
	if f.since.IsZero() {
		f.since, f.told = now, now
	}
	if now.Sub(f.told) < forgetAfter {
		return 0, false
	}
	f.told = now
	return now.Sub(f.since), true
}

// stateOf names a loop's status as metrics do.
func stateOf(s merger.Status) string {
	switch {
	case s.Halt != nil:
		return metrics.StateFailed
	case s.Paused:
		return metrics.StatePaused
	case s.Rebuild < 1:
		return metrics.StateRebuildingIndex
	case s.Phase == merger.PhaseStandby:
		return metrics.StateStandby
	case s.Phase == merger.PhaseBackoff:
		return metrics.StateBackoff
	case s.Phase == merger.PhaseRecover, s.Phase == merger.PhaseResolve, s.Phase == merger.PhaseResume:
		return metrics.StateStarting
	}
	return metrics.StateRunning
}

func (p *pipeline) gauges(s merger.Status) {
	m := p.app.metrics
	if s.Halt != nil {
		m.Pipeline.Halt(p.name, p.target, string(s.Halt.Code))
	} else {
		m.Pipeline.SetState(p.name, p.target, stateOf(s))
	}
	m.Merger.IndexKeys.WithLabelValues(p.name, p.target).Set(float64(s.IndexKeys))
	m.Merger.IndexBytes.WithLabelValues(p.name, p.target).Set(float64(s.SidecarBytes))
	m.Merger.IndexMemoryBytes.WithLabelValues(p.name, p.target).Set(float64(s.IndexBytes))
	m.Merger.DeletesRemembered.WithLabelValues(p.name, p.target).Set(float64(s.Deletes))
	m.Merger.DeletesMemoryBytes.WithLabelValues(p.name, p.target).Set(float64(s.DeletesBytes))
	m.Merger.DeletesForgotten.WithLabelValues(p.name, p.target).Set(float64(s.ForgottenSince) / 1000)
	m.Merger.IndexRebuildProgress.WithLabelValues(p.name, p.target).Set(s.Rebuild)
	m.Storage.LiveRows.WithLabelValues(p.name, p.target).Set(float64(s.LiveRows))
	m.Storage.DeletedRows.WithLabelValues(p.name, p.target).Set(float64(s.Deleted))
	m.Storage.Files.WithLabelValues(p.name, p.target).Set(float64(s.Files))
	m.Storage.SmallFiles.WithLabelValues(p.name, p.target).Set(float64(s.SmallFiles))
	m.Storage.DVBytes.WithLabelValues(p.name, p.target).Set(float64(s.DVBytes))
	m.Storage.Snapshots.WithLabelValues(p.name, p.target).Set(float64(s.Snapshots))
	m.Storage.Partitions.WithLabelValues(p.name, p.target).Set(float64(s.Partitions))
	m.Storage.SnapshotsPinned.WithLabelValues(p.name, p.target).Set(float64(s.Behind))
	m.Batcher.OpenBytes.WithLabelValues(p.name, p.target).Set(float64(p.openBytes.Load()))
	m.Batcher.OpenRecords.WithLabelValues(p.name, p.target).Set(float64(p.openRecords.Load()))
	lookups := func(result string, n int64) {
		m.Merger.IndexLookups.WithLabelValues(p.name, p.target, result).Add(float64(n))
	}
	lookups("hit", p.lookups.hits.advance(s.Hits))
	lookups("miss", p.lookups.misses.advance(s.Misses))
	lookups("collision", p.lookups.collisions.advance(s.Collisions))
	m.Merger.Commits.WithLabelValues(p.name, p.target, "failed").Add(float64(p.failures.advance(s.Failures)))
	m.Merger.ForeignDuplicates.WithLabelValues(p.name, p.target).Add(float64(p.duplicates.advance(s.Duplicates)))
	p.account()
}

// rising follows a counter that begins at 0 again when its owner is replaced.
type rising int64

// advance returns by how much the counter rose since the last call.
func (r *rising) advance(now int64) int64 {
	old := int64(*r)
	*r = rising(now)
	if now < old {
		return now
	}
	return now - old
}

// lag asks Kafka where the logs end and compares with the table.
func (p *pipeline) lag(ctx context.Context) {
	owned := p.consumer.Owned()
	p.app.metrics.Pipeline.LeaseHeld.WithLabelValues(p.name, p.target).Set(boolValue(owned))
	if !owned {
		p.notOurs()
		return
	}
	now := time.Now()
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	topics := p.cfg.Source.TopicList()
	lags, err := p.consumer.Admin().Lags(ctx, topics)
	if err != nil {
		p.fresh(false, now) // who knows what is there
		return
	}
	settings, _ := p.consumer.Admin().Settings(ctx, topics)
	pos := p.applier.Status().Positions
	m := p.app.metrics.Ingest
	var behind int64
	p.mu.Lock()
	p.lags = lags
	last := p.lastTime
	p.mu.Unlock()
	if last.IsZero() { // the last commit was another process's
		last = p.alarms.readSince()
	}
	for part, l := range lags {
		at, known := pos[part]
		if !known {
			continue
		}
		n := max(l.End-at.Next, 0)
		behind += max(l.Stable-at.Next, 0)
		if !p.app.cfg.Server.PartitionMetrics {
			continue
		}
		labels := []string{p.name, p.target, part.Topic, itoa(part.Partition)}
		m.LagRecords.WithLabelValues(labels...).Set(float64(n))
		age := p.ages.age(part, at.Next, max(l.Stable-at.Next, 0), now)
		m.LagSeconds.WithLabelValues(labels...).Set(age.Seconds())
		m.LSOLagRecords.WithLabelValues(labels...).Set(float64(l.End - l.Stable))
		if s, ok := settings[part.Topic]; ok && s.Retention >= 0 {
			m.RetentionHeadroom.WithLabelValues(labels...).Set(headroom(s.Retention, age, n, now.Sub(last)).Seconds())
			m.Retention.WithLabelValues(p.name, p.target, part.Topic).Set(s.Retention.Seconds())
		}
	}
	p.watchTransactions(ctx, pos, lags, now)
	p.watchTombstones(ctx, pos, settings)
	_, count := p.alarms.list()
	for _, code := range []merger.Code{merger.CodeOpenTxn, merger.CodeTombstones} {
		m.Alarms.WithLabelValues(p.name, p.target, string(code)).Set(float64(count[code]))
	}
	m.PartitionsAssigned.WithLabelValues(p.name, p.target).Set(float64(len(lags)))
	p.fresh(behind == 0, now)
}

// notOurs takes back what only the owner of the table can say. A pipeline that
// stands still because nobody reaches Kafka goes on telling how old its table is.
func (p *pipeline) notOurs() {
	p.forgetLag()
	if p.applier.Status().Halt != nil {
		p.fresh(false, time.Now())
		return
	}
	p.app.metrics.Pipeline.Freshness.Forget(p.name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judged, p.behind = false, time.Time{}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// awayGrace is how long Kafka may be out of reach before standing by counts as
// trouble.
const awayGrace = 30 * time.Second

// lookOut asks Kafka something while the table is not ours: a client that cannot
// log in never comes as far as the group, and would stand by for ever.
func (p *pipeline) lookOut(ctx context.Context) {
	now := time.Now()
	if p.consumer.Owned() {
		p.away, p.told = time.Time{}, false
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchEvery)
	defer cancel()
	_, err := p.consumer.Admin().Describe(ctx, p.cfg.Source.TopicList())
	if err == nil {
		if p.told {
			p.applier.Post(merger.Revoked{}) // standing by is well again
		}
		p.away, p.told = time.Time{}, false
		return
	}
	if p.away.IsZero() {
		p.away = now
	}
	var found *ingest.Problem
	if !errors.As(err, &found) {
		if now.Sub(p.away) < awayGrace {
			return
		}
		found = &ingest.Problem{Code: string(merger.CodeUnavailable), Facts: err.Error()}
	}
	if !p.consumer.Owned() {
		p.told = true
		owner{p, p.applier}.Halted(*found, 0)
	}
}

// advanceVisible notes that a batch with changes up to a time is in the table.
func (p *pipeline) advanceVisible(upTo time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if upTo.After(p.visible) {
		p.visible = upTo
	}
}

// fresh sets applier_freshness_seconds: all input up to p.visible is in the table.
// now is the moment the lag was asked for.
func (p *pipeline) fresh(caughtUp bool, now time.Time) {
	f := p.app.metrics.Pipeline.Freshness
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judged = true
	switch {
	case caughtUp:
		p.visible, p.behind = now, time.Time{}
		f.CaughtUp(p.name, p.target)
		return
	case !p.visible.IsZero():
		p.behind = p.visible
	default: // nothing was committed since the start: at least this old
		p.behind = p.since
	}
	f.Behind(p.name, p.target, p.behind)
}

// headroom is how long Kafka keeps what is not applied yet: all of its retention
// when nothing waits, else what the age of the oldest record leaves of it. Of a
// record that was not fetched yet the age is at most that of the last commit, if
// nothing was left behind then.
func headroom(retention, age time.Duration, lag int64, sinceCommit time.Duration) time.Duration {
	switch {
	case lag == 0:
		return retention
	case age > 0:
		return retention - age
	}
	return retention - sinceCommit
}

func (p *pipeline) forgetLag() {
	p.mu.Lock()
	lags := p.lags
	p.lags = nil
	p.mu.Unlock()
	for part := range lags {
		p.app.metrics.Ingest.ForgetPartition(p.name, part.Topic, part.Partition)
	}
}

// lagOf returns the records that are not applied yet.
func (p *pipeline) lagOf(pos change.Positions, lags map[change.Partition]ingest.Lag) int64 {
	var n int64
	for part, l := range lags {
		if at, ok := pos[part]; ok {
			n += max(l.Stable-at.Next, 0)
		}
	}
	return n
}
