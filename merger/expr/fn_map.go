package expr

import (
	"bytes"
	"slices"

	"applier/merger/sqlparse"
	"applier/storage/types"
)

func mapFunctions() []function {
	return []function{
		{"map", 0, unbounded, (*compiler).mapCall},
		{"map_keys", 1, 1, mapPart(0, func(t Type) Type { return arrayOf(*t.Key) })},
		{"map_values", 1, 1, mapPart(1, func(t Type) Type { return arrayOf(*t.Elem) })},
		{"map_entries", 1, 1, (*compiler).mapEntries},
		{"map_contains_key", 2, 2, (*compiler).mapContainsKey},
		{"map_concat", 0, unbounded, (*compiler).mapConcat},
		{"map_from_arrays", 2, 2, (*compiler).mapFromArrays},
		{"map_from_entries", 1, 1, (*compiler).mapFromEntries},
		{"str_to_map", 1, 3, (*compiler).strToMap},
	}
}

// mapArg returns an argument that must be a map.
func (c *compiler) mapArg(k *call, i int) *node {
	if k.args[i].typ.Kind != Map {
		return c.mismatch(k.args[i].pos, k.name, i, "a map", k.args[i].typ)
	}
	return k.args[i]
}

// checkKey refuses types that cannot be keys.
func (c *compiler) checkKey(pos sqlparse.Pos, t Type) {
	if t.hasMap() {
		c.fail(pos, "DATATYPE_MISMATCH.INVALID_MAP_KEY_TYPE", "a key of a map cannot be or hold a map")
	}
}

// makeMap checks keys and values by turns: no NULL key, no key twice.
func makeMap(kt Type, l []types.Datum) (types.Datum, error) {
	seen := map[string]bool{}
	var key []byte
	for i := 0; i+1 < len(l); i += 2 {
		if l[i].Null {
			return types.Null, fault("NULL_MAP_KEY", "a key of a map cannot be NULL")
		}
		if kt.floating() && l[i].F == 0 {
			l[i].F = 0 // -0.0 as a key is 0.0
		}
		key = GroupKey(key[:0], kt, l[i])
		if seen[string(key)] {
			return types.Null, fault("DUPLICATED_MAP_KEY", "the key %s stands twice in the map", Text(kt, l[i], nil))
		}
		seen[string(key)] = true
	}
	return types.Datum{L: l}, nil
}

func (c *compiler) mapCall(k *call) *node {
	if len(k.args)%2 == 1 {
		return c.fail(k.pos, classArgs, "map takes keys and values by turns")
	}
	var keys, values []*node
	for i := 0; i < len(k.args); i += 2 {
		keys, values = append(keys, k.args[i]), append(values, k.args[i+1])
	}
	kt, ok := c.coerceAll(keys, wider)
	if !ok {
		return c.fail(k.pos, "DATATYPE_MISMATCH.CREATE_MAP_KEY_DIFF_TYPES", "the keys of a map must have one type, not %s", typeList(keys))
	}
	vt, ok := c.coerceAll(values, wider)
	if !ok {
		return c.fail(k.pos, "DATATYPE_MISMATCH.CREATE_MAP_VALUE_DIFF_TYPES", "the values of a map must have one type, not %s", typeList(values))
	}
	c.checkKey(k.pos, kt)
	args := make([]*node, 0, len(k.args))
	for i := range keys {
		args = append(args, keys[i], values[i])
	}
	return lenient(mapOf(kt, vt), k.pos, args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return makeMap(kt, append([]types.Datum{}, a...))
	})
}

func mapPart(offset int, typ func(Type) Type) func(*compiler, *call) *node {
	return func(c *compiler, k *call) *node {
		x := c.mapArg(k, 0)
		if c.err != nil {
			return x
		}
		return strict(typ(x.typ), k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
			r := types.Datum{L: make([]types.Datum, 0, len(a[0].L)/2)}
			for i := offset; i < len(a[0].L); i += 2 {
				r.L = append(r.L, a[0].L[i])
			}
			return r, nil
		})
	}
}

func (c *compiler) mapEntries(k *call) *node {
	x := c.mapArg(k, 0)
	if c.err != nil {
		return x
	}
	t := structOf(Field{Name: "key", Type: *x.typ.Key}, Field{Name: "value", Type: *x.typ.Elem})
	return strict(arrayOf(t), k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		r := types.Datum{L: make([]types.Datum, 0, len(a[0].L)/2)}
		for pair := range slices.Chunk(a[0].L, 2) {
			r.L = append(r.L, types.Datum{L: pair})
		}
		return r, nil
	})
}

