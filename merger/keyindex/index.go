package keyindex

import (
	"errors"
	"fmt"

	"applier/storage/types"
)

// Loc is the place of a row: segment<<32 | position in the file, both from the
// caller's AddSegment and the file's row order. No row has Loc 0.
type Loc uint64

// MakeLoc joins a segment and a position.
func MakeLoc(seg, pos uint32) Loc { return Loc(seg)<<32 | Loc(pos) }

// Segment returns the segment of the row.
func (l Loc) Segment() uint32 { return uint32(l >> 32) }

// Pos returns the row's position in its file, from 0.
func (l Loc) Pos() uint32 { return uint32(l) }

var (
	// ErrMemory says that MaxBytes (or the system) does not allow the memory a
	// call needs. The call changed nothing: the index answers as before it.
	ErrMemory = errors.New("key index: memory limit reached")
	// ErrLost says that the index can no longer be trusted (its sidecar failed,
	// or rows came back that it had forgotten). Every later call says so too:
	// close it and build another one from the table, or halt.
	ErrLost = errors.New("key index lost")
	// ErrSidecar says that a sidecar file could not be made or written: Dir is full,
	// read-only or forbidden. A call that says so loses the index too.
	ErrSidecar = errors.New("key index: sidecar folder")
	// ErrIncomplete says that a live segment still lacks rows.
	ErrIncomplete = errors.New("key index incomplete")
	// ErrInvalid is a call against the contract: unknown or removed segment,
	// rows out of order, keys of another class.
	ErrInvalid = errors.New("key index: invalid call")
	// ErrClosed is any call after Close.
	ErrClosed = errors.New("key index: closed")
)

// Options are the settings of an index.
type Options struct {
	// Class is the class of all keys.
	Class types.KeyClass
	// Dir is the folder of the sidecar files, needed for types.KeyBytes and
	// ignored otherwise. If it is missing it is created with mode 0700, and
	// Close removes it if it is empty. Several indexes may share it: the files
	// have no names, so that a killed process leaves none behind.
	Dir string
	// Seed spreads the moments at which shards grow. It does not change answers.
	Seed uint64
	// ExpectedKeys sizes the shards (not the memory). A wrong value costs longer
	// single growth steps (too low) or a page a shard (too high).
	ExpectedKeys int64
	// MaxBytes is the ceiling of memory outside the Go heap, 0 for none.
	MaxBytes int64
}

// Index maps merge keys to the live rows of one table. It is not safe for
// concurrent use: it belongs to the table's one worker. Answers depend only on
// the calls, not on the seed or the order of growth.
type Index struct {
	class  types.KeyClass
	w      int  // words of an entry: hash, loc or hash, low, loc
	bits   uint // log2 of the number of shards
	shards []shard
	mem    *arena
	segs   segTable
	side   *sidecarDir

	entries int64 // occupied slots
	err     error // sticky: ErrLost, ErrClosed
	builder *Builder
	cursor  int // next shard of Sweep
	scratch addScratch
	count   counters
	touched uint64 // makes the loads that warm the caches real

	hashBytes func([]byte) uint64 // hash of canonical bytes; tests replace it
}

type counters struct {
	hits, misses, collisions, reclaimed, growths, moved int64
}

// New returns an empty index. Errors: ErrMemory if MaxBytes is too small even
// for that, ErrInvalid for an unknown class, and those of creating Dir.
func New(o Options) (*Index, error) {
	x := &Index{class: o.Class, w: entryWords(o.Class), bits: shardBits(o.ExpectedKeys), hashBytes: hashBytes}
	if x.w == 0 {
		return nil, fmt.Errorf("%w: key class %d", ErrInvalid, o.Class)
	}
	var err error
	if x.mem, err = newArena(1<<x.bits, o.MaxBytes); err != nil {
		return nil, err
	}
	x.shards = make([]shard, 1<<x.bits)
	for i := range x.shards {
		s := &x.shards[i]
		s.id, s.w, s.bits, s.phase = i, x.w, x.bits, phase(o.Seed, i)
		s.setHomes(homesFor(0, s.phase))
		if err := x.mem.resize(s, int(s.homes)+tailSlots); err != nil {
			return nil, errors.Join(err, x.mem.close())
		}
	}
	if o.Class == types.KeyBytes {
		if x.side, err = openSidecarDir(o.Dir); err != nil {
			return nil, errors.Join(err, x.mem.close())
		}
	}
	return x, nil
}

// Close gives back all memory, files and the folder. Later calls fail with
// ErrClosed; a second Close does nothing.
func (x *Index) Close() error {
	if x.mem == nil {
		return nil
	}
	err := x.segs.closeSidecars()
	if x.side != nil {
		err = errors.Join(err, x.side.remove())
	}
	err = errors.Join(err, x.mem.close())
	x.mem, x.shards, x.err = nil, nil, ErrClosed
	return err
}

// fail makes err, wrapped in ErrLost, the answer of every later call.
func (x *Index) fail(err error) error {
	if x.err == nil {
		x.err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	return x.err
}

// usable returns the sticky error, or ErrInvalid while a Builder owns the index.
func (x *Index) usable() error {
	if x.err == nil && x.builder != nil {
		return fmt.Errorf("%w: a build is under way", ErrInvalid)
	}
	return x.err
}

func (x *Index) shardOf(hash uint64) *shard { return &x.shards[hash>>(64-x.bits)] }
