package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/parquet-go/parquet-go/format"

	"applier/storage/types"
)

// maxHeaderBytes is how long a page header with its statistics may be.
const maxHeaderBytes = 16 << 20

// plainDictionary is what older writers call a dictionary and its indexes. The
// format deprecates it for writers; readers go on meeting it.
//
//lint:ignore SA1019 read, never written
const plainDictionary = format.PlainDictionary

// chunkReader reads the values of one column chunk forwards. Entries are values
// and NULLs; for a flat column an entry is a row.
type chunkReader struct {
	f   *File
	p   *leafPlan
	md  *columnMetaData
	src source

	h        pageHeader
	have     bool  // h is read, its body is not
	left     int   // entries left in the page at hand
	unread   int64 // entries in pages that are not loaded; after a seek an upper bound
	aligned  bool  // pages start with a row
	rep, def hybrid
	vals     values
	dict     *types.Vector
	longest  int // bytes of the longest dictionary entry
	page     []byte
	plain    []byte // values of the page in another encoding, made PLAIN

	ldef, lrep []uint8 // levels ahead of the cursor (nested) or of the batch (flat)
	lpos       int
	idx        []uint32
	start      int64 // of the chunk
}

// values is the rest of a page's values.
type values struct {
	plain   []byte
	bit     int // BOOLEAN: bits of plain[0] that are consumed
	runs    hybrid
	indexed bool // runs are dictionary indexes
	bools   bool // runs are booleans
}

// open makes c read chunk m from its start.
func (c *chunkReader) open(m *columnChunk) error {
	c.md = &m.MetaData
	c.left, c.have, c.lpos, c.aligned = 0, false, 0, false
	c.ldef, c.lrep = c.ldef[:0], c.lrep[:0]
	c.unread = c.md.NumValues
	if c.dict != nil {
		c.dict.Reset()
	}
	c.longest = 0
	c.vals = values{}
	start, end := c.md.span()
	if start < int64(len(magic)) || end < start || end > c.f.end {
		return c.fail(fmt.Errorf("%w: chunk at %d to %d of %d bytes", ErrCorrupt, start, end, c.f.end))
	}
	if c.md.Type != c.p.phys {
		return c.fail(fmt.Errorf("%w: chunk of type %s in a column of %s", ErrCorrupt, c.md.Type, c.p.phys))
	}
	c.start = start
	c.src.r, c.src.ahead = c.f.r, c.f.o.ReadAhead
	c.src.seek(start, end)
	return nil
}

// span is where the pages of a chunk are.
func (m *columnMetaData) span() (start, end int64) {
	start = m.DataPageOffset
	if d := m.DictionaryPageOffset; d > 0 && d < start {
		start = d
	}
	if m.TotalCompressedSize < 0 || m.TotalCompressedSize > math.MaxInt64-start {
		return start, -1
	}
	return start, start + m.TotalCompressedSize
}

func (c *chunkReader) fail(err error) error {
	return fmt.Errorf("column %s at %d: %w", c.p.path, c.src.at(), err)
}

// header reads the header of the next page into c.h.
func (c *chunkReader) header() error {
	if c.have {
		return nil
	}
	for n := 512; ; n *= 4 {
		n = int(min(int64(n), c.src.left()))
		if n == 0 {
			return c.fail(fmt.Errorf("%w: %d values are missing", ErrCorrupt, c.unread))
		}
		b, err := c.src.peek(n)
		if err != nil {
			return c.fail(err)
		}
		k, err := c.h.decode(b)
		switch {
		case err == nil:
			c.src.skip(k)
			c.have = true
			return c.checkHeader()
		case !errors.Is(err, io.ErrUnexpectedEOF) || int64(n) == c.src.left() || n >= maxHeaderBytes:
			return c.fail(fmt.Errorf("%w: page header: %w", ErrCorrupt, err))
		}
	}
}

func (c *chunkReader) checkHeader() error {
	h := &c.h
	limit := c.f.o.MaxPageBytes
	switch {
	case int64(h.packed) > c.src.left():
		return c.fail(fmt.Errorf("%w: a page of %d bytes, %d are left of its chunk", ErrCorrupt, h.packed, c.src.left()))
	case int64(h.raw) > limit || int64(h.packed) > limit:
		return c.fail(fmt.Errorf("%w: a page of %d bytes, the limit is %d", ErrTooLarge, max(h.raw, h.packed), limit))
	case h.isData() && int64(h.values) > c.unread:
		return c.fail(fmt.Errorf("%w: a page of %d values where %d are left", ErrCorrupt, h.values, c.unread))
	}
	return nil
}

// nextPage loads the next data page; c.left is 0 before. It returns io.EOF at
// the end of the chunk.
func (c *chunkReader) nextPage() error {
	for c.left == 0 {
		if c.unread == 0 {
			return io.EOF
		}
		if err := c.header(); err != nil {
			return err
		}
		body, err := c.body()
		if err != nil {
			return c.fail(err)
		}
		switch c.h.kind {
		case format.DictionaryPage:
			err = c.loadDictionary(body)
		case format.DataPage, format.DataPageV2:
			c.unread -= int64(c.h.values)
			c.left = int(c.h.values)
			err = c.loadData(body)
		}
		if err != nil {
			return c.fail(err)
		}
	}
	return nil
}

