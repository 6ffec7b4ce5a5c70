package paimon

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"applier/storage/types"
)

// ErrDefault: the text of a column default is no value of the column.
var ErrDefault = errors.New("unsupported default value")

// DefaultValue converts a column's default text as Paimon's Java core does
// (paimon-format.md §3.2: one pair of single quotes is dropped, then the text is
// cast to the column's type). nil is no default: absent, or a DECIMAL too large
// for its column, which Java turns into NULL.
func DefaultValue(f types.Field) (*types.Datum, error) {
	if f.Default == nil {
		return nil, nil
	}
	text := *f.Default
	if strings.HasPrefix(text, "'") && strings.HasSuffix(text, "'") {
		if len(text) < 2 {
			return nil, defaultError(f)
		}
		text = text[1 : len(text)-1]
	}
	d, err := castDefault(f.Type, text)
	if err != nil {
		return nil, defaultError(f)
	}
	return d, nil
}

func defaultError(f types.Field) error {
	return fmt.Errorf("%w: column %s of type %s has the default %s", ErrDefault, f.Name, f.Type, *f.Default)
}

func castDefault(t types.Type, s string) (*types.Datum, error) {
	switch t.Kind {
	case types.VarChar:
		return text(cutRunes(s, t.Length)), nil
	case types.Char:
		s = cutRunes(s, t.Length)
		return text(s + strings.Repeat(" ", t.Length-utf8.RuneCountInString(s))), nil
	case types.VarBinary:
		return text(s[:min(len(s), t.Length)]), nil
	case types.Binary:
		s = s[:min(len(s), t.Length)]
		return text(s + strings.Repeat("\x00", t.Length-len(s))), nil
	case types.Boolean:
		return defaultBoolean(s)
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return defaultInteger(t, s)
	case types.Float, types.Double:
		return defaultFloat(t, s)
	case types.Decimal:
		return defaultDecimal(t, s)
	case types.Date:
		return defaultDate(s)
	case types.Time:
		return defaultTime(s)
	case types.Timestamp, types.TimestampLTZ:
		return defaultTimestamp(t, s)
	}
	return nil, types.ErrSyntax
}

func text(s string) *types.Datum { return &types.Datum{B: []byte(s)} }

func cutRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func defaultBoolean(s string) (*types.Datum, error) {
	switch strings.ToLower(s) {
	case "t", "true", "y", "yes", "1":
		return &types.Datum{I: 1}, nil
	case "f", "false", "n", "no", "0":
		return &types.Datum{}, nil
	}
	return nil, types.ErrSyntax
}

// defaultInteger accepts digits with a sign and cuts a fraction off (5.7 → 5);
// blanks, suffixes and expressions are errors.
func defaultInteger(t types.Type, s string) (*types.Datum, error) {
	whole, fraction, point := strings.Cut(s, ".")
	for i := range len(fraction) {
		if fraction[i] < '0' || fraction[i] > '9' {
			return nil, types.ErrSyntax
		}
	}
	if point && whole == "" || strings.ContainsAny(whole, "_xXoObB") {
		return nil, types.ErrSyntax
	}
	bitsOf := map[types.Kind]int{types.TinyInt: 8, types.SmallInt: 16, types.Int: 32, types.BigInt: 64}
	v, err := strconv.ParseInt(whole, 10, bitsOf[t.Kind])
	if err != nil {
		return nil, err
	}
	return &types.Datum{I: v}, nil
}

// defaultFloat reads what Java's parseDouble reads: blanks around, an exponent,
// a suffix of d or f, NaN and Infinity; what is too large is infinite.
func defaultFloat(t types.Type, s string) (*types.Datum, error) {
	s = strings.Trim(s, " \t\n\r\f\v")
	switch strings.TrimLeft(s, "+-") {
	case "NaN", "Infinity":
	default:
		if s == "" || strings.ContainsAny(s, "_xXpP") || strings.ContainsAny(s, "iInN") {
			return nil, types.ErrSyntax
		}
		s = strings.TrimRight(s[:len(s)-1], "") + strings.TrimRight(s[len(s)-1:], "dDfF")
	}
	size := 64
	if t.Kind == types.Float {
		size = 32
	}
	v, err := strconv.ParseFloat(s, size)
	if err != nil && !math.IsInf(v, 0) {
		return nil, err
	}
	return &types.Datum{F: v}, nil
}

