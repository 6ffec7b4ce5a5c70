package decode

import (
	"errors"
	"math"
	"strconv"

	"applier/storage/types"
)

// numberFault translates the errors of package types.
func numberFault(err error) *fault {
	switch {
	case errors.Is(err, types.ErrOverflow):
		return errOverflow
	case errors.Is(err, types.ErrInexact):
		return errFraction
	}
	return errNumberText
}

func toBigInt(c *conv, t *token, v *types.Vector) *fault {
	n, f := t.num, (*fault)(nil)
	if t.kind != kindNumber || !t.small {
		n, f = c.integer(t)
	}
	if f == nil {
		v.AppendInt64(n)
	}
	return f
}

func toInteger(c *conv, t *token, v *types.Vector) *fault {
	n, f := c.integer(t)
	if f != nil {
		return f
	}
	limit := int64(math.MaxInt32)
	switch c.typ.Kind {
	case types.TinyInt:
		limit = math.MaxInt8
	case types.SmallInt:
		limit = math.MaxInt16
	}
	if n > limit || n < -limit-1 {
		return errOverflow
	}
	v.AppendInt32(int32(n))
	return nil
}

// integer reads a value as an exact integer.
func (c *conv) integer(t *token) (int64, *fault) {
	if t.kind == kindNumber && t.small {
		return t.num, nil
	}
	if (t.kind == kindTrue || t.kind == kindFalse) && c.src != srcPlain {
		if t.kind == kindTrue {
			return 1, nil
		}
		return 0, nil
	}
	d, f := c.decimal(t, types.MaxPrecision, 0)
	if f != nil {
		return 0, f
	}
	if !d.IsInt64() {
		return 0, errOverflow
	}
	return int64(d.Lo), nil
}

func toFloat(c *conv, t *token, v *types.Vector) *fault {
	x, f := c.floating(t, 32)
	if f == nil {
		v.AppendFloat(float32(x))
	}
	return f
}

func toDouble(c *conv, t *token, v *types.Vector) *fault {
	x, f := c.floating(t, 64)
	if f == nil {
		v.AppendDouble(x)
	}
	return f
}

// singleToDouble keeps the number that a float is, which its shortest text is only
// near to: a column that became wider has the same values from before and after.
func singleToDouble(c *conv, t *token, v *types.Vector) *fault {
	x, f := c.floating(t, 32)
	if f == nil {
		v.AppendDouble(x)
	}
	return f
}

// floating reads a value as the nearest number of 32 or 64 bits; what rounds to
// infinity is out of range.
func (c *conv) floating(t *token, size int) (float64, *fault) {
	text := t.raw
	switch t.kind {
	case kindNumber:
		if size == 64 {
			if x, ok := shortDouble(text); ok {
				return x, nil
			}
		}
	case kindString:
		text = t.text
		if c.src == srcDecimal {
			var f *fault
			if text, f = c.decimalText(t); f != nil {
				return 0, f
			}
			break
		}
		if !c.textual() && c.src != srcFloating {
			return 0, errForm
		}
		if x, ok := notFinite(text); ok {
			return x, nil
		}
		if !isNumeral(text) {
			return 0, errNumberText
		}
	case kindObject:
		var f *fault
		if text, f = c.decimalText(t); f != nil {
			return 0, f
		}
	default:
		return 0, errForm
	}
	x, err := strconv.ParseFloat(string(text), size)
	if err != nil {
		return 0, errOverflow
	}
	return x, nil
}

// shortDouble reads numbers of at most 15 digits without exponent: digits and
// power of ten are then exact, and their quotient is rounded once, as it must be.
func shortDouble(text []byte) (float64, bool) {
	i, neg := 0, false
	if text[0] == '-' {
		neg, i = true, 1
	}
	if len(text)-i > 16 {
		return 0, false
	}
	var v int64
	scale, point := 0, 0
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c-'0' <= 9:
			v = v*10 + int64(c-'0')
			scale += point
		case c == '.':
			point = 1
		default:
			return 0, false
		}
	}
	if v >= 1e15 {
		return 0, false
	}
	x := float64(v) / powersOfTen[scale]
	if neg {
		x = -x
	}
	return x, true
}

var powersOfTen = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16}

// notFinite reads the texts Jackson (NaN, Infinity, -Infinity) and Debezium's
// string mode of decimals (NAN, POSITIVE_INFINITY, NEGATIVE_INFINITY) write.
func notFinite(text []byte) (float64, bool) {
	switch string(text) {
	case "NaN", "NAN":
		return math.NaN(), true
	case "Infinity", "POSITIVE_INFINITY":
		return math.Inf(1), true
	case "-Infinity", "NEGATIVE_INFINITY":
		return math.Inf(-1), true
	}
	return 0, false
}

// isNumeral accepts what types.ParseDecimal reads: sign, digits with a point,
// exponent. strconv alone would also take hexadecimal, "inf" and underscores.
func isNumeral(text []byte) bool {
	i := 0
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	digits := 0
	for point := false; i < len(text); i++ {
		if c := text[i]; c == '.' && !point {
			point = true
		} else if c-'0' <= 9 {
			digits++
		} else {
			break
		}
	}
	if digits == 0 || i == len(text) {
		return digits > 0
	}
	if text[i]|0x20 != 'e' {
		return false
	}
	i++
	if i < len(text) && (text[i] == '-' || text[i] == '+') {
		i++
	}
	return i < len(text) && digitsEnd(text, i) == len(text)
}
