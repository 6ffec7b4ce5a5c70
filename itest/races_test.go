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
	name  string
	write harness.Write
	model func(m *model)
}

func theirs(id int) string { return row(id, "theirs") }

func foreigns() []foreign {
	return []foreign{
		{"INSERT of other keys", harness.InsertRows(theirs(50), theirs(51)), func(m *model) { m.insert(theirs(50), theirs(51)) }},
		{"INSERT of a key the batch inserts", harness.InsertRows(theirs(10)), func(m *model) { m.insert(theirs(10)) }},
		{"INSERT of a key the batch updates", harness.InsertRows(theirs(1)), func(m *model) { m.insert(theirs(1)) }},
		{"INSERT of a key the batch deletes", harness.InsertRows(theirs(2)), func(m *model) { m.insert(theirs(2)) }},
		{"DELETE of a row the batch updates", harness.DeleteKeys([]string{"id"}, []any{1}), func(m *model) { m.remove(`{"id":1}`) }},
		{"DELETE of a row the batch deletes", harness.DeleteKeys([]string{"id"}, []any{2}), func(m *model) { m.remove(`{"id":2}`) }},
		{"DELETE of another row of the same file", harness.DeleteKeys([]string{"id"}, []any{3}), func(m *model) { m.remove(`{"id":3}`) }},
		{"UPDATE of a row the batch updates", harness.UpdateKeys(map[string]any{"v": "theirs"}, []string{"id"}, []any{1}), func(m *model) { m.upsert(theirs(1)) }},
		{"UPDATE of every row", harness.UpdateWhere(map[string]any{"v": "theirs"}, harness.Cond{Column: "id", Op: ">", Value: 0}), func(m *model) {
			for id := 1; id <= 6; id++ {
				m.upsert(theirs(id))
			}
		}},
		{"compaction of the files", harness.CompactFull(), func(*model) {}},
		{"everything replaced", harness.OverwriteRows(nil, theirs(1), theirs(7)), func(m *model) { clear(m.rows); m.insert(theirs(1), theirs(7)) }},
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
func raceRig(t *testing.T, name, failpoint string, options map[string]string) (*rig, *harness.Process, *model) {
	t.Helper()
	topic := topicName(t.Name() + name)
	harness.SharedKafka(t).CreateTopic(t, harness.Topic{Name: topic})
	r := newRig(t, "", pipe{Topic: topic, More: "batch: { rows: 3, interval: 1s, idle_flush: 200ms }"})
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

// TestRace_ForeignCommitWhileABatchIsUnderWay has Java commit between the steps of
// our commit, at every step, and expects what row-level.md says for each change:
// theirs first, then ours.
func TestRace_ForeignCommitWhileABatchIsUnderWay(t *testing.T) {
	for _, step := range []string{"commit/plan", "commit/still", "commit/publish"} {
		t.Run(strings.TrimPrefix(step, "commit/"), func(t *testing.T) {
			for i, f := range foreigns() {
				if step != "commit/publish" && i%3 != 0 {
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
		require.Contains(t, p.Output.String(), "what=lost_race")
	}
	if step == "commit/still" {
		require.Contains(t, p.Output.String(), "what=still_moved")
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

// TestRace_ForeignWritePreparedBeforeOursAndCommittedAfterIt: Java checks files
// and vectors, not keys (row-level.md §7.2, reliability.md G2 and G4). The daemon
// runs on and must follow whatever comes of it.
func TestRace_ForeignWritePreparedBeforeOursAndCommittedAfterIt(t *testing.T) {
	java := harness.Java(t)
	r, p, m := raceRig(t, "", "", vectorOptions)
	r.waitApplied(p)
	topic := r.pipes[0].Topic
	// A file of its own that none of our batches touches.
	do(t, java, r.ref(), harness.InsertRows(theirs(100), theirs(101)))
	m.insert(theirs(100), theirs(101))
	id := 10
	for _, c := range []prepared{
		{"INSERT of other keys", harness.InsertRows(theirs(60)), 0, false, func(m *model) { m.insert(theirs(60)) }},
		{"INSERT of a key our batch inserts: a second row of it", harness.InsertRows(theirs(12)), 0, false, func(m *model) { m.insert(theirs(12)) }},
		{"DELETE of a row our batch updates", harness.DeleteKeys([]string{"id"}, []any{1}), 0, true, nil},
		{"DELETE of another row of a file our batch marks", harness.DeleteKeys([]string{"id"}, []any{4}), 5, true, nil},
		{"UPDATE of a row our batch updates", harness.UpdateKeys(map[string]any{"v": "theirs"}, []string{"id"}, []any{1}), 0, true, nil},
		{"compaction of files our batch marks", harness.CompactFull(), 0, true, nil},
		{"DELETE in a file our batch does not touch", harness.DeleteKeys([]string{"id"}, []any{100}), 0, false, func(m *model) { m.remove(`{"id":100}`) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			id++
			w, err := java.Prepare(t.Context(), r.ref(), c.write)
			require.NoError(t, err)
			batch := []*kgo.Record{put(topic, 0, row(1, c.name)), put(topic, 0, row(2, c.name)), put(topic, 0, row(id, "new"))}
			if c.touches != 0 {
				batch = append(batch, put(topic, 0, row(c.touches, c.name)))
			}
			for _, rec := range batch {
				m.apply(rec)
			}
			r.kafka.Produce(t, batch...)
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
			after := []*kgo.Record{put(topic, 0, row(1, "after")), put(topic, 0, row(id, "after")), put(topic, 0, row(12, "after"))}
			for _, rec := range after {
				m.apply(rec)
			}
			r.kafka.Produce(t, after...)
			r.waitApplied(p)
			r.holds(m)
		})
	}
	require.Len(t, m.rows[m.keyOf(map[string]string{"id": "12"})], 2)
	harness.MustStop(t, p)
	// A delete of the doubled key removes both.
	r.kafka.Produce(t, del(topic, 0, `{"id":12}`))
	m.remove(`{"id":12}`)
	p = r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	r.holds(m)
}

// TestRace_ManyForeignCommitsAndOurs lets both write as fast as they can. Java
// checks and then renames, so on a disk without a lock it can overwrite a commit of
// ours: the table must heal by itself, and nothing of Java's may be lost.
func TestRace_ManyForeignCommitsAndOurs(t *testing.T) {
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
