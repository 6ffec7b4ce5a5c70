package expr

import (
	"math"
	"math/bits"

	"applier/storage/types"
)

func fnum(v float64) types.Datum { return types.FloatDatum(v) }

// double1 is a function from DOUBLE to DOUBLE.
func double1(name string, f func(float64) float64) function {
	return scalar(name, 1, tDouble, []Type{tDouble}, func(_ *Env, a []types.Datum) (types.Datum, error) { return fnum(f(a[0].F)), nil })
}

// logarithm is a function that is NULL at and below a bound (Spark's UnaryLogExpression).
func logarithm(name string, bound float64, f func(float64) float64) function {
	return scalar(name, 1, tDouble, []Type{tDouble}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if a[0].F <= bound {
			return types.Null, nil
		}
		return fnum(f(a[0].F)), nil
	})
}

func mathFunctions() []function {
	two := []Type{tDouble, tDouble}
	return []function{
		double1("sqrt", math.Sqrt),
		double1("cbrt", strictCbrt),
		double1("exp", strictExp),
		double1("expm1", math.Expm1),
		double1("sin", exactSin),
		double1("cos", exactCos),
		double1("tan", exactTan),
		double1("cot", func(x float64) float64 { return 1 / exactTan(x) }),
		double1("sec", func(x float64) float64 { return 1 / exactCos(x) }),
		double1("csc", func(x float64) float64 { return 1 / exactSin(x) }),
		double1("asin", strictAsin),
		double1("acos", strictAcos),
		double1("atan", strictAtan),
		double1("sinh", strictSinh),
		double1("cosh", strictCosh),
		double1("tanh", strictTanh),
		double1("asinh", javaAsinh),
		double1("acosh", func(x float64) float64 { return strictLog(x + math.Sqrt(x*x-1)) }),
		double1("atanh", func(x float64) float64 { return 0.5 * (math.Log1p(x) - math.Log1p(-x)) }),
		double1("degrees", func(x float64) float64 { return x * (180 / math.Pi) }),
		double1("radians", func(x float64) float64 { return x * (math.Pi / 180) }),
		double1("rint", math.RoundToEven),
		logarithm("ln", 0, strictLog),
		logarithm("log2", 0, log2),
		logarithm("log10", 0, strictLog10),
		logarithm("log1p", -1, math.Log1p),
		{"log", 1, 2, (*compiler).log},
		{"signum sign", 1, 1, (*compiler).signum},
		scalar("power pow", 2, tDouble, two, func(_ *Env, a []types.Datum) (types.Datum, error) { return fnum(strictPow(a[0].F, a[1].F)), nil }),
		scalar("atan2", 2, tDouble, two, func(_ *Env, a []types.Datum) (types.Datum, error) { return fnum(strictAtan2(a[0].F+0, a[1].F+0)), nil }),
		scalar("hypot", 2, tDouble, two, func(_ *Env, a []types.Datum) (types.Datum, error) { return fnum(strictHypot(a[0].F, a[1].F)), nil }),
		scalar("factorial", 1, tLong, []Type{tInt}, factorial),
		scalar("width_bucket", 4, tLong, []Type{tDouble, tDouble, tDouble, tLong}, widthBucket),
		{"pi", 0, 0, func(_ *compiler, k *call) *node { return newConst(k.pos, tDouble, fnum(math.Pi)) }},
		{"e", 0, 0, func(_ *compiler, k *call) *node { return newConst(k.pos, tDouble, fnum(math.E)) }},
		{"mod", 2, 2, operator("%", false)},
		{"div", 2, 2, operator("DIV", false)},
		{"try_add", 2, 2, operator("+", true)},
		{"try_subtract", 2, 2, operator("-", true)},
		{"try_multiply", 2, 2, operator("*", true)},
		{"try_divide", 2, 2, operator("/", true)},
		{"try_mod", 2, 2, operator("%", true)},
		{"pmod", 2, 2, (*compiler).pmod},
		{"negative", 1, 1, func(c *compiler, k *call) *node { return c.sign(k.pos, "-", k.args[0]) }},
		{"positive", 1, 1, func(c *compiler, k *call) *node { return c.sign(k.pos, "+", k.args[0]) }},
		{"abs", 1, 1, (*compiler).abs},
		{"uniform", 2, 3, (*compiler).uniform},
	}
}

