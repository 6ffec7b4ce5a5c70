package merger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// snapshotKey and edit change the table as somebody with access to the files could.
func (r *rig) edit(id int64, change func(m map[string]any)) {
	ctx := context.Background()
	key := r.table.Paths().Snapshot(id)
	raw, err := r.disk.Get(ctx, key)
	require.NoError(r.t, err)
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	require.NoError(r.t, dec.Decode(&m))
	change(m)
	raw, err = json.Marshal(m)
	require.NoError(r.t, err)
	require.NoError(r.t, r.disk.Replace(ctx, key, raw))
}

// committed3 makes three commits of ours: start and two batches.
func committed3(t *testing.T, o rigOptions) *rig {
	o.apply = batcher.Mirror
	r := kvRig(t, o)
	r.begin()
	r.put(0, 1, "a")
	r.commit()
	r.put(0, 2, "b")
	r.commit()
	return r
}

func TestLook_RefusesWhatItMustNotBuildOn(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, *rig)
		code  Code
		facts string
	}{
		{"a hole", func(t *testing.T, r *rig) {
			require.NoError(t, r.disk.Delete(ctx, r.table.Paths().Snapshot(2)))
		}, CodeHole, "3 follows 1"},
		{"a replaced base", func(t *testing.T, r *rig) {
			r.edit(2, func(m map[string]any) { m["uuid"] = "another" })
		}, CodeChain, "snapshot 3 was built on another snapshot 2 than the one that is there"},
		{"the table is gone", func(t *testing.T, r *rig) {
			require.NoError(t, r.disk.RemoveAll("schema"))
		}, CodeGone, "table db.t has no schema any more"},
		{"another table in its place", func(t *testing.T, r *rig) {
			raw, err := r.disk.Get(ctx, r.table.Paths().Schema(0))
			require.NoError(t, err)
			require.NoError(t, r.disk.Replace(ctx, r.table.Paths().Schema(0), append(raw, '\n')))
		}, CodeReplaced, "another first schema"},
		{"a new schema", func(t *testing.T, r *rig) { r.alter(t, nil) }, CodeSchema, "number 1 now, the pipeline started with 0"},
		{"an option we do not write", func(t *testing.T, r *rig) {
			r.alter(t, map[string]string{"changelog-producer": "lookup"})
		}, CodeOptions, "changelog-producer"},
		{"a copy", func(t *testing.T, r *rig) {
			r.edit(3, func(m map[string]any) { r.editRecord(m, func(rec *Record) { rec.Table = "other" }) })
		}, CodeClone, "snapshot 3 was written for another table"},
		{"other settings", func(t *testing.T, r *rig) {
			r.edit(3, func(m map[string]any) { r.editRecord(m, func(rec *Record) { rec.Config = "other" }) })
		}, CodeConfig, "under other settings"},
		{"a newer record", func(t *testing.T, r *rig) {
			r.edit(3, func(m map[string]any) { r.editRecord(m, func(rec *Record) { rec.Version = 2 }) })
		}, CodeVersion, "newer version"},
		{"a torn record", func(t *testing.T, r *rig) {
			r.edit(3, func(m map[string]any) { m["properties"].(map[string]any)["applier.p"] = "{" })
		}, CodeCorrupt, "malformed position record"},
		{"a torn snapshot", func(t *testing.T, r *rig) {
			require.NoError(t, r.disk.Replace(ctx, r.table.Paths().Snapshot(3), []byte("{")))
		}, CodeCorrupt, "snapshot-3"},
		{"a newer snapshot format", func(t *testing.T, r *rig) {
			r.edit(3, func(m map[string]any) { m["version"] = 9 })
		}, CodeVersion, "snapshot-3"},
		{"another pipeline fed it", func(t *testing.T, r *rig) {
			for id := int64(1); id <= 3; id++ {
				r.edit(id, func(m map[string]any) {
					p := m["properties"].(map[string]any)
					p["applier.q"] = p["applier.p"]
					delete(p, "applier.p")
				})
			}
			r.forgetMarks(t)
		}, CodeSecondGroup, `pipeline id "q" has committed records of topic t`},
		{"the record is lost", func(t *testing.T, r *rig) {
			for id := int64(1); id <= 3; id++ {
				r.edit(id, func(m map[string]any) { delete(m, "properties") })
			}
		}, CodeOffsetLost, "no position record is left"},
		{"rolled back by adding a snapshot", func(t *testing.T, r *rig) {
			for _, k := range []int64{5, 6, 7} {
				r.put(0, k, "x")
			}
			r.commit()
			for _, k := range []int64{5, 6} { // each changes the file's deletion vector
				r.put(0, k, "y")
				r.commit()
			}
			five, err := paimon.ReadSnapshot(ctx, r.disk, r.table.Paths(), 5)
			require.NoError(t, err)
			r.foreign(kvRow(9, "x"))
			r.edit(7, func(m map[string]any) {
				m["commitKind"] = "OVERWRITE"
				m["indexManifest"] = *five.IndexManifest
			})
		}, CodeRollback, "snapshot 7 took the deletion vectors of snapshot 5 back"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := committed3(t, rigOptions{})
			c.spoil(t, r)
			r.restart(t, c.code)
			require.Equal(t, PhaseHalted, r.a.state.Phase)
			require.Equal(t, c.code, r.a.state.Halt.Code, "%v", r.a.state.Halt)
			require.Contains(t, r.a.state.Halt.Facts, c.facts)
			require.True(t, r.stopped)
			before := len(r.committed)
			r.post(ResumeAsked{})
			require.Equal(t, c.code, r.a.state.Halt.Code, "it stays until the cause is gone")
			require.Len(t, r.committed, before)
		})
	}
}

