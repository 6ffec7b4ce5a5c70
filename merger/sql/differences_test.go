package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"applier/merger/defaults"
	"applier/merger/expr"
	"applier/merger/internal/recorded"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/stretchr/testify/require"
)

// A difference is a step where we are not like Spark, on purpose: docs/sql.md lists
// them with their reasons. Each has a rule of its own for what it excuses: the kind of
// statement, the error, the cells. What the rule does not say is an error of ours.
type difference string

const (
	engineBug      difference = "Spark or the connector failed by a bug, or did the wrong thing"
	defaultTaken   difference = "a default that the connector cannot store is accepted"
	defaultFilled  difference = "a NOT NULL column with a default may be left out"
	carriedDefault difference = "a stored NULL stays NULL when its row is carried along"
	defaultValue   difference = "a text default is the value of the expression, not its spelling"
	prunedTarget   difference = "NOT MATCHED BY SOURCE sees the rows that ON excludes by the target's columns alone"
	fannedOut      difference = "MERGE without MATCHED clause keeps one copy of a row that several source rows match"
	rowIDOrder     difference = "row ids among the rows of one statement follow the order of writing"
	keptRowID      difference = "row ids survive MERGE with deletion vectors"
	evolves        difference = "MERGE WITH SCHEMA EVOLUTION adds columns"
	earlyCast      difference = "a cast that no value can pass is refused even if no row needs it"
)

// lifted names the limit of Spark that a statement shows which we accept.
func (j *judge) lifted(st *step, stmt sqlparse.Statement) difference {
	switch n := stmt.(type) {
	case *sqlparse.CreateTable, *sqlparse.AlterTable:
		for _, text := range rawDefaults(st.SQL, stmt) {
			for _, says := range []string{"For input string: '%s'.", "Text '%s' could not be parsed", "with default value ColumnDefaultValue{sql=%s,"} {
				if strings.Contains(st.Error, fmt.Sprintf(says, text)) {
					return defaultTaken
				}
			}
		}
	case *sqlparse.Insert:
		if column, ok := strings.CutPrefix(st.Error, "RuntimeException: Cannot write null to non-null column("); ok && j.filled(n, strings.TrimSuffix(column, ")")) {
			return defaultFilled
		}
	case *sqlparse.Merge:
		if n.SchemaEvolution && strings.Contains(st.Error, "Enable 'spark.paimon.write.merge-schema'") {
			return evolves
		}
	}
	return ""
}

// filled reports whether an INSERT leaves out a column that is NOT NULL and has a
// default.
func (j *judge) filled(n *sqlparse.Insert, column string) bool {
	f, ok := j.field(column)
	listed := slices.ContainsFunc(n.Columns, func(c sqlparse.Ident) bool { return sameName(c.Name, column) })
	return ok && f.Type.NotNull && f.Default != nil && n.Columns != nil && !listed
}

// rawDefaults are the texts of the defaults in a statement, as they are written: what
// Spark hands to the connector.
func rawDefaults(sql string, stmt sqlparse.Statement) (texts []string) {
	for _, d := range writtenDefaults(stmt) {
		texts = append(texts, rawText(sql, d.x))
	}
	return texts
}

// writtenDefault is a default that a statement gives a column.
type writtenDefault struct {
	column string
	x      sqlparse.Expr
}

func writtenDefaults(stmt sqlparse.Statement) (list []writtenDefault) {
	var defs []sqlparse.ColumnDef
	switch n := stmt.(type) {
	case *sqlparse.CreateTable:
		defs = n.Columns
	case *sqlparse.AlterTable:
		switch a := n.Action.(type) {
		case *sqlparse.AddColumns:
			defs = a.Columns
		case *sqlparse.AlterColumns:
			for _, c := range a.Changes {
				if c.Default != nil {
					list = append(list, writtenDefault{c.Path.Last(), c.Default})
				}
			}
		}
	}
	for _, d := range defs {
		if d.Default != nil {
			list = append(list, writtenDefault{d.Path.Last(), d.Default})
		}
	}
	return list
}

// rawText is the text of an expression in a statement: the longest that reads as it.
func rawText(sql string, x sqlparse.Expr) string {
	want, start := sqlparse.Format(x), x.Position().Offset
	best := ""
	for end := start + 1; end <= len(sql); end++ {
		if again, err := sqlparse.ParseExpr(sql[start:end]); err == nil && sqlparse.Format(again) == want {
			best = sql[start:end]
		}
	}
	return strings.TrimSpace(best)
}

// note remembers the texts of defaults, which the connector stores as they are written.
func (j *judge) note(sql string, stmt sqlparse.Statement) {
	for _, d := range writtenDefaults(stmt) {
		f, ok := j.field(d.column)
		if !ok {
			continue
		}
		ours, err := defaults.Constant(f)
		raw := rawText(sql, d.x)
		f.Default = &raw
		theirs, err2 := paimon.DefaultValue(f)
		if err == nil && err2 == nil && ours != nil && theirs != nil {
			j.defaults[d.column] = append(j.defaults[d.column], [2]string{spellStored(f.Type, *ours), spellStored(f.Type, *theirs)})
		}
	}
}

