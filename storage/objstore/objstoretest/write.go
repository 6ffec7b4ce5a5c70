package objstoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
)

func testPutAllMany(t *testing.T, b objstore.Bucket) {
	require.NoError(t, b.PutAll(ctx, nil))
	var objects []objstore.Object
	for i := range 200 {
		key := fmt.Sprintf("dt=%d/bucket-%d/data-%d.parquet", i%5, i%3, i)
		objects = append(objects, objstore.Object{Key: key, Data: content(uint64(i), i*37)})
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	order := make([]string, len(objects))
	for i, o := range objects {
		order[i] = o.Key
	}
	require.NoError(t, b.PutAll(ctx, objects))
	for i, o := range objects {
		require.Equal(t, order[i], o.Key, "the caller's slice stays as it was")
		requireObject(t, b, o.Key, o.Data)
	}
	require.Len(t, allKeys(t, b, ""), len(objects))
}

func testPutAllExisting(t *testing.T, b objstore.Bucket) {
	put(t, b, "manifest/m-1", []byte("old"))
	err := b.PutAll(ctx, []objstore.Object{{Key: "manifest/m-0", Data: []byte("new")}, {Key: "manifest/m-1", Data: []byte("new")}})
	require.ErrorIs(t, err, objstore.ErrExist)
	requireObject(t, b, "manifest/m-1", []byte("old"))
	if !traits(b).Flat {
		require.Error(t, b.PutAll(ctx, []objstore.Object{{Key: "manifest", Data: []byte("a folder has this name")}}))
	}
	requireObject(t, b, "manifest/m-1", []byte("old"))
}

func testPutAllBad(t *testing.T, b objstore.Bucket) {
	err := b.PutAll(ctx, []objstore.Object{{Key: "a"}, {Key: "b"}, {Key: "a"}})
	require.ErrorIs(t, err, objstore.ErrBadKey, "one name twice")
	err = b.PutAll(ctx, []objstore.Object{{Key: "a"}, {Key: "../b"}})
	require.ErrorIs(t, err, objstore.ErrBadKey)
	require.Empty(t, allKeys(t, b, ""), "a call that cannot succeed writes nothing")
}

func testCreate(t *testing.T, b objstore.Bucket) {
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 20 {
		want := content(uint64(i), rng.IntN(300_000))
		key := fmt.Sprintf("bucket-0/data-%d", i)
		w, err := b.Create(ctx, key)
		require.NoError(t, err)
		for rest := want; len(rest) > 0; {
			n := min(len(rest), rng.IntN(100_000))
			m, err := w.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, m)
			rest = rest[n:]
		}
		require.NoError(t, w.Close())
		requireObject(t, b, key, want)
		require.NoError(t, w.Close(), "closing again does nothing")
		w.Abort()
		_, err = w.Write([]byte("late"))
		require.Error(t, err)
		requireObject(t, b, key, want)
	}
}

func testCreateHidden(t *testing.T, b objstore.Bucket) {
	w, err := b.Create(ctx, "snapshot/snapshot-1")
	require.NoError(t, err)
	_, err = w.Write(content(1, 500_000))
	require.NoError(t, err)
	requireMissing(t, b, "snapshot/snapshot-1")
	require.NoError(t, b.List(ctx, "snapshot", func(i objstore.Info) error {
		require.True(t, objstore.IsTemp(i.Key), "Java parses visible names in snapshot/: %s", i.Key)
		return nil
	}))
	require.NoError(t, w.Close())
	requireObject(t, b, "snapshot/snapshot-1", content(1, 500_000))
}

func testCreateAbort(t *testing.T, b objstore.Bucket) {
	for _, n := range []int{0, 10, 300_000} {
		w, err := b.Create(ctx, "index/index-1")
		require.NoError(t, err)
		_, err = w.Write(content(1, n))
		require.NoError(t, err)
		w.Abort()
		w.Abort()
		require.Error(t, w.Close(), "what was aborted is not there")
		_, err = w.Write([]byte("late"))
		require.Error(t, err)
	}
	require.Empty(t, allKeys(t, b, ""))
}

