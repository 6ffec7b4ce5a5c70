package sql

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"applier/merger/compact"
	"applier/merger/sqlparse"
	"applier/storage/paimon"

	"github.com/cockroachdb/datadriven"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// TestCases runs testdata/cases: the concrete cases of the design's page about row-level
// statements (row-level.md §8), by their ids. Everything runs on a copy-on-write table
// and on one with deletion vectors; where they differ the lines begin with cow: and dv:.
// Commands, whose input are SQL statements:
//
//	case ID… [only=cow|dv] [from=FIXTURE] [table=NAME]
//	    a new warehouse, in which t is a table of a golden one; the statements must succeed and print nothing. $MODE stands for
//	    the table property that makes the mode, $UUID for what makes a name unique
//	run
//	    prints for a query its rows, for a statement that fails its error (and checks
//	    that the warehouse is as before), for one that changes table t its commit
//	race
//	    run of the first statement; those behind the line MEANWHILE are run by somebody
//	    else when it has been planned for the first time
//	facts
//	    the data files of t as row tracking sees them
//	schema
//	    the columns of t with the stored texts of their defaults
//	stored COLUMN TEXT
//	    gives a column of t a default whose text another engine has stored
//	compact
//	    joins everything in t that can be joined
//	expire
//	    removes all snapshots of t but the newest
//	covered ID by=FILE:TEST
//	    a case that another test covers, whose comment or text names the id
//
// A commit is printed as its kind, operation, Δ record count/total, then what it did to
// files: -f1(3) +f2(2)@p=a removed and added data files with their rows, +i2{f1:0,1}
// and -i1 added and removed index files with the positions that they mark.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		var c *sqlCase
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "covered" {
				checkCovered(t, d)
				return ""
			}
			if d.Cmd == "case" {
				c = newSQLCase(t, d)
			}
			return c.both(t, d)
		})
	})
}

// Every id of the page has a case, and no case has an id of its own making.
func TestCases_AreThoseOfThePage(t *testing.T) {
	b, err := os.ReadFile("testdata/case-ids.txt")
	require.NoError(t, err)
	have := map[string]bool{}
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			for _, a := range d.CmdArgs {
				if len(a.Vals) == 0 && (d.Cmd == "case" || d.Cmd == "covered") {
					require.False(t, have[a.Key], "%s has two cases", a.Key)
					have[a.Key] = true
				}
			}
			return d.Expected
		})
	})
	ids := strings.Fields(string(b))
	require.Len(t, ids, 167)
	require.Equal(t, slices.Sorted(slices.Values(ids)), slices.Sorted(maps.Keys(have)))
}

// checkCovered proves that the named test is there and says which case it covers.
func checkCovered(t *testing.T, d *datadriven.TestData) {
	var by string
	d.ScanArgs(t, "by", &by)
	file, name, _ := strings.Cut(by, ":")
	b, err := os.ReadFile(filepath.Join("../..", file))
	require.NoError(t, err)
	require.Contains(t, string(b), name, d.Pos)
	require.Contains(t, string(b), d.CmdArgs[0].Key, "%s: %s does not name the case", d.Pos, file)
}

// sqlCase is a case in its modes.
type sqlCase struct {
	modes []*caseMode
}

// caseMode is a warehouse of a case.
type caseMode struct {
	name, property string
	s              *Session
	root           string
	files          map[string]string // data and index files of t by their real names
	added, marked  int
	seen           int64 // the snapshot of t that is printed
	warnings       []string
}

func newSQLCase(t *testing.T, d *datadriven.TestData) *sqlCase {
	c := &sqlCase{}
	only := ""
	d.MaybeScanArgs(t, "only", &only)
	for name, property := range map[string]string{"cow": "'deletion-vectors.enabled'='false'", "dv": "'deletion-vectors.enabled'='true'"} {
		if only == "" || only == name {
			m := &caseMode{name: name, property: property, files: map[string]string{}}
			m.s, m.root = newSession(t)
			m.s.o.Warn = func(text string) { m.warnings = append(m.warnings, "warning: "+text+"\n") }
			if from := ""; d.MaybeScanArgs(t, "from", &from) {
				table := "t"
				d.MaybeScanArgs(t, "table", &table)
				golden := filepath.Join("../../storage/paimon/testdata/golden", from, "warehouse", from+".db", table)
				require.NoError(t, os.CopyFS(filepath.Join(m.root, "default.db", "t"), os.DirFS(golden)))
			}
			c.modes = append(c.modes, m)
		}
	}
	slices.SortFunc(c.modes, func(a, b *caseMode) int { return strings.Compare(a.name, b.name) })
	return c
}

