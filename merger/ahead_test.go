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
	asked   []string       // METHOD path
	bytes   objstore.Usage // of the bodies that went over the wire
	publish time.Time      // when the answer to the last publish came
}

func (s *farStore) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	s.bytes.WrittenBytes += max(r.ContentLength, 0)
	s.mu.Unlock()
	r = r.Clone(r.Context()) // as a server would see it
	r.Header.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	if r.Body == nil {
		r.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	s.handler.ServeHTTP(rec, r)
	if r.Method == http.MethodGet && !r.URL.Query().Has("list-type") && rec.Code < 300 {
		s.mu.Lock()
		s.bytes.ReadBytes += int64(rec.Body.Len())
		s.mu.Unlock()
	}
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
	s.asked, s.bytes = nil, objstore.Usage{}
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
	r.far = b
	r.table, err = paimon.OpenTable(ctx, b, paimon.Write)
	require.NoError(t, err)
	r.a, err = New(ctx, r.set, Deps{Name: "db.t", Table: r.table, Source: r, Letters: r, Observer: rigObserver{r}})
	require.NoError(t, err)
	return far
}

// farCommit commits three keys and returns how long it took from the closed batch to
// the answer of the publish.
func (r *rig) farCommit(far *farStore, v string) time.Duration {
	for _, k := range []int64{1, 2, 3} {
		r.put(0, k, v)
	}
	far.forget()
	from := time.Now()
	c := r.commit()
	require.EqualValues(r.t, len(far.asked), c.Store.Reads+c.Store.Writes, "what the commit says that it asked")
	require.EqualValues(r.t, strings.Count(strings.Join(far.asked, "\n"), "PUT "), c.Store.Writes)
	require.Equal(r.t, far.bytes.WrittenBytes, c.Store.WrittenBytes)
	require.Equal(r.t, far.bytes.ReadBytes, c.Store.ReadBytes)
	return far.publish.Sub(from)
}

// farModes are kinds of tables.
var farModes = map[string]map[string]string{
	"vectors": nil, "buckets, vectors": {"bucket": "3", "bucket-key": "k"},
	"tracked, vectors": {"row-tracking.enabled": "true"}, "copy on write": {"deletion-vectors.enabled": "false"},
}

// A commit takes two round trips from the closed batch to the answer of its publish if
// nobody else writes, and a third where old rows must be read. Its requests are few.
func TestS3_ACommitTakesTwoRoundTrips(t *testing.T) {
	for name, options := range farModes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, rigOptions{fields: kv(), key: []int{0}, options: options, settings: func(s *Settings) { s.VerifySample = 0 }})
				far := r.onFarStore(t)
				r.begin()
				r.farCommit(far, "first") // behind a look: nobody knows yet who writes here
				for _, v := range []string{"second", "third", "fourth"} {
					took, trips := r.farCommit(far, v), 2
					asked := strings.Join(far.asked, "\n")
					if strings.Contains(asked, "GET /lake/db.db/t/bucket-") {
						trips++
					}
					require.Equal(t, time.Duration(trips)*time.Second, took, "%s: %s", v, asked)
					reads, writes := len(far.asked)-strings.Count(asked, "PUT "), strings.Count(asked, "PUT ")
					require.LessOrEqual(t, reads, 9+strings.Count(asked, "GET /lake/db.db/t/bucket-"), asked)
					require.LessOrEqual(t, writes, 10, asked)
				}
				r.close()
			})
		})
	}
}

// Snapshots that have expired cost no round trip.
func TestS3_ACommitTakesTwoRoundTripsWhereSnapshotsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		r := newRig(t, rigOptions{fields: kv(), key: []int{0}, settings: func(s *Settings) { s.VerifySample = 0 }})
		far := r.onFarStore(t)
		r.begin()
		for _, v := range []string{"first", "second", "third", "fourth"} {
			r.farCommit(far, v)
		}
		b, p := r.table.Bucket(), r.table.Paths()
		require.NoError(t, b.Replace(ctx, p.EarliestHint(), []byte("3")))
		require.NoError(t, b.Delete(ctx, p.Snapshot(1), p.Snapshot(2)))
		r.farCommit(far, "fifth") // which finds that out
		require.Equal(t, 2*time.Second, r.farCommit(far, "sixth"), strings.Join(far.asked, "\n"))
		r.close()
	})
}

// Whoever else commits costs the batch that meets it an attempt, and the batches behind
// it a round trip each for as long as looks find commits of others.
func TestS3_BehindTheCommitOfAnotherTheLookComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{fields: kv(), key: []int{0}, apply: batcher.Mirror, settings: func(s *Settings) { s.VerifySample = 0 }})
		far := r.onFarStore(t)
		r.begin()
		for _, v := range []string{"first", "second"} {
			r.farCommit(far, v)
		}
		for i, attempts := range []int{2, 1, 1} {
			r.foreign(kvRow(int64(100+i), "theirs"))
			r.farCommit(far, "ours")
			require.Equal(t, attempts, r.committed[len(r.committed)-1].Attempts, "batch %d behind the first commit of another", i)
		}
		require.Equal(t, 3*time.Second, r.farCommit(far, "alone again"), "by a look that finds nothing")
		require.Equal(t, 2*time.Second, r.farCommit(far, "alone"))
		require.Equal(t, []string{"k=1 v=alone", "k=100 v=theirs", "k=101 v=theirs", "k=102 v=theirs", "k=2 v=alone", "k=3 v=alone"}, r.rows())
		r.close()
	})
}

// A batch that maintenance of this process has committed behind looks first: it is told.
func TestS3_BehindMaintenanceABatchIsOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, rigOptions{fields: kv(), key: []int{0}, apply: batcher.Mirror, settings: func(s *Settings) { s.VerifySample = 0 }})
		far := r.onFarStore(t)
		r.begin()
		for _, v := range []string{"first", "second"} {
			r.farCommit(far, v)
		}
		r.foreign(kvRow(100, "compacted"))
		r.post(Maintained{})
		r.farCommit(far, "third")
		require.Equal(t, 1, r.committed[len(r.committed)-1].Attempts)
		r.close()
	})
}

// An answer that was asked ahead is for who comes first, as often as it was asked, and not after a write.
func TestS3_AnAnswerAskedAheadIsUsedAsOftenAsItWasAsked(t *testing.T) {
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

		forget = b.Ahead(ctx, get("a"), get("a"))
		require.Equal(t, time.Second, took(func() { read("old")(); read("old")() }), "one answer to a question that is asked twice")
		require.Equal(t, time.Second, took(read("old")), "… and not to a third one")
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