// What a newer schema does to a loop that can follow it, or says why it cannot.
func TestLook_ANewerSchemaEndsTheLoopOrHaltsIt(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*rig) // what is in hand when the loop looks
	}{
		{"idle", func(r *rig) { r.post(Tick{}) }},
		{"with a batch", func(r *rig) { r.put(0, 9, "x"); r.flush() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := committed3(t, rigOptions{})
			var fits error
			r.a.fits = func(table *paimon.Table) error {
				require.EqualValues(t, 1, table.Schema().ID)
				return fits
			}
			fits = errors.New("column v is gone")
			r.alter(t, nil)
			before, released := len(r.committed), r.released
			c.with(r)
			require.Equal(t, PhaseHalted, r.a.state.Phase)
			require.Equal(t, CodeSchema, r.a.state.Halt.Code)
			require.Contains(t, r.a.state.Halt.Facts, "which it cannot follow: column v is gone")
			fits = nil
			r.post(ResumeAsked{})
			require.Equal(t, PhaseStopped, r.a.state.Phase, "a resume looks again")
			require.ErrorIs(t, r.a.Run(t.Context()), ErrReopen)
			require.Len(t, r.committed, before, "nothing was committed with the old schema")
			if c.name != "idle" {
				require.Equal(t, released+1, r.released)
			}
		})
	}
}

// A branch that becomes the main one takes the schema back, and ALTERs then give the
// numbers again: the number alone does not say that the schema is the one that is known.
func TestLook_AnotherSchemaOfTheSameNumberIsANewOne(t *testing.T) {
	r := committed3(t, rigOptions{})
	r.alter(t, nil)
	r.a.view.drop()
	r.open(nil)
	r.post(Assigned{})
	r.a.fits = func(table *paimon.Table) error {
		require.Equal(t, "10 mb", table.Schema().Options["target-file-size"])
		return nil
	}
	r.put(0, 1, "b")
	r.flush()
	before := len(r.committed)
	require.Equal(t, PhaseIdle, r.a.state.Phase)

	require.NoError(t, r.disk.RemoveAll(r.table.Paths().Schema(1)))
	r.alter(t, map[string]string{"target-file-size": "10 mb"})
	r.put(0, 1, "c")
	r.flush()
	require.Equal(t, PhaseStopped, r.a.state.Phase)
	require.ErrorIs(t, r.a.Run(t.Context()), ErrReopen)
	require.Len(t, r.committed, before, "nothing was committed with the old schema")
}

