package merger

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"applier/batcher"
	"applier/ingest/change"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// deletesRig is a rig whose table is ordered by column ord and remembers deletes;
// log has what it logged.
func deletesRig(t require.TestingT, change func(*Settings)) (r *rig, log *bytes.Buffer) {
	log = &bytes.Buffer{}
	r = newRig(t, rigOptions{
		fields: []types.Field{
			{ID: 0, Name: "k", Type: types.IntType().NonNull()},
			{ID: 1, Name: "v", Type: types.StringType()},
			{ID: 2, Name: "ord", Type: types.BigIntType()},
		},
		apply: batcher.Mirror, key: []int{0}, orderBy: []int{2},
		settings: func(s *Settings) {
			s.RememberDeletes = 24 * time.Hour
			s.Log = slog.New(slog.NewTextHandler(log, nil))
			if change != nil {
				change(s)
			}
		},
	})
	return r, log
}

// at appends a change of a key at a place in the order; v of "-" is a delete.
func (r *rig) at(k, ord int64, v string) {
	c := r.b.Changes()
	c.Cols[0].AppendInt32(int32(k))
	kind := change.Update
	if v == "-" {
		kind = change.Delete
		c.Cols[1].AppendNull()
	} else {
		c.Cols[1].AppendString(v)
	}
	c.Cols[2].AppendInt64(ord)
	c.EndRow(kind, 0, r.offsets[0], r.now.UnixMilli())
	c.KeepRaw(change.RawRecord{Value: fmt.Append(nil, "raw", ord)})
	r.record(0)
}

// reopen is a new process on the same table and state folder.
func (r *rig) reopen() {
	r.close()
	r.open(nil)
	r.begin()
}

// remembered returns the deletes in memory: key → place, as bytes.
func (r *rig) remembered() map[string]string {
	out := map[string]string{}
	require.NoError(r.t, r.a.deletes.set.Each(func(key, order []byte, _ int64) error {
		out[string(key)] = string(order)
		return nil
	}))
	return out
}

func TestDeletes_ADeletedKeyStaysDeleted(t *testing.T) {
	r, log := deletesRig(t, nil)
	defer func() { r.close() }()
	r.begin()
	r.at(1, 5, "a")
	r.at(2, 5, "b")
	r.commit()
	r.at(1, 10, "-")
	r.at(3, 10, "-") // a delete of what is not there (yet)
	c := r.commit()
	require.EqualValues(t, 1, c.Counts.Deleted)
	require.Equal(t, []string{"k=2 v=b ord=5"}, r.rows())

	r.at(1, 8, "late")
	r.at(3, 8, "late")
	require.EqualValues(t, 2, r.commit().Counts.Late, "in a later batch")
	r.reopen()
	r.at(1, 9, "late")
	r.at(3, 9, "late")
	require.EqualValues(t, 2, r.commit().Counts.Late, "after a restart")
	require.Equal(t, []string{"k=2 v=b ord=5"}, r.rows())
	require.EqualValues(t, 2, r.a.Status().Deletes)
	require.Zero(t, r.a.Status().ForgottenSince)
	require.NotContains(t, log.String(), "forgotten")

	r.at(1, 12, "again") // newer than the delete: the key lives again
	r.at(1, 11, "late")
	r.commit()
	require.Equal(t, []string{"k=1 v=again ord=12", "k=2 v=b ord=5"}, r.rows())
	require.EqualValues(t, 1, r.a.Status().Deletes)
	r.at(2, 4, "-") // a late delete
	require.EqualValues(t, 1, r.commit().Counts.Late)
	require.Len(t, r.rows(), 2)
	r.reopen()
	require.EqualValues(t, 1, r.a.Status().Deletes)
}

func TestDeletes_AnotherInstanceOnTheSameFolderKnowsThem(t *testing.T) {
	r, _ := deletesRig(t, nil)
	r.begin()
	r.at(1, 10, "-")
	r.commit()
	first, firstBatcher := r.a, r.b
	r.open(nil) // beside the first, which believes to own the table
	defer func() { r.close() }()
	r.begin()
	r.at(2, 10, "-")
	r.commit()
	require.EqualValues(t, 2, r.a.Status().Deletes)

	// The first comes back: it is fenced, and then knows what the second deleted.
	second := r.a
	r.a, r.b = first, firstBatcher
	r.post(Tick{})
	require.Contains(t, r.seen.notices, NoticeMovedOn)
	r.at(2, 8, "late")
	r.at(1, 8, "late")
	require.EqualValues(t, 2, r.commit().Counts.Late)
	require.EqualValues(t, 2, r.a.Status().Deletes)
	require.Zero(t, r.a.Status().ForgottenSince)
	second.view.drop()
}

