package expr

import (
	"slices"
	"strings"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Column is a column in reach of an expression.
type Column struct {
	// Qualifier are the names that may stand before the column's: catalog,
	// database, table; or an alias alone. Any tail of it will do.
	Qualifier []string
	Name      string
	Type      Type
	// Slot is the column's place in the row.
	Slot int
	// Hidden columns are found by name only: * does not list them.
	Hidden bool
	// load turns a stored value into one of Type; nil if they are the same.
	load func(types.Datum) types.Datum
}

// Subquery is a compiled query inside an expression.
type Subquery interface {
	// Types are those of its columns.
	Types() []Type
	// Correlated reports whether it uses columns of the query around it; if not,
	// it is run once.
	Correlated() bool
	// Run returns its rows; outer are the rows of the queries around it, the
	// nearest first. It stops after limit rows if limit is positive.
	Run(outer []Row, limit int) ([]Row, error)
}

// Scope is what an expression can name.
type Scope struct {
	Columns []Column
	// Env is the statement's; nil means UTC and the epoch.
	Env *Env
	// Outer is the scope of the query around a sub-query.
	Outer *Scope
	// Rewrite, if not nil, is asked for every part of an expression before it is
	// compiled: a query that has grouped its rows finds aggregates and group keys
	// in columns of their own. An error ends compiling.
	Rewrite func(sqlparse.Expr) (col Column, ok bool, err error)
	// Subquery compiles a sub-query; nil refuses them.
	Subquery func(q *sqlparse.Query, around *Scope) (Subquery, error)
	// OnOuter, if not nil, is told when a column of an outer scope is used, with
	// the number of scopes between.
	OnOuter func(depth int)
	// Lazy leaves a constant part that cannot be computed until a row needs it.
	Lazy bool
	// Used, if not nil, is told the slot of every column of this scope that an
	// expression reads, sub-queries included.
	Used func(slot int)
}

// find returns the columns that a name may mean, the parts left over as fields
// of a struct, and how many there are.
func (s *Scope) find(parts []string) (cols []Column, fields []string) {
	for n := min(len(parts)-1, 3); n >= 0; n-- {
		for _, c := range s.Columns {
			if strings.EqualFold(c.Name, parts[n]) && endsWith(c.Qualifier, parts[:n]) &&
				!slices.ContainsFunc(cols, func(o Column) bool { return o.Slot == c.Slot }) {
				cols = append(cols, c)
			}
		}
		if len(cols) > 0 {
			return cols, parts[n+1:]
		}
	}
	return nil, nil
}

// endsWith reports whether tail is the end of the names q.
func endsWith(q, tail []string) bool {
	return len(tail) <= len(q) && slices.EqualFunc(q[len(q)-len(tail):], tail, strings.EqualFold)
}

// column compiles a name: a lambda's variable, a column with fields, or a
// function that needs no parentheses.
func (c *compiler) column(e *sqlparse.ColumnRef) *node {
	parts := e.Strings()
	pos := e.Position()
	if v, ok := c.variable(parts[0]); ok {
		return c.fields(v, pos, parts[1:])
	}
	depth := 0
	for s := c.scope; s != nil; s, depth = s.Outer, depth+1 {
		cols, fields := s.find(parts)
		switch {
		case len(cols) > 1:
			return c.fail(pos, "AMBIGUOUS_REFERENCE", "the name %s is ambiguous, it could be %s", e.Name, strings.Join(columnNames(cols), " or "))
		case len(cols) == 1:
			if depth > 0 && c.scope.OnOuter != nil {
				c.scope.OnOuter(depth)
			}
			if s.Used != nil {
				s.Used(cols[0].Slot)
			}
			n := columnNode(cols[0], pos, depth)
			return c.fields(n, pos, fields)
		}
	}
	if len(parts) == 1 {
		if f, ok := bareFunctions[strings.ToLower(parts[0])]; ok {
			return f(c, pos)
		}
	}
	return c.unresolved(e)
}

// unresolved reports a name that nothing has, with the nearest that something has.
func (c *compiler) unresolved(e *sqlparse.ColumnRef) *node {
	var names []string
	for s := c.scope; s != nil; s = s.Outer {
		for _, col := range s.Columns {
			if !col.Hidden {
				names = append(names, col.Name)
			}
		}
	}
	if len(names) == 0 {
		return c.fail(e.Position(), "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "there is no column %s here: no columns are in reach", e.Name)
	}
	if near := sqlparse.Nearest(e.Last(), names); near != "" {
		return c.fail(e.Position(), "UNRESOLVED_COLUMN.WITH_SUGGESTION", "there is no column %s, did you mean %s?", e.Name, near)
	}
	return c.fail(e.Position(), "UNRESOLVED_COLUMN.WITH_SUGGESTION", "there is no column %s, there are %s", e.Name, strings.Join(names[:min(len(names), 8)], ", "))
}

func columnNames(cols []Column) []string {
	names := make([]string, len(cols))
	for i, c := range cols {
		names[i] = strings.Join(append(slices.Clone(c.Qualifier), c.Name), ".")
	}
	return names
}

// columnNode reads a column; depth counts the queries between.
func columnNode(col Column, pos sqlparse.Pos, depth int) *node {
	n := &node{typ: col.Type.plain(), pos: pos, name: col.Name}
	slot := col.Slot
	switch depth {
	case 0:
		n.eval = func(f *frame) (types.Datum, error) { return f.row[slot], nil }
	default:
		n.eval = func(f *frame) (types.Datum, error) {
			for range depth {
				f = f.outer
			}
			return f.row[slot], nil
		}
	}
	if load := col.load; load != nil {
		eval := n.eval
		n.eval = func(f *frame) (types.Datum, error) {
			d, err := eval(f)
			return load(d), err
		}
	}
	if col.Type.Char && col.Type.Length > 0 {
		n.char = col.Type.Length
		n.eval = padded(n.eval, n.char)
	}
	return n
}

// padded fills a CHAR(n) with blanks: other engines store it without.
func padded(eval evalFn, n int) evalFn {
	return func(f *frame) (types.Datum, error) {
		d, err := eval(f)
		if err != nil || d.Null {
			return d, err
		}
		return types.BytesDatum(padBlanks(d.B, n)), nil
	}
}

// fields reads struct fields, one after the other.
func (c *compiler) fields(n *node, pos sqlparse.Pos, names []string) *node {
	for _, name := range names {
		n = c.field(n, pos, name)
	}
	return n
}
