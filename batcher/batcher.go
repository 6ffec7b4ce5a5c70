package batcher

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/cespare/xxhash/v2"
)

// Limits close a batch.
type Limits struct {
	Rows      int           // row changes
	Bytes     int64         // record bytes
	Interval  time.Duration // since the batch's first record
	IdleFlush time.Duration // since the last record; 0 switches it off
}

// Options configure a Batcher.
type Options struct {
	// Fields are the target table's columns, Key the indexes of the merge key
	// columns in key order (none for Append).
	Fields []types.Field
	Key    []int
	Apply  Apply
	// Order decides which change is newer. Under Mirror it needs Remembers: deletes
	// are remembered.
	Order     Order
	Remembers bool
	Limits    Limits
}

// Batcher collects the changes of one pipeline into batches. It belongs to one
// goroutine; a closed batch may be used by another until Recycle gives it back
// (Recycle and Trim may be called from any goroutine).
type Batcher struct {
	o          Options
	enc        *types.KeyEncoder
	key        []types.Field
	open       *Batch
	free       chan *Batch
	retained   atomic.Int64 // bytes of the batches in free
	start      change.Positions
	next       change.Positions
	partitions []change.Partition
	digests    []xxhash.Digest
	since      time.Time // when positions first moved in the open batch
	last       time.Time // of the newest record
	moved      bool      // positions advanced since the last batch
	generation uint64
	marked     mark
}

// New returns a Batcher without positions: Reset comes first.
func New(o Options) (*Batcher, error) {
	b := &Batcher{o: o, free: make(chan *Batch, 3)}
	if o.Apply != Append {
		key := make([]types.Type, len(o.Key))
		for i, c := range o.Key {
			key[i] = o.Fields[c].Type
			b.key = append(b.key, o.Fields[c])
		}
		enc, err := types.NewKeyEncoder(key)
		if err != nil {
			return nil, err
		}
		b.enc = enc
	}
	if len(o.Order.By) > 0 && !o.Apply.Ordered(o.Remembers) {
		return nil, fmt.Errorf("order_by: apply %s leaves no row that a late change could be compared with", o.Apply)
	}
	for _, c := range o.Order.By {
		if o.Fields[c].Type.IsNested() {
			return nil, fmt.Errorf("order_by: column %s of type %s has no order", o.Fields[c].Name, o.Fields[c].Type)
		}
	}
	b.open = b.fresh()
	return b, nil
}

func (b *Batcher) fresh() *Batch {
	select {
	case batch := <-b.free:
		b.retained.Add(-batch.MemBytes())
		return batch
	default:
		return &Batch{Changes: change.NewBatch(b.o.Fields, b.key)}
	}
}

// Reset drops what is open and starts anew from a full position vector.
// partitions gives the meaning of Change.Part; generation marks the batches
// from here on.
func (b *Batcher) Reset(start change.Positions, partitions []change.Partition, generation uint64) {
	b.open.reset()
	b.start, b.next = start.Clone(), start.Clone()
	b.partitions, b.generation = partitions, generation
	b.digests = make([]xxhash.Digest, len(partitions))
	for i := range b.digests {
		b.digests[i].Reset()
	}
	b.moved = false
}

// Changes is where decoders append.
func (b *Batcher) Changes() *change.Batch { return b.open.Changes }

// Counts are the open batch's, for the caller to count records in.
func (b *Batcher) Counts() *Counts { return &b.open.Counts }

// Record notes a record after it was decoded, skipped or sent away: its
// position is passed and its bytes enter the digest. now is monotonic.
func (b *Batcher) Record(part int32, offset int64, epoch int32, key, value []byte, now time.Time) {
	b.Advance(part, offset+1, epoch, now)
	d := &b.digests[part]
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:8], uint64(offset))
	binary.LittleEndian.PutUint32(head[8:12], uint32(len(key)))
	binary.LittleEndian.PutUint32(head[12:], uint32(len(value)))
	_, _ = d.Write(head[:])
	_, _ = d.Write(key)
	_, _ = d.Write(value)
	b.open.Counts.Records++
	if b.open.FirstTime.IsZero() {
		b.open.FirstTime = now
	}
	b.last = now
}

// Advance passes positions that carry no record (control records, or a new
// partition's start). They are committed like records when the interval is over:
// a partition that ends in control records is applied in full, and must look so.
func (b *Batcher) Advance(part int32, next int64, epoch int32, now time.Time) {
	p := b.partitions[part]
	old, known := b.next[p]
	if known && old.Next >= next {
		return
	}
	if !known {
		old.Epoch = -1
	}
	b.next[p] = change.Position{Next: next, Epoch: max(epoch, old.Epoch)}
	if !b.moved {
		b.moved, b.since = true, now
	}
}

