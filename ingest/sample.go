package ingest

import (
	"context"
	"fmt"
	"time"

	"applier/ingest/decode"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Sample reads records of a topic from its start, without a group, and hands
// them to fn until fn says stop, max records were seen, or no record came for
// as long as quiet.
func Sample(ctx context.Context, o ClientOptions, topic string, max int, quiet time.Duration, fn func(*decode.Record) (stop bool)) (seen int, err error) {
	cl, err := newReader(o, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	for seen < max {
		poll, cancel := context.WithTimeout(ctx, quiet)
		fetches := cl.PollRecords(poll, 100)
		cancel()
		if ctx.Err() != nil {
			return seen, ctx.Err()
		}
		var problem error
		fetches.EachError(func(_ string, _ int32, err error) {
			if p := classify(err, "sampling topic "+topic); p != nil {
				problem = p
			}
		})
		if problem != nil {
			return seen, problem
		}
		if fetches.NumRecords() == 0 {
			return seen, nil
		}
		for it := fetches.RecordIter(); !it.Done(); {
			rec := asRecord(it.Next())
			if seen++; fn(rec) || seen == max {
				return seen, nil
			}
		}
	}
	return seen, nil
}

// sampleRecords is how many records are looked at for a schema: a topic carries
// it in every record or in none, but may begin with control records.
const sampleRecords = 50

// answerWithin is how long a topic that holds records may take for its first one.
const answerWithin = 5 * time.Second

// DeriveColumns finds a first record with a schema and proposes columns. It
// waits for records for as long as quiet, and longer for the first one of a topic
// that is known to hold some. The error is decode.ErrNoSchema only if Kafka
// answered and no record carries a schema.
func DeriveColumns(ctx context.Context, o ClientOptions, topic string, quiet time.Duration) (columns []Column, key []string, err error) {
	holds, err := holdsRecords(ctx, o, topic)
	if err != nil {
		return nil, nil, err
	}
	look := func(r *decode.Record) bool {
		fields, k, e := decode.DeriveColumns(r)
		if e != nil {
			return false
		}
		key = k
		for _, f := range fields {
			columns = append(columns, Column{f.Name, f.Type.String()})
		}
		return true
	}
	seen, err := Sample(ctx, o, topic, sampleRecords, quiet, look)
	if err == nil && seen == 0 && holds {
		seen, err = Sample(ctx, o, topic, sampleRecords, max(quiet, answerWithin), look)
	}
	switch {
	case err != nil:
		return nil, nil, err
	case columns != nil:
		return columns, key, nil
	case seen == 0 && holds:
		return nil, nil, fmt.Errorf("no record of topic %s came within %s, though the topic holds some", topic, max(quiet, answerWithin))
	case seen == 0:
		return nil, nil, fmt.Errorf("%w: topic %s holds no records yet", decode.ErrNoSchema, topic)
	default:
		return nil, nil, fmt.Errorf("%w: none of the first %d records of topic %s", decode.ErrNoSchema, seen, topic)
	}
}

// holdsRecords asks the brokers whether a topic holds records. To a reader alone,
// brokers out of reach, a missing topic and an empty one look the same.
func holdsRecords(ctx context.Context, o ClientOptions, topic string) (bool, error) {
	cl, err := NewClient(o)
	if err != nil {
		return false, err
	}
	defer cl.Close()
	a := NewAdmin(cl)
	if _, err := a.Describe(ctx, []string{topic}); err != nil {
		return false, err
	}
	starts, err := a.Starts(ctx, []string{topic})
	if err != nil {
		return false, err
	}
	ends, err := a.Stable(ctx, []string{topic})
	if err != nil {
		return false, err
	}
	for p, end := range ends {
		if end > starts[p] {
			return true, nil
		}
	}
	return false, nil
}

// Column is a proposed column: a name and a type's spelling.
type Column struct {
	Name, Type string
}
