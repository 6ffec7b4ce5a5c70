package sql

import (
	"slices"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// assignment is a column, or a field of a struct in it, that gets a new value.
type assignment struct {
	col  int
	path []int
	x    *expr.Expr   // nil: the column's default
	def  types.Datum  // then
	leaf types.Type   // of what is assigned
	pos  sqlparse.Pos // of the target
	// constant tells that x needs no row.
	constant bool
}

// assignments compiles SET; values see scope.
func (tg *target) assignments(set []sqlparse.Assignment, scope *expr.Scope) ([]assignment, error) {
	var out []assignment
	for _, s := range set {
		col, names, err := tg.resolve(s.Target)
		if err != nil {
			return nil, err
		}
		a := assignment{col: col, pos: s.Position()}
		if a.path, a.leaf, err = pathOf(tg.fields[col].Type, names); err != nil {
			return nil, err
		}
		for _, o := range out {
			if o.col != col {
				continue
			}
			n := min(len(o.path), len(a.path))
			if slices.Equal(o.path[:n], a.path[:n]) {
				return nil, fail(a.pos, ClassAssignedTwice, "%s is assigned twice", s.Target)
			}
		}
		if err := tg.value(&a, s.Value, scope); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// value compiles what is assigned.
func (tg *target) value(a *assignment, e sqlparse.Expr, scope *expr.Scope) error {
	if _, ok := e.(*sqlparse.DefaultExpr); ok {
		if len(a.path) > 0 {
			return fail(e.Position(), "DEFAULT_PLACEMENT_INVALID", "a field of a struct has no default")
		}
		var err error
		a.def, err = tg.omitted(a.col, e.Position())
		return err
	}
	x, err := expr.Compile(e, scope)
	if err != nil {
		return err
	}
	_, a.constant = x.Constant()
	a.x, err = expr.AssignmentCast(x, tg.fields[a.col].Name, a.leaf)
	return err
}

// apply computes the new version of a target row; values see row.
func (tg *target) apply(list []assignment, old []types.Datum, row expr.Row) ([]types.Datum, error) {
	out := slices.Clone(old[:len(tg.fields)])
	for i := range list {
		a := &list[i]
		d := a.def
		if a.x != nil {
			var err error
			if d, err = a.x.Eval(row); err != nil {
				return nil, err
			}
		}
		if len(a.path) == 0 {
			out[a.col] = tg.defaulted(a.col, d)
			continue
		}
		d, err := tg.setField(tg.fields[a.col].Type, out[a.col], a, a.path, d)
		if err != nil {
			return nil, err
		}
		out[a.col] = d
	}
	return out, nil
}

// setField returns a struct with one field changed; a NULL struct becomes one that
// has only that field.
func (tg *target) setField(t types.Type, old types.Datum, a *assignment, path []int, v types.Datum) (types.Datum, error) {
	if len(path) == 0 {
		return v, nil
	}
	r := types.Datum{L: make([]types.Datum, len(t.Fields))}
	if !old.Null {
		copy(r.L, old.L)
	} else {
		for i, f := range t.Fields {
			r.L[i] = types.Null
			if f.Type.NotNull && i != path[0] {
				return types.Null, &expr.Error{
					Pos: a.pos, Class: expr.ClassNotNull,
					Message: "the struct is NULL, and its field " + f.Name + ", which is NOT NULL, would have no value: assign the whole struct",
				}
			}
		}
	}
	d, err := tg.setField(t.Fields[path[0]].Type, r.L[path[0]], a, path[1:], v)
	r.L[path[0]] = d
	return r, err
}
