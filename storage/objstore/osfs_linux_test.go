package objstore

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOSFS_RenameNewIsExclusive(t *testing.T) {
	fs := osFS{root: t.TempDir()}
	for range 20 {
		var wins atomic.Int32
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				name := string(rune('a' + w))
				if err := os.WriteFile(fs.path(name), nil, 0o644); err != nil {
					t.Error(err)
				}
				switch err := fs.renameNew(name, "taken"); {
				case err == nil:
					wins.Add(1)
				case !errors.Is(err, syscall.EEXIST):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, wins.Load())
		require.NoError(t, fs.unlink("taken"))
	}
}

// The fallback works on a real file system, too.
func TestFiles_PublishWithoutHardLinks(t *testing.T) {
	root := t.TempDir()
	b := &files{fs: noLinkFS{osFS{root: root}}, parallel: 1, tempID: func() string { return "id" }}
	require.NoError(t, b.PutIfAbsent(t.Context(), "snapshot/snapshot-1", []byte("one")))
	require.ErrorIs(t, b.PutIfAbsent(t.Context(), "snapshot/snapshot-1", []byte("two")), ErrExist)
	data, err := os.ReadFile(filepath.Join(root, "snapshot", "snapshot-1"))
	require.NoError(t, err)
	require.Equal(t, "one", string(data))
	entries, err := os.ReadDir(filepath.Join(root, "snapshot"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

type noLinkFS struct{ osFS }

func (noLinkFS) link(from, to string) error {
	return &os.LinkError{Op: "link", Old: from, New: to, Err: syscall.EPERM}
}

func TestOSFS_IdentityTellsANewFolderFromTheOldOne(t *testing.T) {
	fs := osFS{root: t.TempDir()}
	later := time.Now().Add(time.Minute)
	require.NoError(t, fs.mkdir("a"))
	first, ok := identityOf(fs.path("a"), later)
	if !ok {
		t.Skip("the file system of the temporary folder records no time of birth; folders are synced up to the root every time")
	}
	again, ok := identityOf(fs.path("a"), later)
	require.True(t, ok)
	require.Equal(t, first, again)
	require.NoError(t, os.WriteFile(fs.path("a/file"), nil, 0o644))
	again, _ = identityOf(fs.path("a"), later)
	require.Equal(t, first, again, "also when its contents change")
	require.NoError(t, fs.mkdir("b"))
	other, ok := identityOf(fs.path("b"), later)
	require.True(t, ok)
	require.NotEqual(t, first, other)
	_, ok = identityOf(fs.path("nothing"), later)
	require.False(t, ok)

	// A new folder may get the inode of the old one in the same tick of the
	// clock of births: it has no identity until that tick is over.
	require.NoError(t, os.RemoveAll(fs.path("a")))
	require.NoError(t, fs.mkdir("a"))
	_, ok = identityOf(fs.path("a"), time.Now())
	require.False(t, ok)
	_, ok = identityOf(fs.path("a"), time.Now().Add(-time.Hour))
	require.False(t, ok, "the clock went backwards")
}

func TestOSFS_UnlinkNeverRemovesFolders(t *testing.T) {
	fs := osFS{root: t.TempDir()}
	require.NoError(t, fs.mkdir("empty"))
	require.ErrorIs(t, fs.unlink("empty"), syscall.EISDIR)
	require.DirExists(t, fs.path("empty"))
}
