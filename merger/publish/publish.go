// Package publish ends the commits of writers that keep no state of their own:
// compaction and SQL statements. The daemon has a protocol of its own (merger.Step),
// which this follows where the two meet.
package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"applier/merger"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// ErrUnknown: nobody knows whether the commit took place.
var ErrUnknown = errors.New("the outcome of the commit is unknown")

// How often an unknown outcome is looked into, and the growing pause between.
const (
	tries = 5
	pause = 200 * time.Millisecond
)

// Snapshot creates the snapshot of a commit whose files are all written. It is
// not won if somebody else has taken the number. An error of the store says nothing
// there: the name is read back, and taken again with the same bytes if it is still
// free; if that does not help either, the error is ErrUnknown.
func Snapshot(ctx context.Context, t *paimon.Table, c *paimon.Commit) (won bool, err error) {
	var unknown error
	for try := range tries {
		err := t.Publish(ctx, c)
		if err == nil {
			return true, nil
		}
		s, read := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), c.Snapshot.ID)
		switch {
		case read == nil && s.UUID == c.Snapshot.UUID:
			// The reply was lost, or it is not durable yet: ask again.
			if errors.Is(err, objstore.ErrExist) {
				return true, nil
			}
		case read == nil:
			return false, nil
		case !errors.Is(read, objstore.ErrNotExist):
			err = read
		}
		unknown = err
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("%w: snapshot %d: %w", ErrUnknown, c.Snapshot.ID, unknown)
		case <-time.After(time.Duration(try+1) * pause):
		}
	}
	return false, fmt.Errorf("%w: snapshot %d: %w", ErrUnknown, c.Snapshot.ID, unknown)
}

// writeBack is the age from which on an operating system has long written by
// itself what was not synced.
const writeBack = 10 * time.Minute

// Secure makes what the commit is built on durable: other writers may not have
// synced anything, and a commit that outlives its predecessor in a power cut
// leaves a hole. It ends at a snapshot of a pipeline, which did the same.
func Secure(ctx context.Context, t *paimon.Table, base *paimon.Snapshot, now time.Time) error {
	since := now.Add(-writeBack).UnixMilli()
	var foreign []*paimon.Snapshot
	for s := base; s != nil && s.TimeMillis > since && !ofPipeline(s); {
		foreign = append(foreign, s)
		below, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), s.ID-1)
		if errors.Is(err, objstore.ErrNotExist) {
			// Creation times are local wall clocks.
			if err := t.SyncLive(ctx, s, since-26*time.Hour.Milliseconds()); err != nil {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
		s = below
	}
	for _, s := range slices.Backward(foreign) { // the oldest first: no hole at any time
		if err := t.SyncSnapshot(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func ofPipeline(s *paimon.Snapshot) bool {
	for name := range s.Properties {
		if strings.HasPrefix(name, merger.PropertyPrefix) {
			return true
		}
	}
	return false
}
