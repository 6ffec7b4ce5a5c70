package binrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"

	"applier/storage/types"
)

// BucketFunction computes the bucket of a row (option bucket-function.type).
type BucketFunction uint8

// The functions of Paimon.
const (
	// BucketDefault hashes the whole key row with Murmur3.
	BucketDefault BucketFunction = iota
	// BucketMod takes the floor modulus of one INT or BIGINT key; NULL reads as 0.
	BucketMod
	// BucketHive is Hive's own hash.
	BucketHive
)

// ErrBucketFunction: the function's name is unknown here, or the key's types
// are none it takes. Rows must not be written to a guessed bucket: engines rely
// on the placement and would not find them.
var ErrBucketFunction = errors.New("bucket function")

// ParseBucketFunction reads the value of the option, "" being the default.
func ParseBucketFunction(s string) (BucketFunction, error) {
	switch s {
	case "", "default":
		return BucketDefault, nil
	case "mod":
		return BucketMod, nil
	case "hive":
		return BucketHive, nil
	}
	return 0, fmt.Errorf("%w %q is not known here (known: default, mod, hive)", ErrBucketFunction, s)
}

// Bucket returns the bucket, 0 to n-1, of a row with the given bucket key: the
// values of the bucket-key columns in the order of that option, column defaults
// applied. n is at least 1. Sources: Paimon DefaultBucketFunction,
// ModBucketFunction, HiveBucketFunction, HiveHasher.
func (f BucketFunction) Bucket(ts []types.Type, key []types.Datum, n int) (int, error) {
	if n < 1 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%w: %d buckets", ErrBucketFunction, n)
	}
	switch f {
	case BucketMod:
		return modBucket(ts, key, n)
	case BucketHive:
		return hiveBucket(ts, key, n)
	}
	row, err := Encode(ts, key)
	if err != nil {
		return 0, fmt.Errorf("bucket key: %w", err)
	}
	// Java takes the truncated remainder and its absolute value, no floor modulus.
	r := Hash(row) % int32(n)
	if r < 0 {
		r = -r
	}
	return int(r), nil
}

// Hash is Paimon's hash of a prefixed row, the prefix left out: Murmur3 with
// seed 42 over its 4-byte words (source: MurmurHashUtils.hashUnsafeBytesByWords).
func Hash(b []byte) int32 {
	h := uint32(42)
	b = b[min(prefixLen, len(b)):]
	n := uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * 0xcc9e2d51
		k = bits.RotateLeft32(k, 15) * 0x1b873593
		h = bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
	}
	h ^= n
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return int32(h ^ h>>16)
}

func modBucket(ts []types.Type, key []types.Datum, n int) (int, error) {
	if len(ts) != 1 || len(key) != 1 || ts[0].Kind != types.Int && ts[0].Kind != types.BigInt {
		return 0, fmt.Errorf("%w mod: the bucket key must be one INT or BIGINT column", ErrBucketFunction)
	}
	v := key[0].I
	if key[0].Null {
		v = 0
	}
	return int(v - types.FloorDiv(v, int64(n))*int64(n)), nil
}

func hiveBucket(ts []types.Type, key []types.Datum, n int) (int, error) {
	if len(ts) != len(key) {
		return 0, fmt.Errorf("%w hive: %d values for %d key columns", ErrBucketFunction, len(key), len(ts))
	}
	h := int32(0)
	for i, t := range ts {
		v, err := hiveHash(t, key[i])
		if err != nil {
			return 0, err
		}
		h = 31*h + v
	}
	return int(h&math.MaxInt32) % n, nil
}

func hiveHash(t types.Type, d types.Datum) (int32, error) {
	if d.Null {
		return 0, nil
	}
	switch t.Kind {
	case types.Boolean, types.TinyInt, types.SmallInt, types.Int, types.Date, types.Time:
		return int32(d.I), nil
	case types.BigInt:
		return hiveLong(uint64(d.I)), nil
	case types.Float:
		switch f := float32(d.F); {
		case f == 0:
			return 0, nil
		case f != f:
			return 0x7fc00000, nil // Java's one NaN
		default:
			return int32(math.Float32bits(f)), nil
		}
	case types.Double:
		switch {
		case d.F == 0:
			return 0, nil
		case math.IsNaN(d.F):
			return hiveLong(0x7ff8000000000000), nil
		}
		return hiveLong(math.Float64bits(d.F)), nil
	case types.Char, types.VarChar, types.Binary, types.VarBinary:
		h := int32(0)
		for _, c := range d.B {
			h = 31*h + int32(int8(c))
		}
		return h, nil
	case types.Decimal:
		return hiveDecimal(t, d), nil
	}
	return 0, fmt.Errorf("%w hive: no bucket key of type %s", ErrBucketFunction, t)
}

func hiveLong(v uint64) int32 { return int32(v ^ v>>32) }

// hiveDecimal is java.math.BigDecimal.hashCode of the value without trailing
// zeros in its fraction.
func hiveDecimal(t types.Type, d types.Datum) int32 {
	v, scale := d.D, t.Scale
	if !wideDecimal(t) {
		v = types.Int128From(d.I)
	}
	if v.Sign() == 0 {
		return 0
	}
	u, ten, r := v.Big(), big.NewInt(10), new(big.Int)
	for scale > 0 {
		q, r := new(big.Int).QuoRem(u, ten, r)
		if r.Sign() != 0 {
			break
		}
		u = q
		scale--
	}
	// java.math.BigInteger.hashCode: a polynomial over the magnitude's words.
	h := int32(0)
	mag := new(big.Int).Abs(u).FillBytes(make([]byte, 16))
	for i := 0; i < len(mag); i += 4 {
		h = 31*h + int32(binary.BigEndian.Uint32(mag[i:]))
	}
	if u.Sign() < 0 {
		h = -h
	}
	return 31*h + int32(scale)
}
