package datafile

import (
	"fmt"

	"github.com/parquet-go/parquet-go/format"

	"applier/storage/types"
)

// fileNode is a node of a file's schema.
type fileNode struct {
	e      *schemaElement
	kids   []*fileNode
	maxDef uint8
	maxRep uint8
	leaf   int // number of the column chunk; -1 for a group
}

func (n *fileNode) isGroup() bool { return n.leaf < 0 }

func (n *fileNode) repeated() bool { return n.e.RepetitionType.V == format.Repeated }

func (n *fileNode) kid(name string) *fileNode {
	for _, k := range n.kids {
		if k.e.Name == name {
			return k
		}
	}
	return nil
}

const maxSchemaDepth = 64

// parseSchema builds the tree of a footer's schema and counts its leaves.
func parseSchema(elements []schemaElement) (root *fileNode, leaves int, err error) {
	if len(elements) == 0 {
		return nil, 0, fmt.Errorf("%w: no schema", ErrCorrupt)
	}
	p := schemaParser{rest: elements}
	root, err = p.node(0, 0, 0)
	if err == nil && len(p.rest) > 0 {
		err = fmt.Errorf("%w: %d schema elements outside of the tree", ErrCorrupt, len(p.rest))
	}
	return root, p.leaves, err
}

type schemaParser struct {
	rest   []schemaElement
	leaves int
}

func (p *schemaParser) node(def, rep uint8, depth int) (*fileNode, error) {
	if len(p.rest) == 0 || depth > maxSchemaDepth {
		return nil, fmt.Errorf("%w: schema tree", ErrCorrupt)
	}
	n := &fileNode{e: &p.rest[0], leaf: -1}
	p.rest = p.rest[1:]
	if depth > 0 {
		switch n.e.RepetitionType.V {
		case format.Required:
		case format.Optional:
			def++
		case format.Repeated:
			def++
			rep++
		default:
			return nil, fmt.Errorf("%w: repetition of %q", ErrCorrupt, n.e.Name)
		}
	}
	n.maxDef, n.maxRep = def, rep
	kids := int(n.e.NumChildren.V)
	if n.e.Type.Valid && depth > 0 && kids == 0 {
		n.leaf = p.leaves
		p.leaves++
		return n, nil
	}
	if kids < 0 || kids > len(p.rest) {
		return nil, fmt.Errorf("%w: %q with %d children", ErrCorrupt, n.e.Name, kids)
	}
	for range kids {
		k, err := p.node(def, rep, depth+1)
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, k)
	}
	return n, nil
}

// readNode says how a wanted column, or a part of one, is read from a file.
type readNode struct {
	t       types.Type
	kids    []*readNode
	leaf    *leafPlan // scalars
	first   int       // number of the first leaf below, within the column
	def     uint8     // definition level of a value that is not NULL
	slotDef uint8     // lowest level at which there is a row of this vector
	rep     uint8     // highest repetition level that starts a row of this vector
	elemDef uint8     // LIST, MAP: lowest level at which there is an element
}

// leafPlan says how a column chunk becomes a vector.
type leafPlan struct {
	t       types.Type
	chunk   int
	path    string
	phys    format.Type
	width   int // bytes of a PLAIN value, 0 for variable
	conv    conversion
	unit    int64 // nanoseconds of a stored time unit
	maxDef  uint8
	maxRep  uint8
	slotDef uint8
}

// readColumn is a wanted top-level column; node is nil if the file has none.
type readColumn struct {
	field  types.Field
	node   *readNode
	leaves []*leafPlan
}

func (c *readColumn) nested() bool { return c.node != nil && c.node.leaf == nil }

// planColumn maps a wanted column to the file's column of that name.
func planColumn(f types.Field, root *fileNode) (*readColumn, error) {
	c := &readColumn{field: f}
	if !f.Type.Supported() {
		return nil, fmt.Errorf("%w: column %s of type %s", ErrUnsupported, f.Name, f.Type)
	}
	at := root.kid(f.Name)
	if at == nil {
		return c, nil
	}
	if at.repeated() {
		return nil, fmt.Errorf("%w: column %s is a repeated field without LIST", ErrSchema, f.Name)
	}
	var err error
	c.node, err = c.plan(f.Type, at, f.Name, 0, 0)
	return c, err
}

