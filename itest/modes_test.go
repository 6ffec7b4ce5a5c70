//go:build itest

package itest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"applier/itest/harness"
)

// tableMode is a kind of table that the daemon must do the same to.
type tableMode struct {
	name    string
	options map[string]string
	// blind are judges that cannot read such tables, by name.
	blind []string
	// partitioned says that rows move between partitions.
	partitioned bool
}

func tableModes() []tableMode {
	return []tableMode{
		{name: "vectors", options: map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}, partitioned: true},
		{name: "wide vectors", options: map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"}, blind: []string{"pypaimon"}},
		{name: "copy on write", options: map[string]string{"bucket": "-1"}},
		{name: "copy on write, partitioned", options: map[string]string{"bucket": "-1"}, partitioned: true},
		{
			name: "row tracking, vectors", options: map[string]string{"bucket": "-1", "row-tracking.enabled": "true", "deletion-vectors.enabled": "true"},
			blind: []string{"paimon-rust"}, partitioned: true,
		},
		{name: "buckets, vectors", options: map[string]string{"bucket": "3", "bucket-key": "id", "deletion-vectors.enabled": "true"}},
		{
			name: "buckets, copy on write", options: map[string]string{"bucket": "3", "bucket-key": "v,id", "write-only": "true"}, partitioned: true,
		},
		{name: "row tracking, copy on write", options: map[string]string{"bucket": "-1", "row-tracking.enabled": "true"}, blind: []string{"paimon-rust"}},
	}
}

func (m tableMode) tracked() bool { return m.options["row-tracking.enabled"] == "true" }

// judges are all readers that can read the mode's tables.
func (m tableMode) judges(t *testing.T) []harness.Judge {
	var out []harness.Judge
next:
	for _, j := range []harness.Judge{cat(t), harness.Java(t), harness.PyPaimon(t), harness.Rust(t), harness.Flink(t)} {
		for _, name := range m.blind {
			if j.Name() == name {
				continue next
			}
		}
		out = append(out, j)
	}
	return out
}

// TestModes_WeAndJavaChangeOneTable: in every kind of table our batches and
// Java's statements take turns; five readers see the model's rows after each.
func TestModes_WeAndJavaChangeOneTable(t *testing.T) {
	for i, m := range tableModes() {
		t.Run(m.name, func(t *testing.T) { changeInTurns(t, m, uint64(i)) })
	}
}

func changeInTurns(t *testing.T, mode tableMode, seed uint64) {
	const keys = 40
	java, topic := harness.Java(t), newTopic(t, 1)
	r := newRig(t, "", pipe{Topic: topic})
	r.judges = mode.judges(t)
	spec := harness.TableSpec{
		Columns: []harness.Column{{Name: "id", Type: "BIGINT"}, {Name: "p", Type: "STRING"}, {Name: "v", Type: "STRING"}}, Options: mode.options,
	}
	if mode.partitioned {
		spec.PartitionKeys = []string{"p"}
	}
	require.NoError(t, java.Create(t.Context(), r.ref(), spec))
	m, rnd := newModel([]string{"id", "p", "v"}, []string{"id"}), rand.New(rand.NewPCG(seed, 1))
	p := r.start()
	commits := 0
	ids := newIDs()
	ours := func() {
		for range 2 {
			seen := map[int]bool{}
			var batch []*kgo.Record
			for range 12 {
				id := rnd.IntN(keys)
				if seen[id] {
					continue
				}
				seen[id] = true
				if rnd.IntN(4) == 0 {
					batch = append(batch, del(topic, 0, fmt.Sprintf(`{"id":%d}`, id)))
				} else {
					batch = append(batch, put(topic, 0, modeRow(id, rnd.IntN(3), commits)))
				}
			}
			for _, rec := range batch {
				m.apply(rec)
			}
			r.kafka.Produce(t, batch...)
			r.waitApplied(p)
			r.holds(m)
			if mode.tracked() {
				ids.ours(t, r, seen)
			}
			commits++
		}
	}
	foreign := func(w harness.Write, change func()) {
		do(t, java, r.ref(), w)
		change()
		r.holds(m)
		if mode.tracked() {
			ids.theirs(t, r)
		}
		ours()
	}
	ours()
	foreign(harness.InsertRows(modeRow(100, 0, 0), modeRow(101, 1, 0)), func() { m.insert(modeRow(100, 0, 0), modeRow(101, 1, 0)) })
	foreign(harness.DeleteWhere(harness.Cond{Column: "id", Op: "<", Value: 10}), func() {
		for id := range 10 {
			m.remove(fmt.Sprintf(`{"id":%d}`, id))
		}
	})
	foreign(harness.UpdateWhere(map[string]any{"v": "java"}, harness.Cond{Column: "id", Op: ">", Value: 20}), func() {
		for _, text := range m.texts() {
			row := parseRow(text)
			var id int
			_, err := fmt.Sscan(row["id"], &id)
			require.NoError(t, err)
			if id > 20 {
				row["v"] = `"java"`
				m.upsert(fmt.Sprintf(`{"id":%d,"v":"java"}`, id))
			}
		}
	})
	foreign(harness.CompactFull(), func() {})
	harness.MustStop(t, p)
	prunedReads(t, r, m)
	t.Logf("%d snapshots", len(snapshotIDs(r.ref())))
}

