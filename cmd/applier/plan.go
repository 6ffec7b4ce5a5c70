package main

import (
	"errors"
	"fmt"

	"applier/cmd/applier/internal/app"
	"applier/metrics/admin"

	"github.com/spf13/cobra"
)

func planCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan PIPELINE",
		Short: "Print what a pipeline does with changes, as a statement in SQL",
		Long: `Prints the statement that would do in Spark what the pipeline does with each change:
a MERGE with the clauses of merge.when, or with those that its preset stands for. If
the table exists, names and types are checked against it. With --sample N the next N
records are read from the pipeline's positions, without joining its group, and it is
told what they would do to the rows. Nothing is written.`,
		Args: cobra.ExactArgs(1),
	}
	file := configFlag(c)
	sample := c.Flags().Int64("sample", 0, "read so many records and tell what they would do")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		statement, note, err := app.Plan(c.Context(), cfg, args[0])
		if errors.Is(err, admin.ErrNotFound) {
			return exitError{exitUsage, err}
		}
		if statement != "" {
			fmt.Fprintln(c.OutOrStdout(), statement+";")
		}
		if note != "" {
			fmt.Fprintln(c.ErrOrStderr(), "note: "+note)
		}
		if err != nil && statement != "" {
			return exitError{exitUsage, fmt.Errorf("pipeline %s does not fit its table: %w", args[0], err)}
		}
		if err != nil || *sample <= 0 {
			return err
		}
		kafka, log, err := app.Kafka(cfg, newLogger(c.ErrOrStderr(), cfg.Server.Log))
		if err != nil {
			return err
		}
		s, err := app.TakeSample(c.Context(), cfg, args[0], kafka, *sample, log)
		if err == nil {
			s.Print(c.OutOrStdout())
		}
		return err
	}
	return c
}
