package paimon

import (
	"context"
	"fmt"
	"slices"

	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/RoaringBitmap/roaring/v2"
)

// ScanOptions say what to read.
type ScanOptions struct {
	// Columns of the table, in the wanted order; nil is all of its own. CountRows
	// counts without reading any.
	Columns []int
	// Where are conditions that must all hold.
	Where []Condition
}

// Scan reads the live rows of a state and hands them to fn in batches, which
// are valid during the call. Manifests and files are passed over by partition,
// files by statistics. The order is that of the manifests. Vectors have the
// table's types, except that NOT NULL may be missing or more. An error of fn ends
// the scan and is returned as it is.
func (t *Table) Scan(ctx context.Context, st *State, o ScanOptions, fn func(*types.Batch) error) error {
	return t.scan(ctx, st, o, func(_ *manifest.Entry, _ int64, _ []uint32, b *types.Batch) error { return fn(b) })
}

// ScanRows is Scan for those who change rows: it hands over the data file that a
// batch is of, and the position in it of each row. File and positions are valid
// during the call.
func (t *Table) ScanRows(ctx context.Context, st *State, o ScanOptions, fn func(e *manifest.Entry, positions []uint32, b *types.Batch) error) error {
	var positions []uint32
	return t.scan(ctx, st, o, func(e *manifest.Entry, start int64, sel []uint32, b *types.Batch) error {
		positions = positions[:0]
		for _, i := range sel {
			positions = append(positions, uint32(start)+i)
		}
		return fn(e, positions, b)
	})
}

// scanned takes rows of a file: those at start plus each of sel, which are the rows
// of b.
type scanned func(e *manifest.Entry, start int64, sel []uint32, b *types.Batch) error

