package paimon

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/objstore"
	"applier/storage/types"
)

// expiryMachine is a commit machine whose snapshots expire.
type expiryMachine struct {
	*commitMachine
	earliest int64
	tags     map[string]int64
	branch   int64 // the snapshot that a branch was made of
}

// tag makes a tag of a snapshot, as Java does: a copy of its file.
func (x *expiryMachine) tag(t *rapid.T, p Paths, name string, id int64) {
	s, err := ReadSnapshot(bg, x.bucket, x.tab.Paths(), id)
	require.NoError(t, err)
	require.NoError(t, CreateTag(bg, x.bucket, p, name, &Tag{Snapshot: *s}))
}

// makeBranch makes a branch of a snapshot that no tag protects.
func (x *expiryMachine) makeBranch(t *rapid.T, id int64) {
	p, err := NewPaths(x.tab.Schema(), *x.tab.Options(), "b")
	require.NoError(t, err)
	for from, to := range map[string]string{x.tab.Paths().Schema(0): p.Schema(0), x.tab.Paths().Snapshot(id): p.Snapshot(id)} {
		data, err := x.bucket.Get(bg, from)
		require.NoError(t, err)
		require.NoError(t, x.bucket.PutIfAbsent(bg, to, data))
	}
	x.branch = id
}

// rollBack publishes the content of an older snapshot as the next one, which
// names its manifests again.
func (x *expiryMachine) rollBack(t *rapid.T, id int64) {
	s, err := ReadSnapshot(bg, x.bucket, x.tab.Paths(), id)
	require.NoError(t, err)
	old := *s
	old.ID, old.UUID, old.CommitKind = x.m.id+1, x.uuid(), CommitOverwrite
	data, err := old.Encode()
	require.NoError(t, err)
	require.NoError(t, x.bucket.PutIfAbsent(bg, x.tab.Paths().Snapshot(old.ID), data))
	x.m.files, x.m.id = x.history[id], old.ID
	x.history[old.ID] = x.m.files
	x.reopen()
}

func (x *expiryMachine) options(t *rapid.T) ExpireOptions {
	o := ExpireOptions{
		RetainMin: rapid.IntRange(1, 3).Draw(t, "retain at least"), RetainMax: 100, RetainTime: time.Duration(rapid.IntRange(0, 4).Draw(t, "retained")) * time.Millisecond,
		Limit: rapid.IntRange(1, 8).Draw(t, "limit"), Now: time.UnixMilli(x.clock),
	}
	if rapid.IntRange(0, 5).Draw(t, "count alone") == 0 {
		o.RetainMax, o.RetainTime = o.RetainMin, time.Hour
	}
	return o
}

func (x *expiryMachine) expire(t *rapid.T) {
	p, err := x.tab.PlanExpire(bg, x.options(t))
	require.NoError(t, err)
	if p.Snapshots() == 0 {
		return
	}
	require.Equal(t, x.earliest, p.From)
	if rapid.IntRange(0, 3).Draw(t, "killed") == 0 {
		half := *p
		half.DataFiles = p.DataFiles[:rapid.IntRange(0, len(p.DataFiles)).Draw(t, "data files")]
		half.Metadata = nil
		if len(half.DataFiles) == len(p.DataFiles) {
			half.Metadata = p.Metadata[:rapid.IntRange(0, len(p.Metadata)).Draw(t, "metadata")]
		}
		require.NoError(t, x.bucket.Delete(bg, slices.Concat(half.DataFiles, half.Metadata)...))
		x.reopen()
		if p, err = x.tab.PlanExpire(bg, ExpireOptions{RetainMin: int(x.m.id - p.To + 1), RetainMax: 1 << 30, Now: time.UnixMilli(x.clock)}); err != nil {
			require.NoError(t, err)
		}
	}
	require.NoError(t, x.tab.Expire(bg, p))
	x.earliest = p.To
}

