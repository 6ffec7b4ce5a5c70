package sql

import (
	"context"
	"slices"
	"strings"

	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
)

// editor gathers what a statement does to a table and writes its files. Files that
// are written are taken away by discard as long as nothing refers to them.
type editor struct {
	tg     *target
	r      *run
	writer *paimon.DataFileWriter
	dry    bool // EXPLAIN: count, write nothing
	op     paimon.Operation
	// force makes a snapshot even if nothing changes; overwrite says that the
	// statement replaces what is there.
	force, overwrite bool
	// appends tells that nothing depends on what the table holds.
	appends bool

	touched map[paimon.FileKey]*touched
	order   []*touched
	// left is what is to be kept of replaced files, by bucket.
	left      map[paimon.BucketKey][]paimon.Part
	leftOrder []paimon.BucketKey
	fresh     sink
	moved     sink // new versions of rows, whose ids are kept
	buckets   *paimon.BucketStates
	added     []manifest.Entry
	written   []string // keys
	// How many rows were inserted, updated, deleted.
	inserted, updated, deleted int64
}

// touched is a data file that rows are taken out of.
type touched struct {
	entry manifest.Entry
	drop  *roaring.Bitmap
	whole bool // the file goes, whatever is in it
}

func (r *run) editor(ctx context.Context, tg *target, dry bool) (*editor, error) {
	w, err := tg.t.NewDataFileWriter(paimon.WriterSettings{Now: r.o.Now, NewUUID: r.o.NewUUID})
	if err != nil {
		return nil, err
	}
	e := &editor{tg: tg, r: r, writer: w, dry: dry, touched: map[paimon.FileKey]*touched{}, left: map[paimon.BucketKey][]paimon.Part{}}
	e.fresh.fields, e.moved.fields = tg.Fields, tg.Fields
	if tg.t.Buckets() > 0 {
		files, err := tg.t.Files(ctx, tg.st, nil)
		if err != nil {
			return nil, err
		}
		e.buckets = paimon.NewBucketStates(files)
	}
	return e, nil
}

// touch notes that a file is changed, or written again.
func (e *editor) touch(entry *manifest.Entry) *touched {
	k := paimon.KeyOf(entry)
	t := e.touched[k]
	if t == nil {
		c := *entry
		c.Partition = slices.Clone(entry.Partition)
		t = &touched{entry: c, drop: roaring.New()}
		e.touched[k] = t
		e.order = append(e.order, t)
	}
	return t
}

// delete takes a row out.
func (e *editor) delete(entry *manifest.Entry, pos uint32) {
	e.touch(entry).drop.Add(pos)
	e.deleted++
}

// update takes a row out and writes its new version; row is the old one as scanned.
func (e *editor) update(ctx context.Context, entry *manifest.Entry, pos uint32, row, next []types.Datum) error {
	e.touch(entry).drop.Add(pos)
	e.updated++
	if !e.tg.t.Options().RowTracking {
		return e.write(ctx, &e.fresh, next, 0)
	}
	return e.write(ctx, &e.moved, next, row[len(e.tg.Fields)].I)
}

// insert writes a new row.
func (e *editor) insert(ctx context.Context, row []types.Datum) error {
	e.inserted++
	return e.write(ctx, &e.fresh, row, 0)
}

// drop takes a whole file out.
func (e *editor) drop(entry *manifest.Entry) { e.touch(entry).whole = true }

// empty reports whether nothing is to be committed.
func (e *editor) empty() bool {
	return !e.force && len(e.order) == 0 && len(e.added) == 0 && e.fresh.len() == 0 && e.moved.len() == 0
}

// changes writes what is left to write and returns what is to be committed.
func (e *editor) changes(ctx context.Context) (ch paimon.Changes, err error) {
	ch.Overwrite = e.overwrite
	refs, err := e.tg.t.LiveVectors(e.tg.st.Index)
	if err != nil {
		return ch, err
	}
	var vectors []paimon.VectorChange
	for _, t := range e.order {
		k := paimon.KeyOf(&t.entry)
		ref, has := refs[k]
		switch {
		case t.whole || !e.tg.t.Options().DeletionVectors:
			e.replace(&ch, t)
			if has {
				vectors = append(vectors, paimon.VectorChange{File: k})
			}
		case !t.drop.IsEmpty():
			if has {
				old, err := e.tg.t.ReadVector(ctx, ref, t.entry.File.Rows)
				if err != nil {
					return ch, err
				}
				t.drop.Or(old)
			}
			vectors = append(vectors, paimon.VectorChange{File: k, Vector: t.drop})
		}
	}
	if err := e.flush(ctx, &e.moved); err != nil {
		return ch, err
	}
	if err := e.flush(ctx, &e.fresh); err != nil {
		return ch, err
	}
	if err := e.rewrite(ctx); err != nil {
		return ch, err
	}
	ch.Add = append(ch.Add, e.added...)
	if len(vectors) > 0 {
		ch.Index, err = e.vectors(ctx, vectors, refs)
	}
	return ch, err
}

// vectors makes the index files of changed deletion vectors.
func (e *editor) vectors(ctx context.Context, list []paimon.VectorChange, refs map[paimon.FileKey]paimon.VectorRef) (*paimon.IndexChange, error) {
	files, err := e.tg.t.Files(ctx, e.tg.st, nil)
	if err != nil {
		return nil, err
	}
	rows := map[paimon.FileKey]int64{}
	for i := range files {
		rows[paimon.KeyOf(&files[i])] = files[i].File.Rows
	}
	slices.SortStableFunc(list, func(a, b paimon.VectorChange) int {
		if c := strings.Compare(a.File.Partition, b.File.Partition); c != 0 {
			return c
		}
		return int(a.File.Bucket) - int(b.File.Bucket)
	})
	return e.tg.t.BuildVectors(e.tg.st, list, func(k paimon.FileKey) (*roaring.Bitmap, error) {
		return e.tg.t.ReadVector(ctx, refs[k], rows[k])
	}, e.r.o.NewUUID)
}

// discard takes away what was written, which nothing refers to.
func (e *editor) discard(ctx context.Context) {
	if len(e.written) > 0 {
		// An orphan that cannot be deleted now is found by `applier orphans`.
		_ = e.tg.t.Bucket().Delete(context.WithoutCancel(ctx), e.written...)
	}
}
