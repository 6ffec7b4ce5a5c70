package expr

import (
	"strconv"
	"strings"
	"time"

	"applier/storage/types"
)

// Patterns of dates and times are Java's DateTimeFormatter with the limits that
// Spark sets: no week-based fields, no names of days when parsing.

// patternField is a run of one letter, or a literal (letter 0), or the beginning
// or end of an optional part ('[' and ']').
type patternField struct {
	letter byte
	count  int
	text   string
}

// The letters that a pattern may not have, and those that the pattern language
// before Spark 3 knew: for these the error tells of the change.
const (
	weekLetters    = "YWwuec"
	illegalLetters = "ABnNp"
	noParseLetters = "EFqQ"
	legacyLetters  = "GyYMLwWDdFEuaHkKhmsSzZX"
	knownLetters   = "GyMLDdFEaHkKhmsSzZXxVOqQ"
)

// parsePattern splits a pattern into its fields.
func parsePattern(pattern string, parsing bool) ([]patternField, error) {
	fields, letters, err := scanPattern(pattern)
	if err == nil {
		err = checkPattern(pattern, fields, letters, parsing)
	}
	if err == nil {
		return fields, nil
	}
	if strings.Trim(letters, legacyLetters) == "" && letters != "" {
		return nil, fault("INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION", "the pattern %q is not supported: week-based fields, texts of one letter and names of days in what is parsed are not", pattern)
	}
	return nil, err
}

// scanPattern splits without judging; letters are all that stand outside quotes.
func scanPattern(pattern string) (fields []patternField, letters string, err error) {
	var used strings.Builder
	for i := 0; i < len(pattern); {
		ch := pattern[i]
		switch {
		case ch == '\'':
			text, n := quotedText(pattern[i:])
			if n == 0 {
				return nil, letters, badPattern(pattern)
			}
			fields = append(fields, patternField{text: text})
			i += n
		case isLetter(ch):
			n := 1
			for i+n < len(pattern) && pattern[i+n] == ch {
				n++
			}
			used.WriteByte(ch)
			fields = append(fields, patternField{letter: ch, count: n})
			i += n
		case ch == '[' || ch == ']':
			fields = append(fields, patternField{letter: ch})
			i++
		case ch == '{' || ch == '}' || ch == '#':
			return nil, used.String(), badPattern(pattern)
		default:
			fields = append(fields, patternField{text: pattern[i : i+1]})
			i++
		}
	}
	return fields, used.String(), nil
}

// quotedText reads a text in quotes; two quotes are one. n is 0 if it has no end.
func quotedText(s string) (text string, n int) {
	if strings.HasPrefix(s, "''") {
		return "'", 2
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '\'' {
			b.WriteByte('\'')
			i++
			continue
		}
		return b.String(), i + 1
	}
	return "", 0
}

func badPattern(pattern string) error {
	return fault("INVALID_DATETIME_PATTERN.WITH_SUGGESTION", "%q is no pattern of a date", pattern)
}

func checkPattern(pattern string, fields []patternField, letters string, parsing bool) error {
	if strings.ContainsAny(letters, weekLetters) {
		return fault("INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_WEEK_BASED_PATTERN", "the pattern %q has week-based fields, which are not supported", pattern)
	}
	if strings.ContainsAny(letters, illegalLetters) || parsing && strings.ContainsAny(letters, noParseLetters) {
		return fault("INVALID_DATETIME_PATTERN.ILLEGAL_CHARACTER", "the pattern %q has a letter that is not supported", pattern)
	}
	if strings.Trim(letters, knownLetters) != "" {
		return badPattern(pattern)
	}
	for _, f := range fields {
		limit := 2
		switch f.letter {
		case 0, '[', ']':
			continue
		case 'y':
			limit = 6
		case 'G', 'M', 'L', 'E', 'Q', 'q', 'z', 'O':
			limit = 4
		case 'X', 'x', 'Z':
			limit = 5
		case 'S':
			limit = 9
		case 'D':
			limit = 3
		case 'a', 'F':
			limit = 1
		}
		if f.count > limit {
			return fault("INVALID_DATETIME_PATTERN.LENGTH", "the pattern %q has %c too often", pattern, f.letter)
		}
	}
	return nil
}

// moment is a wall clock in a zone, to be formatted.
type moment struct {
	days   int64 // since the epoch
	clock  int64 // microseconds of the day
	offset int64 // seconds east of UTC
	zone   *time.Location
	short  string // the zone's short name
}

func momentOf(micros int64, zone *time.Location) moment {
	local := toLocal(micros, zone)
	days := types.FloorDiv(local, microDay)
	name, off := time.UnixMicro(micros).In(zone).Zone()
	return moment{days, local - days*microDay, int64(off), zone, name}
}

// formatPattern writes a moment.
func formatPattern(fields []patternField, m moment) string {
	var b strings.Builder
	era := false
	for _, f := range fields {
		era = era || f.letter == 'G'
	}
	for _, f := range fields {
		switch f.letter {
		case 0:
			b.WriteString(f.text)
		case '[', ']':
		default:
			m.write(&b, f, era)
		}
	}
	return b.String()
}

