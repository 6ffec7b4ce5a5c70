package expr

import (
	"math"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// caseWhen compiles both forms of CASE.
func (c *compiler) caseWhen(e *sqlparse.Case) *node {
	var operand *node
	if e.Operand != nil {
		operand = c.expr(e.Operand)
	}
	var conds, values []*node
	for _, w := range e.Whens {
		cond := c.expr(w.Cond)
		if operand != nil {
			cond = c.comparison(w.Cond.Position(), "=", operand, cond)
		}
		if c.err == nil && cond.typ.Kind != Boolean {
			return c.mismatch(w.Cond.Position(), "CASE", 0, tBool.sql(), cond.typ)
		}
		conds = append(conds, cond)
		values = append(values, c.expr(w.Then))
	}
	if e.Else != nil {
		values = append(values, c.expr(e.Else))
	}
	t, ok := c.coerceAll(values, wider)
	if !ok {
		return c.fail(e.Pos, classDataDiff, "the branches of CASE must have one type, not %s", typeList(values))
	}
	return caseNode(e.Pos, conds, values, t)
}

// caseNode evaluates the first branch whose condition is true; values may have
// one more for ELSE.
func caseNode(pos sqlparse.Pos, conds, values []*node, t Type) *node {
	n := &node{typ: t, pos: pos, foldable: allFoldable(conds) && allFoldable(values)}
	ce, ve := evalsOf(conds), evalsOf(values)
	n.eval = func(f *frame) (types.Datum, error) {
		for i, cond := range ce {
			d, err := cond(f)
			if err != nil {
				return types.Null, err
			}
			if !d.Null && d.I != 0 {
				return ve[i](f)
			}
		}
		if len(ve) > len(ce) {
			return ve[len(ce)](f)
		}
		return types.Null, nil
	}
	return n
}

func conditionalFunctions() []function {
	return []function{
		{"coalesce", 1, unbounded, (*compiler).coalesce},
		{"nvl ifnull", 2, 2, (*compiler).coalesce},
		{"nvl2", 3, 3, func(c *compiler, k *call) *node {
			return c.choose(k, isNullNode(k.pos, k.args[0], true), k.args[1], k.args[2])
		}},
		{"if", 3, 3, func(c *compiler, k *call) *node {
			if t := k.args[0].typ; t.Kind != Boolean && t.Kind != Void {
				return c.mismatch(k.pos, "if", 0, tBool.sql(), t)
			}
			return c.choose(k, c.castTo(k.args[0], tBool), k.args[1], k.args[2])
		}},
		{"nullif", 2, 2, func(c *compiler, k *call) *node {
			a := k.args[0]
			eq := c.comparison(k.pos, "=", a, k.args[1])
			return caseNode(k.pos, []*node{eq}, []*node{newConst(k.pos, a.typ, types.Null), a}, a.typ)
		}},
		{"nullifzero", 1, 1, func(c *compiler, k *call) *node {
			zero := c.comparison(k.pos, "=", k.args[0], newConst(k.pos, tInt, types.IntDatum(0)))
			return caseNode(k.pos, []*node{zero}, []*node{newConst(k.pos, k.args[0].typ, types.Null), k.args[0]}, k.args[0].typ)
		}},
		{"zeroifnull", 1, 1, func(c *compiler, k *call) *node {
			k.args = append(k.args, newConst(k.pos, tInt, types.IntDatum(0)))
			return c.coalesce(k)
		}},
		{"isnull", 1, 1, func(c *compiler, k *call) *node { return isNullNode(k.pos, k.args[0], false) }},
		{"isnotnull", 1, 1, func(c *compiler, k *call) *node { return isNullNode(k.pos, k.args[0], true) }},
		{"equal_null", 2, 2, func(c *compiler, k *call) *node { return c.comparison(k.pos, "<=>", k.args[0], k.args[1]) }},
		{"greatest", 2, unbounded, func(c *compiler, k *call) *node { return c.extreme(k, 1) }},
		{"least", 2, unbounded, func(c *compiler, k *call) *node { return c.extreme(k, -1) }},
		{"decode", 2, unbounded, (*compiler).decode},
		{"nanvl", 2, 2, (*compiler).nanvl},
		{"isnan", 1, 1, (*compiler).isNaN},
		{"not", 1, 1, func(c *compiler, k *call) *node { return notNode(c.want(k.args[0], tBool, "not", 0)) }},
	}
}

// coalesce evaluates its arguments until one is not NULL.
func (c *compiler) coalesce(k *call) *node {
	t, ok := c.coerceAll(k.args, wider)
	if !ok {
		return c.fail(k.pos, classDataDiff, "the arguments of %s must have one type, not %s", k.name, typeList(k.args))
	}
	evals := evalsOf(k.args)
	return &node{typ: t, pos: k.pos, foldable: allFoldable(k.args), eval: func(f *frame) (types.Datum, error) {
		for _, e := range evals {
			if d, err := e(f); err != nil || !d.Null {
				return d, err
			}
		}
		return types.Null, nil
	}}
}

// choose is if(cond, a, b).
func (c *compiler) choose(k *call, cond, a, b *node) *node {
	values := []*node{a, b}
	t, ok := c.coerceAll(values, wider)
	if !ok {
		return c.fail(k.pos, classDataDiff, "both values of %s must have one type, not %s", k.name, typeList([]*node{a, b}))
	}
	return caseNode(k.pos, []*node{cond}, values, t)
}

// extreme is greatest (sign 1) and least (-1); NULL is left out.
func (c *compiler) extreme(k *call, sign int) *node {
	names := typeList(k.args)
	t, ok := c.coerceAll(k.args, widerNoText)
	switch {
	case !ok:
		return c.fail(k.pos, classDataDiff, "the arguments of %s must have one type, not %s", k.name, names)
	case !t.orderable():
		return c.fail(k.pos, classOrdering, "values of %s do not compare", t.sql())
	}
	return lenient(t, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		best := types.Null
		for _, d := range a {
			if !d.Null && (best.Null || CompareValues(t, d, best)*sign > 0) {
				best = d
			}
		}
		return best, nil
	})
}

