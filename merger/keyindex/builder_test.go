package keyindex

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// buildFiles fills an index with a Builder, one reader a file.
func buildFiles(t *testing.T, s keySpace, x *Index, expected int64, chunk int, files ...[]int) []uint32 {
	segs := make([]uint32, len(files))
	for f, ids := range files {
		var err error
		segs[f], err = x.AddSegment(uint32(len(ids)))
		require.NoError(t, err)
	}
	b, err := x.NewBuilder(expected)
	require.NoError(t, err)
	var wg sync.WaitGroup
	errs := make([]error, len(files))
	for f, ids := range files {
		wg.Go(func() {
			for from := 0; from < len(ids) && errs[f] == nil; from += chunk {
				to := min(len(ids), from+chunk)
				errs[f] = b.Add(segs[f], uint32(from), s.keys(ids[from:to]...))
			}
		})
	}
	wg.Wait()
	require.Equal(t, make([]error, len(files)), errs)
	require.NoError(t, b.Finish())
	return segs
}

func TestBuilder_MakesTheIndexThatAddMakes(t *testing.T) {
	forSpaces(t, func(t *testing.T, s keySpace) {
		files := [][]int{sequence(0, 9000), append(repeat(5, 1000), -1, 7, -1), {}, sequence(6000, 30_000), {1}, repeat(-1, 5)}
		plain := s.new(t, Options{})
		for _, ids := range files {
			s.addFile(t, plain, math.MaxInt, ids...)
		}
		for _, expected := range []int64{0, 40_000, 1_000_000} { // too low, right, too high
			x := s.new(t, Options{Seed: uint64(expected)})
			buildFiles(t, s, x, expected, 4000, files...)
			require.NoError(t, x.Check())
			require.True(t, slices.Equal(dump(plain), dump(x)))
			require.Equal(t, plain.Stats().NullRows, x.Stats().NullRows)
			require.Equal(t, s.lookup(t, plain, 1, 5, 7, -1, 8000), s.lookup(t, x, 1, 5, 7, -1, 8000))
			require.Less(t, x.Stats().Bytes, int64(40_000*24*3), "what was expected too much is given back")

			s.addFile(t, x, 100, sequence(100_000, 1000)...) // and goes on like any other
			require.NoError(t, x.Check())
		}
	})
}

func TestBuilder_DeletedRowsGetNoEntry(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	seg, err := x.AddSegment(50_000)
	require.NoError(t, err)
	dv := bitmapOf(3, 49_999)
	dv.AddRange(100, 40_000)
	require.NoError(t, x.SetDeleted(seg, dv))
	b, err := x.NewBuilder(50_000)
	require.NoError(t, err)
	require.NoError(t, b.Add(seg, 0, s.keys(sequence(0, 50_000)...)))
	require.NoError(t, b.Finish())
	require.EqualValues(t, 50_000-dv.GetCardinality(), x.Stats().Entries)
	require.Zero(t, x.Stats().Stale)
	require.NoError(t, x.Check())
}

func TestBuilder_OwnsTheIndexUntilFinish(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	seg, err := x.AddSegment(2)
	require.NoError(t, err)
	b, err := x.NewBuilder(2)
	require.NoError(t, err)
	var m Matches
	require.ErrorIs(t, x.Lookup(s.keys(1), nil, &m), ErrInvalid)
	require.ErrorIs(t, x.SetDeleted(seg, bitmapOf(1)), ErrInvalid)
	_, err = x.NewBuilder(2)
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, b.Add(seg, 0, s.keys(1, 2)))
	require.NoError(t, b.Finish())
	require.ErrorIs(t, b.Finish(), ErrInvalid)
	require.ErrorIs(t, b.Add(seg, 0, s.keys(1)), ErrInvalid)
	require.Len(t, s.lookup(t, x, 1)[0], 1, "an ended builder does no harm")
	_, err = x.NewBuilder(2)
	require.ErrorIs(t, err, ErrInvalid, "the index has rows")
}

func TestBuilder_WithoutEnoughMemory(t *testing.T) {
	s := keySpaces[0]
	const n = 200_000
	need := Estimate(types.Key64, n)

	t.Run("a hint that is too high is refused and a smaller one works", func(t *testing.T) {
		x := s.new(t, Options{MaxBytes: need})
		before := x.Stats().Bytes
		_, err := x.NewBuilder(10 * n)
		require.ErrorIs(t, err, ErrMemory)
		require.NotErrorIs(t, err, ErrLost)
		require.Equal(t, before, x.Stats().Bytes)
		buildFiles(t, s, x, n, 10_000, sequence(0, n))
		require.NoError(t, x.Check())
	})
	for name, limit := range map[string]int64{"while rows arrive": n * 12, "in Finish": n * 20} {
		t.Run(name, func(t *testing.T) {
			x := s.new(t, Options{MaxBytes: limit})
			seg, err := x.AddSegment(n)
			require.NoError(t, err)
			b, err := x.NewBuilder(0)
			require.NoError(t, err)
			for from := 0; from < n && err == nil; from += 10_000 {
				err = b.Add(seg, uint32(from), s.keys(sequence(from, 10_000)...))
			}
			require.Equal(t, name == "in Finish", err == nil)
			err = b.Finish()
			require.ErrorIs(t, err, ErrMemory)
			require.ErrorIs(t, err, ErrLost)
			var m Matches
			require.ErrorIs(t, x.Lookup(s.keys(1), nil, &m), ErrLost)
			require.LessOrEqual(t, x.Stats().PeakBytes, limit)
		})
	}
}

func TestBuilder_ACallAgainstTheContractLosesTheBuild(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	seg, err := x.AddSegment(9)
	require.NoError(t, err)
	b, err := x.NewBuilder(9)
	require.NoError(t, err)
	require.ErrorIs(t, b.Add(seg, 3, s.keys(1)), ErrInvalid)
	require.ErrorIs(t, b.Add(seg, 0, s.keys(1)), ErrLost)
	require.ErrorIs(t, b.Finish(), ErrLost)
}

func TestBuilder_AfterCloseFails(t *testing.T) {
	s := keySpaces[0]
	x := s.open(t, t.TempDir(), Options{})
	seg, err := x.AddSegment(9)
	require.NoError(t, err)
	b, err := x.NewBuilder(9)
	require.NoError(t, err)
	require.NoError(t, x.Close())
	require.ErrorIs(t, b.Add(seg, 0, s.keys(1)), ErrClosed)
	require.ErrorIs(t, b.Finish(), ErrClosed)
}
