package expr

import (
	"strings"

	"applier/merger/sqlparse"
)

// fold computes n now if it needs no row and does not fail.
func (n *node) fold(env *Env) *node {
	if n.constant || !n.foldable {
		return n
	}
	v, err := n.eval(&frame{env: env})
	if err != nil {
		return n
	}
	c := newConst(n.pos, n.typ, v)
	c.name = n.name
	return c
}

// settle computes a part e of an expression once if it needs no row. If that fails the
// statement does, before it looks at any row, unless the part stands where it may not be
// needed: in what only some rows take (lazy), or in a larger part that needs no row either
// and does not fail. before is the number of faults in front of e.
//
// Source: Spark's rule ConstantFolding.
func (c *compiler) settle(n *node, e sqlparse.Expr, before int) *node {
	switch {
	case c.err != nil:
		return n
	case n.constant:
		c.faults = c.faults[:before]
	case n.foldable:
		c.faults = c.faults[:before]
		return c.settled(n)
	case lazy(e):
		c.faults = c.faults[:before]
	}
	return n
}

// settled computes a node that needs no row, or notes why that fails. What is known of
// the node at analysis stays as it was: it does not become a literal.
func (c *compiler) settled(n *node) *node {
	v, err := n.eval(&frame{env: c.env})
	if err != nil {
		c.faults = append(c.faults, err)
		return n
	}
	known := *n
	known.eval = newConst(n.pos, n.typ, v).eval
	return &known
}

// lazyCalls are the functions that do not compute all their arguments.
var lazyCalls = map[string]bool{
	"coalesce": true, "nvl": true, "ifnull": true, "nvl2": true, "if": true, "nullif": true, "nullifzero": true,
	"zeroifnull": true, "nanvl": true, "decode": true, "assert_true": true,
}

// lazy reports whether an expression does not compute all its parts for every row. AND
// and OR do not either; Spark takes them for expressions that do.
func lazy(e sqlparse.Expr) bool {
	switch e := e.(type) {
	case *sqlparse.Case:
		return true
	case *sqlparse.Call:
		return lazyCalls[strings.ToLower(e.Func.Last())]
	}
	return false
}
