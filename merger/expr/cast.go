package expr

import (
	"fmt"
	"math/big"
	"strings"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// castFn converts a value that is not NULL; errors have no place yet.
type castFn func(types.Datum) (types.Datum, error)

// cast compiles CAST and TRY_CAST.
func (c *compiler) cast(e *sqlparse.Cast) *node {
	t, err := TypeOf(e.Type)
	if err != nil {
		return c.failWith(err)
	}
	return c.castNode(e.Pos, c.expr(e.X), t, e.Try)
}

// castNode casts if the types allow it.
func (c *compiler) castNode(pos sqlparse.Pos, x *node, t Type, try bool) *node {
	if class := castClass(x.typ, t, try); class != "" {
		return c.fail(pos, "DATATYPE_MISMATCH."+class, "%s cannot be cast to %s", x.typ.sql(), t.sql())
	}
	placed := *x
	placed.pos = pos
	if x.constant && x.typ.Kind == String && !x.value.Null && t.datetime() {
		if d, ok := c.specialDay(string(x.value.B), t); ok {
			return newConst(pos, t, d)
		}
	}
	return c.convert(&placed, t.plain(), try)
}

// specialDay reads a constant text that is a word for a day: today, now, epoch, ….
func (c *compiler) specialDay(text string, t Type) (types.Datum, bool) {
	if _, ok := specialDay(text); !ok {
		return types.Null, false
	}
	if t.Kind == Date {
		d, err := dateLiteral(text, c.env)
		return d, err == nil
	}
	d, err := stampLiteral(text, c.env)
	if t.Kind == TimestampNTZ {
		d.I = toLocal(d.I, c.env.zone())
	}
	return d, err == nil
}

// convert casts a node without asking whether the types allow it.
func (c *compiler) convert(x *node, t Type, try bool) *node {
	n := &node{typ: t, pos: x.pos, foldable: x.foldable}
	if x.typ.Equal(t) {
		n.eval = x.eval
		return n
	}
	if x.typ.Kind == Void {
		if x.constant {
			return newConst(x.pos, t, types.Null)
		}
		n.eval = x.eval // it may fail
		return n
	}
	fn := caster(x.typ, t, try, c.env)
	eval, pos := x.eval, x.pos
	n.eval = func(f *frame) (types.Datum, error) {
		d, err := eval(f)
		if err != nil || d.Null {
			return types.Null, err
		}
		if d, err = fn(d); err != nil {
			if try {
				return types.Null, nil
			}
			return types.Null, at(pos, err)
		}
		return d, nil
	}
	return n
}

// The error classes of pairs that do not cast, as Spark tells them apart: with a
// function that does the same, or with the ANSI switch off.
const (
	castNever = "CAST_WITHOUT_SUGGESTION"
	castConf  = "CAST_WITH_CONF_SUGGESTION"
	castFunc  = "CAST_WITH_FUNC_SUGGESTION"
)

// castClass says why a cast is refused at analysis, "" if it is not.
func castClass(from, to Type, try bool) string {
	conf := castConf
	if try {
		conf = castNever
	}
	if from.Equal(to) || from.Kind == Void {
		return ""
	}
	switch to.Kind {
	case String:
		return ""
	case Boolean:
		return classUnless(from.Kind == String || from.numeric(), orClass(from.Kind == Timestamp || from.Kind == Date, conf))
	case TinyInt, SmallInt, Int, BigInt, Decimal:
		if from.interval() {
			return ""
		}
		return castToNumber(from)
	case Float, Double:
		return castToNumber(from)
	case Date:
		return classUnless(from.Kind == String || from.datetime(), orClass(from.numeric(), castFunc))
	case Timestamp:
		return classUnless(from.Kind == String || from.datetime() || from.numeric(), orClass(from.Kind == Boolean, conf))
	case TimestampNTZ:
		return classUnless(from.Kind == String || from.datetime(), castNever)
	case Binary:
		return classUnless(from.Kind == String || from.Kind == Binary, orClass(from.integral(), conf))
	case Time:
		return classUnless(from.Kind == String || from.Kind == Time || from.isStamp(), castNever)
	case YearMonth, DayTime:
		same := from.Kind == to.Kind || from.Kind == String
		return classUnless(same || to.From == to.To && (from.integral() || from.Kind == Decimal), castNever)
	case Calendar:
		return classUnless(from.Kind == String, castNever)
	}
	return nestedClass(from, to, try)
}

func castToNumber(from Type) string {
	ok := from.Kind == String || from.Kind == Boolean || from.numeric() || from.Kind == Timestamp
	return classUnless(ok, orClass(from.Kind == Date, castFunc))
}

// classUnless returns "" if ok holds.
func classUnless(ok bool, class string) string {
	if ok {
		return ""
	}
	return class
}

// orClass returns class if it applies, else castNever.
func orClass(applies bool, class string) string {
	if applies {
		return class
	}
	return castNever
}

func nestedClass(from, to Type, try bool) string {
	if from.Kind != to.Kind {
		return castNever
	}
	inner := func(a, b Type) bool { return castClass(a, b, try) == "" }
	ok := false
	switch to.Kind {
	case Array:
		ok = inner(*from.Elem, *to.Elem)
	case Map:
		ok = inner(*from.Key, *to.Key) && inner(*from.Elem, *to.Elem) && !(try && mayNull(*from.Key, *to.Key))
	case Struct:
		ok = len(from.Fields) == len(to.Fields)
		for i := 0; ok && i < len(to.Fields); i++ {
			ok = inner(from.Fields[i].Type, to.Fields[i].Type)
		}
	}
	return classUnless(ok, castNever)
}

// caster returns the conversion between two types that castClass allows.
func caster(from, to Type, try bool, env *Env) castFn {
	if from.Equal(to) {
		return func(d types.Datum) (types.Datum, error) { return d, nil }
	}
	switch to.Kind {
	case String:
		if from.Kind == String || from.Kind == Binary {
			return func(d types.Datum) (types.Datum, error) { return types.BytesDatum(d.B), nil }
		}
		return func(d types.Datum) (types.Datum, error) {
			b := appendCast(nil, from, d, env.zone())
			if len(b) > maxText {
				return types.Null, tooLong("the cast")
			}
			return types.BytesDatum(b), nil
		}
	case Boolean:
		return toBool(from)
	case TinyInt, SmallInt, Int, BigInt:
		return toInteger(from, to)
	case Float, Double:
		return toFloat(from, to)
	case Decimal:
		return toDecimal(from, to)
	case Date, Timestamp, TimestampNTZ, Time:
		return toTime(from, to, env)
	case YearMonth, DayTime:
		return toInterval(from, to)
	case Array, Map, Struct:
		return toNested(from, to, try, env)
	case Calendar:
		return toCalendar
	}
	return func(d types.Datum) (types.Datum, error) { return d, nil }
}

// toNested casts what is inside; TRY_CAST makes NULL of what does not cast there.
func toNested(from, to Type, try bool, env *Env) castFn {
	n := 1
	switch to.Kind {
	case Map:
		n = 2
	case Struct:
		n = len(to.Fields)
	}
	items := make([]castFn, n)
	for i := range items {
		items[i] = itemCaster(from.item(i), to.item(i), try && !(to.Kind == Map && i == 0), env)
	}
	return func(d types.Datum) (types.Datum, error) {
		r := types.Datum{L: make([]types.Datum, len(d.L))}
		for i, x := range d.L {
			v, err := items[i%n](x)
			if err != nil {
				return types.Null, err
			}
			r.L[i] = v
		}
		return r, nil
	}
}

// itemCaster is a caster that takes NULL.
func itemCaster(from, to Type, try bool, env *Env) castFn {
	if from.Kind == Void {
		return func(types.Datum) (types.Datum, error) { return types.Null, nil }
	}
	fn := caster(from, to, try, env)
	return func(d types.Datum) (types.Datum, error) {
		if d.Null {
			return d, nil
		}
		r, err := fn(d)
		if err != nil && try {
			return types.Null, nil
		}
		return r, err
	}
}

// badInput is the error of a text that does not read as a type.
func badInput(d types.Datum, to Type) error {
	text := d.B
	if len(text) > 60 {
		text = append(text[:60:60], "…"...)
	}
	return fault(classCastInput, "%q does not read as %s; try_cast gives NULL instead", text, to.sql())
}

// castOverflow is the error of a number that a type does not hold.
func castOverflow(value any, to Type) error {
	return fault(classCastOverflow, "%v does not fit %s; try_cast gives NULL instead", value, to.sql())
}

func toBool(from Type) castFn {
	switch from.Kind {
	case String:
		return func(d types.Datum) (types.Datum, error) {
			v, ok := parseBool(d.B)
			if !ok {
				return types.Null, badInput(d, tBool)
			}
			return types.BoolDatum(v), nil
		}
	case Float, Double:
		return func(d types.Datum) (types.Datum, error) { return types.BoolDatum(d.F != 0), nil }
	case Decimal:
		return func(d types.Datum) (types.Datum, error) {
			return types.BoolDatum(d.I != 0 || d.D != types.Int128{}), nil
		}
	}
	return func(d types.Datum) (types.Datum, error) { return types.BoolDatum(d.I != 0), nil }
}

// toInterval casts to an interval; a number counts the type's one unit.
func toInterval(from, to Type) castFn {
	units := [...]int64{12, 1, microDay, microHour, microMinute, microSecond}
	return func(d types.Datum) (types.Datum, error) {
		switch {
		case from.Kind == String:
			v, err := parseIntervalText(string(d.B), to)
			if err != nil {
				return types.Null, fault("INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING", "%v", err)
			}
			return types.IntDatum(v), nil
		case from.Kind == Decimal:
			return scaleInterval(to, units[to.To], new(big.Rat).SetFrac(unscaled(from, d), bigPow10(from.Scale)))
		case from.integral():
			v, ok := mulInt64(d.I, units[to.To])
			if !ok || to.Kind == YearMonth && int64(int32(v)) != v {
				return types.Null, castOverflow(d.I, to)
			}
			return types.IntDatum(v), nil
		}
		unit := units[to.To] // between intervals: the smaller units are cut
		return types.IntDatum(d.I / unit * unit), nil
	}
}

// parseIntervalText reads an interval in the form of its type, or as a literal:
// INTERVAL '1-2' YEAR TO MONTH.
func parseIntervalText(text string, t Type) (int64, error) {
	s := strings.TrimSpace(text)
	if len(s) > 8 && strings.EqualFold(s[:8], "interval") {
		first, last := strings.IndexByte(s, '\''), strings.LastIndexByte(s, '\'')
		if first < 0 || first == last {
			return 0, fmt.Errorf("%q is no %s", text, strings.ToUpper(t.String()))
		}
		neg := strings.HasSuffix(strings.TrimSpace(s[8:first]), "-")
		if s = s[first+1 : last]; neg {
			s = "-" + s
		}
	}
	return parseInterval(s, t)
}

// toCalendar reads '1 month 2 days'.
func toCalendar(d types.Datum) (types.Datum, error) {
	parts, err := splitInterval(string(d.B))
	var months, days, micros int64
	for _, p := range parts {
		v, e := unitValue(p)
		if e != nil {
			err = e
		}
		switch p.Unit {
		case "YEAR", "MONTH":
			months += v
		case "WEEK", "DAY":
			days += v / microDay
		default:
			micros += v
		}
	}
	if err != nil {
		return types.Null, fault(classCastInput, "%v", err)
	}
	return calendarDatum(months, days, micros), nil
}
