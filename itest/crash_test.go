//go:build itest

package itest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"applier/itest/harness"
)

const (
	crashPartitions = 4
	crashKeys       = 20_000
	// crashBatches a cycle at least, so that a failpoint that waits for the fourth
	// commit is met by the changes of its own cycle, whatever the ones before left.
	crashBatches = 6
)

// crashPoints are where the daemon is made to kill itself: every step of a commit
// and every step of writing a file. Those of the first start come first.
var crashPoints = []string{
	"commit/resolve=kill", "commit/look=kill", "commit/publish=kill", "objstore/publish/linked=kill", "commit/after=kill", "commit/ack=kill",
	"commit/resume=kill", "commit/look=kill@3", "commit/sync=kill@2", "commit/plan=kill@2", "commit/write=kill@2", "commit/data=kill@2", "commit/dv=kill@2",
	"commit/manifest=kill@2", "objstore/put_all/written=kill@2", "objstore/put_all/synced=kill@2", "commit/stage=kill@2", "commit/still=kill@2",
	"commit/publish=kill@2", "objstore/publish/staged=kill@3", "objstore/publish/linked=kill@3", "objstore/publish/linked=kill@6", // beyond the start's probe
	// The outcome is unknown, and then the end: published, or not.
	"objstore/publish/linked=error@3,commit/publish=error@4,commit/classify=kill", "commit/publish=error@2,commit/classify=kill",
	"commit/after=kill@2", "commit/hint=kill@2", "commit/ack=kill@2",
}

// crashErrors makes every step fail now and then beside the kills.
const crashErrors = "commit/look=error%4,commit/sync=error%4,commit/plan=error%4,commit/data=error%4,commit/dv=error%4,commit/manifest=error%4," +
	"commit/still=error%4,objstore/put_all/written=error%4,objstore/publish/staged=error%4,objstore/publish/linked=error%8,commit/after=error%4,commit/ack=error%4"

// crashLoad makes the changes: the i-th of the topic's is a function of i alone.
type crashLoad struct{ seed uint64 }

func (l crashLoad) at(i int) (key int, deleted bool) {
	r := rand.New(rand.NewPCG(l.seed, uint64(i)))
	return r.IntN(crashKeys), r.IntN(5) == 0
}

// crashRow is a row of the table without its key.
type crashRow struct {
	v int
	s string
}

func (l crashLoad) row(key, i int) crashRow {
	return crashRow{i, fmt.Sprintf("change %d of %d", i, key)}
}

func (r crashRow) text(key int) []byte {
	return fmt.Appendf(nil, `{"id":%d,"v":%d,"s":%q}`, key, r.v, r.s)
}

// crashFold says what a change makes of the row of its key; nil for no row, and for a
// change that deletes.
type crashFold func(old, change *crashRow) *crashRow

// mirrored is apply: mirror.
func mirrored(_, change *crashRow) *crashRow { return change }

// crashModel follows the topic partition by partition and keeps the digest of the
// table that must be.
type crashModel struct {
	load  crashLoad
	fold  crashFold
	queue [crashPartitions][]int // change numbers by offset
	at    [crashPartitions]int64
	now   map[int]*crashRow // by key
	sum   harness.Summer
}

// records makes the changes from..to for the topic.
func (m *crashModel) records(topic string, from, to int) []*kgo.Record {
	var out []*kgo.Record
	for i := from; i < to; i++ {
		key, deleted := m.load.at(i)
		part := int32(key % crashPartitions)
		m.queue[part] = append(m.queue[part], i)
		if deleted {
			out = append(out, del(topic, part, fmt.Sprintf(`{"id":%d}`, key)))
		} else {
			out = append(out, put(topic, part, string(m.load.row(key, i).text(key))))
		}
	}
	return out
}

// advance applies what lies before the positions. They must not go back.
func (m *crashModel) advance(t *testing.T, to map[int32]int64) {
	t.Helper()
	for part, end := range to {
		require.GreaterOrEqual(t, end, m.at[part], "the position of partition %d went back", part)
		for ; m.at[part] < end; m.at[part]++ {
			i := m.queue[part][m.at[part]]
			key, deleted := m.load.at(i)
			var change *crashRow
			if !deleted {
				change = new(m.load.row(key, i))
			}
			old := m.now[key]
			if old != nil {
				m.sum.Remove(old.text(key))
			}
			if m.now[key] = m.fold(old, change); m.now[key] != nil {
				m.sum.Add(m.now[key].text(key))
			}
		}
	}
}

