package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// recordedJSON are merges of an engine that cannot be run here, as they were
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

// recordedEngines are those of recorded.json, in the order of the report.
var recordedEngines = []string{"paimon", "paimon-v2"}

func readRecorded() (*recorded, error) {
	var r recorded
	if err := json.Unmarshal(recordedJSON, &r); err != nil {
		return nil, fmt.Errorf("reading recorded.json: %w", err)
	}
	return &r, nil
}

// text is what an engine took for a cell, and how many times ours that is.
func (rec *recorded) text(engine string, c *cell, ours float64) string {
	for _, r := range rec.Runs {
		if r.Engine == engine && r.Target == c.Target && r.Batch == c.Batch {
			return fmt.Sprintf("%.2f %7.0fx", r.Median, r.Median/ours)
		}
	}
	return "-"
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
func finishPeers(f *flags, ps []peer, all []*cell, rec *recorded) error {
	printComparison(os.Stdout, ps, all, rec)
	if f.out != "" {
		var out []*peerFigures
		for _, c := range all {
			for _, p := range ps {
				out = append(out, middlePeer(c.theirs[p.name]))
			}
			out = append(out, middlePeer(c.ours))
		}
		b, err := json.MarshalIndent(out, "", "  ")
		if err == nil {
			err = os.WriteFile(filepath.Clean(f.out), append(b, '\n'), 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing the figures: %w", err)
		}
	}
	var problems []error
	for _, c := range all {
		for _, p := range ps {
			if err := c.judge(p.name); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", c.Name, err))
			}
		}
	}
	return errors.Join(problems...)
}

// judge says why the cell does not meet its gate against a peer.
func (c *cell) judge(name string) error {
	ours, peer := middlePeer(c.ours), middlePeer(c.theirs[name])
	for _, r := range []*peerFigures{ours, peer} {
		if !r.Verified {
			return fmt.Errorf("%s is void: %w", r.Engine, r.problem)
		}
	}
	if factor := c.factor(); peer.MergeS <= factor*ours.MergeS {
		return fmt.Errorf("not won: %s took %.4f s a merge and applier %.4f s; the gate is %.0f times", name, peer.MergeS, ours.MergeS, factor)
	}
	return nil
}

// factor is by how much a cell must be won: the gap widens with the table.
func (c *cell) factor() float64 {
	if c.Target >= 10*million {
		return 10
	}
	return 1
}

// middlePeer is the repetition with the median time; a void one voids them all.
func middlePeer(rs []*peerFigures) *peerFigures {
	for _, r := range rs {
		if !r.Verified {
			return r
		}
	}
	s := slices.Clone(rs)
	slices.SortFunc(s, func(a, b *peerFigures) int { return cmp.Compare(a.MergeS, b.MergeS) })
	return s[(len(s)-1)/2]
}

func printComparison(w io.Writer, ps []peer, all []*cell, rec *recorded) {
	fmt.Fprintf(w, "\nseconds a merge, and how many times ours that is (applier includes Kafka and decoding; the others get the batch in memory or as a Parquet file)\n")
	printCells(w, ps, all, func(r *peerFigures) float64 { return r.MergeS }, rec)
	fmt.Fprintf(w, "\nCPU seconds a merge, the same way\n")
	printCells(w, ps, all, func(r *peerFigures) float64 { return r.MergeCPU }, nil)
	for _, p := range ps {
		fmt.Fprintf(w, "  %-11s %s\n", p.name, p.about)
	}
	fmt.Fprintf(w, "* recorded on %s, on another machine: %s\n", rec.Date, rec.Machine)
	for _, e := range recordedEngines {
		fmt.Fprintf(w, "  %-11s %s\n", e, rec.Engines[e])
	}
}

// printCells prints one figure of every cell; of recorded engines too, unless rec is nil.
func printCells(w io.Writer, ps []peer, all []*cell, figure func(*peerFigures) float64, rec *recorded) {
	fmt.Fprintf(w, "%6s %6s  %9s", "rows", "batch", "applier")
	for _, p := range ps {
		fmt.Fprintf(w, "  %18s", p.name)
	}
	if rec != nil {
		for _, e := range recordedEngines {
			fmt.Fprintf(w, "  %18s", e+" *")
		}
	}
	fmt.Fprintln(w)
	for _, c := range all {
		ours := figure(middlePeer(c.ours))
		fmt.Fprintf(w, "%6s %6s  %9.4f", short(c.Target), short(c.Batch), ours)
		for _, p := range ps {
			x := figure(middlePeer(c.theirs[p.name]))
			fmt.Fprintf(w, "  %18s", fmt.Sprintf("%.3f %7.0fx", x, x/ours))
		}
		if rec != nil {
			for _, e := range recordedEngines {
				fmt.Fprintf(w, "  %18s", rec.text(e, c, ours))
			}
		}
		fmt.Fprintln(w)
	}
}
