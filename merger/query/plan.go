package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"applier/merger/expr"
	"applier/merger/sqlparse"
)

// Relation is a table, a view or another list of rows that a name stands for.
type Relation struct {
	// Name is what may qualify the columns: catalog, database, table.
	Name []string
	// Columns are in the order of *; their Qualifier is not used.
	Columns []expr.Column
	// Scan hands each row to yield and ends with yield's error. Only the columns of the
	// slots in need are read; the others may hold anything. The slice may be reused,
	// what the values point at stays valid until the query's end.
	Scan func(ctx context.Context, need []int, yield func(expr.Row) error) error
	// Narrow, if not nil, is told of the condition that the query has for the rows of
	// this relation alone, with what qualifies its columns there: Scan may leave out rows
	// for which it is not true, unless that hides an error.
	Narrow func(where sqlparse.Expr, qualifier []string)
	// Explain, if not nil, says what Scan will read.
	Explain func(ctx context.Context, need []int) (string, error)
	// View is the query of a view, instead of Columns and Scan.
	View *sqlparse.Query
}

// Source finds what the names in a query stand for.
type Source interface {
	// Table returns a table or view, at the point of time travel that ref asks for.
	Table(ctx context.Context, ref *sqlparse.TableRef) (*Relation, error)
}

// Column is an output column.
type Column struct {
	Name string
	Type expr.Type
	// Char is n if it is a CHAR(n) column of a table, passed on as it is.
	Char int
}

// Declared is the type of the column for what is built upon the plan: a CHAR compares
// as one there, too.
func (c Column) Declared() expr.Type {
	t := c.Type
	if c.Char > 0 {
		t.Length, t.Char = c.Char, true
	}
	return t
}

// Plan is a compiled query. One goroutine runs it at a time.
type Plan struct {
	cols       []Column
	correlated bool
	scan       scan
	reads      []func(context.Context) (string, error)
}

// scan hands rows to yield; the slice is the scan's own.
type scan func(r *run, yield func(expr.Row) error) error

// run is one execution: its context and the rows of the queries around.
type run struct {
	ctx   context.Context
	outer []expr.Row
}

// errStop ends a scan early; it never leaves the package.
var errStop = errors.New("enough rows")

// Compile resolves a query. Errors are *expr.Error, *sqlparse.Error or the source's.
func Compile(ctx context.Context, q *sqlparse.Query, src Source, env *expr.Env) (*Plan, error) {
	b := &builder{ctx: ctx, src: src, env: env, reads: new([]func(context.Context) (string, error))}
	p, err := b.query(q, nil)
	if err == nil {
		p.reads = *b.reads
	}
	return p, err
}

