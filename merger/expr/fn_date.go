package expr

import (
	"strings"
	"time"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// datePart is a function from DATE to INT; texts and timestamps are cast.
func datePart(name string, f func(days int64) int64) function {
	return scalar(name, 1, tInt, []Type{tDate}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.IntDatum(f(a[0].I)), nil
	})
}

func yearOf(days int64) int64 { y, _, _ := types.CivilFromDays(days); return y }

func monthOf(days int64) int64 { _, m, _ := types.CivilFromDays(days); return int64(m) }

func dayOf(days int64) int64 { _, _, d := types.CivilFromDays(days); return int64(d) }

func yearDayOf(days int64) int64 { return days - types.DaysFromCivil(yearOf(days), 1, 1) + 1 }

// isoWeekday counts from Monday, 1.
func isoWeekday(days int64) int64 { return (int64(weekdayOf(days))+6)%7 + 1 }

// isoWeek returns the week by ISO 8601 and the year it belongs to.
func isoWeek(days int64) (year, week int64) {
	thursday := days - isoWeekday(days) + 4
	year = yearOf(thursday)
	return year, (thursday-types.DaysFromCivil(year, 1, 1))/7 + 1
}

func dateFunctions() []function {
	return []function{
		datePart("year", yearOf),
		datePart("month", monthOf),
		datePart("day dayofmonth", dayOf),
		datePart("quarter", func(d int64) int64 { return (monthOf(d)-1)/3 + 1 }),
		datePart("dayofweek", func(d int64) int64 { return int64(weekdayOf(d)) + 1 }),
		datePart("weekday", func(d int64) int64 { return isoWeekday(d) - 1 }),
		datePart("dayofyear", yearDayOf),
		datePart("weekofyear", func(d int64) int64 { _, w := isoWeek(d); return w }),
		datePart("unix_date", nil).with(func(c *compiler, k *call) *node {
			x := k.args[0]
			if x.typ.Kind != Date && x.typ.Kind != Void {
				return c.mismatch(x.pos, k.name, 0, tDate.sql(), x.typ)
			}
			return strict(tInt, k.pos, []*node{c.castTo(x, tDate)}, func(_ *Env, a []types.Datum) (types.Datum, error) { return a[0], nil })
		}),
		scalar("date_from_unix_date", 1, tDate, []Type{tInt}, func(_ *Env, a []types.Datum) (types.Datum, error) { return a[0], nil }),
		scalar("dayname", 1, tString, []Type{tDate}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return textDatum(weekdayOf(a[0].I).String()[:3]), nil
		}),
		scalar("monthname", 1, tString, []Type{tDate}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return textDatum(time.Month(monthOf(a[0].I)).String()[:3]), nil
		}),
		scalar("last_day", 1, tDate, []Type{tDate}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			y, m, _ := types.CivilFromDays(a[0].I)
			return dateOf(types.DaysFromCivil(y, m, daysIn(y, m)))
		}),
		{"date_add dateadd", 2, 2, func(c *compiler, k *call) *node { return c.dateAdd(k, 1) }},
		{"date_sub", 2, 2, func(c *compiler, k *call) *node { return c.dateAdd(k, -1) }},
		scalar("datediff date_diff", 2, tInt, []Type{tDate, tDate}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			days := a[0].I - a[1].I
			if int64(int32(days)) != days {
				return types.Null, fault(classOverflow, "the number of days is out of range")
			}
			return types.IntDatum(days), nil
		}),
		scalar("add_months", 2, tDate, []Type{tDate, tInt}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return addMonthsChecked(a[0].I, a[1].I)
		}),
		scalar("months_between", 2, tDouble, []Type{tStamp, tStamp, tBool}, monthsBetween),
		scalar("next_day", 2, tDate, []Type{tDate, tString}, nextDay),
		{"trunc", 2, 2, (*compiler).dateTruncDay},
		{"date_part datepart extract", 2, 2, func(c *compiler, k *call) *node {
			if k.args[0].isNull() {
				return newConst(k.pos, tDouble, types.Null)
			}
			field, _ := c.constText(k, 0)
			return c.extract(k.pos, field, k.args[1])
		}},
		{"current_date curdate", 0, 0, func(c *compiler, k *call) *node { return bareFunctions["current_date"](c, k.pos) }},
	}
}

