//go:build itest

package itest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
	"applier/storage/types"
)

// The golden tables were written by Spark 4.1.2 + Paimon 2.0.0 (flink_types by
// Flink 1.20 + Paimon 1.3.1). These tests prove that the judges, the harness and
// the digests can be relied on, and that our own reader agrees with them.
const goldenDir = "../storage/paimon/testdata/golden"

// cannotRead lists what a judge is known to refuse, by fixture, table and a part
// of its error. The test checks that it still does.
var cannotRead = map[string]map[string]string{
	"applier": { // refused on purpose
		"refused.evo": "data-evolution.enabled is true",
		"refused.orc": "its data files are orc",
		"refused.pk":  "it has a primary key",
	},
	"pypaimon": {
		"bitmap64.t":    "Invalid magic number", // 64-bit deletion vectors
		"flink_types.t": "Unsupported data type: MULTISET",
	},
	"paimon-rust": {
		"partition_types.tz":   "not supported as partition key", // DOUBLE
		"row_tracking.t":       "missing first_row_id",           // row tracking after a rewrite
		"row_tracking_cow.t":   "missing first_row_id",
		"tracking_compacted.t": "missing first_row_id",
	},
}

// readsWrongly lists tables that a judge reads without an error and wrongly.
var readsWrongly = map[string]map[string]string{
	"paimon-rust": {
		"flink_types.t": "TIMESTAMP(9) of the year 9999 overflows Arrow's nanoseconds",
	},
}

// step is one line of a fixture's steps.jsonl: a statement and what Spark said.
type step struct {
	SQL     string           `json:"sql"`
	Columns [][2]string      `json:"columns"`
	Rows    [][]any          `json:"rows"`
	Latest  map[string]int64 `json:"latest"` // newest snapshot of every table after the statement
}

func goldenSteps(t *testing.T, fixture string) []step {
	t.Helper()
	f, err := os.Open(filepath.Join(goldenDir, fixture, "steps.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	var steps []step
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var s step
		dec := json.NewDecoder(strings.NewReader(lines.Text()))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&s))
		steps = append(steps, s)
	}
	require.NoError(t, lines.Err())
	return steps
}