// Loss: of the folder, by another host that has none, of an object, by damage. It
// is told with the time since which deletes are forgotten, at every start, until
// what was lost would have been let go anyway.
func TestDeletes_ALossIsToldUntilItNoLongerMatters(t *testing.T) {
	objects := func(t *testing.T, r *rig) (keys []string) {
		r.marks.Walk(func(key string, _ []byte) {
			if strings.HasPrefix(key, "p.deletes/") {
				keys = append(keys, key)
			}
		})
		require.NotEmpty(t, keys)
		return keys
	}
	for name, lose := range map[string]func(*testing.T, *rig){
		"the folder is gone": func(t *testing.T, r *rig) { require.NoError(t, r.marks.RemoveAll("p.deletes")) },
		"another host":       func(_ *testing.T, r *rig) { r.set.Marks = objstore.NewMem(objstore.MemOptions{Now: r.clock}) },
		"an object is gone":  func(t *testing.T, r *rig) { require.NoError(t, r.marks.RemoveAll(objects(t, r)[0])) },
		"an object is damaged": func(t *testing.T, r *rig) {
			key := objects(t, r)[1]
			b, err := r.marks.Get(context.Background(), key)
			require.NoError(t, err)
			b = bytes.Clone(b)
			b[len(b)/2] ^= 1
			require.NoError(t, r.marks.Replace(context.Background(), key, b))
		},
		"another order": func(_ *testing.T, r *rig) { // as after `offsets adopt` of a changed pipeline
			r.a.deletes.log.Layout += "x"
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, log := deletesRig(t, nil)
			defer func() { r.close() }()
			began := r.now
			r.begin()
			r.at(1, 10, "-")
			r.commit()
			r.at(2, 10, "-")
			r.commit()
			r.now = r.now.Add(time.Hour)
			lose(t, r)
			lost := r.now
			if name == "another order" {
				r.a.deletes.loaded = false
				require.NoError(t, r.a.deletes.follow(context.Background(), r.record1(t).Deletes, 0))
			} else {
				r.reopen()
			}
			s := r.a.deletes
			since, until := s.forgotten()
			require.Equal(t, []int64{began.UnixMilli(), lost.UnixMilli()}, []int64{since, until})
			require.Contains(t, log.String(), "level=ERROR msg=\"remembered deletes are lost\" forgotten_since="+began.UTC().Format(time.RFC3339)+" forgotten_until="+lost.UTC().Format(time.RFC3339))
			if name == "another order" {
				return
			}
			require.Equal(t, began.UnixMilli(), r.a.Status().ForgottenSince)

			r.at(3, 10, "-")
			r.at(1, 8, "back") // what a forgotten delete means
			r.commit()
			require.Equal(t, []string{"k=1 v=back ord=8"}, r.rows())
			r.now = r.now.Add(time.Hour)
			log.Reset()
			r.reopen()
			require.Contains(t, log.String(), "level=WARN msg=\"some deletes are forgotten\"", "told again, though the folder is sound now")
			r.at(3, 8, "late")
			require.EqualValues(t, 1, r.commit().Counts.Late, "what was deleted since is remembered")
			r.now = lost.Add(24*time.Hour + time.Millisecond)
			r.post(Tick{})
			require.Zero(t, r.a.Status().ForgottenSince)
			log.Reset()
			r.reopen()
			require.NotContains(t, log.String(), "forgotten")
		})
	}
}

