package paimon

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// bg is for helpers that rapid's and fuzzing's tests use.
var bg = context.Background()

// fixture is a table in memory with one writer.
type fixture struct {
	t      require.TestingT
	bucket *objstore.Mem
	tab    *Table
	st     *State
	uuids  int
	clock  int64
}

// newFixture makes a table; options are "key=value".
func newFixture(t require.TestingT, fields []types.Field, partition []string, options ...[2]string) *fixture {
	m := map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}
	for _, o := range options {
		m[o[0]] = o[1]
	}
	s, err := NewSchema(fields, partition, m, nil, 1)
	require.NoError(t, err)
	f := &fixture{t: t, bucket: objstore.NewMem(objstore.MemOptions{}), clock: 1_000_000}
	require.NoError(t, CreateTable(bg, f.bucket, s))
	f.reopen()
	return f
}

// reopen opens the table anew, at its latest schema and snapshot, with empty caches.
func (f *fixture) reopen() {
	tab, err := OpenTable(bg, f.bucket, Write)
	require.NoError(f.t, err)
	f.tab, f.st = tab, f.latest(tab)
}

func (f *fixture) latest(tab *Table) *State {
	id, err := LatestSnapshotID(bg, f.bucket, tab.Paths())
	require.NoError(f.t, err)
	var s *Snapshot
	if id > 0 {
		s, err = ReadSnapshot(bg, f.bucket, tab.Paths(), id)
		require.NoError(f.t, err)
	}
	st, err := tab.State(bg, s)
	require.NoError(f.t, err)
	return st
}

// alter writes a schema with other columns.
func (f *fixture) alter(change func(*Schema)) {
	s := *f.tab.Schema()
	s.ID++
	s.Fields = append([]types.Field{}, s.Fields...)
	change(&s)
	require.NoError(f.t, s.index())
	b, err := s.Encode()
	require.NoError(f.t, err)
	require.NoError(f.t, f.bucket.PutIfAbsent(bg, Paths{}.Schema(s.ID), b))
	f.reopen()
}

func (f *fixture) uuid() string {
	f.uuids++
	return fmt.Sprintf("%08d-0000-4000-8000-%012d", f.uuids*2654435761%100_000_000, f.uuids)
}

func (f *fixture) info(op Operation) CommitInfo {
	f.clock++
	return CommitInfo{UUID: f.uuid(), User: "tester", Identifier: int64(f.uuids), Operation: op, TimeMillis: f.clock, NewUUID: f.uuid}
}

// batch makes a batch of the table's columns.
func (f *fixture) batch(rows ...[]types.Datum) *types.Batch {
	b := types.NewBatch(f.tab.Schema().Fields)
	for _, r := range rows {
		require.Len(f.t, r, len(b.Cols))
		b.AppendDatums(r)
	}
	return b
}

// write encodes and stores rows of one partition, that of the first row.
func (f *fixture) write(s WriterSettings, rows ...[]types.Datum) []manifest.Entry {
	if s.NewUUID == nil {
		s.NewUUID = f.uuid
	}
	if s.Now == nil {
		s.Now = func() time.Time { return time.UnixMilli(f.clock).UTC() }
	}
	w, err := f.tab.NewDataFileWriter(s)
	require.NoError(f.t, err)
	b := f.batch(rows...)
	sel := make([]uint32, len(rows))
	for i := range sel {
		sel[i] = uint32(i)
	}
	p, err := f.tab.PartitionOf(b, 0)
	require.NoError(f.t, err)
	files, err := w.Write(p, b, sel)
	require.NoError(f.t, err)
	var out []manifest.Entry
	for _, x := range files {
		require.NoError(f.t, f.bucket.PutAll(bg, x.Objects()))
		out = append(out, x.Entry)
	}
	return out
}

// commit builds, stores and publishes.
func (f *fixture) commit(ch Changes, op Operation) *Commit {
	c, err := f.tab.BuildCommit(bg, f.st, ch, f.info(op))
	require.NoError(f.t, err)
	f.publish(c, ch)
	return c
}

func (f *fixture) publish(c *Commit, ch Changes) {
	objects := c.Objects
	if ch.Index != nil {
		objects = append(append([]objstore.Object{}, objects...), ch.Index.Objects...)
	}
	require.NoError(f.t, f.bucket.PutAll(bg, objects))
	require.NoError(f.t, f.tab.Publish(bg, c))
	f.st = c.State
}

// insert commits rows of one partition.
func (f *fixture) insert(rows ...[]types.Datum) []manifest.Entry {
	files := f.write(WriterSettings{}, rows...)
	f.commit(Changes{Add: files}, OperationWrite)
	return files
}

func ints(v ...int64) []types.Datum {
	var row []types.Datum
	for _, x := range v {
		row = append(row, types.IntDatum(x))
	}
	return row
}
