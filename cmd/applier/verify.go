package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"applier/cmd/applier/internal/app"
	"applier/cmd/applier/internal/verify"
	"applier/config"
	"applier/ingest"
	"applier/storage/paimon"

	"github.com/spf13/cobra"
)

func verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify PIPELINE",
		Short: "Prove a pipeline's table: files, counts, keys, positions, and Kafka's records",
		Long: `Reads the table of a pipeline and proves that it is what it says it is: the chain of
snapshots, manifests against files, row counts, deletion vectors, keys, position
records, and, as far as Kafka still has them, that exactly the recorded ranges were
applied and made the rows that are there. --full reads every row of every retained
file and compares the statistics. Nothing is written; it works beside a running
process and without one. docs/verify.md explains each section.

Exit codes: 0 proven; 1 damaged, the report names file or key; 2 bad command line or
configuration; 4 no damage found, but something could not be read.`,
		Args: cobra.ExactArgs(1),
	}
	file := configFlag(c)
	full := c.Flags().Bool("full", false, "read every row of every retained data file")
	offline := c.Flags().Bool("offline", false, "do not ask Kafka")
	format := c.Flags().String("format", "text", "text or json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *format != "text" && *format != "json" {
			return usageError("--format %q: use text or json", *format)
		}
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		r, err := verifyTable(c.Context(), cfg, args[0], *full, *offline, c.ErrOrStderr())
		if err != nil {
			return err
		}
		if err := printReport(c.OutOrStdout(), r, *format); err != nil {
			return err
		}
		return verdict(r)
	}
	return c
}

func verifyTable(ctx context.Context, cfg *config.Config, pipeline string, full, offline bool, log io.Writer) (*verify.Report, error) {
	kafka, logger, err := app.Kafka(cfg, newLogger(log, cfg.Server.Log))
	if err != nil {
		return nil, exitError{exitUnread, err}
	}
	var options *ingest.ClientOptions
	reason := "left out by --offline"
	if !offline {
		options, reason = &kafka, ""
	}
	asking, cancel := context.WithTimeout(ctx, 2*time.Second)
	running := app.RunningIndex(asking, client(cfg), pipeline)
	cancel()
	r, err := app.Verify(ctx, cfg, pipeline, options, reason, running, full, logger)
	switch {
	case app.Unknown(err):
		return nil, exitError{exitUsage, err}
	case errors.Is(err, paimon.ErrCorrupt):
		return nil, exitError{exitFailed, fmt.Errorf("the table is damaged: %w", err)}
	case err != nil:
		return nil, exitError{exitUnread, fmt.Errorf("the table cannot be checked: %w", err)}
	}
	return r, nil
}

func printReport(w io.Writer, r *verify.Report, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	r.Print(w)
	return nil
}

// verdict is the exit code of a report.
func verdict(r *verify.Report) error {
	switch r.Verdict {
	case verify.OK:
		return nil
	case verify.Failed:
		return exitError{exitFailed, fmt.Errorf("table %s is damaged", r.Table)}
	}
	return exitError{exitUnread, fmt.Errorf("table %s: not everything could be checked", r.Table)}
}
