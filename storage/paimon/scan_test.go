package paimon

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/objstore"
	"applier/storage/paimon/binrow"
	"applier/storage/paimon/dv"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// opened counts what a table reads.
type opened struct {
	objstore.Bucket
	keys []string
}

func (o *opened) Get(ctx context.Context, key string) ([]byte, error) {
	o.keys = append(o.keys, key)
	return o.Bucket.Get(ctx, key)
}

func (o *opened) Open(ctx context.Context, key string, size int64) (objstore.Reader, error) {
	o.keys = append(o.keys, key)
	return o.Bucket.Open(ctx, key, size)
}

func (o *opened) count(part string) (n int) {
	for _, k := range o.keys {
		if strings.Contains(k, part) {
			n++
		}
	}
	return n
}

// Manifests and files that cannot hold a matching row are not opened.
func TestScan_OpensOnlyWhatMayMatch(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "p", types.StringType()), field(1, "id", types.IntType())}, []string{"p"})
	rows := map[string][2]int64{"a": {0, 9}, "b": {10, 19}, "": {20, 29}}
	for _, p := range []string{"a", "b", ""} {
		for k := int64(0); k < 2; k++ { // two files of five rows each a partition
			var batch [][]types.Datum
			for i := rows[p][0] + 5*k; i < rows[p][0]+5*k+5; i++ {
				d := types.StringDatum(p)
				if p == "" {
					d = types.Null
				}
				batch = append(batch, []types.Datum{d, types.IntDatum(i)})
			}
			f.insert(batch...)
		}
	}
	all := scanRows(t, f.tab, f.st, ScanOptions{})
	for _, c := range []struct {
		where            []Condition
		manifests, files int
	}{
		{nil, 6, 6},
		{[]Condition{{0, Equal, types.StringDatum("b")}}, 2, 2},
		{[]Condition{{0, Equal, types.StringDatum("c")}}, 0, 0},
		{[]Condition{{0, IsNull, types.Datum{}}}, 2, 2},
		{[]Condition{{0, NotNull, types.Datum{}}}, 4, 4},
		{[]Condition{{0, GreaterEqual, types.StringDatum("b")}, {1, Less, types.IntDatum(15)}}, 2, 1},
		{[]Condition{{1, Equal, types.IntDatum(7)}}, 6, 1},
		{[]Condition{{1, Greater, types.IntDatum(24)}}, 6, 1},
		{[]Condition{{1, IsNull, types.Datum{}}}, 6, 0},
		{[]Condition{{1, Equal, types.Null}}, 6, 0},
	} {
		o := &opened{Bucket: f.bucket}
		tab, err := OpenTable(t.Context(), o, Read)
		require.NoError(t, err)
		o.keys = nil
		checkPruned(t, tab, f.st, all, c.where...)
		require.Equal(t, c.manifests, o.count("manifest/manifest-"), "%+v", c.where)
		require.Equal(t, c.files, o.count(".parquet"), "%+v", c.where)
	}
}

// Manifests of several partitions are kept by their bounds, and files of the
// others passed over; a file that has gone does not come back.
func TestScan_PartitionBoundsOfMergedManifests(t *testing.T) {
	typ := []types.Type{types.IntType(), types.StringType(), types.CharType(3), types.DateType(), types.DecimalType(20, 1), types.TimestampType(6), types.BooleanType()}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(typ).Draw(t, "type")
		f := newFixture(t, []types.Field{field(0, "p", p), field(1, "id", types.IntType())}, []string{"p"})
		var all []manifest.Entry
		for i := range rapid.IntRange(1, 12).Draw(t, "commits") {
			var ch Changes
			for range rapid.IntRange(1, 2).Draw(t, "files") {
				v := datumGen(p).Filter(func(d types.Datum) bool { return d.Null || !slices.Contains(d.B, 0) }).Draw(t, "partition")
				ch.Add = append(ch.Add, f.write(WriterSettings{}, []types.Datum{v, types.IntDatum(int64(i))})...)
			}
			if len(all) > 0 && rapid.Bool().Draw(t, "one goes") {
				k := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				ch.Delete = append(ch.Delete, all[k])
				all = slices.Delete(all, k, k+1)
			}
			all = append(all, ch.Add...)
			f.commit(ch, OperationMerge)
		}
		rows := scanRows(t, f.tab, f.st, ScanOptions{})
		require.Len(t, rows, len(all))
		for range 5 {
			checkPruned(t, f.tab, f.st, rows, Condition{0, rapid.SampledFrom(allOperators).Draw(t, "operator"), datumGen(p).Draw(t, "value")})
		}
	})
}

