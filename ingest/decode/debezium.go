package decode

import (
	"slices"
	"strings"

	"applier/ingest/change"
)

// Members of a Debezium value that mean something, as a set.
type memberSet uint32

const (
	memBefore memberSet = 1 << iota
	memAfter
	memOp
	memSource
	memTsMs
	memTsOther // ts_us, ts_ns
	memStatus
	memID
	memDDL
	memDatabase
	memTableChanges
	memAggregate
	memType
	memData
	memOther // everything else
)

var envelopeMembers = []struct {
	name string
	set  memberSet
}{
	{"before", memBefore},
	{"after", memAfter},
	{"source", memSource},
	{"transaction", memOther},
	{"op", memOp},
	{"ts_ms", memTsMs},
	{"ts_us", memTsOther},
	{"ts_ns", memTsOther},
	{"status", memStatus},
	{"id", memID},
	{"ddl", memDDL},
	{"databaseName", memDatabase},
	{"tableChanges", memTableChanges},
	{"aggregate_type", memAggregate},
	{"type", memType},
	{"data", memData},
}

// envelope is what the pass over a value found.
type envelope struct {
	has    memberSet
	op     byte   // 0 if the op is not one letter
	after  int    // offset of the after object, -1: none
	before int    // offset of the before object, -1: none
	depth  int    // containers around the images
	plan   *plan  // of after
	old    *plan  // of before
	opText []byte // as written
	change *SchemaChange
}

// debezium decodes Debezium's change events in JSON, with and without schema
// envelope, for key and value independently.
type debezium struct {
	*rows
	values     schemaCache
	members    members
	sources    members
	wanted     [][]int // by slot id of sources: places in event.source it feeds
	bareBefore *plan
	bareAfter  *plan
	env        envelope
	ev         event
	again      scanner // reads an image a second time
	deletes    lastDeletes
	sourceTs   int64
	begun      []bool // by partition: something of it was decoded
	first      bool   // this record is the first one of its partition
	placeless  bool   // a null value cannot have a place in the order: that comes from values
}

func newDebezium(r *rows) *debezium {
	d := &debezium{rows: r, bareBefore: r.plan(nil, true), bareAfter: r.plan(nil, true)}
	for _, i := range r.opts.OrderBy {
		d.placeless = d.placeless || !slices.ContainsFunc(r.opts.Columns, func(m MetaColumn) bool {
			return m.Column == i && (strings.HasPrefix(m.Source, "kafka.") || strings.HasPrefix(m.Source, "header."))
		})
	}
	d.values.compile = d.compile
	for _, m := range envelopeMembers {
		d.members.add(m.name, int(m.set))
	}
	// Slot ids of the source block: 0 is ts_ms, the others serve metadata columns.
	d.sources.add("ts_ms", 0)
	d.wanted = make([][]int, 1)
	sources := 0
	for i := range r.metas {
		if r.metas[i].kind != metaSource {
			continue
		}
		sources++
		id := d.sources.add(r.metas[i].path[0], len(d.wanted)).id
		if id == len(d.wanted) {
			d.wanted = append(d.wanted, nil)
		}
		d.wanted[id] = append(d.wanted[id], r.metas[i].at)
	}
	d.ev.source = make([][]byte, sources)
	return d
}

// compile plans the row images of an envelope schema.
func (d *debezium) compile(c *connectSchema) {
	if after := c.root.member("after"); after != nil {
		c.after = d.plan(after, true)
		c.change = d.evolved(c.text, "after")
	}
	if before := c.root.member("before"); before != nil {
		c.before = d.plan(before, true)
	}
}

// Decode implements Decoder.
func (d *debezium) Decode(rec *Record, out *change.Batch) (Result, error) {
	row := out.Len()
	res, err := d.decode(rec, out)
	if d.env.change != nil {
		out.Truncate(row)
		return Result{}, d.env.change
	}
	if err != nil {
		out.Truncate(row)
		return Result{}, err
	}
	if res.Rows > 0 {
		out.Bytes += rec.size()
	}
	if res.Note == "" {
		res.Note = d.takeNote()
	}
	return res, nil
}