// A program that knows nothing of remembered deletes leaves them out of its
// records, as a pipeline does that does not ask for it: what it deleted is not
// remembered, and that shows.
func TestDeletes_ARecordThatDoesNotMentionThemIsALoss(t *testing.T) {
	r, log := deletesRig(t, func(s *Settings) { s.RememberDeletes, s.Apply = 0, batcher.Upsert })
	defer func() { r.close() }()
	r.begin()
	r.at(1, 5, "a")
	r.commit()
	require.Nil(t, r.record1(t).Deletes)
	require.Zero(t, r.a.Status().ForgottenUntil)
	require.NotContains(t, log.String(), "deletes")

	r.set.RememberDeletes = time.Hour
	r.reopen()
	s := r.a.Status()
	require.Equal(t, []int64{r.now.Add(-time.Hour).UnixMilli(), r.now.UnixMilli()}, []int64{s.ForgottenSince, s.ForgottenUntil})
	require.Contains(t, log.String(), "does not mention any")
	r.at(2, 5, "b")
	r.commit()
	require.Equal(t, &RememberedDeletes{Since: r.now.UnixMilli(), Keep: time.Hour.Milliseconds()}, r.record1(t).Deletes)
}

func TestDeletes_NeedAStateFolder(t *testing.T) {
	r, _ := deletesRig(t, func(s *Settings) { s.Marks = nil })
	defer func() { r.close() }()
	r.post(Assigned{})
	require.NotEqual(t, PhaseIdle, r.a.state.Phase)
	require.ErrorContains(t, r.a.failure, "without a state folder")
}

func TestDeletes_AreRememberedForTheirTime(t *testing.T) {
	r, _ := deletesRig(t, func(s *Settings) { s.RememberDeletes = time.Hour })
	defer func() { r.close() }()
	r.begin()
	r.at(1, 10, "-")
	r.commit()
	r.now = r.now.Add(time.Hour)
	r.at(1, 7, "late")
	r.at(2, 10, "-")
	require.EqualValues(t, 1, r.commit().Counts.Late, "to the last moment")
	r.now = r.now.Add(time.Millisecond)
	r.at(1, 8, "back")
	require.EqualValues(t, 1, r.commit().Counts.Inserted)
	require.EqualValues(t, 1, r.a.Status().Deletes)

	// Kept for longer from now on: what was let go by then shows as forgotten.
	r.set.RememberDeletes = 3 * time.Hour
	r.now = r.now.Add(90 * time.Minute)
	r.reopen()
	require.Equal(t, r.now.Add(-time.Hour).UnixMilli(), r.a.Status().ForgottenUntil)
	r.at(3, 10, "-")
	r.commit() // with it the new time is in the table
	r.now = r.now.Add(2*time.Hour + time.Millisecond)
	r.reopen()
	require.Zero(t, r.a.Status().ForgottenUntil)
}

func TestDeletes_ARollbackOfTheTableTakesThemBack(t *testing.T) {
	r, _ := deletesRig(t, nil)
	defer func() { r.close() }()
	r.begin()
	r.at(1, 5, "a")
	r.at(2, 10, "-")
	r.commit()
	r.at(1, 10, "-")
	r.at(2, 12, "again")
	back := r.commit()
	r.at(1, 11, "-")
	last := r.commit()
	require.Len(t, r.remembered(), 1)
	for id := last.Snapshot; id >= back.Snapshot; id-- {
		require.NoError(t, r.disk.RemoveAll(r.table.Paths().Snapshot(id)))
	}
	require.NoError(t, paimon.WriteLatestHint(context.Background(), r.disk, r.table.Paths(), back.Snapshot-1))
	r.post(Tick{})
	require.Contains(t, r.seen.notices, NoticeMovedBack)
	require.Len(t, r.remembered(), 1)
	require.Zero(t, r.a.Status().ForgottenSince)
	r.at(1, 8, "not held back by a delete that was undone")
	r.at(2, 9, "late")
	c := r.commit()
	require.EqualValues(t, 1, c.Counts.Updated)
	require.EqualValues(t, 1, c.Counts.Late)
}

func TestDeletes_AStatementKeepsThem(t *testing.T) {
	r, _ := deletesRig(t, nil)
	defer func() { r.close() }()
	r.begin()
	r.at(1, 10, "-")
	r.commit()
	before := r.record1(t)
	table, err := paimon.OpenTable(context.Background(), r.disk, paimon.Write)
	require.NoError(t, err)
	op, err := New(context.Background(), r.set, Deps{Name: "db.t", Table: table, Source: NoSource{}, Observer: rigObserver{r}})
	require.NoError(t, err)
	pos, err := before.Positions()
	require.NoError(t, err)
	_, err = op.Commit(context.Background(), OperatorCommit{Op: "set", Next: pos, Topics: before.TopicIDs(), Cluster: before.Cluster})
	require.NoError(t, err)
	require.Equal(t, before.Deletes, r.record1(t).Deletes)
	r.post(RecheckAsked{})
	r.at(1, 8, "late")
	require.EqualValues(t, 1, r.commit().Counts.Late)
}

