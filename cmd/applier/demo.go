package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"applier/cmd/applier/internal/demo"

	"github.com/spf13/cobra"
)

func demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show it working: embedded broker, generated changes, a local table",
		Long: `Starts a Kafka broker inside this process, generates Debezium changes of a small
table, applies them to a Paimon table in a local folder, and prints what arrives
and what each commit does. Nothing else is needed, and nothing stays running.`,
		Args: cobra.NoArgs,
	}
	dir := c.Flags().String("dir", "", "folder for the warehouse (default: a new temporary one, which stays)")
	length := c.Flags().Duration("for", 15*time.Second, "how long to generate changes; 0 until Ctrl-C")
	rate := c.Flags().Int("rate", 200, "changes a second")
	verbose := c.Flags().Bool("verbose", false, "show the log too")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return runDemo(c.Context(), c.OutOrStdout(), *dir, demo.Options{For: *length, Rate: *rate}, *verbose)
	}
	return c
}

func runDemo(ctx context.Context, out io.Writer, dir string, o demo.Options, verbose bool) error {
	if dir == "" {
		tmp, err := os.MkdirTemp("", "applier-demo-")
		if err != nil {
			return err
		}
		dir = tmp
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	o.Dir, o.Out = dir, out
	o.Log = slog.New(slog.DiscardHandler)
	if verbose {
		o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if err := demo.Run(ctx, o); err != nil {
		return err
	}
	self := filepath.Base(os.Args[0])
	fmt.Fprintf(out, `
Look further:
  %[1]s cat shop.my_table --warehouse %[2]s/warehouse --limit 20
  %[1]s inspect snapshots shop.my_table --warehouse %[2]s/warehouse
  %[1]s inspect files shop.my_table --warehouse %[2]s/warehouse
Spark, Flink and pypaimon read the same folder as a Paimon warehouse.
`, self, dir)
	return nil
}
