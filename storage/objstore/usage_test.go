package objstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A bucket counts what its calls ask of the store, and the bytes of objects that move.
func TestUsage_CountsCallsAndBytes(t *testing.T) {
	ctx := context.Background()
	b, err := NewLocal(t.TempDir(), LocalOptions{})
	require.NoError(t, err)
	require.NoError(t, b.PutAll(ctx, []Object{{"a", []byte("four")}, {"b", []byte("sixsix")}}))
	require.NoError(t, b.PutIfAbsent(ctx, "c", []byte("x")))
	require.ErrorIs(t, b.PutIfAbsent(ctx, "c", []byte("x")), ErrExist)
	before := b.Usage()
	require.Equal(t, Usage{Writes: 3, WrittenBytes: 12}, before, "a call that fails is one, too")
	_, err = b.Get(ctx, "a")
	require.NoError(t, err)
	_, err = b.Stat(ctx, "b")
	require.NoError(t, err)
	_, err = b.Get(ctx, "none")
	require.ErrorIs(t, err, ErrNotExist)
	require.Equal(t, Usage{Reads: 3, ReadBytes: 4}, b.Usage().Since(before))
	require.NoError(t, b.Delete(ctx, "a", "b"))
	require.Equal(t, Usage{Reads: 3, Writes: 1, ReadBytes: 4}, b.Usage().Since(before))
}
