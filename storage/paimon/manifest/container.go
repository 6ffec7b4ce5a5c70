package manifest

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/avro/ocf"
)

// An own container reader and writer, because the library's parses the schema of
// every file, which is the whole cost of a small manifest, and reads streams.
// The values inside are left to the library.

const (
	magic = "Obj\x01"
	// blockTarget is the size at which a block is closed, Java's default.
	blockTarget = 64_000
	// maxBlock bounds what one block may decompress to, whatever it claims.
	maxBlock = 64 << 20
	// freeBytes and maxRatio bound what a file may decompress to by its size, and
	// freeRecords, with one a byte, how many records it may hold. The tightest
	// manifests that make sense, of thousands of files whose names differ in one
	// number, shrink to a 92nd and have a record every two bytes.
	freeBytes, maxRatio = 1 << 20, 256
	freeRecords         = 10_000
	// maxSchemaText bounds the schema in a header; ours have 2 KB.
	maxSchemaText = 256 << 10
	// maxMetadata bounds the number of metadata keys of a header.
	maxMetadata = 1000
	syncLen     = 16
)

// Names of the codecs of the Avro specification that are supported.
const (
	codecNull    = "null"
	codecDeflate = "deflate"
	codecSnappy  = "snappy"
	codecZstd    = "zstandard"
)

// codecOf translates the table option manifest.compression.
func codecOf(option string) (string, error) {
	switch option {
	case "", "zstd", codecZstd:
		return codecZstd, nil
	case codecSnappy, codecDeflate:
		return option, nil
	case codecNull, "none":
		return codecNull, nil
	}
	return "", fmt.Errorf("%w: manifest.compression %q (known: zstd, snappy, deflate, null)", ErrUnsupported, option)
}

// compression holds the codecs' state; it is safe for concurrent use.
type compression struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newCompression(level int) (*compression, error) {
	// Blocks are small: a small window saves memory and loses nothing.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithEncoderCRC(true),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(128<<10))
	if err != nil {
		return nil, fmt.Errorf("creating the zstd encoder: %w", err)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxBlock), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("creating the zstd decoder: %w", err)
	}
	return &compression{enc, dec}, nil
}

func (c *compression) compress(dst []byte, codec string, raw []byte) ([]byte, error) {
	switch codec {
	case codecNull:
		return append(dst, raw...), nil
	case codecZstd:
		return c.enc.EncodeAll(raw, dst), nil
	}
	b, err := libraryCodec(codec).Compress(raw)
	if err != nil {
		return nil, fmt.Errorf("compressing a block with %s: %w", codec, err)
	}
	return append(dst, b...), nil
}

func libraryCodec(codec string) ocf.Codec {
	if codec == codecSnappy {
		return ocf.SnappyCodec()
	}
	return ocf.DeflateCodec(-1)
}

// decompress returns a block of at most limit bytes that does not alias b unless
// it is not compressed.
func (c *compression) decompress(codec string, b []byte, limit int) ([]byte, error) {
	limit = min(limit, maxBlock)
	var raw []byte
	var err error
	switch codec {
	case codecNull:
		raw = b
		if len(b) > limit {
			err = errors.New("the block is too large")
		}
	case codecZstd:
		raw, err = c.unzstd(b, limit)
	case codecSnappy, codecDeflate:
		bounded, ok := libraryCodec(codec).(ocf.BoundedDecompressor)
		if !ok {
			return nil, fmt.Errorf("%w: codec %s has no bound", ErrUnsupported, codec)
		}
		raw, err = bounded.DecompressBounded(b, int64(limit))
	default:
		return nil, fmt.Errorf("%w: codec %q", ErrUnsupported, codec)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: decompressing a block of %d bytes with %s: %w", ErrCorrupt, len(b), codec, err)
	}
	return raw, nil
}

// unzstd decodes frames that do not say their size into growing buffers: what is
// allocated stays in proportion to what is there.
func (c *compression) unzstd(b []byte, limit int) ([]byte, error) {
	for guess := min(limit, 4096+8*len(b)); ; guess = min(limit, guess*4) {
		raw, err := c.dec.DecodeAll(b, make([]byte, 0, guess))
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) && guess < limit {
			continue
		}
		// Entries alias the block for as long as they live: leave no slack to them.
		if len(raw) < cap(raw)/2 {
			raw = bytes.Clone(raw)
		}
		return raw, err
	}
}

// containerWriter builds one container file.
type containerWriter struct {
	c     *compression
	codec string
	sync  [syncLen]byte
	out   []byte
	raw   []byte
	count int64
}

