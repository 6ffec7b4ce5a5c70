package paimon

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/objstore"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// trackedRows prints row id, sequence number and columns of every row.
func (f *fixture) trackedRows() []string {
	cols := append([]int{RowIDColumn, SequenceColumn}, everyColumn(f.tab.schema)...)
	out := []string{}
	for _, row := range scanRows(f.t, f.tab, f.st, ScanOptions{Columns: cols}) {
		var cells []string
		for _, d := range row {
			cells = append(cells, fmt.Sprint(d.I))
		}
		out = append(out, strings.Join(cells, " "))
	}
	slices.Sort(out)
	return out
}

func trackingFixture(t *testing.T, vectors bool) *fixture {
	return newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "v", types.IntType())}, nil,
		[2]string{OptRowTracking, "true"}, [2]string{OptDeletionVectors, fmt.Sprint(vectors)})
}

// versions writes new versions of rows with the given ids.
func (f *fixture) versions(ids []int64, rows ...[]types.Datum) manifest.Entry {
	w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
	require.NoError(f.t, err)
	b := f.batch(rows...)
	sel := make([]uint32, len(rows))
	for i := range sel {
		sel[i] = uint32(i)
	}
	p, err := f.tab.PartitionOf(b, 0)
	require.NoError(f.t, err)
	files, err := w.WriteVersions(Target{Partition: p}, VersionBatch(b, ids), sel)
	require.NoError(f.t, err)
	require.Len(f.t, files, 1)
	require.NoError(f.t, f.bucket.PutAll(bg, []objstore.Object{files[0].Object}))
	return files[0].Entry
}

// The chain of row-level.md §5.2, with deletion vectors and without.
func TestRowTracking_IDsAndSequenceNumbersFollowTheRow(t *testing.T) {
	for _, vectors := range []bool{true, false} {
		f := trackingFixture(t, vectors)
		// without takes rows away, in the way of the mode.
		without := func(e manifest.Entry, positions ...uint32) Changes {
			if vectors {
				return Changes{Index: f.vectors(VectorChange{KeyOf(&e), roaring.BitmapOf(positions...)})}
			}
			w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
			require.NoError(t, err)
			copied, err := w.Rewrite(bg, &e, roaring.BitmapOf(positions...))
			require.NoError(t, err)
			return Changes{Add: []manifest.Entry{*copied}, Delete: []manifest.Entry{e}}
		}
		one := f.commit(Changes{Add: append(f.write(WriterSettings{}, ints(1, 1), ints(2, 2)), f.write(WriterSettings{}, ints(3, 3))...)}, OperationWrite)
		require.Equal(t, []string{"0 1 1 1", "1 1 2 2", "2 1 3 3"}, f.trackedRows())
		require.EqualValues(t, 3, *one.Snapshot.NextRowID)
		first := one.Added[0]
		require.Equal(t, [3]int64{1, 1, 0}, [3]int64{first.File.MinSequence, first.File.MaxSequence, *first.File.FirstRowID})
		require.Nil(t, first.File.WriteColumns)

		// Row 1 changes, a new row comes: two files.
		ch := without(first, 0)
		ch.Add = append(ch.Add, f.versions([]int64{0}, ints(1, 11)))
		ch.Add = append(ch.Add, f.write(WriterSettings{}, ints(4, 4))...)
		two := f.commit(ch, OperationMerge)
		require.Equal(t, []string{"0 2 1 11", "1 1 2 2", "2 1 3 3", "3 2 4 4"}, f.trackedRows())
		require.EqualValues(t, 4, *two.Snapshot.NextRowID)
		changed := two.Added[len(two.Added)-2]
		require.Equal(t, []string{"id", "v", ColumnRowID, ColumnSequenceNumber}, changed.File.WriteColumns)
		require.Equal(t, []string{"id", "v"}, changed.File.StatsColumns)
		require.Nil(t, changed.File.FirstRowID)
		require.Equal(t, [2]int64{2, 2}, [2]int64{changed.File.MinSequence, changed.File.MaxSequence})
		if !vectors {
			copied := two.Added[0]
			require.Equal(t, [2]int64{1, 1}, [2]int64{copied.File.MinSequence, copied.File.MaxSequence}, "the copied row is as old as before")
		}

		// A lost race: on another snapshot the same files get other numbers.
		again := f.versions([]int64{0, 2}, ints(1, 12), ints(3, 33))
		built, err := f.tab.BuildCommit(bg, f.st, Changes{Add: []manifest.Entry{again}}, f.info(OperationMerge))
		require.NoError(t, err)
		require.EqualValues(t, 3, built.Added[0].File.MinSequence)
		require.Zero(t, again.File.MinSequence, "what the caller gave is not touched")
		f.insert(ints(5, 5))
		built, err = f.tab.BuildCommit(bg, f.st, Changes{Add: []manifest.Entry{again}}, f.info(OperationMerge))
		require.NoError(t, err)
		require.EqualValues(t, 4, built.Added[0].File.MinSequence)
		require.EqualValues(t, 5, *built.Snapshot.NextRowID)

		// A commit without rows keeps the count.
		require.EqualValues(t, 5, *f.commit(Changes{}, "").Snapshot.NextRowID)
		require.NotContains(t, fmt.Sprint(scanRows(t, f.tab, f.st, ScanOptions{})), "{2147483642", "the columns are hidden")
	}
}

