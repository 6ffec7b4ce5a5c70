package expr

import (
	"math"
	"math/big"
	"time"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

func stampFunctions() []function {
	return []function{
		{"hour", 1, 1, clockPart(microDay, microHour)},
		{"minute", 1, 1, clockPart(microHour, microMinute)},
		{"second", 1, 1, clockPart(microMinute, microSecond)},
		{"date_trunc", 2, 2, (*compiler).dateTrunc},
		{"date_format", 2, 2, (*compiler).dateFormat},
		{"from_unixtime", 1, 2, (*compiler).fromUnixtime},
		{"unix_timestamp", 0, 2, (*compiler).unixTimestamp},
		{"to_unix_timestamp", 1, 2, (*compiler).unixTimestamp},
		{"to_date", 1, 2, func(c *compiler, k *call) *node { return c.toDate(k, false) }},
		{"try_to_date", 1, 2, func(c *compiler, k *call) *node { return c.toDate(k, true) }},
		{"to_timestamp", 1, 2, func(c *compiler, k *call) *node { return c.toStamp(k, tStamp, false) }},
		{"try_to_timestamp", 1, 2, func(c *compiler, k *call) *node { return c.toStamp(k, tStamp, true) }},
		{"to_timestamp_ltz", 1, 2, func(c *compiler, k *call) *node { return c.toStamp(k, tStamp, false) }},
		{"to_timestamp_ntz", 1, 2, func(c *compiler, k *call) *node { return c.toStamp(k, tNTZ, false) }},
		unixPart("unix_seconds", microSecond),
		unixPart("unix_millis", 1000),
		unixPart("unix_micros", 1),
		{"timestamp_seconds", 1, 1, (*compiler).stampSeconds},
		fromUnit("timestamp_millis", 1000),
		fromUnit("timestamp_micros", 1),
		scalar("from_utc_timestamp", 2, tStamp, []Type{tStamp, tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			zone, err := zoneArg(a[1])
			if err != nil {
				return types.Null, err
			}
			return moved(a[0].I, toLocal(a[0].I, zone))
		}),
		scalar("to_utc_timestamp", 2, tStamp, []Type{tStamp, tString}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			zone, err := zoneArg(a[1])
			if err != nil {
				return types.Null, err
			}
			return moved(a[0].I, fromLocal(a[0].I, zone))
		}),
		{"convert_timezone", 2, 3, (*compiler).convertTimezone},
		{"window", 2, 2, (*compiler).window},
	}
}

// moved is a timestamp moved by a zone's offset, unless that left the range.
func moved(from, to int64) (types.Datum, error) {
	if from > 0 != (to > 0) && max(from, -from) > microDay {
		return types.Null, fault(classJavaMath, "the timestamp is out of range")
	}
	return types.IntDatum(to), nil
}

// clockArg casts an argument to a timestamp; TIMESTAMP_NTZ and TIME stay.
func (c *compiler) clockArg(n *node, fn string, arg int) *node {
	if n.typ.Kind == TimestampNTZ || n.typ.Kind == Time {
		return n
	}
	return c.want(n, tStamp, fn, arg)
}

// clockOf is the time of day of a timestamp or TIME.
func clockOf(t Type, v int64, env *Env) int64 {
	if t.Kind == Timestamp {
		v = toLocal(v, env.zone())
	}
	return v - types.FloorDiv(v, microDay)*microDay
}

func clockPart(outer, unit int64) func(*compiler, *call) *node {
	return func(c *compiler, k *call) *node {
		x := c.clockArg(k.args[0], k.name, 0)
		return strict(tInt, k.pos, []*node{x}, func(env *Env, a []types.Datum) (types.Datum, error) {
			return types.IntDatum(clockOf(x.typ, a[0].I, env) % outer / unit), nil
		})
	}
}

// dateTrunc cuts a timestamp to a unit; an unknown unit gives NULL.
func (c *compiler) dateTrunc(k *call) *node {
	a := c.wantAll(k, tString, tStamp)
	return strictUnit(tStamp, k.pos, a[0], a[1], func(unit string) bool {
		_, ok := truncStamp(0, unit)
		return ok
	}, func(env *Env, unit string, d types.Datum) (types.Datum, error) {
		local, _ := truncStamp(toLocal(d.I, env.zone()), unit)
		if local > d.I && d.I < 0 && local > 0 { // it came in again at the other end
			return types.Null, fault(classJavaMath, "the timestamp is out of range")
		}
		return types.IntDatum(fromLocal(local, env.zone())), nil
	})
}

