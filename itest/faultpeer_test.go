//go:build itest

package itest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// The tests of this file are the faults G of the catalogue, other engines and
// operators at work on the table, but for damage (faultdamage_test.go) and the
// matrix of conflicts (faultpeer_matrix_test.go). Paimon's Java library is the other engine.

// lookNow makes an idle daemon look at its table at once.
func (r *rig) lookNow() {
	r.t.Helper()
	r.must("resume", r.pipes[0].Name)
}

// resumed ends a halt, which must go: a command returns before it is carried out.
func (r *rig) resumed(p *harness.Process) {
	r.t.Helper()
	all, _ := r.status()
	r.must("resume", r.pipes[0].Name)
	r.over(p, all[r.pipes[0].Name].code())
}

// over waits until a halt is over.
func (r *rig) over(p *harness.Process, code string) {
	r.t.Helper()
	r.waitStatus(p, r.pipes[0].Name, "the end of "+code, func(s pipelineStatus) bool { return s.State != "" && s.code() != code })
}

// end stops a daemon whose pipeline may be halted.
func (r *rig) end(p *harness.Process) {
	r.t.Helper()
	code, err := p.Stop(patience)
	require.NoError(r.t, err)
	require.Contains(r.t, []int{0, 3}, code, p.Output.Tail(20))
}

// said waits for a text in the daemon's log.
func (r *rig) said(p *harness.Process, text string) {
	r.t.Helper()
	harness.Until(r.t, patience, "the log to say "+text, func() (bool, error) {
		return strings.Contains(p.Output.String(), text), nil
	})
}

// setOffsets states where the pipeline stands, the answer to a lost record.
func (r *rig) setOffsets(next int64) {
	r.t.Helper()
	r.must("offsets", "set", r.pipes[0].Name, "--to", fmt.Sprintf("%s/0=%d", r.pipes[0].Topic, next))
}

// TestFault_G6_WithoutThePinTheRecordIsCarriedForward: before foreign commits make
// it old enough for an expiry, an idle daemon commits it again.
func TestFault_G6_WithoutThePinTheRecordIsCarriedForward(t *testing.T) {
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions, "pin: false")
	r.waitApplied(p)
	for i := range 6 {
		do(t, java, r.ref(), harness.InsertRows(theirs(100+i)))
		m.insert(theirs(100 + i))
	}
	r.lookNow()
	r.said(p, `msg="empty commit" pipeline=p table=db.t why=carry`)
	_, err := java.Expire(t.Context(), r.ref(), harness.Expiry{RetainMax: 1, OlderThan: -1})
	require.NoError(t, err)
	require.Len(t, snapshotIDs(r.ref()), 1)
	r.feed(m, put(r.pipes[0].Topic, 0, row(1, "after")))
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.equals(m)
}

// TestFault_G6_ALostRecordHaltsAndNothingIsReplayed: without the pin, while the
// daemon is stopped.
func TestFault_G6_ALostRecordHaltsAndNothingIsReplayed(t *testing.T) {
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions, "pin: false")
	r.waitApplied(p)
	harness.MustStop(t, p)
	do(t, java, r.ref(), harness.UpdateWhere(map[string]any{"v": "theirs"}, harness.Cond{Column: "id", Op: "=", Value: 3}))
	m.upsert(theirs(3))
	_, err := java.Expire(t.Context(), r.ref(), harness.Expiry{RetainMax: 1, OlderThan: -1})
	require.NoError(t, err)
	r.feed(m, put(r.pipes[0].Topic, 0, row(1, "after")))
	p = r.start()
	s := r.waitHalt(p, "T-OFFSET-LOST")
	require.Contains(t, s.Halt.Remedy, "applier offsets set")
	require.Len(t, snapshotIDs(r.ref()), 1)
	r.setOffsets(6)
	r.over(p, "T-OFFSET-LOST")
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.equals(m) // a replay from 0 would have put "first" over "theirs"
}

