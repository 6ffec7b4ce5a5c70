package types

import "math"

// timeScanner reads date and time texts; ok turns false at the first surprise.
type timeScanner struct {
	b []byte
	i int
}

// digits reads between min and max digits.
func (s *timeScanner) digits(min, max int) (v int64, ok bool) {
	from := s.i
	for s.i < len(s.b) && s.i-from < max && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		v = v*10 + int64(s.b[s.i]-'0')
		s.i++
	}
	return v, s.i-from >= min
}

func (s *timeScanner) accept(c byte) bool {
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *timeScanner) done() bool { return s.i == len(s.b) }

// date reads [+-]Y…-M-D: four or more year digits, one or two of month and day.
func (s *timeScanner) date() (days int64, err error) {
	neg := s.accept('-')
	if !neg {
		s.accept('+')
	}
	y, ok := s.digits(4, 7)
	if neg {
		y = -y
	}
	if !ok || !s.accept('-') {
		return 0, ErrSyntax
	}
	m, ok1 := s.digits(1, 2)
	if !ok1 || !s.accept('-') {
		return 0, ErrSyntax
	}
	d, ok2 := s.digits(1, 2)
	if !ok2 || m < 1 || m > 12 || d < 1 || int(d) > daysIn(y, int(m)) {
		return 0, ErrSyntax
	}
	return DaysFromCivil(y, int(m), int(d)), nil
}

// clock reads H:M[:S[.f…]] as nanoseconds of day; digits beyond the ninth are cut.
func (s *timeScanner) clock() (nanos int64, err error) {
	h, ok := s.digits(1, 2)
	if !ok || !s.accept(':') {
		return 0, ErrSyntax
	}
	m, ok := s.digits(1, 2)
	if !ok || h > 23 || m > 59 {
		return 0, ErrSyntax
	}
	var sec, frac int64
	if s.accept(':') {
		if sec, ok = s.digits(1, 2); !ok || sec > 59 {
			return 0, ErrSyntax
		}
		if s.accept('.') {
			from := s.i
			if frac, ok = s.digits(1, 9); !ok {
				return 0, ErrSyntax
			}
			for n := s.i - from; n < 9; n++ {
				frac *= 10
			}
			for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
				s.i++
			}
		}
	}
	return ((h*60+m)*60+sec)*1_000_000_000 + frac, nil
}

// zone reads Z or ±hh[:mm[:ss]] (colons optional) as seconds east of UTC.
func (s *timeScanner) zone() (seconds int64, err error) {
	if s.accept('Z') || s.accept('z') {
		return 0, nil
	}
	sign := int64(1)
	if s.accept('-') {
		sign = -1
	} else if !s.accept('+') {
		return 0, ErrSyntax
	}
	h, ok := s.digits(2, 2)
	var m, sec int64
	if ok && !s.done() {
		s.accept(':')
		m, ok = s.digits(2, 2)
		if ok && !s.done() {
			s.accept(':')
			sec, ok = s.digits(2, 2)
		}
	}
	if !ok || h > 18 || m > 59 || sec > 59 {
		return 0, ErrSyntax
	}
	return sign * (h*3600 + m*60 + sec), nil
}

// ParseDate reads YYYY-MM-DD as days since the epoch. Seven digits of a year are
// read: the days may be more than a DATE holds.
func ParseDate(text []byte) (int64, error) {
	s := timeScanner{b: text}
	days, err := s.date()
	if err != nil || !s.done() {
		return 0, ErrSyntax
	}
	return days, nil
}

// ParseTime reads HH:MM[:SS[.fraction]] as nanoseconds of day.
func ParseTime(text []byte) (int64, error) {
	s := timeScanner{b: text}
	n, err := s.clock()
	if err != nil || !s.done() {
		return 0, ErrSyntax
	}
	return n, nil
}

// ZoneRule says what a timestamp text's zone means.
type ZoneRule uint8

const (
	// ZoneNone refuses a zone.
	ZoneNone ZoneRule = iota
	// ZoneOptional applies a zone if there is one; without one the text is UTC.
	ZoneOptional
	// ZoneRequired refuses a text without zone.
	ZoneRequired
	// ZoneIgnored accepts a zone and does not shift by it (Debezium IsoTimestamp).
	ZoneIgnored
)

// ParseTimestamp reads a date, optionally followed by 'T' or a blank, a time
// and a zone, as microseconds since the epoch and nanoseconds inside the
// microsecond. Digits beyond nanoseconds are cut.
func ParseTimestamp(text []byte, rule ZoneRule) (micros int64, nanos int32, err error) {
	s := timeScanner{b: text}
	days, err := s.date()
	if err != nil {
		return 0, 0, err
	}
	var clock int64
	if !s.done() {
		if !s.accept('T') && !s.accept(' ') && !s.accept('t') {
			return 0, 0, ErrSyntax
		}
		if clock, err = s.clock(); err != nil {
			return 0, 0, err
		}
	}
	var shift int64
	switch {
	case s.done():
		if rule == ZoneRequired {
			return 0, 0, ErrSyntax
		}
	case rule == ZoneNone:
		return 0, 0, ErrSyntax
	default:
		if shift, err = s.zone(); err != nil || !s.done() {
			return 0, 0, ErrSyntax
		}
		if rule == ZoneIgnored {
			shift = 0
		}
	}
	const maxDays = 106_751_989 // floor(2^63 / microsPerDay) - 2: what microseconds can hold, whatever the zone
	if days > maxDays || days < -maxDays {
		return 0, 0, ErrOverflow
	}
	return days*microsPerDay + clock/1000 - shift*microsPerSecond, int32(clock % 1000), nil
}

// TruncateMicros cuts a timestamp to a precision of 0 to 5 (towards the past; only
// where that is out of range, in the first second that microseconds can tell,
// towards the future). From precision 6 on nothing is cut.
func TruncateMicros(micros int64, precision int) int64 {
	unit := int64(1)
	for ; precision < 6; precision++ {
		unit *= 10
	}
	q := floorDiv(micros, unit)
	if q < math.MinInt64/unit {
		q++
	}
	return q * unit
}

// TruncateNanos cuts the nanoseconds inside a microsecond to a precision of 7 to 9.
func TruncateNanos(nanos int32, precision int) int32 {
	switch precision {
	case 7:
		return nanos / 100 * 100
	case 8:
		return nanos / 10 * 10
	}
	return nanos
}