// A data file may be newer than the schema that was looked at: the next look finds it.
func TestLook_AFileOfANewerSchemaIsLookedAtAgain(t *testing.T) {
	r := committed3(t, rigOptions{})
	r.a.fits = func(*paimon.Table) error { return nil }
	e := manifest.Entry{File: manifest.DataFile{Name: "f", SchemaID: 1}}
	require.ErrorIs(t, r.a.view.accept(&e), errMovedOn)
	require.Equal(t, CodeIO, classify(errMovedOn), "which is tried again")
}

// restart opens the loop anew where the table can still be opened, and looks.
func (r *rig) restart(t *testing.T, code Code) {
	switch code {
	case CodeGone, CodeReplaced, CodeSchema, CodeOptions: // seen by a loop that was open before
		r.post(Tick{})
		return
	}
	r.a.view.drop()
	r.open(nil)
	r.post(Assigned{})
}

// alter adds a schema as ALTER TABLE would.
func (r *rig) alter(t *testing.T, options map[string]string) {
	ctx := context.Background()
	raw, err := r.disk.Get(ctx, r.table.Paths().Schema(0))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(raw, &m))
	m["id"] = 1
	for k, v := range options {
		m["options"].(map[string]any)[k] = v
	}
	raw, err = json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, r.disk.PutIfAbsent(ctx, r.table.Paths().Schema(1), raw))
}

func (r *rig) editRecord(m map[string]any, change func(*Record)) {
	p := m["properties"].(map[string]any)
	var rec Record
	require.NoError(r.t, json.Unmarshal([]byte(p["applier.p"].(string)), &rec))
	change(&rec)
	text, err := rec.Encode()
	require.NoError(r.t, err)
	p["applier.p"] = text
}

// forgetMarks removes both marks, as if nobody had ever committed here.
func (r *rig) forgetMarks(t *testing.T) {
	require.NoError(t, r.disk.RemoveAll("consumer"))
	require.NoError(t, r.marks.RemoveAll("p.marker"))
}

func TestMarks_EitherTellsALostRecordFromAFirstStart(t *testing.T) {
	for _, c := range []struct {
		name   string
		remove func(*testing.T, *rig)
		code   Code // none: a first start
	}{
		{"both", func(*testing.T, *rig) {}, CodeOffsetLost},
		{"only the consumer file", func(t *testing.T, r *rig) { require.NoError(t, r.marks.RemoveAll("p.marker")) }, CodeOffsetLost},
		{"only the marker", func(t *testing.T, r *rig) { require.NoError(t, r.disk.RemoveAll("consumer")) }, CodeOffsetLost},
		{"neither", func(t *testing.T, r *rig) { r.forgetMarks(t) }, ""},
		{"a marker of another table of this name", func(t *testing.T, r *rig) {
			r.forgetMarks(t)
			require.NoError(t, r.marks.Replace(context.Background(), "p.marker", marker{Name: "db.t", Table: "other", Snapshot: 3}.encode()))
		}, CodeReplaced},
		{"a marker of another table", func(t *testing.T, r *rig) {
			r.forgetMarks(t)
			require.NoError(t, r.marks.Replace(context.Background(), "p.marker", marker{Table: "other", Snapshot: 3}.encode()))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := committed3(t, rigOptions{})
			for id := int64(1); id <= 3; id++ {
				r.edit(id, func(m map[string]any) { delete(m, "properties") })
			}
			c.remove(t, r)
			r.restart(t, CodeOffsetLost)
			if c.code != "" {
				require.Equal(t, c.code, r.a.state.Halt.Code)
			} else {
				require.Equal(t, PhaseIdle, r.a.state.Phase)
				require.Equal(t, "start", r.record1(t).Op)
			}
		})
	}
}

