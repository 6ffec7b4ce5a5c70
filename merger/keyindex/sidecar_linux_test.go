package keyindex

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestSidecar_AFullDiskDuringABuildLosesTheIndex(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("keys", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("a small file system needs privileges: %v", err) // the test above has none to ask for
	}
	defer func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
	x := longKeys.open(t, dir+"/keys", Options{})
	defer x.Close()
	seg, err := x.AddSegment(50_000)
	require.NoError(t, err)
	b, err := x.NewBuilder(50_000)
	require.NoError(t, err)
	for from := 0; from < 50_000 && err == nil; from += 1000 {
		err = b.Add(seg, uint32(from), longKeys.keys(sequence(from, 1000)...))
	}
	require.ErrorIs(t, err, unix.ENOSPC)
	requireLost(t, x, err)
	require.ErrorIs(t, b.Finish(), ErrLost)
}
