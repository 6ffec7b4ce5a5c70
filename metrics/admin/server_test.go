package admin

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServer_ServesBothPorts(t *testing.T) {
	s := running(t, testOptions(newProcess()))
	require.NoError(t, Probe(t.Context(), s.Addr().String(), "/healthz"))
	require.NoError(t, Probe(t.Context(), s.Addr().String(), "/readyz"))
	require.ErrorContains(t, Probe(t.Context(), s.Addr().String(), "/status"), "404")
	st, err := NewClient(s.AdminAddr().String(), "").Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, Status{}, st)
}

func TestListen_PortInUseIsFoundAtStartAndLeavesNothingOpen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	o := testOptions(newProcess())
	o.AdminListen = taken.Addr().String()
	_, err = Listen(t.Context(), o)
	require.ErrorContains(t, err, "server.admin.listen")
	o.Listen = taken.Addr().String()
	_, err = Listen(t.Context(), o)
	require.ErrorContains(t, err, "server.listen")

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o.Listen = free.Addr().String()
	require.NoError(t, free.Close())
	_, err = Listen(t.Context(), o)
	require.ErrorContains(t, err, "server.admin.listen")
	again, err := net.Listen("tcp", o.Listen)
	require.NoError(t, err, "the first port was not given back")
	require.NoError(t, again.Close())
}

func TestListen_RefusesMissingParts(t *testing.T) {
	_, err := Listen(t.Context(), Options{Listen: "127.0.0.1:0", AdminListen: "127.0.0.1:0"})
	require.Error(t, err)
}

func TestListen_CloseWithoutServeGivesThePortsBack(t *testing.T) {
	s, err := Listen(t.Context(), testOptions(newProcess()))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	l, err := net.Listen("tcp", s.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// Slow clients: each does one thing wrong, and the time after which the server
// has closed the connection is bounded.
func TestServer_ClosesConnectionsOfSlowClients(t *testing.T) {
	for name, tc := range map[string]struct {
		admin bool
		send  func(c net.Conn)
		most  time.Duration
	}{
		"says nothing":          {false, func(net.Conn) {}, headerTimeout},
		"says nothing to admin": {true, func(net.Conn) {}, headerTimeout},
		"trickles its header":   {false, func(c net.Conn) { trickle(c, request("GET", "/metrics", strings.Repeat("X: y\r\n", 500))) }, headerTimeout + time.Second},
		"trickles its body": {true, func(c net.Conn) {
			io.WriteString(c, request("POST", "/api/v1/pipelines/orders/offsets", "Content-Type: application/json", "Content-Length: 1000"))
			trickle(c, strings.Repeat(" ", 1000))
		}, readTimeout + time.Second},
		"does not read the answer": {false, func(c net.Conn) { io.WriteString(c, request("GET", "/metrics")) }, publicTimeout + time.Second},
		"stays after its answer":   {false, func(c net.Conn) { io.WriteString(c, request("GET", "/healthz")); readAnswer(c) }, idleTimeout + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				public, adm, stop := virtual(testOptions(newProcess()))
				l := public
				if tc.admin {
					l = adm
				}
				c := l.dial()
				began := time.Now()
				sent := make(chan struct{})
				go func() {
					tc.send(c)
					close(sent)
				}()
				if name == "does not read the answer" {
					time.Sleep(tc.most)
				}
				_, err := io.Copy(io.Discard, c)
				<-sent
				require.NoError(t, err)
				require.LessOrEqual(t, time.Since(began), tc.most)
				require.NoError(t, c.Close())
				_, err = stop()
				require.NoError(t, err)
			})
		})
	}
}

// trickle writes a byte every 100 ms until the other side hangs up.
func trickle(c net.Conn, text string) {
	for i := range len(text) {
		if _, err := c.Write([]byte{text[i]}); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func readAnswer(c net.Conn) {
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

func TestServer_HugeHeadersAreRefused(t *testing.T) {
	s := running(t, testOptions(newProcess()))
	c, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, request("GET", "/metrics", "X-Big: "+strings.Repeat("x", 2*maxHeaderBytes)))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, resp.StatusCode)
}

// More clients than slots: the others wait, and get theirs when one leaves.
func TestLimitConns_BoundsOpenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newPipeListener()
		l := limitConns(inner, 2)
		accepted := make(chan net.Conn, 3)
		ended := make(chan error, 1)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					ended <- err
					return
				}
				accepted <- c
			}
		}()
		for range 3 {
			go func() { _ = inner.dial() }()
		}
		synctest.Wait()
		require.Len(t, accepted, 2)
		first := <-accepted
		require.NoError(t, first.Close())
		_ = first.Close() // twice gives one slot back
		synctest.Wait()
		require.Len(t, accepted, 2)
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		require.ErrorIs(t, <-ended, net.ErrClosed)
	})
}

// A command may take longer than it may take to send one.
func TestServer_LongCommandIsNotCutOffByTheReadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess()
		p.wait = func(ctx context.Context) error {
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		_, adm, stop := virtual(testOptions(p))
		c := adm.dial()
		go func() {
			_, _ = io.WriteString(c, request("POST", "/api/v1/pipelines/orders/pause", "Connection: close"))
		}()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []string{"pause orders"}, p.calls)
		require.NoError(t, c.Close())
		_, err = stop()
		require.NoError(t, err)
	})
}

func TestServe_LetsRunningRequestsFinishAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess()
		p.wait = func(context.Context) error { time.Sleep(shutdownGrace / 2); return nil }
		_, adm, stop := virtual(testOptions(p))
		c := adm.dial()
		answer := make(chan int, 1)
		go func() {
			_, _ = io.WriteString(c, request("POST", "/api/v1/pipelines/orders/pause"))
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				answer <- 0
				return
			}
			answer <- resp.StatusCode
		}()
		synctest.Wait()
		took, err := stop()
		require.NoError(t, err)
		require.Less(t, took, shutdownGrace)
		require.Equal(t, 200, <-answer)
		require.NoError(t, c.Close())
	})
}

func TestServe_CutsRequestsThatDoNotEndAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess()
		cut := make(chan error, 1)
		p.wait = func(ctx context.Context) error { <-ctx.Done(); cut <- ctx.Err(); return ctx.Err() }
		_, adm, stop := virtual(testOptions(p))
		c := adm.dial()
		go func() { _, _ = io.WriteString(c, request("POST", "/api/v1/pipelines/orders/pause")) }()
		synctest.Wait()
		took, err := stop()
		require.NoError(t, err)
		require.Equal(t, shutdownGrace, took)
		require.ErrorIs(t, <-cut, context.Canceled)
		require.NoError(t, c.Close())
	})
}

func TestServe_ReturnsTheErrorOfABrokenListener(t *testing.T) {
	s, err := Listen(t.Context(), testOptions(newProcess()))
	require.NoError(t, err)
	require.NoError(t, s.publicL.Close())
	require.ErrorIs(t, s.Serve(t.Context()), net.ErrClosed)
}

func TestClient_TellsErrorsApart(t *testing.T) {
	p := newProcess()
	s := running(t, testOptions(p))
	ctx, c := t.Context(), NewClient(s.AdminAddr().String(), "")
	require.NoError(t, c.Pause(ctx, "orders"))
	require.NoError(t, c.Resume(ctx, "orders"))
	err := c.Pause(ctx, "a/../b")
	require.ErrorIs(t, err, ErrNotFound)
	require.EqualError(t, err, `no such pipeline: "a/../b"`)
	require.ErrorContains(t, c.Flush(ctx, "orders"), "permission denied")

	o, err := c.Offsets(ctx, "orders")
	require.NoError(t, err)
	require.Equal(t, p.offsets["orders"], o.Partitions)
	_, err = c.ChangeOffsets(ctx, "orders", OffsetChange{Action: ActionAdopt})
	require.ErrorIs(t, err, ErrConflict)
	_, err = c.ChangeOffsets(ctx, "orders", OffsetChange{Action: "reset"})
	require.ErrorIs(t, err, ErrInvalid)
	o, err = c.ChangeOffsets(ctx, "orders", OffsetChange{Action: ActionSet, Positions: []Position{{"shop.orders", 0, 7}}})
	require.NoError(t, err)
	require.EqualValues(t, 7, o.Partitions[0].Next)

	err = NewClient(s.AdminAddr().String(), "wrong-token-wrong-token").Pause(ctx, "orders")
	require.ErrorIs(t, err, ErrDenied)
	require.NoError(t, NewClient(s.AdminAddr().String(), testToken).Pause(ctx, "orders"))
}

func TestClient_SaysWhenNothingListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorContains(t, NewClient(l.Addr().String(), "").Pause(t.Context(), "orders"), "asking the process at http://127.0.0.1")
	require.ErrorContains(t, Probe(t.Context(), l.Addr().String(), "/healthz"), "asking the process")
	_, err = NewClient("no address", "").Status(t.Context())
	require.Error(t, err)
}

func TestClient_ReportsAnswersThatAreNotOurs(t *testing.T) {
	other := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/status" {
			_, _ = io.WriteString(w, "<html>")
			return
		}
		http.Redirect(w, r, "http://evil.example/", http.StatusFound)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- other.Serve(l) }()
	c := NewClient(l.Addr().String(), testToken)
	_, err = c.Status(t.Context())
	require.ErrorContains(t, err, "decoding the answer")
	require.ErrorContains(t, c.Pause(t.Context(), "orders"), "302", "a redirect was followed with the token")
	require.ErrorContains(t, Probe(t.Context(), l.Addr().String(), "/x"), "302")
	require.NoError(t, other.Close())
	require.True(t, errors.Is(<-done, http.ErrServerClosed))
}

func TestClient_DialsThisHostWhenTheServerListensEverywhere(t *testing.T) {
	for listen, want := range map[string]string{
		":9465": "127.0.0.1:9465", "0.0.0.0:9465": "127.0.0.1:9465", "[::]:9465": "[::1]:9465",
		"127.0.0.1:1": "127.0.0.1:1", "localhost:2": "localhost:2", "10.0.0.1:3": "10.0.0.1:3", "nonsense": "nonsense",
	} {
		require.Equal(t, want, dialAddress(listen), listen)
	}
}
