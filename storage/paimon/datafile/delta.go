package datafile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// Encodings of foreign writers (parquet-mr's version 2, Arrow on request) are
// turned into PLAIN when a page is loaded. Our own decoders, because nothing may
// be allocated or read beyond what the page holds.
// Source: parquet-format Encodings.md.

// toPlain appends the PLAIN form of a page of at most n values to dst.
func toPlain(dst, b []byte, p *leafPlan, enc format.Encoding, n int, limit int64) ([]byte, error) {
	unsupported := fmt.Errorf("%w: %s values as %s", ErrUnsupported, p.phys, enc)
	switch enc {
	case format.DeltaBinaryPacked:
		if p.phys != format.Int32 && p.phys != format.Int64 {
			return nil, unsupported
		}
		_, err := deltaInts(b, n, limit, func(v int64) error {
			if p.width == 4 {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
			} else {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(v))
			}
			return nil
		})
		return dst, err
	case format.DeltaLengthByteArray:
		if p.phys != format.ByteArray {
			return nil, unsupported
		}
		return deltaLengths(dst, b, n, limit)
	case format.DeltaByteArray:
		if p.phys != format.ByteArray && p.phys != format.FixedLenByteArray {
			return nil, unsupported
		}
		return deltaBytes(dst, b, p.width, n, limit)
	case format.ByteStreamSplit:
		if p.width == 0 || len(b)%p.width != 0 {
			return nil, unsupported
		}
		k := len(b) / p.width
		for i := range k {
			for j := range p.width {
				dst = append(dst, b[j*k+i])
			}
		}
		return dst, nil
	}
	return nil, unsupported
}

var errDelta = fmt.Errorf("%w: delta-encoded page", ErrCorrupt)

// deltaInts reads DELTA_BINARY_PACKED of at most n values and returns what is
// behind them.
func deltaInts(b []byte, n int, limit int64, emit func(int64) error) ([]byte, error) {
	c := &compactReader{b: b}
	var head [3]uint64 // values a block, miniblocks a block, values in all
	for i := range head {
		var err error
		if head[i], err = c.uvarint(); err != nil {
			return nil, errDelta
		}
	}
	v, err := c.varint()
	block, minis, total := head[0], head[1], head[2]
	if err != nil || total > uint64(n) || minis == 0 || minis > 512 || block > 1<<16 || block%minis != 0 || block/minis%8 != 0 || block == 0 {
		return nil, errDelta
	}
	switch {
	case total == 0:
		return b[c.p:], nil
	case total > uint64(limit)/8:
		return nil, fmt.Errorf("%w: a page of %d values", ErrTooLarge, total)
	}
	if err := emit(v); err != nil {
		return nil, err
	}
	per := int(block / minis)
	for left := int(total) - 1; left > 0; {
		least, err := c.varint()
		if err != nil || c.p+int(minis) > len(b) {
			return nil, errDelta
		}
		widths := b[c.p : c.p+int(minis)]
		c.p += int(minis)
		for _, w := range widths {
			if left == 0 {
				break
			}
			size := per / 8 * int(w)
			if w > 64 || c.p+size > len(b) {
				return nil, errDelta
			}
			r := bitReader{b: b[c.p : c.p+size]}
			c.p += size
			for range min(per, left) {
				v += least + int64(r.take(int(w)))
				if err := emit(v); err != nil {
					return nil, err
				}
				left--
			}
		}
	}
	return b[c.p:], nil
}

// bitReader takes bits, low first.
type bitReader struct {
	b   []byte
	bit int
}

func (r *bitReader) take(n int) uint64 {
	var v uint64
	for have := 0; have < n; {
		k := min(8-r.bit&7, n-have)
		part := uint64(r.b[r.bit>>3]) >> (r.bit & 7) & (1<<k - 1)
		v |= part << have
		have += k
		r.bit += k
	}
	return v
}

// deltaLengthList reads lengths that are all in 0..max.
func deltaLengthList(b []byte, n int, limit int64) (lengths []int, rest []byte, err error) {
	rest, err = deltaInts(b, n, limit, func(v int64) error {
		if v < 0 || v > 1<<31 {
			return errDelta
		}
		lengths = append(lengths, int(v))
		return nil
	})
	return lengths, rest, err
}

func deltaLengths(dst, b []byte, n int, limit int64) ([]byte, error) {
	lengths, b, err := deltaLengthList(b, n, limit)
	if err != nil {
		return nil, err
	}
	for _, k := range lengths {
		if k > len(b) {
			return nil, errDelta
		}
		dst = binary.LittleEndian.AppendUint32(dst, uint32(k))
		dst = append(dst, b[:k]...)
		b = b[k:]
	}
	return dst, nil
}

// deltaBytes reads values that share a prefix with the one before. width is that
// of fixed values, 0 for variable ones.
func deltaBytes(dst, b []byte, width, n int, limit int64) ([]byte, error) {
	prefixes, b, err := deltaLengthList(b, n, limit)
	if err != nil {
		return nil, err
	}
	suffixes, b, err := deltaLengthList(b, n, limit)
	if err != nil {
		return nil, err
	}
	if len(prefixes) != len(suffixes) {
		return nil, errDelta
	}
	last := 0 // length of the value before
	for i, k := range suffixes {
		if k > len(b) || prefixes[i] > last || width > 0 && prefixes[i]+k != width {
			return nil, errDelta
		}
		if int64(len(dst)+prefixes[i]+k) > limit {
			return nil, fmt.Errorf("%w: values of a page", ErrTooLarge)
		}
		from := len(dst) - last
		last = prefixes[i] + k
		if width == 0 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(last))
		}
		dst = append(dst, dst[from:from+prefixes[i]]...)
		dst = append(dst, b[:k]...)
		b = b[k:]
	}
	return dst, nil
}
