package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"applier/config"
	"applier/merger/compact"
	"applier/storage/paimon"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// maintenance is a command that changes how a table is stored, not what is in it.
func maintenance(use, short, long string, flags func(*cobra.Command, warehouseFlags) func(context.Context, io.Writer, *paimon.Table, bool) error) *cobra.Command {
	c := &cobra.Command{Use: use + " DATABASE.TABLE", Short: short, Long: long, Args: cobra.ExactArgs(1)}
	where := addWarehouseFlags(c)
	dry := c.Flags().Bool("dry-run", false, "only say what would be done")
	run := flags(c, where)
	c.RunE = func(c *cobra.Command, args []string) error {
		t, err := where.openTable(c.Context(), args[0], paimon.Write)
		if err != nil {
			return err
		}
		return run(c.Context(), c.OutOrStdout(), t, *dry)
	}
	return c
}

func compactCommand() *cobra.Command {
	return maintenance("compact", "Join a table's small files and purge deleted rows",
		`Joins small files and writes files again of which many rows are deleted. The table's
options say what small and many mean (target-file-size, compaction.*).

It may run beside a daemon and beside other engines: rows that they delete meanwhile
are deleted in the new files, and a join whose files they replaced is given up. With
--full every partition and bucket is joined, and no deleted row is left.`,
		func(c *cobra.Command, _ warehouseFlags) func(context.Context, io.Writer, *paimon.Table, bool) error {
			full := c.Flags().Bool("full", false, "join whatever can be joined, purge every deleted row")
			ratio := c.Flags().Float64("deleted-ratio", 0, "share of deleted rows from which on a file is written again, instead of the table's option")
			return func(ctx context.Context, w io.Writer, t *paimon.Table, dry bool) error {
				if *ratio < 0 || *ratio > 1 {
					return usageError("--deleted-ratio %v: a share between 0 and 1 is expected", *ratio)
				}
				p := compact.NewPolicy(t, *ratio)
				p.Full = *full
				return runCompact(ctx, w, t, p, dry)
			}
		})
}

func runCompact(ctx context.Context, w io.Writer, t *paimon.Table, p compact.Policy, dry bool) error {
	if dry {
		_, files, err := compact.Survey(ctx, t)
		if err != nil {
			return err
		}
		n, rows, bytes := 0, int64(0), int64(0)
		groups := compact.Plan(files, p)
		for _, g := range groups {
			for _, f := range g {
				n, rows, bytes = n+1, rows+f.Deleted, bytes+f.Entry.File.Size
			}
		}
		fmt.Fprintf(w, "%d of %d files (%s) would become %d; %d deleted rows would be purged\n", n, len(files), humanSize(bytes), len(groups), rows)
		return nil
	}
	r, err := compact.Run(ctx, t, compact.Options{
		Policy: p, User: "applier-compact-" + uuid.NewString(), NewUUID: uuid.NewString, Now: time.Now, Log: newLogger(w, config.Log{}),
	})
	if r.Commits > 0 {
		fmt.Fprintf(w, "%d files (%s) became %d (%s), %d deleted rows purged: snapshot %d\n",
			r.FilesBefore, humanSize(r.BytesRead), r.FilesAfter, humanSize(r.BytesWritten), r.RowsPurged, r.Snapshot)
	} else if err == nil {
		fmt.Fprintln(w, "nothing to do")
	}
	if r.Abandoned > 0 {
		fmt.Fprintf(w, "%d joins were given up: somebody else had replaced their files\n", r.Abandoned)
	}
	return err
}

