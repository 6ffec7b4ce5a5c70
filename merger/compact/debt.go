package compact

import (
	"slices"
	"time"
)

// Debt follows since when a table has been waiting for compaction. The zero value
// has seen nothing. It belongs to one goroutine.
type Debt struct {
	purge map[string]time.Time // when files were first seen that only lose rows
}

// Since returns when the work that a plan lists was there first; zero if it lists
// none. Files that are joined wait since the file was written that made them
// enough. Nothing tells when a file's rows were deleted: it waits since it was
// seen here.
func (d *Debt) Since(groups [][]File, minFiles int, now time.Time) time.Time {
	var since time.Time
	earlier := func(t time.Time) {
		if since.IsZero() || t.Before(since) {
			since = t
		}
	}
	seen := map[string]time.Time{}
	for _, g := range groups {
		if len(g) > 1 {
			earlier(enoughSince(g, minFiles, now))
			continue
		}
		name := g[0].Entry.File.Name
		at, known := d.purge[name]
		if !known {
			at = now
		}
		seen[name] = at
		earlier(at)
	}
	d.purge = seen
	return since
}

// enoughSince is when the file of a group was written that made it worth joining;
// files without a time are taken for new.
func enoughSince(group []File, minFiles int, now time.Time) time.Time {
	written := make([]int64, len(group))
	for i := range group {
		if at := group[i].Entry.File.CreationTime; at != nil {
			written[i] = *at
		} else {
			written[i] = now.UnixMilli()
		}
	}
	slices.Sort(written)
	return time.UnixMilli(written[min(max(minFiles, 1), len(written))-1])
}
