package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"applier/config"
	"applier/metrics/admin"

	"github.com/spf13/cobra"
)

// commandTimeout bounds a command to a running process.
const commandTimeout = time.Minute

func client(cfg *config.Config) *admin.Client {
	return admin.NewClient(cfg.Server.Admin.Listen, cfg.Server.Admin.Token.Reveal())
}

// pipelineCommand is a command on one pipeline of a running process.
func pipelineCommand(use, short, done string, do func(context.Context, *admin.Client, string) error) *cobra.Command {
	c := &cobra.Command{Use: use + " PIPELINE", Short: short, Args: cobra.ExactArgs(1)}
	file := configFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), commandTimeout)
		defer cancel()
		if err := do(ctx, client(cfg), args[0]); err != nil {
			return unreachable(err, cfg)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", args[0], done)
		return nil
	}
	return c
}

// unreachable explains a refused connection.
func unreachable(err error, cfg *config.Config) error {
	var network interface{ Timeout() bool }
	if errors.As(err, &network) {
		return fmt.Errorf("%w; is `applier run` running with server.admin.listen %s?", err, cfg.Server.Admin.Listen)
	}
	return err
}

func pauseCommand() *cobra.Command {
	return pipelineCommand("pause", "Pause a pipeline after the batch in flight, until resume", "paused",
		func(ctx context.Context, a *admin.Client, p string) error { return a.Pause(ctx, p) })
}

func resumeCommand() *cobra.Command {
	return pipelineCommand("resume", "Resume a paused or halted pipeline", "resumed",
		func(ctx context.Context, a *admin.Client, p string) error { return a.Resume(ctx, p) })
}

func flushCommand() *cobra.Command {
	return pipelineCommand("flush", "Commit a pipeline's open batch now", "flushed",
		func(ctx context.Context, a *admin.Client, p string) error { return a.Flush(ctx, p) })
}

func statusCommand() *cobra.Command {
	c := &cobra.Command{Use: "status", Short: "Show the state of a running process", Args: cobra.NoArgs}
	file := configFlag(c)
	asJSON := c.Flags().Bool("json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), commandTimeout)
		defer cancel()
		s, err := client(cfg).Status(ctx)
		if err != nil {
			return unreachable(err, cfg)
		}
		out := c.OutOrStdout()
		if *asJSON {
			enc := json.NewEncoder(out)
			enc.SetIndent("", "  ")
			return enc.Encode(s)
		}
		for _, p := range s.Pipelines {
			fmt.Fprintf(out, "%-20s %-16s table %s, snapshot %d, lag %d records, %d commits\n", p.Name, p.State, p.Table, p.Snapshot, p.LagRecords, p.Rows.Commits)
			if p.Halt != nil {
				fmt.Fprintf(out, "    %s: %s\n    %s\n", p.Halt.Code, p.Halt.Message, p.Halt.Remedy)
			}
			for _, a := range p.Alarms {
				fmt.Fprintf(out, "    %s: %s\n    %s\n", a.Code, a.Message, a.Remedy)
			}
			if p.LastError != "" {
				fmt.Fprintf(out, "    %s\n", p.LastError)
			}
		}
		return nil
	}
	return c
}

func healthcheckCommand() *cobra.Command {
	c := &cobra.Command{Use: "healthcheck", Short: "Exit 0 if the running process is well (for container health checks)", Args: cobra.NoArgs}
	file := configFlag(c)
	listen := c.Flags().String("listen", "", "address of the public port instead of the configuration's")
	ready := c.Flags().Bool("ready", false, "ask whether it is ready, not only alive")
	c.RunE = func(c *cobra.Command, _ []string) error {
		address := *listen
		if address == "" {
			cfg, err := load(*file)
			if err != nil {
				return err
			}
			address = cfg.Server.Listen
		}
		path := "/healthz"
		if *ready {
			path = "/readyz"
		}
		ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
		defer cancel()
		return admin.Probe(ctx, address, path)
	}
	return c
}
