package sql

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"applier/storage/catalog"
	"applier/storage/objstore"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// beyond are the beginnings of statements that are not in reach: maintenance is done
// with other commands, branches are read only. Snapshots are numbered differently
// from there on, so that a fixture's statements end.
var beyond = []string{"CALL", "ANALYZE", "ALTER TABLE `t$", "INSERT INTO `t$"}

// goldenDifferences are the statements whose answers differ from Spark's on purpose,
// as docs/sql.md lists them, by fixture and the beginning of the text.
var goldenDifferences = map[string][]string{
	// Spark fails on a table with vectors of both widths.
	"mixed_vectors": {"DELETE FROM t WHERE id BETWEEN 100 AND 199", "SELECT count(*), sum(id) FROM t"},
	// Row ids survive MERGE with deletion vectors.
	"row_tracking":       {"SELECT _ROW_ID, _SEQUENCE_NUMBER, id, v FROM t ORDER BY id"},
	"tracking_compacted": {"SELECT _ROW_ID, _SEQUENCE_NUMBER, id, v FROM t ORDER BY id"},
	// Limits of defaults that are lifted; rows that are carried keep their NULLs.
	"spec_defaults": {
		"INSERT INTO nn (a) VALUES (2)", "SELECT * FROM nn", "SELECT * FROM default_example ORDER BY a", "ALTER TABLE default_example ALTER COLUMN b DROP DEFAULT",
		"ALTER TABLE default_example ADD COLUMN e INT DEFAULT 7", "CREATE TABLE dyn", "SELECT a, m['key1'], map_keys(m), r FROM strs",
	},
	// Spark shows a date before 1582 two days off.
	"types_dv": {"SELECT CAST(id AS STRING) AS id"},
}

// goldenRefused have a table that is refused by its name for what it is; statements end
// there.
var goldenRefused = []string{"legacy_partition_off", "partition_types", "refused"}

func goldenFixture(t *testing.T, name string) []step {
	f, err := os.Open(filepath.Join("../../storage/paimon/testdata/golden", name, "steps.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	var steps []step
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var st step
		require.NoError(t, json.Unmarshal(s.Bytes(), &st))
		if st.SQL != "" {
			steps = append(steps, st)
		}
	}
	require.NoError(t, s.Err())
	return steps
}

func hasPrefix(list []string, text string) bool {
	return slices.ContainsFunc(list, func(p string) bool { return strings.HasPrefix(text, p) })
}

func TestExecute_AgreesWithTheStatementsOfTheGoldenTables(t *testing.T) {
	dirs, err := os.ReadDir("../../storage/paimon/testdata/golden")
	require.NoError(t, err)
	total, differ := 0, 0
	for _, d := range dirs {
		if d.Name() == "flink_types" { // written by Flink's SQL
			continue
		}
		t.Run(d.Name(), func(t *testing.T) {
			s, _ := newSession(t)
			for _, st := range goldenFixture(t, d.Name()) {
				if hasPrefix(beyond, st.SQL) {
					break
				}
				res, err := exec(t, s, st.SQL)
				if slices.Contains(goldenRefused, d.Name()) && err != nil && st.Error == "" {
					require.Equal(t, ClassRefused, Describe(err).Class, st.SQL)
					break
				}
				if hasPrefix(goldenDifferences[d.Name()], st.SQL) {
					if goldenCompare(t, &st, res, err) != "" {
						differ++
						continue
					}
				}
				if what := goldenCompare(t, &st, res, err); what != "" {
					t.Errorf("%s\n%s", st.SQL, what)
				}
				total++
			}
		})
	}
	t.Logf("%d statements agree, %d differ on purpose", total, differ)
	require.Equal(t, 237, total)
	require.Equal(t, 15, differ, "a difference is gone, or excuses more than it did")
}

// Versions, tags and branches of the tables as Spark left them.
func TestSelect_ReadsVersionsOfTheGoldenTables(t *testing.T) {
	for _, c := range []struct{ fixture, sql, want string }{
		{"many_commits", "SELECT count(*), sum(id), sum(v) FROM many_commits.t VERSION AS OF 'mid'", "208  58080  30217"},
		{"compacted_dv", "SELECT count(*), sum(id) FROM compacted_dv.t VERSION AS OF 3", "300  44850"},
		{"compacted_dv", "SELECT count(*), sum(id) FROM compacted_dv.t VERSION AS OF '4'", "150  22500"},
		{"branches", "SELECT count(*), sum(id) FROM branches.`t$branch_b1`", "3  6"},
		{"flink_types", "SELECT ms FROM flink_types.t WHERE id = 1", `{"a":1}`},
		{"row_tracking", "SELECT count(DISTINCT _ROW_ID) = count(*) FROM row_tracking.t", "true"},
	} {
		cat, err := catalog.NewFileSystem(filepath.Join("../../storage/paimon/testdata/golden", c.fixture, "warehouse"), objstore.LocalOptions{})
		require.NoError(t, err)
		s := New(Options{Catalog: cat, Now: time.Now, NewUUID: uuid.NewString})
		require.Equal(t, []string{c.want}, rows(t, s, c.sql), c.sql)
	}
	cat, err := catalog.NewFileSystem("../../storage/paimon/testdata/golden/branches/warehouse", objstore.LocalOptions{})
	require.NoError(t, err)
	for _, sql := range []string{"SELECT * FROM branches.t VERSION AS OF 999", "SELECT * FROM branches.t VERSION AS OF 'none'", "SELECT * FROM branches.`t$branch_none`"} {
		_, err := exec(t, New(Options{Catalog: cat, Now: time.Now}), sql)
		require.Equal(t, ClassNoVersion, Describe(err).Class, sql)
	}
}

func goldenCompare(t *testing.T, st *step, res *Result, err error) string {
	switch {
	case err != nil && st.Error == "":
		return Render(st.SQL, err)
	case err == nil && st.Error != "":
		return "accepted, Spark: " + st.Error
	case err != nil:
		return compareClass(st, err)
	case st.Columns != nil:
		names, typs := columnTypes(res)
		if !slices.Equal(names, st.Columns) {
			return fmt.Sprintf("columns %v, Spark %v", names, st.Columns)
		}
		got, want := spellCells(typs, res.Rows, false), spellRecordedCells(t, typs, st.Rows, false)
		if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
			return fmt.Sprintf("rows%s\n  Spark%s", showCells(got), showCells(want))
		}
		return ""
	}
	for table, id := range res.Snapshot {
		if want := st.Latest[table]; want != id {
			return fmt.Sprintf("snapshot %d of %s, Spark %d", id, table, want)
		}
	}
	return ""
}
