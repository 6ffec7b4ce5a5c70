package app

import (
	"sync"
	"time"

	"applier/ingest/change"
)

// ages remembers when records were written that are not in the table yet: one
// record a fetch, which is exact enough for a lag in seconds. It is safe for
// concurrent use.
type ages struct {
	mu    sync.Mutex
	heads map[change.Partition][]head
}

// head is the first record of a fetch.
type head struct {
	offset, millis int64
}

// maxHeads bounds what is remembered a partition. The oldest matter, so later
// ones are left out while there are as many.
const maxHeads = 4096

// head notes the first record of a fetch. An offset that was seen before says
// that reading began again: what came after it is forgotten.
func (a *ages) head(p change.Partition, offset, millis int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.heads == nil {
		a.heads = map[change.Partition][]head{}
	}
	h := a.heads[p]
	for len(h) > 0 && h[len(h)-1].offset >= offset {
		h = h[:len(h)-1]
	}
	if len(h) < maxHeads {
		h = append(h, head{offset, millis})
	}
	a.heads[p] = h
}

// age returns how old the oldest record at or after next is, if behind records
// wait there: 0 when none does, or when it has not been fetched yet.
func (a *ages) age(p change.Partition, next, behind int64, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.heads[p]
	for len(h) > 1 && h[1].offset <= next {
		h = h[1:]
	}
	if behind == 0 {
		h = nil
	}
	if len(h) == 0 {
		delete(a.heads, p)
		return 0
	}
	a.heads[p] = h
	return max(now.Sub(time.UnixMilli(h[0].millis)), 0)
}
