package paimon

import (
	"context"
	"fmt"
	"path"
	"strings"

	"applier/storage/objstore"
	"applier/storage/paimon/manifest"
)

// Data files may lie outside of the table's folder: their entries have their full path
// (paimon-format.md §1.7). They are read, and listed as removed by commits that replace
// them. New files are always written into the table's folder, where readers look for
// files without such a path. Nothing outside is ever deleted: only Paimon's own cleaning
// knows whose it is.

// outsider is a store that reads files which lie outside of it.
type outsider interface {
	OpenOutside(path string) (objstore.Reader, error)
	StatOutside(path string) (objstore.Info, error)
}

// localPath returns the path of a file on this machine that metadata name by a full
// path. It must end with the file's name.
func localPath(full, name string) (string, error) {
	p := full
	for _, scheme := range []string{"file://", "file:"} {
		if rest, ok := strings.CutPrefix(full, scheme); ok {
			p = rest
			break
		}
	}
	if err := checkName(name); err != nil {
		return "", err
	}
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p || strings.ContainsRune(p, 0) || path.Base(p) != name {
		return "", fmt.Errorf("%w, and not at a path of this machine: %s", ErrExternalPath, full)
	}
	return p, nil
}

// outside returns the store and the path for a file that lies outside.
func (t *Table) outside(full, name string) (outsider, string, error) {
	o, ok := t.bucket.(outsider)
	if !ok {
		return nil, "", fmt.Errorf("%w, which its store cannot read: %s", ErrExternalPath, full)
	}
	p, err := localPath(full, name)
	return o, p, err
}

// CheckPlace is ErrExternalPath if a data file lies where it cannot be read from here.
func (t *Table) CheckPlace(e *manifest.Entry) error {
	if e.File.ExternalPath == nil {
		return nil
	}
	_, _, err := t.outside(*e.File.ExternalPath, e.File.Name)
	return err
}

// openData opens a data file, wherever it lies.
func (t *Table) openData(ctx context.Context, e *manifest.Entry) (objstore.Reader, error) {
	if full := e.File.ExternalPath; full != nil {
		return t.openOutside(*full, e.File.Name)
	}
	key, err := t.paths.Data(e)
	if err != nil {
		return nil, err
	}
	return t.bucket.Open(ctx, key, e.File.Size)
}

// openIndex opens an index file, wherever it lies.
func (t *Table) openIndex(ctx context.Context, e *manifest.IndexEntry) (objstore.Reader, error) {
	if e.ExternalPath != nil {
		return t.openOutside(*e.ExternalPath, e.Name)
	}
	key, err := t.paths.Index(e)
	if err != nil {
		return nil, err
	}
	return t.bucket.Open(ctx, key, e.Size)
}

func (t *Table) openOutside(full, name string) (objstore.Reader, error) {
	o, p, err := t.outside(full, name)
	if err != nil {
		return nil, err
	}
	return o.OpenOutside(p)
}

// StatData describes a data file, wherever it lies.
func (t *Table) StatData(ctx context.Context, e *manifest.Entry) (objstore.Info, error) {
	if full := e.File.ExternalPath; full != nil {
		o, p, err := t.outside(*full, e.File.Name)
		if err != nil {
			return objstore.Info{}, err
		}
		return o.StatOutside(p)
	}
	key, err := t.paths.Data(e)
	if err != nil {
		return objstore.Info{}, err
	}
	return t.bucket.Stat(ctx, key)
}

// Location names a data file for people: its key, or its full path if it lies outside
// of the table. It is no key of the table's store.
func (p Paths) Location(e *manifest.Entry) (string, error) {
	if e.File.ExternalPath != nil {
		return *e.File.ExternalPath, nil
	}
	return p.Data(e)
}
