package ingest

import (
	"context"
	"errors"
	"time"

	"applier/ingest/change"
	"applier/ingest/decode"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commitDone adapts the client's commit callback.
func commitDone(errs chan<- error) func(*kgo.Client, *kmsg.OffsetCommitRequest, *kmsg.OffsetCommitResponse, error) {
	return func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err == nil && resp != nil {
			for _, t := range resp.Topics {
				for _, p := range t.Partitions {
					if e := kerr.ErrorForCode(p.ErrorCode); e != nil && err == nil {
						err = e
					}
				}
			}
		}
		errs <- err
	}
}

// handle takes what a poll brought: first the records, also those that came with
// an error of another partition, or before one of their own; then the errors.
func (c *Consumer) handle(ctx context.Context, fetches kgo.Fetches) {
	if !c.active {
		c.groupTrouble(fetches)
		return // read before the table said from where: it is read again
	}
	c.fresh = false
	v := c.judge(fetches)
	fetches.EachPartition(func(ftp kgo.FetchTopicPartition) {
		if c.active && !v.void[change.Partition{Topic: ftp.Topic, Partition: ftp.Partition}] {
			c.partition(ctx, &ftp)
		}
	})
	if !c.active {
		return
	}
	if p := c.unreadable(v); p != nil && v.stop == nil {
		v.stop = p
	}
	if v.stop == nil {
		c.release()
		return
	}
	if err := c.flush(ctx, "revoke"); err == nil && c.active {
		c.mu.Lock()
		c.suspect = len(v.void) == 0 // a position that is lost stays lost
		c.mu.Unlock()
		c.stopWith(*v.stop)
	}
}

func (c *Consumer) partition(ctx context.Context, f *kgo.FetchTopicPartition) {
	part := c.ordinalOf(change.Partition{Topic: f.Topic, Partition: f.Partition})
	if part < 0 {
		if len(f.Records) > 0 {
			c.stopWith(*problem("K-PARTIAL", "records of %s/%d came, a partition that was not there when reading began", f.Topic, f.Partition))
		}
		return
	}
	if f.Err == nil {
		delete(c.trouble, c.partitions[part])
	}
	if m := c.o.Metrics.Fetched; m != nil && f.HighWatermark > 0 {
		m(c.partitions[part], f.HighWatermark, f.LastStableOffset)
	}
	if m := c.o.Metrics.Head; m != nil && len(f.Records) > 0 {
		m(c.partitions[part], f.Records[0].Offset, f.Records[0].Timestamp.UnixMilli())
	}
	for i, r := range f.Records {
		if i%clockEvery == 0 {
			c.now = time.Now()
		}
		if !c.record(ctx, part, r) {
			return
		}
	}
}

// clockEvery is after how many records of a fetch the clock is read again: limits
// of time are in milliseconds, a record takes about one microsecond.
const clockEvery = 64

// record takes one record; false ends this poll.
func (c *Consumer) record(ctx context.Context, part int32, r *kgo.Record) bool {
	if at, ok := c.col.Position(part); ok && r.Offset < at.Next {
		return true // the client repeated something
	}
	if r.Attrs.IsControl() {
		c.col.Advance(part, r.Offset+1, r.LeaderEpoch, time.Now())
		return true
	}
	c.fill(part, r)
	c.keepHalf(r)
	if row := c.refusedAt(change.Partition{Topic: r.Topic, Partition: r.Partition}, r.Offset); row != nil {
		return c.refuse(ctx, row)
	}
	res, err := c.decode()
	switch {
	case err != nil:
		if !c.refuse(ctx, err) {
			return false
		}
	case res.Truncation != nil:
		if !c.truncate(ctx, res) {
			return false
		}
	default:
		c.count(res)
	}
	c.col.Record(part, r.Offset, r.LeaderEpoch, r.Key, r.Value, c.now)
	if reason, due := c.col.Due(c.now); due {
		if err := c.flush(ctx, reason); err != nil {
			return false
		}
		c.now = time.Now() // handing over may have taken long
	}
	return c.active
}

