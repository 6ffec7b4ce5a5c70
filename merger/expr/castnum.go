package expr

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"

	"applier/storage/types"
)

// trimAll cuts blanks and control characters at both ends, as casts of texts do.
func trimAll(b []byte) []byte {
	return bytes.TrimFunc(b, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

func parseBool(b []byte) (v, ok bool) {
	switch strings.ToLower(string(trimAll(b))) {
	case "t", "true", "y", "yes", "1":
		return true, true
	case "f", "false", "n", "no", "0":
		return false, true
	}
	return false, false
}

// parseInt reads sign and digits.
func parseInt(b []byte, t Type) (int64, bool) {
	s := string(trimAll(b))
	if len(s) > 0 && s[0] == '+' {
		if s = s[1:]; len(s) > 0 && s[0] == '-' {
			return 0, false
		}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && v >= minOf(t) && v <= maxOf(t)
}

func toInteger(from, to Type) castFn {
	lo, hi := minOf(to), maxOf(to)
	ranged := func(v int64) (types.Datum, error) {
		if v < lo || v > hi {
			return types.Null, castOverflow(v, to)
		}
		return types.IntDatum(v), nil
	}
	switch from.Kind {
	case String:
		return func(d types.Datum) (types.Datum, error) {
			v, ok := parseInt(d.B, to)
			if !ok {
				return types.Null, badInput(d, to)
			}
			return types.IntDatum(v), nil
		}
	case Float, Double:
		return func(d types.Datum) (types.Datum, error) { return floatToInt(d.F, to) }
	case Decimal:
		return func(d types.Datum) (types.Datum, error) {
			q := new(big.Int).Quo(unscaled(from, d), bigPow10(from.Scale))
			if !q.IsInt64() || q.Int64() < lo || q.Int64() > hi {
				return types.Null, castOverflow(q, to)
			}
			return types.IntDatum(q.Int64()), nil
		}
	case Timestamp:
		return func(d types.Datum) (types.Datum, error) { return ranged(types.FloorDiv(d.I, microSecond)) }
	case YearMonth, DayTime:
		unit := [...]int64{12, 1, microDay, microHour, microMinute, microSecond}[from.To]
		return func(d types.Datum) (types.Datum, error) { return ranged(d.I / unit) }
	}
	return func(d types.Datum) (types.Datum, error) { return ranged(d.I) }
}

// floatToInt cuts the fraction. The bounds of BIGINT are compared as doubles:
// 2^63 passes and becomes the greatest BIGINT, as in Java.
func floatToInt(v float64, to Type) (types.Datum, error) {
	lo, hi := float64(minOf(to)), float64(maxOf(to))
	if !(math.Floor(v) <= hi && math.Ceil(v) >= lo) {
		return types.Null, castOverflow(javaFloat(v, 64), to)
	}
	if v >= math.MaxInt64 {
		return types.IntDatum(math.MaxInt64), nil
	}
	return types.IntDatum(int64(v)), nil
}

func toFloat(from, to Type) castFn {
	bits := 64
	if to.Kind == Float {
		bits = 32
	}
	round := func(v float64) types.Datum {
		if bits == 32 {
			v = float64(float32(v))
		}
		return types.FloatDatum(v)
	}
	switch from.Kind {
	case String:
		return func(d types.Datum) (types.Datum, error) {
			v, ok := parseFloat(string(d.B), bits)
			if !ok {
				return types.Null, badInput(d, to)
			}
			return types.FloatDatum(v), nil
		}
	case Float, Double:
		return func(d types.Datum) (types.Datum, error) { return round(d.F), nil }
	case Decimal:
		return func(d types.Datum) (types.Datum, error) {
			v, _ := strconv.ParseFloat(decimalText(unscaled(from, d), from.Scale), bits)
			return types.FloatDatum(v), nil
		}
	case Timestamp:
		return func(d types.Datum) (types.Datum, error) { return round(float64(d.I) / 1e6), nil }
	}
	return func(d types.Datum) (types.Datum, error) {
		if bits == 32 {
			return types.FloatDatum(float64(float32(d.I))), nil
		}
		return types.FloatDatum(float64(d.I)), nil
	}
}

// parseFloat reads a number as Java's parseDouble does, with suffixes D and F,
// and the names of NaN and infinity.
func parseFloat(text string, bits int) (float64, bool) {
	s := string(trimAll([]byte(text)))
	switch strings.ToLower(s) {
	case "nan":
		return math.NaN(), true
	case "inf", "+inf", "infinity", "+infinity":
		return math.Inf(1), true
	case "-inf", "-infinity":
		return math.Inf(-1), true
	}
	hex := strings.HasPrefix(strings.TrimLeft(strings.ToLower(s), "+-"), "0x")
	if n := len(s); n > 1 && strings.ContainsRune("dDfF", rune(s[n-1])) && (!hex || strings.ContainsAny(s, "pP")) {
		s = s[:n-1]
	}
	for i := range len(s) { // no underscores, and no names but those above
		if c := s[i] | 0x20; s[i] == '_' || !hex && c >= 'a' && c <= 'z' && c != 'e' {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(s, bits)
	if err != nil {
		if e, ok := err.(*strconv.NumError); !ok || e.Err != strconv.ErrRange {
			return 0, false
		}
	}
	return v, true
}

func toDecimal(from, to Type) castFn {
	switch from.Kind {
	case String:
		return func(d types.Datum) (types.Datum, error) {
			v, scale, err := parseBig(asciiDigits(trimAll(d.B)))
			if err != nil {
				return types.Null, badInput(d, to)
			}
			return fitWide(v, scale, to)
		}
	case Float, Double:
		return func(d types.Datum) (types.Datum, error) { return floatToDecimal(d.F, to) }
	case Decimal:
		return func(d types.Datum) (types.Datum, error) { return fit(unscaled(from, d), from.Scale, to) }
	case Timestamp:
		return func(d types.Datum) (types.Datum, error) { return fit(big.NewInt(d.I), 6, to) }
	case YearMonth, DayTime:
		unit := [...]int64{12, 1, microDay, microHour, microMinute, microSecond}[from.To]
		if from.To == UnitSecond {
			return func(d types.Datum) (types.Datum, error) { return fit(big.NewInt(d.I), 6, to) }
		}
		return func(d types.Datum) (types.Datum, error) { return fit(big.NewInt(d.I/unit), 0, to) }
	}
	return func(d types.Datum) (types.Datum, error) { return fit(big.NewInt(d.I), 0, to) }
}

// asciiDigits turns the digits of other scripts into ASCII: Java's decimals read
// them, its integers do not.
func asciiDigits(b []byte) string {
	return strings.Map(func(r rune) rune {
		if r < 128 || !unicode.IsDigit(r) {
			return r
		}
		zero := r
		for unicode.IsDigit(zero-1) && r-zero < 9 {
			zero--
		}
		return '0' + (r - zero)
	}, string(b))
}

// fitWide is fit for a scale that may be negative or far too large.
func fitWide(v *big.Int, scale int, to Type) (types.Datum, error) {
	switch {
	case v.Sign() == 0:
		return decimalDatum(to, v), nil
	case digits(v)-scale > types.MaxPrecision:
		return types.Null, fault("NUMERIC_OUT_OF_SUPPORTED_RANGE", "the value has more than 38 digits")
	case scale < 0:
		v, scale = new(big.Int).Mul(v, bigPow10(-scale)), 0
	case scale-digits(v) > types.MaxPrecision+1:
		return decimalDatum(to, new(big.Int)), nil
	}
	return fit(v, scale, to)
}

// floatToDecimal goes by the shortest digits that read back as v. NaN and
// infinities have no decimal: NULL, without an error, as in Spark.
func floatToDecimal(v float64, to Type) (types.Datum, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return types.Null, nil
	}
	b, scale, err := parseBig(strconv.FormatFloat(v, 'e', -1, 64))
	if err != nil {
		return types.Null, err
	}
	d, err := fitWide(b, scale, to)
	if err != nil {
		return d, fault(classNumericRange, "%s does not fit %s", javaFloat(v, 64), to.sql())
	}
	return d, nil
}