// TestFault_G7_ExpiryWhileTheIndexIsBuilt: the daemon has looked at the table and
// not read it yet when its snapshots, and their files, are compacted and expired.
func TestFault_G7_ExpiryWhileTheIndexIsBuilt(t *testing.T) {
	for _, pin := range []bool{true, false} {
		t.Run(fmt.Sprint("pin ", pin), func(t *testing.T) {
			java := harness.Java(t)
			r, p, m := raceRig(t, "", "", vectorOptions, fmt.Sprint("pin: ", pin))
			r.waitApplied(p)
			harness.MustStop(t, p)
			r.feed(m, put(r.pipes[0].Topic, 0, row(1, "after")))
			p = r.start(harness.Run{Tags: []string{"failpoints"}, Env: []string{"APPLIER_FAILPOINTS=commit/resume=stop@1"}})
			stopped(t, p, 1)
			do(t, java, r.ref(), harness.UpdateWhere(map[string]any{"v": "theirs"}, harness.Cond{Column: "id", Op: "=", Value: 3}))
			m.upsert(theirs(3))
			do(t, java, r.ref(), harness.CompactFull())
			_, err := java.Expire(t.Context(), r.ref(), harness.Expiry{RetainMax: 1, OlderThan: -1})
			require.NoError(t, err)
			_, err = java.Orphans(t.Context(), r.ref(), true)
			require.NoError(t, err)
			proceed(t, p)
			if !pin { // what was being read is gone, and the record with it
				r.waitHalt(p, "T-OFFSET-LOST")
				r.setOffsets(6)
				r.over(p, "T-OFFSET-LOST")
			}
			r.waitApplied(p)
			harness.MustStop(t, p)
			r.equals(m)
		})
	}
}

// TestFault_G8_ARollbackUnderAnIdleDaemonIsFollowed: what was rolled back of ours is
// applied again, what was of theirs stays away. The numbers of snapshots are used a second
// time by it (N18 of row-level.md).
func TestFault_G8_ARollbackUnderAnIdleDaemonIsFollowed(t *testing.T) {
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	to := last(snapshotIDs(r.ref())) - 1 // the rows 4 to 6 are not there yet
	do(t, java, r.ref(), harness.InsertRows(theirs(50)))
	require.NoError(t, java.Rollback(t.Context(), r.ref(), to))
	r.lookNow()
	r.said(p, "what=moved_back")
	r.waitApplied(p)
	r.equals(m)
	r.feed(m, put(r.pipes[0].Topic, 0, row(5, "after")), del(r.pipes[0].Topic, 0, `{"id":1}`))
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.equals(m)
}

func last(ids []int64) int64 { return ids[len(ids)-1] }

// TestFault_G9_ARollbackInFlightHaltsInsteadOfUndoingIt: our commit lands above the
// hole that the rollback has made. Readers never see it; the remedy of the manual
// leads to the rolled-back table with our records applied again.
func TestFault_G9_ARollbackInFlightHaltsInsteadOfUndoingIt(t *testing.T) {
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "commit/publish=stop@4", vectorOptions)
	r.waitApplied(p)
	r.feed(m, put(r.pipes[0].Topic, 0, row(1, "ours")))
	stopped(t, p, 1)
	base := last(snapshotIDs(r.ref()))
	require.NoError(t, java.Rollback(t.Context(), r.ref(), base-1))
	proceed(t, p)
	s := r.waitHalt(p, "T-CHAIN")
	require.Contains(t, s.Halt.Message, fmt.Sprintf("snapshot %d was published on snapshot %d", base+1, base))
	harness.SameRows(t.Context(), t, rowsOf("first", 1, 2, 3), r.ref(), harness.Query{}, harness.Java(t)) // the operator's rollback stands
	r.must("resume", "p")
	s = r.waitHalt(p, "T-HOLE")
	require.Contains(t, s.Halt.Remedy, "above the hole")
	require.NoError(t, os.Remove(snapshotFile(r.ref(), base+1)))
	r.resumed(p)
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.equals(m)
}

