package merger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger/keyindex"
	"applier/storage/failpoint"
	"applier/storage/mutant"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
)

// attempt is what one try to commit a batch has made: nil fields were not needed.
type attempt struct {
	base    SnapRef
	plan    *plan
	files   []paimon.Written
	vectors map[uint32]*roaring.Bitmap // new whole vectors by segment; nil: the file goes
	// rewritten has the files that took the place of others, by the segment of
	// those (copy-on-write tables); one that is missing goes.
	rewritten map[uint32]*manifest.Entry
	commit    *paimon.Commit
	bytes     CommitBytes
	// deletes is what its record says about remembered deletes, remembered the size
	// of the object that holds what it changes, 0 for none.
	deletes    *RememberedDeletes
	remembered int64
	record     *Record
	made       time.Time
	keys       []string // of the files written, without the snapshot
}

// CommitBytes says what a commit wrote, by class.
type CommitBytes struct {
	Data, Vectors, Metadata int64
}

// planBatch is step 5.
func (a *Applier) planBatch(ctx context.Context, b *batcher.Batch) (*plan, error) {
	if b.Counts.TwoPartitions > 0 && len(a.set.Order.By) == 0 && a.set.Apply != batcher.Append {
		a.obs.TwoPartitions(b.Counts.TwoPartitions)
		if !a.acceptTwoParts {
			return nil, &Halt{CodeTwoParts, fmt.Sprintf("%d changes have a key that another partition of the batch has too", b.Counts.TwoPartitions)}
		}
	}
	pl := &a.planner
	if pl.dynamic {
		if err := a.readDefaults(a.taken); err != nil {
			return nil, err
		}
	}
	if a.set.Merge != nil { // functions of the time have one value a batch
		var err error
		if pl.when, err = compileWhen(a.table, a.set.Key, a.set.Merge.Clauses, pl.defaults, a.taken); err != nil {
			return nil, err
		}
	}
	pl.index = a.view.index
	pl.read = boundReader{ctx, &a.view}
	pl.memory, pl.now = a.deletes.memory(), a.deletes.now()
	pl.forget = pl.now - a.deletes.keep()
	pl.emptied = nil
	if b.Truncation != nil {
		var err error
		if pl.emptied, err = pl.truncates(ctx, &a.view, b.Truncation); err != nil {
			return nil, err
		}
	}
	p, err := pl.plan(b)
	if err != nil {
		return nil, err
	}
	if err := a.deletes.fits(p, a.deletesRoom()); err != nil {
		return nil, err
	}
	return p, a.verifySample(ctx, p)
}

// boundReader gives the planner a reader with the effect's context.
type boundReader struct {
	ctx context.Context
	v   *view
}

func (r boundReader) ReadRows(locs []keyindex.Loc, cols []int, out *types.Batch) error {
	return r.v.readRows(r.ctx, locs, cols, out)
}

// sendLetters decides about rows that turned out impossible, and sends away what
// the order sends away. refused: the source was told which record it is.
func (a *Applier) sendLetters(ctx context.Context, b *batcher.Batch, p *plan) (refused bool, err error) {
	if len(p.letters) > 0 && a.set.OnRowError != "skip" && a.set.OnRowError != "dead_letter" {
		part, offset := recordOf(b, p.letters[0])
		a.src.Refuse(part, offset, p.letters[0].err)
		return true, nil
	}
	p.sent = oneARecord(b, p.ordered)
	for _, l := range p.sent {
		if l.err.Class == change.ClassTie {
			p.counts.TiedLetters++
		} else {
			p.counts.LateLetters++
		}
	}
	if a.set.OnRowError == "dead_letter" {
		p.sent = append(p.sent, p.letters...)
	} else {
		for _, l := range p.letters {
			part, offset := recordOf(b, l)
			a.set.Log.Warn("record skipped", "partition", part.String(), "offset", offset, "err", l.err)
		}
		p.counts.Dropped = int64(len(p.letters))
	}
	return false, a.send(ctx, b, p)
}

