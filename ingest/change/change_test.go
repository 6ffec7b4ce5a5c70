package change

import (
	"fmt"
	"testing"
	"unsafe"

	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var testFields = []types.Field{
	{ID: 0, Name: "id", Type: types.BigIntType().NonNull()},
	{ID: 1, Name: "name", Type: types.StringType()},
	{ID: 2, Name: "n", Type: types.DecimalType(20, 2)},
}

func newTestBatch() *Batch { return NewBatch(testFields, testFields[:1]) }

// add appends a row; state says what the second column is: a value, NULL or a hole.
func add(b *Batch, kind Kind, id int64, state string) {
	i := b.Len()
	b.Cols[0].AppendInt64(id)
	switch state {
	case "null":
		b.Cols[1].AppendNull()
	case "absent":
		b.Cols[1].AppendNull()
		b.Cols[1].Absent.Set(i)
	case "unavailable":
		b.Cols[1].AppendNull()
		b.Cols[1].Unavailable.Set(i)
	default:
		b.Cols[1].AppendString(state)
	}
	b.Cols[2].AppendInt128(types.Int128From(id))
	b.EndRow(kind, int32(id%3), id, 1000+id)
}

func TestBatch_TellsHolesFromNull(t *testing.T) {
	b := newTestBatch()
	for i, state := range []string{"x", "null", "absent", "unavailable", ""} {
		add(b, Update, int64(i), state)
	}
	require.Equal(t, 5, b.Len())
	for i, hole := range []bool{false, false, true, true, false} {
		require.Equal(t, hole, b.Cols[1].Hole(i), i)
		require.Equal(t, hole, b.Holes.Get(i), i)
		require.False(t, b.Cols[0].Hole(i))
	}
	require.True(t, b.Cols[1].IsNull(1) && b.Cols[1].IsNull(2) && b.Cols[1].IsNull(3))
	require.Equal(t, []int32{0, 1, 2, 0, 1}, b.Part)
	require.Equal(t, []int64{0, 1, 2, 3, 4}, b.Offset)
	require.Equal(t, int64(1004), b.Time[4])
}

func TestBatch_LinksOldKeysOfSomeRows(t *testing.T) {
	b := newTestBatch()
	require.Equal(t, -1, b.OldKeyOf(0), "an empty batch")
	for i := range int64(6) {
		add(b, Insert, i, "x")
		if i%2 == 1 {
			b.LinkOldKey([]types.Datum{types.IntDatum(100 + i)})
		}
	}
	for i, want := range []int{-1, 0, -1, 1, -1, 2} {
		require.Equal(t, want, b.OldKeyOf(i), i)
	}
	require.Equal(t, []int64{101, 103, 105}, b.OldKeys.Cols[0].I64)
	require.Len(t, b.OldKeys.Cols, 1, "key columns only")

	b.Truncate(4)
	require.Equal(t, 2, b.OldKeys.Len())
	b.Truncate(3)
	require.Equal(t, 1, b.OldKeys.Len())
	require.Equal(t, -1, b.OldKeyOf(3))
	add(b, Insert, 9, "x")
	b.LinkOldKey([]types.Datum{types.IntDatum(109)})
	require.Equal(t, 1, b.OldKeyOf(3))
	require.Equal(t, []int64{101, 109}, b.OldKeys.Cols[0].I64)
	b.Reset()
	require.Zero(t, b.OldKeys.Len())
	require.Equal(t, -1, b.OldKeyOf(0))
}

func TestBatch_TruncatesARowInTheMaking(t *testing.T) {
	b := newTestBatch()
	add(b, Insert, 1, "kept")
	// The first column has its cell, the second is half written and marked.
	b.Cols[0].AppendInt64(2)
	b.Cols[1].Data = append(b.Cols[1].Data, "half"...)
	b.Cols[1].Absent.Set(1)
	b.Cols[2].Unavailable.Set(1)
	b.Truncate(1)
	require.Equal(t, 1, b.Len())
	for i := range b.Cols {
		require.Equal(t, 1, b.Cols[i].Len())
		require.False(t, b.Cols[i].Hole(1))
	}
	add(b, Insert, 3, "next")
	require.Equal(t, "next", string(b.Cols[1].Bytes(1)))
	require.False(t, b.Holes.Any())
}

func TestBatch_KeepsRawRecordsOfRows(t *testing.T) {
	b := newTestBatch()
	for i := range int64(5) {
		add(b, Update, i, "unavailable")
		if i != 2 {
			b.KeepRaw(RawRecord{Value: []byte{byte(i)}})
		}
	}
	require.Equal(t, []int32{0, 1, 3, 4}, b.RawRow)
	require.Nil(t, b.RawOf(2))
	require.Equal(t, byte(3), b.RawOf(3).Value[0])
	b.Truncate(3)
	require.Len(t, b.Raw, 2)
	require.Nil(t, b.RawOf(3))
	require.Nil(t, b.Raw[:3][2].Value, "a dropped copy must not be held")
	b.Reset()
	require.Empty(t, b.Raw)
	require.Empty(t, b.RawRow)
}

func TestBatch_ResetEmptiesAndKeepsMemory(t *testing.T) {
	b := newTestBatch()
	for i := range int64(200) {
		add(b, Delete, i, "absent")
	}
	b.Bytes = 77
	size := b.MemBytes()
	b.Reset()
	require.Zero(t, b.Len())
	require.Zero(t, b.Bytes)
	require.False(t, b.Holes.Any())
	require.Equal(t, size, b.MemBytes())
	add(b, Insert, 1, "x")
	require.False(t, b.Holes.Any(), "no hole of an earlier life")
}

func TestBatch_MemBytesCountsWhatItHolds(t *testing.T) {
	b := newTestBatch()
	empty := b.MemBytes()
	add(b, Insert, 1, string(make([]byte, 10000)))
	require.Greater(t, b.MemBytes(), empty+10000)
	before := b.MemBytes()
	b.KeepRaw(RawRecord{Key: make([]byte, 1000), Value: make([]byte, 2000), Headers: []Header{{"h", make([]byte, 500)}}})
	require.GreaterOrEqual(t, b.MemBytes(), before+3500)
	before = b.MemBytes()
	b.LinkOldKey([]types.Datum{types.IntDatum(1)})
	require.Greater(t, b.MemBytes(), before)
	require.EqualValues(t, unsafe.Sizeof(RawRecord{}), rawSize)
	require.EqualValues(t, unsafe.Sizeof(Header{}), headerSize)
}

// TestBatch_TruncateIsTheInverseOfAppending: whatever was appended, cutting back
// to a length gives what was there at that length.
func TestBatch_TruncateIsTheInverseOfAppending(t *testing.T) {
	show := func(b *Batch) string {
		s := ""
		for i := range b.Len() {
			s += fmt.Sprint(b.Kind[i], b.Part[i], b.Offset[i], b.Time[i], b.Holes.Get(i))
			for c := range b.Cols {
				s += fmt.Sprint(b.Cols[c].Datum(i), b.Cols[c].Absent.Get(i), b.Cols[c].Unavailable.Get(i))
			}
			if k := b.OldKeyOf(i); k >= 0 {
				s += fmt.Sprint("old", b.OldKeys.Cols[0].I64[k])
			}
			if raw := b.RawOf(i); raw != nil {
				s += fmt.Sprint("raw", raw.Value)
			}
			s += "\n"
		}
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		b := newTestBatch()
		shown := []string{""}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				n := rapid.IntRange(0, b.Len()).Draw(t, "n")
				b.Truncate(n)
				require.Equal(t, shown[n], show(b))
				shown = shown[:n+1]
				continue
			}
			id := rapid.Int64Range(0, 99).Draw(t, "id")
			add(b, Kind(id%4), id, rapid.SampledFrom([]string{"x", "", "null", "absent", "unavailable"}).Draw(t, "state"))
			if id%5 == 0 {
				b.LinkOldKey([]types.Datum{types.IntDatum(id)})
			}
			if id%7 == 0 {
				b.KeepRaw(RawRecord{Value: []byte{byte(id)}})
			}
			shown = append(shown, show(b))
		}
		for n := b.Len(); n >= 0; n-- {
			b.Truncate(n)
			require.Equal(t, shown[n], show(b))
		}
	})
}

