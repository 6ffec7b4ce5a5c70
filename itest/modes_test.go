//go:build itest

package itest

import (
	"fmt"
	"math/rand/v2"
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
	}
}

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
			commits++
		}
	}
	foreign := func(w harness.Write, change func()) {
		do(t, java, r.ref(), w)
		change()
		r.holds(m)
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
	t.Logf("%d snapshots", len(snapshotIDs(r.ref())))
}

func modeRow(id, partition, version int) string {
	return fmt.Sprintf(`{"id":%d,"p":"p%d","v":"v%d of %d"}`, id, partition, version, id)
}
