package objstore_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/objstore/objstoretest"
)

var ctx = context.Background()

func newLocal(t testing.TB, o objstore.LocalOptions) *objstore.Local {
	t.Helper()
	b, err := objstore.NewLocal(t.TempDir(), o)
	require.NoError(t, err)
	return b
}

func TestLocal_Conformance(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) objstore.Bucket { return newLocal(t, objstore.LocalOptions{}) })
}

func TestNewLocal_NeedsAnExistingFolder(t *testing.T) {
	dir := t.TempDir()
	_, err := objstore.NewLocal(filepath.Join(dir, "nothing"), objstore.LocalOptions{})
	require.ErrorIs(t, err, objstore.ErrNotExist)
	require.NoFileExists(t, filepath.Join(dir, "nothing"))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err = objstore.NewLocal(file, objstore.LocalOptions{})
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

func TestNewLocal_MakesTheRootAbsolute(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	b, err := objstore.NewLocal(".", objstore.LocalOptions{})
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(b.Root()))
	t.Chdir(t.TempDir())
	require.NoError(t, b.PutIfAbsent(ctx, "a", nil))
	require.FileExists(t, filepath.Join(dir, "a"))
}

// B14: other engines remove folders that they see empty.
func TestLocal_MakesRemovedFoldersAgain(t *testing.T) {
	b := newLocal(t, objstore.LocalOptions{})
	for i := range 3 {
		require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: "dt=1/bucket-0/x", Data: []byte{byte(i)}}}))
		require.NoError(t, b.Delete(ctx, "dt=1/bucket-0/x"))
		require.NoError(t, os.RemoveAll(filepath.Join(b.Root(), "dt=1")))
	}
}

// T-GONE: a dropped table must not come back, and not look like an empty one.
func TestLocal_NeverMakesItsRoot(t *testing.T) {
	b := newLocal(t, objstore.LocalOptions{})
	require.NoError(t, b.PutIfAbsent(ctx, "snapshot/snapshot-1", nil))
	require.NoError(t, os.RemoveAll(b.Root()))
	requireRootGone(t, b)
	require.NoFileExists(t, b.Root())
	require.NoDirExists(t, b.Root())
}

func requireRootGone(t *testing.T, b objstore.Bucket) {
	t.Helper()
	for _, key := range []string{"snapshot/snapshot-2", "a"} {
		require.ErrorIs(t, b.PutIfAbsent(ctx, key, nil), objstore.ErrNotExist)
		require.ErrorIs(t, b.PutAll(ctx, []objstore.Object{{Key: key}}), objstore.ErrNotExist)
		require.ErrorIs(t, b.Replace(ctx, key, nil), objstore.ErrNotExist)
		_, err := b.Create(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotExist)
		_, err = b.Get(ctx, key)
		require.ErrorIs(t, err, objstore.ErrNotExist)
	}
	for _, prefix := range []string{"", "snapshot", "nothing"} {
		err := b.List(ctx, prefix, func(objstore.Info) error { return nil })
		require.ErrorIs(t, err, objstore.ErrNotExist, "%q", prefix)
	}
	require.NoError(t, b.Delete(ctx, "a"))
	require.Error(t, objstore.Probe(ctx, b, ""))
}

func TestLocal_FollowsSymbolicLinks(t *testing.T) {
	b := newLocal(t, objstore.LocalOptions{})
	elsewhere := t.TempDir()
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(b.Root(), "bucket-0")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(b.Root(), "dangling")))
	require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: "bucket-0/data-1", Data: []byte("one")}}))
	require.NoError(t, b.PutIfAbsent(ctx, "bucket-0/data-2", []byte("two")))
	require.FileExists(t, filepath.Join(elsewhere, "data-1"))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "data-2"), filepath.Join(b.Root(), "alias")))
	got, err := b.Get(ctx, "alias")
	require.NoError(t, err)
	require.Equal(t, "two", string(got))

	var seen []objstore.Info
	require.NoError(t, b.List(ctx, "", func(i objstore.Info) error {
		i.Modified = time.Time{}
		seen = append(seen, i)
		return nil
	}))
	require.Equal(t, []objstore.Info{{Key: "alias", Size: 3}, {Key: "bucket-0", Folder: true}}, seen)

	// A name that is taken by a link is taken, wherever the link leads.
	require.ErrorIs(t, b.PutIfAbsent(ctx, "dangling", nil), objstore.ErrExist)
	require.ErrorIs(t, b.PutAll(ctx, []objstore.Object{{Key: "dangling"}}), objstore.ErrExist)
	require.NoFileExists(t, filepath.Join(b.Root(), "nowhere"))
	// Delete takes the link and not what it leads to.
	require.NoError(t, b.Delete(ctx, "alias", "bucket-0"))
	require.FileExists(t, filepath.Join(elsewhere, "data-2"))
}

