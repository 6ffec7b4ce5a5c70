package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"applier/itest/harness"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
)

// tableName is the table of every run.
const tableName = "bench.t"

// fileRows is how many rows a data file of the target has.
const fileRows = million

// targets makes the tables that runs start from, each size once.
type targets struct {
	dir      string
	fileRows int64 // of a data file
	made     map[baseTable]string
}

// clone makes a warehouse with a table of so many rows, some of them deleted. Data
// files are shared by hard links: nobody changes a file.
func (t *targets) clone(ctx context.Context, l harness.MergeLoad) (warehouse string, err error) {
	is := baseTable{l.TargetRows, l.Worn}
	from := t.made[is]
	if from == "" {
		if from, err = t.make(ctx, l); err != nil {
			return "", fmt.Errorf("making a table of %d rows: %w", l.TargetRows, err)
		}
		if t.made == nil {
			t.made = map[baseTable]string{}
		}
		t.made[is] = from
	}
	to, err := os.MkdirTemp(t.dir, "warehouse-")
	if err != nil {
		return "", err
	}
	return to, linkTree(from, to)
}

// make makes a table; a worn one from one that is not.
func (t *targets) make(ctx context.Context, l harness.MergeLoad) (warehouse string, err error) {
	if l.Worn == 0 {
		warehouse = filepath.Join(t.dir, fmt.Sprintf("target-%d", l.TargetRows))
		return warehouse, makeTarget(ctx, warehouse, l.TargetRows, t.fileRows)
	}
	fresh := l
	fresh.Worn = 0
	if warehouse, err = t.clone(ctx, fresh); err != nil {
		return "", err
	}
	return warehouse, wear(ctx, warehouse, l)
}

func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return os.Link(path, filepath.Join(to, rel))
	})
}

// makeTarget writes the table as the storage room writes it, in one commit, in files
// of so many rows.
func makeTarget(ctx context.Context, warehouse string, rows, perFile int64) error {
	if err := os.MkdirAll(warehouse, 0o755); err != nil {
		return err
	}
	t, err := createTable(ctx, warehouse)
	if err != nil || rows == 0 {
		return err
	}
	w, err := t.NewDataFileWriter(paimon.WriterSettings{KeyColumns: []int{0}, Concurrency: 2, NewUUID: uuid.NewString})
	if err != nil {
		return err
	}
	base, err := t.State(ctx, nil)
	if err != nil {
		return err
	}
	ch := paimon.Changes{}
	load := harness.MergeLoad{Seed: seed, TargetRows: rows}
	b := types.NewBatch(t.Schema().Fields)
	for from := int64(0); from < rows; from += perFile {
		b.Reset()
		for id := from; id < min(from+perFile, rows); id++ {
			appendRow(b, load.Row(id, 0))
		}
		partition, err := t.PartitionOf(b, 0)
		if err != nil {
			return err
		}
		files, err := w.Write(partition, b, all(b.Len()))
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := t.Bucket().PutAll(ctx, f.Objects()); err != nil {
				return err
			}
			ch.Add = append(ch.Add, f.Entry)
		}
	}
	return commitTarget(ctx, t, base, ch, paimon.OperationWrite)
}

func commitTarget(ctx context.Context, t *paimon.Table, base *paimon.State, ch paimon.Changes, op paimon.Operation) error {
	c, err := t.BuildCommit(ctx, base, ch, paimon.CommitInfo{
		UUID: uuid.NewString(), User: "bench-" + uuid.NewString(), Identifier: 1,
		Operation: op, TimeMillis: time.Now().UnixMilli(), NewUUID: uuid.NewString,
	})
	if err != nil {
		return err
	}
	objects := c.Objects
	if ch.Index != nil {
		objects = append(objects, ch.Index.Objects...)
	}
	if err := t.Bucket().PutAll(ctx, objects); err != nil {
		return err
	}
	return t.Publish(ctx, c)
}

// openTarget opens the table of a warehouse.
func openTarget(ctx context.Context, warehouse string) (*paimon.Table, error) {
	c, err := catalog.NewFileSystem(warehouse, objstore.LocalOptions{})
	if err != nil {
		return nil, err
	}
	name, err := catalog.ParseName(tableName)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx, name, paimon.Write)
}

// wear deletes the rows that the load says, in one commit of deletion vectors.
func wear(ctx context.Context, warehouse string, l harness.MergeLoad) error {
	t, err := openTarget(ctx, warehouse)
	if err != nil {
		return err
	}
	_, st, err := t.Version(ctx, paimon.Version{})
	if err != nil {
		return err
	}
	files, err := t.Files(ctx, st, nil)
	if err != nil {
		return err
	}
	var vectors []paimon.VectorChange
	for i := range files {
		m := roaring.New()
		err := t.ReadFile(ctx, &files[i], []int{0}, func(start int64, b *types.Batch) error {
			for k, id := range b.Cols[0].I64 {
				if l.Deleted(id) {
					m.Add(uint32(start) + uint32(k))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		vectors = append(vectors, paimon.VectorChange{File: paimon.KeyOf(&files[i]), Vector: m})
	}
	ch := paimon.Changes{}
	none := func(k paimon.FileKey) (*roaring.Bitmap, error) { return nil, fmt.Errorf("a vector of %s", k.Name) }
	if ch.Index, err = t.BuildVectors(st, vectors, none, uuid.NewString); err != nil {
		return err
	}
	return commitTarget(ctx, t, st, ch, paimon.OperationDelete)
}

// createTable makes the empty table of MergeLoad's columns, as `create` would.
func createTable(ctx context.Context, warehouse string) (*paimon.Table, error) {
	c, err := catalog.NewFileSystem(warehouse, objstore.LocalOptions{})
	if err != nil {
		return nil, err
	}
	fields, err := mergeFields()
	if err != nil {
		return nil, err
	}
	s, err := paimon.NewSchema(fields, nil, map[string]string{paimon.OptBucket: "-1", paimon.OptDeletionVectors: "true"}, nil, time.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	name, err := catalog.ParseName(tableName)
	if err != nil {
		return nil, err
	}
	return c.Create(ctx, name, s)
}

// mergeFields are MergeLoad's columns; the key takes no NULL.
func mergeFields() ([]types.Field, error) {
	var fields []types.Field
	for i, c := range harness.MergeColumns {
		t, err := types.ParseType(c.Type)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			t = t.NonNull()
		}
		fields = append(fields, types.Field{ID: i, Name: c.Name, Type: t})
	}
	return fields, nil
}

// appendRow appends one row of MergeLoad to a batch of its columns.
func appendRow(b *types.Batch, r harness.MergeRow) {
	b.Cols[0].AppendInt64(r.ID)
	b.Cols[1].AppendInt64(r.V)
	b.Cols[2].AppendString(r.Name)
	b.Cols[3].AppendString(r.City)
	b.Cols[4].AppendDouble(r.Score)
	b.Cols[5].AppendInt64(r.Cents)
	b.Cols[6].AppendInt64(r.Micros)
	b.Cols[7].AppendInt32(int32(r.Day))
}

// all selects every row.
func all(n int) []uint32 {
	sel := make([]uint32, n)
	for i := range sel {
		sel[i] = uint32(i)
	}
	return sel
}
