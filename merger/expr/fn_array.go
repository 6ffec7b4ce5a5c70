package expr

import (
	"slices"
	"time"

	"applier/storage/types"
)

func arrayFunctions() []function {
	return []function{
		{"array", 0, unbounded, (*compiler).array},
		{"size cardinality", 1, 1, (*compiler).size},
		{"array_size", 1, 1, func(c *compiler, k *call) *node {
			if k.args[0].typ.Kind == Map {
				return c.mismatch(k.pos, k.name, 0, "an array", k.args[0].typ)
			}
			return c.size(k)
		}},
		{"sort_array", 1, 2, (*compiler).sortArray},
		{"array_max", 1, 1, func(c *compiler, k *call) *node { return c.arrayExtreme(k, 1) }},
		{"array_min", 1, 1, func(c *compiler, k *call) *node { return c.arrayExtreme(k, -1) }},
		{"array_join", 2, 3, (*compiler).arrayJoin},
		{"array_repeat", 2, 2, func(c *compiler, k *call) *node {
			if t := k.args[1].typ; !t.integral() && t.Kind != Void {
				return c.mismatch(k.pos, k.name, 1, tInt.sql(), t)
			}
			n := c.want(k.args[1], tInt, k.name, 1)
			return lenient(arrayOf(k.args[0].typ), k.pos, []*node{k.args[0], n}, func(_ *Env, a []types.Datum) (types.Datum, error) {
				switch {
				case a[1].Null:
					return types.Null, nil
				case a[1].I > maxItems/deepSize(a[0]):
					return types.Null, tooMany(k.name)
				}
				return types.Datum{L: slices.Repeat([]types.Datum{a[0]}, int(max(a[1].I, 0)))}, nil
			})
		}},
		{"slice", 3, 3, (*compiler).slice},
		{"flatten", 1, 1, (*compiler).flatten},
		{"shuffle", 1, 1, func(c *compiler, k *call) *node { return c.arrayArg(k, 0) }},
		{"arrays_zip", 0, unbounded, (*compiler).arraysZip},
		{"sequence", 2, 3, (*compiler).sequence},
		{"array_compact", 1, 1, func(c *compiler, k *call) *node {
			x := c.arrayArg(k, 0)
			return strict(x.typ, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
				return types.Datum{L: slices.DeleteFunc(slices.Clone(a[0].L), func(d types.Datum) bool { return d.Null })}, nil
			})
		}},
	}
}

// deepSize counts a value and all in it.
func deepSize(d types.Datum) int64 {
	n := int64(1)
	for _, x := range d.L {
		n += deepSize(x)
	}
	return n
}

// arrayArg returns an argument that must be an array.
func (c *compiler) arrayArg(k *call, i int) *node {
	if k.args[i].typ.Kind != Array {
		return c.mismatch(k.args[i].pos, k.name, i, "an array", k.args[i].typ)
	}
	return k.args[i]
}

func (c *compiler) array(k *call) *node {
	names := typeList(k.args)
	t, ok := c.coerceAll(k.args, wider)
	if !ok {
		return c.fail(k.pos, classDataDiff, "the elements of an array must have one type, not %s", names)
	}
	return listNode(arrayOf(t), k.pos, k.args)
}

func (c *compiler) size(k *call) *node {
	x := k.args[0]
	unit := int64(1)
	switch x.typ.Kind {
	case Void:
		return newConst(k.pos, tInt, types.Null)
	case Map:
		unit = 2
	case Array:
	default:
		return c.mismatch(k.pos, k.name, 0, "an array or a map", x.typ)
	}
	return strict(tInt, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.IntDatum(int64(len(a[0].L)) / unit), nil
	})
}

// sortArray puts NULL first ascending, last descending.
func (c *compiler) sortArray(k *call) *node {
	x := c.arrayArg(k, 0)
	if c.err != nil {
		return x
	}
	if !x.typ.Elem.orderable() {
		return c.fail(k.pos, classOrdering, "elements of %s do not compare", x.typ.sql())
	}
	sign := 1
	if len(k.args) == 2 {
		n := c.want(k.args[1], tBool, k.name, 1).fold(c.env)
		if !n.constant {
			return c.fail(n.pos, classNonFoldable, "the order of %s must be a constant", k.name)
		}
		if n.value.I == 0 {
			sign = -1
		}
	}
	return strict(x.typ, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		l := slices.Clone(a[0].L)
		slices.SortStableFunc(l, func(p, q types.Datum) int { return sign * sortCompare(*x.typ.Elem, p, q) })
		return types.Datum{L: l}, nil
	})
}

