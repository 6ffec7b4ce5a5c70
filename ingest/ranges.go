package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"applier/ingest/change"
	"applier/ingest/decode"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrShort: Kafka did not deliver the records of a range to its end.
var ErrShort = errors.New("records are missing")

// rangeQuiet is how long a RangeReader waits for a partition's next record.
const rangeQuiet = 10 * time.Second

// rangeQueue is how many records of a partition wait for their turn at most,
// before the partition is not fetched any more.
const rangeQueue = 20_000

// RangeReader reads stated ranges of partitions again, without a group: for
// audits. Ranges of one partition are asked for in ascending order. It belongs to
// one goroutine.
type RangeReader struct {
	cl    *kgo.Client
	parts map[change.Partition]*rangeQueueState
	quiet time.Duration
}

type rangeQueueState struct {
	records []*kgo.Record // not asked for yet, ascending
	paused  bool
}

// NewRangeReader begins to read each partition at an offset. Only committed
// records are delivered.
func NewRangeReader(o ClientOptions, from map[change.Partition]int64) (*RangeReader, error) {
	r := &RangeReader{parts: map[change.Partition]*rangeQueueState{}, quiet: rangeQuiet}
	offsets := map[string]map[int32]kgo.Offset{}
	for p, at := range from {
		if offsets[p.Topic] == nil {
			offsets[p.Topic] = map[int32]kgo.Offset{}
		}
		offsets[p.Topic][p.Partition] = kgo.NewOffset().At(at)
		r.parts[p] = &rangeQueueState{}
	}
	var err error
	r.cl, err = newReader(o, kgo.ConsumePartitions(offsets), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxBytes(8<<20),
		kgo.FetchMaxPartitionBytes(2<<20), kgo.FetchMaxWait(250*time.Millisecond))
	return r, err
}

// Close ends reading.
func (r *RangeReader) Close() { r.cl.Close() }

// Read hands the records of a partition from where the last call ended up to the
// offset to (exclusive) to fn, in order; they are valid during the call. An error
// of fn ends the reading and is returned as it is. ErrShort says that Kafka did
// not deliver them to the end, a *Problem why it does not.
func (r *RangeReader) Read(ctx context.Context, p change.Partition, to int64, fn func(*decode.Record) error) error {
	q := r.parts[p]
	if q == nil {
		return fmt.Errorf("partition %s is not being read", p)
	}
	for {
		for len(q.records) > 0 {
			rec := q.records[0]
			if rec.Offset >= to {
				return nil
			}
			q.records = q.records[1:]
			if !rec.Attrs.IsControl() {
				if err := fn(asRecord(rec)); err != nil {
					return err
				}
			}
			if rec.Offset == to-1 {
				return nil
			}
		}
		if err := r.fill(ctx, p, q, to); err != nil {
			return err
		}
		if len(q.records) == 0 {
			return nil // nothing is left before to
		}
	}
}

// fill waits for more records of a partition. Without any, and without an error,
// the rest of the range holds none: compaction or an aborted transaction took them.
func (r *RangeReader) fill(ctx context.Context, p change.Partition, q *rangeQueueState, to int64) error {
	if q.paused {
		q.paused = false
		r.cl.ResumeFetchPartitions(map[string][]int32{p.Topic: {p.Partition}})
	}
	for end := time.Now().Add(r.quiet); len(q.records) == 0; {
		poll, cancel := context.WithDeadline(ctx, end)
		fetches := r.cl.PollRecords(poll, 10_000)
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.take(fetches); err != nil {
			return err
		}
		if len(q.records) == 0 && time.Now().After(end) {
			return r.explainSilence(ctx, p, to)
		}
	}
	return nil
}

// take sorts fetched records into the queues.
func (r *RangeReader) take(fetches kgo.Fetches) error {
	var problem error
	fetches.EachError(func(topic string, part int32, err error) {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || problem != nil {
			return
		}
		where := change.Partition{Topic: topic, Partition: part}
		if p := classify(err, "reading "+where.String()); p != nil {
			problem = p
			return
		}
		problem = fmt.Errorf("%w: reading %s: %w", ErrShort, where, err)
	})
	if problem != nil {
		return problem
	}
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		p := change.Partition{Topic: f.Topic, Partition: f.Partition}
		q := r.parts[p]
		if q == nil || len(f.Records) == 0 {
			return
		}
		q.records = append(q.records, f.Records...)
		if len(q.records) > rangeQueue && !q.paused {
			q.paused = true
			r.cl.PauseFetchPartitions(map[string][]int32{p.Topic: {p.Partition}})
		}
	})
	return nil
}

// explainSilence decides what it means that nothing comes: at the end of the log
// nothing can, else Kafka owes an answer.
func (r *RangeReader) explainSilence(ctx context.Context, p change.Partition, to int64) error {
	stable, err := NewAdmin(r.cl).Stable(ctx, []string{p.Topic})
	if err != nil {
		return err
	}
	if to <= stable[p] {
		return nil
	}
	return fmt.Errorf("%w: %s ends at offset %d, records up to %d were applied", ErrShort, p, stable[p], to)
}

// asRecord is a client's record as decoders take it.
func asRecord(r *kgo.Record) *decode.Record {
	rec := &decode.Record{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value,
	}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, change.Header{Key: h.Key, Value: h.Value})
	}
	return rec
}