func newContainerWriter(c *compression, codec, schema string) *containerWriter {
	w := &containerWriter{c: c, codec: codec, out: []byte(magic)}
	_, _ = rand.Read(w.sync[:]) // never fails, by its contract
	w.out = binary.AppendVarint(w.out, 2)
	for _, s := range []string{"avro.schema", schema, "avro.codec", codec} {
		w.out = append(binary.AppendVarint(w.out, int64(len(s))), s...)
	}
	w.out = append(append(w.out, 0), w.sync[:]...)
	return w
}

// end ends an object that was appended to raw.
func (w *containerWriter) end() error {
	w.count++
	if len(w.raw) < blockTarget {
		return nil
	}
	return w.flush()
}

func (w *containerWriter) flush() error {
	if w.count == 0 {
		return nil
	}
	block, err := w.c.compress(nil, w.codec, w.raw)
	if err != nil {
		return err
	}
	w.out = binary.AppendVarint(w.out, w.count)
	w.out = binary.AppendVarint(w.out, int64(len(block)))
	w.out = append(append(w.out, block...), w.sync[:]...)
	w.raw, w.count = w.raw[:0], 0
	return nil
}

// container is a container file whose header is read.
type container struct {
	schema, codec string
	sync          []byte
	rest          cursor
	bytes         int // that may still come out of it
	records       int64
}

// openContainer reads the header.
func openContainer(b []byte) (*container, error) {
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: no Avro container file", ErrCorrupt)
	}
	c := &container{codec: codecNull, rest: cursor{b: b[len(magic):]}, bytes: freeBytes + maxRatio*len(b), records: freeRecords + int64(len(b))}
	for keys := int64(0); ; {
		n := c.rest.long()
		if n == 0 {
			break
		}
		if n < 0 { // a block of -n entries with its size in bytes
			n = -n
			c.rest.long()
		}
		if keys += n; n < 0 || keys > maxMetadata {
			c.rest.bad = true
			break
		}
		for range n {
			switch k, v := c.rest.bytes(), c.rest.bytes(); string(k) {
			case "avro.schema":
				c.schema = string(v[:min(len(v), maxSchemaText+1)])
			case "avro.codec":
				c.codec = string(v[:min(len(v), 64)])
			}
		}
	}
	c.sync = c.rest.next(syncLen)
	if c.rest.bad || c.schema == "" {
		return nil, fmt.Errorf("%w: malformed container header", ErrCorrupt)
	}
	// Writers draw the marker at random. Zeros from somewhere in the header to the
	// end of the file, as a power cut leaves them, would read as no records at all.
	if !slices.ContainsFunc(c.sync, func(b byte) bool { return b != 0 }) {
		return nil, fmt.Errorf("%w: a sync marker of zeros", ErrCorrupt)
	}
	if len(c.schema) > maxSchemaText {
		return nil, fmt.Errorf("%w: a schema text of more than %d bytes", ErrUnsupported, maxSchemaText)
	}
	return c, nil
}

// expected returns how many records the blocks announce, no more than is likely
// for their size: a hint for allocation.
func (c *container) expected() int {
	n, rest := int64(0), c.rest
	for len(rest.b) > 0 {
		count := rest.long()
		rest.bytes()
		rest.next(syncLen)
		if rest.bad || count < 0 || count > c.records {
			break
		}
		n += count
	}
	return int(min(n, int64(len(c.rest.b)/2+16)))
}

// block returns the next block's objects, or 0 and nil at the end.
func (c *container) block(comp *compression) (count int, raw []byte, err error) {
	for len(c.rest.b) > 0 {
		n, body, sync := c.rest.long(), c.rest.bytes(), c.rest.next(syncLen)
		if c.rest.bad || n < 0 || !bytes.Equal(sync, c.sync) {
			return 0, nil, fmt.Errorf("%w: malformed or truncated block", ErrCorrupt)
		}
		if raw, err = comp.decompress(c.codec, body, c.bytes); err != nil {
			return 0, nil, err
		}
		c.bytes -= len(raw)
		// No record of a manifest is empty, so there are no more than bytes.
		if n > int64(len(raw)) || n > c.records || n == 0 && len(raw) > 0 {
			return 0, nil, fmt.Errorf("%w: %d records in a block of %d bytes", ErrCorrupt, n, len(raw))
		}
		c.records -= n
		if n > 0 {
			return int(n), raw, nil
		}
	}
	return 0, nil, nil
}

// cursor reads Avro's longs and byte strings; bad is set at the first surprise.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) long() int64 {
	v, n := binary.Varint(c.b)
	if n <= 0 || c.bad {
		c.bad = true
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) bytes() []byte {
	n := c.long()
	if n < 0 || n > math.MaxInt32 {
		c.bad = true
	}
	return c.next(int(n))
}

func (c *cursor) next(n int) []byte {
	if c.bad || n > len(c.b) {
		c.bad = true
		return nil
	}
	p := c.b[:n:n]
	c.b = c.b[n:]
	return p
}
