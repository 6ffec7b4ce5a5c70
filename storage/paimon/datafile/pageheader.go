package datafile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// pageHeader is the part of format.PageHeader that matters.
type pageHeader struct {
	kind         format.PageType
	raw, packed  int32 // bytes before and after compression
	crc          uint32
	hasCRC       bool
	values       int32
	encoding     format.Encoding
	defEnc       format.Encoding
	repEnc       format.Encoding
	rows         int32 // V2
	defLen       int32 // V2
	repLen       int32 // V2
	uncompressed bool  // V2
}

// decode reads a header at the start of b and returns its length.
func (h *pageHeader) decode(b []byte) (int, error) {
	*h = pageHeader{raw: -1, packed: -1, values: -1, kind: -1, encoding: -1}
	c := &compactReader{b: b}
	for id := 0; ; {
		next, typ, err := c.field(id)
		if err != nil {
			return 0, err
		}
		if typ == ctStop {
			return c.p, h.check()
		}
		id = next
		var v int32
		switch {
		case typ == ctI32 && id <= 4:
			if v, err = c.i32(); err == nil {
				h.set(id, v)
			}
		case typ == ctStruct && (id == 5 || id == 7 || id == 8):
			err = h.body(c, id)
		case typ == ctTrue || typ == ctFalse:
		default:
			err = c.walk(typ, 1)
		}
		if err != nil {
			return 0, err
		}
	}
}

func (h *pageHeader) set(id int, v int32) {
	switch id {
	case 1:
		h.kind = format.PageType(v)
	case 2:
		h.raw = v
	case 3:
		h.packed = v
	case 4:
		h.crc, h.hasCRC = uint32(v), true
	}
}

// body reads the header of a data page V1 (5), dictionary page (7) or data page V2 (8).
func (h *pageHeader) body(c *compactReader, kind int) error {
	for id := 0; ; {
		next, typ, err := c.field(id)
		if err != nil {
			return err
		}
		if typ == ctStop {
			return nil
		}
		id = next
		var v int32
		switch typ {
		case ctI32:
			if v, err = c.i32(); err == nil {
				h.setBody(kind, id, v)
			}
		case ctTrue:
		case ctFalse:
			h.uncompressed = h.uncompressed || kind == 8 && id == 7
		default:
			err = c.walk(typ, 2)
		}
		if err != nil {
			return err
		}
	}
}

func (h *pageHeader) setBody(kind, id int, v int32) {
	switch kind*10 + id {
	case 51, 71, 81:
		h.values = v
	case 52, 72, 84:
		h.encoding = format.Encoding(v)
	case 53:
		h.defEnc = format.Encoding(v)
	case 54:
		h.repEnc = format.Encoding(v)
	case 83:
		h.rows = v
	case 85:
		h.defLen = v
	case 86:
		h.repLen = v
	}
}

func (h *pageHeader) isData() bool { return h.kind == format.DataPage || h.kind == format.DataPageV2 }

func (h *pageHeader) check() error {
	switch {
	case h.raw < 0 || h.packed < 0:
		return fmt.Errorf("%w: page of %d bytes, %d uncompressed", errThrift, h.packed, h.raw)
	case h.kind == format.IndexPage:
		return nil
	case h.kind != format.DataPage && h.kind != format.DictionaryPage && h.kind != format.DataPageV2:
		return fmt.Errorf("%w: page type %d", errThrift, h.kind)
	case h.values < 0:
		return fmt.Errorf("%w: page of %d values", errThrift, h.values)
	case h.rows < 0 || h.defLen < 0 || h.repLen < 0 || int64(h.defLen)+int64(h.repLen) > int64(min(h.packed, h.raw)):
		return fmt.Errorf("%w: page of %d rows with %d+%d bytes of levels", errThrift, h.rows, h.repLen, h.defLen)
	}
	return nil
}

func appendI32(dst []byte, delta byte, v int32) []byte {
	return binary.AppendVarint(append(dst, delta<<4|ctI32), int64(v))
}

// append writes the header of a V1 data page or a dictionary page.
func (h *pageHeader) append(dst []byte) []byte {
	dst = appendI32(dst, 1, int32(h.kind))
	dst = appendI32(dst, 1, h.raw)
	dst = appendI32(dst, 1, h.packed)
	dst = appendI32(dst, 1, int32(h.crc))
	if h.kind == format.DictionaryPage {
		dst = append(dst, 3<<4|ctStruct)
		dst = appendI32(dst, 1, h.values)
		dst = appendI32(dst, 1, int32(h.encoding))
		return append(dst, ctStop, ctStop)
	}
	dst = append(dst, 1<<4|ctStruct)
	dst = appendI32(dst, 1, h.values)
	dst = appendI32(dst, 1, int32(h.encoding))
	dst = appendI32(dst, 1, int32(format.RLE))
	dst = appendI32(dst, 1, int32(format.RLE))
	return append(dst, ctStop, ctStop)
}
