package expr

import (
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Implicit casts under ANSI. Source of the rules: Spark's documentation "ANSI
// compliance" and what Spark 4.1 answers (testdata).

// tightest returns the type that holds values of a and b without loss, false if
// there is none. A FLOAT beside an integer is a DOUBLE.
func tightest(a, b Type) (Type, bool) {
	switch {
	case a.Equal(b):
		return a, true
	case a.Kind == Void:
		return b, true
	case b.Kind == Void:
		return a, true
	case a.Kind == String && b.Kind == String:
		if a.Collation != "" && b.Collation != "" {
			return Type{}, false
		}
		a.Collation += b.Collation
		return a, true
	case a.integral() && b.Kind == Decimal && holds(b, a):
		return b, true
	case b.integral() && a.Kind == Decimal && holds(a, b):
		return a, true
	case a.numeric() && b.numeric() && a.Kind != Decimal && b.Kind != Decimal:
		if a.Kind < b.Kind {
			a = b
		}
		if a.Kind == Float {
			a = tDouble
		}
		return a, true
	case a.datetime() && b.datetime():
		if a.Kind == Timestamp || b.Kind == Timestamp {
			return tStamp, true
		}
		return tNTZ, true
	case a.interval() && a.Kind == b.Kind:
		return Type{Kind: a.Kind, From: min(a.From, b.From), To: max(a.To, b.To)}, true
	}
	return common(a, b, tightest)
}

// holds reports whether every value of the integer type i fits the decimal d.
func holds(d, i Type) bool { return d.Precision-d.Scale >= decimalFor(i).Precision }

// common finds a type for two nested types from a rule for what is in them.
func common(a, b Type, rule func(a, b Type) (Type, bool)) (Type, bool) {
	if a.Kind != b.Kind {
		return Type{}, false
	}
	switch a.Kind {
	case Array:
		e, ok := rule(*a.Elem, *b.Elem)
		return arrayOf(e), ok
	case Map:
		k, ok1 := rule(*a.Key, *b.Key)
		v, ok2 := rule(*a.Elem, *b.Elem)
		return mapOf(k, v), ok1 && ok2 && !mayNull(*a.Key, k) && !mayNull(*b.Key, k)
	case Struct:
		if len(a.Fields) != len(b.Fields) {
			return Type{}, false
		}
		r := Type{Kind: Struct, Fields: make([]Field, len(a.Fields))}
		for i, f := range a.Fields {
			t, ok := rule(f.Type, b.Fields[i].Type)
			if !ok || !sameName(f.Name, b.Fields[i].Name) {
				return Type{}, false
			}
			r.Fields[i] = Field{Name: f.Name, Type: t}
		}
		return r, true
	}
	return Type{}, false
}

// mayNull reports whether a cast can make NULL of a value, which no key may be.
func mayNull(from, to Type) bool {
	return from.Kind == String && to.Kind != String && to.Kind != Binary
}

// widerNumber finds the type for two numbers of which one is a decimal.
func widerNumber(a, b Type) (Type, bool) {
	switch {
	case a.Kind == Decimal && (b.Kind == Decimal || b.integral()), a.integral() && b.Kind == Decimal:
		return widerDecimal(decimalFor(a), decimalFor(b)), true
	case a.Kind == Decimal && b.floating(), a.floating() && b.Kind == Decimal:
		return tDouble, true
	}
	return Type{}, false
}

// widerNoText is tightest with room for loss between decimals and others.
func widerNoText(a, b Type) (Type, bool) {
	if t, ok := tightest(a, b); ok {
		return t, true
	}
	if t, ok := widerNumber(a, b); ok {
		return t, true
	}
	return common(a, b, widerNoText)
}

// wider is widerNoText where a text may also become the other's type.
func wider(a, b Type) (Type, bool) {
	if t, ok := tightest(a, b); ok {
		return t, true
	}
	if t, ok := widerNumber(a, b); ok {
		return t, true
	}
	if t, ok := promoteText(a, b); ok {
		return t, true
	}
	return common(a, b, wider)
}

// promoteText is the type of a text beside something else: integers make it
// BIGINT, other numbers DOUBLE, everything else its own type.
func promoteText(a, b Type) (Type, bool) {
	if a.Kind != String {
		a, b = b, a
	}
	switch {
	case a.Kind != String || b.Kind == String:
		return Type{}, false
	case b.integral():
		return tLong, true
	case b.fractional():
		return tDouble, true
	case b.Kind == Void:
		return a, true
	case b.interval():
		return Type{}, false
	}
	return b, b.atomic()
}

// commonType folds a rule over the types of nodes.
func commonType(nodes []*node, rule func(a, b Type) (Type, bool)) (Type, bool) {
	t := tVoid
	for _, n := range nodes {
		u, ok := rule(t, n.typ)
		if !ok {
			return Type{}, false
		}
		t = u
	}
	return t, true
}

// coerceAll casts nodes to the type they have in common.
func (c *compiler) coerceAll(nodes []*node, rule func(a, b Type) (Type, bool)) (Type, bool) {
	t, ok := commonType(nodes, rule)
	if !ok {
		return t, false
	}
	for i, n := range nodes {
		nodes[i] = c.castTo(n, t)
	}
	return t, true
}

// castTo casts a node to a type that canCast allows.
func (c *compiler) castTo(n *node, t Type) *node {
	if n.typ.Equal(t) {
		return n
	}
	x := c.convert(n, t, false).fold(c.env)
	if x.foldable && !x.constant {
		return c.settled(x)
	}
	return x
}

// storable reports whether values of a may be assigned to b under ANSI store
// assignment, which is also what arguments of functions go by.
func storable(a, b Type) bool {
	switch {
	case a.Equal(b), a.Kind == Void:
		return true
	case a.numeric() && b.numeric(), a.datetime() && b.datetime():
		return true
	case b.Kind == String && (a.atomic() || a.Kind == Calendar):
		return true
	case a.Kind == Array && b.Kind == Array:
		return storable(*a.Elem, *b.Elem)
	case a.Kind == Map && b.Kind == Map:
		return storable(*a.Key, *b.Key) && storable(*a.Elem, *b.Elem)
	case a.Kind == Struct && b.Kind == Struct:
		if len(a.Fields) != len(b.Fields) {
			return false
		}
		for i, f := range a.Fields {
			if !sameName(f.Name, b.Fields[i].Name) || !storable(f.Type, b.Fields[i].Type) {
				return false
			}
		}
		return true
	}
	return false
}

// implicit casts an argument to the type that a function wants; ok is false if
// the types do not go together.
func (c *compiler) implicit(n *node, want Type) (*node, bool) {
	if n.typ.Kind == want.Kind && !want.nested() && want.Kind != Decimal {
		return n, true
	}
	if n.typ.Kind == String && want.atomic() || storable(n.typ, want) {
		return c.castTo(n, want), true
	}
	return n, false
}

// want is implicit that fails with the argument's number.
func (c *compiler) want(n *node, t Type, fn string, arg int) *node {
	r, ok := c.implicit(n, t)
	if !ok {
		return c.mismatch(n.pos, fn, arg, t.sql(), n.typ)
	}
	return r
}

func (c *compiler) mismatch(pos sqlparse.Pos, fn string, arg int, want string, got Type) *node {
	return c.fail(pos, classUnexpected, "argument %d of %s must be %s, not %s", arg+1, fn, want, got.sql())
}

// CommonType returns the type that values of two types meet in, as the columns of
// UNION and VALUES do; false if there is none.
func CommonType(a, b Type) (Type, bool) { return wider(a, b) }

// Converter returns the implicit cast between types of which the second came from
// CommonType. It takes NULL; its errors have no place.
func Converter(from, to Type, env *Env) func(types.Datum) (types.Datum, error) {
	return itemCaster(from, to, false, env)
}

// Place gives an error that has no place yet its place.
func Place(pos sqlparse.Pos, err error) error { return at(pos, err) }

// Orderable reports whether values of t compare; maps do not.
func (t Type) Orderable() bool { return t.orderable() }

// HasMap reports whether a map is in t: DISTINCT and set operations refuse it.
func (t Type) HasMap() bool { return t.hasMap() }
