package objstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
)

// overwriting is a store that ignores the condition of PutIfAbsent.
type overwriting struct{ objstore.Bucket }

func (o overwriting) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return o.Replace(ctx, key, data)
}

// lying says ErrExist and overwrites all the same.
type lying struct{ objstore.Bucket }

func (o lying) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	_, err := o.Stat(ctx, key)
	if e := o.Replace(ctx, key, data); e != nil {
		return e
	}
	if err == nil {
		return objstore.ErrExist
	}
	return nil
}

// forbidding cannot tell a missing object from a forbidden one.
type forbidding struct{ objstore.Bucket }

func (o forbidding) Stat(ctx context.Context, key string) (objstore.Info, error) {
	info, err := o.Bucket.Stat(ctx, key)
	if errors.Is(err, objstore.ErrNotExist) {
		err = objstore.ErrPermission
	}
	return info, err
}

// showing sees every object that one asks for.
type showing struct{ objstore.Bucket }

func (o showing) Stat(_ context.Context, key string) (objstore.Info, error) {
	return objstore.Info{Key: key}, nil
}

func TestProbe_RefusesStoresThatCannotHoldTables(t *testing.T) {
	for name, test := range map[string]struct {
		wrap func(objstore.Bucket) objstore.Bucket
		want error
		text string
	}{
		"overwrites": {func(b objstore.Bucket) objstore.Bucket { return overwriting{b} }, objstore.ErrNotExclusive, "twice"},
		"lies":       {func(b objstore.Bucket) objstore.Bucket { return lying{b} }, objstore.ErrNotExclusive, `"second" for "first"`},
		"forbids":    {func(b objstore.Bucket) objstore.Bucket { return forbidding{b} }, objstore.ErrPermission, "missing object"},
		"shows":      {func(b objstore.Bucket) objstore.Bucket { return showing{b} }, nil, "missing object"},
		"cannot create": {func(b objstore.Bucket) objstore.Bucket {
			return objstore.NewFaulty(b, objstore.Rule{Op: "put_if_absent", Err: objstore.ErrReadOnly})
		}, objstore.ErrReadOnly, "creating"},
		"second create fails": {func(b objstore.Bucket) objstore.Bucket {
			return objstore.NewFaulty(b, objstore.Rule{Op: "put_if_absent", Nth: 2, Err: errTest})
		}, errTest, "twice"},
		"cannot read": {func(b objstore.Bucket) objstore.Bucket {
			return objstore.NewFaulty(b, objstore.Rule{Op: "get", Err: errTest})
		}, errTest, "reading back"},
	} {
		t.Run(name, func(t *testing.T) {
			m := objstore.NewMem(objstore.MemOptions{})
			err := objstore.Probe(ctx, test.wrap(m), "snapshot")
			require.ErrorContains(t, err, test.text)
			if test.want != nil {
				require.ErrorIs(t, err, test.want)
			}
			require.Empty(t, objectsOf(m), "nothing is left behind")
		})
	}
}

// C15 on any store: a conditional creation that is none.
func TestFault_C15(t *testing.T) {
	m := objstore.NewMem(objstore.MemOptions{})
	for _, store := range []objstore.Bucket{overwriting{m}, lying{m}} {
		require.ErrorIs(t, objstore.Probe(ctx, store, "snapshot"), objstore.ErrNotExclusive)
		require.Empty(t, objectsOf(m))
	}
	require.NoError(t, objstore.Probe(ctx, m, "snapshot"))
}

func TestProbe_SaysWhenItCannotCleanUp(t *testing.T) {
	m := objstore.NewMem(objstore.MemOptions{})
	f := objstore.NewFaulty(m, objstore.Rule{Op: "delete", Err: errTest})
	require.ErrorIs(t, objstore.Probe(ctx, f, ""), errTest)
}

func TestProbe_CleansUpAfterTheCallerGaveUp(t *testing.T) {
	m := objstore.NewMem(objstore.MemOptions{})
	gone, cancel := context.WithCancel(ctx)
	f := objstore.NewFaulty(m, objstore.Rule{Op: "get", Do: func(string, string) { cancel() }})
	require.ErrorIs(t, objstore.Probe(gone, f, ""), context.Canceled)
	require.Empty(t, objectsOf(m))
}