// decode is a CASE with null-safe comparisons, or a charset's decoding of bytes.
func (c *compiler) decode(k *call) *node {
	if len(k.args) == 2 {
		return c.decodeCharset(k)
	}
	var conds, values []*node
	for i := 1; i+1 < len(k.args); i += 2 {
		conds = append(conds, c.comparison(k.pos, "<=>", k.args[0], k.args[i]))
		values = append(values, k.args[i+1])
	}
	if len(k.args)%2 == 0 {
		values = append(values, k.args[len(k.args)-1])
	}
	t, ok := c.coerceAll(values, wider)
	if !ok {
		return c.fail(k.pos, classDataDiff, "the results of decode must have one type, not %s", typeList(values))
	}
	return caseNode(k.pos, conds, values, t)
}

// nanvl returns its second argument where the first is NaN.
func (c *compiler) nanvl(k *call) *node {
	t := tDouble
	if k.args[0].typ.Kind == Float && (k.args[1].typ.Kind == Float || k.args[1].typ.Kind == Void) {
		t = tFloat
	}
	a := c.wantAll(k, t, t)
	x, y := a[0].eval, a[1].eval
	return &node{typ: t, pos: k.pos, foldable: allFoldable(a), eval: func(f *frame) (types.Datum, error) {
		d, err := x(f)
		if err == nil && !d.Null && math.IsNaN(d.F) {
			return y(f)
		}
		return d, err
	}}
}

// isNaN is false for NULL.
func (c *compiler) isNaN(k *call) *node {
	a := k.args[0]
	if a.typ.Kind != Float {
		a = c.want(a, tDouble, "isnan", 0)
	}
	return lenient(tBool, k.pos, []*node{a}, func(_ *Env, v []types.Datum) (types.Datum, error) {
		return types.BoolDatum(!v[0].Null && math.IsNaN(v[0].F)), nil
	})
}