func goldenFixtures(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(goldenDir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	require.GreaterOrEqual(t, len(out), 31)
	return out
}

// goldenTables lists a fixture's tables.
func goldenTables(t *testing.T, fixture string) []harness.Ref {
	t.Helper()
	warehouse, err := filepath.Abs(filepath.Join(goldenDir, fixture, "warehouse"))
	require.NoError(t, err)
	dirs, err := filepath.Glob(filepath.Join(warehouse, fixture+".db", "*", "schema"))
	require.NoError(t, err)
	var out []harness.Ref
	for _, d := range dirs {
		out = append(out, harness.Ref{Warehouse: warehouse, Table: fixture + "." + filepath.Base(filepath.Dir(d))})
	}
	require.NotEmpty(t, out)
	return out
}

func tableDir(ref harness.Ref) string {
	db, table, _ := strings.Cut(ref.Table, ".")
	return filepath.Join(ref.Warehouse, db+".db", table)
}

// goldenQueries are all states of a table that still exist: its snapshots, also
// those between two statements, and its tags.
func goldenQueries(t *testing.T, ref harness.Ref) []harness.Query {
	t.Helper()
	var out []harness.Query
	files, err := filepath.Glob(filepath.Join(tableDir(ref), "snapshot", "snapshot-*"))
	require.NoError(t, err)
	for _, f := range files {
		id, err := strconv.ParseInt(strings.TrimPrefix(filepath.Base(f), "snapshot-"), 10, 64)
		require.NoError(t, err)
		out = append(out, harness.Query{Snapshot: id})
	}
	tags, err := filepath.Glob(filepath.Join(tableDir(ref), "tag", "tag-*"))
	require.NoError(t, err)
	for _, f := range tags {
		out = append(out, harness.Query{Tag: strings.TrimPrefix(filepath.Base(f), "tag-")})
	}
	return out
}

func TestGolden_JudgesAgreeOnEverySnapshotAndTag(t *testing.T) {
	java := harness.Java(t)
	others := []harness.Judge{harness.PyPaimon(t), harness.Rust(t), cat(t)}
	read := 0
	for _, fixture := range goldenFixtures(t) {
		t.Run(fixture, func(t *testing.T) {
			for _, ref := range goldenTables(t, fixture) {
				for _, q := range goldenQueries(t, ref) {
					judges := []harness.Judge{java}
					for _, j := range others {
						if able(t, j, ref, q) {
							judges = append(judges, j)
						}
					}
					harness.Agree(t.Context(), t, ref, q, judges...)
					read++
				}
			}
		})
	}
	require.Greater(t, read, 120)
}

// able tells whether a judge is expected to read a state of a table. Where it is
// not, it is asked all the same: an exception that no longer exists is to go.
func able(t *testing.T, j harness.Judge, ref harness.Ref, q harness.Query) bool {
	t.Helper()
	if readsWrongly[j.Name()][ref.Table] != "" {
		return false
	}
	part := cannotRead[j.Name()][ref.Table]
	if part == "" {
		return true
	}
	_, err := j.Digest(t.Context(), ref, q)
	if err == nil {
		return true // the first snapshots of such a table are readable, and then must agree
	}
	require.ErrorContains(t, err, part, "%s of %s", j.Name(), ref.Table)
	return false
}

func TestGolden_KnownExceptionsOfTheJudgesStillExist(t *testing.T) {
	for _, j := range []harness.Judge{harness.PyPaimon(t), harness.Rust(t), cat(t)} {
		for table, part := range cannotRead[j.Name()] {
			fixture, _, _ := strings.Cut(table, ".")
			warehouse, err := filepath.Abs(filepath.Join(goldenDir, fixture, "warehouse"))
			require.NoError(t, err)
			_, err = j.Digest(t.Context(), harness.Ref{Warehouse: warehouse, Table: table}, harness.Query{})
			require.ErrorContains(t, err, part, "%s now reads %s: drop the exception", j.Name(), table)
		}
	}
}

var (
	wholeTable = regexp.MustCompile("^SELECT \\* FROM `?(\\w+(?:\\$branch_\\w+)?)`?(?: ORDER BY [^()]*)?$")
	countSum   = regexp.MustCompile(`^SELECT count\(\*\), sum\((\w+)\) FROM (\w+)$`)
)

// TestGolden_JavaReadsWhatSparkSaid replays the recorded answers of whole-table
// queries and of counts with sums, at the snapshot they were given for.
func TestGolden_JavaReadsWhatSparkSaid(t *testing.T) {
	java := harness.Java(t)
	whole, counts := 0, 0
	for _, fixture := range goldenFixtures(t) {
		t.Run(fixture, func(t *testing.T) {
			warehouse := goldenTables(t, fixture)[0].Warehouse
			steps := goldenSteps(t, fixture)
			for i, s := range steps {
				if m := wholeTable.FindStringSubmatch(s.SQL); m != nil && s.Rows != nil {
					ref := harness.Ref{Warehouse: warehouse, Table: fixture + "." + m[1]}
					q := harness.Query{}
					if !strings.Contains(m[1], "$") { // a branch: only its end is known
						if q.Snapshot = s.Latest[m[1]]; q.Snapshot == 0 || stale(steps[i:], m[1], ref, q.Snapshot) || altered(steps[:i], s.Latest) {
							continue
						}
					}
					harness.SameRows(t.Context(), t, sparkRows(t, s), ref, q, java)
					whole++
				}
				if m := countSum.FindStringSubmatch(s.SQL); m != nil && s.Rows != nil {
					ref := harness.Ref{Warehouse: warehouse, Table: fixture + "." + m[2]}
					if stale(steps[i:], m[2], ref, s.Latest[m[2]]) {
						continue
					}
					checkCountSum(t, java, ref, s, m[1], s.Latest[m[2]])
					counts++
				}
			}
		})
	}
	require.Greater(t, whole, 25)
	require.Greater(t, counts, 10)
}

// stale tells whether the state of a snapshot id is gone: expired, or rolled
// back and perhaps written again.
func stale(later []step, table string, ref harness.Ref, id int64) bool {
	for _, s := range later {
		if now, ok := s.Latest[table]; ok && now < id {
			return true
		}
	}
	_, err := os.Stat(filepath.Join(tableDir(ref), "snapshot", fmt.Sprintf("snapshot-%d", id)))
	return err != nil
}

// altered tells whether the schema changed since the latest snapshot was made, or
// with it, unseen by Spark (fast_forward): a query then sees another schema than a
// read of the snapshot.
func altered(earlier []step, latest map[string]int64) bool {
	for _, s := range slices.Backward(earlier) {
		if !maps.Equal(s.Latest, latest) {
			return false
		}
		if strings.HasPrefix(s.SQL, "ALTER TABLE") && strings.Contains(s.SQL, " COLUMN") || strings.Contains(s.SQL, "fast_forward") {
			return true
		}
	}
	return false
}

func checkCountSum(t *testing.T, java harness.JavaPeer, ref harness.Ref, s step, column string, snapshot int64) {
	t.Helper()
	rows, err := java.Read(t.Context(), ref, harness.Query{Snapshot: snapshot, Columns: []string{column}})
	require.NoError(t, err)
	var sum int64
	for _, r := range rows.Rows {
		var m map[string]int64 // NULL counts as 0, as in sum()
		require.NoError(t, json.Unmarshal(r, &m))
		sum += m[column]
	}
	require.Equal(t, fmt.Sprint(s.Rows[0][0], " ", s.Rows[0][1]), fmt.Sprint(len(rows.Rows), " ", sum), "%s at %d: %s", ref.Table, snapshot, s.SQL)
}

// sparkRows turns a recorded answer into row texts.
func sparkRows(t *testing.T, s step) []string {
	t.Helper()
	row := types.Type{Kind: types.Row}
	for _, c := range s.Columns {
		ct, err := types.ParseType(c[1])
		require.NoError(t, err)
		row.Fields = append(row.Fields, types.Field{Name: c[0], Type: ct})
	}
	var out []string
	for _, r := range s.Rows {
		var d types.Datum
		for i, v := range r {
			d.L = append(d.L, sparkDatum(t, row.Fields[i].Type, v))
		}
		out = append(out, string(types.AppendJSON(nil, row, d)))
	}
	return out
}

// sparkDatum reads the recordings' notation: JSON values, and one-key objects for
// what JSON cannot carry.
func sparkDatum(t *testing.T, ty types.Type, v any) types.Datum {
	t.Helper()
	if v == nil {
		return types.Null
	}
	if m, ok := v.(map[string]any); ok {
		require.Len(t, m, 1)
		for _, v = range maps.All(m) {
		}
	}
	switch v := v.(type) {
	case bool:
		return types.BoolDatum(v)
	case json.Number:
		if ty.Kind == types.Double || ty.Kind == types.Float {
			f, err := v.Float64()
			require.NoError(t, err)
			return types.Datum{F: f}
		}
		i, err := v.Int64()
		require.NoError(t, err)
		return types.IntDatum(i)
	case string:
		return sparkText(t, ty, v)
	case []any:
		var d types.Datum
		for i, x := range v {
			switch ty.Kind {
			case types.Array:
				d.L = append(d.L, sparkDatum(t, *ty.Elem, x))
			case types.Map:
				pair := x.([]any)
				d.L = append(d.L, sparkDatum(t, *ty.Key, pair[0]), sparkDatum(t, *ty.Elem, pair[1]))
			case types.Row:
				d.L = append(d.L, sparkDatum(t, ty.Fields[i].Type, x.([]any)[1]))
			default:
				require.Fail(t, "a list", "of the type %s", ty)
			}
		}
		return d
	}
	require.Fail(t, "unknown notation", "%T for %s", v, ty)
	return types.Null
}

func sparkText(t *testing.T, ty types.Type, v string) types.Datum {
	t.Helper()
	switch ty.Kind {
	case types.Char, types.VarChar:
		return types.Datum{B: []byte(v)}
	case types.Date:
		days, err := types.ParseDate([]byte(v))
		require.NoError(t, err)
		return types.IntDatum(days)
	case types.Decimal:
		whole, frac, _ := strings.Cut(v, ".")
		i, err := strconv.ParseInt(whole+(frac + strings.Repeat("0", ty.Scale))[:ty.Scale], 10, 64)
		require.NoError(t, err)
		return types.IntDatum(i)
	}
	require.Fail(t, "unknown notation", "the text %q for %s", v, ty)
	return types.Null
}

func TestGolden_FlinkReadsItsOwnTablesAndSparks(t *testing.T) {
	flink, java := harness.Flink(t), harness.Java(t)
	for _, table := range []string{"flink_types.p", "types_dv.t", "compacted_dv.t", "partitions_dv.t", "merge_clauses.t"} {
		fixture, _, _ := strings.Cut(table, ".")
		ref := goldenTables(t, fixture)[slices.IndexFunc(goldenTables(t, fixture), func(r harness.Ref) bool { return r.Table == table })]
		harness.Agree(t.Context(), t, ref, harness.Query{}, java, flink)
	}
}