// dateAdd moves a date by a whole number of days, no wider than INT.
func (c *compiler) dateAdd(k *call, sign int64) *node {
	x := c.want(k.args[0], tDate, k.name, 0)
	n := k.args[1]
	switch {
	case n.typ.Kind == String && n.foldable, n.typ.Kind == Void:
		n = c.castTo(n, tInt)
	case !n.typ.integral() || n.typ.Kind == BigInt:
		return c.mismatch(n.pos, k.name, 1, "INT, SMALLINT or TINYINT", n.typ)
	}
	return strict(tDate, k.pos, []*node{x, n}, func(_ *Env, a []types.Datum) (types.Datum, error) { return dateOf(a[0].I + sign*a[1].I) })
}

// monthsBetween counts months of 31 days; the same day, or the last day in both,
// is a whole number.
func monthsBetween(env *Env, a []types.Datum) (types.Datum, error) {
	x, y := momentOf(a[0].I, env.zone()), momentOf(a[1].I, env.zone())
	y1, m1, d1 := types.CivilFromDays(x.days)
	y2, m2, d2 := types.CivilFromDays(y.days)
	months := float64((y1-y2)*12 + int64(m1-m2))
	if d1 == d2 || d1 == daysIn(y1, m1) && d2 == daysIn(y2, m2) {
		return types.FloatDatum(months), nil
	}
	sec := int64(d1-d2)*86400 + x.clock/microSecond - y.clock/microSecond
	diff := months + float64(sec)/float64(31*86400)
	if len(a) < 3 || a[2].I != 0 {
		return roundFloat(diff, 8, halfUp, false), nil
	}
	return types.FloatDatum(diff), nil
}

// nextDay returns the first such day of the week behind a date.
func nextDay(_ *Env, a []types.Datum) (types.Datum, error) {
	name := strings.ToUpper(string(a[1].B))
	for d := time.Sunday; d <= time.Saturday; d++ {
		full := strings.ToUpper(d.String())
		if name != full && name != full[:3] && name != full[:2] {
			continue
		}
		ahead := (int64(d) - int64(weekdayOf(a[0].I)) + 6) % 7
		return dateOf(a[0].I + ahead + 1)
	}
	return types.Null, fault("ILLEGAL_DAY_OF_WEEK", "%q is no day of the week", a[1].B)
}

// dateTruncDay compiles trunc(date, unit). The unit comes first: without one that
// dates know the date is not computed.
func (c *compiler) dateTruncDay(k *call) *node {
	a := c.wantAll(k, tDate, tString)
	return strictUnit(tDate, k.pos, a[1], a[0], func(unit string) bool {
		_, ok := truncDate(0, unit)
		return ok
	}, func(_ *Env, unit string, d types.Datum) (types.Datum, error) {
		days, _ := truncDate(d.I, unit)
		return dateOf(days)
	})
}

// strictUnit computes something of a unit and a value; an unknown unit gives NULL
// without looking at the value.
func strictUnit(t Type, pos sqlparse.Pos, unit, x *node, known func(string) bool, f func(*Env, string, types.Datum) (types.Datum, error)) *node {
	n := &node{typ: t, pos: pos, foldable: unit.foldable && x.foldable}
	n.eval = func(fr *frame) (types.Datum, error) {
		u, err := unit.eval(fr)
		name := strings.ToUpper(string(u.B))
		if err != nil || u.Null || !known(name) {
			return types.Null, err
		}
		d, err := x.eval(fr)
		if err != nil || d.Null {
			return types.Null, err
		}
		d, err = f(fr.env, name, d)
		return d, at(pos, err)
	}
	return n
}

