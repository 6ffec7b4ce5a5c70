package objstore_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/objstore/objstoretest"
)

func TestMem_Conformance(t *testing.T) {
	objstoretest.Run(t, func(*testing.T) objstore.Bucket {
		return objstore.NewMem(objstore.MemOptions{})
	})
}

func TestMem_NeverMakesItsRoot(t *testing.T) {
	m := objstore.NewMem(objstore.MemOptions{})
	putMem(t, m, "snapshot/snapshot-1", nil)
	require.NoError(t, m.RemoveAll(""))
	requireRootGone(t, m)
	requireRootGone(t, m.Crash(nil, 0))
	require.Empty(t, objectsOf(m))
}

func TestMem_RemoveAll(t *testing.T) {
	m := objstore.NewMem(objstore.MemOptions{})
	for _, key := range []string{"dt=1/bucket-0/a", "dt=1/bucket-1/b", "dt=2/c"} {
		putMem(t, m, key, nil)
	}
	require.NoError(t, m.RemoveAll("dt=1"))
	require.NoError(t, m.RemoveAll("nothing/at/all"))
	require.NoError(t, m.RemoveAll("dt=2/c/below"))
	require.Len(t, objectsOf(m), 1)
	require.Len(t, objectsOf(m.Crash(nil, 0)), 3, "nothing of it was synced")
	require.NoError(t, m.RemoveAll("dt=2/c"))
	require.Empty(t, objectsOf(m))
}

// neverSyncing is a user of a disk whose syncs do nothing, as a writer that never syncs.
func neverSyncing(disk *objstore.Mem) *objstore.Mem {
	return disk.Attach(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
		return objstore.Fault{Lie: op.Kind == objstore.OpSync}
	}})
}

// torn writes an object of several blocks that is never synced.
func torn(t *testing.T, blocks int) *objstore.Mem {
	m := objstore.NewMem(objstore.MemOptions{})
	putMem(t, m, "hint", block('o', 4096))
	require.NoError(t, neverSyncing(m).Replace(ctx, "hint", block('n', 4096*blocks)))
	return m
}

func TestMemCrash_BlocksLengthsAndEntriesSurviveEachForThemselves(t *testing.T) {
	const blocks = 4
	m := torn(t, blocks)
	seen := map[string]int{}
	for seed := range uint64(400) {
		objects := objectsOf(m.Crash(rand.New(rand.NewPCG(seed, 1)), 0.5))
		data, ok := objects["hint"]
		switch {
		case !ok:
			seen["none"]++
		case bytes.Equal(data, block('o', 4096)):
			seen["old"]++
		case len(data) == 0:
			seen["new, empty"]++
		default:
			require.Len(t, data, 4096*blocks)
			lost := 0
			for b := range blocks {
				part := data[b*4096 : (b+1)*4096]
				if bytes.Equal(part, make([]byte, 4096)) {
					lost++
				} else {
					require.True(t, bytes.Equal(block('n', 4096), part), "a block is there or not")
				}
			}
			seen[fmt.Sprintf("new, %d of %d blocks lost", lost, blocks)]++
		}
	}
	for _, outcome := range []string{
		"old", "new, empty", "new, 0 of 4 blocks lost", "new, 2 of 4 blocks lost", "new, 4 of 4 blocks lost",
	} {
		require.Positive(t, seen[outcome], "%s never happened: %v", outcome, seen)
	}
	requireSame(t, map[string][]byte{"hint": block('o', 4096)}, objectsOf(m.Crash(nil, 0)))
	requireSame(t, map[string][]byte{"hint": block('n', 4096*blocks)}, objectsOf(m.Crash(nil, 1)))
	requireSame(t, map[string][]byte{"hint": block('n', 4096*blocks)}, objectsOf(m), "the old disk is as it was")
}

func TestMemCrash_RenameMayLeaveTheOldNameTheNewOneBothOrNone(t *testing.T) {
	disk := objstore.NewMem(objstore.MemOptions{})
	m := disk.Attach(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
		if op.Kind == objstore.OpRename { // another process syncs the folder at this moment
			putMem(t, disk, "other", nil)
		}
		return objstore.Fault{}
	}})
	require.NoError(t, m.Replace(ctx, "hint", nil))
	seen := map[string]int{}
	for seed := range uint64(100) {
		names := ""
		for key := range objectsOf(m.Crash(rand.New(rand.NewPCG(seed, 1)), 0.5)) {
			switch {
			case key == "hint":
				names = "new " + names
			case objstore.IsTemp(key):
				names += "old"
			}
		}
		seen[names]++
	}
	require.Len(t, seen, 4, "%v", seen)
}

