package catalog

import (
	"context"
	"errors"
	"fmt"

	"applier/storage/objstore"
)

// ErrNotOnS3 says that an object store cannot do something that a disk can.
var ErrNotOnS3 = errors.New("not possible on an object store")

// NewS3 returns the catalog of a warehouse in an S3 store. Nothing is asked of the
// store yet.
func NewS3(o objstore.S3Options) (*FileSystem, error) {
	s, err := objstore.NewS3(o)
	if err != nil {
		return nil, err
	}
	root, err := s.At("")
	if err != nil {
		return nil, err
	}
	return &FileSystem{&s3Warehouse{s, root}}, nil
}

// s3Warehouse is a prefix of a bucket. A database without tables is a marker object,
// as Hadoop's file systems make them.
type s3Warehouse struct {
	s    *objstore.S3
	root *objstore.S3Bucket
}

func (w *s3Warehouse) String() string { return w.root.String() }

func (w *s3Warehouse) bucket(folder string) (objstore.Bucket, error) { return w.s.At(folder) }

func (w *s3Warehouse) folders(ctx context.Context, folder string) (names []string, files bool, err error) {
	b, err := w.s.At(folder)
	if err != nil {
		return nil, false, err
	}
	any := false
	err = b.List(ctx, "", func(i objstore.Info) error {
		any = true
		if i.Folder {
			names = append(names, i.Key)
		} else {
			files = true
		}
		return nil
	})
	if err == nil && !any && folder != "" {
		if any, err = b.Exists(ctx); err == nil && !any {
			err = fmt.Errorf("%w: %s", objstore.ErrNotExist, b)
		}
	}
	return names, files, err
}

func (w *s3Warehouse) has(ctx context.Context, folder string) (bool, error) {
	b, err := w.s.At(folder)
	if err != nil {
		return false, err
	}
	return b.Exists(ctx)
}

func (w *s3Warehouse) make(ctx context.Context, folder string) error {
	b, err := w.s.At(folder)
	if err != nil {
		return err
	}
	return b.Mark(ctx)
}

func (w *s3Warehouse) move(context.Context, string, string) error {
	return fmt.Errorf("renaming a table: %w, where it is a copy that others see half of; create another table and INSERT … SELECT", ErrNotOnS3)
}

// remove deletes a table's schemas first: without one it is no table any more.
func (w *s3Warehouse) remove(ctx context.Context, folder string) error {
	b, err := w.s.At(folder)
	if err != nil {
		return err
	}
	if err := b.RemoveAll(ctx, "schema"); err != nil {
		return err
	}
	return b.RemoveAll(ctx, "")
}
