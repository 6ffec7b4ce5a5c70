package expr

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"applier/storage/types"
)

// toLocal turns an instant into the wall clock of a zone.
func toLocal(micros int64, zone *time.Location) int64 {
	if zone == time.UTC {
		return micros
	}
	return micros + offsetAt(micros, zone)
}

// offsetAt is a zone's distance to UTC at an instant, in microseconds.
func offsetAt(micros int64, zone *time.Location) int64 {
	_, off := time.UnixMicro(micros).In(zone).Zone()
	return int64(off) * microSecond
}

// fromLocal turns a wall clock into an instant. Clocks that do not exist move
// forward by the gap, those that exist twice are the first.
func fromLocal(local int64, zone *time.Location) int64 {
	if zone == time.UTC {
		return local
	}
	before := offsetAt(local-microDay, zone)
	after := offsetAt(local+microDay, zone)
	if before != after && offsetAt(local-before, zone) != before && offsetAt(local-after, zone) == after {
		return local - after
	}
	return local - before
}

// toTime casts to DATE, TIME and the timestamps.
func toTime(from, to Type, env *Env) castFn {
	zone := env.zone()
	switch from.Kind {
	case String:
		return func(d types.Datum) (types.Datum, error) {
			r, err := parseTimeType(d.B, to, env)
			if err != nil {
				return types.Null, badInput(d, to)
			}
			return r, nil
		}
	case Date:
		return func(d types.Datum) (types.Datum, error) {
			v, ok := mulInt64(d.I, microDay)
			if !ok {
				return types.Null, fault(classJavaMath, "the date is out of the range of timestamps")
			}
			if to.Kind == Timestamp {
				v = fromLocal(v, zone)
			}
			return types.IntDatum(v), nil
		}
	case Timestamp, TimestampNTZ:
		return stampCaster(from, to, zone)
	case Float, Double:
		return func(d types.Datum) (types.Datum, error) {
			if math.IsNaN(d.F) || math.IsInf(d.F, 0) {
				return types.Null, fault(classCastInput, "%s is no timestamp", javaFloat(d.F, 64))
			}
			return floatToInt(d.F*1e6, tLong)
		}
	case Decimal:
		return func(d types.Datum) (types.Datum, error) {
			v := new(big.Int).Quo(new(big.Int).Mul(unscaled(from, d), big.NewInt(microSecond)), bigPow10(from.Scale))
			if !v.IsInt64() {
				return types.Null, castOverflow(decimalText(unscaled(from, d), from.Scale), to)
			}
			return types.IntDatum(v.Int64()), nil
		}
	case Time:
		return func(d types.Datum) (types.Datum, error) { return d, nil }
	}
	return func(d types.Datum) (types.Datum, error) { // seconds; beyond the range the last there is
		if v, ok := mulInt64(d.I, microSecond); ok {
			return types.IntDatum(v), nil
		}
		return types.IntDatum(math.MaxInt64 ^ d.I>>63), nil
	}
}

func stampCaster(from, to Type, zone *time.Location) castFn {
	return func(d types.Datum) (types.Datum, error) {
		local := d.I
		if from.Kind == Timestamp {
			local = toLocal(d.I, zone)
		}
		switch to.Kind {
		case Date:
			return types.IntDatum(types.FloorDiv(local, microDay)), nil
		case Timestamp:
			return types.Datum{I: fromLocal(d.I, zone), N: d.N}, nil
		case Time:
			return types.IntDatum(local - types.FloorDiv(local, microDay)*microDay), nil
		}
		return types.Datum{I: local, N: d.N}, nil
	}
}

func parseTimeType(b []byte, t Type, env *Env) (types.Datum, error) {
	switch t.Kind {
	case Date:
		return parseDateText(b)
	case Time:
		return parseTimeText(b, t.Precision)
	case TimestampNTZ:
		return parseStampText(b, env, stampIgnoreZone)
	}
	return parseStampText(b, env, stampZone)
}

// parseDateText reads y…-m-d, y…-m or y…; behind a whole date and a blank or T
// anything may stand (Spark's stringToDate).
func parseDateText(text []byte) (types.Datum, error) {
	b := trimAll(text)
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	seg := [3]int64{1, 1, 1}
	i, j, n := 0, 0, 0
	var cur int64
	take := func() bool {
		ok := n >= 1 && n <= 2
		if i == 0 {
			ok = n >= 4 && n <= 7
		}
		seg[i] = cur
		cur, n = 0, 0
		return ok
	}
	for ; j < len(b) && i < 3 && b[j] != ' ' && b[j] != 'T'; j++ {
		switch {
		case i < 2 && b[j] == '-':
			if !take() {
				return types.Null, errNumber
			}
			i++
		case b[j] < '0' || b[j] > '9' || n > 7:
			return types.Null, errNumber
		default:
			cur = cur*10 + int64(b[j]-'0')
			n++
		}
	}
	if !take() || i < 2 && j < len(b) {
		return types.Null, errNumber
	}
	if neg {
		seg[0] = -seg[0]
	}
	return civilDate(seg[0], seg[1], seg[2])
}