func TestMemCrash_IsTheSameForTheSameSeed(t *testing.T) {
	m := torn(t, 30)
	for i := range 50 {
		require.NoError(t, m.Replace(ctx, fmt.Sprintf("consumer/%d", i), block('c', 5000)))
	}
	for seed := range uint64(5) {
		crash := func() *objstore.Mem { return m.Crash(rand.New(rand.NewPCG(seed, 1)), 0.5) }
		requireSame(t, objectsOf(crash()), objectsOf(crash()))
	}
}

func TestMemCrash_WhatSurvivesIsDurable(t *testing.T) {
	m := torn(t, 3)
	once := m.Crash(rand.New(rand.NewPCG(1, 1)), 0.5)
	requireSame(t, objectsOf(once), objectsOf(once.Crash(nil, 0)))
}

// Linux forgets what it could not write: the next sync says yes.
func TestMem_SyncAfterAFailedSyncLies(t *testing.T) {
	failed := false
	m := objstore.NewMem(objstore.MemOptions{Fault: func(op objstore.Op) (f objstore.Fault) {
		// The sync is not carried out but the caller is told so only the first time.
		if op.Kind == objstore.OpSync && !failed {
			failed = true
			f.Err = errIO
		}
		return f
	}})
	w, err := m.Create(ctx, "data")
	require.NoError(t, err)
	_, err = w.Write(block('d', 100_000))
	require.NoError(t, err)
	require.ErrorIs(t, w.Close(), errIO, "the writer must not try again")
	require.NoError(t, m.PutAll(ctx, []objstore.Object{{Key: "data", Data: block('d', 100_000)}}), "but a new file is fine")
	require.True(t, bytes.Equal(block('d', 100_000), objectsOf(m.Crash(nil, 0))["data"]))
}

func TestMem_LyingSync(t *testing.T) {
	lie := func(kind objstore.OpKind) *objstore.Mem {
		m := objstore.NewMem(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
			return objstore.Fault{Lie: op.Kind == kind}
		}})
		putMem(t, m, "snapshot/snapshot-1", block('s', 5000))
		return m.Crash(nil, 0)
	}
	require.Empty(t, objectsOf(lie(objstore.OpSyncDir)))
	require.Empty(t, objectsOf(lie(objstore.OpSync))["snapshot/snapshot-1"], "the name is there, the contents are not")
	require.Contains(t, objectsOf(lie(objstore.OpSync)), "snapshot/snapshot-1")
}

func TestMem_DelayedPublishArrivesLater(t *testing.T) {
	delay := func(op objstore.Op) objstore.Fault { return objstore.Fault{Delay: op.Kind == objstore.OpLink} }
	start := func(t *testing.T) (*objstore.Mem, *objstore.Delayed) {
		m := objstore.NewMem(objstore.MemOptions{Fault: delay})
		err := m.PutIfAbsent(ctx, "snapshot/snapshot-1", []byte("late"))
		require.Error(t, err)
		require.NotErrorIs(t, err, objstore.ErrExist)
		_, err = m.Get(ctx, "snapshot/snapshot-1")
		require.ErrorIs(t, err, objstore.ErrNotExist)
		require.Len(t, m.Delayed(), 1)
		require.Equal(t, "snapshot/snapshot-1", m.Delayed()[0].Key)
		return m, m.Delayed()[0]
	}
	t.Run("into the free name", func(t *testing.T) {
		m, late := start(t)
		require.NoError(t, late.Apply(m))
		require.ErrorIs(t, late.Apply(m), objstore.ErrExist)
		require.ErrorIs(t, m.Attach(objstore.MemOptions{}).PutIfAbsent(ctx, "snapshot/snapshot-1", nil), objstore.ErrExist)
	})
	t.Run("after the caller's next try", func(t *testing.T) {
		m, late := start(t)
		putMem(t, m.Attach(objstore.MemOptions{}), "snapshot/snapshot-1", []byte("again"))
		require.ErrorIs(t, late.Apply(m), objstore.ErrExist)
		require.Equal(t, "again", string(objectsOf(m)["snapshot/snapshot-1"]))
	})
	t.Run("after crash and restart", func(t *testing.T) {
		m, late := start(t)
		putMem(t, m.Attach(objstore.MemOptions{}), "snapshot/other", nil)
		after := m.Crash(nil, 0)
		require.NoError(t, late.Apply(after))
		require.Equal(t, "late", string(objectsOf(after.Crash(nil, 0))["snapshot/snapshot-1"]), "it arrives durable")
		require.Empty(t, after.Delayed())
	})
	t.Run("its folder is gone", func(t *testing.T) {
		m, late := start(t)
		require.ErrorIs(t, late.Apply(m.Crash(nil, 0)), objstore.ErrNotExist)
	})
	t.Run("with an error of the caller's choice", func(t *testing.T) {
		m := objstore.NewMem(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
			return objstore.Fault{Delay: op.Kind == objstore.OpLink, Err: syscall.ETIMEDOUT}
		}})
		require.ErrorIs(t, m.PutIfAbsent(ctx, "a", nil), syscall.ETIMEDOUT)
	})
}