// recordOf returns where the record of a row stands.
func recordOf(b *batcher.Batch, l rowLetter) (change.Partition, int64) {
	return b.Partitions[b.Changes.Part[l.row]], b.Changes.Offset[l.row]
}

// oneARecord keeps the first of the letters that one record would give: both
// halves of a key change can be late.
func oneARecord(b *batcher.Batch, letters []rowLetter) []rowLetter {
	c := b.Changes
	return slices.CompactFunc(slices.Clone(letters), func(x, y rowLetter) bool {
		return c.Part[x.row] == c.Part[y.row] && c.Offset[x.row] == c.Offset[y.row]
	})
}

// send makes the dead letters of a plan durable, before the commit that counts them.
func (a *Applier) send(ctx context.Context, b *batcher.Batch, p *plan) error {
	if len(p.sent) == 0 {
		return nil
	}
	for _, l := range p.sent {
		part, offset := recordOf(b, l)
		raw := b.Changes.RawOf(l.row)
		if raw == nil {
			return &Halt{CodeRow, fmt.Sprintf("%s offset %d: %v; the record was not kept, so it cannot be sent to the dead letters", part, offset, l.err)}
		}
		a.letters.SendRow(ctx, part, offset, raw, l.err)
	}
	if err := a.letters.Flush(ctx); err != nil {
		return &Halt{CodeDeadLetter, err.Error()}
	}
	p.counts.Letters = int64(len(p.sent))
	return nil
}

// verifySample reads the key of some matched rows back before they are marked:
// an index that lies must never delete a row.
func (a *Applier) verifySample(ctx context.Context, p *plan) error {
	n := uint64(a.set.VerifySample)
	if n == 0 || a.set.Apply == batcher.Append {
		return nil
	}
	pl := &a.planner
	var locs []keyindex.Loc
	for _, l := range pl.matches.Loc {
		if types.Mix64(uint64(l))%n == 0 {
			locs = append(locs, l)
		}
	}
	if len(locs) == 0 {
		return nil
	}
	rows, err := pl.readOld(slices.Clone(locs), a.set.Key)
	if err != nil {
		return err
	}
	var keys types.Keys
	a.view.enc.Append(&keys, rows.batch.Cols, 0, rows.batch.Len())
	for j, w := range pl.batch.Winners {
		for _, l := range pl.matches.Rows(j) {
			if i, found := slices.BinarySearch(rows.locs, l); found && !keys.Equal(i, pl.batch.Keys, int(w)) {
				return &Halt{CodeMismatch, fmt.Sprintf("row %d of data file %s does not have the key the index says", l.Pos(), a.view.bySeg[l.Segment()].entry.File.Name)}
			}
		}
	}
	return nil
}