func TestScan_PicksColumnsInAnyOrder(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "a", types.IntType()), field(1, "p", types.IntType()), field(2, "b", types.StringType())}, []string{"p"})
	s := types.StringDatum
	f.insert([]types.Datum{types.IntDatum(1), types.IntDatum(7), s("x")}, []types.Datum{types.IntDatum(2), types.IntDatum(7), s("y")})
	for _, cols := range [][]int{{2, 0}, {1}, {0, 0, 1}, {2}} {
		for _, where := range [][]Condition{nil, {{0, Equal, types.IntDatum(2)}}, {{0, Greater, types.IntDatum(0)}, {1, Equal, types.IntDatum(7)}}} {
			rows := scanRows(t, f.tab, f.st, ScanOptions{Columns: cols, Where: where})
			n := 2
			if len(where) == 1 {
				n = 1
			}
			require.Len(t, rows, n)
			for k, c := range cols {
				require.Equal(t, []types.Datum{types.IntDatum(2), types.IntDatum(7), s("y")}[c], rows[n-1][k])
			}
			require.Len(t, rows[0], len(cols))
		}
	}
	none := func(*types.Batch) error { return nil }
	for _, o := range []ScanOptions{{Columns: []int{}}, {Columns: []int{3}}, {Columns: []int{-1}}, {Where: []Condition{{Column: 3}}}, {Where: []Condition{{Column: -1}}}, {Where: []Condition{{Op: NotNull + 1}}}} {
		require.Error(t, f.tab.Scan(t.Context(), f.st, o, none))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.tab.Scan(ctx, f.st, ScanOptions{}, none), context.Canceled)
}

func TestScan_DeletedRowsAreThoseOfTheVector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
		n := rapid.SampledFrom([]int{1, 5, 8192, 8193, 20_000}).Draw(t, "rows")
		var rows [][]types.Datum
		for i := range n {
			rows = append(rows, ints(int64(i)))
		}
		e := f.insert(rows...)[0]
		m := roaring.New()
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			from := rapid.IntRange(0, n-1).Draw(t, "from")
			m.AddRange(uint64(from), uint64(rapid.IntRange(from+1, n).Draw(t, "to")))
		}
		f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&e), m})}, OperationDelete)
		got := scanRows(t, f.tab, f.st, ScanOptions{})
		require.Len(t, got, n-int(m.GetCardinality()))
		for _, r := range got {
			require.False(t, m.Contains(uint32(r[0].I)))
		}
		c := Condition{0, GreaterEqual, types.IntDatum(int64(n / 2))}
		checkPruned(t, f.tab, f.st, got, c)
	})
}

// What index manifests of other writers may have.
func TestCountRows_WhateverTheIndexManifestSays(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil, [2]string{"deletion-vectors.modifiable", "true"})
	a := f.insert(ints(1), ints(2), ints(3))[0]
	f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&a), roaring.BitmapOf(1)})}, OperationDelete)
	count := func() (int64, error) { return f.tab.CountRows(t.Context(), f.st) }
	good := f.st.Index[0]
	vector := func(change func(*manifest.IndexEntry)) {
		e := good
		e.Vectors = slices.Clone(good.Vectors)
		change(&e)
		f.st.Index = []manifest.IndexEntry{e}
	}
	vector(func(e *manifest.IndexEntry) { e.Vectors[0].Cardinality = nil })
	n, err := count()
	require.NoError(t, err)
	require.EqualValues(t, 2, n, "the vector itself was read")
	require.Len(t, scanRows(t, f.tab, f.st, ScanOptions{}), 2)

	vector(func(e *manifest.IndexEntry) { e.Vectors[0].Cardinality = new(int64(4)) })
	_, err = count()
	require.ErrorIs(t, err, ErrCorrupt, "more deleted rows than rows")
	scan := func() error {
		return f.tab.Scan(t.Context(), f.st, ScanOptions{}, func(*types.Batch) error { return nil })
	}
	require.ErrorIs(t, scan(), dv.ErrCorrupt)
	require.ErrorContains(t, scan(), good.Name)
	vector(func(e *manifest.IndexEntry) { e.Size++ })
	require.ErrorIs(t, scan(), ErrCorrupt)
	vector(func(e *manifest.IndexEntry) { e.Vectors[0].Offset += 2 })
	require.ErrorIs(t, scan(), dv.ErrCorrupt)
	vector(func(e *manifest.IndexEntry) { e.ExternalPath = new("s3://elsewhere/i") })
	require.ErrorIs(t, scan(), ErrExternalPath)
	vector(func(e *manifest.IndexEntry) { e.Vectors = append(e.Vectors, e.Vectors[0]) })
	require.ErrorIs(t, scan(), ErrCorrupt, "two vectors")
	_, err = count()
	require.ErrorIs(t, err, ErrCorrupt)

	// Vectors of a table without the option are no vectors.
	vector(func(*manifest.IndexEntry) {})
	off := f.tab.options
	f.tab.options.DeletionVectors = false
	n, err = count()
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	require.Len(t, scanRows(t, f.tab, f.st, ScanOptions{}), 3)
	f.tab.options = off

	// A vector with a position that the file has not.
	f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&a), roaring.BitmapOf(3)})}, OperationDelete)
	require.ErrorIs(t, scan(), dv.ErrCorrupt)
}

