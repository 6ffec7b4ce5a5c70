package datafile

import (
	"fmt"
	"hash/crc32"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"applier/storage/types"
)

// maxStatBytes is how long the two bounds of a chunk together may be in the
// footer; parquet-mr leaves out longer ones, too.
const maxStatBytes = 4096

// addIndexes adds values as dictionary indexes. Only new ones can move the bounds.
func (c *chunkWriter) addIndexes(v *types.Vector, rs rows) {
	off, data := v.Off, v.Data
	for k := range rs.len() {
		i := rs.at(k)
		x := data[off[i]:off[i+1]]
		n, isNew := c.dict.number(x)
		if isNew {
			c.stats.addBytes(x)
		}
		c.indexes = append(c.indexes, n)
	}
}

// sample numbers values that are in buf already, until it is clear whether the
// chunk shall use its dictionary.
func (c *chunkWriter) sample(v *types.Vector, rs rows) {
	for k := range rs.len() {
		x := v.Bytes(rs.at(k))
		n, _ := c.dict.number(x)
		c.indexes = append(c.indexes, n)
		c.sampled += len(x) + 4
		if len(c.indexes) != dictProbe && len(c.indexes) != dictSample && !c.dict.full() {
			continue
		}
		switch c.dict.judge(len(c.indexes), c.sampled, false) {
		case sampleNo:
			c.giveUpDictionary()
			return
		case sampleYes:
			c.mode = dictUsed
			c.buf = c.buf[:c.reserved]
			c.addIndexes(v, rs.from0(k+1))
			return
		}
	}
}

func (c *chunkWriter) giveUpDictionary() {
	c.mode = dictNever
	c.indexes = c.indexes[:0]
}

// endPageIfFull ends the page at a row border.
func (c *chunkWriter) endPageIfFull() error {
	full := c.mode == dictUsed && c.dict.full()
	if !full && c.rows < c.set.pageRows && c.pageSize() < c.set.pageBytes {
		return nil
	}
	if err := c.endPage(); err != nil {
		return err
	}
	if full {
		c.giveUpDictionary()
	}
	return nil
}

// endPage finishes the page at hand, if it has rows.
func (c *chunkWriter) endPage() error {
	if c.n == 0 {
		return nil
	}
	if c.mode == dictUndecided {
		if c.dict.judge(len(c.indexes), c.sampled, true) == sampleYes {
			c.mode = dictUsed
			c.buf = c.buf[:c.reserved]
		} else {
			c.giveUpDictionary()
		}
	}
	h := pageHeader{kind: format.DataPage, values: int32(c.n), encoding: c.plainEncoding()}
	if c.mode == dictUsed {
		h.encoding = format.RLEDictionary
		c.dictPages++
	}
	body, err := c.pageBody(h.encoding)
	if err != nil {
		return err
	}
	from := len(c.out)
	if c.out, err = c.appendPage(c.out, &h, body); err != nil {
		return err
	}
	c.pages = append(c.pages, pageLoc{offset: int64(from), size: int32(len(c.out) - from), row: c.groupRows})
	c.raw += int64(len(c.out)-from) - int64(h.packed) + int64(h.raw)
	c.groupRows += int64(c.rows)
	c.values += int64(c.n)
	c.nullCount += int64(c.nulls)
	c.resetPage()
	return nil
}

// pageBody is the page before compression: repetition levels, definition
// levels, values.
func (c *chunkWriter) pageBody(enc format.Encoding) ([]byte, error) {
	if c.leaf.phys == format.Boolean {
		c.buf = c.buf[:c.reserved+len(packBools(c.buf[c.reserved:]))]
	}
	if c.flat() && enc == format.Plain {
		if c.reserved == 0 {
			return c.buf, nil
		}
		c.levels = appendValidity(c.levels[:0], c.n, c.nulls, c.valid)
		from := c.reserved - len(c.levels)
		copy(c.buf[from:], c.levels)
		return c.buf[from:], nil
	}
	b, err := c.body[:0], error(nil)
	if c.leaf.maxRep > 0 {
		if b, err = appendLevels(b, c.rep, c.leaf.maxRep, &c.levels); err != nil {
			return nil, err
		}
	}
	switch {
	case c.flat() && c.leaf.maxDef > 0:
		b = appendValidity(b, c.n, c.nulls, c.valid)
	case c.leaf.maxDef > 0:
		if b, err = appendLevels(b, c.def, c.leaf.maxDef, &c.levels); err != nil {
			return nil, err
		}
	}
	switch enc {
	case format.RLEDictionary:
		b, err = appendIndexes(b, c.indexes, c.dict.len(), &c.levels)
	case format.Plain:
		b = append(b, c.buf[c.reserved:]...)
	default:
		b, err = c.appendDelta(b, enc)
	}
	c.body = b
	return b, err
}

