package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"applier/cmd/applier/internal/app"
	"applier/cmd/applier/internal/verify"
	"applier/storage/types"

	"github.com/spf13/cobra"
)

func explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "explain PIPELINE --key COLUMN=VALUE[,COLUMN=VALUE]",
		Short: "Tell the history of a key: which records and commits made its row",
		Long: `Shows the live rows of a key with file and position, every retained snapshot that
changed them (also those of other writers), and, as far as Kafka still has them, the
records of the key with what became of each: applied, late, collapsed into a later one
of the same batch, ignored by the preset. The last line says why the key has its value,
or none. Nothing is written.`,
		Example: "  applier explain orders --key order_id=7\n  applier explain lines --key order_id=7,line=2 --offline",
		Args:    cobra.ExactArgs(1),
	}
	file := configFlag(c)
	key := c.Flags().StringArray("key", nil, "the key, as COLUMN=VALUE[,COLUMN=VALUE]; may be repeated")
	offline := c.Flags().Bool("offline", false, "do not ask Kafka for the records")
	format := c.Flags().String("format", "text", "text or json")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := load(*file)
		if err != nil {
			return err
		}
		kafka, _, err := app.Kafka(cfg, newLogger(c.ErrOrStderr(), cfg.Server.Log))
		if err != nil {
			return err
		}
		options, reason := &kafka, ""
		if *offline {
			options, reason = nil, "left out by --offline"
		}
		h, err := explainKey(c.Context(), func(ctx context.Context) (verify.Target, error) {
			return app.Audited(ctx, cfg, args[0], options, reason)
		}, *key)
		if err != nil {
			return err
		}
		if *format == "json" {
			enc := json.NewEncoder(c.OutOrStdout())
			enc.SetIndent("", "  ")
			return enc.Encode(h)
		}
		h.Print(c.OutOrStdout())
		return nil
	}
	return c
}

func explainKey(ctx context.Context, open func(context.Context) (verify.Target, error), pairs []string) (*verify.History, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	t, err := open(ctx)
	if app.Unknown(err) {
		return nil, exitError{exitUsage, err}
	}
	if err != nil {
		return nil, err
	}
	key, err := keyValues(t, pairs)
	if err != nil {
		return nil, err
	}
	return verify.Explain(ctx, t, key)
}

// keyValues reads the values of the merge key, in its order.
func keyValues(t verify.Target, pairs []string) ([]types.Datum, error) {
	fields := t.Table.Schema().Fields
	var names []string
	for _, c := range t.Key {
		names = append(names, fields[c].Name)
	}
	given := map[string]string{}
	for _, p := range pairs {
		for _, part := range splitPairs(p, names) {
			name, value, ok := strings.Cut(part, "=")
			if !ok {
				return nil, usageError("--key %q: write COLUMN=VALUE", part)
			}
			given[name] = value
		}
	}
	key := make([]types.Datum, len(t.Key))
	for i, c := range t.Key {
		value, ok := given[names[i]]
		if !ok {
			return nil, usageError("--key: the key of pipeline %s is %s; %s is missing", t.Pipeline, strings.Join(names, ", "), names[i])
		}
		d, err := types.ParseDatum(fields[c].Type, value)
		if err != nil {
			return nil, usageError("--key %s: %v", names[i], err)
		}
		key[i] = d
		delete(given, names[i])
	}
	for name := range given {
		return nil, usageError("--key: %q is no column of the key (%s)", name, strings.Join(names, ", "))
	}
	return key, nil
}

// splitPairs splits at the commas behind which another key column begins: values
// may have commas.
func splitPairs(s string, names []string) []string {
	var out []string
	from := 0
	for i := range len(s) {
		if s[i] != ',' {
			continue
		}
		for _, n := range names {
			if strings.HasPrefix(s[i+1:], n+"=") {
				out = append(out, s[from:i])
				from = i + 1
				break
			}
		}
	}
	return append(out, s[from:])
}
