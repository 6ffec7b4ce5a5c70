package sql

import (
	"context"
	"slices"
	"strings"

	"applier/merger/assign"
	"applier/merger/expr"
	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// condition compiles the WHERE of a row-level statement; nil is every row.
func (r *run) condition(ctx context.Context, where sqlparse.Expr, with []sqlparse.CTE, tg *target) (*expr.Expr, []paimon.Condition, error) {
	if where == nil {
		return nil, nil, nil
	}
	scope := tg.scope(r)
	scope.Subquery = query.Subqueries(ctx, with, r, r.env)
	x, err := expr.CompileBool(where, scope)
	if err != nil {
		return nil, nil, err
	}
	return x, pushed(where, &tg.Target, r.env), nil
}

func (r *run) delete(ctx context.Context, n *sqlparse.Delete, tg *target, e *editor) error {
	where, pushed, err := r.condition(ctx, n.Where, n.With, tg)
	if err != nil {
		return err
	}
	if r.every(n.Where) || neverNull(n.Where, tg) {
		e.op, e.overwrite, e.force = paimon.OperationTruncate, true, true
		return e.dropPartitions(ctx, func([]types.Datum) (bool, error) { return true, nil })
	}
	if x := r.partitionCondition(ctx, n, tg); x != nil {
		e.op, e.overwrite = paimon.OperationTruncate, true
		row := make(expr.Row, len(tg.read))
		return e.dropPartitions(ctx, func(values []types.Datum) (bool, error) {
			for i, c := range tg.partitionColumns() {
				row[c] = values[i]
			}
			return x.Test(row)
		})
	}
	e.op = paimon.OperationDelete
	return tg.scan(ctx, pushed, func(entry *manifest.Entry, pos uint32, row expr.Row) error {
		hit, err := where.Test(row)
		if hit {
			e.delete(entry, pos)
		}
		return err
	})
}

// every reports whether a condition holds for all rows, whatever is in them.
func (r *run) every(where sqlparse.Expr) bool {
	if where == nil {
		return true
	}
	x, ok := assign.Fixed(where, r.env)
	if !ok || x.Type().Kind != expr.Boolean {
		return false
	}
	d, err := x.Eval(nil)
	return err == nil && !d.Null && d.I != 0
}

// neverNull reports whether a condition asks no more than that a NOT NULL column is
// not NULL.
func neverNull(e sqlparse.Expr, tg *target) bool {
	n, ok := e.(*sqlparse.IsNull)
	if !ok || !n.Not {
		return false
	}
	ref, ok := n.X.(*sqlparse.ColumnRef)
	if !ok {
		return false
	}
	col, fields, err := tg.Resolve(ref.Name)
	return err == nil && len(fields) == 0 && tg.Fields[col].Type.NotNull
}

// metadataFunctions are the functions that conditions of a metadata-only delete may
// have: those that Paimon's connector for Spark translates (PaimonTransform).
var metadataFunctions = []string{"upper", "ucase", "lower", "lcase", "concat", "substring", "substr"}

// simplePattern reports whether LIKE asks for a beginning, an end, a part or a whole.
func simplePattern(x *sqlparse.Like) bool {
	lit, ok := x.Pattern.(*sqlparse.StringLit)
	if !ok || x.Op != "LIKE" || x.Escape != "" {
		return false
	}
	return !strings.ContainsAny(strings.Trim(lit.Value, "%"), "%_\\")
}

// isConstant reports whether an expression is the same for every row.
func (r *run) isConstant(e sqlparse.Expr) bool {
	x, err := expr.Compile(e, &expr.Scope{Env: r.env})
	return err == nil && x.Foldable()
}

// partitionCondition compiles the WHERE of a DELETE that drops whole partitions:
// one that names partition columns only. nil if it is none.
func (r *run) partitionCondition(ctx context.Context, n *sqlparse.Delete, tg *target) *expr.Expr {
	keys := tg.t.Schema().PartitionKeys
	refs, plain := 0, true
	sqlparse.Walk(n.Where, func(x sqlparse.Node) bool {
		switch x := x.(type) {
		case *sqlparse.Query:
			return false
		case *sqlparse.ColumnRef:
			refs++
		case *sqlparse.Call:
			if r.isConstant(x) { // of date_sub('2024-12-17', 1) the value counts
				return false
			}
			plain = plain && slices.Contains(metadataFunctions, strings.ToLower(x.Func.Last()))
		case *sqlparse.Like:
			plain = plain && simplePattern(x)
		}
		return true
	})
	if refs == 0 || !plain || len(keys) == 0 {
		return nil
	}
	correlated := false
	scope := &expr.Scope{Env: r.env}
	for _, c := range tg.cols {
		if !c.Hidden && slices.Contains(keys, c.Name) {
			scope.Columns = append(scope.Columns, c)
		}
	}
	subqueries := query.Subqueries(ctx, n.With, r, r.env)
	scope.Subquery = func(q *sqlparse.Query, around *expr.Scope) (expr.Subquery, error) {
		s, err := subqueries(q, around)
		correlated = correlated || err == nil && s.Correlated()
		return s, err
	}
	x, err := expr.CompileBool(n.Where, scope)
	if err != nil || correlated {
		return nil
	}
	return x
}