// write is steps 6 to 9: everything the snapshot will name, then the snapshot's
// own bytes. All files of an attempt are written side by side; none is ever
// deleted here, whatever becomes of the attempt.
func (a *Applier) write(ctx context.Context, e Write) (Event, error) {
	at := &attempt{base: e.Base}
	a.attempt = at
	ch := paimon.Changes{}
	to, err := a.baseLink(ctx, e.Base)
	if err != nil {
		return nil, err
	}
	base, err := a.view.stateOnly(ctx, to)
	if err != nil {
		return nil, err
	}
	var objects []objstore.Object
	if e.Batch.Op == "" {
		at.plan = a.planned
		if objects, err = a.writeRows(ctx, at, base, &ch); err != nil {
			return nil, err
		}
	}
	txn := a.set.UUID()
	if err := a.deletes.write(ctx, at, txn); err != nil {
		return nil, err
	}
	at.deletes = a.deletes.record(e, at, txn)
	at.record = a.record(e, txn, at)
	record, err := at.record.Encode()
	if err != nil {
		return nil, err
	}
	at.commit, err = a.table.BuildCommit(ctx, base, ch, paimon.CommitInfo{
		UUID: txn, User: a.user, Identifier: a.nextIdentifier(), Operation: operation(at.plan),
		Properties: map[string]string{PropertyPrefix + a.set.ID: record},
		TimeMillis: a.set.Now().UnixMilli(), NewUUID: a.set.UUID,
	})
	if err != nil {
		return nil, err
	}
	at.adopt(at.commit.Added)
	if err := seal(at.commit, PropertyPrefix+a.set.ID); err != nil {
		return nil, err
	}
	if got := at.commit.Snapshot.ID; got != e.Target {
		return nil, fmt.Errorf("the attempt is for snapshot %d, its base leads to %d", e.Target, got)
	}
	at.bytes.Metadata = at.commit.MetadataBytes()
	if err := failpoint.Hit("commit/manifest"); err != nil {
		return nil, err
	}
	objects = append(objects, at.commit.Objects...)
	at.made = a.set.Now()
	if at.keys, err = a.keysOf(objects, at.rewritten); err != nil {
		return nil, err
	}
	a.askStill(ctx, e)
	if err := a.table.Bucket().PutAll(ctx, objects); err != nil {
		return nil, fmt.Errorf("writing the files of snapshot %d: %w", e.Target, err)
	}
	return Written{Txn: txn}, failpoint.Hit("commit/stage")
}

// writeRows is steps 6 and 7: new row versions, then what marks or leaves out the
// old ones. It returns the objects that are still to be written.
func (a *Applier) writeRows(ctx context.Context, at *attempt, base *paimon.State, ch *paimon.Changes) ([]objstore.Object, error) {
	from := a.set.Now()
	objects, err := a.dataFiles(ctx, at, base, ch)
	if err != nil {
		return nil, err
	}
	a.took("write_data", from)
	if err := failpoint.Hit("commit/data"); err != nil {
		return nil, err
	}
	from = a.set.Now()
	defer func() { a.took("write_dv", from) }()
	if a.table.Options().DeletionVectors {
		err = a.vectorFiles(ctx, at, base, ch)
	} else {
		err = a.rewriteFiles(ctx, at, ch)
	}
	if err != nil {
		return nil, err
	}
	if ch.Index != nil {
		objects = append(objects, ch.Index.Objects...)
		at.bytes.Vectors = ch.Index.Bytes
	}
	return objects, failpoint.Hit("commit/dv")
}

// keysOf lists everything an attempt refers to: what is to be written, and what is
// in the store already, perhaps since an earlier attempt.
func (a *Applier) keysOf(objects []objstore.Object, rewritten map[uint32]*manifest.Entry) ([]string, error) {
	keys := make([]string, 0, len(objects)+len(rewritten))
	for _, o := range objects {
		keys = append(keys, o.Key)
	}
	for _, e := range rewritten {
		own, err := a.table.FileKeys(e)
		if err != nil {
			return nil, err
		}
		keys = append(keys, own...)
	}
	return keys, nil
}

// adopt takes over what the commit has given new files: sequence numbers, row ids.
func (at *attempt) adopt(added []manifest.Entry) {
	for i := range at.files {
		at.files[i].Entry = added[i]
	}
	i := len(at.files)
	if at.plan == nil {
		return
	}
	for _, seg := range at.plan.sortedSegments() {
		if at.rewritten[seg] != nil {
			at.rewritten[seg] = &added[i]
			i++
		}
	}
}

// baseLink returns the snapshot that an attempt is built on; nil for none.
func (a *Applier) baseLink(ctx context.Context, ref SnapRef) (*link, error) {
	if ref.ID == 0 {
		return nil, nil
	}
	l, err := a.chain.at(ctx, ref.ID)
	if err == nil && l.ref != ref {
		err = fmt.Errorf("snapshot %d was replaced since it was looked at", ref.ID)
	}
	return l, err
}

