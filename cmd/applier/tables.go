package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"applier/cmd/applier/internal/app"
	"applier/config"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/spf13/cobra"
)

// warehouseFlags say where tables are.
type warehouseFlags struct{ file, warehouse *string }

func addWarehouseFlags(c *cobra.Command) warehouseFlags {
	return warehouseFlags{
		file:      c.Flags().StringP("config", "c", "", "configuration file that names the warehouse"),
		warehouse: c.Flags().String("warehouse", "", "warehouse folder, or s3://BUCKET/FOLDER, instead of a configuration"),
	}
}

// tableFlags are the flags of commands that look at a table.
type tableFlags struct {
	warehouseFlags
	snapshot          *int64
	tag, branch, asOf *string
}

func addTableFlags(c *cobra.Command) tableFlags {
	return tableFlags{
		warehouseFlags: addWarehouseFlags(c),
		snapshot:       c.Flags().Int64("snapshot", 0, "snapshot id instead of the latest"),
		tag:            c.Flags().String("tag", "", "tag instead of the latest snapshot"),
		branch:         c.Flags().String("branch", "", "branch instead of main"),
		asOf:           c.Flags().String("as-of", "", "the table as it was at a time: 2026-01-31T12:00:00Z, '2026-01-31 12:00:00' (UTC), or milliseconds since 1970"),
	}
}

// open opens the catalog of the warehouse that the flags name. One that only a flag
// names is reached as Amazon's own tools do, by variables of the environment.
func (f warehouseFlags) open() (*catalog.FileSystem, error) {
	w := config.Warehouse{Path: *f.warehouse}
	if endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")); w.OnS3() && endpoint != "" {
		w.S3 = &config.S3{Endpoint: endpoint, PathStyle: true}
	}
	if w.Path == "" {
		cfg, err := f.configuration()
		if err != nil {
			return nil, err
		}
		w = cfg.Warehouse
	}
	return app.OpenWarehouse(w, nil)
}

// configuration loads the file that names the warehouse.
func (f warehouseFlags) configuration() (*config.Config, error) {
	file := *f.file
	if file == "" {
		file = "applier.yml"
		if _, err := os.Stat(file); err != nil {
			return nil, usageError("say where the table is: --warehouse DIR or s3://BUCKET/FOLDER, or -c FILE")
		}
	}
	return load(file)
}

// young is the age below which snapshots of the warehouse are left alone: the
// configuration's, if there is one.
func (f warehouseFlags) young() (time.Duration, error) {
	if *f.warehouse != "" && *f.file == "" {
		return app.Young(0), nil
	}
	cfg, err := f.configuration()
	if err != nil {
		return 0, err
	}
	return app.Young(cfg.StuckAfter), nil
}

// openTable opens DATABASE.TABLE.
func (f warehouseFlags) openTable(ctx context.Context, name string, a paimon.Access) (*paimon.Table, error) {
	n, err := catalog.ParseName(name)
	if err != nil {
		return nil, exitError{exitUsage, err}
	}
	c, err := f.open()
	if err != nil {
		return nil, err
	}
	return c.Open(ctx, n, a)
}

// version opens the wanted version of a table, with the schema of its time.
func (f tableFlags) version(ctx context.Context, t *paimon.Table) (*paimon.Table, *paimon.State, error) {
	v := paimon.Version{Snapshot: *f.snapshot, Tag: *f.tag, Branch: *f.branch}
	named := 0
	for _, set := range []bool{*f.snapshot != 0, *f.tag != "", *f.asOf != ""} {
		if set {
			named++
		}
	}
	if named > 1 {
		return nil, nil, usageError("give one of --snapshot, --tag and --as-of")
	}
	if *f.snapshot < 0 {
		return nil, nil, usageError("--snapshot %d: ids begin at 1", *f.snapshot)
	}
	if *f.asOf != "" {
		var err error
		if v.At, err = parseTime(*f.asOf); err != nil {
			return nil, nil, err
		}
	}
	return t.Version(ctx, v)
}

// parseTime reads a point in time; without a zone it is in UTC.
func parseTime(text string) (time.Time, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateTime + ".999999999", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usageError("--as-of %q: write 2026-01-31T12:00:00Z, '2026-01-31 12:00:00' (UTC) or milliseconds since 1970", text)
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

// humanSize shows bytes with three digits or so.
func humanSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, u := float64(n), 0
	for x >= 1000 && u < len(units)-1 {
		x, u = x/1024, u+1
	}
	if u == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", x, units[u])
}
