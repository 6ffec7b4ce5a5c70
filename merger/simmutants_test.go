//go:build mutants

package merger

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"applier/storage/mutant"
)

var (
	mutantSeeds = flag.Int("mutant-seeds", 20000, "within how many seeds every mutant must die")
	mutantNames = flag.String("mutant", "", "names of the mutants to run, with commas; all by default")
)

// TestMutants_EachRuleIsNeeded leaves each rule of the protocol out and runs the
// seeds of the simulation until one fails: a rule whose absence nothing notices is
// not tested, or not needed.
func TestMutants_EachRuleIsNeeded(t *testing.T) {
	defer mutant.Use("")
	for _, m := range mutant.All() {
		if *mutantNames != "" && !strings.Contains(","+*mutantNames+",", ","+string(m)+",") {
			continue
		}
		t.Run(string(m), func(t *testing.T) {
			mutant.Use(m)
			seeds := make([]uint64, *mutantSeeds)
			for s := range seeds {
				seeds[s] = *simFirst + uint64(s)
			}
			from := time.Now()
			res := runSeeds(context.Background(), seeds, nil)
			if res.failed == nil {
				fmt.Printf("%-24s SURVIVES %d seeds\n", m, res.seeds)
				t.Fatalf("%d seeds did not notice that the rule %s is left out", res.seeds, m)
			}
			fmt.Printf("%-24s dies at seed %5d (%5.1f s): %.110s\n", m, res.failed.o.seed, time.Since(from).Seconds(), res.failed.failure)
		})
	}
}
