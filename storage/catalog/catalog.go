// Package catalog finds and makes tables by name. The one kind there is now is
// the file system catalog, on a local disk or in an object store: a database is a
// folder NAME.db below the warehouse, a table a folder in it that has a schema
// (source: Paimon FileSystemCatalog).
package catalog

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"applier/storage/objstore"
	"applier/storage/paimon"
)

// Errors of a catalog.
var (
	// ErrBadName: a database or table name that could leave its folder or confuse
	// another engine.
	ErrBadName = errors.New("bad table name")
	// ErrNoTable: no such table.
	ErrNoTable = errors.New("table does not exist")
	// ErrNoDatabase: no such database.
	ErrNoDatabase = errors.New("database does not exist")
	// ErrTableExists: the table is there already.
	ErrTableExists = errors.New("table exists already")
)

// DefaultDatabase is the database of a new warehouse.
const DefaultDatabase = "default"

var namePart = regexp.MustCompile(`^[A-Za-z0-9_]{1,128}$`)

// Name is a table's full name.
type Name struct {
	Database, Table string
}

// ParseName reads DATABASE.TABLE. Names are letters, digits and underscores:
// they become folders.
func ParseName(s string) (Name, error) {
	db, table, ok := strings.Cut(s, ".")
	n := Name{db, table}
	if !ok || !namePart.MatchString(db) || !namePart.MatchString(table) {
		return Name{}, fmt.Errorf("%w: %q; write DATABASE.TABLE with letters, digits and underscores", ErrBadName, s)
	}
	return n, nil
}

// String returns DATABASE.TABLE.
func (n Name) String() string { return n.Database + "." + n.Table }

// FileSystem is a catalog of a warehouse that is a tree of folders. It is safe for
// concurrent use and keeps nothing: every call looks.
type FileSystem struct {
	w warehouse
}

// NewFileSystem returns the catalog of a warehouse folder, which must exist.
func NewFileSystem(root string, o objstore.LocalOptions) (*FileSystem, error) {
	if _, err := objstore.NewLocal(root, o); err != nil {
		if errors.Is(err, objstore.ErrNotExist) {
			return nil, fmt.Errorf("the warehouse folder %s does not exist; make it, or mount what it is on: %w", root, err)
		}
		return nil, fmt.Errorf("opening warehouse %s: %w", root, err)
	}
	open := func(folder string) (objstore.Bucket, error) { return objstore.NewLocal(folder, o) }
	return &FileSystem{&localWarehouse{root, open}}, nil
}

// UseStore replaces what opens a table's folder on the local disk, before the first
// call of another method: tests put something between the tables and the disk, or
// another disk below them.
func (c *FileSystem) UseStore(open func(folder string) (objstore.Bucket, error)) {
	if w, ok := c.w.(*localWarehouse); ok {
		w.open = open
	}
}

func databaseFolder(name string) string { return name + ".db" }

func (n Name) folder() string { return databaseFolder(n.Database) + "/" + n.Table }

// Bucket returns the store of an existing table's folder, which is the
// bucket's root: a table that is dropped is never made again by writing to it.
func (c *FileSystem) Bucket(ctx context.Context, n Name) (objstore.Bucket, error) {
	if !namePart.MatchString(n.Database) || !namePart.MatchString(n.Table) {
		return nil, fmt.Errorf("%w: %q", ErrBadName, n)
	}
	b, err := c.w.bucket(n.folder())
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoTable, n)
	}
	if err != nil {
		return nil, err
	}
	ids, err := paimon.ListSchemaIDs(ctx, b, paimon.Paths{})
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: %s has no schema", ErrNoTable, n)
	}
	return b, nil
}

// Open opens a table at its latest schema.
func (c *FileSystem) Open(ctx context.Context, n Name, a paimon.Access) (*paimon.Table, error) {
	b, err := c.Bucket(ctx, n)
	if err != nil {
		return nil, err
	}
	t, err := paimon.OpenTable(ctx, b, a)
	if err != nil {
		return nil, fmt.Errorf("opening table %s: %w", n, err)
	}
	return t, nil
}

// Create makes a table, and its database if that is missing.
func (c *FileSystem) Create(ctx context.Context, n Name, s *paimon.Schema) (*paimon.Table, error) {
	if !namePart.MatchString(n.Database) || !namePart.MatchString(n.Table) {
		return nil, fmt.Errorf("%w: %q", ErrBadName, n)
	}
	if err := c.w.make(ctx, n.folder()); err != nil {
		return nil, fmt.Errorf("creating table %s: %w", n, err)
	}
	b, err := c.w.bucket(n.folder())
	if err != nil {
		return nil, err
	}
	if err := paimon.CreateTable(ctx, b, s); err != nil {
		if errors.Is(err, objstore.ErrExist) {
			return nil, fmt.Errorf("%w: %s", ErrTableExists, n)
		}
		return nil, fmt.Errorf("creating table %s: %w", n, err)
	}
	return paimon.OpenTable(ctx, b, paimon.Write)
}

// Databases lists the databases, sorted.
func (c *FileSystem) Databases(ctx context.Context) ([]string, error) {
	folders, _, err := c.w.folders(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("listing warehouse %s: %w", c.w, err)
	}
	var out []string
	for _, f := range folders {
		if name, ok := strings.CutSuffix(f, ".db"); ok && name != "" {
			out = append(out, name)
		}
	}
	return out, nil
}

// Tables lists the tables of a database, sorted.
func (c *FileSystem) Tables(ctx context.Context, database string) ([]string, error) {
	if !namePart.MatchString(database) {
		return nil, fmt.Errorf("%w: database %q", ErrBadName, database)
	}
	folders, _, err := c.w.folders(ctx, databaseFolder(database))
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNoDatabase, database)
	}
	if err != nil {
		return nil, fmt.Errorf("listing database %s: %w", database, err)
	}
	var out []string
	for _, f := range folders {
		if !namePart.MatchString(f) {
			continue
		}
		if _, err := c.Bucket(ctx, Name{database, f}); err == nil {
			out = append(out, f)
		} else if !errors.Is(err, ErrNoTable) {
			return nil, err
		}
	}
	return out, nil
}
