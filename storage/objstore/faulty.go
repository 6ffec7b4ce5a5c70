package objstore

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"
)

// Rule says which calls of a Faulty go wrong, and how.
type Rule struct {
	// Op is the call: get, open, read (from a Reader), stat, list, put_all,
	// create, write, close (of a Writer), put_if_absent, replace, delete; "" is any.
	Op string
	// Key is a pattern of path.Match for the whole key, "" is any. In put_all and
	// delete a rule applies to the objects it matches: without After those are left
	// out while the others are done.
	Key string
	// Nth is the only matching call at which the rule fires, from 1; 0 is every one.
	Nth int
	// Err is what the call returns. Without Err a rule only delays, or calls Do.
	Err error
	// After lets the call happen before Err is returned, if it succeeds.
	After bool
	// Delay is waited for first, or until the context ends.
	Delay time.Duration
	// Do, if set, is called first: what happens elsewhere at this very moment.
	Do func(op, key string)
}

// Faulty is a Bucket for tests: it passes calls on to another one except where
// rules say otherwise. All rules that match a call fire, in order; the first with
// an Err decides the result.
type Faulty struct {
	b     Bucket
	mu    sync.Mutex
	rules []*activeRule
	calls []string
}

type activeRule struct {
	Rule
	hits int
}

// NewFaulty wraps b. A malformed Key pattern panics.
func NewFaulty(b Bucket, rules ...Rule) *Faulty {
	f := &Faulty{b: b}
	f.Add(rules...)
	return f
}

// Add adds rules for the calls from now on. A malformed Key pattern panics.
func (f *Faulty) Add(rules ...Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range rules {
		if _, err := path.Match(r.Key, ""); err != nil {
			panic(fmt.Sprintf("objstore: rule with the pattern %q: %v", r.Key, err))
		}
		f.rules = append(f.rules, &activeRule{Rule: r})
	}
}

// Clear removes all rules.
func (f *Faulty) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Calls returns the calls so far as "op key", one for each key.
func (f *Faulty) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// hit notes a call and returns the rule that decides its result, if any.
func (f *Faulty) hit(ctx context.Context, op, key string) (Rule, error) {
	f.mu.Lock()
	f.calls = append(f.calls, op+" "+key)
	var fired []Rule
	for _, r := range f.rules {
		if r.Op != "" && r.Op != op {
			continue
		}
		if ok, _ := path.Match(r.Key, key); r.Key != "" && !ok {
			continue
		}
		r.hits++
		if r.Nth == 0 || r.Nth == r.hits {
			fired = append(fired, r.Rule)
		}
	}
	f.mu.Unlock()
	for _, r := range fired {
		if r.Do != nil {
			r.Do(op, key)
		}
		if err := wait(ctx, r.Delay); err != nil {
			return Rule{}, err
		}
	}
	if i := slices.IndexFunc(fired, func(r Rule) bool { return r.Err != nil }); i >= 0 {
		r := fired[i]
		r.Err = fmt.Errorf("%s %q: %w", op, key, r.Err)
		return r, nil
	}
	return Rule{}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do passes one call on as its rule says.
func (f *Faulty) do(ctx context.Context, op, key string, call func() error) error {
	r, err := f.hit(ctx, op, key)
	if err != nil {
		return err
	}
	if r.Err != nil && !r.After {
		return r.Err
	}
	if err := call(); err != nil {
		return err
	}
	return r.Err
}
