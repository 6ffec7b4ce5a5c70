package app

import (
	"context"
	"log/slog"
	"time"

	"applier/batcher"
	"applier/config"
	"applier/ingest"
	"applier/ingest/change"
	"applier/merger"
	"applier/metrics"

	"github.com/prometheus/client_golang/prometheus"
)

// observer turns what the commit loop says into metrics and one log line a commit.
type observer struct {
	p   *pipeline
	m   *metrics.Metrics
	log *slog.Logger
}

func (o observer) labels(more ...string) []string {
	return append([]string{o.p.name, o.p.target}, more...)
}

// Noticed implements merger.Observer.
func (o observer) Noticed(n merger.Notice) {
	switch n {
	case merger.NoticeFenced, merger.NoticeFencedEpoch:
		o.m.Merger.FencedBatches.WithLabelValues(o.labels()...).Inc()
		if n == merger.NoticeFencedEpoch {
			o.m.Ingest.OwnershipFlaps.WithLabelValues(o.labels()...).Inc()
		}
	case merger.NoticeLostRace, merger.NoticeStillMoved, merger.NoticeConflict:
		o.m.Merger.Commits.WithLabelValues(o.labels("conflict")...).Inc()
		o.m.Merger.ForeignCommits.WithLabelValues(o.labels()...).Inc()
	case merger.NoticeStarved:
		o.m.Merger.StarvedCommits.WithLabelValues(o.labels()...).Inc()
		o.log.Warn("a batch has lost the race for a snapshot to other writers for long; it is tried on", "what", string(n))
		return
	case merger.NoticeUnknown:
		o.m.Merger.Commits.WithLabelValues(o.labels("unknown")...).Inc()
	case merger.NoticeLostSnapshot:
		o.m.Merger.Commits.WithLabelValues(o.labels("diverged")...).Inc()
	case merger.NoticeCommitted, merger.NoticeCarried, merger.NoticeFirstStart:
		return
	}
	o.log.Info("noticed", "what", string(n))
}

