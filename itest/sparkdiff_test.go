//go:build itest

package itest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// sparkRun is one seeded comparison of `applier sql` with Spark.
type sparkRun struct {
	t         *testing.T
	r         *rand.Rand
	spark     harness.SparkPeer
	warehouse string
	compared  int
	failed    int // of them, refused by both
	shrinks   int
	excused   map[string]int // listed differences that were met
}

// newSparkRun logs its seed; SPARK_SEED gives another one. The short run has the same
// one every time, the full run a new one.
func newSparkRun(t *testing.T) *sparkRun {
	seed := uint64(5)
	if fullMatrix {
		seed = uint64(time.Now().UnixNano())
	}
	if s := os.Getenv("SPARK_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "SPARK_SEED")
	}
	t.Logf("SPARK_SEED=%d", seed)
	return &sparkRun{t: t, r: rand.New(rand.NewPCG(seed, 0)), spark: harness.Spark(t), warehouse: t.TempDir(), excused: map[string]int{}}
}

// countOf reads how much to run from the environment; the full run has 10,000.
func countOf(t *testing.T, name string, otherwise int) int {
	s := os.Getenv(name)
	switch {
	case s == "" && fullMatrix:
		return 10_000
	case s == "":
		return otherwise
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err, name)
	return n
}

// both runs the same statements here and in Spark.
func (s *sparkRun) both(statements ...string) (ours, theirs []harness.SQLAnswer) {
	s.t.Helper()
	theirs, err := s.spark.Run(s.t.Context(), statements...)
	require.NoError(s.t, err)
	ours, err = harness.ApplierSQL(s.t.Context(), s.t, s.warehouse, statements...)
	require.NoError(s.t, err)
	return ours, theirs
}

// setUp runs statements that Spark and we have to carry out.
func (s *sparkRun) setUp(ours, theirs []string) {
	s.t.Helper()
	answers, err := s.spark.Run(s.t.Context(), theirs...)
	require.NoError(s.t, err)
	if len(ours) > 0 {
		more, err := harness.ApplierSQL(s.t.Context(), s.t, s.warehouse, ours...)
		require.NoError(s.t, err)
		answers = append(answers, more...)
	}
	for i, a := range answers {
		if a.Error != nil {
			s.t.Fatalf("setting up: %s: %s\n%s", a.Error.Class, a.Error.Message, slices.Concat(theirs, ours)[i])
		}
	}
}

// differ says how two answers differ, "" if they agree. Rows are compared in the
// order in which they came, or as a multiset.
func differ(ours, theirs harness.SQLAnswer, ordered bool) string {
	switch {
	case ours.Error != nil && theirs.Error != nil:
		if ours.Error.Class == theirs.Error.Class {
			return ""
		}
		return fmt.Sprintf("ours:  %s: %s\nspark: %s: %s", ours.Error.Class, ours.Error.Message, theirs.Error.Class, theirs.Error.Message)
	case ours.Error != nil:
		return fmt.Sprintf("ours:  %s: %s\nspark: %s", ours.Error.Class, ours.Error.Message, rowsText(theirs))
	case theirs.Error != nil:
		return fmt.Sprintf("ours:  %s\nspark: %s: %s", rowsText(ours), theirs.Error.Class, theirs.Error.Message)
	}
	if !slices.Equal(ours.Columns, theirs.Columns) {
		return fmt.Sprintf("ours:  %v\nspark: %v", ours.Columns, theirs.Columns)
	}
	a, b := slices.Clone(ours.Rows), slices.Clone(theirs.Rows)
	if !ordered {
		slices.SortFunc(a, func(x, y json.RawMessage) int { return bytes.Compare(x, y) })
		slices.SortFunc(b, func(x, y json.RawMessage) int { return bytes.Compare(x, y) })
	}
	if slices.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) }) {
		return ""
	}
	return fmt.Sprintf("ours:  %s\nspark: %s", rowsText(ours), rowsText(theirs))
}

func rowsText(a harness.SQLAnswer) string {
	var b strings.Builder
	for _, c := range a.Columns {
		fmt.Fprintf(&b, "%s %s, ", c[0], c[1])
	}
	for _, r := range a.Rows {
		b.WriteString("\n       " + string(r))
	}
	return b.String()
}

// expressionRows is how many rows every expression is computed for.
const expressionRows = 6

