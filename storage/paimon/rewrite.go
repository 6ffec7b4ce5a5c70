package paimon

import (
	"context"
	"fmt"

	"applier/storage/objstore"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
)

// Rewrite copies a data file without the rows at the positions drop into a new
// file of the same partition, in the same order, and returns its entry: what
// copy-on-write tables have in place of deletion vectors. Something must be left.
//
// The copies are what the table's current schema reads, bit for bit: a NULL stays
// one whatever default its column has got since (row-level.md D6), CHAR values
// keep the blanks they have, and a NULL that an older schema allowed stays in a
// column that is NOT NULL now. With row tracking every row takes its id and its
// sequence number along.
//
// The file is streamed into the table's store: one batch and one row group are in
// memory. Once Rewrite returns nil it is durable, and nothing refers to it. Errors
// are those of reading e (OpenFile) and of the store.
func (w *DataFileWriter) Rewrite(ctx context.Context, e *manifest.Entry, drop *roaring.Bitmap) (*manifest.Entry, error) {
	out, err := w.rewrite(ctx, e, drop)
	if err != nil {
		return nil, fmt.Errorf("rewriting data file %s: %w", e.File.Name, err)
	}
	return out, nil
}

func (w *DataFileWriter) rewrite(ctx context.Context, e *manifest.Entry, drop *roaring.Bitmap) (*manifest.Entry, error) {
	fields, cols, err := w.copied(ctx, e)
	if err != nil {
		return nil, err
	}
	src, err := w.t.OpenFile(ctx, e, cols)
	if err != nil {
		return nil, err
	}
	defer func() { _ = src.Close() }()
	place := manifest.Entry{Partition: e.Partition, Bucket: e.Bucket}
	place.File.Name = w.t.options.DataName(w.s.NewUUID(), 0)
	key, err := w.t.paths.Data(&place)
	if err != nil {
		return nil, err
	}
	dst, err := w.t.bucket.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	defer dst.Abort()
	info, span, err := w.copyRows(ctx, src, fields, drop, dst)
	if err != nil {
		return nil, err
	}
	if left := e.File.Rows - int64(drop.GetCardinality()); info.Rows != left {
		return nil, fmt.Errorf("%w: %d rows are left where %d should be", ErrCorrupt, info.Rows, left)
	}
	if err := dst.Close(); err != nil {
		return nil, err
	}
	n, err := w.entry(fields, Target{Partition: e.Partition, Bucket: e.Bucket}, place.File.Name, info)
	if err != nil {
		return nil, err
	}
	n.TotalBuckets = e.TotalBuckets
	// The rows take up no more numbers than they did, so that files read in the
	// order of their sequence numbers stay in order.
	n.File.MinSequence, n.File.MaxSequence = e.File.MinSequence, e.File.MinSequence+info.Rows-1
	if w.t.options.RowTracking {
		n.File.MinSequence, n.File.MaxSequence = span.min, span.max
	}
	return &n, nil
}

// copied returns the columns of a copy of a file, and what is read for them. A
// column takes NULLs if it did when the file was written.
func (w *DataFileWriter) copied(ctx context.Context, e *manifest.Entry) (fields []types.Field, cols []int, err error) {
	old, err := w.t.SchemaByID(ctx, e.File.SchemaID)
	if err != nil {
		return nil, nil, err
	}
	for i, f := range w.t.schema.Fields {
		if at := old.ColumnByID(f.ID); at < 0 || !old.Fields[at].Type.NotNull {
			f.Type = f.Type.Nullable()
		}
		fields, cols = append(fields, f), append(cols, i)
	}
	if w.t.options.RowTracking {
		fields, cols = append(fields, trackingFields()...), append(cols, RowIDColumn, SequenceColumn)
	}
	return fields, cols, nil
}

// copyRows streams the rows that are not in drop.
func (w *DataFileWriter) copyRows(ctx context.Context, src *OpenedFile, fields []types.Field, drop *roaring.Bitmap, dst objstore.Writer) (datafile.Info, sequenceSpan, error) {
	var span sequenceSpan
	if err := w.prepare(&w.copies, fields, true); err != nil {
		return datafile.Info{}, span, err
	}
	w.copies.Reset(dst)
	gone := drop.Iterator()
	var sel []uint32
	err := src.Read(func(start int64, b *types.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		sel = sel[:0]
		for i := range b.Len() {
			if gone.HasNext() && int64(gone.PeekNext()) == start+int64(i) {
				gone.Next()
				continue
			}
			sel = append(sel, uint32(i))
		}
		if w.t.options.RowTracking {
			span.add(b.Cols[len(b.Cols)-1], sel)
		}
		return w.copies.WriteSelected(b, sel)
	})
	if err != nil {
		return datafile.Info{}, span, err
	}
	info, err := w.copies.Close()
	return info, span, err
}
