package binrow

import (
	"encoding/binary"
	"fmt"
	"math"

	"applier/storage/types"
)

// Encode returns the row with its arity prefix.
func Encode(ts []types.Type, row []types.Datum) ([]byte, error) {
	return Append(nil, ts, row)
}

// Append appends the row with its arity prefix to dst. Timestamps of a precision
// up to 3 lose what is below the millisecond, as in Java; integers that do not
// fit their type and values of another shape are ErrValue.
func Append(dst []byte, ts []types.Type, row []types.Datum) ([]byte, error) {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(ts)))
	return appendRow(dst, ts, row)
}

// appendRow appends a row without prefix.
func appendRow(dst []byte, ts []types.Type, row []types.Datum) ([]byte, error) {
	if len(row) != len(ts) {
		return nil, fmt.Errorf("%w: %d values for %d fields", ErrValue, len(row), len(ts))
	}
	w := writer{b: dst, base: len(dst)}
	h := headerLen(len(ts))
	w.zeros(h + 8*len(ts))
	for i, t := range ts {
		slot := w.base + h + 8*i
		if row[i].Null {
			w.b[w.base+(i+8)/8] |= 1 << ((i + 8) % 8)
			w.reserve(slot, t)
			continue
		}
		if err := w.value(slot, t, row[i]); err != nil {
			return nil, fmt.Errorf("field %d: %w", i+1, err)
		}
	}
	return w.b, nil
}

// writer builds one row or array; base is where it starts in b.
type writer struct {
	b    []byte
	base int
}

func (w *writer) zeros(n int) {
	for n >= 8 {
		w.b = append(w.b, 0, 0, 0, 0, 0, 0, 0, 0)
		n -= 8
	}
	for range n {
		w.b = append(w.b, 0)
	}
}

// pad fills up to a whole word, counted from base.
func (w *writer) pad() { w.zeros(wordEnd(len(w.b)-w.base) - (len(w.b) - w.base)) }

// reserve keeps the room that a NULL of a wide type has in the variable part, so
// that Java can set the field later in place.
func (w *writer) reserve(slot int, t types.Type) {
	switch {
	case wideDecimal(t):
		w.pointer(slot, 0)
		w.zeros(16)
	case wideTimestamp(t):
		w.pointer(slot, 0)
		w.zeros(8)
	}
}

// pointer writes a slot: the offset of what is appended next, and low.
func (w *writer) pointer(slot int, low uint32) {
	off := uint64(len(w.b) - w.base)
	binary.LittleEndian.PutUint64(w.b[slot:], off<<32|uint64(low))
}

// value writes a value that is not NULL into its slot.
func (w *writer) value(slot int, t types.Type, d types.Datum) error {
	le := binary.LittleEndian
	switch t.Kind {
	case types.Boolean:
		if d.I != 0 {
			w.b[slot] = 1
		}
	case types.TinyInt:
		w.b[slot] = byte(d.I)
		return fits(d.I, math.MinInt8, math.MaxInt8, t)
	case types.SmallInt:
		le.PutUint16(w.b[slot:], uint16(d.I))
		return fits(d.I, math.MinInt16, math.MaxInt16, t)
	case types.Int, types.Date, types.Time:
		le.PutUint32(w.b[slot:], uint32(d.I))
		return fits(d.I, math.MinInt32, math.MaxInt32, t)
	case types.BigInt:
		le.PutUint64(w.b[slot:], uint64(d.I))
	case types.Float:
		le.PutUint32(w.b[slot:], math.Float32bits(float32(d.F)))
	case types.Double:
		le.PutUint64(w.b[slot:], math.Float64bits(d.F))
	case types.Decimal:
		w.decimal(slot, t, d)
	case types.Timestamp, types.TimestampLTZ:
		w.timestamp(slot, t, d)
	case types.Char, types.VarChar, types.Binary, types.VarBinary:
		w.bytes(slot, d.B)
	case types.Array, types.Map, types.Multiset, types.Row, types.Variant:
		return w.nested(slot, t, d)
	default:
		return fmt.Errorf("%w: no form for %s", ErrValue, t)
	}
	return nil
}

