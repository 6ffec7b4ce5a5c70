//go:build itest

package itest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// foreign is a change that Java makes while a batch of ours is under way. The
// batch updates 1, inserts 10 and deletes 2; the table holds 1 to 6.
type foreign struct {
	fault string // of the catalogue
	name  string
	write harness.Write
	model func(m *model)
}

func theirs(id int) string { return row(id, "theirs") }

func foreigns() []foreign {
	return []foreign{
		{"G1", "INSERT of other keys", harness.InsertRows(theirs(50), theirs(51)), func(m *model) { m.insert(theirs(50), theirs(51)) }},
		{"G1", "INSERT of a key the batch inserts", harness.InsertRows(theirs(10)), func(m *model) { m.insert(theirs(10)) }},
		{"G1", "INSERT of a key the batch updates", harness.InsertRows(theirs(1)), func(m *model) { m.insert(theirs(1)) }},
		{"G1", "INSERT of a key the batch deletes", harness.InsertRows(theirs(2)), func(m *model) { m.insert(theirs(2)) }},
		{"G5", "DELETE of a row the batch updates", harness.DeleteKeys([]string{"id"}, []any{1}), func(m *model) { m.remove(`{"id":1}`) }},
		{"G5", "DELETE of a row the batch deletes", harness.DeleteKeys([]string{"id"}, []any{2}), func(m *model) { m.remove(`{"id":2}`) }},
		{"G5", "DELETE of another row of the same file", harness.DeleteKeys([]string{"id"}, []any{3}), func(m *model) { m.remove(`{"id":3}`) }},
		{"G1", "UPDATE of a row the batch updates", harness.UpdateKeys(map[string]any{"v": "theirs"}, []string{"id"}, []any{1}), func(m *model) { m.upsert(theirs(1)) }},
		{"G1", "UPDATE of every row", harness.UpdateWhere(map[string]any{"v": "theirs"}, harness.Cond{Column: "id", Op: ">", Value: 0}), func(m *model) {
			for id := 1; id <= 6; id++ {
				m.upsert(theirs(id))
			}
		}},
		{"G3", "compaction of the files", harness.CompactFull(), func(*model) {}},
		{"G5", "everything replaced", harness.OverwriteRows(nil, theirs(1), theirs(7)), func(m *model) { clear(m.rows); m.insert(theirs(1), theirs(7)) }},
	}
}

// raceRecords are the batch in flight; first fills the table before it.
func raceRecords(topic string) (first, batch []*kgo.Record) {
	for id := 1; id <= 6; id++ {
		first = append(first, put(topic, 0, row(id, "first")))
	}
	return first, []*kgo.Record{put(topic, 0, row(1, "ours")), put(topic, 0, row(10, "ours")), del(topic, 0, `{"id":2}`)}
}

// raceRig is a table of two files with rows 1 to 6, and a daemon that stops
// itself at a failpoint of every batch.
func raceRig(t *testing.T, name, failpoint string, options map[string]string, more ...string) (*rig, *harness.Process, *model) {
	t.Helper()
	topic := topicName(t.Name() + name)
	harness.SharedKafka(t).CreateTopic(t, harness.Topic{Name: topic})
	r := newRig(t, "", pipe{Topic: topic, More: strings.Join(append(more, "batch: { rows: 3, interval: 1s, idle_flush: 200ms }"), "\n")})
	r.session = "30s" // it stands still longer than a session of tests
	r.configure("")
	require.NoError(t, harness.Java(t).Create(t.Context(), r.ref(), harness.TableSpec{
		Columns: []harness.Column{{Name: "id", Type: "BIGINT"}, {Name: "v", Type: "STRING"}}, Options: options,
	}))
	m := newModel([]string{"id", "v"}, []string{"id"})
	first, _ := raceRecords(topic)
	for _, rec := range first {
		m.apply(rec)
	}
	r.kafka.Produce(t, first...)
	// The start's own commit passes: hits are counted from the first batch on.
	p := r.start(harness.Run{Tags: []string{"failpoints"}, Env: []string{"APPLIER_FAILPOINTS=" + failpoint}})
	return r, p, m
}

// The next three have Java commit between the steps of our commit, at every step,
// and expect what row-level.md says for each change: theirs first, then ours.

