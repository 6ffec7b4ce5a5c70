package objstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/objstore"
)

// The calls of Local and Mem are built from the same primitive operations in the
// same order, so these crash tests of Mem speak for both.

func block(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }

// crashCase is one call whose every primitive operation is a moment to crash at.
type crashCase struct {
	name  string
	setup func(t *testing.T, m *objstore.Mem)
	call  func(m *objstore.Mem) error
	// whole: keys that are there complete or not at all, whatever happens.
	whole map[string][]byte
	// done: keys that must be there once the call said nil; nil data means gone.
	done map[string][]byte
}

var crashCases = []crashCase{
	{
		name:  "put_if_absent in a new folder",
		call:  func(m *objstore.Mem) error { return m.PutIfAbsent(ctx, "snapshot/snapshot-1", block('s', 9000)) },
		whole: map[string][]byte{"snapshot/snapshot-1": block('s', 9000)},
		done:  map[string][]byte{"snapshot/snapshot-1": block('s', 9000)},
	},
	{
		name:  "put_if_absent beside another",
		setup: func(t *testing.T, m *objstore.Mem) { putMem(t, m, "snapshot/snapshot-1", block('1', 5000)) },
		call:  func(m *objstore.Mem) error { return m.PutIfAbsent(ctx, "snapshot/snapshot-2", block('2', 5000)) },
		whole: map[string][]byte{"snapshot/snapshot-1": block('1', 5000), "snapshot/snapshot-2": block('2', 5000)},
		done:  map[string][]byte{"snapshot/snapshot-1": block('1', 5000), "snapshot/snapshot-2": block('2', 5000)},
	},
	{
		name: "put_if_absent again after an unknown outcome",
		setup: func(t *testing.T, m *objstore.Mem) {
			// Linked, but the folder could not be synced.
			u := m.Attach(objstore.MemOptions{Fault: failAt(objstore.OpSyncDir, "snapshot", errIO)})
			require.ErrorIs(t, u.PutIfAbsent(ctx, "snapshot/snapshot-1", block('s', 5000)), errIO)
		},
		call: func(m *objstore.Mem) error {
			if err := m.PutIfAbsent(ctx, "snapshot/snapshot-1", block('s', 5000)); !errors.Is(err, objstore.ErrExist) {
				return fmt.Errorf("not there after an unknown outcome: %w", err)
			}
			return nil // the caller reads it, finds its own, and counts it as committed
		},
		whole: map[string][]byte{"snapshot/snapshot-1": block('s', 5000)},
		done:  map[string][]byte{"snapshot/snapshot-1": block('s', 5000)},
	},
	{
		name: "put_all in old and new folders",
		setup: func(t *testing.T, m *objstore.Mem) {
			require.NoError(t, m.PutAll(ctx, []objstore.Object{{Key: "manifest/m-0", Data: block('0', 100)}}))
		},
		call: func(m *objstore.Mem) error {
			return m.PutAll(ctx, []objstore.Object{
				{Key: "manifest/m-1", Data: block('m', 5000)},
				{Key: "dt=1/bucket-0/data-1", Data: block('d', 20_000)},
				{Key: "dt=1/bucket-0/data-2"},
				{Key: "top", Data: block('t', 10)},
			})
		},
		whole: map[string][]byte{"manifest/m-0": block('0', 100)},
		done: map[string][]byte{
			"manifest/m-0": block('0', 100), "manifest/m-1": block('m', 5000), "dt=1/bucket-0/data-1": block('d', 20_000),
			"dt=1/bucket-0/data-2": {}, "top": block('t', 10),
		},
	},
	{
		name: "put_all in a folder that a killed process has made",
		setup: func(t *testing.T, m *objstore.Mem) {
			u := m.Attach(objstore.MemOptions{Fault: crashAt(objstore.OpWrite)})
			require.ErrorIs(t, u.PutAll(ctx, []objstore.Object{{Key: "dt=1/bucket-0/lost", Data: block('l', 1)}}), objstore.ErrCrashed)
		},
		call: func(m *objstore.Mem) error {
			return m.PutAll(ctx, []objstore.Object{{Key: "dt=1/bucket-0/data-1", Data: block('d', 5000)}})
		},
		done: map[string][]byte{"dt=1/bucket-0/data-1": block('d', 5000)},
	},
	{
		name: "put_all in a folder that was removed and made again by another engine",
		setup: func(t *testing.T, m *objstore.Mem) {
			require.NoError(t, m.PutAll(ctx, []objstore.Object{{Key: "dt=1/bucket-0/old"}}))
		},
		call: func(m *objstore.Mem) error {
			// The first call lets this user know the folder as durable.
			if err := m.PutAll(ctx, []objstore.Object{{Key: "dt=1/bucket-0/first"}}); err != nil {
				return err
			}
			if err := m.RemoveAll("dt=1"); err != nil {
				return err
			}
			foreign := m.Attach(objstore.MemOptions{})
			if err := foreign.Replace(ctx, "dt=1/bucket-0/foreign", nil); err != nil { // syncs nothing
				return err
			}
			return m.PutAll(ctx, []objstore.Object{{Key: "dt=1/bucket-0/data-1", Data: block('d', 5000)}})
		},
		done: map[string][]byte{"dt=1/bucket-0/data-1": block('d', 5000)},
	},
	{
		name: "create",
		call: func(m *objstore.Mem) error {
			w, err := m.Create(ctx, "bucket-0/data-1")
			if err != nil {
				return err
			}
			defer w.Abort()
			for range 5 {
				if _, err := w.Write(block('d', 40_000)); err != nil {
					return err
				}
			}
			return w.Close()
		},
		whole: map[string][]byte{"bucket-0/data-1": block('d', 200_000)},
		done:  map[string][]byte{"bucket-0/data-1": block('d', 200_000)},
	},
	{
		name: "delete again after a killed process",
		setup: func(t *testing.T, m *objstore.Mem) {
			putMem(t, m, "bucket-0/a", block('x', 5000))
			require.ErrorIs(t, m.Attach(objstore.MemOptions{Fault: crashAt(objstore.OpSyncDir)}).Delete(ctx, "bucket-0/a"), objstore.ErrCrashed)
		},
		call: func(m *objstore.Mem) error { return m.Delete(ctx, "bucket-0/a") },
		done: map[string][]byte{"bucket-0/a": nil},
	},
	{
		name: "delete",
		setup: func(t *testing.T, m *objstore.Mem) {
			for _, key := range []string{"snapshot/snapshot-1", "snapshot/snapshot-2", "bucket-0/a"} {
				putMem(t, m, key, block('x', 5000))
			}
		},
		call: func(m *objstore.Mem) error { return m.Delete(ctx, "bucket-0/a", "snapshot/snapshot-1", "no/thing") },
		whole: map[string][]byte{
			"snapshot/snapshot-1": block('x', 5000), "snapshot/snapshot-2": block('x', 5000), "bucket-0/a": block('x', 5000),
		},
		done: map[string][]byte{"snapshot/snapshot-2": block('x', 5000), "snapshot/snapshot-1": nil, "bucket-0/a": nil},
	},
}

