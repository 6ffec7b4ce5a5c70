package objstore_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
)

// broken is a transport that a test breaks.
type broken struct {
	mu     sync.Mutex
	decide func(n int, r *http.Request) (*http.Response, error) // nil, nil lets it pass
	seen   []string
}

func (b *broken) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.seen = append(b.seen, r.Method+" "+r.URL.Path)
	n, decide := len(b.seen), b.decide
	b.mu.Unlock()
	if decide != nil {
		if resp, err := decide(n, r); resp != nil || err != nil {
			return resp, err
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

func (b *broken) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.seen)
}

// s3Reply is what a store says.
func s3Reply(r *http.Request, status int, code string) *http.Response {
	body := fmt.Sprintf("<Error><Code>%s</Code><Message>injected</Message></Error>", code)
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/xml"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// brokenS3 is a bucket whose requests a test breaks and whose pauses take no time.
func brokenS3(t *testing.T) (b *objstore.S3Bucket, net *broken, pauses *[]time.Duration) {
	net, pauses = &broken{}, &[]time.Duration{}
	o := s3Options(fakeS3(t))
	o.Transport = net
	var mu sync.Mutex
	o.Sleep = func(_ context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		*pauses = append(*pauses, d)
		return nil
	}
	s, err := objstore.NewS3(o)
	require.NoError(t, err)
	b, err = s.At("t")
	require.NoError(t, err)
	return b, net, pauses
}

// TestFault_C2_PausesGrowWhileAStoreAsksForLess, and the request ends after a while:
// whoever asked tries again later.
func TestFault_C2_PausesGrowWhileAStoreAsksForLess(t *testing.T) {
	b, net, pauses := brokenS3(t)
	net.decide = func(_ int, r *http.Request) (*http.Response, error) { return s3Reply(r, 503, "SlowDown"), nil }
	_, err := b.Get(t.Context(), "x")
	require.ErrorContains(t, err, "SlowDown")
	require.Equal(t, 6, net.requests())
	require.Len(t, *pauses, 5)
	for i, d := range *pauses {
		full := min(time.Second<<i, 20*time.Second)
		require.GreaterOrEqual(t, d, full/2)
		require.LessOrEqual(t, d, full)
	}
}

// TestFault_C3_APutWhoseAnswerIsLost finds its own bytes under the name, and does not
// take those of somebody else for them.
func TestFault_C3_APutWhoseAnswerIsLost(t *testing.T) {
	ctx := t.Context()
	b, net, _ := brokenS3(t)
	lost := func(n int, r *http.Request) (*http.Response, error) {
		if n > 1 {
			return nil, nil
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		return nil, io.ErrUnexpectedEOF
	}
	net.decide = lost
	require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: "a", Data: []byte("ours")}}))
	got, err := b.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "ours", string(got))

	b, net, _ = brokenS3(t)
	require.NoError(t, b.PutIfAbsent(ctx, "a", []byte("theirs")))
	net.decide = func(n int, r *http.Request) (*http.Response, error) {
		if n == 2 {
			return nil, io.ErrUnexpectedEOF // ours never came
		}
		return nil, nil
	}
	require.ErrorIs(t, b.PutAll(ctx, []objstore.Object{{Key: "a", Data: []byte("ours")}}), objstore.ErrExist)
}

// A publish is one request, whatever comes of it.
func TestS3_PutIfAbsentIsNeverRepeated(t *testing.T) {
	for name, decide := range map[string]func(*http.Request) (*http.Response, error){
		"no answer": func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		"an error":  func(r *http.Request) (*http.Response, error) { return s3Reply(r, 500, "InternalError"), nil },
		"a conflict": func(r *http.Request) (*http.Response, error) {
			return s3Reply(r, 409, "ConditionalRequestConflict"), nil
		},
		"an expired token": func(r *http.Request) (*http.Response, error) { return s3Reply(r, 403, "ExpiredToken"), nil },
		"less":             func(r *http.Request) (*http.Response, error) { return s3Reply(r, 503, "SlowDown"), nil },
	} {
		t.Run(name, func(t *testing.T) {
			b, net, _ := brokenS3(t)
			net.decide = func(_ int, r *http.Request) (*http.Response, error) { return decide(r) }
			err := b.PutIfAbsent(t.Context(), "snapshot/snapshot-1", []byte("x"))
			require.Error(t, err)
			require.NotErrorIs(t, err, objstore.ErrExist)
			require.Equal(t, 1, net.requests())
		})
	}
}

// TestFault_C11_AnErrorInASuccess: the end of a multipart upload answers 200 and says
// in the body that it failed.
func TestFault_C11_AnErrorInASuccess(t *testing.T) {
	ctx := t.Context()
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // two parts
	write := func(b *objstore.S3Bucket) error {
		w, err := b.Create(ctx, "large")
		require.NoError(t, err)
		_, err = w.Write(want)
		require.NoError(t, err)
		return w.Close()
	}
	for name, times := range map[string]int{"once": 1, "always": 100} {
		t.Run(name, func(t *testing.T) {
			b, net, _ := brokenS3(t)
			net.decide = func(_ int, r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost && r.URL.Query().Has("uploadId") && times > 0 {
					times--
					return s3Reply(r, 200, "InternalError"), nil
				}
				return nil, nil
			}
			err := write(b)
			net.decide = nil
			got, e := b.Get(ctx, "large")
			if name == "always" {
				require.Error(t, err)
				require.ErrorIs(t, e, objstore.ErrNotExist)
				return
			}
			require.NoError(t, err)
			require.NoError(t, e)
			require.True(t, bytes.Equal(want, got))
		})
	}
}

