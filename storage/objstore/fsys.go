package objstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// fsys is a tree of files: the primitive operations from which the calls of
// Local and Mem are built, so that both do the same things in the same order and
// a crash test of one speaks for the other. Paths are keys below the root, ""
// is the root. Errors carry a syscall.Errno.
type fsys interface {
	// create makes a new empty file, EEXIST if the name is taken.
	create(path string) (file, error)
	// open opens a file for reading, following symbolic links; EISDIR for a folder.
	open(path string) (Reader, error)
	// stat describes a file or folder, following symbolic links.
	stat(path string) (Info, error)
	// list describes the direct children of a folder in the order of their names.
	list(dir string) ([]Info, error)
	// mkdir makes one folder in an existing one.
	mkdir(path string) error
	// link gives a file a second name, EEXIST if that is taken.
	link(from, to string) error
	// renameNew renames a file to a free name, EEXIST if it is taken.
	renameNew(from, to string) error
	// rename renames a file over whatever is there.
	rename(from, to string) error
	// unlink removes a name of a file, EISDIR for a folder.
	unlink(path string) error
	// syncFile makes the contents of an existing file durable, whoever wrote it.
	syncFile(path string) error
	// syncDir makes the entries of a folder durable.
	syncDir(path string) error
	// identity tells a folder from any other that had or will have its name;
	// false if the file system cannot.
	identity(path string) (folderID, bool)
}

// file is a new file being written.
type file interface {
	io.Writer
	// sync makes the contents durable. After an error the file is void: the
	// system may have dropped what it could not write, and a second sync would
	// say yes to it.
	sync() error
	close() error
}

// folderID identifies a folder for as long as the file system lives.
type folderID struct {
	dev, ino uint64
	birth    int64 // nanoseconds; inode numbers are used again
}

// classify adds the Bucket's sentinel to an error of the file system; the
// original stays wrapped.
func classify(err error) error {
	var kind error
	switch {
	case errors.Is(err, syscall.ENOENT):
		kind = ErrNotExist
	case errors.Is(err, syscall.EEXIST):
		kind = ErrExist
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		kind = ErrFull
	case errors.Is(err, syscall.EROFS):
		kind = ErrReadOnly
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		kind = ErrPermission
		if who := refusal(err); who != "" && !errors.Is(err, kind) {
			return fmt.Errorf("%w: %w (%s)", kind, err, who)
		}
	case errors.Is(err, syscall.ENAMETOOLONG):
		kind = ErrBadKey
	default:
		return err
	}
	if errors.Is(err, kind) {
		return err
	}
	return fmt.Errorf("%w: %w", kind, err)
}

// refusal says who was refused by what: the user of this process, and owner and
// mode of the file or the nearest folder above it; "" if the error names no path.
func refusal(err error) string {
	var path string
	var onPath *os.PathError
	var onLink *os.LinkError
	switch {
	case errors.As(err, &onPath):
		path = onPath.Path
	case errors.As(err, &onLink):
		path = onLink.New
	}
	for filepath.IsAbs(path) { // a folder in memory has no owner
		if info, err := os.Lstat(path); err == nil {
			return fmt.Sprintf("this process runs as uid %d; %s has mode %#o%s", os.Geteuid(), path, info.Mode().Perm(), ownerOf(info))
		}
		up := filepath.Dir(path)
		if up == path {
			break
		}
		path = up
	}
	return ""
}

// absent reports whether err means that a name leads to no file: nothing is
// there, a folder is, or a file stands where a folder should.
func absent(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR)
}

// failed wraps an error of the file system with what was being done to which key.
func failed(doing, key string, err error) error {
	return fmt.Errorf("%s %q: %w", doing, key, classify(err))
}

// failedRead is failed for reads, where everything absent is ErrNotExist.
func failedRead(doing, key string, err error) error {
	if absent(err) && !errors.Is(err, syscall.ENOENT) {
		err = fmt.Errorf("%w: %w", ErrNotExist, err)
	}
	return failed(doing, key, err)
}
