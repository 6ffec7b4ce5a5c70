package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testToken = "0123456789abcdef-token"

// process is a Source and a Control that keeps positions in memory.
type process struct {
	mu      sync.Mutex
	calls   []string
	offsets map[string][]PartitionOffset
	unready []string
	status  Status
	// wait, if set, is what every command does first.
	wait func(ctx context.Context) error
}

func newProcess() *process {
	return &process{offsets: map[string][]PartitionOffset{"orders": {{"shop.orders", 0, 10, 0, 100}}}}
}

func (p *process) Ready() []string { return p.unready }
func (p *process) Status() Status  { return p.status }

func (p *process) call(ctx context.Context, name, pipeline string) error {
	if p.wait != nil {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.offsets[pipeline]; !ok {
		return fmt.Errorf("%w: %q", ErrNotFound, pipeline)
	}
	p.calls = append(p.calls, name+" "+pipeline)
	return nil
}

func (p *process) Pause(ctx context.Context, n string) error  { return p.call(ctx, "pause", n) }
func (p *process) Resume(ctx context.Context, n string) error { return p.call(ctx, "resume", n) }

// Flush fails like a pipeline whose store is gone.
func (p *process) Flush(ctx context.Context, n string) error {
	return errors.Join(p.call(ctx, "flush", n), os.ErrPermission)
}

func (p *process) Offsets(ctx context.Context, n string) (Offsets, error) {
	err := p.call(ctx, "offsets", n)
	return Offsets{Pipeline: n, Partitions: p.offsets[n]}, err
}

func (p *process) ChangeOffsets(ctx context.Context, n string, c OffsetChange) (Offsets, error) {
	if err := p.call(ctx, c.Action, n); err != nil {
		return Offsets{}, err
	}
	if c.Action == ActionAdopt {
		return Offsets{}, fmt.Errorf("%w: the pipeline is running", ErrConflict)
	}
	out := Offsets{Pipeline: n}
	for _, pos := range c.Positions {
		out.Partitions = append(out.Partitions, PartitionOffset{pos.Topic, pos.Partition, pos.Next, 0, 100})
	}
	if !c.DryRun {
		p.offsets[n] = out.Partitions
	}
	return out, nil
}

func testOptions(p *process) Options {
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "applier_test", Help: "A test."}, func() float64 { return 7 }))
	return Options{
		Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0", Token: testToken,
		Gatherer: reg, Source: p, Control: p, Log: slog.New(slog.DiscardHandler),
	}
}

// running starts a server on loopback and returns it; it is stopped with the test.
func running(t *testing.T, o Options) *Server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Listen(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// pipeListener is a listener in memory, for virtual time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

// dial connects from loopback.
func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- pipeConn{server}
	return client
}

type pipeConn struct{ net.Conn }

func (pipeConn) RemoteAddr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "tcp" }
func (pipeAddr) String() string  { return "127.0.0.1:1" }

// virtual runs a server over pipes in a synctest bubble; stop ends it.
func virtual(o Options) (public, adm *pipeListener, stop func() (time.Duration, error)) {
	public, adm = newPipeListener(), newPipeListener()
	ctx, cancel := context.WithCancel(context.Background())
	s := newServer(o, public, adm)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	return public, adm, func() (time.Duration, error) {
		began := time.Now()
		cancel()
		err := <-done
		return time.Since(began), err
	}
}

func request(method, path string, headers ...string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
}