// Entries of a partition are numbered together.
func TestRowTracking_PartitionsAreGrouped(t *testing.T) {
	for group, want := range map[string][]int64{"true": {0, 2, 1}, "false": {0, 1, 2}} {
		f := newFixture(t, []types.Field{field(0, "id", types.IntType()), field(1, "p", types.IntType())}, []string{"p"},
			[2]string{OptRowTracking, "true"}, [2]string{"row-tracking.partition-group-on-commit", group})
		var add []manifest.Entry
		for i, p := range []int64{1, 2, 1} {
			add = append(add, f.write(WriterSettings{}, ints(int64(i), p))...)
		}
		c := f.commit(Changes{Add: add}, OperationWrite)
		var got []int64
		for _, e := range c.Added {
			got = append(got, *e.File.FirstRowID)
		}
		require.Equal(t, want, got)
	}
}

func TestRowTracking_RefusesWhatHasNoIDs(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	_, err := f.tab.ColumnField(RowIDColumn)
	require.ErrorContains(t, err, "no row tracking")
	_, err = f.tab.ColumnField(-3)
	require.Error(t, err)
	f.insert(ints(1))
	later := *f.tab.schema
	later.ID, later.Options = 1, maps.Clone(later.Options)
	later.Options[OptRowTracking] = "true"
	data, err := later.Encode()
	require.NoError(t, err)
	require.NoError(t, f.bucket.PutIfAbsent(bg, Paths{}.Schema(1), data))
	_, err = OpenTable(bg, f.bucket, Write)
	require.ErrorIs(t, err, ErrRefused)
	f.tab, err = OpenTable(bg, f.bucket, Read)
	require.NoError(t, err)
	_, err = f.tab.BuildCommit(bg, f.st, Changes{}, f.info(""))
	require.ErrorIs(t, err, ErrRefused, "switched on when there were snapshots")
	require.ErrorContains(t, err, string(CodeRowTracking))
	err = f.tab.Scan(bg, f.st, ScanOptions{Columns: []int{RowIDColumn}}, func(*types.Batch) error { return nil })
	require.ErrorIs(t, err, ErrNoRowIDs)
	require.ErrorContains(t, err, "older than the table's row tracking")

	f = trackingFixture(t, true)
	e := f.write(WriterSettings{}, ints(1, 1))[0]
	e.File.Source = nil
	_, err = f.tab.BuildCommit(bg, f.st, Changes{Add: []manifest.Entry{e}}, f.info(""))
	require.ErrorIs(t, err, manifest.ErrInconsistent)
	// On a table without a row yet it may still be chosen.
	f = newFixture(t, []types.Field{field(0, "id", types.IntType())}, nil)
	f.alter(func(s *Schema) { s.Options = maps.Clone(s.Options); s.Options[OptRowTracking] = "true" })
	f.insert(ints(1))
	require.Equal(t, []string{"0 1 1"}, f.trackedRows())
}

// Java's second file of a large INSERT has sequence numbers of its own (row-level.md
// §5.3); all of ours have the snapshot's.
func TestRowTracking_EveryFileOfALargeInsertHasTheSnapshot(t *testing.T) {
	f := trackingFixture(t, true)
	f.insert(ints(0, 0))
	rows := make([][]types.Datum, 5000)
	for i := range rows {
		rows[i] = ints(int64(i), int64(i*i))
	}
	files := f.write(WriterSettings{TargetBytes: 8 << 10}, rows...)
	require.Greater(t, len(files), 1)
	c := f.commit(Changes{Add: files}, OperationWrite)
	next := int64(1)
	for _, e := range c.Added {
		require.Equal(t, [3]int64{2, 2, next}, [3]int64{e.File.MinSequence, e.File.MaxSequence, *e.File.FirstRowID})
		next += e.File.Rows
	}
	require.EqualValues(t, 5001, *c.Snapshot.NextRowID)
	// A snapshot that has lost the count would let ids be given twice.
	lost := *f.st
	snap := *lost.Snapshot
	snap.NextRowID, lost.Snapshot = nil, &snap
	_, err := f.tab.BuildCommit(bg, &lost, Changes{}, f.info(""))
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, "does not say which row ids are given")
}

// Spark's own answers about hidden columns, through UPDATE, DELETE, MERGE and
// compaction.
func TestGolden_RowIDsAreSparks(t *testing.T) {
	tables := map[string]*goldenTable{}
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) { tables[g.short()] = g })
	answers := 0
	for _, fixture := range []string{"row_tracking", "row_tracking_cow", "tracking_compacted"} {
		steps := goldenSteps(t, fixture)
		for i, step := range steps {
			if step.Columns == nil || !strings.Contains(step.SQL, ColumnRowID) {
				continue
			}
			q, ok := parseGoldenQuery(step.SQL)
			require.True(t, ok, step.SQL)
			tab, st := goldenStateOf(t, tables[fixture+"."+q.table], q, step, steps[i:])
			if st == nil {
				continue
			}
			var cols []int
			for _, item := range q.items {
				cols = append(cols, map[string]int{ColumnRowID: RowIDColumn, ColumnSequenceNumber: SequenceColumn}[item])
				if cols[len(cols)-1] == 0 {
					cols[len(cols)-1] = tab.schema.Column(item)
				}
			}
			var got, want []string
			for _, row := range scanRows(t, tab, st, ScanOptions{Columns: cols}) {
				var cells []any
				for k, d := range row {
					f, err := tab.ColumnField(cols[k])
					require.NoError(t, err)
					cells = append(cells, string(types.AppendText(nil, f.Type, d)))
				}
				got = append(got, fmt.Sprint(cells))
			}
			for _, row := range step.Rows {
				want = append(want, fmt.Sprint(row))
			}
			require.ElementsMatch(t, want, got, step.SQL)
			answers++
		}
	}
	require.GreaterOrEqual(t, answers, 6)
	t.Logf("%d answers", answers)
}
