package dv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/RoaringBitmap/roaring/v2"
)

// Read reads one vector of an index file of size bytes, with one ReadAt of the
// vector's own bytes. Everything is checked: bounds, the recorded length, magic,
// checksum, the bitmap's form and the recorded cardinality.
func Read(r io.ReaderAt, size int64, at Range) (Vector, error) {
	off, n := int64(at.Offset), int64(at.Length)
	if off < 1 || n < 4 || off+n > size {
		return Vector{}, fmt.Errorf("%w: %d bytes at %d of an index file of %d", ErrCorrupt, n, off, size)
	}
	// The recorded length leaves out the frame in 32-bit vectors and has it in
	// 64-bit ones; which of them it is, the bytes will tell.
	b := make([]byte, min(n+frame, size-off))
	if got, err := r.ReadAt(b, off); got < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Vector{}, fmt.Errorf("reading a deletion vector at %d: %w", off, err)
	}
	return decode(b, at)
}

// ReadAll reads the vectors of a whole index file.
func ReadAll(file []byte, ranges []Range) ([]Vector, error) {
	if len(file) == 0 || file[0] != fileVersion {
		return nil, fmt.Errorf("%w: not an index file of version %d", ErrCorrupt, fileVersion)
	}
	vs := make([]Vector, len(ranges))
	r := bytes.NewReader(file)
	for i, at := range ranges {
		var err error
		if vs[i], err = Read(r, int64(len(file)), at); err != nil {
			return nil, err
		}
	}
	return vs, nil
}

// decode reads a vector from b, which starts with its size field and may be
// longer than the vector.
func decode(b []byte, at Range) (v Vector, err error) {
	if len(b) < frame {
		return Vector{}, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(b))
	}
	size := int64(binary.BigEndian.Uint32(b))
	recorded := int64(at.Length)
	switch binary.BigEndian.Uint32(b[4:]) {
	case magic32:
		v.Version = Bits32
	case magic64:
		v.Version = Bits64
		recorded -= frame
	default:
		return Vector{}, fmt.Errorf("%w: magic number %x", ErrCorrupt, b[4:8])
	}
	if size != recorded || size+frame > int64(len(b)) {
		return Vector{}, fmt.Errorf("%w: a size of %d where the index manifest says %d", ErrCorrupt, size, at.Length)
	}
	body, sum := b[4:4+size], binary.BigEndian.Uint32(b[4+size:])
	if got := crc32.ChecksumIEEE(body); got != sum {
		return Vector{}, fmt.Errorf("%w: checksum %08x instead of %08x", ErrCorrupt, got, sum)
	}
	bitmap := body[4:]
	if v.Version == Bits64 {
		if bitmap, err = lowBitmap(bitmap); err != nil {
			return Vector{}, err
		}
	}
	if v.Positions, err = readBitmap(bitmap); err != nil {
		return Vector{}, err
	}
	if n := int64(v.Positions.GetCardinality()); at.Cardinality >= 0 && n != at.Cardinality {
		return Vector{}, fmt.Errorf("%w: %d positions where the index manifest says %d", ErrCorrupt, n, at.Cardinality)
	}
	return v, nil
}

// lowBitmap returns the only bitmap of a 64-bit vector, that of high key 0, or
// nothing for an empty vector.
func lowBitmap(b []byte) ([]byte, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("%w: no count of bitmaps", ErrCorrupt)
	}
	n := binary.LittleEndian.Uint64(b)
	b = b[8:]
	switch {
	case n == 0:
		return b, nil
	case n > 1:
		return nil, fmt.Errorf("%w: positions from 2^32 on", ErrTooLarge)
	case len(b) < 4:
		return nil, fmt.Errorf("%w: no high key", ErrCorrupt)
	case binary.LittleEndian.Uint32(b) != 0:
		return nil, fmt.Errorf("%w: positions from 2^32 on", ErrTooLarge)
	case len(b) == 4:
		return nil, fmt.Errorf("%w: no bitmap", ErrCorrupt)
	}
	return b[4:], nil
}

// readBitmap reads a portable roaring bitmap that fills b; nothing is the empty one.
func readBitmap(b []byte) (*roaring.Bitmap, error) {
	m := roaring.New()
	if len(b) == 0 {
		return m, nil
	}
	if err := checkBitmap(b); err != nil {
		return nil, err
	}
	if _, err := m.ReadFrom(bytes.NewReader(b)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return m, nil
}
