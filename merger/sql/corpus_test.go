package sql

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"applier/merger/expr"
	"applier/merger/internal/recorded"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"

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

// newSession returns a session on an empty warehouse, and its folder.
func newSession(t *testing.T) (*Session, string) {
	dir := t.TempDir()
	c, err := catalog.NewFileSystem(dir, objstore.LocalOptions{})
	require.NoError(t, err)
	require.NoError(t, c.CreateDatabase(t.Context(), "default"))
	return New(Options{Catalog: c, Name: "p", User: "test", Now: time.Now, NewUUID: func() string { return uuid.New().String() }}), dir
}

// exec parses and runs a statement.
func exec(t *testing.T, s *Session, sql string) (*Result, error) {
	stmt, err := sqlparse.Parse(sql)
	if err != nil {
		return nil, err
	}
	return s.Execute(t.Context(), stmt)
}

// spellCells writes rows in one form, sorted unless their order counts.
func spellCells(cols []expr.Type, rows []expr.Row, ordered bool) [][]string {
	out := [][]string{}
	for _, r := range rows {
		line := make([]string, len(cols))
		for i := range cols {
			line[i] = recorded.Spell(cols[i], r[i])
		}
		out = append(out, line)
	}
	return sortedCells(out, ordered)
}

// spellRows is spellCells with one text a row.
func spellRows(cols []expr.Type, rows []expr.Row, ordered bool) (out []string) {
	for _, r := range spellCells(cols, rows, ordered) {
		out = append(out, strings.Join(r, " | "))
	}
	return out
}

func sortedCells(rows [][]string, ordered bool) [][]string {
	if !ordered {
		slices.SortFunc(rows, slices.Compare[[]string])
	}
	return rows
}

func spellRecordedCells(t *testing.T, cols []expr.Type, rows []json.RawMessage, ordered bool) [][]string {
	out := [][]string{}
	for _, raw := range rows {
		var cells []any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		require.NoError(t, d.Decode(&cells))
		line := []string{}
		for i, c := range cells {
			if i < len(cols) {
				line = append(line, recorded.SpellRecorded(cols[i], c))
			}
		}
		out = append(out, line)
	}
	return sortedCells(out, ordered)
}

// showCells writes rows for people.
func showCells(rows [][]string) string {
	text := ""
	for _, r := range rows {
		text += "\n    " + strings.Join(r, " | ")
	}
	return text
}

func columnTypes(res *Result) (names [][2]string, typs []expr.Type) {
	for _, c := range res.Columns {
		names = append(names, [2]string{c.Name, c.Type.String()})
		typs = append(typs, c.Type)
	}
	return names, typs
}

// judge runs the statements of a sequence and compares every answer with Spark's.
type judge struct {
	t       *testing.T
	s       *Session
	q       *sequence
	root    string
	agree   int
	skipped int // after a point from which the two tables differ on purpose
	differ  map[difference]int
	// carried tells that the connector has filled NULLs of rows that it carried along.
	carried bool
	// defaults are the values that texts of defaults had, here and there, by column.
	defaults map[string][][2]string
	ids      rowIDs
	// merged tells that a MERGE has come since the last look at the table.
	merged bool
}

// run stops where the table differs from Spark's on purpose.
func (j *judge) run() {
	j.defaults, j.ids.theirs = map[string][][2]string{}, map[string]string{}
	for i := range j.q.Steps {
		st := &j.q.Steps[i]
		j.carried = j.carried || st.Carried != nil
		more := j.step(st)
		j.merged = st.Columns == nil && (j.merged || strings.Contains(st.SQL, "MERGE"))
		if !more {
			j.skipped += len(j.q.Steps) - i - 1
			return
		}
	}
}

// step runs one statement; false ends the sequence.
func (j *judge) step(st *step) bool {
	before := j.files()
	stmt, err := sqlparse.Parse(st.SQL)
	if st.Bug {
		j.differ[engineBug]++
		j.legal(st, stmt)
		j.undo(before) // what follows was recorded without the statement
		return st.Error != ""
	}
	var res *Result
	if err == nil {
		res, err = j.execute(stmt)
	}
	if err == nil && st.Error != "" {
		if d := j.lifted(st, stmt); d != "" {
			j.differ[d]++
			j.undo(before)
			return true
		}
	}
	if err == nil {
		j.note(st.SQL, stmt)
	}
	what := j.compare(st, res, err)
	if what == "" {
		j.agree++
		return true
	}
	if _, ok := stmt.(*sqlparse.Update); ok && err != nil && strings.HasPrefix(Describe(err).Class, "DATATYPE_MISMATCH.CAST") && st.Error == "" && len(st.Commits) == 0 {
		j.differ[earlyCast]++
		return true
	}
	d := difference("")
	if err == nil {
		d = j.excuse(st, res)
	}
	if d == "" {
		j.t.Errorf("%s (%s): %s\n%s", j.q.Name, j.q.Mode, st.SQL, what)
	} else {
		j.differ[d]++
	}
	return false
}

// execute runs a statement here as Spark's ran there.
func (j *judge) execute(stmt sqlparse.Statement) (*Result, error) {
	if m, ok := bySource(stmt); ok && (len(j.targetOnly(m)) > 0 || j.q.Mode == "cow" && !hasMatched(m)) {
		return j.mergeAsSpark(m)
	}
	return j.s.Execute(j.t.Context(), stmt)
}

