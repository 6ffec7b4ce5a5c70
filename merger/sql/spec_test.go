package sql

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"applier/merger/sqlparse"

	"github.com/stretchr/testify/require"
)

// The examples of the two documents with more between them: both modes, refusals, limits
// that are lifted. A line "-- error CLASS" is ours.
func TestExecute_GivesWhatTheDocumentsPrint(t *testing.T) {
	for _, file := range []string{"default-values.sql", "row-level-operations.sql", "row-level-operations-dv.sql"} {
		t.Run(file, func(t *testing.T) {
			b, err := os.ReadFile("testdata/" + file)
			require.NoError(t, err)
			s, _ := newSession(t)
			text := string(b)
			statements := 0
			pieces := sqlparse.Split(text)
			for i, p := range pieces {
				end := len(text)
				if i+1 < len(pieces) {
					end = pieces[i+1].Start.Offset
				}
				want := printed(text[p.End:end])
				stmt, err := p.Parse()
				require.NoError(t, err, p.Text())
				res, err := s.Execute(t.Context(), stmt)
				if len(want) > 0 && strings.HasPrefix(want[0], "error ") {
					require.Error(t, err, p.Text())
					require.Equal(t, want[0], "error "+Describe(err).Class, p.Text())
					continue
				}
				require.NoError(t, err, p.Text())
				statements++
				if _, ok := stmt.(*sqlparse.QueryStmt); ok {
					require.Equal(t, want, plain(s, res), p.Text())
				}
			}
			require.Greater(t, statements, 3)
		})
	}
}

// The two documents themselves, as they were given: every example in them runs as it
// stands there, in order, and prints what stands behind it. What the second one says of
// "the my_table schema from the overview" is the table that it is run on.
func TestExecute_RunsTheDocumentsVerbatim(t *testing.T) {
	for _, c := range []struct {
		file                string
		statements, results int
		before              []string
	}{
		{"default-values.txt", 17, 5, nil},
		{"row-level-operations.txt", 5, 0, []string{
			"CREATE TABLE my_table (product_id BIGINT, price DOUBLE, sales BIGINT, dt STRING)",
			"INSERT INTO my_table VALUES (1, 10.0, 1, '2026-09-10'), (2, -1.0, 5, '2026-09-10')",
		}},
	} {
		b, err := os.ReadFile("testdata/documents/" + c.file)
		require.NoError(t, err)
		s, _ := newSession(t)
		must(t, s, c.before...)
		statements, results := 0, 0
		for _, x := range examples(string(b)) {
			res, err := exec(t, s, strings.TrimSuffix(x.sql, ";"))
			require.NoError(t, err, x.sql)
			statements++
			if len(x.prints) > 0 {
				require.Equal(t, x.prints, plain(s, res), x.sql)
				results++
			}
		}
		require.Equal(t, []int{c.statements, c.results}, []int{statements, results}, c.file)
		if c.before != nil {
			require.Equal(t, []string{"1  12.0  3  2026-09-10"}, rows(t, s, "SELECT * FROM my_table"))
		}
	}
}

// example is a statement of a document and what it prints.
type example struct {
	sql    string
	prints []string
}

// examples finds the statements in a text: from a line that begins with a word of SQL in
// capitals to one that ends with a semicolon, and the lines behind "-- " below it.
func examples(text string) (list []example) {
	begins := regexp.MustCompile(`^(CREATE|INSERT|SELECT|DELETE|UPDATE|MERGE|ALTER) `)
	var open []string
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case len(open) > 0 || begins.MatchString(line):
			if open = append(open, line); strings.HasSuffix(line, ";") {
				list, open = append(list, example{sql: strings.Join(open, "\n")}), nil
			}
		case strings.HasPrefix(line, "-- "):
			last := &list[len(list)-1]
			last.prints = append(last.prints, strings.TrimPrefix(line, "-- "))
		}
	}
	return list
}

// printed are the lines behind "-- ".
func printed(text string) []string {
	lines := []string{}
	for l := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(l, "-- "); ok {
			lines = append(lines, rest)
		}
	}
	return lines
}

// plain prints rows as the documents do, in the time zone of the session.
func plain(s *Session, res *Result) []string {
	lines := []string{}
	for _, row := range res.Rows {
		var cells []string
		for i, d := range row {
			cells = append(cells, valueText(res.Columns[i].Type, d, s.zone))
		}
		lines = append(lines, strings.Join(cells, "  "))
	}
	return lines
}

// rows runs a query and gives its rows as the documents print them.
func rows(t *testing.T, s *Session, sql string) []string {
	t.Helper()
	res, err := exec(t, s, sql)
	require.NoError(t, err, sql)
	return plain(s, res)
}

func must(t *testing.T, s *Session, list ...string) {
	t.Helper()
	for _, sql := range list {
		_, err := exec(t, s, sql)
		require.NoError(t, err, sql)
	}
}

