package paimon

import "applier/storage/types"

// formatScanner reads what Java's formatter of timestamps does:
//
//	yyyy-[MM][M]-[dd][d][ [HH][H]:[mm][m]:[ss][s][.fraction]]['T'[HH][H]:[mm][m][:[ss][s][.fraction]]]
//
// Java also takes both forms of a time behind each other, if they agree.
// (DateTimeUtils.DEFAULT_TIMESTAMP_FORMATTER)
type formatScanner struct {
	s   string
	bad bool
}

// number reads two digits, or one.
func (f *formatScanner) number() int64 {
	n := 0
	for n < 2 && n < len(f.s) && f.s[n] >= '0' && f.s[n] <= '9' {
		n++
	}
	if n == 0 {
		f.bad = true
		return 0
	}
	v := int64(0)
	for _, c := range []byte(f.s[:n]) {
		v = 10*v + int64(c-'0')
	}
	f.s = f.s[n:]
	return v
}

func (f *formatScanner) accept(c byte) {
	if f.bad || f.s == "" || f.s[0] != c {
		f.bad = true
		return
	}
	f.s = f.s[1:]
}

// year is four digits, or with a plus in front more of them.
func (f *formatScanner) year() int64 {
	least, most := 4, 4
	if f.s != "" && f.s[0] == '+' {
		f.s, least, most = f.s[1:], 5, 9
	}
	n, v := 0, int64(0)
	for n < len(f.s) && n < most && f.s[n] >= '0' && f.s[n] <= '9' {
		v = 10*v + int64(f.s[n]-'0')
		n++
	}
	f.bad = f.bad || n < least || least == 5 && v < 10_000 || v == 0
	f.s = f.s[n:]
	return v
}

// clock reads what follows mark as nanoseconds; behind a T seconds may be missing.
func (f *formatScanner) clock(mark byte, seconds bool) int64 {
	f.accept(mark)
	hour := f.number()
	f.accept(':')
	minute := f.number()
	second, fraction := int64(0), int64(0)
	if seconds || f.s != "" {
		f.accept(':')
		second = f.number()
		fraction = f.fraction()
	}
	// 24:00 is the end of a day, and so of no other time.
	if hour > 24 || minute > 59 || second > 59 || hour == 24 && minute+second+fraction > 0 {
		f.bad = true
	}
	return ((hour*60+minute)*60+second)*1_000_000_000 + fraction
}

// fraction reads a point and up to nine digits, if there is a point.
func (f *formatScanner) fraction() int64 {
	if f.bad || f.s == "" || f.s[0] != '.' {
		return 0
	}
	f.s = f.s[1:]
	v, n := int64(0), 0
	for ; n < 9; n++ {
		v *= 10
		if f.s != "" && f.s[0] >= '0' && f.s[0] <= '9' {
			v += int64(f.s[0] - '0')
			f.s = f.s[1:]
		}
	}
	return v
}

// javaTimestamp reads days since the epoch and nanoseconds of the day. The last
// day of a month stands for those behind it, up to the 31st.
func javaTimestamp(s string) (days, clock int64, ok bool) {
	f := &formatScanner{s: s}
	year := f.year()
	f.accept('-')
	month := f.number()
	f.accept('-')
	day := f.number()
	if f.bad || month < 1 || month > 12 || day < 1 || day > 31 {
		return 0, 0, false
	}
	day = min(day, daysOfMonth(year, month))
	if f.s != "" {
		mark := f.s[0]
		if mark != ' ' && mark != 'T' {
			return 0, 0, false
		}
		clock = f.clock(mark, mark == ' ')
	}
	return types.DaysFromCivil(year, int(month), int(day)), clock, !f.bad && f.s == ""
}
