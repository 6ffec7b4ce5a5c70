package ingest

import (
	"context"

	"applier/ingest/change"
	"applier/ingest/decode"
)

// TruncatePolicy says what a record does that says that the source's table was
// emptied.
type TruncatePolicy string

// The policies.
const (
	OnTruncatePause  TruncatePolicy = "pause"  // reading stops before it
	OnTruncateIgnore TruncatePolicy = "ignore" // nothing: rows stay
	OnTruncateApply  TruncatePolicy = "apply"  // rows go
)

// KindTruncated is the kind of a truncation that is applied.
const KindTruncated = "truncated"

// place is that of a record.
type place struct {
	part   change.Partition
	offset int64
}

// truncate decides about the truncation that was just decoded; false stops reading.
// One that is applied begins a batch: what came before it is committed first.
func (c *Consumer) truncate(ctx context.Context, res decode.Result) bool {
	at := place{change.Partition{Topic: c.rec.Topic, Partition: c.rec.Partition}, c.rec.Offset}
	switch {
	case c.o.OnTruncate == OnTruncateIgnore:
		c.count(res)
		return true
	case c.letPass(at):
		c.o.Log.Info("a truncate of the source table is stepped over, as an operator said", "partition", at.part.String(), "offset", at.offset)
		c.count(res)
		return true
	case c.o.OnTruncate == OnTruncateApply && c.placed():
		return c.applyTruncation(ctx, res.Truncation)
	}
	why := "on_truncate is pause"
	if c.o.OnTruncate == OnTruncateApply {
		why = "nothing says whether that was before or after the changes in the pipeline's other partitions: it has no order_by"
	}
	if err := c.flush(ctx, "drain"); err == nil && c.active {
		c.mu.Lock()
		c.truncated = &at
		c.mu.Unlock()
		c.stopWith(*problem("D-TRUNCATE", "%s offset %d: the source table was truncated, and %s", at.part, at.offset, why))
	}
	return false
}

// placed reports whether it is known which changes come before a truncation: those
// before it in the only partition, or by order_by. What several topics bring is of
// several tables.
func (c *Consumer) placed() bool {
	return len(c.partitions) == 1 || c.o.Ordered && len(c.o.Topics) == 1
}

func (c *Consumer) applyTruncation(ctx context.Context, t *change.Truncation) bool {
	if !c.col.Truncate(t) {
		if err := c.flush(ctx, "truncate"); err != nil || !c.active {
			return false
		}
		c.col.Truncate(t) // the batch is new
	}
	if m := c.o.Metrics.Record; m != nil {
		m(KindTruncated, len(c.rec.Key)+len(c.rec.Value))
	}
	return true
}

// StepOver lets the truncation pass that reading stopped at, if it did: an operator
// has seen to it. The next Resume reads it again.
func (c *Consumer) StepOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.truncated != nil {
		c.stepOver, c.truncated = c.truncated, nil
	}
}

// letPass reports whether an operator lets the truncation at a place pass. It may be
// read more than once before what follows is committed.
func (c *Consumer) letPass(at place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stepOver != nil && *c.stepOver == at
}