func snapshotFile(ref harness.Ref, id int64) string {
	return filepath.Join(tableDir(ref), "snapshot", fmt.Sprintf("snapshot-%d", id))
}

// TestFault_G10_ARollbackAsALatestSnapshot: to a snapshot with our record the record
// comes along, and what follows it is applied again; to one without, only a person
// knows the positions that belong to it.
func TestFault_G10_ARollbackAsALatestSnapshot(t *testing.T) {
	java := harness.Java(t)
	t.Run("to a snapshot with our record", func(t *testing.T) {
		r, p, m := raceRig(t, "", "", vectorOptions)
		r.waitApplied(p)
		asLatest(t, r.ref(), last(snapshotIDs(r.ref()))-1)
		r.lookNow()
		r.said(p, "what=moved_back")
		r.waitApplied(p)
		harness.MustStop(t, p)
		r.equals(m)
	})
	t.Run("compacted manifests", func(t *testing.T) { // another copy of the record
		r, p, m := raceRig(t, "", "", vectorOptions)
		r.waitApplied(p)
		before := last(snapshotIDs(r.ref()))
		require.NoError(t, java.CompactManifests(t.Context(), r.ref()))
		rec, err := recordIn(r.ref(), before+1, r.pipes[0].ID)
		require.NoError(t, err)
		require.NotNil(t, rec, "Java copies it")
		r.lookNow()
		r.feed(m, put(r.pipes[0].Topic, 0, row(1, "after")))
		r.waitApplied(p)
		harness.MustStop(t, p)
		r.feed(m, put(r.pipes[0].Topic, 0, row(2, "after")))
		r.once()
		r.equals(m)
	})
	t.Run("to a foreign snapshot", func(t *testing.T) {
		r, p, m := raceRig(t, "", "", vectorOptions)
		r.waitApplied(p)
		do(t, java, r.ref(), harness.DeleteKeys([]string{"id"}, []any{2}))
		m.remove(`{"id":2}`)
		to := last(snapshotIDs(r.ref()))
		r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(1, "undone")), put(r.pipes[0].Topic, 0, row(4, "undone")))
		r.waitApplied(p)
		asLatest(t, r.ref(), to)
		r.equals(m)
		r.lookNow()
		s := r.waitHalt(p, "T-ROLLBACK")
		require.Contains(t, s.Halt.Message, fmt.Sprintf("of snapshot %d back", to))
		r.equals(m) // nothing is written
		r.setOffsets(8)
		r.over(p, "T-ROLLBACK")
		r.feed(m, put(r.pipes[0].Topic, 0, row(5, "after")))
		r.waitApplied(p)
		harness.MustStop(t, p)
		r.equals(m)
	})
}

