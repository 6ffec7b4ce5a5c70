package objstore

import (
	"io"
	"io/fs"
	"slices"
	"syscall"
)

type memFile struct {
	fs   *memFS
	path string
	node *memNode
}

// Write implements io.Writer.
func (f *memFile) Write(p []byte) (n int, err error) {
	err = f.fs.run(Op{Kind: OpWrite, Path: f.path, Size: len(p)}, func() error {
		f.write(p)
		n = len(p)
		return nil
	}, func(fault Fault) {
		n = min(max(fault.Written, 0), len(p))
		f.write(p[:n])
	})
	return n, err
}

func (f *memFile) write(p []byte) {
	f.node.write(p)
	f.node.modified = f.fs.o.Now()
}

func (f *memFile) sync() error {
	return f.fs.run(Op{Kind: OpSync, Path: f.path}, func() error {
		f.node.sync()
		return nil
	}, func(Fault) { f.node.void() })
}

func (f *memFile) close() error { return nil }

type memReader struct {
	fs     *memFS
	path   string
	data   []byte // as of opening; files do not change in place
	closed bool
}

func (m *memFS) open(path string) (r Reader, err error) {
	err = m.run(Op{Kind: OpOpen, Path: path}, func() error {
		n, err := m.disk.find(path)
		if err != nil {
			return err
		}
		if n.folder() {
			return syscall.EISDIR
		}
		r = &memReader{fs: m, path: path, data: slices.Clip(n.data)}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// ReadAt implements io.ReaderAt.
func (r *memReader) ReadAt(p []byte, off int64) (n int, err error) {
	if r.closed {
		return 0, fs.ErrClosed
	}
	if off < 0 {
		return 0, pathError(Op{Kind: OpRead, Path: r.path}, syscall.EINVAL)
	}
	err = r.fs.run(Op{Kind: OpRead, Path: r.path, Size: len(p)}, func() error {
		if off < int64(len(r.data)) {
			n = copy(p, r.data[off:])
		}
		return nil
	}, nil)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (r *memReader) Close() error {
	if r.closed {
		return fs.ErrClosed
	}
	r.closed = true
	return nil
}

// Size implements Reader.
func (r *memReader) Size() int64 { return int64(len(r.data)) }
