package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/spf13/cobra"
)

// tableFlags are the flags of commands that look at a table.
type tableFlags struct {
	file, warehouse *string
	snapshot        *int64
}

func addTableFlags(c *cobra.Command) tableFlags {
	return tableFlags{
		file:      c.Flags().StringP("config", "c", "", "configuration file that names the warehouse"),
		warehouse: c.Flags().String("warehouse", "", "warehouse folder, instead of a configuration"),
		snapshot:  c.Flags().Int64("snapshot", 0, "snapshot id instead of the latest"),
	}
}

// openTable opens DATABASE.TABLE for reading.
func (f tableFlags) openTable(ctx context.Context, name string) (*paimon.Table, error) {
	n, err := catalog.ParseName(name)
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	root := *f.warehouse
	if root == "" {
		file := *f.file
		if file == "" {
			file = "applier.yml"
			if _, err := os.Stat(file); err != nil {
				return nil, usageError("say where the table is: --warehouse DIR, or -c FILE")
			}
		}
		cfg, err := load(file)
		if err != nil {
			return nil, err
		}
		root = cfg.Warehouse.Path
	}
	c, err := catalog.NewFileSystem(root, objstore.LocalOptions{})
	if err != nil {
		return nil, err
	}
	return c.Open(ctx, n, paimon.Read)
}

// state reads the wanted snapshot's state.
func (f tableFlags) state(ctx context.Context, t *paimon.Table) (*paimon.State, error) {
	id := *f.snapshot
	if id == 0 {
		var err error
		if id, err = paimon.LatestSnapshotID(ctx, t.Bucket(), t.Paths()); err != nil {
			return nil, err
		}
		if id == 0 {
			return t.State(ctx, nil)
		}
	}
	s, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), id)
	if err != nil {
		return nil, fmt.Errorf("snapshot %d: %w", id, err)
	}
	return t.State(ctx, s)
}

// parseKey reads COLUMN=VALUE pairs as conditions.
func parseKey(t *paimon.Table, pairs []string) ([]paimon.Condition, error) {
	var out []paimon.Condition
	for _, p := range pairs {
		name, text, ok := strings.Cut(p, "=")
		if !ok {
			return nil, usageError("--where-key %q: write COLUMN=VALUE", p)
		}
		col := t.Schema().Column(name)
		if col < 0 {
			return nil, usageError("--where-key: the table has no column %q", name)
		}
		d, err := types.ParseDatum(t.Schema().Fields[col].Type, text)
		if err != nil {
			return nil, usageError("--where-key %s: %v", name, err)
		}
		out = append(out, paimon.Condition{Column: col, Op: paimon.Equal, Value: d})
	}
	return out, nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
