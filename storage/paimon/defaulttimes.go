package paimon

import (
	"math"
	"strconv"
	"strings"

	"applier/storage/types"
)

const (
	millisPerDay = 24 * 60 * 60 * 1000
	microsPerDay = millisPerDay * 1000
)

// isNumeric is Java's StringUtils.isNumeric for ASCII: digits, perhaps a minus.
func isNumeric(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && allDigits(s)
}

func numericInt(s string) (*types.Datum, error) {
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return nil, types.ErrOverflow
	}
	return &types.Datum{I: v}, nil
}

// javaNumber reads one part of a date or time, blanks around it allowed.
func javaNumber(s string) (int64, bool) {
	s = trimJava(s)
	if s == "" || !allDigits(s) {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 32)
	return v, err == nil
}

// defaultDate reads a date of years 0 to 9999, whose day or day and month may be
// missing and which may be followed by a blank and anything, or a day number
// (DateTimeUtils.parseDate).
func defaultDate(s string) (*types.Datum, error) {
	if isNumeric(s) {
		return numericInt(s)
	}
	if at := strings.IndexByte(s, ' '); at > 0 {
		s = s[:at]
	}
	parts := strings.SplitN(s, "-", 3)
	v := [3]int64{0, 1, 1}
	for i, p := range parts {
		var ok bool
		if v[i], ok = javaNumber(p); !ok {
			return nil, types.ErrSyntax
		}
	}
	if v[0] > 9999 || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > daysOfMonth(v[0], v[1]) {
		return nil, types.ErrSyntax
	}
	return &types.Datum{I: types.DaysFromCivil(v[0], int(v[1]), int(v[2]))}, nil
}

func daysOfMonth(year, month int64) int64 {
	if month == 12 {
		return 31
	}
	return types.DaysFromCivil(year, int(month)+1, 1) - types.DaysFromCivil(year, int(month), 1)
}

// defaultTime reads a time of day, of which all but the hour may be missing, with
// an offset that is added or subtracted, or a number of milliseconds
// (DateTimeUtils.parseTime). Java checks no ranges; here the outcome must be a
// time of day.
func defaultTime(s string) (*types.Datum, error) {
	var millis int64
	if isNumeric(s) {
		d, err := numericInt(s)
		if err != nil {
			return nil, err
		}
		millis = d.I
	} else {
		var ok bool
		if millis, ok = javaTime(s); !ok {
			return nil, types.ErrSyntax
		}
	}
	if millis < 0 || millis >= millisPerDay {
		return nil, types.ErrOverflow
	}
	return &types.Datum{I: millis}, nil
}

// javaTime adds up what stands between the colons. An offset starts at the first
// minus, or else plus; hour and minute of it have the sign's direction.
func javaTime(s string) (int64, bool) {
	at, sign := strings.IndexByte(s, '-'), int64(-1)
	if at < 0 {
		at, sign = strings.IndexByte(s, '+'), 1
	}
	var offset int64
	if at >= 0 {
		hour, minute, both := strings.Cut(s[at+1:], ":")
		h, ok := javaNumber(hour)
		m, ok2 := int64(0), true
		if both {
			m, ok2 = javaNumber(minute)
		}
		// Java looks for the time's own colons in all of the text.
		if !ok || !ok2 || both && strings.Count(s[:at], ":") < 2 {
			return 0, false
		}
		s, offset = s[:at], sign*(h*3600+m*60)*1000
	}
	parts := strings.SplitN(s, ":", 3)
	if len(parts) == 3 {
		var fraction string
		var point bool
		if parts[2], fraction, point = strings.Cut(parts[2], "."); point {
			offset += javaFraction(trimJava(fraction))
		}
	}
	units := [3]int64{3600_000, 60_000, 1000}
	for i, p := range parts {
		v, ok := javaNumber(p)
		if !ok {
			return 0, false
		}
		offset += v * units[i]
	}
	return offset, true
}

// javaFraction is three digits as milliseconds, rounded by the fourth; what is no
// digit counts as 0.
func javaFraction(s string) int64 {
	var v int64
	unit := int64(100)
	for i := 0; i < len(s) && unit > 0; i++ {
		if s[i] >= '0' && s[i] <= '9' {
			v += unit * int64(s[i]-'0')
		}
		if unit == 1 && i+1 < len(s) && s[i+1] >= '5' {
			v++
		}
		unit /= 10
	}
	return v
}

// defaultTimestamp reads a date and time; a TIMESTAMP also an epoch number in
// units of its precision.
func defaultTimestamp(t types.Type, s string) (*types.Datum, error) {
	if isNumeric(s) && t.Kind == types.Timestamp {
		return epochTimestamp(t, s)
	}
	days, clock, ok := javaTimestamp(s)
	switch {
	case !ok:
		return nil, types.ErrSyntax
	case days > math.MaxInt64/microsPerDay-1 || days < math.MinInt64/microsPerDay+1:
		return nil, types.ErrOverflow
	}
	micros, nanos := days*microsPerDay+clock/1000, int32(clock%1000)
	if t.Precision <= 6 {
		return &types.Datum{I: types.TruncateMicros(micros, t.Precision)}, nil
	}
	return &types.Datum{I: micros, N: types.TruncateNanos(nanos, t.Precision)}, nil
}

func epochTimestamp(t types.Type, s string) (*types.Datum, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil, types.ErrOverflow
	}
	unit := int64(1)
	switch t.Precision {
	case 0:
		unit = 1_000_000
	case 3:
		unit = 1000
	case 6:
	case 9:
		micros := types.FloorDiv(v, 1000)
		return &types.Datum{I: micros, N: int32(v - micros*1000)}, nil
	default:
		return nil, types.ErrSyntax // Java knows these four
	}
	if v > math.MaxInt64/unit || v < math.MinInt64/unit {
		return nil, types.ErrOverflow
	}
	return &types.Datum{I: v * unit}, nil
}
