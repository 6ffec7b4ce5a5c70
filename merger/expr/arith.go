package expr

import (
	"math"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// unary compiles - + ~ and NOT.
func (c *compiler) unary(e *sqlparse.Unary) *node {
	x := c.expr(e.X)
	if e.Op == "NOT" {
		b, ok := c.implicit(x, tBool)
		if !ok {
			return c.mismatch(e.Pos, "NOT", 0, tBool.sql(), x.typ)
		}
		return notNode(b)
	}
	return c.sign(e.Pos, e.Op, x)
}

// numberOperand casts a text or NULL to DOUBLE, as an operator on any number does.
func (c *compiler) numberOperand(n *node) *node {
	if n.typ.Kind == String || n.typ.Kind == Void {
		return c.castTo(n, tDouble)
	}
	return n
}

// sign compiles the prefix operators of numbers and intervals.
func (c *compiler) sign(pos sqlparse.Pos, op string, x *node) *node {
	if op == "~" {
		if x.typ.Kind == Void {
			x = c.castTo(x, tInt)
		}
		if !x.typ.integral() {
			return c.mismatch(pos, "~", 0, "an integer", x.typ)
		}
		return strict(x.typ, pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) { return types.IntDatum(^a[0].I), nil })
	}
	x = c.numberOperand(x)
	t := x.typ
	if !t.numeric() && !t.interval() && t.Kind != Calendar {
		return c.mismatch(pos, op, 0, "a number or an interval", t)
	}
	if op == "+" {
		return x
	}
	n := strict(t, pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) { return negate(t, a[0]) })
	n.foldable = x.foldable
	return n
}

// negate returns -d.
func negate(t Type, d types.Datum) (types.Datum, error) {
	switch t.Kind {
	case Float, Double:
		return types.FloatDatum(-d.F), nil
	case Decimal:
		if t.Precision > 18 {
			return types.Datum{D: d.D.Neg()}, nil
		}
	case Calendar:
		return calendarDatum(-d.L[0].I, -d.L[1].I, -d.L[2].I), nil
	}
	if d.I == minOf(t) {
		return types.Null, fault(classOverflow, "-(%d) does not fit %s", d.I, t.sql())
	}
	return types.IntDatum(-d.I), nil
}

// minOf and maxOf are the bounds of an integer type, and of what is held as one.
func minOf(t Type) int64 {
	switch t.Kind {
	case TinyInt:
		return math.MinInt8
	case SmallInt:
		return math.MinInt16
	case Int, YearMonth, Date:
		return math.MinInt32
	}
	return math.MinInt64
}

func maxOf(t Type) int64 { return -(minOf(t) + 1) }

// binary compiles the operators between two values.
func (c *compiler) binary(e *sqlparse.Binary) *node {
	l, r := c.expr(e.L), c.expr(e.R)
	if c.err != nil {
		return l
	}
	switch e.Op {
	case "=", "<=>", "<>", "<", "<=", ">", ">=":
		return c.comparison(e.Pos, e.Op, l, r)
	case "||":
		return c.apply(e.Pos, "concat", []*node{l, r})
	case "&", "|", "^":
		return c.bits(e.Pos, e.Op, l, r)
	case "<<":
		return c.apply(e.Pos, "shiftleft", []*node{l, r})
	case ">>":
		return c.apply(e.Pos, "shiftright", []*node{l, r})
	case ">>>":
		return c.apply(e.Pos, "shiftrightunsigned", []*node{l, r})
	}
	return c.arith(e.Pos, e.Op, l, r, false)
}

// bits compiles & | ^ over integers.
func (c *compiler) bits(pos sqlparse.Pos, op string, l, r *node) *node {
	nodes := []*node{l, r}
	t, ok := c.coerceAll(nodes, func(a, b Type) (Type, bool) {
		if t, ok := tightest(a, b); ok {
			return t, ok
		}
		return promoteText(a, b)
	})
	if ok && t.Kind == Void {
		t = tInt
		nodes[0], nodes[1] = c.castTo(l, t), c.castTo(r, t)
	}
	switch {
	case !ok:
		return c.fail(pos, classDiffTypes, "%s needs two integers, not %s", op, typeList([]*node{l, r}))
	case !t.integral():
		return c.fail(pos, classWrongType, "%s needs integers, not %s", op, t.sql())
	}
	return strict(t, pos, nodes, func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch op {
		case "&":
			return types.IntDatum(a[0].I & a[1].I), nil
		case "|":
			return types.IntDatum(a[0].I | a[1].I), nil
		}
		return types.IntDatum(a[0].I ^ a[1].I), nil
	})
}

