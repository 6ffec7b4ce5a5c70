package sql

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"applier/merger/expr"
	"applier/merger/internal/recorded"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/objstore"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// sequence is a list of statements on one database, and what Spark 4.1.2 with Paimon
// 2.0.0 said to each.
type sequence struct {
	Name  string
	Mode  string
	Tags  []string
	Steps []step
}

type step struct {
	SQL      string
	Class    string
	Error    string
	Columns  [][2]string
	Rows     []json.RawMessage
	Ordered  bool
	Bug      bool `json:"engine_bug"`
	Carried  any  `json:"carried_default"`
	Note     string
	Snapshot int64
	Latest   map[string]int64
	Commits  []struct {
		ID, Delta, Total int64
		Kind, Operation  string
	}
}

func recordedSequences(t *testing.T, file string) []sequence {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		in, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	var list []sequence
	s := bufio.NewScanner(in)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		var q sequence
		require.NoError(t, json.Unmarshal(s.Bytes(), &q))
		list = append(list, q)
	}
	require.NoError(t, s.Err())
	return list
}

func newSession(t *testing.T) *Session {
	dir := t.TempDir()
	c, err := catalog.NewFileSystem(dir, objstore.LocalOptions{})
	require.NoError(t, err)
	require.NoError(t, c.CreateDatabase("default"))
	return New(Options{Catalog: c, Name: "p", User: "test", Now: time.Now, NewUUID: func() string { return uuid.New().String() }})
}

// exec parses and runs a statement.
func exec(t *testing.T, s *Session, sql string) (*Result, error) {
	stmt, err := sqlparse.Parse(sql)
	if err != nil {
		return nil, err
	}
	return s.Execute(t.Context(), stmt, sql)
}

// spell writes rows in one form, sorted unless their order counts.
func spellRows(cols []expr.Type, rows []expr.Row, ordered bool) []string {
	out := []string{}
	for _, r := range rows {
		line := ""
		for i, d := range r {
			line += recorded.Spell(cols[i], d) + " | "
		}
		out = append(out, line)
	}
	if !ordered {
		slices.Sort(out)
	}
	return out
}

func spellRecordedRows(t *testing.T, cols []expr.Type, rows []json.RawMessage, ordered bool) []string {
	out := []string{}
	for _, raw := range rows {
		var cells []any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		require.NoError(t, d.Decode(&cells))
		line := ""
		for i, c := range cells {
			if i < len(cols) {
				line += recorded.SpellRecorded(cols[i], c) + " | "
			}
		}
		out = append(out, line)
	}
	if !ordered {
		slices.Sort(out)
	}
	return out
}

func columnTypes(res *Result) (names [][2]string, typs []expr.Type) {
	for _, c := range res.Columns {
		names = append(names, [2]string{c.Name, c.Type.String()})
		typs = append(typs, c.Type)
	}
	return names, typs
}

func TestExplore(t *testing.T) {
	file := os.Getenv("CORPUS")
	if file == "" {
		t.Skip()
	}
	only := os.Getenv("ONLY")
	agree, differ := 0, map[string]int{}
	for _, q := range recordedSequences(t, file) {
		if only != "" && q.Name != only {
			continue
		}
		s := newSession(t)
		lost := false
		for _, st := range q.Steps {
			if lost {
				break
			}
			res, err := exec(t, s, st.SQL)
			what := ""
			switch {
			case st.Bug:
				if err == nil { lost = true; what = "bug accepted" }
			case (err != nil) != (st.Error != ""):
				got := "ok"
				if err != nil { p := Describe(err); got = p.Class + ": " + p.Message }
				what = fmt.Sprintf("got %s, Spark: %q", got, st.Error)
				lost = true
			case err == nil && st.Columns != nil:
				names, typs := columnTypes(res)
				if !slices.Equal(names, st.Columns) {
					what = fmt.Sprintf("columns %v, Spark %v", names, st.Columns)
				} else if a, b := spellRows(typs, res.Rows, st.Ordered), spellRecordedRows(t, typs, st.Rows, st.Ordered); !slices.Equal(a, b) {
					what = fmt.Sprintf("rows\n    %s\n  Spark\n    %s", strings.Join(a, "\n    "), strings.Join(b, "\n    "))
					lost = true
				}
			case err == nil && st.Snapshot > 0:
				if res.Snapshot["t"] != st.Snapshot {
					what = fmt.Sprintf("snapshot %v, Spark %d", res.Snapshot, st.Snapshot)
					lost = true
				}
			}
			if what == "" {
				agree++
			} else {
				differ[q.Name]++
				fmt.Printf("== %s %s carried=%v bug=%v\n  %s\n  %s\n", q.Name, q.Mode, st.Carried, st.Bug, st.SQL, what)
			}
		}
	}
	fmt.Println("agree", agree, "differ", len(differ))
}
