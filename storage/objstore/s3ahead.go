package objstore

import (
	"context"
	"sync"
)

// AskKind is a method of a Bucket that asks something.
type AskKind uint8

// The kinds.
const (
	AskGet AskKind = iota
	AskStat
	AskList
)

// Ask is a question that a caller is about to ask.
type Ask struct {
	Kind AskKind
	Key  string
}

// reply is the answer to an Ask, once done is closed.
type reply struct {
	uses  int // that are left; guarded by ahead.mu
	done  chan struct{}
	data  []byte
	info  Info
	infos []Info
	err   error
}

// ahead holds the questions that were asked before their time.
type ahead struct {
	mu      sync.Mutex
	replies map[Ask]*reply
}

// Ahead asks questions now, all at once, that the caller will ask one after the other:
// the first Get, Stat or List of each key then waits for that answer instead of asking
// again. So what is seen is as old as this call at most, and each answer is used once,
// or as often as its question is in asks. A write of a key through the bucket takes its answers away. The function returned
// does so with those that nobody wanted.
//
// It is for a single caller: whoever else uses this value may be given an answer that
// was asked for a moment ago.
func (b *S3Bucket) Ahead(ctx context.Context, asks ...Ask) (forget func()) {
	ctx, cancel := context.WithCancel(ctx)
	mine := make(map[Ask]*reply, len(asks))
	b.ahead.mu.Lock()
	if b.ahead.replies == nil {
		b.ahead.replies = map[Ask]*reply{}
	}
	for _, a := range asks {
		if mine[a] == nil {
			mine[a] = &reply{done: make(chan struct{})}
			b.ahead.replies[a] = mine[a]
		}
		mine[a].uses++
	}
	b.ahead.mu.Unlock()
	var wg sync.WaitGroup
	for a, r := range mine {
		wg.Go(func() {
			defer close(r.done)
			switch a.Kind {
			case AskGet:
				r.data, r.err = b.get(ctx, a.Key)
			case AskStat:
				r.info, r.err = b.stat(ctx, a.Key)
			case AskList:
				r.infos, r.err = b.list(ctx, a.Key)
			}
		})
	}
	return func() {
		b.ahead.mu.Lock()
		for a, r := range mine {
			if b.ahead.replies[a] == r {
				delete(b.ahead.replies, a)
			}
		}
		b.ahead.mu.Unlock()
		cancel()
		wg.Wait()
	}
}

// asked returns the answer to a question that was asked ahead, nil if it was not.
func (b *S3Bucket) asked(ctx context.Context, a Ask) *reply {
	b.ahead.mu.Lock()
	r := b.ahead.replies[a]
	if r != nil {
		if r.uses--; r.uses == 0 {
			delete(b.ahead.replies, a)
		}
	}
	b.ahead.mu.Unlock()
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
		return r
	case <-ctx.Done():
		return nil // which the caller's own request then says
	}
}

// written takes away what was asked about a key, and about its folder.
func (b *S3Bucket) written(key string) {
	b.ahead.mu.Lock()
	defer b.ahead.mu.Unlock()
	for _, a := range [...]Ask{{AskGet, key}, {AskStat, key}, {AskList, folderOf(key)}} {
		delete(b.ahead.replies, a)
	}
}
