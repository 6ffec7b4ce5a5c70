package decode

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"applier/ingest/change"
	"applier/storage/types"
)

// metaKind is where a metadata column comes from.
type metaKind uint8

const (
	metaOp metaKind = iota
	metaTime
	metaSource
	metaTopic
	metaPartition
	metaOffset
	metaTimestamp
	metaHeader
	metaNull
)

// meta fills one column from a record's metadata.
type meta struct {
	column int
	kind   metaKind
	conv   conv
	header string
	path   []string // inside the source block
	at     int      // place among event.source
}

// event is what finish needs to know of the record beside its row image.
type event struct {
	rec  *Record
	time int64 // change time, milliseconds
	// tsMs is the connector's clock as written; source are the values of the
	// source block that metadata columns ask for. nil: the record has none.
	tsMs   []byte
	source [][]byte
}

func (r *rows) addMetas() {
	sources := 0
	for _, m := range r.opts.Columns {
		x := meta{column: m.Column}
		src := srcString
		name, isHeader := strings.CutPrefix(m.Source, "header.")
		path, isSource := strings.CutPrefix(m.Source, "source.")
		switch {
		case isHeader:
			x.kind, x.header = metaHeader, name
		case isSource:
			x.kind, x.path, x.at = metaSource, strings.Split(path, "."), sources
			sources++
			src = timeUnit(path)
		case m.Source == SourceNull:
			x.kind = metaNull
		case m.Source == "op":
			x.kind = metaOp
		case m.Source == "ts_ms":
			x.kind, src = metaTime, srcMilliTimestamp
		case m.Source == "kafka.topic":
			x.kind = metaTopic
		case m.Source == "kafka.partition":
			x.kind, src = metaPartition, srcInteger
		case m.Source == "kafka.offset":
			x.kind, src = metaOffset, srcInteger
		case m.Source == "kafka.timestamp":
			x.kind, src = metaTimestamp, srcMilliTimestamp
		}
		t := r.fields[m.Column].Type
		if t.IsText() && src >= srcMilliTimestamp && src <= srcNanoTimestamp {
			src = srcInteger // the number as it is
		}
		x.conv, _ = newConv(&r.env, t, nil, src, r.fields[m.Column].Name)
		r.metas = append(r.metas, x)
	}
}

// timeUnit reads the unit off the names Debezium gives its clocks.
func timeUnit(path string) source {
	switch path[strings.LastIndexByte(path, '.')+1:] {
	case "ts_ms":
		return srcMilliTimestamp
	case "ts_us":
		return srcMicroTimestamp
	case "ts_ns":
		return srcNanoTimestamp
	}
	return srcDebezium
}

// fillMeta appends the metadata column's cell; what the record does not have is NULL.
func (r *rows) fillMeta(m *meta, out *change.Batch, kind change.Kind, ev *event) *RowError {
	v := out.Cols[m.column].Vector
	t := &r.cellTok
	switch m.kind {
	case metaNull:
		v.AppendNull()
		return nil
	case metaOp:
		op := [...]string{change.Insert: "c", change.Update: "u", change.Read: "r", change.Delete: "d"}[kind]
		v.AppendString(op)
		return nil
	case metaTopic:
		r.env.out = append(r.env.out[:0], ev.rec.Topic...)
		*t = token{kind: kindString, text: r.env.out}
	case metaPartition:
		r.numberToken(t, int64(ev.rec.Partition))
	case metaOffset:
		r.numberToken(t, ev.rec.Offset)
	case metaTimestamp:
		r.numberToken(t, ev.rec.Timestamp)
	case metaHeader:
		value, ok := lastHeader(ev.rec, m.header)
		if !ok {
			v.AppendNull()
			return nil
		}
		if !m.conv.typ.IsBinary() && !utf8.Valid(value) {
			return r.rowError(m.column, errUTF8)
		}
		*t = token{kind: kindString, raw: value, text: value}
		if m.conv.typ.IsBinary() {
			return r.rawBytes(m.column, v, value)
		}
	case metaTime, metaSource:
		raw := ev.tsMs
		if m.kind == metaSource {
			raw = ev.sourceValue(m)
		}
		if raw == nil {
			v.AppendNull()
			return nil
		}
		if f := r.convert(&cell{raw: raw, conv: &m.conv}, v); f != nil {
			return r.rowError(m.column, f)
		}
		return nil
	}
	if f := m.conv.fn(&m.conv, t, v); f != nil {
		return r.rowError(m.column, f)
	}
	return nil
}

// numberToken makes a token of a number; its text shares env.out.
func (r *rows) numberToken(t *token, n int64) {
	r.env.out = strconv.AppendInt(r.env.out[:0], n, 10)
	*t = token{kind: kindNumber, small: true, num: n, raw: r.env.out}
}

// rawBytes stores a header's bytes in a binary column as they are.
func (r *rows) rawBytes(column int, v *types.Vector, value []byte) *RowError {
	if len(value) > v.Type.Length {
		return r.rowError(column, errTooLong)
	}
	v.AppendBytes(value)
	return nil
}

// lastHeader returns the last header of that name, as Kafka clients do.
func lastHeader(rec *Record, name string) ([]byte, bool) {
	for i := len(rec.Headers) - 1; i >= 0; i-- {
		if rec.Headers[i].Key == name {
			return rec.Headers[i].Value, rec.Headers[i].Value != nil
		}
	}
	return nil, false
}

// sourceValue returns the raw value at the end of a metadata column's path.
func (ev *event) sourceValue(m *meta) []byte {
	if m.at >= len(ev.source) {
		return nil
	}
	raw := ev.source[m.at]
	for _, name := range m.path[1:] {
		if raw = memberValue(raw, name); raw == nil {
			return nil
		}
	}
	return raw
}

// memberValue returns the raw value of a member of a valid JSON object, nil if
// there is none.
func memberValue(object []byte, want string) []byte {
	var s scanner
	s.reset(object)
	if s.peek() != '{' {
		return nil
	}
	s.begin()
	for first := true; s.more(first); first = false {
		name, _, ok := s.name()
		if !ok {
			return nil
		}
		is := string(name) == want
		s.peek()
		from := s.p
		if !s.skip() {
			return nil
		}
		if is {
			return s.b[from:s.p]
		}
	}
	return nil
}

// raw returns a copy of the record.
func (rec *Record) raw() change.RawRecord {
	c := change.RawRecord{Timestamp: rec.Timestamp}
	if rec.Key != nil {
		c.Key = append([]byte{}, rec.Key...)
	}
	if rec.Value != nil {
		c.Value = append([]byte{}, rec.Value...)
	}
	for _, h := range rec.Headers {
		if h.Value != nil {
			h.Value = append([]byte{}, h.Value...)
		}
		c.Headers = append(c.Headers, h)
	}
	return c
}

// size returns the bytes of the record as the batch counts them.
func (rec *Record) size() int64 {
	n := len(rec.Key) + len(rec.Value)
	for i := range rec.Headers {
		n += len(rec.Headers[i].Key) + len(rec.Headers[i].Value)
	}
	return int64(n)
}
