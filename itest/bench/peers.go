package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"applier/itest/harness"
)

// peer is an engine that merges the same batches into a table of its own.
type peer struct {
	name  string
	about string
	// start returns how it merges a cell and how it ends.
	start func(f *flags, o *options, t *harness.Outside) (merges mergeFunc, end func(), err error)
}

// mergeFunc runs a cell.
type mergeFunc func(ctx context.Context, w workload) (*peerFigures, error)

// theirs are the peers, in the order of the report.
var theirs = []peer{
	{"paimon-rust", "paimon-rust 0.4.0 on DataFusion, no JVM; batch in memory; rewrites files also where deletion vectors are enabled", startRust},
	{"iceberg", "Spark 4.1.2 + Iceberg 1.12.0, format v3, merge-on-read (deletion vectors)", spark("iceberg", harness.SparkIceberg)},
	{"delta", "Spark 4.0.1 + Delta 4.0.0, deletion vectors", spark("delta", harness.SparkDelta)},
}

// cell is one comparison: a table, a batch, and what each engine needs to merge
// the one into the other.
type cell struct {
	workload
	ours   []*peerFigures            // one a repetition
	theirs map[string][]*peerFigures // the same, by name
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
	problem    error // why it is not verified
}

// peerWorkloads are the cells; a run of one has so many merges, the first one
// of which does not count.
func peerWorkloads(merges int) []workload {
	var out []workload
	for _, target := range []int64{million, 10 * million} {
		for _, batch := range []int64{1000, 10_000, 100_000} {
			out = append(out, merge("peers", target, batch, int64(merges)))
		}
	}
	return out
}

// choosePeers returns the peers of a comma-separated list of names, "" for all.
func choosePeers(names string) ([]peer, error) {
	if names == "" {
		return theirs, nil
	}
	var out []peer
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(theirs, func(p peer) bool { return strings.EqualFold(p.name, strings.TrimSpace(name)) })
		if i < 0 {
			return nil, fmt.Errorf("there is no peer %q", name)
		}
		out = append(out, theirs[i])
	}
	return out, nil
}

// peers runs the cells, table by table: each peer, then the daemon. A peer ends
// with its table: side by side they would not fit into memory.
func peers(ctx context.Context, f *flags, o *options, t *harness.Outside, ws []workload) error {
	ps, err := choosePeers(f.with)
	if err != nil {
		return err
	}
	rec, err := readRecorded()
	if err != nil {
		return err
	}
	if f.noJava {
		return errors.New("peers are compared with Paimon's Java as judge: leave out -no-java")
	}
	if len(ws) == 0 {
		return errors.New("no cell is chosen: the names are peers-1M-1k and the like")
	}
	if err := startJava(o, t); err != nil {
		return err
	}
	var all []*cell
	tables := map[int64][]*cell{}
	for _, w := range ws {
		c := &cell{workload: w.scaled(f.scale), theirs: map[string][]*peerFigures{}}
		all = append(all, c)
		tables[c.Target] = append(tables[c.Target], c)
	}
	for range f.repeat {
		for _, target := range slices.Sorted(maps.Keys(tables)) {
			if err := runTable(ctx, f, o, t, ps, tables[target]); err != nil {
				return err
			}
		}
	}
	return finishPeers(f, ps, all, rec)
}

// runTable runs the cells of one table with every engine.
func runTable(ctx context.Context, f *flags, o *options, t *harness.Outside, ps []peer, cells []*cell) error {
	for _, p := range ps {
		merges, end, err := p.start(f, o, t)
		if err != nil {
			return fmt.Errorf("%s cannot be started: %w", p.name, err)
		}
		for _, c := range cells {
			r, err := merges(ctx, c.workload)
			if err != nil {
				end()
				return fmt.Errorf("%s, %s: %w", p.name, c.Name, err)
			}
			c.theirs[p.name] = append(c.theirs[p.name], r)
			printPeer(os.Stdout, r)
		}
		end()
	}
	for _, c := range cells {
		r, err := ourMerges(ctx, f, o, c.workload)
		if err != nil {
			return err
		}
		c.ours = append(c.ours, r)
		printPeer(os.Stdout, r)
	}
	return nil
}

func startRust(_ *flags, o *options, t *harness.Outside) (mergeFunc, func(), error) {
	var rust harness.RustPeer
	if err := harness.Attempt(func() error { rust = harness.Rust(t); return nil }); err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, w workload) (*peerFigures, error) {
		warehouse, err := os.MkdirTemp(o.dir, "rust-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(warehouse)
		ref := harness.Ref{Warehouse: warehouse, Table: tableName}
		r := newPeerFigures("paimon-rust", w)
		m, err := rust.BenchMerge(ctx, ref, harness.MergeBench{Load: w.load(), Merges: int(w.Batches)})
		if err != nil {
			return nil, err
		}
		got, err := o.java.Digest(ctx, ref, harness.Query{})
		if err != nil {
			return nil, err
		}
		r.fill(m, got, w.expected(o.digests))
		return r, nil
	}, rust.End, nil
}

// spark returns how a Spark session with a table format is started.
func spark(name string, session func(testing.TB, string) harness.SparkMerges) func(*flags, *options, *harness.Outside) (mergeFunc, func(), error) {
	return func(_ *flags, o *options, t *harness.Outside) (mergeFunc, func(), error) {
		dir, err := os.MkdirTemp(o.dir, name+"-")
		if err != nil {
			return nil, nil, err
		}
		var s harness.SparkMerges
		if err := harness.Attempt(func() error { s = session(t, dir); return nil }); err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context, w workload) (*peerFigures, error) {
				r := newPeerFigures(name, w)
				m, got, err := s.BenchMerge(ctx, harness.MergeBench{Load: w.load(), Merges: int(w.Batches)})
				if err != nil {
					return nil, err
				}
				r.fill(m, got, w.expected(o.digests))
				return r, nil
			}, func() {
				s.End()
				_ = os.RemoveAll(dir)
			}, nil
	}
}

func newPeerFigures(engine string, w workload) *peerFigures {
	return &peerFigures{Engine: engine, TargetRows: w.Target, BatchRows: w.Batch, load: loadAverage()}
}

// fill takes over what a peer measured and compares what its table holds.
func (r *peerFigures) fill(m *harness.MergeResult, got, want harness.Digest) {
	var cpus []float64
	for _, x := range m.Merges[warmUp:] {
		r.walls, cpus = append(r.walls, x[0]), append(cpus, x[1])
	}
	r.RSS = float64(m.RSSMB)
	r.average(cpus)
	if got != want {
		r.problem = fmt.Errorf("of the table of %s %v were read instead of %v", r.Engine, got, want)
	}
	r.Verified = r.problem == nil
}

func ourMerges(ctx context.Context, f *flags, o *options, w workload) (*peerFigures, error) {
	m, err := runOn(ctx, f, o, w)
	if err != nil {
		return nil, err
	}
	r := newPeerFigures("applier", w)
	r.RSS, r.walls, r.Verified, r.problem, r.load = m.RSS, m.walls, m.Verified, m.problem, m.load
	r.average(m.cpus)
	return r, nil
}

func (r *peerFigures) average(cpus []float64) {
	r.MergeS = median(r.walls)
	for _, c := range cpus {
		r.MergeCPU += c / float64(len(cpus))
	}
	r.RowsPerS = float64(r.BatchRows) / r.MergeS
}
