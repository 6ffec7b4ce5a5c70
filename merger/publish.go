package merger

import (
	"context"
	"errors"
	"time"

	"applier/storage/objstore"
)

// doPublish is step 11: create the snapshot under its name, which must be free.
func (a *Applier) doPublish(ctx context.Context) Event {
	defer a.forgetStill()
	if void, err := a.void(ctx); err != nil {
		a.set.Log.Warn("cannot look for what a commit needs; it is tried again", "err", err)
		a.step(PublishFailed{Halt{classify(err), err.Error()}})
		return Published{Result: PublishUnknown}
	} else if void {
		return Published{Result: PublishVoid}
	}
	switch err := a.table.Publish(ctx, a.attempt.commit); {
	case err == nil:
		return Published{Result: PublishWon}
	case errors.Is(err, objstore.ErrExist):
		return Published{Result: PublishExists}
	default:
		a.set.Log.Warn("the outcome of a commit is unknown; reading it back", "snapshot", a.attempt.commit.Snapshot.ID, "err", err)
		a.step(PublishFailed{Halt{classify(err), err.Error()}})
		return Published{Result: PublishUnknown}
	}
}

// void reports whether the attempt must not be published as it is. Between the look
// and now the table may have been dropped, and another one created under its name:
// nothing of ours may land in that.
func (a *Applier) void(ctx context.Context) (bool, error) {
	if halt, err := a.sameTable(ctx); halt != nil || err != nil {
		return halt != nil, err
	}
	return a.cleanedAway(ctx)
}

// freshFor is how long an attempt's files are taken for granted. Orphan cleaners
// keep what is younger than a day by default, so an hour leaves time to publish.
const freshFor = time.Hour

// cleanedAway reports whether a file of an old attempt is gone: nothing refers to
// the files before the publish, so an orphan cleaner may take them.
func (a *Applier) cleanedAway(ctx context.Context) (bool, error) {
	if a.set.Now().Sub(a.attempt.made) < freshFor {
		return false, nil
	}
	for _, key := range a.attempt.keys {
		_, err := a.table.Bucket().Stat(ctx, key)
		if errors.Is(err, objstore.ErrNotExist) {
			a.set.Log.Warn("a file of a commit that is not published yet was removed; all are written again", "file", key)
			clear(a.copied)
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// starvedAfter is how long a batch may lose its races before that is told.
const starvedAfter = 30 * time.Second

// watchStarving tells once a batch that other writers are always faster.
func (a *Applier) watchStarving() {
	if a.batch == nil || a.starving || a.state.Attempt < 2 || a.set.Now().Sub(a.taken) < starvedAfter {
		return
	}
	a.starving = true
	a.obs.Noticed(NoticeStarved)
}