func TestPin_FollowsEveryCommitAndIsMended(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	pinned := func() int64 {
		next, err := paimon.ReadConsumer(ctx, r.disk, r.table.Paths(), "applier-p")
		require.NoError(t, err)
		return next
	}
	require.EqualValues(t, 3, pinned())
	require.NoError(t, r.disk.RemoveAll("consumer"))
	r.post(Tick{})
	require.EqualValues(t, 3, pinned(), "an idle look writes it again")

	off := committed3(t, rigOptions{settings: func(s *Settings) { s.Pin = false }})
	_, err := paimon.ReadConsumer(ctx, off.disk, off.table.Paths(), "applier-p")
	require.ErrorIs(t, err, objstore.ErrNotExist)
}

func TestCarry_KeepsTheRecordAheadOfExpiry(t *testing.T) {
	r := committed3(t, rigOptions{})
	for i := range int64(6) { // more than half of snapshot.num-retained.min
		r.foreign(kvRow(100+i, "x"))
	}
	r.post(Tick{})
	require.Equal(t, PhaseIdle, r.a.state.Phase)
	require.EqualValues(t, 10, r.a.state.Known.ID)
	rec := r.record1(t)
	require.Equal(t, "carry", rec.Op)
	require.EqualValues(t, 4, rec.Seq)
	require.Contains(t, r.seen.notices, NoticeCarried)
	require.Zero(t, rec.In)
	r.put(0, 1, "z")
	r.commit()
	require.Len(t, r.rows(), 8)

	// By age too.
	r.foreign(kvRow(200, "x"))
	r.post(Tick{})
	require.NotEqual(t, "carry", r.record1(t).Op)
	r.now = r.now.Add(time.Hour)
	r.post(Tick{})
	require.Equal(t, "carry", r.record1(t).Op)

	// Not while paused: another engine may be at work.
	r.foreign(kvRow(201, "x"))
	r.now = r.now.Add(time.Hour)
	latest := r.latest().Snapshot.ID
	r.post(PauseAsked{})
	r.post(Tick{})
	require.Equal(t, latest, r.latest().Snapshot.ID)
	require.True(t, r.a.Status().Quiet)
	r.post(ResumeAsked{})
	require.Equal(t, latest+1, r.latest().Snapshot.ID)
}

func TestIdle_FollowsARollbackAndAnotherInstance(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	require.NoError(t, r.disk.Delete(ctx, r.table.Paths().Snapshot(3)))
	require.NoError(t, paimon.WriteLatestHint(ctx, r.disk, r.table.Paths(), 2))
	r.post(Tick{})
	require.Contains(t, r.seen.notices, NoticeMovedBack)
	require.EqualValues(t, 1, r.resumed[r.parts[0]].Next)
	r.put(0, 2, "again")
	r.commit()
	require.Equal(t, []string{"k=1 v=a", "k=2 v=again"}, r.rows())

	// Another process with the same id goes on: ours is fenced, then follows.
	other := *r
	other.open(nil)
	other.begin()
	other.put(0, 3, "theirs")
	other.commit()
	r.put(0, 3, "ours, too late")
	n := len(r.committed)
	r.flush()
	require.Len(t, r.committed, n)
	require.Contains(t, r.seen.notices, NoticeFenced)
	require.EqualValues(t, 3, r.resumed[r.parts[0]].Next)
	require.Equal(t, []string{"k=1 v=a", "k=2 v=again", "k=3 v=theirs"}, r.rows())
	other.a.view.drop()
}

func TestResume_AnErrorOfTheSourceIsRetriedAndAProblemHalts(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.resumeErr = errors.New("broker not available")
	r.post(Assigned{})
	require.Equal(t, PhaseBackoff, r.a.state.Phase)
	for range retriesBeforeHalt + 1 {
		r.retry()
	}
	require.Equal(t, CodeIO, r.a.state.Halt.Code, "it shows after a while")
	r.resumeErr = &Halt{CodeGap, "t/0: next offset 0 was removed"}
	r.retry()
	require.Equal(t, PhaseHalted, r.a.state.Phase)
	require.Equal(t, CodeGap, r.a.state.Halt.Code)
	r.resumeErr = nil
	r.post(RecheckAsked{})
	require.Equal(t, PhaseIdle, r.a.state.Phase)
	require.Equal(t, "over", r.seen.halts[len(r.seen.halts)-1])
}

