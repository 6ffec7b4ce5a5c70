package objstore

import (
	"errors"
	"maps"
	"slices"
	"syscall"
	"time"
)

// ErrCrashed is what every operation of a Mem returns after a Fault said Crash.
var ErrCrashed = errors.New("crashed")

// errNoAnswer is the error of a delayed operation unless the Fault names one.
var errNoAnswer = errors.New("no answer")

// MemOptions configure a Mem.
type MemOptions struct {
	// Fault, if set, decides on each primitive operation before it happens. It is
	// called without locks, so it may use the disk through another user.
	Fault func(Op) Fault
	// Now gives the time of changes; nil means the epoch.
	Now func() time.Time
}

// Mem is a Bucket on a disk in memory that behaves like a real one: contents of
// files (by block of 4 KiB), their lengths, and entries of folders each have a
// written and a durable state, and only syncing makes the one into the other. A
// Mem is one user (process) of its disk. Its calls are made of the same primitive
// operations in the same order as Local's, one at a time and in the order of
// keys, so a single-threaded program sees the same run every time. It is safe
// for concurrent use; other goroutines may come in between primitive operations.
type Mem struct {
	files
	fs *memFS
}

// NewMem returns the first user of an empty disk.
func NewMem(o MemOptions) *Mem {
	return newMem(&memDisk{root: newFolder(0)}, o)
}

func newMem(disk *memDisk, o MemOptions) *Mem {
	if o.Now == nil {
		o.Now = func() time.Time { return time.Unix(0, 0).UTC() }
	}
	fs := &memFS{disk: disk, o: o}
	return &Mem{files: files{fs: fs, parallel: 1, tempID: disk.tempID}, fs: fs}
}

// Attach returns another user of the same disk, as of a process started beside
// this one or after this one was killed.
func (m *Mem) Attach(o MemOptions) *Mem { return newMem(m.fs.disk, o) }

// Ops returns the number of primitive operations this user has asked for.
func (m *Mem) Ops() int64 {
	m.fs.disk.mu.Lock()
	defer m.fs.disk.mu.Unlock()
	return m.fs.ops
}

// Crashed reports whether a Fault has ended this user.
func (m *Mem) Crashed() bool {
	m.fs.disk.mu.Lock()
	defer m.fs.disk.mu.Unlock()
	return m.fs.crashed
}

// Walk calls fn for every object as users see it now, in the order of keys,
// hidden ones included. The data must not be changed. It is no operation: faults
// and crashes do not touch it.
func (m *Mem) Walk(fn func(key string, data []byte)) {
	m.fs.disk.mu.Lock()
	objects := map[string][]byte{}
	m.fs.disk.root.walk("", objects)
	m.fs.disk.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		fn(key, objects[key])
	}
}

func (n *memNode) walk(key string, objects map[string][]byte) {
	if !n.folder() {
		objects[key] = slices.Clip(n.data)
		return
	}
	for name, child := range n.entries {
		child.walk(join(key, name), objects)
	}
}

// RemoveAll removes an object, or a folder with all that is in it, as another
// engine or an operator would; "" removes the root itself, for good. It is no
// operation: faults do not touch it. Nothing is synced, so a crash may bring
// back what was below the root.
func (m *Mem) RemoveAll(key string) error {
	d := m.fs.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if key == "" {
		d.root, d.gone = newFolder(0), true
		return nil
	}
	folder, err := d.find(folderOf(key))
	if err == nil && folder.folder() {
		folder.set(nameOf(key), nil, m.fs.o.Now())
	} else if err == nil {
		err = syscall.ENOTDIR
	}
	if err != nil && !absent(err) {
		return failed("removing", key, err)
	}
	return nil
}

// Restore puts the tree of another disk in the place of this one's, as restoring
// a backup, or making the root anew, does: all of it durable, under the users that
// are there. It is no operation.
func (m *Mem) Restore(from *Mem) {
	tree := from.Crash(nil, 1).fs.disk
	d := m.fs.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	d.root, d.gone = tree.root, false
	d.folders = max(d.folders, tree.folders)
}

// Delayed is an object on its way to its name: what an object store or a network
// file system may still do after the caller gave up, or died.
type Delayed struct {
	Key  string
	data []byte
}

// Delayed returns the delayed objects of this disk so far, oldest first, applied
// or not.
func (m *Mem) Delayed() []*Delayed {
	m.fs.disk.mu.Lock()
	defer m.fs.disk.mu.Unlock()
	return slices.Clone(m.fs.disk.delayed)
}

// Apply lets the object arrive at a disk, complete and durable: ErrExist if the
// name is taken by now, ErrNotExist if its folder is gone. The disk may also be
// one that came out of Crash or Clone.
func (d *Delayed) Apply(to *Mem) error {
	disk := to.fs.disk
	disk.mu.Lock()
	defer disk.mu.Unlock()
	folder, err := disk.find(folderOf(d.Key))
	if err != nil {
		return failed("delayed publishing", d.Key, err)
	}
	name := nameOf(d.Key)
	if folder.entries[name] != nil {
		return failed("delayed publishing", d.Key, syscall.EEXIST)
	}
	n := &memNode{modified: to.fs.o.Now()}
	n.write(d.data)
	n.sync()
	folder.set(name, n, n.modified)
	folder.syncEntry(name)
	return nil
}
