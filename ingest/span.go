package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"applier/ingest/change"
	"applier/ingest/decode"
)

// Span is what lies between two positions of a partition, as far as Kafka tells.
type Span struct {
	Records int64     // offsets in between: at most so many records
	Bytes   int64     // about, in the brokers' form (packed); -1 unknown
	Oldest  time.Time // of the first record; zero: unknown or none
	Newest  time.Time // of the last one
}

var errFirst = errors.New("the first record is enough")

// SpanOf measures what lies between two positions.
func SpanOf(ctx context.Context, o ClientOptions, p change.Partition, from, to int64, sizes map[change.Partition]int64, l Lag) (Span, error) {
	s := Span{Records: to - from, Bytes: -1}
	if s.Records <= 0 {
		return Span{}, nil
	}
	if size, ok := sizes[p]; ok && l.End > l.Start {
		s.Bytes = int64(float64(size) * float64(s.Records) / float64(l.End-l.Start))
	}
	var err error
	if s.Oldest, err = timeAt(ctx, o, p, from, to); err != nil {
		return s, err
	}
	s.Newest, err = timeAt(ctx, o, p, to-1, to)
	return s, err
}

// timeAt returns the time of the first record in [from, to), zero if there is none.
func timeAt(ctx context.Context, o ClientOptions, p change.Partition, from, to int64) (time.Time, error) {
	r, err := NewRangeReader(o, map[change.Partition]int64{p: from})
	if err != nil {
		return time.Time{}, err
	}
	defer r.Close()
	var at time.Time
	err = r.Read(ctx, p, to, func(rec *decode.Record) error {
		at = time.UnixMilli(rec.Timestamp).UTC()
		return errFirst
	})
	if err != nil && !errors.Is(err, errFirst) {
		return time.Time{}, err
	}
	return at, nil
}

// Sizes returns the bytes of each partition on its brokers' disks, of the largest
// replica. Brokers may not tell; then the answer has no entry.
func (a *Admin) Sizes(ctx context.Context, topics []string) (map[change.Partition]int64, error) {
	dirs, err := a.adm.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("asking for the sizes of partitions: %w", err)
	}
	wanted := map[string]bool{}
	for _, t := range topics {
		wanted[t] = true
	}
	out := map[change.Partition]int64{}
	for _, broker := range dirs {
		for _, dir := range broker {
			for topic, parts := range dir.Topics {
				for n, part := range parts {
					if p := (change.Partition{Topic: topic, Partition: n}); wanted[topic] {
						out[p] = max(out[p], part.Size)
					}
				}
			}
		}
	}
	return out, nil
}
