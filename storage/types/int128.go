package types

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"math/big"
	"math/bits"
)

// Int128 is a two's complement 128-bit integer: the unscaled value of a
// DECIMAL with a precision above 18.
type Int128 struct {
	Hi int64
	Lo uint64
}

// Errors of number conversion; callers wrap them with the column.
var (
	ErrOverflow = errors.New("value out of range")
	ErrInexact  = errors.New("value has more fraction digits than the column")
	ErrSyntax   = errors.New("value has the wrong form")
)

// Int128From widens v.
func Int128From(v int64) Int128 { return Int128{v >> 63, uint64(v)} }

// IsInt64 reports whether v fits an int64.
func (v Int128) IsInt64() bool { return v.Hi == int64(v.Lo)>>63 }

// Cmp compares signed.
func (v Int128) Cmp(w Int128) int {
	if c := cmp.Compare(v.Hi, w.Hi); c != 0 {
		return c
	}
	return cmp.Compare(v.Lo, w.Lo)
}

// Neg returns -v; the smallest value wraps.
func (v Int128) Neg() Int128 {
	lo, borrow := bits.Sub64(0, v.Lo, 0)
	hi, _ := bits.Sub64(0, uint64(v.Hi), borrow)
	return Int128{int64(hi), lo}
}

// Sign returns -1, 0 or 1.
func (v Int128) Sign() int {
	switch {
	case v.Hi < 0:
		return -1
	case v.Hi == 0 && v.Lo == 0:
		return 0
	}
	return 1
}

// Abs returns the magnitude as an unsigned pair.
func (v Int128) Abs() (hi, lo uint64) {
	if v.Hi < 0 {
		v = v.Neg()
	}
	return uint64(v.Hi), v.Lo
}

// Big returns v as a big.Int.
func (v Int128) Big() *big.Int {
	hi, lo := v.Abs()
	b := new(big.Int).SetUint64(hi)
	b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(lo))
	if v.Hi < 0 {
		b.Neg(b)
	}
	return b
}

// minInt128 is -2^127, the only value without a negation.
var minInt128 = Int128{Hi: math.MinInt64}

// Int128FromBig narrows b, or says that it does not fit.
func Int128FromBig(b *big.Int) (Int128, bool) {
	if b.BitLen() > 127 && b.Cmp(minInt128.Big()) != 0 {
		return Int128{}, false
	}
	abs := new(big.Int).Abs(b)
	lo := new(big.Int).And(abs, new(big.Int).SetUint64(^uint64(0))).Uint64()
	v := Int128{int64(new(big.Int).Rsh(abs, 64).Uint64()), lo}
	if b.Sign() < 0 {
		v = v.Neg()
	}
	return v, true
}

// Bytes returns the big-endian two's complement, sign-extended or cut to n bytes (n ≤ 16).
func (v Int128) Bytes(dst []byte, n int) []byte {
	for i := n - 1; i >= 0; i-- {
		if i >= 8 {
			dst = append(dst, byte(v.Hi>>(8*(i-8))))
		} else {
			dst = append(dst, byte(v.Lo>>(8*i)))
		}
	}
	return dst
}

// MinBytes returns how many bytes the minimal two's complement form of v has
// (as java.math.BigInteger.toByteArray).
func (v Int128) MinBytes() int {
	x := v
	if x.Hi < 0 {
		x = Int128{^x.Hi, ^x.Lo}
	}
	if x.Hi != 0 {
		return 8 + bits.Len64(uint64(x.Hi))/8 + 1
	}
	return bits.Len64(x.Lo)/8 + 1
}

// Int128FromBytes reads a big-endian two's complement number of any length.
// Empty bytes are 0. It never changes b.
func Int128FromBytes(b []byte) (Int128, bool) {
	for len(b) > 16 {
		if b[0] != 0 && b[0] != 0xff || b[0]>>7 != b[1]>>7 {
			return Int128{}, false
		}
		b = b[1:]
	}
	var v Int128
	if len(b) > 0 && b[0] >= 0x80 {
		v = Int128{-1, ^uint64(0)}
	}
	for _, c := range b {
		v.Hi = v.Hi<<8 | int64(v.Lo>>56)
		v.Lo = v.Lo<<8 | uint64(c)
	}
	return v, true
}

// mulAdd returns v·m+a for non-negative v, or false on overflow.
func (v Int128) mulAdd(m, a uint64) (Int128, bool) {
	h1, l1 := bits.Mul64(v.Lo, m)
	h2, l2 := bits.Mul64(uint64(v.Hi), m)
	lo, c := bits.Add64(l1, a, 0)
	hi, c := bits.Add64(l2, h1, c)
	if h2 != 0 || c != 0 || hi>>63 != 0 {
		return Int128{}, false
	}
	return Int128{int64(hi), lo}, true
}

// quoRem divides a non-negative v.
func (v Int128) quoRem(d uint64) (Int128, uint64) {
	qh, r := bits.Div64(0, uint64(v.Hi), d)
	ql, r := bits.Div64(r, v.Lo, d)
	return Int128{int64(qh), ql}, r
}

var pow10 = func() (p [39]Int128) {
	p[0] = Int128From(1)
	for i := 1; i < len(p); i++ {
		p[i], _ = p[i-1].mulAdd(10, 0)
	}
	return p
}()

