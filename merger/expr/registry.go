package expr

import (
	"slices"
	"strings"
	"sync"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// function is an entry of the table of functions.
type function struct {
	// name is how functions are listed; names are found without regard to case.
	// More names may follow, apart by blanks.
	name string
	// min and max bound the number of arguments; a max of any has no bound.
	min, max int
	build    func(c *compiler, f *call) *node
}

// any is the max of a function that takes any number of arguments.
const unbounded = 1 << 16

// call is a function with its arguments. An argument that is a lambda function
// is nil: the function compiles it from raw when it knows its parameters' types.
type call struct {
	pos  sqlparse.Pos
	name string
	args []*node
	raw  []sqlparse.Expr
}

// impl computes a function from arguments that are not NULL; errors have no
// place yet. The slice is reused: results must not alias it.
type impl func(env *Env, a []types.Datum) (types.Datum, error)

// strict evaluates the arguments from left to right; the first NULL is the result.
func strict(t Type, pos sqlparse.Pos, args []*node, f impl) *node {
	n := &node{typ: t, pos: pos, foldable: allFoldable(args)}
	evals := evalsOf(args)
	buf := make([]types.Datum, len(args))
	n.eval = func(fr *frame) (types.Datum, error) {
		for i, e := range evals {
			d, err := e(fr)
			if err != nil || d.Null {
				return types.Null, err
			}
			buf[i] = d
		}
		d, err := f(fr.env, buf)
		if err == nil {
			err = fr.spend(&d)
		}
		if err != nil {
			return types.Null, at(pos, err)
		}
		return d, nil
	}
	return n
}

// lenient evaluates all arguments and leaves NULL to the function.
func lenient(t Type, pos sqlparse.Pos, args []*node, f impl) *node {
	n := &node{typ: t, pos: pos, foldable: allFoldable(args)}
	evals := evalsOf(args)
	buf := make([]types.Datum, len(args))
	n.eval = func(fr *frame) (types.Datum, error) {
		for i, e := range evals {
			d, err := e(fr)
			if err != nil {
				return types.Null, err
			}
			buf[i] = d
		}
		d, err := f(fr.env, buf)
		if err == nil {
			err = fr.spend(&d)
		}
		if err != nil {
			return types.Null, at(pos, err)
		}
		return d, nil
	}
	return n
}

func evalsOf(args []*node) []evalFn {
	evals := make([]evalFn, len(args))
	for i, a := range args {
		evals[i] = a.eval
	}
	return evals
}

func allFoldable(args []*node) bool {
	return !slices.ContainsFunc(args, func(n *node) bool { return n == nil || !n.foldable })
}

// scalar is a strict function with arguments of fixed types; those from min on
// may be left out.
func scalar(name string, min int, ret Type, params []Type, f impl) function {
	return function{name, min, len(params), func(c *compiler, k *call) *node {
		return strict(ret, k.pos, c.wantAll(k, params...), f)
	}}
}

// wantAll casts the arguments to the types that a function wants.
func (c *compiler) wantAll(k *call, params ...Type) []*node {
	for i, a := range k.args {
		k.args[i] = c.want(a, params[i], k.name, i)
	}
	return k.args
}

var (
	registryOnce sync.Once
	registry     map[string]*function
)

// functions returns the table by name in lower case.
func functions() map[string]*function {
	registryOnce.Do(func() {
		registry = map[string]*function{}
		for _, family := range [...][]function{
			conditionalFunctions(), mathFunctions(), roundFunctions(), bitFunctions(), stringFunctions(), padFunctions(),
			searchFunctions(), regexFunctions(), formatFunctions(), encodingFunctions(), hashFunctions(), castFunctions(),
			dateFunctions(), stampFunctions(), makeFunctions(), arrayFunctions(), arraySetFunctions(), mapFunctions(),
			structFunctions(), lambdaFunctions(), jsonFunctions(), systemFunctions(),
		} {
			for i := range family {
				for name := range strings.FieldsSeq(family[i].name) {
					registry[name] = &family[i]
				}
			}
		}
	})
	return registry
}

// FunctionNames returns the names of all functions in order.
func FunctionNames() []string {
	names := make([]string, 0, len(functions()))
	for n := range functions() {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// call compiles a function call.
func (c *compiler) call(e *sqlparse.Call) *node {
	name := strings.ToLower(e.Func.Last())
	f, ok := functions()[name]
	if !ok || len(e.Func.Parts) > 1 {
		return c.unknownFunction(e, name)
	}
	if e.Distinct || e.Filter != nil {
		return c.fail(e.Pos, "INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX", "DISTINCT and FILTER go with aggregates; %s is none", name)
	}
	k := &call{pos: e.Pos, name: name, raw: e.Args, args: make([]*node, len(e.Args))}
	for i, a := range e.Args {
		if _, ok := a.(*sqlparse.Lambda); !ok {
			k.args[i] = c.expr(a)
		}
	}
	return c.build(f, k)
}

func (c *compiler) unknownFunction(e *sqlparse.Call, name string) *node {
	if IsAggregate(name) {
		return c.fail(e.Pos, "UNSUPPORTED_EXPR_FOR_OPERATOR", "the aggregate %s has no place here", name)
	}
	hint := ""
	if near := nearestNames(name); near != "" {
		hint = ", did you mean " + near + "?"
	}
	return c.fail(e.Pos, classRoutine, "there is no function %s%s", e.Func, hint)
}

// nearestNames names the functions that are a slip away from a name.
func nearestNames(name string) string {
	names := append(FunctionNames(), AggregateNames()...)
	var near []string
	for len(near) < 3 {
		n := sqlparse.Nearest(name, names)
		if n == "" {
			break
		}
		near = append(near, n)
		names = slices.DeleteFunc(names, func(s string) bool { return s == n })
	}
	return strings.Join(near, " or ")
}

// build checks the number of arguments and compiles.
func (c *compiler) build(f *function, k *call) *node {
	if c.err != nil {
		return c.failWith(c.err)
	}
	if n := len(k.args); n < f.min || n > f.max {
		return c.fail(k.pos, classArgs, "%s takes %s, not %d", k.name, countText(f.min, f.max), n)
	}
	for i, a := range k.args {
		if a == nil && !takesLambda[k.name] {
			return c.fail(k.raw[i].Position(), "INVALID_LAMBDA_FUNCTION_CALL.PARAMETER_DOES_NOT_ACCEPT_LAMBDA_FUNCTION", "%s takes no lambda function", k.name)
		}
	}
	n := f.build(c, k)
	if c.err != nil {
		return c.failWith(c.err)
	}
	return n
}

// apply calls a function by its name with compiled arguments.
func (c *compiler) apply(pos sqlparse.Pos, name string, args []*node) *node {
	return c.build(functions()[name], &call{pos: pos, name: name, args: args, raw: make([]sqlparse.Expr, len(args))})
}

func countText(lo, hi int) string {
	switch {
	case lo == hi && lo == 1:
		return "1 argument"
	case lo == hi:
		return itoa(lo) + " arguments"
	case hi >= unbounded:
		return itoa(lo) + " or more arguments"
	}
	return itoa(lo) + " to " + itoa(hi) + " arguments"
}

// constText returns an argument that must be a text known without a row; a NULL
// gives ok false without an error.
func (c *compiler) constText(k *call, i int) (string, bool) {
	n := c.want(k.args[i], tString, k.name, i).fold(c.env)
	if !n.constant {
		c.fail(n.pos, classNonFoldable, "argument %d of %s must be a constant", i+1, k.name)
		return "", false
	}
	return string(n.value.B), !n.value.Null
}

func textDatum(s string) types.Datum { return types.BytesDatum([]byte(s)) }