func TestLocal_SkipsForeignNamesThatAreNoKeys(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("file names are Unicode here")
	}
	b := newLocal(t, objstore.LocalOptions{})
	require.NoError(t, os.WriteFile(filepath.Join(b.Root(), "a\xff"), nil, 0o644))
	require.NoError(t, b.PutIfAbsent(ctx, "b", nil))
	n := 0
	require.NoError(t, b.List(ctx, "", func(i objstore.Info) error {
		require.Equal(t, "b", i.Key)
		n++
		return nil
	}))
	require.Equal(t, 1, n)
}

func TestLocal_TemporaryNamesAreHiddenAndKeepTheShapeOfJava(t *testing.T) {
	b := newLocal(t, objstore.LocalOptions{})
	w, err := b.Create(ctx, "snapshot/snapshot-7")
	require.NoError(t, err)
	defer w.Abort()
	entries, err := os.ReadDir(filepath.Join(b.Root(), "snapshot"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Regexp(t, `^\.snapshot-7\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$`, entries[0].Name())
}

func TestLocal_ObservesEveryCall(t *testing.T) {
	type seen struct {
		op, key string
		bytes   int64
		failed  bool
	}
	var mu sync.Mutex
	var calls []seen
	b := newLocal(t, objstore.LocalOptions{Observe: func(op, key string, bytes int64, err error, d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if d < 0 {
			t.Errorf("%s took %v", op, d)
		}
		calls = append(calls, seen{op, key, bytes, err != nil})
	}})
	require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: "b", Data: make([]byte, 10)}, {Key: "a", Data: make([]byte, 5)}}))
	require.NoError(t, b.PutIfAbsent(ctx, "c", make([]byte, 3)))
	require.Error(t, b.PutIfAbsent(ctx, "c", make([]byte, 4)))
	require.NoError(t, b.Replace(ctx, "c", make([]byte, 6)))
	w, err := b.Create(ctx, "d")
	require.NoError(t, err)
	_, err = w.Write(make([]byte, 8))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	w, err = b.Create(ctx, "e")
	require.NoError(t, err)
	w.Abort()
	_, err = b.Get(ctx, "b")
	require.NoError(t, err)
	r, err := b.Open(ctx, "b", -1)
	require.NoError(t, err)
	_, err = r.ReadAt(make([]byte, 20), 0)
	require.Error(t, err)
	require.NoError(t, r.Close())
	_, err = b.Stat(ctx, "nothing")
	require.Error(t, err)
	require.NoError(t, b.List(ctx, "", func(objstore.Info) error { return nil }))
	require.NoError(t, b.Delete(ctx, "a", "b"))
	require.Equal(t, []seen{
		{"put_all", "b", 15, false},
		{"put_if_absent", "c", 3, false},
		{"put_if_absent", "c", 4, true},
		{"replace", "c", 6, false},
		{"create", "d", 8, false},
		{"create", "e", 0, true},
		{"get", "b", 10, false},
		{"open", "b", 0, false},
		{"read", "b", 10, false},
		{"stat", "nothing", 0, true},
		{"list", "", 0, false},
		{"delete", "a", 0, false},
	}, calls)
}

func TestLocal_RespectsTheUmask(t *testing.T) {
	b := newLocal(t, objstore.LocalOptions{})
	require.NoError(t, b.PutIfAbsent(ctx, "folder/file", nil))
	probe := filepath.Join(b.Root(), "probe")
	require.NoError(t, os.WriteFile(probe, nil, 0o666))
	want, err := os.Stat(probe)
	require.NoError(t, err)
	got, err := os.Stat(filepath.Join(b.Root(), "folder/file"))
	require.NoError(t, err)
	require.Equal(t, want.Mode(), got.Mode())
}
