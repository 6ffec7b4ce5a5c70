package tombstones

import (
	"bytes"

	"github.com/cespare/xxhash/v2"
)

// Set is the deletes that are remembered: by key the place of the delete in the
// order, as bytes that compare like it, and the time in milliseconds from which
// it is remembered. It holds no pointers an entry. The zero Set is empty. It
// belongs to one goroutine.
type Set struct {
	entries []entry  // in the order in which they were put
	data    []byte   // keys and orders
	slots   []uint32 // hash table: index of entries + 1, 0 is free
	live    int
	first   int // entries before it are dead
}

// entry is a delete: key and order stand one after the other in data.
type entry struct {
	at       int64
	off      uint64
	key      uint32
	order    uint32
	hash     uint32
	occupied bool
}

const entryBytes = 32

// Len returns the number of deletes.
func (s *Set) Len() int { return s.live }

// Bytes returns the memory the set takes.
func (s *Set) Bytes() int64 {
	return int64(cap(s.entries))*entryBytes + int64(cap(s.data)) + 4*int64(cap(s.slots))
}

func (s *Set) keyOf(e *entry) []byte { return s.data[e.off : e.off+uint64(e.key)] }

func (s *Set) orderOf(e *entry) []byte {
	from := e.off + uint64(e.key)
	return s.data[from : from+uint64(e.order)]
}

// Find returns the place in the order of the delete of a key, and when it was
// remembered. The order aliases the set and is valid until it is changed.
func (s *Set) Find(key []byte) (order []byte, at int64, ok bool) {
	if s.live == 0 {
		return nil, 0, false
	}
	slot := s.find(key, hashOf(key))
	if s.slots[slot] == 0 {
		return nil, 0, false
	}
	e := &s.entries[s.slots[slot]-1]
	return s.orderOf(e), e.at, true
}

func hashOf(key []byte) uint32 { return uint32(xxhash.Sum64(key)) }

// find returns the slot of a key, or the free one where it would be.
func (s *Set) find(key []byte, hash uint32) uint32 {
	mask := uint32(len(s.slots) - 1)
	slot := hash & mask
	for s.slots[slot] != 0 {
		if e := &s.entries[s.slots[slot]-1]; e.hash == hash && bytes.Equal(s.keyOf(e), key) {
			break
		}
		slot = (slot + 1) & mask
	}
	return slot
}

// Put remembers the delete of a key instead of an older one.
func (s *Set) Put(key, order []byte, at int64) {
	s.Remove(key)
	s.reserve()
	hash := hashOf(key)
	e := entry{at: at, off: uint64(len(s.data)), key: uint32(len(key)), order: uint32(len(order)), hash: hash, occupied: true}
	s.data = append(append(s.data, key...), order...)
	s.entries = append(s.entries, e)
	s.slots[s.find(key, hash)] = uint32(len(s.entries))
	s.live++
}

// Remove forgets the delete of a key, if there is one.
func (s *Set) Remove(key []byte) {
	if s.live == 0 {
		return
	}
	if slot := s.find(key, hashOf(key)); s.slots[slot] != 0 {
		s.free(slot)
	}
}

// free empties a slot and moves up the ones that were pushed past it.
func (s *Set) free(slot uint32) {
	s.entries[s.slots[slot]-1].occupied = false
	s.live--
	mask := uint32(len(s.slots) - 1)
	hole := slot
	for next := (slot + 1) & mask; s.slots[next] != 0; next = (next + 1) & mask {
		home := s.entries[s.slots[next]-1].hash & mask
		if (next-home)&mask >= (next-hole)&mask {
			s.slots[hole] = s.slots[next]
			hole = next
		}
	}
	s.slots[hole] = 0
}

// Expire forgets the deletes that are remembered since before a time, oldest
// first: one that was put behind a younger one is kept until that is gone.
func (s *Set) Expire(before int64) {
	for ; s.first < len(s.entries); s.first++ {
		e := &s.entries[s.first]
		if !e.occupied {
			continue
		}
		if e.at >= before {
			return
		}
		s.free(s.find(s.keyOf(e), e.hash))
	}
}

// Each calls fn for every delete in the order in which they were put. The slices
// alias the set.
func (s *Set) Each(fn func(key, order []byte, at int64) error) error {
	for i := range s.entries {
		e := &s.entries[i]
		if !e.occupied {
			continue
		}
		if err := fn(s.keyOf(e), s.orderOf(e), e.at); err != nil {
			return err
		}
	}
	return nil
}

// minSlots is the size of the smallest hash table.
const minSlots = 64

// reserve makes room for one more entry: dead entries are dropped when they are
// most of all, else the table grows.
func (s *Set) reserve() {
	switch {
	case len(s.entries) >= minSlots && len(s.entries) > 2*s.live:
		s.rebuild(len(s.slots))
	case len(s.slots) == 0:
		s.rebuild(minSlots)
	case 2*(s.live+1) > len(s.slots):
		s.rebuild(2 * len(s.slots))
	}
}

// rebuild copies what lives.
func (s *Set) rebuild(slots int) {
	old := *s
	for slots > minSlots && 8*(old.live+1) < slots {
		slots /= 2
	}
	var size uint64
	for i := range old.entries {
		if e := &old.entries[i]; e.occupied {
			size += uint64(e.key) + uint64(e.order)
		}
	}
	*s = Set{entries: make([]entry, 0, old.live+old.live/2+1), data: make([]byte, 0, size+size/2), slots: make([]uint32, slots)}
	for i := range old.entries {
		e := old.entries[i]
		if !e.occupied {
			continue
		}
		from := e.off
		e.off = uint64(len(s.data))
		s.data = append(s.data, old.data[from:from+uint64(e.key)+uint64(e.order)]...)
		s.entries = append(s.entries, e)
		s.slots[s.find(s.keyOf(&e), e.hash)] = uint32(len(s.entries))
		s.live++
	}
}

// Apply makes the changes of a delta.
func (s *Set) Apply(d *Delta) {
	d.each(func(key, order []byte, at int64, deleted bool) {
		if deleted {
			s.Put(key, order, at)
		} else {
			s.Remove(key)
		}
	})
}

// Delta is what one commit changes in a Set. The zero Delta changes nothing.
type Delta struct {
	items []item
	data  []byte
}

type item struct {
	at         int64
	key, order int // lengths; order -1: forgotten
}

// Put says that a key was deleted at a place in the order. The bytes are copied.
func (d *Delta) Put(key, order []byte, at int64) {
	d.items = append(d.items, item{at, len(key), len(order)})
	d.data = append(append(d.data, key...), order...)
}

// Remove says that the delete of a key need not be remembered any more. The bytes
// are copied.
func (d *Delta) Remove(key []byte) {
	d.items = append(d.items, item{key: len(key), order: -1})
	d.data = append(d.data, key...)
}

// Len returns the number of changes.
func (d *Delta) Len() int { return len(d.items) }

// Bytes returns the memory that a Set takes at most for what the delta adds.
func (d *Delta) Bytes() int64 {
	var n int64
	for _, i := range d.items {
		if i.order >= 0 {
			n += int64(i.key+i.order) + entryBytes + 16
		}
	}
	return n
}

// each calls fn for the changes in their order; the slices alias the delta.
func (d *Delta) each(fn func(key, order []byte, at int64, deleted bool)) {
	at := 0
	for _, i := range d.items {
		key := d.data[at : at+i.key]
		at += i.key
		if i.order < 0 {
			fn(key, nil, 0, false)
			continue
		}
		fn(key, d.data[at:at+i.order], i.at, true)
		at += i.order
	}
}