func testCreateExisting(t *testing.T, b objstore.Bucket) {
	put(t, b, "a/b", []byte("old"))
	w, err := b.Create(ctx, "a/b")
	if err == nil {
		_, err = w.Write([]byte("new"))
		require.NoError(t, err)
		err = w.Close()
		require.Equal(t, err, w.Close(), "a late Close returns what the first did")
	}
	require.ErrorIs(t, err, objstore.ErrExist)
	requireObject(t, b, "a/b", []byte("old"))

	// The name is taken while the object is being written.
	w, err = b.Create(ctx, "a/c")
	require.NoError(t, err)
	put(t, b, "a/c", []byte("first"))
	_, err = w.Write([]byte("second"))
	require.NoError(t, err)
	require.ErrorIs(t, w.Close(), objstore.ErrExist)
	requireObject(t, b, "a/c", []byte("first"))
}

func testLarge(t *testing.T, b objstore.Bucket) {
	want := bytes.Repeat(content(3, 1_000_003), 12) // no power of two: a block in a wrong place shows
	w, err := b.Create(ctx, "bucket-0/streamed")
	require.NoError(t, err)
	for rest := want; len(rest) > 0; {
		n := min(len(rest), 1<<20+1)
		_, err := w.Write(rest[:n])
		require.NoError(t, err)
		rest = rest[n:]
	}
	require.NoError(t, w.Close())
	requireObject(t, b, "bucket-0/streamed", want)
	require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: "bucket-0/put", Data: want}}))
	requireObject(t, b, "bucket-0/put", want)
}

func testPutIfAbsent(t *testing.T, b objstore.Bucket) {
	put(t, b, "snapshot/snapshot-1", []byte("first"))
	for _, data := range [][]byte{[]byte("second"), []byte("first"), nil} {
		require.ErrorIs(t, b.PutIfAbsent(ctx, "snapshot/snapshot-1", data), objstore.ErrExist, "also with the same bytes")
	}
	requireObject(t, b, "snapshot/snapshot-1", []byte("first"))
	require.NoError(t, b.Delete(ctx, "snapshot/snapshot-1"))
	put(t, b, "snapshot/snapshot-1", []byte("again"))
	requireObject(t, b, "snapshot/snapshot-1", []byte("again"))
}

func testPutIfAbsentRace(t *testing.T, b objstore.Bucket) {
	const writers = 16
	for round := range 10 {
		key := fmt.Sprintf("snapshot/snapshot-%d", round)
		var wg sync.WaitGroup
		begin := make(chan struct{})
		errs := make([]error, writers)
		for w := range writers {
			wg.Go(func() {
				<-begin
				errs[w] = b.PutIfAbsent(ctx, key, content(uint64(w), 2000))
			})
		}
		close(begin)
		wg.Wait()
		winner := -1
		for w, err := range errs {
			if err == nil {
				require.Equal(t, -1, winner, "two winners")
				winner = w
				continue
			}
			require.ErrorIs(t, err, objstore.ErrExist)
		}
		require.NotEqual(t, -1, winner, "no winner")
		requireObject(t, b, key, content(uint64(winner), 2000))
	}
}

func testPutIfAbsentWhole(t *testing.T, b objstore.Bucket) {
	const rounds = 15
	want := content(5, 100_000)
	for round := range rounds {
		key := fmt.Sprintf("snapshot/snapshot-%d", round)
		var wg sync.WaitGroup
		var written atomic.Bool
		for range 3 {
			wg.Go(func() {
				for last := false; !last; {
					last = written.Load()
					got, err := b.Get(ctx, key)
					switch {
					case err == nil && bytes.Equal(want, got):
						return
					case err == nil:
						t.Errorf("a reader saw half an object: %s", difference(want, got))
						return
					case !errors.Is(err, objstore.ErrNotExist):
						t.Errorf("reading while it is written: %v", err)
						return
					case last:
						t.Errorf("it is not there after the writer returned")
					}
				}
			})
		}
		if err := b.PutIfAbsent(ctx, key, want); err != nil {
			t.Error(err)
		}
		written.Store(true)
		wg.Wait()
	}
}