// holds reads every snapshot and tag there is.
func (x *expiryMachine) holds(t *rapid.T) {
	tab, err := OpenTable(bg, x.bucket, Read)
	require.NoError(t, err)
	ids, err := ListSnapshotIDs(bg, x.bucket, tab.Paths())
	require.NoError(t, err)
	require.Equal(t, x.earliest, ids[0])
	earliest, err := EarliestSnapshotID(bg, x.bucket, tab.Paths())
	require.NoError(t, err)
	require.Equal(t, x.earliest, earliest)
	read := func(s *Snapshot, id int64) {
		st, err := tab.State(bg, s)
		require.NoError(t, err)
		checkModel(t, tab, st, x.history[id])
	}
	for _, id := range ids {
		s, err := ReadSnapshot(bg, x.bucket, tab.Paths(), id)
		require.NoError(t, err)
		read(s, id)
	}
	for name, id := range x.tags {
		tag, err := ReadTag(bg, x.bucket, tab.Paths(), name)
		require.NoError(t, err)
		read(&tag.Snapshot, id)
	}
	if x.branch > 0 {
		p, err := NewPaths(tab.Schema(), *tab.Options(), "b")
		require.NoError(t, err)
		s, err := ReadSnapshot(bg, x.bucket, p, x.branch)
		require.NoError(t, err)
		read(s, x.branch)
	}
}

func TestExpire_KeepsWhatAnythingElseNames(t *testing.T) {
	expired := int64(0)
	rapid.Check(t, func(t *rapid.T) {
		x := &expiryMachine{newCommitMachine(t), 1, map[string]int64{}, 0}
		for i := range rapid.IntRange(4, 25).Draw(t, "commits") {
			x.step(t)
			some := rapid.Int64Range(x.earliest, x.m.id).Draw(t, "a snapshot")
			switch rapid.IntRange(0, 9).Draw(t, "what else") {
			case 0:
				name := fmt.Sprint("t", i)
				x.tag(t, x.tab.Paths(), name, some)
				x.tags[name] = some
			case 1:
				if x.branch == 0 {
					x.makeBranch(t, some)
				}
			case 2:
				x.rollBack(t, some)
			case 3, 4, 5:
				x.expire(t)
			}
		}
		x.expire(t)
		x.holds(t)
		expired += x.earliest - 1
	})
	require.Greater(t, expired, int64(300))
}

// Without anything else that holds files, what is left after an expiry is what
// the snapshots that stay name, and nothing more.
func TestExpire_LeavesNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &expiryMachine{newCommitMachine(t), 1, map[string]int64{}, 0}
		for range rapid.IntRange(2, 25).Draw(t, "commits") {
			x.step(t)
			if rapid.IntRange(0, 3).Draw(t, "expire") == 0 {
				p, err := x.tab.PlanExpire(bg, x.options(t))
				require.NoError(t, err)
				require.NoError(t, x.tab.Expire(bg, p))
				if p.Snapshots() > 0 {
					x.earliest = p.To
				}
			}
		}
		p, err := x.tab.PlanExpire(bg, ExpireOptions{RetainMin: 2, RetainMax: 2, Now: time.UnixMilli(x.clock)})
		require.NoError(t, err)
		require.NoError(t, x.tab.Expire(bg, p))
		r := newReferences(x.tab)
		ids, err := ListSnapshotIDs(bg, x.bucket, x.tab.Paths())
		require.NoError(t, err)
		require.LessOrEqual(t, len(ids), 2)
		for _, id := range ids {
			s, err := ReadSnapshot(bg, x.bucket, x.tab.Paths(), id)
			require.NoError(t, err)
			require.NoError(t, r.all(bg, s))
		}
		for _, key := range allKeys(t, x.bucket) {
			if strings.HasPrefix(key, "manifest/") || strings.HasPrefix(baseName(key), "index-") || strings.HasSuffix(key, ".parquet") {
				require.True(t, r.keys[key], "%s is left", key)
			}
		}
	})
}

// allKeys lists every object of a bucket.
func allKeys(t require.TestingT, b objstore.Bucket) []string {
	var keys []string
	var walk func(dir string)
	walk = func(dir string) {
		require.NoError(t, b.List(bg, dir, func(i objstore.Info) error {
			if i.Folder {
				walk(i.Key)
			} else {
				keys = append(keys, i.Key)
			}
			return nil
		}))
	}
	walk("")
	return keys
}