// sortCompare is CompareNullable that puts -0.0 before 0.0, as Java's sort does.
func sortCompare(t Type, a, b types.Datum) int {
	c := CompareNullable(t, a, b)
	if c == 0 && t.floating() && !a.Null && a.F == 0 {
		return compareFloats(1/a.F, 1/b.F)
	}
	return c
}

func (c *compiler) arrayExtreme(k *call, sign int) *node {
	x := c.arrayArg(k, 0)
	if c.err != nil {
		return x
	}
	t := *x.typ.Elem
	if !t.orderable() {
		return c.fail(k.pos, classOrdering, "elements of %s do not compare", x.typ.sql())
	}
	return strict(t, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		best := types.Null
		for _, d := range a[0].L {
			if !d.Null && (best.Null || CompareValues(t, d, best)*sign > 0) {
				best = d
			}
		}
		return best, nil
	})
}

// arrayJoin joins texts; NULL is left out, or written as the third argument says.
func (c *compiler) arrayJoin(k *call) *node {
	k.args[0] = c.want(k.args[0], arrayOf(tString), k.name, 0)
	for i := 1; i < len(k.args); i++ {
		k.args[i] = c.want(k.args[i], tString, k.name, i)
	}
	return strict(tString, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		var out []byte
		first := true
		for _, d := range a[0].L {
			if d.Null {
				if len(a) < 3 {
					continue
				}
				d = a[2]
			}
			if !first {
				out = append(out, a[1].B...)
			}
			if out = append(out, d.B...); len(out) > maxText {
				return types.Null, tooLong(k.name)
			}
			first = false
		}
		return types.BytesDatum(append([]byte{}, out...)), nil
	})
}

func (c *compiler) slice(k *call) *node {
	if k.args[0].typ.Kind == Void {
		k.args[0] = c.castTo(k.args[0], arrayOf(tVoid))
	}
	x := c.arrayArg(k, 0)
	a := []*node{x, c.want(k.args[1], tInt, k.name, 1), c.want(k.args[2], tInt, k.name, 2)}
	return strict(x.typ, k.pos, a, func(_ *Env, v []types.Datum) (types.Datum, error) {
		l, from, n := v[0].L, v[1].I, v[2].I
		switch {
		case from == 0:
			return types.Null, fault("INVALID_PARAMETER_VALUE.START", "slice counts from 1, or from the end from -1")
		case n < 0:
			return types.Null, fault("INVALID_PARAMETER_VALUE.LENGTH", "the length of a slice cannot be negative")
		case from > 0:
			from--
		default:
			from += int64(len(l))
		}
		if from < 0 || from >= int64(len(l)) {
			return types.Datum{L: []types.Datum{}}, nil
		}
		return types.Datum{L: slices.Clone(l[from:min(from+n, int64(len(l)))])}, nil
	})
}

// flatten joins the arrays of an array; a NULL among them makes it NULL.
func (c *compiler) flatten(k *call) *node {
	x := c.arrayArg(k, 0)
	if c.err != nil {
		return x
	}
	if x.typ.Elem.Kind != Array {
		return c.mismatch(k.pos, k.name, 0, "an array of arrays", x.typ)
	}
	return strict(*x.typ.Elem, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		r := types.Datum{L: []types.Datum{}}
		for _, d := range a[0].L {
			if d.Null {
				return types.Null, nil
			}
			if r.L = append(r.L, d.L...); len(r.L) > maxItems {
				return types.Null, tooMany(k.name)
			}
		}
		return r, nil
	})
}

// arraysZip makes structs of the elements at one place; shorter arrays give NULL.
func (c *compiler) arraysZip(k *call) *node {
	t := Type{Kind: Struct}
	for i, a := range k.args {
		c.arrayArg(k, i)
		if c.err != nil {
			return a
		}
		name := a.name
		if name == "" {
			name = itoa(i)
		}
		t.Fields = append(t.Fields, Field{Name: name, Type: *a.typ.Elem})
	}
	return strict(arrayOf(t), k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		n := 0
		for _, d := range a {
			n = max(n, len(d.L))
		}
		r := types.Datum{L: make([]types.Datum, n)}
		for i := range r.L {
			row := make([]types.Datum, len(a))
			for j, d := range a {
				row[j] = types.Null
				if i < len(d.L) {
					row[j] = d.L[i]
				}
			}
			r.L[i] = types.Datum{L: row}
		}
		return r, nil
	})
}