func testReplace(t *testing.T, b objstore.Bucket) {
	require.NoError(t, b.Replace(ctx, "snapshot/LATEST", content(0, 5000)))
	var wg sync.WaitGroup
	var done atomic.Bool
	for range 3 {
		wg.Go(func() {
			for !done.Load() {
				got, err := b.Get(ctx, "snapshot/LATEST")
				if err != nil || len(got) < 5000 || !bytes.Equal(got, content(uint64(len(got)-5000), len(got))) {
					t.Errorf("a reader saw neither the old nor the new: %d bytes, %v", len(got), err)
					return
				}
			}
		})
	}
	const rounds = 15
	for i := range rounds {
		if err := b.Replace(ctx, "snapshot/LATEST", content(uint64(i), 5000+i)); err != nil {
			t.Error(err)
		}
	}
	done.Store(true)
	wg.Wait()
	requireObject(t, b, "snapshot/LATEST", content(rounds-1, 5000+rounds-1))
	if !traits(b).Flat {
		require.Error(t, b.Replace(ctx, "snapshot", []byte("over a folder")))
	}
	require.Equal(t, []string{"snapshot/LATEST"}, allKeys(t, b, ""))
}

func testDelete(t *testing.T, b objstore.Bucket) {
	require.NoError(t, b.Delete(ctx))
	require.NoError(t, b.Delete(ctx, "nothing", "no/thing/at/all"))
	for _, key := range []string{"a/1", "a/2", "b", "c/d/e"} {
		put(t, b, key, []byte(key))
	}
	require.NoError(t, b.Delete(ctx, "b/below/an/object"))
	require.NoError(t, b.Delete(ctx, "a", "c/d"), "a folder is not an object")
	require.ElementsMatch(t, []string{"a/1", "a/2", "b", "c/d/e"}, allKeys(t, b, ""))
	require.ErrorIs(t, b.Delete(ctx, "a/1", "/bad", "missing", "c/d/e"), objstore.ErrBadKey)
	require.ElementsMatch(t, []string{"a/2", "b"}, allKeys(t, b, ""), "the good keys are deleted all the same")
	requireMissing(t, b, "a/1")
	require.NoError(t, b.Delete(ctx, "b", "b"))
	require.Equal(t, []string{"a/2"}, allKeys(t, b, ""))
}

func testCancelled(t *testing.T, b objstore.Bucket) {
	put(t, b, "a", []byte("kept"))
	gone, cancel := context.WithCancel(ctx)
	w, err := b.Create(gone, "created")
	require.NoError(t, err)
	_, err = w.Write([]byte("x"))
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, w.Close(), context.Canceled)
	_, err = b.Get(gone, "a")
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Open(gone, "a", -1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Stat(gone, "a")
	require.ErrorIs(t, err, context.Canceled)
	_, err = b.Create(gone, "b")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, b.PutIfAbsent(gone, "b", nil), context.Canceled)
	require.ErrorIs(t, b.PutAll(gone, []objstore.Object{{Key: "b"}}), context.Canceled)
	require.ErrorIs(t, b.Replace(gone, "a", nil), context.Canceled)
	require.ErrorIs(t, b.Delete(gone, "a"), context.Canceled)
	require.ErrorIs(t, b.List(gone, "", func(objstore.Info) error { return nil }), context.Canceled)
	require.Equal(t, []string{"a"}, allKeys(t, b, ""))
	requireObject(t, b, "a", []byte("kept"))
}

func testNoRetention(t *testing.T, b objstore.Bucket) {
	data := []byte("original")
	put(t, b, "published", data)
	require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: "put", Data: data}}))
	require.NoError(t, b.Replace(ctx, "replaced", data))
	w, err := b.Create(ctx, "created")
	require.NoError(t, err)
	_, err = w.Write(data)
	require.NoError(t, err)
	copy(data, "scribble")
	require.NoError(t, w.Close())
	for _, key := range []string{"published", "put", "replaced", "created"} {
		got, err := b.Get(ctx, key)
		require.NoError(t, err)
		require.Equal(t, "original", string(got), key)
		copy(got, "scribble")
		requireObject(t, b, key, []byte("original"))
	}
}

func testProbe(t *testing.T, b objstore.Bucket) {
	require.NoError(t, objstore.Probe(ctx, b, ""))
	require.NoError(t, objstore.Probe(ctx, b, "snapshot/"))
	require.ErrorIs(t, objstore.Probe(ctx, b, "../elsewhere"), objstore.ErrBadKey)
	require.Empty(t, allKeys(t, b, ""))
}
