package paimon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

func TestLocalPath_IsAPathOfThisMachineThatEndsWithTheName(t *testing.T) {
	for full, want := range map[string]string{
		"file:/a/b/f.parquet": "/a/b/f.parquet", "file:///a/b/f.parquet": "/a/b/f.parquet", "/a b/ü%20/f.parquet": "/a b/ü%20/f.parquet",
		"s3://a/f.parquet": "", "hdfs:/a/f.parquet": "", "file://host/f.parquet": "", "a/f.parquet": "", "/a/../f.parquet": "", "/a//f.parquet": "",
		"/a/g.parquet": "", "/a/f.parquet/": "", "/a\x00/f.parquet": "", "": "", "file:f.parquet": "",
	} {
		got, err := localPath(full, "f.parquet")
		if want == "" {
			require.ErrorIs(t, err, ErrExternalPath, full)
			continue
		}
		require.NoError(t, err, full)
		require.Equal(t, want, got)
	}
	_, err := localPath("/a/..", "..")
	require.ErrorIs(t, err, ErrBadName)
}

// outsideTable is a table on disk with one file in its folder and one outside.
type outsideTable struct {
	t       *testing.T
	tab     *Table
	st      *State
	files   []manifest.Entry // the second one is outside
	outside string
}

func newOutsideTable(t *testing.T, options map[string]string) *outsideTable {
	dir, ext := filepath.Join(t.TempDir(), "t"), filepath.Join(t.TempDir(), "ext")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.MkdirAll(ext, 0o755))
	options["data-file.external-paths"], options["data-file.external-paths.strategy"] = "file://"+ext+"/", "round-robin"
	bucket, err := objstore.NewLocal(dir, objstore.LocalOptions{})
	require.NoError(t, err)
	s, err := NewSchema([]types.Field{field(0, "id", types.IntType())}, nil, options, nil, 1)
	require.NoError(t, err)
	require.NoError(t, CreateTable(bg, bucket, s))
	tab, err := OpenTable(bg, bucket, Write)
	require.NoError(t, err)
	st, err := tab.State(bg, nil)
	require.NoError(t, err)
	o := &outsideTable{t: t, tab: tab, st: st}
	for i := range 2 {
		b := types.NewBatch(s.Fields)
		for r := range 3 {
			b.AppendDatums(ints(int64(10*i + r)))
		}
		files, err := o.writer().Write(binrow.Empty(), b, []uint32{0, 1, 2})
		require.NoError(t, err)
		f := files[0]
		if i == 1 {
			o.outside = filepath.Join(ext, f.Entry.File.Name)
			require.NoError(t, os.WriteFile(o.outside, f.Object.Data, 0o644))
			f.Entry.File.ExternalPath = new("file:" + o.outside)
		} else {
			require.NoError(t, bucket.PutAll(bg, f.Objects()))
		}
		o.files = append(o.files, f.Entry)
	}
	o.commit(Changes{Add: o.files})
	return o
}

func (o *outsideTable) writer() *DataFileWriter {
	w, err := o.tab.NewDataFileWriter(WriterSettings{NewUUID: uuid.NewString})
	require.NoError(o.t, err)
	return w
}

func (o *outsideTable) commit(ch Changes) {
	c, err := o.tab.BuildCommit(bg, o.st, ch, CommitInfo{UUID: uuid.NewString(), User: "u", Identifier: 1, TimeMillis: 1, NewUUID: uuid.NewString})
	require.NoError(o.t, err)
	objects := c.Objects
	if ch.Index != nil {
		objects = append(objects, ch.Index.Objects...)
	}
	require.NoError(o.t, o.tab.Bucket().PutAll(bg, objects))
	require.NoError(o.t, o.tab.Publish(bg, c))
	o.st = c.State
}

func (o *outsideTable) ids() (ids []int64) {
	for _, row := range scanRows(o.t, o.tab, o.st, ScanOptions{}) {
		ids = append(ids, row[0].I)
	}
	return ids
}

