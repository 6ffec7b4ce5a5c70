package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"applier/itest/harness"
	"applier/merger/compact"
	"applier/storage/paimon"
	"applier/storage/types"

	"github.com/google/uuid"
)

// tableRows and tableFiles are the table that scans and compactions are measured on,
// never a smaller one: row groups below 4 MiB are not copied as they are.
const (
	tableRows  = 2 * million
	tableFiles = 10
)

// tables measures what reads and writes whole tables: K9, scans, and K10, compaction.
// Both as CPU time of one core; a second figure in the text is per byte.
func (k *kernelBench) tables(ctx context.Context) error {
	dir, err := os.MkdirTemp(k.dir, "tables-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := tableBench{k: k, rows: tableRows, targets: targets{dir: dir, fileRows: tableRows / tableFiles}}
	for _, f := range []func(context.Context) error{b.scans, b.compactions} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

type tableBench struct {
	k       *kernelBench
	rows    int64
	targets targets
}

// load is the table, of which some rows are deleted.
func (b *tableBench) load(worn int64) harness.MergeLoad {
	return harness.MergeLoad{Seed: seed, TargetRows: b.rows, Worn: worn}
}

// opened is a clone of the table, open at its latest snapshot.
type opened struct {
	warehouse string
	t         *paimon.Table
	st        *paimon.State
	bytes     int64 // of its data files
}

func (b *tableBench) open(ctx context.Context, worn int64) (*opened, error) {
	o := &opened{}
	var err error
	if o.warehouse, err = b.targets.clone(ctx, b.load(worn)); err != nil {
		return nil, err
	}
	if o.t, err = openTarget(ctx, o.warehouse); err != nil {
		return nil, err
	}
	if _, o.st, err = o.t.Version(ctx, paimon.Version{}); err != nil {
		return nil, err
	}
	files, err := o.t.Files(ctx, o.st, nil)
	for i := range files {
		o.bytes += files[i].File.Size
	}
	return o, err
}

// scans is K9: whole tables, with deletion vectors, and a range of keys of which
// statistics leave one file in ten.
func (b *tableBench) scans(ctx context.Context) error {
	perFile := b.rows / tableFiles
	tenth := []paimon.Condition{
		{Column: 0, Op: paimon.GreaterEqual, Value: types.IntDatum(perFile * 7)},
		{Column: 0, Op: paimon.Less, Value: types.IntDatum(perFile * 8)},
	}
	for _, c := range []struct {
		name, what string
		worn       int64
		where      []paimon.Condition
	}{
		{"K9 scan", "scan a table, all columns", 0, nil},
		{"K9 marked", "the same, 10 % deleted by deletion vectors", 10, nil},
		{"K9 pruned", "the same, a range of keys that statistics find in 1 of 10 files", 0, tenth},
	} {
		o, err := b.open(ctx, c.worn)
		if err != nil {
			return err
		}
		want := b.rows
		if c.where != nil {
			want = perFile
		}
		var wall time.Duration
		took, err := rounds(func() (time.Duration, error) {
			n, from := int64(0), time.Now()
			err := o.t.Scan(ctx, o.st, paimon.ScanOptions{Where: c.where}, func(rows *types.Batch) error {
				n += int64(rows.Len())
				return nil
			})
			wall = time.Since(from)
			if err == nil && (n > want || c.worn == 0 && n != want) {
				err = fmt.Errorf("%d rows instead of %d", n, want)
			}
			return 0, err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		b.k.add(c.name, perRow(took, int(b.rows)), "ns/row", fmt.Sprintf("%s: %.2f M rows/s, %.3f GB/s of files (wall, last round)",
			c.what, float64(b.rows)/1e6/wall.Seconds(), float64(o.bytes)/1e9/wall.Seconds()))
	}
	return nil
}

// compactions is K10: files joined as they are, row group by row group, and files
// written again without their deleted rows.
func (b *tableBench) compactions(ctx context.Context) error {
	for _, c := range []struct {
		name, what string
		worn       int64
	}{
		{"K10 verbatim", "join 10 files, row groups copied as they are", 0},
		{"K10 encode", "join 10 files without their deleted rows, 10 %", 10},
	} {
		var wall time.Duration
		var bytes int64
		took, err := rounds(func() (time.Duration, error) {
			start := ownCPU()
			o, err := b.open(ctx, c.worn)
			if err != nil {
				return 0, err
			}
			defer os.RemoveAll(o.warehouse)
			p := compact.NewPolicy(o.t, 0)
			p.Full, p.TargetBytes = true, 4<<30
			off, from := ownCPU()-start, time.Now()
			r, err := compact.Run(ctx, o.t, compact.Options{Policy: p, User: "bench", NewUUID: uuid.NewString, Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
			wall, bytes = time.Since(from), r.BytesRead
			if err == nil && (r.FilesBefore != tableFiles || r.FilesAfter != 1) {
				err = errors.New("it did not become one file")
			}
			return off, err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		gb := float64(bytes) / 1e9
		b.k.add(c.name, took.Seconds()/gb, "CPU s/GB", fmt.Sprintf("%s: %.3f GB/s (wall, last round), %.0f ns/row", c.what, gb/wall.Seconds(), perRow(took, int(b.rows))))
	}
	return nil
}