// arith compiles + - * / % DIV. With try set, overflow and division by zero give
// NULL.
func (c *compiler) arith(pos sqlparse.Pos, op string, l, r *node, try bool) *node {
	if n := c.timeArith(pos, op, l, r); n != nil {
		if try {
			return tryAll(n)
		}
		return n
	}
	if l.typ.Kind == Void && r.typ.Kind == Void && op != "DIV" {
		l, r = c.castTo(l, tDouble), c.castTo(r, tDouble)
	}
	if t, ok := promoteText(l.typ, r.typ); ok {
		if try {
			l, r = c.convert(l, t, true), c.convert(r, t, true)
		}
		l, r = c.castTo(l, t), c.castTo(r, t)
	}
	if l.typ.Kind == String && r.typ.Kind == String {
		return c.fail(pos, classWrongType, "%s needs a number on one side at least, not two texts: cast them", op)
	}
	switch op {
	case "/":
		if l.typ.Kind == Void {
			l, r = c.castTo(l, tDouble), c.castTo(r, tDouble) // Spark: NULL / 0.5 is DOUBLE, 0.5 / NULL is not
		}
		return maybeTry(c.divide(pos, l, r), try)
	case "DIV":
		return maybeTry(c.intDivide(pos, l, r), try)
	}
	if n := c.decimalArith(pos, op, l, r); n != nil {
		return maybeTry(n, try)
	}
	nodes := []*node{l, r}
	t, ok := c.coerceAll(nodes, tightest)
	switch {
	case !ok:
		return c.fail(pos, classDiffTypes, "%s does not go with %s and %s", op, l.typ.sql(), r.typ.sql())
	case !t.numeric():
		return c.fail(pos, classWrongType, "%s needs numbers or intervals, not %s", op, t.sql())
	}
	return maybeTry(arithNode(pos, op, nodes[0], nodes[1], t), try)
}

// tryAll turns all errors of a node and of its operands into NULL, as Spark does for
// some of its try_ functions.
func tryAll(n *node) *node {
	t, eval := *n, n.eval
	t.eval = func(f *frame) (types.Datum, error) {
		d, err := eval(f)
		if e, ok := err.(*Error); ok && e.Class != classTooLarge {
			return types.Null, nil
		}
		return d, err
	}
	return &t
}

// maybeTry turns errors of a node itself, not those of its operands, into NULL:
// the operands have given theirs a place already.
func maybeTry(n *node, try bool) *node {
	if !try {
		return n
	}
	t := *n
	eval, pos := n.eval, n.pos
	t.eval = func(f *frame) (types.Datum, error) {
		d, err := eval(f)
		if e, ok := err.(*Error); ok && e.Pos == pos && triable[e.Class] {
			return types.Null, nil
		}
		return d, err
	}
	return &t
}

var triable = map[string]bool{
	classOverflow: true, classSmallOverflow: true, classDivZero: true, classRemZero: true, classNumericRange: true,
	"INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION": true, "INTERVAL_ARITHMETIC_OVERFLOW.WITH_SUGGESTION": true,
	"INTERVAL_DIVIDED_BY_ZERO": true, "DATETIME_OVERFLOW": true,
}

// decimalArith compiles an operation with a DECIMAL in it, nil if none is.
func (c *compiler) decimalArith(pos sqlparse.Pos, op string, l, r *node) *node {
	switch {
	case l.typ.Kind != Decimal && r.typ.Kind != Decimal:
		return nil
	case l.typ.floating() || r.typ.floating():
		if op == "DIV" {
			return nil
		}
		return arithNode(pos, op, c.castTo(l, tDouble), c.castTo(r, tDouble), tDouble)
	case l.typ.Kind == Void:
		l = c.castTo(l, r.typ)
	case r.typ.Kind == Void:
		r = c.castTo(r, l.typ)
	}
	if !l.typ.numeric() || !r.typ.numeric() {
		return nil
	}
	a, b := decimalOperand(l), decimalOperand(r)
	l, r = c.castTo(l, a), c.castTo(r, b)
	t := decimalResult(op, a, b)
	le, re := l.eval, r.eval
	n := &node{typ: t, pos: pos, foldable: l.foldable && r.foldable}
	n.eval = func(f *frame) (types.Datum, error) {
		x, y, err := operands(f, op, le, re)
		if err != nil || x.Null || y.Null {
			return types.Null, err
		}
		rv := unscaled(b, y)
		if rv.Sign() == 0 {
			if class := zeroClass(op); class != "" {
				return types.Null, at(pos, zeroFault(class))
			}
		}
		d, err := decimalOp(op, unscaled(a, x), a, rv, b, t)
		return d, at(pos, err)
	}
	return n
}

func zeroClass(op string) string {
	switch op {
	case "/", "DIV":
		return classDivZero
	case "%":
		return classRemZero
	}
	return ""
}

func zeroFault(class string) error {
	return fault(class, "division by zero; try_divide and try_mod give NULL instead")
}

// operands evaluates both operands, that of a division from the right; the first
// NULL is the result. NULL on either side wins over a divisor of zero.
func operands(f *frame, op string, le, re evalFn) (a, b types.Datum, err error) {
	if zeroClass(op) != "" {
		if b, err = re(f); err != nil || b.Null {
			return a, b, err
		}
		a, err = le(f)
		return a, b, err
	}
	if a, err = le(f); err != nil || a.Null {
		return a, b, err
	}
	b, err = re(f)
	return a, b, err
}

