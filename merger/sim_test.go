package merger

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"applier/ingest/change"
	"applier/storage/paimon"

	"github.com/stretchr/testify/require"
)

var (
	simSeeds = flag.Int("seeds", 40, "how many seeds the simulation runs; make sim and CI run 200")
	simFirst = flag.Uint64("first-seed", 1, "the first seed of the simulation")
)

// run drives a world: a phase with faults, then a healed one in which everything
// must be applied.
func (w *world) run(steps int) {
	w.group(0)
	for w.steps = 0; w.steps < steps && w.failure == ""; w.steps++ {
		w.act()
		w.observe()
	}
	w.heal()
	for limit := w.steps + 4000; w.steps < limit && w.failure == "" && !w.done(); w.steps++ {
		for _, i := range w.instances {
			i.step()
			w.operator(i)
		}
		w.observe()
	}
	if w.failure == "" && !w.done() {
		w.fail("not everything was applied after the faults ended: %s", w.positions())
	}
	for _, i := range w.instances {
		if i.a != nil {
			i.a.view.drop()
		}
	}
}

// act is one random event.
func (w *world) act() {
	w.now = w.now.Add(100_000_000)
	switch x := w.rng.IntN(100); {
	case x < 70:
		w.instances[w.rng.IntN(len(w.instances))].step()
	case x < 80:
		w.produce()
	case x < 84:
		w.peerPlans()
	case x < 88:
		w.peerPublishes()
	case x < 90:
		w.expire()
	case x < 92:
		w.group(w.rng.IntN(len(w.instances)))
	case x < 95:
		w.deliver()
	case x == 97:
		w.operator(w.instances[w.rng.IntN(len(w.instances))])
	case x < 96:
		i := w.instances[w.rng.IntN(len(w.instances))]
		if i.a != nil {
			i.crash("kill -9")
		}
	case x == 96:
		w.powerCut()
	}
}

// group moves the table to an instance; both hear of it when they do.
func (w *world) group(owner int) {
	w.owner = owner
	for n, i := range w.instances {
		i.owned = n == owner
	}
	w.log("the group gives the table to i%d", owner)
}

// deliver lets a publish arrive whose caller was told of an error, or is dead.
func (w *world) deliver() {
	all := w.disk.Delayed()
	if w.applied >= len(all) {
		return
	}
	d := all[w.applied]
	w.applied++
	earliest, err := paimon.EarliestSnapshotID(context.Background(), w.disk, w.table.Paths())
	var id int64
	if _, e := fmt.Sscanf(d.Key, "snapshot/snapshot-%d", &id); err != nil || e == nil && id < earliest {
		return // no publish is under way for longer than snapshots are kept
	}
	err = d.Apply(w.disk)
	w.log("late arrival of %s: %v", d.Key, err)
	if err == nil {
		w.met["late arrival took the name"]++
	}
}

// powerCut restarts the machine: what was not synced may be gone.
func (w *world) powerCut() {
	w.log("power cut")
	w.met["power cut"]++
	for _, i := range w.instances {
		if i.a != nil {
			i.crash("power cut")
		}
	}
	w.disk = w.disk.Crash(w.rng, []float64{0, 0.1, 0.5, 0.9, 1}[w.rng.IntN(5)])
	w.marks = w.marks.Crash(w.rng, 0.5)
	w.applied = 0
	w.reopen()
	w.forgetLost()
}

func (w *world) heal() {
	w.log("healed")
	w.faults = false
	w.group(w.owner)
	for _, i := range w.instances {
		if i.a != nil {
			i.a.step(ResumeAsked{})
		}
	}
}

// done: the owner has applied everything.
func (w *world) done() bool {
	i := w.instances[w.owner]
	if i.a == nil || i.a.state.Phase != PhaseIdle || i.a.state.Positions == nil {
		return false
	}
	for p, v := range i.a.state.Positions {
		if v.Next != int64(len(w.logs[p.Partition])) {
			return false
		}
	}
	return len(i.a.state.Positions) == len(w.logs)
}

func (w *world) positions() string {
	s := ""
	for _, i := range w.instances {
		if i.a != nil {
			s += fmt.Sprintf("i%d %s %v halt %v; ", i.n, i.a.state.Phase, i.a.state.Positions, i.a.state.Halt)
		}
	}
	return s
}

func TestSimulation_EverySnapshotEqualsTheModel(t *testing.T) {
	met := map[string]int{}
	var mu sync.Mutex
	seeds := make(chan uint64)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for seed := range seeds {
				w := newWorld(seed)
				w.run(400)
				mu.Lock()
				for k, n := range w.met {
					met[k] += n
				}
				if w.failure != "" && !t.Failed() {
					t.Errorf("%s", w.report())
				}
				mu.Unlock()
			}
		}()
	}
	for s := range uint64(*simSeeds) {
		seeds <- *simFirst + s
	}
	close(seeds)
	wg.Wait()
	if *simSeeds < 200 {
		return
	}
	// A run that never met what it is for proves nothing.
	for _, must := range []string{
		"notice fenced", "notice unknown_won", "notice unknown_absent", "notice lost_race", "notice still_moved",
		"index rebuilt", "peer insert", "peer delete", "peer compact", "peer conflict", "expired", "power cut", "torn peer commit",
		"late arrival took the name", "crash in link", "crash in sync", "crash in write", "crash in sync_dir", "committed start",
	} {
		if met[must] == 0 {
			t.Errorf("no seed met %q; met: %v", must, met)
		}
	}
}

func TestSimulation_TheSameSeedIsTheSameRun(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		a, b := newWorld(seed), newWorld(seed)
		a.run(300)
		b.run(300)
		require.Equal(t, a.trace, b.trace)
	}
}

// operator resolves a halt with the command that its text names: the positions
// are known to whoever looks at the table's history.
func (w *world) operator(i *instance) {
	if i.a == nil || i.a.state.Phase != PhaseHalted || i.a.state.Halt.Code != CodeOffsetLost {
		return
	}
	ctx := context.Background()
	st, err := w.latest(ctx)
	if err != nil || st == nil {
		w.fail("operator: %v", err)
		return
	}
	exp := w.expected[st.Snapshot.UUID]
	next := change.Positions{}
	for p, n := range exp.next {
		next[change.Partition{Topic: simTopic, Partition: int32(p)}] = change.Position{Next: n, Epoch: -1}
	}
	s := i.a.set
	a, err := New(ctx, s, Deps{Name: simTable, Table: w.table, Source: NoSource{}, Observer: simObserver{i}})
	if err == nil {
		_, err = a.Commit(ctx, OperatorCommit{Op: "set", Next: next, Topics: map[string]string{simTopic: "id"}, Cluster: "cluster"})
	}
	if err != nil {
		w.fail("operator: %v", err)
	}
	w.met["operator set offsets"]++
	i.a.step(ResumeAsked{})
}
