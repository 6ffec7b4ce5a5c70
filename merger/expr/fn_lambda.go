package expr

import (
	"slices"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// variable is a parameter of a lambda function around the expression at hand; its
// value is in the frame.
type variable struct {
	name string
	slot int
	typ  Type
}

// variable finds the innermost parameter of a name.
func (c *compiler) variable(name string) (*node, bool) {
	for _, v := range slices.Backward(c.lambda) {
		if sameName(v.name, name) {
			slot := v.slot
			return &node{typ: v.typ, name: v.name, eval: func(f *frame) (types.Datum, error) { return f.vars[slot], nil }}, true
		}
	}
	return nil, false
}

// takesLambda are the functions that take lambda functions.
var takesLambda = map[string]bool{
	"transform": true, "filter": true, "exists": true, "forall": true, "aggregate": true, "reduce": true, "zip_with": true,
	"map_filter": true, "transform_keys": true, "transform_values": true, "map_zip_with": true, "array_sort": true,
}

func lambdaFunctions() []function {
	return []function{
		{"transform", 2, 2, (*compiler).transform},
		{"filter", 2, 2, (*compiler).filter},
		{"exists", 2, 2, func(c *compiler, k *call) *node { return c.quantified(k, true) }},
		{"forall", 2, 2, func(c *compiler, k *call) *node { return c.quantified(k, false) }},
		{"aggregate reduce", 3, 4, (*compiler).aggregate},
		{"zip_with", 3, 3, (*compiler).zipWith},
		{"map_filter", 2, 2, (*compiler).mapFilter},
		{"transform_keys", 2, 2, func(c *compiler, k *call) *node { return c.transformMap(k, true) }},
		{"transform_values", 2, 2, func(c *compiler, k *call) *node { return c.transformMap(k, false) }},
		{"map_zip_with", 3, 3, (*compiler).mapZipWith},
		{"array_sort", 1, 2, (*compiler).arraySort},
	}
}

// body is a compiled lambda function with the slots of its parameters.
type body struct {
	*node
	slots []int
}

// call evaluates the body for values of its parameters.
func (b body) call(f *frame, args ...types.Datum) (types.Datum, error) {
	for i, s := range b.slots {
		f.vars[s] = args[i]
	}
	d, err := b.eval(f)
	if f.made++; err == nil {
		err = f.spend(&d)
	}
	return d, err
}

// lambdaArg compiles argument i as a lambda function; params are the types of what
// it is given, of which the last may be left out down to min. An argument that is
// no lambda function is a constant one.
func (c *compiler) lambdaArg(k *call, i, min int, params ...Type) body {
	l, ok := k.raw[i].(*sqlparse.Lambda)
	if !ok {
		return body{node: k.args[i]}
	}
	if len(l.Params) < min || len(l.Params) > len(params) {
		c.fail(l.Pos, "INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH", "%s takes a lambda function of %s, not %d", k.name, countText(min, len(params)), len(l.Params))
		return body{node: newConst(l.Pos, tVoid, types.Null)}
	}
	b := body{}
	depth := len(c.lambda)
	for j, p := range l.Params {
		c.lambda = append(c.lambda, variable{p.Name, c.vars, params[j]})
		b.slots = append(b.slots, c.vars)
		c.vars++
	}
	b.node = c.expr(l.Body)
	c.lambda = c.lambda[:depth]
	return b
}

// boolLambda is lambdaArg for a condition.
func (c *compiler) boolLambda(k *call, i, min int, params ...Type) body {
	b := c.lambdaArg(k, i, min, params...)
	if t := b.typ; c.err == nil && t.Kind != Boolean && t.Kind != Void {
		c.mismatch(b.pos, k.name, i, tBool.sql(), t)
	}
	return b
}

// each returns a node that evaluates x and hands its list to a function; NULL stays
// NULL.
func each(t Type, k *call, x *node, f func(fr *frame, l []types.Datum) (types.Datum, error)) *node {
	eval := x.eval
	return &node{typ: t, pos: k.pos, eval: func(fr *frame) (types.Datum, error) {
		d, err := eval(fr)
		if err != nil || d.Null {
			return types.Null, err
		}
		r, err := f(fr, d.L)
		return r, at(k.pos, err)
	}}
}

func (c *compiler) lambdaArray(k *call) (*node, bool) {
	x := k.args[0]
	if x == nil || x.typ.Kind != Array {
		t := tVoid
		if x != nil {
			t = x.typ
		}
		return c.mismatch(k.pos, k.name, 0, "an array", t), false
	}
	return x, true
}

func (c *compiler) transform(k *call) *node {
	x, ok := c.lambdaArray(k)
	if !ok {
		return x
	}
	b := c.lambdaArg(k, 1, 1, *x.typ.Elem, tInt)
	return each(arrayOf(b.typ), k, x, func(f *frame, l []types.Datum) (types.Datum, error) {
		r := types.Datum{L: make([]types.Datum, len(l))}
		for i, d := range l {
			v, err := b.call(f, d, types.IntDatum(int64(i)))
			if err != nil {
				return types.Null, err
			}
			r.L[i] = v
		}
		return r, nil
	})
}

func (c *compiler) filter(k *call) *node {
	x, ok := c.lambdaArray(k)
	if !ok {
		return x
	}
	b := c.boolLambda(k, 1, 1, *x.typ.Elem, tInt)
	return each(x.typ, k, x, func(f *frame, l []types.Datum) (types.Datum, error) {
		r := types.Datum{L: []types.Datum{}}
		for i, d := range l {
			v, err := b.call(f, d, types.IntDatum(int64(i)))
			if err != nil {
				return types.Null, err
			}
			if !v.Null && v.I != 0 {
				r.L = append(r.L, d)
			}
		}
		return r, nil
	})
}

// quantified is exists (end true) and forall (end false), three-valued.
func (c *compiler) quantified(k *call, end bool) *node {
	x, ok := c.lambdaArray(k)
	if !ok {
		return x
	}
	b := c.boolLambda(k, 1, 1, *x.typ.Elem)
	return each(tBool, k, x, func(f *frame, l []types.Datum) (types.Datum, error) {
		null := false
		for _, d := range l {
			v, err := b.call(f, d)
			if err != nil {
				return types.Null, err
			}
			if v.Null {
				null = true
			} else if (v.I != 0) == end {
				return types.BoolDatum(end), nil
			}
		}
		if null {
			return types.Null, nil
		}
		return types.BoolDatum(!end), nil
	})
}

// aggregate folds an array into a value.
func (c *compiler) aggregate(k *call) *node {
	x, ok := c.lambdaArray(k)
	if !ok {
		return x
	}
	zero := k.args[1]
	merge := c.lambdaArg(k, 2, 2, zero.typ, *x.typ.Elem)
	if c.err != nil {
		return x
	}
	if !merge.typ.Equal(zero.typ) {
		return c.mismatch(k.pos, k.name, 2, zero.typ.sql(), merge.typ)
	}
	finish := body{node: &node{typ: zero.typ}}
	if len(k.raw) == 4 {
		finish = c.lambdaArg(k, 3, 1, zero.typ)
	}
	return each(finish.typ, k, x, func(f *frame, l []types.Datum) (types.Datum, error) {
		acc, err := zero.eval(f)
		for _, d := range l {
			if err != nil {
				return types.Null, err
			}
			acc, err = merge.call(f, acc, d)
		}
		if err != nil || finish.eval == nil {
			return acc, err
		}
		return finish.call(f, acc)
	})
}

func (c *compiler) zipWith(k *call) *node {
	x, ok := c.lambdaArray(k)
	if !ok {
		return x
	}
	y := c.arrayArg(k, 1)
	if c.err != nil {
		return x
	}
	b := c.lambdaArg(k, 2, 2, *x.typ.Elem, *y.typ.Elem)
	return each(arrayOf(b.typ), k, x, func(f *frame, l []types.Datum) (types.Datum, error) {
		d, err := y.eval(f)
		if err != nil || d.Null {
			return types.Null, err
		}
		r := types.Datum{L: make([]types.Datum, max(len(l), len(d.L)))}
		for i := range r.L {
			v, w := types.Null, types.Null
			if i < len(l) {
				v = l[i]
			}
			if i < len(d.L) {
				w = d.L[i]
			}
			if r.L[i], err = b.call(f, v, w); err != nil {
				return types.Null, err
			}
		}
		return r, nil
	})
}

func (c *compiler) mapFilter(k *call) *node {
	x := c.mapArg(k, 0)
	if c.err != nil {
		return x
	}
	b := c.boolLambda(k, 1, 2, *x.typ.Key, *x.typ.Elem)
	return each(x.typ, k, x, func(f *frame, l []types.Datum) (types.Datum, error) {
		r := types.Datum{L: []types.Datum{}}
		for i := 0; i+1 < len(l); i += 2 {
			v, err := b.call(f, l[i], l[i+1])
			if err != nil {
				return types.Null, err
			}
			if !v.Null && v.I != 0 {
				r.L = append(r.L, l[i], l[i+1])
			}
		}
		return r, nil
	})
}

func (c *compiler) transformMap(k *call, keys bool) *node {
	x := c.mapArg(k, 0)
	if c.err != nil {
		return x
	}
	b := c.lambdaArg(k, 1, 2, *x.typ.Key, *x.typ.Elem)
	t := mapOf(*x.typ.Key, b.typ)
	if keys {
		t = mapOf(b.typ, *x.typ.Elem)
		c.checkKey(k.pos, b.typ)
	}
	return each(t, k, x, func(f *frame, l []types.Datum) (types.Datum, error) {
		r := slices.Clone(l)
		for i := 0; i+1 < len(l); i += 2 {
			v, err := b.call(f, l[i], l[i+1])
			if err != nil {
				return types.Null, err
			}
			if keys {
				r[i] = v
			} else {
				r[i+1] = v
			}
		}
		if keys {
			return makeMap(*t.Key, r)
		}
		return types.Datum{L: append([]types.Datum{}, r...)}, nil
	})
}

// mapZipWith merges two maps by their keys.
func (c *compiler) mapZipWith(k *call) *node {
	x, y := c.mapArg(k, 0), c.mapArg(k, 1)
	if c.err != nil {
		return x
	}
	kt, ok := tightest(*x.typ.Key, *y.typ.Key)
	if !ok {
		return c.fail(k.pos, "DATATYPE_MISMATCH.MAP_ZIP_WITH_DIFF_TYPES", "the maps must have keys of one type")
	}
	x, y = c.castTo(x, mapOf(kt, *x.typ.Elem)), c.castTo(y, mapOf(kt, *y.typ.Elem))
	b := c.lambdaArg(k, 2, 3, kt, *x.typ.Elem, *y.typ.Elem)
	return each(mapOf(kt, b.typ), k, x, func(f *frame, l []types.Datum) (types.Datum, error) {
		d, err := y.eval(f)
		if err != nil || d.Null {
			return types.Null, err
		}
		r := types.Datum{L: []types.Datum{}}
		add := func(key, v, w types.Datum) error {
			z, err := b.call(f, key, v, w)
			r.L = append(r.L, key, z)
			return err
		}
		for i := 0; i+1 < len(l); i += 2 {
			w := types.Null
			if j := mapFind(kt, d.L, l[i]); j >= 0 {
				w = d.L[j+1]
			}
			if err := add(l[i], l[i+1], w); err != nil {
				return types.Null, err
			}
		}
		for j := 0; j+1 < len(d.L); j += 2 {
			if mapFind(kt, l, d.L[j]) < 0 {
				if err := add(d.L[j], types.Null, d.L[j+1]); err != nil {
					return types.Null, err
				}
			}
		}
		return r, nil
	})
}

// arraySort sorts ascending with NULL last, or by a comparison.
func (c *compiler) arraySort(k *call) *node {
	x, ok := c.lambdaArray(k)
	if !ok {
		return x
	}
	t := *x.typ.Elem
	if len(k.raw) == 1 {
		if !t.orderable() {
			return c.fail(k.pos, classOrdering, "elements of %s do not compare", x.typ.sql())
		}
		return each(x.typ, k, x, func(_ *frame, l []types.Datum) (types.Datum, error) {
			l = slices.Clone(l)
			slices.SortStableFunc(l, func(a, b types.Datum) int {
				if a.Null != b.Null {
					return -CompareNullable(t, a, b)
				}
				return sortCompare(t, a, b)
			})
			return types.Datum{L: l}, nil
		})
	}
	b := c.lambdaArg(k, 1, 2, t, t)
	if c.err == nil && b.typ.Kind != Int {
		return c.mismatch(b.pos, k.name, 1, tInt.sql(), b.typ)
	}
	return each(x.typ, k, x, func(f *frame, l []types.Datum) (types.Datum, error) {
		l = slices.Clone(l)
		var failed error
		slices.SortStableFunc(l, func(p, q types.Datum) int {
			v, err := b.call(f, p, q)
			if err == nil && v.Null {
				err = fault("COMPARATOR_RETURNS_NULL", "the comparison of array_sort gives NULL")
			}
			if failed == nil {
				failed = err
			}
			return compareInts(v.I, 0)
		})
		if failed != nil {
			return types.Null, failed
		}
		return types.Datum{L: l}, nil
	})
}
