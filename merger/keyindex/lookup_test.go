package keyindex

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

func TestLookup_FindsAllLiveRowsAscending(t *testing.T) {
	forSpaces(t, func(t *testing.T, s keySpace) {
		x := s.new(t, Options{})
		one := s.addFile(t, x, 2, 1, 2, 1, 3)
		two := s.addFile(t, x, 9, 1, 4, 2)
		require.Equal(t, [][]Loc{
			{MakeLoc(one, 0), MakeLoc(one, 2), MakeLoc(two, 0)},
			{MakeLoc(one, 1), MakeLoc(two, 2)},
			{},
			{MakeLoc(two, 1)},
			{MakeLoc(one, 3)},
		}, s.lookup(t, x, 1, 2, 5, 4, 3))
		require.NoError(t, x.SetDeleted(one, bitmapOf(0, 3)))
		require.Equal(t, [][]Loc{{MakeLoc(one, 2), MakeLoc(two, 0)}, {}}, s.lookup(t, x, 1, 3))
		require.NoError(t, x.RemoveSegment(two))
		require.Equal(t, [][]Loc{locs(one, 2), {}}, s.lookup(t, x, 1, 4))
		st := x.Stats()
		require.EqualValues(t, []int64{6, 3}, []int64{st.Hits, st.Misses})
	})
}

func TestLookup_AnswersInTheOrderOfTheSelection(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	seg := s.addFile(t, x, 1000, sequence(0, 1000)...)
	keys := s.keys(sequence(0, 1500)...)
	sel := make([]uint32, 700)
	for j := range sel {
		sel[j] = rand.Uint32N(1500)
	}
	var m Matches
	require.NoError(t, x.Lookup(keys, sel, &m))
	for j, i := range sel {
		if i < 1000 {
			require.Equal(t, locs(seg, i), m.Rows(j))
		} else {
			require.Empty(t, m.Rows(j))
		}
	}
	require.NoError(t, x.Lookup(keys, []uint32{}, &m), "an empty selection is not all keys")
	require.Equal(t, []uint32{0}, m.Start)
	require.Empty(t, m.Loc)
}

func TestLookup_KeysThatOnlyShareAHashAreKeptApart(t *testing.T) {
	for _, s := range []keySpace{keySpaces[4], keySpaces[7]} {
		t.Run(s.name, func(t *testing.T) {
			x := s.new(t, Options{})
			seg := s.addFile(t, x, 50, sequence(0, 600)...) // 200 keys a hash
			for i, rows := range s.lookup(t, x, sequence(0, 900)...) {
				if i < 600 {
					require.Equal(t, locs(seg, uint32(i)), rows)
				} else {
					require.Empty(t, rows)
				}
			}
			if s.class == types.KeyBytes {
				require.EqualValues(t, 900*200-600, x.Stats().Collisions)
			}
		})
	}
}

func TestLookup_RefusesWhileRowsAreMissing(t *testing.T) {
	s := keySpaces[0]
	x := s.new(t, Options{})
	seg, err := x.AddSegment(3)
	require.NoError(t, err)
	var m Matches
	require.ErrorIs(t, x.Lookup(s.keys(1), nil, &m), ErrIncomplete)
	require.NoError(t, x.Add(seg, 0, s.keys(1, 2)))
	require.ErrorIs(t, x.Lookup(s.keys(1), nil, &m), ErrIncomplete)
	require.ErrorIs(t, x.Check(), ErrIncomplete)
	require.NoError(t, x.Add(seg, 2, s.keys(3)))
	require.NoError(t, x.Lookup(s.keys(1), nil, &m))
	_, err = x.AddSegment(0)
	require.NoError(t, err)
	require.NoError(t, x.Lookup(s.keys(1), nil, &m), "a file without rows lacks none")
	half, err := x.AddSegment(2)
	require.NoError(t, err)
	require.NoError(t, x.RemoveSegment(half))
	require.NoError(t, x.Lookup(s.keys(1), nil, &m), "a file that went before it was read lacks none")
	require.ErrorIs(t, x.Lookup(keySpaces[3].keys(1), nil, &m), ErrInvalid)
}

func TestLookup_AgreesWithTheEncodersKeys(t *testing.T) {
	// Real keys of each class, through the encoder that also serves the merge.
	for name, columns := range map[string][]types.Type{
		"bigint":         {types.BigIntType()},
		"two bigints":    {types.BigIntType(), types.BigIntType()},
		"string, bigint": {types.StringType(), types.BigIntType()},
	} {
		t.Run(name, func(t *testing.T) {
			enc, err := types.NewKeyEncoder(columns)
			require.NoError(t, err)
			var cols []*types.Vector
			const n = 5000
			for _, c := range columns {
				v := types.NewVector(c)
				for i := range n {
					switch {
					case i%100 == 99:
						v.AppendNull()
					case v.Layout == types.LayoutBytes:
						v.AppendString("key " + string(rune('a'+i%26)))
					default:
						v.AppendInt64(int64(i / 2))
					}
				}
				cols = append(cols, v)
			}
			keys := &types.Keys{}
			enc.Append(keys, cols, 0, n)
			x, err := New(Options{Class: enc.Class(), Dir: t.TempDir() + "/keys"})
			require.NoError(t, err)
			defer x.Close()
			seg, err := x.AddSegment(n)
			require.NoError(t, err)
			require.NoError(t, x.Add(seg, 0, keys))
			require.NoError(t, x.Check())
			var m Matches
			require.NoError(t, x.Lookup(keys, nil, &m))
			for i := range n {
				want := []Loc{}
				for j := i &^ 1; j < i&^1+2 && !keys.Null.Get(i); j++ {
					if !keys.Null.Get(j) && keys.Equal(i, keys, j) {
						want = append(want, MakeLoc(seg, uint32(j)))
					}
				}
				require.Equal(t, want, append([]Loc{}, m.Rows(i)...), "row %d", i)
			}
		})
	}
}
