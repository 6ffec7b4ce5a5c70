package expr

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Microseconds of the units.
const (
	microSecond = int64(1_000_000)
	microMinute = 60 * microSecond
	microHour   = 60 * microMinute
	microDay    = 24 * microHour
)

// unitMicros are the microseconds of the day-time units, unitMonths the months of
// the others, by their names in upper case.
var (
	unitMicros = map[string]int64{
		"WEEK": 7 * microDay, "DAY": microDay, "HOUR": microHour, "MINUTE": microMinute, "SECOND": microSecond,
		"MILLISECOND": 1000, "MICROSECOND": 1,
	}
	unitMonths = map[string]int64{"YEAR": 12, "MONTH": 1}
)

// calendarDatum holds an interval of months, days and microseconds.
func calendarDatum(months, days, micros int64) types.Datum {
	return types.Datum{L: []types.Datum{types.IntDatum(months), types.IntDatum(days), types.IntDatum(micros)}}
}

// intervalLit compiles an interval literal: year-month or day-time; one that
// mixes both is refused.
func (c *compiler) intervalLit(e *sqlparse.IntervalLit) *node {
	bad := func(format string, args ...any) *node {
		return c.fail(e.Pos, "INVALID_INTERVAL_FORMAT", "no interval: "+format, args...)
	}
	parts := e.Parts
	if len(parts) == 1 && parts[0].Unit == "" {
		var err error
		if parts, err = splitInterval(parts[0].Value); err != nil {
			return bad("%v", err)
		}
	}
	if e.To != "" {
		from, to := unitOf(parts[0].Unit), unitOf(e.To)
		if from < 0 || to <= from || from <= int(UnitMonth) != (to <= int(UnitMonth)) {
			return bad("there is none from %s to %s", parts[0].Unit, e.To)
		}
		t := Type{Kind: DayTime, From: uint8(from), To: uint8(to)}
		if from <= int(UnitMonth) {
			t.Kind = YearMonth
		}
		v, err := parseInterval(parts[0].Value, t)
		if err != nil {
			return c.fail(e.Pos, "_LEGACY_ERROR_TEMP_0063", "%v", err)
		}
		return c.lit(e.Pos, t, types.IntDatum(v))
	}
	return c.unitInterval(e.Pos, parts, bad)
}

// unitInterval sums values with units. The type spans the units named; smaller
// ones than a second count as seconds, weeks as days.
func (c *compiler) unitInterval(pos sqlparse.Pos, parts []sqlparse.IntervalPart, bad func(string, ...any) *node) *node {
	t := Type{Kind: Void, From: UnitSecond}
	var sum int64
	for _, p := range parts {
		kind, unit := DayTime, unitOf(p.Unit)
		switch p.Unit {
		case "WEEK":
			unit = int(UnitDay)
		case "MILLISECOND", "MICROSECOND":
			unit = int(UnitSecond)
		case "YEAR", "MONTH":
			kind = YearMonth
		}
		if unit < 0 {
			return bad("%s is no unit of intervals", p.Unit)
		}
		if t.Kind != Void && t.Kind != kind {
			return c.fail(pos, "_LEGACY_ERROR_TEMP_0029", "an interval cannot mix year-month and day-time units")
		}
		v, err := unitValue(p)
		if err != nil {
			return c.fail(pos, "_LEGACY_ERROR_TEMP_0026", "%v", err)
		}
		var ok bool
		if sum, ok = addInt64(sum, v); !ok {
			return bad("it is too large")
		}
		if t.Kind == Void {
			t.From, t.To = uint8(unit), uint8(unit)
		}
		t.Kind, t.From, t.To = kind, min(t.From, uint8(unit)), max(t.To, uint8(unit))
	}
	if t.Kind == YearMonth && int64(int32(sum)) != sum {
		return bad("it is too large")
	}
	return c.lit(pos, t, types.IntDatum(sum))
}

// unitValue is a part in months or microseconds. Only seconds have a fraction.
func unitValue(p sqlparse.IntervalPart) (int64, error) {
	text := strings.TrimSpace(p.Value)
	whole, frac, point := strings.Cut(text, ".")
	scale := unitMicros[p.Unit] + unitMonths[p.Unit]
	if point && p.Unit != "SECOND" {
		return 0, fmt.Errorf("%s %s has a fraction", text, p.Unit)
	}
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil && !(point && (whole == "" || whole == "-" || whole == "+")) {
		return 0, fmt.Errorf("%q is no number", text)
	}
	v, ok := mulInt64(n, scale)
	if point {
		f, err := fractionMicros(frac)
		if err != nil {
			return 0, err
		}
		if strings.HasPrefix(whole, "-") {
			f = -f
		}
		v += f
	}
	if !ok {
		return 0, fmt.Errorf("%s %s is too large", text, p.Unit)
	}
	return v, nil
}

