package datafile

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"applier/storage/types"

	"github.com/cespare/xxhash/v2"
)

// Writer writes one data file, and after Reset another one with the same
// columns. It belongs to one goroutine.
type Writer struct {
	w      io.Writer
	o      WriterOptions
	schema *schema
	comp   *compressor
	cols   []*column
	set    [2]*settings // of the columns, and of the key columns

	off       int64         // bytes of the file so far
	sum       xxhash.Digest // over them, for the seal
	gather    []byte        // of which not yet given to w
	groupRows int64
	rows      int64
	groups    []rowGroup
	indexes   []chunkIndex
	scratch   []byte
	keep      int64 // see keepTotal
	err       error
}

// A writer that holds more than keepTotal at Reset gives back its buffers of more
// than keepEach.
const (
	keepTotal = 64 << 20
	keepEach  = 256 << 10
)

// chunkIndex is what the offset index of a written chunk is made of.
type chunkIndex struct {
	pages []pageLoc
	base  int64
}

var errClosed = errors.New("the parquet writer is closed")

// NewWriter returns a Writer to w. Nothing is written before a row group is
// full or Close. Errors: ErrUnsupported for a type or compression, ErrSchema
// for column names.
func NewWriter(w io.Writer, o WriterOptions) (*Writer, error) {
	if !littleEndian() {
		return nil, fmt.Errorf("%w: big-endian machines", ErrUnsupported)
	}
	o.setDefaults()
	s, err := newSchema(o.Fields)
	if err != nil {
		return nil, fmt.Errorf("parquet schema: %w", err)
	}
	comp, err := newCompressor(o.Compression, o.ZstdLevel, o.Concurrency)
	if err != nil {
		return nil, err
	}
	wr := &Writer{o: o, schema: s, comp: comp, keep: keepTotal}
	set := settings{pageRows: o.PageRows, pageBytes: o.PageBytes, maxPage: maxPageBytes, comp: comp, dict: !o.NoDictionary, delta: o.Delta, keepChars: o.KeepChars}
	key := set
	key.pageBytes = o.KeyPageBytes
	wr.set = [2]*settings{&set, &key}
	isKey := make([]bool, len(o.Fields))
	for _, k := range o.KeyColumns {
		if k < 0 || k >= len(isKey) {
			return nil, fmt.Errorf("%w: key column %d of %d", ErrSchema, k, len(isKey))
		}
		isKey[k] = true
	}
	for i, n := range s.cols {
		c := &set
		if isKey[i] {
			c = &key
		}
		wr.cols = append(wr.cols, newColumn(n, s.leaves, c))
	}
	wr.Reset(w)
	return wr, nil
}

// Reset makes wr ready for a new file to w, whatever happened before. Buffers
// are kept unless a large file has blown them up.
func (wr *Writer) Reset(w io.Writer) {
	wr.w, wr.off, wr.rows, wr.groupRows, wr.err = w, 0, 0, 0, nil
	wr.sum.Reset()
	wr.groups, wr.indexes, wr.gather = wr.groups[:0], wr.indexes[:0], wr.gather[:0]
	shrink := wr.MemBytes() > wr.keep
	for _, c := range wr.cols {
		c.reset(shrink)
	}
}

// KeepChars says whether the CHAR values of the rows that come next are written as they
// are, as WriterOptions.KeepChars does for a whole file.
func (wr *Writer) KeepChars(keep bool) {
	for _, s := range wr.set {
		s.keepChars = keep
	}
}

// Write appends all rows of b, whose columns must be those of Fields. b is not
// kept. After an error (ErrNotNull, ErrRange, ErrSchema, ErrTooLarge, or the
// underlying writer's) the file is lost: only Reset helps.
func (wr *Writer) Write(b *types.Batch) error { return wr.write(b, rows{to: b.Len()}) }

