// Package objstore moves bytes: the small interface through which tables are
// read and written, with a local disk ([Local]), a disk in memory that can crash
// ([Mem]) and (later) S3 behind it. It knows nothing of tables.
//
// Local and Mem share the code that decides what is written, linked and synced in
// which order (files.go and its neighbours); they differ in the file system below
// it. So the crash tests of Mem are tests of Local. Package objstoretest holds what
// every Bucket must do.
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
	// ErrSize: the object is shorter than Open was told.
	ErrSize = errors.New("the object is shorter than it should be")
	// ErrBadKey: the key is empty, absolute, has an empty, "." or ".." part, a
	// NUL, a part of more than 255 bytes, or is not UTF-8.
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
// Close; when Close returned nil the object is complete and durable. If the name
// is taken by then, Close says ErrExist. Abort drops the object. After Close or
// Abort both do nothing; a late Close returns what the first one did, or an error
// after Abort. A Writer belongs to one goroutine.
type Writer interface {
	io.Writer
	Close() error
	Abort()
}

// Bucket is a tree of objects named by slash-separated keys. It is safe for
// concurrent use. Every write but Replace is durable when its call returned nil:
// on local disk the file and all folders up to the root are synced, on an object
// store the answer has come. Missing folders of a new object are created, the
// root never is: if it is gone, calls say ErrNotExist. No call deletes objects
// but Delete; a write that fails takes away what it has itself written under
// names that were free.
type Bucket interface {
	// Get returns a whole object, or ErrNotExist.
	Get(ctx context.Context, key string) ([]byte, error)
	// Open returns a Reader, or ErrNotExist. Size is the object's if known, else negative.
	// Where nothing is asked before the first read, that read says ErrSize if it is not.
	Open(ctx context.Context, key string, size int64) (Reader, error)
	// PutAll writes new objects side by side, in no particular order, and makes
	// all of them durable. After an error any part of them may exist, complete or
	// not: write again under new names. Existing objects of the same name are
	// ErrExist and stay as they are (names are unique by construction). The data
	// is not retained.
	PutAll(ctx context.Context, objects []Object) error
	// Create starts a new object of unknown size.
	Create(ctx context.Context, key string) (Writer, error)
	// PutIfAbsent publishes a small object under a name that must be free: nil
	// means won, ErrExist lost or won earlier, any other error unknown. It never
	// replaces and a reader never sees half of it. After an unknown outcome,
	// reading the object back shows who won, but not that it is durable: call
	// again with the same bytes; ErrExist then says that what PutIfAbsent or
	// Create has put there is durable.
	PutIfAbsent(ctx context.Context, key string, data []byte) error
	// Replace writes an object over whatever is there, atomically for readers.
	// It is for hints and pins: after a power cut the object may be the old one or
	// the new one (or, where there was none before, missing), never half of one.
	Replace(ctx context.Context, key string, data []byte) error
	// Sync makes objects durable that somebody else may have written without
	// syncing (Paimon's Java writers on a local disk), or whose writing had an
	// unknown outcome; ErrNotExist if one is missing. Where every write is durable
	// it does nothing.
	Sync(ctx context.Context, keys ...string) error
	// Stat describes an object, or ErrNotExist. A folder is not an object.
	Stat(ctx context.Context, key string) (Info, error)
	// List calls fn for each direct child of the folder prefix ("" is the root; one
	// slash at its end is allowed), folders and unfinished hidden objects (IsTemp)
	// included, in the byte order of their keys. A missing folder has no children,
	// a missing root is ErrNotExist. An error of fn ends the listing and is
	// returned as it is.
	List(ctx context.Context, prefix string, fn func(Info) error) error
	// Delete removes objects, durably; missing ones are no error, folders stay. It
	// tries all keys and returns all errors.
	Delete(ctx context.Context, keys ...string) error
}
