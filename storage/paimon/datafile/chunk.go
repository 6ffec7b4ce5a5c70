package datafile

import (
	"math"

	"applier/storage/types"
)

// chunkWriter builds one leaf's column chunk of the current row group: the page
// at hand and the finished pages, which stay in memory until the row group ends.
type chunkWriter struct {
	leaf *leaf
	set  *settings

	// The page at hand. PLAIN values start behind reserved bytes, where the
	// levels of a flat column go, so that a page is one piece for the codec.
	buf      []byte
	reserved int
	n        int // values and NULLs
	nulls    int
	rows     int
	valid    []byte  // flat and nullable: bit set = not NULL; only if nulls > 0
	def, rep []uint8 // nested
	indexes  []int32 // instead of buf while the chunk uses its dictionary
	dict     *dictionary
	mode     dictMode
	sampled  int // PLAIN bytes of the values that were numbered while undecided

	// The chunk.
	out       []byte // finished pages: header, compressed body
	pages     []pageLoc
	dictPages int // pages that use the dictionary
	groupRows int64
	values    int64
	nullCount int64
	raw       int64 // bytes of finished pages before compression, headers included
	stats     bounds

	sel    []uint32 // scratch: rows with a value
	chars  *types.Vector
	body   []byte
	packed []byte
	levels []byte
	ints32 []int32
	ints64 []int64
}

// dictMode says how a chunk's values are written.
type dictMode uint8

const (
	dictNever     dictMode = iota // PLAIN
	dictUndecided                 // PLAIN so far, sampled into the dictionary
	dictUsed
)

// settings are the writer's page parameters.
type settings struct {
	pageRows  int
	pageBytes int
	maxPage   int // see maxPageBytes
	comp      *compressor
	dict      bool
	delta     bool
	keepChars bool
}

// maxPageBytes is what fits the 32-bit sizes of a page header.
const maxPageBytes = math.MaxInt32 - 1<<16

func newChunkWriter(l *leaf, set *settings) *chunkWriter {
	c := &chunkWriter{leaf: l, set: set}
	c.stats.layout = types.LayoutOf(l.t)
	if c.flat() && l.maxDef > 0 {
		c.reserved = maxValidityBytes(set.pageRows)
	}
	if l.t.Kind == types.Char {
		c.chars = types.NewVector(l.t)
	}
	c.reset()
	return c
}

// flat reports a top-level column: levels are one validity bit or nothing.
func (c *chunkWriter) flat() bool { return c.leaf.topLevel }

// reset makes c ready for the next row group.
func (c *chunkWriter) reset() {
	c.resetPage()
	c.out, c.pages = c.out[:0], c.pages[:0]
	c.dictPages, c.groupRows, c.values, c.nullCount, c.raw = 0, 0, 0, 0, 0
	c.stats.reset()
	c.mode, c.sampled = dictNever, 0
	if c.set.dict && types.LayoutOf(c.leaf.t) == types.LayoutBytes {
		c.mode = dictUndecided
		if c.dict == nil {
			c.dict = newDictionary()
		}
		c.dict.reset()
	}
}

func (c *chunkWriter) resetPage() {
	c.buf = grow(c.buf[:0], c.reserved)[:c.reserved]
	c.n, c.nulls, c.rows = 0, 0, 0
	c.valid, c.def, c.rep, c.indexes = c.valid[:0], c.def[:0], c.rep[:0], c.indexes[:0]
}

// shrink gives back buffers that one large file has blown up; c is reset next.
func (c *chunkWriter) shrink() {
	for _, b := range []*[]byte{&c.out, &c.buf, &c.body, &c.packed, &c.levels} {
		if cap(*b) > keepEach {
			*b = nil
		}
	}
	c.ints32, c.ints64 = nil, nil
	c.stats.shrink()
	if c.dict != nil && cap(c.dict.plain) > 2*dictMaxBytes {
		c.dict = nil
	}
	if c.chars != nil && c.chars.MemBytes() > keepEach {
		c.chars = types.NewVector(c.leaf.t)
	}
}

// memBytes is the memory c holds.
func (c *chunkWriter) memBytes() int64 {
	n := cap(c.buf) + cap(c.out) + cap(c.body) + cap(c.packed) + cap(c.levels) + cap(c.valid) +
		cap(c.def) + cap(c.rep) + 4*cap(c.indexes) + 4*cap(c.sel) + 4*cap(c.ints32) + 8*cap(c.ints64) + 24*cap(c.pages) +
		cap(c.stats.blo) + cap(c.stats.bhi)
	if c.dict != nil {
		n += 8*cap(c.dict.table) + cap(c.dict.plain) + 4*cap(c.dict.off)
	}
	if c.chars != nil {
		n += int(c.chars.MemBytes())
	}
	return int64(n)
}

