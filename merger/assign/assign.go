package assign

import (
	"slices"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Assignment is a column, or a field of a struct in it, that gets a new value.
type Assignment struct {
	// Col is the column.
	Col  int
	path []int
	x    *expr.Expr   // nil: the column's default
	def  types.Datum  // then
	leaf types.Type   // of what is assigned
	pos  sqlparse.Pos // of the target
	// fixed is x if it is the same for every row, else nil.
	fixed *expr.Expr
}

// Whole reports whether the whole column is assigned, not a field in it.
func (a *Assignment) Whole() bool { return len(a.path) == 0 }

// Slots returns the slots of the row that the value is made of.
func (a *Assignment) Slots() []int {
	if a.x == nil {
		return nil
	}
	return a.x.Slots()
}

// Eval computes what is assigned, for a row of the scope.
func (a *Assignment) Eval(row expr.Row) (types.Datum, error) {
	if a.x == nil {
		return a.def, nil
	}
	return a.x.Eval(row)
}

// Assignments compiles SET; values see scope.
func (t *Target) Assignments(set []sqlparse.Assignment, scope *expr.Scope) ([]Assignment, error) {
	var out []Assignment
	for _, s := range set {
		col, names, err := t.Resolve(s.Target)
		if err != nil {
			return nil, err
		}
		a := Assignment{Col: col, pos: s.Position()}
		if a.path, a.leaf, err = pathOf(t.Fields[col].Type, names); err != nil {
			return nil, err
		}
		for _, o := range out {
			if o.Col != col {
				continue
			}
			n := min(len(o.path), len(a.path))
			if slices.Equal(o.path[:n], a.path[:n]) {
				if len(o.path) != len(a.path) {
					return nil, fail(a.pos, ClassAssignedTwice, "conflicting assignments: %s is assigned as a whole and a field of it by itself", t.Fields[col].Name)
				}
				return nil, fail(a.pos, ClassAssignedTwice, "%s is assigned twice", s.Target)
			}
		}
		if err := t.value(&a, s.Value, scope); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// value compiles what is assigned.
func (t *Target) value(a *Assignment, e sqlparse.Expr, scope *expr.Scope) error {
	if _, ok := e.(*sqlparse.DefaultExpr); ok {
		if len(a.path) > 0 {
			return fail(e.Position(), "DEFAULT_PLACEMENT_INVALID", "a field of a struct has no default")
		}
		var err error
		a.def, err = t.Omitted(a.Col, e.Position())
		return err
	}
	x, err := expr.Compile(e, scope)
	if err != nil {
		return err
	}
	if fixed, ok := Fixed(e, scope.Env); ok {
		if a.fixed, err = expr.AssignmentCast(fixed, t.Fields[a.Col].Name, a.leaf); err != nil {
			return err
		}
	}
	a.x, err = expr.AssignmentCast(x, t.Fields[a.Col].Name, a.leaf)
	return err
}

// Apply computes the new version of a target row; values see row.
func (t *Target) Apply(list []Assignment, old []types.Datum, row expr.Row) ([]types.Datum, error) {
	out := slices.Clone(old[:len(t.Fields)])
	for i := range list {
		d, err := list[i].Eval(row)
		if err != nil {
			return nil, err
		}
		if err := t.Store(out, &list[i], d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Store puts an assigned value into a row.
func (t *Target) Store(row []types.Datum, a *Assignment, d types.Datum) error {
	if len(a.path) == 0 {
		row[a.Col] = t.Defaulted(a.Col, d)
		return nil
	}
	d, err := setField(t.Fields[a.Col].Type, row[a.Col], a, a.path, d)
	if err == nil {
		row[a.Col] = d
	}
	return err
}

// setField returns a struct with one field changed; a NULL struct becomes one that
// has only that field.
func setField(t types.Type, old types.Datum, a *Assignment, path []int, v types.Datum) (types.Datum, error) {
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
	d, err := setField(t.Fields[path[0]].Type, r.L[path[0]], a, path[1:], v)
	r.L[path[0]] = d
	return r, err
}
