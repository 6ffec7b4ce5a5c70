package merger

import (
	"flag"
	"fmt"
	"maps"
	"strings"
	"time"
)

var shrinkTime = flag.Duration("shrink", 30*time.Second, "how long a failing run of the simulation is made smaller")

// shrink leaves out as many steps, and then faults, as it can while the same
// invariant fails: first halves of the run, then quarters, and so on.
func shrink(failed *world) *world {
	deadline := time.Now().Add(*shrinkTime)
	best := failed
	try := func(change func(*simOptions)) bool {
		o := best.o
		o.drop, o.calm = maps.Clone(o.drop), maps.Clone(o.calm)
		change(&o)
		w := newWorld(o)
		w.run()
		if w.failureID != failed.failureID {
			return false
		}
		best = w
		return true
	}
	try(func(o *simOptions) {
		o.drop, o.calm = map[int]bool{}, map[int]bool{}
		o.steps = min(o.steps, failed.failedStep+1)
	})
	for size := best.o.steps / 2; size > 0; size /= 2 {
		for from := 0; from < best.o.steps && time.Now().Before(deadline); from += size {
			try(func(o *simOptions) { leaveOut(o.drop, from, from+size) })
		}
	}
	for size := best.o.steps / 2; size > 0; size /= 2 {
		for from := 0; from < best.o.steps && time.Now().Before(deadline); from += size {
			try(func(o *simOptions) { leaveOut(o.calm, from, from+size) })
		}
	}
	return best
}

func leaveOut(steps map[int]bool, from, to int) {
	for s := from; s < to; s++ {
		steps[s] = true
	}
}

// reportFailure says what failed, the smallest run found that still fails, and how
// to repeat it.
func reportFailure(failed *world) string {
	small := shrink(failed)
	o := small.o
	o.trace = true
	w := newWorld(o)
	w.run()
	kept := 0
	for s := range o.steps {
		if !o.drop[s] {
			kept++
		}
	}
	return fmt.Sprintf("seed %d fails: %s\n(%s)\nsmallest run found: %d of %d steps, %s\n%s\n\nrepeat: go test ./merger -run TestSimulation -first-seed %d -seeds 1\n"+
		"When it is understood, add the seed to merger/testdata/seeds.txt.",
		failed.o.seed, failed.failure, w.text(), kept, simSteps, w.failure, strings.Join(w.trace, "\n"), failed.o.seed)
}