// pageSize is the raw size of the page at hand.
func (c *chunkWriter) pageSize() int {
	return len(c.buf) - c.reserved + 2*len(c.indexes) + len(c.def) + len(c.rep) + len(c.valid)
}

// addFlat adds rows of a top-level scalar column.
func (c *chunkWriter) addFlat(v *types.Vector, rs rows) error {
	for rs.len() > 0 {
		part := c.fit(v, rs)
		values := c.markNulls(v, part)
		if err := c.addValues(v, values); err != nil {
			return err
		}
		c.n += part.len()
		c.rows += part.len()
		c.nulls += part.len() - values.len()
		if err := c.endPageIfFull(); err != nil {
			return err
		}
		rs = rs.from0(part.len())
	}
	return nil
}

// from0 is rs without its first n rows.
func (r rows) from0(n int) rows {
	if r.sel != nil {
		return rows{sel: r.sel[n:]}
	}
	return rows{from: r.from + n, to: r.to}
}

func (r rows) head(n int) rows {
	if r.sel != nil {
		return rows{sel: r.sel[:n]}
	}
	return rows{from: r.from, to: r.from + n}
}

// fit is the start of rs that the page at hand should take, at least one row.
func (c *chunkWriter) fit(v *types.Vector, rs rows) rows {
	n := min(rs.len(), c.set.pageRows-c.rows)
	room := c.set.pageBytes - c.pageSize()
	switch w := c.leaf.plainWidth(); {
	case w > 0:
		n = min(n, room/w)
	case v.Layout == types.LayoutBytes:
		least := 0
		if c.chars != nil && !c.set.keepChars {
			least = c.leaf.t.Length
		}
		if least == 0 && rs.sel == nil && int(v.Off[rs.from+n]-v.Off[rs.from])+4*n <= room {
			break
		}
		for k := range n {
			i := rs.at(k)
			if room -= max(int(v.Off[i+1]-v.Off[i]), least) + 4; room < 0 {
				n = k + 1
				break
			}
		}
	}
	return rs.head(max(n, 1))
}

// markNulls records which rows of rs are NULL and returns the others.
func (c *chunkWriter) markNulls(v *types.Vector, rs rows) rows {
	if !v.Nulls.Any() || rs.sel == nil && v.Nulls.CountRange(rs.from, rs.to) == 0 {
		if c.nulls > 0 {
			c.valid = appendOnes(c.valid, c.n, rs.len())
		}
		return rs
	}
	c.sel = c.sel[:0]
	if c.nulls == 0 {
		c.valid = appendOnes(c.valid[:0], 0, c.n)
	}
	for len(c.valid) < (c.n+rs.len()+7)/8 {
		c.valid = append(c.valid, 0)
	}
	for k := range rs.len() {
		if i := rs.at(k); !v.Nulls.Get(i) {
			c.sel = append(c.sel, uint32(i))
			c.valid[(c.n+k)>>3] |= 1 << ((c.n + k) & 7)
		}
	}
	return rows{sel: c.sel}
}

// appendOnes sets bits [from, from+n) of a bit string that ends at bit from.
func appendOnes(bits []byte, from, n int) []byte {
	for ; n > 0 && from&7 != 0; from, n = from+1, n-1 {
		bits[from>>3] |= 1 << (from & 7)
	}
	for ; n >= 8; n -= 8 {
		bits = append(bits, 0xff)
	}
	if n > 0 {
		bits = append(bits, 1<<n-1)
	}
	return bits
}

// addValues adds values to the page and the statistics; levels are the caller's.
func (c *chunkWriter) addValues(v *types.Vector, rs rows) error {
	if c.chars != nil && !c.set.keepChars {
		c.chars.Reset()
		padChars(c.chars, v, rs, c.leaf.t.Length)
		v, rs = c.chars, rows{to: c.chars.Len()}
	}
	if c.mode == dictUsed {
		c.addIndexes(v, rs)
		return nil
	}
	c.stats.add(v, rs)
	if err := c.stats.check(c.leaf.t); err != nil {
		return err
	}
	c.buf = c.leaf.appendPlain(c.buf, v, rs)
	if c.mode == dictUndecided {
		c.sample(v, rs)
	}
	return nil
}
