//go:build itest

package itest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// conflicts is the matrix of reliability.md §3.6: what comes of a batch of ours and
// a change of theirs, published before ours or after it, both planned on the table
// without the other. Whether theirs was planned before ours or after it must not
// matter, so every cell is run both ways where a change is planned at all.
//
//	w  ours wins at the first try           r  ours loses the race and is planned again
//	f  ours is fenced and read again        b  what was rolled back of ours is read again
//	p  theirs fails with a conflict         d  a key is there twice, which is reported
//	a  the table is opened anew, with its new schema
//	CODE  the halt; the remedy of the manual then leads on
//
// With p ours stands and theirs changed nothing; in all other cells both did.
const conflicts = `
theirs                         published  insert  update  delete  move    empty
append                         before     r       r       r       r       r
append                         after      w       w       w       w       w
MERGE of our key               before     r       r       r       r       r
MERGE of our key               after      wd      wp      wp      wp      w
MERGE of a key of the file     before     r       r       r       r       r
MERGE of a key of the file     after      w       wp      wp      wp      w
MERGE of a key of another file before     r       r       r       r       r
MERGE of a key of another file after      w       w       w       w       w
DELETE                         before     r       r       r       r       r
DELETE                         after      w       wp      wp      wp      w
OVERWRITE of the partition     before     r       r       r       r       r
OVERWRITE of the partition     after      w       w       w       w       w
compaction of the file         before     r       r       r       r       r
compaction of the file         after      w       wp      wp      wp      w
compaction of another file     before     r       r       r       r       r
compaction of another file     after      w       w       w       w       w
expiry                         before     w       w       w       w       w
expiry                         after      w       w       w       w       w
rollback                       before     T-CHAIN T-CHAIN T-CHAIN T-CHAIN T-CHAIN
rollback                       after      wb      wb      wb      wb      wb
rollback as latest             before     f       f       f       f       f
rollback as latest             after      wb      wb      wb      wb      wb
ALTER ADD                      before     wa      wa      wa      wa      wa
ALTER ADD                      after      wa      wa      wa      wa      wa
ALTER DROP                     before     wa      wa      wa      wa      wa
ALTER DROP                     after      wa      wa      wa      wa      wa
drop of the partition          before     r       r       r       r       r
drop of the partition          after      w       w       w       w       w
`

// The table of every cell: partition a has the rows 1, 2, 3, b 11, 12, 13, c 21, 22,
// each partition in a file of its own. Rows have four columns so that one can go.
func matrixRow(id int, p, v string) string { return fmt.Sprintf(`{"id":%d,"p":%q,"v":%q}`, id, p, v) }

// ourChange is one of our batches, and the keys that theirs goes for.
type ourChange struct {
	name       string
	record     func(topic string) *kgo.Record
	key, other int // the key it changes; one of the same file that it does not
	deletes    int // the key that a DELETE of theirs takes
}

var ourChanges = []ourChange{
	{"insert", func(topic string) *kgo.Record { return put(topic, 0, matrixRow(5, "a", "ours")) }, 5, 1, 2},
	{"update", func(topic string) *kgo.Record { return put(topic, 0, matrixRow(1, "a", "ours")) }, 1, 2, 1},
	{"delete", func(topic string) *kgo.Record { return del(topic, 0, `{"id":2}`) }, 2, 1, 2},
	{"move", func(topic string) *kgo.Record { return put(topic, 0, matrixRow(3, "b", "ours")) }, 3, 1, 3},
	{"empty", func(topic string) *kgo.Record { return del(topic, 0, `{"id":99}`) }, 99, 1, 2},
}

// theirChange is a change of theirs: a write in two phases, or something that is
// done at once. Both say what becomes of the model.
type theirChange struct {
	write func(o ourChange) harness.Write
	do    func(c *cell)
	model func(m *model, o ourChange)
}

// mergeOf is what MERGE does for one key: a new version of its row, or a new row.
func mergeOf(key int) (harness.Write, func(*model)) {
	if key == 5 || key == 99 {
		return harness.InsertRows(matrixRow(key, "a", "theirs")), func(m *model) { m.insert(matrixRow(key, "a", "theirs")) }
	}
	return harness.UpdateKeys(map[string]any{"v": "theirs"}, []string{"id"}, []any{key}), func(m *model) { m.upsert(fmt.Sprintf(`{"id":%d,"v":"theirs"}`, key)) }
}

func merge(key func(o ourChange) int) theirChange {
	return theirChange{
		write: func(o ourChange) harness.Write { w, _ := mergeOf(key(o)); return w },
		model: func(m *model, o ourChange) { _, f := mergeOf(key(o)); f(m) },
	}
}

func removePartition(m *model, p string) {
	for k, rows := range m.rows {
		if rows[0]["p"] == p {
			delete(m.rows, k)
		}
	}
}