// appendPage appends a page with its header, whose sizes and checksum it sets.
func (c *chunkWriter) appendPage(dst []byte, h *pageHeader, body []byte) ([]byte, error) {
	if len(body) > c.set.maxPage {
		return dst, fmt.Errorf("%w: a row makes a page of %d bytes", ErrTooLarge, len(body))
	}
	packed := body
	if c.set.comp.codec != format.Uncompressed {
		var err error
		if packed, err = c.set.comp.encode(c.packed[:0], body); err != nil {
			return dst, fmt.Errorf("compressing a page: %w", err)
		}
		c.packed = packed
	}
	if len(packed) > c.set.maxPage {
		return dst, fmt.Errorf("%w: a row makes a page of %d bytes", ErrTooLarge, len(packed))
	}
	h.raw, h.packed, h.crc = int32(len(body)), int32(len(packed)), crc32.ChecksumIEEE(packed)
	return append(h.append(dst), packed...), nil
}

// finish ends the chunk and returns its dictionary page (nil if it has none;
// valid until c is used again) and its metadata with offsets relative to the chunk.
func (c *chunkWriter) finish() (dictPage []byte, m columnMetaData, err error) {
	if err := c.endPage(); err != nil {
		return nil, m, err
	}
	m = columnMetaData{
		Type:         c.leaf.phys,
		Encoding:     thrift.Slice[format.Encoding]{format.Plain, format.RLE},
		PathInSchema: c.leaf.path,
		Codec:        c.set.comp.codec,
		NumValues:    c.values,
	}
	raw := c.raw
	if c.dictPages > 0 {
		h := pageHeader{kind: format.DictionaryPage, values: int32(c.dict.len()), encoding: format.Plain}
		if dictPage, err = c.appendPage(c.body[:0], &h, c.dict.plain); err != nil {
			return nil, m, err
		}
		c.body = dictPage
		raw += int64(len(dictPage)) - int64(h.packed) + int64(h.raw)
		m.Encoding = append(m.Encoding, format.RLEDictionary)
		m.EncodingStats = append(m.EncodingStats,
			format.PageEncodingStats{PageType: format.DictionaryPage, Encoding: format.Plain, Count: 1},
			format.PageEncodingStats{PageType: format.DataPage, Encoding: format.RLEDictionary, Count: int32(c.dictPages)})
	}
	if plain := len(c.pages) - c.dictPages; plain > 0 {
		enc := c.plainEncoding()
		if enc != format.Plain {
			m.Encoding = append(m.Encoding, enc)
		}
		m.EncodingStats = append(m.EncodingStats,
			format.PageEncodingStats{PageType: format.DataPage, Encoding: enc, Count: int32(plain)})
	}
	m.TotalUncompressedSize = raw
	m.TotalCompressedSize = int64(len(dictPage) + len(c.out))
	m.DataPageOffset = int64(len(dictPage))
	m.Statistics = c.statistics()
	return dictPage, m, nil
}

// statistics are the chunk's footer statistics.
func (c *chunkWriter) statistics() statistics {
	s := statistics{NullCount: thrift.New(c.nullCount)}
	if !c.stats.known() || len(c.stats.blo)+len(c.stats.bhi) >= maxStatBytes {
		return s
	}
	s.MinValue, s.MaxValue = c.leaf.statBytes(&c.stats)
	if c.leaf.hasOldStats() {
		s.Min, s.Max = s.MinValue, s.MaxValue
	}
	return s
}
