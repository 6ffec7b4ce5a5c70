package types

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// KeyClass says how merge keys are held.
type KeyClass uint8

const (
	// Key64 is a key of at most 8 bytes: Hash is a bijective image of it, so
	// equal hashes are equal keys.
	Key64 KeyClass = iota + 1
	// Key128 is a key of at most 16 bytes: (Hash, Low) is a bijective image.
	Key128
	// KeyBytes is a longer or variable key: Hash is a 64-bit hash, equality
	// needs the canonical bytes.
	KeyBytes
)

// Keys are the canonical merge keys of some rows. Two rows have equal keys in
// SQL's sense (Spark's: numbers by value, NaN equal to NaN, -0.0 equal to 0.0,
// CHAR without trailing blanks, everything else byte by byte) exactly if Equal
// says so. Rows with a NULL key column are in Null and equal nothing.
type Keys struct {
	Class KeyClass
	Hash  []uint64
	Low   []uint64 // Key128 only
	Off   []uint32 // KeyBytes only, one more than rows
	Data  []byte   // KeyBytes only
	Null  Bitmap
}

// Len returns the number of keys.
func (k *Keys) Len() int { return len(k.Hash) }

// Reset empties k and keeps its memory.
func (k *Keys) Reset() { k.Truncate(0) }

// Truncate keeps the first n keys.
func (k *Keys) Truncate(n int) {
	k.Hash = k.Hash[:n]
	k.Null.Truncate(n)
	if k.Class == Key128 {
		k.Low = k.Low[:n]
	}
	if k.Class == KeyBytes && len(k.Off) > 0 {
		k.Off = k.Off[:n+1]
		k.Data = k.Data[:k.Off[n]]
	}
}

// Bytes returns the canonical bytes of key i (KeyBytes); they alias Data.
func (k *Keys) Bytes(i int) []byte { return k.Data[k.Off[i]:k.Off[i+1]:k.Off[i+1]] }

// Equal reports whether key i of k equals key j of o, both of one encoder class.
// NULL keys must be sorted out before.
func (k *Keys) Equal(i int, o *Keys, j int) bool {
	if k.Hash[i] != o.Hash[j] {
		return false
	}
	switch k.Class {
	case Key64:
		return true
	case Key128:
		return k.Low[i] == o.Low[j]
	}
	return bytes.Equal(k.Bytes(i), o.Bytes(j))
}

// MemBytes returns the memory the keys take.
func (k *Keys) MemBytes() int64 {
	return int64(8*cap(k.Hash) + 8*cap(k.Low) + 4*cap(k.Off) + cap(k.Data) + 8*cap(k.Null))
}

// KeyEncoder turns key columns into Keys. It is immutable and safe for
// concurrent use; the Keys it appends to are not.
type KeyEncoder struct {
	types []Type
	class KeyClass
}

// NewKeyEncoder returns the encoder for key columns of these types, in key
// order. Nested types, VARIANT and BLOB are refused: SQL cannot compare them
// as a merge key.
func NewKeyEncoder(key []Type) (*KeyEncoder, error) {
	if len(key) == 0 {
		return nil, fmt.Errorf("merge key: no columns")
	}
	e := &KeyEncoder{types: key}
	width := 0
	for _, t := range key {
		w := keyWidth(t)
		if w == 0 {
			return nil, fmt.Errorf("merge key: a column of type %s cannot be compared", t)
		}
		width += w
	}
	switch {
	case width <= 8:
		e.class = Key64
	case width <= 16:
		e.class = Key128
	default:
		e.class = KeyBytes
	}
	return e, nil
}

// keyWidth is the fixed canonical width of a type, 1000 for variable ones, 0 for none.
func keyWidth(t Type) int {
	switch t.Kind {
	case Boolean, TinyInt:
		return 1
	case SmallInt:
		return 2
	case Int, Date, Time, Float:
		return 4
	}
	switch LayoutOf(t) {
	case LayoutInt64, LayoutDouble:
		return 8
	case LayoutNano:
		return 10
	case LayoutInt128:
		return 16
	case LayoutBytes:
		return 1000
	}
	return 0
}

// Class returns how this encoder's keys are held.
func (e *KeyEncoder) Class() KeyClass { return e.class }

// Append appends the keys of rows [from, to) of the key columns.
func (e *KeyEncoder) Append(k *Keys, cols []*Vector, from, to int) {
	k.Class = e.class
	base := len(k.Hash)
	if e.class == Key64 && len(cols) == 1 {
		e.append64(k, cols[0], from, to)
	} else {
		var w keyWriter
		for i := from; i < to; i++ {
			e.appendRow(k, &w, cols, i)
		}
	}
	for _, c := range cols {
		if !c.Nulls.Any() {
			continue
		}
		for i := from; i < to; i++ {
			if c.IsNull(i) {
				k.Null.Set(base + i - from)
			}
		}
	}
}

