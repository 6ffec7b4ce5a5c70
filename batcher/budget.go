package batcher

import (
	"sync"
	"sync/atomic"
)

// Budget is the process's memory budget. Components report what they hold;
// whoever finds the budget exceeded stops taking more until it is not. It is
// safe for concurrent use.
type Budget struct {
	limit int64
	used  atomic.Int64
	mu    sync.Mutex
	freed chan struct{}
}

// NewBudget returns a budget of limit bytes.
func NewBudget(limit int64) *Budget {
	return &Budget{limit: limit, freed: make(chan struct{})}
}

// Limit returns the budget's size in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// Used returns the bytes reported at the moment.
func (b *Budget) Used() int64 { return b.used.Load() }

// Over reports whether the budget is exceeded.
func (b *Budget) Over() bool { return b.used.Load() > b.limit }

// Freed returns a channel that is closed at the next decrease.
func (b *Budget) Freed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.freed
}

// Account is one component's share of a Budget.
type Account struct {
	budget *Budget
	held   atomic.Int64
}

// Account opens an account.
func (b *Budget) Account() *Account { return &Account{budget: b} }

// Set reports that the component holds n bytes now.
func (a *Account) Set(n int64) {
	old := a.held.Swap(n)
	b := a.budget
	b.used.Add(n - old)
	if n < old {
		b.mu.Lock()
		close(b.freed)
		b.freed = make(chan struct{})
		b.mu.Unlock()
	}
}

// Held returns what was reported last.
func (a *Account) Held() int64 { return a.held.Load() }
