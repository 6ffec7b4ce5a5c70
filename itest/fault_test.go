//go:build itest

package itest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// The tests TestFault_<id> are the rows of itest/catalogue/faults.txt that need the
// real binary. Each makes one fault happen and then shows that the daemon did what
// the row asks for and that nothing was lost or applied twice.

// faulty is a rig of one pipeline with a model of what its table must hold.
type faulty struct {
	*rig
	t     *testing.T
	m     *model
	next  int // number of the next change
	topic string
}

const faultTable = "create: { types: { id: BIGINT, v: STRING } }\nbatch: { rows: 100, interval: 200ms, idle_flush: 50ms }"

// newFaulty makes a rig whose group forgets a killed daemon after a second. Tests
// that have one run side by side.
func newFaulty(t *testing.T, warehouse, more string) *faulty {
	t.Helper()
	t.Parallel()
	if more == "" {
		more = faultTable
	}
	topic := newTopic(t, 2)
	f := &faulty{rig: newRig(t, warehouse, pipe{Topic: topic, More: more}), t: t, m: newModel([]string{"id", "v"}, []string{"id"}), topic: topic}
	f.session = "1s"
	f.configure("")
	return f
}

// produce makes n more changes.
func (f *faulty) produce(n int) {
	f.t.Helper()
	f.kafka.Produce(f.t, changesOf(f.topic, f.next, n, f.m)...)
	f.next += n
}

// armed starts the daemon with failpoints.
func (f *faulty) armed(points string, env ...string) *harness.Process {
	f.t.Helper()
	return f.start(harness.Run{Tags: []string{"failpoints"}, Env: append(env, "APPLIER_FAILPOINTS="+points)})
}

// filled runs the daemon over n changes and leaves it running.
func (f *faulty) filled(n int, run ...harness.Run) *harness.Process {
	f.t.Helper()
	f.produce(n)
	p := f.start(run...)
	f.waitApplied(p)
	return p
}

// exact stops the daemon, if one runs, and fails unless our reader and Java read
// exactly the model's rows, commits are counted without a gap, and the ranges that
// they say they applied join to the whole topic, each record once.
func (f *faulty) exact(p *harness.Process) {
	f.t.Helper()
	if p != nil {
		harness.MustStop(f.t, p)
	}
	harness.SameRows(f.t.Context(), f.t, f.m.texts(), f.ref(), harness.Query{}, cat(f.t), harness.Java(f.t))
	var seq, in int64
	var last *posRecord
	for _, id := range snapshotIDs(f.ref()) {
		rec, err := recordIn(f.ref(), id, f.pipes[0].ID)
		require.NoError(f.t, err)
		if rec == nil {
			continue
		}
		require.Equal(f.t, seq+1, rec.Seq, "snapshot %d: commits are counted without a gap", id)
		seq = rec.Seq
		in += rec.In
		last = rec
	}
	require.NotNil(f.t, last)
	require.Equal(f.t, f.kafka.EndOffsets(f.t, f.topic), last.positions(f.topic))
	require.EqualValues(f.t, f.next, in, "every record was applied once")
}

// again applies a few more changes with a fresh daemon and checks everything.
func (f *faulty) again() {
	f.t.Helper()
	f.produce(30)
	p := f.start()
	f.waitApplied(p)
	f.exact(p)
}

// killed waits until a failpoint has killed the daemon.
func killed(t *testing.T, p *harness.Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	code, err := p.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, -1, code, p.Output.Tail(20))
	harness.MustSay(t, p, ": kill")
}

// said waits for a text in the daemon's output.
func said(t *testing.T, p *harness.Process, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, p.WaitOutput(ctx, text))
}

// scrape reads one metric of the daemon by the beginning of its printed name; false
// if it is not there.
func (r *rig) scrape(name string) (float64, bool) {
	all, err := harness.Metrics(r.t.Context(), r.Public+"/metrics")
	if err != nil {
		return 0, false
	}
	for k, v := range all {
		if strings.HasPrefix(k, name) {
			return v, true
		}
	}
	return 0, false
}

// waitMetric waits until a metric fulfils a condition.
func (r *rig) waitMetric(name string, cond func(float64) bool) {
	r.t.Helper()
	harness.Until(r.t, patience, "metric "+name, func() (bool, error) {
		v, ok := r.scrape(name)
		return ok && cond(v), nil
	})
}

// filesIn lists the files of a folder of the table, oldest first.
func (r *rig) filesIn(folder string) []string {
	r.t.Helper()
	entries, err := os.ReadDir(filepath.Join(tableDir(r.ref()), folder))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(r.t, err)
	at := map[string]time.Time{}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		info, err := e.Info()
		require.NoError(r.t, err)
		name := filepath.Join(tableDir(r.ref()), folder, e.Name())
		at[name] = info.ModTime()
		out = append(out, name)
	}
	slices.SortStableFunc(out, func(a, b string) int { return at[a].Compare(at[b]) })
	return out
}

// haltRetries waits for a halt that the pipeline tries to leave by itself, then
// for its end once the cause is gone.
func (f *faulty) haltRetries(p *harness.Process, code string, facts []string, repair func()) {
	f.t.Helper()
	s := f.waitHalt(p, code)
	for _, text := range facts {
		require.Contains(f.t, s.Halt.Message, text)
	}
	require.NotEmpty(f.t, s.Halt.Remedy)
	repair()
	f.healed(p)
}

// healed waits until a pipeline that stood still has applied its topic and says that
// all is well.
func (f *faulty) healed(p *harness.Process) {
	f.t.Helper()
	f.waitStatus(p, "p", "the end of the halt", func(s pipelineStatus) bool {
		rec, err := lastRecord(f.ref(), f.pipes[0].ID)
		return s.Halt == nil && err == nil && rec != nil && reached(rec.positions(f.topic), f.kafka.EndOffsets(f.t, f.topic))
	})
}
