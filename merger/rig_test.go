package merger

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger/keyindex"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

// rig is a commit loop on a real table in memory, driven step by step by the
// test, which is its source too.
type rig struct {
	t       require.TestingT
	disk    *objstore.Mem
	far     objstore.Bucket // where the table is instead, nil for disk
	marks   *objstore.Mem
	table   *paimon.Table
	set     Settings
	a       *Applier
	b       *batcher.Batcher
	parts   []change.Partition
	now     time.Time
	uuids   int
	offsets []int64

	generation uint64
	resumed    change.Positions // where the loop told us to read
	stopped    bool
	unowned    bool
	resumeErr  error
	released   int
	refusals   []string
	letters    []string
	letterErr  error
	seen       rigSeen
	committed  []Commit
	onStage    func(name string)
}

// rigSeen is what the loop told its observer.
type rigSeen struct {
	notices []Notice
	halts   []string
	split   int64
	classes []string
	rebuilt []int64
}

type rigOptions struct {
	fields     []types.Field
	partition  []string
	apply      batcher.Apply
	key        []int
	orderBy    []int
	onError    string
	partitions int
	settings   func(*Settings)
	fault      func(objstore.Op) objstore.Fault
	options    map[string]string // of the table, beside those of its mode
}

const rigTopic = "t"

// tableModes are the kinds of tables that a batch must do the same to.
var tableModes = map[string]map[string]string{
	"vectors":                {},
	"wide vectors":           {"deletion-vectors.bitmap64": "true"},
	"copy on write":          {"deletion-vectors.enabled": "false"},
	"buckets, vectors":       {"bucket": "3", "bucket-key": "k"},
	"buckets, copy on write": {"bucket": "3", "bucket-key": "k", "deletion-vectors.enabled": "false"},
	"tracked, vectors":       {"row-tracking.enabled": "true"},
	"tracked, copy on write": {"row-tracking.enabled": "true", "deletion-vectors.enabled": "false"},
}

func newRig(t require.TestingT, o rigOptions) *rig {
	r := &rig{t: t, now: time.UnixMilli(1_800_000_000_000)}
	r.disk = objstore.NewMem(objstore.MemOptions{Now: r.clock})
	r.marks = objstore.NewMem(objstore.MemOptions{Now: r.clock})
	options := map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}
	maps.Copy(options, o.options)
	schema, err := paimon.NewSchema(o.fields, o.partition, options, nil, r.now.UnixMilli())
	require.NoError(t, err)
	require.NoError(t, paimon.CreateTable(context.Background(), r.disk, schema))
	for p := range max(o.partitions, 1) {
		r.parts = append(r.parts, change.Partition{Topic: rigTopic, Partition: int32(p)})
	}
	r.offsets = make([]int64, len(r.parts))
	r.set = Settings{
		ID: "p", Apply: o.apply, Key: o.key, Order: batcher.Order{By: o.orderBy}, Topics: []string{rigTopic}, OnRowError: o.onError, Instance: "i",
		Pin: true, VerifySample: 1, Marks: r.marks, EncodeConcurrency: 1, CommitUserPrefix: "applier-", Log: slog.New(slog.DiscardHandler), Now: r.clock, UUID: r.uuid,
	}
	if o.settings != nil {
		o.settings(&r.set)
	}
	r.open(o.fault)
	return r
}

// open starts a loop on the table as it is: a new process.
func (r *rig) open(fault func(objstore.Op) objstore.Fault) {
	var err error
	r.table, err = paimon.OpenTable(context.Background(), r.disk.Attach(objstore.MemOptions{Now: r.clock, Fault: fault}), paimon.Write)
	require.NoError(r.t, err)
	r.a, err = New(context.Background(), r.set, Deps{Name: "db.t", Table: r.table, Source: r, Letters: r, Observer: rigObserver{r}})
	require.NoError(r.t, err)
	r.b, err = batcher.New(batcher.Options{Fields: r.table.Schema().Fields, Key: r.set.Key, Order: r.set.Order, Remembers: r.set.RememberDeletes > 0, Apply: r.set.Apply, Limits: batcher.Limits{Rows: 1 << 20}})
	require.NoError(r.t, err)
}

func (r *rig) close() { r.a.view.drop() }

func (r *rig) clock() time.Time { return r.now }

func (r *rig) uuid() string {
	r.uuids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", r.uuids)
}

