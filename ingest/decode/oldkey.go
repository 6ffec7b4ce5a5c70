package decode

import (
	"bytes"

	"applier/ingest/change"
	"applier/storage/types"
)

// oldKeyHeader carries the key a row had before, on the create event that a
// change of the primary key becomes (Debezium's Envelope and ChangeEventCreator).
const oldKeyHeader = "__debezium.oldkey"

// linkHeader links the last row to the key it had before, if a header tells.
// The header is a help for filling holes; an unreadable one is ignored.
func (d *debezium) linkHeader(out *change.Batch) {
	if len(d.ev.rec.Headers) == 0 {
		return
	}
	value, ok := lastHeader(d.ev.rec, oldKeyHeader)
	if !ok || !d.headerKey(value) {
		return
	}
	d.linkOldKey(out)
}

// linkOldKey links the last row to the key in oldKey unless it is its own.
func (d *debezium) linkOldKey(out *change.Batch) {
	row := out.Len() - 1
	same := true
	for at, i := range d.opts.Key {
		col, k := out.Cols[i].Vector, d.keyVec[at]
		k.Reset()
		if d.skip[i] { // metadata: part of the key, but in no image
			k.AppendCell(col, row)
		} else if d.oldKey[at].raw == nil || d.convert(&d.oldKey[at], k) != nil || k.IsNull(0) {
			return
		}
		d.datums[at] = k.Datum(0)
		same = same && types.CompareCells(k, 0, col, row) == 0
	}
	if !same {
		out.LinkOldKey(d.datums)
	}
}

// headerKey locates the merge key in a key header: JSON, with or without
// schema, or the text of a Connect struct.
func (r *rows) headerKey(value []byte) bool {
	clear(r.oldKey)
	if bytes.HasPrefix(value, structText) {
		return r.structKey(value)
	}
	s := &r.key.s
	s.reset(value)
	w := r.key.schemas.open(s)
	if s.peek() != '{' {
		return false
	}
	// Header converters drop the schema: the record key's own says what the values are.
	pl := r.key.last
	if w.schema != nil && w.schema.row != nil {
		pl = w.schema.row
	}
	for sl := pl.open(s); sl != nil; sl = pl.next(s) {
		s.peek()
		from := s.p
		if !s.skip() {
			return false
		}
		if sl.id >= 0 && r.keyAt[sl.id] >= 0 {
			r.oldKey[r.keyAt[sl.id]] = cell{raw: s.b[from:s.p], conv: &sl.conv}
		}
	}
	return s.bad == 0
}

// structKey locates the merge key in Struct{a=1,b=x}. Nothing is escaped in such
// texts, so it is read only if every name stands in it exactly once.
func (r *rows) structKey(text []byte) bool {
	body, ok := bytes.CutSuffix(text[len(structText):], []byte("}"))
	if !ok {
		return false
	}
	for at, i := range r.opts.Key {
		if r.skip[i] {
			continue
		}
		from, ok := structField(body, r.fields[i].Name)
		if !ok {
			return false
		}
		end := len(body)
		for _, j := range r.opts.Key {
			if next, ok := structField(body, r.fields[j].Name); ok && next > from {
				end = min(end, next-len(r.fields[j].Name)-2)
			}
		}
		sl := r.key.last.byName[r.fields[i].Name]
		if sl == nil {
			return false
		}
		value := body[from:end]
		var s scanner
		s.reset(value)
		number := len(value) > 0 && s.skip() && s.done() && value[0] != '"'
		text := r.fields[i].Type.IsText() || !number
		r.oldKey[at] = cell{raw: value, conv: &sl.conv, text: text}
	}
	return true
}

// structField returns the offset of a field's value, if the name occurs once.
func structField(body []byte, name string) (int, bool) {
	first := -1
	pattern := []byte(name + "=")
	for at := 0; ; {
		i := bytes.Index(body[at:], pattern)
		if i < 0 {
			return first + len(pattern), first >= 0
		}
		if at += i; at == 0 || body[at-1] == ',' {
			if first >= 0 {
				return 0, false
			}
			first = at
		}
		at += len(pattern)
	}
}