// fill copies a client record's header into the reused decode.Record.
func (c *Consumer) fill(part int32, r *kgo.Record) {
	c.headers = c.headers[:0]
	for _, h := range r.Headers {
		c.headers = append(c.headers, change.Header{Key: h.Key, Value: h.Value})
	}
	c.rec = decode.Record{
		Topic: r.Topic, Part: part, Partition: r.Partition, Offset: r.Offset,
		Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value, Headers: c.headers,
	}
}

func (c *Consumer) decode() (decode.Result, error) {
	if n := len(c.rec.Key) + len(c.rec.Value); c.o.MaxRecordBytes > 0 && n > c.o.MaxRecordBytes {
		return decode.Result{}, &decode.RowError{Class: decode.ClassLength, Msg: "the record is larger than max_record_bytes"}
	}
	out := c.col.Changes()
	before := out.Bytes
	res, err := c.dec.Decode(&c.rec, out)
	if err == nil && out.Bytes == before {
		out.Bytes += int64(len(c.rec.Key) + len(c.rec.Value))
	}
	return res, err
}

// count counts a decoded record and names unusual ones once.
func (c *Consumer) count(res decode.Result) {
	kind := string(res.Skip)
	if res.Skip == decode.SkipNone {
		out := c.col.Changes()
		kind = KindNone
		if res.Rows > 0 {
			kind = out.Kind[out.Len()-1].String()
		}
	} else {
		c.col.Count(CountSkipped)
	}
	if m := c.o.Metrics.Record; m != nil && !c.repeating {
		m(kind, len(c.rec.Key)+len(c.rec.Value))
	}
	if res.Note != "" && !c.notes[res.Note] && len(c.notes) < 100 {
		c.notes[res.Note] = true
		if res.Skip == decode.SkipNone {
			c.o.Log.Info("about the schema of records", "topic", c.rec.Topic, "what", res.Note)
			return
		}
		c.o.Log.Info("records that change no row", "topic", c.rec.Topic, "what", res.Note, "reason", kind)
	}
}

// outdatedTable reports whether a record that cannot be applied may be one of a newer
// schema: the table has changed since it was opened, and the batch that would have
// noticed has not come yet. A look is good for all records that were there before it.
func (c *Consumer) outdatedTable(ctx context.Context) bool {
	if c.fresh {
		return false
	}
	if c.owner.Outdated(ctx) {
		return true
	}
	c.fresh = true
	return false
}

// evolve ends reading before a record that needs another schema, which is no trouble.
func (c *Consumer) evolve(ctx context.Context, asked *decode.SchemaChange) {
	if err := c.flush(ctx, "drain"); err != nil || !c.active {
		return
	}
	c.active = false
	c.cl.PauseFetchTopics(c.o.Topics...)
	c.owner.Evolve(asked, change.Partition{Topic: c.rec.Topic, Partition: c.rec.Partition}, c.rec.Offset, c.generation.Load())
}

// refuse decides about a record that cannot be applied; false stops reading.
func (c *Consumer) refuse(ctx context.Context, err error) bool {
	c.half = nil // nothing of it, or all that there will be, is in the batch
	var asked *decode.SchemaChange
	if errors.As(err, &asked) {
		c.evolve(ctx, asked)
		return false
	}
	if c.outdatedTable(ctx) {
		c.evolve(ctx, nil)
		return false
	}
	var row *decode.RowError
	if !errors.As(err, &row) {
		row = &decode.RowError{Class: decode.ClassSyntax, Msg: err.Error()}
	}
	where := change.Partition{Topic: c.rec.Topic, Partition: c.rec.Partition}
	if m := c.o.Metrics.RowError; m != nil {
		m(string(row.Class))
	}
	switch c.o.OnError {
	case OnErrorSkip:
		c.o.Log.Warn("record skipped", "partition", where.String(), "offset", c.rec.Offset, "err", row)
		c.col.Count(CountDropped)
		if m := c.o.Metrics.Dropped; m != nil {
			m("skipped_error")
		}
		return true
	case OnErrorDeadLetter:
		c.o.Letters.Send(ctx, &c.rec, row)
		c.col.Count(CountDeadLetter)
		return true
	}
	// What came before the record is committed first, so that a restart stands
	// exactly at it.
	if err := c.flush(ctx, "drain"); err == nil {
		c.stopWith(*problem("D-ROW", "%s offset %d: %v", where, c.rec.Offset, row))
	}
	return false
}
