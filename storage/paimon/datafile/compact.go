package datafile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Page headers and offset indexes are read and written here, without
// reflection: there is one per page. Footers go through encoding/thrift, after
// checkFooter has proven that its list sizes and depth are honest.
// Source: Thrift compact protocol specification; parquet.thrift.

// Element and field types of the compact protocol.
const (
	ctStop   = 0
	ctTrue   = 1
	ctFalse  = 2
	ctByte   = 3
	ctI16    = 4
	ctI32    = 5
	ctI64    = 6
	ctDouble = 7
	ctBinary = 8
	ctList   = 9
	ctSet    = 10
	ctMap    = 11
	ctStruct = 12
	ctUUID   = 13
)

const maxThriftDepth = 24

var errThrift = errors.New("malformed thrift")

// compactReader walks compact-protocol bytes. Running out of bytes is
// io.ErrUnexpectedEOF, everything else errThrift.
type compactReader struct {
	b []byte
	p int
}

func (c *compactReader) readByte() (byte, error) {
	if c.p >= len(c.b) {
		return 0, io.ErrUnexpectedEOF
	}
	c.p++
	return c.b[c.p-1], nil
}

func (c *compactReader) uvarint() (uint64, error) {
	v, n := binary.Uvarint(c.b[c.p:])
	if n == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	if n < 0 {
		return 0, fmt.Errorf("%w: varint of more than 64 bits", errThrift)
	}
	c.p += n
	return v, nil
}

func (c *compactReader) varint() (int64, error) {
	u, err := c.uvarint()
	return int64(u>>1) ^ -int64(u&1), err
}

func (c *compactReader) i32() (int32, error) {
	v, err := c.varint()
	if err == nil && v != int64(int32(v)) {
		return 0, fmt.Errorf("%w: %d is no 32-bit integer", errThrift, v)
	}
	return int32(v), err
}

func (c *compactReader) advance(n uint64) error {
	if n > uint64(len(c.b)-c.p) {
		return io.ErrUnexpectedEOF
	}
	c.p += int(n)
	return nil
}

// field reads a field header; typ is ctStop at the end of a struct.
func (c *compactReader) field(last int) (id int, typ byte, err error) {
	h, err := c.readByte()
	if err != nil || h == ctStop {
		return 0, ctStop, err
	}
	if h>>4 != 0 {
		return last + int(h>>4), h & 15, nil
	}
	v, err := c.varint()
	return int(int16(v)), h & 15, err
}

func (c *compactReader) listHeader() (n uint64, elem byte, err error) {
	h, err := c.readByte()
	if err != nil {
		return 0, 0, err
	}
	if h>>4 != 15 {
		return uint64(h >> 4), h & 15, nil
	}
	n, err = c.uvarint()
	return n, h & 15, err
}

// Where checkFooter is in FileMetaData; its lists of structs are the ones whose
// decoded form is much larger than its bytes.
const (
	inOther = iota
	inFile
	inRowGroup
)

// minChunkBytes is less than the smallest ColumnChunk with its required members
// takes. It keeps a hostile footer from announcing chunks by the byte.
const minChunkBytes = 16

// checkFooter walks a whole FileMetaData and proves that every list fits into
// the bytes that are there, and that nesting is bounded, so that decoding it
// allocates in proportion to its size.
func checkFooter(b []byte) error {
	c := &compactReader{b: b}
	if err := c.walkStruct(inFile, 0); err != nil {
		return err
	}
	if c.p != len(b) {
		return fmt.Errorf("%w: %d bytes behind the footer", errThrift, len(b)-c.p)
	}
	return nil
}

func (c *compactReader) walkStruct(where, depth int) error {
	if depth > maxThriftDepth {
		return fmt.Errorf("%w: nested too deep", errThrift)
	}
	for id := 0; ; {
		next, typ, err := c.field(id)
		if err != nil {
			return err
		}
		if typ == ctStop {
			return nil
		}
		id = next
		switch {
		case typ == ctTrue || typ == ctFalse:
		case where == inFile && id == 4 && typ == ctList:
			err = c.walkList(inRowGroup, 1, depth+1)
		case where == inRowGroup && id == 1 && typ == ctList:
			err = c.walkList(inOther, minChunkBytes, depth+1)
		default:
			err = c.walk(typ, depth+1)
		}
		if err != nil {
			return err
		}
	}
}

// walk skips one value.
func (c *compactReader) walk(typ byte, depth int) error {
	if depth > maxThriftDepth {
		return fmt.Errorf("%w: nested too deep", errThrift)
	}
	switch typ {
	case ctTrue, ctFalse, ctByte: // as list elements
		return c.advance(1)
	case ctI16, ctI32, ctI64:
		_, err := c.uvarint()
		return err
	case ctDouble:
		return c.advance(8)
	case ctUUID:
		return c.advance(16)
	case ctBinary:
		n, err := c.uvarint()
		if err != nil {
			return err
		}
		return c.advance(n)
	case ctList, ctSet:
		return c.walkList(inOther, 1, depth)
	case ctMap:
		return c.walkMap(depth)
	case ctStruct:
		return c.walkStruct(inOther, depth)
	}
	return fmt.Errorf("%w: type %d", errThrift, typ)
}

func (c *compactReader) walkList(where int, minBytes uint64, depth int) error {
	n, elem, err := c.listHeader()
	if err != nil {
		return err
	}
	if n > uint64(len(c.b)-c.p)/minBytes {
		return io.ErrUnexpectedEOF
	}
	for ; n > 0; n-- {
		if elem == ctStruct {
			err = c.walkStruct(where, depth+1)
		} else {
			err = c.walk(elem, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *compactReader) walkMap(depth int) error {
	n, err := c.uvarint()
	if err != nil || n == 0 {
		return err
	}
	kv, err := c.readByte()
	if err != nil {
		return err
	}
	if n > uint64(len(c.b)-c.p) {
		return io.ErrUnexpectedEOF
	}
	for ; n > 0; n-- {
		if err := c.walk(kv>>4, depth+1); err != nil {
			return err
		}
		if err := c.walk(kv&15, depth+1); err != nil {
			return err
		}
	}
	return nil
}
