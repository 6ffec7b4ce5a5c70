package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"applier/config"
	"applier/metrics"
	"applier/metrics/admin"

	"github.com/spf13/cobra"
)

// commandTimeout bounds a command to a running process.
const commandTimeout = time.Minute

func client(cfg *config.Config) *admin.Client {
	return admin.NewClient(cfg.Server.Admin.Listen, cfg.Server.Admin.Token.Reveal())
}

// pipelineCommand is a command on one pipeline of a running process; done says what
// it came to, from what the process says of the pipeline before and after.
func pipelineCommand(use, short string, do func(context.Context, *admin.Client, string) error, done func(before, after admin.PipelineStatus) string) *cobra.Command {
	c := &cobra.Command{Use: use + " PIPELINE", Short: short, Args: cobra.ExactArgs(1)}
	file := configFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), commandTimeout)
		defer cancel()
		cl := client(cfg)
		before, err := pipelineStatus(ctx, cl, args[0])
		if err != nil {
			return unreachable(err, cfg)
		}
		if err := do(ctx, cl, args[0]); err != nil {
			return unreachable(err, cfg)
		}
		after, err := pipelineStatus(ctx, cl, args[0])
		if err != nil {
			return unreachable(err, cfg)
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", args[0], done(before, after))
		return nil
	}
	return c
}

// pipelineStatus asks for one pipeline; a name that is not there is not found.
func pipelineStatus(ctx context.Context, cl *admin.Client, name string) (admin.PipelineStatus, error) {
	s, err := cl.Status(ctx)
	if err != nil {
		return admin.PipelineStatus{}, err
	}
	var names []string
	for _, p := range s.Pipelines {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return admin.PipelineStatus{}, fmt.Errorf("%w: %s; the process runs %s", admin.ErrNotFound, name, strings.Join(names, ", "))
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
	return pipelineCommand("pause", "Pause a pipeline after the batch in flight, until resume",
		func(ctx context.Context, a *admin.Client, p string) error { return a.Pause(ctx, p) },
		func(before, after admin.PipelineStatus) string {
			if before.State == metrics.StatePaused {
				return fmt.Sprintf("was paused already, at snapshot %d", after.Snapshot)
			}
			if after.Halt != nil {
				return fmt.Sprintf("is halted with %s and stays so; nothing is read or committed", after.Halt.Code)
			}
			return fmt.Sprintf("paused at snapshot %d; nothing is read or committed until: applier resume %s", after.Snapshot, after.Name)
		})
}

// resumeSettles is how long resume waits to see whether the cause is still there.
const resumeSettles = 3 * time.Second

func resumeCommand() *cobra.Command {
	return pipelineCommand("resume", "Resume a paused or halted pipeline", resume,
		func(before, after admin.PipelineStatus) string {
			switch {
			case after.Halt != nil:
				return fmt.Sprintf("resumed, but it halted again with %s: %s", after.Halt.Code, after.Halt.Message)
			case before.State != metrics.StatePaused && before.Halt == nil:
				return fmt.Sprintf("was neither paused nor halted; it is %s", after.State)
			}
			return fmt.Sprintf("resumed at snapshot %d, it is %s", after.Snapshot, after.State)
		})
}

// resume also waits until the pipeline runs, or has halted again.
func resume(ctx context.Context, a *admin.Client, p string) error {
	if err := a.Resume(ctx, p); err != nil {
		return err
	}
	for end := time.Now().Add(resumeSettles); time.Now().Before(end); {
		s, err := pipelineStatus(ctx, a, p)
		if err != nil || s.State == metrics.StateRunning {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func flushCommand() *cobra.Command {
	return pipelineCommand("flush", "Commit a pipeline's open batch now",
		func(ctx context.Context, a *admin.Client, p string) error { return a.Flush(ctx, p) },
		func(before, after admin.PipelineStatus) string {
			if after.Rows.Commits == before.Rows.Commits {
				return fmt.Sprintf("nothing was open; the table is at snapshot %d", after.Snapshot)
			}
			return fmt.Sprintf("committed snapshot %d", after.Snapshot)
		})
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
