package ingest

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
)

// newKeyHeader is on the delete, and its tombstone, that a change of a primary key
// begins with; the create that it ends with comes next (Debezium's
// ChangeEventCreator). The create may lack values that only the deleted row has, so
// no batch ends between them. That is so where one partition is read: elsewhere the
// new key's record may be in another, and nothing says when it is read.
const newKeyHeader = "__debezium.newkey"

// keepHalf notes the first half of a key change before it is decoded, and that the
// second one, or whatever is in its place, has come.
func (c *Consumer) keepHalf(r *kgo.Record) {
	switch {
	case len(c.partitions) != 1:
	case r.Value == nil && c.half != nil:
		c.half = append(c.half, r)
	case r.Value != nil && slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == newKeyHeader }):
		c.half = []*kgo.Record{r}
		c.col.Mark()
	default:
		c.half = nil
	}
}

// onlyHalf reports whether the open batch has nothing but the first half of a key
// change: it waits for the other one, however long.
func (c *Consumer) onlyHalf() bool { return c.half != nil && !c.col.Before() }

// rewind takes the first half of a key change out of the open batch and returns it.
func (c *Consumer) rewind() []*kgo.Record {
	c.col.Rewind()
	half := c.half
	c.half = nil
	return half
}

// again takes the first half of a key change into the batch behind the one that was
// handed over.
func (c *Consumer) again(ctx context.Context, half []*kgo.Record) {
	if !c.active {
		return // it is read again
	}
	c.repeating = true
	defer func() { c.repeating = false }()
	for _, r := range half {
		if !c.record(ctx, 0, r) {
			return
		}
	}
}
