package datafile

import (
	"fmt"
	"sort"

	"github.com/parquet-go/parquet-go/format"

	"applier/storage/types"
)

// coalesce is how many unwanted bytes between two wanted pages are read along
// rather than asking twice.
const coalesce = 64 << 10

// maxIndexBytes bounds one chunk's offset index.
const maxIndexBytes = 64 << 20

// ReadRows appends the rows at the given positions of the file (ascending,
// without doubles) to out, which has the columns cols. Only the pages that hold
// them are read where the file has an offset index; without one, the pages
// before them are walked over, and flat ones not decompressed.
func (f *File) ReadRows(cols []int, positions []uint32, out *types.Batch) error {
	plans, err := f.pick(cols)
	if err != nil {
		return err
	}
	if len(out.Cols) != len(cols) {
		return fmt.Errorf("%w: a batch of %d columns for %d", ErrSchema, len(out.Cols), len(cols))
	}
	for k := range positions {
		if int64(positions[k]) >= f.rows || k > 0 && positions[k] <= positions[k-1] {
			return fmt.Errorf("reading parquet rows: position %d of %d rows, or not ascending", positions[k], f.rows)
		}
	}
	for i, p := range plans {
		if err := f.readColumnRows(p, positions, out.Cols[i]); err != nil {
			return fmt.Errorf("reading parquet rows: %w", err)
		}
	}
	return nil
}

func (f *File) readColumnRows(p *readColumn, positions []uint32, v *types.Vector) (err error) {
	defer recoverCorrupt(&err)
	c := f.newColumnReader(p)
	defer c.release(f.o.Buffers)
	var start int64
	for g := range f.meta.RowGroups {
		rg := &f.meta.RowGroups[g]
		n := sort.Search(len(positions), func(i int) bool { return int64(positions[i]) >= start+rg.NumRows })
		if n > 0 {
			if err := c.groupRowsAt(rg, positions[:n], start, v); err != nil {
				return err
			}
		}
		positions = positions[n:]
		start += rg.NumRows
	}
	return nil
}

// rowsAtOnce is how many rows of a nested column are assembled together, so that
// their levels stay small.
const rowsAtOnce = 1024

