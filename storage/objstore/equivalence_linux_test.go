package objstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/objstore"
)

// kinds are the answers that a caller can tell apart.
var kinds = []error{
	objstore.ErrNotExist, objstore.ErrExist, objstore.ErrFull, objstore.ErrReadOnly, objstore.ErrPermission, objstore.ErrBadKey,
}

func kindOf(err error) string {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	if err != nil {
		return "other"
	}
	return "done"
}

// pair makes every call on a local disk and in memory.
type pair struct {
	local, mem objstore.Bucket
}

// both makes one call on both and compares the kind of answer.
func (p pair) both(t *rapid.T, call func(b objstore.Bucket) error) {
	local, mem := call(p.local), call(p.mem)
	require.Equal(t, kindOf(local), kindOf(mem), "local: %v\nmem: %v", local, mem)
}

// tree lists a bucket with all contents; names of unfinished objects are random.
func tree(t *rapid.T, b objstore.Bucket, folder string) (lines []string) {
	require.NoError(t, b.List(ctx, folder, func(i objstore.Info) error {
		switch {
		case i.Folder:
			lines = append(append(lines, i.Key+"/"), tree(t, b, i.Key)...)
		case objstore.IsTemp(i.Key):
			lines = append(lines, "unfinished")
		default:
			data, err := b.Get(ctx, i.Key)
			require.NoError(t, err)
			require.EqualValues(t, len(data), i.Size)
			lines = append(lines, fmt.Sprintf("%s %d %x", i.Key, len(data), data[:min(len(data), 8)]))
		}
		return nil
	}))
	return lines
}

// Few names, and such that folders and objects get in each other's way.
var sharedKeys = []string{"a", "a/b", "a/b/c", "b", "b/x", "snapshot/snapshot-1", "snapshot/LATEST", "../escape", "c//d", "é"}

func (p pair) actions(written *int) map[string]func(*rapid.T) {
	key := rapid.SampledFrom(sharedKeys)
	data := func() []byte { // different for each call, the same for both buckets
		*written++
		return block(byte(*written), 1+*written*997%9000)
	}
	return map[string]func(*rapid.T){
		"put_if_absent": func(t *rapid.T) {
			k, d := key.Draw(t, "key"), data()
			p.both(t, func(b objstore.Bucket) error { return b.PutIfAbsent(ctx, k, d) })
		},
		"put_all": func(t *rapid.T) {
			var objects []objstore.Object
			for _, k := range rapid.SliceOfN(key, 0, 3).Draw(t, "keys") {
				objects = append(objects, objstore.Object{Key: k, Data: data()})
			}
			p.both(t, func(b objstore.Bucket) error { return b.PutAll(ctx, objects) })
		},
		"replace": func(t *rapid.T) {
			k, d := key.Draw(t, "key"), data()
			p.both(t, func(b objstore.Bucket) error { return b.Replace(ctx, k, d) })
		},
		"create": func(t *rapid.T) {
			k, d, abort := key.Draw(t, "key"), data(), rapid.Bool().Draw(t, "abort")
			p.both(t, func(b objstore.Bucket) error {
				w, err := b.Create(ctx, k)
				if err != nil {
					return err
				}
				defer w.Abort()
				if _, err := w.Write(d); err != nil || abort {
					return err
				}
				return w.Close()
			})
		},
		"delete": func(t *rapid.T) {
			keys := rapid.SliceOfN(key, 0, 3).Draw(t, "keys")
			p.both(t, func(b objstore.Bucket) error { return b.Delete(ctx, keys...) })
		},
		"read": func(t *rapid.T) {
			k := key.Draw(t, "key")
			var got [2][]byte
			for i, b := range []objstore.Bucket{p.local, p.mem} {
				if r, err := b.Open(ctx, k, -1); err == nil {
					got[i] = make([]byte, r.Size())
					_, err = r.ReadAt(got[i], 0)
					require.NoError(t, err)
					require.NoError(t, r.Close())
				}
			}
			require.True(t, bytes.Equal(got[0], got[1]))
			for _, call := range []func(b objstore.Bucket) error{
				func(b objstore.Bucket) error { _, err := b.Get(ctx, k); return err },
				func(b objstore.Bucket) error { _, err := b.Stat(ctx, k); return err },
				func(b objstore.Bucket) error { return b.List(ctx, k, func(objstore.Info) error { return nil }) },
			} {
				p.both(t, call)
			}
		},
		"": func(t *rapid.T) { require.Equal(t, tree(t, p.local, ""), tree(t, p.mem, "")) },
	}
}

// Whatever one does, a local disk and the disk in memory answer alike and hold
// the same objects: what is proved on the one holds for the other.
func TestLocalAndMem_RapidBehaveAlike(t *testing.T) {
	fast, _ := tryTmpfs(t, "size=64m") // on a slow disk it is as true, only slower
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp(fast, "bucket-")
		require.NoError(t, err)
		defer os.RemoveAll(root)
		// In order: side by side, PutAll may meet another of several errors first.
		local, err := objstore.NewLocal(root, objstore.LocalOptions{Parallel: 1})
		require.NoError(t, err)
		written := 0
		t.Repeat(pair{local, objstore.NewMem(objstore.MemOptions{})}.actions(&written))
	})
}