func (c *readColumn) plan(t types.Type, at *fileNode, path string, slotDef, rep uint8) (*readNode, error) {
	n := &readNode{t: t, first: len(c.leaves), def: at.maxDef, slotDef: slotDef, rep: rep}
	var err error
	switch layout := types.LayoutOf(t); layout {
	case types.LayoutStruct:
		err = c.planStruct(n, at, path)
	case types.LayoutList:
		err = c.planList(n, at, path)
	case types.LayoutMap:
		err = c.planMap(n, at, path)
	default:
		if at.isGroup() {
			return nil, notAs(path, "a group", t)
		}
		n.leaf, err = planLeaf(t, at, path)
		if err == nil {
			n.leaf.slotDef = slotDef
			c.leaves = append(c.leaves, n.leaf)
		}
	}
	return n, err
}

func notAs(path, what string, t types.Type) error {
	return fmt.Errorf("%w: column %s is %s and cannot be read as %s", ErrSchema, path, what, t)
}

// planStruct maps fields by name. A missing field is an error, as in Paimon's
// Java reader: a file has all nested fields of its own schema.
func (c *readColumn) planStruct(n *readNode, at *fileNode, path string) error {
	if !at.isGroup() {
		return notAs(path, "a scalar", n.t)
	}
	for _, f := range n.t.StructFields() {
		kid := at.kid(f.Name)
		if kid == nil {
			return fmt.Errorf("%w: column %s has no field %s", ErrSchema, path, f.Name)
		}
		if kid.repeated() {
			return notAs(path+"."+f.Name, "a repeated field without LIST", f.Type)
		}
		k, err := c.plan(f.Type, kid, path+"."+f.Name, n.slotDef, n.rep)
		if err != nil {
			return err
		}
		n.kids = append(n.kids, k)
	}
	if len(n.kids) == 0 {
		return notAs(path, "a group", n.t)
	}
	return nil
}

// planList accepts lists of three levels and of two, with any names.
// Source: parquet-format LogicalTypes.md, "Backward-compatibility rules".
func (c *readColumn) planList(n *readNode, at *fileNode, path string) error {
	if !at.isGroup() || len(at.kids) != 1 || !at.kids[0].repeated() {
		return notAs(path, "no list", n.t)
	}
	r := at.kids[0]
	elem := r
	if r.isGroup() && len(r.kids) == 1 && !twoLevels(at, r, *n.t.Elem) {
		elem = r.kids[0]
		if elem.repeated() {
			return notAs(path, "a list of repeated fields", n.t)
		}
	}
	n.elemDef = r.maxDef
	kid, err := c.plan(*n.t.Elem, elem, path+".element", r.maxDef, r.maxRep)
	n.kids = []*readNode{kid}
	return err
}

// twoLevels reports that the repeated group r of a list, which has one child, is
// the element itself.
func twoLevels(list, r *fileNode, elem types.Type) bool {
	if r.e.Name == "array" || r.e.Name == list.e.Name+"_tuple" {
		return true
	}
	fields := elem.StructFields()
	return types.LayoutOf(elem) == types.LayoutStruct && !r.kids[0].isGroup() && len(fields) == 1 && fields[0].Name == r.kids[0].e.Name
}

func (c *readColumn) planMap(n *readNode, at *fileNode, path string) error {
	if !at.isGroup() || len(at.kids) != 1 || !at.kids[0].repeated() {
		return notAs(path, "no map", n.t)
	}
	r := at.kids[0]
	key, value := n.t.Key, *n.t.Elem
	if n.t.Kind == types.Multiset {
		key, value = n.t.Elem, types.IntType().NonNull()
	}
	n.elemDef = r.maxDef
	for _, part := range []struct {
		name string
		t    types.Type
	}{{"key", *key}, {"value", value}} {
		kid := r.kid(part.name)
		if kid == nil || kid.repeated() {
			return notAs(path, "a map without "+part.name, n.t)
		}
		k, err := c.plan(part.t, kid, path+"."+part.name, r.maxDef, r.maxRep)
		if err != nil {
			return err
		}
		n.kids = append(n.kids, k)
	}
	return nil
}
