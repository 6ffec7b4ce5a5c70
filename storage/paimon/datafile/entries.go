package datafile

import (
	"fmt"
	"io"
	"math"

	"applier/storage/types"
)

// levelAhead is how many levels of a nested column are decoded at once.
const levelAhead = 4096

// readFlat appends the next n rows of a flat column to v.
func (c *chunkReader) readFlat(v *types.Vector, n int) error {
	for n > 0 {
		if c.left == 0 {
			if err := c.mustPage(); err != nil {
				return err
			}
		}
		k := min(n, c.left)
		if err := c.flatPart(v, k); err != nil {
			return c.fail(err)
		}
		n -= k
		c.left -= k
	}
	return nil
}

// mustPage loads a page that must be there.
func (c *chunkReader) mustPage() error {
	err := c.nextPage()
	if err == io.EOF {
		return c.fail(fmt.Errorf("%w: the chunk has fewer rows than its row group", ErrCorrupt))
	}
	return err
}

// flatPart appends k rows of the page at hand.
func (c *chunkReader) flatPart(v *types.Vector, k int) error {
	if c.p.maxDef == 0 || c.def.constant(k, 1) {
		return c.dense(v, k)
	}
	m, err := c.flatLevels(k)
	if err != nil {
		return err
	}
	base := v.Len()
	if err := c.dense(v, m); err != nil {
		return err
	}
	spread(v, base, c.ldef, 1)
	return nil
}

// flatLevels reads k levels into c.ldef and counts the values.
func (c *chunkReader) flatLevels(k int) (values int, err error) {
	c.ldef = extendTo(c.ldef, k)
	if err := hybridRead(&c.def, c.ldef); err != nil {
		return 0, err
	}
	for _, d := range c.ldef {
		if d > 1 {
			return 0, fmt.Errorf("%w: level %d of 1", ErrCorrupt, d)
		}
		values += int(d)
	}
	return values, nil
}

// skipFlat drops the next n rows of a flat column; whole pages are not even
// decompressed.
func (c *chunkReader) skipFlat(n int64) error {
	for n > 0 {
		if c.left == 0 {
			skipped, err := c.skipPage(n)
			if err != nil {
				return err
			}
			n -= skipped
			continue
		}
		k := int(min(n, int64(c.left), levelAhead))
		m := k
		if c.p.maxDef > 0 && !c.def.constant(k, 1) {
			var err error
			if m, err = c.flatLevels(k); err != nil {
				return c.fail(err)
			}
		}
		if err := c.skipValues(m); err != nil {
			return c.fail(err)
		}
		c.left -= k
		n -= int64(k)
	}
	return nil
}

// skipPage skips the next page if it has at most n rows, else loads it.
func (c *chunkReader) skipPage(n int64) (int64, error) {
	if c.unread == 0 {
		return 0, c.mustPage()
	}
	if err := c.header(); err != nil {
		return 0, err
	}
	if !c.h.isData() || int64(c.h.values) > n {
		return 0, c.mustPage()
	}
	c.have = false
	c.src.skip(int(c.h.packed))
	c.unread -= int64(c.h.values)
	return int64(c.h.values), nil
}

// levels are the entries of some rows of a nested leaf.
type levels struct {
	rep, def []uint8
}

func (l *levels) memBytes() int64 { return int64(cap(l.rep) + cap(l.def)) }

func (l *levels) reset() { l.rep, l.def = l.rep[:0], l.def[:0] }

// maxBatchEntries bounds the entries of a nested column that are assembled at
// once: a run of levels costs a file nothing, so a small one can claim any number.
const maxBatchEntries = 1 << 24

// readRows appends the next n rows of a nested column: the levels to lv, the
// values and NULLs to v. Without v the rows are dropped.
func (c *chunkReader) readRows(lv *levels, v *types.Vector, n int) error {
	started := 0
	for {
		if c.lpos == len(c.ldef) {
			done, err := c.aheadLevels(started == n)
			if err != nil || done {
				return err
			}
		}
		from := c.lpos
		for ; c.lpos < len(c.ldef); c.lpos++ {
			if c.lrep[c.lpos] == 0 {
				if started == n {
					break
				}
				started++
			} else if started == 0 {
				return c.fail(fmt.Errorf("%w: a page starts inside of a row", ErrCorrupt))
			}
		}
		if err := c.take(lv, v, from, c.lpos); err != nil {
			return c.fail(err)
		}
		if c.lpos < len(c.ldef) {
			return nil
		}
	}
}

// aheadLevels decodes more levels. If enough rows have started, done says that
// the last of them is complete.
func (c *chunkReader) aheadLevels(enough bool) (done bool, err error) {
	if c.left == 0 {
		if enough && (c.aligned || c.unread == 0) {
			return true, nil
		}
		if err := c.mustPage(); err != nil {
			return false, err
		}
	}
	k := min(c.left, levelAhead)
	c.ldef, c.lrep, c.lpos = extendTo(c.ldef, k), extendTo(c.lrep, k), 0
	if err := readLevels(&c.def, c.ldef, c.p.maxDef); err != nil {
		return false, c.fail(err)
	}
	if err := readLevels(&c.rep, c.lrep, c.p.maxRep); err != nil {
		return false, c.fail(err)
	}
	c.left -= k
	return false, nil
}

func readLevels(h *hybrid, dst []uint8, top uint8) error {
	if top == 0 {
		clear(dst)
		return nil
	}
	if err := hybridRead(h, dst); err != nil {
		return err
	}
	for _, l := range dst {
		if l > top {
			return fmt.Errorf("%w: level %d of %d", ErrCorrupt, l, top)
		}
	}
	return nil
}

// take consumes the entries [from, to) of the levels ahead.
func (c *chunkReader) take(lv *levels, v *types.Vector, from, to int) error {
	def := c.ldef[from:to]
	m := 0
	for _, d := range def {
		if d == c.p.maxDef {
			m++
		}
	}
	if v == nil {
		return c.skipValues(m)
	}
	if len(lv.def)+len(def) > c.f.maxEntries {
		return fmt.Errorf("%w: more than %d values of a nested column in one batch", ErrTooLarge, c.f.maxEntries)
	}
	lv.def = append(lv.def, def...)
	lv.rep = append(lv.rep, c.lrep[from:to]...)
	base := v.Len()
	if err := c.dense(v, m); err != nil {
		return err
	}
	if m == len(def) {
		return nil
	}
	slots := def
	if c.p.slotDef > 0 { // entries of empty and NULL lists are no rows of the leaf
		slots = def[:0]
		for _, d := range def {
			if d >= c.p.slotDef {
				slots = append(slots, d)
			}
		}
	}
	spread(v, base, slots, c.p.maxDef)
	return nil
}

// seekPage goes to a data page of the offset index.
func (c *chunkReader) seekPage(p pageLoc, end int64) {
	c.src.seek(p.offset, end)
	c.left, c.have, c.lpos = 0, false, 0
	c.ldef, c.lrep = c.ldef[:0], c.lrep[:0]
	c.unread = math.MaxInt64
	c.aligned = true // an index has pages that start with a row
}
