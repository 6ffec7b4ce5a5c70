package datafile

import (
	"fmt"
	"io"

	"applier/storage/types"
)

// Defaults of ReadOptions.
const (
	DefaultBatchRows      = 8192
	DefaultBatchBytes     = 32 << 20
	DefaultReadAhead      = 1 << 20
	DefaultMaxPageBytes   = 512 << 20
	DefaultMaxFooterBytes = 64 << 20
)

// tailBytes is how much of a file's end is read with its footer and kept: the
// offset indexes, and a small file as a whole.
const tailBytes = 64 << 10

// ReadOptions configure a File. Only Fields must be set.
type ReadOptions struct {
	// Fields are the wanted columns with their types in the file's own schema.
	// They are found in the file by name, case-sensitively, never by id.
	Fields []types.Field
	// BatchRows is the most rows of a batch; 0 is DefaultBatchRows.
	BatchRows int
	// BatchBytes is about how large the values of one column in a batch may get
	// before the batch ends early.
	BatchBytes int64
	// ReadAhead is how many bytes one read from the file asks for if that many
	// are wanted next; the wanted chunks of a row group that lie within so many
	// bytes come in one read.
	ReadAhead int64
	// MaxPageBytes and MaxFooterBytes bound what one page or the footer may
	// take in memory; beyond it reading ends with ErrTooLarge.
	MaxPageBytes   int64
	MaxFooterBytes int64
	// Prune, if set, is asked before Read reads a row group; true skips it.
	Prune func(rg RowGroupStats) bool
	// Held, if set, is told by Read, before each batch is handed out, how much memory
	// reading holds.
	Held func(bytes int64)
	// Buffers are shared with other files; nil makes new ones.
	Buffers *Buffers
}

// File is an open data file. It is immutable: several goroutines may read from
// it at once if its io.ReaderAt allows that.
type File struct {
	r    io.ReaderAt
	o    ReadOptions
	meta *fileMetaData
	end  int64 // of pages and indexes
	rows int64
	cols []*readColumn

	maxEntries int // see maxBatchEntries
}

// Open reads the footer of a file of size bytes and maps the wanted columns.
// Errors: ErrCorrupt, ErrUnsupported, ErrTooLarge, ErrSchema (a column of the
// file cannot be read as wanted), or those of r.
func Open(r io.ReaderAt, size int64, o ReadOptions) (*File, error) {
	if !littleEndian() {
		return nil, fmt.Errorf("%w: big-endian machines", ErrUnsupported)
	}
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	f := &File{o: o, maxEntries: maxBatchEntries}
	var err error
	var tail *region
	if f.meta, tail, f.end, err = readFooter(r, size, o.MaxFooterBytes, min(o.ReadAhead, tailBytes)); err != nil {
		return nil, fmt.Errorf("opening parquet: %w", err)
	}
	f.r = tail
	root, leaves, err := parseSchema(f.meta.Schema)
	if err == nil {
		err = f.checkRowGroups(leaves)
	}
	if err != nil {
		return nil, fmt.Errorf("opening parquet: %w", err)
	}
	for _, field := range o.Fields {
		c, err := planColumn(field, root)
		if err != nil {
			return nil, fmt.Errorf("opening parquet: %w", err)
		}
		f.cols = append(f.cols, c)
	}
	return f, nil
}

func (o *ReadOptions) setDefaults() (err error) {
	if o.BatchRows <= 0 {
		o.BatchRows = DefaultBatchRows
	}
	for _, d := range []struct {
		v *int64
		d int64
	}{{&o.ReadAhead, DefaultReadAhead}, {&o.BatchBytes, DefaultBatchBytes}, {&o.MaxPageBytes, DefaultMaxPageBytes}, {&o.MaxFooterBytes, DefaultMaxFooterBytes}} {
		if *d.v <= 0 {
			*d.v = d.d
		}
	}
	if o.Buffers == nil {
		o.Buffers, err = NewBuffers()
	}
	return err
}

// checkRowGroups checks what every later step relies on.
func (f *File) checkRowGroups(leaves int) error {
	for g := range f.meta.RowGroups {
		rg := &f.meta.RowGroups[g]
		if len(rg.Columns) != leaves {
			return fmt.Errorf("%w: row group %d has %d column chunks for %d columns", ErrCorrupt, g, len(rg.Columns), leaves)
		}
		if rg.NumRows < 0 || f.rows+rg.NumRows < f.rows {
			return fmt.Errorf("%w: row group %d of %d rows", ErrCorrupt, g, rg.NumRows)
		}
		f.rows += rg.NumRows
		for c := range rg.Columns {
			if rg.Columns[c].FilePath != "" {
				return fmt.Errorf("%w: column chunks in another file", ErrUnsupported)
			}
			if rg.Columns[c].MetaData.NumValues < 0 {
				return fmt.Errorf("%w: row group %d, column chunk %d of %d values", ErrCorrupt, g, c, rg.Columns[c].MetaData.NumValues)
			}
		}
	}
	if f.rows != f.meta.NumRows {
		return fmt.Errorf("%w: row groups of %d rows in a file of %d", ErrCorrupt, f.rows, f.meta.NumRows)
	}
	return nil
}

// Rows returns the number of rows.
func (f *File) Rows() int64 { return f.rows }

// RowGroups returns the number of row groups.
func (f *File) RowGroups() int { return len(f.meta.RowGroups) }

// CreatedBy names the writer of the file.
func (f *File) CreatedBy() string { return f.meta.CreatedBy }

// Has reports whether the file has the wanted column i; one that it has not
// reads as NULL.
func (f *File) Has(i int) bool { return f.cols[i].node != nil }

// NewBatch returns an empty batch for the given wanted columns.
func (f *File) NewBatch(cols []int) *types.Batch {
	b := new(types.Batch)
	for _, i := range cols {
		b.Cols = append(b.Cols, types.NewVector(f.o.Fields[i].Type))
	}
	return b
}

// pick returns the plans of cols.
func (f *File) pick(cols []int) ([]*readColumn, error) {
	out := make([]*readColumn, len(cols))
	for k, i := range cols {
		if i < 0 || i >= len(f.cols) {
			return nil, fmt.Errorf("%w: column %d of %d", ErrSchema, i, len(f.cols))
		}
		out[k] = f.cols[i]
	}
	return out, nil
}