func spellStored(t types.Type, d types.Datum) string {
	et, _ := expr.FromStorage(t)
	return recorded.Spell(et, d)
}

// field finds a column of t as it is now.
func (j *judge) field(name string) (types.Field, bool) {
	_, tab, err := (&run{Session: j.s}).open(j.t.Context(), nameOf("t"), paimon.Read)
	if err != nil {
		return types.Field{}, false
	}
	at := tab.Schema().Column(name)
	if at < 0 {
		return types.Field{}, false
	}
	return tab.Schema().Fields[at], true
}

// excusedCells tells why rows differ from Spark's, if they are the same but for cells
// of columns that have had defaults: the value here and its spelling there, or, where
// the recording says that the connector has filled carried rows, NULL and the default.
func (j *judge) excusedCells(columns [][2]string, ours, theirs [][]string) difference {
	if len(ours) != len(theirs) {
		return ""
	}
	found := difference("")
	left := slices.Clone(theirs)
	for _, row := range ours {
		at, why := -1, difference("")
		for i, other := range left {
			if w, ok := j.sameButDefaults(columns, row, other); ok && (at < 0 || w == "") {
				at, why = i, w
			}
		}
		if at < 0 {
			return ""
		}
		left = slices.Delete(left, at, at+1)
		if why != "" {
			found = why
		}
	}
	return found
}

func (j *judge) sameButDefaults(columns [][2]string, ours, theirs []string) (why difference, ok bool) {
	for i := range ours {
		if ours[i] == theirs[i] || columns[i][0] == "_ROW_ID" { // which of their rows it is is not known
			continue
		}
		excuse := difference("")
		for _, d := range j.defaults[columns[i][0]] {
			switch {
			case ours[i] == d[0] && theirs[i] == d[1]:
				excuse = defaultValue
			case j.carried && ours[i] == "null" && theirs[i] == d[1]:
				excuse = carriedDefault
			}
		}
		if excuse == "" {
			return "", false
		}
		why = excuse
	}
	return why, true
}

