package app

import (
	"context"
	"errors"
	"time"

	"applier/batcher"
	"applier/config"
)

// joining makes the compactions of the process take turns, join by join, and counts
// what one holds against the memory budget. It is safe for concurrent use.
type joining struct {
	turn    chan struct{} // full while somebody joins
	budget  *batcher.Budget
	account *batcher.Account
	bytes   int64 // about what a join may hold
}

// joinShare is the part of the memory that a join may hold, one in so many.
const joinShare = 8

// joinPatience is how long a join waits for memory before its round is given up.
const joinPatience = time.Minute

var errNoMemory = errors.New("batches and indexes leave no memory for compaction (config memory)")

func newJoining(budget *batcher.Budget) *joining {
	return &joining{turn: make(chan struct{}, 1), budget: budget, account: budget.Account(), bytes: budget.Limit() / joinShare}
}

// enter waits for a turn, and for memory: it is reserved first, so that reading from
// Kafka pauses, and what the pipelines hold goes down with their next commits. held
// is told what the join really holds, leave ends it. Errors: errNoMemory, ctx's.
func (j *joining) enter(ctx context.Context) (held func(bytes int64), leave func(), err error) {
	select {
	case j.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	leave = func() { j.account.Set(0); <-j.turn }
	j.account.Set(j.bytes)
	late := time.NewTimer(joinPatience)
	defer late.Stop()
	for {
		freed := j.budget.Freed()
		if !j.budget.Over() {
			return func(bytes int64) { j.account.Set(max(bytes, j.bytes)) }, leave, nil
		}
		select {
		case <-freed:
		case <-late.C:
			leave()
			return nil, nil, errNoMemory
		case <-ctx.Done():
			leave()
			return nil, nil, ctx.Err()
		}
	}
}

// reserved is what indexes must leave for compaction.
func (j *joining) reserved(cfg *config.Config) int64 {
	for _, p := range cfg.Pipelines {
		if p.Maintenance.Compact {
			return j.bytes
		}
	}
	return 0
}
