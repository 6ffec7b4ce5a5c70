package merger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"applier/batcher"
	"applier/ingest/change"
	"applier/merger/keyindex"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// kv is the small table of these tests.
func kv() []types.Field {
	return []types.Field{{ID: 0, Name: "k", Type: types.IntType()}, {ID: 1, Name: "v", Type: types.StringType()}}
}

func kvRig(t *testing.T, o rigOptions) *rig {
	if o.fields == nil {
		o.fields = kv()
	}
	if o.key == nil && o.apply != batcher.Append {
		o.key = []int{0}
	}
	r := newRig(t, o)
	t.Cleanup(func() { r.a.view.drop() })
	return r
}

// put appends a change of a key; v of "?" is unavailable, "-" a delete.
func (r *rig) put(part int32, k int64, v string) {
	c := r.b.Changes()
	n := c.Len()
	c.Cols[0].AppendInt32(int32(k))
	kind := change.Update
	switch v {
	case "?":
		c.Cols[1].AppendNull()
		c.Cols[1].Unavailable.Set(n)
	case "-":
		kind = change.Delete
		c.Cols[1].AppendNull()
	default:
		c.Cols[1].AppendString(v)
	}
	c.EndRow(kind, part, r.offsets[part], r.now.UnixMilli())
	if v == "?" {
		c.KeepRaw(change.RawRecord{Value: fmt.Append(nil, "raw", k)})
	}
	r.record(part)
}

func kvRow(k int64, v string) []types.Datum {
	return []types.Datum{types.IntDatum(k), types.StringDatum(v)}
}

func (r *rig) record1(t *testing.T) *Record {
	own, _, err := FindRecords(context.Background(), r.table, r.set.ID)
	require.NoError(t, err)
	if own == nil {
		return nil
	}
	return own.Record
}

func TestApplier_FirstStartIsAnEmptyCommitWithTheFullVector(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, partitions: 2})
	r.begin()
	rec := r.record1(t)
	require.Equal(t, "start", rec.Op)
	require.EqualValues(t, 1, rec.Seq)
	require.EqualValues(t, 1, rec.Epoch)
	require.Equal(t, "cluster", rec.Cluster)
	require.Equal(t, map[string]RecordTopic{"t": {ID: "id", Partitions: map[string][2]int64{"0": {0, -1}, "1": {0, -1}}}}, rec.Topics)
	require.Nil(t, rec.Range)
	require.Empty(t, rec.Base)
	require.Contains(t, r.seen.notices, NoticeFirstStart)
	require.Empty(t, r.rows())
	require.Len(t, r.resumed, 2)
}

func TestApplier_RecordsEveryCommit(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, partitions: 2})
	r.begin()
	first := r.record1(t)
	r.put(0, 1, "a")
	r.put(0, 1, "b")
	r.put(1, 2, "c")
	r.put(1, 3, "-")
	c := r.commit()
	require.Equal(t, Counts{Inserted: 2, Unchanged: 1}, c.Counts)
	require.EqualValues(t, 2, c.Snapshot)
	require.Equal(t, 1, c.Attempts)
	rec := r.record1(t)
	require.EqualValues(t, 2, rec.Seq)
	require.Equal(t, []int64{4, 2, 0, 0, 1, 0}, []int64{rec.In, rec.Inserted, rec.Updated, rec.Deleted, rec.Unchanged, rec.DeadLetter})
	require.Equal(t, map[string]map[string][2]int64{"t": {"0": {0, 2}, "1": {0, 2}}}, rec.Range)
	require.NotEqual(t, first.Chain, rec.Chain)
	require.Equal(t, []string{"k=1 v=b", "k=2 v=c"}, r.rows())

	// Only partition 1 moves; the vector stays full.
	r.put(1, 2, "d")
	r.commit()
	rec = r.record1(t)
	require.Equal(t, map[string]map[string][2]int64{"t": {"1": {2, 3}}}, rec.Range)
	require.Equal(t, [2]int64{2, 3}, rec.Topics["t"].Partitions["0"])
	require.Equal(t, 2, r.released)
}

