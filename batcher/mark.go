package batcher

import (
	"time"

	"applier/ingest/change"

	"github.com/cespare/xxhash/v2"
)

// mark is a place in the open batch of a pipeline that reads one partition.
type mark struct {
	rows        int
	bytes       int64
	next        change.Position
	digest      xxhash.Digest
	counts      Counts
	moved       bool
	since, last time.Time
	first       time.Time
}

// Mark remembers the end of the open batch, which Rewind goes back to. There is one
// partition.
func (b *Batcher) Mark() {
	b.marked = mark{
		rows: b.open.Changes.Len(), bytes: b.open.Changes.Bytes, next: b.next[b.partitions[0]], digest: b.digests[0],
		counts: b.open.Counts, moved: b.moved, since: b.since, last: b.last, first: b.open.FirstTime,
	}
}

// Before reports whether the open batch had anything at the mark, be it a position.
func (b *Batcher) Before() bool { return b.marked.moved }

// Rewind takes back what came into the open batch behind the mark.
func (b *Batcher) Rewind() {
	m := &b.marked
	b.open.Changes.Truncate(m.rows)
	b.open.Changes.Bytes = m.bytes
	b.next[b.partitions[0]], b.digests[0] = m.next, m.digest
	b.open.Counts, b.open.FirstTime = m.counts, m.first
	b.moved, b.since, b.last = m.moved, m.since, m.last
}