// drive performs effects until the loop waits for something that only the test
// can bring, or for time to pass.
func (r *rig) drive() {
	for r.a.due != nil {
		if _, ok := r.a.due.(Wait); ok {
			return
		}
		r.a.advanceDue(context.Background())
	}
}

// retry lets the time of a Wait pass.
func (r *rig) retry() {
	require.IsType(r.t, Wait{}, r.a.due)
	r.a.endWait()
	r.drive()
}

func (r *rig) post(ev Event) {
	r.a.step(ev)
	r.drive()
}

// begin gives the loop the table; it must come to rest idle.
func (r *rig) begin() {
	r.post(Assigned{})
	require.Equal(r.t, PhaseIdle, r.a.state.Phase, "halt: %v", r.a.state.Halt)
}

// flush closes the open batch and hands it over.
func (r *rig) flush() {
	r.a.take(r.b.Seal(batcher.FlushManual))
	r.drive()
}

// commit is flush, and must succeed.
func (r *rig) commit() Commit {
	n := len(r.committed)
	r.flush()
	require.Equal(r.t, PhaseIdle, r.a.state.Phase, "halt: %v, failure %v", r.a.state.Halt, r.a.failure)
	require.Len(r.t, r.committed, n+1)
	return r.committed[n]
}

// record passes the record of the rows that put appended.
func (r *rig) record(part int32) {
	r.b.Record(part, r.offsets[part], 3, nil, fmt.Append(nil, r.offsets[part]), r.now)
	r.offsets[part]++
}

// bucket is where other writers find the table.
func (r *rig) bucket() objstore.Bucket {
	if r.far != nil {
		return r.far
	}
	return r.disk
}

// latest reads the latest snapshot's state.
func (r *rig) latest() *paimon.State {
	ctx := context.Background()
	id, err := paimon.LatestSnapshotID(ctx, r.bucket(), r.table.Paths())
	require.NoError(r.t, err)
	if id == 0 {
		st, err := r.table.State(ctx, nil)
		require.NoError(r.t, err)
		return st
	}
	s, err := paimon.ReadSnapshot(ctx, r.bucket(), r.table.Paths(), id)
	require.NoError(r.t, err)
	st, err := r.table.State(ctx, s)
	require.NoError(r.t, err)
	return st
}

// rows returns the table's rows as sorted texts.
func (r *rig) rows() []string {
	return r.rowsOf(r.latest())
}

func (r *rig) rowsOf(st *paimon.State) []string {
	rows := []string{}
	fields := r.table.Schema().Fields
	err := r.table.Scan(context.Background(), st, paimon.ScanOptions{}, func(b *types.Batch) error {
		for i := range b.Len() {
			rows = append(rows, rowText(fields, b.Row(i)))
		}
		return nil
	})
	require.NoError(r.t, err)
	slices.Sort(rows)
	return rows
}

func rowText(fields []types.Field, row []types.Datum) string {
	var cells []string
	for c, d := range row {
		cells = append(cells, fields[c].Name+"="+datumText(fields[c].Type, d))
	}
	return strings.Join(cells, " ")
}

func datumText(t types.Type, d types.Datum) string {
	if d.Null {
		return "NULL"
	}
	return string(types.AppendText(nil, t, d))
}

// foreign commits rows as another engine would, and returns the entries' names.
func (r *rig) foreign(rows ...[]types.Datum) {
	ctx := context.Background()
	b := types.NewBatch(r.table.Schema().Fields)
	for _, row := range rows {
		b.AppendDatums(row)
	}
	w, err := r.table.NewDataFileWriter(paimon.WriterSettings{Now: r.clock, NewUUID: r.uuid})
	require.NoError(r.t, err)
	groups, err := groupTargets(r.table, b)
	require.NoError(r.t, err)
	files, err := r.table.Files(ctx, r.latest(), nil)
	require.NoError(r.t, err)
	states := paimon.NewBucketStates(files)
	var ch paimon.Changes
	var objects []objstore.Object
	for _, g := range groups {
		to, err := states.Target(r.table, paimon.BucketKey{Partition: string(g.target.Partition), Bucket: g.target.Bucket})
		require.NoError(r.t, err)
		if r.table.Buckets() == 0 {
			to.Sequence = 0
		}
		files, err := w.WriteTo(to, b, g.rows)
		require.NoError(r.t, err)
		for _, f := range files {
			ch.Add = append(ch.Add, f.Entry)
			objects = append(objects, f.Objects()...)
		}
	}
	r.publishForeign(ctx, ch, objects)
}

