package objstore

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"
)

// memBlockSize is the unit in which unsynced contents survive a crash or not.
const memBlockSize = 4096

// memDisk is the disk that the users of a Mem share.
type memDisk struct {
	mu      sync.Mutex
	root    *memNode
	gone    bool // somebody removed the root
	folders uint64
	temps   int64
	delayed []*Delayed
}

// tempID numbers temporary files, in the shape of a UUID.
func (d *memDisk) tempID() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.temps++
	return fmt.Sprintf("00000000-0000-0000-0000-%012d", d.temps)
}

// find returns the node of a path: ENOENT, or ENOTDIR if a file is in the way.
func (d *memDisk) find(path string) (*memNode, error) {
	if d.gone {
		return nil, syscall.ENOENT
	}
	n := d.root
	if path == "" {
		return n, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if !n.folder() {
			return nil, syscall.ENOTDIR
		}
		if n = n.entries[name]; n == nil {
			return nil, syscall.ENOENT
		}
	}
	return n, nil
}

// parent returns the folder that holds a path.
func (d *memDisk) parent(path string) (*memNode, error) {
	n, err := d.find(folderOf(path))
	if err == nil && !n.folder() {
		err = syscall.ENOTDIR
	}
	return n, err
}

// memNode is a file or a folder. Files only ever grow: a Bucket never writes
// twice to one place. So the durable state of a block is a length, and data may
// be shared with copies of the node.
type memNode struct {
	modified time.Time

	// A folder: what users see, what is on disk, and where the two may differ.
	id               uint64
	entries, durable map[string]*memNode
	dirty            map[string]struct{}

	// A file.
	data      []byte
	blocks    []memBlock
	size      int  // durable length
	sizeDirty bool // the next sync makes the length durable
}

// memBlock is the state of one block: how many of its bytes are on disk, and
// whether the next sync has to write it.
type memBlock struct {
	durable int
	dirty   bool
}

func newFolder(id uint64) *memNode {
	return &memNode{id: id, entries: map[string]*memNode{}, durable: map[string]*memNode{}, dirty: map[string]struct{}{}}
}

func (n *memNode) folder() bool { return n.entries != nil }

// set changes an entry of a folder; nil removes it.
func (n *memNode) set(name string, child *memNode, now time.Time) {
	if child == nil {
		delete(n.entries, name)
	} else {
		n.entries[name] = child
	}
	n.dirty[name] = struct{}{}
	n.modified = now
}

// syncEntry makes one entry of a folder durable.
func (n *memNode) syncEntry(name string) {
	if child := n.entries[name]; child != nil {
		n.durable[name] = child
	} else {
		delete(n.durable, name)
	}
	delete(n.dirty, name)
}

// write appends to a file.
func (n *memNode) write(p []byte) {
	if len(p) == 0 {
		return
	}
	first := len(n.data) / memBlockSize
	n.data = append(n.data, p...)
	last := (len(n.data) - 1) / memBlockSize
	for len(n.blocks) <= last {
		n.blocks = append(n.blocks, memBlock{})
	}
	for b := first; b <= last; b++ {
		n.blocks[b].dirty = true
	}
	n.sizeDirty = true
}

// block returns the bytes of block b as written.
func (n *memNode) block(b int) []byte {
	return n.data[b*memBlockSize : min((b+1)*memBlockSize, len(n.data))]
}

// sync makes a file durable.
func (n *memNode) sync() {
	for b := range n.blocks {
		if n.blocks[b].dirty {
			n.blocks[b] = memBlock{durable: len(n.block(b))}
		}
	}
	if n.sizeDirty {
		n.size, n.sizeDirty = len(n.data), false
	}
}

// void is a sync that fails: what could not be written is taken for clean from
// then on, and no later sync tries again.
func (n *memNode) void() {
	for b := range n.blocks {
		n.blocks[b].dirty = false
	}
	n.sizeDirty = false
}
