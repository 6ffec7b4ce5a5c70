package merger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"applier/merger/assign"
	"applier/merger/defaults"
	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/types"
)

// Merge is what changes do where no preset says it: the clauses of MERGE, in which s
// is a change and t a row of its key. The changes of a key are applied one by one, in
// the order of their arrival, each as a MERGE of its own: where a batch ends is chance.
type Merge struct {
	Clauses []sqlparse.MergeClause
	// SkipUnchanged leaves rows alone whose new version would equal them.
	SkipUnchanged bool
}

// Names of what a change has beside its columns.
const (
	changeOp        = "__op"        // c, u, r or d
	changeTime      = "__ts"        // change time, TIMESTAMP_LTZ(3)
	changeTopic     = "__topic"     // of its record
	changePartition = "__partition" // of its record
	changeOffset    = "__offset"    // of its record
)

// changeFields are what a change has beside its columns, in the order of their slots.
func changeFields() []types.Field {
	return []types.Field{
		{Name: changeOp, Type: types.StringType()},
		{Name: changeTime, Type: types.TimestampLTZType(3)},
		{Name: changeTopic, Type: types.StringType()},
		{Name: changePartition, Type: types.IntType()},
		{Name: changeOffset, Type: types.BigIntType()},
	}
}

// ParseMerge reads the clauses of a pipeline, one a line, without their WHEN. Errors
// name the line.
func ParseMerge(lines []string) ([]sqlparse.MergeClause, error) {
	var out []sqlparse.MergeClause
	var all []string
	for i, line := range lines {
		text := whenWord + line
		list, err := sqlparse.ParseWhen(text)
		switch {
		case err != nil:
			return nil, clauseError(i, err)
		case len(list) != 1:
			return nil, fmt.Errorf("merge.when[%d]: %d clauses in one line: write each as an item of its own", i, len(list))
		case list[0].Family == sqlparse.NotMatchedBySource:
			return nil, fmt.Errorf("merge.when[%d]: NOT MATCHED BY SOURCE is not supported in a pipeline: a batch is not the whole source, so rows without a change in it are not rows that the source has lost", i)
		}
		out, all = append(out, list[0]), append(all, text)
	}
	if _, err := sqlparse.ParseWhen(strings.Join(all, "\n")); err != nil { // what only all of them together show
		return nil, fmt.Errorf("merge.when: %w", err)
	}
	return out, nil
}

// whenWord stands before each clause.
const whenWord = "WHEN "

// clauseError says which clause is wrong, and where in what was written.
func clauseError(i int, err error) error {
	var p *sqlparse.Error
	var e *expr.Error
	shift := func(pos sqlparse.Pos) sqlparse.Pos {
		if pos.Line == 1 {
			pos.Col = max(pos.Col-len(whenWord), 1)
		}
		return pos
	}
	if errors.As(err, &p) {
		at := *p
		at.Pos = shift(p.Pos)
		err = &at
	} else if errors.As(err, &e) {
		at := *e
		at.Pos = shift(e.Pos)
		err = &at
	}
	return fmt.Errorf("merge.when[%d]: %w", i, err)
}

// text is what the digest of the settings covers: the clauses in one spelling.
func (m *Merge) text() string {
	s := sqlparse.Format(&sqlparse.Merge{
		Table: sqlparse.Name{Parts: []sqlparse.Ident{{Name: "t"}}}, Source: &sqlparse.TableRef{Table: sqlparse.Name{Parts: []sqlparse.Ident{{Name: "s"}}}},
		On: &sqlparse.BoolLit{Value: true}, Clauses: m.Clauses,
	})
	_, clauses, _ := strings.Cut(s, " WHEN ")
	return clauses
}

// CheckMerge reports whether clauses fit a table.
func CheckMerge(t *paimon.Table, key []int, clauses []sqlparse.MergeClause) error {
	list, err := defaults.Values(t.Schema(), nil)
	if err != nil {
		return err
	}
	_, err = compileWhen(t, key, clauses, list, time.Time{})
	return err
}

// whenClause is a clause as changes are put to it.
type whenClause struct {
	number int        // from 1, as written
	cond   *expr.Expr // nil: always
	action sqlparse.MergeAction
	set    []setting
}

// setting is a column, or a field in it, and where its value comes from.
type setting struct {
	col int
	// source is the column of the change that is the whole value, -1 for others. If a
	// is nil it is taken as it is.
	source int
	a      *assign.Assignment
}

// when are the clauses, compiled for one batch. Rows have the columns of the table,
// then those of a change and what it has beside them.
type when struct {
	target  assign.Target
	key     []int
	clauses [2][]*whenClause // matched, not matched
	acted   []int64          // by clause: rows it acted on
	checks  []func(types.Datum) error
	row     expr.Row
	change  heldChange
}

// compileWhen compiles clauses for a batch of the time now; values are the defaults
// of the columns then.
func compileWhen(t *paimon.Table, key []int, clauses []sqlparse.MergeClause, values []*types.Datum, now time.Time) (*when, error) {
	w, err := newWhen(t.Schema().Fields, key, clauses, values, now)
	for k, name := range t.Schema().PartitionKeys {
		w.checks[t.Schema().Column(name)] = t.PartitionCondition(k)
	}
	return w, err
}

