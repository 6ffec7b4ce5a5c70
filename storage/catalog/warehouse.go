package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"applier/storage/objstore"
)

// warehouse is the tree of folders that a catalog is made of. Folders are named from
// the root by slash-separated paths. What is missing is objstore.ErrNotExist.
type warehouse interface {
	// String says where it is, for people.
	String() string
	// bucket returns the store of a folder.
	bucket(folder string) (objstore.Bucket, error)
	// folders lists the names of the folders in a folder, sorted; files says that
	// there is something else in it, too.
	folders(ctx context.Context, folder string) (names []string, files bool, err error)
	// has reports whether there is a folder of that name.
	has(ctx context.Context, folder string) (bool, error)
	// make makes a folder and those above it, durably; one that is there is no error.
	make(ctx context.Context, folder string) error
	// move gives a folder another name, at once and durably.
	move(ctx context.Context, from, to string) error
	// remove removes a table's or a database's folder with all that is in it. Nobody
	// finds half of a table.
	remove(ctx context.Context, folder string) error
}

// localWarehouse is a folder of the local disk.
type localWarehouse struct {
	root string
	open func(folder string) (objstore.Bucket, error)
}

func (w *localWarehouse) String() string { return w.root }

func (w *localWarehouse) path(folder string) string {
	return filepath.Join(w.root, filepath.FromSlash(folder))
}

func (w *localWarehouse) bucket(folder string) (objstore.Bucket, error) {
	return w.open(w.path(folder))
}

func (w *localWarehouse) folders(_ context.Context, folder string) (names []string, files bool, err error) {
	entries, err := os.ReadDir(w.path(folder))
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, fmt.Errorf("%w: %s", objstore.ErrNotExist, w.path(folder))
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		} else {
			files = true
		}
	}
	slices.Sort(names)
	return names, files, err
}

func (w *localWarehouse) has(_ context.Context, folder string) (bool, error) {
	info, err := os.Stat(w.path(folder))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}

// make syncs the parents up to the root, so that a table with commits cannot vanish
// with a power cut.
func (w *localWarehouse) make(_ context.Context, folder string) error {
	path := w.path(folder)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	for path != w.root {
		path = filepath.Dir(path)
		if err := syncFolder(path); err != nil {
			return err
		}
	}
	return nil
}

func (w *localWarehouse) move(_ context.Context, from, to string) error {
	if err := os.Rename(w.path(from), w.path(to)); err != nil {
		return err
	}
	if err := syncFolder(filepath.Dir(w.path(from))); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(w.path(to)))
}

// remove gives the folder another name first.
func (w *localWarehouse) remove(_ context.Context, folder string) error {
	dir := w.path(folder)
	away := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".dropped")
	if err := os.RemoveAll(away); err != nil {
		return err
	}
	if err := os.Rename(dir, away); err != nil {
		return err
	}
	if err := syncFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.RemoveAll(away); err != nil {
		return fmt.Errorf("it is gone, but not all of its files are deleted: %w", err)
	}
	return nil
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}
