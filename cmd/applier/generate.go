package main

import (
	"strings"

	"applier/cmd/applier/internal/demo"

	"github.com/spf13/cobra"
)

func generateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "generate",
		Short: "Produce the demo's changes to a real broker (load for a first stack)",
		Args:  cobra.NoArgs,
	}
	brokers := c.Flags().String("brokers", "127.0.0.1:9092", "brokers, separated by commas")
	topic := c.Flags().String("topic", demo.Topic, "topic; created with two partitions if it is missing")
	rate := c.Flags().Int("rate", 200, "changes a second")
	length := c.Flags().Duration("for", 0, "how long; 0 until Ctrl-C")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return demo.Generate(c.Context(), strings.Split(*brokers, ","), *topic, *rate, *length)
	}
	return c
}
