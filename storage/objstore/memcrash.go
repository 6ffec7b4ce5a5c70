package objstore

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Clone returns the first user of a copy of the disk, with everything written and
// durable as it is here: the same machine in another possible future. It has this
// user's clock and no Fault. Delayed objects stay with the original, but can be
// applied to the copy.
func (m *Mem) Clone() *Mem {
	return m.copy(func(n *memNode, known map[*memNode]*memNode) *memNode { return n.clone(known) })
}

// Crash returns the first user of the disk that the machine finds after a power
// cut: what is durable is kept; every block, length and folder entry written and
// not synced survives with probability survive, each for itself (so a rename may
// leave the old name, the new one, both or none). Everything on the new disk is
// durable. The old one is unchanged, so that one state can crash in many ways.
// rng may be nil if survive is 0 or 1.
func (m *Mem) Crash(rng *rand.Rand, survive float64) *Mem {
	luck := func() bool {
		if survive <= 0 || survive >= 1 {
			return survive >= 1
		}
		return rng.Float64() < survive
	}
	return m.copy(func(n *memNode, known map[*memNode]*memNode) *memNode { return n.crash(known, luck) })
}

func (m *Mem) copy(root func(*memNode, map[*memNode]*memNode) *memNode) *Mem {
	d := m.fs.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	disk := &memDisk{root: root(d.root, map[*memNode]*memNode{}), gone: d.gone, folders: d.folders, temps: d.temps}
	return newMem(disk, MemOptions{Now: m.fs.o.Now})
}

// clone copies a tree; known keeps hard links together.
func (n *memNode) clone(known map[*memNode]*memNode) *memNode {
	if c := known[n]; c != nil {
		return c
	}
	c := *n
	known[n] = &c
	if !n.folder() {
		c.data, c.blocks = slices.Clip(n.data), slices.Clone(n.blocks)
		return &c
	}
	c.dirty = maps.Clone(n.dirty)
	children := func(from map[string]*memNode) map[string]*memNode {
		to := make(map[string]*memNode, len(from))
		for name, child := range from {
			to[name] = child.clone(known)
		}
		return to
	}
	c.entries, c.durable = children(n.entries), children(n.durable)
	return &c
}

// crash copies what survives of a tree.
func (n *memNode) crash(known map[*memNode]*memNode, luck func() bool) *memNode {
	if c := known[n]; c != nil {
		return c
	}
	if !n.folder() {
		c := n.crashFile(luck)
		known[n] = c
		return c
	}
	c := newFolder(n.id)
	c.modified = n.modified
	known[n] = c
	names := slices.AppendSeq(slices.Collect(maps.Keys(n.entries)), maps.Keys(n.durable))
	for _, name := range unique(names) {
		child := n.durable[name]
		if written := n.entries[name]; written != child && luck() {
			child = written
		}
		if child != nil {
			child = child.crash(known, luck)
			c.entries[name], c.durable[name] = child, child
		}
	}
	return c
}

func (n *memNode) crashFile(luck func() bool) *memNode {
	c := &memNode{modified: n.modified, size: n.size}
	if n.size != len(n.data) && luck() {
		c.size = len(n.data)
	}
	whole := true
	kept := make([]memBlock, (c.size+memBlockSize-1)/memBlockSize)
	for b := range kept {
		kept[b].durable = n.blocks[b].durable
		if full := len(n.block(b)); kept[b].durable < full {
			if luck() {
				kept[b].durable = full
			} else {
				whole = false
			}
		}
	}
	if whole {
		c.data = slices.Clip(n.data[:c.size])
	} else {
		// What did not reach the disk reads as zeros.
		c.data = make([]byte, c.size)
		for b := range kept {
			copy(c.data[b*memBlockSize:], n.block(b)[:kept[b].durable])
		}
	}
	for b := range kept {
		kept[b].durable = len(c.block(b))
	}
	c.blocks = kept
	return c
}
