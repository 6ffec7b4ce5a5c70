package paimon

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// plainFixture is a table for commits of entries without files behind them.
func plainFixture(t require.TestingT, columns int) *fixture {
	var fields []types.Field
	for i := range columns {
		fields = append(fields, field(i, "c"+strings.Repeat("x", i), []types.Type{types.BigIntType(), types.StringType()}[i%2]))
	}
	return newFixture(t, fields, nil)
}

// fakeEntry is an entry as of a file of random numbers and texts.
func (f *fixture) fakeEntry(rng *rand.Rand) manifest.Entry {
	var stats []ColumnStats
	for i := range f.tab.Schema().Fields {
		a, b := rng.Uint64()>>1, rng.Uint64()>>1
		s := counted(0, types.IntDatum(int64(a)), types.IntDatum(int64(b)))
		if i%2 == 1 {
			s = counted(0, types.StringDatum(randomText(rng)), types.StringDatum(randomText(rng)))
		}
		stats = append(stats, s)
	}
	values, names, err := EncodeStats(f.tab.Schema().Fields, stats, true)
	require.NoError(f.t, err)
	empty, zero, source := binrow.Empty(), int64(0), manifest.SourceAppend
	name := "data-" + randomText(rng) + randomText(rng) + "-0.parquet"
	return manifest.Entry{Partition: empty, TotalBuckets: manifest.UnawareBuckets, File: manifest.DataFile{
		Name: name, Size: rng.Int64N(1 << 20), Rows: rng.Int64N(1 << 16), MinKey: empty, MaxKey: empty,
		KeyStats: manifest.Stats{Min: empty, Max: empty, NullCounts: []int64{}}, ValueStats: values, StatsColumns: names, MaxSequence: 1,
		ExtraFiles: []string{}, CreationTime: &zero, DeleteRows: &zero, Source: &source,
	}}
}

func randomText(rng *rand.Rand) string {
	b := make([]byte, 16)
	for i := range b {
		b[i] = "0123456789abcdef"[rng.IntN(16)]
	}
	return string(b)
}

// growth is what commits wrote.
type growth struct {
	commits, bytes, most, entries int64
	manifests, over               int
}

func (g *growth) add(before *State, c *Commit) {
	n := c.MetadataBytes()
	g.commits++
	g.bytes += n
	g.most = max(g.most, n)
	if n > 64<<10 {
		g.over++
	}
	g.manifests = max(g.manifests, len(c.State.Manifests))
	old := map[string]bool{}
	for _, m := range before.Manifests {
		old[m.Name] = true
	}
	for _, m := range c.State.Manifests {
		if !old[m.Name] {
			g.entries += m.Added + m.Deleted
		}
	}
}

// What a commit writes stays below 64 KiB and does not grow, however many came
// before (performance.md §8), for narrow and for wide tables.
func TestMergeManifests_MetadataOfACommitStaysBounded(t *testing.T) {
	for _, columns := range []int{2, 40} {
		f := plainFixture(t, columns)
		rng := rand.New(rand.NewPCG(1, 2))
		var half [2]growth
		n := 2000
		for i := range n {
			before := f.st
			g := &half[i*2/n]
			g.add(before, f.commit(Changes{Add: []manifest.Entry{f.fakeEntry(rng)}}, OperationWrite))
		}
		files, err := f.tab.Files(bg, f.st, nil)
		require.NoError(t, err)
		require.Len(t, files, n)
		// An entry is written once for itself and once a class.
		require.LessOrEqual(t, half[0].entries+half[1].entries, int64(5*n))
		for _, g := range half {
			require.Zero(t, g.over, "%+v", g)
			require.LessOrEqual(t, g.manifests, 99+5*9)
		}
		t.Logf("%d columns: average %d then %d bytes, most %d, %d entries written, at most %d manifests", columns, half[0].bytes/half[0].commits, half[1].bytes/half[1].commits,
			max(half[0].most, half[1].most), half[0].entries+half[1].entries, half[1].manifests)
		require.Less(t, half[1].bytes, half[0].bytes*3/2, "flat")
	}
}