func putMem(t *testing.T, m *objstore.Mem, key string, data []byte) {
	t.Helper()
	require.NoError(t, m.PutIfAbsent(ctx, key, data))
}

func crashAt(kind objstore.OpKind) func(objstore.Op) objstore.Fault {
	return func(op objstore.Op) objstore.Fault { return objstore.Fault{Crash: op.Kind == kind} }
}

func objectsOf(m *objstore.Mem) map[string][]byte {
	objects := map[string][]byte{}
	m.Walk(func(key string, data []byte) { objects[key] = append([]byte{}, data...) }) // nil is for what is not there
	return objects
}

// requireSame compares objects without printing their bytes.
func requireSame(t *testing.T, want, got map[string][]byte, moment ...any) {
	t.Helper()
	sizes := func(objects map[string][]byte) map[string]int {
		m := map[string]int{}
		for key, data := range objects {
			m[key] = len(data)
		}
		return m
	}
	require.Equal(t, sizes(want), sizes(got), moment...)
	for key, data := range want {
		if !bytes.Equal(data, got[key]) {
			require.Fail(t, key+" has other bytes", moment...)
		}
	}
}

// check holds a disk after a crash against the promises of a case.
func (c crashCase) check(t *testing.T, disk *objstore.Mem, err error, moment string) {
	t.Helper()
	got := objectsOf(disk)
	for key, want := range c.whole {
		if data, ok := got[key]; ok {
			require.True(t, bytes.Equal(want, data), "%s: %s is there, but not whole", moment, key)
		}
	}
	if err != nil {
		return
	}
	for key, want := range c.done {
		data, ok := got[key]
		require.Equal(t, want != nil, ok, "%s: %s there or not", moment, key)
		require.True(t, bytes.Equal(want, data), "%s: %s is not whole", moment, key)
	}
}

