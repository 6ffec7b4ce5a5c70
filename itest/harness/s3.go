package harness

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The credentials of every S3 server of the tests.
const (
	S3User   = "itest"
	S3Secret = "itest-secret"
)

// S3Server is a real S3 server over a folder: what is in a bucket lies there as
// ordinary files, where the judges read it.
type S3Server struct {
	Root     string // a bucket is a folder in it
	Endpoint string
	args     []string
	program  string
	process  *Process
}

// S3 starts versitygw with an empty bucket; it ends with the test.
func S3(t testing.TB, bucket string) *S3Server {
	t.Helper()
	p, err := fetch("versitygw")
	if err != nil {
		t.Fatal(err)
	}
	s := &S3Server{Root: t.TempDir()}
	if err := os.Mkdir(filepath.Join(s.Root, bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	port := FreePort(t)
	s.Endpoint = fmt.Sprintf("http://127.0.0.1:%d", port)
	s.program = p["program"]
	s.args = []string{"--access", S3User, "--secret", S3Secret, "--port", fmt.Sprintf("127.0.0.1:%d", port), "--quiet", "posix", s.Root}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// Stop kills the server.
func (s *S3Server) Stop() { s.process.Kill() }

// Start starts the server again on its folder.
func (s *S3Server) Start(t testing.TB) {
	t.Helper()
	var err error
	s.process, err = Start(Spec{Name: "versitygw", Path: s.program, Args: s.args})
	if err != nil {
		t.Fatal(err)
	}
	Until(t, time.Minute, "versitygw to listen", func() (bool, error) {
		if s.process.Exited() {
			return false, fmt.Errorf("it ended:\n%s", s.process.Output.Tail(20))
		}
		c, err := net.DialTimeout("tcp", strings.TrimPrefix(s.Endpoint, "http://"), time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil, nil
	})
}

// Fault is what happens to a request on its way.
type Fault struct {
	Status  int           // answer with it instead of asking the server, unless Applied
	Code    string        // of the answer's XML
	Headers http.Header   // of the answer
	Applied bool          // the server does it all the same; its answer is lost
	Hang    bool          // no answer comes
	Cut     int           // the body of the server's answer ends after so many bytes
	Delay   time.Duration // before the server is asked
	Late    time.Duration // the server is asked so long after the connection was cut
	Rate    int           // bytes a second that the request's body comes at
	Forbid  bool          // what is missing is answered as forbidden, as without s3:ListBucket
	Flip    bool          // a byte in the middle of the answer's body is another
}

// S3Proxy stands between a client and an S3 server.
type S3Proxy struct {
	Endpoint string
	CA       string // PEM file with the authority of an https endpoint
	target   *url.URL
	server   *httptest.Server
	forward  *httputil.ReverseProxy
	wg       sync.WaitGroup

	mu     sync.Mutex
	decide func(*http.Request) *Fault
	seen   []string // METHOD path
}

// NewS3Proxy starts one, with TLS if so wanted; it ends with the test.
func NewS3Proxy(t testing.TB, endpoint string, secure bool) *S3Proxy {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &S3Proxy{target: target}
	p.forward = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host }, // Host stays: it is signed
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = httptest.NewUnstartedServer(p)
	if secure {
		p.server.StartTLS()
		p.CA = filepath.Join(t.TempDir(), "ca.pem")
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
		if err := os.WriteFile(p.CA, block, 0o600); err != nil {
			t.Fatal(err)
		}
	} else {
		p.server.Start()
	}
	p.Endpoint = p.server.URL
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
		p.wg.Wait()
	})
	return p
}

// Break decides from now on what happens to requests: nil lets one pass.
func (p *S3Proxy) Break(decide func(*http.Request) *Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decide = decide
}

// Once breaks the first n requests that match, and lets the others pass. It returns
// how many it has broken so far.
func (p *S3Proxy) Once(n int, match func(*http.Request) bool, f Fault) (broken func() int) {
	var mu sync.Mutex
	hits := 0
	p.Break(func(r *http.Request) *Fault {
		mu.Lock()
		defer mu.Unlock()
		if hits >= n || !match(r) {
			return nil
		}
		hits++
		return &f
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return hits
	}
}

// Seen returns the requests since the last call, as METHOD PATH.
func (p *S3Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.seen
	p.seen = nil
	return out
}

// S3Request matches requests by method and by a part of their path.
func S3Request(method, path string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.Path, path) }
}

// ServeHTTP implements http.Handler.
func (p *S3Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.URL.Path)
	decide := p.decide
	p.mu.Unlock()
	var f *Fault
	if decide != nil {
		f = decide(r)
	}
	switch {
	case f == nil:
		p.forward.ServeHTTP(w, r)
	case f.Late > 0:
		p.late(r, f.Late)
		panic(http.ErrAbortHandler)
	case f.Hang:
		if f.Applied {
			p.forward.ServeHTTP(httptest.NewRecorder(), r)
		}
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.Applied && f.Status == 0:
		p.forward.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case f.Cut > 0:
		p.cut(w, r, f.Cut)
	case f.Rate > 0:
		r.Body = &slowBody{r.Body, f.Rate}
		p.forward.ServeHTTP(w, r)
	case f.Forbid, f.Flip:
		p.change(w, r, f)
	case f.Status != 0:
		if f.Applied {
			p.forward.ServeHTTP(httptest.NewRecorder(), r)
		} else {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		for k, v := range f.Headers {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(f.Status)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>injected</Message></Error>", f.Code)
		}
	default:
		time.Sleep(f.Delay) // a slow network
		p.forward.ServeHTTP(w, r)
	}
}

// change lets the server answer, and sends another answer.
func (p *S3Proxy) change(w http.ResponseWriter, r *http.Request, f *Fault) {
	rec := httptest.NewRecorder()
	p.forward.ServeHTTP(rec, r)
	body := rec.Body.Bytes()
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	if f.Forbid && rec.Code == http.StatusNotFound {
		rec.Code, body = http.StatusForbidden, []byte("<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
		w.Header().Del("Content-Length")
	}
	if n := len(body); f.Flip && n > 0 {
		body[n/2] ^= 0x55
	}
	w.WriteHeader(rec.Code)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// slowBody gives its bytes at a rate.
type slowBody struct {
	io.ReadCloser
	rate int
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.rate/4+1)])
	time.Sleep(time.Duration(n) * time.Second / time.Duration(b.rate)) // the slow line is the point
	return n, err
}

// cut lets the server answer and breaks the body off.
func (p *S3Proxy) cut(w http.ResponseWriter, r *http.Request, n int) {
	rec := httptest.NewRecorder()
	p.forward.ServeHTTP(rec, r)
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	body := rec.Body.Bytes()
	_, _ = w.Write(body[:min(n, len(body))])
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

// late sends the request on its own, after its client has given up.
func (p *S3Proxy) late(r *http.Request, after time.Duration) {
	body, _ := io.ReadAll(r.Body)
	again := r.Clone(context.WithoutCancel(r.Context()))
	p.wg.Go(func() {
		time.Sleep(after) // the late arrival is the point
		again.Body = io.NopCloser(bytes.NewReader(body))
		p.forward.ServeHTTP(httptest.NewRecorder(), again)
	})
}
