package keyindex

import (
	"math"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is a table as plain as it gets: the keys of each file's rows and which
// of them are deleted.
type model struct {
	files map[uint32][]int
	dead  map[uint32]*roaring.Bitmap
}

// rows returns the live rows of each key.
func (m *model) rows() map[int][]Loc {
	out := map[int][]Loc{}
	for seg, ids := range m.files {
		dead := m.dead[seg]
		for pos, id := range ids {
			if id >= 0 && !dead.Contains(uint32(pos)) {
				out[id] = append(out[id], MakeLoc(seg, uint32(pos)))
			}
		}
	}
	for _, rows := range out {
		slices.Sort(rows)
	}
	return out
}

// machine runs random operations on an index and on the model.
type machine struct {
	model
	space keySpace
	x     *Index
	top   int // ids are below
}

func newMachine(rt *rapid.T, s keySpace, dir string) *machine {
	seed := rapid.Uint64().Draw(rt, "seed")
	m := &machine{
		model: model{files: map[uint32][]int{}, dead: map[uint32]*roaring.Bitmap{}},
		space: s,
		top:   rapid.SampledFrom([]int{3, 60, 3000}).Draw(rt, "ids"),
	}
	m.x = s.open(rt, dir, Options{Seed: seed, MaxBytes: 1 << 30})
	rt.Cleanup(func() { require.NoError(rt, m.x.Close()) })
	return m
}

func (m *machine) drawIDs(rt *rapid.T) []int {
	id := rapid.IntRange(-1, m.top)
	switch rapid.IntRange(0, 4).Draw(rt, "shape") {
	case 0: // many rows of one key
		return repeat(id.Draw(rt, "id"), rapid.IntRange(1, 200).Draw(rt, "n"))
	case 1: // a long ascending stretch: growth
		return sequence(max(0, id.Draw(rt, "id")), rapid.IntRange(0, 600).Draw(rt, "n"))
	}
	return rapid.SliceOfN(id, 0, 60).Draw(rt, "rows")
}

func (m *machine) drawFile(rt *rapid.T) (seg uint32, ok bool) {
	if len(m.files) == 0 {
		return 0, false
	}
	var segs []uint32
	for s := range m.files {
		segs = append(segs, s)
	}
	slices.Sort(segs)
	return rapid.SampledFrom(segs).Draw(rt, "file"), true
}

func (m *machine) addFile(rt *rapid.T, ids []int) {
	seg, err := m.x.AddSegment(uint32(len(ids)))
	require.NoError(rt, err)
	m.files[seg], m.dead[seg] = ids, roaring.New()
	if len(ids) > 0 && rapid.IntRange(0, 3).Draw(rt, "born deleted") == 0 {
		m.dead[seg].Add(rapid.Uint32Range(0, uint32(len(ids)-1)).Draw(rt, "pos"))
		require.NoError(rt, m.x.SetDeleted(seg, m.dead[seg].Clone()))
	}
	chunk := rapid.SampledFrom([]int{1, 7, 100, math.MaxInt32}).Draw(rt, "chunk")
	for from := 0; from < len(ids); from += chunk {
		var got Matches
		require.ErrorIs(rt, m.x.Lookup(m.space.keys(1), nil, &got), ErrIncomplete)
		to := min(len(ids), from+chunk)
		require.NoError(rt, m.x.Add(seg, uint32(from), m.space.keys(ids[from:to]...)))
	}
}

func (m *machine) AddFile(rt *rapid.T) { m.addFile(rt, m.drawIDs(rt)) }

// Upsert does what a commit does: all rows of some keys die, a file with one row
// of each is born.
func (m *machine) Upsert(rt *rapid.T) {
	ids := rapid.SliceOfNDistinct(rapid.IntRange(0, m.top), 1, min(40, m.top), rapid.ID).Draw(rt, "keys")
	for _, rows := range m.space.lookup(rt, m.x, ids...) {
		for _, l := range rows {
			m.dead[l.Segment()].Add(l.Pos())
		}
	}
	for seg := range m.files {
		require.NoError(rt, m.x.SetDeleted(seg, m.dead[seg].Clone()))
	}
	m.addFile(rt, ids)
}

func (m *machine) Delete(rt *rapid.T) {
	seg, ok := m.drawFile(rt)
	if n := len(m.files[seg]); ok && n > 0 {
		from := rapid.IntRange(0, n-1).Draw(rt, "from")
		to := rapid.IntRange(from, n-1).Draw(rt, "to")
		m.dead[seg].AddRange(uint64(from), uint64(to)+1)
		require.NoError(rt, m.x.SetDeleted(seg, m.dead[seg].Clone()))
	}
}

// Compact rewrites a file without its deleted rows.
func (m *machine) Compact(rt *rapid.T) {
	seg, ok := m.drawFile(rt)
	if !ok {
		return
	}
	var left []int
	for pos, id := range m.files[seg] {
		if !m.dead[seg].Contains(uint32(pos)) {
			left = append(left, id)
		}
	}
	delete(m.files, seg)
	delete(m.dead, seg)
	require.NoError(rt, m.x.RemoveSegment(seg))
	if rapid.Bool().Draw(rt, "rewrite") {
		m.addFile(rt, left)
	}
}

func (m *machine) Sweep(rt *rapid.T) {
	_, err := m.x.Sweep(rapid.SampledFrom([]int{0, 1, 5}).Draw(rt, "shards"))
	require.NoError(rt, err)
}

// Check compares everything after each step.
func (m *machine) Check(rt *rapid.T) {
	require.NoError(rt, m.x.Check())
	ids := append(sequence(0, min(m.top, 60)+2), -1, m.top, m.top-1)
	var sel []uint32
	for i := len(ids) - 1; i >= 0; i-- {
		if i%3 != 1 {
			sel = append(sel, uint32(i))
		}
	}
	var got Matches
	require.NoError(rt, m.x.Lookup(m.space.keys(ids...), sel, &got))
	want, live := m.rows(), int64(0)
	for j, i := range sel {
		if !slices.Equal(want[ids[i]], got.Rows(j)) {
			require.Equal(rt, want[ids[i]], got.Rows(j), "key %d", ids[i])
		}
	}
	for _, rows := range want {
		live += int64(len(rows))
	}
	st := m.x.Stats()
	require.Equal(rt, live, st.Live)
	require.Equal(rt, st.Entries-live, st.Stale)
	require.Equal(rt, len(m.files), st.Segments)
}

func TestIndex_AnswersLikeAPlainTable(t *testing.T) {
	forSpaces(t, func(t *testing.T, s keySpace) {
		rapid.Check(t, modelProperty(s, t.TempDir()+"/keys"))
	})
}

func FuzzIndex_AnswersLikeAPlainTable(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, s := range keySpaces {
			rapid.MakeFuzz(modelProperty(s, t.TempDir()+"/keys"))(t, data)
		}
	})
}

func modelProperty(s keySpace, dir string) func(rt *rapid.T) {
	return func(rt *rapid.T) {
		m := newMachine(rt, s, dir)
		rt.Repeat(map[string]func(*rapid.T){
			"add file": m.AddFile, "upsert": m.Upsert, "delete": m.Delete,
			"compact": m.Compact, "sweep": m.Sweep, "": m.Check,
		})
	}
}
