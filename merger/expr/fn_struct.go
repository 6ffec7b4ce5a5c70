package expr

import (
	"slices"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

func structFunctions() []function {
	return []function{
		{"struct", 0, unbounded, func(_ *compiler, k *call) *node { return structNode(k.pos, k.args) }},
		{"named_struct", 0, unbounded, (*compiler).namedStruct},
		{"get", 2, 2, func(c *compiler, k *call) *node { return c.element(k, elementGet) }},
		{"element_at", 2, 2, func(c *compiler, k *call) *node { return c.element(k, elementAt) }},
		{"try_element_at", 2, 2, func(c *compiler, k *call) *node { return c.element(k, elementTry) }},
	}
}

// structNode makes a struct; fields are called as their values, or col1, col2, ….
func structNode(pos sqlparse.Pos, nodes []*node) *node {
	t := Type{Kind: Struct, Fields: make([]Field, len(nodes))}
	for i, n := range nodes {
		name := n.name
		if name == "" {
			name = "col" + itoa(i+1)
		}
		t.Fields[i] = Field{Name: name, Type: n.typ}
	}
	return listNode(t, pos, nodes)
}

// listNode holds its arguments in a fresh list.
func listNode(t Type, pos sqlparse.Pos, nodes []*node) *node {
	return lenient(t, pos, nodes, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.Datum{L: append(make([]types.Datum, 0, len(a)), a...)}, nil
	})
}

func (c *compiler) namedStruct(k *call) *node {
	if len(k.args)%2 == 1 {
		return c.fail(k.pos, classArgs, "named_struct takes names and values by turns")
	}
	t := Type{Kind: Struct}
	var values []*node
	for i := 0; i < len(k.args); i += 2 {
		n := k.args[i].fold(c.env)
		if !n.constant || n.typ.Kind != String || n.value.Null {
			return c.fail(n.pos, "DATATYPE_MISMATCH.CREATE_NAMED_STRUCT_WITHOUT_FOLDABLE_STRING", "the name of a field must be a constant text")
		}
		t.Fields = append(t.Fields, Field{Name: string(n.value.B), Type: k.args[i+1].typ})
		values = append(values, k.args[i+1])
	}
	return listNode(t, k.pos, values)
}

// field compiles x.name of a struct, of an array of structs (an array of the
// fields), or the value of a map's key.
func (c *compiler) field(x *node, pos sqlparse.Pos, name string) *node {
	if c.err != nil {
		return x
	}
	switch x.typ.Kind {
	case Struct:
		i := c.fieldIndex(x.typ, pos, name)
		if i < 0 {
			return x
		}
		n := strict(x.typ.Fields[i].Type, pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) { return a[0].L[i], nil })
		n.name = x.typ.Fields[i].Name
		return n
	case Array:
		if x.typ.Elem.Kind == Struct {
			return c.fieldOfAll(x, pos, name)
		}
		return c.mismatch(pos, "."+name, 0, "an array of structs", x.typ)
	case Map:
		return c.index2(pos, x, newConst(pos, tString, textDatum(name)))
	}
	return c.fail(pos, "INVALID_EXTRACT_BASE_FIELD_TYPE", "%s has no fields: .%s goes with a struct", x.typ.sql(), name)
}

// fieldIndex finds a field by its name, case aside; -1 with an error if it is not
// there once.
func (c *compiler) fieldIndex(t Type, pos sqlparse.Pos, name string) int {
	found := -1
	for i, f := range t.Fields {
		if !sameName(f.Name, name) {
			continue
		}
		if found >= 0 {
			c.fail(pos, "AMBIGUOUS_REFERENCE_TO_FIELDS", "the struct has more than one field %s", name)
			return -1
		}
		found = i
	}
	if found < 0 {
		names := make([]string, len(t.Fields))
		for i, f := range t.Fields {
			names[i] = f.Name
		}
		hint := ""
		if near := sqlparse.Nearest(name, names); near != "" {
			hint = ", did you mean " + near + "?"
		}
		c.fail(pos, "FIELD_NOT_FOUND", "there is no field %s in %s%s", name, t.sql(), hint)
	}
	return found
}

func (c *compiler) fieldOfAll(x *node, pos sqlparse.Pos, name string) *node {
	i := c.fieldIndex(*x.typ.Elem, pos, name)
	if i < 0 {
		return x
	}
	n := strict(arrayOf(x.typ.Elem.Fields[i].Type), pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		r := types.Datum{L: make([]types.Datum, len(a[0].L))}
		for j, s := range a[0].L {
			r.L[j] = types.Null
			if !s.Null {
				r.L[j] = s.L[i]
			}
		}
		return r, nil
	})
	n.name = name
	return n
}