// excuse names the reason why the answer to a statement differs from Spark's.
func (j *judge) excuse(st *step, res *Result) difference {
	if j.ids.moved && st.Columns == nil && strings.Contains(st.SQL, "_ROW_ID") {
		return keptRowID
	}
	if st.Columns == nil || st.Error != "" {
		return ""
	}
	names, ours, theirs := j.bothCells(st, res)
	if !slices.Equal(names, st.Columns) {
		return ""
	}
	return j.excusedCells(names, ours, theirs)
}

// bothCells are the rows of a query, and those that Spark gave.
func (j *judge) bothCells(st *step, res *Result) (names [][2]string, ours, theirs [][]string) {
	names, typs := columnTypes(res)
	ours, theirs = spellCells(typs, res.Rows, st.Ordered), spellRecordedCells(j.t, typs, st.Rows, st.Ordered)
	if names[0][0] == "_ROW_ID" {
		d := j.ids.translate(ours, theirs, j.q.Mode == "dv" && j.merged)
		if d != "" {
			j.differ[d]++
		}
		ours = sortedCells(ours, st.Ordered)
	}
	return names, ours, theirs
}

// files lists the files of the warehouse.
func (j *judge) files() map[string]bool {
	list := map[string]bool{}
	require.NoError(j.t, filepath.WalkDir(j.root, func(p string, d os.DirEntry, err error) error {
		list[p] = true
		return err
	}))
	return list
}

// undo removes what a statement has made, so that the table is as Spark's.
func (j *judge) undo(before map[string]bool) {
	for p := range j.files() {
		if !before[p] || strings.HasSuffix(p, "/LATEST") {
			require.NoError(j.t, os.RemoveAll(p))
		}
	}
}

// compare tells how an answer differs from the recorded one, "" if it does not.
func (j *judge) compare(st *step, res *Result, err error) string {
	switch {
	case err != nil && st.Error == "":
		return Render(st.SQL, err)
	case err == nil && st.Error != "":
		return "accepted, Spark: " + st.Error
	case err != nil:
		return compareClass(st, err)
	case st.Columns != nil:
		return j.compareRows(st, res)
	}
	return j.compareSnapshot(st, res)
}

// nameless are the classes that say nothing: of Java, or of Spark's errors without a name.
var nameless = regexp.MustCompile(`Exception$|^_LEGACY_ERROR_`)

// ourClasses are ours where Spark's name is about something else.
var ourClasses = map[string]string{
	"UNSUPPORTED_EXPR_FOR_OPERATOR": "MISSING_GROUP_BY", // an aggregate in the assignments of UPDATE
}

// compareClass compares the classes of errors, where Spark has a name for it.
func compareClass(st *step, err error) string {
	class := Describe(err).Class
	if class == st.Class || ourClasses[class] == st.Class || nameless.MatchString(st.Class) {
		return ""
	}
	return fmt.Sprintf("%s: %v\n  Spark %s: %s", class, err, st.Class, st.Error)
}

func (j *judge) compareRows(st *step, res *Result) string {
	names, ours, theirs := j.bothCells(st, res)
	if !slices.Equal(names, st.Columns) {
		return fmt.Sprintf("columns %v, Spark %v", names, st.Columns)
	}
	if slices.EqualFunc(ours, theirs, slices.Equal[[]string]) {
		return ""
	}
	return fmt.Sprintf("rows%s\n  Spark%s", showCells(ours), showCells(theirs))
}

// compareSnapshot compares the newest snapshot of t: its number, kind, operation and
// row counts.
func (j *judge) compareSnapshot(st *step, res *Result) string {
	have, ok := res.Snapshot["t"]
	if !ok {
		return ""
	}
	if have != st.Snapshot {
		return fmt.Sprintf("snapshot %d, Spark %d", have, st.Snapshot)
	}
	if len(st.Commits) == 0 {
		return ""
	}
	want := st.Commits[len(st.Commits)-1]
	_, t, err := (&run{Session: j.s}).open(j.t.Context(), sqlparse.Name{Parts: []sqlparse.Ident{{Name: "t"}}}, paimon.Read)
	require.NoError(j.t, err)
	s, err := paimon.ReadSnapshot(j.t.Context(), t.Bucket(), t.Paths(), have)
	require.NoError(j.t, err)
	got := fmt.Sprint(s.CommitKind, s.Operation, s.DeltaRecordCount, s.TotalRecordCount)
	if w := fmt.Sprint(want.Kind, want.Operation, want.Delta, want.Total); got != w {
		return fmt.Sprintf("commit %s, Spark %s", got, w)
	}
	return ""
}

func TestExecute_AgreesWithEveryRecordedStatement(t *testing.T) {
	file := "testdata/statements.jsonl.gz"
	if other := os.Getenv("APPLIER_RECORDED_STATEMENTS"); other != "" {
		file = other
	}
	agree, skipped, differ := 0, 0, map[difference]int{}
	for _, q := range recordedSequences(t, file) {
		s, root := newSession(t)
		j := &judge{t: t, s: s, q: &q, root: root, differ: differ}
		j.run()
		agree, skipped = agree+j.agree, skipped+j.skipped
	}
	t.Logf("%d steps agree, %d stand behind a difference that changes the table", agree, skipped)
	for d, n := range differ {
		t.Logf("%4d %s", n, d)
	}
	if other := os.Getenv("APPLIER_RECORDED_STATEMENTS"); other != "" {
		return
	}
	require.Equal(t, map[difference]int{
		defaultTaken: 29, engineBug: 42, defaultValue: 9, keptRowID: 6, fannedOut: 2, defaultFilled: 2, evolves: 2, prunedTarget: 6, rowIDOrder: 15,
		carriedDefault: 4, earlyCast: 1,
	}, differ)
	require.Equal(t, 4700, agree)
	require.Equal(t, 191, skipped)
}