func TestFault_G1_RowsOfOurKeysWrittenWhileABatchIsUnderWay(t *testing.T) { raceAll(t, "G1") }

func TestFault_G3_FilesCompactedWhileABatchIsUnderWay(t *testing.T) { raceAll(t, "G3") }

func TestFault_G5_RowsRemovedWhileABatchIsUnderWay(t *testing.T) { raceAll(t, "G5") }

func raceAll(t *testing.T, fault string) {
	for _, step := range []string{"commit/plan", "commit/still", "commit/publish"} {
		t.Run(strings.TrimPrefix(step, "commit/"), func(t *testing.T) {
			for i, f := range foreigns() {
				if f.fault != fault || step != "commit/publish" && i%3 != 0 {
					continue // the last moment is the hard one
				}
				t.Run(f.name, func(t *testing.T) { raceOnce(t, step, f, vectorOptions) })
			}
		})
	}
}

func raceOnce(t *testing.T, step string, f foreign, options map[string]string) {
	java := harness.Java(t)
	// Hits of a step: publish 1 is the start's commit, then two batches fill the table.
	nth := map[string]int{"commit/plan": 4, "commit/still": 4, "commit/publish": 4}[step]
	r, p, m := raceRig(t, "", fmt.Sprintf("%s=stop@%d", step, nth), options)
	r.waitApplied(p)
	_, batch := raceRecords(r.pipes[0].Topic)
	r.kafka.Produce(t, batch...)
	stopped(t, p, 1)
	before := snapshotIDs(r.ref())
	do(t, java, r.ref(), f.write)
	f.model(m)
	r.holds(m) // while ours stands still, theirs is what readers see
	for _, rec := range batch {
		m.apply(rec)
	}
	proceed(t, p)
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.holds(m)
	r.proven()
	ids := snapshotIDs(r.ref())
	require.Len(t, ids, len(before)+2, "one of theirs and one of ours")
	if step == "commit/publish" {
		harness.MustSay(t, p, "what=lost_race")
	}
	if step == "commit/still" {
		harness.MustSay(t, p, "what=still_moved")
	}
	// Another batch on the same rows: the index followed everything.
	again := put(r.pipes[0].Topic, 0, row(1, "again"))
	m.apply(again)
	r.kafka.Produce(t, again)
	p = r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.holds(m)
}

// prepared is a change that Java prepares before our batch and commits after it.
type prepared struct {
	name     string
	write    harness.Write
	touches  int          // a row that our batch updates beside 1, 2 and a new one; 0: none
	conflict bool         // Java must give it up
	model    func(*model) // what it does when it is committed, on the state after ours
}

// TestFault_G2_AnInsertPreparedBeforeOursDoublesItsKeyAndIsReported: Java checks
// files and vectors, not keys (row-level.md §7.2), and nothing on our side can
// prevent the second row. It shows in a metric, and the next change of the key
// changes both.
func TestFault_G2_AnInsertPreparedBeforeOursDoublesItsKeyAndIsReported(t *testing.T) {
	r, p, m := preparedRig(t)
	p = r.prepared(t, p, m, []prepared{
		{"INSERT of other keys", harness.InsertRows(theirs(60)), 0, false, func(m *model) { m.insert(theirs(60)) }},
		{"INSERT of a key our batch inserts: a second row of it", harness.InsertRows(theirs(12)), 0, false, func(m *model) { m.insert(theirs(12)) }},
	})
	require.Len(t, m.rows[m.keyOf(map[string]string{"id": "12"})], 2)
	r.metricIs(1, "applier_foreign_duplicate_keys_total")
	harness.MustSay(t, p, "another writer inserted keys that the table already had")
	harness.MustStop(t, p)
	// A delete of the doubled key removes both.
	r.kafka.Produce(t, del(r.pipes[0].Topic, 0, `{"id":12}`))
	m.remove(`{"id":12}`)
	r.once()
	r.holds(m)
}