// WriteSelected appends the rows sel of b in that order, without copying them
// together first. Every item of sel must be below b.Len().
func (wr *Writer) WriteSelected(b *types.Batch, sel []uint32) error {
	if sel == nil {
		sel = []uint32{}
	}
	return wr.write(b, rows{sel: sel})
}

func (wr *Writer) write(b *types.Batch, rs rows) error {
	if wr.err != nil {
		return wr.err
	}
	if err := wr.checkBatch(b); err != nil {
		return wr.fail(err)
	}
	step := wr.step(b)
	for rs.len() > 0 {
		n := min(rs.len(), step)
		if wr.o.RowGroupRows > 0 {
			n = int(min(int64(n), wr.o.RowGroupRows-wr.groupRows))
		}
		if err := wr.writeRows(b, rs.head(n)); err != nil {
			return wr.fail(err)
		}
		rs = rs.from0(n)
		wr.groupRows += int64(n)
		if wr.groupRows == wr.o.RowGroupRows || wr.rawSize() >= wr.o.RowGroupBytes {
			if err := wr.endGroup(); err != nil {
				return wr.fail(err)
			}
		}
	}
	return nil
}

// step is how many rows of b are added before the row group's size is looked
// at: no more than an eighth of a row group on average.
func (wr *Writer) step(b *types.Batch) int {
	n := max(b.Len(), 1)
	size := 0
	for _, v := range b.Cols {
		size += rangeBytes(v, 0, b.Len())
	}
	rows := wr.o.RowGroupBytes / 8 / int64(size/n+1)
	return int(min(max(rows, 1), 1<<16))
}

func (wr *Writer) fail(err error) error {
	wr.err = fmt.Errorf("writing parquet: %w", err)
	return wr.err
}

func (wr *Writer) checkBatch(b *types.Batch) error {
	if len(b.Cols) != len(wr.cols) {
		return fmt.Errorf("%w: a batch of %d columns, not %d", ErrSchema, len(b.Cols), len(wr.cols))
	}
	for i, v := range b.Cols {
		if !wr.cols[i].node.fits(v) {
			return fmt.Errorf("%w: a batch with %s for column %s %s", ErrSchema, v.Type, wr.cols[i].node.name, wr.cols[i].node.t)
		}
		if v.Len() != b.Len() {
			return fmt.Errorf("%w: column %s has %d rows, not %d", ErrSchema, wr.cols[i].node.name, v.Len(), b.Len())
		}
	}
	return nil
}

// writeRows adds rows to all columns, several columns at a time if so configured.
func (wr *Writer) writeRows(b *types.Batch, rs rows) error {
	if wr.o.Concurrency == 1 || len(wr.cols) == 1 {
		for i, c := range wr.cols {
			if err := c.add(b.Cols[i], rs); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make([]error, len(wr.cols))
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(wr.o.Concurrency, len(wr.cols)) {
		done.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(wr.cols); i = int(next.Add(1)) - 1 {
				errs[i] = wr.cols[i].add(b.Cols[i], rs)
			}
		})
	}
	done.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (wr *Writer) rawSize() int64 {
	var n int64
	for _, c := range wr.cols {
		n += c.rawSize()
	}
	return n
}

// Size is about the size the file would have if it were closed now: what was
// written, the finished pages in memory, and the pages at hand uncompressed.
func (wr *Writer) Size() int64 {
	n := wr.off
	for _, c := range wr.cols {
		for _, w := range c.leaves {
			n += int64(len(w.out) + w.pageSize())
		}
	}
	return n
}

// Rows returns the rows written since Reset.
func (wr *Writer) Rows() int64 { return wr.rows + wr.groupRows }

// MemBytes is about the memory the Writer holds, the codec's excepted.
func (wr *Writer) MemBytes() int64 {
	n := int64(cap(wr.scratch) + cap(wr.gather))
	for _, c := range wr.cols {
		n += int64(cap(c.file.blo) + cap(c.file.bhi))
		for _, w := range c.leaves {
			n += w.memBytes()
		}
	}
	return n
}
