package verify

import (
	"context"
	"errors"
	"fmt"

	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/paimon/datafile"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// rows reads every row of every retained data file and compares it with what the
// manifests say of the file: rows, NULLs, bounds.
func (v *verifier) rows(ctx context.Context) {
	sec := v.r.section("rows")
	for _, key := range sortedKeys(v.walk.needed) {
		f := v.walk.needed[key]
		if f.entry == nil {
			continue
		}
		err := v.dataFile(ctx, sec, key, f.entry)
		if err == nil {
			err = v.checkDataSeal(ctx, sec, f)
		}
		if err != nil && !(errors.Is(err, objstore.ErrNotExist) && v.gone(ctx, f.snapshot)) {
			sec.readError(key, err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// checkDataSeal compares a data file with its own seal. Files of other writers have
// none; those that a sealed snapshot of ours has added all have one.
func (v *verifier) checkDataSeal(ctx context.Context, sec *Section, f *stored) error {
	err := v.Table.CheckSeal(ctx, f.entry)
	switch {
	case err == nil:
		sec.count("sealed", 1)
	case errors.Is(err, datafile.ErrNoSeal) && !f.sealed:
		err = nil
	}
	return err
}

// dataFile reads a file with the schema it was written under, in which its
// statistics are.
func (v *verifier) dataFile(ctx context.Context, sec *Section, key string, e *manifest.Entry) error {
	t, err := v.Table.AtSchema(ctx, e.File.SchemaID)
	if err != nil {
		return err
	}
	fields := t.Schema().Fields
	evolution := paimon.NewStatsEvolution(t.Schema(), t.Schema())
	stats := make([]columnCheck, len(fields))
	for i := range fields {
		s, err := evolution.Column(&e.File, i)
		if err != nil {
			return err
		}
		stats[i] = columnCheck{field: fields[i], stats: s}
	}
	cols := make([]int, len(fields))
	for i := range cols {
		cols[i] = i
	}
	var rows int64
	err = t.ReadFile(ctx, e, cols, func(_ int64, b *types.Batch) error {
		for i := range stats {
			stats[i].add(b.Cols[i])
		}
		rows += int64(b.Len())
		return nil
	})
	if err != nil {
		return err
	}
	sec.count("files", 1)
	sec.count("rows", rows)
	if rows != e.File.Rows {
		return fmt.Errorf("%w: it has %d rows, the manifest says %d", paimon.ErrCorrupt, rows, e.File.Rows)
	}
	for i := range stats {
		if what := stats[i].problem(); what != "" {
			sec.fail(key, "", "statistics of column %s in the manifest: %s", fields[i].Name, what)
		}
	}
	return nil
}

// columnCheck compares the values of a column with its statistics.
type columnCheck struct {
	field   types.Field
	stats   paimon.ColumnStats
	nulls   int64
	outside *types.Datum // the first value outside of the bounds
}

func (c *columnCheck) add(v *types.Vector) {
	bounded := !c.stats.Min.Null && !c.stats.Max.Null
	t := c.field.Type
	for i := range v.Len() {
		if v.IsNull(i) {
			c.nulls++
			continue
		}
		if !bounded || c.outside != nil {
			continue
		}
		d := v.Datum(i)
		if d.F != d.F { // writers leave NaN out of bounds
			continue
		}
		if types.CompareDatums(t, d, c.stats.Min) < 0 || types.CompareDatums(t, d, c.stats.Max) > 0 {
			d = clone(d)
			c.outside = &d
		}
	}
}

func (c *columnCheck) problem() string {
	switch {
	case c.stats.None:
		return ""
	case c.stats.Nulls >= 0 && c.stats.Nulls != c.nulls:
		return fmt.Sprintf("%d NULLs, the file has %d", c.stats.Nulls, c.nulls)
	case c.outside != nil:
		text := func(d types.Datum) string { return string(types.AppendJSON(nil, c.field.Type, d)) }
		return fmt.Sprintf("bounds %s to %s, but the file has %s", text(c.stats.Min), text(c.stats.Max), text(*c.outside))
	}
	return ""
}

// clone copies a value out of a vector's memory.
func clone(d types.Datum) types.Datum {
	if d.B != nil {
		d.B = append([]byte{}, d.B...)
	}
	if d.L != nil {
		l := make([]types.Datum, len(d.L))
		for i := range l {
			l[i] = clone(d.L[i])
		}
		d.L = l
	}
	return d
}