// divide compiles /: decimals stay decimals, everything else is DOUBLE.
func (c *compiler) divide(pos sqlparse.Pos, l, r *node) *node {
	if n := c.decimalArith(pos, "/", l, r); n != nil {
		return n
	}
	lc, ok1 := c.implicit(l, tDouble)
	rc, ok2 := c.implicit(r, tDouble)
	if !ok1 || !ok2 {
		return c.fail(pos, classDiffTypes, "/ does not go with %s and %s", l.typ.sql(), r.typ.sql())
	}
	return arithNode(pos, "/", lc, rc, tDouble)
}

// intDivide compiles DIV, which gives BIGINT.
func (c *compiler) intDivide(pos sqlparse.Pos, l, r *node) *node {
	if n := c.decimalArith(pos, "DIV", l, r); n != nil {
		return n
	}
	for _, x := range []*node{l, r} {
		if k := x.typ; !k.integral() && k.Kind != Void {
			class := classDiffTypes
			if l.typ.Equal(r.typ) || min(l.typ.Kind, r.typ.Kind) == Double && max(l.typ.Kind, r.typ.Kind) == Decimal {
				class = classWrongType
			}
			return c.fail(pos, class, "DIV needs integers or decimals, not %s and %s", l.typ.sql(), r.typ.sql())
		}
	}
	return arithNode(pos, "DIV", c.castTo(l, tLong), c.castTo(r, tLong), tLong)
}

// arithNode computes with two operands of type t.
func arithNode(pos sqlparse.Pos, op string, l, r *node, t Type) *node {
	le, re := l.eval, r.eval
	n := &node{typ: t, pos: pos, foldable: l.foldable && r.foldable}
	if t.floating() {
		n.eval = floatOp(pos, op, t, le, re)
		return n
	}
	compute := intOp(op, t)
	n.eval = func(f *frame) (types.Datum, error) {
		a, b, err := operands(f, op, le, re)
		if err != nil || a.Null || b.Null {
			return types.Null, err
		}
		v, err := compute(a.I, b.I)
		if err != nil {
			return types.Null, at(pos, err)
		}
		return types.IntDatum(v), nil
	}
	return n
}

// intOp returns the operation on integers of type t, with its range checked.
func intOp(op string, t Type) func(a, b int64) (int64, error) {
	lo, hi := minOf(t), maxOf(t)
	class := classOverflow
	if t.Kind == TinyInt || t.Kind == SmallInt {
		class = classSmallOverflow
	}
	checked := func(v int64, ok bool, a, b int64) (int64, error) {
		if !ok || v < lo || v > hi {
			return 0, fault(class, "%d %s %d does not fit %s; try_add and its like give NULL instead", a, op, b, t.sql())
		}
		return v, nil
	}
	switch op {
	case "+":
		return func(a, b int64) (int64, error) {
			v := a + b
			return checked(v, (v > a) == (b > 0), a, b)
		}
	case "-":
		return func(a, b int64) (int64, error) {
			v := a - b
			return checked(v, (v < a) == (b > 0), a, b)
		}
	case "*":
		return func(a, b int64) (int64, error) {
			v, ok := mulInt64(a, b)
			return checked(v, ok, a, b)
		}
	case "%":
		return func(a, b int64) (int64, error) {
			switch b {
			case 0:
				return 0, zeroFault(classRemZero)
			case -1:
				return 0, nil
			}
			return a % b, nil
		}
	}
	return func(a, b int64) (int64, error) { // DIV
		if b == 0 {
			return 0, zeroFault(classDivZero)
		}
		return checked(a/b, !(a == math.MinInt64 && b == -1), a, b)
	}
}

// mulInt64 multiplies and reports whether the product fits.
func mulInt64(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	v := a * b
	return v, v/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
}

// addInt64 adds and reports whether the sum fits.
func addInt64(a, b int64) (int64, bool) {
	v := a + b
	return v, (v > a) == (b > 0)
}

// floatOp returns the operation on FLOAT or DOUBLE. Dividing by zero is an error;
// infinities otherwise are values.
func floatOp(pos sqlparse.Pos, op string, t Type, le, re evalFn) evalFn {
	compute := func(a, b float64) float64 { return a / b }
	switch op {
	case "+":
		compute = func(a, b float64) float64 { return a + b }
	case "-":
		compute = func(a, b float64) float64 { return a - b }
	case "*":
		compute = func(a, b float64) float64 { return a * b }
	case "%":
		compute = math.Mod
	}
	class, single := zeroClass(op), t.Kind == Float
	return func(f *frame) (types.Datum, error) {
		a, b, err := operands(f, op, le, re)
		if err != nil || a.Null || b.Null {
			return types.Null, err
		}
		if class != "" && b.F == 0 {
			return types.Null, at(pos, zeroFault(class))
		}
		v := compute(a.F, b.F)
		if single {
			v = float64(float32(v))
		}
		return types.FloatDatum(v), nil
	}
}
