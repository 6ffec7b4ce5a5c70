package paimon

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// modelFile is a live data file as the model knows it: its rows, and which of
// them are deleted.
type modelFile struct {
	entry   manifest.Entry
	ids     []int64
	deleted *roaring.Bitmap
}

// tableModel is a table as it should be.
type tableModel struct {
	files map[FileKey]*modelFile
	id    int64 // snapshot
	next  int64 // row
}

// commitMachine runs random commits on a table and on the model.
type commitMachine struct {
	*fixture
	m       tableModel
	history map[int64]map[FileKey]*modelFile
}

func newCommitMachine(t *rapid.T) *commitMachine {
	partition := [][]string{nil, {"p"}}[rapid.IntRange(0, 1).Draw(t, "partitioned")]
	f := newFixture(t, []types.Field{field(0, "id", types.BigIntType()), field(1, "p", types.IntType())}, partition,
		[2]string{"deletion-vector.index-file.target-size", "100 b"},
		[2]string{"index-file-in-data-file-dir", []string{"false", "true"}[rapid.IntRange(0, 1).Draw(t, "index files beside data files")]})
	return &commitMachine{f, tableModel{files: map[FileKey]*modelFile{}}, map[int64]map[FileKey]*modelFile{0: {}}}
}

// newFiles writes one to n files of a few rows each.
func (c *commitMachine) newFiles(t *rapid.T, n int) []*modelFile {
	var out []*modelFile
	for range rapid.IntRange(1, n).Draw(t, "files") {
		p := types.IntDatum(rapid.Int64Range(0, 2).Draw(t, "partition"))
		if p.I == 2 {
			p = types.Null
		}
		var rows [][]types.Datum
		var ids []int64
		for range rapid.IntRange(1, 5).Draw(t, "rows") {
			rows, ids = append(rows, []types.Datum{types.IntDatum(c.m.next), p}), append(ids, c.m.next)
			c.m.next++
		}
		files := c.write(WriterSettings{}, rows...)
		require.Len(t, files, 1)
		out = append(out, &modelFile{files[0], ids, roaring.New()})
	}
	return out
}

// pick chooses up to n live files.
func (c *commitMachine) pick(t *rapid.T, n int) []*modelFile {
	keys := make([]FileKey, 0, len(c.m.files))
	for k := range c.m.files {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b FileKey) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	var out []*modelFile
	for range min(n, len(keys)) {
		i := rapid.IntRange(0, len(keys)-1).Draw(t, "live file")
		out = append(out, c.m.files[keys[i]])
		keys = slices.Delete(keys, i, i+1)
	}
	return out
}

// plan collects what a commit does.
type commitPlan struct {
	ch      Changes
	vectors []VectorChange
	add     []*modelFile
	gone    []*modelFile
	marked  map[FileKey]*roaring.Bitmap
}

func (p *commitPlan) drop(f *modelFile) {
	p.ch.Delete, p.gone = append(p.ch.Delete, f.entry), append(p.gone, f)
	if !f.deleted.IsEmpty() {
		p.vectors = append(p.vectors, VectorChange{File: KeyOf(&f.entry)})
	}
}

func (p *commitPlan) mark(t *rapid.T, f *modelFile) {
	m := f.deleted.Clone()
	for range rapid.IntRange(1, 3).Draw(t, "marks") {
		m.Add(uint32(rapid.IntRange(0, len(f.ids)-1).Draw(t, "position")))
	}
	p.marked[KeyOf(&f.entry)] = m
	p.vectors = append(p.vectors, VectorChange{KeyOf(&f.entry), m})
}

// step makes one random commit.
func (c *commitMachine) step(t *rapid.T) {
	p := &commitPlan{marked: map[FileKey]*roaring.Bitmap{}}
	op := OperationMerge
	switch rapid.IntRange(0, 5).Draw(t, "kind of commit") {
	case 0:
		op = ""
	case 1, 2:
		p.add = c.newFiles(t, 3)
	case 3:
		for i, f := range c.pick(t, 4) {
			if i%2 == 0 {
				p.mark(t, f)
			} else {
				p.drop(f)
			}
		}
		if rapid.Bool().Draw(t, "with rows") {
			p.add = c.newFiles(t, 2)
		}
	case 4:
		for _, f := range c.pick(t, 3) {
			p.mark(t, f)
		}
	case 5:
		p.ch.Compact, op = true, OperationWrite
		p.compact(t, c)
	}
	for _, f := range p.add {
		p.ch.Add = append(p.ch.Add, f.entry)
	}
	c.apply(t, p, op)
}

