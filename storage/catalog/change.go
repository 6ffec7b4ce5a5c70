package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrDatabaseExists: the database is there already.
var ErrDatabaseExists = errors.New("database exists already")

// ErrNotEmpty: a database with tables, or other files, in it.
var ErrNotEmpty = errors.New("database is not empty")

// HasDatabase reports whether a database exists.
func (c *FileSystem) HasDatabase(name string) (bool, error) {
	if !namePart.MatchString(name) {
		return false, fmt.Errorf("%w: database %q; use letters, digits and underscores", ErrBadName, name)
	}
	info, err := os.Stat(filepath.Join(c.root, name+".db"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}

// CreateDatabase makes an empty database, ErrDatabaseExists if there is one.
func (c *FileSystem) CreateDatabase(name string) error {
	if ok, err := c.HasDatabase(name); err != nil || ok {
		if ok {
			err = fmt.Errorf("%w: %s", ErrDatabaseExists, name)
		}
		return err
	}
	if err := os.Mkdir(filepath.Join(c.root, name+".db"), 0o777); err != nil {
		return fmt.Errorf("creating database %s: %w", name, err)
	}
	return syncFolder(c.root)
}

// DropDatabase removes a database, with cascade also one with tables in it.
func (c *FileSystem) DropDatabase(ctx context.Context, name string, cascade bool) error {
	ok, err := c.HasDatabase(name)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %s", ErrNoDatabase, name)
	}
	dir := filepath.Join(c.root, name+".db")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("dropping database %s: %w", name, err)
	}
	if len(entries) > 0 && !cascade {
		return fmt.Errorf("%w: %s holds %s; drop its tables first, or use CASCADE", ErrNotEmpty, name, entries[0].Name())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("dropping database %s: %w", name, err)
	}
	return syncFolder(c.root)
}

// Drop removes a table with all its files. It gets another name first, so that
// nobody finds half of it.
func (c *FileSystem) Drop(ctx context.Context, n Name) error {
	if _, err := c.Bucket(ctx, n); err != nil {
		return err
	}
	dir := c.dir(n)
	away := filepath.Join(filepath.Dir(dir), "."+n.Table+".dropped")
	if err := os.RemoveAll(away); err != nil {
		return fmt.Errorf("dropping table %s: %w", n, err)
	}
	if err := os.Rename(dir, away); err != nil {
		return fmt.Errorf("dropping table %s: %w", n, err)
	}
	if err := syncFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.RemoveAll(away); err != nil {
		return fmt.Errorf("the table %s is dropped, its files are not all deleted: %w", n, err)
	}
	return nil
}

// Rename gives a table another name, perhaps in another database.
func (c *FileSystem) Rename(ctx context.Context, from, to Name) error {
	if !namePart.MatchString(to.Database) || !namePart.MatchString(to.Table) {
		return fmt.Errorf("%w: %q", ErrBadName, to)
	}
	if _, err := c.Bucket(ctx, from); err != nil {
		return err
	}
	ok, err := c.HasDatabase(to.Database)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %s", ErrNoDatabase, to.Database)
	}
	if _, err := os.Lstat(c.dir(to)); err == nil {
		return fmt.Errorf("%w: %s", ErrTableExists, to)
	}
	if err := os.Rename(c.dir(from), c.dir(to)); err != nil {
		return fmt.Errorf("renaming table %s: %w", from, err)
	}
	if err := syncFolder(filepath.Dir(c.dir(from))); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(c.dir(to)))
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