func TestMem_KilledUserLeavesTheDiskToOthers(t *testing.T) {
	disk := objstore.NewMem(objstore.MemOptions{})
	victim := disk.Attach(objstore.MemOptions{Fault: crashAt(objstore.OpSync)})
	other := disk.Attach(objstore.MemOptions{})
	require.ErrorIs(t, victim.PutIfAbsent(ctx, "snapshot/snapshot-1", []byte("victim")), objstore.ErrCrashed)
	require.True(t, victim.Crashed())
	ops := victim.Ops()
	require.ErrorIs(t, victim.Replace(ctx, "x", nil), objstore.ErrCrashed)
	_, err := victim.Get(ctx, "snapshot/snapshot-1")
	require.ErrorIs(t, err, objstore.ErrCrashed)
	require.Greater(t, victim.Ops(), ops)
	require.False(t, other.Crashed())
	putMem(t, other, "snapshot/snapshot-1", []byte("other"))
	require.Len(t, objectsOf(disk), 2, "and the victim's temporary file")
}

func TestMem_CloneIsAnotherFuture(t *testing.T) {
	m := torn(t, 2)
	clone := m.Clone()
	require.NoError(t, clone.Replace(ctx, "only/there", nil)) // syncs nothing
	require.NoError(t, m.Replace(ctx, "only/here", nil))
	require.NotContains(t, objectsOf(m), "only/there")
	require.NotContains(t, objectsOf(clone), "only/here")
	require.True(t, bytes.Equal(block('o', 4096), objectsOf(clone.Crash(nil, 0))["hint"]), "the unsynced state is cloned too")
	require.True(t, bytes.Equal(block('n', 8192), objectsOf(clone)["hint"]))
}

// A writer that goes on after a clone was taken does not write into the clone.
func TestMem_CloneDuringAWrite(t *testing.T) {
	m := objstore.NewMem(objstore.MemOptions{})
	w, err := m.Create(ctx, "data")
	require.NoError(t, err)
	_, err = w.Write(block('a', 70_000))
	require.NoError(t, err)
	clone := m.Clone()
	before := objectsOf(clone)
	_, err = w.Write(block('b', 200_000))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	requireSame(t, before, objectsOf(clone))
	require.Len(t, objectsOf(m)["data"], 270_000)
}

func TestMem_TimesComeFromTheClock(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := objstore.NewMem(objstore.MemOptions{Now: func() time.Time { return now }})
	putMem(t, m, "a", []byte("x"))
	now = now.Add(time.Hour)
	putMem(t, m, "b", nil)
	later := m.Crash(nil, 0)
	now = now.Add(time.Hour)
	putMem(t, later, "c", nil)
	for i, key := range []string{"a", "b", "c"} {
		info, err := later.Stat(ctx, key)
		require.NoError(t, err)
		require.Equal(t, time.Date(2026, 1, 2, 3+i, 4, 5, 0, time.UTC), info.Modified)
	}
	info, err := objstore.NewMem(objstore.MemOptions{}).Stat(ctx, "a")
	require.ErrorIs(t, err, objstore.ErrNotExist)
	require.Zero(t, info)
}

