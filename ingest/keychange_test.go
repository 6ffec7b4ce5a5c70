package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// produceRecords writes records to partition 0, each in a batch of its own.
func produceRecords(t *testing.T, c *kfake.Cluster, records ...*kgo.Record) {
	t.Helper()
	cl := newTestClient(t, options(c), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))
	for _, r := range records {
		require.NoError(t, cl.ProduceSync(testContext(t), r).FirstErr())
	}
}

func word(v string) *kgo.Record { return &kgo.Record{Key: []byte("k"), Value: []byte(v)} }

// firstHalf is what a change of a key begins with: a delete and its tombstone.
func firstHalf() []*kgo.Record {
	header := []kgo.RecordHeader{{Key: newKeyHeader, Value: []byte("{}")}}
	return []*kgo.Record{{Key: []byte("k"), Value: []byte("d"), Headers: header}, {Key: []byte("k"), Headers: header}}
}

func TestKeyChange_NoBatchEndsBetweenItsHalves(t *testing.T) {
	for name, test := range map[string]struct {
		rows int
		want [][]string
	}{
		"a batch is full with the delete":    {2, [][]string{{"0@0"}, {"0@1", "0@2", "0@3"}, {"0@4"}}},
		"a batch is full with the tombstone": {3, [][]string{{"0@0"}, {"0@1", "0@2", "0@3"}, {"0@4"}}},
		"each record fills one":              {1, [][]string{{"0@0"}, {"0@1", "0@2", "0@3"}, {"0@4"}}},
		"a batch is full with both":          {4, [][]string{{"0@0", "0@1", "0@2", "0@3"}, {"0@4"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1)
			produceRecords(t, c, append(append([]*kgo.Record{word("a")}, firstHalf()...), word("c"), word("e"))...)
			kinds := 0
			r := read(t, c, newSink(test.rows), func(o *Options) { o.Metrics.Record = func(string, int) { kinds++ } })
			r.resume(at(0))
			for _, want := range test.want {
				if want[0] != "0@4" || test.rows == 1 {
					require.Equal(t, want, take(t, r.sink.batches).records)
				} else {
					require.Equal(t, want, drained(t, r, 1).records)
				}
			}
			r.close()
			require.Equal(t, 5, kinds, "each record is counted once")
		})
	}
}

func TestKeyChange_AFirstHalfWaitsAloneAndIsReadAgain(t *testing.T) {
	c := newCluster(t, 1)
	produceRecords(t, c, append([]*kgo.Record{word("a")}, firstHalf()...)...)
	r := read(t, c, newSink(1), nil)
	r.resume(at(0))
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
	open, err := r.c.FlushNow(testContext(t), "manual")
	require.NoError(t, err)
	require.False(t, open, "there is nothing that could be committed")
	r.c.Drain(testContext(t))

	r.resume(at(1)) // where the table stands
	produceRecords(t, c, word("c"))
	require.Equal(t, []string{"0@1", "0@2", "0@3"}, take(t, r.sink.batches).records)
}

func TestKeyChange_WhatIsNotItsSecondHalfEndsTheWaiting(t *testing.T) {
	c := newCluster(t, 1)
	produceRecords(t, c, append(append(firstHalf(), word("bad")), word("e"))...)
	r := read(t, c, newSink(100), nil)
	r.resume(at(0))
	require.Equal(t, []string{"0@0", "0@1"}, take(t, r.sink.batches).records, "a record that cannot be applied stops reading right before it")
	require.Contains(t, take(t, r.halts).problem.Facts, "t/0 offset 2")
}

func TestKeyChange_OfSeveralPartitionsIsNotWaitedFor(t *testing.T) {
	c := newCluster(t, 2)
	produceRecords(t, c, firstHalf()...)
	r := read(t, c, newSink(1), nil)
	r.resume(at(0, 0))
	require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
	require.Equal(t, []string{"0@1"}, take(t, r.sink.batches).records)
}