// Truncate lets the open batch begin with the emptying of the source's table: the
// changes that follow come after it. It returns false if something is in the batch
// already, which is to be sealed first.
func (b *Batcher) Truncate(t *change.Truncation) bool {
	if b.open.Changes.Len() > 0 || b.open.Truncation != nil {
		return false
	}
	b.open.Truncation = t
	return true
}

// Position returns where a partition stands in the open batch.
func (b *Batcher) Position(part int32) (change.Position, bool) {
	p, ok := b.next[b.partitions[part]]
	return p, ok
}

// Empty reports whether there is nothing to commit, not even a position.
func (b *Batcher) Empty() bool { return !b.moved }

// Due says whether a limit closes the batch now.
func (b *Batcher) Due(now time.Time) (FlushReason, bool) {
	switch {
	case !b.moved:
		return "", false
	case b.open.Changes.Len() >= b.o.Limits.Rows:
		return FlushRows, true
	case b.open.Changes.Bytes >= b.o.Limits.Bytes:
		return FlushBytes, true
	}
	at, reason := b.deadline()
	if at.IsZero() || now.Before(at) {
		return "", false
	}
	return reason, true
}

// Deadline returns when time alone will close the batch; zero if it will not.
func (b *Batcher) Deadline() time.Time {
	at, _ := b.deadline()
	return at
}

func (b *Batcher) deadline() (time.Time, FlushReason) {
	if !b.moved {
		return time.Time{}, ""
	}
	at := b.since.Add(b.o.Limits.Interval)
	// An idle flush is for rows that wait; mere positions can wait for the interval.
	if b.o.Limits.IdleFlush > 0 && (b.open.Changes.Len() > 0 || b.open.Truncation != nil) {
		if idle := b.last.Add(b.o.Limits.IdleFlush); idle.Before(at) {
			return idle, FlushIdle
		}
	}
	return at, FlushInterval
}

// MemBytes returns the memory of the open batch and of those kept for reuse.
func (b *Batcher) MemBytes() int64 { return b.open.MemBytes() + b.retained.Load() }

// Seal closes the open batch: keys are encoded after casting to the column
// types, one change per key is selected, chains are linked. The next batch
// starts where this one ends.
func (b *Batcher) Seal(reason FlushReason) *Batch {
	batch := b.open
	batch.Reason, batch.Generation, batch.Partitions = reason, b.generation, b.partitions
	batch.Start, batch.Next = b.start, b.next
	batch.Digest = b.sumDigests()
	batch.Counts.Changes = int64(batch.Changes.Len())
	if b.o.Apply == Append {
		b.selectAll(batch)
	} else {
		b.collapse(batch)
	}
	batch.events()
	b.start, b.next = b.next, b.next.Clone()
	b.moved = false
	b.open = b.fresh()
	return batch
}

// sumDigests folds the partitions' running hashes into one and starts them anew.
// The order is that of the partitions' names, so that an auditor who knows the
// ranges can compute the same from Kafka (docs/verify.md).
func (b *Batcher) sumDigests() []byte {
	h := sha256.New()
	var buf [8]byte
	order := make([]int, len(b.partitions))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return b.partitions[i].Compare(b.partitions[j]) })
	for _, i := range order {
		p := b.partitions[i]
		from, to := b.start[p], b.next[p]
		if from.Next == to.Next {
			continue
		}
		fmt.Fprintf(h, "%s/%d %d %d ", p.Topic, p.Partition, from.Next, to.Next)
		binary.LittleEndian.PutUint64(buf[:], b.digests[i].Sum64())
		h.Write(buf[:])
		b.digests[i].Reset()
	}
	return h.Sum(nil)
}

// Recycle gives a batch's memory back. The batch must not be used afterwards.
func (b *Batcher) Recycle(batch *Batch) {
	batch.reset()
	n := batch.MemBytes()
	b.retained.Add(n) // first: whoever takes it out subtracts the same
	select {
	case b.free <- batch:
	default:
		b.retained.Add(-n)
	}
}

// Trim lets go of the memory that is kept for reuse, when there is too little.
// It may be called from any goroutine.
func (b *Batcher) Trim() {
	for {
		select {
		case batch := <-b.free:
			b.retained.Add(-batch.MemBytes())
		default:
			return
		}
	}
}
