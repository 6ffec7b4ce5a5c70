package decode

import (
	"slices"

	"applier/storage/types"
)

// Values with children. JSON has two forms for them, and producers use both:
//
//   - ARRAY is an array; a NULL element needs a nullable element type.
//   - ROW is an object. Fields are found by name; one that is missing is NULL,
//     members that are no field are ignored (and reported like unknown columns).
//   - MAP and MULTISET are objects, if their keys are texts, or arrays of pairs,
//     as Kafka Connect's JsonConverter writes maps with other keys. Without a
//     schema an object's names may be numbers, dates and so on in text form. The
//     values of a MULTISET are how often each element occurs.
//
// A map key is never NULL and occurs once: Parquet has no place for the one, and
// readers disagree about the other.

var (
	errNullPart   = &fault{ClassNotNull, "NULL for a NOT NULL element or field"}
	errNullKey    = &fault{ClassNotNull, "a map key is NULL"}
	errTwiceKey   = &fault{ClassType, "a map has a key twice"}
	errPair       = &fault{ClassType, "an entry of the map is not a pair of key and value"}
	errMultiplier = &fault{ClassRange, "an element of a multiset occurs less than once"}
)

// nested is what the converter of an ARRAY, MAP, MULTISET or ROW has of its own.
type nested struct {
	s    scanner // its value; children have their own
	tok  token
	kids []conv   // ARRAY: element; MAP, MULTISET: key and value; ROW: empty
	row  *members // ROW: slot ids are field numbers
	path string
}

// newNested builds the converter of a type with children. path names the value
// in reports of members that no field takes.
func newNested(c *conv, n *node, without source, path string) {
	x := &nested{path: path}
	c.nest = x
	kid := func(t types.Type, n *node, name string) conv {
		k, _ := newConv(c.env, t, n, without, path+"."+name)
		return k
	}
	n = orEmpty(n)
	switch c.typ.Kind {
	case types.Array:
		c.fn = toArray
		x.kids = []conv{kid(*c.typ.Elem, n.items, "element")}
	case types.Map:
		c.fn = toMap
		x.kids = []conv{kid(*c.typ.Key, n.keys, "key"), kid(*c.typ.Elem, n.values, "value")}
	case types.Multiset:
		c.fn = toMap
		x.kids = []conv{kid(*c.typ.Elem, n.keys, "element"), kid(types.IntType().NonNull(), n.values, "count")}
	case types.Row:
		c.fn = toRow
		x.row = &members{}
		if report := c.env.unknown; report != nil {
			x.row.unknown = func(name string) { report(path + "." + name) }
		}
		for i, f := range c.typ.Fields {
			x.row.add(f.Name, i).conv = kid(f.Type, n.member(f.Name), f.Name)
		}
	}
}

// orEmpty lets a schema that is missing or of another form have no children.
func orEmpty(n *node) *node {
	if n == nil {
		return &node{}
	}
	return n
}

// child converts one value of an element or field.
func (c *conv) child(t *token, v *types.Vector) *fault {
	if t.kind != kindNull {
		return c.fn(c, t, v)
	}
	if c.typ.NotNull {
		return errNullPart
	}
	v.AppendNull()
	return nil
}

// enter consumes the opening bracket of an array.
func (s *scanner) enter() bool {
	if s.peek() != '[' {
		return s.fail(s.p, badValue)
	}
	s.p++
	s.depth++
	return true
}

// element moves to the next element of an array, and past its end.
func (s *scanner) element(first bool) bool {
	switch c := s.peek(); {
	case c == ']':
		s.p++
		s.depth--
		return false
	case first:
		return s.bad == 0
	case c == ',':
		s.p++
		return s.bad == 0
	}
	return s.fail(s.p, badComma)
}

func toArray(c *conv, t *token, v *types.Vector) *fault {
	if t.kind != kindArray {
		return errForm
	}
	x := c.nest
	s := &x.s
	s.reset(t.raw) // it was validated as a whole
	s.enter()
	for first := true; s.element(first); first = false {
		if !s.token(&x.tok) {
			return errForm
		}
		if f := x.kids[0].child(&x.tok, v.Child[0]); f != nil {
			return f
		}
	}
	v.EndRow()
	return nil
}