func (r *rig) publishForeign(ctx context.Context, ch paimon.Changes, objects []objstore.Object) {
	c, err := r.table.BuildCommit(ctx, r.latest(), ch, paimon.CommitInfo{
		UUID: r.uuid(), User: "spark", Identifier: paimon.BatchCommitIdentifier,
		Operation: paimon.OperationWrite, TimeMillis: r.now.UnixMilli(), NewUUID: r.uuid,
	})
	require.NoError(r.t, err)
	require.NoError(r.t, r.bucket().PutAll(ctx, append(objects, c.Objects...)))
	require.NoError(r.t, r.table.Publish(ctx, c))
}

// The rest is Source, Letters and Observer.

func (r *rig) ResolveStart(context.Context) (change.Positions, map[string]string, string, error) {
	pos := change.Positions{}
	for _, p := range r.parts {
		pos[p] = change.Position{Next: 0, Epoch: -1}
	}
	return pos, map[string]string{rigTopic: "id"}, "cluster", nil
}

func (r *rig) Resume(_ context.Context, pos change.Positions, _ map[string]string, _ string) (uint64, error) {
	if r.resumeErr != nil {
		return 0, r.resumeErr
	}
	r.generation++
	r.resumed, r.stopped = pos.Clone(), false
	r.b.Reset(pos, r.parts, r.generation)
	for i, p := range r.parts {
		r.offsets[i] = pos[p].Next
	}
	return r.generation, nil
}

func (r *rig) Refuse(p change.Partition, offset int64, err *change.RowError) {
	r.refusals = append(r.refusals, fmt.Sprintf("%s@%d %v", p, offset, err))
}
func (r *rig) Stop()                      { r.stopped = true }
func (r *rig) Owned() bool                { return !r.unowned }
func (r *rig) Committed(change.Positions) {}
func (r *rig) Release(b *batcher.Batch)   { r.released++; r.b.Recycle(b) }

func (r *rig) SendRow(_ context.Context, p change.Partition, offset int64, raw *change.RawRecord, err *change.RowError) {
	r.letters = append(r.letters, fmt.Sprintf("%s@%d %q %v", p, offset, raw.Value, err))
}
func (r *rig) Flush(context.Context) error { return r.letterErr }

// rigObserver is what the loop tells.
type rigObserver struct{ r *rig }

func (o rigObserver) Noticed(n Notice) { o.r.seen.notices = append(o.r.seen.notices, n) }
func (o rigObserver) Committed(c Commit) {
	if b := c.Batch; b != nil {
		copied := *b
		c.Batch = &copied
	}
	o.r.committed = append(o.r.committed, c)
}

func (o rigObserver) Halted(h *Halt) {
	text := "over"
	if h != nil {
		text = h.String()
	}
	o.r.seen.halts = append(o.r.seen.halts, text)
}
func (o rigObserver) TwoPartitions(n int64)   { o.r.seen.split += n }
func (o rigObserver) DeadLetter(class string) { o.r.seen.classes = append(o.r.seen.classes, class) }
func (o rigObserver) Rebuilt(rows int64, _ time.Duration) {
	o.r.seen.rebuilt = append(o.r.seen.rebuilt, rows)
}

func (o rigObserver) Stage(name string, _ time.Duration) {
	if o.r.onStage != nil {
		o.r.onStage(name)
	}
}

func newBitmap() *roaring.Bitmap { return roaring.New() }

