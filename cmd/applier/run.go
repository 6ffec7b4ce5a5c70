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
committed is read again). SIGHUP reads the configuration again: a sound one takes
the place of the old one, which is drained first; a bad one is told and changes
nothing.`,
		Args: cobra.NoArgs,
	}
	file := configFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		// A reader of the log that goes away must not take the pipelines with it.
		signal.Ignore(syscall.SIGPIPE)
		log := newLogWriter(c.ErrOrStderr())
		defer log.close()
		r := &runner{file: *file, log: log}
		r.options.Build, r.options.Abort = build(), os.Exit
		return r.run(c.Context(), cfg)
	}
	return c
}

// runner runs one configuration after another.
type runner struct {
	file    string
	log     io.Writer
	options app.Options // but for the log
}

// program makes a program of a configuration; nothing of it runs yet.
func (r *runner) program(cfg *config.Config) (*app.App, app.Options, error) {
	o := r.options
	o.Log = newLogger(r.log, cfg.Server.Log)
	for _, w := range cfg.Warnings {
		o.Log.Warn("configuration", "problem", w.String())
	}
	a, err := app.New(cfg, o)
	return a, o, err
}

// run serves until ctx ends.
func (r *runner) run(ctx context.Context, cfg *config.Config) error {
	a, o, err := r.program(cfg)
	if err != nil {
		return exitError{exitUsage, err}
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		type program struct {
			app     *app.App
			options app.Options
		}
		next := make(chan program, 1)
		turn, end := context.WithCancel(ctx)
		go func() {
			for {
				select {
				case <-hangup:
				case <-turn.Done():
					return
				}
				if b, bo, err := r.reload(); err != nil {
					a.ReloadFailed(err)
				} else {
					next <- program{b, bo}
					end()
					return
				}
			}
		}()
		err := serve(turn, a, o)
		end()
		select {
		case p := <-next:
			if ctx.Err() == nil && err == nil {
				a, o = p.app, p.options
				continue
			}
		default:
		}
		return err
	}
}

// reload makes a program of what the file says now.
func (r *runner) reload() (*app.App, app.Options, error) {
	cfg, err := load(r.file)
	if err != nil {
		return nil, app.Options{}, err
	}
	return r.program(cfg)
}

// serve runs a program until its context ends; then a second signal forces it.
func serve(ctx context.Context, a *app.App, o app.Options) error {
	force, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-ctx.Done()
		second := make(chan os.Signal, 1)
		signal.Notify(second, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(second)
		o.Log.Info("stopping: committing what was read; a second signal stops at once")
		select {
		case <-second:
			o.Log.Warn("stopping at once")
			cancel()
		case <-force.Done():
		}
	}()
	if err := a.Run(ctx, force); err != nil && !errors.Is(err, context.Canceled) {
		if errors.Is(err, app.ErrListen) {
			return exitError{exitUsage, err}
		}
		return err
	}
	if a.Halted() {
		return exitError{exitHalted, fmt.Errorf("every pipeline was halted or could not start; see the log")}
	}
	o.Log.Info("stopped")
	return nil
}
