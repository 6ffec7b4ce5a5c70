package paimon

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// short returns FIXTURE.TABLE.
func (g *goldenTable) short() string {
	return strings.Split(g.name, "/")[0] + "." + filepath.Base(g.dump.Table)
}

// open opens a branch at a schema.
func (g *goldenTable) open(t *testing.T, s *Schema, branch string) *Table {
	tab, err := openAt(g.bucket, s, branch, Read)
	require.NoError(t, err)
	return tab
}

// scanRows returns all rows of a scan as single values that live on.
func scanRows(t require.TestingT, tab *Table, st *State, o ScanOptions) [][]types.Datum {
	var all *types.Batch
	err := tab.Scan(bg, st, o, func(b *types.Batch) error {
		if all == nil {
			all = &types.Batch{}
			for _, v := range b.Cols {
				all.Cols = append(all.Cols, types.NewVector(v.Type))
			}
		}
		for i, v := range b.Cols {
			require.Equal(t, b.Len(), v.Len())
			all.Cols[i].AppendRange(v, 0, v.Len())
		}
		return nil
	})
	require.NoError(t, err)
	rows := [][]types.Datum{}
	if all != nil {
		for i := range all.Len() {
			rows = append(rows, all.Row(i))
		}
	}
	return rows
}

// eachGoldenState calls f for every snapshot and tag of every branch that can be
// read, with the table at the schema of the time.
func eachGoldenState(t *testing.T, g *goldenTable, f func(what string, tab *Table, st *State, files [][3]any)) {
	for branch, head := range g.dump.Heads {
		latest := g.latestSchema(t, branch)
		if Refuse(latest, Read) != nil {
			continue
		}
		tab := g.open(t, latest, branch)
		state := func(what string, s *Snapshot, files [][3]any) {
			at, err := tab.AtSchema(t.Context(), s.SchemaID)
			require.NoError(t, err)
			st, err := at.State(t.Context(), s)
			require.NoError(t, err)
			f(branch+" "+what, at, st, files)
		}
		for id, files := range head.FilesBySnapshot {
			n, err := strconv.ParseInt(id, 10, 64)
			require.NoError(t, err)
			s, err := ReadSnapshot(t.Context(), g.bucket, tab.Paths(), n)
			require.NoError(t, err)
			state(id, s, files)
		}
		for name, files := range head.FilesByTag {
			tag, err := ReadTag(t.Context(), g.bucket, tab.Paths(), name)
			require.NoError(t, err)
			state("tag "+name, &tag.Snapshot, files)
		}
	}
}

func TestGolden_EveryStateScansToAsManyRowsAsItsMetadataSays(t *testing.T) {
	states := 0
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		eachGoldenState(t, g, func(what string, tab *Table, st *State, files [][3]any) {
			want := 0
			for _, f := range files {
				want += int(f[1].(float64) - f[2].(float64))
			}
			n, err := tab.CountRows(t.Context(), st)
			require.NoError(t, err)
			require.EqualValues(t, want, n, what)
			require.Len(t, scanRows(t, tab, st, ScanOptions{}), want, what)
			states++
		})
	})
	require.Greater(t, states, 110)
}

func TestGolden_EveryAnswerOfSparkIsOurs(t *testing.T) {
	tables := map[string]*goldenTable{}
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		tables[g.short()] = g
	})
	fixtures, err := filepath.Glob("testdata/golden/*/steps.jsonl")
	require.NoError(t, err)
	answers, skipped := 0, 0
	for _, path := range fixtures {
		fixture := filepath.Base(filepath.Dir(path))
		t.Run(fixture, func(t *testing.T) {
			steps := goldenSteps(t, fixture)
			for i, step := range steps {
				q, ok := parseGoldenQuery(step.SQL)
				g := tables[fixture+"."+q.table]
				if !ok || step.Columns == nil || g == nil {
					continue
				}
				tab, st := goldenStateOf(t, g, q, step, steps[i:])
				if st == nil {
					skipped++
					continue
				}
				checkAnswer(t, tab, st, q, step)
				answers++
			}
		})
	}
	require.Equal(t, 72, answers)
	require.Equal(t, 4, skipped, "snapshots that are gone")
}

