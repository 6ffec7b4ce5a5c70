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
	if err != nil {
		return cfg, err
	}
	return cfg, app.CheckClauses(file, cfg)
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

// program is what a configuration makes; nothing of it runs yet.
type program struct {
	app *app.App
	log *slog.Logger
}

func (r *runner) program(cfg *config.Config) (*program, error) {
	o := r.options
	o.Log = newLogger(r.log, cfg.Server.Log)
	for _, w := range cfg.Warnings {
		o.Log.Warn("configuration", "problem", w.String())
	}
	a, err := app.New(cfg, o)
	if err == nil {
		r.options.Reloads++ // for the next one
	}
	return &program{a, o.Log}, err
}

// run serves until ctx ends.
func (r *runner) run(ctx context.Context, cfg *config.Config) error {
	p, err := r.program(cfg)
	if err != nil {
		return exitError{exitUsage, err}
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		turn, end := context.WithCancel(ctx)
		next := make(chan *program, 1)
		go func(now *program) {
			next <- r.await(turn, hangup, now)
			end()
		}(p)
		err := p.serve(turn)
		end()
		successor := <-next
		switch {
		case err != nil:
			return err
		case successor != nil && ctx.Err() == nil:
			p = successor
		case p.app.Halted():
			return exitError{exitHalted, fmt.Errorf("every pipeline was halted or could not start; see the log")}
		default:
			return nil
		}
	}
}

// await returns the program of a sound configuration that a SIGHUP asked for; nil
// when ctx ends first. One that cannot be taken is told and changes nothing.
func (r *runner) await(ctx context.Context, hangup <-chan os.Signal, now *program) *program {
	for {
		select {
		case <-hangup:
		case <-ctx.Done():
			return nil
		}
		cfg, err := load(r.file)
		if err == nil {
			var p *program
			if p, err = r.program(cfg); err == nil {
				return p
			}
		}
		now.app.ReloadFailed(err)
	}
}

// serve runs a program until its context ends; then a second signal forces it.
func (p *program) serve(ctx context.Context) error {
	force, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-ctx.Done()
		second := make(chan os.Signal, 1)
		signal.Notify(second, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(second)
		p.log.Info("stopping: committing what was read; a second signal stops at once")
		select {
		case <-second:
			p.log.Warn("stopping at once")
			cancel()
		case <-force.Done():
		}
	}()
	if err := p.app.Run(ctx, force); err != nil && !errors.Is(err, context.Canceled) {
		if errors.Is(err, app.ErrListen) {
			return exitError{exitUsage, err}
		}
		return err
	}
	p.log.Info("stopped")
	return nil
}
