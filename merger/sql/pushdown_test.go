package sql

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A SELECT reads the columns that it names, of the files that its condition does not
// rule out: the others may be gone. EXPLAIN says which.
func TestSelect_ReadsOnlyTheFilesAndColumnsItNeeds(t *testing.T) {
	s, root := newSession(t)
	must(t, s, "CREATE TABLE t (k INT, v STRING, p STRING) PARTITIONED BY (p)",
		"INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'x')", "INSERT INTO t VALUES (3, 'c', 'x')", "INSERT INTO t VALUES (4, 'd', 'y')")
	for sql, want := range map[string][]string{
		"SELECT v FROM t":                                           {"reads table default.t, snapshot 3: 3 of 3 files, columns v"},
		"SELECT count(*) FROM t":                                    {"reads table default.t, snapshot 3: 3 of 3 files, columns none (counts rows)"},
		"SELECT k FROM t WHERE p = 'y'":                             {"reads table default.t, snapshot 3: 1 of 3 files, columns k, p"},
		"SELECT k FROM t AS x WHERE x.k BETWEEN 1 + 1 AND 2":        {"reads table default.t, snapshot 3: 1 of 3 files, columns k"},
		"SELECT v FROM t WHERE k IN (3, 4) AND p = 'x'":             {"reads table default.t, snapshot 3: 1 of 3 files, columns k, v, p"},
		"SELECT v FROM t WHERE k IS NULL":                           {"reads table default.t, snapshot 3: 0 of 3 files, columns k, v"},
		"SELECT v FROM t WHERE upper(v) = 'A' AND k = 4":            {"reads table default.t, snapshot 3: 3 of 3 files, columns k, v"},
		"SELECT a.v FROM t a JOIN t VERSION AS OF 1 b ON a.k = b.k": {"reads table default.t, snapshot 3: 3 of 3 files, columns k, v", "reads table default.t, snapshot 1: 1 of 1 files, columns k"},
		"WITH c AS (SELECT * FROM t WHERE k = 4) SELECT v FROM c":   {"reads table default.t, snapshot 3: 1 of 3 files, columns k, v, p"},
	} {
		var reads []string
		for _, line := range rows(t, s, "EXPLAIN "+sql) {
			if strings.HasPrefix(line, "reads") {
				reads = append(reads, line)
			}
		}
		require.Equal(t, want, reads, sql)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(root, "default.db", "t", "p=y", "bucket-0")))
	require.Equal(t, []string{"3  c"}, rows(t, s, "SELECT k, v FROM t WHERE p = 'x' AND k > 2"))
	_, err := exec(t, s, "SELECT k FROM t")
	require.Error(t, err)
}

// Whatever is passed over early, the rows are those for which the condition is true.
func TestSelect_PruningHidesNoRow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := func() string {
		pick := func(list ...string) string { return list[r.IntN(len(list))] }
		return fmt.Sprintf("(%s, %s, %s, %s, %s)", pick("NULL", "-1", "0", "1", "2", "7"), pick("NULL", "''", "'a'", "'b'", "'ab'", "'ä'"),
			pick("NULL", "DATE'1969-12-31'", "DATE'2024-02-29'"), pick("NULL", "TIMESTAMP'1969-12-31 23:59:59.5'", "TIMESTAMP'2024-01-01 00:00:00'"), pick("'x'", "'y'", "NULL"))
	}
	columns := map[string][]string{
		"i": {"0", "1", "CAST(2 AS BIGINT)", "1 + 1", "-1", "NULL", "1.5", "9999999999"}, "s": {"'a'", "'b'", "''", "concat('a', 'b')", "NULL"},
		"d": {"DATE'1970-01-01'", "DATE'2024-02-29'", "date_add(DATE'2024-02-28', 1)"}, "m": {"TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP'1970-01-01 00:00:00'"}, "p": {"'x'", "'y'"},
	}
	condition := func() string {
		names := []string{"i", "s", "d", "m", "p"}
		c := names[r.IntN(len(names))]
		v := func() string { return columns[c][r.IntN(len(columns[c]))] }
		switch r.IntN(6) {
		case 0:
			return c + " IS NULL"
		case 1:
			return c + " IS NOT NULL"
		case 2:
			return c + " BETWEEN " + v() + " AND " + v()
		case 3:
			return c + " IN (" + v() + ", " + v() + ", " + v() + ")"
		case 4:
			return v() + " " + []string{"=", "<", "<=", ">", ">="}[r.IntN(5)] + " " + c
		}
		return c + " " + []string{"=", "<", "<=", ">", ">=", "<>", "<=>"}[r.IntN(7)] + " " + v()
	}
	for _, mode := range []string{"true", "false"} {
		s, _ := newSession(t)
		must(t, s, "CREATE TABLE t (i INT, s STRING, d DATE, m TIMESTAMP, p STRING) PARTITIONED BY (p) TBLPROPERTIES ('deletion-vectors.enabled'='"+mode+"')")
		for range 8 {
			must(t, s, "INSERT INTO t VALUES "+values()+", "+values()+", "+values())
		}
		must(t, s, "DELETE FROM t WHERE i = 7")
		for range 150 {
			where := condition()
			if r.IntN(2) == 0 {
				where += " AND " + condition()
			}
			require.Equal(t, rows(t, s, "SELECT * FROM t WHERE NOT NOT ("+where+")"), rows(t, s, "SELECT * FROM t WHERE "+where), where)
		}
	}
}
