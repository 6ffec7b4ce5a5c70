package expr

import (
	"strings"
	"time"

	"applier/storage/types"
)

// timeFields are what a pattern reads; -1 is not given.
type timeFields struct {
	year, month, day, yearDay    int64
	hour, hour12, minute, second int64
	micros                       int64
	pm                           int64
	bc                           bool
	zone                         *time.Location
}

// parseByPattern reads a whole text by a pattern, as an instant in microseconds;
// fields left out are those of 1970-01-01 00:00:00 (Spark's defaults).
func parseByPattern(fields []patternField, text string, zone *time.Location, local bool) (int64, bool) {
	t := timeFields{year: -1 << 40, month: -1, day: -1, yearDay: -1, hour: -1, hour12: -1, pm: -1}
	p := patternParser{s: text, t: &t}
	if !p.run(fields) || p.s != "" {
		return 0, false
	}
	days, ok := t.date()
	if !ok {
		return 0, false
	}
	clock, ok := t.clock()
	if !ok {
		return 0, false
	}
	stamp, ok := joinDay(days, clock)
	if !ok {
		return 0, false
	}
	if local {
		return stamp, true
	}
	if t.zone != nil {
		zone = t.zone
	}
	return fromLocal(stamp, zone), true
}

func (t *timeFields) date() (int64, bool) {
	y, m, d := t.year, max(t.month, 1), max(t.day, 1)
	if t.year == -1<<40 {
		y = 1970
	}
	if t.bc {
		y = 1 - y
	}
	if t.yearDay > 0 && t.month < 0 {
		days := types.DaysFromCivil(y, 1, 1) + t.yearDay - 1
		return days, days < types.DaysFromCivil(y+1, 1, 1)
	}
	if t.month == 0 || t.day == 0 {
		return 0, false
	}
	r, err := civilDate(y, m, d)
	return r.I, err == nil
}

func (t *timeFields) clock() (int64, bool) {
	h := max(t.hour, 0)
	if t.hour < 0 && t.hour12 >= 0 {
		if h = t.hour12 % 12; t.pm == 1 {
			h += 12
		}
	}
	ok := h < 24 && t.minute < 60 && t.second < 60 && t.hour12 <= 12
	return h*microHour + t.minute*microMinute + t.second*microSecond + t.micros, ok
}

// patternParser walks over a text.
type patternParser struct {
	s string
	t *timeFields
}

// run reads all fields. An optional part that does not match is skipped as a whole.
func (p *patternParser) run(fields []patternField) bool {
	for i := 0; i < len(fields); i++ {
		f := fields[i]
		switch f.letter {
		case '[':
			end := closing(fields, i)
			saved, t := p.s, *p.t
			if !p.run(fields[i+1 : end]) {
				p.s, *p.t = saved, t
			}
			i = end
		case ']':
		case 0:
			if len(p.s) < len(f.text) || !strings.EqualFold(p.s[:len(f.text)], f.text) {
				return false
			}
			p.s = p.s[len(f.text):]
		default:
			if !p.field(f, fields[i+1:]) {
				return false
			}
		}
	}
	return true
}

// closing returns the index of the ] that ends the part begun at i.
func closing(fields []patternField, i int) int {
	depth := 0
	for j := i; j < len(fields); j++ {
		switch fields[j].letter {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return j
			}
		}
	}
	return len(fields)
}

// number reads between lo and hi digits; a field of open width leaves the fixed
// ones directly behind it their digits.
func (p *patternParser) number(lo, hi int, rest []patternField) (int64, bool) {
	n := 0
	for n < len(p.s) && n < 19 && p.s[n] >= '0' && p.s[n] <= '9' {
		n++
	}
	if hi > lo {
		for _, f := range rest {
			if f.count < 2 || strings.IndexByte("MdHhkKmsDyS", f.letter) < 0 || f.letter == 'M' && f.count > 2 {
				break
			}
			n -= f.count
		}
	}
	n = min(n, hi)
	if n < lo || n < 1 {
		return 0, false
	}
	var v int64
	for i := range n {
		v = v*10 + int64(p.s[i]-'0')
	}
	p.s = p.s[n:]
	return v, true
}