// chain makes a table of n snapshots, a millisecond apart.
func chain(t *testing.T, n int) *fixture {
	f := newFixture(t, []types.Field{field(0, "id", types.BigIntType())}, nil)
	for i := range n {
		f.insert(ints(int64(i)))
	}
	return f
}

func TestPlanExpire_SaysWhatHoldsTheRestBack(t *testing.T) {
	f := chain(t, 10)
	now := time.UnixMilli(f.clock)
	for _, c := range []struct {
		name string
		o    ExpireOptions
		to   int64
		why  string
	}{
		{"the newest stay", ExpireOptions{RetainMin: 3, RetainMax: 99}, 8, "the 3 newest snapshots stay"},
		{"the newest one stays at least", ExpireOptions{RetainMax: 99}, 10, "the 1 newest snapshots stay"},
		{"young ones stay", ExpireOptions{RetainMin: 1, RetainMax: 99, RetainTime: 5 * time.Millisecond}, 5, "it was the newest less than 5ms ago"},
		{"too many go however young they are", ExpireOptions{RetainMin: 1, RetainMax: 4, RetainTime: time.Hour}, 7, "it was the newest less than 1h0m0s ago"},
		{"a run is limited", ExpireOptions{RetainMin: 1, RetainMax: 99, Limit: 2}, 3, "one run removes 2 snapshots"},
		{"the caller keeps some", ExpireOptions{RetainMin: 1, RetainMax: 99, KeepFrom: 4, KeptFor: "it has the positions of p"}, 4, "it has the positions of p"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Now = now
			p, err := f.tab.PlanExpire(bg, c.o)
			require.NoError(t, err)
			require.EqualValues(t, 1, p.From)
			require.Equal(t, c.to, p.To)
			require.Equal(t, c.why, p.HeldBy)
		})
	}
	require.NoError(t, WriteConsumer(bg, f.bucket, f.tab.Paths(), "reader", 2))
	p, err := f.tab.PlanExpire(bg, ExpireOptions{RetainMin: 1, RetainMax: 99, Now: now})
	require.NoError(t, err)
	require.EqualValues(t, 2, p.To)
	require.Equal(t, "consumer reader waits for it", p.HeldBy)
}

func TestPlanExpire_StopsWhereItCannotKnow(t *testing.T) {
	all := ExpireOptions{RetainMin: 1, RetainMax: 1, Now: time.UnixMilli(1 << 40)}
	for name, damage := range map[string]func(*fixture) error{
		"a tag that is torn": func(f *fixture) error {
			return f.bucket.PutIfAbsent(bg, "tag/tag-x", []byte(`{"id":`))
		},
		"a consumer that is torn": func(f *fixture) error {
			return f.bucket.PutIfAbsent(bg, "consumer/consumer-x", []byte("{"))
		},
		"a snapshot of a branch that is torn": func(f *fixture) error {
			return f.bucket.PutIfAbsent(bg, "branch/branch-b/snapshot/snapshot-1", []byte("{"))
		},
		"a hole": func(f *fixture) error { return f.bucket.Delete(bg, f.tab.Paths().Snapshot(3)) },
		"a list of the newest that is gone": func(f *fixture) error {
			return f.bucket.Delete(bg, "manifest/"+f.st.Snapshot.BaseManifestList)
		},
		"a changelog": func(f *fixture) error {
			return f.bucket.PutIfAbsent(bg, "changelog/changelog-1", []byte("{}"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := chain(t, 5)
			require.NoError(t, damage(f))
			before := allKeys(t, f.bucket)
			_, err := f.tab.PlanExpire(bg, all)
			require.Error(t, err)
			require.Equal(t, before, allKeys(t, f.bucket))
		})
	}
	_, err := func() (*ExpirePlan, error) {
		f := chain(t, 1)
		require.NoError(t, f.bucket.PutIfAbsent(bg, "changelog/changelog-1", nil))
		return f.tab.PlanExpire(bg, all)
	}()
	require.True(t, errors.Is(err, ErrChangelog))
}
