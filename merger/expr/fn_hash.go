package expr

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"applier/storage/types"
)

// hashSeed is the seed of Spark's hash and xxhash64.
const hashSeed = 42

func hashFunctions() []function {
	return []function{
		{"hash", 1, unbounded, hashCall(tInt, func(h int64, t Type, d types.Datum) int64 {
			return int64(int32(hashValue(t, d, uint64(uint32(h)), murmur)))
		})},
		{"xxhash64", 1, unbounded, hashCall(tLong, func(h int64, t Type, d types.Datum) int64 {
			return int64(hashValue(t, d, uint64(h), xx))
		})},
	}
}

// hashCall folds a hash over the arguments; NULL leaves it as it is.
func hashCall(t Type, step func(h int64, t Type, d types.Datum) int64) func(*compiler, *call) *node {
	return func(c *compiler, k *call) *node {
		for _, a := range k.args {
			if a.typ.hasMap() {
				return c.fail(k.pos, "DATATYPE_MISMATCH.HASH_MAP_TYPE", "%s takes no maps", k.name)
			}
		}
		return lenient(t, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
			h := int64(hashSeed)
			for i, d := range a {
				h = step(h, k.args[i].typ, d)
			}
			return types.IntDatum(h), nil
		})
	}
}

// hasher hashes the three shapes that values take.
type hasher struct {
	int32 func(v uint32, seed uint64) uint64
	int64 func(v, seed uint64) uint64
	bytes func(b []byte, seed uint64) uint64
}

var (
	murmur = hasher{murmurInt, murmurLong, murmurBytes}
	xx     = hasher{xxInt, xxLong, xxBytes}
)

func hashValue(t Type, d types.Datum, seed uint64, h hasher) uint64 {
	if d.Null {
		return seed
	}
	switch t.Kind {
	case Boolean, TinyInt, SmallInt, Int, Date, YearMonth:
		return h.int32(uint32(d.I), seed)
	case Float:
		f := float32(d.F)
		if f == 0 {
			f = 0
		}
		return h.int32(math.Float32bits(f), seed)
	case Double:
		f := d.F
		if f == 0 {
			f = 0
		}
		if math.IsNaN(f) {
			return h.int64(0x7ff8000000000000, seed)
		}
		return h.int64(math.Float64bits(f), seed)
	case Decimal:
		if t.Precision <= 18 {
			return h.int64(uint64(d.I), seed)
		}
		return h.bytes(d.D.Bytes(nil, d.D.MinBytes()), seed)
	case String, Binary:
		return h.bytes(d.B, seed)
	case Array, Struct, Map:
		for i, x := range d.L {
			seed = hashValue(t.item(i), x, seed, h)
		}
		return seed
	case Calendar:
		return seed
	}
	return h.int64(uint64(d.I), seed)
}

func murmurMix(h, k uint32) uint32 {
	k *= 0xcc9e2d51
	k = bits.RotateLeft32(k, 15) * 0x1b873593
	return bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
}

func murmurEnd(h uint32, n int) uint64 {
	h ^= uint32(n)
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return uint64(h ^ h>>16)
}

func murmurInt(v uint32, seed uint64) uint64 { return murmurEnd(murmurMix(uint32(seed), v), 4) }

func murmurLong(v, seed uint64) uint64 {
	return murmurEnd(murmurMix(murmurMix(uint32(seed), uint32(v)), uint32(v>>32)), 8)
}

// murmurBytes mixes the bytes behind the last whole word one by one, signed: that
// is Spark's variant.
func murmurBytes(b []byte, seed uint64) uint64 {
	h, n := uint32(seed), len(b)
	for ; len(b) >= 4; b = b[4:] {
		h = murmurMix(h, binary.LittleEndian.Uint32(b))
	}
	for _, x := range b {
		h = murmurMix(h, uint32(int32(int8(x))))
	}
	return murmurEnd(h, n)
}

// The primes of xxHash64.
const (
	xxPrime1 uint64 = 0x9E3779B185EBCA87
	xxPrime2 uint64 = 0xC2B2AE3D27D4EB4F
	xxPrime3 uint64 = 0x165667B19E3779F9
	xxPrime4 uint64 = 0x85EBCA77C2B2AE63
	xxPrime5 uint64 = 0x27D4EB2F165667C5
)

func xxEnd(h uint64) uint64 {
	h = (h ^ h>>33) * xxPrime2
	h = (h ^ h>>29) * xxPrime3
	return h ^ h>>32
}

func xxInt(v uint32, seed uint64) uint64 {
	h := (seed + xxPrime5 + 4) ^ uint64(v)*xxPrime1
	return xxEnd(bits.RotateLeft64(h, 23)*xxPrime2 + xxPrime3)
}

func xxLong(v, seed uint64) uint64 {
	h := (seed + xxPrime5 + 8) ^ bits.RotateLeft64(v*xxPrime2, 31)*xxPrime1
	return xxEnd(bits.RotateLeft64(h, 27)*xxPrime1 + xxPrime4)
}

func xxBytes(b []byte, seed uint64) uint64 {
	d := xxhash.NewWithSeed(seed)
	_, _ = d.Write(b) // never fails
	return d.Sum64()
}
