package sql

import (
	"strings"
	"time"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// join finds the source rows that a target row matches: by a hash of what ON says
// must be equal, then by ON itself.
type join struct {
	*mergeRows
	width   int // columns of the source
	first   int // the slot of the first
	on      *expr.Expr
	keys    []joinKey
	index   map[string][]int
	matched []bool
	all     []int // every source row, if there is no key
	found   []int
	buf     []byte
}

// joinKey is an equality between a value of the target and one of the source.
type joinKey struct {
	target, source *expr.Expr
	typ            expr.Type
	fromTarget     func(types.Datum) (types.Datum, error)
	fromSource     func(types.Datum) (types.Datum, error)
	null           bool // <=>: NULL matches NULL
	text           string
}

func newJoin(on sqlparse.Expr, target, source, both *expr.Scope, rows *mergeRows) (*join, error) {
	j := &join{mergeRows: rows, width: len(rows.cols), first: len(target.Columns), matched: make([]bool, len(rows.rows))}
	if len(rows.cols) > 0 {
		j.first = rows.cols[0].Slot
	}
	var err error
	if j.on, err = expr.CompileJoin(on, both); err != nil {
		return nil, err
	}
	conjuncts := []sqlparse.Expr{on}
	if l, ok := on.(*sqlparse.Logic); ok && l.Op == "AND" {
		conjuncts = l.Args
	}
	for _, c := range conjuncts {
		if k, ok := newJoinKey(c, target, source); ok {
			j.keys = append(j.keys, k)
		}
	}
	return j, j.build()
}

// newJoinKey reads an equality whose sides are each of one table only, and of types
// whose equality is that of their hashes: not CHARs, whose trailing blanks do not count.
func newJoinKey(e sqlparse.Expr, target, source *expr.Scope) (joinKey, bool) {
	b, ok := e.(*sqlparse.Binary)
	if !ok || b.Op != "=" && b.Op != "<=>" {
		return joinKey{}, false
	}
	for _, sides := range [][2]sqlparse.Expr{{b.L, b.R}, {b.R, b.L}} {
		t, err := expr.Compile(sides[0], target)
		if err != nil {
			continue
		}
		s, err := expr.Compile(sides[1], source)
		if err != nil {
			continue
		}
		common, ok := expr.CommonType(t.Type(), s.Type())
		if !ok || t.Char() > 0 || s.Char() > 0 || !hashable(t.Type(), s.Type()) {
			return joinKey{}, false
		}
		return joinKey{
			target: t, source: s, typ: common, null: b.Op == "<=>", text: sqlparse.Format(sides[0]),
			fromTarget: expr.Converter(t.Type(), common, nil), fromSource: expr.Converter(s.Type(), common, nil),
		}, true
	}
	return joinKey{}, false
}

func hashable(a, b expr.Type) bool {
	integer := func(t expr.Type) bool { return t.Kind >= expr.TinyInt && t.Kind <= expr.BigInt }
	if a.Collation != "" || b.Collation != "" || a.HasMap() {
		return false
	}
	return a.Equal(b) || integer(a) && integer(b)
}

// build puts the source rows under their keys. A key that cannot be computed is left
// to ON, which says so where it is needed.
func (j *join) build() error {
	row := make(expr.Row, j.first+j.width)
	if len(j.keys) == 0 {
		for i := range j.rows {
			j.all = append(j.all, i)
		}
		return nil
	}
	j.index = make(map[string][]int, len(j.rows))
	for i := range j.rows {
		j.set(row, i)
		key, ok, err := j.key(row, false)
		if err != nil {
			return err
		}
		if ok {
			j.index[string(key)] = append(j.index[string(key)], i)
		}
	}
	return nil
}

// key computes the key of a row; not ok if a NULL in it matches nothing.
func (j *join) key(row expr.Row, ofTarget bool) (key []byte, ok bool, err error) {
	j.buf = j.buf[:0]
	for i := range j.keys {
		k := &j.keys[i]
		x, convert := k.source, k.fromSource
		if ofTarget {
			x, convert = k.target, k.fromTarget
		}
		d, err := x.Eval(row)
		if err != nil {
			return nil, false, err
		}
		if d, err = convert(d); err != nil {
			return nil, false, err
		}
		if d.Null && !k.null {
			return nil, false, nil
		}
		j.buf = expr.GroupKey(j.buf, k.typ, d)
	}
	return j.buf, true, nil
}

// matches returns up to two source rows that a target row matches, and marks all
// that it does. row is the target's; its other half is overwritten.
func (j *join) matches(row expr.Row) ([]int, error) {
	candidates := j.all
	if len(j.keys) > 0 {
		key, ok, err := j.key(row, true)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, nil
		}
		candidates = j.index[string(key)]
	}
	j.found = j.found[:0]
	for _, i := range candidates {
		j.set(row, i)
		hit, err := j.on.Test(row)
		if err != nil {
			return nil, err
		}
		if hit {
			j.matched[i] = true
			j.found = append(j.found, i)
		}
	}
	return j.found, nil
}

// set puts a source row beside the target's.
func (j *join) set(row expr.Row, i int) { copy(row[j.first:], j.rows[i]) }

// clear makes the source's half NULL.
func (j *join) clear(row expr.Row) {
	for i := j.first; i < len(row); i++ {
		row[i] = types.Null
	}
}

// keyText shows the key of a target row; "" without keys.
func (j *join) keyText(row expr.Row, zone *time.Location) string {
	var parts []string
	for i := range j.keys {
		if d, err := j.keys[i].target.Eval(row); err == nil {
			parts = append(parts, j.keys[i].text+" = "+valueText(j.keys[i].target.Type(), d, zone))
		}
	}
	return strings.Join(parts, ", ")
}
