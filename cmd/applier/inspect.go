package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"applier/storage/paimon"
	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/spf13/cobra"
)

// inspections are the things that can be looked at.
var inspections = []struct {
	name, short string
	run         func(context.Context, io.Writer, *paimon.Table, tableFlags) error
}{
	{"snapshots", "retained snapshots: who committed what, and recorded positions", inspectSnapshots},
	{"manifests", "manifests of a snapshot", inspectManifests},
	{"files", "live data files of a snapshot with their deleted rows", inspectFiles},
	{"dv", "deletion vector files of a snapshot", inspectVectors},
	{"schema", "the latest schema: columns, keys, options", inspectSchema},
}

func inspectCommand() *cobra.Command {
	c := &cobra.Command{Use: "inspect", Short: "Look inside a table: snapshots, manifests, files, deletion vectors, schema"}
	for _, i := range inspections {
		sub := &cobra.Command{Use: i.name + " DATABASE.TABLE", Short: "Show " + i.short, Args: cobra.ExactArgs(1)}
		flags := addTableFlags(sub)
		sub.RunE = func(c *cobra.Command, args []string) error {
			t, err := flags.openTable(c.Context(), args[0], paimon.Read)
			if err != nil {
				return err
			}
			return i.run(c.Context(), c.OutOrStdout(), t, flags)
		}
		c.AddCommand(sub)
	}
	return c
}

func inspectSnapshots(ctx context.Context, w io.Writer, t *paimon.Table, _ tableFlags) error {
	ids, err := paimon.ListSnapshotIDs(ctx, t.Bucket(), t.Paths())
	if err != nil {
		return err
	}
	var rows [][]string
	for _, id := range ids {
		s, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), id)
		if err != nil {
			return err
		}
		rows = append(rows, []string{
			number(id), time.UnixMilli(s.TimeMillis).UTC().Format(time.RFC3339), string(s.CommitKind), string(s.Operation),
			number(s.TotalRecordCount), number(s.DeltaRecordCount), number(s.SchemaID), s.CommitUser, strings.Join(sortedNames(s.Properties), " "),
		})
	}
	drawTable(w, []string{"snapshot", "time", "kind", "operation", "total rows", "delta rows", "schema", "commit user", "properties"}, rows,
		[]bool{true, false, false, false, true, true, true})
	return paimon.CheckContiguous(ids)
}

func sortedNames(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return out
}

func inspectManifests(ctx context.Context, w io.Writer, t *paimon.Table, f tableFlags) error {
	_, st, err := f.version(ctx, t)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, m := range st.Manifests {
		rows = append(rows, []string{m.Name, number(m.Size), number(m.Added), number(m.Deleted), number(m.SchemaID)})
	}
	drawTable(w, []string{"manifest", "bytes", "added", "deleted", "schema"}, rows, []bool{false, true, true, true, true})
	return nil
}

func inspectFiles(ctx context.Context, w io.Writer, t *paimon.Table, f tableFlags) error {
	t, st, err := f.version(ctx, t)
	if err != nil {
		return err
	}
	files, err := t.Files(ctx, st, nil)
	if err != nil {
		return err
	}
	refs, err := t.LiveVectors(st.Index)
	if err != nil {
		return err
	}
	var rows [][]string
	for i := range files {
		e := &files[i]
		key, err := t.Paths().Location(e)
		if err != nil {
			return err
		}
		deleted := "0"
		if r, ok := refs[paimon.KeyOf(e)]; ok {
			deleted = "?"
			if r.At.Cardinality >= 0 {
				deleted = number(r.At.Cardinality)
			}
		}
		source := "append"
		if s := e.File.Source; s != nil && *s == manifest.SourceCompact {
			source = "compact"
		}
		rows = append(rows, []string{key, partitionText(t, e.Partition), number(e.File.Rows), deleted, number(e.File.Size), number(e.File.SchemaID), source})
	}
	drawTable(w, []string{"file", "partition", "rows", "deleted", "bytes", "schema", "source"}, rows, []bool{false, false, true, true, true, true})
	return nil
}

func partitionText(t *paimon.Table, row []byte) string {
	ts := t.Schema().PartitionTypes()
	values, err := binrow.Decode(ts, row)
	if err != nil {
		return "?"
	}
	var parts []string
	for i, v := range values {
		parts = append(parts, t.Schema().PartitionKeys[i]+"="+string(types.AppendJSON(nil, ts[i], v)))
	}
	return strings.Join(parts, " ")
}

func inspectVectors(ctx context.Context, w io.Writer, t *paimon.Table, f tableFlags) error {
	t, st, err := f.version(ctx, t)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, e := range st.Index {
		for _, v := range e.Vectors {
			card := "?"
			if v.Cardinality != nil {
				card = number(*v.Cardinality)
			}
			rows = append(rows, []string{e.Name, number(e.Size), partitionText(t, e.Partition), v.DataFile, card, number(int64(v.Offset)), number(int64(v.Length))})
		}
	}
	drawTable(w, []string{"index file", "bytes", "partition", "data file", "deleted", "offset", "length"}, rows, []bool{false, true, false, false, true, true, true})
	return nil
}

func inspectSchema(_ context.Context, w io.Writer, t *paimon.Table, _ tableFlags) error {
	s := t.Schema()
	var rows [][]string
	for _, f := range s.Fields {
		def, comment := "", ""
		if f.Default != nil {
			def = *f.Default
		}
		if f.Description != nil {
			comment = *f.Description
		}
		rows = append(rows, []string{number(int64(f.ID)), f.Name, f.Type.String(), def, comment})
	}
	drawTable(w, []string{"id", "column", "type", "default", "comment"}, rows, []bool{true})
	fmt.Fprintf(w, "\nschema %d, partitioned by [%s]\n", s.ID, strings.Join(s.PartitionKeys, ", "))
	options, err := json.MarshalIndent(s.Options, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "options %s\n", options)
	if err := paimon.Refuse(s, paimon.Write); err != nil {
		fmt.Fprintf(w, "\nthis version reads the table, but does not write it:\n%v\n", err)
	}
	return nil
}
