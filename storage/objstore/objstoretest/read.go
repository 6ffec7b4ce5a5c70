package objstoretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
)

var ctx = context.Background()

func testPutGet(t *testing.T, b objstore.Bucket) {
	for i, n := range []int{0, 1, 100, 4095, 4096, 4097, 64<<10 + 1, 1 << 20} {
		want := content(uint64(i), n)
		for _, dir := range []string{"", "manifest/", "dt=2026-01-01/bucket-0/"} {
			key := fmt.Sprintf("%sobject-%d", dir, n)
			require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: key, Data: want}}))
			requireObject(t, b, key, want)
		}
	}
}

func testMissing(t *testing.T, b objstore.Bucket) {
	put(t, b, "folder/object", []byte("x"))
	for _, key := range []string{"nothing", "no/thing", "folder/nothing", "folder", "folder/object/below"} {
		_, err := b.Get(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotExist, "get %s", key)
		require.ErrorContains(t, err, key)
		_, err = b.Open(ctx, key, -1)
		require.ErrorIs(t, err, objstore.ErrNotExist, "open %s", key)
		_, err = b.Stat(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotExist, "stat %s", key)
	}
}

func testOpen(t *testing.T, b objstore.Bucket) {
	want := content(1, 300_000)
	put(t, b, "data", want)
	for _, size := range []int64{-1, int64(len(want))} {
		r, err := b.Open(ctx, "data", size)
		require.NoError(t, err)
		require.EqualValues(t, len(want), r.Size())
		all, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, all))

		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 1))
				for range 50 {
					off := rng.IntN(len(want))
					p := make([]byte, rng.IntN(len(want)-off)+1)
					n, err := r.ReadAt(p, int64(off))
					if n != len(p) || err != nil && !errors.Is(err, io.EOF) || !bytes.Equal(p, want[off:off+n]) {
						t.Errorf("reading %d bytes at %d: %d, %v", len(p), off, n, err)
						return
					}
				}
			})
		}
		wg.Wait()

		n, err := r.ReadAt(make([]byte, 10), int64(len(want))-4)
		require.Equal(t, 4, n)
		require.ErrorIs(t, err, io.EOF)
		n, err = r.ReadAt(make([]byte, 10), int64(len(want))+4)
		require.Zero(t, n)
		require.ErrorIs(t, err, io.EOF)
		_, err = r.ReadAt(make([]byte, 1), -1)
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF)
		require.NoError(t, r.Close())
	}
}