// checkIndex compares the key index with the table: every live row is found
// where it is, and nothing else.
func (r *rig) checkIndex() {
	v := &r.a.view
	if r.set.Apply == batcher.Append {
		return
	}
	require.NotNil(r.t, v.state)
	require.Equal(r.t, r.latest().Snapshot.ID, v.state.Snapshot.ID)
	require.NoError(r.t, v.index.Check())
	var keys types.Keys
	var rows int
	fields := r.table.Schema().Fields
	all := make([]types.Field, 0, len(r.set.Key))
	for _, c := range r.set.Key {
		all = append(all, fields[c])
	}
	stored := types.NewBatch(all)
	require.NoError(r.t, r.table.Scan(context.Background(), r.latest(), paimon.ScanOptions{Columns: r.set.Key}, func(b *types.Batch) error {
		for i, c := range stored.Cols {
			c.AppendRange(b.Cols[i], 0, b.Len())
		}
		rows += b.Len()
		return nil
	}))
	v.enc.Append(&keys, stored.Cols, 0, rows)
	var m keyindex.Matches
	require.NoError(r.t, v.index.Lookup(&keys, nil, &m))
	seen := map[keyindex.Loc]bool{}
	for j := range rows {
		require.NotEmpty(r.t, m.Rows(j))
		for _, l := range m.Rows(j) {
			seen[l] = true
			found := types.NewBatch(all)
			require.NoError(r.t, v.readRows(context.Background(), []keyindex.Loc{l}, r.set.Key, found))
			for c := range all {
				require.Zero(r.t, types.CompareCells(stored.Cols[c], j, found.Cols[c], 0))
			}
		}
	}
	require.Len(r.t, seen, rows)
}

// checkBuckets: every row lies in the bucket that its key says, files of a bucket
// do not overlap in their sequence numbers, and a bucket has one index file.
func (r *rig) checkBuckets() {
	if r.table.Buckets() == 0 {
		return
	}
	ctx, st := context.Background(), r.latest()
	files, err := r.table.Files(ctx, st, nil)
	require.NoError(r.t, err)
	var cols []int
	for c := range r.table.Schema().Fields {
		cols = append(cols, c)
	}
	spans := map[paimon.BucketKey][][2]int64{}
	for i := range files {
		e := &files[i]
		k := paimon.BucketKey{Partition: string(e.Partition), Bucket: e.Bucket}
		for _, s := range spans[k] {
			require.True(r.t, e.File.MaxSequence < s[0] || e.File.MinSequence > s[1], "sequence numbers %d to %d beside %v", e.File.MinSequence, e.File.MaxSequence, s)
		}
		spans[k] = append(spans[k], [2]int64{e.File.MinSequence, e.File.MaxSequence})
		require.NoError(r.t, r.table.ReadFile(ctx, e, cols, func(_ int64, b *types.Batch) error {
			for j := range b.Len() {
				bucket, err := r.table.BucketOf(b, j)
				require.NoError(r.t, err)
				require.Equal(r.t, bucket, e.Bucket)
			}
			return nil
		}))
	}
	seen := map[paimon.BucketKey]bool{}
	for i := range st.Index {
		k := paimon.BucketKey{Partition: string(st.Index[i].Partition), Bucket: st.Index[i].Bucket}
		require.False(r.t, seen[k], "two index files of bucket %d", k.Bucket)
		seen[k] = true
	}
}

// checkFigures: every snapshot counts its rows exactly, and its kind is that of its
// content (paimon-format.md §4).
func (r *rig) checkFigures() {
	ctx := context.Background()
	before := ""
	for id := int64(1); id <= r.latest().Snapshot.ID; id++ {
		s, err := paimon.ReadSnapshot(ctx, r.disk, r.table.Paths(), id)
		require.NoError(r.t, err)
		st, err := r.table.State(ctx, s)
		require.NoError(r.t, err)
		files, err := r.table.Files(ctx, st, nil)
		require.NoError(r.t, err)
		total := int64(0)
		for i := range files {
			total += files[i].File.Rows
		}
		require.Equal(r.t, total, s.TotalRecordCount, "snapshot %d", id)
		delta, err := r.table.Delta(ctx, s)
		require.NoError(r.t, err)
		change, overwrites := int64(0), false
		for i := range delta {
			if delta[i].Kind == manifest.Add {
				change += delta[i].File.Rows
			} else {
				change -= delta[i].File.Rows
				overwrites = true
			}
		}
		index := ""
		if s.IndexManifest != nil {
			index = *s.IndexManifest
		}
		require.Equal(r.t, change, s.DeltaRecordCount, "snapshot %d", id)
		require.Equal(r.t, overwrites || index != before, s.CommitKind == paimon.CommitOverwrite, "snapshot %d: %s", id, s.CommitKind)
		before = index
	}
	live, err := r.table.CountRows(ctx, r.latest())
	require.NoError(r.t, err)
	require.Len(r.t, r.rows(), int(live))
	if !r.table.Options().DeletionVectors {
		require.Equal(r.t, live, r.latest().Snapshot.TotalRecordCount, "without vectors every row that is counted is there")
	}
}