// expressionTable makes the table e of all kinds of columns on both sides, and
// returns the columns by kind.
func (s *sparkRun) expressionTable(g *exprGen, name string) map[byte][]string {
	columns := map[byte][]string{}
	definitions, kinds := []string{"id INT"}, []byte{}
	for _, k := range []byte(everyKind) {
		for i, typ := range sparkTypes[k] {
			c := fmt.Sprintf("%c%d", k, i)
			if k < 'a' { // names do not know case
				c = strings.ToLower(c[:1] + c)
			}
			columns[k] = append(columns[k], c)
			definitions, kinds = append(definitions, c+" "+typ), append(kinds, k)
		}
	}
	var rows []string
	for id := range expressionRows {
		row := []string{strconv.Itoa(id)}
		for i, k := range kinds {
			_, typ, _ := strings.Cut(definitions[i+1], " ")
			row = append(row, fmt.Sprintf("TRY_CAST(%s AS %s)", g.literal(k), typ))
		}
		rows = append(rows, "("+strings.Join(row, ", ")+")")
	}
	create := func(name, format string) string {
		return fmt.Sprintf("CREATE TABLE %s (%s) USING %s", name, strings.Join(definitions, ", "), format)
	}
	insert := func(name string) string { return "INSERT INTO " + name + " VALUES " + strings.Join(rows, ", ") }
	own := "spark_catalog.default." + name
	view := fmt.Sprintf("CREATE TEMPORARY VIEW %s AS SELECT * FROM %s", name, own)
	s.setUp([]string{create(name, "paimon"), insert(name)}, []string{create(own, "parquet"), insert(own), view})
	return columns
}

// expressions compares one batch of random expressions on a table of their own.
func (s *sparkRun) expressions(table string, count int) {
	g := &exprGen{r: s.r}
	g.columns = s.expressionTable(g, table)
	var batch, statements []string
	var parts [][]string
	for range count {
		g.parts = nil
		x := g.expr(pick(s.r, []byte(everyKind)), 1+s.r.IntN(3))
		batch, parts = append(batch, x), append(parts, g.parts)
		statements = append(statements, selectOf(x, table))
	}
	ours, err := harness.ApplierSQL(s.t.Context(), s.t, s.warehouse, statements...)
	require.NoError(s.t, err)
	theirs := s.inSpark(table, batch, ours)
	for i, x := range batch {
		s.compared++
		if ours[i].Error != nil && theirs[i].Error != nil {
			s.failed++
		}
		diff := differ(ours[i], theirs[i], true)
		if diff == "" {
			continue
		}
		if why := s.excuse(x, table, ours[i], theirs[i]); why != "" {
			s.excused[why]++
		} else {
			x, diff = s.smallest(table, x, diff, parts[i])
			s.t.Errorf("%s\n%s", x, diff)
		}
	}
}

// packed is how many expressions Spark computes in one query: most of a query's time
// does not depend on what it computes.
const packed = 12

// inSpark returns Spark's answers. Those that we can compute are asked for together,
// and again one by one if one of them fails; those that we refuse one by one.
func (s *sparkRun) inSpark(table string, batch []string, ours []harness.SQLAnswer) []harness.SQLAnswer {
	answers := make([]harness.SQLAnswer, len(batch))
	var alone, together []int
	for i, a := range ours {
		if a.Error != nil {
			alone = append(alone, i)
		} else {
			together = append(together, i)
		}
	}
	var packs [][]int
	var statements []string
	for pack := range slices.Chunk(together, packed) {
		var list []string
		for _, i := range pack {
			list = append(list, fmt.Sprintf("%s AS v%d", batch[i], i))
		}
		packs = append(packs, pack)
		statements = append(statements, fmt.Sprintf("SELECT id, %s FROM %s", strings.Join(list, ", "), table))
	}
	got, err := s.spark.Run(s.t.Context(), statements...)
	require.NoError(s.t, err)
	for p, pack := range packs {
		if got[p].Error != nil {
			alone = append(alone, pack...)
			continue
		}
		for n, i := range pack {
			answers[i] = column(s.t, got[p], n+1)
		}
	}
	statements = nil
	for _, i := range alone {
		statements = append(statements, selectOf(batch[i], table))
	}
	got, err = s.spark.Run(s.t.Context(), statements...)
	require.NoError(s.t, err)
	for n, i := range alone {
		answers[i] = got[n]
	}
	return answers
}

// column is the answer to a query for id and one of the columns only.
func column(t *testing.T, a harness.SQLAnswer, n int) harness.SQLAnswer {
	out := harness.SQLAnswer{Columns: [][2]string{a.Columns[0], {"v", a.Columns[n][1]}}, Rows: []json.RawMessage{}}
	for _, row := range a.Rows {
		var cells []json.RawMessage
		require.NoError(t, json.Unmarshal(row, &cells))
		out.Rows = append(out.Rows, fmt.Appendf(nil, "[%s,%s]", cells[0], cells[n]))
	}
	return out
}

func selectOf(x, table string) string { return fmt.Sprintf("SELECT id, %s AS v FROM %s", x, table) }

// smallest looks for a part of an expression over which we already differ.
func (s *sparkRun) smallest(table, whole, diff string, parts []string) (string, string) {
	slices.SortStableFunc(parts, func(a, b string) int { return len(a) - len(b) })
	var statements []string
	for _, p := range parts {
		statements = append(statements, selectOf(p, table))
	}
	ours, theirs := s.both(statements...)
	for i, p := range parts {
		if d := differ(ours[i], theirs[i], true); d != "" && s.excuse(p, table, ours[i], theirs[i]) == "" {
			return fmt.Sprintf("%s (in %s)", p, whole), d
		}
	}
	return whole, diff
}