func padInt(b *strings.Builder, v int64, width int) { b.Write(appendPadded(nil, v, width)) }

func (m moment) write(b *strings.Builder, f patternField, era bool) {
	y, mon, d := types.CivilFromDays(m.days)
	switch f.letter {
	case 'y':
		if era && y <= 0 {
			y = 1 - y
		}
		writeYear(b, y, f.count)
	case 'G':
		names := [...]string{"BC", "AD", "Before Christ", "Anno Domini"}
		i := 0
		if y > 0 {
			i = 1
		}
		b.WriteString(names[i+f.count/4*2])
	case 'M', 'L':
		writeName(b, f.count, int64(mon), time.Month(mon).String())
	case 'd':
		padInt(b, int64(d), f.count)
	case 'D':
		padInt(b, m.days-types.DaysFromCivil(y, 1, 1)+1, f.count)
	case 'E':
		writeName(b, max(f.count, 3), 0, weekdayOf(m.days).String())
	case 'F':
		padInt(b, int64((d-1)%7+1), f.count)
	case 'q', 'Q':
		q := int64(mon-1)/3 + 1
		switch f.count {
		case 3:
			b.WriteString("Q" + strconv.FormatInt(q, 10))
		case 4:
			b.WriteString([...]string{"1st", "2nd", "3rd", "4th"}[q-1] + " quarter")
		default:
			padInt(b, q, f.count)
		}
	case 'z', 'Z', 'X', 'x', 'V', 'O':
		m.writeZone(b, f)
	default:
		m.writeClock(b, f)
	}
}

func writeYear(b *strings.Builder, y int64, count int) {
	switch {
	case count == 2:
		padInt(b, ((y%100)+100)%100, 2)
	case y < 0:
		b.WriteByte('-')
		padInt(b, -y, count)
	default:
		if count >= 4 && y > 9999 && len(strconv.FormatInt(y, 10)) > count {
			b.WriteByte('+')
		}
		padInt(b, y, count)
	}
}

// writeName writes a number, or a name in three letters or in full.
func writeName(b *strings.Builder, count int, v int64, name string) {
	switch count {
	case 3:
		b.WriteString(name[:3])
	case 4:
		b.WriteString(name)
	default:
		padInt(b, v, count)
	}
}

func (m moment) writeClock(b *strings.Builder, f patternField) {
	h := m.clock / microHour
	switch f.letter {
	case 'a':
		b.WriteString([...]string{"AM", "PM"}[h/12])
	case 'H':
		padInt(b, h, f.count)
	case 'k':
		padInt(b, (h+23)%24+1, f.count)
	case 'K':
		padInt(b, h%12, f.count)
	case 'h':
		padInt(b, (h+11)%12+1, f.count)
	case 'm':
		padInt(b, m.clock%microHour/microMinute, f.count)
	case 's':
		padInt(b, m.clock%microMinute/microSecond, f.count)
	case 'S':
		digits := string(appendPadded(nil, m.clock%microSecond, 6)) + "000"
		b.WriteString(digits[:f.count])
	}
}

func (m moment) writeZone(b *strings.Builder, f patternField) {
	name := m.zone.String()
	switch f.letter {
	case 'V':
		b.WriteString(name)
		return
	case 'z':
		if f.count == 4 && name == "UTC" {
			b.WriteString("Coordinated Universal Time")
			return
		}
		b.WriteString(m.short)
		return
	case 'O':
		b.WriteString("GMT")
		if m.offset != 0 {
			b.WriteString(offsetText(m.offset, f.count == 4))
		}
		return
	}
	if m.offset == 0 && (f.letter == 'X' || f.letter == 'Z' && f.count == 5) {
		b.WriteByte('Z')
		return
	}
	s := offsetText(m.offset, true)
	switch {
	case f.letter == 'Z' && f.count == 4:
		b.WriteString("GMT")
		if m.offset == 0 {
			return
		}
	case f.letter == 'Z' && f.count < 4, f.letter != 'Z' && f.count%2 == 0:
		s = strings.ReplaceAll(s, ":", "")
	case f.count == 1:
		if s = strings.ReplaceAll(s, ":", ""); strings.HasSuffix(s, "00") {
			s = s[:3]
		}
	}
	b.WriteString(s)
}

// offsetText writes ±hh:mm, or ±h[:mm] if it need not be long.
func offsetText(sec int64, long bool) string {
	sign := "+"
	if sec < 0 {
		sign, sec = "-", -sec
	}
	if !long {
		s := sign + strconv.FormatInt(sec/3600, 10)
		if sec%3600 != 0 {
			s += ":" + string(appendPadded(nil, sec%3600/60, 2))
		}
		return s
	}
	return sign + string(appendPadded(nil, sec/3600, 2)) + ":" + string(appendPadded(nil, sec%3600/60, 2))
}

// weekdayOf returns the day of the week; 1970-01-01 was a Thursday.
func weekdayOf(days int64) time.Weekday { return time.Weekday(((days+4)%7 + 7) % 7) }