func TestDeletes_AFullStateFolderHoldsTheCommitBack(t *testing.T) {
	r, _ := deletesRig(t, nil)
	defer func() { r.close() }()
	full := false
	r.set.Marks = r.marks.Attach(objstore.MemOptions{Now: r.clock, Fault: func(o objstore.Op) objstore.Fault {
		if full && o.Kind == objstore.OpWrite {
			return objstore.Fault{Err: syscall.ENOSPC}
		}
		return objstore.Fault{}
	}})
	r.open(nil)
	r.begin()
	r.at(1, 5, "a")
	r.commit()
	full = true
	r.at(1, 10, "-")
	r.flush()
	for r.a.state.Halt == nil {
		r.retry()
	}
	require.Equal(t, CodeFull, r.a.state.Halt.Code)
	require.Equal(t, []string{"k=1 v=a ord=5"}, r.rows(), "nothing is deleted that could not be remembered")
	full = false
	r.retry()
	require.Nil(t, r.a.state.Halt)
	r.at(1, 10, "-")
	r.commit()
	r.at(1, 8, "late")
	require.EqualValues(t, 1, r.commit().Counts.Late)
}

func TestDeletes_MustFitTheirMemory(t *testing.T) {
	ceiling := int64(64 << 20)
	r, _ := deletesRig(t, func(s *Settings) { s.IndexCeiling = func() int64 { return ceiling } })
	defer func() { r.close() }()
	r.begin()
	r.at(1, 5, "a")
	for k := range int64(2000) {
		r.at(k+10, 10, "-")
	}
	r.commit()
	ceiling = r.a.view.index.Stats().Bytes + 200<<10
	for k := range int64(5000) {
		r.at(k+10_000, 10, "-")
	}
	r.flush()
	require.Equal(t, CodeMemory, r.a.state.Halt.Code)
	require.Contains(t, r.a.state.Halt.Facts, "7000 remembered deletes need")
	r.close()
	ceiling = r.a.deletes.bytes() / 4
	r.open(nil)
	require.ErrorContains(t, r.a.deletes.follow(context.Background(), r.record1(t).Deletes, ceiling), "I-MEMORY")
}

func TestDeletes_LateAndTiedRecordsGoToTheDeadLettersBeforeTheCommit(t *testing.T) {
	r, _ := deletesRig(t, func(s *Settings) { s.Order.Late, s.Order.Tie = batcher.LateDeadLetter, batcher.TieDeadLetter })
	defer func() { r.close() }()
	r.begin()
	r.at(1, 10, "-")
	r.at(2, 5, "b")
	r.commit()
	fill := func() {
		r.at(1, 7, "late")  // older than the delete, and older than the next in the batch
		r.at(1, 8, "late")  // older than the delete
		r.at(1, 10, "tie")  // as new as the delete
		r.at(2, 4, "-")     // a late delete
		r.at(2, 6, "newer") // fine
		r.at(2, 6, "tie")
	}
	r.letterErr = syscall.ECONNREFUSED
	fill()
	r.flush()
	require.Equal(t, CodeDeadLetter, r.a.state.Halt.Code)
	require.Equal(t, []string{"k=2 v=b ord=5"}, r.rows())
	r.letterErr, r.letters = nil, nil
	r.retry()
	fill()
	c := r.commit()
	late := "late: older by order_by than what the table holds, or remembers as deleted, of the key"
	tie := "tie: as new by order_by as what the table holds, or remembers as deleted, of the key"
	require.Equal(t, []string{
		`t/0@2 "raw7" ` + late, `t/0@3 "raw8" ` + late, `t/0@4 "raw10" ` + tie, `t/0@5 "raw4" ` + late, `t/0@7 "raw6" ` + tie,
	}, r.letters)
	require.Equal(t, []int64{5, 3, 2}, []int64{c.Counts.Letters, c.Counts.LateLetters, c.Counts.TiedLetters})
	require.EqualValues(t, 5, r.record1(t).DeadLetter)
	require.Equal(t, []string{"k=2 v=newer ord=6"}, r.rows())
	require.Equal(t, []string{"late", "late", "tie", "late", "tie"}, r.seen.classes)
}

