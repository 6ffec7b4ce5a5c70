package expr

import (
	"time"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Row holds the values of a scope's columns by their slots.
type Row = []types.Datum

// Env is what an expression sees of the world. It is fixed for a statement, so
// that all its rows, and a retry after a lost race, see the same.
type Env struct {
	// Now is the time of the statement.
	Now time.Time
	// Zone is the session's time zone; nil means UTC.
	Zone *time.Location
	// User, Catalog and Database are what the functions of these names return.
	User, Catalog, Database string
	// ReadTime, if it is not nil, is called whenever an expression reads Now, be it
	// compiled or evaluated.
	ReadTime func()
}

func (e *Env) zone() *time.Location {
	if e == nil || e.Zone == nil {
		return time.UTC
	}
	return e.Zone
}

// nowMicros is the statement's time in microseconds since the epoch.
func (e *Env) nowMicros() int64 {
	if e == nil {
		return 0
	}
	if e.ReadTime != nil {
		e.ReadTime()
	}
	return e.Now.UnixMicro()
}

// frame is what evaluation needs besides the tree. One goroutine uses it.
type frame struct {
	row   Row
	outer *frame
	env   *Env
	vars  []types.Datum
	// made counts what functions have made for a row: elements, and texts by the 64
	// bytes. Functions inside of functions of arrays multiply.
	made int
}

// maxMade bounds frame.made.
const maxMade = 1 << 22

// spend counts a value that a function made.
func (f *frame) spend(d *types.Datum) error {
	f.made += len(d.L) + len(d.B)>>6
	if f.made > maxMade {
		return fault(classTooLarge, "an expression would make more than %d elements for a row", maxMade)
	}
	return nil
}

// evalFn computes a value; errors are *Error.
type evalFn func(f *frame) (types.Datum, error)

// node is a compiled expression.
type node struct {
	typ  Type
	pos  sqlparse.Pos
	eval evalFn
	// literal tells a literal as written: decimals take the digits of an integer
	// literal, not those of its type.
	literal bool
	// constant tells that value is known.
	constant bool
	value    types.Datum
	// foldable tells that no row is needed, as arguments that choose a type must be.
	foldable bool
	// name is what struct(…) calls a field made of this.
	name string
	// char is the length n of a CHAR(n) column: it compares without regard to
	// trailing blanks.
	char int
}

// newConst returns a node of a known value.
func newConst(pos sqlparse.Pos, t Type, v types.Datum) *node {
	return &node{typ: t, pos: pos, constant: true, foldable: true, value: v, eval: func(*frame) (types.Datum, error) { return v, nil }}
}

// isNull reports whether n is known to be NULL.
func (n *node) isNull() bool { return n.constant && n.value.Null }