func TestFault_B1(t *testing.T) {
	for _, c := range crashCases {
		t.Run(c.name, func(t *testing.T) {
			base := objstore.NewMem(objstore.MemOptions{})
			if c.setup != nil {
				c.setup(t, base)
			}
			calm := base.Clone().Attach(objstore.MemOptions{})
			require.NoError(t, c.call(calm))
			ops := calm.Ops()
			require.Greater(t, ops, int64(1))
			for n := int64(1); n <= ops+1; n++ {
				for _, applied := range []bool{false, true} {
					m := base.Clone().Attach(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
						return objstore.Fault{Crash: op.N == n, Applied: applied}
					}})
					err := c.call(m)
					require.Equal(t, n <= ops, m.Crashed())
					if n > ops {
						require.NoError(t, err)
					}
					c.checkAll(t, m, err, fmt.Sprintf("crash at %d of %d, applied %v", n, ops, applied))
				}
			}
		})
	}
}

// checkAll looks at a kill of the process and at many power cuts.
func (c crashCase) checkAll(t *testing.T, m *objstore.Mem, err error, moment string) {
	t.Helper()
	c.check(t, m.Attach(objstore.MemOptions{}), err, moment+", killed")
	for _, survive := range []float64{0, 0.1, 0.5, 0.9, 1} {
		for seed := range uint64(6) {
			c.check(t, m.Crash(rand.New(rand.NewPCG(seed, 1)), survive), err, fmt.Sprintf("%s, power cut %v/%d", moment, survive, seed))
			if survive == 0 || survive == 1 {
				break
			}
		}
	}
}

// After a crash at any moment, another process can do the same call again.
func TestCrash_PublishingAgainAfterACrashIsDurable(t *testing.T) {
	data := block('s', 6000)
	publish := func(m *objstore.Mem) error { return m.PutIfAbsent(ctx, "snapshot/snapshot-1", data) }
	calm := objstore.NewMem(objstore.MemOptions{})
	require.NoError(t, publish(calm))
	won := 0
	for n := range calm.Ops() {
		first := objstore.NewMem(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
			return objstore.Fault{Crash: op.N == n+1}
		}})
		_ = publish(first) // whatever became of it
		for _, survive := range []float64{0, 0.5, 1} {
			disk := first.Attach(objstore.MemOptions{})
			if survive < 1 {
				disk = first.Crash(rand.New(rand.NewPCG(uint64(n), 2)), survive)
			}
			if err := publish(disk); !errors.Is(err, objstore.ErrExist) {
				require.NoError(t, err)
				won++
			}
			after := disk.Crash(nil, 0)
			require.True(t, bytes.Equal(data, objectsOf(after)["snapshot/snapshot-1"]))
		}
	}
	require.Positive(t, won)
}