func TestApplier_ANewProcessGoesOnWhereTheTableStands(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "a")
	r.commit()
	r.a.view.drop()
	r.seen = rigSeen{}
	r.open(nil)
	r.begin()
	require.EqualValues(t, 1, r.resumed[r.parts[0]].Next)
	require.EqualValues(t, 3, r.a.state.Epoch, "above the start's and the first batch's")
	r.put(0, 1, "b")
	c := r.commit()
	require.Equal(t, Counts{Updated: 1}, c.Counts)
	require.Equal(t, []int64{1}, r.seen.rebuilt, "the index was built from the table")
	require.Equal(t, []string{"k=1 v=b"}, r.rows())
}

func TestApplier_TwoPartitionsHaltUntilAcceptedOnce(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, partitions: 2})
	r.begin()
	split := func() {
		r.put(0, 1, "a")
		r.put(1, 1, "b")
	}
	split()
	r.flush()
	require.Equal(t, PhaseHalted, r.a.state.Phase)
	require.Equal(t, CodeTwoParts, r.a.state.Halt.Code)
	require.EqualValues(t, 1, r.seen.split)
	require.True(t, r.stopped, "a halted loop does not let its source read on")
	require.Empty(t, r.rows())

	r.post(ResumeAsked{})
	require.Equal(t, PhaseIdle, r.a.state.Phase)
	r.put(0, 9, "x") // the cut falls elsewhere this time: acceptance must last
	r.commit()
	split()
	r.commit()
	require.Equal(t, []string{"k=1 v=b", "k=9 v=x"}, r.rows())
	split()
	r.flush()
	require.Equal(t, PhaseHalted, r.a.state.Phase, "accepted once is not accepted for ever")
}

func TestApplier_TwoPartitionsAreFineWhereOrderDoesNotCome(t *testing.T) {
	ordered := append(kv(), types.Field{ID: 2, Name: "o", Type: types.IntType()})
	for _, o := range []rigOptions{
		{apply: batcher.Append, partitions: 2},
		{apply: batcher.Upsert, partitions: 2, fields: ordered, orderBy: []int{2}},
	} {
		r := kvRig(t, o)
		r.begin()
		for part := range int32(2) {
			if len(o.fields) > 0 {
				r.b.Changes().Cols[2].AppendInt32(part)
			}
			r.put(part, 1, "a")
		}
		r.commit()
	}
}

func TestApplier_ARefusedRowStopsTheSourceRightBeforeIt(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, onError: "pause"})
	r.begin()
	r.put(0, 1, "a")
	r.put(0, 2, "?") // nothing can fill it
	r.put(0, 3, "c")
	r.flush()
	require.Equal(t, PhaseIdle, r.a.state.Phase, "the source decides, not the loop")
	require.Equal(t, []string{"t/0@1 unavailable: column v: the producer did not send the value and no earlier one is known"}, r.refusals)
	require.Empty(t, r.rows(), "nothing of the batch is committed")
	require.EqualValues(t, 0, r.resumed[r.parts[0]].Next, "it reads again")

	// What the source does now: everything before the record, then the halt.
	r.put(0, 1, "a")
	r.commit()
	r.post(SourceHalted{Halt: Halt{CodeRow, "t/0 offset 1"}, Generation: r.generation})
	require.Equal(t, PhaseHalted, r.a.state.Phase)
	require.EqualValues(t, 1, r.a.state.Positions[r.parts[0]].Next, "the table stands at the record, so stepping over it loses nothing else")
	require.Equal(t, []string{"k=1 v=a"}, r.rows())
}

func TestApplier_SkipDropsAndCountsTheRow(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, onError: "skip"})
	r.begin()
	r.put(0, 1, "a")
	r.put(0, 2, "?")
	c := r.commit()
	require.Equal(t, Counts{Inserted: 1, Dropped: 1}, c.Counts)
	require.Equal(t, []string{"k=1 v=a"}, r.rows())
}

