package keyindex

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

func TestAdd_RefusesCallsAgainstTheContractAndChangesNothing(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	seg, err := x.AddSegment(10)
	require.NoError(t, err)
	gone, err := x.AddSegment(10)
	require.NoError(t, err)
	require.NoError(t, x.RemoveSegment(gone))
	require.NoError(t, x.Add(seg, 0, s.keys(1, 2, 3)))
	for name, call := range map[string]func() error{
		"segment 0":         func() error { return x.Add(0, 0, s.keys(1)) },
		"unknown segment":   func() error { return x.Add(77, 0, s.keys(1)) },
		"far segment":       func() error { return x.Add(math.MaxUint32, 0, s.keys(1)) },
		"removed segment":   func() error { return x.Add(gone, 0, s.keys(1)) },
		"a gap":             func() error { return x.Add(seg, 4, s.keys(1)) },
		"rows again":        func() error { return x.Add(seg, 2, s.keys(1)) },
		"too many rows":     func() error { return x.Add(seg, 3, s.keys(sequence(0, 8)...)) },
		"another class":     func() error { return x.Add(seg, 3, keySpaces[3].keys(1)) },
		"remove unknown":    func() error { return x.RemoveSegment(gone) },
		"delete in unknown": func() error { return x.SetDeleted(gone, bitmapOf(1)) },
		"delete beyond":     func() error { return x.SetDeleted(seg, bitmapOf(1, 10)) },
	} {
		before := dump(x)
		require.ErrorIs(t, call(), ErrInvalid, name)
		require.Equal(t, before, dump(x), name)
	}
	require.NoError(t, x.Add(seg, 3, s.keys(sequence(3, 7)...)), "the right call still works")
	require.NoError(t, x.Check())
}

func TestAdd_RefusedForMemoryLeavesTheIndexAsItWas(t *testing.T) {
	forSomeSpaces(t, func(t *testing.T, s keySpace) {
		x := s.new(t, Options{MaxBytes: 1 << 20})
		var seg uint32
		var err error
		at, before := 0, int64(0)
		for _, chunk := range []int{12_000, 2000, 60, 1} { // in one pass over a shard, row by row, both
			for {
				if seg, err = x.AddSegment(uint32(chunk)); err != nil {
					break
				}
				before = x.entries
				if err = x.Add(seg, 0, s.keys(sequence(at, chunk)...)); err != nil {
					break
				}
				at += chunk
			}
			require.ErrorIs(t, err, ErrMemory)
			require.NotErrorIs(t, err, ErrLost)
			require.Equal(t, before, x.Stats().Entries)
			words := dump(x)
			for i := x.w - 1; i < len(words); i += x.w {
				if Loc(words[i]).Segment() == seg {
					t.Fatalf("a row of a refused chunk of %d rows", chunk)
				}
			}
			var m Matches
			require.ErrorIs(t, x.Lookup(s.keys(1), nil, &m), ErrIncomplete)
			require.NoError(t, x.RemoveSegment(seg))
			require.NoError(t, x.Check())
			if at > 2 {
				require.Equal(t, locs(1, 0, 1), []Loc{s.lookup(t, x, 0)[0][0], s.lookup(t, x, 1)[0][0]})
			}
		}
		require.LessOrEqual(t, x.Stats().PeakBytes, int64(1<<20))
		require.Greater(t, x.Stats().PeakBytes, int64(700<<10), "the limit is used")

		// Space comes back: half of the rows die, the same rows fit again.
		require.NoError(t, x.RemoveSegment(1))
		_, err = x.Sweep(0)
		require.NoError(t, err)
		s.addFile(t, x, 1000, sequence(0, 8000)...)
		require.NoError(t, x.Check())
	})
}

