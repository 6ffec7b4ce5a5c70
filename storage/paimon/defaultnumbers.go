package paimon

import (
	"math"
	"strconv"
	"strings"

	"applier/storage/types"
)

// defaultInteger accepts digits with a sign and cuts a fraction off (5.7 is 5, and
// "." is 0); blanks, suffixes and expressions are errors (BinaryStringUtils.toLong).
func defaultInteger(k types.Kind, s string) (*types.Datum, error) {
	whole, fraction, point := strings.Cut(s, ".")
	sign, digits := "", whole
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
		sign, digits = whole[:1], whole[1:]
	}
	if !allDigits(digits) || !allDigits(fraction) || digits == "" && !point {
		return nil, types.ErrSyntax
	}
	bits := map[types.Kind]int{types.TinyInt: 8, types.SmallInt: 16, types.Int: 32, types.BigInt: 64}
	v, err := strconv.ParseInt(sign+"0"+digits, 10, bits[k])
	if err != nil {
		return nil, types.ErrOverflow
	}
	return &types.Datum{I: v}, nil
}

// allDigits reports whether there is nothing but ASCII digits; "" has none else.
func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// trimJava cuts what String.trim does: all characters up to the blank.
func trimJava(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// defaultFloat reads what Java's parseDouble reads: blanks around, an exponent, a
// suffix of d or f, hexadecimal with a binary exponent, NaN and Infinity; what is
// too large is infinite.
func defaultFloat(t types.Type, s string) (*types.Datum, error) {
	s = trimJava(s)
	unsigned := strings.TrimPrefix(s, "-")
	if unsigned == s {
		unsigned = strings.TrimPrefix(s, "+")
	}
	switch unsigned {
	case "NaN":
		return &types.Datum{F: math.NaN()}, nil
	case "Infinity":
		if s[0] == '-' {
			return &types.Datum{F: math.Inf(-1)}, nil
		}
		return &types.Datum{F: math.Inf(1)}, nil
	}
	hexadecimal := strings.HasPrefix(unsigned, "0x") || strings.HasPrefix(unsigned, "0X")
	// Go knows more texts than Java: inf, nan, digits apart by underscores.
	if unsigned == "" || unsigned[0] != '.' && !allDigits(unsigned[:1]) || strings.ContainsRune(s, '_') {
		return nil, types.ErrSyntax
	}
	if !hexadecimal || strings.ContainsAny(s, "pP") {
		if c := s[len(s)-1]; c == 'd' || c == 'D' || c == 'f' || c == 'F' {
			s = s[:len(s)-1]
		}
	}
	size := 64
	if t.Kind == types.Float {
		size = 32
	}
	v, err := strconv.ParseFloat(s, size)
	if err != nil && !math.IsInf(v, 0) {
		return nil, types.ErrSyntax
	}
	return &types.Datum{F: v}, nil
}

// maxJavaExponent is about where Java's BigDecimal gives up.
const maxJavaExponent = 600_000_000

// defaultDecimal rounds half away from zero to the scale; what is too large then
// is no default (Decimal.fromBigDecimal).
func defaultDecimal(t types.Type, s string) (*types.Datum, error) {
	n, err := parseJavaDecimal(s)
	if err != nil {
		return nil, err
	}
	// The number is digits · 10^exponent, wanted are units of 10^-scale.
	shift := n.exponent + t.Scale
	digits, up := strings.TrimLeft(n.digits, "0"), false
	switch {
	case digits == "":
		shift = 0
	case shift > types.MaxPrecision:
		return nil, nil
	case shift >= 0:
		digits += strings.Repeat("0", shift)
	default:
		cut := len(digits) + shift
		up = cut >= 0 && digits[cut] >= '5'
		digits = digits[:max(cut, 0)]
	}
	if len(digits) > types.MaxPrecision {
		return nil, nil
	}
	v, err := types.ParseDecimal([]byte("0"+digits), types.MaxPrecision, 0)
	if err != nil {
		return nil, err
	}
	if up {
		v = addOne(v)
	}
	if !v.FitsPrecision(t.Precision) {
		return nil, nil
	}
	if n.negative {
		v = v.Neg()
	}
	if t.Precision <= 18 {
		return &types.Datum{I: int64(v.Lo)}, nil
	}
	return &types.Datum{D: v}, nil
}

func addOne(v types.Int128) types.Int128 {
	if v.Lo++; v.Lo == 0 {
		v.Hi++
	}
	return v
}

type javaDecimal struct {
	negative bool
	digits   string // without a point
	exponent int
}

// parseJavaDecimal reads the text of a BigDecimal: sign, digits with a point,
// exponent.
func parseJavaDecimal(s string) (n javaDecimal, err error) {
	n.negative = strings.HasPrefix(s, "-")
	if n.negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		e := s[at+1:]
		if !allDigits(strings.TrimLeft(e, "+-")) {
			return n, types.ErrSyntax
		}
		if n.exponent, err = strconv.Atoi(e); err != nil || n.exponent > maxJavaExponent || n.exponent < -maxJavaExponent {
			return n, types.ErrSyntax
		}
		s = s[:at]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	n.digits = whole + fraction
	if n.digits == "" || !allDigits(n.digits) {
		return n, types.ErrSyntax
	}
	n.exponent -= len(fraction)
	return n, nil
}
