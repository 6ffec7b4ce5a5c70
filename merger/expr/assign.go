package expr

import (
	"unicode/utf8"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

// Classes of assignments that are refused.
const (
	// ClassNotNull is NULL for a column, field or element that is NOT NULL.
	ClassNotNull = "NOT_NULL_ASSERT_VIOLATION"
	// ClassLength is a text or binary longer than its column allows.
	ClassLength = "EXCEED_LIMIT_LENGTH"
	// ClassMissingField is a struct without a field that the column has.
	ClassMissingField = "INCOMPATIBLE_DATA_FOR_TABLE.STRUCT_MISSING_FIELDS"
)

// AssignmentCast returns the expression whose values INSERT, UPDATE and MERGE store
// in a column of type to: x cast by the ANSI rules of CAST, structs aligned by the
// names of their fields (those the column does not have are dropped, those it has
// must be there), CHAR padded, texts and binaries held to their length, timestamps
// cut to their precision, NULL refused where to or something inside is NOT NULL.
// Its values are laid out as vectors of type to hold them. Errors name the column.
func AssignmentCast(x *Expr, column string, to types.Type) (*Expr, error) {
	a := assigner{env: x.f.env, pos: x.node.pos}
	fn := a.value(x.node.typ, to, column)
	if a.err != nil {
		return nil, a.err
	}
	t, _ := FromStorage(to)
	eval, pos := x.node.eval, x.node.pos
	n := &node{typ: t, pos: pos, foldable: x.node.foldable, name: x.node.name}
	n.eval = func(f *frame) (types.Datum, error) {
		d, err := eval(f)
		if err != nil {
			return types.Null, err
		}
		d, err = fn(d)
		return d, at(pos, err)
	}
	return &Expr{node: n, f: x.f, slots: x.slots}, nil
}

// assigner builds the conversion of an assignment; the first error sticks.
type assigner struct {
	env *Env
	pos sqlparse.Pos
	err error
}

func (a *assigner) fail(class, format string, args ...any) castFn {
	if a.err == nil {
		c := &compiler{}
		c.fail(a.pos, class, format, args...)
		a.err = c.err
	}
	return nil
}

// value converts a value that may be NULL.
func (a *assigner) value(from Type, to types.Type, path string) castFn {
	fn := a.notNull(from, to, path)
	return func(d types.Datum) (types.Datum, error) {
		if !d.Null {
			var err error
			if d, err = fn(d); err != nil {
				return types.Null, err
			}
		}
		if d.Null && to.NotNull {
			return types.Null, fault(ClassNotNull, "NULL for %s, which is NOT NULL", path)
		}
		return d, nil
	}
}

// notNull converts a value that is not NULL.
func (a *assigner) notNull(from Type, to types.Type, path string) castFn {
	t, ok := FromStorage(to)
	if !ok {
		return a.fail("UNSUPPORTED_DATATYPE", "%s has the type %s, which statements cannot write", path, to)
	}
	if from.Kind == Void {
		return func(d types.Datum) (types.Datum, error) { return d, nil }
	}
	if t.nested() && from.Kind == t.Kind {
		return a.nested(from, to, path)
	}
	if class := castClass(from, t, false); class != "" {
		return a.fail("DATATYPE_MISMATCH."+class, "%s is %s: %s cannot be cast to it", path, t.sql(), from.sql())
	}
	cast := caster(from, t.plain(), false, a.env)
	store := storer(to, path)
	return func(d types.Datum) (types.Datum, error) {
		d, err := cast(d)
		if err != nil || d.Null {
			return d, err
		}
		return store(d)
	}
}

// nested converts the parts of arrays, maps and structs.
func (a *assigner) nested(from Type, to types.Type, path string) castFn {
	switch to.Kind {
	case types.Array:
		elem := a.value(*from.Elem, *to.Elem, path+".element")
		return eachItem(elem, elem)
	case types.Map:
		return eachItem(a.value(*from.Key, *to.Key, path+".key"), a.value(*from.Elem, *to.Elem, path+".value"))
	}
	index := make([]int, len(to.Fields))
	fns := make([]castFn, len(to.Fields))
	for i, f := range to.Fields {
		j := a.fieldOf(from, f.Name, path)
		if j < 0 {
			return nil
		}
		index[i], fns[i] = j, a.value(from.Fields[j].Type, f.Type, path+"."+f.Name)
	}
	return func(d types.Datum) (types.Datum, error) {
		r := types.Datum{L: make([]types.Datum, len(fns))}
		for i, fn := range fns {
			v, err := fn(d.L[index[i]])
			if err != nil {
				return types.Null, err
			}
			r.L[i] = v
		}
		return r, nil
	}
}

// fieldOf finds the source of a column's field, -1 if there is none or more than one.
func (a *assigner) fieldOf(from Type, name, path string) int {
	found := -1
	for j, f := range from.Fields {
		if !sameName(f.Name, name) {
			continue
		}
		if found >= 0 {
			a.fail("AMBIGUOUS_REFERENCE_TO_FIELDS", "the struct for %s has more than one field %s", path, name)
			return -1
		}
		found = j
	}
	if found < 0 {
		a.fail(ClassMissingField, "the struct for %s has no field %s: name it with named_struct", path, name)
	}
	return found
}

// eachItem converts a list whose items take two functions by turns.
func eachItem(even, odd castFn) castFn {
	return func(d types.Datum) (types.Datum, error) {
		r := types.Datum{L: make([]types.Datum, len(d.L))}
		for i, x := range d.L {
			fn := even
			if i%2 == 1 {
				fn = odd
			}
			v, err := fn(x)
			if err != nil {
				return types.Null, err
			}
			r.L[i] = v
		}
		return r, nil
	}
}

// storer makes a value of a type fit its column: length, precision, layout.
func storer(to types.Type, path string) castFn {
	switch to.Kind {
	case types.Char, types.VarChar:
		if to.Length < types.MaxLength {
			return func(d types.Datum) (types.Datum, error) { return fitText(d, to, path) }
		}
	case types.Binary, types.VarBinary:
		if to.Length < types.MaxLength {
			return func(d types.Datum) (types.Datum, error) { return fitBytes(d, to, path) }
		}
	case types.Timestamp, types.TimestampLTZ:
		if to.Precision < 6 {
			return func(d types.Datum) (types.Datum, error) {
				return types.IntDatum(types.TruncateMicros(d.I, to.Precision)), nil
			}
		}
		if to.Precision < 9 {
			return func(d types.Datum) (types.Datum, error) {
				n := int32(0)
				if to.Precision > 6 {
					n = types.TruncateNanos(d.N, to.Precision)
				}
				return types.Datum{I: d.I, N: n}, nil
			}
		}
	case types.Time: // columns hold milliseconds
		return func(d types.Datum) (types.Datum, error) { return types.IntDatum(d.I / 1000), nil }
	}
	return func(d types.Datum) (types.Datum, error) { return d, nil }
}

// fitText cuts blanks beyond the length, refuses anything else there, and pads CHAR.
func fitText(d types.Datum, to types.Type, path string) (types.Datum, error) {
	n := utf8.RuneCount(d.B)
	if n > to.Length {
		end := runeOffset(d.B, int64(to.Length))
		if len(types.TrimBlanks(d.B)) > end {
			return types.Null, fault(ClassLength, "the text for %s has %d characters, %s holds %d", path, n, to, to.Length)
		}
		return types.BytesDatum(d.B[:end]), nil
	}
	if to.Kind == types.Char {
		return types.BytesDatum(padBlanks(d.B, to.Length)), nil
	}
	return d, nil
}

func fitBytes(d types.Datum, to types.Type, path string) (types.Datum, error) {
	switch n := len(d.B); {
	case n > to.Length:
		return types.Null, fault(ClassLength, "the binary for %s has %d bytes, %s holds %d", path, n, to, to.Length)
	case n < to.Length && to.Kind == types.Binary:
		b := make([]byte, to.Length)
		copy(b, d.B)
		return types.BytesDatum(b), nil
	}
	return d, nil
}

// TableColumn is the column of a table in a scope: its values come from vectors of
// the field's type. It reports false for types that expressions cannot hold.
func TableColumn(qualifier []string, f types.Field, slot int) (Column, bool) {
	t, ok := FromStorage(f.Type)
	return Column{Qualifier: qualifier, Name: f.Name, Type: t, Slot: slot, load: loader(f.Type)}, ok
}

// loader undoes storer where the layouts differ, nil where they do not.
func loader(t types.Type) func(types.Datum) types.Datum {
	switch t.Kind {
	case types.Time:
		return func(d types.Datum) types.Datum { return types.Datum{I: d.I * 1000, Null: d.Null} }
	case types.Array:
		if e := loader(*t.Elem); e != nil {
			return loadItems(e)
		}
	case types.Map:
		if k, v := loader(*t.Key), loader(*t.Elem); k != nil || v != nil {
			return loadItems(k, v)
		}
	case types.Row:
		var fns []func(types.Datum) types.Datum
		any := false
		for _, f := range t.Fields {
			fn := loader(f.Type)
			fns = append(fns, fn)
			any = any || fn != nil
		}
		if any {
			return loadItems(fns...)
		}
	}
	return nil
}

func loadItems(fns ...func(types.Datum) types.Datum) func(types.Datum) types.Datum {
	return func(d types.Datum) types.Datum {
		if d.Null {
			return d
		}
		r := types.Datum{L: make([]types.Datum, len(d.L))}
		for i, x := range d.L {
			if fn := fns[i%len(fns)]; fn != nil {
				x = fn(x)
			}
			r.L[i] = x
		}
		return r
	}
}
