package expr

import (
	"math"
	"slices"

	"applier/storage/types"
)

func arraySetFunctions() []function {
	return []function{
		{"array_contains", 2, 2, (*compiler).arrayContains},
		{"array_position", 2, 2, (*compiler).arrayPosition},
		{"array_remove", 2, 2, (*compiler).arrayRemove},
		{"array_append", 2, 2, func(c *compiler, k *call) *node { return c.arrayAdd(k, false) }},
		{"array_prepend", 2, 2, func(c *compiler, k *call) *node { return c.arrayAdd(k, true) }},
		{"array_insert", 3, 3, (*compiler).arrayInsert},
		{"array_distinct", 1, 1, (*compiler).arrayDistinct},
		{"array_union", 2, 2, arraySet(func(s *itemSet, a, b []types.Datum) []types.Datum {
			return s.distinct(slices.Concat(a, b), func(types.Datum) bool { return true })
		})},
		{"array_intersect", 2, 2, arraySet(func(s *itemSet, a, b []types.Datum) []types.Datum {
			return s.distinct(a, func(d types.Datum) bool { return s.has(b, d) })
		})},
		{"array_except", 2, 2, arraySet(func(s *itemSet, a, b []types.Datum) []types.Datum {
			return s.distinct(a, func(d types.Datum) bool { return !s.has(b, d) })
		})},
		{"arrays_overlap", 2, 2, (*compiler).arraysOverlap},
	}
}

// itemSet finds equal elements. In array functions -0.0 and 0.0 are two values,
// unlike everywhere else; NaN is one.
type itemSet struct{ t Type }

func (s *itemSet) equal(a, b types.Datum) bool {
	if CompareNullable(s.t, a, b) != 0 {
		return false
	}
	return !s.t.floating() || a.Null || a.F != 0 || math.Signbit(a.F) == math.Signbit(b.F)
}

func (s *itemSet) has(l []types.Datum, d types.Datum) bool {
	return slices.ContainsFunc(l, func(x types.Datum) bool { return s.equal(x, d) })
}

func (s *itemSet) distinct(l []types.Datum, keep func(types.Datum) bool) []types.Datum {
	r := []types.Datum{}
	seen := map[string]bool{}
	for _, d := range l {
		key := string(itemKey(nil, s.t, d))
		if !seen[key] && keep(d) {
			seen[key] = true
			r = append(r, d)
		}
	}
	return r
}

// itemKey is GroupKey with -0.0 kept apart from 0.0.
func itemKey(dst []byte, t Type, d types.Datum) []byte {
	if t.floating() && !d.Null && d.F == 0 && math.Signbit(d.F) {
		return append(dst, "-0"...)
	}
	return GroupKey(dst, t, d)
}

// arrayAndItem casts an array and an element to a common type.
func (c *compiler) arrayAndItem(k *call) (x, item *node) {
	x, item = k.args[0], k.args[1]
	switch {
	case x.typ.Kind == Void && k.name == "array_remove":
		c.fail(k.pos, classArrayDiff, "array_remove takes no untyped NULL")
		return x, item
	case x.typ.Kind == Void && (k.name == "array_contains" || k.name == "array_position"), item.typ.Kind == Void && k.name == "array_contains":
		c.fail(k.pos, classNullType, "%s takes no untyped NULL", k.name)
		return x, item
	case x.typ.Kind != Array:
		c.mismatch(x.pos, k.name, 0, "an array", x.typ)
		return x, item
	}
	rule := tightest
	if k.name == "array_contains" {
		rule = widerNoText
	}
	t, ok := rule(*x.typ.Elem, item.typ)
	if !ok {
		c.fail(k.pos, classArrayDiff, "%s goes with an array of %s, not %s", k.name, item.typ.sql(), x.typ.sql())
		return x, item
	}
	if !t.orderable() && k.name != "array_append" && k.name != "array_prepend" && k.name != "array_insert" {
		c.fail(k.pos, classOrdering, "values of %s do not compare", t.sql())
	}
	return c.castTo(x, arrayOf(t)), c.castTo(item, t)
}

// arrayContains is unknown if only a NULL might be the value.
func (c *compiler) arrayContains(k *call) *node {
	x, item := c.arrayAndItem(k)
	t := item.typ
	return strict(tBool, k.pos, []*node{x, item}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		null := false
		for _, d := range a[0].L {
			if d.Null {
				null = true
			} else if CompareValues(t, d, a[1]) == 0 {
				return types.BoolDatum(true), nil
			}
		}
		return types.Datum{Null: null}, nil
	})
}

func (c *compiler) arrayPosition(k *call) *node {
	x, item := c.arrayAndItem(k)
	t := item.typ
	return strict(tLong, k.pos, []*node{x, item}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		for i, d := range a[0].L {
			if !d.Null && CompareValues(t, d, a[1]) == 0 {
				return types.IntDatum(int64(i + 1)), nil
			}
		}
		return types.IntDatum(0), nil
	})
}