// Lists and manifests that do not say what is there.
func TestState_ComparesWhatIsRecordedWithWhatIsThere(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	a := f.insert(ints(1), ints(2))[0]
	f.commit(Changes{Index: f.vectors(VectorChange{KeyOf(&a), roaring.BitmapOf(0)})}, OperationDelete)
	s := *f.st.Snapshot
	s.BaseManifestListSize = new(*s.BaseManifestListSize + 1)
	_, err := f.tab.State(t.Context(), &s)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, s.BaseManifestList)
	s.BaseManifestListSize = nil // as before Paimon 1.1
	_, err = f.tab.State(t.Context(), &s)
	require.NoError(t, err)
	s.DeltaManifestListSize = new(int64(0))
	_, err = f.tab.Delta(t.Context(), &s)
	require.ErrorIs(t, err, ErrCorrupt)
	for what, change := range map[string]func(*manifest.Meta){
		"size": func(m *manifest.Meta) { m.Size-- }, "added": func(m *manifest.Meta) { m.Added++ }, "deleted": func(m *manifest.Meta) { m.Deleted++ },
	} {
		f.reopen()
		m := f.st.Manifests[0]
		change(&m)
		_, err = f.tab.Entries(t.Context(), m)
		require.ErrorIs(t, err, ErrCorrupt, what)
		require.ErrorContains(t, err, m.Name)
	}
	require.ErrorIs(t, checkEntries(manifest.Meta{}, []manifest.Entry{{Kind: 7}}), ErrCorrupt)
	require.ErrorIs(t, checkEntries(manifest.Meta{Added: 1}, []manifest.Entry{{File: manifest.DataFile{Rows: -1}}}), ErrCorrupt)
	require.ErrorIs(t, checkEntries(manifest.Meta{Added: 1}, []manifest.Entry{{File: manifest.DataFile{Size: -1}}}), ErrCorrupt)

	for what, change := range map[string]func(*manifest.IndexEntry){
		"vectors": func(e *manifest.IndexEntry) { e.Rows++ }, "kind": func(e *manifest.IndexEntry) { e.Kind = manifest.Delete },
	} {
		e := f.st.Index[0]
		change(&e)
		b, err := f.tab.codec.EncodeIndex([]manifest.IndexEntry{e})
		require.NoError(t, err)
		require.NoError(t, f.bucket.PutAll(t.Context(), []objstore.Object{{Key: "manifest/index-" + what, Data: b}}))
		s := *f.st.Snapshot
		s.IndexManifest = new("index-" + what)
		_, err = f.tab.State(t.Context(), &s)
		require.ErrorIs(t, err, ErrCorrupt, what)
		_, err = f.tab.Index(t.Context(), &s)
		require.ErrorIs(t, err, ErrCorrupt, what)
	}
	none, err := f.tab.Index(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// Reading a part of the manifests is right for the partitions that it is right for.
func TestFiles_OfSomeManifests(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "p", types.IntType()), field(1, "id", types.IntType())}, []string{"p"})
	a, b := f.insert(ints(1, 1)), f.insert(ints(2, 2))
	f.commit(Changes{Delete: a}, OperationDelete)
	in := func(p int64) func(manifest.Meta) bool {
		return func(m manifest.Meta) bool {
			low, err := binrow.Decode([]types.Type{types.IntType()}, m.PartitionStats.Min)
			require.NoError(t, err)
			return low[0].I == p
		}
	}
	files, err := f.tab.Files(t.Context(), f.st, in(1))
	require.NoError(t, err)
	require.Empty(t, files)
	files, err = f.tab.Files(t.Context(), f.st, in(2))
	require.NoError(t, err)
	require.Equal(t, b, files)
	deletes := func(m manifest.Meta) bool { return m.Deleted > 0 }
	files, err = f.tab.Files(t.Context(), f.st, deletes)
	require.NoError(t, err)
	require.Empty(t, files, "a DELETE without its ADD is no file")
	// All of them: then a stray DELETE is an error.
	stray := &State{Manifests: f.st.Manifests[2:]}
	_, err = f.tab.Files(t.Context(), stray, nil)
	require.ErrorIs(t, err, manifest.ErrInconsistent)
}

