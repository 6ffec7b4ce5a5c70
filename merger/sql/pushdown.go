package sql

import (
	"applier/merger/assign"
	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/types"
)

// pushed returns conditions that every row must meet for which where can be TRUE, so
// that files and rows are passed over early. Only the beginning of an AND chain is
// looked at: what stands behind a condition that could fail must not keep it from
// being evaluated.
func pushed(where sqlparse.Expr, tg *assign.Target, env *expr.Env) []paimon.Condition {
	conjuncts := []sqlparse.Expr{where}
	if l, ok := where.(*sqlparse.Logic); ok && l.Op == "AND" {
		conjuncts = l.Args
	}
	var out []paimon.Condition
	for _, e := range conjuncts {
		c, ok := conditions(e, tg, env)
		if !ok {
			break
		}
		out = append(out, c...)
	}
	return out
}

var comparisons = map[string]paimon.Compare{
	"=": paimon.Equal, "<": paimon.Less, "<=": paimon.LessEqual, ">": paimon.Greater, ">=": paimon.GreaterEqual,
}

// flipped are the operators with their sides changed.
var flipped = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// conditions reads what is asked of one column: a comparison with a constant, BETWEEN
// and IN of constants, IS [NOT] NULL.
func conditions(e sqlparse.Expr, tg *assign.Target, env *expr.Env) ([]paimon.Condition, bool) {
	switch n := e.(type) {
	case *sqlparse.Binary:
		c, ok := comparison(n.Op, n.L, n.R, tg, env)
		return []paimon.Condition{c}, ok
	case *sqlparse.Between:
		low, ok1 := comparison(">=", n.X, n.Low, tg, env)
		high, ok2 := comparison("<=", n.X, n.High, tg, env)
		return []paimon.Condition{low, high}, ok1 && ok2 && !n.Not
	case *sqlparse.InList:
		return within(n, tg, env)
	case *sqlparse.IsNull:
		col, ok := columnOf(n.X, tg)
		if ok && tg.Fields[col].Type.IsNested() {
			return nil, false // statistics of what lies inside say nothing
		}
		op := paimon.IsNull
		if n.Not {
			op = paimon.NotNull
		}
		return []paimon.Condition{{Column: col, Op: op}}, ok
	}
	return nil, false
}

// columnOf is the column that an expression is.
func columnOf(e sqlparse.Expr, tg *assign.Target) (int, bool) {
	ref, ok := e.(*sqlparse.ColumnRef)
	if !ok {
		return 0, false
	}
	col, fields, err := tg.Resolve(ref.Name)
	return col, err == nil && len(fields) == 0
}

// within are the bounds of the values of an IN list.
func within(n *sqlparse.InList, tg *assign.Target, env *expr.Env) ([]paimon.Condition, bool) {
	if n.Not {
		return nil, false
	}
	var low, high paimon.Condition
	for i, x := range n.List {
		c, ok := comparison(">=", n.X, x, tg, env)
		if !ok {
			return nil, false
		}
		t := tg.Fields[c.Column].Type
		if i == 0 || types.CompareDatums(t, c.Value, low.Value) < 0 {
			low = c
		}
		if i == 0 || types.CompareDatums(t, c.Value, high.Value) > 0 {
			high = c
		}
	}
	high.Op = paimon.LessEqual
	return []paimon.Condition{low, high}, len(n.List) > 0
}

// comparison reads column <op> constant, where both are of one kind.
func comparison(op string, l, r sqlparse.Expr, tg *assign.Target, env *expr.Env) (paimon.Condition, bool) {
	none := paimon.Condition{}
	if flipped[op] == "" {
		return none, false
	}
	col, ok := columnOf(l, tg)
	if !ok {
		if col, ok = columnOf(r, tg); !ok {
			return none, false
		}
		op, r = flipped[op], l
	}
	x, err := expr.Compile(r, &expr.Scope{Env: env})
	if err != nil || !x.Foldable() {
		return none, false
	}
	v, err := x.Eval(nil)
	have, _ := expr.FromStorage(tg.Fields[col].Type)
	if err != nil || v.Null || !sameOrder(have, x.Type(), tg.Fields[col].Type.Precision) {
		return none, false
	}
	return paimon.Condition{Column: col, Op: comparisons[op], Value: v}, true
}

// sameOrder reports whether a column's values compare with a constant as files do:
// without a cast, and in the same order.
func sameOrder(column, constant expr.Type, precision int) bool {
	integer := func(t expr.Type) bool { return t.Kind >= expr.TinyInt && t.Kind <= expr.BigInt }
	switch {
	case integer(column):
		return integer(constant)
	case column.Kind != constant.Kind:
		return false
	case column.Kind == expr.String:
		return !column.Char && column.Collation == "" && constant.Collation == ""
	case column.Kind == expr.Timestamp || column.Kind == expr.TimestampNTZ:
		return precision <= 6
	}
	return column.Kind == expr.Date || column.Kind == expr.Boolean
}
