package harness

import "context"

// SQLPeer is a judge that also runs statements. In Flink and paimon-rust the
// warehouse is the catalog p: SELECT … FROM p.db.t.
type SQLPeer struct{ Peer }

// SQL runs one statement and returns its rows.
func (p SQLPeer) SQL(ctx context.Context, warehouse, statement string) (*Rows, error) {
	var r Rows
	err := p.Call(ctx, "sql", Args{"warehouse": warehouse, "sql": statement}, &r)
	return &r, err
}

// RustPeer is paimon-rust.
type RustPeer struct{ Peer }

// SQL runs one statement on the warehouse as catalog p.
func (p RustPeer) SQL(ctx context.Context, warehouse, statement string) (*Rows, error) {
	return SQLPeer(p).SQL(ctx, warehouse, statement)
}

// MergeBench is one cell of the merge benchmark: a new table ref of TargetRows
// rows of MergeLoad, and Merges batches of BatchRows.
type MergeBench struct {
	Load            MergeLoad
	Merges          int
	DeletionVectors bool // the table's option; paimon-rust rewrites files all the same
}

// MergeResult is what a peer measured. Times are seconds; the medians leave the
// first, cold merge out.
type MergeResult struct {
	LoadS      float64      `json:"load_s"`
	Merges     [][2]float64 `json:"merges"` // wall, CPU
	MedianS    float64      `json:"median_s"`
	MedianCPUS float64      `json:"median_cpu_s"`
	FinalRows  int64        `json:"final_rows"`
	RSSMB      int64        `json:"rss_mb"`
}

// BenchMerge loads and merges. That the result is right is shown by the table's
// digest, which must equal Load.Expected(Merges).
func (p RustPeer) BenchMerge(ctx context.Context, ref Ref, b MergeBench) (*MergeResult, error) {
	a := ref.args()
	a["seed"], a["target_rows"], a["batch_rows"], a["merges"] = b.Load.Seed, b.Load.TargetRows, b.Load.BatchRows, b.Merges
	a["deletion_vectors"] = b.DeletionVectors
	var r MergeResult
	err := p.Call(ctx, "bench_merge", a, &r)
	return &r, err
}
