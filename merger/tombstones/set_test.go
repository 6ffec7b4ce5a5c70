package tombstones

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type modelDelete struct {
	order string
	at    int64
}

// contents returns a set as a map and checks that every entry is found.
func contents(t require.TestingT, s *Set) map[string]modelDelete {
	out := map[string]modelDelete{}
	require.NoError(t, s.Each(func(key, order []byte, at int64) error {
		require.NotContains(t, out, string(key))
		out[string(key)] = modelDelete{string(order), at}
		found, since, ok := s.Find(key)
		require.True(t, ok)
		require.Equal(t, order, found)
		require.Equal(t, at, since)
		return nil
	}))
	require.Equal(t, len(out), s.Len())
	return out
}

// A set is a map, whatever was put, replaced, removed and expired.
func TestSet_RapidIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		m := map[string]modelDelete{}
		clock := int64(1000)
		keys := rapid.IntRange(1, 500).Draw(t, "keys")
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, len(m), s.Len())
				_, _, ok := s.Find([]byte("never"))
				require.False(t, ok)
			},
			"put": func(t *rapid.T) {
				for range rapid.IntRange(1, 60).Draw(t, "n") {
					k := fmt.Sprint(rapid.IntRange(0, keys).Draw(t, "key"))
					clock += rapid.Int64Range(0, 3).Draw(t, "later")
					m[k] = modelDelete{fmt.Sprint("o", clock), clock}
					s.Put([]byte(k), []byte(m[k].order), clock)
				}
			},
			"remove": func(t *rapid.T) {
				for range rapid.IntRange(1, 60).Draw(t, "n") {
					k := fmt.Sprint(rapid.IntRange(0, keys).Draw(t, "key"))
					delete(m, k)
					s.Remove([]byte(k))
				}
			},
			"expire": func(t *rapid.T) {
				before := clock - rapid.Int64Range(0, 100).Draw(t, "age")
				s.Expire(before)
				for k, d := range m {
					if d.at < before {
						delete(m, k)
					}
				}
				require.Equal(t, m, contents(t, &s))
			},
		})
		require.Equal(t, m, contents(t, &s))
	})
}

func TestSet_ForgetsWhatItNoLongerHolds(t *testing.T) {
	var s Set
	for i := range int64(200_000) {
		s.Put(fmt.Append(nil, i%1000), []byte("order"), i)
	}
	require.Equal(t, 1000, s.Len())
	require.Less(t, s.Bytes(), int64(400_000), "memory is that of what lives")
	for i := range int64(100_000) {
		s.Put(fmt.Append(nil, "x", i), []byte("order"), i)
	}
	grown := s.Bytes()
	require.Less(t, grown, int64(100_000*120))
	s.Expire(1 << 40)
	require.Zero(t, s.Len())
	for i := range int64(100) {
		s.Put(fmt.Append(nil, i), nil, i)
	}
	require.Less(t, s.Bytes(), grown/100)
}

func TestSet_AnYoungerOneInFrontHoldsExpiryBack(t *testing.T) {
	var s Set
	s.Put([]byte("a"), nil, 10)
	s.Put([]byte("b"), nil, 5) // the clock was set back
	s.Expire(8)
	require.Equal(t, 2, s.Len())
	s.Expire(11)
	require.Zero(t, s.Len())
}

func TestDelta_AppliesInItsOrder(t *testing.T) {
	var d Delta
	d.Put([]byte("a"), []byte("1"), 5)
	d.Put([]byte("b"), nil, 6)
	d.Remove([]byte("a"))
	d.Remove([]byte("c"))
	d.Put([]byte("a"), []byte("2"), 7)
	d.Put(nil, []byte("empty key"), 8)
	require.Equal(t, 6, d.Len())
	var s Set
	s.Put([]byte("c"), []byte("0"), 1)
	before := s.Bytes()
	s.Apply(&d)
	require.Equal(t, map[string]modelDelete{"a": {"2", 7}, "b": {"", 6}, "": {"empty key", 8}}, contents(t, &s))
	require.LessOrEqual(t, s.Bytes(), before+2*d.Bytes())
	var keys []string
	require.NoError(t, s.Each(func(key, _ []byte, _ int64) error { keys = append(keys, string(key)); return nil }))
	require.True(t, slices.Equal(keys, []string{"b", "a", ""}), "in the order in which they were put: %v", keys)
}
