package app

import (
	"context"
	"runtime"
	"time"

	"applier/merger"
)

// watchClock tells of jumps of the wall clock. Intervals here do not depend on it
// and snapshots never get older times than their predecessors, but other engines'
// expiry and everybody's timestamps do depend on it.
func (a *App) watchClock(ctx context.Context) {
	from := time.Now()
	clock := clockWatch{wall: from.Round(0)}
	a.every(ctx, 5*time.Second, func(now time.Time) {
		if d := clock.jump(now.Round(0), now.Sub(from)); d.Abs() >= time.Minute {
			a.metrics.Process.ClockJumps.WithLabelValues().Inc()
			a.log.Warn("the wall clock jumped; snapshot times do not go back, but expiry by age may remove too much or too little", "by", d)
		}
	})
}

// clockWatch remembers the last readings of the wall clock and of the time that passed.
type clockWatch struct {
	wall   time.Time
	passed time.Duration
}

// jump is by how much the wall clock moved beyond the time that passed since the
// last call.
func (c *clockWatch) jump(wall time.Time, passed time.Duration) time.Duration {
	d := wall.Sub(c.wall) - (passed - c.passed)
	*c = clockWatch{wall, passed}
	return d
}

// every calls f until ctx ends or the drain begins.
func (a *App) every(ctx context.Context, d time.Duration, f func(now time.Time)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			f(now)
		case <-a.draining:
			return
		case <-ctx.Done():
			return
		}
	}
}

// exitStuck is the exit code of a process that ended itself for a step that is stuck.
const exitStuck = 1

// maxDump bounds the goroutine dump of a step that is stuck.
const maxDump = 1 << 20

// stuckStep follows one pipeline's step.
type stuckStep struct {
	busy  merger.Busy
	moved time.Time // when it last changed
	told  bool
}

// age is how long the step has not moved; zero between steps.
func (s *stuckStep) age(b *merger.Busy, now time.Time) time.Duration {
	if b == nil {
		*s = stuckStep{}
		return 0
	}
	if *b != s.busy {
		*s = stuckStep{busy: *b, moved: now}
	}
	return now.Sub(s.moved)
}

// watchSteps ends the process when a commit loop is stuck in a step: a disk that
// hangs or a deadlock. That is safe at any point; whoever starts the process again
// finds the table as it is. During a drain the drain's own limit holds.
func (a *App) watchSteps(ctx context.Context) {
	limit := a.cfg.StuckAfter
	steps := map[string]*stuckStep{}
	for name := range a.pipelines {
		steps[name] = &stuckStep{}
	}
	last := time.Now()
	a.every(ctx, time.Second, func(now time.Time) {
		late := now.Sub(last) - time.Second
		last = now
		for name, p := range a.pipelines {
			p.mu.Lock()
			applier := p.applier
			p.mu.Unlock()
			if applier == nil {
				continue
			}
			s := steps[name]
			if late > time.Second {
				s.moved = s.moved.Add(late) // the process itself stood still
			}
			age := s.age(applier.Busy(), now)
			a.metrics.Pipeline.StepAge.WithLabelValues(name, p.target).Set(age.Seconds())
			if limit > 0 {
				a.judgeStep(p, s, age, limit)
			}
		}
	})
}

// judgeStep tells of a step at half of its limit and ends the process at the limit.
func (a *App) judgeStep(p *pipeline, s *stuckStep, age, limit time.Duration) {
	if age >= limit/2 && !s.told {
		s.told = true
		dump := make([]byte, maxDump)
		dump = dump[:runtime.Stack(dump, true)]
		p.log.Error("a step of a commit is stuck", "step", s.busy.Step, "for", age, "process_ends_after", limit, "goroutines", string(dump))
	}
	if age >= limit && a.abort != nil {
		p.log.Error("the process ends because a step of a commit is stuck; nothing is lost, start it again", "step", s.busy.Step, "for", age)
		time.Sleep(abortGrace)
		a.abort(exitStuck)
	}
}

// abortGrace lets the last log lines out.
const abortGrace = 100 * time.Millisecond
