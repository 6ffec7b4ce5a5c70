package merger

import (
	"context"
	"fmt"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/paimon"
)

// Trial is what a batch would do to a table.
type Trial struct {
	Snapshot int64 // the newest one, which it was put to; 0: there is none
	Counts   Counts
	// Acted are, by clause of Settings.Merge, the rows it acted on; nil for presets.
	Acted []int64
	// Refused are the changes that cannot be applied, by class.
	Refused map[change.Class]int64
}

// Try plans a batch on the newest snapshot and writes nothing, neither into the table
// nor beside it. The Applier must not be running. Remembered deletes are not looked at.
func (a *Applier) Try(ctx context.Context, b *batcher.Batch) (Trial, error) {
	defer a.view.drop()
	a.taken, a.acceptTwoParts = a.set.Now(), true
	id, err := paimon.LatestSnapshotID(ctx, a.table.Bucket(), a.table.Paths())
	if err != nil {
		return Trial{}, err
	}
	var at *link
	if id > 0 {
		if at, err = a.chain.fresh(ctx, id); err != nil {
			return Trial{}, fmt.Errorf("reading snapshot %d: %w", id, err)
		}
	}
	if a.set.Apply != batcher.Append {
		if err := a.view.sync(ctx, at); err != nil {
			return Trial{}, fmt.Errorf("building the key index of snapshot %d: %w", id, err)
		}
	}
	p, err := a.planBatch(ctx, b)
	if err != nil {
		return Trial{}, err
	}
	t := Trial{Snapshot: id, Counts: p.counts, Acted: p.acted, Refused: map[change.Class]int64{}}
	for _, l := range append(p.letters, p.ordered...) {
		t.Refused[l.err.Class]++
	}
	return t, nil
}
