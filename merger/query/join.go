package query

import (
	"slices"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/types"
)

// join compiles a join. The right side is kept in memory, by the values that its
// condition asks to be equal, if there are any.
func (b *builder) join(p *Plan, j *sqlparse.Join, around *expr.Scope) (*relation, error) {
	l, err := b.from(p, j.L, around)
	if err != nil {
		return nil, err
	}
	r, err := b.from(p, j.R, around)
	if err != nil {
		return nil, err
	}
	left, right := width(l.cols), width(r.cols)
	out := &relation{cols: slices.Clone(l.cols), use: func(slot int) {
		if slot < left {
			l.used(slot)
		} else {
			r.used(slot - left)
		}
	}}
	for _, c := range r.cols {
		c.Slot += left
		out.cols = append(out.cols, c)
	}
	on, equal, err := b.joinCondition(p, j, l, out, around)
	if err != nil {
		return nil, err
	}
	jn := &joiner{kind: j.Kind, l: l.scan, r: r.scan, left: left, right: right, on: on, equal: equal, env: b.env}
	out.scan = jn.scan
	if j.Kind == "SEMI" || j.Kind == "ANTI" {
		out.cols = l.cols
	}
	return out, nil
}

// width is the number of slots of columns.
func width(cols []expr.Column) int {
	n := 0
	for _, c := range cols {
		n = max(n, c.Slot+1)
	}
	return n
}

// joinCondition compiles ON, USING or NATURAL; nil means always. USING hides the
// right side's column. The equalities are a part of the condition.
func (b *builder) joinCondition(p *Plan, j *sqlparse.Join, l, out *relation, around *expr.Scope) (*expr.Expr, []equality, error) {
	using := j.Using
	if j.Natural {
		for _, c := range l.cols {
			if slices.ContainsFunc(out.cols[len(l.cols):], func(o expr.Column) bool { return sameName(o.Name, c.Name) }) {
				using = append(using, sqlparse.Ident{Pos: j.Pos, Name: c.Name})
			}
		}
	}
	cond := j.On
	if len(using) > 0 {
		var args []sqlparse.Expr
		for _, u := range using {
			args = append(args, &sqlparse.Binary{Pos: u.Pos, Op: "=", L: slotRef(u, 0), R: slotRef(u, 1)})
		}
		cond = args[0]
		if len(args) > 1 {
			cond = &sqlparse.Logic{Pos: j.Pos, Op: "AND", Args: args}
		}
	}
	if cond == nil {
		return nil, nil, nil
	}
	scope := b.scope(p, out.cols, around)
	scope.Used = out.used
	if len(using) > 0 {
		scope.Columns = sided(out.cols, len(l.cols))
	}
	x, err := expr.CompileJoin(cond, scope)
	if err != nil {
		return nil, nil, err
	}
	equal := equalities(cond, scope, width(l.cols))
	for i := len(l.cols); i < len(out.cols); i++ {
		if slices.ContainsFunc(using, func(u sqlparse.Ident) bool { return sameName(u.Name, out.cols[i].Name) }) {
			out.cols[i].Hidden = true
			out.cols[i].Name = ""
		}
	}
	return x, equal, nil
}

// sides qualify the columns of a USING condition.
var sides = [...]string{"left side", "right side"}

func slotRef(u sqlparse.Ident, side int) sqlparse.Expr {
	return &sqlparse.ColumnRef{Name: sqlparse.Name{Parts: []sqlparse.Ident{{Pos: u.Pos, Name: sides[side]}, u}}}
}

func sided(cols []expr.Column, left int) []expr.Column {
	cols = slices.Clone(cols)
	for i := range cols {
		side := 0
		if i >= left {
			side = 1
		}
		cols[i].Qualifier = []string{sides[side]}
	}
	return cols
}

// joiner runs a join.
type joiner struct {
	kind        string
	l, r        scan
	left, right int
	on          *expr.Expr
	equal       []equality
	env         *expr.Env
}

func (j *joiner) scan(r *run, yield func(expr.Row) error) error {
	rows, err := collect(j.r, r, 0)
	if err != nil {
		return err
	}
	matched := make([]bool, len(rows))
	row := make(expr.Row, j.left+j.right)
	all := make([]int, len(rows))
	for i := range all {
		all[i] = i
	}
	var byKey map[string][]int
	if len(j.equal) > 0 {
		if byKey, err = j.buckets(rows, r.outer); err != nil {
			return err
		}
	}
	var key []byte
	err = j.l(r, func(l expr.Row) error {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		copy(row, l)
		meets := all
		if byKey != nil {
			var ok bool
			var err error
			if key, ok, err = j.joinKey(key[:0], row, r.outer, false); err != nil {
				return err
			}
			if meets = nil; ok {
				meets = byKey[string(key)]
			}
		}
		return j.leftRow(r, row, rows, meets, matched, yield)
	})
	if err != nil || j.kind != "RIGHT" && j.kind != "FULL" {
		return err
	}
	for i, right := range rows {
		if matched[i] {
			continue
		}
		setNull(row[:j.left])
		copy(row[j.left:], right)
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// leftRow joins one row of the left side, which is in row, with those rows of the
// right side that it may meet.
func (j *joiner) leftRow(r *run, row expr.Row, rows []expr.Row, meets []int, matched []bool, yield func(expr.Row) error) error {
	hit := false
	for _, i := range meets {
		copy(row[j.left:], rows[i])
		if j.on != nil {
			d, err := j.on.EvalOuter(row, r.outer)
			if err != nil {
				return err
			}
			if d.Null || d.I == 0 {
				continue
			}
		}
		hit, matched[i] = true, true
		switch j.kind {
		case "SEMI":
			return yield(row[:j.left])
		case "ANTI":
			return nil
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	switch {
	case hit:
		return nil
	case j.kind == "ANTI":
		return yield(row[:j.left])
	case j.kind == "LEFT" || j.kind == "FULL":
		setNull(row[j.left:])
		return yield(row)
	}
	return nil
}

func setNull(row expr.Row) {
	for i := range row {
		row[i] = types.Null
	}
}
