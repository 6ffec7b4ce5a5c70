package query

import (
	"slices"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// equality is a conjunct l = r of a join's condition of which each operand reads one
// side only: rows can meet only if its values are equal.
type equality struct {
	left, right *expr.Expr
	typ         expr.Type
}

// equalities finds those of a condition. Texts of CHAR columns compare without their
// blanks and are left to the condition itself.
func equalities(cond sqlparse.Expr, scope *expr.Scope, left int) []equality {
	var list []equality
	switch cond := cond.(type) {
	case *sqlparse.Logic:
		if cond.Op == "AND" {
			for _, a := range cond.Args {
				list = append(list, equalities(a, scope, left)...)
			}
		}
	case *sqlparse.Binary:
		if cond.Op != "=" {
			return nil
		}
		l, err1 := expr.Compile(cond.L, scope)
		r, err2 := expr.Compile(cond.R, scope)
		if err1 != nil || err2 != nil || usesChar(scope, l) || usesChar(scope, r) {
			return nil
		}
		if side(l, left) == 1 && side(r, left) == 0 {
			l, r = r, l
		}
		t, ok := expr.CommonType(l.Type(), r.Type())
		if ok && side(l, left) == 0 && side(r, left) == 1 {
			list = append(list, equality{l, r, t})
		}
	}
	return list
}

// side tells which side's columns an expression reads: 0 left, 1 right, -1 both or none.
func side(x *expr.Expr, left int) int {
	s := x.Slots()
	switch {
	case len(s) == 0:
		return -1
	case s[len(s)-1] < left:
		return 0
	case s[0] >= left:
		return 1
	}
	return -1
}

func usesChar(scope *expr.Scope, x *expr.Expr) bool {
	return slices.ContainsFunc(scope.Columns, func(c expr.Column) bool {
		return c.Type.Char && slices.Contains(x.Slots(), c.Slot)
	})
}

// joinKey appends the key of a row on one side; ok is false if a value is NULL, which
// equals nothing.
func (j *joiner) joinKey(dst []byte, row expr.Row, outer []expr.Row, right bool) (key []byte, ok bool, err error) {
	for _, e := range j.equal {
		x := e.left
		if right {
			x = e.right
		}
		d, err := x.EvalOuter(row, outer)
		if err == nil {
			d, err = expr.Converter(x.Type(), e.typ, j.env)(d)
		}
		if err != nil || d.Null {
			return dst, false, expr.Place(x.Pos(), err)
		}
		dst = expr.GroupKey(dst, e.typ, d)
	}
	return dst, true, nil
}

// buckets groups the rows of the right side by their keys.
func (j *joiner) buckets(rows []expr.Row, outer []expr.Row) (map[string][]int, error) {
	m := make(map[string][]int, len(rows))
	wide := make(expr.Row, j.left+j.right)
	for i := range wide {
		wide[i] = types.Null
	}
	for i, row := range rows {
		copy(wide[j.left:], row)
		key, ok, err := j.joinKey(nil, wide, outer, true)
		if err != nil {
			return nil, err
		}
		if ok {
			m[string(key)] = append(m[string(key)], i)
		}
	}
	return m, nil
}
