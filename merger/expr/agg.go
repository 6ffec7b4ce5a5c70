package expr

import (
	"math/big"
	"slices"
	"strings"
	"sync"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Aggregate is a compiled call of an aggregate function.
type Aggregate struct {
	pos      sqlparse.Pos
	args     []*node
	filter   *node
	distinct bool
	typ      Type
	// skipNull tells that rows with a NULL argument do not count.
	skipNull bool
	fresh    func() state
	f        frame
}

// state is what an aggregate keeps of the rows it has seen.
type state interface {
	// add takes the arguments of a row.
	add(a []types.Datum) error
	result() (types.Datum, error)
}

// aggregate compiles a function once its arguments are.
type aggregate func(c *compiler, a *Aggregate, name string)

var (
	aggregatesOnce  sync.Once
	aggregatesTable map[string]aggregate
)

// aggregates returns the table of aggregate functions.
func aggregates() map[string]aggregate {
	aggregatesOnce.Do(func() { aggregatesTable = makeAggregates() })
	return aggregatesTable
}

func makeAggregates() map[string]aggregate {
	extreme := func(sign int) aggregate {
		return func(c *compiler, a *Aggregate, name string) { c.aggExtreme(a, sign) }
	}
	by := func(sign int) aggregate {
		return func(c *compiler, a *Aggregate, name string) { c.aggBy(a, sign) }
	}
	collect := func(set bool) aggregate {
		return func(c *compiler, a *Aggregate, name string) { aggCollect(a, set) }
	}
	logic := func(end bool) aggregate {
		return func(c *compiler, a *Aggregate, name string) { c.aggLogic(a, name, end) }
	}
	first := func(c *compiler, a *Aggregate, name string) { aggFirst(a, false) }
	last := func(c *compiler, a *Aggregate, name string) { aggFirst(a, true) }
	avg := func(c *compiler, a *Aggregate, name string) { c.aggAvg(a, name) }
	return map[string]aggregate{
		"count": (*compiler).aggCount, "count_if": (*compiler).aggCountIf, "sum": (*compiler).aggSum, "avg": avg, "mean": avg,
		"min": extreme(-1), "max": extreme(1), "min_by": by(-1), "max_by": by(1), "any_value": first, "first": first,
		"first_value": first, "last": last, "last_value": last, "collect_list": collect(false), "array_agg": collect(false),
		"collect_set": collect(true), "bool_and": logic(false), "every": logic(false), "bool_or": logic(true), "any": logic(true),
		"some": logic(true),
	}
}

// aggArgs are the numbers of arguments of the functions that do not take one.
var aggArgs = map[string]int{"count": unbounded, "min_by": 2, "max_by": 2}

// IsAggregate reports whether a name is an aggregate function's.
func IsAggregate(name string) bool { return aggregates()[strings.ToLower(name)] != nil }

// AggregateNames returns the names of the aggregate functions in order.
func AggregateNames() []string {
	names := []string{}
	for n := range aggregates() {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// CompileAggregate compiles a call of an aggregate function: its arguments see the
// rows to be aggregated.
func CompileAggregate(e *sqlparse.Call, scope *Scope) (*Aggregate, error) {
	c := newCompiler(scope)
	name := strings.ToLower(e.Func.Last())
	a := &Aggregate{pos: e.Pos, distinct: e.Distinct, skipNull: true}
	build := aggregates()[name]
	if build == nil {
		c.unknownFunction(e, name)
		return nil, c.err
	}
	for _, x := range e.Args {
		if s, ok := x.(*sqlparse.Star); ok && name == "count" && len(e.Args) == 1 && len(s.Qualifier.Parts) == 0 {
			a.args = append(a.args, newConst(s.Pos, tInt, types.IntDatum(1)))
			continue
		}
		a.args = append(a.args, c.expr(x))
	}
	want := max(aggArgs[name], 1)
	if n := len(a.args); n == 0 || n > want || want < unbounded && n != want {
		c.fail(e.Pos, classArgs, "%s takes %s, not %d", name, countText(1, want), n)
	}
	if e.Filter != nil {
		a.filter = c.want(c.expr(e.Filter), tBool, "FILTER", 0)
	}
	if c.err == nil {
		build(c, a, name)
	}
	if err := c.failed(); err != nil {
		return nil, err
	}
	a.f = c.finish(nil).f
	return a, nil
}

// Type returns the type of the aggregate's result.
func (a *Aggregate) Type() Type { return a.typ }

// Accumulator gathers rows for one group.
type Accumulator struct {
	a     *Aggregate
	state state
	seen  map[string]bool
	buf   []types.Datum
	key   []byte
}

// New returns an empty accumulator. Accumulators of one Aggregate share its scratch
// memory: one goroutine uses them.
func (a *Aggregate) New() *Accumulator {
	acc := &Accumulator{a: a, state: a.fresh(), buf: make([]types.Datum, len(a.args))}
	if a.distinct {
		acc.seen = map[string]bool{}
	}
	return acc
}

// Add takes a row; outer are the rows of the queries around, the nearest first.
func (acc *Accumulator) Add(row Row, outer []Row) error {
	a := acc.a
	f := &a.f
	f.made = 0
	f.setRows(row, outer)
	if a.filter != nil {
		if d, err := a.filter.eval(f); err != nil || d.Null || d.I == 0 {
			return err
		}
	}
	for i, n := range a.args {
		d, err := n.eval(f)
		if err != nil {
			return err
		}
		if d.Null && a.skipNull {
			return nil
		}
		acc.buf[i] = d
	}
	if acc.seen != nil {
		acc.key = acc.key[:0]
		for i, n := range a.args {
			acc.key = GroupKey(acc.key, n.typ, acc.buf[i])
		}
		if acc.seen[string(acc.key)] {
			return nil
		}
		acc.seen[string(acc.key)] = true
	}
	return at(a.pos, acc.state.add(acc.buf))
}

// Result returns the aggregate of the rows taken so far.
func (acc *Accumulator) Result() (types.Datum, error) {
	d, err := acc.state.result()
	return d, at(acc.a.pos, err)
}

// setRows puts the rows of the query and those around it in place.
func (f *frame) setRows(row Row, outer []Row) {
	f.row = row
	for _, r := range outer {
		if f.outer == nil {
			f.outer = &frame{env: f.env}
		}
		f = f.outer
		f.row = r
	}
}

type countState struct{ n int64 }

func (s *countState) add([]types.Datum) error { s.n++; return nil }

func (s *countState) result() (types.Datum, error) { return types.IntDatum(s.n), nil }

func (c *compiler) aggCount(a *Aggregate, _ string) {
	a.typ, a.fresh = tLong, func() state { return &countState{} }
}

func (c *compiler) aggCountIf(a *Aggregate, name string) {
	x := c.want(a.args[0], tBool, name, 0)
	null := newConst(a.pos, tBool, types.Null)
	a.args[0] = caseNode(a.pos, []*node{x}, []*node{x, null}, tBool)
	c.aggCount(a, name)
}

// sumState adds numbers of one type with its range checked.
type sumState struct {
	t     Type
	null  bool
	i     int64
	f     float64
	d     *big.Int
	count int64
	// over tells that the sum has left its type on the way, which no later value mends.
	over bool
}

func (s *sumState) add(a []types.Datum) error {
	s.null = false
	s.count++
	switch {
	case s.t.Kind == Double:
		s.f += a[0].F
	case s.t.Kind == Decimal:
		s.d.Add(s.d, unscaled(s.t, a[0]))
		s.over = s.over || digits(s.d) > s.t.Precision
	default:
		v, ok := addInt64(s.i, a[0].I)
		if !ok {
			return fault(classOverflow, "the sum does not fit %s", s.t.sql())
		}
		s.i = v
	}
	return nil
}

func (s *sumState) result() (types.Datum, error) {
	switch {
	case s.null:
		return types.Null, nil
	case s.t.Kind == Double:
		return types.FloatDatum(s.f), nil
	case s.t.Kind == Decimal:
		if s.over {
			return types.Null, fault(classOverflow, "the sum does not fit %s", s.t.sql())
		}
		return decimalDatum(s.t, s.d), nil
	}
	return types.IntDatum(s.i), nil
}

// sumType is the type that values are added in.
func sumType(t Type) Type {
	switch {
	case t.integral():
		return tLong
	case t.Kind == Decimal:
		return decimalOf(min(t.Precision+10, types.MaxPrecision), t.Scale)
	case t.interval():
		return Type{Kind: t.Kind, From: t.From, To: t.To}
	}
	return tDouble
}

// summed casts the argument of sum and avg to the type of the sum.
func (c *compiler) summed(a *Aggregate, name string) Type {
	x := a.args[0]
	if !x.typ.numeric() && !x.typ.interval() && x.typ.Kind != String && x.typ.Kind != Void {
		c.mismatch(x.pos, name, 0, "a number or an interval", x.typ)
		return tDouble
	}
	if x.typ.Kind == String || x.typ.Kind == Void {
		x = c.castTo(x, tDouble)
	}
	t := sumType(x.typ)
	a.args[0] = c.castTo(x, t)
	return t
}

func newSum(t Type) *sumState { return &sumState{t: t, null: true, d: new(big.Int)} }

func (c *compiler) aggSum(a *Aggregate, name string) {
	a.typ = c.summed(a, name)
	a.fresh = func() state { return newSum(a.typ) }
}

// avgState divides a sum by the number of its values.
type avgState struct {
	*sumState
	typ Type
}

func (s avgState) result() (types.Datum, error) {
	sum, err := s.sumState.result()
	if err != nil || sum.Null {
		return types.Null, err
	}
	switch {
	case s.t.Kind == Double:
		return types.FloatDatum(sum.F / float64(s.count)), nil
	case s.t.Kind == Decimal:
		return decimalOp("/", unscaled(s.t, sum), s.t, big.NewInt(s.count), decimalOf(20, 0), s.typ)
	}
	return scaleInterval(s.typ, sum.I, big.NewRat(1, s.count))
}

func (c *compiler) aggAvg(a *Aggregate, name string) {
	x := a.args[0].typ
	t := c.summed(a, name)
	if x.integral() {
		t = tDouble
		a.args[0] = c.castTo(a.args[0], tDouble)
	}
	a.typ = t
	switch {
	case x.Kind == Decimal:
		a.typ = boundedPlain(x.Precision+4, x.Scale+4)
	case t.Kind == YearMonth:
		a.typ = tYearMon
	case t.Kind == DayTime:
		a.typ = tDayTime
	}
	a.fresh = func() state { return avgState{newSum(t), a.typ} }
}

// boundedPlain cuts precision and scale to 38 each.
func boundedPlain(p, s int) Type {
	return decimalOf(min(p, types.MaxPrecision), min(s, types.MaxPrecision))
}

// bestState keeps the value with the least or greatest key.
type bestState struct {
	t         Type
	sign      int
	key, best types.Datum
	any       bool
}

func (s *bestState) add(a []types.Datum) error {
	key := a[len(a)-1]
	if key.Null {
		return nil
	}
	if !s.any || CompareValues(s.t, key, s.key)*s.sign > 0 {
		s.key, s.best, s.any = key, a[0], true
	}
	return nil
}

func (s *bestState) result() (types.Datum, error) {
	if !s.any {
		return types.Null, nil
	}
	return s.best, nil
}

// orderedBy sets an aggregate up to keep a first argument by the order of its last.
func (c *compiler) orderedBy(a *Aggregate, sign int) {
	t := a.args[len(a.args)-1].typ
	if !t.orderable() {
		c.fail(a.pos, classOrdering, "values of %s do not compare", t.sql())
	}
	a.typ = a.args[0].typ
	a.fresh = func() state { return &bestState{t: t, sign: sign} }
}

func (c *compiler) aggExtreme(a *Aggregate, sign int) { c.orderedBy(a, sign) }

func (c *compiler) aggBy(a *Aggregate, sign int) {
	c.orderedBy(a, sign)
	a.skipNull = false
}

// firstState keeps the first or the last value, NULL among them.
type firstState struct {
	last, any bool
	d         types.Datum
}

func (s *firstState) add(a []types.Datum) error {
	if s.last || !s.any {
		s.d, s.any = a[0], true
	}
	return nil
}

func (s *firstState) result() (types.Datum, error) {
	if !s.any {
		return types.Null, nil
	}
	return s.d, nil
}

func aggFirst(a *Aggregate, last bool) {
	a.typ, a.skipNull = a.args[0].typ, false
	a.fresh = func() state { return &firstState{last: last} }
}

// listState collects values, in the order of the rows.
type listState struct {
	t    Type
	l    []types.Datum
	seen map[string]bool
}

func (s *listState) add(a []types.Datum) error {
	if s.seen != nil {
		key := string(GroupKey(nil, s.t, a[0]))
		if s.seen[key] {
			return nil
		}
		s.seen[key] = true
	}
	if len(s.l) >= maxItems {
		return tooMany("collect_list")
	}
	s.l = append(s.l, a[0])
	return nil
}

func (s *listState) result() (types.Datum, error) {
	return types.Datum{L: append([]types.Datum{}, s.l...)}, nil
}

func aggCollect(a *Aggregate, set bool) {
	t := a.args[0].typ
	a.typ = arrayOf(t)
	a.fresh = func() state {
		s := &listState{t: t}
		if set {
			s.seen = map[string]bool{}
		}
		return s
	}
}

// logicState is bool_and (end false) and bool_or (end true).
type logicState struct{ end, hit, any bool }

func (s *logicState) add(a []types.Datum) error {
	s.any = true
	s.hit = s.hit || (a[0].I != 0) == s.end
	return nil
}

func (s *logicState) result() (types.Datum, error) {
	return types.Datum{I: types.BoolDatum(s.hit == s.end).I, Null: !s.any}, nil
}

func (c *compiler) aggLogic(a *Aggregate, name string, end bool) {
	a.args[0] = c.want(a.args[0], tBool, name, 0)
	a.typ = tBool
	a.fresh = func() state { return &logicState{end: end} }
}