// Another writer publishes the same name at every moment of ours.
func TestCrash_OneWinnerWhateverTheMoment(t *testing.T) {
	calm := objstore.NewMem(objstore.MemOptions{})
	require.NoError(t, calm.PutIfAbsent(ctx, "snapshot/snapshot-1", []byte("ours")))
	outcomes := map[bool]int{}
	for n := int64(1); n <= calm.Ops(); n++ {
		disk := objstore.NewMem(objstore.MemOptions{})
		var theirs error
		ours := disk.Attach(objstore.MemOptions{Fault: func(op objstore.Op) objstore.Fault {
			if op.N == n {
				theirs = disk.PutIfAbsent(ctx, "snapshot/snapshot-1", []byte("theirs"))
			}
			return objstore.Fault{}
		}}).PutIfAbsent(ctx, "snapshot/snapshot-1", []byte("ours"))
		want := "ours"
		if theirs == nil {
			want = "theirs"
			require.ErrorIs(t, ours, objstore.ErrExist)
		} else {
			require.ErrorIs(t, theirs, objstore.ErrExist)
			require.NoError(t, ours)
		}
		outcomes[theirs == nil]++
		requireSame(t, map[string][]byte{"snapshot/snapshot-1": []byte(want)}, objectsOf(disk.Crash(nil, 0)), "moment %d", n)
	}
	require.Positive(t, outcomes[true])
	require.Positive(t, outcomes[false])
}

// Published names and names of PutAll are never the same ones: the latter are unique.
var (
	published = []string{"a", "snapshot/snapshot-1", "snapshot/snapshot-2", "dt=1/bucket-0/p"}
	written   = []string{"b", "dt=1/bucket-0/x", "dt=1/bucket-0/y", "dt=2/bucket-0/x", "dt=2/z", "snapshot/x"}
)

// Random programs with crashes: what a call said nil to holds for ever.
func TestCrash_RapidAcknowledgedWritesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		disk := objstore.NewMem(objstore.MemOptions{})
		acked := map[string][]byte{} // nil: deleted
		unsure := map[string]bool{}  // touched by a call that failed
		for range rapid.IntRange(1, 8).Draw(t, "lives") {
			left := rapid.IntRange(1, 60).Draw(t, "operations")
			user := disk.Attach(objstore.MemOptions{Fault: func(objstore.Op) objstore.Fault {
				left--
				return objstore.Fault{Crash: left == 0, Applied: left%2 == 0}
			}})
			for !user.Crashed() {
				runRandomCall(t, user, acked, unsure)
			}
			survive := rapid.SampledFrom([]float64{0, 0.5, 1, -1}).Draw(t, "survive")
			if survive >= 0 {
				disk = user.Crash(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3)), survive)
			}
			got := objectsOf(disk)
			for key, want := range acked {
				if data, ok := got[key]; !unsure[key] && (ok != (want != nil) || !bytes.Equal(data, want)) {
					t.Fatalf("%s: %d bytes acknowledged, there %v with %d bytes", key, len(want), ok, len(data))
				}
			}
			if survive >= 0 { // what is there after a power cut is durable
				clear(unsure)
				for _, key := range slices.Concat(published, written) {
					acked[key] = got[key]
				}
			}
		}
	})
}

func runRandomCall(t *rapid.T, user *objstore.Mem, acked map[string][]byte, unsure map[string]bool) {
	key := rapid.SampledFrom(published).Draw(t, "key")
	data := block(byte('a'+len(acked)), rapid.IntRange(0, 9000).Draw(t, "bytes"))
	switch rapid.IntRange(0, 3).Draw(t, "call") {
	case 0:
		err := user.PutIfAbsent(ctx, key, data)
		if errors.Is(err, objstore.ErrExist) { // whoever it is from, it is durable now
			err, data = nil, objectsOf(user)[key]
		}
		note(err, acked, unsure, map[string][]byte{key: data})
	case 1:
		key = rapid.SampledFrom(written).Draw(t, "written")
		objects := map[string][]byte{key: data, rapid.SampledFrom(written).Draw(t, "second"): data}
		var list []objstore.Object
		for _, k := range slices.Sorted(maps.Keys(objects)) {
			list = append(list, objstore.Object{Key: k, Data: data})
			if acked[k] != nil || unsure[k] {
				return // the caller never uses a name twice
			}
		}
		note(user.PutAll(ctx, list), acked, unsure, objects)
	case 2:
		key = rapid.SampledFrom(slices.Concat(published, written)).Draw(t, "deleted")
		note(user.Delete(ctx, key), acked, unsure, map[string][]byte{key: nil})
	case 3:
		w, err := user.Create(ctx, key)
		if err != nil {
			return
		}
		_, _ = w.Write(data) // Close returns the error
		if err := w.Close(); !errors.Is(err, objstore.ErrExist) {
			note(err, acked, unsure, map[string][]byte{key: data})
		}
	}
}

