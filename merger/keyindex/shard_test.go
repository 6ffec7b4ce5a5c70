package keyindex

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// newShard returns a lone shard in an arena of its own; all hashes are its.
func newShard(t require.TestingT, w int) (*arena, *shard) {
	mem, err := newArena(1, 1<<30)
	require.NoError(t, err)
	s := &shard{w: w}
	s.setHomes(homesFor(0, 0))
	require.NoError(t, mem.resize(s, int(s.homes)+tailSlots))
	return mem, s
}

// contents returns the entries of a shard after checking its rules.
func contents(t require.TestingT, s *shard) [][3]uint64 {
	var out [][3]uint64
	next := 0
	for slot := range s.slots() {
		e := s.t[slot*s.w : slot*s.w+s.w]
		if !s.used(slot) {
			if e[0] != 0 || e[1] != 0 {
				require.Fail(t, "garbage in an empty slot", "slot %d", slot)
			}
			continue
		}
		if slot != max(s.home(e[0]), next) {
			require.Fail(t, "entry out of place", "slot %d", slot)
		}
		next = slot + 1
		out = append(out, [3]uint64{e[0], e[1], e[s.w-1]})
	}
	require.Equal(t, len(out), s.n)
	require.LessOrEqual(t, next, s.end)
	require.Less(t, s.end, s.slots())
	require.GreaterOrEqual(t, s.slots(), int(s.homes)+tailSlots)
	require.True(t, slices.IsSortedFunc(out, compareEntries), "order")
	return out
}

func compareEntries(a, b [3]uint64) int { return slices.Compare(a[:], b[:]) }

// drawEntry draws entries that crowd: few hashes, at the ends of the range too.
func drawEntry(w int) *rapid.Generator[[3]uint64] {
	return rapid.Custom(func(t *rapid.T) [3]uint64 {
		h := rapid.OneOf(
			rapid.Uint64(),
			rapid.Uint64Range(0, 3),
			rapid.Map(rapid.Uint64Range(0, 3), func(x uint64) uint64 { return ^x }),
			rapid.Map(rapid.Uint64Range(0, 63), func(x uint64) uint64 { return x << 58 }),
		).Draw(t, "hash")
		loc := rapid.Uint64Range(1, 500).Draw(t, "loc")
		if w == 2 {
			return [3]uint64{h, loc, loc}
		}
		return [3]uint64{h, rapid.Uint64Range(0, 2).Draw(t, "low"), loc}
	})
}

func flat(w int, es [][3]uint64) []uint64 {
	var out []uint64
	for _, e := range es {
		if w == 2 {
			out = append(out, e[0], e[2])
		} else {
			out = append(out, e[:]...)
		}
	}
	return out
}

func sortedSet(es [][3]uint64) [][3]uint64 {
	slices.SortFunc(es, compareEntries)
	return slices.Compact(es)
}

func TestShard_KeepsItsRulesUnderInsertRemoveAndReshape(t *testing.T) {
	for _, w := range []int{2, 3} {
		rapid.Check(t, func(rt *rapid.T) {
			mem, s := newShard(rt, w)
			defer mem.close()
			var want [][3]uint64
			insert := func(e [3]uint64) {
				at, found := slices.BinarySearchFunc(want, e, compareEntries)
				if found {
					return
				}
				want = slices.Insert(want, at, e)
				if s.n+1 > s.limit {
					_, err := s.reshape(mem, change{extra: 1})
					require.NoError(rt, err)
				}
				if s.end+2 > s.slots() {
					require.NoError(rt, mem.resize(s, s.end+2+tailSlots))
				}
				s.insertAt(s.seek(s.find(e[0], e[1]), e[0], e[1], e[2]), e[0], e[1], Loc(e[2]))
			}
			rt.Repeat(map[string]func(*rapid.T){
				"insert": func(rt *rapid.T) {
					for _, e := range rapid.SliceOf(drawEntry(w)).Draw(rt, "entries") {
						insert(e)
					}
				},
				"insert many of one key": func(rt *rapid.T) {
					e := drawEntry(w).Draw(rt, "entry")
					for i := range rapid.Uint64Range(1, 200).Draw(rt, "n") {
						loc := 1000 + i
						if w == 2 {
							insert([3]uint64{e[0], loc, loc})
						} else {
							insert([3]uint64{e[0], e[1], loc})
						}
					}
				},
				"merge": func(rt *rapid.T) {
					add := sortedSet(rapid.SliceOf(drawEntry(w)).Draw(rt, "entries"))
					add = slices.DeleteFunc(add, func(e [3]uint64) bool {
						_, found := slices.BinarySearchFunc(want, e, compareEntries)
						return found
					})
					want = sortedSet(append(want, add...))
					_, err := s.reshape(mem, change{add: flat(w, add)})
					require.NoError(rt, err)
				},
				"remove": func(rt *rapid.T) {
					if len(want) == 0 {
						return
					}
					// Neighbours in order need not be neighbours in the array.
					at := rapid.IntRange(0, len(want)-1).Draw(rt, "at")
					slot := s.seek(s.find(want[at][0], want[at][1]), want[at][0], want[at][1], want[at][2])
					n := 1
					for most := rapid.IntRange(1, 30).Draw(rt, "most"); n < most && s.used(slot+n); n++ {
					}
					s.remove(slot, slot+n)
					want = slices.Delete(want, at, at+n)
				},
				"drop": func(rt *rapid.T) {
					odd := rapid.Uint64Range(0, 1).Draw(rt, "odd")
					shrink := rapid.Bool().Draw(rt, "shrink")
					before := len(want)
					want = slices.DeleteFunc(want, func(e [3]uint64) bool { return e[2]%2 == odd })
					dropped, err := s.reshape(mem, change{keep: func(l Loc) bool { return uint64(l)%2 != odd }, shrink: shrink})
					require.NoError(rt, err)
					require.Equal(rt, before-len(want), dropped)
				},
				"": func(rt *rapid.T) {
					if got := contents(rt, s); !slices.Equal(want, got) {
						require.Equal(rt, want, got)
					}
					require.LessOrEqual(rt, s.n, s.limit)
				},
			})
		})
	}
}