// both runs a command in all modes and joins what they print.
func (c *sqlCase) both(t *testing.T, d *datadriven.TestData) string {
	var outs []string
	for _, m := range c.modes {
		outs = append(outs, m.command(t, d))
	}
	if len(outs) == 1 || outs[0] == outs[1] {
		return outs[0]
	}
	a, b := strings.Split(strings.TrimSuffix(outs[0], "\n"), "\n"), strings.Split(strings.TrimSuffix(outs[1], "\n"), "\n")
	var out strings.Builder
	for i := range max(len(a), len(b)) {
		switch {
		case i < len(a) && i < len(b) && a[i] == b[i]:
			fmt.Fprintln(&out, a[i])
			continue
		case i < len(a):
			fmt.Fprintln(&out, strings.TrimSpace(c.modes[0].name+": "+a[i]))
		}
		if i < len(b) {
			fmt.Fprintln(&out, strings.TrimSpace(c.modes[1].name+": "+b[i]))
		}
	}
	return out.String()
}

func (m *caseMode) command(t *testing.T, d *datadriven.TestData) string {
	text := strings.NewReplacer("$MODE", m.property).Replace(d.Input)
	switch d.Cmd {
	case "case":
		for _, p := range sqlparse.Split(text) {
			stmt, err := p.Parse()
			require.NoError(t, err, "%s: %s", d.Pos, p.Text())
			_, err = m.s.Execute(t.Context(), stmt)
			require.NoError(t, err, "%s: %s", d.Pos, p.Text())
		}
		m.commits(t)
		return ""
	case "run":
		var out strings.Builder
		for _, p := range sqlparse.Split(text) {
			out.WriteString(m.run(t, p))
		}
		return out.String()
	case "race":
		return m.race(t, text)
	case "facts":
		return m.facts(t)
	case "schema":
		return m.schema(t)
	case "compact":
		tab := m.table(t)
		p := compact.NewPolicy(tab, 0)
		p.Full = true
		_, err := compact.Run(t.Context(), tab, compact.Options{Policy: p, User: "c", NewUUID: uuid.NewString, Now: time.Now})
		require.NoError(t, err)
		return m.commits(t)
	case "stored":
		tab := m.table(t)
		edit := tab.Schema().Edit(false)
		require.NoError(t, edit.SetDefault(d.CmdArgs[0].Key, &d.CmdArgs[1].Key))
		s, _, err := edit.Schema(1)
		require.NoError(t, err)
		require.NoError(t, paimon.AddSchema(t.Context(), tab.Bucket(), tab.Paths(), s))
		return ""
	case "expire":
		m.expire(t)
		return ""
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

// run executes one statement and prints what it says and does.
func (m *caseMode) run(t *testing.T, p sqlparse.Piece) string {
	j := &judge{t: t, root: m.root}
	before := j.files()
	stmt, err := p.Parse()
	var res *Result
	if err == nil {
		res, err = m.s.Execute(t.Context(), stmt)
	}
	if err != nil {
		require.Equal(t, before, j.files(), "a statement that fails leaves no file: %s", p.Text())
		e := Describe(err)
		return fmt.Sprintf("error %s: %s\n", e.Class, e.Message)
	}
	if res.Columns != nil {
		return joined(plain(m.s, res))
	}
	switch stmt.(type) {
	case *sqlparse.Insert, *sqlparse.Update, *sqlparse.Delete, *sqlparse.Merge, *sqlparse.TruncateTable:
		out := m.commits(t) + strings.Join(m.warnings, "")
		m.warnings = nil
		return out
	}
	return ""
}

// race runs a statement that is overtaken once.
func (m *caseMode) race(t *testing.T, text string) string {
	first, others, ok := strings.Cut(text, "MEANWHILE\n")
	require.True(t, ok, "race without MEANWHILE")
	stmt, err := sqlparse.Parse(strings.TrimSuffix(strings.TrimSpace(first), ";"))
	require.NoError(t, err, first)
	r := &run{Session: m.s, env: testEnv(m.s)}
	do, name, alias := planOf(stmt)
	overtaken := false
	_, err = r.changeBy(t.Context(), name, alias, func(ctx context.Context, r *run, tg *target, e *editor) error {
		err := do(ctx, r, tg, e)
		if !overtaken {
			overtaken = true
			for _, p := range sqlparse.Split(others) {
				if p.Text() == "EXPIRE" {
					m.expire(t)
					continue
				}
				must(t, New(m.s.o), p.Text())
			}
		}
		return err
	})
	out := m.commits(t)
	if err != nil {
		e := Describe(err)
		return out + fmt.Sprintf("error %s: %s\n", e.Class, e.Message)
	}
	return out
}

// table opens t as it is now.
func (m *caseMode) table(t *testing.T) *paimon.Table {
	_, tab, err := (&run{Session: m.s}).open(t.Context(), nameOf("t"), paimon.Read)
	require.NoError(t, err)
	return tab
}

func (m *caseMode) expire(t *testing.T) {
	tab := m.table(t)
	o := tab.Options().ExpireOptions(time.Now())
	o.RetainMin, o.RetainMax, o.RetainTime = 1, 1, 0
	p, err := compact.PlanExpire(t.Context(), tab, o, 0)
	require.NoError(t, err)
	require.NoError(t, tab.Expire(t.Context(), p))
}
