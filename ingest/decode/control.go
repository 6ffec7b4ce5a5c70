package decode

import (
	"bytes"
	"strings"

	"applier/ingest/change"
)

// control names a value without op: Debezium's own records, which other topics
// of the connector carry and routing can mix into a table's.
func (d *debezium) control(rec *Record) (Result, *RowError) {
	has := d.env.has
	all := func(set memberSet) bool { return has&set == set }
	switch {
	case strings.HasPrefix(rec.Topic, "__debezium-heartbeat"),
		has&memTsMs != 0 && has&^(memTsMs|memTsOther) == 0:
		return Result{Skip: SkipHeartbeat}, nil
	case all(memStatus | memID):
		return Result{Skip: SkipTransaction}, nil
	case all(memDatabase | memTableChanges), all(memDatabase | memDDL):
		return Result{Skip: SkipSchemaChange}, nil
	case all(memAggregate | memType):
		return Result{Skip: SkipOtherRecord, Note: "a Debezium notification"}, nil
	case all(memType|memData) && has&^(memType|memData|memID) == 0:
		return Result{Skip: SkipOtherRecord, Note: "a Debezium signal"}, nil
	}
	return Result{}, &RowError{Class: ClassEnvelope, Msg: "value without op: not a Debezium change event (a flattened one?)"}
}

// tombstone applies a null value: nothing after the delete it belongs to, a
// delete by the record key on its own.
func (d *debezium) tombstone(out *change.Batch) (Result, *RowError) {
	rec := d.ev.rec
	if d.opts.Append || rec.Key == nil || d.opts.IgnoreRecordKey || d.deletes.follows(rec) {
		return Result{Skip: SkipTombstone}, nil
	}
	if err := d.key.brokenError(); err != nil {
		return Result{}, err
	}
	if d.key.empty() {
		return Result{Skip: SkipTombstone}, nil
	}
	if d.opts.IgnoreDeletes {
		return Result{Skip: SkipDelete}, nil
	}
	if err := d.deletion(out, &d.ev, true); err != nil {
		if d.first && d.placeless {
			// The delete that it follows was read before the start: it had a place.
			return Result{Skip: SkipTombstone}, nil
		}
		return Result{}, err
	}
	d.deletes.remember(rec)
	return Result{Rows: 1}, nil
}

// Restart implements Decoder.
func (d *debezium) Restart() {
	d.deletes.parts = d.deletes.parts[:0]
	clear(d.begun)
}

// begin notes that a record of a partition is decoded and reports whether it is
// the first one.
func (d *debezium) begin(part int32) bool {
	if part < 0 || part >= maxDeleteParts {
		return false
	}
	for int(part) >= len(d.begun) {
		d.begun = append(d.begun, false)
	}
	first := !d.begun[part]
	d.begun[part] = true
	return first
}

// Limits of lastDeletes.
const (
	maxDeleteParts = 1 << 12
	maxDeleteKey   = 1 << 10
)

// lastDeletes remembers, for each source partition, the key of the last delete,
// so that the tombstone that follows it costs nothing. What it does not remember
// only costs a second, idempotent delete.
type lastDeletes struct {
	parts []lastDelete
}

type lastDelete struct {
	set    bool
	offset int64
	key    []byte
}

func (l *lastDeletes) of(rec *Record) *lastDelete {
	if rec.Part < 0 || int(rec.Part) >= len(l.parts) {
		return nil
	}
	return &l.parts[rec.Part]
}

func (l *lastDeletes) remember(rec *Record) {
	if rec.Key == nil || rec.Part < 0 || rec.Part >= maxDeleteParts || len(rec.Key) > maxDeleteKey {
		if p := l.of(rec); p != nil {
			p.set = false
		}
		return
	}
	for int(rec.Part) >= len(l.parts) {
		l.parts = append(l.parts, lastDelete{})
	}
	p := &l.parts[rec.Part]
	p.set, p.offset = true, rec.Offset
	p.key = append(p.key[:0], rec.Key...)
}

// forget ends the memory of a delete when its key lives again.
func (l *lastDeletes) forget(rec *Record) {
	if p := l.of(rec); p != nil && p.set && bytes.Equal(p.key, rec.Key) {
		p.set = false
	}
}

// follows reports whether the record is the tombstone of the last delete. A
// later offset is required: after a rewind the memory is of the future.
func (l *lastDeletes) follows(rec *Record) bool {
	p := l.of(rec)
	return p != nil && p.set && p.offset < rec.Offset && bytes.Equal(p.key, rec.Key)
}
