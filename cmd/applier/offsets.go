package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"applier/cmd/applier/internal/app"
	"applier/config"
	"applier/metrics/admin"

	"github.com/spf13/cobra"
)

func offsetsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "offsets",
		Short: "Show or state where a pipeline stands",
		Long: `The Kafka positions of a pipeline stand in the table's snapshots. These commands
show them and, with an empty commit, state others. They work on the table itself,
beside a running process (which finds the statement and goes on from it) or
without one.`,
	}
	c.AddCommand(offsetsShow(), offsetsSet(), offsetsSkip(), offsetsAdopt())
	return c
}

func offsetsShow() *cobra.Command {
	c := &cobra.Command{Use: "show PIPELINE", Short: "Show the recorded positions beside Kafka's", Args: cobra.ExactArgs(1)}
	file := configFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), commandTimeout)
		defer cancel()
		kafka, log, err := app.Kafka(cfg, newLogger(c.ErrOrStderr(), cfg.Server.Log))
		if err != nil {
			return err
		}
		o, err := app.ShowOffsets(ctx, cfg, args[0], kafka, log)
		if err != nil {
			return err
		}
		return printOffsets(c, o)
	}
	return c
}

// changeCommand is a command that states positions.
func changeCommand(use, short, long string, flags func(*cobra.Command) func() (admin.OffsetChange, error)) *cobra.Command {
	c := &cobra.Command{Use: use + " PIPELINE", Short: short, Long: long, Args: cobra.ExactArgs(1)}
	file := configFlag(c)
	dry := c.Flags().Bool("dry-run", false, "only show what would be stated")
	read := flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		change, err := read()
		if err != nil {
			return err
		}
		change.DryRun = *dry
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), commandTimeout)
		defer cancel()
		o, err := stateOffsets(ctx, c, cfg, args[0], change)
		if err != nil {
			return err
		}
		return printOffsets(c, o)
	}
	return c
}

// stateOffsets asks the running process if there is one, so that it goes on at once;
// else it works on the table alone.
func stateOffsets(ctx context.Context, c *cobra.Command, cfg *config.Config, pipeline string, ch admin.OffsetChange) (admin.Offsets, error) {
	if _, err := client(cfg).Status(ctx); err == nil {
		return client(cfg).ChangeOffsets(ctx, pipeline, ch)
	}
	kafka, log, err := app.Kafka(cfg, newLogger(c.ErrOrStderr(), cfg.Server.Log))
	if err != nil {
		return admin.Offsets{}, err
	}
	return app.ChangeOffsets(ctx, cfg, pipeline, kafka, ch, log)
}

func offsetsSet() *cobra.Command {
	return changeCommand("set", "State where to read from",
		`States the positions to read from. Partitions that are not named keep theirs; those
without a record, and those of a topic that was created again, begin at the log's
start. What was applied before is not undone: records read again are applied again
(by key that changes nothing but time; under apply: append it doubles rows).`,
		func(c *cobra.Command) func() (admin.OffsetChange, error) {
			to := c.Flags().StringArray("to", nil, "TOPIC/PARTITION=OFFSET, may be repeated")
			at := c.Flags().String("time", "", "the first records at or after this time (RFC 3339)")
			return func() (admin.OffsetChange, error) {
				ch := admin.OffsetChange{Action: admin.ActionSet}
				if *at != "" {
					t, err := time.Parse(time.RFC3339, *at)
					if err != nil {
						return ch, usageError("--time: %v; write 2026-01-31T12:00:00Z", err)
					}
					ch.Time = t
				}
				var err error
				ch.Positions, err = parsePositions(*to)
				return ch, err
			}
		})
}

func offsetsSkip() *cobra.Command {
	return changeCommand("skip", "Step over records that are gone or cannot be applied",
		`Moves positions forward and records in the table how many offsets were skipped.
Without --to every partition whose next records are gone from Kafka moves to the
log's start. To step over one bad record at offset N, state --to TOPIC/PARTITION=N+1.`,
		func(c *cobra.Command) func() (admin.OffsetChange, error) {
			to := c.Flags().StringArray("to", nil, "TOPIC/PARTITION=OFFSET, may be repeated")
			return func() (admin.OffsetChange, error) {
				p, err := parsePositions(*to)
				return admin.OffsetChange{Action: admin.ActionSkip, Positions: p}, err
			}
		})
}

func offsetsAdopt() *cobra.Command {
	return changeCommand("adopt", "Take over the record found in the table",
		`Writes the newest position record of the table again as this pipeline's own: after
the table was copied, after another pipeline id fed it, or to accept changed
settings (key, apply or merge.when, topics) from the next record on.`,
		func(*cobra.Command) func() (admin.OffsetChange, error) {
			return func() (admin.OffsetChange, error) { return admin.OffsetChange{Action: admin.ActionAdopt}, nil }
		})
}

// parsePositions reads TOPIC/PARTITION=OFFSET.
func parsePositions(list []string) ([]admin.Position, error) {
	var out []admin.Position
	for _, s := range list {
		where, offset, ok := strings.Cut(s, "=")
		slash := strings.LastIndexByte(where, '/')
		if !ok || slash < 1 {
			return nil, usageError("--to %q: write TOPIC/PARTITION=OFFSET", s)
		}
		part, err1 := strconv.ParseInt(where[slash+1:], 10, 32)
		next, err2 := strconv.ParseInt(offset, 10, 64)
		if err1 != nil || err2 != nil || part < 0 || next < 0 {
			return nil, usageError("--to %q: write TOPIC/PARTITION=OFFSET", s)
		}
		out = append(out, admin.Position{Topic: where[:slash], Partition: int32(part), Next: next})
	}
	return out, nil
}

func printOffsets(c *cobra.Command, o admin.Offsets) error {
	out := c.OutOrStdout()
	fmt.Fprintf(out, "pipeline %s, table %s", o.Pipeline, o.Table)
	if o.Snapshot > 0 {
		fmt.Fprintf(out, ", snapshot %d", o.Snapshot)
	}
	fmt.Fprintln(out)
	if o.Note != "" {
		fmt.Fprintln(out, o.Note)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "topic\tpartition\tnext\tlog start\tlog end\tlag\t")
	number := func(n int64) string {
		if n < 0 {
			return "-"
		}
		return strconv.FormatInt(n, 10)
	}
	for _, p := range o.Partitions {
		lag := int64(-1)
		if p.Next >= 0 && p.End >= 0 {
			lag = max(p.End-p.Next, 0)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t\n", p.Topic, p.Partition, number(p.Next), number(p.Start), number(p.End), number(lag))
	}
	return w.Flush()
}
