package merger

import (
	"context"
	"slices"

	"applier/storage/objstore"
)

// In an object store a question costs the latency of the network, on a disk next to
// nothing. So there the questions of a look, and those of the check before a publish,
// are asked at once, before the code that asks them one after the other: what that
// code does is the same everywhere. A commit then takes two round trips from the
// closed batch to its snapshot, where nobody else commits: the files, and beside them
// the look and the check; the snapshot itself, whose conditional PUT proves that nobody
// was faster. Behind the commits of others the look comes first (State.firstAttempt),
// and it takes three.

// aheadBucket is a store whose questions are worth asking ahead.
type aheadBucket interface {
	Ahead(ctx context.Context, asks ...objstore.Ask) (forget func())
}

func (a *Applier) ahead(ctx context.Context, asks ...objstore.Ask) (forget func()) {
	b, ok := a.table.Bucket().(aheadBucket)
	if !ok {
		return func() {}
	}
	return b.Ahead(ctx, asks...)
}

func get(key string) objstore.Ask  { return objstore.Ask{Kind: objstore.AskGet, Key: key} }
func stat(key string) objstore.Ask { return objstore.Ask{Kind: objstore.AskStat, Key: key} }
func list(key string) objstore.Ask { return objstore.Ask{Kind: objstore.AskList, Key: key} }

// lookAsks is what a look will ask if nobody else has committed.
func (a *Applier) lookAsks(e Look) []objstore.Ask {
	p := a.table.Paths()
	asks := []objstore.Ask{get(p.Schema(0)), list(p.SchemaDir())}
	if id := a.table.Schema().ID; id > 0 {
		asks = append(asks, get(p.Schema(id)))
	}
	if consumer, err := p.Consumer(a.consumerID()); err == nil && !e.Confirm {
		asks = append(asks, get(consumer))
	}
	if e.Full || e.Known.ID == 0 {
		return append(asks, list(p.SnapshotDir()))
	}
	if a.earliest > 0 {
		asks = append(asks, stat(p.Snapshot(a.earliest)))
	}
	if a.earliest > 1 {
		asks = append(asks, stat(p.Snapshot(a.earliest-1)))
	}
	known, next := p.Snapshot(e.Known.ID), p.Snapshot(e.Known.ID+1)
	return append(asks, get(p.LatestHint()), stat(known), stat(next), get(known))
}

// askStill asks, beside the upload of an attempt's files, what will be asked before its
// snapshot is published. The answers are taken by the steps that follow, so they
// outlive the one that asks.
func (a *Applier) askStill(ctx context.Context, e Write) {
	a.forgetStill()
	p := a.table.Paths()
	asks := []objstore.Ask{get(p.Schema(0)), stat(p.Snapshot(e.Base.ID + 1))}
	if e.Base.ID > 0 {
		asks = append(asks, get(p.Snapshot(e.Base.ID)))
	} else {
		asks = append(asks, list(p.SchemaDir()))
	}
	if e.Unlooked {
		asks = slices.Concat(asks, a.lookAsks(Look{Known: e.Base, Confirm: true}))
	}
	a.stillAsked = a.ahead(context.WithoutCancel(ctx), asks...)
}

// forgetStill drops what askStill asked and nobody wanted.
func (a *Applier) forgetStill() {
	if a.stillAsked != nil {
		a.stillAsked()
		a.stillAsked = nil
	}
}

// askReadBack asks what the reading back of a publish will.
func (a *Applier) askReadBack(ctx context.Context, e ReadBack) (forget func()) {
	p := a.table.Paths()
	asks := []objstore.Ask{get(p.Snapshot(e.Target))}
	if e.Base.ID > 0 {
		asks = append(asks, get(p.Snapshot(e.Base.ID)))
	}
	return a.ahead(ctx, asks...)
}

var _ aheadBucket = (*objstore.S3Bucket)(nil)
