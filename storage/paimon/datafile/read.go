package datafile

import (
	"fmt"
	"math"

	"applier/storage/types"
)

// columnReader reads one wanted column of a row group at its own pace.
type columnReader struct {
	plan   *readColumn
	leaves []*chunkReader
	lv     []levels
	vecs   []*types.Vector // of the leaves
	total  int64           // rows of the row group
	rows   int64           // of which are not read yet
	vec    *types.Vector   // read rows
	from   int             // rows of vec that were handed out
	out    *types.Vector   // a part of vec, when another column is behind

	batchBytes int64 // see ReadOptions
}

func (f *File) newColumnReader(p *readColumn) *columnReader {
	c := &columnReader{plan: p, batchBytes: f.o.BatchBytes, lv: make([]levels, len(p.leaves)), vecs: make([]*types.Vector, len(p.leaves))}
	for _, l := range p.leaves {
		c.leaves = append(c.leaves, &chunkReader{
			f: f, p: l,
			src:   source{buf: f.o.Buffers.get()},
			page:  f.o.Buffers.get(),
			plain: f.o.Buffers.get(),
		})
	}
	return c
}

func (c *columnReader) release(b *Buffers) {
	for _, l := range c.leaves {
		b.put(l.src.buf)
		b.put(l.page)
		b.put(l.plain)
		l.src.buf, l.page, l.plain = nil, nil, nil
	}
}

// memBytes is about the memory c holds.
func (c *columnReader) memBytes() int64 {
	n := c.vec.MemBytes()
	if c.out != nil {
		n += c.out.MemBytes()
	}
	for i, l := range c.leaves {
		n += int64(cap(l.src.buf)+cap(l.page)+cap(l.plain)+cap(l.ldef)+cap(l.lrep)+4*cap(l.idx)) + c.lv[i].memBytes()
		if l.dict != nil {
			n += l.dict.MemBytes()
		}
	}
	return n
}

// open starts row group g.
func (c *columnReader) open(g *rowGroup) error {
	c.total, c.rows = g.NumRows, g.NumRows
	for _, l := range c.leaves {
		if err := l.open(&g.Columns[l.p.chunk]); err != nil {
			return err
		}
		if l.p.maxRep == 0 && l.md.NumValues != g.NumRows {
			return l.fail(fmt.Errorf("%w: %d values for %d rows", ErrCorrupt, l.md.NumValues, g.NumRows))
		}
	}
	return nil
}

// bind finds the leaf vectors of v.
func (c *columnReader) bind(n *readNode, v *types.Vector) {
	if n.leaf != nil {
		c.vecs[n.first] = v
	}
	for k, kid := range n.kids {
		c.bind(kid, v.Child[k])
	}
}

// append reads the next n rows into v.
func (c *columnReader) append(v *types.Vector, n int) error {
	switch {
	case c.plan.node == nil:
		for range n {
			v.AppendNull()
		}
		return nil
	case !c.plan.nested():
		return c.leaves[0].readFlat(v, n)
	}
	c.bind(c.plan.node, v)
	for k, l := range c.leaves {
		c.lv[k].reset()
		if err := l.readRows(&c.lv[k], c.vecs[k], n); err != nil {
			return err
		}
	}
	return c.assemble(v)
}

func (c *columnReader) assemble(v *types.Vector) error {
	if err := c.plan.node.assemble(v, c.lv); err != nil {
		return c.leaves[0].fail(err)
	}
	return nil
}

// fill reads up to n rows into the empty c.vec, at least one; fewer if they are large.
func (c *columnReader) fill(n int) error {
	c.vec.Reset()
	c.from = 0
	n = int(min(int64(n), c.rows))
	if c.plan.nested() {
		var err error
		if n, err = c.nestedRows(n); err != nil {
			return err
		}
	}
	for c.vec.Len() < n && int64(len(c.vec.Data)) < c.batchBytes {
		step := n - c.vec.Len()
		if c.vec.Layout == types.LayoutBytes && c.plan.node != nil {
			var err error
			if step, err = c.leaves[0].bytesStep(step); err != nil {
				return err
			}
		}
		if err := c.append(c.vec, step); err != nil {
			return err
		}
	}
	c.rows -= int64(c.vec.Len())
	return nil
}

// bytesStep is how many of the next n rows of a text or binary column to read
// before looking at their size.
func (c *chunkReader) bytesStep(n int) (int, error) {
	if c.left == 0 {
		if err := c.mustPage(); err != nil {
			return 0, err
		}
	}
	n = min(n, c.left)
	size := c.longest
	if !c.vals.indexed {
		size = len(c.vals.plain) / c.left // on average
	}
	return int(min(int64(n), c.f.o.BatchBytes/int64(size+1)+1)), nil
}