func TestAdd_UpsertsTakeOverTheSlotsOfTheRowsTheyReplace(t *testing.T) {
	forSpaces(t, func(t *testing.T, s keySpace) {
		if s.name == "key128 colliding" || s.name == "bytes colliding" {
			t.SkipNow() // one run for all keys: live rows before stale ones keep them
		}
		x := s.new(t, Options{})
		const n = 2000
		seg := s.addFile(t, x, n, sequence(0, n)...)
		before := x.Stats()
		for range 5 {
			all := bitmapOf()
			all.AddRange(0, n)
			require.NoError(t, x.SetDeleted(seg, all))
			require.Equal(t, 1.0, x.Stats().StaleRatio)
			seg = s.addFile(t, x, 30, sequence(0, n)...)
			require.Zero(t, x.Stats().Stale)
		}
		after := x.Stats()
		require.Equal(t, before.Entries, after.Entries)
		require.Equal(t, before.Bytes, after.Bytes)
		require.EqualValues(t, 5*n, after.Reclaimed)
		require.Equal(t, locs(seg, 7), s.lookup(t, x, 7)[0])
	})
}

func TestAdd_ReclaimsAllOldRowsOfAKeyAtOnce(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	one := s.addFile(t, x, 100, append(repeat(5, 900), 6)...)
	two := s.addFile(t, x, 100, 5, 7)
	all := bitmapOf()
	all.AddRange(0, 900)
	require.NoError(t, x.SetDeleted(one, all))
	three := s.addFile(t, x, 1, 5)
	require.Equal(t, [][]Loc{{MakeLoc(two, 0), MakeLoc(three, 0)}, locs(one, 900), locs(two, 1)}, s.lookup(t, x, 5, 6, 7))
	require.EqualValues(t, 4, x.Stats().Entries)
	require.EqualValues(t, 900, x.Stats().Reclaimed)
	require.NoError(t, x.Check())
}

func TestAdd_ManyRowsOfOneKeyDoNotSlowDownItsNeighbours(t *testing.T) {
	// Work is counted, not timed: how many slots a lookup reads and how many
	// entries all insertions moved.
	s := keySpace{"", types.Key64, func(id uint64) uint64 {
		if id == 0 {
			return 1<<50 + 1
		}
		return id << 40 // all in shard 0, the heavy key among them
	}}
	x := s.new(t, Options{})
	const heavy = 100_000
	s.addFile(t, x, math.MaxInt, sequence(1, 20_000)...)
	for range 10 {
		s.addFile(t, x, 1000, repeat(0, heavy/10)...)
	}
	sh := &x.shards[0]
	displaced := 0
	for id := 1; id <= 20_000; id++ {
		hash := s.hash(uint64(id))
		probes := 0
		from, to := sh.home(hash), sh.find(hash, 0)
		require.True(t, sh.sameKey(to, hash, 0))
		for lo, hi := from, to; lo < hi; probes++ { // what leaping costs at most
			lo = (lo + hi + 1) / 2
		}
		if to-from > 1000 {
			displaced++
		}
		require.Less(t, probes, 20)
	}
	require.Greater(t, displaced, 1000, "the case is the one meant")
	require.Equal(t, heavy, len(s.lookup(t, x, 0)[0]))
	require.NoError(t, x.Check())
}

func TestAdd_LongRunsAreMergedNotShiftedRowByRow(t *testing.T) {
	s := keySpaces[1] // everything in one cluster: each insertion moves all behind it
	x := s.new(t, Options{})
	s.addFile(t, x, math.MaxInt, sequence(1000, 50_000)...)
	seg, err := x.AddSegment(1000)
	require.NoError(t, err)
	keys := s.keys(sequence(0, 1000)...)
	require.Less(t, 1000, x.shards[0].n/mergePart, "too few rows to be merged for their number alone")
	require.NoError(t, x.Add(seg, 0, keys))
	require.Less(t, x.count.moved, int64(4*x.shards[0].n), "not a thousand times the shard")
	require.NoError(t, x.Check())
	require.Equal(t, locs(seg, 3), s.lookup(t, x, 3)[0])
}

