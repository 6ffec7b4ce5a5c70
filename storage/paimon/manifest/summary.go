package manifest

import (
	"bytes"
	"fmt"
	"math"

	"applier/storage/paimon/binrow"
	"applier/storage/types"
)

// Summarise returns the list entry of a manifest: counts, partition bounds and
// the ranges of bucket, level, row id and schema id over its entries. partition
// are the types of the table's partition columns (source: Paimon
// ManifestFile.ManifestEntryWriter, SimpleStatsCollector).
func Summarise(name string, size int64, entries []Entry, partition []types.Type) (Meta, error) {
	m := Meta{Name: name, Size: size}
	b := newBounds(partition)
	rows, minRow, maxRow := true, int64(math.MaxInt64), int64(math.MinInt64)
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case Add:
			m.Added++
		case Delete:
			m.Deleted++
		default:
			return Meta{}, fmt.Errorf("%w: kind %d of %s", ErrInconsistent, e.Kind, e.File.Name)
		}
		if err := b.add(e.Partition); err != nil {
			return Meta{}, fmt.Errorf("partition of %s: %w", e.File.Name, err)
		}
		m.SchemaID = max(m.SchemaID, e.File.SchemaID)
		m.MinBucket, m.MaxBucket = widen(m.MinBucket, m.MaxBucket, e.Bucket)
		m.MinLevel, m.MaxLevel = widen(m.MinLevel, m.MaxLevel, e.File.Level)
		if first := e.File.FirstRowID; first == nil {
			rows = false
		} else {
			minRow, maxRow = min(minRow, *first), max(maxRow, *first+e.File.Rows-1)
		}
	}
	// One entry without row ids makes the range useless for pruning.
	if rows && len(entries) > 0 {
		m.MinRowID, m.MaxRowID = &minRow, &maxRow
	}
	var err error
	m.PartitionStats, err = b.stats()
	return m, err
}

func widen(low, high *int32, v int32) (*int32, *int32) {
	if low == nil {
		return new(v), new(v)
	}
	*low, *high = min(*low, v), max(*high, v)
	return low, high
}

// bounds collects minimum, maximum and null count of every partition column.
type bounds struct {
	ts       []types.Type
	min, max []types.Datum
	nulls    []int64
	last     []byte
	row      []types.Datum
}

func newBounds(ts []types.Type) *bounds {
	b := &bounds{ts: make([]types.Type, len(ts)), nulls: make([]int64, len(ts))}
	for i, t := range ts {
		b.ts[i] = t.Nullable()
		b.min, b.max = append(b.min, types.Null), append(b.max, types.Null)
	}
	return b
}

// add takes one entry's partition; entries of one partition mostly follow each other.
func (b *bounds) add(partition []byte) error {
	if b.row == nil || !bytes.Equal(b.last, partition) {
		row, err := binrow.Decode(b.ts, partition)
		if err != nil {
			return err
		}
		b.last, b.row = partition, row
		for i, d := range row {
			if d.Null {
				continue
			}
			if b.min[i].Null || compareJava(b.ts[i], d, b.min[i]) < 0 {
				b.min[i] = d
			}
			if b.max[i].Null || compareJava(b.ts[i], d, b.max[i]) > 0 {
				b.max[i] = d
			}
		}
	}
	for i, d := range b.row {
		if d.Null {
			b.nulls[i]++ // per entry: readers compare it with added + deleted
		}
	}
	return nil
}

func (b *bounds) stats() (s Stats, err error) {
	if s.Min, err = binrow.Encode(b.ts, b.min); err != nil {
		return Stats{}, err
	}
	s.Max, err = binrow.Encode(b.ts, b.max)
	s.NullCounts = b.nulls
	return s, err
}

// compareJava orders as Java's compareTo of the internal values does: -0.0 below
// 0.0, NaN above all, CHAR with its blanks.
func compareJava(t types.Type, a, b types.Datum) int {
	if t.Kind == types.Char {
		return bytes.Compare(a.B, b.B)
	}
	c := types.CompareDatums(t, a, b)
	if c == 0 && (t.Kind == types.Float || t.Kind == types.Double) && math.Signbit(a.F) != math.Signbit(b.F) && a.F == b.F {
		if math.Signbit(a.F) {
			return -1
		}
		return 1
	}
	return c
}