// truncStamp cuts a wall clock to a unit.
func truncStamp(local int64, unit string) (int64, bool) {
	switch unit {
	case "DAY", "DD":
		return types.FloorDiv(local, microDay) * microDay, true
	case "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND":
		size := unitMicros[unit]
		return types.FloorDiv(local, size) * size, true
	}
	days, ok := truncDate(types.FloorDiv(local, microDay), unit)
	return days * microDay, ok
}

// patternCache parses patterns and keeps the last.
type patternCache struct {
	text   string
	fields []patternField
}

func (p *patternCache) get(pattern []byte, parsing bool) ([]patternField, error) {
	if p.fields != nil && p.text == string(pattern) {
		return p.fields, nil
	}
	fields, err := parsePattern(string(pattern), parsing)
	if err != nil {
		return nil, err
	}
	p.text, p.fields = string(pattern), fields
	return fields, nil
}

func (c *compiler) dateFormat(k *call) *node {
	cache := &patternCache{}
	return strict(tString, k.pos, c.wantAll(k, tStamp, tString), func(env *Env, a []types.Datum) (types.Datum, error) {
		fields, err := cache.get(a[1].B, false)
		if err != nil {
			return types.Null, err
		}
		return textDatum(formatPattern(fields, momentOf(a[0].I, env.zone()))), nil
	})
}

const defaultPattern = "yyyy-MM-dd HH:mm:ss"

func (c *compiler) fromUnixtime(k *call) *node {
	if len(k.args) == 1 {
		k.args = append(k.args, newConst(k.pos, tString, textDatum(defaultPattern)))
	}
	cache := &patternCache{}
	return strict(tString, k.pos, c.wantAll(k, tLong, tString), func(env *Env, a []types.Datum) (types.Datum, error) {
		fields, err := cache.get(a[1].B, false)
		if err != nil {
			return types.Null, err
		}
		v, ok := mulInt64(a[0].I, microSecond)
		if !ok {
			return types.Null, fault(classOverflow, "%d seconds are out of the range of timestamps", a[0].I)
		}
		return textDatum(formatPattern(fields, momentOf(v, env.zone()))), nil
	})
}

// unixTimestamp gives seconds since the epoch of now, a date, or a text with its
// pattern.
func (c *compiler) unixTimestamp(k *call) *node {
	if len(k.args) == 0 {
		return newConst(k.pos, tLong, types.IntDatum(types.FloorDiv(c.env.nowMicros(), microSecond)))
	}
	x := k.args[0]
	switch {
	case x.typ.datetime():
		x = c.castTo(x, tStamp)
	case x.typ.Kind == String || x.typ.Kind == Void:
		if len(k.args) == 1 {
			k.args = append(k.args, newConst(k.pos, tString, textDatum(defaultPattern)))
		}
		x = c.parseNode(k, c.castTo(x, tString), c.want(k.args[1], tString, k.name, 1), tStamp, false)
	default:
		return c.mismatch(x.pos, k.name, 0, "a text, a date or a timestamp", x.typ)
	}
	return strict(tLong, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.IntDatum(a[0].I / microSecond), nil // towards zero, unlike unix_seconds
	})
}

// parseNode reads a text by a pattern into a timestamp or date.
func (c *compiler) parseNode(k *call, text, pattern *node, t Type, try bool) *node {
	cache := &patternCache{}
	return strict(t, k.pos, []*node{text, pattern}, func(env *Env, a []types.Datum) (types.Datum, error) {
		fields, err := cache.get(a[1].B, true)
		if err != nil {
			return types.Null, err
		}
		v, ok := parseByPattern(fields, string(a[0].B), env.zone(), t.Kind == TimestampNTZ)
		switch {
		case !ok && try:
			return types.Null, nil
		case !ok:
			return types.Null, fault(classParseTime, "%q does not read by the pattern %q; the try_ form of the function gives NULL instead", a[0].B, a[1].B)
		case t.Kind == Date:
			return types.IntDatum(types.FloorDiv(toLocal(v, env.zone()), microDay)), nil
		}
		return types.IntDatum(v), nil
	})
}

