package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"applier/config"
	"applier/metrics/admin"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// watchInterval is how often status --watch looks.
const watchInterval = 2 * time.Second

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show the state of a running process: what its pipelines do, and why they do not", Args: cobra.NoArgs,
		Long: `Shows each pipeline with its state and what keeps it from its work, how old its
table is against what is promised (freshness_slo), the lag, the last commits, and the
size and shape of index and table. --watch goes on until Ctrl-C.`,
	}
	file := configFlag(c)
	asJSON := c.Flags().Bool("json", false, "print JSON")
	watch := c.Flags().Bool("watch", false, "show it again every two seconds")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		out := c.OutOrStdout()
		if *watch {
			return watchStatus(c.Context(), out, cfg, *asJSON)
		}
		s, err := askStatus(c.Context(), cfg)
		if err != nil {
			return err
		}
		return showStatus(out, s, *asJSON)
	}
	return c
}

func askStatus(ctx context.Context, cfg *config.Config) (admin.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	s, err := client(cfg).Status(ctx)
	if err != nil {
		return s, unreachable(err, cfg)
	}
	return s, nil
}

func showStatus(out io.Writer, s admin.Status, asJSON bool) error {
	if !asJSON {
		printStatus(out, s, time.Now())
		return nil
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

// watchStatus shows the status until ctx ends. A process that does not answer may
// come back. On a terminal each picture takes the place of the one before.
func watchStatus(ctx context.Context, out io.Writer, cfg *config.Config, asJSON bool) error {
	clean := ""
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		clean = "\x1b[H\x1b[2J"
	}
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		s, err := askStatus(ctx, cfg)
		if ctx.Err() != nil {
			return nil
		}
		var b strings.Builder
		b.WriteString(clean)
		if !asJSON {
			fmt.Fprintf(&b, "%s\n", time.Now().Format(time.DateTime))
		}
		if err != nil {
			fmt.Fprintf(&b, "%s\n", oneLine(err.Error()))
		} else if err := showStatus(&b, s, asJSON); err != nil {
			return err
		}
		if _, err := io.WriteString(out, b.String()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// printStatus writes the status for people.
func printStatus(out io.Writer, s admin.Status, now time.Time) {
	for i := range s.Pipelines {
		p := &s.Pipelines[i]
		fmt.Fprintf(out, "%-20s %-16s table %s, snapshot %d, lag %d records, %d commits\n", p.Name, p.State, p.Table, p.Snapshot, p.LagRecords, p.Rows.Commits)
		for _, line := range whyLines(p) {
			fmt.Fprintf(out, "    %s\n", oneLine(line))
		}
		for _, line := range figureLines(p, now) {
			fmt.Fprintf(out, "    %s\n", line)
		}
		for _, c := range p.Commits {
			fmt.Fprintf(out, "    commit %d %s ago: %d records, %d inserted, %d updated, %d deleted, in %s\n",
				c.Snapshot, span(now.Sub(c.Time)), c.Records, c.Inserted, c.Updated, c.Deleted, span(time.Duration(c.Seconds*float64(time.Second))))
		}
	}
}

// whyLines say what keeps a pipeline from its work, and what an operator should know.
func whyLines(p *admin.PipelineStatus) (lines []string) {
	if p.Halt != nil {
		lines = append(lines, p.Halt.Code+": "+p.Halt.Message, p.Halt.Remedy)
	} else if p.Why != "" {
		lines = append(lines, p.Why)
	}
	if forgotten := p.Deletes.Forgotten(); forgotten != "" {
		lines = append(lines, forgotten)
	}
	for _, a := range p.Alarms {
		lines = append(lines, a.Code+": "+a.Message, a.Remedy)
	}
	if p.LastError != "" {
		lines = append(lines, p.LastError)
	}
	return lines
}

// figureLines are freshness, index and table in numbers.
func figureLines(p *admin.PipelineStatus, now time.Time) (lines []string) {
	seconds := func(s float64) string { return span(time.Duration(s * float64(time.Second))) }
	fresh := "fresh: not known"
	switch {
	case p.FreshnessSeconds > 0:
		fresh = "fresh: as of " + seconds(p.FreshnessSeconds) + " ago"
	case p.FreshnessKnown:
		fresh = "fresh: everything in Kafka is in the table"
	}
	if slo := p.FreshnessSLOSeconds; slo > 0 {
		fresh += ", promised within " + seconds(slo)
		if p.FreshnessSeconds > slo {
			fresh += ": LATE"
		}
	}
	if !p.LastCommit.IsZero() {
		fresh += "; last commit " + span(now.Sub(p.LastCommit)) + " ago"
	}
	if p.Health == nil {
		return nil // it has not started: nothing is known of freshness either
	}
	h := p.Health
	table := fmt.Sprintf("table: %d rows and %d deleted ones in %d files (%d small), %d snapshots", h.LiveRows, h.DeletedRows, h.Files, h.SmallFiles, h.Snapshots)
	if h.UncompactedSeconds > 0 {
		table += ", to be compacted since " + seconds(h.UncompactedSeconds)
	}
	return []string{fresh, table, fmt.Sprintf("index: %d keys in %.1f MiB", p.Index.Keys, float64(p.Index.MemoryBytes)/(1<<20))}
}

// span writes a time span as exactly as people want to know it.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// oneLine keeps texts from elsewhere from moving the cursor of a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
