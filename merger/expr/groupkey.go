package expr

import (
	"encoding/binary"
	"math"
	"slices"

	"applier/storage/types"
)

// GroupKey appends bytes that are equal exactly for values that GROUP BY, DISTINCT
// and joins take as equal: NULL with NULL, NaN with NaN, -0.0 with 0.0.
func GroupKey(dst []byte, t Type, d types.Datum) []byte {
	if d.Null {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	switch t.Kind {
	case Float, Double:
		f := d.F
		switch {
		case math.IsNaN(f):
			f = math.NaN()
		case f == 0:
			f = 0
		}
		return binary.BigEndian.AppendUint64(dst, math.Float64bits(f))
	case Decimal:
		if t.Precision > 18 {
			dst = binary.BigEndian.AppendUint64(dst, uint64(d.D.Hi))
			return binary.BigEndian.AppendUint64(dst, d.D.Lo)
		}
	case String:
		if t.Collation != "" {
			return appendSized(dst, []byte(collationKey(t, d.B)))
		}
		return appendSized(dst, d.B)
	case Binary:
		return appendSized(dst, d.B)
	case Timestamp, TimestampNTZ:
		dst = binary.BigEndian.AppendUint64(dst, uint64(d.I))
		return binary.BigEndian.AppendUint32(dst, uint32(d.N))
	case Map:
		return mapKey(dst, t, d)
	case Array, Struct, Calendar:
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(d.L)))
		for i, x := range d.L {
			dst = GroupKey(dst, t.item(i), x)
		}
		return dst
	}
	return binary.BigEndian.AppendUint64(dst, uint64(d.I))
}

// Normalize returns a value as grouping gives it out: 0.0 for -0.0.
func Normalize(t Type, d types.Datum) types.Datum {
	switch {
	case d.Null:
	case t.floating() && d.F == 0:
		d.F = 0
	case t.Kind == Array || t.Kind == Struct:
		l := make([]types.Datum, len(d.L))
		for i, x := range d.L {
			l[i] = Normalize(t.item(i), x)
		}
		d.L = l
	}
	return d
}

func appendSized(dst, b []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}

// mapKey writes the entries in the order of their keys' bytes.
func mapKey(dst []byte, t Type, d types.Datum) []byte {
	entries := make([]string, 0, len(d.L)/2)
	for i := 0; i+1 < len(d.L); i += 2 {
		e := GroupKey(nil, *t.Key, d.L[i])
		entries = append(entries, string(GroupKey(e, *t.Elem, d.L[i+1])))
	}
	slices.Sort(entries)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(entries)))
	for _, e := range entries {
		dst = append(dst, e...)
	}
	return dst
}
