package decode

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// recordKey locates the values of the Kafka record key. It reads objects with
// and without schema and bare scalars; what it cannot read matters only when
// the value lacks the merge key.
type recordKey struct {
	r       *rows
	s       scanner
	schemas schemaCache
	bare    *plan // objects without schema
	last    *plan // of the object read last, also used for key headers
	column  int   // of a scalar key, -1: there is no telling
	scalar  conv
	found   []cell
	foundIn []uint64 // by column: record in which found is valid
	record  uint64
	null    bool   // the key is a JSON null, which is no key
	bad     string // why the key could not be read
	broken  bool   // it looks like JSON but is none
}

func (k *recordKey) init(r *rows) {
	k.r = r
	k.found, k.foundIn = make([]cell, len(r.fields)), make([]uint64, len(r.fields))
	k.schemas.compile = k.compile
	k.bare = r.plan(nil, false)
	k.last = k.bare
	k.column = -1
	if r.opts.KeyColumn != "" {
		k.column = r.byName[r.opts.KeyColumn]
	} else if len(r.opts.Key) == 1 {
		k.column = r.opts.Key[0]
	}
	if k.column >= 0 && r.skip[k.column] {
		k.column = -1
	}
	if k.column >= 0 {
		k.scalar = r.conv(k.column, nil)
	}
}

func (k *recordKey) compile(c *connectSchema) {
	if c.root.literal == litStruct {
		c.row = k.r.plan(c.root, false)
	} else if k.column >= 0 {
		scalar := k.r.conv(k.column, c.root)
		c.scalar = &scalar
	}
}

// cell returns the record key's value for a column, nil if it has none.
func (k *recordKey) cell(column int) *cell {
	if k.foundIn[column] != k.record {
		return nil
	}
	return &k.found[column]
}

func (k *recordKey) set(column int, c cell) { k.found[column], k.foundIn[column] = c, k.record }

// trouble is added to messages about a merge key that nobody delivered.
func (k *recordKey) trouble() string {
	if k.bad == "" {
		return ""
	}
	return "; the record key was not read: " + k.bad
}

// empty reports whether the record has no key although it has key bytes.
func (k *recordKey) empty() bool { return k.null }

// brokenError refuses a record whose key is broken, whatever the value says.
func (k *recordKey) brokenError() *RowError {
	if !k.broken {
		return nil
	}
	return &RowError{Class: ClassKey, Msg: k.bad}
}

// read locates the values of a record key.
func (k *recordKey) read(key []byte) {
	k.record++
	k.bad, k.broken, k.null, k.last = "", false, false, k.bare
	if key == nil || k.r.opts.IgnoreRecordKey {
		return
	}
	s := &k.s
	s.reset(key)
	w := k.schemas.open(s)
	switch c := s.peek(); {
	case s.bad != 0:
	case c == '{':
		k.object(w)
	case c == '[':
		k.bad = "an array"
		s.skip()
	default:
		k.scalarValue(w)
	}
	if s.bad == 0 && w.close(s) && s.done() {
		return
	}
	k.record++ // forget what was found
	k.unread(key)
}

func (k *recordKey) object(w wrapper) {
	s, pl := &k.s, k.bare
	if w.schema != nil && w.schema.row != nil {
		pl = w.schema.row
	}
	k.last = pl
	for sl := pl.open(s); sl != nil; sl = pl.next(s) {
		s.peek()
		from := s.p
		if !s.skip() {
			return
		}
		if sl.id >= 0 {
			k.set(sl.id, cell{raw: s.b[from:s.p], conv: &sl.conv})
		}
	}
}

func (k *recordKey) scalarValue(w wrapper) {
	s := &k.s
	from := s.p
	if !s.skip() {
		return
	}
	if k.null = bytes.Equal(s.b[from:s.p], literalNull); k.null {
		return
	}
	if k.column < 0 {
		k.bad = fmt.Sprintf("a single value, but the merge key has %d columns and none is named for it", len(k.r.opts.Key))
		return
	}
	c := cell{raw: s.b[from:s.p], conv: &k.scalar}
	if w.schema != nil && w.schema.scalar != nil {
		c.conv = w.schema.scalar
	}
	k.set(k.column, c)
}

// structText starts the text that Connect's StringConverter makes of a key.
var structText = []byte("Struct{")

// unread decides what a key that is not JSON means: plain JSON topics often
// have bare texts as keys; a broken object is an error; the rest (Struct{…},
// binary serializers) is not for us.
func (k *recordKey) unread(key []byte) {
	c := byte(0)
	if at := space(key, 0); at < len(key) {
		c = key[at]
	}
	switch {
	case bytes.HasPrefix(key, structText):
		k.bad = "the text of a Connect struct, which cannot be read reliably"
	case c == '{' || c == '[' || c == '"':
		k.bad = fmt.Sprintf("the record key is not valid JSON: %s at byte %d", badTexts[-k.s.bad-1], k.s.badAt)
		k.broken = true
	case k.r.without == srcPlain && k.column >= 0 && k.r.fields[k.column].Type.IsText() && len(key) > 0 && utf8.Valid(key):
		k.set(k.column, cell{raw: key, conv: &k.scalar, text: true})
	default:
		k.bad = "not JSON"
	}
}
