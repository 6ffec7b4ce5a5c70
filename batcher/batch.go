package batcher

import (
	"time"

	"applier/ingest/change"
	"applier/storage/types"
)

// Apply is a pipeline's preset: what a change does to the table.
type Apply uint8

// The presets.
const (
	Mirror     Apply = iota // upsert by key, deletes remove the rows of the key
	Upsert                  // upsert by key, deletes are ignored
	InsertOnly              // inserted if the key is absent, else ignored; first wins
	SoftDelete              // upsert by key, deletes set deleted_at
	Append                  // always inserted, never collapsed
)

var applyNames = [...]string{"mirror", "upsert", "insert_only", "soft_delete", "append"}

// String returns the preset's name in the configuration.
func (a Apply) String() string { return applyNames[a] }

// ParseApply reads a preset's name.
func ParseApply(s string) (Apply, bool) {
	for i, n := range applyNames {
		if n == s {
			return Apply(i), true
		}
	}
	return 0, false
}

// Barrier reports whether a delete of this preset ends the row, so that holes
// of a later change of the key must not be filled from before it.
func (a Apply) Barrier() bool { return a == Mirror }

// FlushReason says why a batch was closed.
type FlushReason string

// The reasons, as in metrics.
const (
	FlushRows     FlushReason = "rows"
	FlushBytes    FlushReason = "bytes"
	FlushInterval FlushReason = "interval"
	FlushIdle     FlushReason = "idle"
	FlushMemory   FlushReason = "memory"
	FlushRevoke   FlushReason = "revoke"
	FlushDrain    FlushReason = "drain"
	FlushManual   FlushReason = "manual"
)

// FlushReasons lists all reasons.
func FlushReasons() []FlushReason {
	return []FlushReason{FlushRows, FlushBytes, FlushInterval, FlushIdle, FlushMemory, FlushRevoke, FlushDrain, FlushManual}
}

// Counts say what became of a batch's records before the table was asked.
type Counts struct {
	Records       int64 // records read, skipped ones included
	Skipped       int64 // records that change no row
	DeadLetters   int64 // records sent to the dead letters
	Dropped       int64 // records dropped by on_error: skip
	Changes       int64 // row changes
	Ignored       int64 // changes the preset ignores (deletes of upsert and insert_only, …)
	Collapsed     int64 // changes that a newer one of the same key in the batch replaced
	TwoPartitions int64 // changes whose key was seen in another partition of the batch
}

// Batch is a closed micro-batch: one change per merge key is selected. The
// receiver owns it until it gives it back with Batcher.Recycle.
type Batch struct {
	Changes *change.Batch
	// Keys are the merge keys of all changes; nil for Append.
	Keys *types.Keys
	// Winners are the changes to apply, in arrival order, at most one a key.
	Winners []uint32
	// Prev is, for each change, the change of the same key that comes logically
	// just before it in this batch, -1 for none: the chain that fills holes.
	Prev []int32
	// OldHead is, for each row of Changes.OldKeys, the newest change of that key
	// in this batch, -1 for none. OldKeys are its keys.
	OldHead []int32
	OldKeys *types.Keys
	// Start and Next are the full position vectors before and after the batch.
	Start, Next change.Positions
	// Partitions names the ordinals of Changes.Part.
	Partitions []change.Partition
	// Digest is a hash over the positions and bytes of the records, for audits.
	Digest []byte
	Counts Counts
	Reason FlushReason
	// Generation counts the resets of the source; a batch of an older one is void.
	Generation uint64
	// FirstTime is when the first record came (monotonic), MinEvent and MaxEvent
	// the oldest and newest change time in milliseconds since the epoch (0: none).
	FirstTime          time.Time
	MinEvent, MaxEvent int64

	slots  []uint32
	bitmap types.Bitmap
}

// MemBytes returns the memory the batch takes.
func (b *Batch) MemBytes() int64 {
	n := b.Changes.MemBytes() + int64(4*cap(b.Winners)+4*cap(b.Prev)+4*cap(b.slots))
	if b.Keys != nil {
		n += b.Keys.MemBytes()
	}
	return n
}

func (b *Batch) reset() {
	b.Changes.Reset()
	if b.Keys != nil {
		b.Keys.Reset()
	}
	if b.OldKeys != nil {
		b.OldKeys.Reset()
	}
	b.Winners, b.Prev, b.OldHead = b.Winners[:0], b.Prev[:0], b.OldHead[:0]
	b.Start, b.Next, b.Digest = nil, nil, nil
	b.Counts = Counts{}
	b.FirstTime = time.Time{}
	b.MinEvent, b.MaxEvent = 0, 0
	b.bitmap.Reset()
}
