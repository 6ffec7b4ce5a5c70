package paimon

import (
	"errors"
	"strconv"
	"strings"

	"applier/storage/paimon/datafile"
	"applier/storage/types"
)

// StatsKind is the root of a statistics mode.
type StatsKind uint8

// The kinds (option metadata.stats-mode).
const (
	StatsNone StatsKind = iota
	StatsCounts
	StatsTruncate
	StatsFull
)

// StatsMode says which statistics a column has in manifests.
type StatsMode struct {
	Kind StatsKind
	// Length of the bounds under StatsTruncate: code points of text, bytes of
	// binaries.
	Length int
}

// ParseStatsMode reads none, counts, truncate(n) or full, in any case.
func ParseStatsMode(s string) (StatsMode, error) {
	switch s := strings.ToLower(s); s {
	case "none":
		return StatsMode{}, nil
	case "counts":
		return StatsMode{Kind: StatsCounts}, nil
	case "full":
		return StatsMode{Kind: StatsFull}, nil
	default:
		if n, ok := strings.CutPrefix(s, "truncate("); ok {
			if n, ok = strings.CutSuffix(n, ")"); ok {
				if v, err := strconv.ParseInt(n, 10, 32); err == nil && v > 0 {
					return StatsMode{StatsTruncate, int(v)}, nil
				}
			}
		}
	}
	return StatsMode{}, errors.New("none, counts, truncate(n) or full is expected")
}

// StatsModeOf returns the mode of the column at a position of a table or file
// (source: StatsCollectorFactories).
func (o *Options) StatsModeOf(position int, column string) StatsMode {
	if m, ok := o.ColumnStatsModes[column]; ok {
		return m
	}
	switch {
	case column == ColumnRowID || column == ColumnSequenceNumber:
		return StatsMode{StatsTruncate, 128}
	case o.StatsKeepFirstColumns >= 0 && position >= o.StatsKeepFirstColumns:
		return StatsMode{}
	}
	return o.StatsMode
}

// Apply brings the true statistics of a column's values into the form of the
// mode: bounds dropped, shortened (the minimum down, the maximum up) or left as
// they are. Bounds that cannot be shortened are dropped both, as Java does.
func (m StatsMode) Apply(t types.Type, c datafile.ColumnStats) ColumnStats {
	s := ColumnStats{Nulls: c.NullCount, Min: types.Null, Max: types.Null}
	switch m.Kind {
	case StatsNone:
		return ColumnStats{None: true}
	case StatsCounts:
	case StatsTruncate:
		if low, high, ok := datafile.Truncate(t, c.Min, c.Max, m.Length); ok && c.HasBounds {
			s.Min, s.Max = low, high
		}
	case StatsFull:
		if c.HasBounds {
			s.Min, s.Max = c.Min, c.Max
		}
	}
	return s
}