// operation names a snapshot with rows; empty commits have none.
func operation(p *plan) paimon.Operation {
	switch {
	case p == nil, p.out.Len() == 0 && len(p.deletes) == 0 && len(p.gone) == 0:
		return ""
	case p.out.Len() == 0 && len(p.deletes) == 0:
		return paimon.OperationTruncate
	}
	return paimon.OperationMerge
}

// dataFiles encodes the plan's rows, a partition at a time. With row tracking new
// rows and new versions of old ones are in files apart, for the ids of the former
// follow from their places and the latter keep theirs.
func (a *Applier) dataFiles(ctx context.Context, at *attempt, base *paimon.State, ch *paimon.Changes) ([]objstore.Object, error) {
	groups, err := a.targets(ctx, at.plan.out, base)
	if err != nil {
		return nil, err
	}
	var versions *types.Batch
	if at.plan.hasOrigins() {
		ids, err := a.view.rowIDs(ctx, at.plan.origins)
		if err != nil {
			return nil, err
		}
		versions = paimon.VersionBatch(at.plan.out, ids)
	}
	var objects []objstore.Object
	for _, g := range groups {
		fresh, old := at.plan.split(g.rows)
		files, err := a.writer.WriteTo(g.target, at.plan.out, fresh)
		if err == nil && len(old) > 0 {
			var more []paimon.Written
			more, err = a.writer.WriteVersions(g.target, versions, old)
			files = append(files, more...)
		}
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			for _, o := range f.Objects() {
				at.bytes.Data += int64(len(o.Data))
				objects = append(objects, o)
			}
			ch.Add = append(ch.Add, f.Entry)
		}
		at.files = append(at.files, files...)
	}
	return objects, nil
}

// targetRows are the rows of a batch that belong to one partition and bucket.
type targetRows struct {
	target paimon.Target
	rows   []uint32
}