func TestTroubleOfAnOlderGenerationIsOver(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	old := r.generation
	r.post(Assigned{}) // reads on from elsewhere
	r.post(SourceHalted{Halt: Halt{CodeGap, "what was"}, Generation: old})
	require.Equal(t, PhaseIdle, r.a.state.Phase)
	r.post(SourceHalted{Halt: Halt{CodeGap, "what is"}, Generation: r.generation})
	require.Equal(t, PhaseHalted, r.a.state.Phase)
}

func TestBatchesOfAnOlderGenerationAreGivenBack(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "a")
	old := r.b.Seal(batcher.FlushRows)
	r.post(Assigned{})
	r.a.take(old)
	require.Equal(t, 1, r.released)
	require.Nil(t, r.a.state.Batch)
}

func TestOperator_StatesPositionsThroughTheFence(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	op := func(c OperatorCommit) (int64, error) {
		a, err := New(ctx, r.set, Deps{Name: "db.t", Table: r.table, Source: NoSource{}, Observer: rigObserver{r}})
		require.NoError(t, err)
		defer a.view.drop()
		return a.Commit(ctx, c)
	}
	snapshot, err := op(OperatorCommit{Op: "skip", Next: change.Positions{r.parts[0]: {Next: 5, Epoch: -1}}, Topics: map[string]string{"t": "id"}, Cluster: "cluster", Gaps: 3})
	require.NoError(t, err)
	require.EqualValues(t, 4, snapshot)
	rec := r.record1(t)
	require.Equal(t, "skip", rec.Op)
	require.EqualValues(t, 3, rec.Gaps)
	require.Nil(t, rec.Range)

	// The running loop finds it at its next look, and is fenced before that.
	r.put(0, 9, "read from where we were")
	r.flush()
	require.EqualValues(t, 5, r.resumed[r.parts[0]].Next)
	require.Equal(t, []string{"k=1 v=a", "k=2 v=b"}, r.rows())
	r.put(0, 5, "e")
	r.commit()
	require.EqualValues(t, 3, r.record1(t).Gaps, "gaps are remembered")

	// set answers a record that is lost, adopt one of another table.
	for id := int64(1); id <= 5; id++ {
		r.edit(id, func(m map[string]any) { delete(m, "properties") })
	}
	r.restart(t, CodeOffsetLost)
	require.Equal(t, CodeOffsetLost, r.a.state.Halt.Code)
	_, err = op(OperatorCommit{Op: "set", Next: change.Positions{r.parts[0]: {Next: 7, Epoch: -1}}, Topics: map[string]string{"t": "id"}})
	require.NoError(t, err)
	r.post(RecheckAsked{})
	require.Equal(t, PhaseIdle, r.a.state.Phase)
	require.EqualValues(t, 7, r.resumed[r.parts[0]].Next)
}

func TestOperator_SaysWhyACommitFailed(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	full := func(op objstore.Op) objstore.Fault {
		if op.Kind == objstore.OpWrite {
			return objstore.Fault{Err: syscall.ENOSPC}
		}
		return objstore.Fault{}
	}
	table, err := paimon.OpenTable(ctx, r.disk.Attach(objstore.MemOptions{Now: r.clock, Fault: full}), paimon.Write)
	require.NoError(t, err)
	a, err := New(ctx, r.set, Deps{Name: "db.t", Table: table, Source: NoSource{}, Observer: rigObserver{r}})
	require.NoError(t, err)
	_, err = a.Commit(ctx, OperatorCommit{Op: "set", Next: at(5)})
	require.ErrorContains(t, err, "the commit failed: writing the files of snapshot 4")
	require.ErrorIs(t, err, objstore.ErrFull)

	// What a statement does not answer still forbids it.
	r.alter(t, map[string]string{"changelog-producer": "lookup"})
	a, err = New(ctx, r.set, Deps{Name: "db.t", Table: r.table, Source: NoSource{}, Observer: rigObserver{r}})
	require.NoError(t, err)
	_, err = a.Commit(ctx, OperatorCommit{Op: "set", Next: at(5)})
	var h *Halt
	require.ErrorAs(t, err, &h)
	require.Equal(t, CodeOptions, h.Code)

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err = a.Commit(canceled, OperatorCommit{Op: "set", Next: at(5)})
	require.ErrorIs(t, err, context.Canceled)
}

