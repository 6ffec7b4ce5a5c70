// Command applier applies Kafka change records to Apache Paimon append tables.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"applier/config"
	"applier/metrics"

	"github.com/spf13/cobra"
)

// Exit codes, as README and `applier --help` state them.
const (
	exitOK     = 0
	exitFailed = 1 // something failed while running
	exitUsage  = 2 // bad command line or configuration
	exitHalted = 3 // stopped while every pipeline was halted or could not start
	exitUnread = 4 // verify: no damage found, but something could not be read
)

// version is set by the build (-ldflags "-X main.version=…").
var version = "dev"

// exitError carries an exit code.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string { return e.err.Error() }
func (e exitError) Unwrap() error { return e.err }

func main() { os.Exit(run(os.Args[1:])) }

// run is main without os.Exit, so that deferred work is done.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var coded exitError
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		fmt.Fprintln(os.Stderr, problems.Error())
		return exitUsage
	case errors.As(err, &coded):
		fmt.Fprintln(os.Stderr, "applier: "+err.Error())
		return coded.code
	}
	fmt.Fprintln(os.Stderr, "applier: "+err.Error())
	return exitFailed
}

func usageError(format string, a ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, a...)}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "applier",
		Short: "Streams Kafka change records into Apache Paimon append tables",
		Long: `applier reads change records from Kafka (Debezium JSON, plain JSON), batches them,
and applies each batch as one MERGE commit to an Apache Paimon append table, with
the Kafka positions in the same snapshot.

First steps:
  applier demo                     a table filled by a generator, no Kafka needed
  applier validate -c applier.yml  check a configuration (--online asks Kafka too)
  applier run -c applier.yml       run it
  applier cat db.table -c applier.yml

Exit codes: 0 done; 1 something failed; 2 bad command line or configuration;
3 stopped while every pipeline was halted or could not start; 4 verify could not read
everything.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("%v; see %s --help", err, c.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(runCommand(), validateCommand(), demoCommand(), healthcheckCommand(), catCommand(), inspectCommand(), sqlCommand(),
		compactCommand(), expireCommand(), orphansCommand(), offsetsCommand(), pauseCommand(), resumeCommand(), flushCommand(), statusCommand(),
		planCommand(), verifyCommand(), explainCommand(), resetCommand(), schemaCommand(), generateCommand(), versionCommand())
	return root
}

func versionCommand() *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Print the version, with --sbom what the program is made of", Args: cobra.NoArgs}
	sbom := c.Flags().Bool("sbom", false, "print a CycloneDX bill of materials of this binary")
	c.RunE = func(c *cobra.Command, _ []string) error {
		b := build()
		if !*sbom {
			fmt.Fprintf(c.OutOrStdout(), "applier %s (revision %s, %s, %s/%s)\n", b.Version, b.Revision, b.Go, runtime.GOOS, runtime.GOARCH)
			return nil
		}
		info, ok := debug.ReadBuildInfo()
		if !ok {
			return errors.New("this binary does not say what it was made of")
		}
		return writeSBOM(c.OutOrStdout(), b.Version, info)
	}
	return c
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration, for editors", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := config.Schema()
			if err == nil {
				_, err = c.OutOrStdout().Write(append(b, '\n'))
			}
			return err
		},
	}
}

// build says what is running.
func build() metrics.Build {
	b := metrics.Build{Version: version, Revision: "unknown", Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}
