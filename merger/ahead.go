package merger

import (
	"context"

	"applier/storage/objstore"
)

// In an object store a question costs the latency of the network, on a disk next to
// nothing. So there the questions of a look, and those of the check before a publish,
// are asked at once, before the code that asks them one after the other: what that
// code does is the same everywhere. A commit then takes three round trips from the
// closed batch to its snapshot: the look; the files, and beside them the check; the
// snapshot itself, whose conditional PUT proves that nobody was faster.

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

// askLook asks what a look will ask if nobody else has committed.
func (a *Applier) askLook(ctx context.Context, e Look) (forget func()) {
	p := a.table.Paths()
	asks := []objstore.Ask{get(p.Schema(0)), list(p.SchemaDir()), list(p.SnapshotDir())}
	if id := a.table.Schema().ID; id > 0 {
		asks = append(asks, get(p.Schema(id)))
	}
	if consumer, err := p.Consumer(a.consumerID()); err == nil {
		asks = append(asks, get(consumer))
	}
	if !e.Full && e.Known.ID > 0 {
		asks = append(asks, get(p.LatestHint()), stat(p.Snapshot(e.Known.ID)), stat(p.Snapshot(e.Known.ID+1)), get(p.EarliestHint()), get(p.Snapshot(e.Known.ID)))
	}
	return a.ahead(ctx, asks...)
}

// askStill asks, beside the upload of an attempt's files, what will be asked before its
// snapshot is published. The answers are taken by the steps that follow, so they
// outlive the one that asks.
func (a *Applier) askStill(ctx context.Context, base SnapRef) {
	a.forgetStill()
	p := a.table.Paths()
	asks := []objstore.Ask{get(p.Schema(0)), stat(p.Snapshot(base.ID + 1))}
	if base.ID > 0 {
		asks = append(asks, get(p.Snapshot(base.ID)))
	} else {
		asks = append(asks, list(p.SchemaDir()))
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

var _ aheadBucket = (*objstore.S3Bucket)(nil)
