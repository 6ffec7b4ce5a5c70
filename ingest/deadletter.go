package ingest

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"applier/ingest/change"
	"applier/ingest/decode"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of a dead letter. The key is TOPIC/PARTITION/OFFSET, so that a replay
// writes the same key again; key and value are the record's own, byte for byte,
// in the header applier.key and the value.
const (
	headerKey       = "applier.key"
	headerPipeline  = "applier.pipeline"
	headerTopic     = "applier.topic"
	headerPartition = "applier.partition"
	headerOffset    = "applier.offset"
	headerClass     = "applier.error.class"
	headerColumn    = "applier.error.column"
	headerMessage   = "applier.error.message"
)

// DeadLetters writes records that cannot be applied to a topic. They are
// written before the commit that counts them: Flush must return nil first. It
// is at least once, with stable keys. It is safe for concurrent use.
type DeadLetters struct {
	// Written, if set before the first Send, is told the class of every letter that
	// the brokers acknowledged.
	Written func(class string)

	cl       *kgo.Client
	topic    string
	pipeline string
	mu       sync.Mutex
	err      error
}

// NewDeadLetters returns a writer to topic.
func NewDeadLetters(o ClientOptions, topic, pipeline string) (*DeadLetters, error) {
	cl, err := NewClient(o, kgo.DefaultProduceTopic(topic), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return nil, err
	}
	return &DeadLetters{cl: cl, topic: topic, pipeline: pipeline}, nil
}

// Send queues one record with its error; rec's bytes are copied.
func (d *DeadLetters) Send(ctx context.Context, rec *decode.Record, rowErr *decode.RowError) {
	coordinate := fmt.Sprintf("%s/%d/%d", rec.Topic, rec.Partition, rec.Offset)
	r := &kgo.Record{Key: []byte(coordinate), Value: append([]byte(nil), rec.Value...)}
	if rec.Value == nil {
		r.Value = nil
	}
	add := func(k, v string) { r.Headers = append(r.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)}) }
	add(headerPipeline, d.pipeline)
	add(headerTopic, rec.Topic)
	add(headerPartition, strconv.Itoa(int(rec.Partition)))
	add(headerOffset, strconv.FormatInt(rec.Offset, 10))
	add(headerClass, string(rowErr.Class))
	add(headerColumn, rowErr.Column)
	add(headerMessage, rowErr.Msg)
	if rec.Key != nil {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: headerKey, Value: append([]byte(nil), rec.Key...)})
	}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: append([]byte(nil), h.Value...)})
	}
	d.cl.Produce(ctx, r, func(_ *kgo.Record, err error) {
		if err != nil {
			d.mu.Lock()
			d.err = err
			d.mu.Unlock()
		} else if d.Written != nil {
			d.Written(string(rowErr.Class))
		}
	})
}

// SendRow queues the raw record behind a row whose holes nothing could fill.
func (d *DeadLetters) SendRow(ctx context.Context, p change.Partition, offset int64, raw *change.RawRecord, rowErr *decode.RowError) {
	rec := decode.Record{
		Topic: p.Topic, Partition: p.Partition, Offset: offset, Timestamp: raw.Timestamp,
		Key: raw.Key, Value: raw.Value, Headers: raw.Headers,
	}
	d.Send(ctx, &rec, rowErr)
}

// Flush waits until everything sent is written and returns the first error
// since the last Flush: then the batch must not be committed.
func (d *DeadLetters) Flush(ctx context.Context) error {
	err := d.cl.Flush(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		err = d.err
	}
	d.err = nil
	if err != nil {
		return fmt.Errorf("writing dead letters to topic %s: %w", d.topic, err)
	}
	return nil
}

// Close releases the client; what was not flushed is lost with the batch it
// belongs to, which is read again.
func (d *DeadLetters) Close() { d.cl.Close() }