func TestApplier_DeadLettersAreWrittenBeforeTheCommitThatCountsThem(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror, onError: "dead_letter"})
	r.begin()
	r.letterErr = errors.New("topic dlq: not enough replicas")
	fill := func() {
		r.put(0, 2, "?")
		r.put(0, 1, "a")
		r.put(0, 2, "?")
	}
	fill()
	r.flush()
	require.Equal(t, PhaseBackoff, r.a.state.Phase)
	require.Equal(t, CodeDeadLetter, r.a.state.Halt.Code)
	require.Empty(t, r.rows())
	require.Empty(t, r.seen.classes, "counted when they are in the table's record")

	r.letterErr = nil
	r.letters = nil
	r.retry()
	require.Equal(t, PhaseIdle, r.a.state.Phase)
	require.Nil(t, r.a.state.Halt)
	fill()
	c := r.commit()
	require.Equal(t, Counts{Inserted: 1, Letters: 2}, c.Counts)
	unavailable := "unavailable: column v: the producer did not send the value and no earlier one is known"
	require.Equal(t, []string{`t/0@0 "raw2" ` + unavailable, `t/0@2 "raw2" ` + unavailable}, r.letters, "each with its own record")
	require.Equal(t, []string{"unavailable", "unavailable"}, r.seen.classes)
	require.EqualValues(t, 2, r.record1(t).DeadLetter)
}

func TestApplier_VerifySampleCatchesALyingIndexBeforeAnythingIsWritten(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.foreign(kvRow(1, "one"), kvRow(2, "two"))
	r.begin()
	r.put(0, 7, "x")
	r.commit()
	before := r.rows()

	// The index says that key 1 is where key 2 is, and the other way round.
	lying, err := keyindex.New(keyindex.Options{Class: r.a.view.enc.Class()})
	require.NoError(t, err)
	for _, f := range r.a.view.sorted() {
		seg, err := lying.AddSegment(uint32(f.entry.File.Rows))
		require.NoError(t, err)
		require.Equal(t, f.seg, seg)
		b := types.NewBatch(kv())
		for i := f.entry.File.Rows - 1; i >= 0; i-- {
			b.AppendDatums(kvRow(i+1, ""))
		}
		var keys types.Keys
		r.a.view.enc.Append(&keys, b.Cols[:1], 0, b.Len())
		require.NoError(t, lying.Add(seg, 0, &keys))
	}
	require.NoError(t, r.a.view.index.Close())
	r.a.view.index = lying

	r.put(0, 1, "-")
	r.flush()
	require.Equal(t, PhaseHalted, r.a.state.Phase)
	require.Equal(t, CodeMismatch, r.a.state.Halt.Code)
	require.Equal(t, before, r.rows())

	r.post(ResumeAsked{}) // builds the index again
	r.put(0, 1, "-")
	r.commit()
	require.Equal(t, []string{"k=2 v=two", "k=7 v=x"}, r.rows())
}

func TestApplier_RowsMovePartitionAndEmptyFilesGo(t *testing.T) {
	fields := append(kv(), types.Field{ID: 2, Name: "p", Type: types.StringType()})
	r := kvRig(t, rigOptions{apply: batcher.Mirror, fields: fields, partition: []string{"p"}})
	r.begin()
	put := func(k int64, v, p string) {
		if p == "" {
			r.b.Changes().Cols[2].AppendNull()
		} else {
			r.b.Changes().Cols[2].AppendString(p)
		}
		r.put(0, k, v)
	}
	put(1, "a", "x")
	put(2, "b", "x")
	put(3, "c", "")
	r.commit()
	put(1, "a2", "y=/ z")
	c := r.commit()
	require.Equal(t, Counts{Updated: 1}, c.Counts)
	require.NotZero(t, c.Bytes.Vectors)
	require.Equal(t, []string{"k=1 v=a2 p=y=/ z", "k=2 v=b p=x", "k=3 v=c p=NULL"}, r.rows())

	put(2, "-", "")
	put(3, "c3", "x")
	c = r.commit()
	require.Zero(t, c.Bytes.Vectors, "files without a live row go as they are")
	require.Equal(t, Counts{Updated: 1, Deleted: 1}, c.Counts)
	require.Equal(t, []string{"k=1 v=a2 p=y=/ z", "k=3 v=c3 p=x"}, r.rows())
	files, err := r.table.Files(context.Background(), r.latest(), nil)
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Empty(t, r.latest().Index)
}

