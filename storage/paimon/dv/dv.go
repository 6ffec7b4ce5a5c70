// Package dv reads and writes deletion vectors: for one data file the set of
// row positions that are deleted, and the index files that hold them.
//
// An index file is one byte 0x01 followed by vectors back to back:
//
//	32-bit vector                         64-bit vector
//	size    int32 BE   4 + n              size    int32 BE   4 + n
//	magic   5e 43 f2 d0                   magic   d1 d3 39 64
//	bitmap  n bytes: portable roaring     bitmap  n bytes: int64 LE count, then for each
//	                                              int32 LE high key, portable roaring
//	crc32   int32 BE of magic + bitmap    crc32   int32 BE of magic + bitmap
//
// There is no footer: the index manifest names each vector's data file, offset
// (of the size field) and length, which is the size field for 32-bit vectors and
// the whole blob for 64-bit ones. Sources: Paimon DeletionFileWriter,
// BitmapDeletionVector, Bitmap64DeletionVector, DeletionVector.read.
//
// In memory every vector is a *roaring.Bitmap of uint32 positions; a vector with
// positions from 2^32 on is refused.
package dv

import (
	"errors"
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

// Version is the variant of a vector.
type Version uint8

const (
	// Bits32 is the default, the only one that all engines read.
	Bits32 Version = 1
	// Bits64 is written when deletion-vectors.bitmap64 is true.
	Bits64 Version = 2
)

// Errors of this package.
var (
	// ErrCorrupt is wrapped by every error about bytes that are no vector, or not
	// the one that the index manifest describes.
	ErrCorrupt = errors.New("corrupt deletion vector")
	// ErrTooLarge: a position, a vector or a file beyond what the format (or, for
	// positions from 2^32 on, this package) can hold.
	ErrTooLarge = errors.New("deletion vector too large")
)

const (
	fileVersion = 1
	magic32     = 0x5e43f2d0
	magic64     = 0xd1d33964 // as the four bytes read in big-endian order
	// frame is what surrounds magic and bitmap: size and checksum.
	frame = 8
	// maxPosition32 is the largest position Java puts into a 32-bit vector.
	maxPosition32 = math.MaxInt32
)

// Range says where a vector lies in its index file, in the terms of the index
// manifest (f1, f2, _CARDINALITY).
type Range struct {
	Offset int32
	Length int32
	// Cardinality is the number of positions, negative if it is not recorded.
	Cardinality int64
}

// Vector is a vector that was read. The caller owns the bitmap.
type Vector struct {
	Version   Version
	Positions *roaring.Bitmap
}

// CheckRows returns ErrCorrupt if a vector has a position that a data file of
// the given row count has not.
func CheckRows(m *roaring.Bitmap, rows int64) error {
	if !m.IsEmpty() && int64(m.Maximum()) >= rows {
		return fmt.Errorf("%w: position %d in a data file of %d rows", ErrCorrupt, m.Maximum(), rows)
	}
	return nil
}