func expireCommand() *cobra.Command {
	return maintenance("expire", "Remove old snapshots and the files that only they name",
		`Removes snapshots as the table's options say (snapshot.num-retained.min and .max,
snapshot.time-retained). What tags, branches and consumers need stays, and so does the
newest position record of every pipeline.

Snapshots that are younger than stuck_after of the configuration stay, too, whatever the
options and the other flags say; without a configuration those younger than an hour. A
writer that hangs, a daemon or another engine, may be about to publish a snapshot with
the id of one of them: were it free again, the two would be one. If nobody writes to the
table, --min-age 0s removes them as well.`,
		func(c *cobra.Command, where warehouseFlags) func(context.Context, io.Writer, *paimon.Table, bool) error {
			least := c.Flags().Int("retain-min", 0, "snapshots that stay at least, instead of the table's option")
			most := c.Flags().Int("retain-max", 0, "snapshots that stay at most, instead of the table's option")
			age := c.Flags().Duration("retain-time", -1, "how long a snapshot stays after the next one came, instead of the table's option")
			young := c.Flags().Duration("min-age", 0, "age below which no snapshot goes (default: stuck_after of the configuration, else 1h)")
			limit := c.Flags().Int("limit", 0, "remove at most so many snapshots; 0 is all that may go")
			return func(ctx context.Context, w io.Writer, t *paimon.Table, dry bool) error {
				o := t.Options().ExpireOptions(time.Now())
				o.Limit = *limit
				if *least > 0 {
					o.RetainMin = *least
				}
				if *most > 0 {
					o.RetainMax = *most
				}
				if *age >= 0 {
					o.RetainTime = *age
				}
				if o.RetainMax < o.RetainMin {
					return usageError("at most %d snapshots cannot stay if %d stay at least", o.RetainMax, o.RetainMin)
				}
				if !c.Flags().Changed("min-age") {
					var err error
					if *young, err = where.young(); err != nil {
						return err
					}
				}
				if *young < 0 {
					return usageError("--min-age %s: no snapshot is younger than that", *young)
				}
				return runExpire(ctx, w, t, o, *young, dry)
			}
		})
}

func runExpire(ctx context.Context, w io.Writer, t *paimon.Table, o paimon.ExpireOptions, young time.Duration, dry bool) error {
	p, err := compact.PlanExpire(ctx, t, o, young)
	if err != nil {
		return err
	}
	if p.Snapshots() == 0 {
		fmt.Fprintf(w, "nothing to do: %s\n", heldBy(p))
		return nil
	}
	verb := "removed"
	if dry {
		verb = "would be removed"
	} else if err := t.Expire(ctx, p); err != nil {
		return err
	}
	fmt.Fprintf(w, "snapshots %d to %d %s, with %d data files and %d metadata files (%s); snapshot %d stays: %s\n",
		p.From, p.To-1, verb, len(p.DataFiles), len(p.Metadata), humanSize(p.Bytes), p.To, heldBy(p))
	return nil
}

func heldBy(p *paimon.ExpirePlan) string {
	if p.HeldBy == "" {
		return "the table has no snapshots"
	}
	return p.HeldBy
}

func orphansCommand() *cobra.Command {
	return maintenance("orphans", "Delete files that no snapshot, tag or branch names",
		`Deletes what failed commits, interrupted expiries and rollbacks leave: files with the
names that Paimon's writers give, in the table's folders, that no snapshot, tag or branch
names. Younger ones stay, since they may belong to a commit that is under way.`,
		func(c *cobra.Command, _ warehouseFlags) func(context.Context, io.Writer, *paimon.Table, bool) error {
			age := c.Flags().Duration("older-than", 24*time.Hour, "only files that were not changed for so long")
			return func(ctx context.Context, w io.Writer, t *paimon.Table, dry bool) error {
				if *age < paimon.MinOrphanAge {
					return usageError("--older-than %s: a commit that is under way may have written such a file; give %s or more", *age, paimon.MinOrphanAge)
				}
				now := time.Now()
				found, err := t.FindOrphans(ctx, now, now.Add(-*age))
				if err != nil {
					return err
				}
				bytes := int64(0)
				for _, o := range found {
					bytes += o.Size
					fmt.Fprintf(w, "%s  %s  %s\n", o.Key, humanSize(o.Size), o.Modified.UTC().Format(time.RFC3339))
				}
				verb := "deleted"
				if dry {
					verb = "would be deleted"
				} else if err := t.DeleteOrphans(ctx, found); err != nil {
					return err
				}
				fmt.Fprintf(w, "%d files (%s) %s\n", len(found), humanSize(bytes), verb)
				uploads, err := t.Uploads(ctx, now, now.Add(-*age), !dry)
				if uploads > 0 {
					fmt.Fprintf(w, "%d unfinished uploads %s\n", uploads, verb)
				}
				return err
			}
		})
}
