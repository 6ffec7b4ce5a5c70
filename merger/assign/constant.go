package assign

import (
	"slices"
	"strings"

	"applier/merger/expr"
	"applier/merger/sqlparse"
)

// Fixed compiles an expression whose value is the same for every row. Beside those that
// name no column it knows what Spark's optimizer finds: coalesce(-1, a) is -1, and
// a > 1 OR TRUE is TRUE.
func Fixed(e sqlparse.Expr, env *expr.Env) (*expr.Expr, bool) {
	x, err := expr.Compile(simplified(e, env), &expr.Scope{Env: env})
	return x, err == nil && x.Foldable()
}

func isTrue(e sqlparse.Expr, env *expr.Env) bool {
	x, ok := Fixed(e, env)
	if !ok || x.Type().Kind != expr.Boolean {
		return false
	}
	d, err := x.Eval(nil)
	return err == nil && !d.Null && d.I != 0
}

// firstOf are the functions that give the first of their arguments that is not NULL.
var firstOf = []string{"coalesce", "nvl", "ifnull"}

// simplified leaves out what is never evaluated: the arguments of coalesce behind a
// number that is not NULL.
func simplified(e sqlparse.Expr, env *expr.Env) sqlparse.Expr {
	switch n := e.(type) {
	case *sqlparse.Binary:
		c := *n
		c.L, c.R = simplified(n.L, env), simplified(n.R, env)
		return &c
	case *sqlparse.Unary:
		c := *n
		c.X = simplified(n.X, env)
		return &c
	case *sqlparse.Cast:
		c := *n
		c.X = simplified(n.X, env)
		return &c
	case *sqlparse.Logic: // of a condition with OR TRUE nothing else counts
		if n.Op == "OR" && slices.ContainsFunc(n.Args, func(a sqlparse.Expr) bool { return isTrue(a, env) }) {
			return &sqlparse.BoolLit{Pos: n.Pos, Value: true}
		}
	case *sqlparse.Call:
		if !slices.Contains(firstOf, strings.ToLower(n.Func.Last())) || len(n.Args) == 0 {
			return e
		}
		first := simplified(n.Args[0], env)
		if x, ok := Fixed(first, env); ok {
			// The type of all arguments may be a wider one, which holds these exactly.
			small := x.Type().Kind == expr.Boolean || x.Type().Kind >= expr.TinyInt && x.Type().Kind <= expr.BigInt
			if d, err := x.Eval(nil); err == nil && !d.Null && small && d.I < 1<<24 && d.I > -1<<24 {
				return first
			}
		}
	}
	return e
}