// compact replaces files of one partition by one with what lives in them.
func (p *commitPlan) compact(t *rapid.T, c *commitMachine) {
	files := c.pick(t, 3)
	var rows [][]types.Datum
	var ids []int64
	for _, f := range files {
		if !bytes.Equal(f.entry.Partition, files[0].entry.Partition) {
			continue
		}
		p.drop(f)
		require.NoError(t, c.tab.ReadFile(bg, &f.entry, []int{0, 1}, func(start int64, b *types.Batch) error {
			for i := range b.Len() {
				if !f.deleted.Contains(uint32(start) + uint32(i)) {
					rows, ids = append(rows, b.Row(i)), append(ids, b.Cols[0].I64[i])
				}
			}
			return nil
		}))
	}
	if len(rows) > 0 {
		e := c.write(WriterSettings{}, rows...)[0]
		source := manifest.SourceCompact
		e.File.Source = &source
		p.add = append(p.add, &modelFile{e, ids, roaring.New()})
	}
}

// apply commits a plan to the table and to the model.
func (c *commitMachine) apply(t *rapid.T, p *commitPlan, op Operation) {
	if len(p.vectors) > 0 {
		unchanged := func(k FileKey) (*roaring.Bitmap, error) {
			require.NotContains(t, p.marked, k)
			return c.m.files[k].deleted, nil
		}
		var err error
		p.ch.Index, err = c.tab.BuildVectors(c.st, p.vectors, unchanged, c.uuid)
		require.NoError(t, err)
	}
	before := c.st
	commit := c.commit(p.ch, op)
	checkCommit(t, c.fixture, before, commit, p, op)

	files := map[FileKey]*modelFile{}
	for k, f := range c.m.files {
		files[k] = f
		if m := p.marked[k]; m != nil {
			files[k] = &modelFile{f.entry, f.ids, m}
		}
	}
	for _, f := range p.gone {
		delete(files, KeyOf(&f.entry))
	}
	for _, f := range p.add {
		files[KeyOf(&f.entry)] = f
	}
	c.m.files, c.m.id = files, c.m.id+1
	c.history[c.m.id] = files
}

// checkCommit checks what a commit itself says.
func checkCommit(t *rapid.T, f *fixture, before *State, c *Commit, p *commitPlan, op Operation) {
	s := c.Snapshot
	rows := int64(0)
	for _, x := range p.add {
		rows += x.entry.File.Rows
	}
	for _, x := range p.gone {
		rows -= x.entry.File.Rows
	}
	require.Equal(t, rows, s.DeltaRecordCount)
	kind, want := CommitAppend, op
	switch {
	case p.ch.Compact:
		kind, want = CommitCompact, ""
	case len(p.gone)+len(p.vectors) > 0:
		kind = CommitOverwrite
	}
	require.Equal(t, kind, s.CommitKind)
	require.Equal(t, want, s.Operation)
	require.EqualValues(t, 0, *s.NextRowID)
	if before.Snapshot != nil {
		require.Equal(t, before.Snapshot.ID+1, s.ID)
		if len(p.vectors) == 0 {
			require.Equal(t, before.Snapshot.IndexManifest, s.IndexManifest, "named again")
		}
	}
	if p.ch.Index != nil {
		checkIndexChange(t, f, before, p)
	}
}

// checkIndexChange checks the layout of §7.4.
func checkIndexChange(t *rapid.T, f *fixture, before *State, p *commitPlan) {
	changed := map[FileKey]bool{}
	for _, v := range p.vectors {
		changed[v.File] = true
	}
	touched := map[string]bool{}
	for _, e := range before.Index {
		for _, v := range e.Vectors {
			if changed[FileKey{string(e.Partition), e.Bucket, v.DataFile}] {
				touched[e.Name] = true
			}
		}
	}
	gone := map[string]bool{}
	for _, e := range p.ch.Index.Delete {
		require.Equal(t, manifest.Delete, e.Kind)
		gone[e.Name] = true
	}
	require.Equal(t, touched, gone, "touched index files are replaced, others left alone")
	for _, e := range p.ch.Index.Add {
		var survivors, news int
		for _, v := range e.Vectors {
			if changed[FileKey{string(e.Partition), e.Bucket, v.DataFile}] {
				news++
			} else {
				survivors++
			}
		}
		require.True(t, survivors == 0 || news == 0, "survivors and new vectors apart")
		last := e.Vectors[len(e.Vectors)-1]
		require.LessOrEqual(t, int64(last.Offset), f.tab.Options().DeletionVectorTargetSize, "rolled as soon as the target is passed")
	}
}

