package objstore

import (
	"io/fs"
	"maps"
	"slices"
	"syscall"
)

// memFS is one user's view of a memDisk.
type memFS struct {
	disk    *memDisk
	o       MemOptions
	ops     int64
	crashed bool
}

// run carries out one primitive operation with the faults that the user's hook
// wants. effect does it, under the disk's lock; spoil, if not nil, does what a
// refused operation leaves behind.
func (m *memFS) run(op Op, effect func() error, spoil func(Fault)) error {
	m.disk.mu.Lock()
	m.ops++
	op.N = m.ops
	crashed := m.crashed
	m.disk.mu.Unlock()
	if crashed {
		return ErrCrashed
	}
	var f Fault
	if m.o.Fault != nil {
		f = m.o.Fault(op)
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if m.crashed { // by another goroutine, or by the hook
		return ErrCrashed
	}
	if f.Crash {
		if f.Applied {
			_ = effect()
		}
		m.crashed = true
		return ErrCrashed
	}
	if f.Delay && f.Err == nil {
		f.Err = errNoAnswer
	}
	if f.Err != nil && !f.Applied {
		if spoil != nil {
			spoil(f)
		}
		return pathError(op, f.Err)
	}
	if f.Lie && (op.Kind == OpSync || op.Kind == OpSyncDir) {
		return nil
	}
	if err := effect(); err != nil {
		return pathError(op, err)
	}
	if f.Err != nil {
		return pathError(op, f.Err)
	}
	return nil
}

func pathError(op Op, err error) error {
	return &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: err}
}

func (m *memFS) create(path string) (file, error) {
	n := &memNode{}
	err := m.run(Op{Kind: OpCreate, Path: path}, func() error { return m.enter(path, n) }, nil)
	if err != nil {
		return nil, err
	}
	return &memFile{fs: m, path: path, node: n}, nil
}

// enter puts a node into a folder under a free name.
func (m *memFS) enter(path string, n *memNode) error {
	folder, err := m.disk.parent(path)
	if err != nil {
		return err
	}
	switch name := nameOf(path); {
	case len(name) > maxName:
		return syscall.ENAMETOOLONG
	case folder.entries[name] != nil:
		return syscall.EEXIST
	}
	now := m.o.Now()
	if n.modified.IsZero() {
		n.modified = now
	}
	folder.set(nameOf(path), n, now)
	return nil
}

func (m *memFS) stat(path string) (info Info, err error) {
	err = m.run(Op{Kind: OpStat, Path: path}, func() error {
		n, err := m.disk.find(path)
		if err == nil {
			info = n.info(path)
		}
		return err
	}, nil)
	return info, err
}

func (n *memNode) info(key string) Info {
	return Info{Key: key, Size: int64(len(n.data)), Modified: n.modified, Folder: n.folder()}
}

func (m *memFS) list(dir string) (infos []Info, err error) {
	err = m.run(Op{Kind: OpList, Path: dir}, func() error {
		n, err := m.disk.find(dir)
		if err != nil {
			return err
		}
		if !n.folder() {
			return syscall.ENOTDIR
		}
		for _, name := range slices.Sorted(maps.Keys(n.entries)) {
			infos = append(infos, n.entries[name].info(join(dir, name)))
		}
		return nil
	}, nil)
	return infos, err
}

func (m *memFS) mkdir(path string) error {
	return m.run(Op{Kind: OpMkdir, Path: path}, func() error {
		m.disk.folders++
		return m.enter(path, newFolder(m.disk.folders))
	}, nil)
}

func (m *memFS) link(from, to string) error { return m.publish(OpLink, from, to) }

func (m *memFS) renameNew(from, to string) error { return m.publish(OpRenameNew, from, to) }

func (m *memFS) publish(kind OpKind, from, to string) error {
	return m.run(Op{Kind: kind, Path: from, To: to}, func() error {
		n, err := m.disk.find(from)
		if err == nil {
			err = m.enter(to, n)
		}
		if err == nil && kind == OpRenameNew {
			err = m.remove(from)
		}
		return err
	}, func(f Fault) {
		if n, err := m.disk.find(from); f.Delay && err == nil {
			m.disk.delayed = append(m.disk.delayed, &Delayed{Key: to, data: slices.Clip(n.data)})
		}
	})
}

func (m *memFS) rename(from, to string) error {
	return m.run(Op{Kind: OpRename, Path: from, To: to}, func() error {
		n, err := m.disk.find(from)
		if err != nil {
			return err
		}
		folder, err := m.disk.parent(to)
		if err != nil {
			return err
		}
		if old := folder.entries[nameOf(to)]; old != nil && old.folder() {
			return syscall.EISDIR
		}
		folder.set(nameOf(to), n, m.o.Now())
		return m.remove(from)
	}, nil)
}

// remove takes an entry out of its folder.
func (m *memFS) remove(path string) error {
	folder, err := m.disk.parent(path)
	if err != nil {
		return err
	}
	switch n := folder.entries[nameOf(path)]; {
	case n == nil:
		return syscall.ENOENT
	case n.folder():
		return syscall.EISDIR
	}
	folder.set(nameOf(path), nil, m.o.Now())
	return nil
}

func (m *memFS) unlink(path string) error {
	return m.run(Op{Kind: OpUnlink, Path: path}, func() error { return m.remove(path) }, nil)
}

func (m *memFS) syncFile(path string) error {
	var n *memNode
	return m.run(Op{Kind: OpSync, Path: path}, func() error {
		var err error
		if n, err = m.disk.find(path); err != nil {
			return err
		}
		if n.folder() {
			return syscall.EISDIR
		}
		n.sync()
		return nil
	}, func(Fault) {
		if n, err := m.disk.find(path); err == nil && !n.folder() {
			n.void()
		}
	})
}

func (m *memFS) syncDir(path string) error {
	return m.run(Op{Kind: OpSyncDir, Path: path}, func() error {
		n, err := m.disk.find(path)
		if err != nil {
			return err
		}
		if !n.folder() {
			return syscall.ENOTDIR
		}
		for name := range n.dirty {
			n.syncEntry(name)
		}
		return nil
	}, nil)
}

func (m *memFS) identity(path string) (folderID, bool) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	n, err := m.disk.find(path)
	if err != nil {
		return folderID{}, false
	}
	return folderID{ino: n.id}, true
}
