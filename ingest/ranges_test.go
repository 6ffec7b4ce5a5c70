package ingest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"applier/ingest/change"
	"applier/ingest/decode"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// rangeReader reads from positions, and does not wait long where nothing comes.
func rangeReader(t *testing.T, o ClientOptions, from map[change.Partition]int64) *RangeReader {
	r, err := NewRangeReader(o, from)
	require.NoError(t, err)
	r.quiet = 500 * time.Millisecond
	t.Cleanup(r.Close)
	return r
}

// values reads a range.
func (r *RangeReader) values(t *testing.T, p change.Partition, to int64) []string {
	var got []string
	require.NoError(t, r.Read(testContext(t), p, to, func(rec *decode.Record) error {
		got = append(got, fmt.Sprintf("%d=%s", rec.Offset, rec.Value))
		return nil
	}))
	return got
}

func TestRangeReader_ReadsRangesOfSeveralPartitionsInTurn(t *testing.T) {
	c := newCluster(t, 2)
	produce(t, c, 0, "a", "b", "c", "d")
	produce(t, c, 1, "x", "y", "z")
	r := rangeReader(t, options(c), map[change.Partition]int64{part(0): 1, part(1): 0})
	require.Equal(t, []string{"1=b", "2=c"}, r.values(t, part(0), 3))
	require.Equal(t, []string{"0=x", "1=y"}, r.values(t, part(1), 2))
	require.Empty(t, r.values(t, part(0), 3), "nothing is between")
	require.Equal(t, []string{"3=d"}, r.values(t, part(0), 4))
	require.Equal(t, []string{"2=z"}, r.values(t, part(1), 3))
	require.Error(t, r.Read(testContext(t), part(7), 1, nil))
}

func TestRangeReader_AbortedRecordsAndMarkersAreNone(t *testing.T) {
	c := newCluster(t, 1)
	ctx := testContext(t)
	p := newTestClient(t, options(c), kgo.TransactionalID("x"), kgo.DefaultProduceTopic(topic))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort} {
		require.NoError(t, p.BeginTransaction())
		require.NoError(t, p.ProduceSync(ctx, kgo.StringRecord("v")).FirstErr())
		require.NoError(t, p.EndTransaction(ctx, commit))
	}
	r := rangeReader(t, options(c), map[change.Partition]int64{part(0): 0})
	require.Equal(t, []string{"0=v"}, r.values(t, part(0), 4))
	require.Equal(t, []string{"4=v"}, r.values(t, part(0), 8), "the range ends in an aborted transaction")
}

func TestRangeReader_SaysWhatIsMissing(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "a", "b")
	r := rangeReader(t, options(c), map[change.Partition]int64{part(0): 0})
	err := r.Read(testContext(t), part(0), 9, func(*decode.Record) error { return nil })
	require.ErrorIs(t, err, ErrShort)
	require.ErrorContains(t, err, "ends at offset 2, records up to 9 were applied")
	r = rangeReader(t, options(c), map[change.Partition]int64{part(0): 0})
	stop := errors.New("enough")
	require.ErrorIs(t, r.Read(testContext(t), part(0), 2, func(*decode.Record) error { return stop }), stop)
	require.NoError(t, c.DeleteRecords(topic, 0, 1))
	r = rangeReader(t, options(c), map[change.Partition]int64{part(0): 0})
	require.ErrorIs(t, r.Read(testContext(t), part(0), 2, func(*decode.Record) error { return nil }), ErrShort)
}

func TestRangeReader_APartitionThatWaitsIsNotFetchedForEver(t *testing.T) {
	c := newCluster(t, 2)
	cl := newTestClient(t, options(c), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))
	const n = rangeQueue + 5000
	for i := range n {
		cl.Produce(testContext(t), &kgo.Record{Partition: 0, Value: []byte{byte(i)}}, nil)
	}
	require.NoError(t, cl.Flush(testContext(t)))
	r := rangeReader(t, options(c), map[change.Partition]int64{part(0): 0, part(1): 0})
	produce(t, c, 1, "x")
	require.Equal(t, []string{"0=x"}, r.values(t, part(1), 1))
	records := 0
	require.NoError(t, r.Read(testContext(t), part(0), n, func(rec *decode.Record) error {
		require.EqualValues(t, records, rec.Offset)
		records++
		return nil
	}))
	require.Equal(t, n, records)
}

func TestSpanOf_MeasuresWhatLiesBetween(t *testing.T) {
	c := newCluster(t, 1)
	from := time.Now().Add(-time.Minute)
	produce(t, c, 0, "a", "b", "c", "d")
	l := Lag{Partition: part(0), Start: 0, Stable: 4, End: 4}
	s, err := SpanOf(testContext(t), options(c), part(0), 1, 3, map[change.Partition]int64{part(0): 400}, l)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Records)
	require.EqualValues(t, 200, s.Bytes)
	require.True(t, s.Oldest.After(from) && !s.Newest.Before(s.Oldest))
	s, err = SpanOf(testContext(t), options(c), part(0), 3, 3, nil, l)
	require.NoError(t, err)
	require.Zero(t, s)
	s, err = SpanOf(testContext(t), options(c), part(0), 0, 4, nil, l)
	require.NoError(t, err)
	require.EqualValues(t, -1, s.Bytes, "brokers may not tell")
	sizes, err := NewAdmin(newTestClient(t, options(c))).Sizes(testContext(t), []string{topic})
	require.NoError(t, err)
	require.Positive(t, sizes[part(0)])
}