func note(err error, acked map[string][]byte, unsure map[string]bool, changes map[string][]byte) {
	for key, data := range changes {
		switch {
		case err == nil:
			acked[key] = data
			delete(unsure, key)
		default:
			unsure[key] = true
		}
	}
}

// A folder whose parents could not be synced is not taken for durable.
func TestCrash_FailedFolderSyncIsDoneAgain(t *testing.T) {
	calls := map[string]func(m *objstore.Mem, key string) error{
		"put_if_absent": func(m *objstore.Mem, key string) error { return m.PutIfAbsent(ctx, key, nil) },
		"put_all":       func(m *objstore.Mem, key string) error { return m.PutAll(ctx, []objstore.Object{{Key: key}}) },
	}
	for name, call := range calls {
		for _, path := range []string{"", "dt=1", "dt=1/bucket-0"} {
			t.Run(name+" "+path, func(t *testing.T) {
				failed := false
				m := objstore.NewMem(objstore.MemOptions{Fault: func(op objstore.Op) (f objstore.Fault) {
					if op.Kind == objstore.OpSyncDir && op.Path == path && !failed {
						failed = true
						f.Err = errIO
					}
					return f
				}})
				require.ErrorIs(t, call(m, "dt=1/bucket-0/first"), errIO)
				require.NoError(t, call(m, "dt=1/bucket-0/second"))
				require.Contains(t, objectsOf(m.Crash(nil, 0)), "dt=1/bucket-0/second")
			})
		}
	}
}

// An error at any one operation, before or after its effect: the promises hold, no
// unfinished object stays behind (unless removing failed, or creating only seemed
// to), and what was acknowledged survives a power cut.
func TestFault_B5_ErrorAtEveryPrimitiveOperation(t *testing.T) {
	ignored := 0
	for _, c := range crashCases {
		t.Run(c.name, func(t *testing.T) {
			base := objstore.NewMem(objstore.MemOptions{})
			if c.setup != nil {
				c.setup(t, base)
			}
			before := unfinished(base)
			calm := base.Clone().Attach(objstore.MemOptions{})
			require.NoError(t, c.call(calm))
			for n := int64(1); n <= calm.Ops(); n++ {
				for _, errno := range []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EMFILE} {
					for _, applied := range []bool{false, true} {
						var hit objstore.Op
						m := base.Clone().Attach(objstore.MemOptions{Fault: func(op objstore.Op) (f objstore.Fault) {
							if op.N == n {
								hit = op
								f = objstore.Fault{Err: errno, Applied: applied}
							}
							return f
						}})
						err := c.call(m)
						moment := fmt.Sprintf("%v at %s, applied %v: %v", errno, hit, applied, err)
						if err == nil {
							ignored++
						} else {
							require.ErrorIs(t, err, errno, moment)
						}
						if hit.Kind != objstore.OpUnlink && !(applied && hit.Kind == objstore.OpCreate) {
							require.Equal(t, before, unfinished(m), moment)
						}
						c.checkAll(t, m, err, moment)
					}
				}
			}
		})
	}
	require.Positive(t, ignored, "some errors do no harm: a temporary name that stays")
}

func unfinished(m *objstore.Mem) (n int) {
	m.Walk(func(key string, _ []byte) {
		if objstore.IsTemp(key) {
			n++
		}
	})
	return n
}
