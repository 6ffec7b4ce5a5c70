package sqlparse

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzParse reads any text as a script, as a statement, as an expression and as a list
// of clauses: nothing panics, what is refused says where, and what is read prints as a
// text that reads as the same tree and prints the same again.
func FuzzParse(f *testing.F) {
	for i, r := range corpus(f) {
		if i%16 == 0 { // all of them take a smoke run's time
			f.Add(r.SQL)
		}
	}
	for _, s := range []string{
		"SELECT 'it''s', \"x\", `a``b`, X'1C', 1e400, .5, 1., 5L, 0x1F, -2147483648 -- end", "SELECT /* /* nested */ */ 1; ;; SELECT 'open",
		"MERGE WITH SCHEMA EVOLUTION INTO a.b t USING VALUES (1) ON t.k <=> 1 WHEN NOT MATCHED BY SOURCE AND NOT x THEN DELETE",
		"CREATE TABLE t (a STRUCT<b: ARRAY<MAP<STRING, DECIMAL(38, 2)>> COMMENT 'c'>, `select` INT NOT NULL DEFAULT (1)) TBLPROPERTIES ('k'=1)",
		"SELECT x -> x + 1, (a, b) -> a, t.*, count(DISTINCT a) FILTER (WHERE b) OVER (PARTITION BY c)", "SELECT a[1].b.c::int, INTERVAL '1-2' YEAR TO MONTH",
		"INSERT OVERWRITE t PARTITION (p = 'x', q) (a) SELECT 1 UNION ALL (SELECT 2 EXCEPT SELECT 3) ORDER BY 1 NULLS LAST LIMIT 5 OFFSET 2",
		"SELECT ((((((((((1))))))))))", "SELECT - - - + ~ NOT NOT !1", "SELECT CASE WHEN a THEN b ELSE c END IS NOT DISTINCT FROM NULL", "\x00\xff\u00e9\u200b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		end := 0
		for _, p := range Split(src) {
			require.GreaterOrEqual(t, p.Start.Offset, end)
			end = p.End
			require.LessOrEqual(t, end, len(src))
			s, err := p.Parse()
			checkRead(t, src, s, err)
		}
		s, err := Parse(src)
		checkRead(t, src, s, err)
		if x, err := ParseExpr(src); err == nil {
			text := Format(x)
			again, err := ParseExpr(text)
			require.NoError(t, err, "printed: %s", text)
			requireSameTree(t, x, again, text)
			require.Equal(t, text, Format(again))
		} else {
			checkPlace(t, src, err)
		}
	})
}

func checkRead(t *testing.T, src string, s Statement, err error) {
	if err != nil {
		checkPlace(t, src, err)
		return
	}
	requireRoundTrip(t, s)
	Walk(s, func(Node) bool { return true })
}

// checkPlace proves that an error is one of ours and lies in the text.
func checkPlace(t *testing.T, src string, err error) {
	var e *Error
	require.True(t, errors.As(err, &e), "%T: %v", err, err)
	require.NotEmpty(t, e.Class)
	require.NotEmpty(t, e.Message)
	require.Positive(t, e.Pos.Line)
	require.Positive(t, e.Pos.Col)
	require.LessOrEqual(t, e.Pos.Offset, len(src))
	require.LessOrEqual(t, e.Pos.Line, strings.Count(src, "\n")+1)
	_ = Caret(src, e.Pos)
}

// Texts made to be deep or long are refused or read, in a time that grows with their
// length, and never end the process.
func TestParse_SurvivesDeepAndLongTexts(t *testing.T) {
	const n = 200_000
	for name, src := range map[string]string{
		"parentheses": "SELECT " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n), "open": "SELECT " + strings.Repeat("(", n),
		"signs": "SELECT " + strings.Repeat("- ", n) + "1", "nots": "SELECT " + strings.Repeat("NOT ", n) + "true",
		"sum": "SELECT 1" + strings.Repeat(" + 1", n), "ands": "SELECT true" + strings.Repeat(" AND true", n), "power": "SELECT a" + strings.Repeat("[1]", n),
		"fields": "SELECT a" + strings.Repeat(".b", n), "casts": "SELECT 1" + strings.Repeat("::INT", n), "cases": "SELECT " + strings.Repeat("CASE WHEN true THEN ", n),
		"types": "SELECT CAST(1 AS " + strings.Repeat("ARRAY<", n), "queries": strings.Repeat("SELECT * FROM (", n), "unions": "SELECT 1" + strings.Repeat(" UNION SELECT 1", n),
		"lambdas": "SELECT " + strings.Repeat("f(x -> ", n), "comments": strings.Repeat("/*", n), "list": "SELECT 1" + strings.Repeat(", 1", n),
		"joins": "SELECT * FROM t" + strings.Repeat(" JOIN t", n), "text": "SELECT '" + strings.Repeat("''", n), "ctes": strings.Repeat("WITH a AS (", n),
		"in": "SELECT 1 IN (1" + strings.Repeat(", 1", n) + ")", "concat": "SELECT 'a'" + strings.Repeat(" || 'a'", n), "between": "SELECT 1" + strings.Repeat(" BETWEEN 1 AND 1", n),
	} {
		start := time.Now()
		s, err := Parse(src)
		checkRead(t, src, s, err)
		require.Less(t, time.Since(start), time.Minute, name)
	}
}
