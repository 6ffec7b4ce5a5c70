package merger

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"applier/batcher"
	"applier/storage/objstore"
	"applier/storage/paimon"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"
)

// farStore is an S3 store in this process whose every answer takes a second of the
// bubble's time: round trips can be counted by the clock.
type farStore struct {
	handler http.Handler
	mu      sync.Mutex
	asked   []string  // METHOD path
	publish time.Time // when the answer to the last publish came
}

func (s *farStore) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	r = r.Clone(r.Context()) // as a server would see it
	r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	if r.Body == nil {
		r.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, r)
	time.Sleep(time.Second)
	if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/snapshot/snapshot-") {
		s.mu.Lock()
		s.publish = time.Now()
		s.mu.Unlock()
	}
	resp := rec.Result()
	resp.Request, resp.ContentLength = r, int64(rec.Body.Len())
	return resp, nil
}

// forget drops what was noted of earlier requests.
func (s *farStore) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = nil
}

// onFarStore opens a rig's table anew in an S3 store.
func (r *rig) onFarStore(t *testing.T) *farStore {
	ctx := context.Background()
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("lake"))
	far := &farStore{handler: gofakes3.New(backend).Server()}
	store, err := objstore.NewS3(objstore.S3Options{
		Bucket: "lake", Endpoint: "http://127.0.0.1:1", Region: "us-east-1", AccessKey: "user", SecretKey: "secret", Transport: far,
	})
	require.NoError(t, err)
	b, err := store.At("db.db/t")
	require.NoError(t, err)
	require.NoError(t, paimon.CreateTable(ctx, b, r.table.Schema()))
	r.table, err = paimon.OpenTable(ctx, b, paimon.Write)
	require.NoError(t, err)
	r.a, err = New(ctx, r.set, Deps{Name: "db.t", Table: r.table, Source: r, Letters: r, Observer: rigObserver{r}})
	require.NoError(t, err)
	return far
}

// A commit takes three round trips from the closed batch to the answer of its
// publish if nobody else writes, and a fourth where old rows must be read.
func TestS3_ACommitTakesThreeRoundTrips(t *testing.T) {
	for name, options := range map[string]map[string]string{
		"vectors": nil, "buckets, vectors": {"bucket": "3", "bucket-key": "k"},
		"tracked, vectors": {"row-tracking.enabled": "true"}, "copy on write": {"deletion-vectors.enabled": "false"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigOptions{fields: kv(), key: []int{0}, options: options, settings: func(s *Settings) { s.VerifySample = 0 }})
				far := r.onFarStore(t)
				r.begin()
				commit := func(v string) time.Duration {
					for _, k := range []int64{1, 2, 3} {
						r.put(0, k, v)
					}
					far.forget()
					from := time.Now()
					r.commit()
					return far.publish.Sub(from)
				}
				commit("first")
				for _, v := range []string{"second", "third", "fourth"} {
					took, trips := commit(v), 3
					if strings.Contains(strings.Join(far.asked, " "), "GET /lake/db.db/t/bucket-") {
						trips++
					}
					require.Equal(t, time.Duration(trips)*time.Second, took, "%s: %s", v, strings.Join(far.asked, "\n"))
				}
				r.close()
			})
		})
	}
}

// What is asked ahead is asked once, by whoever comes first, and not after a write.
func TestS3_AnAnswerAskedAheadIsUsedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		r := newRig(t, rigOptions{fields: kv(), key: []int{0}, apply: batcher.Mirror})
		r.onFarStore(t)
		b := r.table.Bucket().(*objstore.S3Bucket)
		require.NoError(t, b.Replace(ctx, "a", []byte("old")))
		took := func(f func()) time.Duration {
			from := time.Now()
			f()
			return time.Since(from)
		}
		read := func(want string) func() {
			return func() {
				got, err := b.Get(ctx, "a")
				require.NoError(t, err)
				require.Equal(t, want, string(got))
			}
		}
		forget := b.Ahead(ctx, get("a"), stat("a"), list(""), get("missing"))
		require.Equal(t, time.Second, took(func() {
			read("old")()
			_, err := b.Stat(ctx, "a")
			require.NoError(t, err)
			require.NoError(t, b.List(ctx, "", func(objstore.Info) error { return nil }))
			_, err = b.Get(ctx, "missing")
			require.ErrorIs(t, err, objstore.ErrNotExist)
		}), "all in one round trip")
		require.Equal(t, time.Second, took(read("old")), "a second time it is asked again")
		forget()

		forget = b.Ahead(ctx, get("a"))
		require.NoError(t, b.Replace(ctx, "a", []byte("new")))
		read("new")()
		forget()
		forget = b.Ahead(ctx, get("a"))
		forget()
		require.Equal(t, time.Second, took(read("new")), "what was forgotten is asked again")
	})
}
