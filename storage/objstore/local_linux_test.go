package objstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"applier/storage/objstore"
	"applier/storage/objstore/objstoretest"
)

// mountTmpfs returns an empty file system of its own, or skips the test where the
// process may not mount.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	dir, err := tryTmpfs(t, options)
	if err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	return dir
}

// tryTmpfs returns an empty folder, if allowed on a file system of its own that
// syncs fast; else with the reason why not.
func tryTmpfs(t *testing.T, options string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("applier-test", dir, "tmpfs", 0, options)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return dir, err
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir, nil
}

func localAt(t *testing.T, root string) *objstore.Local {
	t.Helper()
	b, err := objstore.NewLocal(root, objstore.LocalOptions{})
	require.NoError(t, err)
	return b
}

func files(t *testing.T, root string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path[len(root)+1:])
		}
		return err
	}))
	return names
}

func TestLocal_ConformanceOnTmpfsInOrder(t *testing.T) {
	objstoretest.Run(t, func(t *testing.T) objstore.Bucket {
		b, err := objstore.NewLocal(mountTmpfs(t, "size=512m"), objstore.LocalOptions{Parallel: 1})
		require.NoError(t, err)
		return b
	})
}

// B8, B9: a full disk is ErrFull, nothing is left of the failed call, and work
// goes on by itself when there is space.
func TestLocal_FullDisk(t *testing.T) {
	root := mountTmpfs(t, "size=1m")
	b := localAt(t, root)
	require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: "bucket-0/kept", Data: block('k', 600_000)}}))
	requireFull := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, objstore.ErrFull)
		require.ErrorIs(t, err, syscall.ENOSPC, "the original is there too")
		require.Equal(t, []string{"bucket-0/kept"}, files(t, root))
	}
	big := block('x', 500_000)
	requireFull(b.PutAll(ctx, []objstore.Object{{Key: "bucket-0/a", Data: block('a', 100_000)}, {Key: "bucket-0/b", Data: big}}))
	requireFull(b.PutIfAbsent(ctx, "snapshot/snapshot-1", big))
	requireFull(b.Replace(ctx, "snapshot/LATEST", big))
	w, err := b.Create(ctx, "bucket-0/c")
	require.NoError(t, err)
	for err == nil {
		_, err = w.Write(block('c', 10_000))
	}
	require.ErrorIs(t, err, objstore.ErrFull)
	requireFull(w.Close())
	w, err = b.Create(ctx, "bucket-0/c")
	require.NoError(t, err)
	for err == nil {
		_, err = w.Write(block('c', 100_000))
	}
	w.Abort()
	requireFull(err)

	require.NoError(t, b.Delete(ctx, "bucket-0/kept"))
	require.NoError(t, b.PutAll(ctx, []objstore.Object{{Key: "bucket-0/b", Data: big}}))
}

// B10: inodes.
func TestLocal_OutOfInodes(t *testing.T) {
	b := localAt(t, mountTmpfs(t, "size=1m,nr_inodes=8"))
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = b.PutIfAbsent(ctx, fmt.Sprintf("snapshot-%d", n), nil)
	}
	require.ErrorIs(t, err, objstore.ErrFull)
	require.Greater(t, n, 3)
	require.ErrorIs(t, b.PutAll(ctx, []objstore.Object{{Key: "new/folder"}}), objstore.ErrFull)
	_, err = b.Create(ctx, "new")
	require.ErrorIs(t, err, objstore.ErrFull)
	require.NoError(t, b.Delete(ctx, "snapshot-0", "snapshot-1"))
	require.NoError(t, b.PutIfAbsent(ctx, "snapshot-0", nil))
}

