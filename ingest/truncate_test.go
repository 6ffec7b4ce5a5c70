package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConsumer_ATruncationIsCommittedBehindWhatCameBeforeIt(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "truncate", "a", "b", "truncate", "truncate", "c")
	kinds := map[string]int{}
	r := read(t, c, newSink(3), func(o *Options) {
		o.OnTruncate = OnTruncateApply
		o.Metrics.Record = func(kind string, _ int) { kinds[kind]++ }
	})
	r.resume(at(0))
	for _, want := range []sealed{
		{records: []string{"0@0", "0@1", "0@2"}, reason: "rows", truncated: 0},
		{records: []string{"0@3"}, reason: "truncate", truncated: 3},
	} {
		b := take(t, r.sink.batches)
		require.Equal(t, want.records, b.records)
		require.Equal(t, want.reason, b.reason)
		require.Equal(t, want.truncated, b.truncated)
	}
	b := drained(t, r, 2)
	require.Equal(t, []string{"0@4", "0@5"}, b.records)
	require.EqualValues(t, 4, b.truncated)
	require.Empty(t, b.counts, "none is skipped")
	r.close()
	require.Equal(t, map[string]int{"insert": 3, KindTruncated: 3}, kinds)
}

func TestConsumer_ATruncationIsIgnoredOrEndsReading(t *testing.T) {
	for name, test := range map[string]struct {
		partitions int32
		set        func(*Options)
		facts      string // "" is read on
		truncated  int64
	}{
		"ignored":                          {1, func(o *Options) { o.OnTruncate = OnTruncateIgnore }, "", -1},
		"paused":                           {1, func(o *Options) { o.OnTruncate = OnTruncatePause }, "t/0 offset 1: the source table was truncated, and on_truncate is pause", 0},
		"of one of two partitions":         {2, func(o *Options) { o.OnTruncate = OnTruncateApply }, "nothing says whether that was before or after the changes in the pipeline's other partitions", 0},
		"of one of two ordered partitions": {2, func(o *Options) { o.OnTruncate, o.Ordered = OnTruncateApply, true }, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, test.partitions)
			produce(t, c, 0, "a", "truncate", "b")
			r := read(t, c, newSink(100), test.set)
			r.resume(at(make([]int64, test.partitions)...))
			if test.facts != "" {
				b := take(t, r.sink.batches)
				require.Equal(t, []string{"0@0"}, b.records, "what came before it is committed")
				require.EqualValues(t, 1, b.next[part(0)].Next)
				h := take(t, r.halts)
				require.Equal(t, "D-TRUNCATE", h.problem.Code)
				require.Contains(t, h.problem.Facts, test.facts)
				return
			}
			if test.truncated < 0 {
				b := drained(t, r, 3)
				require.Equal(t, test.truncated, b.truncated)
				require.Equal(t, map[Uncounted]int{CountSkipped: 1}, b.counts)
				return
			}
			require.Equal(t, []string{"0@0"}, take(t, r.sink.batches).records)
			require.Equal(t, test.truncated, drained(t, r, 2).truncated)
		})
	}
}

func TestConsumer_AnOperatorLetsOneTruncationPass(t *testing.T) {
	c := newCluster(t, 1)
	produce(t, c, 0, "truncate", "a", "truncate")
	r := read(t, c, newSink(100), func(o *Options) { o.OnTruncate = OnTruncatePause })
	r.c.StepOver() // nothing was stopped at
	r.resume(at(0))
	require.Contains(t, take(t, r.halts).problem.Facts, "t/0 offset 0")
	r.resume(at(0))
	require.Contains(t, take(t, r.halts).problem.Facts, "t/0 offset 0", "another reading is no word of an operator")

	r.c.StepOver()
	for range 2 { // what it led to may be read again before it is committed
		r.resume(at(0))
		b := take(t, r.sink.batches)
		require.Equal(t, []string{"0@0", "0@1"}, b.records)
		require.Equal(t, map[Uncounted]int{CountSkipped: 1}, b.counts)
		require.Contains(t, take(t, r.halts).problem.Facts, "t/0 offset 2", "the next one is another")
	}
	r.resume(at(2))
	require.Contains(t, take(t, r.halts).problem.Facts, "t/0 offset 2")
	r.c.StepOver()
	r.resume(at(2))
	require.Equal(t, []string{"0@2"}, drained(t, r, 1).records)
}