func fits(v, low, high int64, t types.Type) error {
	if v < low || v > high {
		return fmt.Errorf("%w: %d is no %s", ErrValue, v, t)
	}
	return nil
}

func (w *writer) decimal(slot int, t types.Type, d types.Datum) {
	if !wideDecimal(t) {
		binary.LittleEndian.PutUint64(w.b[slot:], uint64(d.I))
		return
	}
	n := d.D.MinBytes()
	w.pointer(slot, uint32(n))
	w.b = d.D.Bytes(w.b, n)
	w.zeros(16 - n)
}

func (w *writer) timestamp(slot int, t types.Type, d types.Datum) {
	millis := types.FloorDiv(d.I, 1000)
	if !wideTimestamp(t) {
		binary.LittleEndian.PutUint64(w.b[slot:], uint64(millis))
		return
	}
	w.pointer(slot, uint32((d.I-millis*1000)*1000)+uint32(d.N))
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(millis))
}

func (w *writer) bytes(slot int, b []byte) {
	if len(b) <= inlineMax {
		copy(w.b[slot:], b)
		w.b[slot+7] = 0x80 | byte(len(b))
		return
	}
	w.pointer(slot, uint32(len(b)))
	w.b = append(w.b, b...)
	w.pad()
}

// nested writes a body into the variable part and its place into the slot.
func (w *writer) nested(slot int, t types.Type, d types.Datum) error {
	at := len(w.b)
	w.pointer(slot, 0)
	var err error
	switch t.Kind {
	case types.Row:
		ts := make([]types.Type, len(t.Fields))
		for i, f := range t.Fields {
			ts[i] = f.Type
		}
		var b []byte
		if b, err = appendRow(w.b, ts, d.L); err == nil {
			w.b = b
		}
	case types.Array:
		err = w.array(*t.Elem, d.L, 0, 1)
	case types.Map, types.Multiset:
		err = w.mapping(t, d.L)
	case types.Variant:
		err = w.variant(d.L)
	}
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(w.b[slot:], uint32(len(w.b)-at))
	w.pad()
	return nil
}

// array appends an array of the items first, first+step, … of l.
func (w *writer) array(elem types.Type, l []types.Datum, first, step int) error {
	n := (len(l) - first + step - 1) / step
	a := writer{b: w.b, base: len(w.b)}
	h, width := arrayHeaderLen(n), elementLen(elem)
	a.zeros(wordEnd(h + n*width))
	binary.LittleEndian.PutUint32(a.b[a.base:], uint32(n))
	for i := range n {
		d := l[first+i*step]
		if d.Null {
			a.b[a.base+4+i/8] |= 1 << (i % 8)
			continue
		}
		// A narrow element has fewer bytes than the slot value() expects, but
		// it writes its own width only.
		if err := a.value(a.base+h+i*width, elem, d); err != nil {
			return fmt.Errorf("element %d: %w", i+1, err)
		}
	}
	w.b = a.b
	return nil
}

// mapping appends a map: the key array's length, the keys, the values.
func (w *writer) mapping(t types.Type, l []types.Datum) error {
	if len(l)%2 != 0 {
		return fmt.Errorf("%w: %d keys and values of a %s", ErrValue, len(l), t)
	}
	key, value := mapTypes(t)
	at := len(w.b)
	w.b = append(w.b, 0, 0, 0, 0)
	if err := w.array(key, l, 0, 2); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	binary.LittleEndian.PutUint32(w.b[at:], uint32(len(w.b)-at-4))
	if err := w.array(value, l, 1, 2); err != nil {
		return fmt.Errorf("values: %w", err)
	}
	return nil
}

// variant appends the length of the value, the value, the metadata.
func (w *writer) variant(l []types.Datum) error {
	if len(l) != 2 {
		return fmt.Errorf("%w: %d parts of a VARIANT", ErrValue, len(l))
	}
	w.b = binary.LittleEndian.AppendUint32(w.b, uint32(len(l[0].B)))
	w.b = append(append(w.b, l[0].B...), l[1].B...)
	return nil
}