// fractionMicros reads up to nine digits behind the point; microseconds are kept.
func fractionMicros(s string) (int64, error) {
	if len(s) > 9 {
		return 0, fmt.Errorf("more than nine digits behind the point")
	}
	v, err := strconv.ParseUint(s+strings.Repeat("0", 9-len(s)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no fraction", s)
	}
	return int64(v / 1000), nil
}

// splitInterval reads '1 day 2 hours' as values with units.
func splitInterval(s string) ([]sqlparse.IntervalPart, error) {
	words := strings.Fields(s)
	if len(words) > 0 && strings.EqualFold(words[0], "interval") {
		words = words[1:]
	}
	if len(words) == 0 || len(words)%2 == 1 {
		return nil, fmt.Errorf("%q must be numbers with units, as in '1 day 2 hours'", s)
	}
	parts := make([]sqlparse.IntervalPart, 0, len(words)/2)
	for i := 0; i < len(words); i += 2 {
		unit := strings.TrimSuffix(strings.ToUpper(words[i+1]), "S")
		if unitMicros[unit]+unitMonths[unit] == 0 {
			return nil, fmt.Errorf("%q is no unit", words[i+1])
		}
		parts = append(parts, sqlparse.IntervalPart{Value: words[i], Unit: unit})
	}
	return parts, nil
}

// parseInterval reads the text of an interval type: '1-2' of YEAR TO MONTH,
// '1 02:03:04.5' of DAY TO SECOND and its parts.
func parseInterval(text string, t Type) (int64, error) {
	s := strings.TrimSpace(text)
	neg := false
	if cut, ok := strings.CutPrefix(s, "-"); ok {
		neg, s = true, cut
	} else {
		s = strings.TrimPrefix(s, "+")
	}
	v, err := parseFields(s, t)
	if err != nil {
		return 0, fmt.Errorf("%q is no %s: %w", text, strings.ToUpper(t.String()), err)
	}
	if !neg {
		if v == math.MinInt64 {
			return 0, fmt.Errorf("%q is too large", text)
		}
		v = -v
	}
	if t.Kind == YearMonth && int64(int32(v)) != v {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return v, nil
}

// fieldEnds are what separates a field from the next one.
var fieldEnds = [...]string{UnitYear: "-", UnitDay: " ", UnitHour: ":", UnitMinute: ":"}

// parseFields reads the fields from t.From to t.To, without sign, and returns what
// they make negated: the smallest value has no positive.
func parseFields(s string, t Type) (int64, error) {
	units := [...]int64{12, 1, microDay, microHour, microMinute, microSecond}
	limits := [...]int64{math.MaxInt64, 11, math.MaxInt64, 23, 59, 59}
	var total int64
	for u := t.From; u <= t.To; u++ {
		field, sum := s, total
		if u < t.To {
			var ok bool
			if field, s, ok = strings.Cut(s, fieldEnds[u]); !ok {
				return 0, fmt.Errorf("it has too few fields")
			}
		}
		frac := ""
		if u == UnitSecond {
			field, frac, _ = strings.Cut(field, ".")
		}
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil || u > t.From && int64(n) > limits[u] {
			return 0, fmt.Errorf("%q does not go as %s", field, unitNames[u])
		}
		f, err := fractionMicros(frac)
		if err != nil {
			return 0, err
		}
		v, ok1 := mulInt64(-int64(n), units[u])
		sum, ok2 := addInt64(sum, v)
		sum, ok3 := addInt64(sum, -f)
		if !ok1 || !ok2 || !ok3 {
			return 0, fmt.Errorf("it is too large")
		}
		total = sum
	}
	return total, nil
}

// intervalText is how a cast to STRING writes an interval:
// INTERVAL '1 02:03:04.5' DAY TO SECOND.
func intervalText(t Type, v int64) string {
	neg := v < 0
	u := new(big.Int).Abs(big.NewInt(v)).Uint64()
	units := [...]uint64{12, 1, uint64(microDay), uint64(microHour), uint64(microMinute), uint64(microSecond)}
	var b strings.Builder
	if neg {
		b.WriteByte('-')
	}
	for f := t.From; f <= t.To; f++ {
		n := u / units[f]
		u %= units[f]
		if f <= UnitDay {
			fmt.Fprintf(&b, "%d", n)
		} else {
			fmt.Fprintf(&b, "%02d", n)
		}
		if f < t.To {
			b.WriteString(fieldEnds[f])
		}
	}
	if t.Kind == DayTime && t.To == UnitSecond && u > 0 {
		b.WriteString(strings.TrimRight(fmt.Sprintf(".%06d", u), "0"))
	}
	s := "INTERVAL '" + b.String() + "' " + strings.ToUpper(unitNames[t.From])
	if t.From != t.To {
		s += " TO " + strings.ToUpper(unitNames[t.To])
	}
	return s
}

// calendarText is how a cast to STRING writes a calendar interval:
// 1 years 2 months 3 days 4 hours.
func calendarText(d types.Datum) string {
	var b strings.Builder
	add := func(n int64, unit string) {
		if n != 0 {
			fmt.Fprintf(&b, "%d %s ", n, unit)
		}
	}
	months, days, micros := d.L[0].I, d.L[1].I, d.L[2].I
	add(months/12, "years")
	add(months%12, "months")
	add(days, "days")
	add(micros/microHour, "hours")
	add(micros%microHour/microMinute, "minutes")
	if s := micros % microMinute; s != 0 {
		text := strings.TrimRight(strings.TrimRight(decimalText(big.NewInt(s), 6), "0"), ".")
		b.WriteString(text + " seconds ")
	}
	if b.Len() == 0 {
		return "0 seconds"
	}
	return strings.TrimSpace(b.String())
}

// scaleInterval multiplies an interval by a number, rounding half up.
func scaleInterval(t Type, v int64, by *big.Rat) (types.Datum, error) {
	r := new(big.Rat).Mul(new(big.Rat).SetInt64(v), by)
	q := divRound(r.Num(), r.Denom(), halfUp)
	if !q.IsInt64() || t.Kind == YearMonth && int64(int32(q.Int64())) != q.Int64() {
		return types.Null, fault("INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "the interval is too large")
	}
	return types.IntDatum(q.Int64()), nil
}
