package paimon

import (
	"bytes"
	"fmt"

	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// Compare is the operator of a Condition.
type Compare uint8

// The operators. All but IsNull and NotNull are false for a NULL.
const (
	Equal Compare = iota
	Less
	LessEqual
	Greater
	GreaterEqual
	IsNull
	NotNull
)

// Condition compares a column of the table with a value of its type, in the
// order of types.CompareDatums.
type Condition struct {
	Column int
	Op     Compare
	Value  types.Datum
}

// Match evaluates the condition on a value of the column.
func (c Condition) Match(t types.Type, v types.Datum) bool {
	switch c.Op {
	case IsNull:
		return v.Null
	case NotNull:
		return !v.Null
	}
	if v.Null || c.Value.Null {
		return false
	}
	d := types.CompareDatums(t, v, c.Value)
	switch c.Op {
	case Equal:
		return d == 0
	case Less:
		return d < 0
	case LessEqual:
		return d <= 0
	case Greater:
		return d > 0
	}
	return d >= 0
}

// mayMatch says whether rows with these statistics can hold a matching one.
// Unknown statistics can. Bounds need not be values: they may be cut.
func (c Condition) mayMatch(t types.Type, s ColumnStats, rows int64) bool {
	if s.None {
		return true
	}
	switch c.Op {
	case IsNull:
		return s.Nulls != 0
	case NotNull:
		return s.Nulls != rows
	}
	if c.Value.Null || s.Nulls == rows {
		return false
	}
	if s.Min.Null || s.Max.Null {
		return true
	}
	low, high := compareBounds(t, s, c.Value)
	switch c.Op {
	case Equal:
		return low <= 0 && high >= 0
	case Less:
		return low < 0
	case LessEqual:
		return low <= 0
	case Greater:
		return high > 0
	}
	return high >= 0
}

// compareBounds compares the bounds with v, low as the least and high as the
// greatest outcome that a value between them can have.
func compareBounds(t types.Type, s ColumnStats, v types.Datum) (low, high int) {
	switch t.Kind {
	case types.Char:
		return compareCharBounds(s.Min.B, s.Max.B, v.B)
	case types.Float, types.Double:
		// Some writers (pyarrow's statistics, and so pypaimon's) leave NaN out,
		// which is greater than every bound.
		return types.CompareDatums(t, s.Min, v), 1
	}
	return types.CompareDatums(t, s.Min, v), types.CompareDatums(t, s.Max, v)
}

// compareCharBounds is for bounds in the order of bytes, of values with or without
// the blanks that they are compared with. The two orders differ where characters
// below the blank are about: "a\x01" is less than 'a', and greater byte by byte.
func compareCharBounds(least, most, v []byte) (low, high int) {
	v = types.TrimBlanks(v)
	low, high = -1, 1
	if bytes.ContainsFunc(v, func(r rune) bool { return r < ' ' }) {
		return low, high
	}
	padded := v
	if n := len(least) - len(v); n > 0 {
		padded = append(bytes.Clone(v), bytes.Repeat([]byte{' '}, n)...)
	}
	if bytes.Compare(least, padded) > 0 {
		low = 1
	}
	if bytes.Compare(most, v) < 0 {
		high = -1
	}
	return low, high
}

// checkConditions refuses what is no condition of the table's columns.
func checkConditions(s *Schema, where []Condition) error {
	for _, c := range where {
		if c.Column < 0 || c.Column >= len(s.Fields) || c.Op > NotNull {
			return fmt.Errorf("condition with operator %d on column %d of %d", c.Op, c.Column, len(s.Fields))
		}
	}
	return nil
}

// partitionConditions are the conditions on partition columns.
type partitionConditions struct {
	types []types.Type // of the partition columns
	items []partitionCondition
}

type partitionCondition struct {
	Condition
	at int // among the partition columns
}

func (t *Table) partitionConditions(where []Condition) partitionConditions {
	p := partitionConditions{types: t.partitionTypes}
	for _, c := range where {
		if at := t.partitionIndex(c.Column); at >= 0 {
			p.items = append(p.items, partitionCondition{c, at})
		}
	}
	return p
}

// keepManifest says whether a manifest can have entries of matching partitions:
// if one has, so have all others with entries of that partition.
func (p partitionConditions) keepManifest(m manifest.Meta) bool {
	for _, c := range p.items {
		low, err := binrow.Decode(p.types, m.PartitionStats.Min)
		if err != nil {
			return true // statistics that are none
		}
		high, err := binrow.Decode(p.types, m.PartitionStats.Max)
		if err != nil {
			return true
		}
		s := ColumnStats{Nulls: manifest.UnknownCount, Min: low[c.at], Max: high[c.at]}
		if c.at < len(m.PartitionStats.NullCounts) {
			s.Nulls = m.PartitionStats.NullCounts[c.at]
		}
		if !c.mayMatch(p.types[c.at], s, m.Added+m.Deleted) {
			return false
		}
	}
	return true
}

// match evaluates the conditions on a partition.
func (p partitionConditions) match(partition []byte) (bool, error) {
	if len(p.items) == 0 {
		return true, nil
	}
	row, err := binrow.Decode(p.types, partition)
	if err != nil {
		return false, fmt.Errorf("partition: %w", err)
	}
	for _, c := range p.items {
		if !c.Match(p.types[c.at], row[c.at]) {
			return false, nil
		}
	}
	return true, nil
}