func (d *debezium) decode(rec *Record, out *change.Batch) (Result, *RowError) {
	d.reset(rec)
	d.first = d.begin(rec.Part)
	d.key.read(rec.Key)
	if rec.Value == nil {
		return d.tombstone(out)
	}
	if len(rec.Value) == 0 {
		return Result{}, &RowError{Class: ClassSyntax, Msg: "value: empty, which is neither JSON nor null"}
	}
	s := &d.s
	s.reset(rec.Value)
	w := d.values.open(s)
	c := s.peek()
	row := out.Len()
	if s.bad == 0 && c == '{' {
		if err := d.envelope(s, w, out); err != nil {
			return Result{}, err
		}
	} else if s.bad == 0 {
		s.skip()
	}
	if s.bad != 0 || !w.close(s) || !s.done() {
		return Result{}, syntaxError(s, "value")
	}
	switch {
	case c == 'n':
		return d.tombstone(out)
	case c != '{':
		return Result{}, &RowError{Class: ClassEnvelope, Msg: "value: not an object"}
	case d.env.has&memOp == 0:
		out.Truncate(row)
		return d.control(rec)
	}
	return d.apply(out, row)
}

// reset forgets the previous record.
func (d *debezium) reset(rec *Record) {
	d.ev.rec, d.ev.time, d.ev.tsMs = rec, rec.Timestamp, nil
	if len(d.ev.source) > 0 {
		clear(d.ev.source)
	}
	e := &d.env
	if e.before >= 0 {
		clear(d.beforeKey)
	}
	e.has, e.op, e.opText, e.after, e.before, e.change = 0, 0, nil, -1, -1, nil
	d.sourceTs = 0
}

// envelope reads the members of a value in one pass. The after image is
// converted as soon as it comes by, since op, which says whether it counts,
// usually comes later.
func (d *debezium) envelope(s *scanner, w wrapper, out *change.Batch) *RowError {
	e := &d.env
	e.plan, e.old = d.bareAfter, d.bareBefore
	if w.schema != nil {
		e.change = w.schema.change
		if w.schema.after != nil {
			e.plan = w.schema.after
		}
		if w.schema.before != nil {
			e.old = w.schema.before
		}
	}
	e.depth = s.depth
	for sl := d.members.open(s); sl != nil; sl = d.members.next(s) {
		set := memOther
		if sl.id > 0 {
			set = memberSet(sl.id)
		}
		e.has |= set
		c := s.peek()
		from := s.p
		switch {
		case set == memAfter && c == '{':
			e.after = from
			if err := d.image(s, e.plan, out); err != nil {
				return err
			}
			continue
		case set == memBefore && c == '{':
			e.before = from
			if d.locate(s, e.old) {
				continue
			}
		case set == memSource && c == '{':
			if d.sourceBlock(s) {
				continue
			}
		case set == memOp || set == memTsMs:
			if s.token(&d.tok) {
				d.scalar(set, &d.tok)
				continue
			}
		case s.skip():
			continue
		}
		return nil
	}
	return nil
}

// scalar keeps op or ts_ms.
func (d *debezium) scalar(set memberSet, t *token) {
	if set == memTsMs {
		d.ev.tsMs = t.raw
		if n := wholeMillis(t); n != 0 && d.sourceTs == 0 {
			d.ev.time = n
		}
		return
	}
	d.env.opText = t.raw
	if t.kind == kindString && len(t.text) == 1 {
		d.env.op = t.text[0]
	}
}

// opName shows an unknown op in messages, unless it could be anything.
func (d *debezium) opName() string {
	if len(d.env.opText) > 10 {
		return ""
	}
	return " " + string(d.env.opText)
}

// sourceBlock reads the source block: its clock is the change time, and the
// members that metadata columns want are located.
func (d *debezium) sourceBlock(s *scanner) bool {
	for sl := d.sources.open(s); sl != nil; sl = d.sources.next(s) {
		if sl.id < 0 {
			if !s.skip() {
				return false
			}
			continue
		}
		if !s.token(&d.tok) {
			return false
		}
		if sl.id == 0 {
			if d.sourceTs = wholeMillis(&d.tok); d.sourceTs != 0 {
				d.ev.time = d.sourceTs
			}
		}
		for _, at := range d.wanted[sl.id] {
			d.ev.source[at] = d.tok.raw
		}
	}
	return s.bad == 0
}

// wholeMillis reads a number of milliseconds, 0 if it is none. Metadata never
// fails a row, and a clock of 0 (some snapshots) tells nothing.
func wholeMillis(t *token) int64 {
	if t.kind != kindNumber || !t.small {
		return 0
	}
	return t.num
}
