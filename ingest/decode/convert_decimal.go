package decode

import (
	"math/big"

	"applier/storage/types"
)

// Limits on decimals of variable scale. PostgreSQL's NUMERIC has at most
// 131,072 digits before the point and 16,383 behind it.
const (
	maxUnscaledBytes = 1 << 13
	maxScale         = 20_000
)

func toDecimal(c *conv, t *token, v *types.Vector) *fault {
	text := t.raw
	if t.kind == kindString {
		text = t.text
	}
	if t.kind == kindNumber || t.kind == kindString && c.textual() && !c.base64Decimals() {
		if n, ok := smallDecimal(text, c.typ.Precision, c.typ.Scale); ok {
			appendDecimal(v, types.Int128From(n))
			return nil
		}
	}
	d, f := c.decimal(t, c.typ.Precision, c.typ.Scale)
	if f == nil {
		appendDecimal(v, d)
	}
	return f
}

func appendDecimal(v *types.Vector, d types.Int128) {
	if v.Layout == types.LayoutInt64 {
		v.AppendInt64(int64(d.Lo))
	} else {
		v.AppendInt128(d)
	}
}

// base64Decimals reports whether a text without schema is an unscaled integer.
func (c *conv) base64Decimals() bool {
	return c.src == srcDebezium && c.env.unscaled && c.typ.Kind == types.Decimal
}

// decimal reads a value as an exact decimal of the given precision and scale.
func (c *conv) decimal(t *token, precision, scale int) (types.Int128, *fault) {
	switch t.kind {
	case kindNumber:
		d, err := types.ParseDecimal(t.raw, precision, scale)
		if err != nil {
			return d, numberFault(err)
		}
		return d, nil
	case kindString:
		switch {
		case c.src == srcDecimal, c.base64Decimals():
			from := scale // without schema the column says what the scale is
			if c.src == srcDecimal {
				from = c.scale
			}
			b, f := c.decodeBase64(t.text)
			if f != nil {
				return types.Int128{}, f
			}
			return rescale(b, from, precision, scale)
		case c.textual():
			return c.numeral(t.text, precision, scale)
		}
	case kindObject:
		b, from, f := c.variable(t)
		if f != nil {
			return types.Int128{}, f
		}
		return rescale(b, from, precision, scale)
	}
	return types.Int128{}, errForm
}

// numeral reads a decimal in text form.
func (c *conv) numeral(text []byte, precision, scale int) (types.Int128, *fault) {
	d, err := types.ParseDecimal(text, precision, scale)
	if err == nil {
		return d, nil
	}
	if _, special := notFinite(text); special {
		return d, errNotFinite
	}
	f := numberFault(err)
	if f == errNumberText && c.src == srcDebezium && c.typ.Kind == types.Decimal {
		f = errUnscaled
	}
	return d, f
}

// smallDecimal reads the common case quickly: digits with at most one point,
// no exponent, at most 18 digits after scaling. Otherwise it returns false.
func smallDecimal(text []byte, precision, scale int) (int64, bool) {
	i, neg := 0, false
	if len(text) > 0 && text[0] == '-' {
		neg, i = true, 1
	}
	if len(text)-i > 19 {
		return 0, false
	}
	var v int64
	digits, fraction, point := 0, 0, 0
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c-'0' <= 9:
			v = v*10 + int64(c-'0')
			digits++
			fraction += point
		case c == '.' && point == 0:
			point = 1
		default:
			return 0, false
		}
	}
	missing := scale - fraction
	if digits == 0 || missing < 0 || digits+missing > 18 {
		return 0, false
	}
	v *= int64(types.Pow10(missing).Lo)
	if precision < 18 && v >= int64(types.Pow10(precision).Lo) {
		return 0, false
	}
	if neg {
		v = -v
	}
	return v, true
}

