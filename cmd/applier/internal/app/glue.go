package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"applier/batcher"
	"applier/ingest"
	"applier/ingest/change"
	"applier/ingest/decode"
	"applier/merger"
	"applier/storage/failpoint"
)

// collector lets the consumer fill the pipeline's batcher and hands closed
// batches to the commit loop.
type collector struct {
	*batcher.Batcher
	p *pipeline
}

// Count implements ingest.Collector.
func (c *collector) Count(what ingest.Uncounted) {
	n := c.Counts()
	switch what {
	case ingest.CountDeadLetter:
		n.DeadLetters++
	case ingest.CountDropped:
		n.Dropped++
	default:
		n.Skipped++
	}
}

// Due implements ingest.Collector.
func (c *collector) Due(now time.Time) (string, bool) {
	_ = failpoint.Hit("consumer/due") // for panics
	reason, due := c.Batcher.Due(now)
	return string(reason), due
}

// Flush implements ingest.Collector.
func (c *collector) Flush(ctx context.Context, reason string) error {
	b := c.Seal(batcher.FlushReason(reason))
	c.p.inFlight.Add(b.MemBytes())
	c.p.account()
	c.p.sealed(b)
	if err := c.p.applier.Submit(ctx, b); err != nil {
		c.p.release(b)
		return err
	}
	return nil
}

// Full implements ingest.Collector.
func (c *collector) Full() (<-chan struct{}, bool) {
	c.p.openBytes.Store(c.MemBytes())
	c.p.openRecords.Store(int64(c.Changes().Len()))
	c.p.account()
	freed := c.p.app.budget.Freed()
	return freed, c.p.app.budget.Over()
}

// owner tells the commit loop about the group and about trouble.
type owner struct {
	p       *pipeline
	applier *merger.Applier // the one that this consumer feeds: another may follow
}

// Assigned implements ingest.Owner.
func (o owner) Assigned() {
	o.p.app.metrics.Ingest.Rebalances.WithLabelValues(o.p.name, o.p.target).Inc()
	o.applier.Post(merger.Assigned{})
}

// revokeGrace is how long a revocation waits for the outcome of a publish.
const revokeGrace = 20 * time.Second

// Revoked implements ingest.Owner.
func (o owner) Revoked() {
	o.p.upkeep.interrupt()
	ctx, cancel := context.WithTimeout(context.Background(), revokeGrace)
	defer cancel()
	o.applier.Revoke(ctx)
}

// Halted implements ingest.Owner.
func (o owner) Halted(p ingest.Problem, generation uint64) {
	o.applier.Post(merger.SourceHalted{Halt: merger.Halt{Code: merger.Code(p.Code), Facts: p.Facts}, Generation: generation})
}

// Evolve implements ingest.Owner: once what came before is committed, the table gets
// what the record asks for, and is opened anew.
func (o owner) Evolve(c *decode.SchemaChange, at change.Partition, offset int64, generation uint64) {
	if c != nil {
		o.p.evolution.ask(evolution{c, at, offset})
	}
	o.applier.Post(merger.ReopenAsked{Generation: generation})
}

// Outdated implements ingest.Owner.
func (o owner) Outdated(ctx context.Context) bool { return o.applier.Outdated(ctx) }

// source is the commit loop's view of the consumer.
type source struct{ p *pipeline }

// asHalt turns what Kafka said into what the commit loop understands.
func asHalt(err error) error {
	var p *ingest.Problem
	switch {
	case err == nil, errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &p):
		return &merger.Halt{Code: merger.Code(p.Code), Facts: p.Facts}
	}
	return fmt.Errorf("%w: %w", merger.ErrSource, err)
}

// ResolveStart implements merger.Source.
func (s source) ResolveStart(ctx context.Context) (change.Positions, map[string]string, string, error) {
	pos, cluster, err := s.p.consumer.ResolveStart(ctx)
	if err != nil {
		return nil, nil, "", asHalt(err)
	}
	return pos, cluster.Topics, cluster.ID, nil
}

// Resume implements merger.Source.
func (s source) Resume(ctx context.Context, pos change.Positions, topics map[string]string, cluster string) (uint64, error) {
	s.p.alarmed(ctx, pos)
	generation, err := s.p.consumer.Resume(ctx, pos, topics, cluster)
	return generation, asHalt(err)
}

// Refuse implements merger.Source.
func (s source) Refuse(p change.Partition, offset int64, err *change.RowError) {
	s.p.consumer.Refuse(p, offset, err)
}

// Stop implements merger.Source.
func (s source) Stop() { s.p.consumer.Stop() }

// Owned implements merger.Source.
func (s source) Owned() bool { return s.p.consumer.Owned() }

// Committed implements merger.Source: the group's offsets are advisory, so the
// newest wins and nobody waits.
func (s source) Committed(pos change.Positions) {
	select {
	case <-s.p.advisory:
	default:
	}
	select {
	case s.p.advisory <- pos:
	default:
	}
}

// Release implements merger.Source.
func (s source) Release(b *batcher.Batch) { s.p.release(b) }
