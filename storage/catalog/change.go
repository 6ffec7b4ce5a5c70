package catalog

import (
	"context"
	"errors"
	"fmt"
)

// ErrDatabaseExists: the database is there already.
var ErrDatabaseExists = errors.New("database exists already")

// ErrNotEmpty: a database with tables, or other files, in it.
var ErrNotEmpty = errors.New("database is not empty")

// HasDatabase reports whether a database exists.
func (c *FileSystem) HasDatabase(ctx context.Context, name string) (bool, error) {
	if !namePart.MatchString(name) {
		return false, fmt.Errorf("%w: database %q; use letters, digits and underscores", ErrBadName, name)
	}
	return c.w.has(ctx, databaseFolder(name))
}

// CreateDatabase makes an empty database, ErrDatabaseExists if there is one.
func (c *FileSystem) CreateDatabase(ctx context.Context, name string) error {
	if ok, err := c.HasDatabase(ctx, name); err != nil || ok {
		if ok {
			err = fmt.Errorf("%w: %s", ErrDatabaseExists, name)
		}
		return err
	}
	if err := c.w.make(ctx, databaseFolder(name)); err != nil {
		return fmt.Errorf("creating database %s: %w", name, err)
	}
	return nil
}

// DropDatabase removes a database, with cascade also one with tables in it.
func (c *FileSystem) DropDatabase(ctx context.Context, name string, cascade bool) error {
	ok, err := c.HasDatabase(ctx, name)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %s", ErrNoDatabase, name)
	}
	folders, files, err := c.w.folders(ctx, databaseFolder(name))
	if err != nil {
		return fmt.Errorf("dropping database %s: %w", name, err)
	}
	if (len(folders) > 0 || files) && !cascade {
		what := "files"
		if len(folders) > 0 {
			what = folders[0]
		}
		return fmt.Errorf("%w: %s holds %s; drop its tables first, or use CASCADE", ErrNotEmpty, name, what)
	}
	for _, f := range folders { // a table goes as a whole
		if err := c.w.remove(ctx, databaseFolder(name)+"/"+f); err != nil {
			return fmt.Errorf("dropping database %s: %w", name, err)
		}
	}
	if err := c.w.remove(ctx, databaseFolder(name)); err != nil {
		return fmt.Errorf("dropping database %s: %w", name, err)
	}
	return nil
}

// Drop removes a table with all its files.
func (c *FileSystem) Drop(ctx context.Context, n Name) error {
	if _, err := c.Bucket(ctx, n); err != nil {
		return err
	}
	if err := c.w.remove(ctx, n.folder()); err != nil {
		return fmt.Errorf("dropping table %s: %w", n, err)
	}
	return nil
}

// Rename gives a table another name, perhaps in another database. In an object store
// it is ErrNotOnS3.
func (c *FileSystem) Rename(ctx context.Context, from, to Name) error {
	if !namePart.MatchString(to.Database) || !namePart.MatchString(to.Table) {
		return fmt.Errorf("%w: %q", ErrBadName, to)
	}
	if _, err := c.Bucket(ctx, from); err != nil {
		return err
	}
	ok, err := c.HasDatabase(ctx, to.Database)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: %s", ErrNoDatabase, to.Database)
	}
	if ok, err := c.w.has(ctx, to.folder()); err != nil || ok {
		if ok {
			err = fmt.Errorf("%w: %s", ErrTableExists, to)
		}
		return err
	}
	if err := c.w.move(ctx, from.folder(), to.folder()); err != nil {
		return fmt.Errorf("renaming table %s: %w", from, err)
	}
	return nil
}