func TestMerge_SaysWhichSourceRowsAreAmbiguous(t *testing.T) {
	s, _ := newSession(t)
	must(t, s, "CREATE TABLE t (k INT, v INT)", "INSERT INTO t VALUES (1, 10)")
	_, err := exec(t, s, "MERGE INTO t USING (SELECT * FROM VALUES (1, 2), (1, 3) AS v(k, v)) s ON t.k = s.k WHEN MATCHED THEN DELETE")
	require.Equal(t, ClassAmbiguous, Describe(err).Class)
	require.ErrorContains(t, err, "(k=1, v=2) and (k=1, v=3)")
	require.Equal(t, []string{"1  10"}, rows(t, s, "SELECT * FROM t"))
}

// V17, V23, V24, V30, V40: what Spark's limits forbid.
func TestDefaults_BeyondSparksLimits(t *testing.T) {
	s, _ := newSession(t)
	must(t, s, "CREATE TABLE t (a INT, at TIMESTAMP DEFAULT current_timestamp(), d DATE DEFAULT current_date, n INT NOT NULL DEFAULT 5, l ARRAY<STRING> DEFAULT ARRAY('a', 'b'))",
		"INSERT INTO t (a) VALUES (1), (2)", "ALTER TABLE t ADD COLUMN e INT DEFAULT 7", "INSERT INTO t (a, n) VALUES (3, DEFAULT)",
		"UPDATE t SET e = DEFAULT WHERE a = 1")
	require.Equal(t, []string{"1  true  true  5  [a, b]  7", "2  true  true  5  [a, b]  NULL", "3  true  true  5  [a, b]  7"},
		rows(t, s, "SELECT a, at > TIMESTAMP'2020-01-01', d > DATE'2020-01-01', n, l, e FROM t ORDER BY a"))
	require.Equal(t, []string{"1"}, rows(t, s, "SELECT count(DISTINCT at) FROM t WHERE a < 3"))
	for _, sql := range []string{
		"CREATE TABLE u (s STRING DEFAULT current_timestamp() || 'x')", "CREATE TABLE u (n INT DEFAULT rand())", "CREATE TABLE u (n INT DEFAULT a)",
		"CREATE TABLE u (n INT DEFAULT (SELECT 1))", "CREATE TABLE u (c CHAR(2) DEFAULT 'abc')", "CREATE TABLE u (l ARRAY<STRING> DEFAULT ARRAY('a, b'))",
	} {
		_, err := exec(t, s, sql)
		require.Error(t, err, sql)
		require.True(t, strings.HasPrefix(Describe(err).Class, ClassDefault), "%s: %v", sql, err)
	}
}

// A statement that was overtaken is planned on what the other one left.
func TestExecute_PlansAgainAfterALostRace(t *testing.T) {
	for _, mode := range []string{"true", "false"} {
		s, _ := newSession(t)
		must(t, s, "CREATE TABLE t (k INT, v INT) TBLPROPERTIES ('deletion-vectors.enabled'='"+mode+"')", "INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")
		other := New(s.o)
		first := true
		stmt, err := sqlparse.Parse("UPDATE t SET v = v + 1")
		require.NoError(t, err)
		r := &run{Session: s, env: testEnv(s)}
		do, name, alias := planOf(stmt)
		res, err := r.changeBy(t.Context(), name, alias, func(ctx context.Context, r *run, tg *target, e *editor) error {
			err := do(ctx, r, tg, e)
			if first { // both have read snapshot 1; the other one commits
				first = false
				must(t, other, "DELETE FROM t WHERE k = 1", "UPDATE t SET v = 200 WHERE k = 2", "INSERT INTO t VALUES (4, 40)")
			}
			return err
		})
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"t": 5}, res.Snapshot)
		require.Equal(t, []string{"2  201", "3  31", "4  41"}, rows(t, s, "SELECT * FROM t ORDER BY k"), mode)
	}
}

// New rows need no other plan: they are committed on top of what came between.
func TestInsert_IsCommittedOnTopOfOthers(t *testing.T) {
	s, _ := newSession(t)
	must(t, s, "CREATE TABLE t (k INT)", "INSERT INTO t VALUES (1)")
	other, planned := New(s.o), 0
	stmt, err := sqlparse.Parse("INSERT INTO t VALUES (2)")
	require.NoError(t, err)
	r := &run{Session: s, env: testEnv(s)}
	do, name, alias := planOf(stmt)
	_, err = r.changeBy(t.Context(), name, alias, func(ctx context.Context, r *run, tg *target, e *editor) error {
		planned++
		must(t, other, "INSERT INTO t VALUES (3)")
		return do(ctx, r, tg, e)
	})
	require.NoError(t, err)
	require.Equal(t, 1, planned)
	require.Equal(t, []string{"1", "2", "3"}, rows(t, s, "SELECT * FROM t ORDER BY k"))
}

