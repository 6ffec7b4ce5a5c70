package sql

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"applier/storage/catalog"
	"applier/storage/objstore"

	"github.com/stretchr/testify/require"
)

var (
	// changesNoRows are statements that leave the rows of the main branch as they are.
	changesNoRows = regexp.MustCompile("^(CALL sys\\.(compact|create_tag|create_branch|expire_snapshots)\\(|CALL sys.rollback\\(table => 'branches.t', version => '2'\\)|ANALYZE|ALTER TABLE `t\\$|INSERT INTO `t\\$)")
	// changesHistory ends the statements that can be followed.
	changesHistory = "CALL sys.fast_forward("
)

// goldenInstead are statements that stand for others: where a row lies has no part in
// what it is, and tables partitioned by an instant under new folder names are
// refused; a rollback takes back what came after.
var goldenInstead = strings.NewReplacer(
	"PARTITIONED BY (d, ts, s) TBLPROPERTIES ('partition.legacy-name'='false',", "TBLPROPERTIES (",
	"PARTITIONED BY (b, d, f)", "",
	"PARTITIONED BY (a, b) TBLPROPERTIES ('partition.legacy-name'='false')", "",
	"CALL sys.rollback(table => 'tracking_compacted.t', version => '5')", "DELETE FROM t WHERE id = 60",
)

// goldenElsewhere says where Spark's files have other rows than their statements say,
// and what the texts of their values are then.
var goldenElsewhere = map[string]*strings.Replacer{
	// Spark stores a date before 1582 two days off.
	"types_dv.t": strings.NewReplacer("0000-12-30", "0001-01-01"),
	// A text within a default keeps its quotes: docs/sql.md, differences to Spark.
	"spec_defaults.strs": strings.NewReplacer("'", ""),
	// Spark fills the default into the NULLs of rows that it carries along: as above.
	"spec_defaults.default_example": strings.NewReplacer("1 | 3 | 5", "1 | 3 | null", "2 | 3 | 5", "2 | 3 | null"),
}

// The rows of the golden tables are those that their statements made: every
// statement is run here, on tables of our own, and then every recorded snapshot of
// Spark's files, read back by its id, has the rows that our table had at that time.
// Rows come from the text of statements on one side and from Spark's files on the
// other; answers of Spark's, and the four snapshots of Flink's tables, are compared in
// storage/paimon, and the tables that are refused cannot be read.
func TestGolden_EverySnapshotHasTheRowsOfItsStatements(t *testing.T) {
	dirs, err := os.ReadDir("../../storage/paimon/testdata/golden")
	require.NoError(t, err)
	compared := 0
	for _, d := range dirs {
		if d.Name() == "flink_types" || d.Name() == "refused" { // Flink's SQL; tables that cannot be read
			continue
		}
		t.Run(d.Name(), func(t *testing.T) { compared += replayGolden(t, d.Name()) })
	}
	t.Logf("%d snapshots", compared)
	require.Equal(t, 127, compared)
}

func replayGolden(t *testing.T, fixture string) (compared int) {
	ours, _ := newSession(t)
	warehouse := filepath.Join("../../storage/paimon/testdata/golden", fixture, "warehouse")
	c, err := catalog.NewFileSystem(warehouse, objstore.LocalOptions{})
	require.NoError(t, err)
	golden := New(Options{Catalog: c, Now: time.Now})
	done := map[string]bool{}
	steps := goldenFixture(t, fixture)
	for i, st := range steps {
		if strings.HasPrefix(st.SQL, changesHistory) {
			break
		}
		if st.Error == "" && st.Columns == nil && !changesNoRows.MatchString(st.SQL) {
			_, err := exec(t, ours, goldenInstead.Replace(st.SQL))
			require.NoError(t, err, st.SQL)
		}
		for table, id := range st.Latest {
			state := fmt.Sprintf("%s/%d", table, id)
			file := filepath.Join(warehouse, fixture+".db", table, "snapshot", fmt.Sprintf("snapshot-%d", id))
			rolledBack := slices.ContainsFunc(steps[i:], func(later step) bool { now, ok := later.Latest[table]; return ok && now < id })
			if _, err := os.Stat(file); done[state] || err != nil || rolledBack { // expired, or written again since
				continue
			}
			done[state] = true
			what := sameRowsAsGolden(t, ours, golden, table, fixture, id)
			if what != "" {
				t.Errorf("%s, after %s\n%s", state, st.SQL, what)
			}
			compared++
		}
	}
	return compared
}

func sameRowsAsGolden(t *testing.T, ours, golden *Session, table, fixture string, id int64) string {
	mine, err := exec(t, ours, "SELECT * FROM "+table)
	require.NoError(t, err)
	theirs, err := exec(t, golden, fmt.Sprintf("SELECT * FROM %s.%s VERSION AS OF %d", fixture, table, id))
	require.NoError(t, err)
	names, typs := columnTypes(mine)
	theirNames, theirTypes := columnTypes(theirs)
	if !slices.Equal(names, theirNames) {
		return fmt.Sprintf("columns %v, theirs %v", names, theirNames)
	}
	got, want := spellRows(typs, mine.Rows, false), spellRows(theirTypes, theirs.Rows, false)
	if r := goldenElsewhere[fixture+"."+table]; r != nil {
		for i := range want {
			want[i] = r.Replace(want[i])
		}
		slices.Sort(want)
	}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("rows\n    %s\n  Spark's\n    %s", strings.Join(got, "\n    "), strings.Join(want, "\n    "))
	}
	return ""
}
