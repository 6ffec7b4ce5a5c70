package expr

import (
	"fmt"
	"slices"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Expr is a compiled expression. It holds scratch memory: one goroutine uses it
// at a time.
type Expr struct {
	node *node
	f    frame
	// slots are those that the expression reads of its row, in order.
	slots []int
}

// Compile resolves an expression in a scope, checks its types and returns its
// evaluator. The error is an *Error: with Analysis set, or that of a part that needs
// no row and cannot be computed.
func Compile(e sqlparse.Expr, scope *Scope) (*Expr, error) {
	c := newCompiler(scope)
	n := c.expr(e)
	if err := c.failed(); err != nil {
		return nil, err
	}
	return c.finish(n), nil
}

// CompileBool compiles a condition, which must be BOOLEAN.
func CompileBool(e sqlparse.Expr, scope *Scope) (*Expr, error) {
	x, err := Compile(e, scope)
	if err != nil {
		return nil, err
	}
	return x, boolean(x, e, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN", "a condition")
}

// CompileJoin compiles the condition of a join or of MERGE, which must be BOOLEAN.
func CompileJoin(e sqlparse.Expr, scope *Scope) (*Expr, error) {
	x, err := Compile(e, scope)
	if err != nil {
		return nil, err
	}
	return x, boolean(x, e, "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "the condition of a join")
}

func boolean(x *Expr, e sqlparse.Expr, class, what string) error {
	if x.node.typ.Kind == Boolean {
		return nil
	}
	return &Error{Pos: e.Position(), Class: class, Analysis: true, Message: what + " must be BOOLEAN, not " + x.node.typ.sql()}
}

// Type returns the type of the expression's values.
func (x *Expr) Type() Type { return x.node.typ }

// Char returns n if the expression is a CHAR(n) column and nothing else, 0 otherwise.
func (x *Expr) Char() int { return x.node.char }

// Pos returns where the expression begins.
func (x *Expr) Pos() sqlparse.Pos { return x.node.pos }

// Slots returns the slots of the row that the expression reads, in order: what a
// scan must bring. The slice must not be changed.
func (x *Expr) Slots() []int { return x.slots }

// Name returns the name that the expression gives to a column or field made of
// it, "" if it has none.
func (x *Expr) Name() string { return x.node.name }

// Constant returns the value if it is known without a row.
func (x *Expr) Constant() (types.Datum, bool) { return x.node.value, x.node.constant }

// Foldable reports whether the value needs no row, known or not.
func (x *Expr) Foldable() bool { return x.node.foldable }

// Eval computes the value for a row. Bytes and lists of the result may alias the
// row's. The error is an *Error.
func (x *Expr) Eval(row Row) (types.Datum, error) {
	x.f.row, x.f.made = row, 0
	return x.node.eval(&x.f)
}

// EvalOuter is Eval for an expression of a sub-query: outer are the rows of the
// queries around it, the nearest first.
func (x *Expr) EvalOuter(row Row, outer []Row) (types.Datum, error) {
	x.f.made = 0
	x.f.setRows(row, outer)
	return x.node.eval(&x.f)
}

// Test evaluates a condition: only TRUE is true, NULL is not.
func (x *Expr) Test(row Row) (bool, error) {
	d, err := x.Eval(row)
	return !d.Null && d.I != 0, err
}

// compiler turns a syntax tree into nodes. The first error sticks; after it
// everything is NULL.
type compiler struct {
	scope  *Scope
	env    *Env
	err    error
	faults []error // of constant parts: see settle
	lambda []variable
	vars   int
	slots  []int
}

// newCompiler returns a compiler that notes which slots of a scope are read.
func newCompiler(scope *Scope) *compiler {
	c := &compiler{scope: &Scope{}}
	if scope != nil {
		*c.scope = *scope
	}
	c.env = c.scope.Env
	told := c.scope.Used
	c.scope.Used = func(slot int) {
		if i, ok := slices.BinarySearch(c.slots, slot); !ok {
			c.slots = slices.Insert(c.slots, i, slot)
		}
		if told != nil {
			told(slot)
		}
	}
	return c
}

func (c *compiler) finish(n *node) *Expr {
	return &Expr{node: n, f: frame{env: c.env, vars: make([]types.Datum, c.vars)}, slots: c.slots}
}

// fail keeps the first error and returns a node that stands for anything.
func (c *compiler) fail(pos sqlparse.Pos, class, format string, args ...any) *node {
	return c.failWith(&Error{Pos: pos, Class: class, Message: fmt.Sprintf(format, args...), Analysis: true})
}

func (c *compiler) failWith(err error) *node {
	if c.err == nil {
		c.err = err
	}
	return newConst(sqlparse.Pos{}, tVoid, types.Null)
}

// failed returns why the expression cannot be compiled, nil if it can.
func (c *compiler) failed() error {
	if c.err == nil && len(c.faults) > 0 && !c.scope.Lazy {
		return c.faults[0]
	}
	return c.err
}

// expr compiles any expression.
func (c *compiler) expr(e sqlparse.Expr) *node {
	before := len(c.faults)
	return c.settle(c.anyExpr(e), e, before)
}

func (c *compiler) anyExpr(e sqlparse.Expr) *node {
	if c.err != nil {
		return c.failWith(c.err)
	}
	if c.scope.Rewrite != nil {
		col, ok, err := c.scope.Rewrite(e)
		if err != nil {
			return c.failWith(err)
		}
		if ok {
			c.scope.Used(col.Slot)
			return columnNode(col, e.Position(), 0)
		}
	}
	switch e := e.(type) {
	case *sqlparse.NullLit:
		n := newConst(e.Pos, tVoid, types.Null)
		n.literal = true
		return n
	case *sqlparse.BoolLit:
		return c.lit(e.Pos, tBool, types.BoolDatum(e.Value))
	case *sqlparse.NumberLit:
		return c.number(e)
	case *sqlparse.StringLit:
		return c.lit(e.Pos, tString, types.StringDatum(e.Value))
	case *sqlparse.BytesLit:
		return c.lit(e.Pos, tBinary, types.BytesDatum(e.Value))
	case *sqlparse.TypedLit:
		return c.typedLit(e)
	case *sqlparse.IntervalLit:
		return c.intervalLit(e)
	case *sqlparse.ColumnRef:
		return c.column(e)
	case *sqlparse.Unary:
		return c.unary(e)
	case *sqlparse.Binary:
		return c.binary(e)
	case *sqlparse.Call:
		return c.call(e)
	case *sqlparse.Cast:
		return c.cast(e)
	}
	return c.predicate(e)
}

// predicate compiles what is true or false, and CASE.
func (c *compiler) predicate(e sqlparse.Expr) *node {
	switch e := e.(type) {
	case *sqlparse.Logic:
		return c.logic(e)
	case *sqlparse.IsNull:
		return isNullNode(e.Pos, c.expr(e.X), e.Not)
	case *sqlparse.IsTruth:
		return c.isTruth(e)
	case *sqlparse.IsDistinct:
		n := c.comparison(e.Pos, "<=>", c.expr(e.L), c.expr(e.R))
		if e.Not {
			return n
		}
		return notNode(n)
	case *sqlparse.Between:
		return c.between(e)
	case *sqlparse.InList:
		return c.inList(e)
	case *sqlparse.InQuery:
		return c.inQuery(e)
	case *sqlparse.Exists:
		return c.exists(e)
	case *sqlparse.ScalarQuery:
		return c.scalarQuery(e)
	case *sqlparse.Like:
		return c.like(e)
	case *sqlparse.LikeAny:
		return c.likeAny(e)
	case *sqlparse.Case:
		return c.caseWhen(e)
	}
	return c.form(e)
}

// form compiles the expressions that are functions with words between their
// arguments, and refuses those that have no place in a value.
func (c *compiler) form(e sqlparse.Expr) *node {
	pos := e.Position()
	switch e := e.(type) {
	case *sqlparse.Index:
		return c.index(e)
	case *sqlparse.FieldRef:
		return c.field(c.expr(e.X), e.Name.Pos, e.Name.Name)
	case *sqlparse.Extract:
		return c.extract(pos, e.Field, c.expr(e.X))
	case *sqlparse.Trim:
		return c.trim(e)
	case *sqlparse.Overlay:
		args := []*node{c.expr(e.X), c.expr(e.With), c.expr(e.Start)}
		if e.Length != nil {
			args = append(args, c.expr(e.Length))
		}
		return c.apply(pos, "overlay", args)
	case *sqlparse.TimeUnitCall:
		return c.timeUnit(e)
	case *sqlparse.Row:
		return c.rowValue(pos, e.Items)
	case *sqlparse.Aliased:
		n := *c.expr(e.X)
		n.name = e.Alias.Name
		return &n
	case *sqlparse.Collate:
		return c.collate(e)
	case *sqlparse.DefaultExpr:
		return c.fail(pos, "DEFAULT_PLACEMENT_INVALID", "DEFAULT stands only for a whole value in INSERT, UPDATE and MERGE")
	case *sqlparse.Star:
		return c.fail(pos, "INVALID_USAGE_OF_STAR_OR_REGEX", "* is no value: name the columns")
	case *sqlparse.Lambda:
		return c.fail(pos, "INVALID_LAMBDA_FUNCTION_CALL.PARAMETER_DOES_NOT_ACCEPT_LAMBDA_FUNCTION", "a lambda function is no value")
	case *sqlparse.NamedArg:
		return c.fail(pos, "NAMED_PARAMETERS_NOT_SUPPORTED", "this function does not take arguments by name")
	}
	return c.fail(pos, sqlparse.ClassUnsupported, "%T is not supported here", e)
}