func (t *Table) scan(ctx context.Context, st *State, o ScanOptions, fn scanned) error {
	s, err := newScanner(t, o)
	if err != nil {
		return err
	}
	files, err := s.candidates(ctx, st)
	if err != nil {
		return err
	}
	refs, err := t.LiveVectors(st.Index)
	if err != nil {
		return err
	}
	for i := range files {
		e := &files[i]
		ok, err := s.selects(ctx, e)
		if err != nil {
			return fmt.Errorf("data file %s: %w", e.File.Name, err)
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

// candidates are the live files, but for those of manifests that hold other partitions.
func (s *scanner) candidates(ctx context.Context, st *State) ([]manifest.Entry, error) {
	var keep func(manifest.Meta) bool
	if len(s.partition.items) > 0 {
		keep = s.partition.keepManifest
	}
	return s.t.Files(ctx, st, keep)
}

// Selected returns the live data files that Scan reads under conditions: those that
// neither their partition nor their statistics rule out.
func (t *Table) Selected(ctx context.Context, st *State, where []Condition) ([]manifest.Entry, error) {
	s, err := newScanner(t, ScanOptions{Where: where})
	if err != nil {
		return nil, err
	}
	files, err := s.candidates(ctx, st)
	if err != nil {
		return nil, err
	}
	var out []manifest.Entry
	for i := range files {
		ok, err := s.selects(ctx, &files[i])
		if err != nil {
			return nil, fmt.Errorf("data file %s: %w", files[i].File.Name, err)
		}
		if ok {
			out = append(out, files[i])
		}
	}
	return out, nil
}

// vectorOf reads a file's deletion vector, nil for none.
func (t *Table) vectorOf(ctx context.Context, e *manifest.Entry, refs map[FileKey]VectorRef) (*roaring.Bitmap, error) {
	ref, ok := refs[KeyOf(e)]
	if !ok {
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
	refs, err := t.LiveVectors(st.Index)
	if err != nil {
		return 0, err
	}
	var n int64
	for i := range files {
		e := &files[i]
		n += e.File.Rows
		ref, ok := refs[KeyOf(e)]
		if !ok {
			continue
		}
		deleted := ref.At.Cardinality
		if deleted < 0 {
			m, err := t.ReadVector(ctx, ref, e.File.Rows)
			if err != nil {
				return 0, err
			}
			deleted = int64(m.GetCardinality())
		}
		if deleted > e.File.Rows {
			return 0, fmt.Errorf("data file %s: %w: %d deleted rows of %d", e.File.Name, ErrCorrupt, deleted, e.File.Rows)
		}
		n -= deleted
	}
	return n, nil
}

// scanner reads files for one set of columns and conditions.
type scanner struct {
	t         *Table
	cols      []int // what is read: wanted columns, then those of conditions only
	wanted    int   // how many of cols are wanted
	partition partitionConditions
	where     []rowCondition // the other conditions
	stats     map[int64]*StatsEvolution
	out       *types.Batch
	sel       []uint32
}

type rowCondition struct {
	Condition
	at int // among the read columns
}

func newScanner(t *Table, o ScanOptions) (*scanner, error) {
	if o.Columns == nil {
		o.Columns = everyColumn(t.schema)
	}
	if len(o.Columns) == 0 {
		return nil, errNoColumns
	}
	if err := checkConditions(t.schema, o.Where); err != nil {
		return nil, err
	}
	s := &scanner{
		t: t, cols: slices.Clone(o.Columns), wanted: len(o.Columns), partition: t.partitionConditions(o.Where),
		stats: map[int64]*StatsEvolution{},
	}
	for _, c := range o.Where {
		if t.partitionIndex(c.Column) >= 0 {
			continue
		}
		at := slices.Index(s.cols, c.Column)
		if at < 0 {
			at = len(s.cols)
			s.cols = append(s.cols, c.Column)
		}
		s.where = append(s.where, rowCondition{c, at})
	}
	var fields []types.Field
	for _, c := range o.Columns {
		f, err := t.ColumnField(c)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	s.out = types.NewBatch(fields)
	return s, nil
}

func everyColumn(s *Schema) []int {
	cols := make([]int, len(s.Fields))
	for i := range cols {
		cols[i] = i
	}
	return cols
}

// selects prunes by partition values, statistics and bloom filters.
func (s *scanner) selects(ctx context.Context, e *manifest.Entry) (bool, error) {
	if ok, err := s.partition.match(e.Partition); !ok || err != nil {
		return false, err
	}
	if len(s.where) == 0 {
		return true, nil
	}
	file, err := s.t.SchemaByID(ctx, e.File.SchemaID)
	if err != nil {
		return false, err
	}
	evolution, ok := s.stats[e.File.SchemaID]
	if !ok {
		evolution = NewStatsEvolution(s.t.schema, file)
		s.stats[e.File.SchemaID] = evolution
	}
	for _, c := range s.where {
		stats, err := evolution.Column(&e.File, c.Column)
		if err != nil {
			return false, err
		}
		if !c.mayMatch(s.t.schema.Fields[c.Column].Type, stats, e.File.Rows) {
			return false, nil
		}
	}
	return s.indexMayMatch(ctx, e, file)
}

// file hands over the rows of a file that are wanted.
func (s *scanner) file(ctx context.Context, e *manifest.Entry, deleted *roaring.Bitmap, fn scanned) error {
	var gone roaring.IntPeekable
	if deleted != nil && !deleted.IsEmpty() {
		gone = deleted.Iterator()
	}
	return s.t.ReadFile(ctx, e, s.cols, func(start int64, b *types.Batch) error {
		s.pick(start, b, gone)
		switch len(s.sel) {
		case 0:
			return nil
		case b.Len():
			return fn(e, start, s.sel, &types.Batch{Cols: b.Cols[:s.wanted:s.wanted]})
		}
		s.out.Reset()
		for i, v := range s.out.Cols {
			v.AppendGather(b.Cols[i], s.sel)
		}
		return fn(e, start, s.sel, s.out)
	})
}

// pick sets sel to the rows of a batch that are not deleted and match. gone is at
// the first deleted position that is not below start.
func (s *scanner) pick(start int64, b *types.Batch, gone roaring.IntPeekable) {
	s.sel = s.sel[:0]
	next := int64(-1)
	advance := func() {
		next = -1
		if gone != nil && gone.HasNext() {
			next = int64(gone.PeekNext())
		}
	}
	advance()
	for i := range b.Len() {
		if start+int64(i) == next {
			gone.Next()
			advance()
		} else if s.matches(b, i) {
			s.sel = append(s.sel, uint32(i))
		}
	}
}

func (s *scanner) matches(b *types.Batch, i int) bool {
	for _, c := range s.where {
		col := b.Cols[c.at]
		if !c.Match(s.t.schema.Fields[c.Column].Type, col.Datum(i)) {
			return false
		}
	}
	return true
}
