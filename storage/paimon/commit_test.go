package paimon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// The bytes of a snapshot file with every member that we write.
func TestBuildCommit_SnapshotFile(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	first := f.insert(ints(1), ints(2), ints(3))
	x := f.vectors(VectorChange{KeyOf(&first[0]), roaring.BitmapOf(1)})
	info := CommitInfo{
		UUID: "8d7c2c43-0000-4000-8000-000000000001", User: "applier_orders_1", Identifier: 7, Operation: OperationMerge,
		Properties: map[string]string{"applier.orders": `{"v":1}`}, TimeMillis: 1767225600123, NewUUID: f.uuid,
	}
	more := f.write(WriterSettings{}, ints(4))
	c, err := f.tab.BuildCommit(bg, f.st, Changes{Add: more, Index: x}, info)
	require.NoError(t, err)
	f.publish(c, Changes{Index: x})
	b, err := f.bucket.Get(bg, "snapshot/snapshot-2")
	require.NoError(t, err)
	sizes := strings.NewReplacer("BASE", fmt.Sprint(*c.Snapshot.BaseManifestListSize), "DELTA", fmt.Sprint(*c.Snapshot.DeltaManifestListSize))
	require.Equal(t, sizes.Replace(strings.TrimPrefix(`
{
  "version" : 3,
  "uuid" : "8d7c2c43-0000-4000-8000-000000000001",
  "id" : 2,
  "schemaId" : 0,
  "baseManifestList" : "manifest-list-35486088-0000-4000-8000-000000000008-0",
  "baseManifestListSize" : BASE,
  "deltaManifestList" : "manifest-list-35486088-0000-4000-8000-000000000008-1",
  "deltaManifestListSize" : DELTA,
  "indexManifest" : "index-manifest-89921849-0000-4000-8000-000000000009-0",
  "commitUser" : "applier_orders_1",
  "commitIdentifier" : 7,
  "commitKind" : "OVERWRITE",
  "timeMillis" : 1767225600123,
  "totalRecordCount" : 4,
  "deltaRecordCount" : 1,
  "properties" : {
    "applier.orders" : "{\"v\":1}"
  },
  "nextRowId" : 0,
  "operation" : "MERGE"
}`, "\n")), string(b))
	for _, l := range []struct {
		name string
		size *int64
	}{{c.Snapshot.BaseManifestList, c.Snapshot.BaseManifestListSize}, {c.Snapshot.DeltaManifestList, c.Snapshot.DeltaManifestListSize}} {
		key, err := f.tab.Paths().Manifest(l.name)
		require.NoError(t, err)
		stat, err := f.bucket.Stat(bg, key)
		require.NoError(t, err)
		require.Equal(t, *l.size, stat.Size)
	}
	require.EqualValues(t, len(b), int64(len(c.Bytes)))
	size := int64(len(c.Bytes))
	for _, o := range c.Objects {
		size += int64(len(o.Data))
		require.True(t, strings.HasPrefix(o.Key, "manifest/"))
	}
	require.Equal(t, size, c.MetadataBytes())
}

// vectors builds index files and remembers what they hold.
func (f *fixture) vectors(changes ...VectorChange) *IndexChange {
	refs, err := VectorRefs(f.st.Index)
	require.NoError(f.t, err)
	x, err := f.tab.BuildVectors(f.st, changes, func(k FileKey) (*roaring.Bitmap, error) { return f.tab.ReadVector(bg, refs[k], 1<<31) }, f.uuid)
	require.NoError(f.t, err)
	return x
}

