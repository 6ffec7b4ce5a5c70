package keyindex

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSweep_DropsWhatIsStaleAndGivesMemoryBack(t *testing.T) {
	forSpaces(t, func(t *testing.T, s keySpace) {
		x := s.new(t, Options{})
		empty := x.Stats().Bytes
		one := s.addFile(t, x, math.MaxInt, sequence(0, 20_000)...)
		two := s.addFile(t, x, math.MaxInt, sequence(0, 20_000)...)
		full := x.Stats().Bytes
		dv := bitmapOf()
		dv.AddRange(0, 10_000)
		require.NoError(t, x.SetDeleted(one, dv))
		require.NoError(t, x.RemoveSegment(two))
		require.Equal(t, 0.75, x.Stats().StaleRatio)

		done, err := x.Sweep(1)
		require.NoError(t, err)
		require.False(t, done)
		require.NoError(t, x.Check())
		for !done {
			done, err = x.Sweep(5)
			require.NoError(t, err)
		}
		st := x.Stats()
		require.EqualValues(t, []int64{10_000, 10_000, 0, 30_000}, []int64{st.Entries, st.Live, st.Stale, st.Reclaimed})
		require.Less(t, st.Bytes, full/2)
		require.NoError(t, x.Check())
		require.Equal(t, [][]Loc{{}, locs(one, 15_000)}, s.lookup(t, x, 5000, 15_000))

		require.NoError(t, x.RemoveSegment(one))
		done, err = x.Sweep(0)
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, empty, x.Stats().Bytes)
	})
}

func TestSweep_AtTheMemoryLimitStillSweeps(t *testing.T) {
	s := keySpaces[2]
	x := s.new(t, Options{})
	one := s.addFile(t, x, 100, sequence(0, 5000)...)
	s.addFile(t, x, 100, sequence(5000, 5000)...)
	x.mem.limit = x.mem.used
	require.NoError(t, x.RemoveSegment(one))
	_, err := x.Sweep(0)
	require.NoError(t, err)
	require.EqualValues(t, 5000, x.Stats().Entries)
	require.NoError(t, x.Check())
}

func TestCheck_FindsEveryKindOfDamage(t *testing.T) {
	s := keySpace{"", longKeys.class, spread}
	// first returns a shard and its first occupied slot that satisfies ok.
	first := func(x *Index, ok func(sh *shard, slot int) bool) (*shard, int) {
		for i := range x.shards {
			for slot := range x.shards[i].slots() {
				if sh := &x.shards[i]; sh.used(slot) && ok(sh, slot) {
					return sh, slot
				}
			}
		}
		t.Fatal("no such slot")
		return nil, 0
	}
	always := func(*shard, int) bool { return true }
	damage := map[string]func(x *Index){
		"a lost entry": func(x *Index) {
			sh, slot := first(x, always)
			sh.remove(slot, slot+1)
			x.entries--
		},
		"an entry nobody counted": func(x *Index) {
			sh, slot := first(x, always)
			sh.remove(slot, slot+1)
		},
		"a shard that counts wrongly": func(x *Index) { x.shards[3].n++ },
		"an end too early":            func(x *Index) { x.shards[3].end = 1 },
		"an empty slot before an entry": func(x *Index) {
			sh, slot := first(x, func(sh *shard, slot int) bool {
				return sh.used(slot+1) && sh.home(sh.t[2*(slot+1)]) <= slot
			})
			clear(sh.t[2*slot : 2*slot+2])
		},
		"an entry of another shard": func(x *Index) {
			sh, slot := first(x, always)
			sh.t[2*slot] = ^sh.t[2*slot]
		},
		"entries out of order": func(x *Index) {
			sh, slot := first(x, func(sh *shard, slot int) bool { return sh.used(slot + 1) })
			e := sh.t[2*slot : 2*slot+4]
			e[0], e[2] = e[2], e[0]
		},
		"another row's place": func(x *Index) {
			sh, slot := first(x, func(sh *shard, slot int) bool { return sh.loc(slot).Pos() > 5 })
			sh.t[2*slot+1]--
		},
		"a row of a file too many": func(x *Index) { x.segs.get(1).gone++ },
		"a row missing":            func(x *Index) { x.segs.get(1).next-- },
	}
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			x := s.new(t, Options{})
			s.addFile(t, x, math.MaxInt, sequence(0, 3000)...)
			require.NoError(t, x.Check())
			f(x)
			require.Error(t, x.Check())
		})
	}
}

func TestStats_OfAnEmptyIndexAreDefined(t *testing.T) {
	x := keySpaces[0].new(t, Options{MaxBytes: 1 << 20})
	st := x.Stats()
	require.Zero(t, st.BytesPerEntry)
	require.Zero(t, st.StaleRatio)
	require.EqualValues(t, 1<<20, st.LimitBytes)
	require.Equal(t, st.Bytes, st.PeakBytes)
	require.NoError(t, x.Check())
	require.Empty(t, keySpaces[0].lookup(t, x, 1)[0])
}