var theirChanges = map[string]theirChange{
	"append": {
		write: func(ourChange) harness.Write { return harness.InsertRows(matrixRow(31, "c", "theirs")) },
		model: func(m *model, _ ourChange) { m.insert(matrixRow(31, "c", "theirs")) },
	},
	"MERGE of our key":               merge(func(o ourChange) int { return o.key }),
	"MERGE of a key of the file":     merge(func(o ourChange) int { return o.other }),
	"MERGE of a key of another file": merge(func(ourChange) int { return 12 }),
	"DELETE": {
		write: func(o ourChange) harness.Write { return harness.DeleteKeys([]string{"id"}, []any{o.deletes}) },
		model: func(m *model, o ourChange) { m.remove(fmt.Sprintf(`{"id":%d}`, o.deletes)) },
	},
	"OVERWRITE of the partition": {
		write: func(ourChange) harness.Write {
			return harness.OverwriteRows(map[string]string{"p": "a"}, matrixRow(41, "a", "theirs"))
		},
		model: func(m *model, _ ourChange) {
			removePartition(m, `"a"`)
			m.insert(matrixRow(41, "a", "theirs"))
		},
	},
	"compaction of the file": {
		write: func(ourChange) harness.Write { return harness.CompactPartition(map[string]string{"p": "a"}) },
		model: func(*model, ourChange) {},
	},
	"compaction of another file": {
		write: func(ourChange) harness.Write { return harness.CompactPartition(map[string]string{"p": "b"}) },
		model: func(*model, ourChange) {},
	},
	"expiry": {do: func(c *cell) {
		_, err := harness.Java(c.t).Expire(c.t.Context(), c.ref(), harness.Expiry{RetainMax: 1, OlderThan: -1})
		require.NoError(c.t, err)
	}, model: func(*model, ourChange) {}},
	"rollback": {do: func(c *cell) {
		require.NoError(c.t, harness.Java(c.t).Rollback(c.t.Context(), c.ref(), last(snapshotIDs(c.ref()))-1))
	}, model: func(*model, ourChange) {}},
	"rollback as latest": {
		do:    func(c *cell) { asLatest(c.t, c.ref(), last(snapshotIDs(c.ref()))-1) },
		model: func(*model, ourChange) {},
	},
	"ALTER ADD": {do: func(c *cell) {
		require.NoError(c.t, harness.Java(c.t).Alter(c.t.Context(), c.ref(), harness.Args{"op": "add_column", "name": "more", "type": "STRING"}))
	}, model: func(m *model, _ ourChange) { m.columns = []string{"id", "p", "v", "x", "more"} }},
	"ALTER DROP": {do: func(c *cell) {
		require.NoError(c.t, harness.Java(c.t).Alter(c.t.Context(), c.ref(), harness.Args{"op": "drop_column", "name": "x"}))
	}, model: func(m *model, _ ourChange) { m.columns = []string{"id", "p", "v"} }},
	"drop of the partition": {do: func(c *cell) {
		require.NoError(c.t, harness.Java(c.t).DropPartitions(c.t.Context(), c.ref(), map[string]string{"p": "a"}))
	}, model: func(m *model, _ ourChange) { removePartition(m, `"a"`) }},
}

// cell is one run of the matrix.
type cell struct {
	*rig
	t      *testing.T
	p      *harness.Process
	m      *model
	ours   ourChange
	theirs theirChange
	before bool // theirs is published before ours
	first  bool // theirs is planned before ours
	want   string
	failed bool // theirs, with a conflict
}

// TestFault_G1_ConflictMatrix runs the matrix, or a slice of it that has every
// change of theirs in both orders and every one of ours (build tag itestfull: all).
func TestFault_G1_ConflictMatrix(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(conflicts), "\n")
	ran := 0
	for i, row := range rows[1:] {
		theirs, order := strings.TrimSpace(row[:31]), strings.Fields(row[31:])
		require.Contains(t, theirChanges, theirs)
		require.Len(t, order, 1+len(ourChanges), row)
		for j, ours := range ourChanges {
			for _, first := range []bool{true, false} {
				change := theirChanges[theirs]
				if !first && change.do != nil || !fullMatrix && (j != i%len(ourChanges) || first != (change.do != nil || i%3 == 0)) {
					continue
				}
				ran++
				t.Run(topicName(fmt.Sprintf("%s %s %s, planned first %v", theirs, order[0], ours.name, first)), func(t *testing.T) {
					t.Parallel()
					c := &cell{t: t, ours: ours, theirs: change, before: order[0] == "before", first: first, want: order[1+j]}
					c.run()
				})
			}
		}
	}
	require.GreaterOrEqual(t, ran, 2*len(theirChanges))
	t.Logf("%d cells", ran)
}