func TestApplier_ALostRaceLooksTheKeysUpAgain(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "a")
	raced := false
	r.onStage = func(name string) {
		if name == "still" && !raced { // between the last look and the publish
			raced = true
			r.foreign(kvRow(1, "theirs"))
		}
	}
	c := r.commit()
	require.Equal(t, 2, c.Attempts)
	require.Contains(t, r.seen.notices, NoticeLostRace)
	require.Equal(t, Counts{Updated: 1}, c.Counts, "the foreign row is the key's row now")
	require.Equal(t, []string{"k=1 v=a"}, r.rows())
}

func TestApplier_StartsOnATableWithALongHistory(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	const n = chainMemory + 60
	for i := range int64(n) {
		r.foreign(kvRow(i, "x"))
	}
	r.begin()
	require.LessOrEqual(t, len(r.a.chain.seen), chainMemory)
	r.put(0, 5, "y")
	c := r.commit()
	require.Equal(t, Counts{Updated: 1}, c.Counts)
	require.EqualValues(t, n+2, c.Snapshot)
	require.Len(t, r.rows(), n)
}

func TestApplier_NothingIsBuiltOnWhatAPowerCutMayTake(t *testing.T) {
	// Java writes without syncing. Whatever we commit on top must survive with it.
	for _, apply := range []batcher.Apply{batcher.Mirror, batcher.Append} {
		for _, empty := range []bool{true, false} {
			t.Run(fmt.Sprint(apply, " empty commit ", empty), func(t *testing.T) {
				r := kvRig(t, rigOptions{apply: apply})
				java := r.disk.Attach(objstore.MemOptions{Now: r.clock, Fault: func(op objstore.Op) objstore.Fault {
					return objstore.Fault{Lie: op.Kind == objstore.OpSync || op.Kind == objstore.OpSyncDir}
				}})
				ours := r.disk
				r.disk = java
				if !empty {
					r.disk = ours
					r.begin()
					r.disk = java
				}
				r.foreign(kvRow(1, "theirs"))
				r.foreign(kvRow(2, "theirs"))
				r.disk = ours
				if empty {
					r.begin()
				} else {
					r.put(0, 3, "ours")
					r.commit()
				}
				want := r.rows()
				r.disk = ours.Crash(nil, 1) // everything that was not synced is gone
				var err error
				r.table, err = paimon.OpenTable(context.Background(), r.disk, paimon.Write)
				require.NoError(t, err)
				ids, err := paimon.ListSnapshotIDs(context.Background(), r.disk, r.table.Paths())
				require.NoError(t, err)
				require.NoError(t, paimon.CheckContiguous(ids))
				require.Equal(t, want, r.rows())
			})
		}
	}
}

func TestApplier_APanicHaltsThePipelineNotTheProcess(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "a")
	bombs := 1
	r.a.set.UUID = func() string {
		if bombs > 0 {
			bombs--
			panic("boom")
		}
		return r.uuid()
	}
	r.flush()
	require.Equal(t, PhaseHalted, r.a.state.Phase)
	require.Equal(t, CodePanic, r.a.state.Halt.Code)
	require.Nil(t, r.a.view.index, "what a panic left is not trusted")
	r.post(ResumeAsked{})
	r.put(0, 1, "a")
	r.commit()
	require.Equal(t, []string{"k=1 v=a"}, r.rows())
}

func TestApplier_TheIndexMustFitItsMemory(t *testing.T) {
	ceiling := int64(1 << 10)
	r := kvRig(t, rigOptions{apply: batcher.Mirror, settings: func(s *Settings) { s.IndexCeiling = func() int64 { return ceiling } }})
	r.post(Assigned{}) // before anything is read
	require.Equal(t, PhaseHalted, r.a.state.Phase)
	require.Equal(t, CodeMemory, r.a.state.Halt.Code)
	require.Contains(t, r.a.state.Halt.Facts, "raise `memory` by")
	ceiling = 1 << 30
	r.post(ResumeAsked{})
	r.put(0, 1, "a")
	r.commit()
}

