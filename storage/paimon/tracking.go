package paimon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// Row tracking (row-tracking.enabled) gives every row a number for life and the
// id of the snapshot that changed it last. Files of new rows do not hold either:
// their rows are numbered from _FIRST_ROW_ID on, and all have the file's
// _MAX_SEQUENCE_NUMBER. Files of rows that were there before hold both as columns;
// a NULL sequence number stands for the file's, that is for the snapshot that
// added the file (paimon-format.md §8.5, §10).

// Columns of row tracking, beside the numbers of a table's own: OpenFile, ReadRows
// and scans take them.
const (
	RowIDColumn    = -1
	SequenceColumn = -2
)

// ErrNoRowIDs: a data file has neither row ids nor a first one. It is older than
// the table's row tracking, which can be chosen only when a table is created, or its
// writer has lost them.
var ErrNoRowIDs = errors.New("no row ids")

// trackingFields are the columns at the end of files that hold them. Java writes
// _ROW_ID as NOT NULL.
func trackingFields() []types.Field {
	return []types.Field{
		{ID: FieldIDRowID, Name: ColumnRowID, Type: types.BigIntType().NonNull()},
		{ID: FieldIDSequenceNumber, Name: ColumnSequenceNumber, Type: types.BigIntType()},
	}
}

// ColumnField returns a column by its number, those of row tracking included.
func (t *Table) ColumnField(c int) (types.Field, error) {
	switch {
	case c >= 0 && c < len(t.schema.Fields):
		return t.schema.Fields[c], nil
	case c != RowIDColumn && c != SequenceColumn:
		return types.Field{}, fmt.Errorf("column %d of %d", c, len(t.schema.Fields))
	}
	f := trackingFields()[-c-1]
	if !t.options.RowTracking {
		return f, fmt.Errorf("no column %s: the table has no row tracking", f.Name)
	}
	return f, nil
}

// holdsRowIDs reports whether a file has the columns of row tracking.
func holdsRowIDs(f *manifest.DataFile) bool { return slices.Contains(f.WriteColumns, ColumnRowID) }

// RowIDsFrom returns the id of a file's first row if its rows are numbered from
// there on; not ok if the file holds their ids. ErrNoRowIDs if it has none at all.
func RowIDsFrom(f *manifest.DataFile) (first int64, ok bool, err error) {
	switch {
	case holdsRowIDs(f):
		return 0, false, nil
	case f.FirstRowID == nil:
		return 0, false, fmt.Errorf("data file %s: %w: it is older than the table's row tracking, or its writer does not know it", f.Name, ErrNoRowIDs)
	}
	return *f.FirstRowID, true, nil
}

// trackedColumn is how a column of row tracking is read from one file.
type trackedColumn struct {
	// base is the value of rows for which the file has none: that of position 0,
	// to which step times the position is added.
	base, step int64
}

// openTracked plans the reading of a column of row tracking.
func openTracked(col *fileColumn, c int, f *manifest.DataFile) error {
	field := trackingFields()[-c-1]
	col.field = types.Field{ID: field.ID, Name: absentColumn, Type: field.Type.Nullable()}
	if slices.Contains(f.WriteColumns, field.Name) {
		col.field.Name = field.Name
	}
	col.out = types.NewVector(field.Type)
	col.tracked = &trackedColumn{base: f.MaxSequence}
	if c == RowIDColumn {
		first, _, err := RowIDsFrom(f)
		if err != nil {
			return err
		}
		col.tracked = &trackedColumn{first, 1}
	}
	return nil
}

// fill completes what was read of rows whose positions at gives.
func (c *trackedColumn) fill(out, in *types.Vector, at func(i int) int64) {
	out.Reset()
	for i := range in.Len() {
		if in.IsNull(i) {
			out.AppendInt64(c.base + c.step*at(i))
		} else {
			out.AppendInt64(in.I64[i])
		}
	}
}

// VersionBatch returns b, a batch of the table's columns, as new versions of rows
// with the given ids, one a row of b; for WriteVersions and Replace of a
// DataFileWriter. The items of rows that are not written mean nothing.
func VersionBatch(b *types.Batch, ids []int64) *types.Batch {
	fields := trackingFields()
	id, sequence := types.NewVector(fields[0].Type), types.NewVector(fields[1].Type)
	for _, x := range ids {
		id.AppendInt64(x)
		sequence.AppendNull()
	}
	return &types.Batch{Cols: append(slices.Clip(b.Cols), id, sequence)}
}

// sequenceSpan is the range of sequence numbers of copied rows; unknown if there are
// rows whose number only the commit knows.
type sequenceSpan struct {
	min, max int64
	unknown  bool
}

// bounds are what a file's entry says before the commit: 0 for what the commit gives.
func (s *sequenceSpan) bounds() (least, most int64) {
	if s.unknown {
		return s.min, 0
	}
	return s.min, s.max
}

func (s *sequenceSpan) add(v *types.Vector, rows []uint32) {
	for _, i := range rows {
		x := v.I64[i]
		if s.min == 0 || x < s.min {
			s.min = x
		}
		s.max = max(s.max, x)
	}
}

// assignRowIDs gives the files of a commit what only the commit knows: sequence
// numbers, which are the snapshot's id, and the ids of new rows, from next on. It
// returns the next free id (source: Paimon RowTrackingCommitUtils).
func assignRowIDs(entries []manifest.Entry, snapshot, next int64) (int64, error) {
	for i := range entries {
		f := &entries[i].File
		switch {
		case f.MinSequence == 0:
			f.MinSequence, f.MaxSequence = snapshot, snapshot
		case f.MaxSequence == 0:
			f.MaxSequence = snapshot
		}
		if f.Source == nil {
			return 0, fmt.Errorf("%w: data file %s has no source, which row tracking needs", manifest.ErrInconsistent, f.Name)
		}
		if *f.Source == manifest.SourceAppend && f.FirstRowID == nil && !holdsRowIDs(f) {
			f.FirstRowID = new(next)
			next += f.Rows
		}
	}
	return next, nil
}

// groupByPartition brings the entries of a partition together, the partitions in
// the order of their first ones.
func groupByPartition(entries []manifest.Entry) []manifest.Entry {
	rank := map[string]int{}
	for i := range entries {
		if p := string(entries[i].Partition); rank[p] == 0 {
			rank[p] = len(rank) + 1
		}
	}
	slices.SortStableFunc(entries, func(a, b manifest.Entry) int { return rank[string(a.Partition)] - rank[string(b.Partition)] })
	return entries
}

// checkTracking refuses a table whose row tracking was switched on or off since it
// got its first snapshot: rows before would have no ids, or lose them.
func (t *Table) checkTracking(ctx context.Context, base *State) error {
	p := base.Snapshot
	if p != nil && t.options.RowTracking && p.NextRowID == nil {
		return &Refusal{[]Reason{{CodeRowTracking, fmt.Sprintf("snapshot %d does not say which row ids are given: "+
			"it was written by a Paimon before 1.3, which does not know row tracking; roll the table back to the snapshot before", p.ID)}}}
	}
	if p == nil || p.SchemaID == t.schema.ID {
		return nil
	}
	s, err := t.SchemaByID(ctx, p.SchemaID)
	if err != nil {
		return err
	}
	if before := strings.EqualFold(s.Options[OptRowTracking], "true"); before == t.options.RowTracking {
		return nil
	}
	return &Refusal{[]Reason{{CodeRowTracking, fmt.Sprintf("%s was changed to %t when the table had snapshots: row ids begin with a table, create another one",
		OptRowTracking, t.options.RowTracking)}}}
}
