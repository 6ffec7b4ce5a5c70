package dv

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Constants of the portable roaring format (RoaringFormatSpec).
const (
	cookieNoRuns = 12346
	cookieRuns   = 12347
	noOffsets    = 4    // with runs, offsets are left out below this many containers
	arrayMax     = 4096 // more values than these are a bitset
	bitsetBytes  = 8192
)

// checkBitmap verifies that b is exactly one well-formed serialised bitmap: keys
// and values ascending, counts right, nothing missing, nothing behind. The
// library does not look while reading, and its Validate needs quadratic time in
// the number of runs; the work here is linear in b.
func checkBitmap(b []byte) error {
	c := cursor{b: b}
	containers, runs := c.header()
	heads := c.next(4 * containers)
	if runs == nil || containers >= noOffsets {
		c.next(4 * containers)
	}
	last := -1
	for i := 0; i < containers && !c.bad; i++ {
		key := int(binary.LittleEndian.Uint16(heads[4*i:]))
		want := int(binary.LittleEndian.Uint16(heads[4*i+2:])) + 1
		c.bad = c.bad || key <= last
		last = key
		switch {
		case runs != nil && runs[i/8]>>(i%8)&1 != 0:
			c.runs(want)
		case want > arrayMax:
			c.bitset(want)
		default:
			c.array(want)
		}
	}
	if c.bad || len(c.b) > 0 {
		return fmt.Errorf("%w: malformed bitmap of %d bytes", ErrCorrupt, len(b))
	}
	return nil
}

// cursor walks over a serialised bitmap; bad is set at the first surprise.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) next(n int) []byte {
	if c.bad || n > len(c.b) {
		c.bad = true
		return nil
	}
	p := c.b[:n]
	c.b = c.b[n:]
	return p
}

// header returns the number of containers and, if there may be any, which of
// them hold runs.
func (c *cursor) header() (containers int, runs []byte) {
	p := c.next(4)
	if c.bad {
		return 0, nil
	}
	switch cookie := binary.LittleEndian.Uint32(p); {
	case cookie == cookieNoRuns:
		if p = c.next(4); !c.bad {
			n := binary.LittleEndian.Uint32(p)
			c.bad = n > 1<<16
			containers = int(n)
		}
	case cookie&0xffff == cookieRuns:
		containers = int(cookie>>16) + 1
		runs = c.next((containers + 7) / 8)
	default:
		c.bad = true
	}
	if c.bad {
		return 0, nil
	}
	return containers, runs
}

// array checks a container of ascending values.
func (c *cursor) array(want int) {
	p := c.next(2 * want)
	last := -1
	for ; len(p) > 0; p = p[2:] {
		v := int(binary.LittleEndian.Uint16(p))
		c.bad = c.bad || v <= last
		last = v
	}
}

func (c *cursor) bitset(want int) {
	n := 0
	for p := c.next(bitsetBytes); len(p) > 0; p = p[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(p))
	}
	c.bad = c.bad || n != want
}

// runs checks a container of runs: start and length-1, apart from each other.
func (c *cursor) runs(want int) {
	p := c.next(2)
	if c.bad {
		return
	}
	n, next := 0, 0
	for p = c.next(4 * int(binary.LittleEndian.Uint16(p))); len(p) > 0; p = p[4:] {
		start, more := int(binary.LittleEndian.Uint16(p)), int(binary.LittleEndian.Uint16(p[2:]))
		c.bad = c.bad || start < next || start+more > 0xffff
		n += more + 1
		next = start + more + 2 // a run that touched the last one would be part of it
	}
	c.bad = c.bad || n != want
}