func newWhen(fields []types.Field, key []int, clauses []sqlparse.MergeClause, values []*types.Datum, now time.Time) (*when, error) {
	w := &when{key: key, acted: make([]int64, len(clauses)), checks: make([]func(types.Datum) error, len(fields))}
	w.target = assign.Target{Name: "t", Qualifier: []string{"t"}, Fields: fields, Defaults: values}
	return w, w.compile(clauses, &expr.Env{Now: now})
}

func (w *when) compile(clauses []sqlparse.MergeClause, env *expr.Env) error {
	n := len(w.target.Fields)
	w.row = make(expr.Row, 2*n+len(changeFields()))
	w.change = newHeldChange(n)
	both, source := &expr.Scope{Env: env}, &expr.Scope{Env: env}
	for i, f := range w.target.Fields {
		if c, ok := expr.TableColumn(w.target.Qualifier, f, i); ok {
			both.Columns = append(both.Columns, c)
		}
	}
	for i, f := range append(slices.Clone(w.target.Fields), changeFields()...) {
		f.Type.NotNull = false // a change may lack it
		if i >= n && w.target.Column(f.Name) >= 0 {
			return fmt.Errorf("merge.when: the table has a column %s, which is the name of what s.%s says of a change; rename the column", f.Name, f.Name)
		}
		if c, ok := expr.TableColumn([]string{"s"}, f, n+i); ok {
			source.Columns = append(source.Columns, c)
		}
	}
	both.Columns = append(both.Columns, source.Columns...)
	for i := range clauses {
		scope := both
		if clauses[i].Family == sqlparse.NotMatched {
			scope = source
		}
		c, err := w.clause(&clauses[i], scope)
		if err == nil {
			err = w.checkClause(c, clauses[i].Family)
		}
		if err != nil {
			return clauseError(i, err)
		}
		c.number = i + 1
		w.clauses[clauses[i].Family] = append(w.clauses[clauses[i].Family], c)
	}
	return nil
}

func (w *when) clause(c *sqlparse.MergeClause, scope *expr.Scope) (*whenClause, error) {
	out := &whenClause{action: c.Action}
	if c.Action == sqlparse.MergeUpdateStar || c.Action == sqlparse.MergeInsertStar {
		for i := range w.target.Fields {
			out.set = append(out.set, setting{col: i, source: i})
		}
		if c.Cond == nil {
			return out, nil
		}
		var err error
		out.cond, err = expr.CompileBool(c.Cond, scope)
		return out, err
	}
	compiled, err := w.target.Clause(c, scope, scope)
	if err != nil {
		return nil, err
	}
	out.cond = compiled.Cond
	for i := range compiled.Set {
		out.set = append(out.set, w.setting(&compiled.Set[i], c.Set[i].Value, scope))
	}
	for i, name := range c.Columns {
		col, _, err := w.target.Resolve(name)
		if err != nil {
			return nil, err
		}
		out.set = append(out.set, w.setting(compiled.Insert[col], c.Values[i], scope))
	}
	return out, nil
}

// setting tells whether the value of an assignment is a column of the change.
func (w *when) setting(a *assign.Assignment, value sqlparse.Expr, scope *expr.Scope) setting {
	s := setting{col: a.Col, source: -1, a: a}
	ref, ok := value.(*sqlparse.ColumnRef)
	if !ok || len(ref.Parts) > 2 || len(ref.Parts) == 2 && !strings.EqualFold(ref.Parts[0].Name, "s") {
		return s
	}
	n := len(w.target.Fields)
	x, err := expr.Compile(ref, scope)
	if err != nil || len(x.Slots()) != 1 || x.Slots()[0] < n || x.Slots()[0] >= 2*n {
		return s
	}
	from := x.Slots()[0] - n
	if !strings.EqualFold(ref.Last(), w.target.Fields[from].Name) {
		return s // a field of a column s
	}
	s.source = from
	if a.Whole() && w.target.Fields[from].Type.EqualIgnoringNull(w.target.Fields[a.Col].Type) {
		s.a = nil
	}
	return s
}

// checkClause refuses clauses that would take a row to another key, or that could
// never insert.
func (w *when) checkClause(c *whenClause, family sqlparse.MergeFamily) error {
	given := map[int]bool{}
	for _, s := range c.set {
		given[s.col] = true
		if name := w.target.Fields[s.col].Name; slices.Contains(w.key, s.col) && (s.a != nil || s.source != s.col) {
			return fmt.Errorf("column %s is a merge key: a clause can give it s.%s only", name, name)
		}
	}
	if family != sqlparse.NotMatched {
		return nil
	}
	for i, f := range w.target.Fields {
		switch {
		case given[i]:
		case slices.Contains(w.key, i):
			return fmt.Errorf("INSERT must give merge key %s the value s.%s", f.Name, f.Name)
		case f.Type.NotNull && w.target.Defaults[i] == nil:
			return fmt.Errorf("INSERT gives no value to column %s, which is NOT NULL and has no default", f.Name)
		}
	}
	return nil
}