func TestShard_SeekFindsWhatALinearScanFinds(t *testing.T) {
	for _, w := range []int{2, 3} {
		rapid.Check(t, func(rt *rapid.T) {
			mem, s := newShard(rt, w)
			defer mem.close()
			es := rapid.SliceOfN(drawEntry(w), 0, 600).Draw(rt, "entries")
			for i := range rapid.Uint64Range(0, 3000).Draw(rt, "run") { // long enough to leap
				e := [3]uint64{5 << 58, 1, 1000 + i}
				if w == 2 {
					e[1] = e[2]
				}
				es = append(es, e)
			}
			_, err := s.reshape(mem, change{add: flat(w, sortedSet(es))})
			require.NoError(rt, err)
			for _, e := range append(rapid.SliceOfN(drawEntry(w), 1, 50).Draw(rt, "probes"), [3]uint64{5<<58 + 1, 0, 1}, [3]uint64{5 << 58, 1, 2500}) {
				want := s.home(e[0])
				for s.below(want, e[0], e[1], e[2]) {
					want++
				}
				require.Equal(rt, want, s.seek(s.home(e[0]), e[0], e[1], e[2]))
				run := s.home(e[0])
				for s.below(run, e[0], e[1], 0) {
					run++
				}
				require.Equal(rt, run, s.find(e[0], e[1]))
			}
		})
	}
}

func TestShard_SeekReachesTheLastSlot(t *testing.T) {
	for _, w := range []int{2, 3} {
		mem, s := newShard(t, w)
		defer mem.close()
		const hash = ^uint64(0)
		for loc := uint64(1); s.end < s.slots()-1; loc++ {
			s.insertAt(s.seek(s.home(hash), hash, 0, loc), hash, 0, Loc(loc))
		}
		require.Len(t, contents(t, s), s.n)
		require.Equal(t, s.slots()-1, s.seek(s.home(hash), hash, 0, 1<<40))
		require.Equal(t, s.slots()-2, s.seek(s.home(hash), hash, 0, uint64(s.n)))
		require.Equal(t, s.home(hash), s.find(hash, 0))
	}
}

func TestShard_ReshapeWithoutMemoryKeepsItsEntries(t *testing.T) {
	mem, s := newShard(t, 2)
	defer mem.close()
	var es [][3]uint64
	for i := range uint64(s.limit) {
		es = append(es, [3]uint64{i << 56, i + 1, i + 1})
	}
	_, err := s.reshape(mem, change{add: flat(2, es)})
	require.NoError(t, err)
	mem.limit = mem.used
	before, slots := contents(t, s), s.slots()
	dropped, err := s.reshape(mem, change{extra: 10_000, keep: func(l Loc) bool { return l != 7 }})
	require.ErrorIs(t, err, ErrMemory)
	require.Equal(t, 1, dropped)
	require.Equal(t, slots, s.slots())
	require.Equal(t, slices.Delete(before, 6, 7), contents(t, s))
}

func TestShard_ReshapeGivesMemoryBack(t *testing.T) {
	mem, s := newShard(t, 2)
	defer mem.close()
	empty := mem.used
	var es [][3]uint64
	for i := range uint64(100_000) {
		es = append(es, [3]uint64{i << 40, i + 1, i + 1})
	}
	_, err := s.reshape(mem, change{add: flat(2, es)})
	require.NoError(t, err)
	require.Greater(t, mem.used, int64(1_600_000))
	_, err = s.reshape(mem, change{keep: func(l Loc) bool { return l <= 10 }, shrink: true})
	require.NoError(t, err)
	require.Equal(t, empty, mem.used)
	require.Len(t, contents(t, s), 10)
}

func TestEntrySorter_SortsLikeTheLibrary(t *testing.T) {
	var sorter entrySorter
	for _, w := range []int{2, 3} {
		rapid.Check(t, func(rt *rapid.T) {
			es := rapid.SliceOfN(drawEntry(w), 0, 2000).Draw(rt, "entries")
			for i := range rapid.Uint64Range(0, 300).Draw(rt, "run") {
				loc := 1000 + i*7919%301
				e := [3]uint64{3, 1, loc}
				if w == 2 {
					e[1] = loc
				}
				es = append(es, e)
			}
			// All of one shard: the top bits are equal.
			skip := rapid.UintRange(0, 12).Draw(rt, "skip")
			for i := range es {
				es[i][0] >>= skip
			}
			src := flat(w, es)
			dst := make([]uint64, len(src))
			sorter.sort(dst, src, w, skip)
			slices.SortFunc(es, compareEntries)
			require.Equal(rt, flat(w, es), append([]uint64(nil), dst...))
		})
	}
}