// index compiles x[i].
func (c *compiler) index(e *sqlparse.Index) *node {
	x, i := c.expr(e.X), c.expr(e.I)
	if c.err != nil {
		return x
	}
	return c.index2(e.Pos, x, i)
}

func (c *compiler) index2(pos sqlparse.Pos, x, i *node) *node {
	switch x.typ.Kind {
	case Array:
		switch {
		case i.typ.Kind == Void:
			return newConst(pos, *x.typ.Elem, types.Null)
		case !i.typ.integral():
			return c.mismatch(i.pos, "[]", 1, "an integer", i.typ)
		}
		return strict(*x.typ.Elem, pos, []*node{x, i}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			if n := a[1].I; n < 0 || n >= int64(len(a[0].L)) {
				return types.Null, fault("INVALID_ARRAY_INDEX", "there is no element %d of %d; get(array, i) gives NULL instead", n, len(a[0].L))
			}
			return a[0].L[a[1].I], nil
		})
	case Map:
		return c.mapValue(pos, x, i, "[]")
	case Struct:
		name := i.fold(c.env)
		if name.constant && name.typ.Kind == String {
			return c.field(x, pos, string(name.value.B))
		}
	}
	return c.fail(pos, "INVALID_EXTRACT_BASE_FIELD_TYPE", "%s has no elements: [] goes with an array or a map", x.typ.sql())
}

// mapValue looks a key up; NULL if it is not there.
func (c *compiler) mapValue(pos sqlparse.Pos, x, key *node, fn string) *node {
	k, ok := c.implicit(key, *x.typ.Key)
	if !ok {
		return c.mismatch(key.pos, fn, 1, x.typ.Key.sql(), key.typ)
	}
	kt := *x.typ.Key
	if !kt.orderable() {
		return c.fail(pos, classOrdering, "keys of %s do not compare", kt.sql())
	}
	return strict(*x.typ.Elem, pos, []*node{x, k}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if i := mapFind(kt, a[0].L, a[1]); i >= 0 {
			return a[0].L[i+1], nil
		}
		return types.Null, nil
	})
}

// mapFind returns where a key stands in a map's list, -1 if nowhere.
func mapFind(kt Type, l []types.Datum, key types.Datum) int {
	for i := 0; i+1 < len(l); i += 2 {
		if CompareNullable(kt, l[i], key) == 0 {
			return i
		}
	}
	return -1
}

// elementRule tells element_at, try_element_at and get apart.
type elementRule uint8

const (
	// elementAt counts from 1 or from the end; what is not there is an error.
	elementAt elementRule = iota
	// elementTry is elementAt with NULL for what is not there.
	elementTry
	// elementGet counts from 0.
	elementGet
)

func (c *compiler) element(k *call, rule elementRule) *node {
	x := k.args[0]
	switch {
	case x.typ.Kind == Map && rule != elementGet:
		t, ok := tightest(*x.typ.Key, k.args[1].typ)
		if !ok {
			return c.fail(k.pos, "DATATYPE_MISMATCH.MAP_FUNCTION_DIFF_TYPES", "the keys of %s are no %s", x.typ.sql(), k.args[1].typ.sql())
		}
		return c.mapValue(k.pos, c.castTo(x, mapOf(t, *x.typ.Elem)), k.args[1], k.name)
	case x.typ.Kind != Array:
		return c.mismatch(x.pos, k.name, 0, "an array or a map", x.typ)
	}
	if t := k.args[1].typ; !t.integral() && rule != elementGet {
		return c.mismatch(k.args[1].pos, k.name, 1, tInt.sql(), t)
	}
	i := c.want(k.args[1], tInt, k.name, 1)
	return strict(*x.typ.Elem, k.pos, []*node{x, i}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		n, at := int64(len(a[0].L)), a[1].I
		switch {
		case rule == elementGet:
		case at == 0:
			return types.Null, fault("INVALID_INDEX_OF_ZERO", "elements are counted from 1, or from the end from -1")
		case at > 0:
			at--
		default:
			at += n
		}
		switch {
		case at >= 0 && at < n:
			return a[0].L[at], nil
		case rule == elementAt:
			return types.Null, fault("INVALID_ARRAY_INDEX_IN_ELEMENT_AT", "there is no element %d of %d; try_element_at gives NULL instead", a[1].I, n)
		}
		return types.Null, nil
	})
}

// concatArrays joins arrays of one type.
func concatArrays(t Type, k *call) *node {
	return strict(t, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		var l []types.Datum
		for _, d := range a {
			l = append(l, d.L...)
		}
		if len(l) > maxItems {
			return types.Null, tooMany(k.name)
		}
		return types.Datum{L: slices.Clip(l)}, nil
	})
}

func tooMany(fn string) error {
	return fault(classTooLarge, "%s would make an array of more than %d elements", fn, maxItems)
}
