package sql

import (
	"context"
	"errors"
	"strings"
	"time"

	"applier/merger/assign"
	"applier/merger/expr"
	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// merging is a compiled MERGE. Rows have the target's columns, then the source's.
type merging struct {
	tg      *target
	e       *editor
	n       *sqlparse.Merge
	join    *join
	clauses [3][]*assign.Clause // by family
	row     expr.Row
	zone    *time.Location // of messages
}

func (r *run) merge(ctx context.Context, n *sqlparse.Merge, tg *target, e *editor) error {
	e.op = paimon.OperationMerge
	m := &merging{tg: tg, e: e, n: n, zone: r.zone}
	if err := r.compileMerge(ctx, m); err != nil {
		return err
	}
	m.row = make(expr.Row, len(tg.read)+m.join.width)
	if err := tg.scan(ctx, nil, func(entry *manifest.Entry, pos uint32, row expr.Row) error {
		return m.targetRow(ctx, entry, pos, row)
	}); err != nil {
		return err
	}
	return m.inserts(ctx)
}

func (r *run) compileMerge(ctx context.Context, m *merging) error {
	source, err := r.mergeSource(ctx, m.n, len(m.tg.read))
	if err != nil {
		return err
	}
	target := m.tg.scope(r)
	from := &expr.Scope{Columns: source.cols, Env: r.env}
	both := &expr.Scope{Columns: append(append([]expr.Column(nil), target.Columns...), from.Columns...), Env: r.env}
	if err := assign.Deterministic(m.n.On); err != nil {
		return err
	}
	for _, s := range []*expr.Scope{target, from, both} {
		s.Subquery = query.Subqueries(ctx, m.n.With, r, r.env) // of values
	}
	if m.join, err = newJoin(m.n.On, assign.WithoutSubqueries(target), assign.WithoutSubqueries(from), assign.WithoutSubqueries(both), source); err != nil {
		return err
	}
	for i := range m.n.Clauses {
		c := &m.n.Clauses[i]
		scope := both
		switch c.Family {
		case sqlparse.NotMatched:
			scope = from
		case sqlparse.NotMatchedBySource:
			scope = target
		}
		out, err := m.tg.Clause(c, scope, from)
		if err != nil {
			return seenBy(c.Family, err)
		}
		m.clauses[c.Family] = append(m.clauses[c.Family], out)
	}
	return nil
}

// seenBy adds to the error about an unknown column which columns a clause sees.
func seenBy(f sqlparse.MergeFamily, err error) error {
	var e *expr.Error
	side := map[sqlparse.MergeFamily]string{sqlparse.NotMatched: "source", sqlparse.NotMatchedBySource: "target"}[f]
	if side == "" || !errors.As(err, &e) || !strings.HasPrefix(e.Message, "there is no column") {
		return err
	}
	told := *e
	told.Message += " (this clause sees the columns of the " + side + " only)"
	return &told
}

// mergeRows are the rows of a MERGE's source, read once.
type mergeRows struct {
	cols []expr.Column
	rows []expr.Row
}

// starOf is the query of all columns of a MERGE's source.
func starOf(n *sqlparse.Merge) *sqlparse.Query {
	pos := n.Source.Position()
	star := sqlparse.SelectItem{Pos: pos, X: &sqlparse.Star{Pos: pos}}
	return &sqlparse.Query{Pos: pos, With: n.With, Body: &sqlparse.Select{Pos: pos, Items: []sqlparse.SelectItem{star}, From: n.Source}}
}

func (r *run) mergeSource(ctx context.Context, n *sqlparse.Merge, slot int) (*mergeRows, error) {
	p, err := query.Compile(ctx, starOf(n), r, r.env)
	if err != nil {
		return nil, err
	}
	out := &mergeRows{}
	name := r.sourceName(n.Source)
	for i, c := range p.Columns() {
		out.cols = append(out.cols, expr.Column{Qualifier: name, Name: c.Name, Type: c.Declared(), Slot: slot + i})
	}
	r.progress("reading the source")
	out.rows, err = p.Rows(ctx)
	return out, err
}

// sourceName is what may qualify the source's columns.
func (r *run) sourceName(s sqlparse.Relation) []string {
	var alias *sqlparse.Alias
	var name []string
	switch s := s.(type) {
	case *sqlparse.TableRef:
		alias, name = s.Alias, s.Table.Strings()
		if len(name) == 1 && r.views[strings.ToLower(name[0])] == nil {
			name = []string{r.o.Name, r.database, name[0]}
		} else if len(name) == 2 {
			name = append([]string{r.o.Name}, name...)
		}
	case *sqlparse.QueryRef:
		alias = s.Alias
	case *sqlparse.ValuesRef:
		alias = s.Alias
	}
	if alias != nil && alias.Name != "" {
		return []string{alias.Name}
	}
	return name
}

// targetRow joins a target row with the source and does what the clauses say.
func (m *merging) targetRow(ctx context.Context, entry *manifest.Entry, pos uint32, row expr.Row) error {
	copy(m.row, row)
	matches, err := m.join.matches(m.row)
	if err != nil {
		return err
	}
	family := sqlparse.Matched
	switch {
	case len(matches) == 0:
		family = sqlparse.NotMatchedBySource
		m.join.clear(m.row)
	case len(matches) > 1 && len(m.clauses[sqlparse.Matched]) > 0:
		return m.ambiguous(row, matches)
	default:
		m.join.set(m.row, matches[0])
	}
	if len(m.clauses[family]) == 0 {
		return nil
	}
	if !m.tg.t.Options().DeletionVectors {
		// Spark writes such a file again whether a clause applies or not, and makes a
		// snapshot of it: snapshots are numbered alike here.
		m.e.touch(entry)
	}
	at, err := assign.Choose(m.clauses[family], m.row)
	if at < 0 || err != nil {
		return err
	}
	c := m.clauses[family][at]
	if c.Action == sqlparse.MergeDelete {
		m.e.delete(entry, pos)
		return nil
	}
	next, err := m.tg.Apply(c.Set, row, m.row)
	if err != nil {
		return err
	}
	return m.e.update(ctx, entry, pos, row, next)
}

// inserts goes through the source rows without partner.
func (m *merging) inserts(ctx context.Context) error {
	if len(m.clauses[sqlparse.NotMatched]) == 0 {
		return nil
	}
	for i := range m.join.rows {
		if m.join.matched[i] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		m.join.set(m.row, i)
		at, err := assign.Choose(m.clauses[sqlparse.NotMatched], m.row)
		if err != nil {
			return err
		}
		if at < 0 {
			continue
		}
		out, err := m.tg.NewRow(m.clauses[sqlparse.NotMatched][at], m.row)
		if err != nil {
			return err
		}
		if err := m.e.insert(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// ambiguous is the error about a target row with more than one partner. It is judged
// on ON alone, as Paimon does, whatever the clauses' conditions say.
func (m *merging) ambiguous(row expr.Row, matches []int) error {
	key := m.join.keyText(m.row, m.zone)
	if key == "" {
		key = rowText(m.tg.cols, row, 0, m.zone)
	}
	shift := len(m.tg.read)
	return &expr.Error{Pos: m.n.On.Position(), Class: ClassAmbiguous, Message: "the target row with " + key +
		" is matched by more than one source row: " + rowText(m.join.cols, m.join.rows[matches[0]], shift, m.zone) + " and " +
		rowText(m.join.cols, m.join.rows[matches[1]], shift, m.zone) + "; leave one source row for each key before the merge"}
}

// rowText shows a row to people; shift is the slot of its first column.
func rowText(cols []expr.Column, row expr.Row, shift int, zone *time.Location) string {
	var parts []string
	for _, c := range cols {
		if !c.Hidden {
			parts = append(parts, c.Name+"="+valueText(c.Type, row[c.Slot-shift], zone))
		}
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// valueText shows a value to people, in the session's time zone.
func valueText(t expr.Type, d types.Datum, zone *time.Location) string {
	if d.Null {
		return "NULL"
	}
	return expr.Text(t, d, zone)
}
