package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const row = "%-12s %10s %9s %9s %8s %8s %7s %6s %7s %7s %7s %6s %8s\n"

func printHeader(w io.Writer) {
	fmt.Fprintf(w, "\n"+row, "workload", "rows/s", "CPU s/M", "p50 ms", "p99 ms", "RSS MB", "idx B/k", "data", "DV", "meta", "meta/c", "load", "read back")
	fmt.Fprintf(w, row, "", "", "", "", "", "", "", "B/row", "B/row", "B/row", "KiB", "", "")
}

func printFigures(w io.Writer, f *figures) {
	n := float64(f.BatchRows) * float64(f.commits)
	verdict := "equal"
	if !f.Verified {
		verdict = "VOID"
	}
	num := func(x float64, digits int) string { return fmt.Sprintf("%.*f", digits, x) }
	fmt.Fprintf(w, row, f.Workload, group(f.RowsPerSecond), num(f.CPUPerMillion, 2), num(f.CommitP50, 1), num(f.CommitP99, 1), num(f.RSS, 0),
		num(f.IndexBytesPerKey, 1), num(float64(f.BytesData)/n, 1), num(float64(f.BytesVectors)/n, 1), num(float64(f.BytesMetadata)/n, 1),
		num(float64(f.BytesMetadata)/float64(f.commits)/1024, 1), f.load, verdict)
	if !f.Verified {
		fmt.Fprintf(w, "    %v\n", f.problem)
	}
	fmt.Fprintf(w, "    %s\n", f.detail())
}

// detail says where the time of a commit went, and more.
func (f *figures) detail() string {
	var parts []string
	names := slices.Sorted(maps.Keys(f.stages))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(f.stages[b], f.stages[a]) })
	for _, n := range names {
		if ms := f.stages[n]; ms >= 0.05 {
			parts = append(parts, fmt.Sprintf("%s %.1f", n, ms))
		}
	}
	text := fmt.Sprintf("commit, ms: %s; metadata at most %.1f KiB, last third of the commits %.2f× the first", strings.Join(parts, ", "),
		float64(f.maxMeta)/1024, f.metaSlop)
	if f.compactions > 0 {
		text += fmt.Sprintf("; %d compactions", f.compactions)
	}
	if f.rebuildRate > 0 {
		text += fmt.Sprintf("; index built at %.1f M keys/s", f.rebuildRate/1e6)
	}
	return text
}

func printKernels(w io.Writer, ks []kernel) {
	fmt.Fprintln(w, "\nkernels, one core alone")
	for _, k := range ks {
		fmt.Fprintf(w, "  %-12s %9.2f %-8s %s\n", k.Name, k.Value, k.Unit, k.What)
	}
	fmt.Fprintf(w, "  %-12s %9.2f %-8s %s\n", "floor", floor(ks), "ns/row", "K1 + K2 + K3 + K4 + K5 of a merge with 90 % updates")
}

// printRatios prints what can be compared between machines.
func printRatios(w io.Writer, fs []*figures, ks []kernel) {
	by := map[string]*figures{}
	for _, f := range fs {
		by[f.Workload] = f
	}
	fmt.Fprintln(w, "\nratios")
	printKernelRatios(w, ks)
	for _, batch := range []string{"10k", "100k"} {
		small, large := by["W2-1M-"+batch], by["W2-10M-"+batch]
		if small != nil && large != nil {
			fmt.Fprintf(w, "  growth, %s batches, CPU per row at 10M rows to 1M rows: %.2f\n", batch, large.CPUPerMillion/small.CPUPerMillion)
		}
	}
	for _, target := range []string{"1M", "10M"} {
		preset, clauses := by["W2-"+target+"-100k"], by["W2c-"+target+"-100k"]
		if preset != nil && clauses != nil {
			fmt.Fprintf(w, "  merge.when to the preset that it says, %s rows: %.2f times the CPU per row, %.2f times the time\n", target,
				clauses.CPUPerMillion/preset.CPUPerMillion, preset.RowsPerSecond/clauses.RowsPerSecond)
		}
	}
	if f := by["W2-10M-100k"]; f != nil && len(ks) > 0 {
		fmt.Fprintf(w, "  efficiency, kernel floors to measured CPU per row (Kafka included), W2-10M-100k: %.2f\n", floor(ks)/1000/f.CPUPerMillion)
	}
	if worn, fresh := by["W9-50M-100k-worn"], by["W9-50M-100k"]; worn != nil && fresh != nil {
		ratio, verdict := worn.CPUPerMillion/fresh.CPUPerMillion, "missed"
		if worn.Verified && fresh.Verified && worn.compactions > 0 && ratio <= 2 {
			verdict = "met"
		}
		fmt.Fprintf(w, "  gate %-6s 50M rows, 10 %% deleted, maintained, to 50M fresh rows: CPU per row %.2f (at most 2), time per row %.2f\n",
			verdict, ratio, fresh.RowsPerSecond/worn.RowsPerSecond)
	}
	for _, g := range []struct {
		name string
		ok   func(f *figures) bool
		what string
	}{
		{"W2-10M-100k", func(f *figures) bool { return f.RowsPerSecond >= 300_000 }, "at least 300,000 rows/s"},
		{"W2-10M-100k", func(f *figures) bool { return f.CPUPerMillion <= 4 }, "at most 4 CPU s per million rows"},
		{"W2-10M-100k", func(f *figures) bool { return f.IndexBytesPerKey <= 24 }, "index at most 24 bytes a key"},
		{"W2-10M-100k", func(f *figures) bool { return f.maxMeta <= 64<<10 }, "at most 64 KiB of metadata a commit"},
		{"W0", func(f *figures) bool { return f.CommitP50 <= 10 }, "a commit of one row within 10 ms, p50"},
	} {
		if f := by[g.name]; f != nil {
			verdict := "missed"
			if f.Verified && g.ok(f) {
				verdict = "met"
			}
			fmt.Fprintf(w, "  gate %-6s %-12s %s\n", verdict, g.name, g.what)
		}
	}
}

// printKernelRatios compares what is done with whole tables.
func printKernelRatios(w io.Writer, ks []kernel) {
	by := map[string]float64{}
	for _, k := range ks {
		by[k.Name] = k.Value
	}
	for _, r := range []struct{ name, to, what string }{
		{"K9 marked", "K9 scan", "scan with deletion vectors to one without, CPU"},
		{"K9 pruned", "K9 scan", "scan of a tenth by statistics to one of all, CPU"},
		{"K10 verbatim", "K10 encode", "compaction of row groups as they are to writing rows again, CPU per byte"},
	} {
		if by[r.to] > 0 {
			fmt.Fprintf(w, "  %s: %.3f\n", r.what, by[r.name]/by[r.to])
		}
	}
}

// middle is the run with the median rows/s; a void one voids them all.
func middle(fs []*figures) *figures {
	for _, f := range fs {
		if !f.Verified {
			return f
		}
	}
	s := slices.Clone(fs)
	slices.SortFunc(s, func(a, b *figures) int { return cmp.Compare(a.RowsPerSecond, b.RowsPerSecond) })
	return s[(len(s)-1)/2]
}

// group writes 1234567 as 1,234,567.
func group(x float64) string {
	s := fmt.Sprintf("%.0f", x)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