// timeText casts what is no date or time to a text, as the functions that read
// texts do.
func (c *compiler) timeText(k *call, numbers bool) *node {
	x := k.args[0]
	if x.typ.datetime() || x.typ.Kind == Void || numbers && x.typ.numeric() {
		return x
	}
	return c.want(x, tString, k.name, 0)
}

func (c *compiler) toDate(k *call, try bool) *node {
	x := c.timeText(k, false)
	if len(k.args) == 2 && x.typ.Kind == String {
		return c.parseNode(k, x, c.want(k.args[1], tString, k.name, 1), tDate, try)
	}
	if len(k.args) == 2 && k.args[1].isNull() {
		return newConst(k.pos, tDate, types.Null)
	}
	return c.castNode(k.pos, x, tDate, try)
}

func (c *compiler) toStamp(k *call, t Type, try bool) *node {
	x := c.timeText(k, t.Kind == Timestamp)
	if len(k.args) == 2 && x.typ.Kind == String {
		return c.parseNode(k, x, c.want(k.args[1], tString, k.name, 1), t, try)
	}
	if len(k.args) == 2 && k.args[1].isNull() {
		return newConst(k.pos, t, types.Null)
	}
	return c.castNode(k.pos, x, t, try)
}

// unixPart is a function from TIMESTAMP alone to units since the epoch.
func unixPart(name string, unit int64) function {
	return function{name, 1, 1, func(c *compiler, k *call) *node {
		x := k.args[0]
		if x.typ.Kind == Void {
			x = c.castTo(x, tStamp)
		}
		if x.typ.Kind != Timestamp {
			return c.mismatch(x.pos, name, 0, tStamp.sql(), x.typ)
		}
		return strict(tLong, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.IntDatum(types.FloorDiv(a[0].I, unit)), nil
		})
	}}
}

func fromUnit(name string, unit int64) function {
	return function{name, 1, 1, func(c *compiler, k *call) *node {
		if t := k.args[0].typ; !t.integral() && t.Kind != Void {
			return c.mismatch(k.pos, name, 0, "an integer", t)
		}
		return strict(tStamp, k.pos, c.wantAll(k, tLong), func(_ *Env, a []types.Datum) (types.Datum, error) {
			v, ok := mulInt64(a[0].I, unit)
			if !ok {
				return types.Null, fault(classJavaMath, "%d is out of the range of timestamps", a[0].I)
			}
			return types.IntDatum(v), nil
		})
	}}
}

// stampSeconds takes any number; digits behind microseconds are an error.
func (c *compiler) stampSeconds(k *call) *node {
	x := k.args[0]
	if x.typ.Kind == Void {
		x = c.castTo(x, tDouble)
	}
	if !x.typ.numeric() {
		return c.mismatch(x.pos, k.name, 0, "a number", x.typ)
	}
	t := x.typ
	return strict(tStamp, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if t.floating() {
			if math.IsNaN(a[0].F) || math.IsInf(a[0].F, 0) {
				return types.Null, nil
			}
			return types.IntDatum(saturate(a[0].F * 1e6)), nil
		}
		r := new(big.Rat).Mul(ratOf(t, a[0]), new(big.Rat).SetInt64(microSecond))
		if !r.IsInt() || !r.Num().IsInt64() {
			return types.Null, fault(classJavaMath, "the seconds are out of the range or precision of timestamps")
		}
		return types.IntDatum(r.Num().Int64()), nil
	})
}

func zoneArg(d types.Datum) (*time.Location, error) {
	zone, ok := zoneOf(string(d.B))
	if !ok {
		return nil, fault("INVALID_TIMEZONE", "there is no time zone %q", d.B)
	}
	return zone, nil
}

// convertTimezone moves a wall clock from one zone (the session's by default) to
// another.
func (c *compiler) convertTimezone(k *call) *node {
	if len(k.args) == 2 {
		k.args = append([]*node{newConst(k.pos, tString, textDatum(c.env.zone().String()))}, k.args...)
	}
	return strict(tNTZ, k.pos, c.wantAll(k, tString, tString, tNTZ), func(_ *Env, a []types.Datum) (types.Datum, error) {
		from, err := zoneArg(a[0])
		if err != nil {
			return types.Null, err
		}
		to, err := zoneArg(a[1])
		if err != nil {
			return types.Null, err
		}
		return types.IntDatum(toLocal(fromLocal(a[2].I, from), to)), nil
	})
}

