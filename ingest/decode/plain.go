package decode

import "applier/ingest/change"

// plain decodes JSON objects that are rows: a value is an upsert, a null value
// a delete by the record key. Values and keys may come with Connect's schema.
type plain struct {
	*rows
	values schemaCache
	bare   *plan
	ev     event
	change *SchemaChange
}

func newPlain(r *rows) *plain {
	p := &plain{rows: r, bare: r.plan(nil, true)}
	p.values.compile = func(c *connectSchema) {
		if c.root.literal == litStruct {
			c.row = r.plan(c.root, true)
			c.change = r.evolved(c.text, "")
		}
	}
	return p
}

// Decode implements Decoder.
func (p *plain) Decode(rec *Record, out *change.Batch) (Result, error) {
	row := out.Len()
	p.change = nil
	res, err := p.decode(rec, out)
	if p.change != nil {
		out.Truncate(row)
		return Result{}, p.change
	}
	if err != nil {
		out.Truncate(row)
		return Result{}, err
	}
	if res.Rows > 0 {
		out.Bytes += rec.size()
	}
	res.Note = p.takeNote()
	return res, nil
}

func (p *plain) decode(rec *Record, out *change.Batch) (Result, *RowError) {
	p.ev = event{rec: rec, time: rec.Timestamp}
	p.key.read(rec.Key)
	if rec.Value == nil {
		return p.remove(out)
	}
	if len(rec.Value) == 0 {
		return Result{}, &RowError{Class: ClassSyntax, Msg: "value: empty, which is neither JSON nor null"}
	}
	s := &p.s
	s.reset(rec.Value)
	w := p.values.open(s)
	c := s.peek()
	if s.bad == 0 && c == '{' {
		pl := p.bare
		if w.schema != nil && w.schema.row != nil {
			pl, p.change = w.schema.row, w.schema.change
		}
		if err := p.image(s, pl, out); err != nil {
			return Result{}, err
		}
	} else if s.bad == 0 {
		s.skip()
	}
	if s.bad != 0 || !w.close(s) || !s.done() {
		return Result{}, syntaxError(s, "value")
	}
	switch c {
	case '{':
	case 'n':
		return p.remove(out)
	default:
		return Result{}, &RowError{Class: ClassEnvelope, Msg: "value: not an object"}
	}
	if err := p.key.brokenError(); err != nil {
		return Result{}, err
	}
	if err := p.finish(out, change.Update, &p.ev); err != nil {
		return Result{}, err
	}
	return Result{Rows: 1}, nil
}

// Restart implements Decoder: nothing is remembered between records.
func (p *plain) Restart() {}

// remove applies a null value.
func (p *plain) remove(out *change.Batch) (Result, *RowError) {
	switch {
	case p.opts.Append || p.opts.IgnoreDeletes:
		return Result{Skip: SkipDelete}, nil
	case p.ev.rec.Key == nil || p.opts.IgnoreRecordKey:
		return Result{Skip: SkipTombstone}, nil
	}
	if err := p.key.brokenError(); err != nil {
		return Result{}, err
	}
	if p.key.empty() {
		return Result{Skip: SkipTombstone}, nil
	}
	clear(p.beforeKey)
	if err := p.deletion(out, &p.ev, true); err != nil {
		return Result{}, err
	}
	return Result{Rows: 1}, nil
}