func testStat(t *testing.T, b objstore.Bucket) {
	put(t, b, "folder/a", []byte("12345"))
	put(t, b, "empty", nil)
	info, err := b.Stat(ctx, "folder/a")
	require.NoError(t, err)
	require.Equal(t, "folder/a", info.Key)
	require.EqualValues(t, 5, info.Size)
	require.False(t, info.Folder)
	require.False(t, info.Modified.IsZero())
	info, err = b.Stat(ctx, "empty")
	require.NoError(t, err)
	require.Zero(t, info.Size)
	_, err = b.Stat(ctx, "folder")
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

// list returns the children of a folder, folders with a slash behind them.
func list(t *testing.T, b objstore.Bucket, prefix string) (keys []string) {
	t.Helper()
	require.NoError(t, b.List(ctx, prefix, func(i objstore.Info) error {
		if i.Folder {
			keys = append(keys, i.Key+"/")
			return nil
		}
		info, err := b.Stat(ctx, i.Key)
		require.NoError(t, err)
		require.Equal(t, info, i)
		keys = append(keys, i.Key)
		return nil
	}))
	return keys
}

func testList(t *testing.T, b objstore.Bucket) {
	for _, key := range []string{
		"b", "a/x", "a-b", "a.b", "B", "a/y/z", "a/y/zz", "ab/1", "é", "snapshot/LATEST", "snapshot/snapshot-10",
		"snapshot/snapshot-9", ".hidden", "~",
	} {
		put(t, b, key, []byte(key))
	}
	require.Equal(t, []string{".hidden", "B", "a/", "a-b", "a.b", "ab/", "b", "snapshot/", "~", "é"}, list(t, b, ""))
	require.Equal(t, []string{"a/x", "a/y/"}, list(t, b, "a"))
	require.Equal(t, []string{"a/x", "a/y/"}, list(t, b, "a/"), "one slash at the end is allowed")
	require.Equal(t, []string{"a/y/z", "a/y/zz"}, list(t, b, "a/y"))
	require.Equal(t, []string{"snapshot/LATEST", "snapshot/snapshot-10", "snapshot/snapshot-9"}, list(t, b, "snapshot"))
	require.Empty(t, list(t, b, "nothing"))
	require.Empty(t, list(t, b, "nothing/at/all"))
	require.Empty(t, list(t, b, "b"), "an object is no folder")
	require.Empty(t, list(t, b, "b/c"))
	require.Empty(t, list(t, b, "snap"), "a prefix is a folder and not the beginning of a name")
	require.NoError(t, b.List(ctx, "a", func(i objstore.Info) error {
		require.Equal(t, i.Key == "a/y", i.Folder)
		return nil
	}))
}

func testListSizes(t *testing.T, b objstore.Bucket) {
	require.Empty(t, list(t, b, ""))
	const n = 1100 // more than a page of an object store
	var objects []objstore.Object
	for i := range n {
		objects = append(objects, objstore.Object{Key: fmt.Sprintf("manifest/manifest-%06d", i), Data: make([]byte, i%7)})
	}
	require.NoError(t, b.PutAll(ctx, objects))
	i := 0
	require.NoError(t, b.List(ctx, "manifest", func(info objstore.Info) error {
		require.Equal(t, objects[i].Key, info.Key)
		require.EqualValues(t, i%7, info.Size)
		i++
		return nil
	}))
	require.Equal(t, n, i)
}

func testListError(t *testing.T, b objstore.Bucket) {
	for _, key := range []string{"a", "b", "c"} {
		put(t, b, key, nil)
	}
	enough := errors.New("enough")
	var seen []string
	err := b.List(ctx, "", func(i objstore.Info) error {
		seen = append(seen, i.Key)
		if i.Key == "b" {
			return enough
		}
		return nil
	})
	require.Equal(t, enough, err)
	require.Equal(t, []string{"a", "b"}, seen)
}

func testAwkwardKeys(t *testing.T, b objstore.Bucket) {
	keys := []string{
		"dt=2026-01-01/bucket-0/data-1.parquet", "name=a b/x", "name=a%2Fb/x", "name=ünïcödé/x", "name=__DEFAULT_PARTITION__/x",
		"name=a\\b/x", "name=tab\tnew\nline/x", "q='x\"y'/x", "..x/...", "x.", "-rf", "#?&+;,@!$()[]{}<>|^`~", "日本語/データ",
		strings.Repeat("n", 255), strings.Repeat("n", 254) + "m", strings.Repeat("é", 127), "deep/" + strings.Repeat("d/", 30) + "x",
	}
	if most := traits(b).MaxName; most > 0 {
		keys = slices.DeleteFunc(keys, func(key string) bool { return len(key) > most })
	}
	for i, key := range keys {
		w, err := b.Create(ctx, key)
		require.NoError(t, err, "create %q", key)
		_, err = w.Write(content(uint64(i), 100))
		require.NoError(t, err)
		require.NoError(t, w.Close(), "create %q", key)
		requireObject(t, b, key, content(uint64(i), 100))
		require.ErrorIs(t, b.PutIfAbsent(ctx, key, nil), objstore.ErrExist, "%q", key)
		require.ErrorIs(t, b.PutAll(ctx, []objstore.Object{{Key: key}}), objstore.ErrExist, "%q", key)
		require.NoError(t, b.Replace(ctx, key, content(uint64(i), 50)), "%q", key)
		requireObject(t, b, key, content(uint64(i), 50))
	}
	require.ElementsMatch(t, keys, allKeys(t, b, ""))
	require.NoError(t, b.Delete(ctx, keys...))
	require.Empty(t, allKeys(t, b, ""))
}

// BadKeys are keys that every bucket refuses.
var BadKeys = []string{
	"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", "./a", "a/.", "a/./b", "a\x00b", "\x00",
	strings.Repeat("n", 256), "a/" + strings.Repeat("n", 256) + "/b", "a\xffb", "\xc0\xaf", "a/\xed\xa0\x80",
}

func testBadKeys(t *testing.T, b objstore.Bucket) {
	put(t, b, "a", []byte("kept"))
	for _, key := range BadKeys {
		_, err := b.Get(ctx, key)
		require.ErrorIs(t, err, objstore.ErrBadKey, "get %q", key)
		_, err = b.Open(ctx, key, 1)
		require.ErrorIs(t, err, objstore.ErrBadKey, "open %q", key)
		_, err = b.Stat(ctx, key)
		require.ErrorIs(t, err, objstore.ErrBadKey, "stat %q", key)
		_, err = b.Create(ctx, key)
		require.ErrorIs(t, err, objstore.ErrBadKey, "create %q", key)
		require.ErrorIs(t, b.PutIfAbsent(ctx, key, nil), objstore.ErrBadKey, "put_if_absent %q", key)
		require.ErrorIs(t, b.Replace(ctx, key, nil), objstore.ErrBadKey, "replace %q", key)
		require.ErrorIs(t, b.PutAll(ctx, []objstore.Object{{Key: "fine"}, {Key: key}}), objstore.ErrBadKey, "put_all %q", key)
		require.ErrorIs(t, b.Delete(ctx, "fine", key), objstore.ErrBadKey, "delete %q", key)
		if key != "" && key != "a/" {
			err := b.List(ctx, key, func(objstore.Info) error { return errors.New("there should be nothing") })
			require.ErrorIs(t, err, objstore.ErrBadKey, "list %q", key)
		}
	}
	require.Equal(t, []string{"a"}, allKeys(t, b, ""))
}
