//go:build itest

package itest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// soakModes are the kinds of tables that are soaked: copy on write, deletion vectors of
// both widths and row tracking, and what of it can be with buckets. The first two are
// the slice that runs without the tag itestfull.
func soakModes() []tableMode {
	mode := func(name string, partitioned bool, options ...string) tableMode {
		m := tableMode{name: name, partitioned: partitioned, options: map[string]string{"bucket": "-1"}}
		for _, o := range options {
			key, value, _ := strings.Cut(o, "=")
			m.options[key] = value
		}
		return m
	}
	const vectors, wide, tracking, buckets, key = "deletion-vectors.enabled=true", "deletion-vectors.bitmap64=true", "row-tracking.enabled=true", "bucket=3", "bucket-key=id"
	return []tableMode{
		mode("vectors", true, vectors),
		mode("row tracking", false, tracking),
		mode("copy on write", true),
		mode("wide vectors", false, vectors, wide),
		mode("row tracking, vectors", true, tracking, vectors),
		mode("buckets, copy on write", true, buckets, key),
		mode("buckets, vectors", false, buckets, key, vectors),
		mode("buckets, wide vectors", true, buckets, key, vectors, wide),
	}
}

// soak is one run: a table, the daemon that applies records to it, all the others who
// write it, and the model of what it holds.
type soak struct {
	*rig
	t    *testing.T
	mode tableMode
	java harness.JavaPeer
	p    *harness.Process // the daemon
	// upkeep says that the daemon keeps house, and so commits at any time.
	upkeep bool
	m      *soakModel
	held   bool // the daemon leaves the table to others for more than one thing
	behind int  // the first record that the table, and the model, does not have while it does

	seed  uint64     // and the mode's number
	rnd   *rand.Rand // of the step alone, so that no step changes the choices of others
	step  int
	doing string         // what it does
	count map[string]int // steps by name

	snapshots int64 // made by steps

	past    []soakState          // after each step, as long as its snapshot is the table's
	tags    map[string]soakState // what is tagged
	schemas map[int64][]soakColumn

	from    int64        // the snapshot that the step began with
	ids     soakState    // that state, with the hidden columns of row tracking
	touched map[int]bool // keys of rows that the step changed: true if it only updated them
}

// soakState is the table as a step left it.
type soakState struct {
	snapshot int64
	rows     map[int][]soakRow
	records  int // that were applied
	nextID   int64
	hidden   map[int64]hidden
}

// TestSoak_ManyWritersOnOneTable: our batches, statements of applier sql, Java, with the
// tag itestfull Flink too, and everybody's housekeeping take turns on one table, while
// the daemon works, waits, is paused, stopped or killed. After every step our reader and
// Java's read what a sequential model says, tags read as what they were, and with row
// tracking rows keep their ids. SOAK_SEED and SOAK_STEPS repeat a run.
func TestSoak_ManyWritersOnOneTable(t *testing.T) {
	modes, steps, seed := soakModes()[:2], 30, 5
	if fullMatrix {
		modes, steps, seed = soakModes(), 220, int(time.Now().UnixNano()%1_000_000)
	}
	seed, steps = intVariable(t, "SOAK_SEED", seed), intVariable(t, "SOAK_STEPS", steps)
	for i, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			s := newSoak(t, mode, uint64(seed), uint64(i))
			for range steps {
				s.take()
			}
			s.finish()
		})
	}
}

func newSoak(t *testing.T, mode tableMode, seed, number uint64) *soak {
	s := &soak{
		rig: newRig(t, "", pipe{Topic: newTopic(t, soakPartitions)}), t: t, mode: mode, java: harness.Java(t), seed: seed<<8 | number,
		m: &soakModel{rows: map[int][]soakRow{}}, tags: map[string]soakState{}, schemas: map[int64][]soakColumn{}, count: map[string]int{},
	}
	s.session = "1s"
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("failed in step %d: %s. SOAK_SEED=%d SOAK_STEPS=%d repeats this run", s.step, s.doing, seed, s.step)
		}
	})
	spec := harness.TableSpec{Options: mode.options}
	for _, c := range []harness.Column{{Name: "id", Type: "BIGINT"}, {Name: "p", Type: "STRING"}, {Name: "v", Type: "STRING"}, {Name: "n", Type: "INT"}} {
		spec.Columns = append(spec.Columns, c)
		s.m.addColumn(len(s.m.columns), c.Name)
	}
	if mode.partitioned {
		spec.PartitionKeys = []string{"p"}
	}
	require.NoError(t, s.java.Create(t.Context(), s.ref(), spec))
	s.altered()
	s.launch(false, 1000)
	return s
}

// launch starts the daemon, keeping house or not, with batches of so many records at most.
func (s *soak) launch(upkeep bool, rows int) {
	s.t.Helper()
	s.upkeep = upkeep
	more := fmt.Sprintf("batch: { rows: %d, interval: 200ms, idle_flush: 50ms }", rows)
	if upkeep {
		more += "\nmaintenance: { compact: true, expire: true, every: 1s }"
	}
	s.set(more)
	// This is no crash loop, in which starts wait.
	require.NoError(s.t, os.RemoveAll(filepath.Join(s.State, s.pipes[0].ID+".running")))
	s.p = s.start()
}

// take does the next step and compares.
func (s *soak) take() {
	s.t.Helper()
	s.step++
	s.rnd = rand.New(rand.NewPCG(s.seed, uint64(s.step)))
	s.touched = map[int]bool{}
	do := s.draw()
	s.count[do.name]++
	s.doing = do.name
	s.from = last(append([]int64{0}, snapshotIDs(s.ref())...))
	s.doing = fmt.Sprintf("%s: %s", do.name, do.do(s))
	s.compare()
	s.remember()
	s.t.Logf("step %d, %s; snapshot %d, %d keys", s.step, s.doing, last(snapshotIDs(s.ref())), len(s.m.rows))
}

// draw chooses a step by its weight; the first fills the table.
func (s *soak) draw() soakStep {
	all := soakSteps()
	if s.step == 1 {
		return all[0]
	}
	total := 0
	for _, st := range all {
		total += st.weight
	}
	at := s.rnd.IntN(total)
	for _, st := range all {
		if at -= st.weight; at < 0 {
			return st
		}
	}
	panic("unreachable")
}

// remember keeps what the table is now.
func (s *soak) remember() {
	s.t.Helper()
	id := last(snapshotIDs(s.ref()))
	s.snapshots += id - s.from
	now := soakState{snapshot: id, rows: cloneRows(s.m.rows), records: len(s.m.records)}
	if s.mode.tracked() {
		s.followIDs(&now)
		s.ids = now
	}
	s.past = append(s.past, now)
}

// finish has the daemon apply one more batch, and every reader and verify look at what
// has become of it all.
func (s *soak) finish() {
	s.t.Helper()
	s.step++
	s.rnd = rand.New(rand.NewPCG(s.seed, uint64(s.step)))
	s.doing = "the end"
	s.feedRecords(20)
	s.waitApplied(s.p)
	harness.MustStop(s.t, s.p)
	harness.SameRows(s.t.Context(), s.t, textsOf(s.m.columns, s.m.rows), s.ref(), harness.Query{}, s.readers()...)
	out := s.must("verify", "p", "--full")
	require.Contains(s.t, out, "The table is proven")
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(s.count)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", name, s.count[name]))
	}
	s.t.Logf("%d steps, %d snapshots; %s", s.step-1, s.snapshots, strings.Join(kinds, ", "))
}
