package batcher

import (
	"testing"
	"time"

	"applier/ingest/change"

	"github.com/stretchr/testify/require"
)

func TestTruncate_BeginsABatchAndNothingElse(t *testing.T) {
	b := limited(t, Limits{Rows: 10, Bytes: 1000, Interval: 10 * time.Second, IdleFlush: time.Second})
	first, second := &change.Truncation{Time: 500}, &change.Truncation{Time: 9000}
	b.Record(0, 0, 0, nil, []byte("skipped"), start)
	require.True(t, b.Truncate(first), "a position is no change")
	b.Record(0, 1, 0, nil, []byte("t"), start)
	require.False(t, b.Truncate(second), "one a batch")
	require.Equal(t, start.Add(time.Second), b.Deadline(), "it is due like a row")
	add(b, simple(1), 2)
	require.False(t, b.Truncate(second), "changes come after it")
	batch := b.Seal(FlushTruncate)
	require.Same(t, first, batch.Truncation)
	require.EqualValues(t, 500, batch.MinEvent)
	require.EqualValues(t, 2000, batch.MaxEvent)

	require.True(t, b.Truncate(second))
	b.Recycle(batch)
	require.Nil(t, batch.Truncation)
	b.Reset(change.Positions{topic0: {}}, []change.Partition{topic0}, 2)
	require.True(t, b.Truncate(first), "reading elsewhere forgets it")
}
