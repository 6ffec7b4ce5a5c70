package expr

import (
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// asBool casts an operand of a logical operator; fn names the operator.
func (c *compiler) asBool(n *node, pos sqlparse.Pos, fn string) *node {
	r, ok := c.implicit(n, tBool)
	if !ok {
		return c.fail(pos, classDiffTypes, "operands of %s must be BOOLEAN, not %s", fn, n.typ.sql())
	}
	return r
}

// logic compiles AND and OR: three-valued, from left to right, ending as soon as
// the result is known.
func (c *compiler) logic(e *sqlparse.Logic) *node {
	n := c.asBool(c.expr(e.Args[0]), e.Pos, e.Op)
	for _, a := range e.Args[1:] {
		n = logicNode(e.Pos, e.Op == "OR", n, c.asBool(c.expr(a), e.Pos, e.Op))
	}
	return n
}

// logicNode joins two booleans; end is the value that decides alone.
func logicNode(pos sqlparse.Pos, end bool, l, r *node) *node {
	le, re := l.eval, r.eval
	return &node{typ: tBool, pos: pos, foldable: l.foldable && r.foldable, eval: func(f *frame) (types.Datum, error) {
		a, err := le(f)
		if err != nil || !a.Null && (a.I != 0) == end {
			return a, err
		}
		b, err := re(f)
		if err != nil || !b.Null && (b.I != 0) == end {
			return b, err
		}
		if a.Null || b.Null {
			return types.Null, nil
		}
		return types.BoolDatum(!end), nil
	}}
}

// notNode negates a boolean; NULL stays NULL.
func notNode(x *node) *node {
	eval := x.eval
	return &node{typ: tBool, pos: x.pos, foldable: x.foldable, eval: func(f *frame) (types.Datum, error) {
		d, err := eval(f)
		if err != nil || d.Null {
			return d, err
		}
		return types.BoolDatum(d.I == 0), nil
	}}
}

// maybeNot negates x if not is set.
func maybeNot(x *node, not bool) *node {
	if not {
		return notNode(x)
	}
	return x
}

func isNullNode(pos sqlparse.Pos, x *node, not bool) *node {
	eval := x.eval
	return &node{typ: tBool, pos: pos, foldable: x.foldable, eval: func(f *frame) (types.Datum, error) {
		d, err := eval(f)
		return types.BoolDatum(d.Null != not), err
	}}
}

// isTruth compiles IS [NOT] TRUE, FALSE, UNKNOWN.
func (c *compiler) isTruth(e *sqlparse.IsTruth) *node {
	x, ok := c.implicit(c.expr(e.X), tBool)
	if !ok {
		return c.fail(e.Pos, classDiffTypes, "IS %s goes with BOOLEAN, not %s", e.Value, x.typ.sql())
	}
	if e.Value == "UNKNOWN" {
		return isNullNode(e.Pos, x, e.Not)
	}
	want, not, eval := e.Value == "TRUE", e.Not, x.eval
	return &node{typ: tBool, pos: e.Pos, foldable: x.foldable, eval: func(f *frame) (types.Datum, error) {
		d, err := eval(f)
		is := !d.Null && (d.I != 0) == want
		return types.BoolDatum(is != not), err
	}}
}

// between compiles x >= low AND x <= high.
func (c *compiler) between(e *sqlparse.Between) *node {
	x := c.expr(e.X)
	low := c.comparison(e.Pos, ">=", x, c.expr(e.Low))
	high := c.comparison(e.Pos, "<=", x, c.expr(e.High))
	return maybeNot(logicNode(e.Pos, false, low, high), e.Not)
}

// inList compiles x IN (…). NULL in the list makes a miss unknown.
func (c *compiler) inList(e *sqlparse.InList) *node {
	nodes := make([]*node, 0, len(e.List)+1)
	nodes = append(nodes, c.expr(e.X))
	char := nodes[0].char
	for _, x := range e.List {
		n := c.expr(x)
		if char > 0 && n.foldable && n.typ.Kind == String {
			n = trimmed(n)
		}
		nodes = append(nodes, n)
	}
	t, ok := c.coerceAll(nodes, wider)
	if !ok {
		if t = nodes[0].typ; !sameShapes(nodes) {
			return c.fail(e.Pos, classDataDiff, "the values of IN must have one type, %s", typeList(nodes))
		}
	}
	if !t.orderable() {
		return c.fail(e.Pos, classOrdering, "values of %s do not compare", t.sql())
	}
	if char > 0 {
		nodes[0] = trimmed(nodes[0])
	}
	return maybeNot(inNode(e.Pos, nodes, t), e.Not)
}

func sameShapes(nodes []*node) bool {
	for _, n := range nodes[1:] {
		if !n.typ.sameShape(nodes[0].typ) {
			return false
		}
	}
	return true
}

func inNode(pos sqlparse.Pos, nodes []*node, t Type) *node {
	n := &node{typ: tBool, pos: pos, foldable: true}
	for _, x := range nodes {
		n.foldable = n.foldable && x.foldable
	}
	x, list := nodes[0].eval, nodes[1:]
	n.eval = func(f *frame) (types.Datum, error) {
		a, err := x(f)
		if err != nil || a.Null {
			return types.Null, err
		}
		null := false
		for _, y := range list {
			b, err := y.eval(f)
			if err != nil {
				return types.Null, err
			}
			if b.Null {
				null = true
			} else if CompareValues(t, a, b) == 0 {
				return types.BoolDatum(true), nil
			}
		}
		return types.Datum{Null: null}, nil
	}
	return n
}

// typeList names the types of nodes for a message.
func typeList(nodes []*node) string {
	s := ""
	for i, n := range nodes {
		if i > 0 {
			s += ", "
		}
		s += n.typ.sql()
	}
	return s
}

// rowValue compiles (a, b, …): a struct whose fields are called as their values,
// or col1, col2, ….
func (c *compiler) rowValue(pos sqlparse.Pos, items []sqlparse.Expr) *node {
	nodes := make([]*node, len(items))
	for i, x := range items {
		nodes[i] = c.expr(x)
	}
	return structNode(pos, nodes)
}
