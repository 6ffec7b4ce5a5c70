package types

import (
	"encoding/binary"
	"math"
)

// AppendOrdered appends cell i of a vector to b in a form whose bytes compare as
// CompareCells compares the cells: NULL first, then by value, equal cells with
// equal bytes. Several columns one after the other compare like the tuple. The
// bytes can be kept, but not read back. Nested types have no such form: nothing
// is appended.
func AppendOrdered(b []byte, v *Vector, i int) []byte {
	if v.IsNull(i) {
		return append(b, 0)
	}
	b = append(b, 1)
	be := binary.BigEndian
	switch v.Layout {
	case LayoutBool:
		return append(b, v.U8[i])
	case LayoutInt32:
		return be.AppendUint32(b, flip32(v.I32[i]))
	case LayoutInt64:
		return be.AppendUint64(b, flip64(v.I64[i]))
	case LayoutFloat:
		return be.AppendUint64(b, orderedBits(float64(v.F32[i])))
	case LayoutDouble:
		return be.AppendUint64(b, orderedBits(v.F64[i]))
	case LayoutInt128:
		return be.AppendUint64(be.AppendUint64(b, flip64(v.I128[i].Hi)), v.I128[i].Lo)
	case LayoutNano:
		return be.AppendUint32(be.AppendUint64(b, flip64(v.I64[i])), flip32(v.I32[i]))
	case LayoutBytes:
		if v.Type.Kind == Char {
			return appendFilled(b, v.Bytes(i))
		}
		return appendTerminated(b, v.Bytes(i))
	}
	return b[:len(b)-1]
}

// Marks of appendFilled: what follows is below the blanks that a shorter text would
// have there, nothing follows, or it is above them.
const (
	belowBlanks = 1 + iota
	onlyBlanks
	aboveBlanks
)

// appendFilled appends a CHAR value so that it is compared as if filled up with
// blanks without end: every other character with the number of blanks before it.
// Above the blanks, it makes the text larger the sooner it comes; below them, smaller.
func appendFilled(b, x []byte) []byte {
	blanks := uint32(0)
	for _, c := range x {
		switch {
		case c == ' ':
			blanks++
			continue
		case c > ' ':
			b = binary.BigEndian.AppendUint32(append(b, aboveBlanks), ^blanks)
		default:
			b = binary.BigEndian.AppendUint32(append(b, belowBlanks), blanks)
		}
		b, blanks = append(b, c), 0
	}
	return append(b, onlyBlanks)
}

func flip32(x int32) uint32 { return uint32(x) ^ 1<<31 }
func flip64(x int64) uint64 { return uint64(x) ^ 1<<63 }

// orderedBits orders doubles as numbers, both zeros as one, NaN above all.
func orderedBits(x float64) uint64 {
	bits := doubleBits(x)
	if bits&(1<<63) != 0 {
		return ^bits
	}
	return bits | 1<<63
}

// appendTerminated writes bytes so that a shorter text comes before those it
// begins: a 0 is followed by 0xff, the end is two zeros.
func appendTerminated(b, x []byte) []byte {
	for _, c := range x {
		b = append(b, c)
		if c == 0 {
			b = append(b, math.MaxUint8)
		}
	}
	return append(b, 0, 0)
}
