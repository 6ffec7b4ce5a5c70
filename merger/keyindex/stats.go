package keyindex

import (
	"errors"
)

// Stats describe an index. Counters only ever rise.
type Stats struct {
	Entries    int64   // occupied slots
	Live       int64   // rows that Lookup can find
	Stale      int64   // entries of deleted rows and removed files
	StaleRatio float64 // Stale / Entries
	NullRows   int64   // rows without an entry because their key is NULL
	Segments   int     // live data files

	Bytes         int64   // memory outside the Go heap
	PeakBytes     int64   // the most it has been
	LimitBytes    int64   // MaxBytes
	HeapBytes     int64   // on it: deletion vectors, a bit a row, and long keys of tiny files
	SidecarBytes  int64   // on disk, and in the page cache while in use
	BytesPerEntry float64 // Bytes / Entries

	Hits, Misses int64 // keys looked up with and without a row
	Collisions   int64 // rows whose long key only had the same hash
	Reclaimed    int64 // stale entries whose slots were freed
	Growths      int64 // times a shard grew or was cleaned to avoid it
	Moved        int64 // entries that made room for others: rises with clusters
}

// Stats returns the current figures, in constant time. Like every method it
// belongs to the index's one user; what other goroutines want to see is for that
// user to publish.
func (x *Index) Stats() Stats {
	s := Stats{
		Entries: x.entries, Stale: x.stale(), NullRows: x.segs.nulls, Segments: x.segs.live,
		Live: x.segs.rows - x.segs.gone, HeapBytes: x.segs.heapBytes.Load(),
		Hits: x.count.hits, Misses: x.count.misses, Collisions: x.count.collisions,
		Reclaimed: x.count.reclaimed, Growths: x.count.growths, Moved: x.count.moved,
	}
	if x.mem != nil {
		x.mem.mu.Lock()
		s.Bytes, s.PeakBytes, s.LimitBytes = x.mem.used, x.mem.peak, x.mem.limit
		x.mem.mu.Unlock()
	}
	if x.side != nil {
		s.SidecarBytes = x.side.bytes.Load()
	}
	if s.Entries > 0 {
		s.StaleRatio = float64(s.Stale) / float64(s.Entries)
		s.BytesPerEntry = float64(s.Bytes) / float64(s.Entries)
	}
	return s
}

// stale is the number of entries that no Lookup returns. While segments lack
// rows it is a lower bound.
func (x *Index) stale() int64 { return max(0, x.entries-(x.segs.rows-x.segs.gone)) }

// Sweep drops the stale entries of the next n shards (all if n is 0) and gives
// memory back where that leaves much of it free. It reports whether it reached
// the end of a round. A shard takes a few milliseconds; call it in idle time
// once Stats.StaleRatio is above a tenth or so.
func (x *Index) Sweep(n int) (done bool, err error) {
	if err := x.usable(); err != nil {
		return false, err
	}
	if n <= 0 {
		n, x.cursor = len(x.shards), 0
	}
	for ; n > 0; n-- {
		err := x.reshape(&x.shards[x.cursor], change{keep: x.segs.alive, shrink: true})
		if err != nil && !errors.Is(err, ErrMemory) { // not even that much room: it stays as it is
			return false, err
		}
		if x.cursor++; x.cursor == len(x.shards) {
			x.cursor = 0
			return true, nil
		}
	}
	return false, nil
}