// width are the bounds of the digits of a numeric field.
func (f patternField) width() (lo, hi int) {
	if f.count == 1 {
		return 1, 18
	}
	return f.count, f.count
}

func (p *patternParser) field(f patternField, rest []patternField) bool {
	switch f.letter {
	case 'y':
		return p.year(f, rest)
	case 'M', 'L':
		if f.count > 2 {
			return p.monthName(f.count == 4)
		}
	case 'S':
		before := len(p.s)
		v, ok := p.number(1, f.count, nil)
		for n := before - len(p.s); n < 9; n++ {
			v *= 10
		}
		p.t.micros = v / 1000
		return ok
	case 'a':
		for i, name := range [...]string{"AM", "PM"} {
			if len(p.s) >= 2 && strings.EqualFold(p.s[:2], name) {
				p.s, p.t.pm = p.s[2:], int64(i)
				return true
			}
		}
		return false
	case 'G':
		for i, name := range [...]string{"AD", "BC"} {
			if len(p.s) >= 2 && strings.EqualFold(p.s[:2], name) {
				p.s, p.t.bc = p.s[2:], i == 1
				return true
			}
		}
		return false
	case 'X', 'x', 'Z', 'V', 'z', 'O':
		return p.zone(f)
	}
	lo, hi := f.width()
	v, ok := p.number(lo, hi, rest)
	if !ok {
		return false
	}
	return p.t.set(f.letter, v)
}

// set stores a number; it reports whether the field may have it.
func (t *timeFields) set(letter byte, v int64) bool {
	switch letter {
	case 'M', 'L':
		t.month = v
		return v >= 1 && v <= 12
	case 'd':
		t.day = v
		return v >= 1 && v <= 31
	case 'D':
		t.yearDay = v
		return v >= 1 && v <= 366
	case 'H':
		t.hour = v
		return v < 24
	case 'k':
		t.hour = v % 24
		return v >= 1 && v <= 24
	case 'h':
		t.hour12 = v
		return v >= 1 && v <= 12
	case 'K':
		t.hour12 = v
		return v < 12
	case 'm':
		t.minute = v
		return v < 60
	case 's':
		t.second = v
		return v < 60
	}
	return false
}

func (p *patternParser) year(f patternField, rest []patternField) bool {
	if f.count == 2 {
		v, ok := p.number(2, 2, rest)
		p.t.year = 2000 + v
		return ok
	}
	neg := false
	if len(p.s) > 0 && (p.s[0] == '-' || p.s[0] == '+') {
		neg = p.s[0] == '-'
		p.s = p.s[1:]
	}
	hi := 9
	if f.count == 3 {
		hi = 9
	}
	v, ok := p.number(f.count, hi, rest)
	if neg {
		v = -v
	}
	p.t.year = v
	return ok
}

func (p *patternParser) monthName(full bool) bool {
	for m := time.January; m <= time.December; m++ {
		name := m.String()
		if !full {
			name = name[:3]
		}
		if len(p.s) >= len(name) && strings.EqualFold(p.s[:len(name)], name) {
			p.s, p.t.month = p.s[len(name):], int64(m)
			return true
		}
	}
	return false
}

// zone reads an offset, or a zone's name up to the next blank.
func (p *patternParser) zone(f patternField) bool {
	if p.s == "" {
		return false
	}
	n := 0
	switch {
	case p.s[0] == 'Z' && f.letter == 'X':
		n = 1
	case f.letter == 'V' || f.letter == 'z' || f.letter == 'O':
		for n < len(p.s) && p.s[n] != ' ' && p.s[n] != ']' {
			n++
		}
	case p.s[0] == '+' || p.s[0] == '-':
		for n = 1; n < len(p.s) && (p.s[n] >= '0' && p.s[n] <= '9' || p.s[n] == ':'); n++ {
		}
	}
	loc, ok := zoneOf(p.s[:n])
	if n == 0 || !ok {
		return false
	}
	p.s, p.t.zone = p.s[n:], loc
	return true
}
