package ingest

import "context"

// stopWith ends reading with a problem. What was decoded before it has been
// handed over.
func (c *Consumer) stopWith(p Problem) {
	if !c.active {
		return
	}
	c.active = false
	c.cl.PauseFetchTopics(c.o.Topics...)
	c.mu.Lock()
	trial := c.trial
	c.trial = nil
	c.mu.Unlock()
	if trial != nil {
		trial <- p
		return
	}
	c.owner.Halted(p, c.generation.Load())
}

// refusedByTLS tells the owner that the brokers cannot be trusted. The client
// tries again for ever; whatever works again ends the halt. It is called from
// goroutines of the client, which may not wait.
func (c *Consumer) refusedByTLS(p Problem) {
	select {
	case <-c.running:
		go c.owner.Halted(p, 0)
	default: // nobody listens yet; it will be refused again
	}
}

// Owned reports whether the group gives us the table at the moment.
func (c *Consumer) Owned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.assigned) > 0
}

// Drain closes the open batch, hands it over and stops reading; it returns when
// that is done or ctx ends.
func (c *Consumer) Drain(ctx context.Context) {
	done := make(chan struct{})
	c.call(func() {
		defer close(done)
		_ = c.flush(ctx, "drain")
		c.active = false
		c.cl.PauseFetchTopics(c.o.Topics...)
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}