// TestFault_G4_AChangePreparedBeforeOursFailsAndOursStays: the files or vectors it
// was planned on are not those any more. One in files of its own passes.
func TestFault_G4_AChangePreparedBeforeOursFailsAndOursStays(t *testing.T) {
	r, p, m := preparedRig(t)
	p = r.prepared(t, p, m, []prepared{
		{"DELETE of a row our batch updates", harness.DeleteKeys([]string{"id"}, []any{1}), 0, true, nil},
		{"DELETE of another row of a file our batch marks", harness.DeleteKeys([]string{"id"}, []any{4}), 5, true, nil},
		{"UPDATE of a row our batch updates", harness.UpdateKeys(map[string]any{"v": "theirs"}, []string{"id"}, []any{1}), 0, true, nil},
		{"compaction of files our batch marks", harness.CompactFull(), 0, true, nil},
		{"DELETE in a file our batch does not touch", harness.DeleteKeys([]string{"id"}, []any{100}), 0, false, func(m *model) { m.remove(`{"id":100}`) }},
	})
	harness.MustStop(t, p)
	r.holds(m)
}

// preparedRig has beside the rows 1 to 6 a file of its own that no batch touches.
func preparedRig(t *testing.T) (*rig, *harness.Process, *model) {
	t.Helper()
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	do(t, harness.Java(t), r.ref(), harness.InsertRows(theirs(100), theirs(101)))
	m.insert(theirs(100), theirs(101))
	return r, p, m
}

// prepared runs the cases one after another; the daemon runs on and must follow
// whatever comes of each.
func (r *rig) prepared(t *testing.T, p *harness.Process, m *model, cases []prepared) *harness.Process {
	t.Helper()
	topic := r.pipes[0].Topic
	id := 10
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id++
			w, err := harness.Java(t).Prepare(t.Context(), r.ref(), c.write)
			require.NoError(t, err)
			batch := []*kgo.Record{put(topic, 0, row(1, c.name)), put(topic, 0, row(2, c.name)), put(topic, 0, row(id, "new"))}
			if c.touches != 0 {
				batch = append(batch, put(topic, 0, row(c.touches, c.name)))
			}
			r.feed(m, batch...)
			r.waitApplied(p)
			r.holds(m)
			_, err = w.Commit(t.Context())
			if c.conflict {
				require.True(t, harness.IsConflict(err), "%v", err)
			} else {
				require.NoError(t, err)
				c.model(m)
			}
			r.holds(m)
			// Ours again, on what is there now; of a doubled key both rows change.
			r.feed(m, put(topic, 0, row(1, "after")), put(topic, 0, row(id, "after")))
			r.waitApplied(p)
			r.holds(m)
		})
	}
	return p
}

// TestFault_G18_ManyForeignCommitsAndOurs lets both write as fast as they can. Java
// checks and then renames, so on a disk without a lock it can overwrite a commit of
// ours: the table must heal by itself, and nothing of Java's may be lost.
func TestFault_G18_ManyForeignCommitsAndOurs(t *testing.T) {
	const inserts = 40
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	topic := r.pipes[0].Topic
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < inserts && err == nil; i++ {
			_, err = java.Do(t.Context(), r.ref(), harness.InsertRows(theirs(1000+i)))
		}
		done <- err
	}()
	for round, running := 0, true; running; round++ {
		var batch []*kgo.Record
		for i := range 9 {
			batch = append(batch, put(topic, 0, row((7*round+i)%60, fmt.Sprint("round ", round))))
		}
		for _, rec := range batch {
			m.apply(rec)
		}
		r.kafka.Produce(t, batch...)
		r.waitApplied(p)
		select {
		case err := <-done:
			require.NoError(t, err)
			running = false
		default:
		}
	}
	last := put(topic, 0, row(999, "the last one")) // a look at the table after Java's last commit
	m.apply(last)
	r.kafka.Produce(t, last)
	r.waitApplied(p)
	harness.MustStop(t, p)
	for i := range inserts {
		m.insert(theirs(1000 + i))
	}
	r.holds(m)
	r.proven()
	t.Logf("%d snapshots; lost races: %d, moved before the publish: %d, overwritten: %d", len(snapshotIDs(r.ref())), strings.Count(p.Output.String(), "what=lost_race"),
		strings.Count(p.Output.String(), "what=still_moved"), strings.Count(p.Output.String(), "what=lost_snapshot"))
}