func TestFindRecords_WalksBackToOurOwn(t *testing.T) {
	ctx := context.Background()
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	own, others, err := FindRecords(ctx, r.table, "p")
	require.NoError(t, err)
	require.Nil(t, own)
	require.Empty(t, others)
	r.begin()
	r.edit(1, func(m map[string]any) {
		p := m["properties"].(map[string]any)
		p["applier.q"] = p["applier.p"]
	})
	for i := range int64(3) {
		r.foreign(kvRow(i, "x"))
	}
	own, others, err = FindRecords(ctx, r.table, "p")
	require.NoError(t, err)
	require.EqualValues(t, 1, own.Snapshot)
	require.Equal(t, "start", own.Record.Op)
	require.Len(t, others, 1)
	require.Equal(t, "pipeline q, snapshot 1, commit 1 of epoch 1", others[0].String())
}

func TestDeletedAt_MustBeAMarkerOfTheRightKind(t *testing.T) {
	field := func(typ types.Type) []types.Field {
		return []types.Field{{Name: "k", Type: types.IntType()}, {Name: "deleted_at", Type: typ}}
	}
	at, err := deletedAtColumn(field(types.TimestampLTZType(3)))
	require.NoError(t, err)
	require.Equal(t, 1, at)
	for _, typ := range []types.Type{types.TimestampType(3), types.StringType(), types.TimestampLTZType(3).NonNull()} {
		_, err = deletedAtColumn(field(typ))
		require.ErrorContains(t, err, fmt.Sprintf("the table's is %s", typ))
	}
}

// A commit whose read-back comes so late that expiry has been there is not one
// that somebody replaced (found by the simulation).
func TestReadBack_ACommitThatExpiredInOrderStands(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	defer r.close()
	at := func(id int64) SnapRef {
		l, err := r.a.chain.fresh(ctx, id)
		require.NoError(t, err)
		return l.ref
	}
	first, second := at(1), at(2)
	require.NoError(t, r.disk.Delete(ctx, r.table.Paths().Snapshot(1)))
	ev, err := r.a.readBack(ctx, ReadBack{Target: 1, Txn: first.Ident})
	require.NoError(t, err)
	require.Equal(t, ReadBacked{BackSound}, ev)
	require.NoError(t, r.disk.Delete(ctx, r.table.Paths().Snapshot(3)))
	ev, err = r.a.readBack(ctx, ReadBack{Target: 3, Txn: "gone", Base: second})
	require.NoError(t, err)
	require.Equal(t, ReadBacked{BackReplaced}, ev, "what is gone from the top was not expired")
}

// asLatest commits the content of an older snapshot as a new one, with its
// properties, as Java's rollback_to_as_latest does.
func (r *rig) asLatest(id int64) {
	ctx := context.Background()
	s, err := paimon.ReadSnapshot(ctx, r.disk, r.table.Paths(), id)
	require.NoError(r.t, err)
	old, err := r.table.State(ctx, s)
	require.NoError(r.t, err)
	now := r.latest()
	then, err := r.table.Files(ctx, old, nil)
	require.NoError(r.t, err)
	files, err := r.table.Files(ctx, now, nil)
	require.NoError(r.t, err)
	var ch paimon.Changes
	live := map[paimon.FileKey]bool{}
	for i := range then {
		live[paimon.KeyOf(&then[i])] = true
	}
	for i := range files {
		if k := paimon.KeyOf(&files[i]); !live[k] {
			ch.Delete = append(ch.Delete, files[i])
		}
		delete(live, paimon.KeyOf(&files[i]))
	}
	require.Empty(r.t, live, "these tests only take rows away")
	now.Index = nil
	c, err := r.table.BuildCommit(ctx, now, ch, paimon.CommitInfo{
		UUID: r.uuid(), User: "spark", Identifier: paimon.BatchCommitIdentifier, Properties: s.Properties, TimeMillis: r.now.UnixMilli(), NewUUID: r.uuid,
	})
	require.NoError(r.t, err)
	c.Snapshot.IndexManifest, c.Snapshot.CommitKind = s.IndexManifest, paimon.CommitOverwrite
	c.Bytes, err = c.Snapshot.Encode()
	require.NoError(r.t, err)
	require.NoError(r.t, r.disk.PutAll(ctx, c.Objects))
	require.NoError(r.t, r.table.Publish(ctx, c))
}

