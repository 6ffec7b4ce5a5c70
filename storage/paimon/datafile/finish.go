package datafile

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// gatherBytes is how much is put together before it goes to the underlying
// writer: small files take one call.
const gatherBytes = 64 << 10

// out appends b to the file and to the seal.
func (wr *Writer) out(b []byte) error {
	_, _ = wr.sum.Write(b)
	return wr.append(b)
}

func (wr *Writer) append(b []byte) error {
	wr.off += int64(len(b))
	if len(wr.gather)+len(b) <= gatherBytes {
		wr.gather = append(wr.gather, b...)
		return nil
	}
	if err := wr.flush(); err != nil {
		return err
	}
	if len(b) <= gatherBytes {
		wr.gather = append(wr.gather, b...)
		return nil
	}
	return writeFull(wr.w, b)
}

func (wr *Writer) flush() error {
	err := writeFull(wr.w, wr.gather)
	wr.gather = wr.gather[:0]
	return err
}

func writeFull(w io.Writer, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

func (wr *Writer) start() error {
	if wr.off > 0 {
		return nil
	}
	return wr.out([]byte(magic))
}

// endGroup writes the row group at hand.
func (wr *Writer) endGroup() error {
	if wr.groupRows == 0 {
		return nil
	}
	if err := wr.start(); err != nil {
		return err
	}
	g := rowGroup{NumRows: wr.groupRows, FileOffset: thrift.New(wr.off), Columns: make(thrift.Slice[columnChunk], 0, len(wr.schema.leaves))}
	if n := len(wr.groups); n <= 1<<15-1 {
		g.Ordinal.Set(int16(n))
	}
	var packed int64
	for _, c := range wr.cols {
		for _, w := range c.leaves {
			m, err := wr.writeChunk(w)
			if err != nil {
				return fmt.Errorf("column %s: %w", c.node.name, err)
			}
			g.Columns = append(g.Columns, columnChunk{MetaData: m})
			g.TotalByteSize += m.TotalUncompressedSize
			packed += m.TotalCompressedSize
		}
		c.endGroup()
	}
	g.TotalCompressedSize.Set(packed)
	wr.groups = append(wr.groups, g)
	wr.rows += wr.groupRows
	wr.groupRows = 0
	return nil
}

func (wr *Writer) writeChunk(w *chunkWriter) (columnMetaData, error) {
	dict, m, err := w.finish()
	if err != nil {
		return m, err
	}
	if dict != nil {
		m.DictionaryPageOffset = wr.off
	}
	m.DataPageOffset += wr.off
	pages := append([]pageLoc(nil), w.pages...)
	wr.indexes = append(wr.indexes, chunkIndex{pages: pages, base: m.DataPageOffset})
	if dict != nil {
		if err := wr.out(dict); err != nil {
			return m, err
		}
	}
	return m, wr.out(w.out)
}

// Close writes what is left, the offset indexes and the footer. It does not
// close the underlying writer. The Writer may then be Reset.
func (wr *Writer) Close() (Info, error) {
	if wr.err != nil {
		return Info{}, wr.err
	}
	if err := wr.close(); err != nil {
		return Info{}, wr.fail(err)
	}
	info := Info{Bytes: wr.off, Rows: wr.rows, RowGroups: len(wr.groups), Columns: make([]ColumnStats, 0, len(wr.cols))}
	for _, c := range wr.cols {
		info.Columns = append(info.Columns, c.stats())
	}
	wr.err = errClosed
	return info, nil
}

func (wr *Writer) close() error {
	if err := wr.endGroup(); err != nil {
		return err
	}
	if err := wr.start(); err != nil { // a file without rows
		return err
	}
	tail := wr.scratch[:0]
	k := 0
	for g := range wr.groups {
		for c := range wr.groups[g].Columns {
			x := wr.indexes[k]
			k++
			if len(x.pages) == 0 { // copied from a file without an index
				continue
			}
			from := len(tail)
			tail = appendOffsetIndex(tail, x.pages, x.base)
			cc := &wr.groups[g].Columns[c]
			cc.OffsetIndexOffset, cc.OffsetIndexLength = wr.off+int64(from), int32(len(tail)-from)
		}
	}
	m := fileMetaData{
		Version:      1,
		Schema:       wr.schema.elements,
		NumRows:      wr.rows,
		RowGroups:    append(thrift.Slice[rowGroup]{}, wr.groups...),
		CreatedBy:    wr.o.CreatedBy,
		ColumnOrders: make(thrift.Slice[format.ColumnOrder], len(wr.schema.leaves)),

		KeyValueMetadata: thrift.Slice[format.KeyValue]{sealMetadata()},
	}
	for i := range m.ColumnOrders {
		m.ColumnOrders[i].Value = &format.TypeDefinedOrder{}
	}
	tail, err := appendFooter(tail, &m)
	if err != nil {
		return err
	}
	wr.scratch = tail
	if err := sealTail(&wr.sum, tail); err != nil {
		return err
	}
	if err := wr.append(tail); err != nil {
		return err
	}
	return wr.flush()
}