// defaultDecimal rounds half up to the scale; too large a value is no default.
func defaultDecimal(t types.Type, s string) (*types.Datum, error) {
	v, err := types.ParseDecimal([]byte(s), types.MaxPrecision, t.Scale)
	if errors.Is(err, types.ErrInexact) {
		v, err = roundDecimal(s, t.Scale)
	}
	switch {
	case errors.Is(err, types.ErrOverflow):
		return nil, nil
	case err != nil:
		return nil, err
	case !v.FitsPrecision(t.Precision):
		return nil, nil
	}
	if t.Precision <= 18 {
		return &types.Datum{I: int64(v.Lo)}, nil
	}
	return &types.Datum{D: v}, nil
}

// roundDecimal parses at the finest scale that fits, then rounds half away from zero.
func roundDecimal(s string, scale int) (types.Int128, error) {
	for fine := scale + 1; fine <= types.MaxPrecision; fine++ {
		v, err := types.ParseDecimal([]byte(s), types.MaxPrecision, fine)
		if errors.Is(err, types.ErrInexact) {
			continue
		}
		if err != nil {
			return types.Int128{}, err
		}
		return roundHalfUp(v, fine-scale), nil
	}
	return types.Int128{}, types.ErrOverflow
}

// roundHalfUp drops digits decimal digits of v.
func roundHalfUp(v types.Int128, digits int) types.Int128 {
	b := v.Big()
	unit := types.Pow10(digits).Big()
	half := types.Pow10(digits).Big()
	half.Rsh(half, 1)
	if b.Sign() < 0 {
		b.Sub(b, half)
	} else {
		b.Add(b, half)
	}
	b.Quo(b, unit)
	out, _ := types.Int128FromBig(b)
	return out
}

func isDigits(s string) bool {
	t := strings.TrimPrefix(s, "-")
	if t == "" {
		return false
	}
	for i := range len(t) {
		if t[i] < '0' || t[i] > '9' {
			return false
		}
	}
	return true
}

// defaultDate reads a date of years 1 to 9999, or a day number.
func defaultDate(s string) (*types.Datum, error) {
	if isDigits(s) {
		v, err := strconv.ParseInt(s, 10, 32)
		return &types.Datum{I: v}, err
	}
	v, err := types.ParseDate([]byte(s))
	if err != nil || s[0] == '-' || s[0] == '+' || strings.IndexByte(s, '-') != 4 {
		return nil, types.ErrSyntax
	}
	return &types.Datum{I: v}, nil
}

// defaultTime reads a time of day, or milliseconds.
func defaultTime(s string) (*types.Datum, error) {
	if isDigits(s) {
		v, err := strconv.ParseInt(s, 10, 32)
		return &types.Datum{I: v}, err
	}
	v, err := types.ParseTime([]byte(s))
	if err != nil {
		return nil, err
	}
	return &types.Datum{I: v / 1_000_000}, nil
}

// defaultTimestamp reads a date and time; a TIMESTAMP also an epoch number in
// units of its precision. A TIMESTAMP_LTZ text is in the writer's zone, ours UTC.
func defaultTimestamp(t types.Type, s string) (*types.Datum, error) {
	if isDigits(s) {
		if t.Kind == types.TimestampLTZ {
			return nil, types.ErrSyntax
		}
		return epochTimestamp(t, s)
	}
	if len(s) > 10 && strings.Count(s, ":") != 2 {
		return nil, types.ErrSyntax // hours and minutes alone are refused
	}
	micros, nanos, err := types.ParseTimestamp([]byte(s), types.ZoneNone)
	if err != nil {
		return nil, err
	}
	if t.Precision <= 6 {
		return &types.Datum{I: types.TruncateMicros(micros, t.Precision)}, nil
	}
	return &types.Datum{I: micros, N: types.TruncateNanos(nanos, t.Precision)}, nil
}

func epochTimestamp(t types.Type, s string) (*types.Datum, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Precision == 0:
		v *= 1_000_000
	case t.Precision <= 3:
		v *= 1000
	case t.Precision > 6:
		micros := types.FloorDiv(v, 1000)
		return &types.Datum{I: micros, N: int32(v - micros*1000)}, nil
	}
	return &types.Datum{I: v}, nil
}
