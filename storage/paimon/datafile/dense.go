package datafile

import (
	"encoding/binary"
	"fmt"

	"applier/storage/types"
)

// dense appends the next m values to v.
func (c *chunkReader) dense(v *types.Vector, m int) error {
	if c.vals.indexed {
		return c.denseIndexed(v, m)
	}
	switch c.p.conv {
	case convBool:
		return c.denseBools(v, m)
	case convBytes, convDecimal:
		if c.p.width == 0 {
			return c.denseBinary(v, m)
		}
	}
	n := int64(m) * int64(c.p.width)
	if n > int64(len(c.vals.plain)) {
		return tooFew(m)
	}
	if v.Layout == types.LayoutBytes && int64(len(v.Data))+n > maxVectorBytes {
		return errBatch
	}
	b := c.vals.plain[:n]
	c.vals.plain = c.vals.plain[n:]
	return c.p.appendFixed(v, b, m)
}

// maxVectorBytes bounds the bytes of a vector, whose offsets have 32 bits.
const maxVectorBytes = 1 << 31

var errBatch = fmt.Errorf("%w: more than %d bytes in one batch", ErrTooLarge, maxVectorBytes)

func tooFew(m int) error {
	return fmt.Errorf("%w: a page with fewer than its %d values", ErrCorrupt, m)
}

func (c *chunkReader) denseIndexed(v *types.Vector, m int) error {
	c.idx = extendTo(c.idx, m)
	if err := hybridRead(&c.vals.runs, c.idx); err != nil {
		return err
	}
	n := uint32(c.dict.Len())
	for _, i := range c.idx {
		if i >= n {
			return fmt.Errorf("%w: index %d in a dictionary of %d", ErrCorrupt, i, n)
		}
	}
	if len(v.Data)+m*c.longest > maxVectorBytes {
		return errBatch
	}
	v.AppendGather(c.dict, c.idx)
	return nil
}

func extendTo[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (c *chunkReader) denseBools(v *types.Vector, m int) error {
	if c.vals.bools {
		if err := hybridRead(&c.vals.runs, extend(&v.U8, m)); err != nil {
			return err
		}
		v.Grow(v.Len() + m)
		return nil
	}
	if (c.vals.bit+m+7)/8 > len(c.vals.plain) {
		return tooFew(m)
	}
	out := extend(&v.U8, m)
	for i := range out {
		bit := c.vals.bit + i
		out[i] = c.vals.plain[bit>>3] >> (bit & 7) & 1
	}
	c.vals.bit += m
	c.vals.plain, c.vals.bit = c.vals.plain[c.vals.bit>>3:], c.vals.bit&7
	v.Grow(v.Len() + m)
	return nil
}

func (c *chunkReader) denseBinary(v *types.Vector, m int) error {
	b := c.vals.plain
	if len(v.Data)+len(b) > maxVectorBytes {
		return errBatch
	}
	for range m {
		if len(b) < 4 {
			return tooFew(m)
		}
		n := binary.LittleEndian.Uint32(b)
		if b = b[4:]; uint64(n) > uint64(len(b)) {
			return fmt.Errorf("%w: a value of %d bytes with %d left in its page", ErrCorrupt, n, len(b))
		}
		if c.p.conv == convDecimal {
			if err := c.p.appendDecimal(v, b[:n]); err != nil {
				return err
			}
		} else {
			v.AppendBytes(b[:n])
		}
		b = b[n:]
	}
	c.vals.plain = b
	return nil
}

// skipValues drops the next m values.
func (c *chunkReader) skipValues(m int) error {
	if c.vals.indexed || c.vals.bools {
		for m > 0 {
			c.idx = extendTo(c.idx, min(m, 4096))
			if err := hybridRead(&c.vals.runs, c.idx); err != nil {
				return err
			}
			m -= len(c.idx)
		}
		return nil
	}
	b := c.vals.plain
	switch {
	case c.p.conv == convBool:
		bit := c.vals.bit + m
		if (bit+7)/8 > len(b) {
			return tooFew(m)
		}
		c.vals.plain, c.vals.bit = b[bit>>3:], bit&7
		return nil
	case c.p.width > 0:
		if int64(m)*int64(c.p.width) > int64(len(b)) {
			return tooFew(m)
		}
		c.vals.plain = b[m*c.p.width:]
		return nil
	}
	for range m {
		if len(b) < 4 {
			return tooFew(m)
		}
		n := binary.LittleEndian.Uint32(b)
		if uint64(n) > uint64(len(b)-4) {
			return tooFew(m)
		}
		b = b[4+n:]
	}
	c.vals.plain = b
	return nil
}

// spread moves the m dense items at the end of v, from base on, to the rows
// whose level is top, and makes the others NULL. v had base rows before.
func spread(v *types.Vector, base int, levels []uint8, top uint8) {
	n := len(levels)
	m := v.Len() - base
	if m == n {
		return
	}
	switch v.Layout {
	case types.LayoutBool:
		spreadItems(&v.U8, base, m, levels, top)
	case types.LayoutInt32:
		spreadItems(&v.I32, base, m, levels, top)
	case types.LayoutInt64:
		spreadItems(&v.I64, base, m, levels, top)
	case types.LayoutFloat:
		spreadItems(&v.F32, base, m, levels, top)
	case types.LayoutDouble:
		spreadItems(&v.F64, base, m, levels, top)
	case types.LayoutInt128:
		spreadItems(&v.I128, base, m, levels, top)
	case types.LayoutNano:
		spreadItems(&v.I64, base, m, levels, top)
		spreadItems(&v.I32, base, m, levels, top)
	case types.LayoutBytes:
		extend(&v.Off, n-m)
		j := base + m
		for i := n - 1; i >= 0; i-- {
			v.Off[base+i+1] = v.Off[j]
			if levels[i] == top {
				j--
			}
		}
	}
	for i, l := range levels {
		if l != top {
			v.Nulls.Set(base + i)
		}
	}
	v.Grow(base + n)
}

func spreadItems[T any](s *[]T, base, m int, levels []uint8, top uint8) {
	n := len(levels)
	extend(s, n-m)
	items := (*s)[base:]
	var zero T
	j := m - 1
	for i := n - 1; i >= 0; i-- {
		if levels[i] == top {
			items[i] = items[j]
			j--
		} else {
			items[i] = zero
		}
	}
}
