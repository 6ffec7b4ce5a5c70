package keyindex

import (
	"math"
	"math/bits"
	"runtime"

	"applier/storage/types"
)

// The trade between memory and speed. A shard grows when it would be fuller than
// maxLoad, to growth times its size. The sizes of different shards lie at
// different phases of that cycle, so at any time the index as a whole has the
// mean load maxLoad*ln(growth)/(growth-1) = 0.765: 20.9 bytes a 16-byte entry.
const (
	maxLoad = 0.82
	growth  = 1.2
	// minHomes is the smallest size of a shard's home range.
	minHomes = 96
	// tailSlots are kept free behind the home range for the last cluster.
	tailSlots = 16
	// shardKeys is the number of keys for which a shard is meant: small enough
	// that growing one is a matter of milliseconds, large enough for huge pages.
	shardKeys = 512 << 10
	minBits   = 5
	maxBits   = 12
	// buildWorkers bounds the goroutines of Builder.Finish.
	buildWorkers = 8
)

// entryWords is the number of 8-byte words of an entry, 0 for no such class.
func entryWords(c types.KeyClass) int {
	switch c {
	case types.Key64, types.KeyBytes:
		return 2 // hash, loc
	case types.Key128:
		return 3 // hash, low, loc
	}
	return 0
}

func shardBits(keys int64) uint {
	if keys <= 0 {
		return minBits
	}
	return min(max(uint(bits.Len64(uint64(keys-1)/shardKeys)), minBits), maxBits)
}

// phase is the place of a shard in the growth cycle, in [0, 1): a golden-ratio
// sequence, which spreads any number of shards evenly, shifted by the seed.
func phase(seed uint64, shard int) float64 {
	const golden = 0x9e3779b97f4a7c15
	return float64((types.Mix64(seed)+uint64(shard)*golden)>>11) / (1 << 53)
}

// homesFor is the home range for n entries: the smallest minHomes*growth^(j+phase),
// j whole, that is at most maxLoad full.
func homesFor(n int, phase float64) uint64 {
	need := float64(n) / maxLoad
	j := math.Ceil(math.Log(need/minHomes)/math.Log(growth) - phase)
	if n == 0 || j < 0 {
		j = 0
	}
	homes := uint64(math.Ceil(minHomes * math.Pow(growth, j+phase)))
	return max(homes, uint64(math.Ceil(need))+1) // rounding of Log, Pow and need
}

// Estimate returns the most memory outside the Go heap that an index of that
// many distinct keys needs, including what a Builder needs while it works: what
// to compare with a budget before building. It covers tables with few rows a
// key; keys with a large part of all rows each can need half as much again.
func Estimate(class types.KeyClass, keys int64) int64 {
	shards := float64(int64(1) << shardBits(keys))
	entry := float64(8 * entryWords(class))
	mean := float64(max(keys, 0)) / shards
	// Shards differ by chance: six standard deviations for the largest one.
	largest := mean + 6*math.Sqrt(mean)
	workers := float64(min(runtime.GOMAXPROCS(0), buildWorkers))
	steady := float64(max(keys, 0)) * entry / maxLoad * (growth - 1) / math.Log(growth) * 1.01
	fixed := shards * (minHomes*growth*entry + tailSlots*entry + float64(pageSize))
	return int64(steady + fixed + workers*(largest*entry+float64(pageSize)))
}