// TestCrash_NothingIsLostOrDoubledWhenTheDaemonIsKilled is acceptance test (e):
// 200,000 changes over four partitions, the daemon killed at random times and at
// every step of a commit. CRASH_CYCLES=500 makes it long (CRASH_SEED repeats one).
func TestCrash_NothingIsLostOrDoubledWhenTheDaemonIsKilled(t *testing.T) {
	t.Parallel()
	blind := intVariable(t, "CRASH_CYCLES", 25)
	seed := uint64(intVariable(t, "CRASH_SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	crashTable(t, rnd, seed, max(200_000, 2_000*blind), crashPlan(rnd, blind), "{}")
}

// crashTable kills the daemon by plan while it applies changes to a table with the
// given options, and compares what it has made of them with the model.
func crashTable(t *testing.T, rnd *rand.Rand, seed uint64, changes int, plan []string, options string, on ...func(*rig)) *rig {
	return crashFolded(t, rnd, seed, changes, plan, options, mirrored, on...)
}

// crashFolded is crashTable for a pipeline whose changes mean something else.
func crashFolded(t *testing.T, rnd *rand.Rand, seed uint64, changes int, plan []string, options string, fold crashFold, on ...func(*rig)) *rig {
	topic := newTopic(t, crashPartitions)
	r := newRig(t, "", pipe{Topic: topic, More: fmt.Sprintf("create: { types: { id: BIGINT, v: BIGINT, s: STRING }, options: %s }\nbatch: { rows: %d, interval: 100ms, idle_flush: 20ms }", options, changes/len(plan)/crashBatches)})
	r.session = "1s"
	for _, f := range on {
		f(r)
	}
	r.configure("")
	m := &crashModel{load: crashLoad{seed}, fold: fold, now: map[int]*crashRow{}}
	kills := 0
	for i, failpoints := range plan {
		r.kafka.Produce(t, m.records(topic, changes*i/len(plan), changes*(i+1)/len(plan))...)
		kills += crashCycle(t, r, rnd, failpoints)
		if i%8 == 7 { // somebody else compacts while nobody else writes
			_, err := harness.Java(t).Do(t.Context(), r.ref(), harness.Compact(2))
			require.NoError(t, err)
		}
	}
	p := r.start()
	r.waitApplied(p)
	harness.MustStop(t, p)
	require.Equal(t, len(plan), kills)
	m.verify(t, r, topic)
	r.proven()
	require.Equal(t, [crashPartitions]int64{int64(len(m.queue[0])), int64(len(m.queue[1])), int64(len(m.queue[2])), int64(len(m.queue[3]))}, m.at)
	return r
}

// crashPlan is the failpoints of every cycle; none is a kill at a random time.
func crashPlan(rnd *rand.Rand, blind int) []string {
	const first = 6
	rest := slices.Clone(crashPoints[first:])
	for i := range blind {
		rest = append(rest, []string{"", crashErrors}[i%2])
	}
	rnd.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return append(slices.Clone(crashPoints[:first]), rest...)
}

func intVariable(t *testing.T, name string, otherwise int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err, name)
	return n
}

// crashCycle runs the daemon until it is dead.
func crashCycle(t *testing.T, r *rig, rnd *rand.Rand, failpoints string) (kills int) {
	t.Helper()
	// This is no crash loop, in which starts wait: TestFault_A23 is.
	require.NoError(t, os.RemoveAll(filepath.Join(r.State, r.pipes[0].ID+".running")))
	var p *harness.Process
	if failpoints == "" {
		p = r.start()
	} else {
		p = r.start(harness.Run{Tags: []string{"failpoints"}, Env: []string{"APPLIER_FAILPOINTS=" + failpoints}})
	}
	if strings.Contains(failpoints, "=kill") {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		code, err := p.Wait(ctx)
		require.NoError(t, err, failpoints)
		require.Equal(t, -1, code, "%s:\n%s", failpoints, p.Output.Tail(20))
		harness.MustSay(t, p, ": kill")
		return 1
	}
	killBlind(t, p, rnd)
	return 1
}

// killBlind kills the daemon at a random time: any time of its life, or a few
// milliseconds after one of its first commits, when it mostly is in the next.
func killBlind(t *testing.T, p *harness.Process, rnd *rand.Rand) {
	t.Helper()
	end := time.After(time.Duration(rnd.Int64N(int64(2500 * time.Millisecond)))) // the random time is the point
	commits := 1 + rnd.IntN(5)
	if rnd.IntN(3) == 0 {
		commits = 1 << 30
	} else {
		end = time.After(5 * time.Second)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for strings.Count(p.Output.String(), "msg=committed") < commits {
		select {
		case <-end:
			commits = 0
		case <-p.Done():
			require.Fail(t, "the daemon ended by itself", p.Output.Tail(20))
		case <-tick.C:
		}
	}
	if commits > 0 {
		<-time.After(time.Duration(rnd.Int64N(int64(15 * time.Millisecond))))
	}
	p.Kill()
}

// verify reads every snapshot with Java, and some with the others too, and
// compares it with the model at the positions recorded in it.
func (m *crashModel) verify(t *testing.T, r *rig, topic string) {
	t.Helper()
	ids := snapshotIDs(r.ref())
	require.EqualValues(t, 1, ids[0])
	want := map[int64]harness.Digest{}
	records := 0
	var seq int64
	for _, id := range ids {
		rec, err := recordIn(r.ref(), id, r.pipes[0].ID)
		require.NoError(t, err)
		if rec != nil {
			require.Equal(t, seq+1, rec.Seq, "snapshot %d: commits are counted without a gap", id)
			seq = rec.Seq
			m.advance(t, rec.positions(topic))
			records++
		}
		want[id] = m.sum.Digest()
	}
	g := errgroup.Group{}
	g.SetLimit(3)
	for i, id := range ids {
		judges := []harness.Judge{harness.Java(t)}
		if i%25 == 0 || i == len(ids)-1 {
			judges = readers(t)
		}
		g.Go(func() error {
			for _, j := range judges {
				got, err := j.Digest(t.Context(), r.ref(), harness.Query{Snapshot: id})
				if err != nil || got != want[id] {
					return fmt.Errorf("snapshot %d: %s reads %v instead of %v (%w)", id, j.Name(), got, want[id], err)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	t.Logf("%d snapshots, %d with a position record, equal the model; %d rows at the end", len(ids), records, want[ids[len(ids)-1]].Rows)
}