func TestBuildCommit_KindFollowsFromTheContent(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	kind := func(ch Changes, op Operation, want CommitKind, wantOp Operation) {
		c := f.commit(ch, op)
		require.Equal(t, want, c.Snapshot.CommitKind)
		require.Equal(t, wantOp, c.Snapshot.Operation)
	}
	kind(Changes{}, "", CommitAppend, "")
	a, b := f.write(WriterSettings{}, ints(1), ints(2)), f.write(WriterSettings{}, ints(3))
	kind(Changes{Add: append(a, b...)}, OperationMerge, CommitAppend, OperationMerge)
	kind(Changes{Index: &IndexChange{}}, "", CommitAppend, "")
	kind(Changes{Index: f.vectors(VectorChange{KeyOf(&a[0]), roaring.BitmapOf(0)})}, OperationDelete, CommitOverwrite, OperationDelete)
	kind(Changes{Delete: b}, OperationDelete, CommitOverwrite, OperationDelete)
	c := f.write(WriterSettings{}, ints(2))
	kind(Changes{Add: c, Delete: a, Index: f.vectors(VectorChange{File: KeyOf(&a[0])}), Compact: true}, OperationWrite, CommitCompact, "")
	require.Empty(t, f.st.Index)
	require.NotNil(t, f.st.Snapshot.IndexManifest, "a manifest without entries, as Java has")
	require.EqualValues(t, 1, f.st.Snapshot.TotalRecordCount)
	require.EqualValues(t, -1, f.st.Snapshot.DeltaRecordCount)
}

func TestBuildCommit_InheritsWhatTheNextSnapshotKeeps(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	f.insert(ints(1))
	s := *f.st.Snapshot
	s.Watermark, s.Statistics, s.NextRowID, s.Properties = new(int64(77)), new("stat-x-0"), new(int64(9)), map[string]string{"k": "v"}
	s.TimeMillis = 5_000_000_000_000 // by a clock that runs ahead
	f.st.Snapshot = &s
	c := f.commit(Changes{}, "")
	require.Equal(t, s.Watermark, c.Snapshot.Watermark)
	require.Equal(t, s.Statistics, c.Snapshot.Statistics)
	require.EqualValues(t, 9, *c.Snapshot.NextRowID)
	require.Empty(t, c.Snapshot.Properties, "properties are each snapshot's own")
	require.Equal(t, s.TimeMillis, c.Snapshot.TimeMillis, "never older than the one before")
	f.alter(func(s *Schema) { s.Fields = append(s.Fields, field(1, "more", types.IntType())) })
	c = f.commit(Changes{}, "")
	require.EqualValues(t, 1, c.Snapshot.SchemaID)
	require.Nil(t, c.Snapshot.Statistics, "they are of another schema")
}

func TestBuildCommit_RefusesWhatContradictsItselfOrTheTable(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	a := f.insert(ints(1), ints(2))
	x := f.vectors(VectorChange{KeyOf(&a[0]), roaring.BitmapOf(0)})
	f.commit(Changes{Index: x}, OperationDelete)
	b := f.write(WriterSettings{}, ints(3))
	unknown := x.Add[0]
	unknown.Name = "index-other-0"
	other := IndexChange{Add: []manifest.IndexEntry{{
		Kind: manifest.Add, Partition: a[0].Partition, Type: manifest.IndexDeletionVectors, Name: "index-new-0",
		Vectors: x.Add[0].Vectors,
	}}}
	for what, ch := range map[string]Changes{
		"added twice":                {Add: append(b, b...)},
		"added and deleted":          {Add: b, Delete: b},
		"deleted twice":              {Delete: append(a, a...)},
		"goes, its vector stays":     {Delete: a},
		"unknown index file":         {Index: &IndexChange{Delete: []manifest.IndexEntry{unknown}}},
		"index file again":           {Index: &IndexChange{Add: x.Add}},
		"two vectors of a data file": {Index: &other},
	} {
		_, err := f.tab.BuildCommit(bg, f.st, ch, f.info(OperationMerge))
		require.Error(t, err, what)
		if what == "two vectors of a data file" {
			require.ErrorIs(t, err, ErrCorrupt)
		} else {
			require.ErrorIs(t, err, manifest.ErrInconsistent, what)
		}
	}
	before := f.st.complete
	f.st.complete = false
	_, err := f.tab.BuildCommit(bg, f.st, Changes{}, f.info(""))
	require.ErrorIs(t, err, ErrNewer)
	f.st.complete = before

	old := f.tab
	f.alter(func(s *Schema) { s.Fields = append(s.Fields, field(1, "more", types.IntType())) })
	f.commit(Changes{}, "")
	_, err = old.BuildCommit(bg, f.st, Changes{}, f.info(""))
	require.ErrorIs(t, err, ErrSchemaChanged)
}