// mergeAsSpark runs a MERGE with NOT MATCHED BY SOURCE as the connector does it: parts of
// ON that name only the target's columns choose, before the join, the rows that a table
// with vectors has, and the files that a copy-on-write table rewrites whole, where a row
// without MATCHED clause is written once for each source row that it matches.
func (j *judge) mergeAsSpark(n *sqlparse.Merge) (*Result, error) {
	r := &run{Session: j.s, env: testEnv(j.s)}
	skipped, copies := false, false
	res, err := r.changeBy(j.t.Context(), n.Table, n.Alias, func(ctx context.Context, r *run, tg *target, e *editor) error {
		e.op = paimon.OperationMerge
		m := &merging{tg: tg, e: e, n: n, zone: r.zone}
		if err := r.compileMerge(ctx, m); err != nil {
			return err
		}
		m.row = make(expr.Row, len(tg.read)+m.join.width)
		chosen, rewritten, err := j.chosen(ctx, r, m)
		if err != nil {
			return err
		}
		err = tg.scan(ctx, nil, func(entry *manifest.Entry, pos uint32, row expr.Row) error {
			k := paimon.KeyOf(entry)
			if cow := !tg.t.Options().DeletionVectors; cow && !rewritten[k] || !cow && !chosen[rowPlace{k, pos}] {
				skipped = skipped || !rewritten[k] && !chosen[rowPlace{k, pos}]
				return nil
			}
			if err := m.targetRow(ctx, entry, pos, row); err != nil {
				return err
			}
			if len(m.clauses[sqlparse.Matched]) > 0 || tg.t.Options().DeletionVectors {
				return nil
			}
			copy(m.row, row)
			matches, err := m.join.matches(m.row)
			if err != nil {
				return err
			}
			for range max(len(matches)-1, 0) {
				copies = true
				if err := e.insert(ctx, slices.Clone(row[:len(tg.Fields)])); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return m.inserts(ctx)
	})
	if err == nil && skipped && len(j.targetOnly(n)) > 0 {
		j.differ[prunedTarget]++
	}
	if copies {
		j.differ[fannedOut]++
	}
	return res, err
}

type rowPlace struct {
	file paimon.FileKey
	pos  uint32
}

// chosen are the rows that the parts of ON about the target choose, and the files with
// such a row that a clause could be about.
func (j *judge) chosen(ctx context.Context, r *run, m *merging) (map[rowPlace]bool, map[paimon.FileKey]bool, error) {
	rows, files := map[rowPlace]bool{}, map[paimon.FileKey]bool{}
	var parts []*expr.Expr
	for _, e := range j.targetOnly(m.n) {
		x, err := expr.CompileBool(e, m.tg.scope(r))
		if err != nil {
			return nil, nil, err
		}
		parts = append(parts, x)
	}
	err := m.tg.scan(ctx, nil, func(entry *manifest.Entry, pos uint32, row expr.Row) error {
		for _, x := range parts {
			if hit, err := x.Test(row); err != nil || !hit {
				return err
			}
		}
		copy(m.row, row)
		matches, err := m.join.matches(m.row)
		if err != nil {
			return err
		}
		family := sqlparse.Matched
		if len(matches) == 0 {
			family = sqlparse.NotMatchedBySource
		}
		rows[rowPlace{paimon.KeyOf(entry), pos}] = true
		if len(m.clauses[family]) > 0 {
			files[paimon.KeyOf(entry)] = true
		}
		return nil
	})
	return rows, files, err
}

// targetOnly are the parts of ON that name no column of the source.
func (j *judge) targetOnly(m *sqlparse.Merge) (list []sqlparse.Expr) {
	source := ""
	switch s := m.Source.(type) {
	case *sqlparse.TableRef:
		source = s.Table.Last()
		if s.Alias != nil {
			source = s.Alias.Name
		}
	case *sqlparse.QueryRef:
		source = s.Alias.Name
	}
	parts := []sqlparse.Expr{m.On}
	if l, ok := m.On.(*sqlparse.Logic); ok && l.Op == "AND" {
		parts = l.Args
	}
	for _, e := range parts {
		named := false
		sqlparse.Walk(e, func(n sqlparse.Node) bool {
			if c, ok := n.(*sqlparse.ColumnRef); ok {
				_, ours := j.field(c.Parts[0].Name)
				named = named || sameName(c.Parts[0].Name, source) || len(c.Parts) == 1 && !ours
			}
			return true
		})
		if !named {
			list = append(list, e)
		}
	}
	return list
}

func hasMatched(m *sqlparse.Merge) bool {
	return slices.ContainsFunc(m.Clauses, func(c sqlparse.MergeClause) bool { return c.Family == sqlparse.Matched })
}

// bySource reports whether a statement is a MERGE with NOT MATCHED BY SOURCE.
func bySource(stmt sqlparse.Statement) (*sqlparse.Merge, bool) {
	m, ok := stmt.(*sqlparse.Merge)
	return m, ok && slices.ContainsFunc(m.Clauses, func(c sqlparse.MergeClause) bool { return c.Family == sqlparse.NotMatchedBySource })
}

// rowIDs follows which of our row ids is which of Spark's.
type rowIDs struct {
	theirs        map[string]string // by ours
	ordered       bool              // told that they came in another order
	moved, toldOf bool              // Spark gave a row a new id
}

// translate replaces our ids, in the first cell, by those that Spark gave the same rows.
// An id that is new here belongs to one that is new there: of a row that is alike but
// for it. A row that is known keeps its id, unless vectors say that a MERGE of Spark's
// has given it a new one; who is to be told of for the first time is returned.
func (r *rowIDs) translate(ours, theirs [][]string, vectors bool) (tell difference) {
	taken := map[string]bool{}
	for _, t := range r.theirs {
		taken[t] = true
	}
	find := func(row []string, ok func(id string) bool) bool {
		at := slices.IndexFunc(theirs, func(o []string) bool { return slices.Equal(o[1:], row[1:]) && ok(o[0]) })
		if at >= 0 {
			r.theirs[row[0]], taken[theirs[at][0]] = theirs[at][0], true
		}
		return at >= 0
	}
	for _, row := range ours {
		id, known := r.theirs[row[0]]
		fresh := func(id string) bool { return !taken[id] }
		switch {
		case known && find(row, func(o string) bool { return o == id }):
		case known:
			r.moved = vectors && find(row, fresh) || r.moved
		case !find(row, func(o string) bool { return o == row[0] && !taken[o] }):
			find(row, fresh)
		}
	}
	for _, row := range ours {
		t, ok := r.theirs[row[0]]
		if ok && t != row[0] && !r.ordered && !r.moved {
			r.ordered, tell = true, rowIDOrder
		}
		if ok {
			row[0] = t
		}
	}
	if r.moved && !r.toldOf {
		r.toldOf, tell = true, keptRowID
	}
	return tell
}

// legal judges a statement that Spark could not run by a bug of its own: it runs here,
// or fails for the values of its rows, and nothing is left of it. Of a DELETE that removed the wrong
// rows those must be left for which the condition is not true.
func (j *judge) legal(st *step, stmt sqlparse.Statement) {
	d, ok := stmt.(*sqlparse.Delete)
	want := []string{}
	if ok && st.Error == "" {
		want = rows(j.t, j.s, "SELECT * FROM t WHERE NOT (("+sqlparse.Format(d.Where)+") <=> true)")
		slices.Sort(want)
	}
	_, err := j.s.Execute(j.t.Context(), stmt)
	if e := (*expr.Error)(nil); err != nil && (!errors.As(err, &e) || e.Analysis && e.Class != ClassNoDefault) {
		j.t.Errorf("%s: %v", st.SQL, err)
	}
	if ok && st.Error == "" {
		got := rows(j.t, j.s, "SELECT * FROM t")
		slices.Sort(got)
		require.Equal(j.t, want, got, st.SQL)
	}
}
