package expr

import (
	"math"
	"math/big"
	"time"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// timeArith compiles operators with a date, a time or an interval in them; nil if
// there is none, or if the pair has no meaning.
func (c *compiler) timeArith(pos sqlparse.Pos, op string, l, r *node) *node {
	lk, rk := l.typ.Kind, r.typ.Kind
	timely := func(t Type) bool { return t.datetime() || t.interval() || t.Kind == Calendar }
	if !timely(l.typ) && !timely(r.typ) {
		return nil
	}
	switch op {
	case "+":
		if l.typ.interval() || lk == Calendar || rk == Date && !timely(l.typ) {
			if !r.typ.interval() && rk != Calendar {
				l, r = r, l // the interval or number behind
			}
		}
		return c.addTime(pos, l, r, 1)
	case "-":
		if (l.typ.isStamp() || r.typ.isStamp()) && !r.typ.interval() && rk != Calendar {
			return c.stampDiff(pos, l, r)
		}
		if rk == Date || lk == Date && rk == String {
			return c.dateDiff(pos, l, r)
		}
		return c.addTime(pos, l, r, -1)
	case "*":
		if r.typ.interval() {
			l, r = r, l
		}
		return c.scaleTime(pos, l, r, false)
	case "/":
		if l.typ.interval() && r.typ.interval() {
			return c.mismatch(r.pos, "/", 1, "a number", r.typ)
		}
		return c.scaleTime(pos, l, r, true)
	case "DIV":
		if l.typ.interval() && l.typ.Kind == r.typ.Kind {
			return strict(tLong, pos, []*node{l, r}, func(_ *Env, a []types.Datum) (types.Datum, error) {
				if a[1].I == 0 {
					return types.Null, fault("INTERVAL_DIVIDED_BY_ZERO", "an interval cannot be divided by one of no length")
				}
				v, err := intOp("DIV", tLong)(a[0].I, a[1].I)
				return types.IntDatum(v), err
			})
		}
	}
	return nil
}

// addTime adds an interval or a number of days (with sign) to l.
func (c *compiler) addTime(pos sqlparse.Pos, l, r *node, sign int64) *node {
	switch {
	case l.typ.interval() && r.typ.Kind == Void:
		r = c.castTo(r, l.typ)
	case l.typ.Kind == Void && r.typ.interval():
		l = c.castTo(l, r.typ)
	}
	lt, rt := l.typ, r.typ
	switch {
	case lt.interval() && lt.Kind == rt.Kind:
		t := Type{Kind: lt.Kind, From: min(lt.From, rt.From), To: max(lt.To, rt.To)}
		return strict(t, pos, []*node{l, r}, func(_ *Env, a []types.Datum) (types.Datum, error) { return addIntervals(t, a[0].I, sign, a[1].I) })
	case lt.interval() && rt.interval():
		return c.mismatch(r.pos, "+", 1, lt.sql(), rt)
	case lt.interval() || lt.Kind == Calendar:
		return nil
	case lt.Kind == Date && rt.Kind == DayTime && rt.From == UnitDay && rt.To == UnitDay:
		return strict(tDate, pos, []*node{l, r}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return dateOf(a[0].I + sign*(a[1].I/microDay))
		})
	case lt.Kind == Date && rt.Kind == YearMonth:
		return strict(tDate, pos, []*node{l, r}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return addMonthsChecked(a[0].I, sign*a[1].I)
		})
	case lt.Kind == Date && rt.Kind == DayTime:
		return c.addTime(pos, c.castTo(l, tStamp), r, sign)
	case lt.Kind == Date && rt.Kind == Void:
		if sign < 0 {
			return newConst(pos, Type{Kind: DayTime, From: UnitDay, To: UnitDay}, types.Null)
		}
		return newConst(pos, tStamp, types.Null)
	case lt.Kind == Date && rt.integral() && rt.Kind != BigInt:
		return strict(tDate, pos, []*node{l, r}, func(_ *Env, a []types.Datum) (types.Datum, error) { return dateOf(a[0].I + sign*a[1].I) })
	case lt.Kind == Date && rt.Kind != Calendar && !rt.isStamp():
		return c.mismatch(r.pos, "+", 1, "INT, SMALLINT or TINYINT", rt)
	case lt.isStamp() && (rt.interval() || rt.Kind == Calendar), lt.Kind == Date && rt.Kind == Calendar:
		return c.addToStamp(pos, l, r, sign)
	case (lt.Kind == String || lt.Kind == Void) && rt.Kind == DayTime:
		return c.castTo(c.addToStamp(pos, c.castTo(l, tStamp), r, sign), tString)
	case rt.Kind == DayTime:
		return c.mismatch(l.pos, "+", 0, "a timestamp", lt)
	}
	return nil
}

// addToStamp adds an interval to a timestamp; days and months are the session
// zone's, so that the clock stays where it was.
func (c *compiler) addToStamp(pos sqlparse.Pos, l, r *node, sign int64) *node {
	local := l.typ.Kind != Timestamp
	kind, t := r.typ.Kind, l.typ
	if t.Kind == Date {
		l = c.castTo(l, tStamp)
	}
	n := strict(t, pos, []*node{l, r}, func(env *Env, a []types.Datum) (types.Datum, error) {
		zone := env.zone()
		if local {
			zone = time.UTC
		}
		var v int64
		var ok bool
		switch kind {
		case YearMonth:
			v, ok = addInterval(a[0].I, sign*a[1].I, 0, 0, zone)
		case DayTime:
			v, ok = addInterval(a[0].I, 0, sign*(a[1].I/microDay), sign*(a[1].I%microDay), zone)
		default:
			i := a[1].L
			v, ok = addInterval(a[0].I, sign*i[0].I, sign*i[1].I, sign*i[2].I, zone)
		}
		switch {
		case !ok:
			return types.Null, fault(classJavaMath, "the timestamp is out of range")
		case t.Kind == Date:
			return types.IntDatum(types.FloorDiv(v, microDay)), nil
		}
		return types.IntDatum(v), nil
	})
	return n
}

