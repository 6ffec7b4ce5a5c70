package admin

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The admin port answers this host and holders of the token, and nobody else; a
// command is a POST with a small body from no foreign page; a client that does not
// speak holds a connection for seconds.
func TestThreat_AdminHTTP(t *testing.T) {
	const here, there = "127.0.0.1:5000", "192.0.2.7:5000"
	const pipeline = "http://localhost:9465/api/v1/pipelines/orders/"
	commands := []string{"pause", "resume", "flush", "offsets"}
	t.Run("other hosts need the token", func(t *testing.T) {
		for _, path := range []string{"/", "/status", "/debug/pprof/heap", "/style.css", "/nothing"} {
			p := newProcess()
			require.Equal(t, 401, ask(testOptions(p), "GET", "http://localhost:9465"+path, there, nil).Code, path)
			o := testOptions(p)
			o.Token = ""
			require.Equal(t, 403, ask(o, "GET", "http://localhost:9465"+path, there, nil).Code, path)
			require.Equal(t, 401, ask(o, "GET", "http://localhost:9465"+path, there, map[string]string{"Authorization": "Bearer "}).Code, path)
		}
	})
	t.Run("mutating calls are POST", func(t *testing.T) {
		p := newProcess()
		for _, c := range commands {
			for _, m := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"} {
				if c == "offsets" && (m == "GET" || m == "HEAD") {
					continue // that shows them
				}
				require.Equal(t, http.StatusMethodNotAllowed, ask(testOptions(p), m, pipeline+c, here, nil).Code, "%s %s", m, c)
			}
		}
		require.Empty(t, p.calls)
	})
	t.Run("no foreign page", func(t *testing.T) {
		p := newProcess()
		for name, h := range map[string]map[string]string{
			"origin":         {"Origin": "https://evil.example"},
			"fetch metadata": {"Sec-Fetch-Site": "cross-site"},
			"rebound host":   {"Host": "evil.example"},
		} {
			for _, c := range commands {
				w := ask(testOptions(p), "POST", pipeline+c, here, h)
				require.GreaterOrEqual(t, w.Code, 400, "%s %s", name, c)
				require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
			}
		}
		require.Empty(t, p.calls)
	})
	t.Run("large requests", func(t *testing.T) {
		s := running(t, testOptions(newProcess()))
		for name, request := range map[string]string{
			"body":   request("POST", "/api/v1/pipelines/orders/offsets", "Content-Type: application/json", "Content-Length: 1048576") + strings.Repeat(" ", 1<<20),
			"header": request("GET", "/status", "X: "+strings.Repeat("x", 1<<20)),
			"chunks": request("POST", "/api/v1/pipelines/orders/offsets", "Content-Type: application/json", "Transfer-Encoding: chunked") + "100000\r\n" + strings.Repeat(" ", 1<<20) + "\r\n0\r\n\r\n",
		} {
			c, err := net.Dial("tcp", s.AdminAddr().String())
			require.NoError(t, err)
			go func() { _, _ = io.WriteString(c, request) }()
			require.NoError(t, c.SetReadDeadline(time.Now().Add(20*time.Second)))
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil { // or the connection was closed on it
				require.GreaterOrEqual(t, answer.StatusCode, 400, name)
			}
			require.NoError(t, c.Close())
		}
	})
	t.Run("slow clients", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, adm, stop := virtual(testOptions(newProcess()))
			began := time.Now()
			var conns []net.Conn
			var senders sync.WaitGroup
			for range 50 {
				c := adm.dial()
				conns = append(conns, c)
				senders.Go(func() { trickle(c, request("GET", "/status", strings.Repeat("X: y\r\n", 500))) })
			}
			for _, c := range conns {
				_, err := io.Copy(io.Discard, c)
				require.NoError(t, err)
				require.NoError(t, c.Close())
			}
			require.LessOrEqual(t, time.Since(began), headerTimeout+2*time.Second)
			senders.Wait()
			_, err := stop()
			require.NoError(t, err)
		})
	})
}

// What shows memory or goroutines is for the admin port only, and nothing writes a
// dump to disk.
func TestThreat_CrashArtefacts(t *testing.T) {
	s := running(t, testOptions(newProcess()))
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine", "/debug/vars", "/status", "/config"} {
		require.ErrorContains(t, Probe(t.Context(), s.Addr().String(), path), "404", path)
		require.Equal(t, 401, ask(testOptions(newProcess()), "GET", "http://localhost"+path, "192.0.2.7:1", nil).Code, path)
	}
}
