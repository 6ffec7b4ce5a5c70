package keyindex

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"applier/storage/types"
)

// addOrRefuse adds a file as addFile does, under a memory limit: a refused chunk
// must leave no trace, and may be tried again.
func (m *machine) addOrRefuse(rt *rapid.T, ids []int) {
	seg, err := m.x.AddSegment(uint32(len(ids)))
	require.NoError(rt, err)
	chunk := rapid.SampledFrom([]int{1, 50, math.MaxInt32}).Draw(rt, "chunk")
	for from := 0; from < len(ids); from += chunk {
		to := min(len(ids), from+chunk)
		before := m.x.Stats().Entries
		err := m.x.Add(seg, uint32(from), m.space.keys(ids[from:to]...))
		if err == nil {
			continue
		}
		require.ErrorIs(rt, err, ErrMemory)
		require.NotErrorIs(rt, err, ErrLost)
		require.LessOrEqual(rt, m.x.Stats().Entries, before)
		if _, err := m.x.Sweep(0); err == nil && m.x.Add(seg, uint32(from), m.space.keys(ids[from:to]...)) == nil {
			continue // cleaning up was enough
		}
		require.NoError(rt, m.x.RemoveSegment(seg))
		return
	}
	m.files[seg], m.dead[seg] = ids, roaring.New()
}

func TestIndex_AnswersRightlyWhileMemoryIsRefused(t *testing.T) {
	forSomeSpaces(t, func(t *testing.T, s keySpace) {
		dir := t.TempDir() + "/keys"
		refused := 0
		rapid.Check(t, func(rt *rapid.T) {
			m := newMachine(rt, s, dir)
			m.x.mem.limit = m.x.mem.used + rapid.Int64Range(0, 40).Draw(rt, "pages")*int64(pageSize)
			rt.Repeat(map[string]func(*rapid.T){
				"add file": func(rt *rapid.T) { m.addOrRefuse(rt, m.drawIDs(rt)) },
				"delete":   m.Delete,
				"remove": func(rt *rapid.T) {
					if seg, ok := m.drawFile(rt); ok {
						delete(m.files, seg)
						delete(m.dead, seg)
						require.NoError(rt, m.x.RemoveSegment(seg))
					}
				},
				"sweep": m.Sweep,
				"": func(rt *rapid.T) {
					m.Check(rt)
					require.LessOrEqual(rt, m.x.mem.peak, m.x.mem.limit)
					if m.x.mem.limit-m.x.mem.used < int64(pageSize) {
						refused++
					}
				},
			})
		})
		require.NotZero(t, refused, "the limit is reached")
	})
}

func TestFault_H2(t *testing.T) {
	// With the real hash: the other tests' only covers the start of a key.
	keys := func(ids ...int) *types.Keys {
		k := longKeys.keys(ids...)
		for i := range ids {
			k.Hash[i] = hashBytes(k.Bytes(i))
		}
		return k
	}
	dir := t.TempDir() + "/keys"
	lost := 0
	rapid.Check(t, func(rt *rapid.T) {
		x := longKeys.open(rt, dir, Options{MaxBytes: 1 << 30})
		x.hashBytes = hashBytes
		rt.Cleanup(func() { require.NoError(rt, x.Close()) })
		ids := rapid.SliceOfN(rapid.IntRange(0, 40), 600, 700).Draw(rt, "rows")
		seg, err := x.AddSegment(uint32(len(ids)))
		require.NoError(rt, err)
		require.NoError(rt, x.Add(seg, 0, keys(ids...)))
		mem := x.segs.get(seg).side.mem
		require.NoError(rt, unix.Mprotect(mem, unix.PROT_READ|unix.PROT_WRITE))
		for range rapid.IntRange(1, 5).Draw(rt, "hits") {
			mem[rapid.IntRange(0, len(mem)-1).Draw(rt, "at")] ^= byte(rapid.IntRange(1, 255).Draw(rt, "bits"))
		}
		for id := range 45 {
			var want []Loc
			for pos, k := range ids {
				if k == id {
					want = append(want, MakeLoc(seg, uint32(pos)))
				}
			}
			var m Matches
			if err := x.Lookup(keys(id), nil, &m); err != nil {
				require.ErrorIs(rt, err, ErrLost)
				lost++
				return
			}
			require.Equal(rt, want, append([]Loc(nil), m.Rows(0)...), "key %d", id)
		}
	})
	require.NotZero(t, lost, "some damage is met")
}

