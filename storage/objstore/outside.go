package objstore

import (
	"fmt"
	"os"
	"syscall"
)

// Files outside of a bucket are only read: nothing here writes, lists or deletes there.

// OpenOutside opens a regular file anywhere on the machine, given by its absolute path;
// ErrNotExist if there is none.
func (l *Local) OpenOutside(path string) (Reader, error) {
	// Looked at before it is opened: opening a pipe would wait for its other end.
	if _, err := l.StatOutside(path); err != nil {
		return nil, err
	}
	r, err := osFS{}.open(path[1:])
	if err != nil {
		return nil, failedRead("opening", path, err)
	}
	return r, nil
}

// StatOutside describes such a file.
func (l *Local) StatOutside(path string) (Info, error) {
	if len(path) < 2 || path[0] != '/' {
		return Info{}, fmt.Errorf("looking at %q: %w", path, ErrBadKey)
	}
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	}
	if err != nil {
		return Info{}, failedRead("looking at", path, err)
	}
	return infoOf(path, info), nil
}