// nestedRows is how many of the next n rows of a nested column to read at once,
// by what the footer and the dictionaries say about their size.
func (c *columnReader) nestedRows(n int) (int, error) {
	per := int64(1)
	for _, l := range c.leaves {
		if c.rows == c.total {
			if err := l.mustPage(); err != nil { // for the dictionary
				return 0, err
			}
		}
		entries := l.md.NumValues/c.total + 1
		per += l.md.TotalUncompressedSize/c.total + entries*int64(l.longest+8)
	}
	return int(min(int64(n), max(c.batchBytes/per, 1))), nil
}

// Read streams the given wanted columns (indexes of ReadOptions.Fields) in
// batches of at most BatchRows rows, in file order. start is the position of the
// batch's first row in the file, also when row groups were pruned. The batch is
// valid during the call; fn's error ends Read and is returned as it is.
func (f *File) Read(cols []int, fn func(start int64, b *types.Batch) error) error {
	plans, err := f.pick(cols)
	if err != nil {
		return err
	}
	readers := make([]*columnReader, len(plans))
	for i, p := range plans {
		readers[i] = f.newColumnReader(p)
		readers[i].vec = types.NewVector(p.field.Type)
		defer readers[i].release(f.o.Buffers)
	}
	batch := &types.Batch{Cols: make([]*types.Vector, len(plans))}
	var start int64
	for g := range f.meta.RowGroups {
		rg := &f.meta.RowGroups[g]
		if rg.NumRows == 0 {
			continue
		}
		if f.o.Prune == nil || !f.o.Prune(RowGroupStats{f: f, Ordinal: g, Start: start, Rows: rg.NumRows}) {
			if err := f.readGroup(g, start, readers, batch, fn); err != nil {
				return err
			}
		}
		start += rg.NumRows
	}
	return nil
}

func (f *File) readGroup(g int, start int64, readers []*columnReader, batch *types.Batch, fn func(int64, *types.Batch) error) error {
	rg := &f.meta.RowGroups[g]
	all := region{r: f.r, buf: f.o.Buffers.get()}
	defer func() { f.o.Buffers.put(all.buf) }()
	if err := f.openGroup(rg, readers, &all); err != nil {
		return fmt.Errorf("reading parquet row group %d: %w", g, err)
	}
	for done := int64(0); done < rg.NumRows; {
		n, err := nextBatch(readers, batch, f.o.BatchRows)
		if err != nil {
			return fmt.Errorf("reading parquet row group %d: %w", g, err)
		}
		if len(readers) == 0 {
			return nil
		}
		if f.o.Held != nil {
			held := int64(cap(all.buf))
			for _, r := range readers {
				held += r.memBytes()
			}
			f.o.Held(held)
		}
		if err := fn(start+done, batch); err != nil {
			return err
		}
		done += int64(n)
	}
	for _, r := range readers {
		if err := r.atEnd(); err != nil {
			return fmt.Errorf("reading parquet row group %d: %w", g, err)
		}
	}
	return nil
}

// atEnd checks that the row group has no more entries than its rows.
func (c *columnReader) atEnd() error {
	for _, l := range c.leaves {
		if l.left > 0 || l.unread > 0 || l.lpos < len(l.lrep) {
			return l.fail(fmt.Errorf("%w: more values than rows", ErrCorrupt))
		}
	}
	return nil
}

// openGroup starts a row group. Chunks that lie close together are read into
// all, which they then read from.
func (f *File) openGroup(rg *rowGroup, readers []*columnReader, all *region) (err error) {
	defer recoverCorrupt(&err)
	from, to, chunks := int64(math.MaxInt64), int64(0), 0
	for _, r := range readers {
		r.vec.Reset()
		r.from = 0
		if err := r.open(rg); err != nil {
			return err
		}
		for _, l := range r.leaves {
			from, to = min(from, l.src.at()), max(to, l.src.end)
			chunks++
		}
	}
	if chunks < 2 || to-from > f.o.ReadAhead {
		return nil
	}
	all.off = from
	if err := all.load(to); err != nil {
		return fmt.Errorf("reading %d bytes at %d: %w", to-from, from, err)
	}
	for _, r := range readers {
		for _, l := range r.leaves {
			l.src.r = all
		}
	}
	return nil
}

// nextBatch makes a batch of rows that all columns have, and reads what is missing.
func nextBatch(readers []*columnReader, batch *types.Batch, most int) (n int, err error) {
	defer recoverCorrupt(&err)
	n = most
	for _, r := range readers {
		if r.from == r.vec.Len() {
			if err := r.fill(most); err != nil {
				return 0, err
			}
		}
		n = min(n, r.vec.Len()-r.from)
	}
	for i, r := range readers {
		if r.from == 0 && r.vec.Len() == n {
			batch.Cols[i] = r.vec
		} else {
			if r.out == nil {
				r.out = types.NewVector(r.vec.Type)
			}
			r.out.Reset()
			r.out.AppendRange(r.vec, r.from, r.from+n)
			batch.Cols[i] = r.out
		}
		r.from += n
	}
	return n, nil
}