// synced notes what is made durable.
type synced struct {
	objstore.Bucket
	keys map[string]bool
}

func (s *synced) Sync(ctx context.Context, keys ...string) error {
	for _, k := range keys {
		s.keys[k] = true
	}
	return s.Bucket.Sync(ctx, keys...)
}

// Everything that came with another writer's snapshot is synced, merged manifests,
// companions of data files, statistics and schema included.
func TestSyncSnapshot_SyncsAllThatIsNew(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.IntType())}, []string{"p"})
	before := map[string]bool{}
	for i := range mergeFanIn + 2 { // the last but one merges
		if i == 3 {
			f.alter(func(s *Schema) { s.Fields = append(s.Fields, field(2, "more", types.IntType())) })
		}
		row := append(ints(int64(i), 1), make([]types.Datum, len(f.tab.Schema().Fields)-2)...)
		files := f.write(WriterSettings{}, row, row)
		key, err := f.tab.Paths().Data(&files[0])
		require.NoError(t, err)
		files[0].File.ExtraFiles = []string{files[0].File.Name + ".index"}
		require.NoError(t, f.bucket.PutAll(bg, []objstore.Object{{Key: key + ".index", Data: []byte("bloom")}}))
		x := f.vectors(VectorChange{KeyOf(&files[0]), roaring.BitmapOf(1)})
		c := f.commit(Changes{Add: files, Index: x}, OperationMerge)
		s := *c.Snapshot
		s.Statistics = new(f.uuid())
		require.NoError(t, f.bucket.PutAll(bg, []objstore.Object{{Key: "statistics/" + *s.Statistics, Data: []byte("{}")}}))

		b := &synced{f.bucket, map[string]bool{}}
		tab, err := OpenTable(bg, b, Read)
		require.NoError(t, err)
		require.NoError(t, tab.SyncSnapshot(bg, &s))
		f.bucket.Walk(func(key string, _ []byte) {
			if !before[key] {
				require.True(t, b.keys[key], key)
			}
			before[key] = true
		})
	}
	require.Less(t, len(f.st.Manifests), mergeFanIn)
	key, err := f.tab.Paths().Manifest(f.st.Manifests[0].Name)
	require.NoError(t, err)
	require.NoError(t, f.bucket.Delete(bg, key))
	require.ErrorIs(t, f.tab.SyncSnapshot(bg, f.st.Snapshot), objstore.ErrNotExist)
}

func TestEntryCache_IsBoundedAndForgets(t *testing.T) {
	c := newEntryCache()
	entries := make([]manifest.Entry, 100)
	names := []string{}
	for i := range 500 {
		name := strings.Repeat("x", i+1)
		names = append(names, name)
		c.put(name, entries, true)
		require.LessOrEqual(t, c.size, cachedEntriesInAll)
	}
	require.Len(t, c.items, cachedEntriesInAll/100)
	_, ok := c.get(names[0])
	require.False(t, ok, "the oldest goes first")
	_, ok = c.get(names[499])
	require.True(t, ok)
	c.forget(names[499])
	c.forget("never seen")
	_, ok = c.get(names[499])
	require.False(t, ok)
	require.Equal(t, len(c.items)*100, c.size)
	c.put("large", make([]manifest.Entry, cachedManifestEntries+1), false)
	_, ok = c.get("large")
	require.False(t, ok)
	require.True(t, c.isLossy("large"))
	require.False(t, c.isLossy(names[0]))
	empty := newEntryCache() // many small ones
	for i := range 2 * cachedEntriesInAll {
		empty.put(time.UnixMicro(int64(i)).String(), nil, true)
	}
	require.LessOrEqual(t, len(empty.names), cachedEntriesInAll)
	require.LessOrEqual(t, len(empty.items), cachedEntriesInAll)
}
