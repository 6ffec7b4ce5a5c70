package fileindex

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf16"
	"unicode/utf8"
)

// The container: a head that says where each column's indexes lie, then their bodies
// (source: FileIndexFormat). All numbers are big-endian.
const (
	magic   = 1493475289347502
	version = 1
	// absent is the start of an index that holds nothing.
	absent = -1
)

// Column is one column's filter.
type Column struct {
	Name  string
	Bloom *Bloom
}

// Encode returns the file index of a data file; the columns have different names.
func Encode(columns []Column) ([]byte, error) {
	head := 8 + 4 + 4 + 4
	var names [][]byte
	for _, c := range columns {
		name := modifiedUTF8(c.Name)
		if len(name) > math.MaxUint16 {
			return nil, fmt.Errorf("file index: the name of a column has %d bytes", len(name))
		}
		names = append(names, name)
		head += 2 + len(name) + 4 + 2 + len(BloomType) + 4 + 4
	}
	head += 4
	b := binary.BigEndian.AppendUint64(nil, magic)
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(head))
	b = binary.BigEndian.AppendUint32(b, uint32(len(columns)))
	at := int64(head)
	for i, c := range columns {
		b = appendText(b, names[i])
		b = binary.BigEndian.AppendUint32(b, 1)
		b = appendText(b, []byte(BloomType))
		size := int64(4 + len(c.Bloom.bits))
		if at+size > math.MaxInt32 {
			return nil, fmt.Errorf("file index: %w: %d bytes in one file", ErrSize, at+size)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(at))
		b = binary.BigEndian.AppendUint32(b, uint32(size))
		at += size
	}
	b = binary.BigEndian.AppendUint32(b, 0) // the length of what later versions may add
	for _, c := range columns {
		b = c.Bloom.append(b)
	}
	return b, nil
}

func appendText(b, text []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
}

// modifiedUTF8 is DataOutput.writeUTF's: NUL in two bytes, characters beyond the basic
// plane as two surrogates of three bytes each.
func modifiedUTF8(s string) []byte {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case r == 0:
			b = append(b, 0xc0, 0x80)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = appendUnit(appendUnit(b, high), low)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// appendUnit encodes a surrogate, which UTF-8 proper does not.
func appendUnit(b []byte, u rune) []byte {
	return append(b, 0xe0|byte(u>>12), 0x80|byte(u>>6)&0x3f, 0x80|byte(u)&0x3f)
}

// Blooms returns the bloom filters of a file index by the modified UTF-8 of their
// columns' names, which for all but odd names is the name. Indexes of other types are
// passed over. The filters keep data.
func Blooms(data []byte) (map[string]*Bloom, error) {
	p := parser{b: data}
	if p.long() != magic || p.int() != version {
		return nil, fmt.Errorf("%w: magic or version", ErrCorrupt)
	}
	p.int() // the head's length
	out := map[string]*Bloom{}
	for range p.count() {
		name := p.text()
		for range p.count() {
			kind, start, size := p.text(), p.int(), p.int()
			if p.bad || kind != BloomType || start == absent {
				continue
			}
			if start < 0 || size < 0 || int64(start)+int64(size) > int64(len(data)) {
				return nil, fmt.Errorf("%w: a body of %d bytes at %d in %d", ErrCorrupt, size, start, len(data))
			}
			b, err := ParseBloom(data[start : start+size])
			if err != nil {
				return nil, err
			}
			out[name] = b
		}
	}
	if p.bad {
		return nil, fmt.Errorf("%w: its head ends early", ErrCorrupt)
	}
	return out, nil
}

// parser reads a head; bad is set when it ends early, and what is read then is zero.
type parser struct {
	b   []byte
	bad bool
}

func (p *parser) take(n int) []byte {
	if p.bad || n > len(p.b) {
		p.bad = true
		return make([]byte, 8)[:min(n, 8)]
	}
	out := p.b[:n]
	p.b = p.b[n:]
	return out
}

func (p *parser) long() int64 { return int64(binary.BigEndian.Uint64(p.take(8))) }
func (p *parser) int() int    { return int(int32(binary.BigEndian.Uint32(p.take(4)))) }

// count is the number of things that follow, each of which takes bytes.
func (p *parser) count() int {
	n := p.int()
	if n < 0 || n > len(p.b) {
		p.bad = true
		return 0
	}
	return n
}

func (p *parser) text() string {
	n := int(binary.BigEndian.Uint16(p.take(2)))
	if p.bad || n > len(p.b) {
		p.bad = true
		return ""
	}
	return string(p.take(n))
}