// A table whose files are replaced all the time has as many entries as files, and
// DELETEs do not pile up.
func TestMergeManifests_DeletesDoNotPileUp(t *testing.T) {
	f := plainFixture(t, 2)
	rng := rand.New(rand.NewPCG(3, 4))
	var live []manifest.Entry
	var g growth
	for i := range 3000 {
		e := f.fakeEntry(rng)
		ch := Changes{Add: []manifest.Entry{e}}
		live = append(live, e)
		if len(live) > 300 { // an old one goes
			k := rng.IntN(len(live) - 1)
			ch.Delete = []manifest.Entry{live[k]}
			live = append(live[:k], live[k+1:]...)
		}
		before := f.st
		g.add(before, f.commit(ch, OperationMerge))
		entries := int64(0)
		for _, m := range f.st.Manifests {
			entries += m.Added + m.Deleted
		}
		require.Less(t, entries, int64(300+2*staleDeletes+200), "commit %d", i)
	}
	files, err := f.tab.Files(bg, f.st, nil)
	require.NoError(t, err)
	require.Len(t, files, len(live))
	require.LessOrEqual(t, g.manifests, 50)
	require.LessOrEqual(t, g.entries/g.commits, int64(12), "entries a commit")
}

// Many files at once, few files at once, foreign lists: whatever the manifests'
// sizes are, none but full ones pile up and nothing is lost.
func TestMergeManifests_AnySizesOfCommits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := plainFixture(t, 1)
		rng := rand.New(rand.NewPCG(5, rapid.Uint64().Draw(t, "seed")))
		want := map[string]bool{}
		var live []manifest.Entry
		for range rapid.IntRange(1, 60).Draw(t, "commits") {
			var ch Changes
			for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 9, 10, 11, 99, 150}).Draw(t, "adds") {
				ch.Add = append(ch.Add, f.fakeEntry(rng))
			}
			for range min(len(live), rapid.SampledFrom([]int{0, 0, 1, 30}).Draw(t, "deletes")) {
				k := rng.IntN(len(live))
				ch.Delete = append(ch.Delete, live[k])
				delete(want, live[k].File.Name)
				live = append(live[:k], live[k+1:]...)
			}
			for _, e := range ch.Add {
				live, want[e.File.Name] = append(live, e), true
			}
			c := f.commit(ch, OperationMerge)
			checkTiers(t, c.State.Manifests)
		}
		f.reopen()
		files, err := f.tab.Files(bg, f.st, nil)
		require.NoError(t, err)
		require.Len(t, files, len(want))
		for _, e := range files {
			require.True(t, want[e.File.Name])
		}
	})
}

// checkTiers counts manifests by class, the newest one left out: it is merged by
// the next commit.
func checkTiers(t require.TestingT, metas []manifest.Meta) {
	count := [classHuge + 1]int{}
	for _, m := range metas[:max(len(metas)-1, 0)] {
		count[sizeClass(m.Added+m.Deleted, m.Size)]++
	}
	for class, n := range count[:classFull] {
		require.LessOrEqual(t, n, 2*mergeFanIn, "class %d", class)
	}
}

// lossyManifest is a manifest of a newer Paimon version: an entry has a member
// that is not known here.
func (f *fixture) lossyManifest(m manifest.Meta) {
	f.tab.entries.mu.Lock()
	defer f.tab.entries.mu.Unlock()
	item := f.tab.entries.items[m.Name]
	item.complete = false
	f.tab.entries.items[m.Name] = item
}

// What cannot be rewritten is left where it is, and merging goes on behind it.
func TestMergeManifests_LeavesManifestsOfNewerVersionsAlone(t *testing.T) {
	f := plainFixture(t, 1)
	rng := rand.New(rand.NewPCG(7, 8))
	for range 4 {
		f.commit(Changes{Add: []manifest.Entry{f.fakeEntry(rng)}}, OperationWrite)
	}
	lossy := f.st.Manifests[2]
	f.lossyManifest(lossy)
	for range 100 {
		f.commit(Changes{Add: []manifest.Entry{f.fakeEntry(rng)}}, OperationWrite)
	}
	require.Equal(t, lossy, f.st.Manifests[2])
	require.Less(t, len(f.st.Manifests), 25)
	require.True(t, f.tab.entries.isLossy(lossy.Name) || f.tab.entries.items[lossy.Name].complete == false)
	files, err := f.tab.Files(bg, f.st, nil)
	require.NoError(t, err)
	require.Len(t, files, 104)
}