// append64 is the hot path: one short column.
func (e *KeyEncoder) append64(k *Keys, c *Vector, from, to int) {
	switch c.Layout {
	case LayoutBool:
		for _, x := range c.U8[from:to] {
			k.Hash = append(k.Hash, Mix64(uint64(x)))
		}
	case LayoutInt32:
		for _, x := range c.I32[from:to] {
			k.Hash = append(k.Hash, Mix64(uint64(int64(x))))
		}
	case LayoutInt64:
		for _, x := range c.I64[from:to] {
			k.Hash = append(k.Hash, Mix64(uint64(x)))
		}
	case LayoutFloat:
		for _, x := range c.F32[from:to] {
			k.Hash = append(k.Hash, Mix64(uint64(floatBits(x))))
		}
	case LayoutDouble:
		for _, x := range c.F64[from:to] {
			k.Hash = append(k.Hash, Mix64(doubleBits(x)))
		}
	}
}

// floatBits is the canonical form of a FLOAT: one NaN, one zero.
func floatBits(x float32) uint32 {
	if x == 0 {
		return 0
	}
	if x != x {
		return 0x7fc00000
	}
	return math.Float32bits(x)
}

// doubleBits is the canonical form of a DOUBLE: one NaN, one zero.
func doubleBits(x float64) uint64 {
	if x == 0 {
		return 0
	}
	if x != x {
		return 0x7ff8000000000000
	}
	return math.Float64bits(x)
}

// keyWriter collects the canonical bytes of one row's key.
type keyWriter struct {
	b []byte
}

func (e *KeyEncoder) appendRow(k *Keys, w *keyWriter, cols []*Vector, i int) {
	w.b = w.b[:0]
	for _, c := range cols {
		w.cell(c, i)
	}
	switch e.class {
	case Key64:
		var buf [8]byte
		copy(buf[:], w.b)
		k.Hash = append(k.Hash, Mix64(binary.BigEndian.Uint64(buf[:])))
	case Key128:
		var buf [16]byte
		copy(buf[:], w.b)
		hi, lo := binary.BigEndian.Uint64(buf[:8]), binary.BigEndian.Uint64(buf[8:])
		// Low and a keyed bijection of the other half: (Hash, Low) determines both.
		k.Hash = append(k.Hash, Mix64(hi^bits.RotateLeft64(Mix64(lo), 32)))
		k.Low = append(k.Low, lo)
	case KeyBytes:
		if len(k.Off) == 0 {
			k.Off = append(k.Off, 0)
		}
		k.Hash = append(k.Hash, Mix64(xxhash.Sum64(w.b)))
		k.Data = append(k.Data, w.b...)
		k.Off = append(k.Off, uint32(len(k.Data)))
	}
}

func (w *keyWriter) cell(c *Vector, i int) {
	be := binary.BigEndian
	switch c.Layout {
	case LayoutBool:
		w.b = append(w.b, c.U8[i])
	case LayoutInt32:
		switch c.Type.Kind {
		case TinyInt:
			w.b = append(w.b, byte(c.I32[i]))
		case SmallInt:
			w.b = be.AppendUint16(w.b, uint16(c.I32[i]))
		default:
			w.b = be.AppendUint32(w.b, uint32(c.I32[i]))
		}
	case LayoutInt64:
		w.b = be.AppendUint64(w.b, uint64(c.I64[i]))
	case LayoutFloat:
		w.b = be.AppendUint32(w.b, floatBits(c.F32[i]))
	case LayoutDouble:
		w.b = be.AppendUint64(w.b, doubleBits(c.F64[i]))
	case LayoutInt128:
		w.b = be.AppendUint64(w.b, uint64(c.I128[i].Hi))
		w.b = be.AppendUint64(w.b, c.I128[i].Lo)
	case LayoutNano:
		w.b = be.AppendUint64(w.b, uint64(c.I64[i]))
		w.b = be.AppendUint16(w.b, uint16(c.I32[i]))
	case LayoutBytes:
		b := c.Bytes(i)
		if c.Type.Kind == Char {
			b = TrimBlanks(b)
		}
		w.b = be.AppendUint32(w.b, uint32(len(b)))
		w.b = append(w.b, b...)
	}
}

// Mix64 is murmur3's 64-bit finaliser, a bijection.
func Mix64(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}