// rescale reads a two's complement unscaled value of scale from as one of
// scale to. b is not changed.
func rescale(b []byte, from, precision, to int) (types.Int128, *fault) {
	d, ok := types.Int128FromBytes(b)
	if !ok {
		return rescaleBig(b, from, precision, to)
	}
	if d == (types.Int128{}) {
		return d, nil
	}
	d, err := d.Rescale(from, to, precision)
	if err != nil {
		return d, numberFault(err)
	}
	return d, nil
}

// rescaleBig handles unscaled values beyond 128 bits, which fit a column only
// if enough zeros can be cut from their end.
func rescaleBig(b []byte, from, precision, to int) (types.Int128, *fault) {
	cut := from - to
	if cut <= 0 || len(b) > maxUnscaledBytes {
		return types.Int128{}, errOverflow
	}
	if cut > len(b)*5/2+1 { // more digits than the number has
		return types.Int128{}, errFraction
	}
	divisor := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(cut)), nil)
	quotient, rest := new(big.Int).QuoRem(bigFromBytes(b), divisor, new(big.Int))
	if rest.Sign() != 0 {
		return types.Int128{}, errFraction
	}
	d, ok := types.Int128FromBig(quotient)
	if !ok || !d.FitsPrecision(precision) {
		return types.Int128{}, errOverflow
	}
	return d, nil
}

func bigFromBytes(b []byte) *big.Int {
	x := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return x
}

// variable reads Debezium's VariableScaleDecimal: {"scale":9,"value":"J+Qb…"}.
// It describes itself, so it needs no schema; plain JSON does not have it.
func (c *conv) variable(t *token) (unscaled []byte, scale int, f *fault) {
	if c.src != srcVariable && c.src != srcDebezium {
		return nil, 0, errForm
	}
	s := &c.env.inner
	s.reset(t.raw)
	found := 0
	s.begin()
	for first := true; s.more(first); first = false {
		name, _, ok := s.name()
		if !ok {
			return nil, 0, errForm
		}
		what := string(name)
		var m token
		switch ok = s.token(&m); {
		case !ok:
			return nil, 0, errForm
		case what == "scale" && m.kind == kindNumber && m.small && m.num >= -maxScale && m.num <= maxScale:
			scale = int(m.num)
			found |= 1
		case what == "value" && m.kind == kindString:
			if unscaled, f = c.decodeBase64(m.text); f != nil {
				return nil, 0, f
			}
			found |= 2
		}
	}
	if found != 3 {
		return nil, 0, errForm
	}
	return unscaled, scale, nil
}

// decimalText renders a decimal that is not in text form yet, with its own
// scale. The result is good until the next conversion.
func (c *conv) decimalText(t *token) ([]byte, *fault) {
	b, scale := []byte(nil), c.scale
	var f *fault
	if t.kind == kindObject {
		b, scale, f = c.variable(t)
	} else {
		b, f = c.decodeBase64(t.text)
	}
	if f != nil {
		return nil, f
	}
	if len(b) > maxUnscaledBytes || scale > maxScale || scale < -maxScale {
		return nil, errOverflow
	}
	c.env.out = appendBigDecimal(c.env.out[:0], bigFromBytes(b), scale)
	return c.env.out, nil
}

// appendBigDecimal writes unscaled·10^-scale without exponent.
func appendBigDecimal(dst []byte, unscaled *big.Int, scale int) []byte {
	if unscaled.Sign() < 0 {
		dst = append(dst, '-')
		unscaled = new(big.Int).Neg(unscaled)
	}
	digits := unscaled.Append(nil, 10)
	whole := len(digits) - scale
	switch {
	case scale <= 0:
		dst = append(dst, digits...)
		if unscaled.Sign() != 0 {
			dst = appendZeros(dst, -scale)
		}
	case whole > 0:
		dst = append(append(append(dst, digits[:whole]...), '.'), digits[whole:]...)
	default:
		dst = append(appendZeros(append(dst, '0', '.'), -whole), digits...)
	}
	return dst
}

func appendZeros(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, '0')
	}
	return dst
}