// TestFault_G11_ColumnsAlteredWhileABatchIsUnderWay: the batch goes in under the
// schema it was planned with, or is read again; the daemon follows the new one.
func TestFault_G11_ColumnsAlteredWhileABatchIsUnderWay(t *testing.T) {
	for name, alter := range map[string]harness.Args{
		"add":         {"op": "add_column", "name": "more", "type": "STRING"},
		"drop":        {"op": "drop_column", "name": "w"},
		"rename":      {"op": "rename_column", "name": "w", "to": "x"},
		"wider":       {"op": "update_type", "name": "w", "type": "BIGINT"},
		"a comment":   {"op": "update_comment", "name": "w", "comment": "c"},
		"at the plan": {"op": "add_column", "name": "more", "type": "STRING"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := "commit/publish=stop@1"
			if name == "at the plan" {
				step = "commit/plan=stop@1"
			}
			topic := newTopic(t, 1)
			r := newRig(t, "", pipe{Topic: topic, More: "create: { types: { id: BIGINT, v: STRING, w: INT } }"})
			r.session = "30s"
			r.configure("")
			r.kafka.Produce(t, put(topic, 0, `{"id":1,"v":"a","w":1}`), put(topic, 0, `{"id":2,"v":"a"}`))
			r.once()
			p := r.start(harness.Run{Tags: []string{"failpoints"}, Env: []string{"APPLIER_FAILPOINTS=" + step}})
			r.kafka.Produce(t, put(topic, 0, `{"id":1,"v":"b"}`), put(topic, 0, `{"id":3,"v":"b"}`))
			stopped(t, p, 1)
			require.NoError(t, harness.Java(t).Alter(t.Context(), r.ref(), alter))
			proceed(t, p)
			r.said(p, "opened anew")
			r.kafka.Produce(t, put(topic, 0, `{"id":2,"v":"c"}`))
			r.waitApplied(p)
			harness.MustStop(t, p)
			columns := []string{"id", "v", "w"}
			m := newModel(columns, []string{"id"})
			m.upsert(`{"id":1,"v":"b","w":1}`, `{"id":2,"v":"c"}`, `{"id":3,"v":"b"}`)
			switch alter["op"] {
			case "add_column":
				m.columns = append(columns, "more")
			case "drop_column":
				m.columns = columns[:2]
			case "rename_column":
				m.columns = []string{"id", "v", "x"}
				for _, rows := range m.rows {
					rows[0]["x"] = rows[0]["w"]
					if rows[0]["x"] == "" {
						delete(rows[0], "x")
					}
				}
			}
			r.equals(m)
		})
	}
}

// TestFault_G12_AFormatThatWeDoNotWriteHalts, without a restart and with one; the
// option taken back, it goes on.
func TestFault_G12_AFormatThatWeDoNotWriteHalts(t *testing.T) {
	const option = "file.format"
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	require.NoError(t, java.Alter(t.Context(), r.ref(), harness.Args{"op": "set_option", "key": option, "value": "orc"}))
	r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(1, "after")))
	s := r.waitHalt(p, "T-OPTIONS")
	require.Contains(t, s.Halt.Message, option)
	r.end(p)
	p = r.start()
	r.waitStatus(p, "p", "the error", func(s pipelineStatus) bool { return strings.Contains(s.LastError, option) })
	r.end(p)
	harness.SameRows(t.Context(), t, m.texts(), r.ref(), harness.Query{}, java)
	require.NoError(t, java.Alter(t.Context(), r.ref(), harness.Args{"op": "set_option", "key": option, "value": "parquet"}))
	m.upsert(row(1, "after"))
	r.once()
	r.equals(m)
}

// TestFault_G12_VectorsThatAreSwitchedOff: without any, files are rewritten from then
// on; a table that has some is not written before they are on again.
func TestFault_G12_VectorsThatAreSwitchedOff(t *testing.T) {
	for _, some := range []bool{false, true} {
		t.Run(fmt.Sprint("vectors=", some), func(t *testing.T) {
			java := harness.Java(t)
			r, p, m := raceRig(t, fmt.Sprint(some), "", vectorOptions)
			change := func(v string) {
				r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(1, v)))
				m.upsert(row(1, v))
			}
			if some {
				change("before")
			}
			r.waitApplied(p)
			alter := func(key, value string) {
				require.NoError(t, java.Alter(t.Context(), r.ref(), harness.Args{"op": "set_option", "key": key, "value": value}))
			}
			alter("deletion-vectors.modifiable", "true") // Java asks for more than a slip of the hand
			alter("deletion-vectors.enabled", "false")
			untouched := m.texts()
			change("after")
			if some {
				s := r.waitHalt(p, "T-OPTIONS")
				require.Contains(t, s.Halt.Message, "deletion-vectors.enabled was set to false when snapshot")
				r.end(p)
				p = r.start()
				r.waitStatus(p, "p", "the error", func(s pipelineStatus) bool {
					return strings.Contains(s.LastError, "deletion-vectors.enabled was set to false when snapshot")
				})
				r.end(p)
				alter("deletion-vectors.enabled", "true") // before that, deleted rows are back for everybody
				harness.SameRows(t.Context(), t, untouched, r.ref(), harness.Query{}, java)
				r.once()
			} else {
				r.said(p, "opened anew")
				r.waitApplied(p)
				harness.MustStop(t, p)
			}
			r.equals(m)
		})
	}
}

