package paimon

import (
	"fmt"
	"math"
	"slices"

	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// ColumnStats are the statistics of one column of a data file.
type ColumnStats struct {
	// None: there are none at all, not even a count.
	None bool
	// Nulls is the number of NULL rows, manifest.UnknownCount if it is not known.
	Nulls int64
	// Min and Max bound the values that are not NULL; Null means unknown, or that
	// there are no such values.
	Min, Max types.Datum
}

// EncodeStats returns a data file's value statistics and the names of their
// columns, for manifest.DataFile. written are the columns in the file, in its
// order, stats those of each, in the form of their modes (StatsMode.Apply).
// Dense is the option metadata.stats-dense-store.
//
// What must not be trusted is left out here, whoever computed it: bounds with
// NaN (no reader orders it as all others do), bounds of bytes (Java up to 1.4.2
// compares them signed with conditions and so hides rows, though Java 2.0 writes
// them unsigned), timestamps beyond microseconds and nested columns (Java has
// none); zeros are widened to cover both signs.
func EncodeStats(written []types.Field, stats []ColumnStats, dense bool) (manifest.Stats, []string, error) {
	if len(written) != len(stats) {
		return manifest.Stats{}, nil, fmt.Errorf("statistics of %d columns for %d", len(stats), len(written))
	}
	var (
		ts       []types.Type
		low, top []types.Datum
		names    = []string{}
		out      = manifest.Stats{NullCounts: []int64{}}
	)
	for i, f := range written {
		c := stats[i]
		if !boundable(f.Type) {
			c = ColumnStats{None: true}
		}
		switch {
		case c.None && dense:
			continue
		case c.None:
			c = ColumnStats{Nulls: manifest.UnknownCount, Min: types.Null, Max: types.Null}
		}
		c = trusted(f.Type, c)
		ts = append(ts, f.Type.Nullable())
		low, top = append(low, c.Min), append(top, c.Max)
		out.NullCounts = append(out.NullCounts, c.Nulls)
		names = append(names, f.Name)
	}
	var err error
	if out.Min, err = binrow.Encode(ts, low); err != nil {
		return manifest.Stats{}, nil, fmt.Errorf("minimum values: %w", err)
	}
	if out.Max, err = binrow.Encode(ts, top); err != nil {
		return manifest.Stats{}, nil, fmt.Errorf("maximum values: %w", err)
	}
	// All columns, or the older form: nil says so.
	if !dense || len(names) == len(written) {
		names = nil
	}
	return out, names, nil
}

// boundable reports whether columns of a type have statistics.
func boundable(t types.Type) bool {
	return t.Supported() && !t.IsNested() && t.Kind != types.Variant
}

func trusted(t types.Type, c ColumnStats) ColumnStats {
	switch {
	case t.IsTimestamp() && t.Precision > 6, t.IsBinary():
		c.Min, c.Max = types.Null, types.Null
	case t.Kind == types.Float || t.Kind == types.Double:
		if c.Min.Null || c.Max.Null || math.IsNaN(c.Min.F) || math.IsNaN(c.Max.F) {
			c.Min, c.Max = types.Null, types.Null
			break
		}
		if c.Min.F == 0 {
			c.Min.F = math.Copysign(0, -1)
		}
		if c.Max.F == 0 {
			c.Max.F = 0
		}
	}
	if c.Min.Null || c.Max.Null {
		c.Min, c.Max = types.Null, types.Null
	}
	return c
}

// StatsEvolution reads the statistics of files that were written under one
// schema as statistics of the columns of another, the current one: columns are
// followed by their field ids through renames, moves, drops and changes of type.
// It is immutable.
type StatsEvolution struct {
	file *Schema
	// source is, for each current column, the position in the file's schema, or -1.
	source []int
	casts  []boundCast
}

// boundCast says how bounds of a file's column become bounds of a current one.
type boundCast struct {
	to   types.Type
	cast caster
	// known: there is a way at all; bounds: not only for the count of NULLs.
	known, bounds bool
}

// NewStatsEvolution relates the columns of a file's schema to the current ones.
func NewStatsEvolution(current, file *Schema) *StatsEvolution {
	e := &StatsEvolution{file: file, source: make([]int, len(current.Fields)), casts: make([]boundCast, len(current.Fields))}
	for i, f := range current.Fields {
		e.source[i] = file.ColumnByID(f.ID)
		if e.source[i] >= 0 {
			e.casts[i] = newBoundCast(f.Type, file.Fields[e.source[i]].Type)
		}
	}
	return e
}

// newBoundCast leaves out what is not the same order before and after: values
// that are filled up are no bounds of each other. For CHAR that does not matter,
// because its trailing blanks are none of the value (Condition.mayMatch).
func newBoundCast(to, from types.Type) boundCast {
	c, err := newCaster(to, from)
	b := boundCast{to: to, cast: c, known: err == nil && boundable(to) && to.IsText() == from.IsText(), bounds: true}
	switch {
	case to.Kind == types.Char:
		b.cast = nil
	case to.Kind == types.Binary && c != nil, to.IsTimestamp() && to.Precision > 6:
		b.bounds = false
	}
	return b
}

// Column returns the statistics of the current column at a position, for one
// file. A column that the file has not is NULL in all its rows. Whatever is not
// certain is unknown: bounds with NaN, bounds beyond microseconds (some writers cut
// them), bounds in another order, a column whose type has changed in a way that this program does not
// follow, statistics of another form than announced (pypaimon writes some). The
// error is about bytes that are no statistics at all.
func (e *StatsEvolution) Column(f *manifest.DataFile, i int) (ColumnStats, error) {
	unknown := ColumnStats{None: true, Nulls: manifest.UnknownCount, Min: types.Null, Max: types.Null}
	j := e.source[i]
	if j < 0 || f.WriteColumns != nil && !slices.Contains(f.WriteColumns, e.file.Fields[j].Name) {
		return ColumnStats{Nulls: f.Rows, Min: types.Null, Max: types.Null}, nil
	}
	to := &e.casts[i]
	if !to.known {
		return unknown, nil
	}
	slot, ok, err := e.slot(f, j)
	if err != nil || !ok {
		return unknown, err
	}
	c := ColumnStats{Nulls: manifest.UnknownCount, Min: types.Null, Max: types.Null}
	if slot < len(f.ValueStats.NullCounts) {
		c.Nulls = f.ValueStats.NullCounts[slot]
	}
	t := e.file.Fields[j].Type
	low, err := binrow.Field(t, f.ValueStats.Min, slot)
	if err != nil {
		return unknown, fmt.Errorf("minimum values of %s: %w", f.Name, err)
	}
	top, err := binrow.Field(t, f.ValueStats.Max, slot)
	if err != nil {
		return unknown, fmt.Errorf("maximum values of %s: %w", f.Name, err)
	}
	// F of other types is 0, no NaN.
	if low.Null || top.Null || math.IsNaN(low.F) || math.IsNaN(top.F) || !to.bounds {
		return c, nil
	}
	if c.Min, err = castDatum(to.cast, to.to, t, low); err == nil {
		c.Max, err = castDatum(to.cast, to.to, t, top)
	}
	if err != nil {
		return unknown, fmt.Errorf("statistics of %s: %w", f.Name, err)
	}
	if outOfOrder(to.to, c) {
		c.Min, c.Max = types.Null, types.Null
	}
	return c, nil
}

// outOfOrder reports that bounds were made in another order than ours, such as
// that of signed bytes.
func outOfOrder(t types.Type, c ColumnStats) bool {
	if t.Kind == types.Char {
		t = types.StringType() // they may end in blanks
	}
	return types.CompareDatums(t, c.Min, c.Max) > 0
}

// slot returns the place of the file schema's column j in the file's bounds; not
// ok if there is none or if the bounds have another form than announced.
func (e *StatsEvolution) slot(f *manifest.DataFile, j int) (slot int, ok bool, err error) {
	names := f.StatsColumns
	if names == nil {
		names = f.WriteColumns
	}
	slot, n := j, len(e.file.Fields)
	if names != nil {
		slot, n = slices.Index(names, e.file.Fields[j].Name), len(names)
	}
	for _, b := range [][]byte{f.ValueStats.Min, f.ValueStats.Max} {
		got, err := binrow.Arity(b)
		if err != nil {
			return 0, false, fmt.Errorf("statistics of %s: %w", f.Name, err)
		}
		ok = got == n
		if !ok {
			return 0, false, nil
		}
	}
	return slot, slot >= 0, nil
}
