package objstore

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// LocalOptions tune a Local. The zero value is ready for use.
type LocalOptions struct {
	// Parallel bounds the files that one PutAll writes or syncs at the same time;
	// 0 means 16: enough for all files and folders of a commit at once.
	Parallel int
	// Observe, if set, is told of every call when it ends: its name (get, open,
	// read, stat, list, put_all, create, put_if_absent, replace, delete), its key
	// or first key, the bytes moved, the error, the time it took (create: until
	// Close or Abort). It is called from the caller's goroutine and must be quick.
	Observe func(op, key string, bytes int64, err error, d time.Duration)
}

// Local is a Bucket on a local disk. Files get the modes that the process's umask
// leaves of 0666, folders of 0777, as with Paimon's Java writers. Symbolic links
// below the root are followed like ordinary folders and files.
//
// Create a Local for each table, with the table's folder as root: folders below
// the root are made when they are missing, so a Local rooted at the warehouse
// would bring back a table that somebody has just dropped.
type Local struct {
	files
	root string
}

// NewLocal returns the bucket of an existing folder; ErrNotExist if there is none.
func NewLocal(root string, o LocalOptions) (*Local, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("opening bucket: %w", err)
	}
	info, err := os.Stat(root)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "stat", Path: root, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, failedRead("opening bucket", root, err)
	}
	if o.Parallel <= 0 {
		o.Parallel = 16
	}
	return &Local{
		files: files{fs: osFS{root: root}, parallel: o.Parallel, observe: o.Observe, tempID: uuid.NewString},
		root:  root,
	}, nil
}

// Root returns the absolute path of the bucket's folder.
func (l *Local) Root() string { return l.root }

// FileSystem returns the type of the file system that holds the root, "unknown" if
// it has no name here, and whether it is reached over a network or shared by
// several machines: there, exclusive creation and durability depend on a server
// and its mount options, and the daemon refuses to start unless told otherwise.
func (l *Local) FileSystem() (name string, network bool, err error) {
	name, network, err = fileSystemOf(l.root)
	if err != nil {
		return "", false, failedRead("asking for the file system of", l.root, err)
	}
	return name, network, nil
}

// osFS is the machine's file system below root.
type osFS struct {
	root string
}

func (o osFS) path(key string) string {
	if key == "" {
		return o.root
	}
	return o.root + "/" + key
}

type osFile struct{ *os.File }

func (f osFile) sync() error  { return f.Sync() }
func (f osFile) close() error { return f.Close() }

func (o osFS) create(path string) (file, error) {
	f, err := os.OpenFile(o.path(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// osReader reads by pread.
type osReader struct {
	*os.File
	size int64
}

// Size implements Reader.
func (r osReader) Size() int64 { return r.size }

func (o osFS) open(path string) (Reader, error) {
	f, err := os.Open(o.path(path))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: f.Name(), Err: syscall.EISDIR}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return osReader{f, info.Size()}, nil
}

func (o osFS) stat(path string) (Info, error) {
	info, err := os.Stat(o.path(path))
	if err != nil {
		return Info{}, err
	}
	return infoOf(path, info), nil
}

func infoOf(key string, info os.FileInfo) Info {
	i := Info{Key: key, Modified: info.ModTime(), Folder: info.IsDir()}
	if !i.Folder {
		i.Size = info.Size()
	}
	return i
}

// list skips what vanishes meanwhile, links that lead nowhere, and names that
// cannot be part of a key.
func (o osFS) list(dir string) ([]Info, error) {
	entries, err := os.ReadDir(o.path(dir))
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		if !utf8.ValidString(e.Name()) {
			continue
		}
		key := join(dir, e.Name())
		info, err := e.Info()
		if err == nil && info.Mode()&os.ModeSymlink != 0 {
			info, err = os.Stat(o.path(key))
		}
		if absent(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, infoOf(key, info))
	}
	return infos, nil
}

func (o osFS) mkdir(path string) error         { return os.Mkdir(o.path(path), 0o777) }
func (o osFS) link(from, to string) error      { return os.Link(o.path(from), o.path(to)) }
func (o osFS) rename(from, to string) error    { return rename(o.path(from), o.path(to)) }
func (o osFS) unlink(path string) error        { return unlink(o.path(path)) }
func (o osFS) renameNew(from, to string) error { return renameNew(o.path(from), o.path(to)) }

func (o osFS) identity(path string) (folderID, bool) { return identityOf(o.path(path), time.Now()) }

func (o osFS) syncFile(path string) error {
	f, err := os.Open(o.path(path))
	if err != nil {
		return err
	}
	err = f.Sync()
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func (o osFS) syncDir(path string) error {
	d, err := os.Open(o.path(path))
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}

// rename is rename(2) alone: os.Rename looks first, and says EEXIST of a folder.
func rename(from, to string) error {
	for {
		err := syscall.Rename(from, to)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
		return nil
	}
}

// unlink is unlink(2) alone: os.Remove would remove empty folders too.
func unlink(path string) error {
	for {
		err := syscall.Unlink(path)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "unlink", Path: path, Err: err}
		}
		return nil
	}
}

var (
	_ Bucket = (*Local)(nil)
	_ Bucket = (*Mem)(nil)
	_ Bucket = (*Faulty)(nil)
)
