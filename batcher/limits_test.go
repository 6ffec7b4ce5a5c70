package batcher

import (
	"fmt"
	"testing"
	"time"

	"applier/ingest/change"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

func limited(t *testing.T, l Limits) *Batcher {
	return newBatcher(t, Options{Fields: testFields(types.BigIntType()), Key: []int{0}, Apply: Mirror, Limits: l})
}

func simple(k int64) row {
	return row{key: []types.Datum{types.IntDatum(k)}, kind: change.Update, v: num(k)}
}

// addAt is add with a moment of its own.
func addAt(b *Batcher, r row, offset int64, now time.Time) {
	c := b.Changes()
	for i, d := range r.key {
		c.Cols[i].AppendDatum(d)
	}
	c.Cols[len(r.key)].AppendDatum(datum(r.ord))
	c.Cols[len(r.key)+1].AppendDatum(datum(r.v))
	c.EndRow(r.kind, r.part, offset, offset*1000)
	c.Bytes += 10
	b.Record(r.part, offset, 0, nil, nil, now)
}

func TestDue_SaysWhichLimitClosesTheBatch(t *testing.T) {
	s := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
	all := Limits{Rows: 3, Bytes: 25, Interval: 10 * time.Second, IdleFlush: 2 * time.Second}
	for _, c := range []struct {
		name   string
		limits Limits
		at     []int // seconds at which records with a row arrive
		now    int
		want   FlushReason // "" not due
		dead   int         // deadline in seconds, -1 none
	}{
		{"nothing", all, nil, 100, "", -1},
		{"one row", all, []int{0}, 1, "", 2},
		{"rows", Limits{Rows: 2, Bytes: 1000, Interval: time.Hour}, []int{0, 0}, 0, FlushRows, 3600},
		{"bytes", Limits{Rows: 100, Bytes: 20, Interval: time.Hour}, []int{0, 0}, 0, FlushBytes, 3600},
		{"rows come before bytes", Limits{Rows: 2, Bytes: 20, Interval: time.Hour}, []int{0, 0}, 0, FlushRows, 3600},
		{"idle", all, []int{0}, 2, FlushIdle, 2},
		{"a record puts the idle flush off", all, []int{0, 1}, 2, "", 3},
		{"interval", all, []int{0, 9}, 10, FlushInterval, 10},
		{"a late look still names the earlier reason", all, []int{0, 1}, 60, FlushIdle, 3},
		{"idle off", Limits{Rows: 3, Bytes: 1000, Interval: 10 * time.Second}, []int{0}, 9, "", 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := limited(t, c.limits)
			for i, at := range c.at {
				addAt(b, simple(int64(i)), int64(i), s(at))
			}
			reason, due := b.Due(s(c.now))
			require.Equal(t, c.want, reason)
			require.Equal(t, c.want != "", due)
			if c.dead < 0 {
				require.Zero(t, b.Deadline())
			} else {
				require.Equal(t, s(c.dead), b.Deadline())
			}
			require.Equal(t, len(c.at) == 0, b.Empty())
		})
	}
}

func TestDue_RecordsWithoutRowsWaitForTheInterval(t *testing.T) {
	b := limited(t, Limits{Rows: 1, Bytes: 1, Interval: 10 * time.Second, IdleFlush: time.Second})
	for i := range 5 { // poison, skipped: read, but no row
		b.Record(0, int64(i), 0, nil, []byte("x"), start.Add(time.Duration(i)*time.Second))
	}
	_, due := b.Due(start.Add(9 * time.Second))
	require.False(t, due, "positions alone make no haste")
	reason, due := b.Due(start.Add(10 * time.Second))
	require.True(t, due)
	require.Equal(t, FlushInterval, reason)
	batch := b.Seal(reason)
	require.Zero(t, batch.Changes.Len())
	require.EqualValues(t, 5, batch.Next[topic0].Next)
	require.EqualValues(t, 5, batch.Counts.Records)
}

func TestAdvance_AloneIsCommittedWithinTheInterval(t *testing.T) {
	// A partition may end in a transaction marker: without a commit of its own the
	// table would look one record behind for ever.
	b := limited(t, Limits{Rows: 10, Bytes: 1000, Interval: 10 * time.Second, IdleFlush: time.Second})
	require.True(t, b.Empty())
	b.Advance(1, 3, 7, start)
	require.False(t, b.Empty())
	require.Equal(t, start.Add(10*time.Second), b.Deadline())
	b.Advance(1, 4, 7, start.Add(5*time.Second)) // does not put it off
	reason, due := b.Due(start.Add(10 * time.Second))
	require.True(t, due)
	require.Equal(t, FlushInterval, reason)
	batch := b.Seal(reason)
	require.Equal(t, change.Position{Next: 4, Epoch: 7}, batch.Next[topic1])
	require.Equal(t, change.Position{Next: 0, Epoch: -1}, batch.Next[topic0])
	require.Zero(t, batch.Counts.Records)
	require.True(t, b.Empty())
}