func (c *compiler) arrayRemove(k *call) *node {
	x, item := c.arrayAndItem(k)
	t := item.typ
	return strict(x.typ, k.pos, []*node{x, item}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.Datum{L: slices.DeleteFunc(slices.Clone(a[0].L), func(d types.Datum) bool {
			return !d.Null && CompareValues(t, d, a[1]) == 0
		})}, nil
	})
}

func (c *compiler) arrayAdd(k *call, front bool) *node {
	x, item := c.arrayAndItem(k)
	return lenient(x.typ, k.pos, []*node{x, item}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch {
		case a[0].Null:
			return types.Null, nil
		case len(a[0].L) >= maxItems:
			return types.Null, tooMany(k.name)
		case front:
			return types.Datum{L: append([]types.Datum{a[1]}, a[0].L...)}, nil
		}
		return types.Datum{L: append(slices.Clone(a[0].L), a[1])}, nil
	})
}

// arrayInsert puts an element at a place counted from 1, or from the end; what is
// between is filled with NULL.
func (c *compiler) arrayInsert(k *call) *node {
	if t := k.args[1].typ; !t.integral() || t.Kind == BigInt {
		return c.mismatch(k.args[1].pos, k.name, 1, tInt.sql(), t)
	}
	at := c.want(k.args[1], tInt, k.name, 1)
	x, item := c.arrayAndItem(&call{pos: k.pos, name: k.name, args: []*node{k.args[0], k.args[2]}})
	return lenient(x.typ, k.pos, []*node{x, at, item}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		l, i := a[0].L, a[1].I
		n := int64(len(l))
		switch {
		case a[0].Null || a[1].Null:
			return types.Null, nil
		case i == 0:
			return types.Null, fault("INVALID_INDEX_OF_ZERO", "elements are counted from 1, or from the end from -1")
		case max(i, -i)+n > maxItems:
			return types.Null, tooMany(k.name)
		case i > n:
			l = append(slices.Clone(l), slices.Repeat([]types.Datum{types.Null}, int(i-1-n))...)
			return types.Datum{L: append(l, a[2])}, nil
		case i > 0:
			return types.Datum{L: slices.Insert(slices.Clone(l), int(i-1), a[2])}, nil
		case -i > n+1:
			head := append([]types.Datum{a[2]}, slices.Repeat([]types.Datum{types.Null}, int(-i-1-n))...)
			return types.Datum{L: append(head, l...)}, nil
		}
		return types.Datum{L: slices.Insert(slices.Clone(l), int(n+i+1), a[2])}, nil
	})
}

func (c *compiler) arrayDistinct(k *call) *node {
	x := c.arrayArg(k, 0)
	if c.err != nil {
		return x
	}
	if !x.typ.Elem.orderable() {
		return c.fail(k.pos, classOrdering, "elements of %s do not compare", x.typ.sql())
	}
	s := &itemSet{*x.typ.Elem}
	return strict(x.typ, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.Datum{L: s.distinct(a[0].L, func(types.Datum) bool { return true })}, nil
	})
}

// twoArrays casts both arguments to one type of array.
func (c *compiler) twoArrays(k *call) Type {
	names, null := typeList(k.args), k.args[0].typ.Kind == Void || k.args[1].typ.Kind == Void
	t, ok := c.coerceAll(k.args, tightest)
	switch {
	case !ok || null || t.Kind != Array:
		c.fail(k.pos, "DATATYPE_MISMATCH.BINARY_ARRAY_DIFF_TYPES", "%s takes two arrays of one type, not %s", k.name, names)
		return arrayOf(tVoid)
	case !t.orderable():
		c.fail(k.pos, classOrdering, "elements of %s do not compare", t.sql())
	}
	return t
}

func arraySet(f func(s *itemSet, a, b []types.Datum) []types.Datum) func(*compiler, *call) *node {
	return func(c *compiler, k *call) *node {
		t := c.twoArrays(k)
		s := &itemSet{*t.Elem}
		return strict(t, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
			if len(a[0].L)*len(a[1].L) > 1<<24 {
				return types.Null, tooMany(k.name)
			}
			return types.Datum{L: f(s, a[0].L, a[1].L)}, nil
		})
	}
}

// arraysOverlap is unknown if nothing is in both but one holds a NULL.
func (c *compiler) arraysOverlap(k *call) *node {
	t := c.twoArrays(k)
	return strict(tBool, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		null := false
		if len(a[0].L)*len(a[1].L) > 1<<24 {
			return types.Null, tooMany(k.name)
		}
		for _, x := range a[0].L {
			for _, y := range a[1].L {
				if x.Null || y.Null {
					null = true
				} else if CompareValues(*t.Elem, x, y) == 0 {
					return types.BoolDatum(true), nil
				}
			}
		}
		return types.Datum{Null: null}, nil
	})
}
