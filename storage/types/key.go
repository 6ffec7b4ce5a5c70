package types

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

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
	switch {
	case e.class == Key64 && len(cols) == 1:
		e.append64(k, cols[0], from, to)
	case e.class == KeyBytes:
		k.appendBytes(cols, from, to)
	default:
		e.appendFixed(k, cols, from, to)
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

// appendFixed packs short columns side by side into 8 or 16 bytes, column by column.
func (e *KeyEncoder) appendFixed(k *Keys, cols []*Vector, from, to int) {
	p := packer{lo: extend(&k.Hash, to-from)}
	if e.class == Key128 {
		p.hi, p.lo = p.lo, extend(&k.Low, to-from)
	}
	for _, c := range cols {
		p.column(c, from, to)
	}
	if e.class == Key64 {
		for i, x := range p.lo {
			p.lo[i] = Mix64(x)
		}
		return
	}
	for i, lo := range p.lo {
		// Low and a keyed bijection of the other half: (Hash, Low) determines both.
		p.hi[i] = Mix64(p.hi[i] ^ bits.RotateLeft64(Mix64(lo), 32))
	}
}

// extend appends n zeros to s and returns them.
func extend(s *[]uint64, n int) []uint64 {
	from := len(*s)
	*s = slices.Grow(*s, n)[:from+n]
	added := (*s)[from:]
	clear(added)
	return added
}

// packer holds a number of 64 (hi is nil) or 128 bits for each row, to which each
// column adds its bits on the right.
type packer struct {
	hi, lo []uint64
}

func (p packer) column(c *Vector, from, to int) {
	switch c.Layout {
	case LayoutBool:
		pack(p, c.U8[from:to], 8)
	case LayoutInt32:
		pack(p, c.I32[from:to], 8*keyWidth(c.Type))
	case LayoutInt64:
		pack(p, c.I64[from:to], 64)
	case LayoutFloat:
		for i, x := range c.F32[from:to] {
			p.push(i, uint64(floatBits(x)), 32)
		}
	case LayoutDouble:
		for i, x := range c.F64[from:to] {
			p.push(i, doubleBits(x), 64)
		}
	case LayoutInt128:
		for i, x := range c.I128[from:to] {
			p.push(i, uint64(x.Hi), 64)
			p.push(i, x.Lo, 64)
		}
	case LayoutNano:
		pack(p, c.I64[from:to], 64)
		pack(p, c.I32[from:to], 16)
	}
}

func pack[T uint8 | int32 | int64](p packer, src []T, width int) {
	mask := ^uint64(0) >> (64 - width)
	for i, x := range src {
		p.push(i, uint64(x)&mask, width)
	}
}

// push adds width bits to row i; those beyond the left end are zeros.
func (p packer) push(i int, x uint64, width int) {
	if p.hi != nil {
		p.hi[i] = p.hi[i]<<width | p.lo[i]>>(64-width)
	}
	p.lo[i] = p.lo[i]<<width | x
}

// appendBytes writes the canonical bytes of long keys where they stay.
func (k *Keys) appendBytes(cols []*Vector, from, to int) {
	if len(k.Off) == 0 {
		k.Off = append(k.Off, 0)
	}
	data := k.Data
	for i := from; i < to; i++ {
		start := len(data)
		for _, c := range cols {
			data = appendCanonical(data, c, i)
		}
		k.Hash = append(k.Hash, Mix64(xxhash.Sum64(data[start:])))
		k.Off = append(k.Off, offset(len(data)))
	}
	k.Data = data
}

// appendCanonical writes the bytes of one cell. Lengths come first, so that two
// different keys never have the same bytes.
func appendCanonical(b []byte, c *Vector, i int) []byte {
	be := binary.BigEndian
	switch c.Layout {
	case LayoutBytes:
		x := c.Data[c.Off[i]:c.Off[i+1]]
		if c.Type.Kind == Char {
			x = TrimBlanks(x)
		}
		b = be.AppendUint32(b, uint32(len(x)))
		return append(b, x...)
	case LayoutBool:
		return append(b, c.U8[i])
	case LayoutInt32:
		return be.AppendUint32(b, uint32(c.I32[i]))
	case LayoutInt64:
		return be.AppendUint64(b, uint64(c.I64[i]))
	case LayoutFloat:
		return be.AppendUint32(b, floatBits(c.F32[i]))
	case LayoutDouble:
		return be.AppendUint64(b, doubleBits(c.F64[i]))
	case LayoutInt128:
		return be.AppendUint64(be.AppendUint64(b, uint64(c.I128[i].Hi)), c.I128[i].Lo)
	case LayoutNano:
		return be.AppendUint16(be.AppendUint64(b, uint64(c.I64[i])), uint16(c.I32[i]))
	}
	return b
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