// targets groups rows by partition and bucket, and says where in their buckets
// their files go.
func (a *Applier) targets(ctx context.Context, out *types.Batch, base *paimon.State) ([]*targetRows, error) {
	groups, err := groupTargets(a.table, out)
	if err != nil || a.table.Buckets() == 0 || len(groups) == 0 {
		return groups, err
	}
	states, err := a.view.bucketStates(ctx, base)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if g.target, err = states.Target(a.table, paimon.BucketKey{Partition: string(g.target.Partition), Bucket: g.target.Bucket}); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// groupTargets groups rows by their partition row's bytes and bucket, in
// first-seen order.
func groupTargets(t *paimon.Table, out *types.Batch) ([]*targetRows, error) {
	n := out.Len()
	if n == 0 {
		return nil, nil
	}
	if len(t.Schema().PartitionKeys) == 0 && t.Buckets() == 0 {
		p, err := t.PartitionOf(out, 0)
		if err != nil {
			return nil, err
		}
		g := &targetRows{target: paimon.Target{Partition: p}, rows: make([]uint32, n)}
		for i := range g.rows {
			g.rows[i] = uint32(i)
		}
		return []*targetRows{g}, nil
	}
	var groups []*targetRows
	known := map[paimon.BucketKey]*targetRows{}
	var p []byte
	for i := range n {
		var err error
		if p, err = t.AppendPartition(p[:0], out, i); err != nil {
			return nil, err
		}
		bucket, err := t.BucketOf(out, i)
		if err != nil {
			return nil, err
		}
		g := known[paimon.BucketKey{Partition: string(p), Bucket: bucket}]
		if g == nil {
			g = &targetRows{target: paimon.Target{Partition: slices.Clone(p), Bucket: bucket}}
			known[paimon.BucketKey{Partition: string(p), Bucket: bucket}] = g
			groups = append(groups, g)
		}
		g.rows = append(g.rows, uint32(i))
	}
	return groups, nil
}

// vectorFiles joins the plan's deletes with the files' vectors. A file that has
// no live row left goes altogether.
func (a *Applier) vectorFiles(ctx context.Context, at *attempt, base *paimon.State, ch *paimon.Changes) error {
	at.vectors = map[uint32]*roaring.Bitmap{}
	refs, err := a.table.LiveVectors(base.Index)
	if err != nil {
		return err
	}
	var changes []paimon.VectorChange
	for _, seg := range at.plan.sortedSegments() {
		f := a.view.bySeg[seg]
		if f == nil {
			return &Halt{CodeMismatch, fmt.Sprintf("the index names a data file (segment %d) that is not live", seg)}
		}
		if err := a.derived(f, refs); err != nil {
			return err
		}
		m := roaring.New()
		if f.vector != nil && !mutant.On(mutant.UnionVectors) {
			m = f.vector.Clone()
		}
		before := m.GetCardinality()
		m.AddMany(at.plan.deletes[seg])
		if m.GetCardinality() != before+uint64(len(at.plan.deletes[seg])) {
			return &Halt{CodeMismatch, fmt.Sprintf("rows of data file %s are to be deleted twice", f.entry.File.Name)}
		}
		change := paimon.VectorChange{File: paimon.KeyOf(&f.entry), Vector: m}
		if int64(m.GetCardinality()) == f.entry.File.Rows {
			change.Vector = nil
			ch.Delete = append(ch.Delete, f.entry)
		}
		at.vectors[seg] = change.Vector
		if change.Vector != nil || f.vector != nil {
			changes = append(changes, change)
		}
	}
	for _, seg := range at.plan.goneSegments() {
		f := a.view.bySeg[seg]
		if err := a.derived(f, refs); err != nil {
			return err
		}
		ch.Delete = append(ch.Delete, f.entry)
		if f.vector != nil {
			changes = append(changes, paimon.VectorChange{File: paimon.KeyOf(&f.entry)})
		}
	}
	sortByPartition(changes)
	if len(changes) == 0 {
		return nil
	}
	// The other vectors of an index file are written again as they are.
	unchanged := func(k paimon.FileKey) (*roaring.Bitmap, error) {
		f := a.view.files[k]
		switch {
		case mutant.On(mutant.SiblingVectors):
			return roaring.New(), nil
		case f == nil:
			// Compactions of some Paimon versions leave vectors of files behind that
			// are not live any more (reliability.md G23): they are not ours to remove,
			// and nothing is built on them.
			a.set.Log.Warn("the table has a deletion vector of a data file that is not live; it is kept", "file", k.Name, "index_file", refs[k].Index.Name)
			return a.table.ReadVector(ctx, refs[k], math.MaxInt32)
		case f.vector == nil:
			return nil, &Halt{CodeMismatch, fmt.Sprintf("data file %s has a deletion vector that the index does not know", k.Name)}
		}
		return f.vector, a.derived(f, refs)
	}
	ch.Index, err = a.table.BuildVectors(base, changes, unchanged, a.set.UUID)
	return err
}

// errMoved: what we know is not what the attempt is to be built on.
var errMoved = errors.New("a deletion vector has moved since it was read")

// derived compares the vector that we go on from with the one the attempt is built
// on, in every attempt: in a bucket, where Java checks nothing, a new index file
// replaces whatever is there, deletes of others included (paimon-format.md §7.7). If
// it has moved the attempt fails, and the next one starts from the table.
func (a *Applier) derived(f *dataFile, refs map[paimon.FileKey]paimon.VectorRef) error {
	k := paimon.KeyOf(&f.entry)
	if ref, has := refs[k]; has != (f.vector != nil) || has && !ref.Same(f.ref) {
		a.view.drop()
		return fmt.Errorf("data file %s: %w", k.Name, errMoved)
	}
	return nil
}

// record makes the position record of an attempt.
func (a *Applier) record(e Write, txn string, at *attempt) *Record {
	p := at.plan
	r := &Record{
		Version: RecordVersion, Seq: e.Seq, Txn: txn, Base: e.Base.Ident, Epoch: e.Epoch, Owner: a.set.Instance,
		Config: a.config, Table: a.identity, Cluster: e.Cluster, Op: e.Batch.Op, Chain: e.Chain, Gaps: e.Gaps,
		Deletes: at.deletes,
		Seal:    openSeal,
	}
	r.setPositions(e.Batch.Next, e.Topics)
	if b := a.batch; b != nil && e.Batch.Op == "" {
		r.setRange(e.Batch.Start, e.Batch.Next)
		r.In, r.DeadLetter = b.Counts.Records, b.Counts.DeadLetters+p.counts.Letters
		r.Inserted, r.Updated, r.Deleted, r.Unchanged = p.counts.Inserted, p.counts.Updated, p.counts.Deleted, p.counts.Unchanged
		r.Truncated = b.Truncation != nil
		r.Chain = chainHash(e.Chain, b.Digest)
	}
	return r
}

// advance brings view and index to our own commit.
func (a *Applier) advance(at *attempt) error {
	c := at.commit
	ref := SnapRef{c.Snapshot.ID, c.Snapshot.UUID}
	a.chain.forget(ref.ID + 1)
	a.view.durable = ref
	a.view.bucketsCommitted(ref, at)
	if a.view.enc == nil || at.plan == nil {
		// An empty commit is built on lists alone: the index may not have followed
		// what others committed below it, and then stays where it is.
		if a.view.state != nil && (a.view.enc == nil || a.view.ref == at.base) {
			a.view.ref, a.view.state = ref, c.State
		}
		return nil
	}
	if err := a.view.commit(at); err != nil {
		a.view.drop()
		return err
	}
	a.view.ref, a.view.state = ref, c.State
	return nil
}

// commit applies our own plan to files, vectors and index, in the order the
// index asks for.
func (v *view) commit(at *attempt) error {
	refs, err := v.table.LiveVectors(at.commit.State.Index)
	if err != nil {
		return err
	}
	var gone []*dataFile
	for _, seg := range at.plan.sortedSegments() {
		f := v.bySeg[seg]
		if m := at.vectors[seg]; m != nil {
			err = v.setVector(f, m, refs[paimon.KeyOf(&f.entry)])
		} else if e := at.rewritten[seg]; e != nil {
			err = v.replace(f, e, at.plan.deletes[seg])
		} else {
			gone = append(gone, f)
		}
		if err != nil {
			return err
		}
	}
	for _, seg := range at.plan.goneSegments() {
		gone = append(gone, v.bySeg[seg])
	}
	for _, f := range gone {
		if err := v.remove(paimon.KeyOf(&f.entry)); err != nil {
			return err
		}
	}
	if at.plan.counts.Truncates > 0 && len(v.files) == 0 {
		if err := v.renew(); err != nil {
			return err
		}
	}
	for _, f := range v.bySeg {
		// Vectors that moved with their index file keep their content.
		if f.vector != nil {
			f.ref = refs[paimon.KeyOf(&f.entry)]
		}
	}
	var keys types.Keys
	for i := range at.files {
		f, err := v.register(&at.files[i].Entry)
		if err != nil {
			return err
		}
		keys.Reset()
		v.encodeRows(&keys, at.plan.out, at.files[i].Rows)
		if err := v.index.Add(f.seg, 0, &keys); err != nil {
			return err
		}
	}
	return nil
}

// encodeRows appends the keys of chosen rows in their order.
func (v *view) encodeRows(k *types.Keys, out *types.Batch, rows []uint32) {
	cols := make([]*types.Vector, len(v.s.Key))
	for i, c := range v.s.Key {
		cols[i] = out.Cols[c]
	}
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to] == rows[to-1]+1 {
			to++
		}
		v.enc.Append(k, cols, int(rows[from]), int(rows[to-1])+1)
		from = to
	}
}
