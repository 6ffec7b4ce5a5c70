package datafile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

// plainEncoding is how values are written without a dictionary.
func (c *chunkWriter) plainEncoding() format.Encoding {
	if c.set.delta {
		switch c.leaf.phys {
		case format.Int32, format.Int64:
			return format.DeltaBinaryPacked
		case format.ByteArray:
			return format.DeltaLengthByteArray
		}
	}
	return format.Plain
}

// appendDelta appends the PLAIN values of the page at hand in their delta encoding.
func (c *chunkWriter) appendDelta(dst []byte, enc format.Encoding) ([]byte, error) {
	plain := c.buf[c.reserved:]
	var b []byte
	var err error
	switch {
	case enc == format.DeltaLengthByteArray:
		return c.appendDeltaLengths(dst, plain)
	case c.leaf.phys == format.Int32:
		c.ints32 = extendTo(c.ints32, len(plain)/4)
		copy(asBytes(c.ints32), plain)
		b, err = new(delta.BinaryPackedEncoding).EncodeInt32(c.levels[:0], c.ints32)
	default:
		c.ints64 = extendTo(c.ints64, len(plain)/8)
		copy(asBytes(c.ints64), plain)
		b, err = new(delta.BinaryPackedEncoding).EncodeInt64(c.levels[:0], c.ints64)
	}
	if err != nil {
		return dst, fmt.Errorf("encoding deltas: %w", err)
	}
	c.levels = b
	return append(dst, b...), nil
}

// appendDeltaLengths writes the lengths of all values, then their bytes.
func (c *chunkWriter) appendDeltaLengths(dst, plain []byte) ([]byte, error) {
	c.ints32 = c.ints32[:0]
	for at := 0; at < len(plain); {
		n := int(binary.LittleEndian.Uint32(plain[at:]))
		c.ints32 = append(c.ints32, int32(n))
		at += 4 + n
	}
	b, err := new(delta.BinaryPackedEncoding).EncodeInt32(c.levels[:0], c.ints32)
	if err != nil {
		return dst, fmt.Errorf("encoding lengths: %w", err)
	}
	c.levels = b
	dst = append(dst, b...)
	for _, n := range c.ints32 {
		dst = append(dst, plain[4:4+n]...)
		plain = plain[4+n:]
	}
	return dst, nil
}
