package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"applier/metrics"
)

// starts remembers in state_dir how the earlier processes of a pipeline ended, so
// that one that dies again and again (by what it reads, or out of memory) comes
// back slower and with smaller batches, and answers /metrics meanwhile. The file
// is there while the pipeline runs; a stop in good order removes it.
//
// What cannot be read or written only costs this protection: it is logged.
type starts struct {
	path string
	// now is what the ends before this start were.
	now ends

	mu    sync.Mutex
	saved ends // what the file says: now, if this process ended here
}

// ends counts the ends without a stop in good order, in a row.
type ends struct {
	// Unclean are all of them.
	Unclean int `json:"unclean"`
	// Fruitless are the last of them between which nothing was committed.
	Fruitless int `json:"fruitless"`
}

const (
	// freeStarts are the fruitless ends that cost no waiting: a machine may be
	// switched off twice before a commit.
	freeStarts = 2
	maxDelay   = 5 * time.Minute
	// maxHalvings bounds by how much batches shrink.
	maxHalvings = 6
	// soundAfter is the life after which a process is no crash any more.
	soundAfter = 10 * time.Minute
)

func newStarts(path string) *starts { return &starts{path: path} }

// read finds out how the earlier processes ended.
func (s *starts) read(log *slog.Logger) {
	b, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		log.Warn("cannot read how the last process ended", "err", err)
	default:
		if json.Unmarshal(b, &s.now) != nil || s.now.Unclean < 0 || s.now.Fruitless < 0 {
			s.now = ends{Unclean: 1} // cut off while it was written
		}
	}
}

// begin notes that this process runs.
func (s *starts) begin(log *slog.Logger) { s.save(log, ends{s.now.Unclean + 1, s.now.Fruitless + 1}) }

// save writes the file if it changes. It is not synced: a power cut is no crash
// of this program.
func (s *starts) save(log *slog.Logger, e ends) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved == e {
		return
	}
	b, err := json.Marshal(e)
	if err == nil {
		err = os.WriteFile(s.path, b, 0o600)
	}
	if err != nil {
		log.Warn("cannot note that this process runs", "err", err)
	}
	s.saved = e
}

// committed notes that this start bore fruit.
func (s *starts) committed(log *slog.Logger) {
	s.mu.Lock()
	e := s.saved
	s.mu.Unlock()
	s.save(log, ends{Unclean: e.Unclean})
}

// sound notes that this process has lived long enough.
func (s *starts) sound(log *slog.Logger) { s.save(log, ends{}) }

// stopped notes a stop in good order.
func (s *starts) stopped(log *slog.Logger) {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Warn("cannot note that this process stopped in good order", "err", err)
	}
}

// delay is how long to wait before this start: nothing after the first ends, then
// 1 s, doubled each time, at most 5 min.
func (s *starts) delay() time.Duration {
	n := s.now.Fruitless - freeStarts - 1
	if n < 0 {
		return 0
	}
	return min(time.Second<<min(n, 16), maxDelay)
}

// limit halves the bytes of a batch for every unclean end: what was too much for
// the memory once should not be tried again as it was.
func (s *starts) limit(bytes int64) int64 {
	return max(bytes>>min(s.now.Unclean, maxHalvings), min(bytes, 64<<10))
}

// startSlowly waits if earlier starts ended badly; false: the program stops. An end
// while it waits proves nothing about the pipeline and is not counted.
func (p *pipeline) startSlowly(ctx context.Context, drain <-chan struct{}) bool {
	p.starts.read(p.log)
	if !p.waitOut(ctx, drain) {
		return false
	}
	p.starts.begin(p.log)
	return true
}

func (p *pipeline) waitOut(ctx context.Context, drain <-chan struct{}) bool {
	n := p.starts.now
	p.app.metrics.Pipeline.UncleanStarts.WithLabelValues(p.name, p.target).Set(float64(n.Unclean))
	if n.Unclean == 0 {
		return true
	}
	delay := p.starts.delay()
	p.log.Warn("the last process did not stop in good order", "unclean_ends", n.Unclean, "of_these_without_a_commit", n.Fruitless,
		"batch_bytes", p.starts.limit(int64(p.cfg.Batch.Bytes)), "waiting", delay)
	if delay == 0 {
		return true
	}
	p.mu.Lock()
	p.opening = errors.New("the last starts ended without a commit; waiting before the next try")
	p.mu.Unlock()
	p.app.metrics.Pipeline.SetState(p.name, p.target, metrics.StateBackoff)
	select {
	case <-time.After(delay):
		return true
	case <-drain:
		return false
	case <-ctx.Done():
		return false
	}
}