func TestMergeManifests_FailsOnWhatItCannotRead(t *testing.T) {
	f := plainFixture(t, 1)
	rng := rand.New(rand.NewPCG(9, 10))
	for range mergeFanIn {
		f.commit(Changes{Add: []manifest.Entry{f.fakeEntry(rng)}}, OperationWrite)
	}
	f.reopen()
	key, err := f.tab.Paths().Manifest(f.st.Manifests[3].Name)
	require.NoError(t, err)
	require.NoError(t, f.bucket.Delete(bg, key))
	_, err = f.tab.BuildCommit(bg, f.st, Changes{}, f.info(""))
	require.Error(t, err)
	require.ErrorContains(t, err, f.st.Manifests[3].Name)
	require.False(t, errors.Is(err, manifest.ErrInconsistent))
}

// A base list that merges everything away has no manifests, and is one.
func TestMergeManifests_WhatCancelsLeavesNothing(t *testing.T) {
	f := plainFixture(t, 1)
	rng := rand.New(rand.NewPCG(11, 12))
	for range mergeFanIn / 2 {
		e := f.fakeEntry(rng)
		f.commit(Changes{Add: []manifest.Entry{e}}, OperationWrite)
		f.commit(Changes{Delete: []manifest.Entry{e}}, OperationDelete)
	}
	require.Len(t, f.st.Manifests, mergeFanIn)
	f.commit(Changes{}, "")
	require.Empty(t, f.st.Manifests)
	f.reopen()
	require.Empty(t, f.st.Manifests)
	require.Zero(t, f.st.Snapshot.TotalRecordCount)
}

// Rolled: no merged manifest has more entries than Java's would.
func TestMergeManifests_RollsWhatBecomesTooLarge(t *testing.T) {
	f := plainFixture(t, 1)
	e := f.fakeEntry(rand.New(rand.NewPCG(13, 14)))
	e.File.ValueStats, e.File.StatsColumns = manifest.Stats{Min: binrow.Empty(), Max: binrow.Empty(), NullCounts: []int64{}}, []string{}
	rng := rand.New(rand.NewPCG(15, 16))
	gone := []manifest.Entry{}
	var all []manifest.Entry
	for i := range manifestEntries + 80_000 {
		e.File.Name = randomText(rng)
		all = append(all, e)
		if i%3 == 0 {
			gone = append(gone, e)
		}
	}
	f.commit(Changes{Add: all[:80_000]}, OperationWrite)
	f.commit(Changes{Add: all[80_000:]}, OperationWrite)
	require.Len(t, f.st.Manifests, 2)
	f.commit(Changes{Delete: gone}, OperationDelete)
	f.commit(Changes{}, "") // a quarter of all are DELETEs: everything is merged
	require.Len(t, f.st.Manifests, 2)
	require.EqualValues(t, manifestEntries, f.st.Manifests[0].Added)
	require.EqualValues(t, 20_000, f.st.Manifests[1].Added)
	require.Zero(t, f.st.Manifests[0].Deleted+f.st.Manifests[1].Deleted)
	files, err := f.tab.Files(bg, f.st, nil)
	require.NoError(t, err)
	require.Len(t, files, len(all)-len(gone))
}

// A hundred full manifests become one, once, which is then left alone.
func TestMergeManifests_FullManifestsMergeInHundreds(t *testing.T) {
	f := plainFixture(t, 40)
	rng := rand.New(rand.NewPCG(17, 18))
	n, most, large := 0, 0, 0
	for range 2*fullFanIn + 20 {
		var ch Changes
		for range 20 {
			ch.Add = append(ch.Add, f.fakeEntry(rng))
			n++
		}
		c := f.commit(ch, OperationWrite)
		require.GreaterOrEqual(t, c.State.Manifests[len(c.State.Manifests)-1].Size, int64(fullBytes))
		most = max(most, len(c.State.Manifests))
		if c.MetadataBytes() > 256<<10 {
			large++
		}
	}
	require.LessOrEqual(t, most, fullFanIn+3)
	require.Equal(t, 2, large)
	require.GreaterOrEqual(t, f.st.Manifests[0].Size, int64(hugeBytes))
	require.GreaterOrEqual(t, f.st.Manifests[1].Size, int64(hugeBytes))
	files, err := f.tab.Files(bg, f.st, nil)
	require.NoError(t, err)
	require.Len(t, files, n)
}