// Found by the simulation: without deletion vectors such a rollback left no sign
// that was looked for, and the records between were lost.
func TestLook_ARollbackByANewSnapshotToAForeignOneHalts(t *testing.T) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	defer r.close()
	r.begin()
	r.foreign(kvRow(9, "x")) // snapshot 2
	r.put(0, 1, "a")
	r.commit() // 3
	r.asLatest(2)
	r.post(Tick{})
	require.Equal(t, PhaseHalted, r.a.state.Phase)
	require.Equal(t, CodeRollback, r.a.state.Halt.Code)
	require.Contains(t, r.a.state.Halt.Facts, "snapshot 4 has exactly the content of snapshot 2")
}

// A rollback to a snapshot of ours brings its record along: it is followed like
// any rollback.
func TestLook_ARollbackByANewSnapshotToOneOfOursIsFollowed(t *testing.T) {
	r := committed3(t, rigOptions{})
	defer r.close()
	r.asLatest(2)
	r.post(Tick{})
	require.Equal(t, PhaseIdle, r.a.state.Phase, "%v", r.a.state.Halt)
	require.Contains(t, r.seen.notices, NoticeMovedBack)
	require.EqualValues(t, 1, r.resumed[r.parts[0]].Next)
	require.Equal(t, []string{"k=1 v=a"}, r.rows())
	r.put(0, 2, "b")
	r.commit()
	require.Equal(t, []string{"k=1 v=a", "k=2 v=b"}, r.rows())
}

// What a foreign writer adds and takes away again above our record is no rollback
// behind it.
func TestLook_ContentThatReturnsAboveTheRecordGoesOn(t *testing.T) {
	r := committed3(t, rigOptions{})
	defer r.close()
	r.foreign(kvRow(9, "x"))
	r.asLatest(3)
	r.edit(5, func(m map[string]any) { delete(m, "properties") }) // a DELETE of old engines looks like this
	r.post(Tick{})
	require.Equal(t, PhaseIdle, r.a.state.Phase, "%v", r.a.state.Halt)
}

// Without a snapshot below it nothing else says that the table is another one
// (found by the simulation: a first start went into a table made meanwhile).
func TestStill_AFirstCommitLooksWhichTableItIs(t *testing.T) {
	ctx := context.Background()
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	defer r.close()
	ev, err := r.a.still(ctx, Still{})
	require.NoError(t, err)
	require.Equal(t, Stilled{Same: true}, ev)
	raw, err := r.disk.Get(ctx, r.table.Paths().Schema(0))
	require.NoError(t, err)
	require.NoError(t, r.disk.Replace(ctx, r.table.Paths().Schema(0), append(raw, '\n')))
	ev, err = r.a.still(ctx, Still{})
	require.NoError(t, err)
	require.Equal(t, Stilled{}, ev)
}

