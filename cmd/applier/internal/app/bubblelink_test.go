//go:build synctests

package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kfake"
)

// link is a member's way to the brokers: it can be cut (calls fail at once) or
// fall silent (nothing arrives, nobody is told).
type link struct {
	network *kfake.VirtualNetwork

	mu     sync.Mutex
	dead   bool
	silent bool
	conns  map[*wire]bool
	alter  func([]byte) bool        // may change what arrives
	slow   map[string]time.Duration // before anything arrives from an address
}

// dialTimeout is that of the client's own dialer.
const dialTimeout = 10 * time.Second

func (l *link) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	dead, silent := l.dead, l.silent
	l.mu.Unlock()
	switch {
	case dead:
		return nil, errLine
	case silent:
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(dialTimeout):
			return nil, os.ErrDeadlineExceeded
		}
	}
	c, err := l.network.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: c, l: l, to: address}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		l.conns = map[*wire]bool{}
	}
	l.conns[w] = true
	return w, nil
}

// cut breaks every connection and refuses new ones.
func (l *link) cut() { l.set(true, false) }

// silence swallows everything that is sent from now on, both ways.
func (l *link) silence() { l.set(false, true) }

// repair lets new connections through; those that lost something are broken.
func (l *link) repair() { l.set(false, false) }

func (l *link) set(dead, silent bool) {
	l.mu.Lock()
	broken := dead || l.silent && !silent
	l.dead, l.silent = dead, silent
	var conns []*wire
	if broken {
		for w := range l.conns {
			conns = append(conns, w)
		}
	}
	l.mu.Unlock()
	for _, w := range conns {
		_ = w.Close()
	}
}

// hangUp breaks the connections to one address, as a broker does that goes away.
func (l *link) hangUp(address string) {
	l.mu.Lock()
	var conns []*wire
	for w := range l.conns {
		if w.to == address {
			conns = append(conns, w)
		}
	}
	l.mu.Unlock()
	for _, w := range conns {
		_ = w.Close()
	}
}

// delay has everything from an address arrive late from now on.
func (l *link) delay(address string, by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = map[string]time.Duration{address: by}
}

func (l *link) delayOf(address string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow[address]
}

// change has f see, and alter, what arrives from now on; nil ends it.
func (l *link) change(f func([]byte) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.alter = f
}

func (l *link) isSilent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent
}

// wire is one connection of a link.
type wire struct {
	net.Conn
	l  *link
	to string
}

// latency of whatever arrives. Without it a client that asks again at once would
// keep the bubble's clock from moving.
const latency = time.Millisecond

func (w *wire) Read(b []byte) (int, error) {
	for {
		n, err := w.Conn.Read(b)
		time.Sleep(latency + w.l.delayOf(w.to))
		if err != nil || !w.l.isSilent() {
			w.l.mu.Lock()
			if w.l.alter != nil {
				w.l.alter(b[:n])
			}
			w.l.mu.Unlock()
			return n, err
		}
	}
}

func (w *wire) Write(b []byte) (int, error) {
	if w.l.isSilent() {
		return len(b), nil
	}
	return w.Conn.Write(b)
}

func (w *wire) Close() error {
	w.l.mu.Lock()
	delete(w.l.conns, w)
	w.l.mu.Unlock()
	return w.Conn.Close()
}

// logbook keeps a member's log, with the bubble's clock.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

// maxLines bounds what a failure shows.
const maxLines = 400

func (l *logbook) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *logbook) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *logbook) WithGroup(string) slog.Handler                    { return l }

func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	line := fmt.Sprintf("%s %s %s", r.Time.Format("15:04:05.000"), r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	if len(l.lines) > maxLines {
		l.lines = l.lines[len(l.lines)-maxLines:]
	}
	return nil
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n") + "\n"
}

// has tells whether a line contains all texts.
func (l *logbook) has(texts ...string) bool { return l.count(texts...) > 0 }

// count counts the lines that contain all texts.
func (l *logbook) count(texts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
lines:
	for _, line := range l.lines {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		n++
	}
	return n
}

func readAll(r io.Reader) string {
	b, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// pausedFor is how long a member took nothing because its memory was used up.
func pausedFor(m *member) float64 {
	return testutil.ToFloat64(m.app.metrics.Ingest.FetchPausedSeconds.WithLabelValues("p", "shop.orders", "memory"))
}
