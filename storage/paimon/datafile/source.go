package datafile

import (
	"fmt"
	"io"
	"sync"
)

// Buffers holds decompression state and page buffers that Files share, so that
// opening many small files does not allocate them again. Safe for concurrent use.
type Buffers struct {
	dec  *decompressor
	pool sync.Pool // *[]byte
}

// NewBuffers returns an empty set of buffers.
func NewBuffers() (*Buffers, error) {
	dec, err := newDecompressor()
	if err != nil {
		return nil, err
	}
	return &Buffers{dec: dec}, nil
}

// maxPooled is the largest buffer that is kept.
const maxPooled = 4 << 20

func (b *Buffers) get() []byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return nil
}

func (b *Buffers) put(s []byte) {
	if cap(s) > 0 && cap(s) <= maxPooled {
		b.pool.Put(&s)
	}
}

// source reads a range of a file forwards through a window.
type source struct {
	r     io.ReaderAt
	buf   []byte // the window
	pos   int    // cursor in buf
	off   int64  // of buf[0]
	end   int64  // of the range
	ahead int64  // bytes to read at once
}

// seek moves the cursor to off; reading may go on to end.
func (s *source) seek(off, end int64) {
	s.end = end
	if d := off - s.off; d >= 0 && d <= int64(len(s.buf)) {
		s.pos = int(d)
		return
	}
	s.buf, s.pos, s.off = s.buf[:0], 0, off
}

// at is the offset of the cursor.
func (s *source) at() int64 { return s.off + int64(s.pos) }

// left is how many bytes are left of the range.
func (s *source) left() int64 { return s.end - s.at() }

// skip moves the cursor without reading.
func (s *source) skip(n int) { s.seek(s.at()+int64(n), s.end) }

// peek returns the next n bytes, valid until the next call.
func (s *source) peek(n int) ([]byte, error) {
	if have := len(s.buf) - s.pos; have < n {
		if int64(n) > s.left() {
			return nil, fmt.Errorf("%w: %d bytes wanted at %d, %d left", ErrCorrupt, n, s.at(), s.left())
		}
		want := int(min(max(int64(n), s.ahead), s.left()))
		old := s.buf[s.pos:]
		s.off += int64(s.pos)
		s.pos = 0
		if cap(s.buf) < want {
			s.buf = make([]byte, want)
		}
		s.buf = s.buf[:want]
		copy(s.buf, old)
		if err := readFull(s.r, s.buf[have:], s.off+int64(have)); err != nil {
			s.buf = s.buf[:have]
			return nil, fmt.Errorf("reading %d bytes at %d: %w", want-have, s.off+int64(have), err)
		}
	}
	return s.buf[s.pos : s.pos+n], nil
}

// region is a reader that has a part of the file in memory.
type region struct {
	r   io.ReaderAt
	buf []byte
	off int64 // of buf[0]
}

// load reads the part from off to end, into buf's memory if it is large enough.
func (g *region) load(end int64) error {
	g.buf = extendTo(g.buf, int(end-g.off))
	return readFull(g.r, g.buf, g.off)
}

// ReadAt implements io.ReaderAt.
func (g *region) ReadAt(b []byte, off int64) (int, error) {
	if d := off - g.off; d >= 0 && d+int64(len(b)) <= int64(len(g.buf)) {
		return copy(b, g.buf[d:]), nil
	}
	return g.r.ReadAt(b, off)
}
