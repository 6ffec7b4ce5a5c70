package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// logBuffer bounds the bytes of log lines that wait for a slow reader.
const logBuffer = 1 << 20

// logFlushGrace is how long the end of the program waits for the last lines.
const logFlushGrace = time.Second

// logWriter hands lines to a writer that may be slow, full or dead (a pipe that
// nobody reads, a full volume) without ever making the caller wait: lines that do
// not fit are dropped and their number is told when there is room again. An error
// of the writer loses its line and nothing else. It is safe for concurrent use.
type logWriter struct {
	to io.Writer

	mu      sync.Mutex
	wake    *sync.Cond
	lines   [][]byte
	bytes   int
	dropped int
	closed  bool
	done    chan struct{}
}

func newLogWriter(to io.Writer) *logWriter {
	w := &logWriter{to: to, done: make(chan struct{})}
	w.wake = sync.NewCond(&w.mu)
	go w.run()
	return w
}

// Write takes a whole line; it never fails and never waits for the reader.
func (w *logWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.bytes+len(line) > logBuffer {
		w.dropped++
		return len(line), nil
	}
	w.lines = append(w.lines, append([]byte(nil), line...))
	w.bytes += len(line)
	w.wake.Signal()
	return len(line), nil
}

func (w *logWriter) run() {
	defer close(w.done)
	for {
		w.mu.Lock()
		for len(w.lines) == 0 && w.dropped == 0 && !w.closed {
			w.wake.Wait()
		}
		lines, dropped := w.lines, w.dropped
		if len(lines) == 0 && dropped == 0 {
			w.mu.Unlock()
			return
		}
		w.lines, w.bytes, w.dropped = nil, 0, 0
		w.mu.Unlock()
		for _, line := range lines {
			_, _ = w.to.Write(line)
		}
		if dropped > 0 {
			_, _ = fmt.Fprintf(w.to, "applier: %d log lines were dropped because nobody took them\n", dropped)
		}
	}
}

// close writes what waits, for a moment at most: the reader may never come back.
func (w *logWriter) close() {
	w.mu.Lock()
	w.closed = true
	w.wake.Signal()
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-time.After(logFlushGrace):
	}
}
