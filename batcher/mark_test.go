package batcher

import (
	"testing"
	"time"

	"applier/ingest/change"

	"github.com/stretchr/testify/require"
)

func TestRewind_LeavesTheBatchAsItWas(t *testing.T) {
	batch := func(take func(b *Batcher)) *Batch {
		b := limited(t, Limits{Rows: 10, Bytes: 1000, Interval: time.Hour, IdleFlush: time.Minute})
		b.Reset(change.Positions{topic0: {Next: 0, Epoch: -1}}, []change.Partition{topic0}, 1)
		add(b, simple(1), 0)
		take(b)
		require.Equal(t, start.Add(time.Minute), b.Deadline())
		return b.Seal(FlushRows)
	}
	want := batch(func(*Batcher) {})
	got := batch(func(b *Batcher) {
		b.Mark()
		require.True(t, b.Before())
		addAt(b, simple(2), 1, start.Add(30*time.Second))
		b.Counts().Skipped++
		b.Record(0, 2, 5, []byte("k"), nil, start.Add(30*time.Second))
		b.Rewind()
	})
	require.Equal(t, want.Next, got.Next)
	require.Equal(t, want.Digest, got.Digest)
	require.Equal(t, want.Counts, got.Counts)
	require.Equal(t, want.Changes.Bytes, got.Changes.Bytes)
	require.Equal(t, 1, got.Changes.Len())
}

func TestRewind_ToTheBeginningLeavesNothing(t *testing.T) {
	b := limited(t, Limits{Rows: 10, Bytes: 1000, Interval: time.Hour})
	b.Reset(change.Positions{topic0: {Next: 4, Epoch: 1}}, []change.Partition{topic0}, 1)
	b.Mark()
	require.False(t, b.Before())
	addAt(b, simple(2), 4, start)
	b.Rewind()
	require.True(t, b.Empty())
	require.Zero(t, b.Changes().Len())
	require.True(t, b.Deadline().IsZero())
}
