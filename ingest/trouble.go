package ingest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"applier/ingest/change"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Errors that pass by themselves are waited for this long.
const (
	// noTopicGrace: a broker that has just started, or lost a leadership, does not
	// know a topic for a moment.
	noTopicGrace = 10 * time.Second
	// noGroupGrace: a coordinator moves, brokers restart.
	noGroupGrace = 30 * time.Second
	// unreadableTries: a batch that cannot be read is fetched again, for it may
	// have been damaged on its way, or another replica may lead soon.
	unreadableTries = 3
)

// troubled is a partition whose last fetches went wrong.
type troubled struct {
	since, last time.Time
	tries       int
}

// verdict is what the errors of one poll mean.
type verdict struct {
	stop *Problem
	// void are partitions whose position is lost: what else the poll brought of
	// them lies behind a gap.
	void map[change.Partition]bool
	// damaged are partitions with a batch that cannot be read.
	damaged map[change.Partition]error
}

// judge looks at the errors of a poll.
func (c *Consumer) judge(fetches kgo.Fetches) verdict {
	v := verdict{void: map[change.Partition]bool{}}
	stop := func(p *Problem) {
		if v.stop == nil {
			v.stop = p
		}
	}
	fetches.EachError(func(topic string, partition int32, err error) {
		if passing(err) {
			return
		}
		p := change.Partition{Topic: topic, Partition: partition}
		var loss *kgo.ErrDataLoss
		var bomb *kgo.ErrDecompressTooLarge
		switch {
		case errors.As(err, &bomb): // no second fetch makes it smaller
			stop(problem("K-CORRUPT", "%s: the record batch at offset %d would decompress to more than is taken (64 MiB, or twice max_record_bytes); it ends before offset %d", p, bomb.Offset, bomb.NextOffset))
		case errors.As(err, &loss):
			v.void[p] = true
			stop(problem("K-TRUNCATED", "%s: applied up to offset %d, but the log was cut back to %d", p, loss.ConsumedTo, loss.ResetTo))
		case errors.Is(err, kerr.OffsetOutOfRange):
			v.void[p] = true
			stop(c.outOfRange(p))
		case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
			// Deleted, created again or not known yet: the next Resume asks and tells.
			if c.lasts(p, noTopicGrace) {
				c.mu.Lock()
				c.outdated = !errors.Is(err, kerr.UnknownTopicOrPartition)
				c.mu.Unlock()
				stop(problem("K-NO-TOPIC", "reading %s: its broker has not known it for %v: %v", p, noTopicGrace, err))
			}
		case partition >= 0 && topic != "" && (isUnreadable(err) || errors.Is(err, kerr.CorruptMessage)):
			if v.damaged == nil {
				v.damaged = map[change.Partition]error{}
			}
			v.damaged[p] = err
		default:
			if found := classify(err, "reading "+p.String()); found != nil {
				stop(found)
				return
			}
			c.o.Log.Debug("fetch error, the client retries", "partition", p, "err", err)
		}
	})
	return v
}

// outOfRange finds out on which side of the log the position is.
func (c *Consumer) outOfRange(p change.Partition) *Problem {
	part := c.ordinalOf(p)
	if part < 0 {
		return problem("K-GAP", "%s: the position is outside of the log", p)
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	at, _ := c.col.Position(part)
	starts, err := c.admin.Starts(ctx, []string{p.Topic})
	if err == nil {
		var ends map[change.Partition]int64
		if ends, err = c.admin.Ends(ctx, []string{p.Topic}); err == nil {
			if found := rangeProblem(p, at.Next, starts[p], ends[p]); found != nil {
				return found
			}
		}
	}
	return problem("K-UNAVAILABLE", "%s: the log does not have offset %d, but %v", p, at.Next, cmp.Or(err, errors.New("it lists it")))
}

// listTimeout bounds a question between two polls.
const listTimeout = 5 * time.Second

// groupTrouble tells the owner of a group that cannot be joined: whoever stands by
// for that reason is not well.
func (c *Consumer) groupTrouble(fetches kgo.Fetches) {
	var found *Problem
	fetches.EachError(func(_ string, _ int32, err error) {
		var session *kgo.ErrGroupSession
		if !errors.As(err, &session) || passing(err) {
			return
		}
		what := "joining group " + c.o.Group
		if found = classify(err, what); found == nil && c.lasts(change.Partition{}, noGroupGrace) {
			found = problem("K-UNAVAILABLE", "%s: not possible for %v: %v", what, noGroupGrace, session.Err)
		}
	})
	if found != nil {
		c.owner.Halted(*found, 0)
	}
}

// passing: an error of the poll itself.
func passing(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isUnreadable: the client has no type for a batch that fails its checksum or
// that cannot be parsed; what is neither a broker's answer nor of the network
// was found in the bytes.
func isUnreadable(err error) bool {
	var answer *kerr.Error
	var network net.Error
	return !errors.As(err, &answer) && !errors.As(err, &network) &&
		!errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, kgo.ErrClientClosed)
}

// trouble of a partition, noted anew if the last one is long ago.
func (c *Consumer) troubleOf(p change.Partition, now time.Time, memory time.Duration) *troubled {
	if c.trouble == nil {
		c.trouble = map[change.Partition]*troubled{}
	}
	t := c.trouble[p]
	if t == nil || now.Sub(t.last) > memory {
		t = &troubled{since: now}
		c.trouble[p] = t
	}
	t.last = now
	return t
}

// forget ends the trouble of a partition.
func (c *Consumer) forget(p change.Partition) { delete(c.trouble, p) }

// lasts tells whether a partition has been in trouble for a while.
func (c *Consumer) lasts(p change.Partition, grace time.Duration) bool {
	now := time.Now()
	return now.Sub(c.troubleOf(p, now, grace).since) >= grace
}

// unreadable has damaged batches fetched again, and returns a problem when that
// has not helped. The records before them were taken, so the position is theirs.
func (c *Consumer) unreadable(v verdict) *Problem {
	var found *Problem
	for p, err := range v.damaged {
		part := c.ordinalOf(p)
		if part < 0 {
			continue
		}
		at, ok := c.col.Position(part)
		if !ok {
			continue // held back: it is fetched later
		}
		t := c.troubleOf(p, time.Now(), time.Hour)
		if t.tries++; t.tries > unreadableTries {
			found = problem("K-CORRUPT", "%s: the record batch at offset %d cannot be read: %v", p, at.Next, err)
			continue
		}
		c.o.Log.Warn("a record batch cannot be read; it is fetched again", "partition", p.String(), "offset", at.Next, "err", err)
		// The client steps over some damage by itself.
		c.cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.Topic: {p.Partition: {Epoch: at.Epoch, Offset: at.Next}}})
	}
	return found
}

// pace waits a moment after a poll that brought nothing but errors: a broker
// would be asked again as fast as it answers, for as long as an election takes.
func (c *Consumer) pace(ctx context.Context, fetches kgo.Fetches) {
	failed, woken := false, false
	fetches.EachError(func(_ string, _ int32, err error) {
		failed = failed || !passing(err)
		woken = woken || passing(err)
	})
	switch {
	case !failed && woken:
		return
	case !failed || fetches.NumRecords() > 0:
		c.failing = 0
		return
	}
	ctx, cancel := c.untilCalled(ctx)
	defer cancel()
	timer := time.NewTimer(min(paceFrom<<c.failing, paceMost))
	defer timer.Stop()
	c.failing = min(c.failing+1, 10)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// What a poll that failed waits for, doubled with each one.
const (
	paceFrom = 50 * time.Millisecond
	paceMost = time.Second
)
