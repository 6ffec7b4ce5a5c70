// Package binrow encodes and decodes Paimon's BinaryRow: the form in which
// manifests hold partitions, keys and column bounds, and over which buckets are
// computed. A row in a file has a 4-byte big-endian arity in front; everything
// behind it is little-endian, with offsets relative to the row's start.
//
// Equality of partitions is equality of these bytes, in Paimon and here, so the
// encoder writes what Java writes to the last byte (sources: Paimon BinaryRow,
// AbstractBinaryWriter, BinaryRowWriter, BinaryArrayWriter, SerializationUtils).
//
// Values follow the conventions of [types.Datum]: timestamps are microseconds
// and nanoseconds inside the microsecond, times milliseconds of day, decimals
// unscaled in I up to precision 18 and in D above.
package binrow

import (
	"encoding/binary"
	"errors"
	"fmt"

	"applier/storage/types"
)

// ErrCorrupt is wrapped by every error of reading: the bytes are no BinaryRow of
// the given types.
var ErrCorrupt = errors.New("corrupt BinaryRow")

// ErrValue is wrapped by every error of writing: the value is none of its type,
// or the type has no BinaryRow form.
var ErrValue = errors.New("value does not fit a BinaryRow")

// prefixLen is the length of the arity in front of a row.
const prefixLen = 4

// Empty returns a new copy of the row without fields: the partition of a table
// without partitions and the key of every append table's files, 12 zero bytes.
func Empty() []byte { return make([]byte, prefixLen+8) }

// Arity returns the number of fields of a prefixed row.
func Arity(b []byte) (int, error) {
	if len(b) < prefixLen {
		return 0, fmt.Errorf("%w: %d bytes are too few for the arity", ErrCorrupt, len(b))
	}
	n := binary.BigEndian.Uint32(b)
	// Every field has a slot of 8 bytes, so the length bounds the arity.
	if uint64(len(b)) < prefixLen+uint64(headerLen(int(n)))+8*uint64(n) {
		return 0, fmt.Errorf("%w: %d bytes are too few for %d fields", ErrCorrupt, len(b), n)
	}
	return int(n), nil
}

// headerLen is the length of the row kind and the null bits, in whole words.
func headerLen(arity int) int { return (arity + 63 + 8) / 64 * 8 }

// arrayHeaderLen is the length of an array's element count and its null bits.
func arrayHeaderLen(n int) int { return 4 + (n+31)/32*4 }

// wordEnd rounds n up to a multiple of 8.
func wordEnd(n int) int { return (n + 7) &^ 7 }

// inlineMax is the longest text or binary that is kept in its slot.
const inlineMax = 7

// wideDecimal reports whether t is a DECIMAL that does not fit a slot.
func wideDecimal(t types.Type) bool { return t.Kind == types.Decimal && t.Precision > 18 }

// wideTimestamp reports whether t is a timestamp that does not fit a slot.
func wideTimestamp(t types.Type) bool { return t.IsTimestamp() && t.Precision > 3 }

// elementLen is the width of an array element of type t.
func elementLen(t types.Type) int {
	switch t.Kind {
	case types.Boolean, types.TinyInt:
		return 1
	case types.SmallInt:
		return 2
	case types.Int, types.Date, types.Time, types.Float:
		return 4
	}
	return 8
}

// mapTypes returns key and value type of a MAP or MULTISET.
func mapTypes(t types.Type) (key, value types.Type) {
	if t.Kind == types.Multiset {
		return *t.Elem, types.IntType().NonNull()
	}
	return *t.Key, *t.Elem
}