// run prepares the table, brings both changes about, and compares.
func (c *cell) run() {
	c.prepare()
	held := c.before || !c.first // our daemon is held between its plan and its publish
	var theirs *harness.Prepared
	plan := func() {
		if c.theirs.write != nil {
			var err error
			theirs, err = harness.Java(c.t).Prepare(c.t.Context(), c.ref(), c.theirs.write(c.ours))
			require.NoError(c.t, err)
		}
	}
	if c.first {
		plan()
	}
	record := c.ours.record(c.pipes[0].Topic)
	c.kafka.Produce(c.t, record)
	if held {
		stopped(c.t, c.p, 1)
	}
	if !c.first {
		plan()
	}
	if c.before {
		c.publish(theirs)
		c.m.apply(record)
		proceed(c.t, c.p)
	} else {
		c.m.apply(record)
		if held {
			proceed(c.t, c.p)
		}
		c.waitApplied(c.p)
		c.publish(theirs)
	}
	halt := c.settle()
	c.again()
	require.Equal(c.t, c.want, c.outcome()+halt, c.p.Output.Tail(30))
	c.equals(c.m)
}

// prepare makes the table and starts the daemon that will be held.
func (c *cell) prepare() {
	topic := newTopic(c.t, 1)
	c.rig = newRig(c.t, "", pipe{Topic: topic, More: "create: { partition_by: [p], types: { id: BIGINT, p: STRING, v: STRING, x: INT } }\nbatch: { rows: 100, interval: 10s, idle_flush: 150ms }"})
	c.session = "30s"
	c.configure("")
	c.m = newModel([]string{"id", "p", "v", "x"}, []string{"id"})
	var recs []*kgo.Record
	for _, id := range []int{1, 2, 3, 11, 12, 13, 21, 22} {
		recs = append(recs, put(topic, 0, matrixRow(id, string(rune('a'+id/10)), "first")))
	}
	c.feed(c.m, recs...)
	failpoints := "commit/publish=stop@3" // after the start's commit and that of these rows
	if !c.before && c.first {
		failpoints = ""
	}
	c.p = c.start(harness.Run{Tags: []string{"failpoints"}, Env: []string{"APPLIER_FAILPOINTS=" + failpoints}})
	c.waitApplied(c.p)
	require.Len(c.t, snapshotIDs(c.ref()), 2, "all rows in one batch")
}

// publish brings theirs about, and the model if it was not in vain.
func (c *cell) publish(w *harness.Prepared) {
	c.t.Helper()
	if w == nil {
		c.theirs.do(c)
	} else if _, err := w.Commit(c.t.Context()); err != nil {
		require.True(c.t, harness.IsConflict(err), "%v", err)
		c.failed = true
		return
	}
	c.theirs.model(c.m, c.ours)
}

// settle waits for what the cell expects beyond a commit, and applies the remedy
// of a halt.
func (c *cell) settle() (halt string) {
	switch {
	case strings.HasSuffix(c.want, "b"):
		c.lookNow()
		c.said(c.p, "what=moved_back")
	case strings.HasSuffix(c.want, "a"):
		c.lookNow()
		c.said(c.p, "opened anew")
	case strings.Contains(c.want, "T-CHAIN"):
		c.waitHalt(c.p, "T-CHAIN")
		require.NoError(c.t, os.Remove(snapshotFile(c.ref(), last(snapshotIDs(c.ref())))))
		c.resumed(c.p)
		halt = "T-CHAIN"
	}
	c.waitApplied(c.p)
	return halt
}

// again changes rows of every file once more: the index must have followed.
func (c *cell) again() {
	topic := c.pipes[0].Topic
	c.feed(c.m, put(topic, 0, `{"id":1,"v":"again"}`), put(topic, 0, `{"id":5,"v":"again"}`), put(topic, 0, `{"id":12,"p":"c","v":"again"}`), del(topic, 0, `{"id":22}`))
	c.waitApplied(c.p)
	harness.MustStop(c.t, c.p)
}

// outcome says what the log tells.
func (c *cell) outcome() string {
	log := c.p.Output.String()
	out := ""
	switch {
	case strings.Contains(c.want, "T-CHAIN"): // neither won nor lost
	case strings.Contains(log, "what=lost_race") && strings.Contains(log, "what=fenced"):
		out = "f"
	case strings.Contains(log, "what=lost_race"):
		out = "r"
	case strings.Contains(log, "what=fenced"):
		out = "fenced without a race"
	default:
		out = "w"
	}
	for text, letter := range map[string]string{"what=moved_back": "b", "another writer inserted keys": "d", "opened anew": "a"} {
		if strings.Contains(log, text) {
			out += letter
		}
	}
	if c.failed {
		out += "p"
	}
	return out
}
