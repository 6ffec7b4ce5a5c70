package objstore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
)

// commitObjects are the files of one small commit, as performance.md §7 measures it:
// data, deletion vectors, manifest, two lists, index manifest.
func commitObjects(i int) []objstore.Object {
	name := func(s string) string { return fmt.Sprintf("%s-%d", s, i) }
	return []objstore.Object{
		{Key: name("bucket-0/data"), Data: make([]byte, 430_000)},
		{Key: name("index/index"), Data: make([]byte, 20_000)},
		{Key: name("manifest/manifest"), Data: make([]byte, 3000)},
		{Key: name("manifest/list-0"), Data: make([]byte, 2000)},
		{Key: name("manifest/list-1"), Data: make([]byte, 2000)},
		{Key: name("manifest/index-manifest"), Data: make([]byte, 4000)},
	}
}

func BenchmarkLocal_PutAllOfOneCommit(b *testing.B) {
	for _, parallel := range []int{1, 8, 16, 32} {
		b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) {
			bucket := newLocal(b, objstore.LocalOptions{Parallel: parallel})
			i := 0
			for b.Loop() {
				require.NoError(b, bucket.PutAll(ctx, commitObjects(i)))
				i++
			}
		})
	}
}

func BenchmarkLocal_PutIfAbsent(b *testing.B) {
	bucket := newLocal(b, objstore.LocalOptions{})
	data := make([]byte, 1200)
	i := 0
	for b.Loop() {
		require.NoError(b, bucket.PutIfAbsent(ctx, fmt.Sprintf("snapshot/snapshot-%d", i), data))
		i++
	}
}

func BenchmarkLocal_Replace(b *testing.B) {
	bucket := newLocal(b, objstore.LocalOptions{})
	for b.Loop() {
		require.NoError(b, bucket.Replace(ctx, "snapshot/LATEST", []byte("4711")))
	}
}

func BenchmarkLocal_CreateAndClose(b *testing.B) {
	bucket := newLocal(b, objstore.LocalOptions{})
	chunk := make([]byte, 64<<10)
	b.SetBytes(int64(16 * len(chunk)))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		w, err := bucket.Create(ctx, fmt.Sprintf("bucket-0/data-%d", i))
		require.NoError(b, err)
		for range 16 {
			_, _ = w.Write(chunk) // Close returns the error
		}
		require.NoError(b, w.Close())
		i++
	}
}

func BenchmarkLocal_Get(b *testing.B) {
	bucket := newLocal(b, objstore.LocalOptions{})
	require.NoError(b, bucket.PutIfAbsent(ctx, "manifest/m", make([]byte, 3000)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := bucket.Get(ctx, "manifest/m")
		require.NoError(b, err)
	}
}

func BenchmarkLocal_List1000(b *testing.B) {
	bucket := newLocal(b, objstore.LocalOptions{})
	for i := range 1000 {
		require.NoError(b, bucket.Replace(ctx, fmt.Sprintf("snapshot/snapshot-%d", i), nil))
	}
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, bucket.List(ctx, "snapshot", func(objstore.Info) error { return nil }))
	}
}

// BenchmarkMem_Commit is what one commit costs a simulation.
func BenchmarkMem_Commit(b *testing.B) {
	b.ReportAllocs()
	bucket := objstore.NewMem(objstore.MemOptions{})
	objects := commitObjects(0)
	for i := range objects {
		objects[i].Data = objects[i].Data[:2000]
	}
	i := 0
	for b.Loop() {
		if i%1000 == 0 {
			bucket = objstore.NewMem(objstore.MemOptions{})
		}
		for k := range objects {
			objects[k].Key = fmt.Sprintf("manifest/%d-%d", i, k)
		}
		require.NoError(b, bucket.PutAll(ctx, objects))
		require.NoError(b, bucket.PutIfAbsent(ctx, fmt.Sprintf("snapshot/snapshot-%d", i), objects[0].Data))
		i++
	}
}