// What was read of the table itself is read again.
func TestInsert_OfTheTablesOwnRowsIsPlannedAgain(t *testing.T) {
	s, _ := newSession(t)
	must(t, s, "CREATE TABLE t (k INT)", "INSERT INTO t VALUES (1)")
	other, planned := New(s.o), 0
	stmt, err := sqlparse.Parse("INSERT INTO t SELECT k + 10 FROM t")
	require.NoError(t, err)
	r := &run{Session: s, env: testEnv(s)}
	do, name, alias := planOf(stmt)
	_, err = r.changeBy(t.Context(), name, alias, func(ctx context.Context, r *run, tg *target, e *editor) error {
		if planned++; planned == 1 {
			must(t, other, "INSERT INTO t VALUES (2)")
		}
		return do(ctx, r, tg, e)
	})
	require.NoError(t, err)
	require.Equal(t, 2, planned)
	require.Equal(t, []string{"1", "2", "11", "12"}, rows(t, s, "SELECT * FROM t ORDER BY k"))
}

// Nothing is left of a statement that fails in the middle: no snapshot, no file.
func TestExecute_LeavesNothingBehindAfterAnError(t *testing.T) {
	s, root := newSession(t)
	must(t, s, "CREATE TABLE t (k INT, v STRING) PARTITIONED BY (k)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
	j := &judge{t: t, root: root}
	before := j.files()
	for _, sql := range []string{
		"INSERT INTO t SELECT k, CAST(v AS INT) FROM t", "UPDATE t SET k = CAST(v AS INT)", "DELETE FROM t WHERE CAST(v AS INT) = 1",
		"MERGE INTO t USING t AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET k = 1 / 0", "INSERT INTO t VALUES (1)", "UPDATE t SET nothing = 1",
		"ALTER TABLE t DROP COLUMN k", "ALTER TABLE t ADD COLUMN n INT NOT NULL", "CREATE TABLE u (x INT) PARTITIONED BY (y)",
	} {
		_, err := exec(t, s, sql)
		require.Error(t, err, sql)
		require.Equal(t, before, j.files(), sql)
	}
}

func TestExecute_CancelledLeavesTheTableAlone(t *testing.T) {
	s, _ := newSession(t)
	must(t, s, "CREATE TABLE t (k BIGINT)", "INSERT INTO t SELECT id FROM range(10)")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	stmt, err := sqlparse.Parse("UPDATE t SET k = k + 1")
	require.NoError(t, err)
	_, err = s.Execute(ctx, stmt)
	require.Equal(t, ClassCanceled, Describe(err).Class)
	require.Equal(t, []string{"45"}, rows(t, s, "SELECT sum(k) FROM t"))
}

// A statement whose snapshot is there says so, though somebody cancelled meanwhile.
func TestExecute_CancelledTooLateIsDone(t *testing.T) {
	s, _ := newSession(t)
	must(t, s, "CREATE TABLE t (k INT)")
	stmt, err := sqlparse.Parse("INSERT INTO t SELECT 1 WHERE false")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	r := &run{Session: s, env: testEnv(s)}
	do, name, alias := planOf(stmt)
	_, err = r.changeBy(ctx, name, alias, func(ctx context.Context, r *run, tg *target, e *editor) error {
		err := do(ctx, r, tg, e)
		stop()
		return err
	})
	require.NoError(t, err)
}

func TestUpdate_StructFieldsBucketsAndPartitions(t *testing.T) {
	for i, props := range []string{
		"", "TBLPROPERTIES ('deletion-vectors.enabled'='true')", "TBLPROPERTIES ('bucket'='2', 'bucket-key'='k')",
		"TBLPROPERTIES ('bucket'='2', 'bucket-key'='k', 'deletion-vectors.enabled'='true')", "TBLPROPERTIES ('row-tracking.enabled'='true', 'deletion-vectors.enabled'='true')",
	} {
		s, _ := newSession(t)
		must(t, s, "CREATE TABLE t (k INT, s STRUCT<x: INT, y: STRING>, p STRING) PARTITIONED BY (p) "+props,
			"INSERT INTO t VALUES (1, named_struct('x', 1, 'y', 'a'), 'p'), (2, NULL, 'p'), (3, named_struct('x', 3, 'y', 'c'), 'q')",
			"UPDATE t SET s.x = k * 10, p = 'r' WHERE k < 3")
		require.Equal(t, []string{"1  10  a  r", "2  20  NULL  r", "3  3  c  q"}, rows(t, s, "SELECT k, s.x, s.y, p FROM t ORDER BY k"), fmt.Sprint(i))
		must(t, s, "DELETE FROM t WHERE p = 'r'")
		require.Equal(t, []string{"3"}, rows(t, s, "SELECT k FROM t"), fmt.Sprint(i))
	}
}