func (c *compiler) mapContainsKey(k *call) *node {
	x, key := k.args[0], k.args[1]
	if x.typ.Kind == Void || key.typ.Kind == Void {
		return c.fail(k.pos, classNullType, "map_contains_key takes no untyped NULL")
	}
	c.mapArg(k, 0)
	if c.err != nil {
		return x
	}
	t, ok := tightest(*x.typ.Key, key.typ)
	if !ok {
		return c.fail(k.pos, "DATATYPE_MISMATCH.MAP_FUNCTION_DIFF_TYPES", "the keys of %s are no %s", x.typ.sql(), key.typ.sql())
	}
	x, key = c.castTo(x, mapOf(t, *x.typ.Elem)), c.castTo(key, t)
	return strict(tBool, k.pos, []*node{x, key}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		return types.BoolDatum(mapFind(t, a[0].L, a[1]) >= 0), nil
	})
}

func (c *compiler) mapConcat(k *call) *node {
	for _, a := range k.args {
		if a.typ.Kind != Map {
			return c.fail(k.pos, "DATATYPE_MISMATCH.MAP_CONCAT_DIFF_TYPES", "map_concat takes maps, not %s", a.typ.sql())
		}
	}
	if len(k.args) == 0 {
		return newConst(k.pos, mapOf(tString, tString), types.Datum{L: []types.Datum{}})
	}
	t, ok := c.coerceAll(k.args, wider)
	if !ok {
		return c.fail(k.pos, classDataDiff, "the maps must have one type, not %s", typeList(k.args))
	}
	if c.err != nil {
		return k.args[0]
	}
	return strict(t, k.pos, k.args, func(_ *Env, a []types.Datum) (types.Datum, error) {
		l := []types.Datum{}
		for _, d := range a {
			l = append(l, d.L...)
		}
		if len(l) > maxItems {
			return types.Null, tooMany(k.name)
		}
		return makeMap(*t.Key, l)
	})
}

func (c *compiler) mapFromArrays(k *call) *node {
	x, y := c.arrayArg(k, 0), c.arrayArg(k, 1)
	if c.err != nil {
		return x
	}
	t := mapOf(*x.typ.Elem, *y.typ.Elem)
	c.checkKey(k.pos, *t.Key)
	return strict(t, k.pos, []*node{x, y}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		if len(a[0].L) != len(a[1].L) {
			return types.Null, fault("_LEGACY_ERROR_TEMP_2128", "a map needs as many values (%d) as keys (%d)", len(a[1].L), len(a[0].L))
		}
		l := make([]types.Datum, 0, 2*len(a[0].L))
		for i := range a[0].L {
			l = append(l, a[0].L[i], a[1].L[i])
		}
		return makeMap(*t.Key, l)
	})
}

func (c *compiler) mapFromEntries(k *call) *node {
	x := c.arrayArg(k, 0)
	if c.err != nil {
		return x
	}
	e := *x.typ.Elem
	if e.Kind != Struct || len(e.Fields) != 2 {
		return c.mismatch(k.pos, k.name, 0, "an array of structs of two fields", x.typ)
	}
	t := mapOf(e.Fields[0].Type, e.Fields[1].Type)
	c.checkKey(k.pos, *t.Key)
	return strict(t, k.pos, []*node{x}, func(_ *Env, a []types.Datum) (types.Datum, error) {
		l := make([]types.Datum, 0, 2*len(a[0].L))
		for _, d := range a[0].L {
			if d.Null {
				return types.Null, nil
			}
			l = append(l, d.L...)
		}
		return makeMap(*t.Key, l)
	})
}

// strToMap splits a text into pairs and those into key and value; both separators
// are regular expressions.
func (c *compiler) strToMap(k *call) *node {
	for i, d := range [...]string{"", ",", ":"} {
		if i >= len(k.args) {
			k.args = append(k.args, newConst(k.pos, tString, textDatum(d)))
		}
	}
	pairs, parts := &regexCache{}, &regexCache{}
	return strict(mapOf(tString, tString), k.pos, c.wantAll(k, tString, tString, tString), func(_ *Env, a []types.Datum) (types.Datum, error) {
		p, err := pairs.get(k.name, a[1].B)
		if err != nil {
			return types.Null, err
		}
		q, err := parts.get(k.name, a[2].B)
		if err != nil {
			return types.Null, err
		}
		l := []types.Datum{}
		for _, pair := range p.Split(string(a[0].B), -1) {
			key, value := []byte(pair), types.Null
			if m := q.FindStringIndex(pair); m != nil {
				key, value = []byte(pair[:m[0]]), textDatum(pair[m[1]:])
			}
			l = append(l, types.BytesDatum(bytes.Clone(key)), value)
		}
		return makeMap(tString, l)
	})
}
