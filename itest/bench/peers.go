package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"applier/itest/harness"
)

// recordedJSON are merges of engines that cannot be run here, as they were
// recorded on another machine of the same size.
//
//go:embed recorded.json
var recordedJSON []byte

type recorded struct {
	Machine, Date, Work string
	Engines             map[string]string
	Runs                []struct {
		Engine        string
		Target, Batch int64
		Median        float64 `json:"median_s"`
		CPU           float64 `json:"median_cpu_s"`
		RSS           int64   `json:"rss_MB"`
	}
}

func readRecorded() (*recorded, error) {
	var r recorded
	if err := json.Unmarshal(recordedJSON, &r); err != nil {
		return nil, fmt.Errorf("reading recorded.json: %w", err)
	}
	return &r, nil
}

// cell is one comparison: a table, a batch, and what each engine needs to merge
// the one into the other.
type cell struct {
	Target, Batch int64
	ours, rust    []*peerFigures // one a repetition
}

// peerFigures are one engine's merges of a cell, the first one left out.
type peerFigures struct {
	Engine     string  `json:"engine"`
	TargetRows int64   `json:"target_rows"`
	BatchRows  int64   `json:"batch_rows"`
	MergeS     float64 `json:"merge_s"`     // median
	MergeCPU   float64 `json:"merge_cpu_s"` // mean
	RowsPerS   float64 `json:"rows_per_s"`
	RSS        float64 `json:"rss_mb"`
	Verified   bool    `json:"verified"`
	walls      []float64
	load       string
	problem    error
}

func cells(scale int64) []*cell {
	var out []*cell
	for _, target := range []int64{million, 10 * million} {
		for _, batch := range []int64{1000, 10_000, 100_000} {
			out = append(out, &cell{Target: target / scale, Batch: max(batch/scale, 10)})
		}
	}
	return out
}

// peers runs every cell with paimon-rust and with the daemon, in turns.
func peers(ctx context.Context, f *flags, o *options, t *harness.Outside) error {
	if err := startJava(o, t); err != nil {
		return err
	}
	var rust harness.RustPeer
	if err := harness.Attempt(func() error { rust = harness.Rust(t); return nil }); err != nil {
		return fmt.Errorf("paimon-rust cannot be started: %w", err)
	}
	rec, err := readRecorded()
	if err != nil {
		return err
	}
	all := cells(f.scale)
	for range f.repeat {
		for _, c := range all {
			r, err := rustMerges(ctx, f, o, rust, c)
			if err != nil {
				return err
			}
			c.rust = append(c.rust, r)
			printPeer(os.Stdout, r)
			if r, err = ourMerges(ctx, f, o, c); err != nil {
				return err
			}
			c.ours = append(c.ours, r)
			printPeer(os.Stdout, r)
		}
	}
	return finishPeers(f, all, rec)
}

