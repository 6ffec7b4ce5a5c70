package paimon

import (
	"context"
	"errors"
	"fmt"

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
// memory, see WriterSettings.CopyBytes. Once Rewrite returns nil it is durable, and nothing refers to it. Errors
// are those of reading e (OpenFile) and of the store.
func (w *DataFileWriter) Rewrite(ctx context.Context, e *manifest.Entry, drop *roaring.Bitmap) (*manifest.Entry, error) {
	out, err := w.join(ctx, []Part{{e, drop}}, nil)
	if err != nil {
		return nil, fmt.Errorf("rewriting data file %s: %w", e.File.Name, err)
	}
	return out, nil
}

// Part is a data file of which some rows are copied: all but those at the
// positions Drop; nil drops none.
type Part struct {
	Entry *manifest.Entry
	Drop  *roaring.Bitmap
}

// Join copies data files of one partition and bucket, one behind the other, into
// one new file, as Rewrite copies one: what compaction consists of. Something must
// be left.
func (w *DataFileWriter) Join(ctx context.Context, parts []Part) (*manifest.Entry, error) {
	out, err := w.join(ctx, parts, nil)
	if err != nil {
		return nil, fmt.Errorf("joining %d data files from %s on: %w", len(parts), parts[0].Entry.File.Name, err)
	}
	source := manifest.SourceCompact
	out.File.Source = &source
	return out, nil
}

// Fresh are rows that go behind the copies of others: the rows Sel of Rows, which is
// a VersionBatch if the table has row tracking.
type Fresh struct {
	Rows *types.Batch
	Sel  []uint32
	// Sequence is the sequence number of the file's first row, as in a Target; with
	// row tracking the commit gives it.
	Sequence int64
}

// Replace copies data files of one partition and bucket, as Join does, and writes new
// rows of that bucket behind the copies: what takes the place of the files of a
// copy-on-write table that a statement changes. fresh may be nil.
func (w *DataFileWriter) Replace(ctx context.Context, parts []Part, fresh *Fresh) (*manifest.Entry, error) {
	out, err := w.join(ctx, parts, fresh)
	if err != nil {
		return nil, fmt.Errorf("replacing %d data files from %s on: %w", len(parts), parts[0].Entry.File.Name, err)
	}
	return out, nil
}

// behind writes new rows behind the copies.
func (w *DataFileWriter) behind(fresh *Fresh, span *sequenceSpan) error {
	w.copies.KeepChars(false)
	w.index.add(fresh.Rows, fresh.Sel, false)
	span.unknown = len(fresh.Sel) > 0
	return w.copies.WriteSelected(fresh.Rows, fresh.Sel)
}

func (w *DataFileWriter) join(ctx context.Context, parts []Part, fresh *Fresh) (*manifest.Entry, error) {
	first := parts[0].Entry
	fields, cols, err := w.copied(ctx, parts)
	if err != nil {
		return nil, err
	}
	place := manifest.Entry{Partition: first.Partition, Bucket: first.Bucket}
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
	if err := w.prepare(&w.copies, fields, true); err != nil {
		return nil, err
	}
	w.copies.Reset(dst)
	w.copies.KeepChars(true)
	w.index.reset()
	var span sequenceSpan
	for _, p := range parts {
		done, err := w.copyGroups(ctx, p, fields)
		if err == nil && !done {
			err = w.copyRows(ctx, p, cols, &span)
		}
		if err != nil {
			return nil, err
		}
	}
	if fresh != nil {
		if err := w.behind(fresh, &span); err != nil {
			return nil, err
		}
	}
	info, err := w.copies.Close()
	if err != nil {
		return nil, err
	}
	if err := dst.Close(); err != nil {
		return nil, err
	}
	n, err := w.entry(fields, Target{Partition: first.Partition, Bucket: first.Bucket}, place.File.Name, info)
	if err != nil {
		return nil, err
	}
	companions, err := w.index.finish(&n, key)
	if err != nil {
		return nil, err
	}
	if len(companions) > 0 {
		if err := w.t.bucket.PutAll(ctx, companions); err != nil {
			return nil, err
		}
	}
	n.TotalBuckets = first.TotalBuckets
	return &n, w.number(ctx, &n, parts, fresh, &span)
}

// number gives a joined file its level and its range of sequence numbers. Copies take
// up no more numbers than they did, so that files read in the order of them stay in order.
func (w *DataFileWriter) number(ctx context.Context, n *manifest.Entry, parts []Part, fresh *Fresh, span *sequenceSpan) (err error) {
	sequence := parts[0].Entry.File.MinSequence
	if fresh != nil {
		sequence = fresh.Sequence
	} else if n.File.Level, err = w.t.copyLevel(ctx, parts); err != nil {
		return err
	}
	n.File.MinSequence, n.File.MaxSequence = sequence, sequence+n.File.Rows-1
	if w.t.options.RowTracking {
		n.File.MinSequence, n.File.MaxSequence = span.bounds()
	}
	return nil
}

// copied returns the columns of a copy of files, and what is read for them. A
// column takes NULLs if it did when one of the files was written.
func (w *DataFileWriter) copied(ctx context.Context, parts []Part) (fields []types.Field, cols []int, err error) {
	for i, f := range w.t.schema.Fields {
		fields, cols = append(fields, f), append(cols, i)
	}
	for _, p := range parts {
		old, err := w.t.SchemaByID(ctx, p.Entry.File.SchemaID)
		if err != nil {
			return nil, nil, err
		}
		for i := range fields {
			if at := old.ColumnByID(fields[i].ID); at < 0 || !old.Fields[at].Type.NotNull {
				fields[i].Type = fields[i].Type.Nullable()
			}
		}
	}
	if w.t.options.RowTracking {
		fields, cols = append(fields, trackingFields()...), append(cols, RowIDColumn, SequenceColumn)
	}
	return fields, cols, nil
}

// verbatimGroup is the size, by default, from which on row groups are copied without being
// decoded. Smaller ones are worth the work of making a large one of them.
const verbatimGroup = 4 << 20

// copyGroups copies the row groups of a file as they are, if nothing of it is
// dropped and it has the columns of the copy. Files of tables with row tracking
// are never copied so, as sequence numbers are found in their rows, nor are those of
// tables with file indexes, which need the values.
func (w *DataFileWriter) copyGroups(ctx context.Context, p Part, fields []types.Field) (done bool, err error) {
	groups := max(p.Entry.File.Size/w.verbatim, 1)
	if p.Drop != nil && !p.Drop.IsEmpty() || w.t.options.RowTracking || w.index != nil || p.Entry.File.Size < w.verbatim {
		return false, nil
	}
	r, err := w.t.openData(ctx, p.Entry)
	if err != nil {
		return false, err
	}
	defer func() { _ = r.Close() }()
	f, err := openParquet(r, p.Entry, datafile.ReadOptions{Fields: fields, Buffers: w.t.buffers})
	if errors.Is(err, datafile.ErrSchema) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if int64(f.RowGroups()) > groups || !w.copies.CanCopy(f) {
		return false, nil
	}
	return true, w.copies.CopyGroups(f)
}

// copyGroup is how large row groups of copies get before compression: about a
// quarter of CopyBytes, as the encoder's buffers grow by doubling and the reader has its share.
func (w *DataFileWriter) copyGroup() int64 {
	if w.s.CopyBytes <= 0 {
		return w.t.options.ParquetBlockSize
	}
	return min(max(w.s.CopyBytes/4, 1<<16), w.t.options.ParquetBlockSize)
}

// copyReading is how a file of so many columns is read for a copy.
func (w *DataFileWriter) copyReading(columns int) datafile.ReadOptions {
	o := datafile.ReadOptions{Buffers: w.t.buffers}
	if w.s.CopyBytes > 0 {
		share := max(w.s.CopyBytes/16/int64(columns), 16<<10)
		o.ReadAhead, o.BatchBytes = min(share, datafile.DefaultReadAhead), min(share, datafile.DefaultBatchBytes)
	}
	if w.s.Held != nil {
		o.Held = func(bytes int64) { w.s.Held(bytes + w.copies.MemBytes()) }
	}
	return o
}

// copyRows streams the rows of a file that are not dropped.
func (w *DataFileWriter) copyRows(ctx context.Context, p Part, cols []int, span *sequenceSpan) error {
	src, err := w.t.openFile(ctx, p.Entry, cols, w.copyReading(len(cols)))
	if err != nil {
		return fmt.Errorf("data file %s: %w", p.Entry.File.Name, err)
	}
	defer func() { _ = src.Close() }()
	drop := p.Drop
	if drop == nil {
		drop = roaring.New()
	}
	gone, before := drop.Iterator(), w.copies.Rows()
	var sel []uint32
	err = src.Read(func(start int64, b *types.Batch) error {
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
		w.index.add(b, sel, true)
		return w.copies.WriteSelected(b, sel)
	})
	if err != nil {
		return err
	}
	if want, got := p.Entry.File.Rows-int64(drop.GetCardinality()), w.copies.Rows()-before; want != got {
		return fmt.Errorf("%w: %d rows of data file %s are left where %d should be", ErrCorrupt, got, p.Entry.File.Name, want)
	}
	return nil
}
