package objstore_test

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/objstore/objstoretest"
)

var errTest = errors.New("test")

func TestFaulty_ConformanceWithoutRules(t *testing.T) {
	objstoretest.Run(t, func(*testing.T) objstore.Bucket {
		return objstore.NewFaulty(objstore.NewMem(objstore.MemOptions{}))
	})
}

// everyCall makes each call of a bucket once and returns its error by name.
func everyCall(b objstore.Bucket) map[string]error {
	errs := map[string]error{}
	_, errs["get"] = b.Get(ctx, "old/a")
	_, errs["stat"] = b.Stat(ctx, "old/a")
	errs["list"] = b.List(ctx, "old", func(objstore.Info) error { return nil })
	errs["put_all"] = b.PutAll(ctx, []objstore.Object{{Key: "new/put"}})
	errs["put_if_absent"] = b.PutIfAbsent(ctx, "new/published", nil)
	errs["replace"] = b.Replace(ctx, "new/replaced", nil)
	errs["delete"] = b.Delete(ctx, "old/deleted")
	r, err := b.Open(ctx, "old/a", -1)
	errs["open"] = err
	if err == nil {
		_, err := r.ReadAt(make([]byte, 1), 0)
		errs["read"] = err
		_ = r.Close()
	}
	w, err := b.Create(ctx, "new/created")
	errs["create"] = err
	if err == nil {
		_, errs["write"] = w.Write([]byte("x"))
		errs["close"] = w.Close()
	}
	return errs
}

func faulty(t *testing.T, rules ...objstore.Rule) (*objstore.Faulty, *objstore.Mem) {
	m := objstore.NewMem(objstore.MemOptions{})
	putMem(t, m, "old/a", []byte("a"))
	putMem(t, m, "old/deleted", nil)
	return objstore.NewFaulty(m, rules...), m
}

func TestFaulty_RuleByOperation(t *testing.T) {
	f, _ := faulty(t)
	calm := everyCall(f)
	require.Len(t, calm, 12)
	for op, err := range calm {
		require.NoError(t, err, op)
	}
	for op := range calm {
		for _, after := range []bool{false, true} {
			f, _ := faulty(t, objstore.Rule{Op: op, Err: errTest, After: after})
			for got, err := range everyCall(f) {
				// A writer whose Write failed says so again at Close.
				if got == op || op == "write" && got == "close" {
					require.ErrorIs(t, err, errTest, "%s with a rule for %s", got, op)
				} else {
					require.NoError(t, err, "%s with a rule for %s", got, op)
				}
			}
		}
	}
}

func TestFaulty_BeforeAndAfterTheEffect(t *testing.T) {
	for _, after := range []bool{false, true} {
		f, m := faulty(t, objstore.Rule{Key: "new/*", Err: errTest, After: after}, objstore.Rule{Op: "delete", Err: errTest, After: after})
		everyCall(f)
		got := objectsOf(m)
		for _, key := range []string{"new/put", "new/published", "new/replaced"} {
			_, there := got[key]
			require.Equal(t, after, there, key)
		}
		_, there := got["old/deleted"]
		require.Equal(t, !after, there)
	}
	f, m := faulty(t, objstore.Rule{Op: "close", Err: errTest, After: true})
	everyCall(f)
	require.Contains(t, objectsOf(m), "new/created", "the answer is lost, the object is there")
	f, m = faulty(t, objstore.Rule{Op: "write", Err: errTest, After: true})
	everyCall(f)
	require.NotContains(t, objectsOf(m), "new/created", "what could not be written is not published")
}

func TestFaulty_NthCallOnly(t *testing.T) {
	f, _ := faulty(t, objstore.Rule{Op: "put_if_absent", Key: "snapshot/*", Nth: 2, Err: errTest})
	require.NoError(t, f.PutIfAbsent(ctx, "manifest/x", nil))
	require.NoError(t, f.PutIfAbsent(ctx, "snapshot/1", nil))
	require.ErrorIs(t, f.PutIfAbsent(ctx, "snapshot/2", nil), errTest)
	require.NoError(t, f.PutIfAbsent(ctx, "snapshot/3", nil))
	require.Equal(t, []string{
		"put_if_absent manifest/x", "put_if_absent snapshot/1", "put_if_absent snapshot/2", "put_if_absent snapshot/3",
	}, f.Calls())
	f.Clear()
	f.Add(objstore.Rule{Err: errTest})
	require.ErrorIs(t, f.PutIfAbsent(ctx, "snapshot/4", nil), errTest)
	f.Clear()
	require.NoError(t, f.PutIfAbsent(ctx, "snapshot/4", nil))
}

func TestFaulty_PartOfPutAllAndDelete(t *testing.T) {
	objects := []objstore.Object{{Key: "new/1"}, {Key: "new/2"}, {Key: "new/3"}}
	f, m := faulty(t, objstore.Rule{Op: "put_all", Key: "new/2", Err: syscall.ENOSPC})
	require.ErrorIs(t, f.PutAll(ctx, objects), syscall.ENOSPC)
	require.Contains(t, objectsOf(m), "new/1")
	require.NotContains(t, objectsOf(m), "new/2")
	require.Contains(t, objectsOf(m), "new/3")

	f.Add(objstore.Rule{Op: "delete", Key: "new/1", Err: errTest})
	require.ErrorIs(t, f.Delete(ctx, "new/1", "new/3"), errTest)
	require.Contains(t, objectsOf(m), "new/1")
	require.NotContains(t, objectsOf(m), "new/3")
}

func TestFaulty_DoSeesTheMomentBefore(t *testing.T) {
	var f *objstore.Faulty
	f, m := faulty(t, objstore.Rule{Op: "put_if_absent", Nth: 1, Do: func(_, key string) {
		if err := f.PutIfAbsent(ctx, key, []byte("theirs")); err != nil {
			t.Error(err)
		}
	}})
	require.ErrorIs(t, f.PutIfAbsent(ctx, "snapshot/snapshot-1", []byte("ours")), objstore.ErrExist)
	require.Equal(t, "theirs", string(objectsOf(m)["snapshot/snapshot-1"]))
}

func TestFaulty_DelayEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, m := faulty(t, objstore.Rule{Op: "put_if_absent", Delay: time.Minute})
		begin := time.Now()
		require.NoError(t, f.PutIfAbsent(ctx, "a", nil))
		require.Equal(t, time.Minute, time.Since(begin))
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, f.PutIfAbsent(short, "b", nil), context.DeadlineExceeded)
		require.NotContains(t, objectsOf(m), "b")
	})
}

func TestFaulty_ReaderFaults(t *testing.T) {
	f, _ := faulty(t, objstore.Rule{Op: "read", Nth: 2, Err: errIO})
	r, err := f.Open(ctx, "old/a", -1)
	require.NoError(t, err)
	defer r.Close()
	p := make([]byte, 1)
	n, err := r.ReadAt(p, 0)
	require.True(t, n == 1 && (err == nil || errors.Is(err, io.EOF)))
	_, err = r.ReadAt(p, 0)
	require.ErrorIs(t, err, errIO)
	_, err = r.ReadAt(p, 0)
	require.NotErrorIs(t, err, errIO)
}

func TestFaulty_RefusesABadPattern(t *testing.T) {
	require.Panics(t, func() { objstore.NewFaulty(nil, objstore.Rule{Key: "[a"}) })
}