func rustMerges(ctx context.Context, f *flags, o *options, rust harness.RustPeer, c *cell) (*peerFigures, error) {
	warehouse, err := os.MkdirTemp(o.dir, "rust-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(warehouse)
	w := merge("peers", c.Target, c.Batch, int64(f.merges))
	ref := harness.Ref{Warehouse: warehouse, Table: tableName}
	r := &peerFigures{Engine: "paimon-rust", TargetRows: c.Target, BatchRows: c.Batch, load: loadAverage()}
	m, err := rust.BenchMerge(ctx, ref, harness.MergeBench{Load: w.load(), Merges: f.merges, DeletionVectors: true})
	if err != nil {
		return nil, err
	}
	var cpus []float64
	for _, x := range m.Merges[warmUp:] {
		r.walls, cpus = append(r.walls, x[0]), append(cpus, x[1])
	}
	r.RSS = float64(m.RSSMB)
	r.fill(cpus)
	got, err := o.java.Digest(ctx, ref, harness.Query{})
	if want := w.expected(o.digests); err == nil && got != want {
		err = fmt.Errorf("of paimon-rust's table Java reads %v instead of %v", got, want)
	}
	r.problem, r.Verified = err, err == nil
	return r, nil
}

func ourMerges(ctx context.Context, f *flags, o *options, c *cell) (*peerFigures, error) {
	w := merge("peers", c.Target, c.Batch, int64(f.merges))
	m, err := runOn(ctx, f, o, w)
	if err != nil {
		return nil, err
	}
	r := &peerFigures{
		Engine: "applier", TargetRows: c.Target, BatchRows: c.Batch, RSS: m.RSS, walls: m.walls,
		Verified: m.Verified, problem: m.problem, load: m.load,
	}
	r.fill(m.cpus)
	return r, nil
}

func (r *peerFigures) fill(cpus []float64) {
	r.MergeS = median(r.walls)
	for _, c := range cpus {
		r.MergeCPU += c / float64(len(cpus))
	}
	r.RowsPerS = float64(r.BatchRows) / r.MergeS
}

func printPeer(w io.Writer, r *peerFigures) {
	verdict := "equal"
	if !r.Verified {
		verdict = "VOID: " + r.problem.Error()
	}
	fmt.Fprintf(w, "%-12s %5s rows, batches of %5s: %9.4f s a merge (%.4f to %.4f), %8.4f CPU s, %s rows/s, RSS %.0f MB, load %s, read back %s\n", r.Engine,
		short(r.TargetRows), short(r.BatchRows), r.MergeS, slices.Min(r.walls), slices.Max(r.walls), r.MergeCPU, group(r.RowsPerS), r.RSS, r.load, verdict)
}

// finishPeers prints the comparison and writes the figures; a cell that was not
// won or does not count is an error.
func finishPeers(f *flags, all []*cell, rec *recorded) error {
	var out []*peerFigures
	for _, c := range all {
		out = append(out, middlePeer(c.rust), middlePeer(c.ours))
	}
	printComparison(os.Stdout, all, rec)
	if f.out != "" {
		b, err := json.MarshalIndent(out, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Clean(f.out), append(b, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing the figures: %w", err)
		}
	}
	for i := 0; i < len(out); i += 2 {
		theirs, ours := out[i], out[i+1]
		switch {
		case !theirs.Verified:
			return fmt.Errorf("paimon-rust, %s rows, batches of %s: void: %w", short(theirs.TargetRows), short(theirs.BatchRows), theirs.problem)
		case !ours.Verified:
			return fmt.Errorf("applier, %s rows, batches of %s: void: %w", short(ours.TargetRows), short(ours.BatchRows), ours.problem)
		}
	}
	return nil
}

// middlePeer is the repetition with the median time; a void one voids them all.
func middlePeer(rs []*peerFigures) *peerFigures {
	for _, r := range rs {
		if !r.Verified {
			return r
		}
	}
	s := slices.Clone(rs)
	slices.SortFunc(s, func(a, b *peerFigures) int {
		if a.MergeS < b.MergeS {
			return -1
		}
		return 1
	})
	return s[(len(s)-1)/2]
}

func printComparison(w io.Writer, all []*cell, rec *recorded) {
	fmt.Fprintf(w, "\nseconds a merge, and how many times ours that is (applier includes Kafka and decoding; the others get the batch in memory or as a Parquet file)\n")
	fmt.Fprintf(w, "%6s %6s  %9s  %18s", "rows", "batch", "applier", "paimon-rust 0.4")
	others := []string{"paimon", "paimon-v2", "iceberg", "delta"}
	for _, e := range others {
		fmt.Fprintf(w, "  %18s", e+" *")
	}
	fmt.Fprintln(w)
	for _, c := range all {
		ours, rust := middlePeer(c.ours), middlePeer(c.rust)
		fmt.Fprintf(w, "%6s %6s  %9.4f  %9.4f %7.0fx", short(c.Target), short(c.Batch), ours.MergeS, rust.MergeS, rust.MergeS/ours.MergeS)
		for _, e := range others {
			text := "-"
			for _, r := range rec.Runs {
				if r.Engine == e && r.Target == c.Target && r.Batch == c.Batch {
					text = fmt.Sprintf("%.2f %7.0fx", r.Median, r.Median/ours.MergeS)
				}
			}
			fmt.Fprintf(w, "  %18s", text)
		}
		fmt.Fprintln(w)
		if !c.won() {
			fmt.Fprintln(w, "        gate missed: won, by 10 times at 10M rows")
		}
	}
	fmt.Fprintf(w, "* recorded on %s, on another machine: %s\n", rec.Date, rec.Machine)
	for _, e := range others {
		fmt.Fprintf(w, "  %-10s %s\n", e, rec.Engines[e])
	}
}

// won says whether the cell meets its gate.
func (c *cell) won() bool {
	ours, rust := middlePeer(c.ours), middlePeer(c.rust)
	factor := 1.0
	if c.Target >= 10*million {
		factor = 10
	}
	return ours.Verified && rust.Verified && rust.MergeS > factor*ours.MergeS
}