// Committed implements merger.Observer.
func (o observer) Committed(c merger.Commit) {
	o.m.Merger.Commits.WithLabelValues(o.labels("committed")...).Inc()
	o.m.Storage.CommitBytes.WithLabelValues(o.labels("data")...).Add(float64(c.Bytes.Data))
	o.m.Storage.CommitBytes.WithLabelValues(o.labels("dv")...).Add(float64(c.Bytes.Vectors))
	o.m.Storage.CommitBytes.WithLabelValues(o.labels("manifest")...).Add(float64(c.Bytes.Metadata))
	store := func(direction string, requests, bytes int64) {
		o.m.Storage.CommitRequests.WithLabelValues(o.labels(direction)...).Add(float64(requests))
		o.m.Storage.CommitStore.WithLabelValues(o.labels(direction)...).Add(float64(bytes))
	}
	store("read", c.Store.Reads, c.Store.ReadBytes)
	store("write", c.Store.Writes, c.Store.WrittenBytes)
	if c.Batch == nil {
		o.log.Info("empty commit", "why", c.Op, "snapshot", c.Snapshot)
		o.p.committed(c)
		return
	}
	o.m.Merger.CommitSeconds.WithLabelValues(o.labels()...).Observe(c.Took.Seconds())
	rows := func(action string, n int64) {
		o.m.Merger.RowsApplied.WithLabelValues(o.labels(action, "false")...).Add(float64(n))
	}
	rows("inserted", c.Counts.Inserted)
	rows("updated", c.Counts.Updated)
	rows("deleted", c.Counts.Deleted)
	rows("unchanged", c.Counts.Unchanged)
	if c.Counts.Truncates > 0 {
		o.m.Merger.Truncates.WithLabelValues(o.labels()...).Inc()
		o.log.Warn("the source table was truncated, and so was this one", "snapshot", c.Snapshot, "rows", c.Counts.Deleted,
			"partition", c.Batch.Partitions[c.Batch.Truncation.Part].String(), "offset", c.Batch.Truncation.Offset)
	}
	holes := func(source string, n int64) {
		if n > 0 {
			o.m.Batcher.Holes.WithLabelValues(o.labels(source)...).Add(float64(n))
		}
	}
	holes("batch", c.Holes.Batch)
	holes("table", c.Holes.Table)
	holes("unfilled", c.Holes.Unfilled)
	dropped := func(reason string, n int64) {
		if n > 0 {
			o.m.Ingest.Dropped.WithLabelValues(o.labels(reason)...).Add(float64(n))
		}
	}
	n := c.Counts
	late, tied := n.Late+c.Batch.Counts.Late, n.Tied+c.Batch.Counts.Tied // by the table, or by another of the batch
	o.countLate(late, n)
	if o.p.cfg.OrderBy.Late != config.LateDeadLetter {
		dropped("late", late)
	}
	if o.p.cfg.OrderBy.OnTie != config.OnTieDeadLetter {
		dropped("tie", tied)
	}
	dropped("ignored", c.Counts.Ignored+c.Batch.Counts.Ignored)
	dropped("skipped_error", c.Counts.Dropped)
	dropped("collapsed", c.Batch.Counts.Collapsed)
	if c.Batch.MaxEvent > 0 {
		o.m.Pipeline.Committed(o.p.name, o.p.target, c.Snapshot, time.UnixMilli(c.Batch.MinEvent), time.UnixMilli(c.Batch.MaxEvent))
	} else {
		o.m.Pipeline.Committed(o.p.name, o.p.target, c.Snapshot, time.Time{}, time.Time{})
	}
	args := []any{
		"snapshot", c.Snapshot, "records", c.Batch.Counts.Records, "inserted", c.Counts.Inserted, "updated", c.Counts.Updated,
		"deleted", c.Counts.Deleted, "collapsed", c.Batch.Counts.Collapsed, "reason", string(c.Batch.Reason), "attempts", c.Attempts,
		"bytes_data", c.Bytes.Data, "bytes_dv", c.Bytes.Vectors, "bytes_metadata", c.Bytes.Metadata, "duration_seconds", c.Took.Seconds(),
	}
	if o.log.Enabled(context.Background(), slog.LevelDebug) {
		args = append(args, stages(c.Stages))
	}
	o.log.Info("committed", args...)
	o.p.committed(c)
	if c.Batch.MaxEvent > 0 {
		o.p.advanceVisible(time.UnixMilli(c.Batch.MaxEvent))
	}
}

// countLate counts late changes by what was done about them.
func (o observer) countLate(late int64, n merger.Counts) {
	add := func(action string, n int64) {
		if n > 0 {
			o.m.Merger.LateChanges.WithLabelValues(o.labels(action)...).Add(float64(n))
		}
	}
	add("apply", n.LateTaken)
	if o.p.cfg.OrderBy.Late == config.LateDeadLetter {
		add("dead_letter", n.LateLetters)
	} else {
		add("drop", late)
	}
}

// stages says how many seconds each step of a commit took.
func stages(took map[string]time.Duration) slog.Attr {
	var steps []any
	for _, name := range sortedKeys(took) {
		steps = append(steps, slog.Float64(name, took[name].Seconds()))
	}
	return slog.Group("stages", steps...)
}

// Halted implements merger.Observer.
func (o observer) Halted(h *merger.Halt) {
	if h == nil {
		o.log.Info("the halt is over")
		o.m.Pipeline.SetState(o.p.name, o.p.target, metrics.StateRunning)
		return
	}
	o.p.upkeep.interrupt()
	switch h.Code {
	case merger.CodeMismatch:
		o.m.Merger.VerifyMismatches.WithLabelValues(o.labels("index")...).Inc()
	case merger.CodeCorrupt:
		o.m.Merger.VerifyMismatches.WithLabelValues(o.labels("table")...).Inc()
	}
	o.m.Pipeline.Halt(o.p.name, o.p.target, string(h.Code))
}