func TestSpark_ComputesTheSameExpressions(t *testing.T) {
	t.Parallel()
	s := newSparkRun(t)
	const batch = 50
	count := countOf(t, "SPARK_EXPRESSIONS", 300)
	for i := range (count + batch - 1) / batch {
		s.expressions(fmt.Sprintf("e%d", i), batch)
	}
	t.Logf("%d expressions, %d of them refused by both; listed differences: %v", s.compared, s.failed, s.excused)
}

// statements compares a table's life: count statements, after each its rows.
func (s *sparkRun) statements(name string, count int) {
	t := (&exprGen{r: s.r}).newTable(name)
	s.setUp([]string{t.ours}, []string{t.theirs})
	var story []sparkStep
	run := func(sql string, step sparkStep) bool {
		step.ours, step.theirs = twinTexts(sql)
		story = append(story, step)
		ours, theirs := s.bothOf(name, step)
		s.compared++
		if ours[0].Error != nil && theirs[0].Error != nil {
			s.failed++
		}
		diff, why := s.judge(step, ours, theirs)
		if diff != "" && why == "" {
			why = s.unneeded(t, story, ours[0])
		}
		switch {
		case diff != "" && why != "":
			s.excused[why]++ // the tables may be no twins any more
		case diff != "":
			s.t.Errorf("%s\n%s", s.shortest(t, story), diff)
		}
		return diff == ""
	}
	agree := run(fmt.Sprintf("INSERT INTO %s VALUES %s", name, t.values(t.columns, 8)), sparkStep{})
	for i := 1; i < count && agree; i++ {
		if q, ordered := t.query(); t.chance(6) {
			agree = run(q, sparkStep{reads: true, ordered: ordered})
		} else {
			agree = run(t.statement(), sparkStep{})
		}
	}
	s.setUp(nil, []string{"DROP TABLE " + name})
}

// sparkStep is a statement of a table's life.
type sparkStep struct {
	ours, theirs string
	reads        bool // it is a query
	ordered      bool // its rows have a total order
}

// bothOf runs a step on both twins, and reads the table behind it if it may have changed.
func (s *sparkRun) bothOf(table string, p sparkStep) (ours, theirs []harness.SQLAnswer) {
	s.t.Helper()
	theirs, err := s.spark.Run(s.t.Context(), p.theirs)
	require.NoError(s.t, err)
	ours, err = harness.ApplierSQL(s.t.Context(), s.t, s.warehouse, p.ours)
	require.NoError(s.t, err)
	if p.reads || ours[0].Error != nil && theirs[0].Error != nil {
		return ours, theirs
	}
	a, b := s.both("SELECT * FROM " + table)
	return append(ours, a...), append(theirs, b...)
}

// judge says how the answers to a step and to the look at the table behind it
// differ, and why that is right if it is.
func (s *sparkRun) judge(p sparkStep, ours, theirs []harness.SQLAnswer) (diff, why string) {
	if diff = differ(ours[0], theirs[0], p.ordered); diff != "" || len(ours) == 1 {
		return diff, excuse(p.ours, ours[0], theirs[0])
	}
	return differ(ours[1], theirs[1], false), excuseRows(p.ours, ours[1], theirs[1])
}

// shrunk is how many failures are told in short: each takes as many replays as the
// table has had statements.
const shrunk = 3

// shortest returns the statements of a story that the last one needs to differ.
func (s *sparkRun) shortest(t *tableGen, story []sparkStep) string {
	if s.shrinks++; s.shrinks <= shrunk {
		for i := len(story) - 2; i >= 0; i-- {
			if shorter := slices.Delete(slices.Clone(story), i, i+1); s.differs(t, shorter) {
				story = shorter
			}
		}
	}
	texts := []string{t.ours}
	for _, p := range story {
		texts = append(texts, p.ours)
		if p.theirs != p.ours {
			texts = append(texts, "-- in Spark: "+p.theirs)
		}
	}
	return strings.Join(texts, ";\n")
}

// differs replays a story on new twins and tells whether its last step still differs.
func (s *sparkRun) differs(t *tableGen, story []sparkStep) bool {
	drop := "DROP TABLE " + t.name
	s.setUp([]string{drop, t.ours}, []string{drop, t.theirs})
	for i, p := range story {
		ours, theirs := s.bothOf(t.name, p)
		if diff, why := s.judge(p, ours, theirs); diff != "" {
			return why == "" && i == len(story)-1
		}
	}
	return false
}

func TestSpark_RunsStatementsAsWeDo(t *testing.T) {
	t.Parallel()
	s := newSparkRun(t)
	count := countOf(t, "SPARK_STATEMENTS", 150)
	for i := 0; s.compared < count; i++ {
		s.statements(fmt.Sprintf("t%d", i), min(12, count-s.compared))
	}
	t.Logf("%d statements, %d of them refused by both; listed differences: %v", s.compared, s.failed, s.excused)
}
