package app

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"applier/merger"
)

// errPanic says that a pipeline's reading ended by a panic. One in the commit loop
// is a halt of the loop's own.
var errPanic = errors.New("panic")

// guard keeps a panic in one pipeline from ending the process.
func (p *pipeline) guard(where string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error("panic "+where, "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	return f()
}

// standStill shows P-PANIC until an operator resumes the pipeline; false: the
// program stops. It is not tried again by itself: the same record would come.
func (p *pipeline) standStill(ctx context.Context, drain <-chan struct{}, err error) bool {
	h := &merger.Halt{Code: merger.CodePanic, Facts: "reading: " + err.Error()}
	p.mu.Lock()
	p.crashed = h
	p.mu.Unlock()
	p.log.Error("pipeline halted", "code", h.Code, "facts", h.Facts, "do", h.Code.Info().Do)
	p.app.metrics.Pipeline.Halt(p.name, p.target, string(h.Code))
	select {
	case <-p.revive:
		p.mu.Lock()
		p.crashed, p.applier = nil, nil
		p.mu.Unlock()
		return true
	case <-drain:
	case <-ctx.Done():
	}
	return false
}

// reviveIfCrashed starts a pipeline again that a panic ended.
func (p *pipeline) reviveIfCrashed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.crashed == nil {
		return false
	}
	select {
	case p.revive <- struct{}{}:
	default: // asked already
	}
	return true
}
