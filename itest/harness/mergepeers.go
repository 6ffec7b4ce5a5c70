package harness

import (
	"context"
	"testing"
)

// MergeBench is one cell of the merge benchmark: a new table of TargetRows rows of
// MergeLoad, and Merges batches of BatchRows.
type MergeBench struct {
	Load   MergeLoad
	Merges int
}

func (b MergeBench) args() Args {
	return Args{"seed": b.Load.Seed, "target_rows": b.Load.TargetRows, "batch_rows": b.Load.BatchRows, "merges": b.Merges}
}

// MergeResult is what a peer measured.
type MergeResult struct {
	LoadS  float64      `json:"load_s"` // seconds of making the table, not a part of any merge
	Merges [][2]float64 `json:"merges"` // seconds and CPU seconds of each, the cold first one included
	RSSMB  int64        `json:"rss_mb"` // peak of the process since it started
}

// BenchMerge loads and merges. That the result is right is shown by the table's
// digest, which must equal Load.Expected(Merges). The table has deletion vectors
// enabled; paimon-rust rewrites files all the same.
func (p RustPeer) BenchMerge(ctx context.Context, ref Ref, b MergeBench) (*MergeResult, error) {
	a := b.args()
	a["warehouse"], a["table"] = ref.Warehouse, ref.Table
	var r MergeResult
	err := p.Call(ctx, "bench_merge", a, &r)
	return &r, err
}

// SparkMerges is a warm Spark session that runs the merge benchmark on tables of
// its own, of one table format.
type SparkMerges struct{ Peer }

// SparkIceberg returns Spark 4.1 with Iceberg for the merge benchmark. Its tables
// and what it spills are in dir.
func SparkIceberg(t testing.TB, dir string) SparkMerges {
	return sparkMerges(t, "iceberg", "spark", "iceberg", dir)
}

// SparkDelta returns Spark 4.0 with Delta, as SparkIceberg does.
func SparkDelta(t testing.TB, dir string) SparkMerges {
	return sparkMerges(t, "delta", "delta", "lib", dir)
}

func sparkMerges(t testing.TB, format, name, jars, dir string) SparkMerges {
	t.Helper()
	return SparkMerges{sharedPeer(t, "spark-"+format, func(string) (Spec, error) {
		s, err := pythonSpec(name, "sparkbench.py")
		if err != nil {
			return Spec{}, err
		}
		p, err := fetch(name)
		s.Env = append(s.Env, "BENCH_FORMAT="+format, "BENCH_JARS="+p[jars], "BENCH_DIR="+dir)
		return s, err
	})}
}

// BenchMerge loads, merges, drops the table, and returns its last digest too, as
// Spark read it.
func (p SparkMerges) BenchMerge(ctx context.Context, b MergeBench) (*MergeResult, Digest, error) {
	var r struct {
		MergeResult
		Count  int64
		Digest string
	}
	err := p.Call(ctx, "bench_merge", b.args(), &r)
	return &r.MergeResult, Digest{Rows: r.Count, Hash: r.Digest}, err
}
