package paimon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"applier/storage/objstore"
	"applier/storage/paimon/binrow"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// OpenedFile is an open data file, read as columns of the table's schema. It
// belongs to one goroutine.
type OpenedFile struct {
	name   string
	file   *datafile.File
	reader objstore.Reader
	cols   []fileColumn
	places []int
}

// fileColumn says how a column of the file becomes one of the table.
type fileColumn struct {
	field types.Field   // what is read from the file
	cast  caster        // nil: nothing to do
	out   *types.Vector // what is made of it
	// fixed is the value of a partition column, which comes from the entry; the
	// file's own is not read.
	fixed *types.Datum
	// tracked: it is a column of row tracking, completed into out.
	tracked *trackedColumn
}

// absentColumn is the name of no column: system names cannot be given to columns.
const absentColumn = "_KEY_\x00absent"

// errNoColumns: batches without columns could not say how many rows they have.
var errNoColumns = errors.New("no columns to read")

// OpenFile opens a data file for the given columns of the table's schema, or of
// row tracking (RowIDColumn, SequenceColumn). They are followed by field id into the file's own schema; a column the file does
// not have reads as NULL, one of another type is cast if that loses nothing,
// else ErrTypeChanged. Values of partition columns are the entry's.
func (t *Table) OpenFile(ctx context.Context, e *manifest.Entry, cols []int) (*OpenedFile, error) {
	f, err := t.openFile(ctx, e, cols, datafile.ReadOptions{Buffers: t.buffers})
	if err != nil {
		return nil, fmt.Errorf("data file %s: %w", e.File.Name, err)
	}
	return f, nil
}

// openFile is OpenFile with how the file is read; o.Fields are filled in.
func (t *Table) openFile(ctx context.Context, e *manifest.Entry, cols []int, o datafile.ReadOptions) (*OpenedFile, error) {
	if len(cols) == 0 {
		return nil, errNoColumns
	}
	schema, err := t.SchemaByID(ctx, e.File.SchemaID)
	if err != nil {
		return nil, err
	}
	f := &OpenedFile{name: e.File.Name}
	if f.cols, err = t.fileColumns(schema, e, cols); err != nil {
		return nil, err
	}
	o.Fields = make([]types.Field, len(f.cols))
	for i, c := range f.cols {
		o.Fields[i], f.places = c.field, append(f.places, i)
	}
	if f.reader, err = t.openData(ctx, e); err != nil {
		return nil, err
	}
	if f.file, err = openParquet(f.reader, e, o); err != nil {
		_ = f.reader.Close()
		return nil, err
	}
	return f, nil
}

// openParquet opens the file behind r and compares it with its entry.
func openParquet(r objstore.Reader, e *manifest.Entry, o datafile.ReadOptions) (*datafile.File, error) {
	if n := r.Size(); n >= 0 && n != e.File.Size {
		return nil, fmt.Errorf("%w: it has %d bytes, the manifest says %d", ErrCorrupt, n, e.File.Size)
	}
	f, err := datafile.Open(r, e.File.Size, o)
	if err != nil {
		return nil, err
	}
	if f.Rows() != e.File.Rows {
		return nil, fmt.Errorf("%w: it has %d rows, the manifest says %d", ErrCorrupt, f.Rows(), e.File.Rows)
	}
	return f, nil
}

// fileColumns finds the wanted columns in a file's schema.
func (t *Table) fileColumns(file *Schema, e *manifest.Entry, cols []int) ([]fileColumn, error) {
	partition, err := binrow.Decode(t.partitionTypes, e.Partition)
	if err != nil {
		return nil, fmt.Errorf("partition: %w", err)
	}
	out := make([]fileColumn, len(cols))
	for i, c := range cols {
		want, err := t.ColumnField(c)
		if err != nil {
			return nil, err
		}
		col := &out[i]
		if c < 0 {
			if err := openTracked(col, c, &e.File); err != nil {
				return nil, err
			}
			continue
		}
		col.field = types.Field{ID: want.ID, Name: absentColumn, Type: want.Type.Nullable()}
		at := file.ColumnByID(want.ID)
		if p := t.partitionIndex(c); p >= 0 {
			col.fixed, col.out = &partition[p], types.NewVector(want.Type)
			continue
		} else if at < 0 {
			continue
		}
		have := file.Fields[at]
		if col.cast, err = newCaster(want.Type, have.Type); err != nil {
			return nil, fmt.Errorf("column %s: %w", want.Name, err)
		}
		if col.cast != nil {
			col.out = types.NewVector(want.Type)
		}
		col.field.Name, col.field.Type = have.Name, have.Type
	}
	return out, nil
}

