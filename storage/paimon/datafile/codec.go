package datafile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// compressor compresses pages. Safe for concurrent use.
type compressor struct {
	codec format.CompressionCodec
	zstd  *zstd.Encoder
	gzip  sync.Pool // *gzip.Writer
	lz4   sync.Pool // *lz4.Compressor
}

// parseCompression checks a value of the table option file.compression, in any
// case: zstd, snappy, gzip, lz4 (written as LZ4_RAW, which every reader of the
// last years knows), lz4_raw, none, uncompressed. "" is zstd.
func parseCompression(name string) (format.CompressionCodec, error) {
	switch strings.ToLower(name) {
	case "", "zstd":
		return format.Zstd, nil
	case "snappy":
		return format.Snappy, nil
	case "gzip":
		return format.Gzip, nil
	case "lz4", "lz4_raw":
		return format.Lz4Raw, nil
	case "none", "uncompressed":
		return format.Uncompressed, nil
	}
	return 0, fmt.Errorf("%w: file.compression %q; use zstd, snappy, gzip, lz4_raw or none", ErrUnsupported, name)
}

func newCompressor(name string, zstdLevel, concurrency int) (*compressor, error) {
	codec, err := parseCompression(name)
	if err != nil {
		return nil, err
	}
	c := &compressor{codec: codec}
	if codec == format.Zstd {
		// All-literal entropy: 18 % fewer bytes for 9 % more CPU on typical
		// rows (performance.md §1). The page has its own checksum.
		c.zstd, err = zstd.NewWriter(nil,
			zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(max(1, zstdLevel))),
			zstd.WithEncoderConcurrency(max(1, concurrency)),
			zstd.WithAllLitEntropyCompression(true),
			zstd.WithZeroFrames(true),
			zstd.WithEncoderCRC(false))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
	}
	return c, nil
}

// encode appends the compressed src to dst.
func (c *compressor) encode(dst, src []byte) ([]byte, error) {
	switch c.codec {
	case format.Zstd:
		return c.zstd.EncodeAll(src, dst), nil
	case format.Snappy:
		n := len(dst)
		dst = grow(dst, snappy.MaxEncodedLen(len(src)))
		return dst[:n+len(snappy.Encode(dst[n:cap(dst)], src))], nil
	case format.Gzip:
		return c.encodeGzip(dst, src)
	case format.Lz4Raw:
		return c.encodeLZ4(dst, src)
	}
	return append(dst, src...), nil
}

func (c *compressor) encodeGzip(dst, src []byte) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	z, _ := c.gzip.Get().(*gzip.Writer)
	if z == nil {
		z = gzip.NewWriter(buf)
	} else {
		z.Reset(buf)
	}
	defer c.gzip.Put(z)
	if _, err := z.Write(src); err != nil {
		return dst, err
	}
	err := z.Close()
	return buf.Bytes(), err
}

func (c *compressor) encodeLZ4(dst, src []byte) ([]byte, error) {
	z, _ := c.lz4.Get().(*lz4.Compressor)
	if z == nil {
		z = new(lz4.Compressor)
	}
	defer c.lz4.Put(z)
	n := len(dst)
	dst = grow(dst, lz4.CompressBlockBound(len(src)))
	k, err := z.CompressBlock(src, dst[n:cap(dst)])
	return dst[:n+k], err
}

// grow makes room for n more bytes without changing the length.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	c := make([]byte, len(b), max(2*cap(b), len(b)+n))
	copy(c, b)
	return c
}

// decompressor decompresses pages. Safe for concurrent use.
type decompressor struct {
	zstd *zstd.Decoder
	gzip sync.Pool // *gzip.Reader
}

func newDecompressor() (*decompressor, error) {
	z, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(0),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &decompressor{zstd: z}, nil
}

// overAlloc is room behind a page that lets the zstd decoder use its fast loop.
const overAlloc = 16

// decode decompresses src, which must become exactly size bytes, into dst's
// memory or new memory.
func (d *decompressor) decode(codec format.CompressionCodec, dst, src []byte, size int) (_ []byte, err error) {
	defer recoverCorrupt(&err)
	if cap(dst) < size+overAlloc {
		dst = make([]byte, 0, size+overAlloc)
	}
	dst = dst[:0]
	switch codec {
	case format.Zstd:
		dst, err = d.zstd.DecodeAll(src, dst[:0:size+overAlloc])
	case format.Snappy:
		var n int
		if n, err = snappy.DecodedLen(src); err == nil && n != size {
			return nil, fmt.Errorf("%w: a page of %d bytes instead of %d", ErrCorrupt, n, size)
		}
		if err == nil {
			dst, err = snappy.Decode(dst[:size], src)
		}
	case format.Gzip:
		dst, err = d.decodeGzip(dst[:size+1], src, size)
	case format.Lz4Raw:
		dst, err = unlz4(dst[:size], src)
	case format.Lz4:
		dst, err = unlz4Hadoop(dst[:size], src)
	default:
		return nil, fmt.Errorf("%w: compression %s", ErrUnsupported, codec)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s page: %w", ErrCorrupt, codec, err)
	}
	if len(dst) != size {
		return nil, fmt.Errorf("%w: a page of %d bytes instead of %d", ErrCorrupt, len(dst), size)
	}
	return dst, nil
}

func unlz4(dst, src []byte) ([]byte, error) {
	n, err := lz4.UncompressBlock(src, dst)
	return dst[:max(0, n)], err
}

// unlz4Hadoop reads the deprecated LZ4 codec as Hadoop frames it: for each part
// the sizes after and before decompression, big-endian, and a raw block. Old
// files of Arrow have a single raw block instead.
func unlz4Hadoop(dst, src []byte) ([]byte, error) {
	n, rest := 0, src
	for len(rest) >= 8 {
		size, packed := binary.BigEndian.Uint32(rest), binary.BigEndian.Uint32(rest[4:])
		rest = rest[8:]
		if uint64(packed) > uint64(len(rest)) || uint64(size) > uint64(len(dst)-n) {
			return unlz4(dst, src)
		}
		part, err := unlz4(dst[n:n+int(size)], rest[:packed])
		if err != nil || len(part) != int(size) {
			return unlz4(dst, src)
		}
		n, rest = n+int(size), rest[packed:]
	}
	if len(rest) > 0 {
		return unlz4(dst, src)
	}
	return dst[:n], nil
}

// decodeGzip reads at most one byte more than the page should have.
func (d *decompressor) decodeGzip(dst, src []byte, size int) ([]byte, error) {
	in := bytes.NewReader(src)
	z, _ := d.gzip.Get().(*gzip.Reader)
	var err error
	if z == nil {
		z, err = gzip.NewReader(in)
	} else {
		err = z.Reset(in)
	}
	if err != nil {
		return nil, err
	}
	defer d.gzip.Put(z)
	n, err := io.ReadFull(z, dst)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return dst[:n], err
}
