// Package fileindex writes and reads Paimon's file indexes: small structures beside a
// data file that tell readers which values it cannot hold (paimon-format.md §8.6). Of
// their types it knows the bloom filter.
package fileindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

	"applier/storage/types"
)

// BloomType is the name of the bloom filter among the types of file indexes.
const BloomType = "bloom-filter"

// Java's defaults of a bloom filter's options.
const (
	DefaultItems = 1_000_000
	DefaultFPP   = 0.1
)

// maxBits bounds a filter: 64 MiB a column and data file.
const maxBits = 1 << 29

// Errors of this package.
var (
	// ErrType: values of the type have no hash.
	ErrType = errors.New("type has no bloom filter")
	// ErrSize: a filter that nobody can want.
	ErrSize = errors.New("size of bloom filter")
	// ErrCorrupt: bytes that are no file index.
	ErrCorrupt = errors.New("file index is damaged")
)

// Bloom is a bloom filter over the values of one column of one data file (source:
// BloomFilterFileIndex, BloomFilter64). It belongs to one goroutine.
type Bloom struct {
	hashes int
	bits   []byte
}

// NewBloom returns an empty filter for about items values, which takes a value that it
// does not hold for one that it does with the probability fpp.
func NewBloom(items int, fpp float64) (*Bloom, error) {
	n := -float64(items) * math.Log(fpp) / (math.Ln2 * math.Ln2)
	if items <= 0 || !(fpp > 0 && fpp < 1) || n >= maxBits {
		return nil, fmt.Errorf("%w: items=%d, fpp=%v", ErrSize, items, fpp)
	}
	bits := int(n)
	bits += 8 - bits%8
	// Math.round: halves go up.
	hashes := max(1, int(math.Floor(float64(bits)/float64(items)*math.Ln2+0.5)))
	return &Bloom{hashes: hashes, bits: make([]byte, bits/8)}, nil
}

// Reset empties the filter.
func (b *Bloom) Reset() { clear(b.bits) }

// Add notes the hash of a value.
func (b *Bloom) Add(hash uint64) {
	for i := 1; i <= b.hashes; i++ {
		at := b.place(hash, i)
		b.bits[at>>3] |= 1 << (at & 7)
	}
}

// Has tells whether a value with the hash may have been added.
func (b *Bloom) Has(hash uint64) bool {
	for i := 1; i <= b.hashes; i++ {
		if at := b.place(hash, i); b.bits[at>>3]&(1<<(at&7)) == 0 {
			return false
		}
	}
	return true
}

// place is the bit of the i-th hash, in Java's 32-bit arithmetic.
func (b *Bloom) place(hash uint64, i int) int {
	c := int32(uint32(hash)) + int32(i)*int32(uint32(hash>>32))
	if c < 0 {
		c = ^c
	}
	return int(c) % (len(b.bits) * 8)
}

// append appends the filter as it is stored.
func (b *Bloom) append(dst []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(b.hashes)), b.bits...)
}

// ParseBloom reads a stored filter, whose bytes it keeps.
func ParseBloom(body []byte) (*Bloom, error) {
	if len(body) < 5 {
		return nil, fmt.Errorf("%w: a bloom filter of %d bytes", ErrCorrupt, len(body))
	}
	b := &Bloom{hashes: int(int32(binary.BigEndian.Uint32(body))), bits: body[4:]}
	if b.hashes < 1 || b.hashes > 1<<16 {
		return nil, fmt.Errorf("%w: a bloom filter with %d hashes", ErrCorrupt, b.hashes)
	}
	return b, nil
}

// Hasher returns the function that hashes row i of a vector of type t, which must not
// be NULL there (source: FastHash). The error is ErrType for types that Java has none
// for.
func Hasher(t types.Type) (func(v *types.Vector, i int) uint64, error) {
	switch t.Kind {
	case types.Char, types.VarChar, types.Binary, types.VarBinary:
		return func(v *types.Vector, i int) uint64 { return xxhash.Sum64(v.Data[v.Off[i]:v.Off[i+1]]) }, nil
	case types.TinyInt, types.SmallInt, types.Int, types.Date, types.Time:
		return func(v *types.Vector, i int) uint64 { return mix(int64(v.I32[i])) }, nil
	case types.BigInt:
		return func(v *types.Vector, i int) uint64 { return mix(v.I64[i]) }, nil
	case types.Float:
		return func(v *types.Vector, i int) uint64 { return mix(int64(floatBits(v.F32[i]))) }, nil
	case types.Double:
		return func(v *types.Vector, i int) uint64 { return mix(doubleBits(v.F64[i])) }, nil
	case types.Timestamp, types.TimestampLTZ:
		if t.Precision <= 3 {
			return func(v *types.Vector, i int) uint64 { return mix(types.FloorDiv(v.I64[i], 1000)) }, nil
		}
		return func(v *types.Vector, i int) uint64 { return mix(v.I64[i]) }, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrType, t)
}

// floatBits is Float.floatToIntBits: there is one NaN.
func floatBits(f float32) int32 {
	if f != f {
		return 0x7fc00000
	}
	return int32(math.Float32bits(f))
}

// doubleBits is Double.doubleToLongBits.
func doubleBits(f float64) int64 {
	if f != f {
		return 0x7ff8000000000000
	}
	return int64(math.Float64bits(f))
}

// mix is Thomas Wang's 64-bit hash.
func mix(n int64) uint64 {
	k := uint64(n)
	k = ^k + k<<21
	k ^= uint64(int64(k) >> 24)
	k = k + k<<3 + k<<8
	k ^= uint64(int64(k) >> 14)
	k = k + k<<2 + k<<4
	k ^= uint64(int64(k) >> 28)
	return k + k<<31
}
