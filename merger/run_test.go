package merger

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"applier/batcher"
	"applier/ingest/change"

	"github.com/stretchr/testify/require"
)

// running is a loop in its own goroutine, in virtual time.
type running struct {
	*rig
	cancel context.CancelFunc
	done   chan error
}

func startLoop(t *testing.T, r *rig) *running {
	ctx, cancel := context.WithCancel(t.Context())
	run := &running{rig: r, cancel: cancel, done: make(chan error, 1)}
	go func() { run.done <- r.a.Run(ctx) }()
	t.Cleanup(func() { cancel(); synctest.Wait() })
	synctest.Wait()
	return run
}

// source is a rig whose Resume may block, as one that needs another goroutine does.
type blockingSource struct {
	*rig
	block chan struct{} // Resume waits until it is closed, or its context ends
}

func (s *blockingSource) Resume(ctx context.Context, pos change.Positions, ids map[string]string, cluster string) (uint64, error) {
	if s.block != nil {
		select {
		case <-s.block:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return s.rig.Resume(ctx, pos, ids, cluster)
}

func TestRun_CommitsAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := kvRig(t, rigOptions{apply: batcher.Mirror})
		run := startLoop(t, r)
		require.Equal(t, PhaseStandby, r.a.Status().Phase)
		r.a.Post(Assigned{})
		require.True(t, r.a.Await(t.Context(), func(s Status) bool { return s.Phase == PhaseIdle }))
		r.put(0, 1, "a")
		require.NoError(t, r.a.Submit(t.Context(), r.b.Seal(batcher.FlushRows)))
		require.True(t, r.a.Await(t.Context(), func(s Status) bool { return s.Positions[r.parts[0]].Next == 1 }))
		r.a.Post(StopAsked{})
		require.NoError(t, <-run.done)
		require.Equal(t, PhaseStopped, r.a.Status().Phase)
		require.Equal(t, []string{"k=1 v=a"}, r.rows())
	})
}

func TestRun_AfterTheEndNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := kvRig(t, rigOptions{apply: batcher.Mirror})
		run := startLoop(t, r)
		r.a.Post(Assigned{})
		synctest.Wait()
		run.cancel() // abandoned: a second signal
		<-run.done
		from := time.Now()
		for range 200 { // more than the queue holds
			r.a.Post(Tick{})
		}
		r.put(0, 1, "a")
		require.ErrorIs(t, r.a.Submit(t.Context(), r.b.Seal(batcher.FlushRows)), errEnded)
		r.a.Revoke(t.Context()) // leaving the group calls this after the loop is gone
		require.Zero(t, time.Since(from))
	})
}

func TestRun_AnIdleTableIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := kvRig(t, rigOptions{apply: batcher.Mirror})
		startLoop(t, r)
		r.a.Post(Assigned{})
		synctest.Wait()
		require.NoError(t, r.disk.RemoveAll("schema"))
		time.Sleep(idleTick + time.Millisecond)
		synctest.Wait()
		require.Equal(t, CodeGone, r.a.Status().Halt.Code)
	})
}

func TestRun_RevokeInterruptsAResumeThatNeedsTheSource(t *testing.T) {
	// A rebalance: the group's goroutine calls Revoke and holds the source's poll;
	// Resume needs that poll to end. Without the interruption all three wait for
	// each other until Revoke's time is over.
	synctest.Test(t, func(t *testing.T) {
		r := kvRig(t, rigOptions{apply: batcher.Mirror})
		src := &blockingSource{rig: r, block: make(chan struct{})}
		r.a.src = src
		startLoop(t, r)
		r.a.Post(Assigned{})
		synctest.Wait()
		require.Equal(t, PhaseResume, r.a.Status().Phase)
		from := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		r.a.Revoke(ctx)
		require.Zero(t, time.Since(from))
		require.Equal(t, PhaseStandby, r.a.Status().Phase)
		require.Empty(t, r.seen.halts, "an interruption is no failure")

		close(src.block)
		r.a.Post(Assigned{})
		synctest.Wait()
		require.Equal(t, PhaseIdle, r.a.Status().Phase)
	})
}

func TestRun_RevokeWaitsForAPublishUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := kvRig(t, rigOptions{apply: batcher.Mirror})
		publishing, answer := make(chan struct{}), make(chan struct{})
		startLoop(t, r)
		r.a.Post(Assigned{})
		synctest.Wait()
		r.onStage = func(name string) {
			if name == "publish" {
				close(publishing)
				<-answer
			}
		}
		r.put(0, 1, "a")
		require.NoError(t, r.a.Submit(t.Context(), r.b.Seal(batcher.FlushRows)))
		<-publishing
		revoked := make(chan struct{})
		go func() {
			r.a.Revoke(t.Context())
			close(revoked)
		}()
		synctest.Wait()
		select {
		case <-revoked:
			t.Fatal("the table was given away while its outcome was unknown")
		default:
		}
		close(answer)
		<-revoked
		require.Equal(t, PhaseStandby, r.a.Status().Phase)
		require.Equal(t, []string{"k=1 v=a"}, r.rows(), "acknowledged, not lost")
	})
}

func TestRun_BackoffGrowsAndACommandEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := kvRig(t, rigOptions{apply: batcher.Mirror})
		r.resumeErr = errors.New("no broker")
		startLoop(t, r)
		from := time.Now()
		r.a.Post(Assigned{})
		synctest.Wait()
		tries := func() uint64 { return uint64(r.a.Status().Retries) }
		require.EqualValues(t, 1, tries())
		time.Sleep(100*time.Millisecond + 200*time.Millisecond + 400*time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 4, tries())
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		n := tries()
		require.Less(t, n, uint64(40), "at most every 30 s in the end")
		require.Equal(t, CodeIO, r.a.Status().Halt.Code)

		r.resumeErr = nil
		at := time.Now()
		r.a.Post(RecheckAsked{}) // an operator need not wait for the next try
		synctest.Wait()
		require.Equal(t, PhaseIdle, r.a.Status().Phase)
		require.Equal(t, at, time.Now())
		require.Greater(t, time.Since(from), 10*time.Minute)
	})
}

func TestRun_StopEndsABackoffAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := kvRig(t, rigOptions{apply: batcher.Mirror})
		r.resumeErr = errors.New("no broker")
		run := startLoop(t, r)
		r.a.Post(Assigned{})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		at := time.Now()
		r.a.Post(StopAsked{})
		require.NoError(t, <-run.done)
		require.Equal(t, at, time.Now())
	})
}

func TestRun_APausedBatchIsGivenBackOnStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := kvRig(t, rigOptions{apply: batcher.Mirror})
		run := startLoop(t, r)
		r.a.Post(Assigned{})
		synctest.Wait()
		r.a.Post(PauseAsked{})
		synctest.Wait()
		r.put(0, 1, "a")
		require.NoError(t, r.a.Submit(t.Context(), r.b.Seal(batcher.FlushRows)))
		synctest.Wait()
		require.True(t, r.a.Status().Quiet)
		r.a.Post(StopAsked{})
		require.NoError(t, <-run.done)
		require.Equal(t, 1, r.released)
		require.Empty(t, r.rows())
	})
}

func TestRun_BatchesAreTakenOnlyWhenTheyCanBeBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := kvRig(t, rigOptions{apply: batcher.Mirror})
		startLoop(t, r)
		r.a.Post(Assigned{})
		synctest.Wait()
		require.NoError(t, r.disk.RemoveAll("schema"))
		r.put(0, 1, "a")
		require.NoError(t, r.a.Submit(t.Context(), r.b.Seal(batcher.FlushRows)))
		synctest.Wait()
		require.Equal(t, PhaseHalted, r.a.Status().Phase)
		r.put(0, 2, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, r.a.Submit(ctx, r.b.Seal(batcher.FlushRows)), context.DeadlineExceeded,
			"a halted loop holds its source back instead of dropping what it reads")
	})
}

func TestStatus_CountsHalts(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	require.Zero(t, r.a.Status().Halts)
	r.post(SourceHalted{Halt: Halt{CodeGap, "x"}, Generation: r.generation})
	require.EqualValues(t, 1, r.a.Status().Halts)
	r.resumeErr = &Halt{CodeGap, "x"}
	r.post(ResumeAsked{})
	require.EqualValues(t, 2, r.a.Status().Halts, "the same halt again is another one to whoever resumed it")
}