// TestFault_G13_ADroppedTableStaysDropped, wherever a commit was when it went.
func TestFault_G13_ADroppedTableStaysDropped(t *testing.T) {
	for _, step := range []string{"", "commit/plan=stop@4", "commit/still=stop@4", "commit/publish=stop@4", "objstore/publish/staged=stop@8"} {
		t.Run(topicName(step), func(t *testing.T) {
			java := harness.Java(t)
			r, p, _ := raceRig(t, "", step, vectorOptions)
			r.waitApplied(p)
			if step != "" {
				r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(1, "never")))
				stopped(t, p, 1)
			}
			require.NoError(t, java.Drop(t.Context(), r.ref()))
			require.NoDirExists(t, tableDir(r.ref()))
			if step == "" {
				r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(1, "never")))
			} else {
				proceed(t, p)
			}
			s := r.waitHalt(p, "T-GONE")
			require.Contains(t, s.Halt.Message, "db.t")
			require.NoDirExists(t, tableDir(r.ref()), "nothing is created in its place")
			r.end(p)
			require.NoDirExists(t, tableDir(r.ref()))
		})
	}
}

// TestFault_G14_AnotherTableOfTheNameIsNotWrittenTo.
func TestFault_G14_AnotherTableOfTheNameIsNotWrittenTo(t *testing.T) {
	for _, step := range []string{"", "commit/plan=stop@4", "commit/still=stop@4", "commit/publish=stop@4", "objstore/publish/staged=stop@8", "stopped"} {
		t.Run(topicName(step), func(t *testing.T) {
			java := harness.Java(t)
			failpoint := step
			if step == "stopped" {
				failpoint = ""
			}
			r, p, _ := raceRig(t, "", failpoint, vectorOptions)
			r.waitApplied(p)
			switch step {
			case "":
			case "stopped":
				harness.MustStop(t, p)
			default:
				r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(1, "never")))
				stopped(t, p, 1)
			}
			require.NoError(t, java.Drop(t.Context(), r.ref()))
			require.NoError(t, java.Create(t.Context(), r.ref(), harness.TableSpec{
				Columns: []harness.Column{{Name: "id", Type: "BIGINT"}, {Name: "v", Type: "STRING"}}, Options: vectorOptions,
			}))
			do(t, java, r.ref(), harness.InsertRows(theirs(1)))
			switch step {
			case "":
				r.kafka.Produce(t, put(r.pipes[0].Topic, 0, row(1, "never")))
			case "stopped":
				p = r.start()
			default:
				proceed(t, p)
			}
			r.waitHalt(p, "T-REPLACED")
			r.end(p)
			harness.SameRows(t.Context(), t, []string{theirs(1)}, r.ref(), harness.Query{}, cat(t), java)
			require.Equal(t, []int64{1}, snapshotIDs(r.ref()))
			// The operator means the new table.
			r.setOffsets(6)
			m := newModel([]string{"id", "v"}, []string{"id"})
			m.insert(theirs(1))
			r.feed(m, put(r.pipes[0].Topic, 0, row(2, "new")))
			if step != "stopped" {
				m.upsert(row(1, "never")) // was behind the positions that were stated
			}
			r.once()
			r.equals(m)
		})
	}
}