// Reads says what the query reads of each table, in the order of the text.
func (p *Plan) Reads(ctx context.Context) ([]string, error) {
	var lines []string
	for _, read := range p.reads {
		line, err := read(ctx)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// Subqueries returns what compiles the sub-queries of conditions outside of a query,
// as those of UPDATE and DELETE: the Subquery of an expr.Scope. with are the named
// queries that they can see.
func Subqueries(ctx context.Context, with []sqlparse.CTE, src Source, env *expr.Env) func(*sqlparse.Query, *expr.Scope) (expr.Subquery, error) {
	b := &builder{ctx: ctx, src: src, env: env}
	for _, c := range with {
		b.ctes = append(b.ctes, cte{c, len(b.ctes)})
	}
	return b.subquery
}

// Columns returns the output columns.
func (p *Plan) Columns() []Column { return p.cols }

// Run hands the rows to yield, in order if the query orders them, and ends with
// yield's error or the context's. The slice may be reused.
func (p *Plan) Run(ctx context.Context, yield func(expr.Row) error) error {
	return p.scan(&run{ctx: ctx}, yield)
}

// Rows runs the query and keeps all rows.
func (p *Plan) Rows(ctx context.Context) ([]expr.Row, error) {
	return collect(p.scan, &run{ctx: ctx}, 0)
}

// collect keeps the rows of a scan, at most limit if that is positive.
func collect(s scan, r *run, limit int) ([]expr.Row, error) {
	var rows []expr.Row
	err := s(r, func(row expr.Row) error {
		rows = append(rows, append(expr.Row{}, row...))
		if limit > 0 && len(rows) >= limit {
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	return rows, nil
}

// builder compiles queries; ctes are the WITH lists in reach, innermost last.
type builder struct {
	ctx   context.Context
	src   Source
	env   *expr.Env
	ctes  []cte
	depth int
	// reads gathers what the tables of a query say about it; nil for sub-queries of
	// conditions.
	reads *[]func(context.Context) (string, error)
}

// cte is a named query with the number of names that its own text can see.
type cte struct {
	sqlparse.CTE
	sees int
}

// maxDepth bounds views in views and queries in queries.
const maxDepth = 64

// query compiles a query with what stands around its body; around is the scope of
// the query that it is a part of, nil if none.
func (b *builder) query(q *sqlparse.Query, around *expr.Scope) (*Plan, error) {
	if b.depth++; b.depth > maxDepth {
		return nil, fail(q.Pos, "VIEW_EXCEED_MAX_NESTED_DEPTH", "queries and views are nested more than %d deep", maxDepth)
	}
	defer func(n int) { b.ctes, b.depth = b.ctes[:n], b.depth-1 }(len(b.ctes))
	for _, c := range q.With {
		b.ctes = append(b.ctes, cte{c, len(b.ctes)})
	}
	p := &Plan{}
	var err error
	if s, ok := q.Body.(*sqlparse.Select); ok {
		err = b.selectQuery(p, s, q, around)
	} else if err = b.body(p, q.Body, around); err == nil {
		err = b.orderOutputs(p, q, around)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// body compiles what is no SELECT with an ORDER BY of its own.
func (b *builder) body(p *Plan, body sqlparse.QueryBody, around *expr.Scope) error {
	switch body := body.(type) {
	case *sqlparse.Select:
		return b.selectQuery(p, body, &sqlparse.Query{Pos: body.Pos}, around)
	case *sqlparse.SubQuery:
		sub, err := b.query(body.Query, around)
		if err == nil {
			*p = Plan{cols: sub.cols, scan: sub.scan, correlated: p.correlated || sub.correlated}
		}
		return err
	case *sqlparse.Values:
		return b.values(p, body, around)
	case *sqlparse.SetOp:
		return b.setOp(p, body, around)
	case *sqlparse.TableQuery:
		star := &sqlparse.Select{
			Pos: body.Pos, From: &sqlparse.TableRef{Pos: body.Pos, Table: body.Table},
			Items: []sqlparse.SelectItem{{Pos: body.Pos, X: &sqlparse.Star{Pos: body.Pos}}},
		}
		return b.selectQuery(p, star, &sqlparse.Query{Pos: body.Pos}, around)
	}
	return fail(body.Position(), sqlparse.ClassUnsupported, "%T is not supported", body)
}

// scope returns a scope over columns, inside of another query's.
func (b *builder) scope(p *Plan, cols []expr.Column, around *expr.Scope) *expr.Scope {
	return &expr.Scope{
		Columns: cols, Env: b.env, Outer: around, Subquery: b.subquery,
		OnOuter: func(depth int) {
			p.correlated = true
			if depth > 1 && around.OnOuter != nil {
				around.OnOuter(depth - 1)
			}
		},
	}
}

// subquery is a query inside an expression.
type subquery struct {
	*Plan
	ctx context.Context
}

func (b *builder) subquery(q *sqlparse.Query, around *expr.Scope) (expr.Subquery, error) {
	p, err := b.query(q, around)
	if err != nil {
		return nil, err
	}
	return &subquery{p, b.ctx}, nil
}

func (s *subquery) Types() []expr.Type {
	t := make([]expr.Type, len(s.cols))
	for i, c := range s.cols {
		t[i] = c.Type
	}
	return t
}

func (s *subquery) Correlated() bool { return s.correlated }

func (s *subquery) Run(outer []expr.Row, limit int) ([]expr.Row, error) {
	return collect(s.scan, &run{ctx: s.ctx, outer: outer}, limit)
}

// fail returns an error of compiling.
func fail(pos sqlparse.Pos, class, format string, args ...any) error {
	return &expr.Error{Pos: pos, Class: class, Message: fmt.Sprintf(format, args...), Analysis: true}
}

// classOf returns the class of an *expr.Error, "" of another.
func classOf(err error) string {
	var e *expr.Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}

func sameName(a, b string) bool { return strings.EqualFold(a, b) }