func TestBuilder_MakesTheIndexThatAddMakesFromAnyFiles(t *testing.T) {
	forSomeSpaces(t, func(t *testing.T, s keySpace) {
		dir := t.TempDir() + "/keys"
		rapid.Check(t, func(rt *rapid.T) {
			m := newMachine(rt, s, dir)
			built := s.open(rt, dir, Options{Seed: 1, MaxBytes: 1 << 30})
			rt.Cleanup(func() { require.NoError(rt, built.Close()) })
			var files [][]int
			for range rapid.IntRange(0, 5).Draw(rt, "files") {
				ids := m.drawIDs(rt)
				m.addFile(rt, ids)
				files = append(files, ids)
			}
			for f, ids := range files {
				seg, err := built.AddSegment(uint32(len(ids)))
				require.NoError(rt, err)
				require.EqualValues(rt, f+1, seg)
				require.NoError(rt, built.SetDeleted(seg, m.dead[seg]))
			}
			b, err := built.NewBuilder(rapid.Int64Range(0, 10_000).Draw(rt, "expected"))
			require.NoError(rt, err)
			next := make([]int, len(files))
			for { // the files' chunks in any order
				var open []int
				for f := range files {
					if next[f] < len(files[f]) {
						open = append(open, f)
					}
				}
				if len(open) == 0 {
					break
				}
				f := rapid.SampledFrom(open).Draw(rt, "file")
				n := min(rapid.IntRange(1, 300).Draw(rt, "chunk"), len(files[f])-next[f])
				require.NoError(rt, b.Add(uint32(f+1), uint32(next[f]), s.keys(files[f][next[f]:next[f]+n]...)))
				next[f] += n
			}
			require.NoError(rt, b.Finish())
			require.NoError(rt, built.Check())
			if !slices.Equal(dump(m.x), dump(built)) {
				rt.Fatal("the built index differs")
			}
		})
	})
}

func TestArena_ShardsDoNotOverlapWhateverTheirSizes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const shards = 8
		mem, err := newArena(shards, 1<<28)
		require.NoError(rt, err)
		defer func() { require.NoError(rt, mem.close()) }()
		all := make([]*shard, shards)
		for i := range all {
			all[i] = &shard{id: i, w: 2 + i%2}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"resize": func(rt *rapid.T) {
				s := rapid.SampledFrom(all).Draw(rt, "shard")
				old := len(s.t)
				require.NoError(rt, mem.resize(s, rapid.IntRange(1, 300_000).Draw(rt, "slots")))
				for i := old; i < len(s.t); i++ {
					if s.t[i] != 0 && s.t[i] != uint64(s.id)<<32 { // a word that lay behind the last slot
						rt.Fatalf("new word %d of shard %d is %x", i, s.id, s.t[i])
					}
				}
				for i := range s.t {
					s.t[i] = uint64(s.id) << 32
				}
			},
			"": func(rt *rapid.T) {
				var used int64
				for _, s := range all {
					used += int64(len(s.bytes))
					for i := 0; i < len(s.t); i += 509 {
						if s.t[i] != uint64(s.id)<<32 {
							rt.Fatalf("word %d of shard %d is %x", i, s.id, s.t[i])
						}
					}
				}
				require.Equal(rt, used, mem.used)
				require.GreaterOrEqual(rt, mem.peak, used)
			},
		})
	})
}

func TestErrors_AreToldApart(t *testing.T) {
	all := []error{ErrMemory, ErrLost, ErrIncomplete, ErrInvalid, ErrClosed}
	for i, a := range all {
		for j, b := range all {
			require.Equal(t, i == j, errors.Is(a, b))
		}
	}
	x := keySpaces[0].new(t, Options{})
	lost := x.fail(ErrMemory) // a build that ran out of memory
	require.ErrorIs(t, lost, ErrLost)
	require.ErrorIs(t, lost, ErrMemory, "the reason is kept")
	require.Equal(t, lost, x.fail(ErrClosed), "the first reason stays")
}
