package dv

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// Builder builds one index file in memory. The zero Builder is not usable.
type Builder struct {
	version Version
	buf     []byte
	files   []string
	ranges  []Range
	seen    map[string]bool
}

// NewBuilder returns the builder of an index file with vectors of version v.
func NewBuilder(v Version) *Builder {
	b := &Builder{version: v}
	b.Reset()
	return b
}

// Reset starts the next file; slices that Finish returned stay valid.
func (b *Builder) Reset() {
	b.buf, b.files, b.ranges, b.seen = []byte{fileVersion}, nil, nil, map[string]bool{}
}

// Len returns the number of vectors added.
func (b *Builder) Len() int { return len(b.ranges) }

// Size returns the file's bytes so far. Java starts the next file once the size
// exceeds deletion-vector.index-file.target-size, looking after each vector.
func (b *Builder) Size() int64 { return int64(len(b.buf)) }

// Add appends the vector of a data file, run-optimised as Java does; m is not
// changed. A file holds one vector a data file.
func (b *Builder) Add(dataFile string, m *roaring.Bitmap) error {
	if b.seen[dataFile] {
		return fmt.Errorf("adding a deletion vector: %s has one in this index file already", dataFile)
	}
	at := len(b.buf)
	buf, length, err := Append(b.buf, b.version, m)
	if err != nil {
		return fmt.Errorf("adding the deletion vector of %s: %w", dataFile, err)
	}
	if len(buf) > math.MaxInt32 {
		return fmt.Errorf("%w: an index file of %d bytes", ErrTooLarge, len(buf))
	}
	b.buf = buf
	b.seen[dataFile] = true
	b.files = append(b.files, dataFile)
	b.ranges = append(b.ranges, Range{Offset: int32(at), Length: length, Cardinality: int64(m.GetCardinality())})
	return nil
}

// Finish returns the file's bytes and, in the order of adding, the data files
// and the places of their vectors. The builder must be Reset before the next Add.
func (b *Builder) Finish() (data []byte, dataFiles []string, ranges []Range) {
	return b.buf, b.files, b.ranges
}

// Append appends one vector with its frame to dst and returns the length that
// the index manifest records for it. m is not changed.
func Append(dst []byte, v Version, m *roaring.Bitmap) (_ []byte, length int32, err error) {
	if v == Bits32 && !m.IsEmpty() && m.Maximum() > maxPosition32 {
		return nil, 0, fmt.Errorf("%w: position %d in a 32-bit vector", ErrTooLarge, m.Maximum())
	}
	// The clone keeps the caller's bitmap free of writes: it may be read by
	// others at this time. Its cost is below that of the serialisation.
	m = m.Clone()
	m.RunOptimize()
	n := m.GetSerializedSizeInBytes()
	head := uint64(4)
	if v == Bits64 {
		if head += 8; !m.IsEmpty() {
			head += 4
		} else {
			n = 0
		}
	}
	if n+head+frame > math.MaxInt32 {
		return nil, 0, fmt.Errorf("%w: a vector of %d bytes", ErrTooLarge, n)
	}
	size := int32(n + head)
	dst = slices.Grow(dst, int(size)+frame)
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	at := len(dst)
	switch {
	case v == Bits32:
		dst, length = binary.BigEndian.AppendUint32(dst, magic32), size
	case m.IsEmpty():
		dst, length = binary.BigEndian.AppendUint32(dst, magic64), size+frame
		dst = binary.LittleEndian.AppendUint64(dst, 0)
	default:
		dst, length = binary.BigEndian.AppendUint32(dst, magic64), size+frame
		dst = binary.LittleEndian.AppendUint64(dst, 1)
		dst = binary.LittleEndian.AppendUint32(dst, 0)
	}
	if n > 0 {
		w := appender{dst}
		if _, err := m.WriteTo(&w); err != nil {
			return nil, 0, fmt.Errorf("serialising a deletion vector: %w", err)
		}
		dst = w.b
	}
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[at:])), length, nil
}

// appender is an io.Writer onto a slice.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}