// sequence counts from its first argument to its second, both included.
func (c *compiler) sequence(k *call) *node {
	ends := k.args[:2]
	names := typeList(ends)
	step := (*node)(nil)
	if len(k.args) == 3 {
		step = k.args[2]
		if step.typ.integral() {
			ends = k.args
		}
	}
	t, ok := c.coerceAll(ends, wider)
	timely := t.datetime()
	if !ok || !t.integral() && !timely {
		return c.fail(k.pos, "DATATYPE_MISMATCH.SEQUENCE_WRONG_INPUT_TYPES", "sequence counts integers, dates or timestamps, not %s", names)
	}
	if step != nil && timely && !step.typ.interval() && step.typ.Kind != Calendar {
		return c.fail(k.pos, "DATATYPE_MISMATCH.SEQUENCE_WRONG_INPUT_TYPES", "a sequence of %s steps by an interval, not %s", t.sql(), step.typ.sql())
	}
	return strict(arrayOf(t), k.pos, k.args, func(env *Env, a []types.Datum) (types.Datum, error) {
		if !timely {
			return countInts(a)
		}
		return countTimes(t, step, a, env)
	})
}

func badSequence() error {
	return fault("IllegalArgumentException", "the step of a sequence must lead from its start to its end")
}

func countInts(a []types.Datum) (types.Datum, error) {
	from, to, step := a[0].I, a[1].I, int64(1)
	if from > to {
		step = -1
	}
	if len(a) == 3 {
		step = a[2].I
	}
	if step > 0 && from > to || step < 0 && from < to || step == 0 && from != to {
		return types.Null, badSequence()
	}
	n := uint64(0)
	switch {
	case step > 0:
		n = (uint64(to) - uint64(from)) / uint64(step)
	case step < 0:
		n = (uint64(from) - uint64(to)) / -uint64(step)
	}
	if n >= maxItems {
		return types.Null, tooMany("sequence")
	}
	r := types.Datum{L: make([]types.Datum, n+1)}
	for i := range r.L {
		r.L[i] = types.IntDatum(from + int64(i)*step)
	}
	return r, nil
}

// countTimes adds the step n times to the start, so that months keep their day.
func countTimes(t Type, step *node, a []types.Datum, env *Env) (types.Datum, error) {
	var months, days, micros int64
	switch {
	case step == nil:
		if days = 1; a[0].I > a[1].I {
			days = -1
		}
	case step.typ.Kind == YearMonth:
		months = a[2].I
	case step.typ.Kind == DayTime:
		days, micros = a[2].I/microDay, a[2].I%microDay
	default:
		months, days, micros = a[2].L[0].I, a[2].L[1].I, a[2].L[2].I
	}
	if t.Kind == Date && micros != 0 {
		return types.Null, fault("_LEGACY_ERROR_TEMP_3242", "a sequence of dates steps by whole days or months")
	}
	zone, unit := env.zone(), int64(1)
	if t.Kind != Timestamp {
		zone = time.UTC
	}
	if t.Kind == Date {
		unit = microDay
	}
	from, to := a[0].I*unit, a[1].I*unit
	r := types.Datum{L: []types.Datum{}}
	first, ok := addInterval(from, months, days, micros, zone)
	up := first > from
	if !ok {
		return types.Null, fault(classJavaMath, "the sequence leaves the range of timestamps")
	}
	if from != to && (up != (to > from) || months == 0 && days == 0 && micros == 0) {
		return types.Null, badSequence()
	}
	for n := int64(0); ; n++ {
		v, ok := addInterval(from, n*months, n*days, n*micros, zone)
		if !ok || up && v > to || !up && v < to || n > 0 && from == to {
			return r, nil
		}
		if len(r.L) >= maxItems {
			return types.Null, tooMany("sequence")
		}
		r.L = append(r.L, types.IntDatum(types.FloorDiv(v, unit)))
	}
}