func TestKind_HasNames(t *testing.T) {
	require.Equal(t, "insert update read delete", fmt.Sprint(Insert, " ", Update, " ", Read, " ", Delete))
}

func TestPartition_OrdersByTopicThenNumber(t *testing.T) {
	p := Positions{{"b", 0}: {}, {"a", 10}: {}, {"a", 2}: {}, {"a", -1}: {}}
	require.Equal(t, []Partition{{"a", -1}, {"a", 2}, {"a", 10}, {"b", 0}}, p.Sorted())
	require.Equal(t, "a/2", Partition{"a", 2}.String())
	require.Zero(t, Partition{"a", 2}.Compare(Partition{"a", 2}))
	require.Empty(t, Positions(nil).Sorted())
}

func TestPositions_CompareByPartitionAndNextOffset(t *testing.T) {
	p := Positions{{"a", 0}: {Next: 5, Epoch: 1}, {"a", 1}: {Next: 7, Epoch: -1}}
	q := p.Clone()
	require.True(t, p.SameNext(q))
	q[Partition{"a", 0}] = Position{Next: 5, Epoch: 9}
	require.True(t, p.SameNext(q), "epochs do not count")
	q[Partition{"a", 0}] = Position{Next: 6, Epoch: 1}
	require.False(t, p.SameNext(q))
	require.Equal(t, int64(5), p[Partition{"a", 0}].Next, "a clone is its own")
	delete(q, Partition{"a", 0})
	require.False(t, p.SameNext(q), "fewer partitions")
	require.False(t, q.SameNext(p))
	q[Partition{"b", 0}] = Position{Next: 5}
	require.False(t, p.SameNext(q), "other partitions")
	require.True(t, Positions{}.SameNext(nil))
}
