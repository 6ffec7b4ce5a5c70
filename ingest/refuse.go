package ingest

import (
	"applier/ingest/change"
)

// refusal is a record that decoded well but cannot be applied to the table.
type refusal struct {
	offset int64
	err    *change.RowError
}

// Refuse says that a record, which was read and decoded, cannot be applied:
// reading ends right before it. It matters under OnErrorPause only; the other
// policies are applied where the row is found. The newest refusal of a partition
// counts; a record that was refused is judged anew after an operator's resume.
func (c *Consumer) Refuse(p change.Partition, offset int64, err *change.RowError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused == nil {
		c.refused = map[change.Partition]refusal{}
	}
	c.refused[p] = refusal{offset, err}
}

// refusedAt takes the refusal of a record, nil if there is none.
func (c *Consumer) refusedAt(p change.Partition, offset int64) *change.RowError {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.refused[p]
	if !ok || offset < r.offset {
		return nil
	}
	delete(c.refused, p)
	if offset > r.offset {
		return nil // skipped by an operator
	}
	return r.err
}

// Stop ends reading until the next Resume: nothing that was fetched is taken.
func (c *Consumer) Stop() {
	c.elsewhere()
	c.call(func() {
		c.active = false
		c.cl.PauseFetchTopics(c.o.Topics...)
	})
}
