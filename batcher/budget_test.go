package batcher

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestBudget_SumsItsAccounts(t *testing.T) {
	b := NewBudget(100)
	require.EqualValues(t, 100, b.Limit())
	x, y := b.Account(), b.Account()
	x.Set(60)
	y.Set(40)
	require.EqualValues(t, 100, b.Used())
	require.False(t, b.Over(), "the limit itself is allowed")
	y.Set(41)
	require.True(t, b.Over())
	require.EqualValues(t, 41, y.Held())
	x.Set(0)
	require.EqualValues(t, 41, b.Used())
	require.False(t, b.Over())
}

func TestBudget_FreedWakesAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(10)
		a, other := b.Account(), b.Account()
		a.Set(20)
		var woken sync.WaitGroup
		for range 3 {
			freed := b.Freed()
			require.True(t, b.Over())
			woken.Go(func() { <-freed })
		}
		other.Set(5) // more, not less: nobody is woken
		synctest.Wait()
		select {
		case <-b.Freed():
			t.Fatal("a fresh channel is closed")
		default:
		}
		a.Set(1)
		woken.Wait() // the bubble would report a deadlock
		require.False(t, b.Over())
	})
}

func TestBudget_FreedBeforeOverMissesNothing(t *testing.T) {
	// The order of the two calls is the contract: a release between them is seen
	// by one or the other.
	b := NewBudget(10)
	a := b.Account()
	for range 1000 {
		a.Set(20)
		var wg sync.WaitGroup
		wg.Go(func() { a.Set(0) })
		freed := b.Freed()
		if b.Over() {
			<-freed
		}
		wg.Wait()
	}
}

func TestBudget_IsExactUnderConcurrency(t *testing.T) {
	b := NewBudget(1)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			a := b.Account()
			for i := range 500 {
				a.Set(int64((i*7 + w) % 13))
			}
			a.Set(3)
		})
	}
	wg.Wait()
	require.EqualValues(t, 12, b.Used())
}