// goldenStateOf finds the state and the schema that a query was answered from;
// nil if the snapshot is gone or has been rolled back and written again.
func goldenStateOf(t *testing.T, g *goldenTable, q goldenQuery, step goldenStep, later []goldenStep) (*Table, *State) {
	tab := g.open(t, g.latestSchema(t, q.branch), q.branch)
	id := step.Latest[q.table]
	var s *Snapshot
	if n, err := strconv.ParseInt(q.as, 10, 64); err == nil {
		id = n
	} else if q.as != "" {
		tag, err := ReadTag(t.Context(), g.bucket, tab.Paths(), q.as)
		require.NoError(t, err)
		s = &tag.Snapshot
	}
	if q.branch != "" { // only its end is known
		id, err := LatestSnapshotID(t.Context(), g.bucket, tab.Paths())
		require.NoError(t, err)
		s, err = ReadSnapshot(t.Context(), g.bucket, tab.Paths(), id)
		require.NoError(t, err)
	}
	if s == nil {
		for _, l := range later {
			if now, ok := l.Latest[q.table]; ok && now < id {
				return nil, nil
			}
		}
		var err error
		if s, err = ReadSnapshot(t.Context(), g.bucket, tab.Paths(), id); err != nil {
			return nil, nil
		}
	}
	at := s.SchemaID
	if q.items[0] == "*" {
		at = schemaWithColumns(t, tab, step.Columns)
	}
	tab, err := tab.AtSchema(t.Context(), at)
	require.NoError(t, err)
	st, err := tab.State(t.Context(), s)
	require.NoError(t, err)
	return tab, st
}

// schemaWithColumns finds the schema whose columns an answer has: a query sees the
// schema of its time, which may be later than its snapshot's.
func schemaWithColumns(t *testing.T, tab *Table, columns [][2]string) int64 {
	for id := tab.Schema().ID; id >= 0; id-- {
		s, err := tab.SchemaByID(t.Context(), id)
		require.NoError(t, err)
		if slices.EqualFunc(s.Fields, columns, func(f types.Field, c [2]string) bool { return f.Name == c[0] && sameNested(f.Type, c[1]) }) {
			return id
		}
	}
	require.Fail(t, "no schema has the columns", "%v", columns)
	return 0
}

// sameNested tells struct types apart by their fields' names.
func sameNested(typ types.Type, spark string) bool {
	if typ.Kind != types.Row {
		return true
	}
	for _, f := range typ.Fields {
		if !strings.Contains(spark, f.Name+":") {
			return false
		}
	}
	return strings.Count(spark, ":") >= len(typ.Fields) && strings.Count(spark, ",") <= strings.Count(typ.String(), ",")
}

func checkAnswer(t *testing.T, tab *Table, st *State, q goldenQuery, step goldenStep) {
	s := tab.Schema()
	var where []Condition
	if q.where[0] != "" {
		col := s.Column(q.where[0])
		d, err := types.ParseDatum(s.Fields[col].Type, q.where[1])
		require.NoError(t, err)
		where = append(where, Condition{Column: col, Op: Equal, Value: d})
	}
	rows := scanRows(t, tab, st, ScanOptions{Where: where})
	if strings.HasPrefix(q.items[0], "count(") {
		checkAggregates(t, tab, st, q, step, rows)
		return
	}
	items := q.items
	if items[0] == "*" {
		items = nil
		for _, f := range s.Fields {
			items = append(items, f.Name)
		}
	}
	require.Len(t, rows, len(step.Rows), step.SQL)
	compared := 0
	for _, row := range rows {
		at := slices.IndexFunc(step.Rows, func(want []any) bool {
			for i, item := range items {
				typ, d, ok := sparkValue(s, item, row)
				if ok && !sameAsRecorded(t, typ, d, want[i]) {
					return false
				}
				if ok {
					compared++
				}
			}
			return true
		})
		require.GreaterOrEqual(t, at, 0, "%s: %v", step.SQL, row)
		step.Rows = slices.Delete(slices.Clone(step.Rows), at, at+1)
	}
	require.True(t, compared > 0 || len(rows) == 0)
}