// civilDate checks a date's fields.
func civilDate(y, m, d int64) (types.Datum, error) {
	if m < 1 || m > 12 || d < 1 || d > 31 || int(d) > daysIn(y, int(m)) {
		return types.Null, errNumber
	}
	days := types.DaysFromCivil(y, int(m), int(d))
	if int64(int32(days)) != days {
		return types.Null, errNumber
	}
	return types.IntDatum(days), nil
}

// dateLiteral reads the text of DATE '…', which may be a word.
func dateLiteral(text string, env *Env) (types.Datum, error) {
	if off, ok := specialDay(text); ok {
		if off == epochDay {
			return types.IntDatum(0), nil
		}
		return types.IntDatum(types.FloorDiv(toLocal(env.nowMicros(), env.zone()), microDay) + off), nil
	}
	return parseDateText([]byte(text))
}

// stampLiteral reads the text of TIMESTAMP '…', which may be a word.
func stampLiteral(text string, env *Env) (types.Datum, error) {
	if off, ok := specialDay(text); ok {
		switch {
		case off == epochDay:
			return types.IntDatum(0), nil
		case strings.EqualFold(strings.TrimSpace(text), "now"):
			return types.IntDatum(env.nowMicros()), nil
		}
		day := types.FloorDiv(toLocal(env.nowMicros(), env.zone()), microDay) + off
		return types.IntDatum(fromLocal(day*microDay, env.zone())), nil
	}
	return parseStampText([]byte(text), env, stampZone)
}

const epochDay = math.MinInt64

// specialDay is the distance to today of a word for a day.
func specialDay(text string) (int64, bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "epoch":
		return epochDay, true
	case "now", "today":
		return 0, true
	case "tomorrow":
		return 1, true
	case "yesterday":
		return -1, true
	}
	return 0, false
}

// stampRule says what a zone in a timestamp's text means.
type stampRule uint8

const (
	// stampZone applies the zone, the session's if there is none; a time alone is
	// today's.
	stampZone stampRule = iota
	// stampIgnoreZone reads a zone and ignores it; a time alone is refused.
	stampIgnoreZone
)

// parseStampText reads a timestamp as Spark's casts do: from y… alone to
// y…-m-d h:m:s.f with a zone.
func parseStampText(text []byte, env *Env, rule stampRule) (types.Datum, error) {
	p := stampParser{b: trimAll(text), seg: [7]int64{1, 1, 1}}
	if !p.parse() {
		return types.Null, errNumber
	}
	if p.justTime && rule != stampZone {
		return types.Null, errNumber
	}
	zone := env.zone()
	if p.zone != "" {
		var ok bool
		if zone, ok = zoneOf(p.zone); !ok {
			return types.Null, errNumber
		}
	}
	var days int64
	if p.justTime {
		days = types.FloorDiv(toLocal(env.nowMicros(), zone), microDay)
	} else {
		d, err := civilDate(p.seg[0], p.seg[1], p.seg[2])
		if err != nil {
			return types.Null, err
		}
		days = d.I
	}
	if p.seg[3] > 23 || p.seg[4] > 59 || p.seg[5] > 59 {
		return types.Null, errNumber
	}
	clock := p.seg[3]*microHour + p.seg[4]*microMinute + p.seg[5]*microSecond + p.seg[6]
	local, ok := joinDay(days, clock)
	if !ok {
		return types.Null, errNumber
	}
	if rule == stampZone {
		local = fromLocal(local, zone)
	}
	return types.IntDatum(local), nil
}

// joinDay is days*microDay + clock; the product alone may be out of range.
func joinDay(days, clock int64) (int64, bool) {
	if days < 0 {
		days, clock = days+1, clock-microDay
	}
	v, ok1 := mulInt64(days, microDay)
	v, ok2 := addInt64(v, clock)
	return v, ok1 && (ok2 || clock == 0)
}

// stampParser walks over a timestamp's text.
type stampParser struct {
	b        []byte
	seg      [7]int64 // year, month, day, hour, minute, second, microsecond
	zone     string
	justTime bool

	i, digits int
	cur       int64
}

// take ends the segment i; it reports whether its number of digits is right.
func (p *stampParser) take() bool {
	ok := p.digits >= 1 && p.digits <= 2
	switch p.i {
	case 0:
		ok = p.digits >= 4 && p.digits <= 6
	case 6:
		ok = true
		for n := p.digits; n < 6; n++ {
			p.cur *= 10
		}
	}
	p.seg[p.i] = p.cur
	p.cur, p.digits = 0, 0
	p.i++
	return ok
}