// window is the interval of a fixed length that a timestamp falls into, counted
// from the epoch.
func (c *compiler) window(k *call) *node {
	text, _ := c.constText(k, 1)
	parts, err := splitInterval(text)
	var size int64
	for _, p := range parts {
		v, e := unitValue(p)
		if unitMicros[p.Unit] == 0 || e != nil {
			err = errNumber
		}
		size += v
	}
	if c.err == nil && (err != nil || size <= 0) {
		return c.fail(k.pos, "DATATYPE_MISMATCH.PARAMETER_CONSTRAINT_VIOLATION", "%q is no length of a window", text)
	}
	x := c.clockArg(k.args[0], k.name, 0)
	t := structOf(Field{Name: "start", Type: x.typ}, Field{Name: "end", Type: x.typ})
	return strict(t, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		start := types.FloorDiv(a[0].I, size) * size
		return types.Datum{L: []types.Datum{types.IntDatum(start), types.IntDatum(start + size)}}, nil
	})
}

// timeUnit compiles DATEADD(unit, n, x) and DATEDIFF(unit, from, to).
func (c *compiler) timeUnit(e *sqlparse.TimeUnitCall) *node {
	a, b := c.expr(e.A), c.expr(e.B)
	if e.Func == "TIMESTAMPDIFF" {
		return c.stampUnits(e, a, b)
	}
	n := c.want(a, tLong, "dateadd", 1)
	x := c.clockArg(b, "dateadd", 2)
	local := x.typ.Kind == TimestampNTZ
	return strict(x.typ, e.Pos, []*node{n, x}, func(env *Env, v []types.Datum) (types.Datum, error) {
		zone := env.zone()
		if local {
			zone = time.UTC
		}
		months, days, size := unitSize(e.Unit)
		for _, s := range [...]int64{months, days, size} {
			if p, ok := mulInt64(s, v[0].I); !ok || s != size && (p > 1<<40 || p < -1<<40) {
				return types.Null, fault("DATETIME_OVERFLOW", "the timestamp is out of range")
			}
		}
		moved, ok := addInterval(v[1].I, months*v[0].I, days*v[0].I, size*v[0].I, zone)
		if !ok {
			return types.Null, fault("DATETIME_OVERFLOW", "the timestamp is out of range")
		}
		return types.IntDatum(moved), nil
	})
}

// unitSize is a unit in months, days or microseconds.
func unitSize(unit string) (months, days, micros int64) {
	switch unit {
	case "YEAR":
		return 12, 0, 0
	case "QUARTER":
		return 3, 0, 0
	case "MONTH":
		return 1, 0, 0
	case "WEEK":
		return 0, 7, 0
	case "DAY", "DAYOFYEAR":
		return 0, 1, 0
	}
	return 0, 0, unitMicros[unit]
}

// stampUnits counts the whole units between two wall clocks.
func (c *compiler) stampUnits(e *sqlparse.TimeUnitCall, a, b *node) *node {
	a, b = c.want(a, tStamp, "datediff", 1), c.want(b, tStamp, "datediff", 2)
	return strict(tLong, e.Pos, []*node{a, b}, func(env *Env, v []types.Datum) (types.Datum, error) {
		x, y := toLocal(v[0].I, env.zone()), toLocal(v[1].I, env.zone())
		months, days, size := unitSize(e.Unit)
		if months == 0 {
			return types.IntDatum((y - x) / (size + days*microDay)), nil
		}
		return types.IntDatum(wholeMonths(x, y) / months), nil
	})
}

// wholeMonths counts the months from x to y that are complete, by day and clock.
func wholeMonths(x, y int64) int64 {
	if x > y {
		return -wholeMonths(y, x)
	}
	dx, dy := types.FloorDiv(x, microDay), types.FloorDiv(y, microDay)
	if dy > dx && y-dy*microDay < x-dx*microDay {
		dy-- // a day begun does not count
	}
	y1, m1, d1 := types.CivilFromDays(dx)
	y2, m2, d2 := types.CivilFromDays(dy)
	return ((y2*12+int64(m2))*32 + int64(d2) - (y1*12+int64(m1))*32 - int64(d1)) / 32
}
