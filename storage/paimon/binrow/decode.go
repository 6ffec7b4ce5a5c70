package binrow

import (
	"encoding/binary"
	"fmt"
	"math"

	"applier/storage/types"
)

// Decode reads a prefixed row of exactly the given types. Texts and binaries
// alias b. It accepts every byte order of the variable part, and nothing that
// points outside of the row.
func Decode(ts []types.Type, b []byte) ([]types.Datum, error) {
	n, err := Arity(b)
	if err != nil {
		return nil, err
	}
	if n != len(ts) {
		return nil, fmt.Errorf("%w: %d fields instead of %d", ErrCorrupt, n, len(ts))
	}
	// Values of a canonical row take a byte each at least; the budget keeps a
	// hostile row, whose slots share their bodies, from unfolding without end.
	d := decoder{budget: len(b)}
	return d.row(ts, b[prefixLen:])
}

// Field reads field i (from 0) of a prefixed row, whose other fields may be of
// any type. Bytes alias b.
func Field(t types.Type, b []byte, i int) (types.Datum, error) {
	n, err := Arity(b)
	if err != nil {
		return types.Datum{}, err
	}
	if i < 0 || i >= n {
		return types.Datum{}, fmt.Errorf("%w: no field %d of %d", ErrCorrupt, i+1, n)
	}
	d, row := decoder{budget: len(b)}, b[prefixLen:]
	if row[(i+8)/8]>>((i+8)%8)&1 != 0 {
		return types.Null, nil
	}
	v, err := d.value(t, row, headerLen(n)+8*i)
	if err != nil {
		return types.Datum{}, fmt.Errorf("field %d: %w", i+1, err)
	}
	return v, nil
}

type decoder struct {
	budget int
}

func (d *decoder) spend(n int) error {
	if d.budget -= n; d.budget < 0 {
		return fmt.Errorf("%w: more values than bytes", ErrCorrupt)
	}
	return nil
}

// row reads a row without prefix.
func (d *decoder) row(ts []types.Type, b []byte) ([]types.Datum, error) {
	h := headerLen(len(ts))
	if len(b) < h+8*len(ts) {
		return nil, fmt.Errorf("%w: %d bytes are too few for %d fields", ErrCorrupt, len(b), len(ts))
	}
	if err := d.spend(len(ts)); err != nil {
		return nil, err
	}
	row := make([]types.Datum, len(ts))
	for i, t := range ts {
		if b[(i+8)/8]>>((i+8)%8)&1 != 0 {
			row[i] = types.Null
			continue
		}
		var err error
		if row[i], err = d.value(t, b, h+8*i); err != nil {
			return nil, fmt.Errorf("field %d: %w", i+1, err)
		}
	}
	return row, nil
}

// value reads the value whose slot is at b[at:]; b is the enclosing row or array.
func (d *decoder) value(t types.Type, b []byte, at int) (types.Datum, error) {
	le := binary.LittleEndian
	s := b[at:]
	switch t.Kind {
	case types.Boolean:
		return types.BoolDatum(s[0] != 0), nil
	case types.TinyInt:
		return types.IntDatum(int64(int8(s[0]))), nil
	case types.SmallInt:
		return types.IntDatum(int64(int16(le.Uint16(s)))), nil
	case types.Int, types.Date, types.Time:
		return types.IntDatum(int64(int32(le.Uint32(s)))), nil
	case types.BigInt:
		return types.IntDatum(int64(le.Uint64(s))), nil
	case types.Float:
		return types.FloatDatum(float64(math.Float32frombits(le.Uint32(s)))), nil
	case types.Double:
		return types.FloatDatum(math.Float64frombits(le.Uint64(s))), nil
	case types.Decimal:
		return decimal(t, b, s)
	case types.Timestamp, types.TimestampLTZ:
		return timestamp(t, b, s)
	case types.Char, types.VarChar, types.Binary, types.VarBinary:
		if s[7]&0x80 == 0 {
			body, err := body(b, s)
			return types.BytesDatum(body), err
		}
		n := int(s[7] & 0x7f)
		if n > inlineMax {
			return types.Datum{}, fmt.Errorf("%w: an inline value of %d bytes", ErrCorrupt, n)
		}
		return types.BytesDatum(s[:n:n]), nil
	case types.Array, types.Map, types.Multiset, types.Row, types.Variant:
		return d.nested(t, b, s)
	}
	return types.Datum{}, fmt.Errorf("%w: no form for %s", ErrCorrupt, t)
}

// body returns what a slot of offset and length points to.
func body(b, slot []byte) ([]byte, error) {
	v := binary.LittleEndian.Uint64(slot)
	return part(b, v>>32, v&math.MaxUint32)
}

