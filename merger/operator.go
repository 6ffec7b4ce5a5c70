package merger

import (
	"context"
	"errors"
	"fmt"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/paimon"
)

// OperatorCommit states where a pipeline stands: the commit behind the commands
// `offsets set`, `skip` and `adopt`.
type OperatorCommit struct {
	Op      string // set, skip, adopt
	Next    change.Positions
	Topics  map[string]string
	Cluster string
	Gaps    int64 // records skipped
}

// Commit publishes the statement as an empty commit, through the same loop and
// the same fence as every batch. It works beside a running daemon, which finds
// the new record at its next look. The Applier must not be running.
func (a *Applier) Commit(ctx context.Context, c OperatorCommit) (snapshot int64, err error) {
	a.state = State{Phase: PhaseIdle, Owned: true, Stop: true}
	a.stating = true
	a.taken = a.set.Now()
	a.step(BatchReady{&BatchInfo{Start: change.Positions{}, Next: c.Next, Op: c.Op, Topics: c.Topics, Cluster: c.Cluster, Gaps: c.Gaps}})
	for a.due != nil && ctx.Err() == nil {
		if _, ok := a.due.(Wait); ok {
			a.endWait()
			continue
		}
		a.advanceDue(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case a.state.Halt != nil:
		return 0, a.state.Halt
	case !a.committed:
		return 0, fmt.Errorf("the commit failed: %w", a.failure)
	}
	return a.state.Known.ID, nil
}

// Located is a position record and where it was found.
type Located struct {
	Pipeline string
	Record   *Record
	Snapshot int64
}

// FindRecords walks back from the latest snapshot and returns the newest record
// of the pipeline id, and of every other id on the way (down to the oldest
// retained snapshot if the id has none).
func FindRecords(ctx context.Context, t *paimon.Table, id string) (own *Located, others []Located, err error) {
	c := newChain(t.Bucket(), t.Paths(), id)
	ids, err := paimon.ListSnapshotIDs(ctx, t.Bucket(), t.Paths())
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for i := len(ids) - 1; i >= 0 && own == nil; i-- {
		l, err := c.fresh(ctx, ids[i])
		if err != nil {
			return nil, nil, err
		}
		for _, other := range sortedKeys(l.others) {
			if !seen[other] {
				seen[other] = true
				others = append(others, Located{other, l.others[other], l.ref.ID})
			}
		}
		if l.own != nil {
			own = &Located{id, l.own, l.ref.ID}
		}
	}
	return own, others, nil
}

// NoSource is the Source of an Applier that only commits statements.
type NoSource struct{}

var errNoSource = errors.New("this loop reads nothing")

// ResolveStart implements Source.
func (NoSource) ResolveStart(context.Context) (change.Positions, map[string]string, string, error) {
	return nil, nil, "", errNoSource
}

// Resume implements Source.
func (NoSource) Resume(context.Context, change.Positions, map[string]string, string) (uint64, error) {
	return 0, errNoSource
}

// Refuse implements Source.
func (NoSource) Refuse(change.Partition, int64, *change.RowError) {}

// Stop implements Source.
func (NoSource) Stop() {}

// Owned implements Source.
func (NoSource) Owned() bool { return true }

// Committed implements Source.
func (NoSource) Committed(change.Positions) {}

// Release implements Source.
func (NoSource) Release(*batcher.Batch) {}

// String names a located record for people.
func (l Located) String() string {
	return fmt.Sprintf("pipeline %s, snapshot %d, commit %d of epoch %d", l.Pipeline, l.Snapshot, l.Record.Seq, l.Record.Epoch)
}
