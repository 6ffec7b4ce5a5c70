// Package objstore moves bytes: the small interface through which tables are
// read and written, with a local disk, an in-memory file system for tests and
// (later) S3 behind it. It knows nothing of tables.
package objstore

import (
	"context"
	"errors"
	"io"
	"time"
)

// Errors of a Bucket. Everything else that PutIfAbsent returns means "unknown":
// the object may or may not exist now.
var (
	// ErrNotExist: no such object.
	ErrNotExist = errors.New("object does not exist")
	// ErrExist: PutIfAbsent found the name taken (by whom is for the caller to find out).
	ErrExist = errors.New("object exists already")
	// ErrFull: no space, quota or inodes left.
	ErrFull = errors.New("no space left")
	// ErrReadOnly: the store refuses writes.
	ErrReadOnly = errors.New("store is read-only")
	// ErrPermission: the store refuses this caller.
	ErrPermission = errors.New("permission denied")
	// ErrBadKey: the key is empty, absolute, has an empty, "." or ".." part, a
	// NUL, or a part of more than 255 bytes.
	ErrBadKey = errors.New("bad object key")
)

// Object is one object to write.
type Object struct {
	Key  string
	Data []byte
}

// Info describes a stored object or a folder of a listing.
type Info struct {
	Key      string // full key
	Size     int64
	Modified time.Time
	Folder   bool
}

// Reader reads parts of one object. Close it once.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Writer streams one new object. Nothing is visible under the key's name before
// Close returned nil; then the object is durable. Abort drops it; after Close or
// Abort both are no-ops.
type Writer interface {
	io.Writer
	Close() error
	Abort()
}

// Bucket is a tree of objects named by slash-separated keys. It is safe for
// concurrent use. Every write is durable when its call returned nil: on local
// disk the file and all folders up to it are synced, on an object store the
// answer has come. No call deletes anything but Delete.
type Bucket interface {
	// Get returns a whole object, or ErrNotExist.
	Get(ctx context.Context, key string) ([]byte, error)
	// Open returns a Reader, or ErrNotExist. Size is the object's if known, else negative.
	Open(ctx context.Context, key string, size int64) (Reader, error)
	// PutAll writes new objects side by side, in no particular order, and makes
	// all of them durable; an error leaves any part of them written. Existing
	// objects of the same name are an error (names are unique by construction).
	PutAll(ctx context.Context, objects []Object) error
	// Create starts a new object of unknown size.
	Create(ctx context.Context, key string) (Writer, error)
	// PutIfAbsent publishes a small object under a name that must be free: nil
	// means won, ErrExist lost or won earlier, any other error unknown. It never
	// replaces and a reader never sees half of it.
	PutIfAbsent(ctx context.Context, key string, data []byte) error
	// Replace writes an object over whatever is there, atomically for readers.
	// It is for hints and pins: it need not be durable.
	Replace(ctx context.Context, key string, data []byte) error
	// Stat describes an object, or ErrNotExist. A folder is not an object.
	Stat(ctx context.Context, key string) (Info, error)
	// List calls fn for each direct child of the folder prefix ("" is the root),
	// folders included, in key order. A missing folder has no children.
	List(ctx context.Context, prefix string, fn func(Info) error) error
	// Delete removes objects; missing ones are no error.
	Delete(ctx context.Context, keys ...string) error
}
