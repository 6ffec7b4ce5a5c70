//go:build itest && itestfull

package itest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// What the merge benchmark times is the same work: the tables of Spark's formats end
// with the rows that ours ends with.
func TestSpark_MergeBenchEndsWithTheRowsGoExpects(t *testing.T) {
	load := harness.MergeLoad{Seed: 7, TargetRows: 20_000, BatchRows: 1_000}
	for name, start := range map[string]func(testing.TB, string) harness.SparkMerges{"iceberg": harness.SparkIceberg, "delta": harness.SparkDelta} {
		t.Run(name, func(t *testing.T) {
			spark := start(t, t.TempDir())
			defer spark.End()
			r, got, err := spark.BenchMerge(t.Context(), harness.MergeBench{Load: load, Merges: 3})
			require.NoError(t, err)
			require.Equal(t, load.Expected(3), got)
			require.Len(t, r.Merges, 3)
			for _, m := range r.Merges {
				require.Positive(t, m[0])
				require.Positive(t, m[1])
			}
		})
	}
}
