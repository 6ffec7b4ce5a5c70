package keyindex

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"applier/storage/types"
)

// sidecarDir is where the canonical bytes of long keys live on disk, one file a
// segment. A file loses its name as soon as it is open: it lives as long as its
// mapping, is invisible to other processes, and vanishes with this one.
type sidecarDir struct {
	path  string
	ours  atomic.Bool  // we made it, so we remove it
	bytes atomic.Int64 // in all files
}

func openSidecarDir(path string) (*sidecarDir, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: long keys need a folder for their sidecar", ErrInvalid)
	}
	_, err := os.Stat(path)
	missing := errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("%w: creating key sidecar folder: %w", ErrSidecar, err)
	}
	d := &sidecarDir{path: path}
	d.ours.Store(missing)
	return d, nil
}

// remove removes the folder if we made it, unless something lies in it.
func (d *sidecarDir) remove() error {
	if !d.ours.Load() {
		return nil
	}
	err := os.Remove(d.path)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// smallFile is the size of a sidecar that stays in memory: a mapped file takes a
// page anyway, and a commit of a few rows should not pay for creating one.
const smallFile = 4 << 10

// sidecar holds the keys of one segment: first, while rows arrive, a file that
// grows and the offsets in memory; when they are complete, both in a mapping of
// the file: the bytes of all keys, padding to 4, rows+1 offsets. A small one that
// arrives in one piece is never written.
type sidecar struct {
	dir  *sidecarDir
	f    *os.File // nil once sealed
	size int64    // bytes of keys, then of the file; 0 if there is none

	off  []uint32
	data []byte
	mem  []byte // the mapping
}

func (d *sidecarDir) create() (*sidecar, error) {
	f, err := os.CreateTemp(d.path, "keys-")
	if errors.Is(err, os.ErrNotExist) {
		// Another index that shared the folder was closed, and saw it empty.
		if err = os.MkdirAll(d.path, 0o700); err == nil {
			d.ours.Store(true)
			f, err = os.CreateTemp(d.path, "keys-")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: creating key sidecar: %w", ErrSidecar, err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("unlinking key sidecar: %w", err), f.Close())
	}
	return &sidecar{dir: d, f: f, off: []uint32{0}}, nil
}

// smallSidecar returns a sealed sidecar without a file.
func smallSidecar(k *types.Keys) *sidecar {
	n := k.Len()
	s := &sidecar{off: make([]uint32, n+1), data: bytes.Clone(k.Data[k.Off[0]:k.Off[n]])}
	for i, o := range k.Off[:n+1] {
		s.off[i] = o - k.Off[0]
	}
	return s
}

// append writes the keys of the next rows.
func (s *sidecar) append(k *types.Keys) error {
	n := k.Len()
	if n == 0 {
		return nil
	}
	first, last := k.Off[0], k.Off[n]
	if s.size+int64(last-first) > math.MaxUint32 {
		return fmt.Errorf("key sidecar: the keys of one file exceed 4 GiB")
	}
	if _, err := s.f.Write(k.Data[first:last]); err != nil {
		return fmt.Errorf("%w: writing key sidecar: %w", ErrSidecar, err)
	}
	base := uint32(s.size) - first
	for _, o := range k.Off[1 : n+1] {
		s.off = append(s.off, base+o)
	}
	s.grow(int64(last - first))
	return nil
}

func (s *sidecar) grow(n int64) {
	s.size += n
	s.dir.bytes.Add(n)
}

// seal completes the file, maps it with all its pages (still in the page cache)
// and closes it.
func (s *sidecar) seal() error {
	keys := int(s.size)
	pad := -keys & 3
	offs := unsafe.Slice((*byte)(unsafe.Pointer(&s.off[0])), 4*len(s.off))
	for _, tail := range [][]byte{make([]byte, pad), offs} {
		if _, err := s.f.Write(tail); err != nil {
			return fmt.Errorf("%w: writing key sidecar: %w", ErrSidecar, err)
		}
		s.grow(int64(len(tail)))
	}
	info, err := s.f.Stat()
	if err != nil {
		return fmt.Errorf("checking key sidecar: %w", err)
	}
	if info.Size() != s.size {
		return fmt.Errorf("key sidecar: %d bytes written, the file has %d", s.size, info.Size())
	}
	s.mem, err = unix.Mmap(int(s.f.Fd()), 0, int(s.size), unix.PROT_READ, unix.MAP_SHARED|populate)
	if err != nil {
		return fmt.Errorf("mapping key sidecar (limits: vm.max_map_count): %w", err)
	}
	n := len(s.off)
	s.data = s.mem[:keys:keys]
	s.off = unsafe.Slice((*uint32)(unsafe.Pointer(&s.mem[keys+pad])), n)
	f := s.f
	s.f = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("closing key sidecar: %w", err)
	}
	return nil
}

// heapBytes is what a sidecar without a file takes.
func (s *sidecar) heapBytes() int64 {
	if s == nil || s.dir != nil {
		return 0
	}
	return int64(4*len(s.off) + cap(s.data))
}

func (s *sidecar) close() error {
	var err error
	if s.dir != nil {
		s.dir.bytes.Add(-s.size)
	}
	if s.f != nil {
		err = s.f.Close()
	}
	if s.mem != nil {
		err = errors.Join(err, unix.Munmap(s.mem))
	}
	*s = sidecar{}
	return err
}

// sidecarAppend brings the keys of g's next rows to its sidecar.
func (x *Index) sidecarAppend(g *segment, k *types.Keys) error {
	if x.side == nil || k.Len() == 0 {
		return nil
	}
	n := k.Len()
	if g.side == nil && n == int(g.rows) && int(k.Off[n]-k.Off[0])+4*(n+1) <= smallFile {
		g.side = smallSidecar(k)
		x.segs.heapBytes.Add(g.side.heapBytes()) // a Builder comes here in parallel
		return nil
	}
	if g.side == nil {
		s, err := x.side.create()
		if err != nil {
			return err
		}
		g.side = s
	}
	if err := g.side.append(k); err != nil {
		return err
	}
	if g.next+uint32(n) == g.rows {
		return g.side.seal()
	}
	return nil
}

func (t *segTable) closeSidecars() error {
	var errs []error
	_ = t.each(func(_ uint32, g *segment) error {
		if g.side != nil {
			errs = append(errs, g.side.close())
		}
		return nil
	})
	return errors.Join(errs...)
}