func TestApplier_AppendKeepsEveryChangeAndNeedsNoIndex(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Append})
	r.begin()
	r.put(0, 1, "a")
	r.put(0, 1, "a")
	c := r.commit()
	require.Equal(t, Counts{Inserted: 2}, c.Counts)
	require.Nil(t, r.a.view.index)
	r.foreign(kvRow(9, "x"))
	r.put(0, 1, "b")
	r.commit()
	require.Equal(t, []string{"k=1 v=a", "k=1 v=a", "k=1 v=b", "k=9 v=x"}, r.rows())
}

func TestApplier_ForeignRowsOfOurKeysAreCounted(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "a")
	r.commit()
	r.foreign(kvRow(1, "theirs"), kvRow(2, "new"))
	r.put(0, 9, "x")
	r.commit()
	require.EqualValues(t, 1, r.a.Status().Duplicates)
	r.put(0, 1, "b") // both rows of the key become one version each
	c := r.commit()
	require.Equal(t, Counts{Updated: 2}, c.Counts)
	require.Equal(t, []string{"k=1 v=b", "k=1 v=b", "k=2 v=new", "k=9 v=x"}, r.rows())
}

func TestNew_RefusesSettingsThatDoNotFit(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	try := func(change func(*Settings)) error {
		s := r.set
		change(&s)
		_, err := New(context.Background(), s, Deps{Name: "db.t", Table: r.table, Source: r, Observer: rigObserver{r}})
		return err
	}
	require.ErrorContains(t, try(func(s *Settings) { s.Order.By = []int{1} }), "order_by: apply mirror leaves no row")
	require.ErrorContains(t, try(func(s *Settings) { s.Apply = batcher.SoftDelete }), "the table has none")
	require.NoError(t, try(func(s *Settings) { s.Apply = batcher.Upsert; s.Order.By = []int{1} }))
}

func TestConfigDigest_ChangesWithEverySettingThatRowsDependOn(t *testing.T) {
	schema := func(names ...string) *paimon.Schema {
		s := &paimon.Schema{}
		for i, n := range names {
			s.Fields = append(s.Fields, types.Field{ID: i, Name: n, Type: types.IntType()})
		}
		return s
	}
	base := Settings{Apply: batcher.Upsert, Key: []int{0, 1}, Topics: []string{"a", "b"}}
	digest := func(change func(*Settings), names ...string) string {
		s := base
		if change != nil {
			change(&s)
		}
		if names == nil {
			names = []string{"x", "y", "z"}
		}
		return configDigest(s, schema(names...))
	}
	same := digest(nil)
	seen := map[string]string{same: "base"}
	for name, d := range map[string]string{
		"apply":       digest(func(s *Settings) { s.Apply = batcher.Mirror }),
		"key":         digest(func(s *Settings) { s.Key = []int{0} }),
		"key order":   digest(func(s *Settings) { s.Key = []int{1, 0} }),
		"order_by":    digest(func(s *Settings) { s.Order.By = []int{2} }),
		"topics":      digest(func(s *Settings) { s.Topics = []string{"a"} }),
		"comma names": digest(func(s *Settings) { s.Key = []int{0} }, "x,y", "y", "z"),
		"renamed":     digest(nil, "x", "yy", "z"),
	} {
		require.Empty(t, seen[d], name)
		seen[d] = name
	}
	require.Equal(t, same, digest(func(s *Settings) { s.Topics = []string{"b", "a"} }), "the order of topics means nothing")
	require.Equal(t, same, digest(func(s *Settings) { s.OnRowError = "skip"; s.Pin = true }), "nor does what rows do not depend on")
}

func TestHalt_SaysWhatToDoInOneLine(t *testing.T) {
	h := &Halt{CodeGone, "table db.t has no schema any more."}
	require.Equal(t, "T-GONE: table db.t has no schema any more. Restore it or change `target`, then `applier resume PIPELINE`. Nothing is created in its place.", h.Error())
	seen := map[Code]bool{}
	for _, i := range Codes() {
		require.False(t, seen[i.Code], i.Code)
		seen[i.Code] = true
		require.Equal(t, i, i.Code.Info())
		require.True(t, strings.HasSuffix(i.Means, "."), i.Code)
		require.True(t, strings.HasSuffix(i.Do, "."), i.Code)
	}
	require.Contains(t, Code("X-NEW").Info().Do, "applier resume")
}
