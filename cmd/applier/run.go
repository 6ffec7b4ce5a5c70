package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"applier/cmd/applier/internal/app"
	"applier/config"

	"github.com/spf13/cobra"
)

// configFlag adds -c and returns where its value will be.
func configFlag(c *cobra.Command) *string {
	file := c.Flags().StringP("config", "c", "applier.yml", "configuration file")
	_ = c.MarkFlagFilename("config", "yml", "yaml")
	return file
}

// load reads the configuration; what is wrong with it is exit code 2.
func load(file string) (*config.Config, error) {
	cfg, err := config.Load(file, os.LookupEnv)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usageError("%v; name a configuration with -c FILE", err)
	}
	return cfg, err
}

func newLogger(w io.Writer, l config.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // the configuration allows valid names only
	o := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the pipelines of a configuration until SIGTERM or Ctrl-C",
		Long: `Runs all pipelines. SIGTERM or Ctrl-C commits what was read, leaves the consumer
groups and exits; a second signal stops at once (nothing is lost: what was not
committed is read again).`,
		Args: cobra.NoArgs,
	}
	file := configFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		return serve(c.Context(), cfg, app.Options{Log: newLogger(c.ErrOrStderr(), cfg.Server.Log), Build: build()})
	}
	return c
}

// serve runs a program until its context ends; a second signal forces it.
func serve(ctx context.Context, cfg *config.Config, o app.Options) error {
	for _, w := range cfg.Warnings {
		o.Log.Warn("configuration", "problem", w.String())
	}
	a, err := app.New(cfg, o)
	if err != nil {
		return exitError{exitUsage, err}
	}
	force, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-ctx.Done()
		second := make(chan os.Signal, 1)
		signal.Notify(second, os.Interrupt, syscall.SIGTERM)
		o.Log.Info("stopping: committing what was read; a second signal stops at once")
		select {
		case <-second:
			o.Log.Warn("stopping at once")
			cancel()
		case <-force.Done():
		}
	}()
	if err := a.Run(ctx, force); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	if a.Halted() {
		return exitError{exitHalted, fmt.Errorf("every pipeline was halted or could not start; see the log")}
	}
	o.Log.Info("stopped")
	return nil
}
