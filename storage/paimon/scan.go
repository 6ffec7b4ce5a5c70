package paimon

import (
	"context"
	"fmt"

	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
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

// Condition compares a column of the table with a value of its type.
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

// mayMatch says whether a file with these statistics can hold a matching row.
// Unknown statistics can.
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
	if s.Nulls == rows {
		return false
	}
	if s.Min.Null || s.Max.Null {
		return true
	}
	low, high := types.CompareDatums(t, s.Min, c.Value), types.CompareDatums(t, s.Max, c.Value)
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

// ScanOptions say what to read.
type ScanOptions struct {
	// Columns of the table, in the wanted order; nil is all. CountRows counts
	// without reading any.
	Columns []int
	// Where are conditions that must all hold.
	Where []Condition
}

// Scan reads the live rows of a state and hands them to fn in batches, which
// are valid during the call. Files are passed over by partition, by statistics
// and by what the conditions leave. The order is that of the manifests.
func (t *Table) Scan(ctx context.Context, st *State, o ScanOptions, fn func(*types.Batch) error) error {
	if o.Columns == nil {
		o.Columns = everyColumn(t.schema)
	}
	files, err := t.Files(ctx, st, nil)
	if err != nil {
		return err
	}
	refs, err := VectorRefs(st.Index)
	if err != nil {
		return err
	}
	s := newScanner(t, o)
	for i := range files {
		e := &files[i]
		ok, err := s.selects(ctx, e)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		deleted, err := t.vectorOf(ctx, e, refs)
		if err != nil {
			return err
		}
		if err := s.file(ctx, e, deleted, fn); err != nil {
			return err
		}
	}
	return nil
}

// vectorOf reads a file's deletion vector, nil for none. Vectors count only if
// the table's option says so (paimon-format.md §7).
func (t *Table) vectorOf(ctx context.Context, e *manifest.Entry, refs map[FileKey]VectorRef) (*roaring.Bitmap, error) {
	ref, ok := refs[KeyOf(e)]
	if !ok || !t.options.DeletionVectors {
		return nil, nil
	}
	return t.ReadVector(ctx, ref, e.File.Rows)
}

// CountRows returns the number of live rows of a state, from metadata where the
// vectors' cardinalities are recorded.
func (t *Table) CountRows(ctx context.Context, st *State) (int64, error) {
	files, err := t.Files(ctx, st, nil)
	if err != nil {
		return 0, err
	}
	refs, err := VectorRefs(st.Index)
	if err != nil {
		return 0, err
	}
	var n int64
	for i := range files {
		n += files[i].File.Rows
		ref, ok := refs[KeyOf(&files[i])]
		if !ok || !t.options.DeletionVectors {
			continue
		}
		if ref.At.Cardinality >= 0 {
			n -= ref.At.Cardinality
			continue
		}
		m, err := t.ReadVector(ctx, ref, files[i].File.Rows)
		if err != nil {
			return 0, err
		}
		n -= int64(m.GetCardinality())
	}
	return n, nil
}

func everyColumn(s *Schema) []int {
	cols := make([]int, len(s.Fields))
	for i := range cols {
		cols[i] = i
	}
	return cols
}

// scanner reads files for one set of columns and conditions.
type scanner struct {
	t         *Table
	o         ScanOptions
	cols      []int // what is read: wanted columns, then those of conditions only
	where     []int // the place in cols of each condition's column
	partition []int // the place among the partition keys of each of cols, -1
	stats     map[int64]*StatsEvolution
	out       *types.Batch
	sel       []uint32
}

func newScanner(t *Table, o ScanOptions) *scanner {
	s := &scanner{t: t, o: o, stats: map[int64]*StatsEvolution{}}
	s.cols = append(s.cols, o.Columns...)
	for _, c := range o.Where {
		at := -1
		for i, col := range s.cols {
			if col == c.Column {
				at = i
			}
		}
		if at < 0 {
			at = len(s.cols)
			s.cols = append(s.cols, c.Column)
		}
		s.where = append(s.where, at)
	}
	for _, c := range s.cols {
		s.partition = append(s.partition, t.partitionIndex(c))
	}
	var fields []types.Field
	for _, c := range o.Columns {
		f := t.schema.Fields[c]
		fields = append(fields, f)
	}
	s.out = types.NewBatch(fields)
	return s
}

func (t *Table) partitionIndex(col int) int {
	for i, name := range t.schema.PartitionKeys {
		if name == t.schema.Fields[col].Name {
			return i
		}
	}
	return -1
}

// selects prunes by partition values and statistics.
func (s *scanner) selects(ctx context.Context, e *manifest.Entry) (bool, error) {
	if len(s.o.Where) == 0 {
		return true, nil
	}
	part, err := binrow.Decode(s.t.schema.PartitionTypes(), e.Partition)
	if err != nil {
		return false, fmt.Errorf("partition of data file %s: %w", e.File.Name, err)
	}
	evolution, ok := s.stats[e.File.SchemaID]
	if !ok {
		file, err := s.t.SchemaByID(ctx, e.File.SchemaID)
		if err != nil {
			return false, err
		}
		evolution = NewStatsEvolution(s.t.schema, file)
		s.stats[e.File.SchemaID] = evolution
	}
	for i, c := range s.o.Where {
		t := s.t.schema.Fields[c.Column].Type
		if p := s.partition[s.where[i]]; p >= 0 {
			if !c.Match(t, part[p]) {
				return false, nil
			}
			continue
		}
		stats, err := evolution.Column(&e.File, c.Column)
		if err != nil {
			return false, fmt.Errorf("statistics of data file %s: %w", e.File.Name, err)
		}
		if !c.mayMatch(t, stats, e.File.Rows) {
			return false, nil
		}
	}
	return true, nil
}

func (s *scanner) file(ctx context.Context, e *manifest.Entry, deleted *roaring.Bitmap, fn func(*types.Batch) error) error {
	return s.t.ReadFile(ctx, e, s.cols, func(start int64, b *types.Batch) error {
		s.sel = s.sel[:0]
		for i := range b.Len() {
			if deleted != nil && deleted.Contains(uint32(start)+uint32(i)) || !s.matches(b, i) {
				continue
			}
			s.sel = append(s.sel, uint32(i))
		}
		if len(s.sel) == 0 {
			return nil
		}
		s.out.Reset()
		for i, v := range s.out.Cols {
			v.AppendGather(b.Cols[i], s.sel)
		}
		return fn(s.out)
	})
}

func (s *scanner) matches(b *types.Batch, i int) bool {
	for k, c := range s.o.Where {
		col := b.Cols[s.where[k]]
		if !c.Match(col.Type, col.Datum(i)) {
			return false
		}
	}
	return true
}

// ReadFile streams columns of one data file, deleted rows included, with the
// position of each batch's first row. Partition columns come from the entry.
func (t *Table) ReadFile(ctx context.Context, e *manifest.Entry, cols []int, fn func(start int64, b *types.Batch) error) error {
	f, err := t.OpenFile(ctx, e, cols)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	fill, err := t.partitionFiller(e, cols)
	if err != nil {
		return err
	}
	places := make([]int, len(cols))
	for i := range places {
		places[i] = i
	}
	err = f.Read(places, func(start int64, b *types.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		fill(b, b.Len())
		return fn(start, b)
	})
	if err != nil {
		return fmt.Errorf("data file %s: %w", e.File.Name, err)
	}
	return nil
}

// ReadRows appends chosen rows of one data file (ascending positions).
func (t *Table) ReadRows(ctx context.Context, e *manifest.Entry, cols []int, positions []uint32, out *types.Batch) error {
	f, err := t.OpenFile(ctx, e, cols)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	fill, err := t.partitionFiller(e, cols)
	if err != nil {
		return err
	}
	places := make([]int, len(cols))
	for i := range places {
		places[i] = i
	}
	part := f.NewBatch(places)
	if err := f.ReadRows(places, positions, part); err != nil {
		return fmt.Errorf("data file %s: %w", e.File.Name, err)
	}
	fill(part, len(positions))
	for i, v := range out.Cols {
		v.AppendRange(part.Cols[i], 0, part.Len())
	}
	return nil
}

// partitionFiller returns a function that replaces partition columns in a batch
// read from a file by the entry's values.
func (t *Table) partitionFiller(e *manifest.Entry, cols []int) (func(*types.Batch, int), error) {
	if len(t.schema.PartitionKeys) == 0 {
		return func(*types.Batch, int) {}, nil
	}
	part, err := binrow.Decode(t.schema.PartitionTypes(), e.Partition)
	if err != nil {
		return nil, fmt.Errorf("partition of data file %s: %w", e.File.Name, err)
	}
	return func(b *types.Batch, n int) {
		for i, c := range cols {
			p := t.partitionIndex(c)
			if p < 0 {
				continue
			}
			b.Cols[i].Reset()
			for range n {
				b.Cols[i].AppendDatum(part[p])
			}
		}
	}, nil
}