// groupRowsAt appends rows of one row group that starts at position start.
func (c *columnReader) groupRowsAt(rg *rowGroup, positions []uint32, start int64, v *types.Vector) error {
	if c.plan.node == nil {
		return c.append(v, len(positions))
	}
	if err := c.open(rg); err != nil {
		return err
	}
	c.bind(c.plan.node, v)
	cursors := make([]rowCursor, len(c.leaves))
	for k, l := range c.leaves {
		pages, err := l.pageIndex(&rg.Columns[l.p.chunk], rg.NumRows)
		if err != nil {
			return err
		}
		cursors[k] = rowCursor{pages: pages, start: start, rows: rg.NumRows}
	}
	for len(positions) > 0 {
		n := min(len(positions), rowsAtOnce)
		for k := range c.leaves {
			c.lv[k].reset()
			if err := c.leafRows(k, &cursors[k], positions, n); err != nil {
				return err
			}
		}
		positions = positions[n:]
		if c.plan.nested() {
			if err := c.assemble(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowCursor is where a leaf is while rows are picked from its row group.
type rowCursor struct {
	pages   []pageLoc // of the offset index; none without one
	start   int64     // position of the row group
	rows    int64     // of the row group
	at      int64     // row that is read next
	pageEnd int64     // first row behind the page at hand
	end     int64     // file offset up to which reads may go
}

// leafRows reads the first n of the wanted rows of leaf k, run by run.
func (c *columnReader) leafRows(k int, cur *rowCursor, positions []uint32, n int) error {
	if len(cur.pages) == 0 {
		cur.pageEnd = cur.rows
	}
	for n > 0 {
		row := int64(positions[0]) - cur.start
		if row >= cur.pageEnd {
			if err := c.leaves[k].seekRow(cur, row, positions); err != nil {
				return err
			}
		}
		run := 1
		for run < n && int64(positions[run])-cur.start == row+int64(run) && row+int64(run) < cur.pageEnd {
			run++
		}
		if err := c.leafRun(k, row-cur.at, run); err != nil {
			return err
		}
		cur.at = row + int64(run)
		positions = positions[run:]
		n -= run
	}
	return nil
}

// seekRow goes to the page that holds row, the first of the wanted positions.
func (c *chunkReader) seekRow(cur *rowCursor, row int64, positions []uint32) error {
	i := sort.Search(len(cur.pages), func(i int) bool { return cur.pages[i].row > row }) - 1
	if cur.pages[i].end() > cur.end {
		cur.end = wantedEnd(cur.pages, i, positions, cur.start)
	}
	c.seekPage(cur.pages[i], cur.end)
	cur.at, cur.pageEnd = cur.pages[i].row, cur.rows
	if i+1 < len(cur.pages) {
		cur.pageEnd = cur.pages[i+1].row
	}
	return c.checkPageRows(cur.pageEnd - cur.at)
}

// leafRun skips rows and reads n.
func (c *columnReader) leafRun(k int, skip int64, n int) error {
	l := c.leaves[k]
	if !c.plan.nested() {
		if err := l.skipFlat(skip); err != nil {
			return err
		}
		return l.readFlat(c.vecs[k], n)
	}
	if skip > 0 {
		if err := l.readRows(nil, nil, int(skip)); err != nil {
			return err
		}
	}
	return l.readRows(&c.lv[k], c.vecs[k], n)
}

// wantedEnd is the file offset up to which page i and pages shortly behind it
// are wanted.
func wantedEnd(pages []pageLoc, i int, positions []uint32, start int64) int64 {
	end := pages[i].end()
	for k := i + 1; k < len(pages); k++ {
		j := sort.Search(len(positions), func(j int) bool { return int64(positions[j])-start >= pages[k].row })
		switch {
		case j == len(positions):
			return end
		case k+1 < len(pages) && int64(positions[j])-start >= pages[k+1].row: // not wanted
			if pages[k].end()-end > coalesce {
				return end
			}
		default:
			end = pages[k].end()
		}
	}
	return end
}

func (p pageLoc) end() int64 { return p.offset + int64(p.size) }

// pageIndex reads the chunk's offset index, nil if there is none, and the
// dictionary in front of the pages.
func (c *chunkReader) pageIndex(m *columnChunk, rows int64) ([]pageLoc, error) {
	pages, err := c.f.pageLocs(m, rows)
	if err != nil {
		return nil, c.fail(err)
	}
	start, _ := c.md.span()
	if len(pages) > 0 && pages[0].offset > start {
		c.src.seek(start, pages[0].offset)
		return pages, c.leadingDictionary()
	}
	return pages, nil
}

// pageLocs reads the offset index of a chunk of so many rows, nil if it has none.
func (f *File) pageLocs(m *columnChunk, rows int64) ([]pageLoc, error) {
	off, n := m.OffsetIndexOffset, int64(m.OffsetIndexLength)
	if off <= 0 || n <= 0 {
		return nil, nil
	}
	if n > maxIndexBytes || off > f.end-n {
		return nil, fmt.Errorf("%w: an offset index of %d bytes at %d", ErrCorrupt, n, off)
	}
	b := make([]byte, n)
	if err := readFull(f.r, b, off); err != nil {
		return nil, fmt.Errorf("reading the offset index: %w", err)
	}
	pages, err := decodeOffsetIndex(b)
	if err != nil {
		return nil, fmt.Errorf("%w: offset index: %w", ErrCorrupt, err)
	}
	start, end := m.MetaData.span()
	at, row := start, int64(-1)
	for i, p := range pages {
		if p.offset < at || p.size <= 0 || p.end() > end || p.row <= row || p.row >= rows || i == 0 && p.row != 0 {
			return nil, fmt.Errorf("%w: offset index, page %d at %d, row %d", ErrCorrupt, i, p.offset, p.row)
		}
		at, row = p.end(), p.row
	}
	return pages, nil
}

// leadingDictionary loads the dictionary page that the cursor is at.
func (c *chunkReader) leadingDictionary() error {
	if err := c.header(); err != nil {
		return err
	}
	if c.h.isData() {
		return c.fail(fmt.Errorf("%w: a data page in front of the first one of the offset index", ErrCorrupt))
	}
	body, err := c.body()
	if err == nil && c.h.kind == format.DictionaryPage {
		err = c.loadDictionary(body)
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// checkPageRows compares a page with the rows that the offset index gives it.
func (c *chunkReader) checkPageRows(rows int64) error {
	if err := c.header(); err != nil {
		return err
	}
	if !c.h.isData() || c.p.maxRep == 0 && int64(c.h.values) != rows {
		return c.fail(fmt.Errorf("%w: a page of %d values where the offset index has %d rows", ErrCorrupt, c.h.values, rows))
	}
	return nil
}