func addIntervals(t Type, a, sign, b int64) (types.Datum, error) {
	b, ok1 := mulInt64(b, sign)
	v, ok2 := addInt64(a, b)
	if !ok1 || !ok2 || t.Kind == YearMonth && int64(int32(v)) != v {
		return types.Null, fault("INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "the interval is too large")
	}
	return types.IntDatum(v), nil
}

// dateOf is the date of a number of days, which has 32 bits.
func dateOf(days int64) (types.Datum, error) {
	if int64(int32(days)) != days {
		return types.Null, fault(classOverflow, "the date is out of range")
	}
	return types.IntDatum(days), nil
}

// addMonths moves a date by months; the day is cut to the month's last.
func addMonths(date, months int64) int64 {
	y, m, d := types.CivilFromDays(date)
	total := y*12 + int64(m-1) + months
	y, m = types.FloorDiv(total, 12), int(total-12*types.FloorDiv(total, 12))+1
	return types.DaysFromCivil(y, m, min(d, daysIn(y, m)))
}

// addMonthsChecked is addMonths within the range of dates.
func addMonthsChecked(date, months int64) (types.Datum, error) {
	return dateOf(addMonths(date, months))
}

// daysIn returns the number of days of a month.
func daysIn(y int64, m int) int {
	next, ny := m+1, y
	if next > 12 {
		next, ny = 1, y+1
	}
	return int(types.DaysFromCivil(ny, next, 1) - types.DaysFromCivil(y, m, 1))
}

// addInterval moves an instant by months and days of a zone's calendar and by
// microseconds; ok is false if the result is no timestamp.
func addInterval(stamp, months, days, micros int64, zone *time.Location) (v int64, ok bool) {
	if months != 0 || days != 0 {
		local := toLocal(stamp, zone)
		day := types.FloorDiv(local, microDay)
		clock := local - day*microDay
		day, fits := mulInt64(addMonths(day, months)+days, microDay)
		if !fits || day > math.MaxInt64-2*microDay { // the clock and the zone have room
			return 0, false
		}
		stamp = fromLocal(day+clock, zone)
	}
	return addInt64(stamp, micros)
}

// stampDiff compiles the interval between two timestamps.
func (c *compiler) stampDiff(pos sqlparse.Pos, l, r *node) *node {
	t := tStamp
	if l.typ.Kind == TimestampNTZ && r.typ.Kind == TimestampNTZ {
		t = tNTZ
	}
	a, ok1 := c.implicit(l, t)
	b, ok2 := c.implicit(r, t)
	if !ok1 || !ok2 {
		if !ok1 {
			l, b = r, a
		}
		return c.mismatch(l.pos, "-", 0, t.sql(), b.typ)
	}
	return strict(tDayTime, pos, []*node{a, b}, func(env *Env, v []types.Datum) (types.Datum, error) {
		from, to := v[1].I, v[0].I
		if t.Kind == Timestamp {
			from, to = toLocal(from, env.zone()), toLocal(to, env.zone())
		}
		diff := to - from
		if (to^from)&(to^diff) < 0 { // their signs differ, and that of the difference is wrong
			return types.Null, fault(classOverflow, "the interval between the timestamps is too large")
		}
		return types.IntDatum(diff), nil
	})
}

// dateDiff compiles the days between two dates, as an interval.
func (c *compiler) dateDiff(pos sqlparse.Pos, l, r *node) *node {
	a, ok := c.implicit(l, tDate)
	if !ok {
		return c.mismatch(l.pos, "-", 0, tDate.sql(), l.typ)
	}
	r = c.castTo(r, tDate)
	t := Type{Kind: DayTime, From: UnitDay, To: UnitDay}
	return strict(t, pos, []*node{a, r}, func(_ *Env, v []types.Datum) (types.Datum, error) {
		return types.IntDatum((v[0].I - v[1].I) * microDay), nil
	})
}

// scaleTime compiles an interval times or by a number.
func (c *compiler) scaleTime(pos sqlparse.Pos, l, r *node, divide bool) *node {
	if !l.typ.interval() {
		return nil
	}
	if r.typ.Kind == String || r.typ.Kind == Void {
		r = c.castTo(r, tDouble)
	}
	if !r.typ.numeric() {
		return nil
	}
	t, num := l.typ, r.typ
	if t.Kind == YearMonth {
		t = tYearMon
	} else {
		t = tDayTime
	}
	return strict(t, pos, []*node{l, r}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		by := ratOf(num, a[1])
		switch {
		case by == nil:
			return types.Null, fault("INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "an interval cannot be scaled by NaN or infinity")
		case divide && by.Sign() == 0:
			return types.Null, fault("INTERVAL_DIVIDED_BY_ZERO", "an interval cannot be divided by zero; try_divide gives NULL instead")
		case divide:
			by = by.Inv(by)
		}
		return scaleInterval(t, a[0].I, by)
	})
}

// ratOf is a number's exact value, nil for NaN and infinities.
func ratOf(t Type, d types.Datum) *big.Rat {
	switch {
	case t.floating():
		return new(big.Rat).SetFloat64(d.F)
	case t.Kind == Decimal:
		return new(big.Rat).SetFrac(unscaled(t, d), bigPow10(t.Scale))
	}
	return new(big.Rat).SetInt64(d.I)
}