func toRow(c *conv, t *token, v *types.Vector) *fault {
	if t.kind != kindObject {
		return errForm
	}
	x := c.nest
	s := &x.s
	s.reset(t.raw)
	for sl := x.row.open(s); sl != nil; sl = x.row.next(s) {
		if sl.id < 0 {
			if !s.skip() {
				return errForm
			}
			continue
		}
		if !s.token(&x.tok) {
			return errForm
		}
		if f := sl.conv.child(&x.tok, v.Child[sl.id]); f != nil {
			return f
		}
	}
	if s.bad != 0 {
		return errTwiceMember
	}
	for i, kid := range v.Child {
		if kid.Len() > v.Len() {
			continue
		}
		if c.typ.Fields[i].Type.NotNull {
			return errNullPart
		}
		kid.AppendNull()
	}
	v.EndRow()
	return nil
}

var errTwiceMember = &fault{ClassSyntax, "an object has a member twice"}

func toMap(c *conv, t *token, v *types.Vector) *fault {
	from := v.Child[0].Len()
	var f *fault
	switch t.kind {
	case kindObject:
		f = c.entriesOfObject(t, v)
	case kindArray:
		f = c.entriesOfPairs(t, v)
	default:
		return errForm
	}
	if f != nil {
		return f
	}
	if c.typ.Kind == types.Multiset {
		for _, n := range v.Child[1].I32[from:] {
			if n < 1 {
				return errMultiplier
			}
		}
	}
	if repeats(v.Child[0], from) {
		return errTwiceKey
	}
	v.EndRow()
	return nil
}

// entriesOfObject reads {"key":value, …}.
func (c *conv) entriesOfObject(t *token, v *types.Vector) *fault {
	x := c.nest
	s := &x.s
	s.reset(t.raw)
	s.begin()
	for first := true; s.more(first); first = false {
		name, _, ok := s.name()
		if !ok {
			return errForm
		}
		// The name is converted before the scanner goes on and reuses its buffer.
		key := token{kind: kindString, raw: name, text: name}
		if f := x.kids[0].fn(&x.kids[0], &key, v.Child[0]); f != nil {
			return f
		}
		if !s.token(&x.tok) {
			return errForm
		}
		if f := x.kids[1].child(&x.tok, v.Child[1]); f != nil {
			return f
		}
	}
	return nil
}

// entriesOfPairs reads [[key, value], …].
func (c *conv) entriesOfPairs(t *token, v *types.Vector) *fault {
	x := c.nest
	s := &x.s
	s.reset(t.raw)
	s.enter()
	for first := true; s.element(first); first = false {
		if s.peek() != '[' {
			return errPair
		}
		s.enter()
		part := 0
		for begin := true; s.element(begin); begin = false {
			if part == 2 || !s.token(&x.tok) {
				return errPair
			}
			if part == 0 && x.tok.kind == kindNull {
				return errNullKey
			}
			if f := x.kids[part].child(&x.tok, v.Child[part]); f != nil {
				return f
			}
			part++
		}
		if part != 2 {
			return errPair
		}
	}
	return nil
}

// fewKeys is how many keys are compared each with each; more are sorted.
const fewKeys = 8

// repeats reports whether two of the rows from on are equal.
func repeats(v *types.Vector, from int) bool {
	n := v.Len()
	if n-from <= fewKeys {
		for i := from; i < n; i++ {
			for j := from; j < i; j++ {
				if types.CompareCells(v, i, v, j) == 0 {
					return true
				}
			}
		}
		return false
	}
	at := make([]int, n-from)
	for i := range at {
		at[i] = from + i
	}
	compare := func(i, j int) int { return types.CompareCells(v, i, v, j) }
	slices.SortFunc(at, compare)
	for i := 1; i < len(at); i++ {
		if compare(at[i-1], at[i]) == 0 {
			return true
		}
	}
	return false
}