// partitionIndex returns the place of a column among the partition keys, or -1.
func (t *Table) partitionIndex(col int) int { return slices.Index(t.partitionCols, col) }

// Rows returns the number of rows, deleted ones included.
func (f *OpenedFile) Rows() int64 { return f.file.Rows() }

// Close releases the file.
func (f *OpenedFile) Close() error { return f.reader.Close() }

// Read streams all rows in batches that are valid during the call, with the
// position of each batch's first row. An error of fn is returned as it is.
func (f *OpenedFile) Read(fn func(start int64, b *types.Batch) error) error {
	var stop error
	out := &types.Batch{Cols: make([]*types.Vector, len(f.cols))}
	err := f.file.Read(f.places, func(start int64, b *types.Batch) error {
		if err := f.convert(out, b, func(i int) int64 { return start + int64(i) }); err != nil {
			return err
		}
		stop = fn(start, out)
		return stop
	})
	if stop != nil || err == nil {
		return stop
	}
	return fmt.Errorf("data file %s: %w", f.name, err)
}

// ReadRows appends the rows at the given positions (ascending) to out, which has
// the opened columns.
func (f *OpenedFile) ReadRows(positions []uint32, out *types.Batch) error {
	if len(out.Cols) != len(f.cols) {
		return fmt.Errorf("data file %s: a batch of %d columns for %d", f.name, len(out.Cols), len(f.cols))
	}
	raw := f.file.NewBatch(f.places)
	err := f.file.ReadRows(f.places, positions, raw)
	part := &types.Batch{Cols: make([]*types.Vector, len(f.cols))}
	if err == nil {
		err = f.convert(part, raw, func(i int) int64 { return int64(positions[i]) })
	}
	if err != nil {
		return fmt.Errorf("data file %s: %w", f.name, err)
	}
	for i, v := range out.Cols {
		v.AppendRange(part.Cols[i], 0, len(positions))
	}
	return nil
}

// convert makes table columns of a batch as read; at gives the rows' positions.
func (f *OpenedFile) convert(out, b *types.Batch, at func(i int) int64) error {
	n := b.Len()
	for i := range f.cols {
		c := &f.cols[i]
		switch {
		case c.fixed != nil:
			for c.out.Len() < n {
				c.out.AppendDatum(*c.fixed)
			}
			c.out.Truncate(n)
			out.Cols[i] = c.out
		case c.tracked != nil:
			c.tracked.fill(c.out, b.Cols[i], at)
			out.Cols[i] = c.out
		case c.cast != nil:
			c.out.Reset()
			if err := c.cast(c.out, b.Cols[i], 0, n); err != nil {
				return fmt.Errorf("column %s: %w", c.field.Name, err)
			}
			out.Cols[i] = c.out
		default:
			out.Cols[i] = b.Cols[i]
		}
	}
	return nil
}

// ReadFile streams columns of one data file, deleted rows included; see
// OpenFile and OpenedFile.Read.
func (t *Table) ReadFile(ctx context.Context, e *manifest.Entry, cols []int, fn func(start int64, b *types.Batch) error) error {
	f, err := t.OpenFile(ctx, e, cols)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Read(func(start int64, b *types.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(start, b)
	})
}

// ReadRows appends chosen rows of one data file (ascending positions) to out,
// which has the columns cols.
func (t *Table) ReadRows(ctx context.Context, e *manifest.Entry, cols []int, positions []uint32, out *types.Batch) error {
	f, err := t.OpenFile(ctx, e, cols)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.ReadRows(positions, out)
}
