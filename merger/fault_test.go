package merger

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/batcher"
)

// D1 and D2: the wall clock jumps by a day between two commits. Rows and positions
// do not care; snapshot times never go back, and follow again when the clock does.
func jumpingClock(t *testing.T, by time.Duration) {
	r := kvRig(t, rigOptions{apply: batcher.Mirror})
	r.begin()
	r.put(0, 1, "before")
	r.commit()
	times := func() (out []int64) {
		for id := int64(1); id <= r.a.state.Known.ID; id++ {
			l, err := r.a.chain.fresh(t.Context(), id)
			require.NoError(t, err)
			out = append(out, l.snap.TimeMillis)
		}
		return out
	}
	r.now = r.now.Add(by)
	r.put(0, 1, "after")
	r.put(0, 2, "new")
	r.commit()
	r.now = r.now.Add(-by)
	r.put(0, 3, "and back")
	r.commit()
	require.Equal(t, []string{"k=1 v=after", "k=2 v=new", "k=3 v=and back"}, r.rows())
	at := times()
	for i := 1; i < len(at); i++ {
		require.GreaterOrEqual(t, at[i], at[i-1], "snapshot %d is older than the one before", i+1)
	}
	require.GreaterOrEqual(t, at[len(at)-1], r.now.UnixMilli())
	// Another process on the table finds everything as it is.
	r.close()
	r.open(nil)
	r.begin()
	r.put(0, 4, "again")
	r.commit()
	require.Equal(t, []string{"k=1 v=after", "k=2 v=new", "k=3 v=and back", "k=4 v=again"}, r.rows())
}

func TestFault_D1(t *testing.T) { jumpingClock(t, 24*time.Hour) }

func TestFault_D2(t *testing.T) { jumpingClock(t, -24*time.Hour) }

func TestPublish_AFailureThatLastsIsShown(t *testing.T) {
	s := State{Phase: PhasePublish, Owned: true, Waiting: true, InFlight: true, Retries: retriesBeforeHalt, Target: 5, Batch: &BatchInfo{}}
	s, effects := Step(s, PublishFailed{Halt{CodeFull, "no space"}})
	require.Empty(t, effects)
	s, _ = Step(s, Published{Result: PublishUnknown})
	require.Equal(t, PhaseSlot, s.Phase, "it is read first")
	s, effects = Step(s, Slot{SlotAbsent})
	require.Equal(t, &Halt{CodeFull, "no space"}, s.Halt)
	require.Equal(t, PhaseBackoff, s.Phase, "and tried again")
	require.Contains(t, fmt.Sprint(effects), "no space")
	s, _ = Step(s, Waited{})
	require.Equal(t, PhasePublish, s.Phase)
	require.Nil(t, s.Doubt)
}

func TestConfigChange_NamesTheSettings(t *testing.T) {
	require.Equal(t, "key", configChange("apply:1,key:2,order_by:3,topics:4", "apply:1,key:9,order_by:3,topics:4"))
	require.Equal(t, "apply, topics", configChange("apply:1,key:2,order_by:3,topics:4", "apply:8,key:2,order_by:3,topics:9"))
	require.Equal(t, "apply, key", configChange("what an older program wrote", "apply:1,key:2"))
}