func TestTable_FilesOutsideAreReadMarkedAndRewritten(t *testing.T) {
	o := newOutsideTable(t, map[string]string{OptDeletionVectors: "true"})
	require.ElementsMatch(t, []int64{0, 1, 2, 10, 11, 12}, o.ids())
	x, err := o.tab.BuildVectors(o.st, []VectorChange{{KeyOf(&o.files[1]), roaring.BitmapOf(1)}}, nil, uuid.NewString)
	require.NoError(t, err)
	o.commit(Changes{Index: x})
	require.ElementsMatch(t, []int64{0, 1, 2, 10, 12}, o.ids())
	require.NoError(t, o.tab.CheckSeal(bg, &o.files[1]))
	info, err := o.tab.StatData(bg, &o.files[1])
	require.NoError(t, err)
	require.Equal(t, o.files[1].File.Size, info.Size)
	where, err := o.tab.Paths().Location(&o.files[1])
	require.NoError(t, err)
	require.Equal(t, "file:"+o.outside, where)

	cow := newOutsideTable(t, map[string]string{})
	n, err := cow.writer().Rewrite(bg, &cow.files[1], roaring.BitmapOf(0))
	require.NoError(t, err)
	require.Nil(t, n.File.ExternalPath, "new files stay in the table's folder")
	cow.commit(Changes{Add: []manifest.Entry{*n}, Delete: []manifest.Entry{cow.files[1]}})
	require.ElementsMatch(t, []int64{0, 1, 2, 11, 12}, cow.ids())
}

// Whose a file outside is cannot be known: expiry and the search for orphans leave it.
func TestTable_NothingDeletesFilesOutside(t *testing.T) {
	o := newOutsideTable(t, map[string]string{})
	o.commit(Changes{Delete: o.files})
	o.commit(Changes{})
	p, err := o.tab.PlanExpire(bg, ExpireOptions{RetainMin: 1, RetainMax: 1, Now: time.Now()})
	require.NoError(t, err)
	require.EqualValues(t, 2, p.Snapshots())
	key, err := o.tab.Paths().Data(&o.files[0])
	require.NoError(t, err)
	require.Equal(t, []string{key}, p.DataFiles)
	require.NoError(t, o.tab.Expire(bg, p))
	found, err := o.tab.FindOrphans(bg, time.Now().Add(48*time.Hour), time.Now().Add(24*time.Hour))
	require.NoError(t, err)
	require.NoError(t, o.tab.DeleteOrphans(bg, found))
	_, err = os.Stat(o.outside)
	require.NoError(t, err)
}

func TestTable_FilesOutsideAreRefusedWhereTheyCannotBeRead(t *testing.T) {
	o := newOutsideTable(t, map[string]string{})
	read := func(full string) error {
		e := o.files[1]
		e.File.ExternalPath = &full
		return o.tab.ReadFile(bg, &e, []int{0}, func(int64, *types.Batch) error { return nil })
	}
	require.NoError(t, read(o.outside))
	require.ErrorIs(t, read("s3://bucket/"+filepath.Base(o.outside)), ErrExternalPath)
	require.ErrorIs(t, read(filepath.Dir(o.outside)), ErrExternalPath)
	require.ErrorIs(t, read("/nowhere/"+filepath.Base(o.outside)), objstore.ErrNotExist)
	folder := filepath.Join(t.TempDir(), o.files[1].File.Name)
	require.NoError(t, os.Mkdir(folder, 0o755))
	require.Error(t, read(folder), "a folder")

	mem := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	e := mem.insert(ints(1))[0]
	e.File.ExternalPath = new("file:" + o.outside)
	require.ErrorIs(t, mem.tab.CheckPlace(&e), ErrExternalPath, "a store that is no disk")
	require.NoError(t, o.tab.CheckPlace(&o.files[1]))
}
