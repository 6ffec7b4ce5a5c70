package main

import (
	"fmt"
	"time"

	"applier/cmd/applier/internal/app"

	"github.com/spf13/cobra"
)

func validateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "validate",
		Short: "Check a configuration, with --online also tables, topics and access",
		Long: `Reads the configuration and reports everything that is wrong with it, each problem
with its line and what to do. With --online it also opens the tables, asks Kafka
for the topics, and compares recorded positions with the log. Nothing is written.`,
		Args: cobra.NoArgs,
	}
	file := configFlag(c)
	online := c.Flags().Bool("online", false, "also ask Kafka and open the tables")
	timeout := c.Flags().Duration("timeout", 30*time.Second, "how long --online may take")
	show := c.Flags().Bool("show", false, "print the configuration with all defaults, secrets masked")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		out := c.OutOrStdout()
		for _, w := range cfg.Warnings {
			fmt.Fprintln(out, "warning: "+w.String())
		}
		if *show {
			fmt.Fprint(out, cfg.Effective())
		}
		if *online {
			if err := app.Validate(c.Context(), cfg, *timeout, newLogger(c.ErrOrStderr(), cfg.Server.Log), out); err != nil {
				return exitError{exitUsage, err}
			}
		}
		fmt.Fprintf(out, "%s is valid: %d pipeline(s)\n", *file, len(cfg.Pipelines))
		return nil
	}
	return c
}
