package datafile

import (
	"fmt"

	"applier/storage/types"
)

// A shred step takes rows until it has about this many bytes or rows, then
// pages may end.
const (
	shredBytes = 64 << 10
	shredRows  = 1024
)

// column writes one top-level column of the table.
type column struct {
	node   *node
	leaves []*chunkWriter
	vecs   []*types.Vector // nested: the vector of each leaf
	file   bounds          // over all row groups
	nulls  int64           // rows that are NULL, over all row groups
	group  int64           // the same in this row group, not yet in nulls
}

func newColumn(n *node, leaves []leaf, set *settings) *column {
	c := &column{node: n}
	for i := n.leafLo; i < n.leafHi; i++ {
		c.leaves = append(c.leaves, newChunkWriter(&leaves[i], set))
	}
	c.vecs = make([]*types.Vector, len(c.leaves))
	c.file.layout = types.LayoutOf(n.t)
	return c
}

// nested reports a column that is no scalar.
func (c *column) nested() bool { return !c.leaves[0].flat() }

// add writes rows of the column's vector.
func (c *column) add(v *types.Vector, rs rows) error {
	nulls := countNulls(v, rs)
	if nulls > 0 && !c.node.optional {
		return fmt.Errorf("%w: column %s %s", ErrNotNull, c.node.name, c.node.t)
	}
	c.group += int64(nulls)
	var err error
	if c.nested() {
		err = c.addNested(v, rs)
	} else {
		err = c.leaves[0].addFlat(v, rs)
	}
	if err != nil {
		return fmt.Errorf("column %s: %w", c.node.name, err)
	}
	return nil
}

func countNulls(v *types.Vector, rs rows) int {
	if !v.Nulls.Any() {
		return 0
	}
	if rs.sel == nil {
		return v.Nulls.CountRange(rs.from, rs.to)
	}
	n := 0
	for _, i := range rs.sel {
		if v.Nulls.Get(int(i)) {
			n++
		}
	}
	return n
}

// bind finds the vector of every leaf.
func (c *column) bind(n *node, v *types.Vector) {
	if len(n.kids) == 0 {
		c.vecs[n.leafLo-c.node.leafLo] = v
	}
	for k, kid := range n.kids {
		c.bind(kid, v.Child[k])
	}
}

// addNested turns rows into levels and values, some rows at a time.
func (c *column) addNested(v *types.Vector, rs rows) error {
	c.bind(c.node, v)
	for rs.len() > 0 {
		step := c.step(v, rs)
		for _, w := range c.leaves {
			w.sel = w.sel[:0]
		}
		for k := range step.len() {
			if err := c.shred(c.node, v, step.at(k), 0); err != nil {
				return err
			}
		}
		for k, w := range c.leaves {
			if err := w.addShredded(c.vecs[k], step.len()); err != nil {
				return fmt.Errorf("%v: %w", w.leaf.path, err)
			}
		}
		rs = rs.from0(step.len())
	}
	return nil
}

// step is the start of rs to shred at once, at least one row.
func (c *column) step(v *types.Vector, rs rows) rows {
	n, size := 0, 0
	for n < min(rs.len(), shredRows) && size < shredBytes {
		i := rs.at(n)
		size += rangeBytes(v, i, i+1)
		n++
	}
	return rs.head(n)
}

// rangeBytes is about what rows [from, to) take in pages.
func rangeBytes(v *types.Vector, from, to int) int {
	n := to - from
	switch v.Layout {
	case types.LayoutBytes:
		return int(v.Off[to]-v.Off[from]) + 4*n
	case types.LayoutList, types.LayoutMap:
		from, to = int(v.Off[from]), int(v.Off[to])
	case types.LayoutStruct:
	default:
		return 8 * n
	}
	for _, k := range v.Child {
		n += rangeBytes(k, from, to)
	}
	return n
}

// shred appends the levels of row i of v, a part of the column, to the leaves
// below n, and the rows that have a value to their sel. rep is the repetition
// level of the first entry. Source: Dremel's column striping.
func (c *column) shred(n *node, v *types.Vector, i int, rep uint8) error {
	if v.Nulls.Get(i) {
		if !n.optional {
			return fmt.Errorf("%w: %s %s", ErrNotNull, n.name, n.t)
		}
		c.absent(n, rep, n.def-1)
		return nil
	}
	switch v.Layout {
	case types.LayoutStruct:
		for k, kid := range n.kids {
			if err := c.shred(kid, v.Child[k], i, rep); err != nil {
				return err
			}
		}
	case types.LayoutList, types.LayoutMap:
		from, to := int(v.Off[i]), int(v.Off[i+1])
		if from == to {
			c.absent(n, rep, n.def)
		}
		for j := from; j < to; j++ {
			for k, kid := range n.kids {
				if err := c.shred(kid, v.Child[k], j, rep); err != nil {
					return err
				}
			}
			rep = n.rep
		}
	default:
		w := c.leaves[n.leafLo-c.node.leafLo]
		w.push(rep, n.def)
		w.sel = append(w.sel, uint32(i))
	}
	return nil
}

// absent appends an entry without value to every leaf below n.
func (c *column) absent(n *node, rep, def uint8) {
	for k := n.leafLo; k < n.leafHi; k++ {
		w := c.leaves[k-c.node.leafLo]
		w.push(rep, def)
		w.nulls++
	}
}

func (w *chunkWriter) push(rep, def uint8) {
	if w.leaf.maxRep > 0 {
		w.rep = append(w.rep, rep)
	}
	w.def = append(w.def, def)
	w.n++
}

// addShredded adds the values of n shredded rows, whose levels are there.
func (w *chunkWriter) addShredded(v *types.Vector, n int) error {
	if len(w.sel) > 0 {
		if err := w.addValues(v, rows{sel: w.sel}); err != nil {
			return err
		}
	}
	w.rows += n
	return w.endPageIfFull()
}

// endGroup takes the row group's statistics into the file's.
func (c *column) endGroup() {
	c.nulls += c.group
	c.group = 0
	if !c.nested() {
		c.file.merge(&c.leaves[0].stats)
	}
	for _, w := range c.leaves {
		w.reset()
	}
}

// reset forgets everything and gives back large buffers if told to.
func (c *column) reset(shrink bool) {
	if shrink {
		c.file.shrink()
	}
	c.file.reset()
	c.nulls, c.group = 0, 0
	for _, w := range c.leaves {
		if shrink {
			w.shrink()
		}
		w.reset()
	}
}

// rawSize is the raw size of the column's finished pages and pages at hand.
func (c *column) rawSize() int64 {
	var n int64
	for _, w := range c.leaves {
		n += w.raw + int64(w.pageSize())
	}
	return n
}

// stats are the column's statistics over the file.
func (c *column) stats() ColumnStats {
	s := ColumnStats{NullCount: c.nulls}
	if !c.nested() && c.file.known() {
		s.HasBounds = true
		s.Min, s.Max = c.file.datums()
	}
	return s
}

// fits reports whether v has the layout of n all the way down.
func (n *node) fits(v *types.Vector) bool {
	if v.Layout != types.LayoutOf(n.t) || len(v.Child) != len(n.kids) {
		return false
	}
	for k, kid := range n.kids {
		if !kid.fits(v.Child[k]) {
			return false
		}
	}
	return true
}
