package expr

import (
	"bytes"
	"cmp"
	"math"
	"strings"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

func sameName(a, b string) bool { return strings.EqualFold(a, b) }

func compareInts(a, b int64) int { return cmp.Compare(a, b) }

// compareFloats orders NaN above all and takes both zeros as one.
func compareFloats(x, y float64) int {
	switch xn, yn := math.IsNaN(x), math.IsNaN(y); {
	case xn || yn:
		switch {
		case xn && yn:
			return 0
		case xn:
			return 1
		}
		return -1
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// CompareValues compares two values of type t that are not NULL themselves, in
// Spark's order: NaN above every number, -0.0 equal to 0.0, texts by their UTF-8
// bytes, NULL inside nested values first.
func CompareValues(t Type, a, b types.Datum) int {
	switch t.Kind {
	case Float, Double:
		return compareFloats(a.F, b.F)
	case Decimal:
		if t.Precision > 18 {
			return a.D.Cmp(b.D)
		}
	case String:
		if t.Collation != "" {
			return strings.Compare(collationKey(t, a.B), collationKey(t, b.B))
		}
		return bytes.Compare(a.B, b.B)
	case Binary:
		return bytes.Compare(a.B, b.B)
	case Timestamp, TimestampNTZ:
		return cmp.Or(cmp.Compare(a.I, b.I), cmp.Compare(a.N, b.N))
	case Array, Map, Struct, Calendar:
		return compareLists(t, a.L, b.L)
	}
	return cmp.Compare(a.I, b.I)
}

// CompareNullable is CompareValues with NULL below everything.
func CompareNullable(t Type, a, b types.Datum) int {
	switch {
	case a.Null && b.Null:
		return 0
	case a.Null:
		return -1
	case b.Null:
		return 1
	}
	return CompareValues(t, a, b)
}

func compareLists(t Type, a, b []types.Datum) int {
	for i := range min(len(a), len(b)) {
		if c := CompareNullable(t.item(i), a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// item is the type of item i of a nested value's list.
func (t Type) item(i int) Type {
	switch t.Kind {
	case Array:
		return *t.Elem
	case Map:
		if i%2 == 0 {
			return *t.Key
		}
		return *t.Elem
	case Struct:
		return t.Fields[i].Type
	}
	return tLong
}

// comparison compiles = <> < <= > >= <=>.
func (c *compiler) comparison(pos sqlparse.Pos, op string, l, r *node) *node {
	t, ok := compareType(l.typ, r.typ)
	if !ok {
		return c.fail(pos, classDiffTypes, "%s does not compare with %s", l.typ.sql(), r.typ.sql())
	}
	if !t.orderable() {
		return c.fail(pos, classOrdering, "values of %s do not compare", t.sql())
	}
	n := max(l.char, r.char)
	if n > 0 && t.Kind == String && (l.char > 0 || l.foldable) && (r.char > 0 || r.foldable) {
		return compareNode(pos, op, trimmed(l), trimmed(r), t)
	}
	return compareNode(pos, op, c.castTo(l, t), c.castTo(r, t), t)
}

// compareType is the type that two operands are compared in. Struct fields meet
// by position: their names do not matter.
func compareType(a, b Type) (Type, bool) {
	for _, rule := range [...]func(a, b Type) (Type, bool){tightest, widerNumber, promoteText} {
		if t, ok := rule(a, b); ok {
			return t, true
		}
	}
	if a.sameShape(b) {
		return a, true
	}
	return Type{}, false
}

// trimmed cuts the trailing blanks of a text: CHAR compares without them.
func trimmed(n *node) *node {
	eval := n.eval
	t := *n
	t.constant = false
	t.eval = func(f *frame) (types.Datum, error) {
		d, err := eval(f)
		if err == nil && !d.Null {
			d.B = types.TrimBlanks(d.B)
		}
		return d, err
	}
	return &t
}

// compareNode compares two nodes of type t.
func compareNode(pos sqlparse.Pos, op string, l, r *node, t Type) *node {
	n := &node{typ: tBool, pos: pos, foldable: l.foldable && r.foldable}
	if op == "<=>" {
		n.eval = nullSafe(l.eval, r.eval, t)
		return n
	}
	test := comparisonTest(op)
	le, re := l.eval, r.eval
	n.eval = func(f *frame) (types.Datum, error) {
		a, err := le(f)
		if err != nil || a.Null {
			return types.Null, err
		}
		b, err := re(f)
		if err != nil || b.Null {
			return types.Null, err
		}
		return types.BoolDatum(test(CompareValues(t, a, b))), nil
	}
	return n
}

func nullSafe(le, re evalFn, t Type) evalFn {
	return func(f *frame) (types.Datum, error) {
		a, err := le(f)
		if err != nil {
			return types.Null, err
		}
		b, err := re(f)
		if err != nil {
			return types.Null, err
		}
		return types.BoolDatum(CompareNullable(t, a, b) == 0), nil
	}
}

func comparisonTest(op string) func(int) bool {
	switch op {
	case "=":
		return func(c int) bool { return c == 0 }
	case "<>":
		return func(c int) bool { return c != 0 }
	case "<":
		return func(c int) bool { return c < 0 }
	case "<=":
		return func(c int) bool { return c <= 0 }
	case ">":
		return func(c int) bool { return c > 0 }
	}
	return func(c int) bool { return c >= 0 }
}
