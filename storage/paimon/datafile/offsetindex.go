package datafile

import (
	"encoding/binary"
	"fmt"
)

// pageLoc says where a data page is and which row of its row group it starts with.
type pageLoc struct {
	offset int64 // of the header; absolute in a file, in the chunk while it is built
	size   int32 // with the header
	row    int64
}

// appendOffsetIndex writes a format.OffsetIndex.
func appendOffsetIndex(dst []byte, pages []pageLoc, base int64) []byte {
	dst = append(dst, 1<<4|ctList)
	if len(pages) < 15 {
		dst = append(dst, byte(len(pages))<<4|ctStruct)
	} else {
		dst = binary.AppendUvarint(append(dst, 15<<4|ctStruct), uint64(len(pages)))
	}
	for _, p := range pages {
		dst = binary.AppendVarint(append(dst, 1<<4|ctI64), base+p.offset)
		dst = appendI32(dst, 1, p.size)
		dst = binary.AppendVarint(append(dst, 1<<4|ctI64), p.row)
		dst = append(dst, ctStop)
	}
	return append(dst, ctStop)
}

// decodeOffsetIndex reads a format.OffsetIndex. The caller checks the values.
func decodeOffsetIndex(b []byte) ([]pageLoc, error) {
	c := &compactReader{b: b}
	var pages []pageLoc
	for id := 0; ; {
		next, typ, err := c.field(id)
		if err != nil {
			return nil, err
		}
		if typ == ctStop {
			return pages, nil
		}
		id = next
		switch {
		case id == 1 && typ == ctList && pages == nil:
			pages, err = c.pageLocs()
		case typ == ctTrue || typ == ctFalse:
		default:
			err = c.walk(typ, 1)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (c *compactReader) pageLocs() ([]pageLoc, error) {
	n, elem, err := c.listHeader()
	if err != nil {
		return nil, err
	}
	if elem != ctStruct || n > uint64(len(c.b)-c.p)/4 {
		return nil, fmt.Errorf("%w: %d page locations", errThrift, n)
	}
	pages := make([]pageLoc, n)
	for i := range pages {
		if pages[i], err = c.pageLoc(); err != nil {
			return nil, err
		}
	}
	return pages, nil
}

func (c *compactReader) pageLoc() (p pageLoc, err error) {
	for id := 0; ; {
		next, typ, err := c.field(id)
		if err != nil || typ == ctStop {
			return p, err
		}
		id = next
		switch {
		case id == 1 && typ == ctI64:
			p.offset, err = c.varint()
		case id == 2 && typ == ctI32:
			p.size, err = c.i32()
		case id == 3 && typ == ctI64:
			p.row, err = c.varint()
		case typ == ctTrue || typ == ctFalse:
		default:
			err = c.walk(typ, 2)
		}
		if err != nil {
			return p, err
		}
	}
}
