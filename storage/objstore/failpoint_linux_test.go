//go:build failpoints

package objstore_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/failpoint"
	"applier/storage/objstore"
)

// With a folder in this variable the test binary is a program that commits once.
const childRoot = "APPLIER_OBJSTORE_CHILD"

func TestMain(m *testing.M) {
	root := os.Getenv(childRoot)
	if root == "" {
		os.Exit(m.Run())
	}
	b, err := objstore.NewLocal(root, objstore.LocalOptions{})
	if err == nil {
		err = commitOnce(b)
	}
	switch {
	case errors.Is(err, failpoint.ErrInjected):
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func commitOnce(b objstore.Bucket) error {
	err := b.PutAll(ctx, []objstore.Object{{Key: "bucket-0/data", Data: block('d', 300_000)}, {Key: "manifest/m", Data: block('m', 5000)}})
	if err != nil {
		return err
	}
	return b.PutIfAbsent(ctx, "snapshot/snapshot-1", block('s', 5000))
}

// A kill or an error at each point: the snapshot is whole or absent, never
// without its files, and the next process can commit.
func TestFailpoints_KillAndErrorAtEveryPoint(t *testing.T) {
	for point, published := range map[string]bool{
		"objstore/put_all/half/bucket-0": false, "objstore/put_all/half/manifest": false, "objstore/put_all/written": false, "objstore/put_all/synced": false,
		"objstore/publish/staged": false, "objstore/publish/linked": true,
	} {
		for _, action := range []string{"kill", "error"} {
			t.Run(point+" "+action, func(t *testing.T) {
				root := t.TempDir()
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), childRoot+"="+root, failpoint.Variable+"="+point+"="+action)
				out, err := cmd.CombinedOutput()
				require.Error(t, err, "the point was not passed: %s", out)
				status := cmd.ProcessState.Sys().(syscall.WaitStatus)
				if action == "kill" {
					require.Equal(t, syscall.SIGKILL, status.Signal(), "%s", out)
				} else {
					require.Equal(t, 3, status.ExitStatus(), "%s", out)
				}
				b := localAt(t, root)
				got, err := b.Get(ctx, "snapshot/snapshot-1")
				if !published {
					require.ErrorIs(t, err, objstore.ErrNotExist)
					require.NoError(t, b.PutIfAbsent(ctx, "snapshot/snapshot-1", block('n', 10)))
					return
				}
				require.NoError(t, err)
				require.Equal(t, 5000, len(got))
				require.ErrorIs(t, b.PutIfAbsent(ctx, "snapshot/snapshot-1", nil), objstore.ErrExist)
				data, err := b.Get(ctx, "bucket-0/data")
				require.NoError(t, err)
				require.Equal(t, 300_000, len(data))
			})
		}
	}
}
