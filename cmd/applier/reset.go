package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"applier/batcher"
	"applier/cmd/applier/internal/app"
	"applier/config"
	"applier/metrics"
	"applier/metrics/admin"

	"github.com/spf13/cobra"
)

func resetCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reset PIPELINE --to earliest | --to time=RFC3339 | --to [TOPIC/]PARTITION=OFFSET ...",
		Short: "Read records again from an earlier place, saying first what that means",
		Long: `Lets a pipeline that is stopped or paused read records again. It first says how many
records that are, of which time, and what applying them again does to the table, and
asks. The statement is an empty commit, protected like every other. Pipelines with a
key apply records again without doubling anything; apply: append would double rows, so
it needs --force-duplicates. To go forward, over records, is: applier offsets skip.`,
		Example: "  applier reset orders --to earliest --dry-run\n  applier reset orders --to time=2026-01-31T12:00:00Z\n  applier reset orders --to 0=1200 --to 1=900 --yes",
		Args:    cobra.MinimumNArgs(1),
	}
	file := configFlag(c)
	to := c.Flags().StringArray("to", nil, "earliest, time=RFC3339, or [TOPIC/]PARTITION=OFFSET (may be repeated)")
	dry := c.Flags().Bool("dry-run", false, "only say what would be read again")
	yes := c.Flags().Bool("yes", false, "do not ask")
	force := c.Flags().Bool("force-duplicates", false, "reset a pipeline with apply: append, which doubles rows")
	c.RunE = func(c *cobra.Command, args []string) error {
		target, err := parseReset(joinWords(*to, args[1:]))
		if err != nil {
			return err
		}
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		r := resetRun{c: c, cfg: cfg, pipeline: args[0], to: target, dry: *dry, yes: *yes, force: *force}
		return r.run(c.Context())
	}
	return c
}

// resetRun is one run of the command.
type resetRun struct {
	c               *cobra.Command
	cfg             *config.Config
	pipeline        string
	to              app.ResetTo
	dry, yes, force bool
}

func (r *resetRun) run(ctx context.Context) error {
	if !r.dry {
		if err := r.mayWrite(ctx); err != nil {
			return err
		}
	}
	kafka, log, err := app.Kafka(r.cfg, newLogger(r.c.ErrOrStderr(), r.cfg.Server.Log))
	if err != nil {
		return err
	}
	planning, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	plan, err := app.PlanReset(planning, r.cfg, r.pipeline, kafka, r.to, log)
	if err != nil {
		return err
	}
	out := r.c.OutOrStdout()
	plan.Print(out)
	switch {
	case r.dry:
		fmt.Fprintln(out, "\ndry run: nothing was written")
		return nil
	case plan.Apply == batcher.Append && !r.force:
		return usageError("refused: rows would be doubled; if that is meant, add --force-duplicates")
	case !r.yes && !confirmed(r.c.InOrStdin(), out):
		return usageError("not confirmed: nothing was written; --yes does not ask")
	}
	writing, done := context.WithTimeout(ctx, commandTimeout) // the question may have taken long
	defer done()
	o, err := stateOffsets(writing, r.c, r.cfg, r.pipeline, plan.Change())
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := printOffsets(r.c, o); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nReading goes on from there with `applier resume %s`, or at the next start.\n", r.pipeline)
	return nil
}

// mayWrite refuses a pipeline that a running process is working on.
func (r *resetRun) mayWrite(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s, err := client(r.cfg).Status(asking)
	if err != nil {
		return nil // nothing runs here
	}
	for _, p := range s.Pipelines {
		if p.Name == r.pipeline && p.State != metrics.StatePaused && p.State != metrics.StateFailed {
			return fmt.Errorf("%w: pipeline %s is %s; first: applier pause %s", admin.ErrConflict, r.pipeline, p.State, r.pipeline)
		}
	}
	return nil
}

// confirmed asks; anything but yes is no.
func confirmed(in io.Reader, out io.Writer) bool {
	fmt.Fprint(out, "\nGo ahead? Type yes: ")
	line, _ := bufio.NewReader(io.LimitReader(in, 100)).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(line), "yes")
}

// joinWords lets people write --to time 2026-01-31T12:00:00Z and --to offset 0=5 as
// they would say it: the words behind belong to --to.
func joinWords(to, rest []string) []string {
	var out []string
	for _, s := range to {
		if s != "time" && s != "offset" {
			out = append(out, s)
			continue
		}
		for _, r := range rest {
			out = append(out, s+" "+r)
		}
		rest = nil
	}
	return append(out, rest...) // words that belong nowhere are refused as values
}

// parseReset reads the values of --to.
func parseReset(list []string) (app.ResetTo, error) {
	var to app.ResetTo
	if len(list) == 0 {
		return to, usageError("say where to: --to earliest, --to time=2026-01-31T12:00:00Z, or --to PARTITION=OFFSET")
	}
	for _, s := range list {
		text := strings.TrimSpace(strings.TrimPrefix(s, "offset "))
		at, isTime := strings.CutPrefix(text, "time=")
		if !isTime {
			at, isTime = strings.CutPrefix(text, "time ")
		}
		switch {
		case text == "earliest":
			to.Earliest = true
		case isTime:
			t, err := time.Parse(time.RFC3339, at)
			if err != nil {
				return to, usageError("--to %q: %v; write time=2026-01-31T12:00:00Z", s, err)
			}
			to.Time = t
		default:
			p, err := parsePlace(text)
			if err != nil {
				return to, usageError("--to %q: use earliest, time=RFC3339, or [TOPIC/]PARTITION=OFFSET", s)
			}
			to.Positions = append(to.Positions, p)
		}
	}
	kinds := 0
	for _, given := range []bool{to.Earliest, !to.Time.IsZero(), len(to.Positions) > 0} {
		if given {
			kinds++
		}
	}
	if kinds > 1 {
		return to, usageError("--to: earliest, a time and offsets exclude each other")
	}
	return to, nil
}

// parsePlace reads [TOPIC/]PARTITION=OFFSET.
func parsePlace(s string) (admin.Position, error) {
	where, offset, _ := strings.Cut(s, "=")
	var p admin.Position
	if slash := strings.LastIndexByte(where, '/'); slash >= 0 {
		p.Topic, where = where[:slash], where[slash+1:]
	}
	n, err := strconv.ParseInt(where, 10, 32)
	if err != nil || n < 0 {
		return p, fmt.Errorf("no partition: %q", where)
	}
	p.Partition = int32(n)
	p.Next, err = strconv.ParseInt(offset, 10, 64)
	if err == nil && p.Next < 0 {
		err = fmt.Errorf("no offset: %q", offset)
	}
	return p, err
}
