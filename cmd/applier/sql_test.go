package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"applier/merger/sqlparse"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// runSQL runs `applier sql` and returns what it prints and its error.
func runSQL(t *testing.T, in string, args ...string) (out, errs string, err error) {
	root := rootCommand()
	var o, e bytes.Buffer
	root.SetOut(&o)
	root.SetErr(&e)
	root.SetIn(strings.NewReader(in))
	root.SetArgs(append([]string{"sql"}, args...))
	err = root.ExecuteContext(context.Background())
	return o.String(), e.String(), err
}

func TestSQL_PrintsOneObjectAStatement(t *testing.T) {
	dir := t.TempDir()
	out, _, err := runSQL(t, "", "--warehouse", dir, "--format", "json", "--continue-on-error", "-e",
		"CREATE TABLE a (x INT, d DECIMAL(5,2), b BINARY, ts TIMESTAMP); INSERT INTO a VALUES (1, 1.50, X'00ff', TIMESTAMP'2026-01-02 03:04:05'), (NULL, NULL, NULL, NULL);\nSELECT * FROM a ORDER BY x DESC;\nSELEC 1; SELECT 1 AS n WHERE false")
	require.Equal(t, exitFailed, err.(exitError).code)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 5)
	assert.JSONEq(t, `{"statement":"CREATE TABLE a (x INT, d DECIMAL(5,2), b BINARY, ts TIMESTAMP)"}`, lines[0])
	assert.JSONEq(t, `{"statement":"INSERT INTO a VALUES (1, 1.50, X'00ff', TIMESTAMP'2026-01-02 03:04:05'), (NULL, NULL, NULL, NULL)","snapshot":{"a":1}}`, lines[1])
	assert.JSONEq(t, `{"statement":"SELECT * FROM a ORDER BY x DESC","columns":[["x","int"],["d","decimal(5,2)"],["b","binary"],["ts","timestamp"]],
		"rows":[[1,"1.50","00ff","2026-01-02T03:04:05.000000Z"],[null,null,null,null]]}`, lines[2])
	var failed struct{ Error map[string]string }
	require.NoError(t, json.Unmarshal([]byte(lines[3]), &failed))
	assert.Equal(t, "PARSE_SYNTAX_ERROR", failed.Error["class"])
	assert.Contains(t, failed.Error["message"], "line 3, column 1")
	assert.JSONEq(t, `{"statement":"SELECT 1 AS n WHERE false","columns":[["n","int"]],"rows":[]}`, lines[4])

	cat := rootCommand()
	var c bytes.Buffer
	cat.SetOut(&c)
	cat.SetArgs([]string{"cat", "default.a", "--warehouse", dir, "--format", "jsonl"})
	require.NoError(t, cat.Execute())
	assert.Contains(t, c.String(), `{"x":1,"d":"1.50","b":"00ff","ts":"2026-01-02T03:04:05.000000Z"}`, "values are those of cat")
}

func TestSQL_StopsAtTheFirstError(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "script.sql")
	require.NoError(t, os.WriteFile(file, []byte("CREATE DATABASE d;\nUSE d;\nSELECT nothing\nFROM (SELECT 1 AS one);\nCREATE TABLE t (x INT);"), 0o600))
	warehouse := t.TempDir()
	_, errs, err := runSQL(t, "", "--warehouse", warehouse, "-f", file)
	require.Equal(t, exitFailed, err.(exitError).code)
	assert.Contains(t, errs, "(line 3, column 8)\n  SELECT nothing\n         ^")
	out, _, err := runSQL(t, "SHOW TABLES IN d; SHOW DATABASES", "--warehouse", warehouse, "--format", "csv")
	require.NoError(t, err)
	assert.Equal(t, "namespace,tableName,isTemporary\nnamespace\nd\ndefault\n", out)
}

func TestSQL_DrawsTablesForPeople(t *testing.T) {
	out, _, err := runSQL(t, "", "--warehouse", t.TempDir(), "-e", "CREATE TABLE t (x INT, s STRING); INSERT INTO t VALUES (10, 'a'), (2, NULL); SELECT * FROM t ORDER BY x; EXPLAIN DELETE FROM t WHERE x = 2")
	require.NoError(t, err)
	assert.Contains(t, out, "2 rows inserted (t: snapshot 1)\n x  s\n──  ────\n 2  NULL\n10  a\n2 row(s)\n")
	assert.Contains(t, out, "snapshot 2: kind OVERWRITE, operation DELETE\n")
	assert.Contains(t, out, "written again without 1 of its 2 rows\n")
}

func TestSQL_BadCommandLines(t *testing.T) {
	for _, args := range [][]string{
		{"--warehouse", t.TempDir(), "-e", "SELECT 1", "-f", "x"},
		{"--warehouse", t.TempDir(), "-f", "/nowhere"},
		{"--warehouse", t.TempDir(), "--format", "xml"},
		{"--warehouse", t.TempDir(), "--database", "nowhere", "-e", "SELECT 1"},
	} {
		_, _, err := runSQL(t, "", args...)
		require.Equal(t, exitUsage, err.(exitError).code, args)
	}
}

// Ctrl-C drops a line instead of ending the prompt.
func TestInterruptible_MakesCtrlCALine(t *testing.T) {
	r := &interruptible{Reader: strings.NewReader("ab\x03")}
	b := make([]byte, 2)
	n, err := r.Read(b)
	require.NoError(t, err)
	assert.Equal(t, "ab", string(b[:n]))
	var rest []byte
	for {
		n, err := r.Read(b)
		rest = append(rest, b[:n]...)
		if err != nil {
			break
		}
	}
	assert.Equal(t, "\x05\x15\r", string(rest))
	assert.True(t, r.hit)
}

// A statement of many lines becomes one of the history that does the same.
func TestSQL_HistoryKeepsWhatStatementsMean(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 'a  b'; SHOW TABLES;":              "SELECT 'a  b'; SHOW TABLES;",
		"SELECT 1 -- one\n, 'x  y'\nFROM t;":       "SELECT 1, 'x  y' FROM t;",
		"SELECT /* c */ a -- tail\n;":              "SELECT /* c */ a;",
		"SELEC 1 --\n  FROM t;":                    "SELEC 1 -- FROM t;",
		"DELETE FROM t\nWHERE s = 'it''s' --\n;\n": "DELETE FROM t WHERE s = 'it''s';",
	} {
		assert.Equal(t, want, historyLine(text, sqlparse.Split(text)), text)
	}
}

func TestSQL_ProgressIsOneLineThatGoes(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(100, 0)
	p := &progressLine{w: &out, now: func() time.Time { return now }}
	p.begin()
	p.report("too early")
	p.end()
	assert.Empty(t, out.String())
	p.begin()
	now = now.Add(3 * time.Second)
	p.report("1 of 3 rows read")
	p.report("at once again")
	now = now.Add(3 * time.Second)
	p.report("2 of 3 rows read")
	p.end()
	assert.Equal(t, "\r\x1b[K… 1 of 3 rows read\r\x1b[K… 2 of 3 rows read\r\x1b[K", out.String())
}
