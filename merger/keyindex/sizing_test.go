package keyindex

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/types"
)

// The promises on memory, in bytes a key, for tables of a million keys and more.
var memoryGates = map[types.KeyClass]float64{types.Key64: 24, types.Key128: 34, types.KeyBytes: 24}

func TestHomesFor_HoldsTheEntriesAndGrowsInSteps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 1000), rapid.IntRange(0, 1<<34)).Draw(rt, "n")
		ph := phase(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(0, 4095).Draw(rt, "shard"))
		require.True(rt, ph >= 0 && ph < 1)
		homes := homesFor(n, ph)
		require.LessOrEqual(rt, float64(n), float64(homes)*maxLoad+1e-6*float64(homes))
		var s shard
		s.setHomes(homes)
		require.LessOrEqual(rt, n, s.limit)
		if float64(homes) > minHomes*growth+1 {
			require.Greater(rt, float64(n+2), float64(homes)/growth*maxLoad-2, "no larger than needed")
		}
	})
}

// TestSizing_AverageMemoryStaysUnderTheGateAtEverySize adds up what the shards
// of an index take at each of many sizes up to two billion keys, with the
// scatter that chance gives the shards. Sizes lie closer together than the steps
// by which shards grow, so "right after growth" is among them.
func TestSizing_AverageMemoryStaysUnderTheGateAtEverySize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for class, gate := range memoryGates {
		for _, expected := range []int64{0, 1e7, 1e8, 5e8} {
			worst := 0.0
			for keys := max(1e6, float64(expected)/2); keys <= max(2e6, float64(expected)*4); keys *= 1.02 {
				shards := 1 << shardBits(expected)
				sum := 0
				for i := range shards {
					mean := keys / float64(shards)
					n := int(mean + math.Sqrt(mean)*rng.NormFloat64())
					slots := int(homesFor(n, phase(7, i))) + tailSlots
					sum += (slots*8*entryWords(class) + pageSize - 1) / pageSize * pageSize
				}
				worst = max(worst, float64(sum)/keys)
			}
			t.Logf("class %d expecting %d keys: %.2f bytes a key at worst", class, expected, worst)
			require.Less(t, worst, gate, "class %d expecting %d", class, expected)
		}
	}
}

func TestIndex_MemoryPerKeyStaysUnderTheGateWhileItGrows(t *testing.T) {
	for class, gate := range memoryGates {
		t.Run(fmt.Sprint(class), func(t *testing.T) {
			x, err := New(Options{Class: class, Dir: t.TempDir() + "/keys"})
			require.NoError(t, err)
			defer x.Close()
			var bk benchKeys
			const first, chunk = 1_000_000, 20_000
			seg, err := x.AddSegment(first)
			require.NoError(t, err)
			b, err := x.NewBuilder(first)
			require.NoError(t, err)
			require.NoError(t, b.Add(seg, 0, bk.fill(class, first, func(i int) uint64 { return uint64(i) })))
			require.NoError(t, b.Finish())
			for at := first; at < 1_300_000; at += chunk {
				seg, err := x.AddSegment(chunk)
				require.NoError(t, err)
				require.NoError(t, x.Add(seg, 0, bk.fill(class, chunk, func(i int) uint64 { return uint64(at + i) })))
				st := x.Stats()
				require.Less(t, float64(st.PeakBytes)/float64(st.Entries), gate, "at %d keys", at)
			}
			require.NoError(t, x.Check())
		})
	}
}

func TestEstimate_CoversABuildAndIsNotFarAbove(t *testing.T) {
	for _, class := range []types.KeyClass{types.Key64, types.Key128, types.KeyBytes} {
		for _, n := range []int{0, 1, 1000, 50_000, 1_000_000} {
			limit := Estimate(class, int64(n))
			x, err := New(Options{Class: class, Dir: t.TempDir() + "/keys", ExpectedKeys: int64(n), MaxBytes: limit})
			require.NoError(t, err)
			seg, err := x.AddSegment(uint32(n))
			require.NoError(t, err)
			b, err := x.NewBuilder(int64(n))
			require.NoError(t, err)
			var bk benchKeys
			require.NoError(t, b.Add(seg, 0, bk.fill(class, n, func(i int) uint64 { return uint64(i) })))
			require.NoError(t, b.Finish())
			st := x.Stats()
			require.LessOrEqual(t, st.PeakBytes, limit)
			if n >= 1_000_000 {
				require.Less(t, float64(limit), 1.15*float64(st.PeakBytes))
			}
			require.NoError(t, x.Close())
		}
	}
	require.Positive(t, Estimate(types.Key64, -1))
}

func TestShardBits_AimAtTheSizeOfAShard(t *testing.T) {
	require.EqualValues(t, minBits, shardBits(0))
	require.EqualValues(t, minBits, shardBits(-5))
	require.EqualValues(t, minBits, shardBits(1_000_000))
	require.EqualValues(t, maxBits, shardBits(math.MaxInt64))
	for keys := int64(shardKeys << minBits); keys < shardKeys<<maxBits; keys = keys*3/2 + 1 {
		per := float64(keys) / float64(int64(1)<<shardBits(keys))
		require.True(t, per > shardKeys/2 && per <= shardKeys, "%d keys, %f a shard", keys, per)
	}
}
