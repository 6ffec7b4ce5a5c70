package keyindex

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"applier/storage/types"
)

// Builder fills an empty index in bulk: rows are first thrown together by shard,
// unsorted, in the very memory where the shards will be; Finish sorts each shard
// and spreads it. Beyond the index itself that takes one shard of memory per
// worker.
type Builder struct {
	x     *Index
	locks []sync.Mutex // one a shard

	mu    sync.Mutex // segments, free, err
	free  []*buildBuffer
	err   error
	ended bool
}

// buildBuffer sorts a piece of a chunk by shard.
type buildBuffer struct {
	words []uint64
	first []uint32
}

// buildPiece is the number of rows sorted by shard at a time: 256 KiB of entries.
const buildPiece = 16 << 10

// NewBuilder starts filling an index that has no entries yet; all files must
// have been made known by AddSegment, and deletion vectors are best set before,
// as deleted rows get no entry then. expected is the number of rows to come (a
// hint). Until Finish, every other call on the index but Close fails.
//
// Errors: ErrMemory, ErrInvalid if the index is not empty.
func (x *Index) NewBuilder(expected int64) (*Builder, error) {
	if err := x.usable(); err != nil {
		return nil, err
	}
	if x.entries > 0 || x.segs.rows > 0 {
		return nil, fmt.Errorf("%w: building an index that has rows", ErrInvalid)
	}
	b := &Builder{x: x, locks: make([]sync.Mutex, len(x.shards))}
	each := int(max(expected, 0) / int64(len(x.shards)))
	each += each / 64
	for i := range x.shards {
		s := &x.shards[i]
		if each <= s.slots() {
			continue
		}
		if err := x.mem.resize(s, each); err != nil {
			for j := range x.shards[:i] { // a smaller build may fit
				s := &x.shards[j]
				err = errors.Join(err, x.mem.resize(s, int(s.homes)+tailSlots))
			}
			return nil, err
		}
	}
	x.builder = b
	return b, nil
}

// Add takes rows of a segment as Index.Add does: each segment's rows in order,
// without gaps. It is safe for concurrent use for different segments, and worth
// it: callers decode files in parallel. The keys are not kept.
//
// Any error ends the build and loses the index.
func (b *Builder) Add(seg, firstPos uint32, keys *types.Keys) error {
	g, buf, err := b.begin(seg, firstPos, keys)
	if err != nil {
		return err
	}
	n := keys.Len()
	for from := 0; from < n && err == nil; from += buildPiece {
		err = b.scatter(buf, g, MakeLoc(seg, firstPos), keys, from, min(n, from+buildPiece))
	}
	if err == nil {
		err = b.x.sidecarAppend(g, keys)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = append(b.free, buf)
	if err != nil {
		return b.fail(err)
	}
	b.x.segs.advance(g, n, keys.Null)
	return nil
}

func (b *Builder) begin(seg, firstPos uint32, keys *types.Keys) (*segment, *buildBuffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil, nil, b.err
	}
	if b.ended || b.x.err != nil {
		return nil, nil, b.over()
	}
	g, err := b.x.accept(seg, firstPos, keys)
	if err != nil {
		return nil, nil, b.fail(err)
	}
	if n := len(b.free); n > 0 {
		buf := b.free[n-1]
		b.free = b.free[:n-1]
		return g, buf, nil
	}
	return g, &buildBuffer{first: make([]uint32, len(b.locks)+1)}, nil
}

// over is the error of calls after the end.
func (b *Builder) over() error {
	if b.x.err != nil {
		return b.x.err
	}
	return fmt.Errorf("%w: the build has ended", ErrInvalid)
}

// fail records the first error; b.mu is held.
func (b *Builder) fail(err error) error {
	if b.err == nil {
		b.err = b.x.fail(err)
	}
	return b.err
}

// scatter appends the entries of rows [from, to) to their shards.
func (b *Builder) scatter(buf *buildBuffer, g *segment, base Loc, keys *types.Keys, from, to int) error {
	x := b.x
	w, shift := x.w, 64-x.bits
	all := len(g.dead) == 0 && !keys.Null.Any()
	first := buf.first
	clear(first)
	for i := from; i < to; i++ {
		if all || !g.skip(base.Pos(), i, keys.Null) {
			first[keys.Hash[i]>>shift+1]++
		}
	}
	for i := 1; i < len(first); i++ {
		first[i] += first[i-1]
	}
	buf.words = slices.Grow(buf.words[:0], buildPiece*w)[:buildPiece*w]
	words := buf.words
	for i := from; i < to; i++ {
		if !all && g.skip(base.Pos(), i, keys.Null) {
			continue
		}
		h := keys.Hash[i]
		j := int(first[h>>shift]) * w
		first[h>>shift]++
		words[j], words[j+w-1] = h, uint64(base+Loc(i))
		if w == 3 {
			words[j+1] = keys.Low[i]
		}
	}
	at := 0
	for i, end := range first[:len(x.shards)] {
		if int(end) > at {
			if err := b.append(i, words[at*w:int(end)*w]); err != nil {
				return err
			}
			at = int(end)
		}
	}
	return nil
}

// append adds entries to the unsorted ones of a shard.
func (b *Builder) append(i int, words []uint64) error {
	b.locks[i].Lock()
	defer b.locks[i].Unlock()
	s := &b.x.shards[i]
	if need := s.n + len(words)/s.w; need > s.slots() {
		if err := b.x.mem.resize(s, need+need/16); err != nil {
			return err
		}
	}
	s.n += copy(s.t[s.n*s.w:], words) / s.w
	return nil
}