// Pow10 returns 10^n for n of 0 to 38.
func Pow10(n int) Int128 { return pow10[n] }

// FitsPrecision reports whether |v| < 10^precision.
func (v Int128) FitsPrecision(precision int) bool {
	if v.Hi < 0 {
		v = v.Neg()
	}
	return v.Hi >= 0 && v.Cmp(pow10[precision]) < 0
}

// Rescale changes the scale of an unscaled value. Making it smaller must be
// exact (ErrInexact otherwise); too large values give ErrOverflow. The scales may
// be any numbers (producers send them along).
func (v Int128) Rescale(from, to, precision int) (Int128, error) {
	if v == (Int128{}) {
		return v, nil
	}
	neg := v.Hi < 0
	if neg {
		v = v.Neg()
	}
	for ; from < to; from++ {
		var ok bool
		if v, ok = v.mulAdd(10, 0); !ok {
			return Int128{}, ErrOverflow
		}
	}
	for ; from > to; from-- { // ends at the 39th digit: then there is a remainder
		q, r := v.quoRem(10)
		if r != 0 {
			return Int128{}, ErrInexact
		}
		v = q
	}
	if !v.FitsPrecision(precision) {
		return Int128{}, ErrOverflow
	}
	if neg {
		v = v.Neg()
	}
	return v, nil
}

// ParseDecimal reads a decimal number (sign, digits, fraction, exponent) as an
// unscaled value of the given scale. A non-zero digit behind the scale is
// ErrInexact, a magnitude of 10^(precision-scale) or more ErrOverflow.
func ParseDecimal(text []byte, precision, scale int) (Int128, error) {
	i, neg := 0, false
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		neg = text[i] == '-'
		i++
	}
	digits, exp, err := splitNumber(text[i:])
	if err != nil {
		return Int128{}, err
	}
	// Value = digits (without the point) · 10^exp; wanted: · 10^-scale. So zeros
	// are to be appended, or digits to be cut.
	shift := exp + scale
	v, err := readDigits(digits, max(0, -shift))
	if err != nil {
		return Int128{}, err
	}
	for ; shift > 0 && v != (Int128{}); shift-- { // overflows at the 39th digit
		var ok bool
		if v, ok = v.mulAdd(10, 0); !ok {
			return Int128{}, ErrOverflow
		}
	}
	if !v.FitsPrecision(precision) {
		return Int128{}, ErrOverflow
	}
	if neg {
		v = v.Neg()
	}
	return v, nil
}

// readDigits returns the number that digits spell without their point and without
// the last cut of them, which must be zeros.
func readDigits(digits []byte, cut int) (v Int128, err error) {
	keep := len(digits) - cut
	if bytes.IndexByte(digits, '.') >= 0 {
		keep--
	}
	// Eighteen digits at a time fit a word.
	const full = 1_000_000_000_000_000_000
	chunk, unit, ok := uint64(0), uint64(1), true
	for _, c := range digits {
		switch {
		case c == '.':
			continue
		case keep <= 0 && c != '0':
			return Int128{}, ErrInexact
		case keep > 0:
			chunk, unit = chunk*10+uint64(c-'0'), unit*10
		}
		keep--
		if unit == full {
			if v, ok = v.mulAdd(unit, chunk); !ok {
				return Int128{}, ErrOverflow
			}
			chunk, unit = 0, 1
		}
	}
	if v, ok = v.mulAdd(unit, chunk); !ok {
		return Int128{}, ErrOverflow
	}
	return v, nil
}

// splitNumber returns the digits with their point and the exponent that makes
// them an integer: 12.5e3 → "12.5", 2.
func splitNumber(b []byte) (digits []byte, exp int, err error) {
	i, n, frac, point := 0, 0, 0, false
	for ; i < len(b); i++ {
		if c := b[i]; c >= '0' && c <= '9' {
			n++
			if point {
				frac++
			}
		} else if c == '.' && !point {
			point = true
		} else {
			break
		}
	}
	if n == 0 {
		return nil, 0, ErrSyntax
	}
	digits = b[:i]
	if i < len(b) {
		if b[i] != 'e' && b[i] != 'E' {
			return nil, 0, ErrSyntax
		}
		if exp, err = parseExponent(b[i+1:]); err != nil {
			return nil, 0, err
		}
	}
	return digits, exp - frac, nil
}

// maxExponent is what larger exponents are cut to: more than a text in memory has
// digits to make up for, so nothing but 0 fits either way.
const maxExponent = 1 << 30

func parseExponent(b []byte) (int, error) {
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, ErrSyntax
	}
	e := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, ErrSyntax
		}
		if e = e*10 + int(c-'0'); e > maxExponent {
			e = maxExponent
		}
	}
	if neg {
		e = -e
	}
	return e, nil
}

// AppendDecimal writes an unscaled value with its scale, never in exponent form.
func AppendDecimal(dst []byte, v Int128, scale int) []byte {
	if v.Hi < 0 {
		dst = append(dst, '-')
		v = v.Neg()
	}
	var buf [48]byte
	i := len(buf)
	for n := 0; v != (Int128{}) || n <= scale; n++ {
		if n == scale && scale > 0 {
			i--
			buf[i] = '.'
		}
		var r uint64
		v, r = v.quoRem(10)
		i--
		buf[i] = byte('0' + r)
	}
	return append(dst, buf[i:]...)
}