func TestDeletes_AreCompactedAndSwept(t *testing.T) {
	r, _ := deletesRig(t, nil)
	defer func() { r.close() }()
	r.begin()
	count := func() (n int) {
		r.marks.Walk(func(key string, _ []byte) {
			if strings.HasPrefix(key, "p.deletes/") && !objstore.IsTemp(key) {
				n++
			}
		})
		return n
	}
	for i := range int64(200) {
		r.at(i%7, 10+i, "-")
		r.commit()
	}
	require.Less(t, count(), 60, "of 200 deltas")
	want := r.remembered()
	require.Len(t, want, 7)
	r.reopen()
	require.Equal(t, want, r.remembered())
	require.NotEmpty(t, r.a.deletes.path.Base)
}

// A crash at every operation of either disk, with any luck about what was not
// synced: the deletes that are remembered afterwards are exactly those that the
// newest record stands for, and none is reported lost.
func TestDeletes_CrashAtEveryOperation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, log := deletesRig(t, nil)
		defer func() { r.close() }()
		tables, states := r.disk, r.marks
		var active, crashed bool
		left := rapid.IntRange(1, 900).Draw(t, "operations before the crash")
		applied := rapid.Bool().Draw(t, "the last one happens")
		fault := func(objstore.Op) objstore.Fault {
			if active {
				left--
			}
			crashed = crashed || left == 0
			return objstore.Fault{Crash: crashed, Applied: left == 0 && applied}
		}
		r.set.Marks = states.Attach(objstore.MemOptions{Now: r.clock, Fault: fault})
		r.open(fault)
		active = true
		r.post(Assigned{})

		// model[snapshot] is what the record in it stands for.
		model, rows := map[int64]map[string]int64{}, map[string]int64{}
		deleted := map[string]int64{}
		for i := int64(1); !crashed && i < 40; i++ {
			if r.a.state.Phase != PhaseIdle {
				break
			}
			next, nextRows := cloneOf(deleted), cloneOf(rows)
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				k, ord := rapid.Int64Range(0, 4).Draw(t, "key"), rapid.Int64Range(0, 20).Draw(t, "ord")
				key := fmt.Sprint(k)
				at, dead := next[key]
				row, lives := nextRows[key]
				remove := rapid.Bool().Draw(t, "delete")
				if remove {
					r.at(k, ord, "-")
				} else {
					r.at(k, ord, "x")
				}
				if dead && ord < at || lives && ord < row {
					continue
				}
				delete(next, key)
				delete(nextRows, key)
				if remove {
					next[key] = ord
				} else {
					nextRows[key] = ord
				}
			}
			model[i+1] = next // snapshot 1 is the start
			r.flush()
			deleted, rows = next, nextRows
		}
		r.close()
		r.disk = tables.Crash(nil, rapid.SampledFrom([]float64{0, 1}).Draw(t, "luck of the table"))
		r.set.Marks = states.Crash(nil, rapid.SampledFrom([]float64{0, 1}).Draw(t, "luck of the state"))
		log.Reset()
		r.open(nil)
		r.begin()
		want := model[r.a.state.Known.ID]
		require.Len(t, r.remembered(), len(want), "snapshot %d", r.a.state.Known.ID)
		for k, ord := range want {
			require.True(t, r.holdsBack(k, ord), "key %s at %d", k, ord)
		}
		require.NotContains(t, log.String(), "forgotten")
	})
}

func cloneOf(m map[string]int64) map[string]int64 {
	c := map[string]int64{}
	for k, v := range m {
		c[k] = v
	}
	return c
}

// holdsBack reports whether a key is remembered as deleted at a place.
func (r *rig) holdsBack(k string, ord int64) bool {
	b := types.NewBatch([]types.Field{{Type: types.IntType()}, {Type: types.BigIntType()}})
	var key int64
	_, err := fmt.Sscan(k, &key)
	require.NoError(r.t, err)
	b.AppendDatums([]types.Datum{types.IntDatum(key), types.IntDatum(ord)})
	var keys types.Keys
	r.a.view.enc.Append(&keys, b.Cols[:1], 0, 1)
	order, _, ok := r.a.deletes.set.Find(appendKey(nil, &keys, 0))
	return ok && bytes.Equal(order, types.AppendOrdered(nil, b.Cols[1], 0))
}