func TestAdvance_NeverGoesBack(t *testing.T) {
	b := limited(t, Limits{Rows: 10})
	b.Advance(0, 5, 3, start)
	b.Advance(0, 4, 9, start)
	b.Advance(0, 5, 9, start)
	at, ok := b.Position(0)
	require.True(t, ok)
	require.Equal(t, change.Position{Next: 5, Epoch: 3}, at)
	b.Advance(0, 6, 2, start)
	at, _ = b.Position(0)
	require.Equal(t, change.Position{Next: 6, Epoch: 3}, at, "epochs do not go back either")
}

func TestAdvance_IntroducesAPartitionThatHadNoPosition(t *testing.T) {
	b, err := New(Options{Fields: testFields(types.BigIntType()), Key: []int{0}, Apply: Mirror, Limits: Limits{Rows: 10, Interval: time.Second}})
	require.NoError(t, err)
	b.Reset(change.Positions{topic0: {Next: 4, Epoch: 2}}, []change.Partition{topic0, topic1}, 1)
	_, ok := b.Position(1)
	require.False(t, ok)
	b.Advance(1, 0, -1, start) // released: it begins at the log's start
	batch := b.Seal(FlushInterval)
	require.Equal(t, change.Positions{topic0: {Next: 4, Epoch: 2}}, batch.Start)
	require.Equal(t, change.Positions{topic0: {Next: 4, Epoch: 2}, topic1: {Next: 0, Epoch: -1}}, batch.Next, "no epoch was seen yet")
}

func TestReset_DropsWhatIsOpen(t *testing.T) {
	b := limited(t, Limits{Rows: 10, Interval: time.Second})
	addAt(b, simple(1), 0, start)
	b.Counts().Skipped = 3
	b.Reset(change.Positions{topic1: {Next: 9}}, []change.Partition{topic1}, 5)
	require.True(t, b.Empty())
	require.Zero(t, b.Deadline())
	require.Zero(t, b.Changes().Len())
	at, ok := b.Position(0)
	require.True(t, ok)
	require.EqualValues(t, 9, at.Next)
	addAt(b, simple(2), 9, start)
	batch := b.Seal(FlushRows)
	require.EqualValues(t, 5, batch.Generation)
	require.Equal(t, []change.Partition{topic1}, batch.Partitions)
	require.Equal(t, Counts{Records: 1, Changes: 1}, batch.Counts)
	require.Equal(t, change.Positions{topic1: {Next: 10}}, batch.Next)
}

func TestSeal_KnowsTheOldestAndNewestChange(t *testing.T) {
	b := limited(t, Limits{Rows: 10})
	for i, offset := range []int64{7, 8, 9} {
		addAt(b, simple(int64(i)), offset, start.Add(time.Duration(i)*time.Second))
	}
	batch := b.Seal(FlushRows)
	require.Equal(t, start, batch.FirstTime)
	require.EqualValues(t, 7000, batch.MinEvent)
	require.EqualValues(t, 9000, batch.MaxEvent)
	batch = b.Seal(FlushManual)
	require.Zero(t, batch.MinEvent)
	require.Zero(t, batch.MaxEvent)
	require.True(t, batch.FirstTime.IsZero())
}

func TestRecycle_MemoryIsCountedWhileItIsKept(t *testing.T) {
	b := limited(t, Limits{Rows: 1 << 20})
	empty := b.MemBytes()
	for i := range 5000 {
		addAt(b, simple(int64(i)), int64(i), start)
	}
	full := b.MemBytes()
	require.Greater(t, full, empty+5000*8*3)
	batch := b.Seal(FlushRows)
	require.Less(t, b.MemBytes(), full, "a closed batch is its owner's")
	b.Recycle(batch)
	require.GreaterOrEqual(t, b.MemBytes(), full, "kept for reuse is still held")
	b.Trim()
	require.Less(t, b.MemBytes(), full)

	// More than are ever needed at once are not kept.
	for range 10 {
		b.Recycle(&Batch{Changes: change.NewBatch(b.o.Fields, b.key)})
	}
	require.Len(t, b.free, cap(b.free))
}

func TestRecycle_AReusedBatchIsLikeANewOne(t *testing.T) {
	b := limited(t, Limits{Rows: 100})
	var first string
	for round := range 3 {
		b.Reset(change.Positions{topic0: {}, topic1: {}}, []change.Partition{topic0, topic1}, 1)
		for i := range 20 {
			r := simple(int64(i % 7))
			if i%5 == 0 {
				r.old = []types.Datum{types.IntDatum(int64(i % 3))}
			}
			add(b, r, int64(i))
		}
		batch := b.Seal(FlushRows)
		got := fmt.Sprintf("%v %v %v %v %x", batch.Winners, batch.Prev, batch.OldHead, batch.Counts, batch.Digest)
		if round == 0 {
			first = got
		}
		require.Equal(t, first, got)
		b.Recycle(batch)
	}
}