// operator is an operator as a function.
func operator(op string, try bool) func(*compiler, *call) *node {
	return func(c *compiler, k *call) *node { return c.arith(k.pos, op, k.args[0], k.args[1], try) }
}

func javaAsinh(x float64) float64 {
	switch {
	case math.IsInf(x, -1):
		return x
	case math.IsInf(x*x, 1): // too large to be squared
		return math.Copysign(strictLog(math.Abs(x))+strictLog(2), x)
	}
	return strictLog(x + math.Sqrt(x*x+1))
}

func log2(x float64) float64 { return strictLog(x) / strictLog(2) }

// log is ln(x), or the logarithm of the second argument to the base of the first.
func (c *compiler) log(k *call) *node {
	if len(k.args) == 1 {
		return c.apply(k.pos, "ln", k.args)
	}
	return strict(tDouble, k.pos, c.wantAll(k, tDouble, tDouble), func(_ *Env, a []types.Datum) (types.Datum, error) {
		if a[0].F <= 0 || a[1].F <= 0 {
			return types.Null, nil
		}
		return fnum(strictLog(a[1].F) / strictLog(a[0].F)), nil
	})
}

func (c *compiler) signum(k *call) *node {
	x := k.args[0]
	if x.typ.interval() {
		return strict(tDouble, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return fnum(float64(compareInts(a[0].I, 0))), nil
		})
	}
	return strict(tDouble, k.pos, c.wantAll(k, tDouble), func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch v := a[0].F; {
		case v > 0:
			return fnum(1), nil
		case v < 0:
			return fnum(-1), nil
		}
		return a[0], nil // zeros and NaN
	})
}

func factorial(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[0].I < 0 || a[0].I > 20 {
		return types.Null, nil
	}
	v := int64(1)
	for i := int64(2); i <= a[0].I; i++ {
		v *= i
	}
	return types.IntDatum(v), nil
}

// widthBucket returns the number of the histogram's bucket, 0 below and n+1 above.
func widthBucket(_ *Env, a []types.Datum) (types.Datum, error) {
	v, lo, hi, n := a[0].F, a[1].F, a[2].F, a[3].I
	if n <= 0 || n == math.MaxInt64 || math.IsNaN(v) || lo == hi || math.IsNaN(lo) || math.IsInf(lo, 0) || math.IsNaN(hi) || math.IsInf(hi, 0) {
		return types.Null, nil
	}
	lower, upper := min(lo, hi), max(lo, hi)
	if lo < hi {
		switch {
		case v < lower:
			return types.IntDatum(0), nil
		case v >= upper:
			return types.IntDatum(n + 1), nil
		}
		return types.IntDatum(int64(float64(n)*(v-lower)/(upper-lower)) + 1), nil
	}
	switch {
	case v > upper:
		return types.IntDatum(0), nil
	case v <= lower:
		return types.IntDatum(n + 1), nil
	}
	return types.IntDatum(int64(float64(n)*(upper-v)/(upper-lower)) + 1), nil
}