// prunedReads asks Java for single rows, by all columns that may say where to look:
// it passes over files, partitions and buckets that cannot hold them.
func prunedReads(t *testing.T, r *rig, m *model) {
	t.Helper()
	for i, text := range m.texts() {
		if i%5 != 0 {
			continue
		}
		var q harness.Query
		for column, cell := range parseRow(text) {
			q.Where = append(q.Where, harness.Cond{Column: column, Op: "=", Value: json.RawMessage(cell)})
		}
		rows, err := harness.Java(t).Read(t.Context(), r.ref(), q)
		require.NoError(t, err)
		require.Contains(t, rows.Texts(), text)
	}
}

// ids are the hidden columns of a table with row tracking, by key.
type ids struct {
	last map[string]hidden
	used map[int64]bool
}

type hidden struct {
	ID       json.RawMessage `json:"id"`
	RowID    int64           `json:"_ROW_ID"`
	Sequence int64           `json:"_SEQUENCE_NUMBER"`
	V        json.RawMessage `json:"v"`
}

func newIDs() *ids { return &ids{last: map[string]hidden{}, used: map[int64]bool{}} }

// read takes the columns from Java, which must agree with ourselves.
func (x *ids) read(t *testing.T, r *rig) map[string]hidden {
	t.Helper()
	q := harness.Query{Columns: []string{"id", "v", "_ROW_ID", "_SEQUENCE_NUMBER"}}
	tracking := r.ref()
	tracking.Table += "$row_tracking"
	theirs, err := harness.Java(t).Read(t.Context(), tracking, q)
	require.NoError(t, err)
	ours, err := cat(t).Read(t.Context(), r.ref(), q)
	require.NoError(t, err)
	require.Empty(t, harness.DiffRows("java", theirs.Texts(), "applier", ours.Texts()))
	out, seen := map[string]hidden{}, map[int64]bool{}
	for _, text := range theirs.Texts() {
		var h hidden
		require.NoError(t, json.Unmarshal([]byte(text), &h))
		require.False(t, seen[h.RowID], "row id %d twice", h.RowID)
		seen[h.RowID] = true
		out[string(h.ID)] = h
	}
	return out
}

// theirs follows a change of Java's: rows keep their ids.
func (x *ids) theirs(t *testing.T, r *rig) {
	t.Helper()
	now := x.read(t, r)
	for k, h := range now {
		if old, there := x.last[k]; there {
			require.Equal(t, old.RowID, h.RowID, "key %s", k)
		}
		x.used[h.RowID] = true
	}
	x.last = now
}

// ours follows a batch of ours, of at most one change a key.
func (x *ids) ours(t *testing.T, r *rig, changed map[int]bool) {
	t.Helper()
	now := x.read(t, r)
	snapshots := snapshotIDs(r.ref())
	for k, h := range now {
		old, there := x.last[k]
		id, err := strconv.Atoi(k)
		require.NoError(t, err)
		switch {
		case !there:
			require.False(t, x.used[h.RowID], "key %s got row id %d, which was given before", k, h.RowID)
		case changed[id]:
			require.Equal(t, old.RowID, h.RowID, "key %s keeps its id", k)
			require.Greater(t, h.Sequence, old.Sequence)
		default:
			require.Equal(t, old, h)
		}
		require.LessOrEqual(t, h.Sequence, snapshots[len(snapshots)-1])
		x.used[h.RowID] = true
	}
	x.last = now
}

func modeRow(id, partition, version int) string {
	return fmt.Sprintf(`{"id":%d,"p":"p%d","v":"v%d of %d"}`, id, partition, version, id)
}
