package expr

import (
	"math"
	"strconv"
	"strings"
	"time"

	"applier/storage/types"
)

// Text returns what CAST(x AS STRING) gives for a value that is not NULL; zone is
// the session's.
func Text(t Type, d types.Datum, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	return string(appendCast(nil, t, d, zone))
}

// appendCast writes a value as CAST(x AS STRING) does.
func appendCast(dst []byte, t Type, d types.Datum, zone *time.Location) []byte {
	switch t.Kind {
	case Boolean:
		return strconv.AppendBool(dst, d.I != 0)
	case Float:
		return append(dst, javaFloat(d.F, 32)...)
	case Double:
		return append(dst, javaFloat(d.F, 64)...)
	case Decimal:
		return append(dst, decimalText(unscaled(t, d), t.Scale)...)
	case String, Binary:
		return append(dst, d.B...)
	case Date:
		return appendDate(dst, d.I)
	case Timestamp:
		return appendStamp(dst, toLocal(d.I, zone))
	case TimestampNTZ:
		return appendStamp(dst, d.I)
	case Time:
		return appendClock(dst, d.I)
	case YearMonth, DayTime:
		return append(dst, intervalText(t, d.I)...)
	case Calendar:
		return append(dst, calendarText(d)...)
	case Array, Map, Struct:
		return appendNested(dst, t, d, zone)
	}
	return strconv.AppendInt(dst, d.I, 10)
}

// appendNested writes [a, b], {k -> v} or {a, b}; NULL is null.
func appendNested(dst []byte, t Type, d types.Datum, zone *time.Location) []byte {
	open, end := byte('{'), byte('}')
	if t.Kind == Array {
		open, end = '[', ']'
	}
	dst = append(dst, open)
	for i, x := range d.L {
		switch {
		case i == 0:
		case t.Kind == Map && i%2 == 1:
			dst = append(dst, " -> "...)
		default:
			dst = append(dst, ", "...)
		}
		if len(dst) > maxText { // the cast refuses it
			return dst
		}
		if x.Null {
			dst = append(dst, "null"...)
		} else {
			dst = appendCast(dst, t.item(i), x, zone)
		}
	}
	return append(dst, end)
}

// appendDate writes a date; years of more than four digits have a sign.
func appendDate(dst []byte, days int64) []byte {
	y, m, d := types.CivilFromDays(days)
	switch {
	case y < 0:
		dst = append(dst, '-')
		y = -y
	case y > 9999:
		dst = append(dst, '+')
	}
	dst = appendPadded(dst, y, 4)
	dst = appendPadded(append(dst, '-'), int64(m), 2)
	return appendPadded(append(dst, '-'), int64(d), 2)
}

func appendPadded(dst []byte, v int64, width int) []byte {
	s := strconv.FormatInt(v, 10)
	for n := len(s); n < width; n++ {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}

// appendStamp writes wall-clock microseconds.
func appendStamp(dst []byte, micros int64) []byte {
	days := types.FloorDiv(micros, microDay)
	dst = append(appendDate(dst, days), ' ')
	return appendClock(dst, micros-days*microDay)
}

// appendClock writes microseconds of a day without trailing zeros.
func appendClock(dst []byte, micros int64) []byte {
	sec, frac := micros/microSecond, micros%microSecond
	dst = appendPadded(dst, sec/3600, 2)
	dst = appendPadded(append(dst, ':'), sec/60%60, 2)
	dst = appendPadded(append(dst, ':'), sec%60, 2)
	if frac > 0 {
		dst = append(dst, '.')
		dst = appendPadded(dst, frac, 6)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return dst
}

// javaFloat writes a number as Java's Double.toString and Float.toString do: the
// shortest digits that read back, at least one behind the point; an exponent
// below 10^-3 and from 10^7 on.
func javaFloat(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	case v == 0:
		if math.Signbit(v) {
			return "-0.0"
		}
		return "0.0"
	}
	mant, exp, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, bits), "e")
	if !strings.Contains(mant, ".") {
		// Java writes two digits anyway and takes the nearest two: 4.9E-324.
		two, exp2, _ := strings.Cut(strconv.FormatFloat(v, 'e', 1, bits), "e")
		if back, err := strconv.ParseFloat(two+"e"+exp2, bits); err == nil && back == v {
			mant, exp = two, exp2
		} else {
			mant += ".0"
		}
	}
	e, _ := strconv.Atoi(exp)
	if e < -3 || e >= 7 {
		return mant + "E" + strconv.Itoa(e)
	}
	s := strconv.FormatFloat(v, 'f', -1, bits)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
