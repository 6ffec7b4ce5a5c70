package keyindex

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	hugePage   = 2 << 20
	maxReserve = int64(4) << 40  // address space of one index
	minReserve = int64(64) << 20 // least address space of one shard
)

var pageSize = os.Getpagesize()

// arena is the memory of an index. It reserves address space for every shard
// once (which costs nothing: the pages are inaccessible) and makes a prefix of
// each range usable, so a shard grows and shrinks in place, without a copy of
// itself, and its slots never move to another address. Every usable byte is
// counted against the limit before it is asked for.
type arena struct {
	raw    []byte
	first  int // offset of shard 0 in raw, on a huge page boundary
	stride int // address space of a shard

	mu         sync.Mutex // Builder workers resize at the same time
	used, peak int64
	limit      int64 // 0: none
}

func newArena(shards int, limit int64) (*arena, error) {
	stride := maxReserve / int64(shards)
	if limit > 0 {
		stride = min(stride, max(limit, minReserve))
	}
	stride = (stride + hugePage - 1) &^ (hugePage - 1)
	for {
		// Platforms and limits (ulimit -v) differ in how much can be reserved.
		raw, err := unix.Mmap(-1, 0, int(stride)*shards+hugePage, unix.PROT_NONE, reserveFlags)
		if err == nil {
			a := &arena{raw: raw, stride: int(stride), limit: limit}
			a.first = -int(uintptr(unsafe.Pointer(&raw[0]))) & (hugePage - 1)
			adviseHuge(raw)
			return a, nil
		}
		if stride /= 2; stride < minReserve {
			return nil, fmt.Errorf("%w: reserving address space: %w", ErrMemory, err)
		}
		stride = (stride + hugePage - 1) &^ (hugePage - 1)
	}
}

// charge counts delta more bytes, or refuses.
func (a *arena) charge(delta int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if delta > 0 && a.limit > 0 && a.used+delta > a.limit {
		return fmt.Errorf("%w: %d bytes in use, %d more needed, limit %d", ErrMemory, a.used, delta, a.limit)
	}
	a.used += delta
	a.peak = max(a.peak, a.used)
	return nil
}

// resize makes room for at least slots slots of s and gives back what lies
// beyond. New slots read as empty. On an error s is as before.
func (a *arena) resize(s *shard, slots int) error {
	size := (slots*s.w*8 + pageSize - 1) &^ (pageSize - 1)
	old := len(s.bytes)
	if size == old {
		return nil
	}
	if size > a.stride {
		return fmt.Errorf("%w: a shard of %d bytes, address space for %d", ErrMemory, size, a.stride)
	}
	off := a.first + s.id*a.stride
	mem := a.raw[off : off+a.stride]
	if size > old {
		if err := a.charge(int64(size - old)); err != nil {
			return err
		}
		if err := unix.Mprotect(mem[old:size], unix.PROT_READ|unix.PROT_WRITE); err != nil {
			_ = a.charge(int64(old - size)) // less is never refused
			return fmt.Errorf("%w: %d bytes (limits: vm.max_map_count, overcommit): %w", ErrMemory, size-old, err)
		}
		collapse(mem, old, size)
	} else {
		if discard(mem[size:old]) != nil {
			return nil // the system wants to keep it (locked memory): so do we
		}
		_ = a.charge(int64(size - old))
	}
	s.bytes = mem[:size:size]
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), size/8)
	s.t = words[:len(words)/s.w*s.w]
	return nil
}

// scratch returns n zero words outside the Go heap, counted; release frees them.
func (a *arena) scratch(n int) ([]uint64, error) {
	size := (max(n, 1)*8 + pageSize - 1) &^ (pageSize - 1)
	if err := a.charge(int64(size)); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, reserveFlags)
	if err != nil {
		_ = a.charge(-int64(size))
		return nil, fmt.Errorf("%w: %d bytes: %w", ErrMemory, size, err)
	}
	adviseHuge(b)
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), size/8), nil
}

func (a *arena) release(words []uint64) error {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmapping index memory: %w", err)
	}
	return a.charge(-int64(len(b)))
}

func (a *arena) close() error {
	if err := unix.Munmap(a.raw); err != nil {
		return fmt.Errorf("unmapping index memory: %w", err)
	}
	a.raw, a.used = nil, 0
	return nil
}