// B11: the file system goes read-only under the daemon, as after a disk error.
func TestLocal_ReadOnlyFileSystem(t *testing.T) {
	root := mountTmpfs(t, "size=1m")
	b := localAt(t, root)
	require.NoError(t, b.PutIfAbsent(ctx, "snapshot/snapshot-1", []byte("one")))
	w, err := b.Create(ctx, "bucket-0/data")
	require.NoError(t, err)
	_, err = w.Write([]byte("x"))
	require.NoError(t, err)
	require.ErrorIs(t, unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""), unix.EBUSY, "a file is being written")
	require.NoError(t, w.Close())
	require.NoError(t, unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))

	for _, err := range []error{
		b.PutIfAbsent(ctx, "snapshot/snapshot-2", nil),
		b.PutIfAbsent(ctx, "new/folder", nil),
		b.PutAll(ctx, []objstore.Object{{Key: "bucket-0/a"}}),
		b.Replace(ctx, "snapshot/LATEST", nil),
		b.Delete(ctx, "snapshot/snapshot-1"),
		objstore.Probe(ctx, b, "snapshot"),
	} {
		require.ErrorIs(t, err, objstore.ErrReadOnly)
		require.ErrorIs(t, err, syscall.EROFS)
	}
	_, err = b.Create(ctx, "bucket-0/a")
	require.ErrorIs(t, err, objstore.ErrReadOnly)
	got, err := b.Get(ctx, "snapshot/snapshot-1")
	require.NoError(t, err)
	require.Equal(t, "one", string(got))

	require.NoError(t, unix.Mount("", root, "", unix.MS_REMOUNT, ""))
	require.NoError(t, b.PutIfAbsent(ctx, "snapshot/snapshot-2", nil), "works again as soon as it may")
}

// B16: permission. Root may do everything, so root becomes another user of the
// file system for this thread.
func TestLocal_Permission(t *testing.T) {
	root := t.TempDir()
	b, err := objstore.NewLocal(root, objstore.LocalOptions{Parallel: 1}) // all in this goroutine
	require.NoError(t, err)
	require.NoError(t, b.PutIfAbsent(ctx, "snapshot/snapshot-1", []byte("one")))
	require.NoError(t, os.Chmod(filepath.Join(root, "snapshot", "snapshot-1"), 0))
	require.NoError(t, os.Chmod(filepath.Join(root, "snapshot"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "snapshot"), 0o755) })
	if os.Geteuid() == 0 {
		for dir := root; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
			require.NoError(t, os.Chmod(dir, 0o755))
		}
		runtime.LockOSThread()
		require.NoError(t, unix.Setfsuid(65534))
		defer func() {
			require.NoError(t, unix.Setfsuid(0))
			runtime.UnlockOSThread()
		}()
	}
	_, readErr := b.Get(ctx, "snapshot/snapshot-1")
	_, openErr := b.Open(ctx, "snapshot/snapshot-1", -1)
	_, createErr := b.Create(ctx, "snapshot/x")
	for what, err := range map[string]error{
		"get": readErr, "open": openErr, "create": createErr,
		"put_if_absent": b.PutIfAbsent(ctx, "snapshot/snapshot-2", nil),
		"put_all":       b.PutAll(ctx, []objstore.Object{{Key: "snapshot/x"}}),
		"replace":       b.Replace(ctx, "snapshot/LATEST", nil),
		"delete":        b.Delete(ctx, "snapshot/snapshot-1"),
		"probe":         objstore.Probe(ctx, b, "snapshot"),
	} {
		require.ErrorIs(t, err, objstore.ErrPermission, what)
		require.ErrorIs(t, err, syscall.EACCES, what)
		require.ErrorContains(t, err, root, "the path helps whoever has to repair it: %s", what)
	}
}

func TestLocal_FileSystemNamesTheKind(t *testing.T) {
	name, network, err := localAt(t, mountTmpfs(t, "size=1m")).FileSystem()
	require.NoError(t, err)
	require.Equal(t, "tmpfs", name)
	require.False(t, network)

	b := newLocal(t, objstore.LocalOptions{})
	require.NoError(t, os.Remove(b.Root()))
	_, _, err = b.FileSystem()
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

// B15: the process is out of file descriptors; the error comes through.
func TestLocal_OutOfFileDescriptors(t *testing.T) {
	b := newLocal(t, objstore.LocalOptions{})
	require.NoError(t, b.PutIfAbsent(ctx, "snapshot/snapshot-1", nil))
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	tight := old
	tight.Cur = 3 // below what is open already
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &tight))
	_, readErr := b.Get(ctx, "snapshot/snapshot-1")
	putErr := b.PutAll(ctx, []objstore.Object{{Key: "a"}, {Key: "b"}})
	publishErr := b.PutIfAbsent(ctx, "snapshot/snapshot-2", nil)
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
	for _, err := range []error{readErr, putErr, publishErr} {
		require.ErrorIs(t, err, syscall.EMFILE)
	}
	require.Equal(t, []string{"snapshot/snapshot-1"}, files(t, b.Root()))
	require.NoError(t, b.PutIfAbsent(ctx, "snapshot/snapshot-2", nil))
}