// check compares the table, read anew from its files, with the model: now and at
// every snapshot there was.
func (c *commitMachine) check(t *rapid.T) {
	tab, err := OpenTable(bg, c.bucket, Read)
	require.NoError(t, err)
	st := c.latest(tab)
	if c.m.id == 0 {
		require.Nil(t, st.Snapshot)
		return
	}
	require.Equal(t, c.m.id, st.Snapshot.ID)
	checkInvariants(t, tab, st)
	checkModel(t, tab, st, c.m.files)
	// What the commit said of itself is what is read.
	require.Equal(t, append([]manifest.Meta{}, c.st.Manifests...), append([]manifest.Meta{}, st.Manifests...))
	require.Equal(t, append([]manifest.IndexEntry{}, c.st.Index...), append([]manifest.IndexEntry{}, st.Index...))
	if id := rapid.Int64Range(1, c.m.id).Draw(t, "an older snapshot"); rapid.IntRange(0, 3).Draw(t, "look back") == 0 {
		s, err := ReadSnapshot(bg, c.bucket, tab.Paths(), id)
		require.NoError(t, err)
		old, err := tab.State(bg, s)
		require.NoError(t, err)
		checkModel(t, tab, old, c.history[id])
	}
}

// checkModel compares files, vectors and rows.
func checkModel(t require.TestingT, tab *Table, st *State, want map[FileKey]*modelFile) {
	files, err := tab.Files(bg, st, nil)
	require.NoError(t, err)
	require.Len(t, files, len(want))
	refs, err := VectorRefs(st.Index)
	require.NoError(t, err)
	ids := map[int64]bool{}
	for i := range files {
		f := want[KeyOf(&files[i])]
		require.NotNil(t, f)
		require.Equal(t, f.entry, files[i])
		ref, ok := refs[KeyOf(&files[i])]
		require.Equal(t, !f.deleted.IsEmpty(), ok)
		if ok {
			m, err := tab.ReadVector(bg, ref, f.entry.File.Rows)
			require.NoError(t, err)
			require.True(t, m.Equals(f.deleted))
		}
		for p, id := range f.ids {
			if !f.deleted.Contains(uint32(p)) {
				ids[id] = true
			}
		}
	}
	n, err := tab.CountRows(bg, st)
	require.NoError(t, err)
	require.EqualValues(t, len(ids), n)
	rows := scanRows(t, tab, st, ScanOptions{Columns: []int{0}})
	require.Len(t, rows, len(ids))
	for _, r := range rows {
		require.True(t, ids[r[0].I], "row %d", r[0].I)
	}
}

// checkInvariants is the checklist of paimon-format.md §14.2 for one snapshot.
func checkInvariants(t require.TestingT, tab *Table, st *State) {
	files, err := tab.Files(bg, st, nil) // 3: base ++ delta merges
	require.NoError(t, err)
	total, live := int64(0), map[FileKey]bool{}
	for i := range files {
		e := &files[i]
		total += e.File.Rows
		live[KeyOf(e)] = true
		key, err := tab.Paths().Data(e) // 2: reachable, of that size and so many rows
		require.NoError(t, err)
		info, err := tab.Bucket().Stat(bg, key)
		require.NoError(t, err)
		require.Equal(t, e.File.Size, info.Size)
		f, err := tab.OpenFile(bg, e, []int{0})
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.Equal(t, total, st.Snapshot.TotalRecordCount) // 4
	delta, err := tab.Delta(bg, st.Snapshot)
	require.NoError(t, err)
	merged, err := manifest.Merge(delta) // 3: nothing is added and deleted at once
	require.NoError(t, err)
	require.Len(t, merged, len(delta))
	for i, e := range delta {
		require.True(t, i == 0 || delta[i-1].Kind <= e.Kind, "all ADDs, then all DELETEs")
	}
	refs, err := VectorRefs(st.Index) // 6: one vector a file at most, for live files
	require.NoError(t, err)
	for k, ref := range refs {
		require.True(t, live[k], "a vector of %s, which is not live", k.Name)
		require.GreaterOrEqual(t, ref.At.Cardinality, int64(1))
	}
	for _, e := range st.Index {
		require.Equal(t, int64(len(e.Vectors)), e.Rows)
		require.Equal(t, manifest.Add, e.Kind)
	}
	for _, m := range st.Manifests { // 8
		entries, err := tab.Entries(bg, m)
		require.NoError(t, err)
		again, err := manifest.Summarise(m.Name, m.Size, entries, tab.Schema().PartitionTypes())
		require.NoError(t, err)
		require.Equal(t, again, m)
	}
}

func TestBuildCommit_AnyHistoryIsTheModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCommitMachine(t)
		for range rapid.IntRange(1, 30).Draw(t, "commits") {
			c.step(t)
			if rapid.IntRange(0, 4).Draw(t, "open again") == 0 {
				c.reopen()
			}
			c.check(t)
		}
	})
}

// The same for long histories: manifests of several classes, and DELETEs whose
// ADDs are far away.
func TestBuildCommit_ALongHistoryIsTheModels(t *testing.T) {
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		if n++; n > 2 {
			return
		}
		c := newCommitMachine(t)
		most := 0
		for i := range 150 {
			c.step(t)
			most = max(most, len(c.st.Manifests))
			if i%10 == 0 {
				c.check(t)
			}
		}
		c.check(t)
		require.Less(t, most, 30, fmt.Sprint(most))
	})
}
