package expr

import (
	"errors"
	"math"
	"math/big"
	"strconv"

	"applier/storage/types"
)

func roundFunctions() []function {
	return []function{
		{"round", 1, 2, func(c *compiler, k *call) *node { return c.round(k, halfUp) }},
		{"bround", 1, 2, func(c *compiler, k *call) *node { return c.round(k, halfEven) }},
		{"floor", 1, 2, func(c *compiler, k *call) *node { return c.floor(k, toFloor) }},
		{"ceil ceiling", 1, 2, func(c *compiler, k *call) *node { return c.floor(k, toCeiling) }},
	}
}

// roundedDecimal is the type of a DECIMAL rounded to n digits behind the point:
// one integral digit more, for 9.9 becoming 10 (Spark's RoundBase).
func roundedDecimal(t Type, n int) Type {
	whole := t.Precision - t.Scale + 1
	if n < 0 {
		zeros := int(int32(-n + 1)) // Java's INT: the least ones wrap around
		return decimalOf(min(max(whole, zeros), types.MaxPrecision), 0)
	}
	scale := min(t.Scale, n)
	return decimalOf(min(whole+scale, types.MaxPrecision), scale)
}

// digitsArg returns the constant number of digits, 0 if it is left out; null tells
// that it is NULL.
func (c *compiler) digitsArg(k *call) (n int, null bool) {
	if len(k.args) < 2 {
		return 0, false
	}
	a := c.want(k.args[1], tInt, k.name, 1).fold(c.env)
	if c.err == nil && !a.constant {
		c.failDigits(k, a)
		return 0, true
	}
	return int(a.value.I), a.value.Null
}

// failDigits says why the number of digits is no constant.
func (c *compiler) failDigits(k *call, a *node) {
	if a.foldable {
		var e *Error
		if _, err := a.eval(&frame{env: c.env}); errors.As(err, &e) {
			e.Analysis = true
			c.failWith(e)
			return
		}
	}
	c.fail(a.pos, classNonFoldable, "the number of digits of %s must be a constant", k.name)
}

// maxShift is the greatest power of ten that Java's BigInteger holds.
const maxShift = 646_456_992

// shiftable refuses to round a number other than zero to digits that Java, and so Spark,
// cannot shift it to.
func shiftable(n int, zero bool, class string) error {
	if zero || n <= maxShift && n >= -maxShift {
		return nil
	}
	return fault(class, "no number is rounded to %d digits", n)
}

// round is round (half up, away from zero) and bround (half to even).
func (c *compiler) round(k *call, mode rounding) *node {
	x := c.numberOperand(k.args[0])
	if !x.typ.numeric() {
		return c.mismatch(k.pos, k.name, 0, "a number", x.typ)
	}
	n, null := c.digitsArg(k)
	t := x.typ
	if t.Kind == Decimal {
		t = roundedDecimal(t, n)
	}
	if null {
		return newConst(k.pos, t, types.Null)
	}
	from := x.typ
	return strict(t, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch {
		case from.floating():
			v := a[0].F
			return roundFloat(v, n, mode, from.Kind == Float), shiftable(n, v == 0 || math.IsNaN(v) || math.IsInf(v, 0), classJavaMath)
		case from.Kind == Decimal:
			v := unscaled(from, a[0])
			if err := shiftable(min(n, 0), v.Sign() == 0, classJavaMath); err != nil {
				return types.Null, err
			}
			return fit(roundAt(v, from.Scale, n, mode), from.Scale, t)
		}
		if err := shiftable(n, a[0].I == 0, classOverflow); err != nil || n >= 0 {
			return a[0], err
		}
		v := roundAt(big.NewInt(a[0].I), 0, n, mode)
		if !v.IsInt64() || v.Int64() < minOf(t) || v.Int64() > maxOf(t) {
			return types.Null, fault(classOverflow, "%s(%d, %d) does not fit %s", k.name, a[0].I, n, t.sql())
		}
		return types.IntDatum(v.Int64()), nil
	})
}

// roundAt rounds an unscaled value to n digits behind the point, which may be
// negative, and keeps its scale.
func roundAt(v *big.Int, scale, n int, mode rounding) *big.Int {
	cut := scale - n
	if cut <= 0 {
		return v
	}
	if cut > digits(v)+1 {
		if mode == halfUp || mode == halfEven || v.Sign() == 0 || (v.Sign() > 0) == (mode == toFloor) {
			return new(big.Int)
		}
		cut = min(cut, maxExponent)
	}
	by := bigPow10(cut)
	return new(big.Int).Mul(divRound(v, by, mode), by)
}

// roundFloat rounds by the number's printed digits, as Java's BigDecimal.valueOf does.
func roundFloat(v float64, n int, mode rounding, single bool) types.Datum {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fnum(v)
	}
	size := 64
	if single {
		size = 32 // of the result: the digits are those of the DOUBLE of the same value
	}
	b, scale, err := parseBig(strconv.FormatFloat(v, 'e', -1, 64))
	if err != nil || scale <= n {
		if v == 0 {
			v = 0 // the sign goes
		}
		return fnum(v)
	}
	r := roundAt(b, scale, n, mode)
	f, _ := strconv.ParseFloat(r.String()+"e"+strconv.Itoa(-scale), size)
	return fnum(f)
}

// floor is floor and ceil: BIGINT without a number of digits, DECIMAL with one.
func (c *compiler) floor(k *call, mode rounding) *node {
	x := k.args[0]
	if len(k.args) == 2 && (x.typ.Kind == String || x.typ.Kind == Void) {
		x = c.castTo(x, decimalOf(38, 18))
	}
	x = c.numberOperand(x)
	if !x.typ.numeric() {
		return c.mismatch(k.pos, k.name, 0, "a number", x.typ)
	}
	if len(k.args) == 2 {
		return c.floorDigits(k, x, mode)
	}
	from := x.typ
	t := tLong
	switch {
	case from.Kind == Decimal && from.Scale == 0:
		t = from
	case from.Kind == Decimal:
		t = decimalOf(min(types.MaxPrecision, from.Precision-from.Scale+1), 0)
	}
	return strict(t, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch {
		case from.Kind == Decimal:
			return fit(divRound(unscaled(from, a[0]), bigPow10(from.Scale), mode), 0, t)
		case from.floating():
			return types.IntDatum(saturate(roundWhole(a[0].F, mode))), nil
		}
		return a[0], nil
	})
}

func roundWhole(v float64, mode rounding) float64 {
	if mode == toFloor {
		return math.Floor(v)
	}
	return math.Ceil(v)
}

// saturate turns a number into a BIGINT as Java's (long) does: NaN is 0, what is
// too large the greatest.
func saturate(v float64) int64 {
	switch {
	case math.IsNaN(v):
		return 0
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(v)
}

func (c *compiler) floorDigits(k *call, x *node, mode rounding) *node {
	n, null := c.digitsArg(k)
	from := decimalFor(x.typ)
	x = c.castTo(x, from)
	t := roundedDecimal(from, n)
	if null {
		return newConst(k.pos, t, types.Null)
	}
	return strict(t, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		v := unscaled(from, a[0])
		if err := shiftable(min(n, 0), v.Sign() == 0, classJavaMath); err != nil {
			return types.Null, err
		}
		return fit(roundAt(v, from.Scale, n, mode), from.Scale, t)
	})
}