// Ids are used again after a rollback. What was remembered of one must not hide
// that it is another snapshot now, two below the latest (found by the simulation:
// the batch in hand went on behind records that had been rolled back).
func TestLook_ARollbackUnderForeignCommitsIsNotHiddenByMemory(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	defer r.close()
	require.NoError(t, r.disk.Delete(ctx, r.table.Paths().Snapshot(3)))
	require.NoError(t, paimon.WriteLatestHint(ctx, r.disk, r.table.Paths(), 2))
	r.foreign(kvRow(8, "x")) // 3 again
	r.foreign(kvRow(9, "x")) // 4
	r.put(0, 3, "c")
	r.flush()
	require.Contains(t, r.seen.notices, NoticeFenced)
	require.EqualValues(t, 1, r.resumed[r.parts[0]].Next, "record 1 was rolled back and is read again")
	require.Equal(t, []string{"k=1 v=a", "k=8 v=x", "k=9 v=x"}, r.rows())
}

// Found by the simulation: the statement took the table for empty, and was
// published as snapshot 1 where that had expired, or tried so for ever.
func TestCommit_AStatementOnABrokenChainStandsOnTheLatestSnapshot(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r := committed3(t, rigOptions{})
	defer r.close()
	r.edit(2, func(m map[string]any) { m["uuid"] = "another" })
	require.NoError(t, r.disk.Delete(ctx, r.table.Paths().Snapshot(1)))
	a, err := New(ctx, r.set, Deps{Name: "db.t", Table: r.table, Source: NoSource{}, Observer: rigObserver{r}})
	require.NoError(t, err)
	id, err := a.Commit(ctx, OperatorCommit{Op: "set", Next: change.Positions{r.parts[0]: {Next: 2, Epoch: -1}}, Topics: map[string]string{rigTopic: "id"}, Cluster: "cluster"})
	require.NoError(t, err)
	require.EqualValues(t, 4, id)
	own, _, err := FindRecords(ctx, r.table, "p")
	require.NoError(t, err)
	require.EqualValues(t, 4, own.Record.Seq, "it follows the record that is there")
	r.post(Tick{})
	require.Equal(t, PhaseIdle, r.a.state.Phase, "%v", r.a.state.Halt)
}

// Found by the simulation: what is remembered of a snapshot that has expired since
// was to be made durable, for ever.
func TestSecure_PassesOverSnapshotsThatExpired(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	defer r.close()
	r.foreign(kvRow(8, "x"))
	r.foreign(kvRow(9, "x"))
	r.post(Tick{}) // looks, and remembers
	top, err := r.a.chain.at(ctx, 5)
	require.NoError(t, err)
	for id := int64(1); id <= 4; id++ {
		require.NoError(t, r.disk.Delete(ctx, r.table.Paths().Snapshot(id)))
	}
	require.NoError(t, r.a.view.secure(ctx, top))
}

// Found by the simulation: an empty commit moved the index past foreign snapshots
// that it had not followed.
func TestCarry_DoesNotHideForeignRowsFromTheIndex(t *testing.T) {
	r := committed3(t, rigOptions{})
	defer r.close()
	for range 6 {
		r.foreign(kvRow(7, "theirs"))
	}
	r.post(Tick{})
	require.Contains(t, r.seen.notices, NoticeCarried)
	r.put(0, 7, "ours")
	require.Equal(t, Counts{Updated: 6}, r.commit().Counts)
}

// Found by the simulation: a late arrival stood on a snapshot that had been rolled
// back, an operator accepted it, and the index was rolled over the broken link.
func TestView_DoesNotRollOverABrokenLink(t *testing.T) {
	ctx := context.Background()
	r := committed3(t, rigOptions{})
	old := r.a
	defer old.view.drop()
	r.open(nil)
	defer r.close()
	r.begin()
	r.put(0, 3, "c")
	r.commit()
	top, err := old.chain.fresh(ctx, 4)
	require.NoError(t, err)
	steps, err := old.view.steps(ctx, top)
	require.NoError(t, err)
	require.Len(t, steps, 1)
	r.edit(4, func(m map[string]any) { r.editRecord(m, func(rec *Record) { rec.Base = "another" }) })
	top, err = old.chain.fresh(ctx, 4)
	require.NoError(t, err)
	steps, err = old.view.steps(ctx, top)
	require.NoError(t, err)
	require.Nil(t, steps, "the index is built anew")
}