// TwoPartitions implements merger.Observer.
func (o observer) TwoPartitions(n int64) {
	o.m.Batcher.SplitKeys.WithLabelValues(o.labels()...).Add(float64(n))
}

// DeadLetter implements merger.Observer. The letters themselves are counted when
// the brokers acknowledge them.
func (o observer) DeadLetter(class string) {
	if class == string(change.ClassLate) || class == string(change.ClassTie) {
		return // nothing is wrong with the row
	}
	o.m.Ingest.RowErrors.WithLabelValues(o.labels(class)...).Inc()
}

// Rebuilt implements merger.Observer.
func (o observer) Rebuilt(rows int64, took time.Duration) {
	o.m.Merger.IndexRebuilds.WithLabelValues(o.labels()...).Inc()
	o.log.Info("key index built", "rows", rows, "duration_seconds", took.Seconds())
}

// Stage implements merger.Observer.
func (o observer) Stage(name string, took time.Duration) {
	if name != "wait" { // a pause takes no part of a batch's time
		o.m.Batcher.StageSeconds.WithLabelValues(o.labels(name)...).Observe(took.Seconds())
	}
}

// ingestMetrics are the consumer's hooks.
func (p *pipeline) ingestMetrics() ingest.Metrics {
	m := p.app.metrics
	labels := func(more ...string) []string { return append([]string{p.name, p.target}, more...) }
	// Record is called for every record: its series are found once.
	changes := map[string]prometheus.Counter{}
	for k := change.Insert; k <= change.Delete; k++ {
		changes[k.String()] = m.Ingest.Records.WithLabelValues(labels(k.String())...)
	}
	changes[ingest.KindTruncated] = m.Ingest.Records.WithLabelValues(labels("truncate")...)
	total := m.Ingest.Bytes.WithLabelValues(labels()...)
	return ingest.Metrics{
		Record: func(kind string, bytes int) {
			total.Add(float64(bytes))
			if c, ok := changes[kind]; ok {
				c.Inc()
			} else if kind != ingest.KindNone {
				m.Ingest.Dropped.WithLabelValues(labels(kind)...).Inc()
			}
		},
		RowError: func(class string) {
			m.Ingest.RowErrors.WithLabelValues(labels(class)...).Inc()
			p.errors.Add(1)
		},
		Dropped: func(reason string) { m.Ingest.Dropped.WithLabelValues(labels(reason)...).Inc() },
		Held: func(partitions int) {
			m.Ingest.PartitionsHeldBack.WithLabelValues(labels()...).Set(float64(partitions))
		},
		Head: p.ages.head,
		Paused: func(reason string, d time.Duration) {
			m.Ingest.FetchPausedSeconds.WithLabelValues(labels(reason)...).Add(d.Seconds())
			m.Ingest.FetchPauses.WithLabelValues(labels(reason)...).Inc()
		},
		Buffered: func(bytes int64) { p.fetched.Store(bytes) },
		Fetched: func(part change.Partition, high, stable int64) {
			if stable >= 0 && p.app.cfg.Server.PartitionMetrics {
				m.Ingest.LSOLagRecords.WithLabelValues(labels(part.Topic, itoa(part.Partition))...).Set(float64(high - stable))
			}
		},
	}
}

// sealed counts a closed batch.
func (p *pipeline) sealed(b *batcher.Batch) {
	m := p.app.metrics.Batcher
	m.Flushes.WithLabelValues(p.name, p.target, string(b.Reason)).Inc()
	m.Records.WithLabelValues(p.name, p.target).Observe(float64(b.Changes.Len()))
	m.Keys.WithLabelValues(p.name, p.target).Observe(float64(len(b.Winners)))
}
