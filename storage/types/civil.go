package types

import "fmt"

// Calendar arithmetic is proleptic Gregorian throughout, years may be negative
// (astronomical: year 0 exists). The algorithms are Howard Hinnant's published
// days_from_civil and civil_from_days.

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
	millisPerDay    = 86_400_000
)

// DaysFromCivil returns the days since 1970-01-01 of a calendar date.
func DaysFromCivil(year int64, month, day int) int64 {
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	mp := int64((month + 9) % 12)
	doy := (153*mp+2)/5 + int64(day) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

// CivilFromDays is the inverse of DaysFromCivil.
func CivilFromDays(days int64) (year int64, month, day int) {
	days += 719468
	era := floorDiv(days, 146097)
	doe := days - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	year = yoe + era*400
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp + 3)
	if month > 12 {
		month -= 12
	}
	if month <= 2 {
		year++
	}
	return year, month, day
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// FloorDiv divides rounding down, as epochs before 1970 need.
func FloorDiv(a, b int64) int64 { return floorDiv(a, b) }

// daysIn returns the length of a month.
func daysIn(year int64, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// AppendDate writes days since the epoch as YYYY-MM-DD; years beyond four
// digits get a sign, as in ISO 8601.
func AppendDate(dst []byte, days int64) []byte {
	y, m, d := CivilFromDays(days)
	switch {
	case y < 0:
		dst = fmt.Appendf(dst, "-%04d", -y)
	case y > 9999:
		dst = fmt.Appendf(dst, "+%d", y)
	default:
		dst = appendDigits(dst, y, 4)
	}
	dst = append(dst, '-')
	dst = appendDigits(dst, int64(m), 2)
	dst = append(dst, '-')
	return appendDigits(dst, int64(d), 2)
}

func appendDigits(dst []byte, v int64, width int) []byte {
	n := len(dst)
	for range width {
		dst = append(dst, '0')
	}
	for i := n + width - 1; i >= n; i-- {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
	return dst
}

// AppendTime writes a time of day given in nanoseconds, with the given number
// of fraction digits.
func AppendTime(dst []byte, nanos int64, precision int) []byte {
	s := nanos / 1_000_000_000
	dst = appendDigits(dst, s/3600, 2)
	dst = append(dst, ':')
	dst = appendDigits(dst, s/60%60, 2)
	dst = append(dst, ':')
	dst = appendDigits(dst, s%60, 2)
	if precision == 0 {
		return dst
	}
	frac := nanos % 1_000_000_000
	for i := precision; i < 9; i++ {
		frac /= 10
	}
	dst = append(dst, '.')
	return appendDigits(dst, frac, precision)
}

// AppendTimestamp writes microseconds since the epoch (plus nanoseconds inside
// the microsecond) as date, separator, time with the given fraction digits.
func AppendTimestamp(dst []byte, micros int64, nanos int32, precision int, sep byte) []byte {
	days := floorDiv(micros, microsPerDay)
	dst = AppendDate(dst, days)
	dst = append(dst, sep)
	return AppendTime(dst, (micros-days*microsPerDay)*1000+int64(nanos), precision)
}