func checkAggregates(t *testing.T, tab *Table, st *State, q goldenQuery, step goldenStep, rows [][]types.Datum) {
	for i, item := range q.items {
		m := callShape.FindStringSubmatch(item)
		if m == nil {
			continue // count_if
		}
		if m[2] == "*" {
			n, err := tab.CountRows(t.Context(), st)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(step.Rows[0][i]), fmt.Sprint(n), step.SQL)
			continue
		}
		col := tab.Schema().Column(m[2])
		sum, most := int64(0), types.Null
		for _, row := range rows {
			sum += row[col].I
			if types.CompareDatums(tab.Schema().Fields[col].Type, row[col], most) > 0 {
				most = row[col]
			}
		}
		if m[1] == "max" {
			require.Equal(t, step.Rows[0][i], string(most.B), step.SQL)
			continue
		}
		require.Equal(t, "sum", m[1])
		require.Equal(t, fmt.Sprint(step.Rows[0][i]), fmt.Sprint(sum), step.SQL)
	}
}

// Flink printed the rows of its tables as texts: those of the first snapshots are the
// first rows of the last ones'.
func TestGolden_FlinksRowsAreOurs(t *testing.T) {
	first := "2 00:00:00 NULL 1900-01-01T00:00:00 1969-12-31T23:59:59.999 9999-12-31T23:59:59.999999999 1969-12-31T23:59:59.999Z NULL 00000000  abc  -99.9 -0.00001 " +
		`{"q":1,"p":2} NULL NULL`
	second := "1 01:02:03 23:59:59 2026-01-02T03:04:05 2026-01-02T03:04:05.123 2026-01-02T03:04:05.123456789 2023-11-14T22:13:20.123Z 1969-12-31T23:59:59.999999999Z " +
		`01020304 0102 a   xy 12.3 123456789012345.12345 {"a":1} [[1,{"a":"2026-01-02T03:04:05.123","b":"ff"}]] ["1.25",null]`
	p := []string{"1 01:02:03 2026-01-02T00:00:00.000", "2 00:00:00 2026-01-02T03:04:05.120", "3 01:02:03 2026-01-02T00:00:00.000"}
	want := map[string][][]string{"flink_types.t": {{first}, {first, second}}, "flink_types.p": {p[:2], p}}
	eachGoldenTable(t, func(t *testing.T, g *goldenTable) {
		name := g.short()
		if want[name] == nil {
			return
		}
		tab := g.open(t, g.latestSchema(t, ""), "")
		ids, err := ListSnapshotIDs(t.Context(), g.bucket, tab.Paths())
		require.NoError(t, err)
		require.Len(t, ids, len(want[name]))
		for i, rows := range want[name] {
			s, err := ReadSnapshot(t.Context(), g.bucket, tab.Paths(), int64(i+1))
			require.NoError(t, err)
			st, err := tab.State(t.Context(), s)
			require.NoError(t, err)
			require.ElementsMatch(t, rows, flinkTexts(t, tab, st), "snapshot %d", s.ID)
		}
		delete(want, name)
	})
	require.Empty(t, want)
}

// flinkTexts are a table's rows, cells side by side.
func flinkTexts(t *testing.T, tab *Table, st *State) (rows []string) {
	for _, row := range scanRows(t, tab, st, ScanOptions{}) {
		var texts []string
		for i, f := range tab.Schema().Fields {
			text := "NULL"
			if !row[i].Null {
				text = strings.Trim(string(types.AppendJSON(nil, f.Type, row[i])), `"`)
			}
			texts = append(texts, text)
		}
		if tab.Schema().Fields[2].Type.Kind == types.Time && !row[2].Null {
			// Flink prints 23:59:59.123: the column's type has no fraction in Paimon.
			require.EqualValues(t, 86_399_123, row[2].I)
		}
		rows = append(rows, strings.Join(texts, " "))
	}
	return rows
}
