package datafile

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/format"

	"applier/storage/types"
)

// julianEpoch is the Julian day of 1970-01-01, the zero of INT96 timestamps.
const julianEpoch = 2440588

const microsPerDay = 86_400_000_000

// plainWidth is the bytes a value takes in a page buffer, 0 for variable ones.
// Booleans take a byte there and become bits when the page ends.
func (l *leaf) plainWidth() int {
	switch l.phys {
	case format.Boolean:
		return 1
	case format.Int32, format.Float:
		return 4
	case format.Int64, format.Double:
		return 8
	case format.Int96:
		return 12
	case format.FixedLenByteArray:
		return l.width
	}
	return 0
}

// appendPlain appends the PLAIN encoding of the values of rs, none of them NULL
// and all checked to fit the type.
func (l *leaf) appendPlain(dst []byte, v *types.Vector, rs rows) []byte {
	switch v.Layout {
	case types.LayoutBool:
		for k := range rs.len() {
			dst = append(dst, v.U8[rs.at(k)])
		}
		return dst
	case types.LayoutInt32:
		return append32(dst, v.I32, rs)
	case types.LayoutFloat:
		return append32(dst, bits32(v.F32), rs)
	case types.LayoutDouble:
		return append64(dst, bits64(v.F64), rs)
	case types.LayoutInt64:
		switch {
		case l.phys == format.Int32:
			for k := range rs.len() {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(v.I64[rs.at(k)]))
			}
			return dst
		case l.t.IsTimestamp() && l.t.Precision <= 3:
			for k := range rs.len() {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(types.FloorDiv(v.I64[rs.at(k)], 1000)))
			}
			return dst
		}
		return append64(dst, v.I64, rs)
	case types.LayoutInt128:
		for k := range rs.len() {
			dst = v.I128[rs.at(k)].Bytes(dst, l.width)
		}
		return dst
	case types.LayoutNano:
		for k := range rs.len() {
			i := rs.at(k)
			dst = appendInt96(dst, v.I64[i], v.I32[i])
		}
		return dst
	}
	return appendBytes(dst, v, rs)
}

// appendInt96 writes nanoseconds of the day and the Julian day; the day is
// rounded down, so the nanoseconds are never negative (paimon-format.md §8.1).
func appendInt96(dst []byte, micros int64, nanos int32) []byte {
	day := types.FloorDiv(micros, microsPerDay)
	dst = binary.LittleEndian.AppendUint64(dst, uint64((micros-day*microsPerDay)*1000+int64(nanos)))
	return binary.LittleEndian.AppendUint32(dst, uint32(day+julianEpoch))
}

func append32(dst []byte, src []int32, rs rows) []byte {
	if rs.sel == nil {
		return append(dst, asBytes(src[rs.from:rs.to])...)
	}
	n := len(dst)
	dst = grow(dst, 4*len(rs.sel))[:n+4*len(rs.sel)]
	out := dst[n:]
	for _, i := range rs.sel {
		binary.LittleEndian.PutUint32(out, uint32(src[i]))
		out = out[4:]
	}
	return dst
}

func append64(dst []byte, src []int64, rs rows) []byte {
	if rs.sel == nil {
		return append(dst, asBytes(src[rs.from:rs.to])...)
	}
	n := len(dst)
	dst = grow(dst, 8*len(rs.sel))[:n+8*len(rs.sel)]
	out := dst[n:]
	for _, i := range rs.sel {
		binary.LittleEndian.PutUint64(out, uint64(src[i]))
		out = out[8:]
	}
	return dst
}

func appendBytes(dst []byte, v *types.Vector, rs rows) []byte {
	off, data := v.Off, v.Data
	if rs.sel == nil {
		dst = grow(dst, int(off[rs.to]-off[rs.from])+4*(rs.to-rs.from))
	}
	for k := range rs.len() {
		i := rs.at(k)
		x := data[off[i]:off[i+1]]
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(x)))
		dst = append(dst, x...)
	}
	return dst
}

// packBools turns bytes of 0 and 1 into bits, low first, in place.
func packBools(b []byte) []byte {
	n := (len(b) + 7) / 8
	for i := range n {
		var x byte
		for k, v := range b[8*i : min(8*i+8, len(b))] {
			x |= v & 1 << k
		}
		b[i] = x
	}
	return b[:n]
}

// padChars appends the values of rs to dst, filled up with blanks to n code
// points, as Paimon stores CHAR(n).
func padChars(dst, v *types.Vector, rs rows, n int) {
	for k := range rs.len() {
		x := v.Bytes(rs.at(k))
		dst.Data = append(dst.Data, x...)
		if len(x) < n*utf8.UTFMax {
			for have := utf8.RuneCount(x); have < n; have++ {
				dst.Data = append(dst.Data, ' ')
			}
		}
		dst.EndRow()
	}
}

// statBytes returns the bounds in footer form, each nil-free even when empty.
func (l *leaf) statBytes(b *bounds) (lo, hi []byte) {
	dlo, dhi := b.datums()
	return l.statValue(dlo), l.statValue(dhi)
}

func (l *leaf) statValue(d types.Datum) []byte {
	le := binary.LittleEndian
	switch l.phys {
	case format.Boolean:
		return []byte{byte(d.I)}
	case format.Int32:
		return le.AppendUint32(nil, uint32(d.I))
	case format.Int64:
		if l.t.IsTimestamp() && l.t.Precision <= 3 {
			d.I = types.FloorDiv(d.I, 1000)
		}
		return le.AppendUint64(nil, uint64(d.I))
	case format.Float:
		return le.AppendUint32(nil, math.Float32bits(float32(d.F)))
	case format.Double:
		return le.AppendUint64(nil, math.Float64bits(d.F))
	case format.FixedLenByteArray:
		return d.D.Bytes(nil, l.width)
	}
	return append([]byte{}, d.B...)
}

// hasOldStats reports whether the deprecated signed min and max are written too,
// as parquet-mr does: not for text, binary and decimals.
func (l *leaf) hasOldStats() bool {
	return l.phys != format.ByteArray && l.t.Kind != types.Decimal
}
