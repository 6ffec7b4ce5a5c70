package keyindex

import (
	"encoding/binary"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// keySpace makes keys from numbers, with hashes of the test's choice. A negative
// number is a NULL key.
type keySpace struct {
	name  string
	class types.KeyClass
	hash  func(id uint64) uint64
}

// The hash functions: as in life; all in one cluster at a shard's start; all in
// one at the very end of the last shard; few values for many keys, which only
// the other half of the key or its bytes tell apart.
func spread(id uint64) uint64   { return types.Mix64(id) }
func atStart(id uint64) uint64  { return id }
func atEnd(id uint64) uint64    { return ^id }
func colliding(i uint64) uint64 { return types.Mix64(i % 3) }

var keySpaces = []keySpace{
	{"key64", types.Key64, spread},
	{"key64 at start", types.Key64, atStart},
	{"key64 at end", types.Key64, atEnd},
	{"key128", types.Key128, spread},
	{"key128 colliding", types.Key128, colliding},
	{"key128 at end", types.Key128, atEnd},
	{"bytes", types.KeyBytes, spread},
	{"bytes colliding", types.KeyBytes, colliding},
	{"bytes at start", types.KeyBytes, atStart},
}

func (s keySpace) keys(ids ...int) *types.Keys {
	k := &types.Keys{Class: s.class}
	if s.class == types.KeyBytes {
		k.Off = append(k.Off, 0)
	}
	for i, id := range ids {
		if id < 0 {
			k.Null.Set(i)
		}
		k.Hash = append(k.Hash, s.hash(uint64(id)))
		switch s.class {
		case types.Key128:
			k.Low = append(k.Low, uint64(id))
		case types.KeyBytes:
			k.Data = append(k.Data, longKey(id)...)
			k.Off = append(k.Off, uint32(len(k.Data)))
		}
	}
	return k
}

// longKey is a key of 8 to 24 bytes; its first 8 are the number.
func longKey(id int) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(id))
	return append(b, "0123456789abcdef"[:uint(id)%17]...)
}

// open returns an index that hashes as s does.
func (s keySpace) open(t require.TestingT, dir string, o Options) *Index {
	o.Class, o.Dir = s.class, dir
	x, err := New(o)
	require.NoError(t, err)
	x.hashBytes = func(b []byte) uint64 { return s.hash(binary.BigEndian.Uint64(b)) }
	return x
}

// new returns an index that lives as long as the test.
func (s keySpace) new(t testing.TB, o Options) *Index {
	x := s.open(t, t.TempDir()+"/keys", o)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

// addFile adds a data file with these keys, chunk rows at a time.
func (s keySpace) addFile(t require.TestingT, x *Index, chunk int, ids ...int) uint32 {
	seg, err := x.AddSegment(uint32(len(ids)))
	require.NoError(t, err)
	for from := 0; from < len(ids); from += chunk {
		to := min(from+chunk, len(ids))
		require.NoError(t, x.Add(seg, uint32(from), s.keys(ids[from:to]...)))
	}
	return seg
}

// lookup returns the rows of each key.
func (s keySpace) lookup(t require.TestingT, x *Index, ids ...int) [][]Loc {
	var m Matches
	require.NoError(t, x.Lookup(s.keys(ids...), nil, &m))
	require.Len(t, m.Start, len(ids)+1)
	out := make([][]Loc, len(ids))
	for j := range ids {
		out[j] = m.Rows(j)
	}
	return out
}

// locs are the places of rows of one file.
func locs(seg uint32, pos ...uint32) []Loc {
	out := make([]Loc, len(pos))
	for i, p := range pos {
		out[i] = MakeLoc(seg, p)
	}
	return out
}

func sequence(from, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + i
	}
	return out
}

func repeat(id, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = id
	}
	return out
}

func bitmapOf(pos ...uint32) *roaring.Bitmap { return roaring.BitmapOf(pos...) }

// forSomeSpaces runs f for one key space of each nature, where all would take long.
func forSomeSpaces(t *testing.T, f func(t *testing.T, s keySpace)) {
	for _, i := range []int{0, 2, 4, 7} {
		t.Run(keySpaces[i].name, func(t *testing.T) { f(t, keySpaces[i]) })
	}
}

func forSpaces(t *testing.T, f func(t *testing.T, s keySpace)) {
	for _, s := range keySpaces {
		t.Run(s.name, func(t *testing.T) { f(t, s) })
	}
}

// dump returns the words of all entries in table order.
func dump(x *Index) []uint64 {
	var out []uint64
	for i := range x.shards {
		s := &x.shards[i]
		for slot := range s.slots() {
			if s.used(slot) {
				out = append(out, s.t[slot*s.w:slot*s.w+s.w]...)
			}
		}
	}
	return out
}
