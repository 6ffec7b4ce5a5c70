package harness

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMergeLoad_BatchesUpdateDistinctRowsAndInsertNewOnes(t *testing.T) {
	l := MergeLoad{Seed: 3, TargetRows: 1000, BatchRows: 100}
	next := l.TargetRows
	for k := int64(1); k <= 20; k++ {
		ids := l.Batch(k)
		require.Len(t, ids, 100)
		seen := map[int64]bool{}
		for i, id := range ids {
			require.False(t, seen[id])
			seen[id] = true
			if i < 90 {
				require.Less(t, id, next)
			} else {
				require.Equal(t, next+int64(i-90), id)
			}
		}
		next += 10
	}
	require.NotEqual(t, l.Batch(1), MergeLoad{Seed: 4, TargetRows: 1000, BatchRows: 100}.Batch(1))
	require.Panics(t, func() { MergeLoad{TargetRows: 10, BatchRows: 10}.Batch(1) })
}

func TestMergeLoad_RowsAreJSONOfTheTable(t *testing.T) {
	l := MergeLoad{Seed: 1}
	require.Equal(t, `{"id":100000,"v":4947654144042200424,"name":"user-4817138896849549661","city":"city-354","score":864.9470209510897,`+
		`"amount":"8996500765.90","ts":"2023-10-29T03:17:45.560038","d":"2004-09-29"}`, string(l.Row(100000, 1).AppendJSON(nil)))
	for id := range int64(200) {
		var m map[string]any
		require.NoError(t, json.Unmarshal(l.Row(id, 0).AppendJSON(nil), &m))
		require.Len(t, m, len(MergeColumns))
		require.NotEqual(t, l.Row(id, 0), l.Row(id, 1))
	}
}

func TestMergeLoad_ExpectedFollowsTheBatches(t *testing.T) {
	l := MergeLoad{Seed: 5, TargetRows: 500, BatchRows: 50}
	model := map[int64]int64{}
	for id := range l.TargetRows {
		model[id] = 0
	}
	for k := range int64(7) {
		require.Equal(t, digestOfModel(l, model), l.Expected(k))
		for _, id := range l.Batch(k + 1) {
			model[id] = k + 1
		}
	}
}

func digestOfModel(l MergeLoad, model map[int64]int64) Digest {
	var s Summer
	for id, v := range model {
		s.Add(l.Row(id, v).AppendJSON(nil))
	}
	return s.Digest()
}

func BenchmarkMergeLoad_RowText(b *testing.B) {
	l := MergeLoad{Seed: 1}
	var buf []byte
	b.ReportAllocs()
	for i := range b.N {
		buf = l.Row(int64(i), 0).AppendJSON(buf[:0])
	}
}
