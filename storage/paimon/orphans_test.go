package paimon

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/objstore"
)

// later is a time at which every file of a fixture is old.
var later = time.Now().Add(1000 * time.Hour)

func orphanKeys(t require.TestingT, f *fixture) []string {
	found, err := f.tab.FindOrphans(bg, later, later.Add(-MinOrphanAge))
	require.NoError(t, err)
	var keys []string
	for _, o := range found {
		keys = append(keys, o.Key)
	}
	slices.Sort(keys)
	return keys
}

// Whatever a history of commits, failed attempts, tags, a branch, rollbacks and
// expiries leaves: what is called an orphan can go, and then nothing is left that
// nothing names.
func TestFindOrphans_AreExactlyWhatNothingNames(t *testing.T) {
	total := 0
	rapid.Check(t, func(t *rapid.T) {
		x := &expiryMachine{newCommitMachine(t), 1, map[string]int64{}, 0}
		var lost []string
		for i := range rapid.IntRange(1, 15).Draw(t, "commits") {
			x.step(t)
			some := rapid.Int64Range(x.earliest, x.m.id).Draw(t, "a snapshot")
			switch rapid.IntRange(0, 7).Draw(t, "what else") {
			case 0: // an attempt that was not published
				files := x.write(WriterSettings{}, ints(x.m.next, 0))
				key, err := x.tab.Paths().Data(&files[0])
				require.NoError(t, err)
				c, err := x.tab.BuildCommit(bg, x.st, Changes{Add: files}, x.info(OperationWrite))
				require.NoError(t, err)
				require.NoError(t, x.bucket.PutAll(bg, c.Objects))
				lost = append(lost, key)
				for _, o := range c.Objects {
					lost = append(lost, o.Key)
				}
			case 1:
				name := "t" + string(rune('a'+i))
				x.tag(t, x.tab.Paths(), name, some)
				x.tags[name] = some
			case 2:
				if x.branch == 0 {
					x.makeBranch(t, some)
				}
			case 3:
				x.rollBack(t, some)
			case 4:
				x.expire(t)
			}
		}
		found := orphanKeys(t, x.fixture)
		for _, k := range lost {
			require.Contains(t, found, k)
		}
		total += len(found)
		orphans, err := x.tab.FindOrphans(bg, later, later.Add(-MinOrphanAge))
		require.NoError(t, err)
		require.NoError(t, x.tab.DeleteOrphans(bg, orphans))
		x.holds(t)
		require.Empty(t, orphanKeys(t, x.fixture))
		r := newReferences(x.tab)
		require.NoError(t, x.tab.everything(bg, r))
		for _, key := range allKeys(t, x.bucket) {
			if strings.HasPrefix(key, "manifest/") || strings.HasPrefix(baseName(key), "index-") || strings.HasSuffix(key, ".parquet") {
				require.True(t, r.keys[key], "%s is left", key)
			}
		}
	})
	require.Greater(t, total, 100)
}

func TestFindOrphans_LeavesAloneWhatIsYoungOrNotPaimons(t *testing.T) {
	f := chain(t, 2)
	for _, key := range []string{
		"manifest/README", "index/notes.txt", "bucket-0/_SUCCESS", "bucket-0/deep/data-1.parquet", "other/data-2.parquet", "data-3.parquet",
		"snapshot/snapshot-x", "tag/x", "p=1/bucket-0/data-4.parquet",
	} {
		require.NoError(t, f.bucket.PutIfAbsent(bg, key, nil))
	}
	require.Empty(t, orphanKeys(t, f))
	require.NoError(t, f.bucket.PutIfAbsent(bg, "bucket-0/data-5.parquet", []byte("x")))
	require.NoError(t, f.bucket.PutIfAbsent(bg, "manifest/manifest-6", nil))
	require.Equal(t, []string{"bucket-0/data-5.parquet", "manifest/manifest-6"}, orphanKeys(t, f))

	young, err := f.tab.FindOrphans(bg, later, time.Unix(0, 0)) // the clock of a disk in memory stands
	require.NoError(t, err)
	require.Empty(t, young)
	_, err = f.tab.FindOrphans(bg, later, later.Add(-time.Minute))
	require.ErrorIs(t, err, ErrOrphanAge)
}

func TestFindOrphans_StopsAtASnapshotItCannotRead(t *testing.T) {
	for _, key := range []string{"tag/tag-x", "branch/branch-b/snapshot/snapshot-7", "branch/branch-b/tag/tag-y"} {
		f := chain(t, 2)
		require.NoError(t, f.bucket.PutIfAbsent(bg, key, []byte("{")))
		_, err := f.tab.FindOrphans(bg, later, later.Add(-MinOrphanAge))
		require.Error(t, err, key)
	}
	f := chain(t, 2)
	require.NoError(t, f.bucket.Delete(bg, "manifest/"+f.st.Snapshot.DeltaManifestList))
	f.reopenCold(t)
	_, err := f.tab.FindOrphans(bg, later, later.Add(-MinOrphanAge))
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

// reopenCold opens the table without reading its newest state.
func (f *fixture) reopenCold(t *testing.T) {
	tab, err := OpenTable(bg, f.bucket, Write)
	require.NoError(t, err)
	f.tab = tab
}
