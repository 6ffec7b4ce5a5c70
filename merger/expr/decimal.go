package expr

import (
	"errors"
	"math"
	"math/big"
	"strconv"

	"applier/storage/types"
)

// minDivScale is the scale that a result keeps when its precision is cut to 38,
// and the least scale of a quotient (Spark's MINIMUM_ADJUSTED_SCALE).
const minDivScale = 6

// maxExponent bounds the exponent of a decimal text: beyond it everything is out
// of range or 0, and digits cost memory.
const maxExponent = 4096

var errNumber = errors.New("no number")

var pow10s = func() []*big.Int {
	p := make([]*big.Int, 2*types.MaxPrecision+4)
	p[0] = big.NewInt(1)
	for i := 1; i < len(p); i++ {
		p[i] = new(big.Int).Mul(p[i-1], big.NewInt(10))
	}
	return p
}()

// bigPow10 returns 10^n; the result must not be changed.
func bigPow10(n int) *big.Int {
	if n < len(pow10s) {
		return pow10s[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// digits counts the decimal digits of v; 0 has one.
func digits(v *big.Int) int {
	n := v.BitLen() * 30103 / 100000 // log10(2)
	if v.CmpAbs(bigPow10(n)) >= 0 {
		n++
	}
	return max(n, 1)
}

// unscaled returns a decimal's unscaled value.
func unscaled(t Type, d types.Datum) *big.Int {
	if t.Precision <= 18 {
		return big.NewInt(d.I)
	}
	return d.D.Big()
}

// decimalDatum holds an unscaled value that fits t.
func decimalDatum(t Type, v *big.Int) types.Datum {
	if t.Precision <= 18 {
		return types.IntDatum(v.Int64())
	}
	d, _ := types.Int128FromBig(v)
	return types.Datum{D: d}
}

// rescale changes a scale, rounding half up (away from zero).
func rescale(v *big.Int, from, to int) *big.Int {
	switch {
	case to > from:
		return new(big.Int).Mul(v, bigPow10(to-from))
	case to == from:
		return v
	}
	return divRound(v, bigPow10(from-to), halfUp)
}

// rounding tells how divRound treats a remainder.
type rounding uint8

const (
	halfUp rounding = iota
	halfEven
	toFloor
	toCeiling
	toZero
)

// divRound divides v by a divisor that is not 0.
func divRound(v, by *big.Int, mode rounding) *big.Int {
	q, r := new(big.Int).QuoRem(v, by, new(big.Int))
	if r.Sign() == 0 {
		return q
	}
	sign := int64(v.Sign() * by.Sign())
	up := false
	switch half := new(big.Int).Lsh(r, 1).CmpAbs(by); mode {
	case halfUp:
		up = half >= 0
	case halfEven:
		up = half > 0 || half == 0 && q.Bit(0) == 1
	case toFloor:
		up = sign < 0
	case toCeiling:
		up = sign > 0
	}
	if up {
		q.Add(q, big.NewInt(sign))
	}
	return q
}

// fit rounds a value to the scale of t and refuses what has too many digits.
func fit(v *big.Int, scale int, t Type) (types.Datum, error) {
	r := rescale(v, scale, t.Scale)
	if digits(r) > t.Precision {
		return types.Null, fault(classNumericRange, "the value %s does not fit DECIMAL(%d,%d)", decimalText(v, scale), t.Precision, t.Scale)
	}
	return decimalDatum(t, r), nil
}

// limitDigits rounds v half up to a number of significant digits and returns the
// new scale.
func limitDigits(v *big.Int, scale, n int) (*big.Int, int) {
	cut := digits(v) - n
	if cut <= 0 {
		return v, scale
	}
	return divRound(v, bigPow10(cut), halfUp), scale - cut
}

// decimalText writes a value in full, never with an exponent.
func decimalText(v *big.Int, scale int) string {
	if scale <= 0 {
		return new(big.Int).Mul(v, bigPow10(-scale)).String()
	}
	s := new(big.Int).Abs(v).String()
	for len(s) <= scale {
		s = "0" + s
	}
	s = s[:len(s)-scale] + "." + s[len(s)-scale:]
	if v.Sign() < 0 {
		s = "-" + s
	}
	return s
}

// parseBig reads sign, digits, fraction and exponent; the scale may be negative.
func parseBig(s string) (v *big.Int, scale int, err error) {
	mant, exp := s, 0
	for i := range len(s) {
		if s[i] == 'e' || s[i] == 'E' {
			if exp, err = strconv.Atoi(s[i+1:]); err != nil && !errors.Is(err, strconv.ErrRange) {
				return nil, 0, errNumber
			}
			mant = s[:i]
			break
		}
	}
	buf := make([]byte, 0, len(mant))
	any, point := false, false
	for i := range len(mant) {
		switch c := mant[i]; {
		case c >= '0' && c <= '9':
			buf = append(buf, c)
			any = true
			if point {
				scale++
			}
		case c == '.' && !point:
			point = true
		case (c == '-' || c == '+') && i == 0:
			if c == '-' {
				buf = append(buf, c)
			}
		default:
			return nil, 0, errNumber
		}
	}
	if !any || len(buf) > maxExponent {
		return nil, 0, errNumber
	}
	v, ok := new(big.Int).SetString(string(buf), 10)
	if !ok {
		return nil, 0, errNumber
	}
	if v.Sign() == 0 {
		return v, max(0, min(scale-exp, maxExponent)), nil
	}
	return v, scale - max(-maxExponent, min(exp, maxExponent)), nil
}

// boundedDecimal cuts a precision above 38: the fraction gives way first, but not
// below six digits (Spark's adjustPrecisionScale).
func boundedDecimal(p, s int) Type {
	if p <= types.MaxPrecision {
		return decimalOf(p, s)
	}
	whole := p - s
	return decimalOf(types.MaxPrecision, max(types.MaxPrecision-whole, min(s, minDivScale)))
}

// widerDecimal holds every value of a and b, or as much as 38 digits hold with
// the integral digits first.
func widerDecimal(a, b Type) Type {
	scale := max(a.Scale, b.Scale)
	p := max(a.Precision-a.Scale, b.Precision-b.Scale) + scale
	if p > types.MaxPrecision {
		return decimalOf(types.MaxPrecision, max(0, scale-(p-types.MaxPrecision)))
	}
	return decimalOf(p, scale)
}

// decimalFor is the DECIMAL that holds all values of a numeric type.
func decimalFor(t Type) Type {
	switch t.Kind {
	case TinyInt:
		return decimalOf(3, 0)
	case SmallInt:
		return decimalOf(5, 0)
	case Int:
		return decimalOf(10, 0)
	case BigInt:
		return decimalOf(20, 0)
	case Float:
		return decimalOf(14, 7)
	case Double:
		return decimalOf(30, 15)
	case Decimal:
		return t
	}
	return decimalOf(38, 18)
}

// decimalOperand is the decimal type of a number beside a decimal: a literal
// integer takes its own digits (Spark's literalPickMinimumPrecision).
func decimalOperand(n *node) Type {
	if n.literal && n.typ.integral() && n.typ.Kind != TinyInt {
		return decimalOf(digits(big.NewInt(n.value.I)), 0)
	}
	return decimalFor(n.typ)
}

// decimalResult is the type of an operation on two decimals (Spark's
// DecimalPrecision).
func decimalResult(op string, a, b Type) Type {
	switch op {
	case "+", "-":
		scale := max(a.Scale, b.Scale)
		return boundedDecimal(max(a.Precision-a.Scale, b.Precision-b.Scale)+scale+1, scale)
	case "*":
		return boundedDecimal(a.Precision+b.Precision+1, a.Scale+b.Scale)
	case "/":
		scale := max(minDivScale, a.Scale+b.Precision+1)
		return boundedDecimal(a.Precision-a.Scale+b.Scale+scale, scale)
	case "%":
		scale := max(a.Scale, b.Scale)
		return boundedDecimal(min(a.Precision-a.Scale, b.Precision-b.Scale)+scale, scale)
	}
	return tLong // DIV
}

// decimalOp computes l op r of types a and b into t. The roundings on the way to
// t are Spark's: products to 39 digits, quotients to 38 fraction digits.
func decimalOp(op string, l *big.Int, a Type, r *big.Int, b Type, t Type) (types.Datum, error) {
	scale := max(a.Scale, b.Scale)
	switch op {
	case "+":
		return fit(new(big.Int).Add(rescale(l, a.Scale, scale), rescale(r, b.Scale, scale)), scale, t)
	case "-":
		return fit(new(big.Int).Sub(rescale(l, a.Scale, scale), rescale(r, b.Scale, scale)), scale, t)
	case "*":
		v, s := limitDigits(new(big.Int).Mul(l, r), a.Scale+b.Scale, types.MaxPrecision+1)
		return fit(v, s, t)
	case "/":
		// l/10^a : r/10^b at scale 38 = l * 10^(38 - a + b) / r
		n := new(big.Int).Mul(l, bigPow10(types.MaxPrecision-a.Scale+b.Scale))
		return fit(divRound(n, r, halfUp), types.MaxPrecision, t)
	case "%":
		return fit(new(big.Int).Rem(rescale(l, a.Scale, scale), rescale(r, b.Scale, scale)), scale, t)
	}
	q := new(big.Int).Quo(rescale(l, a.Scale, scale), rescale(r, b.Scale, scale))
	if whole := min(types.MaxPrecision, a.Precision-a.Scale+b.Scale); digits(q) > max(whole, 1) {
		return types.Null, fault(classNumericRange, "the quotient %s does not fit DECIMAL(%d,0)", q, whole)
	}
	low := new(big.Int).And(q, new(big.Int).SetUint64(math.MaxUint64))
	return types.IntDatum(int64(low.Uint64())), nil // Spark keeps the low 64 bits, without an error
}