func (p *stampParser) parse() bool {
	j, neg, signed := 0, false, false
	if len(p.b) > 0 && (p.b[0] == '-' || p.b[0] == '+') {
		neg, signed = p.b[0] == '-', true
		j = 1
	}
	if len(p.b) > 0 && p.b[0] == 'T' {
		p.justTime, p.i, j = true, 3, 1
	}
	for ; j < len(p.b); j++ {
		c := p.b[j]
		if c >= '0' && c <= '9' {
			if p.i != 6 || p.digits < 6 {
				p.cur = p.cur*10 + int64(c-'0')
			}
			if p.digits++; p.digits > 9 && p.i != 6 {
				return false
			}
			continue
		}
		done, ok := p.separator(c, signed, j)
		if !ok {
			return false
		}
		if done {
			break
		}
	}
	if p.i < 7 && p.zone == "" && !p.take() {
		return false
	}
	if neg {
		p.seg[0] = -p.seg[0]
	}
	return true
}

// separator handles what is no digit, at j; done tells that a zone took the rest.
func (p *stampParser) separator(c byte, signed bool, j int) (done, ok bool) {
	switch p.i {
	case 0:
		if c == ':' && !signed {
			p.justTime, p.i = true, 3
			return false, p.take()
		}
		return false, c == '-' && p.take()
	case 1:
		return false, c == '-' && p.take()
	case 2:
		return false, (c == ' ' || c == 'T') && p.take()
	case 3, 4:
		return false, c == ':' && p.take()
	}
	if p.i == 5 && c == '.' {
		return false, p.take()
	}
	p.zone = strings.TrimSpace(string(p.b[j:]))
	return true, p.take() && p.zone != ""
}

// shortZones are the three-letter names that Java's casts know.
var shortZones = map[string]string{
	"EST": "-05:00", "HST": "-10:00", "MST": "-07:00", "ACT": "Australia/Darwin", "AET": "Australia/Sydney",
	"AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo",
	"BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
	"EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
	"JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
	"PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
	"VST": "Asia/Ho_Chi_Minh",
}

// zoneOf finds a zone by a name, or by an offset with or without UTC, GMT or UT
// before it.
func zoneOf(name string) (*time.Location, bool) {
	if s, ok := shortZones[name]; ok {
		name = s
	}
	switch name {
	case "Z", "UTC", "GMT", "UT":
		return time.UTC, true
	}
	for _, prefix := range [...]string{"UTC", "GMT", "UT", ""} {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || rest == "" || rest[0] != '+' && rest[0] != '-' {
			continue
		}
		sec, ok := parseOffset(rest)
		if !ok {
			return nil, false
		}
		return time.FixedZone(name, sec), true
	}
	if name == "" || name == "Local" || strings.Contains(name, "..") || strings.HasPrefix(name, "/") {
		return nil, false
	}
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

// parseOffset reads ±h, ±hh, ±h:mm, ±hh:m, ±hh:mm, ±hhmm, ±hh:mm:ss and ±hhmmss, at most 18
// hours.
func parseOffset(s string) (sec int, ok bool) {
	sign := 1
	if s[0] == '-' {
		sign = -1
	}
	s = s[1:]
	var f []string
	switch {
	case strings.Contains(s, ":"):
		f = strings.Split(s, ":")
		if len(f) == 3 && (len(f[1]) != 2 || len(f[2]) != 2) {
			return 0, false
		}
	case len(s) <= 2:
		f = []string{s}
	case len(s) == 4:
		f = []string{s[:2], s[2:]}
	case len(s) == 6:
		f = []string{s[:2], s[2:4], s[4:]}
	}
	if len(f) == 0 || len(f) > 3 {
		return 0, false
	}
	unit := 3600
	for i, x := range f {
		n, err := strconv.ParseUint(x, 10, bits.UintSize-1)
		if err != nil || len(x) > 2 || i > 0 && n > 59 || n > 18 && i == 0 {
			return 0, false
		}
		sec += int(n) * unit
		unit /= 60
	}
	return sign * sec, sec <= 18*3600
}

// parseTimeText reads h:m[:s[.f]] as microseconds of a day.
func parseTimeText(b []byte, precision int) (types.Datum, error) {
	n, err := types.ParseTime(trimAll(b))
	if err != nil {
		return types.Null, err
	}
	micros := n / 1000
	unit := int64(1)
	for p := precision; p < 6; p++ {
		unit *= 10
	}
	return types.IntDatum(micros / unit * unit), nil
}