func TestAdd_SkipsNullKeysAndRowsAlreadyDeleted(t *testing.T) {
	forSpaces(t, func(t *testing.T, s keySpace) {
		x := s.new(t, Options{})
		seg, err := x.AddSegment(6)
		require.NoError(t, err)
		require.NoError(t, x.SetDeleted(seg, bitmapOf(1, 4)))
		require.NoError(t, x.Add(seg, 0, s.keys(10, 11, -1)))
		require.NoError(t, x.Add(seg, 3, s.keys(-1, -1, 11)))
		require.Equal(t, [][]Loc{locs(seg, 0), locs(seg, 5), {}, {}}, s.lookup(t, x, 10, 11, -1, 12))
		st := x.Stats()
		require.EqualValues(t, []int64{2, 2, 0, 3}, []int64{st.Entries, st.Live, st.Stale, st.NullRows})
		require.NoError(t, x.Check())
		require.NoError(t, x.RemoveSegment(seg))
		require.Zero(t, x.Stats().NullRows)
	})
}

func TestAdd_GrowthSweepsFirstIfMuchIsStale(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	one := s.addFile(t, x, 1000, sequence(0, 60_000)...)
	require.NoError(t, x.RemoveSegment(one))
	before := x.Stats()
	s.addFile(t, x, 500, sequence(100_000, 50_000)...)
	require.Equal(t, before.Bytes, x.Stats().Bytes)
	require.NoError(t, x.Check())
}

func TestAdd_ABulkDropsWhatIsStaleOnItsWay(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	one := s.addFile(t, x, math.MaxInt, sequence(0, 20_000)...)
	dv := bitmapOf()
	dv.AddRange(0, 15_000)
	require.NoError(t, x.SetDeleted(one, dv))
	s.addFile(t, x, math.MaxInt, sequence(50_000, 20_000)...)
	st := x.Stats()
	require.EqualValues(t, []int64{25_000, 0, 15_000}, []int64{st.Entries, st.Stale, st.Reclaimed})
	require.NoError(t, x.Check())
}

func TestIndex_AnswersDoNotDependOnSeedOrChunks(t *testing.T) {
	forSomeSpaces(t, func(t *testing.T, s keySpace) {
		var first []uint64
		for _, o := range []struct {
			seed     uint64
			chunk    int
			expected int64
		}{{0, 1, 0}, {0, 1, 0}, {9, 1, 0}, {1 << 60, 333, 0}, {5, math.MaxInt, 0}, {5, 333, 300 << 20}} {
			x := s.open(t, t.TempDir(), Options{Seed: o.seed, ExpectedKeys: o.expected})
			s.addFile(t, x, o.chunk, sequence(0, 3000)...)
			s.addFile(t, x, o.chunk, append(repeat(7, 200), sequence(2000, 3000)...)...)
			got := dump(x)
			if first == nil {
				first = got
			}
			require.True(t, slices.Equal(first, got))
			for i := x.w; i < len(got); i += x.w {
				require.True(t, lessEntry(got[i-x.w:i], got[i:i+x.w]), "a dump is in hash order")
			}
			require.NoError(t, x.Close())
		}
	})
}

func TestIndex_ShardsDoNotGrowTogether(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{Seed: 3})
	const chunk = 100
	s.addFile(t, x, math.MaxInt, sequence(0, 50_000)...)
	last, most := x.Stats().Growths, int64(0)
	for at := 50_000; at < 100_000; at += chunk {
		s.addFile(t, x, chunk, sequence(at, chunk)...)
		now := x.Stats().Growths
		most = max(most, now-last)
		last = now
	}
	require.Greater(t, last, int64(4*len(x.shards)/2), "they did grow")
	require.LessOrEqual(t, most, int64(4), "within %d rows of 50,000 and more", chunk)
}

func TestMakeLoc_RoundTrips(t *testing.T) {
	l := MakeLoc(math.MaxUint32, 12)
	require.EqualValues(t, math.MaxUint32, l.Segment())
	require.EqualValues(t, 12, l.Pos())
	require.Less(t, MakeLoc(1, math.MaxUint32), MakeLoc(2, 0))
}
