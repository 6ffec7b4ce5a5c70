package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"applier/batcher"

	"github.com/stretchr/testify/require"
)

func TestJoining_TakesTurnsAndCountsAgainstTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := batcher.NewBudget(800)
		j := newJoining(budget)
		held, leave, err := j.enter(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 100, budget.Used(), "an eighth is reserved")
		held(60)
		require.EqualValues(t, 100, budget.Used())
		held(230) // pages of a foreign file that are larger than was planned for
		require.EqualValues(t, 230, budget.Used())

		entered := make(chan struct{})
		go func() {
			_, leave, err := j.enter(t.Context())
			if err == nil {
				leave()
			}
			close(entered)
		}()
		synctest.Wait()
		select {
		case <-entered:
			t.Fatal("two joins at once")
		default:
		}
		leave()
		<-entered
		require.Zero(t, budget.Used())
	})
}

func TestJoining_ReservesFirstAndWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := batcher.NewBudget(800)
		j := newJoining(budget)
		batches := budget.Account()
		batches.Set(750)
		require.False(t, budget.Over())
		entered := make(chan error, 1)
		go func() {
			_, leave, err := j.enter(t.Context())
			if err == nil {
				leave()
			}
			entered <- err
		}()
		synctest.Wait()
		require.True(t, budget.Over(), "whoever reads stops, so that batches can only become fewer")
		require.Empty(t, entered)
		batches.Set(700)
		require.NoError(t, <-entered)

		batches.Set(750)
		start := time.Now()
		_, _, err := j.enter(t.Context())
		require.ErrorIs(t, err, errNoMemory)
		require.Equal(t, joinPatience, time.Since(start))
		require.EqualValues(t, 750, budget.Used(), "nothing stays reserved")

		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, _, err = j.enter(ctx)
		require.ErrorIs(t, err, context.Canceled)
		batches.Set(0)
		_, leave, err := j.enter(t.Context())
		require.NoError(t, err)
		leave()
	})
}