func part(b []byte, off, n uint64) ([]byte, error) {
	if off+n > uint64(len(b)) {
		return nil, fmt.Errorf("%w: %d bytes at %d of %d", ErrCorrupt, n, off, len(b))
	}
	return b[off : off+n : off+n], nil
}

func decimal(t types.Type, b, slot []byte) (types.Datum, error) {
	if !wideDecimal(t) {
		return types.IntDatum(int64(binary.LittleEndian.Uint64(slot))), nil
	}
	u, err := body(b, slot)
	if err != nil {
		return types.Datum{}, err
	}
	v, ok := types.Int128FromBytes(u)
	if !ok || len(u) == 0 || len(u) > 16 {
		return types.Datum{}, fmt.Errorf("%w: a DECIMAL of %d bytes", ErrCorrupt, len(u))
	}
	return types.Datum{D: v}, nil
}

func timestamp(t types.Type, b, slot []byte) (types.Datum, error) {
	millis, nanos := int64(binary.LittleEndian.Uint64(slot)), int64(0)
	if wideTimestamp(t) {
		nanos = millis & math.MaxUint32
		u, err := part(b, uint64(millis)>>32, 8)
		if err != nil {
			return types.Datum{}, err
		}
		millis = int64(binary.LittleEndian.Uint64(u))
	}
	const limit = math.MaxInt64/1000 - 1
	if millis > limit || millis < -limit || nanos > 999_999 {
		return types.Datum{}, fmt.Errorf("%w: a timestamp of %d milliseconds and %d nanoseconds", ErrCorrupt, millis, nanos)
	}
	return types.Datum{I: millis*1000 + nanos/1000, N: int32(nanos % 1000)}, nil
}

func (d *decoder) nested(t types.Type, b, slot []byte) (types.Datum, error) {
	u, err := body(b, slot)
	if err != nil {
		return types.Datum{}, err
	}
	var l []types.Datum
	switch t.Kind {
	case types.Row:
		ts := make([]types.Type, len(t.Fields))
		for i, f := range t.Fields {
			ts[i] = f.Type
		}
		l, err = d.row(ts, u)
	case types.Array:
		l, err = d.array(*t.Elem, u)
	case types.Map, types.Multiset:
		l, err = d.mapping(t, u)
	case types.Variant:
		l, err = variant(u)
	}
	return types.Datum{L: l}, err
}

func (d *decoder) array(elem types.Type, b []byte) ([]types.Datum, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: an array of %d bytes", ErrCorrupt, len(b))
	}
	n64 := uint64(binary.LittleEndian.Uint32(b))
	width := elementLen(elem)
	if n64*uint64(width) > uint64(len(b)) || arrayHeaderLen(int(n64))+int(n64)*width > len(b) {
		return nil, fmt.Errorf("%w: %d elements in an array of %d bytes", ErrCorrupt, n64, len(b))
	}
	n := int(n64)
	if err := d.spend(n); err != nil {
		return nil, err
	}
	l, h := make([]types.Datum, n), arrayHeaderLen(n)
	for i := range l {
		if b[4+i/8]>>(i%8)&1 != 0 {
			l[i] = types.Null
			continue
		}
		var err error
		if l[i], err = d.value(elem, b, h+i*width); err != nil {
			return nil, fmt.Errorf("element %d: %w", i+1, err)
		}
	}
	return l, nil
}

// mapping returns keys and values alternating.
func (d *decoder) mapping(t types.Type, b []byte) ([]types.Datum, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: a map of %d bytes", ErrCorrupt, len(b))
	}
	kb, err := part(b[4:], 0, uint64(binary.LittleEndian.Uint32(b)))
	if err != nil {
		return nil, err
	}
	key, value := mapTypes(t)
	keys, err := d.array(key, kb)
	if err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	values, err := d.array(value, b[4+len(kb):])
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	if len(keys) != len(values) {
		return nil, fmt.Errorf("%w: %d keys and %d values", ErrCorrupt, len(keys), len(values))
	}
	l := make([]types.Datum, 0, 2*len(keys))
	for i := range keys {
		l = append(l, keys[i], values[i])
	}
	return l, nil
}

func variant(b []byte) ([]types.Datum, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("%w: a VARIANT of %d bytes", ErrCorrupt, len(b))
	}
	v, err := part(b[4:], 0, uint64(binary.LittleEndian.Uint32(b)))
	if err != nil {
		return nil, err
	}
	return []types.Datum{types.BytesDatum(v), types.BytesDatum(b[4+len(v):])}, nil
}
