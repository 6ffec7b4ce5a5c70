package keyindex

import (
	"math"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
)

func TestSetDeleted_RowsThatCameBackLoseTheIndex(t *testing.T) {
	for name, after := range map[string]*roaring.Bitmap{
		"one of many": bitmapOf(1, 200),
		"the last":    bitmapOf(1, 2),
		"all":         nil,
		"others":      bitmapOf(3, 4, 5),
		"empty":       bitmapOf(),
	} {
		t.Run(name, func(t *testing.T) {
			s := keySpaces[0]
			x := s.new(t, Options{})
			seg := s.addFile(t, x, 1000, sequence(0, 300)...)
			require.NoError(t, x.SetDeleted(seg, bitmapOf(1, 2, 200)))
			require.ErrorIs(t, x.SetDeleted(seg, after), ErrLost)

			var m Matches
			_, err := x.AddSegment(1)
			require.ErrorIs(t, err, ErrLost)
			require.ErrorIs(t, x.Lookup(s.keys(5), nil, &m), ErrLost)
			require.ErrorIs(t, x.Add(seg, 0, s.keys(5)), ErrLost)
			require.ErrorIs(t, x.RemoveSegment(seg), ErrLost)
			require.ErrorIs(t, x.SetDeleted(seg, bitmapOf(1, 2, 200)), ErrLost)
			require.ErrorIs(t, x.Check(), ErrLost)
			_, err = x.Sweep(0)
			require.ErrorIs(t, err, ErrLost)
			_, err = x.NewBuilder(1)
			require.ErrorIs(t, err, ErrLost)
		})
	}
}

func TestSetDeleted_AcceptsTheSameAgainAndEveryKindOfContainer(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	const n = 200_000
	seg := s.addFile(t, x, math.MaxInt, sequence(0, n)...)
	dv := roaring.New()
	require.NoError(t, x.SetDeleted(seg, nil))
	dv.Add(70_000)
	for _, change := range []func(){
		func() {},
		func() { dv.AddRange(0, 3000) },
		func() {
			for i := uint32(65_536); i < 131_072; i += 2 {
				dv.Add(i) // dense
			}
		},
		func() { dv.AddRange(131_072, 190_000); dv.RunOptimize() },
		func() { dv.AddRange(0, n) },
	} {
		change()
		require.NoError(t, x.SetDeleted(seg, dv))
		require.NoError(t, x.Check())
		require.EqualValues(t, n-dv.GetCardinality(), x.Stats().Live)
		for id, rows := range s.lookup(t, x, sequence(0, n)...) {
			if dv.Contains(uint32(id)) != (len(rows) == 0) {
				t.Fatalf("row %d: %v", id, rows)
			}
		}
	}
	require.EqualValues(t, n/64*8, x.Stats().HeapBytes)
}

func TestSetDeleted_KeepsNoReferenceToTheVector(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	seg := s.addFile(t, x, 10, 1, 2, 3)
	dv := bitmapOf(1)
	require.NoError(t, x.SetDeleted(seg, dv))
	dv.Add(0)
	require.Len(t, s.lookup(t, x, 1)[0], 1)
	require.NoError(t, x.Check())
}

func TestSegments_NullRowsThatAreDeletedCountOnce(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	ids := sequence(0, 150)
	ids[3], ids[140] = -1, -1
	seg := s.addFile(t, x, 70, ids...)
	require.NoError(t, x.SetDeleted(seg, bitmapOf(3, 5)))
	require.NoError(t, x.Check())
	st := x.Stats()
	require.EqualValues(t, []int64{148, 147, 1, 2}, []int64{st.Entries, st.Live, st.Stale, st.NullRows})
}

func TestSegments_ADaemonThatAddsFilesForYearsStaysSmall(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	keep := s.addFile(t, x, 10, 1, 2, 3)
	for i := range 5000 {
		seg := s.addFile(t, x, 10, 1000, 2000+i)
		require.EqualValues(t, i+2, seg, "numbers ascend")
		require.NoError(t, x.RemoveSegment(seg))
	}
	blocks := 0
	for _, b := range x.segs.blocks {
		if b != nil {
			blocks++
		}
	}
	require.LessOrEqual(t, blocks, 2)
	require.Equal(t, [][]Loc{locs(keep, 0), {}}, s.lookup(t, x, 1, 1000))
	_, err := x.Sweep(0)
	require.NoError(t, err)
	require.EqualValues(t, 3, x.Stats().Entries)
	require.NoError(t, x.Check())
}

func TestSegments_NumbersRunOut(t *testing.T) {
	x := keySpaces[0].new(t, Options{})
	x.segs.next = math.MaxUint32 + 1
	_, err := x.AddSegment(1)
	require.ErrorIs(t, err, ErrInvalid)
}
