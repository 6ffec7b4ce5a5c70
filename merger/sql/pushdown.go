package sql

import (
	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
)

// pushed returns conditions that every row must meet for which where can be TRUE, so
// that files and rows are passed over early. Only the beginning of an AND chain is
// looked at: what stands behind a condition that could fail must not keep it from
// being evaluated.
func pushed(where sqlparse.Expr, tg *target, scope *expr.Scope) []paimon.Condition {
	conjuncts := []sqlparse.Expr{where}
	if l, ok := where.(*sqlparse.Logic); ok && l.Op == "AND" {
		conjuncts = l.Args
	}
	var out []paimon.Condition
	for _, e := range conjuncts {
		c, ok := comparison(e, tg, scope)
		if !ok {
			break
		}
		out = append(out, c)
	}
	return out
}

var comparisons = map[string]paimon.Compare{
	"=": paimon.Equal, "<": paimon.Less, "<=": paimon.LessEqual, ">": paimon.Greater, ">=": paimon.GreaterEqual,
}

// flipped are the operators with their sides changed.
var flipped = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// comparison reads column <op> constant, where both are of one kind.
func comparison(e sqlparse.Expr, tg *target, scope *expr.Scope) (paimon.Condition, bool) {
	none := paimon.Condition{}
	b, ok := e.(*sqlparse.Binary)
	if !ok || flipped[b.Op] == "" {
		return none, false
	}
	op, l, r := b.Op, b.L, b.R
	ref, ok := l.(*sqlparse.ColumnRef)
	if !ok {
		if ref, ok = r.(*sqlparse.ColumnRef); !ok {
			return none, false
		}
		op, r = flipped[op], l
	}
	col, fields, err := tg.Resolve(ref.Name)
	if err != nil || len(fields) > 0 {
		return none, false
	}
	x, err := expr.Compile(r, &expr.Scope{Env: scope.Env})
	if err != nil {
		return none, false
	}
	v, constant := x.Constant()
	have, _ := expr.FromStorage(tg.Fields[col].Type)
	if !constant || v.Null || !sameOrder(have, x.Type(), tg.Fields[col].Type.Precision) {
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