// pmod is the remainder with the sign of the divisor's magnitude: r = a % n; if r
// is negative, (r + n) % n.
func (c *compiler) pmod(k *call) *node {
	r := c.arith(k.pos, "%", k.args[0], k.args[1], false)
	if c.err != nil {
		return r
	}
	t := r.typ
	// Both operands in the type of the remainder's computation.
	n := k.args[1]
	if t.Kind == Decimal {
		n = c.castTo(n, decimalOperandWide(k.args[1], t))
	} else {
		n = c.castTo(n, t)
	}
	return strict(t, k.pos, []*node{r, n}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch {
		case t.floating():
			if v := a[0].F; v < 0 {
				v = math.Mod(v+a[1].F, a[1].F)
				if t.Kind == Float {
					v = float64(float32(v))
				}
				return fnum(v), nil
			}
			return a[0], nil
		case t.Kind == Decimal:
			v := unscaled(t, a[0])
			if v.Sign() >= 0 {
				return a[0], nil
			}
			m := rescale(unscaled(n.typ, a[1]), n.typ.Scale, t.Scale)
			v.Add(v, m)
			return decimalDatum(t, v.Rem(v, m)), nil
		case a[0].I < 0:
			v := a[0].I + a[1].I
			if t.Kind == Int {
				v = int64(int32(v)) // Spark's sum wraps around
			}
			return types.IntDatum(v % a[1].I), nil
		}
		return a[0], nil
	})
}

// decimalOperandWide is a type that holds the divisor at the remainder's scale.
func decimalOperandWide(n *node, t Type) Type {
	d := decimalOperand(n)
	scale := max(d.Scale, t.Scale)
	return decimalOf(min(types.MaxPrecision, d.Precision-d.Scale+scale), scale)
}

func (c *compiler) abs(k *call) *node {
	x := c.numberOperand(k.args[0])
	t := x.typ
	if !t.numeric() && !t.interval() {
		return c.mismatch(k.pos, "abs", 0, "a number or an interval", t)
	}
	return strict(t, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		switch d := a[0]; {
		case t.floating():
			return fnum(math.Abs(d.F)), nil
		case t.Kind == Decimal && unscaled(t, d).Sign() < 0, t.Kind != Decimal && d.I < 0:
			return negate(t, d)
		default:
			return d, nil
		}
	})
}

func bitFunctions() []function {
	return []function{
		{"shiftleft", 2, 2, shift(func(v int64, n uint, size uint) int64 { return v << n })},
		{"shiftright", 2, 2, shift(func(v int64, n uint, size uint) int64 { return v >> n })},
		{"shiftrightunsigned", 2, 2, shift(func(v int64, n uint, size uint) int64 {
			if size == 32 {
				return int64(int32(uint32(v) >> n))
			}
			return int64(uint64(v) >> n)
		})},
		{"bit_count", 1, 1, func(c *compiler, k *call) *node {
			switch t := k.args[0].typ; {
			case t.Kind == Void:
				k.args[0] = c.castTo(k.args[0], tInt)
			case t.Kind != Boolean && !t.integral():
				return c.mismatch(k.pos, k.name, 0, "an integer or BOOLEAN", t)
			}
			return strict(tInt, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
				return types.IntDatum(int64(bits.OnesCount64(uint64(a[0].I)))), nil
			})
		}},
		{"getbit bit_get", 2, 2, func(c *compiler, k *call) *node {
			if !k.args[0].typ.integral() {
				k.args[0] = c.want(k.args[0], tLong, k.name, 0)
			}
			size := map[Kind]int64{TinyInt: 8, SmallInt: 16, Int: 32, BigInt: 64}[k.args[0].typ.Kind]
			k.args[1] = c.want(k.args[1], tInt, k.name, 1)
			return strict(tByte, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
				if a[1].I < 0 || a[1].I >= size {
					return types.Null, fault("INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE", "there is no bit %d in %d", a[1].I, size)
				}
				return types.IntDatum(a[0].I >> uint(a[1].I) & 1), nil
			})
		}},
	}
}

// shift is a shift of an INT or BIGINT; the distance is cut to its size.
func shift(f func(v int64, n, size uint) int64) func(*compiler, *call) *node {
	return func(c *compiler, k *call) *node {
		t, size := tInt, uint(32)
		if k.args[0].typ.Kind == BigInt {
			t, size = tLong, 64
		}
		a := c.wantAll(k, t, tInt)
		return strict(t, k.pos, a, func(_ *Env, v []types.Datum) (types.Datum, error) {
			r := f(v[0].I, uint(v[1].I)&(size-1), size)
			if size == 32 {
				r = int64(int32(r))
			}
			return types.IntDatum(r), nil
		})
	}
}