// TestFault_G15_ARenamedTableIsGoneUntilItIsBack.
func TestFault_G15_ARenamedTableIsGoneUntilItIsBack(t *testing.T) {
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	require.NoError(t, java.Rename(t.Context(), r.ref(), "db.other"))
	r.feed(m, put(r.pipes[0].Topic, 0, row(1, "after")))
	r.waitHalt(p, "T-GONE")
	require.NoDirExists(t, tableDir(r.ref()))
	require.NoError(t, java.Rename(t.Context(), harness.Ref{Warehouse: r.Warehouse, Table: "db.other"}, "db.t"))
	r.resumed(p)
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.equals(m)
}

// TestFault_G18_ASnapshotThatIsOverwrittenIsAppliedAgain does by hand what Java's
// check-then-rename does in a race: after our publish somebody else's snapshot
// stands under its name, noticed at once or at the next look.
func TestFault_G18_ASnapshotThatIsOverwrittenIsAppliedAgain(t *testing.T) {
	for _, step := range []string{"commit/after=stop@4", ""} {
		t.Run(topicName(step), func(t *testing.T) {
			java := harness.Java(t)
			r, p, m := raceRig(t, "", step, vectorOptions)
			r.waitApplied(p)
			r.feed(m, put(r.pipes[0].Topic, 0, row(1, "ours")), del(r.pipes[0].Topic, 0, `{"id":2}`))
			if step != "" {
				stopped(t, p, 1)
			} else {
				r.waitApplied(p)
			}
			ours := last(snapshotIDs(r.ref()))
			require.NoError(t, os.Remove(snapshotFile(r.ref(), ours)))
			require.NoError(t, os.WriteFile(filepath.Join(tableDir(r.ref()), "snapshot", "LATEST"), []byte(fmt.Sprint(ours-1)), 0o644))
			require.Equal(t, []int64{ours}, do(t, java, r.ref(), harness.InsertRows(theirs(50))).Snapshots)
			m.insert(theirs(50))
			if step != "" {
				proceed(t, p)
			} else {
				r.lookNow()
			}
			r.said(p, "what=lost_snapshot")
			r.waitApplied(p)
			require.GreaterOrEqual(t, r.metric("applier_commits_total", `result="diverged"`), 1.0)
			harness.MustStop(t, p)
			r.equals(m)
		})
	}
}

// TestFault_G19_APartitionThatExpiresWhileItIsWrittenTo: its rows are gone by
// intent; what our batch brings later stays.
func TestFault_G19_APartitionThatExpiresWhileItIsWrittenTo(t *testing.T) {
	for _, how := range []string{"expiry", "drop"} {
		t.Run(how, func(t *testing.T) {
			java := harness.Java(t)
			topic := newTopic(t, 1)
			r := newRig(t, "", pipe{Topic: topic, More: "create: { partition_by: [p], types: { id: BIGINT, p: STRING, v: STRING } }\nbatch: { rows: 100, interval: 10s, idle_flush: 200ms }"})
			r.session = "30s"
			r.configure("")
			m := newModel([]string{"id", "p", "v"}, []string{"id"})
			at := func(id int, p, v string) string { return fmt.Sprintf(`{"id":%d,"p":%q,"v":%q}`, id, p, v) }
			const old, young = "2001-01-01", "2099-01-01"
			r.feed(m, put(topic, 0, at(1, old, "a")), put(topic, 0, at(2, old, "a")), put(topic, 0, at(3, young, "a")), put(topic, 0, at(4, old, "a")), put(topic, 0, at(5, young, "a")))
			r.once()
			p := r.start(harness.Run{Tags: []string{"failpoints"}, Env: []string{"APPLIER_FAILPOINTS=commit/publish=stop@1"}})
			batch := []string{at(1, old, "b"), at(4, young, "moved"), at(5, old, "moved"), at(6, old, "new")}
			for _, text := range batch {
				r.kafka.Produce(t, put(topic, 0, text))
			}
			stopped(t, p, 1)
			if how == "expiry" {
				gone, err := java.ExpirePartitions(t.Context(), r.ref(), map[string]string{"partition.expiration-time": "1 d", "partition.timestamp-formatter": "yyyy-MM-dd", "partition.expiration-check-interval": "0 s"})
				require.NoError(t, err)
				require.Equal(t, []map[string]string{{"p": old}}, gone)
			} else {
				require.NoError(t, java.DropPartitions(t.Context(), r.ref(), map[string]string{"p": old}))
			}
			m.remove(`{"id":1}`, `{"id":2}`, `{"id":4}`)
			r.equals(m)
			m.upsert(batch...)
			proceed(t, p)
			r.waitApplied(p)
			harness.MustSay(t, p, "what=lost_race")
			harness.MustStop(t, p)
			r.equals(m)
		})
	}
}

