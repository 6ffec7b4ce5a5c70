package sql

import (
	"context"

	"applier/storage/paimon"
	"applier/storage/types"
)

// In a copy-on-write table a file that a statement takes rows out of is replaced. What
// is left of the files of a partition and bucket is written into one file, as Spark
// does it, with the rows that the statement writes there behind it; files do not grow
// beyond the table's target size by it. With row tracking only new versions of rows
// join them: a file holds rows with ids, or rows that are given ids.

// replace takes a file out of a table, and notes what is left of it.
func (e *editor) replace(ch *paimon.Changes, t *touched) {
	ch.Delete = append(ch.Delete, t.entry)
	if t.whole || int64(t.drop.GetCardinality()) == t.entry.File.Rows {
		return
	}
	k := paimon.BucketKey{Partition: string(t.entry.Partition), Bucket: t.entry.Bucket}
	if _, ok := e.left[k]; !ok {
		e.leftOrder = append(e.leftOrder, k)
	}
	e.left[k] = append(e.left[k], paimon.Part{Entry: &t.entry, Drop: t.drop})
}

// rewrite writes what is left of files that no new rows have joined.
func (e *editor) rewrite(ctx context.Context) error {
	for _, k := range e.leftOrder {
		for len(e.left[k]) > 0 {
			n, _ := e.bin(e.left[k])
			if err := e.replaced(ctx, k, n, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// join writes rows of a bucket behind what is left of its files; not done if that
// would be too large, or if nothing is left.
func (e *editor) join(ctx context.Context, k paimon.BucketKey, to paimon.Target, b *types.Batch, rows []uint32) (done bool, err error) {
	if e.tg.t.Clustered() { // a sorted file stays one: Java sorts new rows in
		return false, nil
	}
	n, size := e.bin(e.left[k])
	bytes := b.MemBytes() * int64(len(rows)) / int64(b.Len())
	if n == 0 || size+bytes > e.tg.t.Options().TargetFileSize {
		return false, nil
	}
	return true, e.replaced(ctx, k, n, &paimon.Fresh{Rows: b, Sel: rows, Sequence: to.Sequence})
}

// replaced writes what is left of the first n files of a bucket, and new rows.
func (e *editor) replaced(ctx context.Context, k paimon.BucketKey, n int, fresh *paimon.Fresh) error {
	out, err := e.writer.Replace(ctx, e.left[k][:n], fresh)
	if err != nil {
		return err
	}
	e.left[k] = e.left[k][n:]
	keys, err := e.tg.t.FileKeys(out)
	e.written = append(e.written, keys...)
	e.added = append(e.added, *out)
	return err
}

// bin returns how many of the files, taken from the first on, fit into one of the
// table's target size, and its size.
func (e *editor) bin(parts []paimon.Part) (n int, size int64) {
	for _, p := range parts {
		left := leftOf(p)
		if n > 0 && (size+left > e.tg.t.Options().TargetFileSize || e.tg.t.Clustered()) {
			break
		}
		n, size = n+1, size+left
	}
	return n, size
}

// leftOf estimates the bytes that are left of a file.
func leftOf(p paimon.Part) int64 {
	f := &p.Entry.File
	return f.Size * (f.Rows - int64(p.Drop.GetCardinality())) / max(f.Rows, 1)
}