// body returns the packed bytes behind the header.
func (c *chunkReader) body() ([]byte, error) {
	body, err := c.src.peek(int(c.h.packed))
	if err != nil {
		return nil, err
	}
	c.have = false
	if c.h.hasCRC {
		if sum := crc32.ChecksumIEEE(body); sum != c.h.crc {
			return nil, fmt.Errorf("%w: page checksum %08x instead of %08x", ErrCorrupt, sum, c.h.crc)
		}
	}
	c.src.pos += len(body) // still valid: nothing is read before the page is consumed
	return body, nil
}

// unpack decompresses to size bytes; without compression the result aliases b.
func (c *chunkReader) unpack(b []byte, size int) ([]byte, error) {
	if c.md.Codec == format.Uncompressed {
		if len(b) != size {
			return nil, fmt.Errorf("%w: a page of %d bytes instead of %d", ErrCorrupt, len(b), size)
		}
		return b, nil
	}
	out, err := c.f.o.Buffers.dec.decode(c.md.Codec, c.page, b, size)
	if err == nil {
		c.page = out
	}
	return out, err
}

func (c *chunkReader) loadDictionary(body []byte) error {
	if c.dict != nil && c.dict.Len() > 0 {
		return fmt.Errorf("%w: a second dictionary", ErrCorrupt)
	}
	if e := c.h.encoding; e != format.Plain && e != plainDictionary {
		return fmt.Errorf("%w: dictionary encoding %s", ErrUnsupported, e)
	}
	b, err := c.unpack(body, int(c.h.raw))
	if err != nil {
		return err
	}
	if c.dict == nil {
		c.dict = types.NewVector(c.p.t)
	}
	c.vals = values{plain: b}
	if err := c.dense(c.dict, int(c.h.values)); err != nil {
		return err
	}
	if c.dict.Layout == types.LayoutBytes {
		for i := range c.dict.Len() {
			c.longest = max(c.longest, int(c.dict.Off[i+1]-c.dict.Off[i]))
		}
	}
	return nil
}

// loadData sets up levels and values of the data page c.h.
func (c *chunkReader) loadData(body []byte) error {
	var err error
	h := &c.h
	if h.kind == format.DataPageV2 {
		c.aligned = true
		reps, defs := int(h.repLen), int(h.defLen)
		c.rep = newHybrid(body[:reps], bitWidth(int(c.p.maxRep)))
		c.def = newHybrid(body[reps:reps+defs], bitWidth(int(c.p.maxDef)))
		body = body[reps+defs:]
		if !h.uncompressed && (len(body) > 0 || int(h.raw) > reps+defs) {
			body, err = c.unpack(body, int(h.raw)-reps-defs)
		}
	} else {
		if body, err = c.unpack(body, int(h.raw)); err != nil {
			return err
		}
		if c.rep, body, err = levelsV1(body, c.p.maxRep, h.repEnc); err != nil {
			return err
		}
		c.def, body, err = levelsV1(body, c.p.maxDef, h.defEnc)
	}
	if err != nil {
		return err
	}
	return c.loadValues(body)
}

// levelsV1 cuts the levels off a V1 page.
func levelsV1(b []byte, maxLevel uint8, enc format.Encoding) (hybrid, []byte, error) {
	if maxLevel == 0 {
		return hybrid{}, b, nil
	}
	if enc != format.RLE {
		return hybrid{}, nil, fmt.Errorf("%w: levels as %s", ErrUnsupported, enc)
	}
	if len(b) < 4 {
		return hybrid{}, nil, fmt.Errorf("%w: no levels in a page of %d bytes", ErrCorrupt, len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	if b = b[4:]; uint64(n) > uint64(len(b)) {
		return hybrid{}, nil, fmt.Errorf("%w: %d bytes of levels in a page of %d", ErrCorrupt, n, len(b))
	}
	return newHybrid(b[:n], bitWidth(int(maxLevel))), b[n:], nil
}

// loadValues sets up c.vals from the value bytes of a page.
func (c *chunkReader) loadValues(b []byte) error {
	c.vals = values{plain: b}
	switch e := c.h.encoding; e {
	case format.Plain:
	case plainDictionary, format.RLEDictionary:
		c.vals = values{indexed: true}
		if len(b) > 0 {
			if b[0] > 32 {
				return fmt.Errorf("%w: dictionary indexes of %d bits", ErrCorrupt, b[0])
			}
			c.vals.runs = newHybrid(b[1:], int(b[0]))
		}
		if c.dict == nil {
			c.dict = types.NewVector(c.p.t)
		}
	case format.RLE:
		if c.p.phys != format.Boolean || len(b) < 4 {
			return fmt.Errorf("%w: a page of %s as RLE", ErrCorrupt, c.p.phys)
		}
		c.vals = values{bools: true, runs: newHybrid(b[4:], 1)}
	default:
		plain, err := toPlain(c.plain[:0], b, c.p, e, int(c.h.values), c.f.o.MaxPageBytes)
		if err != nil {
			return err
		}
		c.plain = plain
		c.vals.plain = plain
	}
	return nil
}
