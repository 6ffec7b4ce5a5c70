package expr

import (
	"applier/storage/types"
)

var secondsType = decimalOf(16, 6)

func makeFunctions() []function {
	ints := func(n int) []Type {
		t := make([]Type, n)
		for i := range t {
			t[i] = tInt
		}
		return t
	}
	return []function{
		scalar("make_date", 3, tDate, ints(3), func(_ *Env, a []types.Datum) (types.Datum, error) {
			d, err := civilDate(a[0].I, a[1].I, a[2].I)
			if err != nil {
				return types.Null, outOfBounds("there is no day %d-%d-%d", a[0].I, a[1].I, a[2].I)
			}
			return d, nil
		}),
		{"make_timestamp make_timestamp_ltz", 6, 7, func(c *compiler, k *call) *node { return c.makeStamp(k, tStamp, false) }},
		{"make_timestamp_ntz", 6, 6, func(c *compiler, k *call) *node { return c.makeStamp(k, tNTZ, false) }},
		{"try_make_timestamp try_make_timestamp_ltz", 6, 7, func(c *compiler, k *call) *node { return c.makeStamp(k, tStamp, true) }},
		{"try_make_timestamp_ntz", 6, 6, func(c *compiler, k *call) *node { return c.makeStamp(k, tNTZ, true) }},
		{"make_interval", 0, 7, (*compiler).makeInterval},
		{"make_dt_interval", 0, 4, (*compiler).makeDayTime},
		{"make_ym_interval", 0, 2, (*compiler).makeYearMonth},
	}
}

func outOfBounds(format string, args ...any) error { return fault(classDateRange, format, args...) }

// makeStamp makes a timestamp of its parts; 60 seconds begin the next minute.
func (c *compiler) makeStamp(k *call, t Type, try bool) *node {
	params := []Type{tInt, tInt, tInt, tInt, tInt, secondsType, tString}
	a := c.wantAll(k, params[:len(k.args)]...)
	return strict(t, k.pos, a, func(env *Env, v []types.Datum) (types.Datum, error) {
		zone := env.zone()
		if len(v) == 7 {
			var err error
			if zone, err = zoneArg(v[6]); err != nil {
				return types.Null, err
			}
		}
		local, ok := civilStamp(v)
		switch {
		case !ok && try:
			return types.Null, nil
		case !ok && v[5].I > 60*microSecond && v[5].I < 61*microSecond:
			return types.Null, fault("INVALID_FRACTION_OF_SECOND", "60 seconds have no fraction")
		case !ok:
			return types.Null, outOfBounds("the parts make no timestamp; try_make_timestamp gives NULL instead")
		case t.Kind == Timestamp:
			local = fromLocal(local, zone)
		}
		return types.IntDatum(local), nil
	})
}

func civilStamp(v []types.Datum) (int64, bool) {
	d, err := civilDate(v[0].I, v[1].I, v[2].I)
	h, m, s := v[3].I, v[4].I, v[5].I
	if err != nil || h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 60*microSecond {
		return 0, false
	}
	return joinDay(d.I, h*microHour+m*microMinute+s)
}

// withZeros casts arguments and fills those left out with 0.
func (c *compiler) withZeros(k *call, params ...Type) []*node {
	for i, t := range params {
		if i < len(k.args) {
			k.args[i] = c.want(k.args[i], t, k.name, i)
		} else {
			k.args = append(k.args, newConst(k.pos, t, types.IntDatum(0)))
		}
	}
	return k.args
}

func (c *compiler) makeInterval(k *call) *node {
	a := c.withZeros(k, tInt, tInt, tInt, tInt, tInt, tInt, decimalOf(18, 6))
	return strict(tCal, k.pos, a, func(_ *Env, v []types.Datum) (types.Datum, error) {
		months, days := v[0].I*12+v[1].I, v[2].I*7+v[3].I
		micros := v[4].I*microHour + v[5].I*microMinute
		micros, ok := addInt64(micros, v[6].I)
		if !ok || int64(int32(months)) != months || int64(int32(days)) != days {
			return types.Null, fault("INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "the interval is too large")
		}
		return calendarDatum(months, days, micros), nil
	})
}

func (c *compiler) makeDayTime(k *call) *node {
	a := c.withZeros(k, tInt, tInt, tInt, decimalOf(18, 6))
	return strict(tDayTime, k.pos, a, func(_ *Env, v []types.Datum) (types.Datum, error) {
		sum, ok1 := mulInt64(v[0].I, microDay)
		sum, ok2 := addInt64(sum, v[1].I*microHour+v[2].I*microMinute)
		sum, ok3 := addInt64(sum, v[3].I)
		if !ok1 || !ok2 || !ok3 {
			return types.Null, fault("INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "the interval is too large")
		}
		return types.IntDatum(sum), nil
	})
}

func (c *compiler) makeYearMonth(k *call) *node {
	a := c.withZeros(k, tInt, tInt)
	return strict(tYearMon, k.pos, a, func(_ *Env, v []types.Datum) (types.Datum, error) {
		sum := v[0].I*12 + v[1].I
		if int64(int32(sum)) != sum {
			return types.Null, fault("INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION", "the interval is too large")
		}
		return types.IntDatum(sum), nil
	})
}
