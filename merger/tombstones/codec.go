package tombstones

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// errCorrupt: an object is not what this package wrote.
var errCorrupt = errors.New("damaged")

const (
	magic      = "APTB\x01"
	blockBytes = 64 << 10 // a block is closed when it has so many bytes
	frameBytes = 8        // length and crc

	kindHeader  = 'h'
	kindEntries = 'e'
	kindEnd     = 'z'

	objectDelta = "delta"
	objectBase  = "base"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the first block of an object.
type header struct {
	Kind   string `json:"kind"`             // delta or base
	ID     string `json:"id"`               // transaction of the commit it goes with
	Parent string `json:"parent,omitempty"` // of a delta: id of the object it follows, "" for an empty set
	Layout string `json:"layout"`           // what keys and orders mean
	At     int64  `json:"at"`               // milliseconds that entries count from
}

// encoder writes an object to w.
type encoder struct {
	w       io.Writer
	crc     uint32
	block   []byte
	at      int64
	entries uint64
	bytes   int64
}

// newEncoder writes magic and header.
func newEncoder(w io.Writer, h header) (*encoder, error) {
	e := &encoder{w: w, at: h.At}
	if err := e.write([]byte(magic)); err != nil {
		return nil, err
	}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	e.block = append(append(e.block, kindHeader), b...)
	return e, e.flush()
}

func (e *encoder) write(b []byte) error {
	n, err := e.w.Write(b)
	e.bytes += int64(n)
	return err
}

// flush writes the open block and starts one of entries.
func (e *encoder) flush() error {
	e.crc = crc32.Update(e.crc, castagnoli, e.block)
	var frame [frameBytes]byte
	binary.LittleEndian.PutUint32(frame[:4], uint32(len(e.block)))
	binary.LittleEndian.PutUint32(frame[4:], e.crc)
	if err := e.write(frame[:]); err != nil {
		return err
	}
	if err := e.write(e.block); err != nil {
		return err
	}
	e.block = append(e.block[:0], kindEntries)
	return nil
}

// add writes one entry.
func (e *encoder) add(key, order []byte, at int64, deleted bool) error {
	flag := uint64(0)
	if deleted {
		flag = 1
	}
	e.block = binary.AppendUvarint(e.block, uint64(len(key))<<1|flag)
	e.block = append(e.block, key...)
	if deleted {
		e.block = binary.AppendUvarint(e.block, uint64(len(order)))
		e.block = append(e.block, order...)
		e.block = binary.AppendVarint(e.block, at-e.at)
	}
	e.entries++
	if len(e.block) < blockBytes {
		return nil
	}
	return e.flush()
}

// end writes the last blocks.
func (e *encoder) end() error {
	if len(e.block) > 1 {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.block = binary.LittleEndian.AppendUint64(append(e.block[:0], kindEnd), e.entries)
	return e.flush()
}

// encodeDelta returns a delta's object.
func encodeDelta(h header, d *Delta) ([]byte, error) {
	var out bytes.Buffer
	e, err := newEncoder(&out, h)
	if err != nil {
		return nil, err
	}
	d.each(func(key, order []byte, at int64, deleted bool) {
		if err == nil {
			err = e.add(key, order, at, deleted)
		}
	})
	if err == nil {
		err = e.end()
	}
	return out.Bytes(), err
}

// decode reads an object of size bytes and calls fn for its entries, whose slices
// are valid during the call. What fn was told is void if decode returns an error.
// errCorrupt says that the object is not one; other errors are fn's or r's.
func decode(r io.Reader, size int64, check func(header) error, fn func(key, order []byte, at int64, deleted bool) error) error {
	d := decoder{r: r, left: size}
	head := make([]byte, len(magic))
	if err := d.read(head); err != nil {
		return err
	}
	if string(head) != magic {
		return fmt.Errorf("%w: it does not begin as one", errCorrupt)
	}
	block, err := d.next()
	if err != nil {
		return err
	}
	var h header
	if block[0] != kindHeader || json.Unmarshal(block[1:], &h) != nil {
		return fmt.Errorf("%w: no header", errCorrupt)
	}
	if err := check(h); err != nil {
		return err
	}
	for entries := uint64(0); ; {
		block, err := d.next()
		if err != nil {
			return err
		}
		switch {
		case block[0] == kindEntries:
			n, err := decodeEntries(block[1:], h.At, fn)
			if err != nil {
				return err
			}
			entries += n
		case block[0] == kindEnd && len(block) == 9 && binary.LittleEndian.Uint64(block[1:]) == entries && d.left == 0:
			return nil
		default:
			return fmt.Errorf("%w: bad block", errCorrupt)
		}
	}
}

// decoder reads blocks.
type decoder struct {
	r     io.Reader
	left  int64 // bytes of the object not read yet
	crc   uint32
	block []byte
}

func (d *decoder) read(b []byte) error {
	if int64(len(b)) > d.left {
		return fmt.Errorf("%w: cut off", errCorrupt)
	}
	d.left -= int64(len(b))
	_, err := io.ReadFull(d.r, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: cut off", errCorrupt)
	}
	return err
}

// next returns the payload of the next block, at least one byte.
func (d *decoder) next() ([]byte, error) {
	var frame [frameBytes]byte
	if err := d.read(frame[:]); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(frame[:4]))
	if n == 0 || n > d.left {
		return nil, fmt.Errorf("%w: a block of %d bytes where %d are left", errCorrupt, n, d.left)
	}
	if int64(cap(d.block)) < n {
		d.block = make([]byte, n)
	}
	d.block = d.block[:n]
	if err := d.read(d.block); err != nil {
		return nil, err
	}
	d.crc = crc32.Update(d.crc, castagnoli, d.block)
	if d.crc != binary.LittleEndian.Uint32(frame[4:]) {
		return nil, fmt.Errorf("%w: a checksum differs", errCorrupt)
	}
	return d.block, nil
}

// decodeEntries calls fn for the entries of a block and returns their number.
func decodeEntries(b []byte, base int64, fn func(key, order []byte, at int64, deleted bool) error) (n uint64, err error) {
	bad := fmt.Errorf("%w: bad entry", errCorrupt)
	take := func(size uint64) ([]byte, bool) {
		if size > uint64(len(b)) {
			return nil, false
		}
		out := b[:size:size]
		b = b[size:]
		return out, true
	}
	number := func() (uint64, bool) {
		x, w := binary.Uvarint(b)
		if w <= 0 {
			return 0, false
		}
		b = b[w:]
		return x, true
	}
	for ; len(b) > 0; n++ {
		head, ok := number()
		if !ok {
			return n, bad
		}
		key, ok := take(head >> 1)
		if !ok {
			return n, bad
		}
		if head&1 == 0 {
			if err := fn(key, nil, 0, false); err != nil {
				return n, err
			}
			continue
		}
		size, ok := number()
		if !ok {
			return n, bad
		}
		order, ok := take(size)
		if !ok {
			return n, bad
		}
		at, w := binary.Varint(b)
		if w <= 0 {
			return n, bad
		}
		b = b[w:]
		if err := fn(key, order, base+at, true); err != nil {
			return n, err
		}
	}
	return n, nil
}
