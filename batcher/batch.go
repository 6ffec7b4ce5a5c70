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
	Merge                   // no preset: the clauses of MERGE decide
)

var applyNames = [...]string{"mirror", "upsert", "insert_only", "soft_delete", "append", "merge"}

// String returns the preset's name in the configuration; that of Merge is no preset's.
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

// Ordered reports whether order_by makes sense: whatever a change does, a row is
// left that a later one can be compared with; or, if deletes are remembered, the
// delete.
func (a Apply) Ordered(remembers bool) bool {
	return a == Upsert || a == SoftDelete || a == Mirror && remembers
}

// Deletes reports whether the preset follows deletes, so that there is something
// to remember.
func (a Apply) Deletes() bool { return a == Mirror || a == SoftDelete }

// Tie says which of two changes of a key stays whose places in the order are the
// same.
type Tie uint8

// The ways to settle a tie.
const (
	TieLast       Tie = iota // the one that arrived last
	TieFirst                 // the one that arrived first; the other is dropped
	TieDeadLetter            // the one that arrived first; the other goes to the dead letters
)

// Late says what becomes of a change that is older than what the table holds, or
// remembers, of its key.
type Late uint8

// The ways to treat late changes.
const (
	LateDrop       Late = iota // dropped and counted
	LateApply                  // applied and counted: the order only warns
	LateDeadLetter             // sent to the dead letters
)

// Truncates reports whether a truncation of the source's table can be applied: the
// preset's deletes remove rows.
func (a Apply) Truncates() bool { return a == Mirror }

// Order is how changes of a key are compared. The zero Order is that of arrival.
type Order struct {
	By   []int // columns of the table, the most significant first
	Tie  Tie
	Late Late
}

// Verdict is what the place of a change in the order makes of it.
type Verdict uint8

// The verdicts.
const (
	Newer     Verdict = iota // it is applied
	Tied                     // it is dropped, for one of the same place was first
	Overtaken                // it is late, and dropped
	LateTaken                // it is late, and applied
)

// Applies reports whether the change takes effect.
func (v Verdict) Applies() bool { return v == Newer || v == LateTaken }

// Judge turns a comparison of a change with what was applied before it into a
// verdict: negative is older.
func (o *Order) Judge(cmp int) Verdict {
	switch {
	case cmp > 0, cmp == 0 && o.Tie == TieLast:
		return Newer
	case cmp == 0:
		return Tied
	case o.Late == LateApply:
		return LateTaken
	}
	return Overtaken
}

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
	FlushTruncate FlushReason = "truncate" // the source's table was emptied: the next batch begins with that
)

// FlushReasons lists all reasons.
func FlushReasons() []FlushReason {
	return []FlushReason{FlushRows, FlushBytes, FlushInterval, FlushIdle, FlushMemory, FlushRevoke, FlushDrain, FlushManual, FlushTruncate}
}

// Counts say what became of a batch's records before the table was asked.
// Changes = Ignored + Collapsed + Late + Tied + the number of winners.
type Counts struct {
	Records       int64 // records read, skipped ones included
	Skipped       int64 // records that change no row
	DeadLetters   int64 // records sent to the dead letters
	Dropped       int64 // records dropped by on_error: skip
	Changes       int64 // row changes
	Ignored       int64 // changes the preset ignores: deletes of upsert and insert_only, later rows of a key of insert_only
	Collapsed     int64 // changes that a newer one of the same key in the batch replaced
	Late          int64 // changes that arrived after a newer one (order_by) of the same key in the batch, and do not count
	Tied          int64 // changes that arrived after one of the same place in the order, and do not count
	TwoPartitions int64 // changes whose key was seen in another partition of the batch
}

// Batch is a closed micro-batch: one change per merge key is selected. The
// receiver owns it until it gives it back with Batcher.Recycle.
type Batch struct {
	Changes *change.Batch
	// Truncation, if not nil, comes before all changes: the source's table was emptied.
	Truncation *change.Truncation
	// Keys are the merge keys of all changes; nil for Append.
	Keys *types.Keys
	// Winners are the changes that decide, in arrival order, one for each key that
	// has any change which the preset does not ignore: the last one to arrive,
	// under order_by the newest one (ties and late ones as the pipeline's Order
	// says), under insert_only the first one.
	Winners []uint32
	// heads are, parallel to Winners, the last changes of the same key; nil if
	// these are the winners themselves.
	heads []uint32
	// Prev is, for each change, the one of the same key that arrived before it in
	// this batch, -1 for none. From a head it leads through all changes of a key.
	Prev []int32
	// OldHead is, for each row of Changes.OldKeys, the change of that key that
	// arrived last in this batch, -1 for none. OldKeys are its keys.
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
	best   []uint32 // by slot: the change that decides so far, +1
	headOf []uint32
	bitmap types.Bitmap
}

// Head returns the change of the key of Winners[j] that arrived last: where its
// chain begins.
func (b *Batch) Head(j int) uint32 {
	if b.heads == nil {
		return b.Winners[j]
	}
	return b.heads[j]
}

// MemBytes returns the memory the batch takes.
func (b *Batch) MemBytes() int64 {
	n := b.Changes.MemBytes() + int64(8*cap(b.bitmap))
	n += 4 * int64(cap(b.Winners)+cap(b.heads)+cap(b.Prev)+cap(b.OldHead)+cap(b.slots)+cap(b.best)+cap(b.headOf))
	for _, k := range []*types.Keys{b.Keys, b.OldKeys} {
		if k != nil {
			n += k.MemBytes()
		}
	}
	return n
}

// events finds the oldest and the newest change time.
func (b *Batch) events() {
	if b.Truncation != nil {
		b.MinEvent, b.MaxEvent = b.Truncation.Time, b.Truncation.Time
	}
	for _, t := range b.Changes.Time {
		if b.MinEvent == 0 || t < b.MinEvent {
			b.MinEvent = t
		}
		b.MaxEvent = max(b.MaxEvent, t)
	}
}

func (b *Batch) reset() {
	b.Changes.Reset()
	b.Truncation = nil
	if b.Keys != nil {
		b.Keys.Reset()
	}
	if b.OldKeys != nil {
		b.OldKeys.Reset()
	}
	b.Winners, b.heads, b.Prev, b.OldHead = b.Winners[:0], b.heads[:0], b.Prev[:0], b.OldHead[:0]
	b.Start, b.Next, b.Digest = nil, nil, nil
	b.Counts = Counts{}
	b.FirstTime = time.Time{}
	b.MinEvent, b.MaxEvent = 0, 0
	b.bitmap.Reset()
}
