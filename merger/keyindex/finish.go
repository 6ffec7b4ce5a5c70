package keyindex

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Finish makes the index ready, in parallel, after the last Add returned. On an
// error the index is lost.
func (b *Builder) Finish() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	if b.ended || b.x.err != nil {
		return b.over()
	}
	b.ended = true
	b.x.builder = nil
	room := 0
	for i := range b.x.shards {
		room = max(room, b.x.shards[i].n*b.x.w)
	}
	var next atomic.Int64
	errs := make([]error, min(runtime.GOMAXPROCS(0), buildWorkers, len(b.locks)))
	var wg sync.WaitGroup
	for k := range errs {
		wg.Go(func() { errs[k] = b.work(&next, room) })
	}
	wg.Wait()
	for i := range b.x.shards {
		b.x.entries += int64(b.x.shards[i].n)
	}
	for _, err := range errs {
		if err != nil {
			return b.fail(err)
		}
	}
	return nil
}

// work sorts and spreads shards until none is left; the largest has room words.
func (b *Builder) work(next *atomic.Int64, room int) (err error) {
	x := b.x
	scratch, err := x.mem.scratch(room)
	if err != nil {
		return err
	}
	defer func() {
		if e := x.mem.release(scratch); err == nil {
			err = e
		}
	}()
	var sorter entrySorter
	for {
		i := int(next.Add(1)) - 1
		if i >= len(x.shards) {
			return nil
		}
		s := &x.shards[i]
		sorted := scratch[:s.n*s.w]
		sorter.sort(sorted, s.t[:s.n*s.w], s.w, s.bits)
		s.n, s.end = 0, 0
		if _, err := s.reshape(x.mem, change{add: sorted}); err != nil {
			return err
		}
	}
}