// TestFault_C12_PartsThatAreLeftAreEnded by whoever cleans up, when they are old.
func TestFault_C12_PartsThatAreLeftAreEnded(t *testing.T) {
	ctx := t.Context()
	b, net, _ := brokenS3(t)
	w, err := b.Create(ctx, "bucket-0/large")
	require.NoError(t, err)
	net.decide = func(_ int, r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodDelete { // the writer cannot clean up behind itself
			return nil, io.ErrUnexpectedEOF
		}
		return nil, nil
	}
	_, err = w.Write(make([]byte, 9<<20))
	require.NoError(t, err)
	w.Abort()
	net.decide = nil
	n, err := b.Uploads(ctx, time.Now().Add(-time.Hour), true)
	require.NoError(t, err)
	require.Zero(t, n, "it is young")
	n, err = b.Uploads(ctx, time.Now().Add(time.Hour), false)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = b.Uploads(ctx, time.Now().Add(time.Hour), true)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = b.Uploads(ctx, time.Now().Add(time.Hour), false)
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = b.Get(ctx, "bucket-0/large")
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

// A request that ends early is asked for again; one that always does is an error.
func TestFault_C13_AnAnswerThatEndsEarly(t *testing.T) {
	ctx := t.Context()
	b, net, _ := brokenS3(t)
	want := bytes.Repeat([]byte("x"), 100_000)
	require.NoError(t, b.PutIfAbsent(ctx, "a", want))
	cut := 0
	net.decide = func(_ int, r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && r.Method == http.MethodGet && cut > 0 {
			cut--
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.LimitReader(resp.Body, 500), resp.Body}
		}
		return resp, err
	}
	cut = 3
	got, err := b.Get(ctx, "a")
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
	cut = 100
	_, err = b.Get(ctx, "a")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	cut = 3
	r, err := b.Open(ctx, "a", int64(len(want)))
	require.NoError(t, err)
	p := make([]byte, 50_000)
	_, err = r.ReadAt(p, 25_000)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want[:50_000], p))
}

// An object that is shorter than is known is no bad line: it is not asked for again.
func TestS3_AnObjectThatIsTooShortIsNamed(t *testing.T) {
	ctx := t.Context()
	b, net, _ := brokenS3(t)
	require.NoError(t, b.PutIfAbsent(ctx, "a", bytes.Repeat([]byte("x"), 100)))
	asked := 0
	net.decide = func(_ int, r *http.Request) (*http.Response, error) {
		asked++
		return http.DefaultTransport.RoundTrip(r)
	}
	for _, off := range []int64{0, 50, 1000} { // the latter in a block of its own
		r, err := b.Open(ctx, "a", 3<<20)
		require.NoError(t, err)
		asked = 0
		_, err = r.ReadAt(make([]byte, 2<<20), off)
		require.ErrorIs(t, err, objstore.ErrSize, "offset %d", off)
		require.Equal(t, 1, asked)
	}
}

// What the store says about its caller and his machine is told apart.
func TestS3_ErrorsAreNamed(t *testing.T) {
	for code, want := range map[string]error{
		"AccessDenied": objstore.ErrPermission, "SignatureDoesNotMatch": objstore.ErrPermission, "InvalidAccessKeyId": objstore.ErrPermission,
		"RequestTimeTooSkewed": objstore.ErrClock, "QuotaExceeded": objstore.ErrFull,
	} {
		b, net, _ := brokenS3(t)
		net.decide = func(_ int, r *http.Request) (*http.Response, error) { return s3Reply(r, 403, code), nil }
		_, err := b.Get(t.Context(), "a")
		require.ErrorIs(t, err, want, code)
		require.ErrorContains(t, err, code)
		require.Equal(t, 1, net.requests(), "it will not pass by itself at once")
	}
	b, net, _ := brokenS3(t)
	net.decide = func(_ int, r *http.Request) (*http.Response, error) { return s3Reply(r, 404, "NoSuchThing"), nil }
	_, err := b.Get(t.Context(), "a")
	require.NotErrorIs(t, err, objstore.ErrNotExist, "another 404 than that of a key")
}

// Short reads here and there cost few requests.
func TestS3_ReadsOfPartsAreFewRequests(t *testing.T) {
	b, net, _ := brokenS3(t)
	want := bytes.Repeat([]byte("0123456789"), 300_000)
	require.NoError(t, b.PutIfAbsent(t.Context(), "a", want))
	r, err := b.Open(t.Context(), "a", int64(len(want)))
	require.NoError(t, err)
	before := net.requests()
	for off := int64(0); off+100 < int64(len(want)); off += 100 {
		p := make([]byte, 100)
		_, err := r.ReadAt(p, off)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want[off:off+100], p))
	}
	require.Equal(t, 3, net.requests()-before)
}

// What an answer may not do: stand for a missing object unless it says so, or come
// from whoever has another certificate.
func TestThreat_ObjectStoreAnswers(t *testing.T) {
	for _, code := range []string{"NoSuchThing", "XAdminUserNotFound", "NoSuchBucketPolicy", ""} {
		b, net, _ := brokenS3(t)
		net.decide = func(_ int, r *http.Request) (*http.Response, error) { return s3Reply(r, 404, code), nil }
		_, err := b.Get(t.Context(), "a")
		require.Error(t, err)
		require.NotErrorIs(t, err, objstore.ErrNotExist, code)
	}
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	o := s3Options(server.URL)
	s, err := objstore.NewS3(o)
	require.NoError(t, err)
	b, err := s.At("t")
	require.NoError(t, err)
	_, err = b.Get(t.Context(), "a")
	require.ErrorIs(t, err, objstore.ErrCertificate)
}