// TestFault_G20_ABranchThatReplacesMainIsLikeARollback.
func TestFault_G20_ABranchThatReplacesMainIsLikeARollback(t *testing.T) {
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	require.NoError(t, java.CreateTag(t.Context(), r.ref(), "then", last(snapshotIDs(r.ref()))-1, 0))
	require.NoError(t, java.Branch(t.Context(), r.ref(), "b", "then"))
	branch := harness.Ref{Warehouse: r.Warehouse, Table: "db.t$branch_b"}
	do(t, java, branch, harness.InsertRows(theirs(70)))
	do(t, java, r.ref(), harness.InsertRows(theirs(50))) // goes with main
	require.NoError(t, java.FastForward(t.Context(), r.ref(), "b"))
	m.insert(theirs(70))
	r.lookNow()
	r.waitApplied(p)
	r.equals(m)
	r.feed(m, put(r.pipes[0].Topic, 0, row(5, "after")))
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.equals(m)
}

// TestFault_G27_TheMarksAreWrittenAgain: somebody removes the consumer, and the
// state folder is lost.
func TestFault_G27_TheMarksAreWrittenAgain(t *testing.T) {
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	consumer := "applier-" + r.pipes[0].ID
	require.NoError(t, java.ResetConsumer(t.Context(), r.ref(), consumer, 0))
	r.lookNow()
	harness.Until(t, patience, "the consumer", func() (bool, error) {
		all, err := java.Consumers(t.Context(), r.ref())
		return all[consumer] > 0, err
	})
	harness.MustStop(t, p)
	require.NoError(t, java.ResetConsumer(t.Context(), r.ref(), consumer, 0))
	require.NoError(t, os.RemoveAll(r.State))
	r.feed(m, put(r.pipes[0].Topic, 0, row(1, "after")))
	r.once()
	all, err := java.Consumers(t.Context(), r.ref())
	require.NoError(t, err)
	require.Equal(t, last(snapshotIDs(r.ref())), all[consumer])
	markers, err := filepath.Glob(filepath.Join(r.State, "*", "*.marker"))
	require.NoError(t, err)
	more, err := filepath.Glob(filepath.Join(r.State, "*.marker"))
	require.NoError(t, err)
	require.Len(t, append(markers, more...), 1)
	r.equals(m)
}

// TestFault_G28_SixtyWritersAtOnce: everybody's rows are there in the end, and ours
// need no second start.
func TestFault_G28_SixtyWritersAtOnce(t *testing.T) {
	const writers = 60
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	errs := make(chan error, writers)
	for i := range writers {
		go func() {
			_, err := java.Do(t.Context(), r.ref(), harness.InsertRows(theirs(1000+i)))
			errs <- err
		}()
	}
	for i := range 5 {
		r.feed(m, put(r.pipes[0].Topic, 0, row(i, "ours")))
		r.waitApplied(p)
	}
	for range writers {
		require.NoError(t, <-errs)
	}
	r.feed(m, put(r.pipes[0].Topic, 0, row(999, "the last one")))
	r.waitApplied(p)
	r.metricIs(0, "applier_commits_starved_total")
	harness.MustStop(t, p)
	for i := range writers {
		m.insert(theirs(1000 + i))
	}
	r.equals(m)
}
