package paimon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// Schema, snapshot, tag and consumer files are written as Java writes them, byte
// for byte: Jackson's default pretty printer with its own escapes. That keeps
// files that pass through us identical, and lets tests compare bytes.

// maxJSONDepth bounds the nesting of the JSON that is read.
const maxJSONDepth = 100

// member is one member of a JSON object, its value as it was found.
type member struct {
	name string
	raw  json.RawMessage
}

// parseObject splits a JSON object into its members, in order. Of members of the
// same name the last one counts, as in Jackson.
func parseObject(b []byte) ([]member, error) {
	if err := checkJSONDepth(b); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("a JSON object is expected: %w", orUnexpected(err))
	}
	var ms []member
	at := map[string]int{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, orUnexpected(err)
		}
		name, ok := t.(string)
		if !ok {
			return nil, fmt.Errorf("a member's name is expected instead of %v", t)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("member %q: %w", name, orUnexpected(err))
		}
		if i, seen := at[name]; seen {
			ms[i].raw = raw
			continue
		}
		at[name] = len(ms)
		ms = append(ms, member{name, raw})
	}
	if _, err := dec.Token(); err != nil {
		return nil, orUnexpected(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text behind the JSON object")
	}
	return ms, nil
}

func orUnexpected(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// checkJSONDepth refuses text that nests too deeply before anything recurses over it.
func checkJSONDepth(b []byte) error {
	depth, inString := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > maxJSONDepth {
				return fmt.Errorf("JSON nested deeper than %d levels", maxJSONDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// jsonReader takes members out of an object; the first error sticks.
type jsonReader struct {
	byName map[string]json.RawMessage
	taken  map[string]bool
	err    error
}

func newJSONReader(ms []member) *jsonReader {
	r := &jsonReader{byName: map[string]json.RawMessage{}, taken: map[string]bool{}}
	for _, m := range ms {
		r.byName[m.name] = m.raw
	}
	return r
}

// get decodes a member into v; null counts as absent.
func (r *jsonReader) get(name string, v any) bool {
	raw, ok := r.byName[name]
	r.taken[name] = true
	if !ok || string(raw) == "null" || r.err != nil {
		return false
	}
	if err := json.Unmarshal(raw, v); err != nil {
		r.err = fmt.Errorf("member %q: %w", name, err)
		return false
	}
	return true
}

// need is get for a member that must be there.
func (r *jsonReader) need(name string, v any) {
	if !r.get(name, v) && r.err == nil {
		r.err = fmt.Errorf("member %q is missing", name)
	}
}

// optional returns a pointer to a member's value, nil if it is absent.
func optional[T any](r *jsonReader, name string) *T {
	var v T
	if !r.get(name, &v) {
		return nil
	}
	return &v
}

// rest returns the members that nobody took.
func (r *jsonReader) rest(ms []member) []member {
	var extra []member
	for _, m := range ms {
		if !r.taken[m.name] {
			extra = append(extra, m)
		}
	}
	return extra
}

// textMap reads an object of texts and the order of its keys.
func textMap(raw json.RawMessage) (map[string]string, []string, error) {
	ms, err := parseObject(raw)
	if err != nil {
		return nil, nil, err
	}
	m, order := make(map[string]string, len(ms)), make([]string, 0, len(ms))
	for _, x := range ms {
		var s string
		if err := json.Unmarshal(x.raw, &s); err != nil {
			return nil, nil, fmt.Errorf("member %q: %w", x.name, err)
		}
		m[x.name] = s
		order = append(order, x.name)
	}
	return m, order, nil
}

// jsonWriter writes an object in Jackson's layout.
type jsonWriter struct {
	b   []byte
	n   int // members written
	err error
}

func (w *jsonWriter) key(name string) {
	if w.n == 0 {
		w.b = append(w.b, '{')
	} else {
		w.b = append(w.b, ',')
	}
	w.n++
	w.b = append(w.b, "\n  "...)
	w.b = appendJacksonString(w.b, name)
	w.b = append(w.b, " : "...)
}

func (w *jsonWriter) int(name string, v int64) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *jsonWriter) text(name, v string) {
	w.key(name)
	w.b = appendJacksonString(w.b, v)
}

// optInt and optText leave an absent member out.
func (w *jsonWriter) optInt(name string, v *int64) {
	if v != nil {
		w.int(name, *v)
	}
}

func (w *jsonWriter) optText(name string, v *string) {
	if v != nil {
		w.text(name, *v)
	}
}

// texts writes an object of texts, in the given order.
func (w *jsonWriter) texts(name string, m map[string]string, order []string) {
	w.key(name)
	if len(order) == 0 {
		w.b = append(w.b, "{ }"...)
		return
	}
	for i, k := range order {
		w.b = append(w.b, "{,"[min(i, 1)])
		w.b = append(w.b, "\n    "...)
		w.b = appendJacksonString(w.b, k)
		w.b = append(w.b, " : "...)
		w.b = appendJacksonString(w.b, m[k])
	}
	w.b = append(w.b, "\n  }"...)
}

// raw writes a member whose value is JSON already, laid out anew.
func (w *jsonWriter) raw(name string, v []byte) {
	w.key(name)
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	if err := w.value(dec, 1); err != nil && w.err == nil {
		w.err = fmt.Errorf("member %q: %w", name, err)
	}
}

// any is raw for a Go value.
func (w *jsonWriter) any(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("member %q: %w", name, err))
		return
	}
	w.raw(name, b)
}

func (w *jsonWriter) extra(ms []member) {
	for _, m := range ms {
		w.raw(m.name, m.raw)
	}
}

func (w *jsonWriter) end() ([]byte, error) {
	if w.n == 0 {
		return append(w.b, "{ }"...), w.err
	}
	return append(w.b, "\n}"...), w.err
}

// value copies one value; level is the depth of objects around it. Arrays are
// written in one line and do not count, as in Jackson.
func (w *jsonWriter) value(dec *json.Decoder, level int) error {
	t, err := dec.Token()
	if err != nil {
		return orUnexpected(err)
	}
	switch t := t.(type) {
	case json.Delim:
		return w.composite(dec, t == '{', level)
	case string:
		w.b = appendJacksonString(w.b, t)
	case json.Number:
		w.b = append(w.b, t...)
	case bool:
		w.b = strconv.AppendBool(w.b, t)
	case nil:
		w.b = append(w.b, "null"...)
	}
	return nil
}

func (w *jsonWriter) composite(dec *json.Decoder, object bool, level int) error {
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	w.b = append(w.b, open)
	for i := 0; dec.More(); i++ {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		if object {
			w.newline(level + 1)
			key, err := dec.Token()
			if err != nil {
				return orUnexpected(err)
			}
			name, _ := key.(string)
			w.b = append(appendJacksonString(w.b, name), " : "...)
		} else {
			w.b = append(w.b, ' ')
		}
		inner := level
		if object {
			inner++
		}
		if err := w.value(dec, inner); err != nil {
			return err
		}
	}
	if object && w.b[len(w.b)-1] != open {
		w.newline(level)
	} else {
		w.b = append(w.b, ' ')
	}
	w.b = append(w.b, end)
	_, err := dec.Token()
	return err
}

func (w *jsonWriter) newline(level int) {
	w.b = append(w.b, '\n')
	for range level {
		w.b = append(w.b, "  "...)
	}
}

// appendJacksonString quotes as Jackson does: short escapes where JSON has them,
// upper-case hex for other control characters, everything else as it is. Invalid
// UTF-8 becomes U+FFFD.
func appendJacksonString(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, `\b`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\f':
			dst = append(dst, `\f`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, '"')
}