// truncDate cuts a date to a year, quarter, month or week.
func truncDate(days int64, unit string) (int64, bool) {
	y, m, _ := types.CivilFromDays(days)
	switch unit {
	case "YEAR", "YYYY", "YY":
		return types.DaysFromCivil(y, 1, 1), true
	case "QUARTER":
		return types.DaysFromCivil(y, (m-1)/3*3+1, 1), true
	case "MONTH", "MM", "MON":
		return types.DaysFromCivil(y, m, 1), true
	case "WEEK":
		return days - isoWeekday(days) + 1, true
	}
	return 0, false
}

// extractFields are the names of fields of dates and times.
var extractFields = func() map[string]string {
	m := map[string]string{}
	for _, names := range [...]string{
		"YEAR Y YEARS YR YRS", "YEAROFWEEK", "QUARTER QTR", "MONTH MON MONS MONTHS", "WEEK W WEEKS", "DAY D DAYS", "DAYOFWEEK DOW",
		"DAYOFWEEK_ISO DOW_ISO", "DOY", "HOUR H HOURS HR HRS", "MINUTE M MIN MINS MINUTES", "SECOND S SEC SECONDS SECS",
	} {
		list := strings.Fields(names)
		for _, n := range list {
			m[n] = list[0]
		}
	}
	return m
}()

// extract compiles EXTRACT(field FROM x).
func (c *compiler) extract(pos sqlparse.Pos, field string, x *node) *node {
	if c.err != nil {
		return x
	}
	name, ok := extractFields[strings.ToUpper(field)]
	if x.typ.interval() || x.typ.Kind == Calendar {
		return c.extractInterval(pos, field, name, x)
	}
	if !ok {
		return c.fail(pos, "INVALID_EXTRACT_FIELD", "there is no field %s of %s", field, x.typ.sql())
	}
	switch name {
	case "YEAROFWEEK", "DAYOFWEEK_ISO":
		f := func(d int64) int64 { y, _ := isoWeek(d); return y }
		if name == "DAYOFWEEK_ISO" {
			f = isoWeekday
		}
		return strict(tInt, pos, []*node{c.want(x, tDate, "extract", 1)}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.IntDatum(f(a[0].I)), nil
		})
	case "SECOND":
		x = c.clockArg(x, "extract", 1)
		return strict(decimalOf(8, 6), pos, []*node{x}, func(env *Env, a []types.Datum) (types.Datum, error) {
			return types.IntDatum(clockOf(x.typ, a[0].I, env) % microMinute), nil
		})
	}
	call := map[string]string{"WEEK": "weekofyear", "DOY": "dayofyear"}[name]
	if call == "" {
		call = strings.ToLower(name)
	}
	return c.apply(pos, call, []*node{x})
}

// extractInterval reads a field of an interval.
func (c *compiler) extractInterval(pos sqlparse.Pos, field, name string, x *node) *node {
	units := [...]int64{12, 1, microDay, microHour, microMinute, microSecond}
	unit := unitOf(name)
	if unit < 0 || x.typ.interval() && (unit < int(x.typ.From) || (unit <= int(UnitMonth)) != (x.typ.Kind == YearMonth)) {
		return c.fail(pos, "INVALID_EXTRACT_FIELD", "there is no field %s of %s", field, x.typ.sql())
	}
	t := tByte
	switch uint8(unit) {
	case UnitSecond:
		t = decimalOf(8, 6)
	case UnitYear, UnitDay:
		t = tInt
	}
	return strict(t, pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		v := a[0].I
		if x.typ.Kind == Calendar {
			v = a[0].L[2].I % (24 * microHour)
			switch {
			case unit <= int(UnitMonth):
				v = a[0].L[0].I
			case uint8(unit) == UnitDay:
				return types.IntDatum(a[0].L[1].I), nil
			case uint8(unit) == UnitHour:
				return types.IntDatum(a[0].L[2].I / microHour), nil
			}
		}
		switch uint8(unit) {
		case UnitYear, UnitDay:
			return types.IntDatum(v / units[unit]), nil
		case UnitSecond:
			return types.IntDatum(v % microMinute), nil
		}
		return types.IntDatum(v % units[unit-1] / units[unit]), nil
	})
}
