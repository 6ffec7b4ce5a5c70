//go:build itest && itestfull

package itest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestCrash_ChangesThatMeetClausesCountOnce is the crash test with clauses of
// merge.when. Rows are sums over their changes: one that is lost or applied twice
// shows in every later version.
func TestCrash_ChangesThatMeetClausesCountOnce(t *testing.T) {
	t.Parallel()
	seed := uint64(intVariable(t, "CRASH_SEED", int(time.Now().UnixNano()%1_000_000)))
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	fold := func(old, change *crashRow) *crashRow {
		switch {
		case change == nil && old == nil:
			return nil
		case change == nil && old.v%3 == 0:
			return &crashRow{old.v + 1, "kept, " + fmt.Sprint(len(old.s))}
		case change == nil:
			return nil
		case old == nil:
			return change
		}
		return &crashRow{old.v + change.v, change.s}
	}
	crashFolded(t, rnd, seed, 60_000, crashPlan(rnd, 10), "{}", fold, func(r *rig) {
		r.pipes[0].More += `
merge:
  when:
    - MATCHED AND s.__op = 'd' AND t.v % 3 = 0 THEN UPDATE SET v = t.v + 1, s = concat('kept, ', length(t.s))
    - MATCHED AND s.__op = 'd' THEN DELETE
    - MATCHED THEN UPDATE SET v = t.v + s.v, s = s.s
    - NOT MATCHED AND s.__op <> 'd' THEN INSERT *
  skip_unchanged: true`
	})
}
