package datafile

import (
	"fmt"
	"reflect"

	"applier/storage/types"
)

// copyBytes is how much of a chunk is copied at once.
const copyBytes = 1 << 20

// CanCopy reports whether CopyGroups takes over the row groups of f, which was
// opened with the writer's Fields: f has exactly the writer's columns in the same
// form, and says how many rows of each are NULL.
func (wr *Writer) CanCopy(f *File) bool {
	if len(f.cols) != len(wr.cols) || len(f.meta.Schema) != len(wr.schema.elements) {
		return false
	}
	for i, theirs := range f.meta.Schema {
		mine := wr.schema.elements[i]
		if i == 0 { // the root, which every writer calls otherwise
			mine.Name, mine.RepetitionType = theirs.Name, theirs.RepetitionType
		}
		if !reflect.DeepEqual(mine, theirs) {
			return false
		}
	}
	for g := range f.meta.RowGroups {
		for i, c := range wr.cols {
			if !c.nested() && (RowGroupStats{f: f, Ordinal: g, Rows: f.meta.RowGroups[g].NumRows}).Column(i).NullCount < 0 {
				return false
			}
		}
	}
	return len(wr.groups)+len(f.meta.RowGroups) < 1<<15
}

// CopyGroups ends the row group at hand and appends all row groups of f as they
// are, pages undecoded: what they cost is reading and writing their bytes. CanCopy
// must have said yes. Bounds come from the row groups' statistics; where one has
// none that can be trusted, the file has none.
func (wr *Writer) CopyGroups(f *File) error {
	if wr.err != nil {
		return wr.err
	}
	if err := wr.copyGroups(f); err != nil {
		return wr.fail(err)
	}
	return nil
}

func (wr *Writer) copyGroups(f *File) error {
	if err := wr.endGroup(); err != nil {
		return err
	}
	if err := wr.start(); err != nil {
		return err
	}
	buf := make([]byte, copyBytes)
	for n := range f.meta.RowGroups {
		from := &f.meta.RowGroups[n]
		if from.NumRows == 0 {
			continue
		}
		g := *from
		g.Columns = append(g.Columns[:0:0], from.Columns...)
		g.Ordinal.Set(int16(len(wr.groups)))
		g.FileOffset.Set(wr.off)
		var packed int64
		for c := range g.Columns {
			if err := wr.copyChunk(f, &g.Columns[c], g.NumRows, buf); err != nil {
				return fmt.Errorf("row group %d, column chunk %d: %w", n, c, err)
			}
			packed += g.Columns[c].MetaData.TotalCompressedSize
		}
		g.TotalCompressedSize.Set(packed)
		wr.addStats(RowGroupStats{f: f, Ordinal: n, Rows: g.NumRows})
		wr.groups = append(wr.groups, g)
		wr.rows += g.NumRows
	}
	return nil
}

// copyChunk appends the bytes of a chunk and moves what points into them.
func (wr *Writer) copyChunk(f *File, c *columnChunk, rows int64, buf []byte) error {
	pages, err := f.pageLocs(c, rows)
	if err != nil {
		return err
	}
	m := &c.MetaData
	start, end := m.span()
	if start < int64(len(magic)) || end < start || end > f.end {
		return fmt.Errorf("%w: it lies at %d to %d of %d bytes", ErrCorrupt, start, end, f.end)
	}
	delta := wr.off - start
	for at := start; at < end; {
		part := buf[:min(int64(len(buf)), end-at)]
		if err := readFull(f.r, part, at); err != nil {
			return err
		}
		if err := wr.out(part); err != nil {
			return err
		}
		at += int64(len(part))
	}
	m.DataPageOffset += delta
	if m.DictionaryPageOffset > 0 {
		m.DictionaryPageOffset += delta
	}
	// What lies elsewhere in the other file is not copied; indexes of ours are
	// written with the footer.
	m.IndexPageOffset, m.BloomFilterOffset, m.BloomFilterLength = 0, 0, 0
	c.FileOffset, c.ColumnIndexOffset, c.ColumnIndexLength, c.OffsetIndexOffset, c.OffsetIndexLength = 0, 0, 0, 0, 0
	wr.indexes = append(wr.indexes, chunkIndex{pages: pages, base: delta})
	return nil
}

// addStats takes in what a copied row group says of its columns.
func (wr *Writer) addStats(s RowGroupStats) {
	for i, c := range wr.cols {
		if c.nested() {
			continue
		}
		st := s.Column(i)
		c.nulls += st.NullCount
		switch {
		case st.NullCount == s.Rows:
		case !st.HasBounds:
			c.file.unknown = true
		default:
			c.file.addDatums(st.Min, st.Max)
		}
	}
}

// addDatums takes in the bounds of values.
func (b *bounds) addDatums(lo, hi types.Datum) {
	switch b.layout {
	case types.LayoutFloat, types.LayoutDouble:
		b.addFloat(lo.F, hi.F, false)
	case types.LayoutInt128:
		b.addDecimal(lo.D, hi.D)
	case types.LayoutBytes:
		b.addBytes(lo.B)
		b.addBytes(hi.B)
	default:
		b.addInt(lo.I, hi.I)
	}
}