// The same program sees the same run: operations, their order, temporary names.
func TestMem_IsDeterministic(t *testing.T) {
	run := func() (trace []string) {
		m := objstore.NewMem(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
			trace = append(trace, fmt.Sprint(op.N, " ", op))
			return objstore.Fault{}
		}})
		var objects []objstore.Object
		for i := range 100 {
			objects = append(objects, objstore.Object{Key: fmt.Sprintf("dt=%d/bucket-0/%d", i%7, i), Data: block('x', i)})
		}
		require.NoError(t, m.PutAll(ctx, objects))
		putMem(t, m, "snapshot/snapshot-1", nil)
		require.NoError(t, m.Delete(ctx, "dt=1/bucket-0/1", "dt=0/bucket-0/0"))
		return trace
	}
	require.Equal(t, run(), run())
}

func TestMem_ManyUsersAtOnce(t *testing.T) {
	disk := objstore.NewMem(objstore.MemOptions{})
	var wg sync.WaitGroup
	for u := range 8 {
		wg.Go(func() {
			m := disk.Attach(objstore.MemOptions{Fault: func(objstore.Op) objstore.Fault { return objstore.Fault{} }})
			for i := range 50 {
				key := fmt.Sprintf("u%d/%d", u, i)
				if err := m.PutAll(ctx, []objstore.Object{{Key: key, Data: block(byte(u), 5000)}}); err != nil {
					t.Error(err)
				}
				if data, err := m.Get(ctx, key); err != nil || len(data) != 5000 {
					t.Error(len(data), err)
				}
				if i%10 == 0 {
					disk.Crash(rand.New(rand.NewPCG(1, 1)), 0.5)
					disk.Clone()
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, objectsOf(disk.Crash(nil, 0)), 400)
}

func TestMemCrash_AReplacedObjectIsNeverTorn(t *testing.T) {
	m := objstore.NewMem(objstore.MemOptions{})
	putMem(t, m, "consumer/c", block('o', 3000))
	require.NoError(t, m.Replace(ctx, "consumer/c", block('n', 9000)))
	for seed := range uint64(200) {
		got := objectsOf(m.Crash(rand.New(rand.NewPCG(seed, 1)), 0.5))["consumer/c"]
		require.True(t, bytes.Equal(got, block('o', 3000)) || bytes.Equal(got, block('n', 9000)), "%d bytes", len(got))
	}
}

func TestMemCrash_SyncMakesAForeignObjectDurable(t *testing.T) {
	m := objstore.NewMem(objstore.MemOptions{})
	java := m.Attach(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
		return objstore.Fault{Lie: op.Kind == objstore.OpSync || op.Kind == objstore.OpSyncDir}
	}})
	require.NoError(t, java.PutIfAbsent(ctx, "snapshot/snapshot-1", block('s', 5000)))
	require.NotContains(t, objectsOf(m.Crash(nil, 0)), "snapshot/snapshot-1")
	require.NoError(t, m.Sync(ctx, "snapshot/snapshot-1"))
	require.True(t, bytes.Equal(block('s', 5000), objectsOf(m.Crash(nil, 0))["snapshot/snapshot-1"]))
	require.ErrorIs(t, m.Sync(ctx, "snapshot/snapshot-1", "snapshot/snapshot-2"), objstore.ErrNotExist)
}

func TestMem_RestoreBringsBackATreeForEveryUser(t *testing.T) {
	m := objstore.NewMem(objstore.MemOptions{})
	user := m.Attach(objstore.MemOptions{})
	putMem(t, m, "snapshot/snapshot-1", []byte("one"))
	backup := m.Clone()
	require.NoError(t, m.RemoveAll(""))
	require.ErrorIs(t, user.PutIfAbsent(ctx, "snapshot/snapshot-2", nil), objstore.ErrNotExist)
	m.Restore(backup)
	putMem(t, user, "snapshot/snapshot-2", []byte("two"))
	require.Len(t, objectsOf(m.Crash(nil, 0)), 2)
	require.Len(t, objectsOf(backup), 1, "the backup is not touched")
}