// A lost race leaves the winner's snapshot, and an attempt can be built again.
func TestPublish_NeverReplacesASnapshot(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	other, err := OpenTable(bg, f.bucket, Write)
	require.NoError(t, err)
	files := f.write(WriterSettings{}, ints(1))
	c, err := other.BuildCommit(bg, f.st, Changes{Add: files}, f.info(OperationWrite))
	require.NoError(t, err)
	f.insert(ints(2))
	require.NoError(t, f.bucket.PutAll(bg, c.Objects))
	require.ErrorIs(t, other.Publish(bg, c), objstore.ErrExist)
	f.commit(Changes{Add: files}, OperationWrite)
	require.Len(t, scanRows(t, f.tab, f.latest(other), ScanOptions{}), 2)
}

// Index files of other kinds, and of another partition under the same name, are
// carried over as they are.
func TestBuildCommit_KeepsOtherIndexFiles(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.IntType())}, []string{"p"})
	a, b := f.insert(ints(1, 1), ints(2, 1)), f.insert(ints(3, 2), ints(4, 2))
	f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&a[0]), roaring.BitmapOf(0)}, VectorChange{KeyOf(&b[0]), roaring.BitmapOf(1)})}, OperationDelete)
	require.Len(t, f.st.Index, 2)
	hash := manifest.IndexEntry{
		Kind: manifest.Add, Partition: a[0].Partition, Type: "HASH", Name: "index-hash-0", Size: 4, Rows: 1,
		Global: &manifest.GlobalIndex{RowRangeEnd: 5, FieldID: 1, SourceMeta: []byte{1}},
	}
	f.commit(Changes{Index: &IndexChange{Add: []manifest.IndexEntry{hash}}}, "")
	// One index file for two partitions: nobody is known to write that.
	shared := f.st.Index[1]
	shared.Partition, shared.Vectors, shared.Rows = a[0].Partition, nil, 0
	f.commit(Changes{Index: &IndexChange{Add: []manifest.IndexEntry{shared}}}, "")
	f.reopen()
	require.Len(t, f.st.Index, 4)
	f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&b[0]), roaring.BitmapOf(0, 1)})}, OperationDelete)
	f.reopen()
	names := map[string]int{}
	for _, e := range f.st.Index {
		names[e.Name]++
		if e.Type == "HASH" {
			require.Equal(t, hash, e)
		}
	}
	require.Len(t, f.st.Index, 4)
	require.Equal(t, 1, names[shared.Name], "the other partition's entry stays")
	require.Equal(t, 1, names["index-hash-0"])
	n, err := f.tab.CountRows(bg, f.st)
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
}

// What the writer puts into its cache is what readers find in the file.
func TestBuildCommit_CachesWhatItWrites(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "s", types.StringType()), field(2, "a", types.ArrayType(types.IntType()))}[:2], nil)
	f.insert([]types.Datum{types.IntDatum(1), types.Null})
	cached, err := f.tab.Entries(bg, f.st.Manifests[0])
	require.NoError(t, err)
	f.reopen()
	read, err := f.tab.Entries(bg, f.st.Manifests[0])
	require.NoError(t, err)
	require.Equal(t, read, cached)
	again, err := f.tab.Entries(bg, f.st.Manifests[0])
	require.NoError(t, err)
	require.Same(t, &read[0], &again[0], "read once")
}
