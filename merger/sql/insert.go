package sql

import (
	"context"
	"slices"
	"strings"

	"applier/merger/expr"
	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// insertion is a compiled INSERT.
type insertion struct {
	tg   *target
	plan *query.Plan
	// values are what is stored in the columns, out of a row of the source; nil for
	// columns that get none.
	values []*expr.Expr
	from   []int // the source column of each
	fixed  []*types.Datum
	// byDefault are the places of the keyword DEFAULT: row and source column.
	byDefault map[[2]int]sqlparse.Pos
}

func (r *run) insert(ctx context.Context, n *sqlparse.Insert, tg *target, e *editor) error {
	e.op = paimon.OperationWrite
	ins, err := r.compileInsert(ctx, n, tg)
	if err != nil {
		return err
	}
	if n.Overwrite {
		if err := ins.overwrite(ctx, n, e); err != nil {
			return err
		}
	} else {
		e.appends = tg.t.Buckets() == 0 && !r.reads
	}
	at := 0
	return ins.plan.Run(ctx, func(row expr.Row) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		out, err := ins.row(at, row, n.Pos)
		if err != nil {
			return err
		}
		at++
		return e.insert(ctx, out)
	})
}

func (r *run) compileInsert(ctx context.Context, n *sqlparse.Insert, tg *target) (*insertion, error) {
	ins := &insertion{tg: tg, values: make([]*expr.Expr, len(tg.Fields)), from: make([]int, len(tg.Fields)), fixed: make([]*types.Datum, len(tg.Fields))}
	q := *n.Source
	q.With = append(slices.Clip(n.With), q.With...)
	q.Body, ins.byDefault = withoutDefaults(q.Body)
	if err := ins.partition(n, r); err != nil {
		return nil, err
	}
	var err error
	if ins.plan, err = query.Compile(ctx, &q, r, r.env); err != nil {
		return nil, err
	}
	cols, err := ins.columns(n)
	if err != nil {
		return nil, err
	}
	scope := &expr.Scope{Env: r.env}
	for i, c := range ins.plan.Columns() {
		scope.Columns = append(scope.Columns, expr.Column{Name: "c" + itoa(i), Type: c.Type, Slot: i})
	}
	for i, c := range cols {
		pos := cellPosition(n, i)
		ref := &sqlparse.ColumnRef{Name: sqlparse.Name{Parts: []sqlparse.Ident{{Pos: pos, Name: "c" + itoa(i)}}}}
		x, err := expr.Compile(ref, scope)
		if err != nil {
			return nil, err
		}
		if err := sameShape(x.Type(), tg.Fields[c].Type, tg.Fields[c].Name, pos); err != nil {
			return nil, err
		}
		t := tg.Fields[c].Type
		t.NotNull = false // see row: DEFAULT may stand for the NULL
		if x, err = expr.AssignmentCast(x, tg.Fields[c].Name, t); err != nil {
			return nil, err
		}
		ins.values[c], ins.from[c] = x, i
	}
	for at, pos := range ins.byDefault {
		if _, err := tg.Omitted(cols[at[1]], pos); err != nil {
			return nil, err
		}
	}
	return ins, nil
}

// sameShape refuses structs with more fields than the column has: INSERT loses
// nothing silently.
func sameShape(from expr.Type, to types.Type, path string, pos sqlparse.Pos) error {
	switch {
	case from.Kind == expr.Struct && to.Kind == types.Row:
		if len(from.Fields) > len(to.Fields) {
			return fail(pos, "INCOMPATIBLE_DATA_FOR_TABLE.EXTRA_STRUCT_FIELDS", "the struct for %s has %d fields, the column has %d", path, len(from.Fields), len(to.Fields))
		}
		for _, f := range from.Fields {
			for _, o := range to.Fields {
				if !sameName(f.Name, o.Name) {
					continue
				}
				if err := sameShape(f.Type, o.Type, path+"."+o.Name, pos); err != nil {
					return err
				}
			}
		}
	case from.Kind == expr.Array && to.Kind == types.Array, from.Kind == expr.Map && to.Kind == types.Map:
		return sameShape(*from.Elem, *to.Elem, path+".element", pos)
	}
	return nil
}

// withoutDefaults puts NULL in the place of the keyword DEFAULT and tells where it
// was.
func withoutDefaults(body sqlparse.QueryBody) (sqlparse.QueryBody, map[[2]int]sqlparse.Pos) {
	v, ok := body.(*sqlparse.Values)
	if !ok {
		return body, nil
	}
	at := map[[2]int]sqlparse.Pos{}
	c := &sqlparse.Values{Pos: v.Pos}
	for i, row := range v.Rows {
		row = slices.Clone(row)
		for k, x := range row {
			if _, ok := x.(*sqlparse.DefaultExpr); ok {
				row[k] = &sqlparse.NullLit{Pos: x.Position()}
				at[[2]int{i, k}] = x.Position()
			}
		}
		c.Rows = append(c.Rows, row)
	}
	return c, at
}

// cellPosition is where the values of a source column begin.
func cellPosition(n *sqlparse.Insert, i int) sqlparse.Pos {
	switch b := n.Source.Body.(type) {
	case *sqlparse.Values:
		if len(b.Rows) > 0 && i < len(b.Rows[0]) {
			return b.Rows[0][i].Position()
		}
	case *sqlparse.Select:
		if i < len(b.Items) {
			return b.Items[i].Position()
		}
	}
	return n.Source.Pos
}

// partition evaluates the fixed values of PARTITION (p = 'a').
func (ins *insertion) partition(n *sqlparse.Insert, r *run) error {
	for _, p := range n.Partition {
		c, err := ins.tg.partitionColumn(p.Column)
		if err != nil {
			return err
		}
		if p.Value == nil {
			continue
		}
		d, err := r.constant(p.Value, ins.tg.Fields[c])
		if err != nil {
			return err
		}
		d = ins.tg.Defaulted(c, d)
		ins.fixed[c] = &d
	}
	return nil
}

func (tg *target) partitionColumn(name sqlparse.Ident) (int, error) {
	c := tg.Column(name.Name)
	if c < 0 || !slices.Contains(tg.t.Schema().PartitionKeys, tg.Fields[c].Name) {
		return 0, fail(name.Pos, "NON_PARTITION_COLUMN", "%s is no partition column of table %s", name.Name, tg.name)
	}
	return c, nil
}

// constant evaluates an expression without columns as a value of a column.
func (r *run) constant(e sqlparse.Expr, f types.Field) (types.Datum, error) {
	x, err := expr.Compile(e, &expr.Scope{Env: r.env})
	if err != nil {
		return types.Null, err
	}
	if x, err = expr.AssignmentCast(x, f.Name, f.Type); err != nil {
		return types.Null, err
	}
	return x.Eval(nil)
}

// columns returns the table's column for each of the source's.
func (ins *insertion) columns(n *sqlparse.Insert) ([]int, error) {
	tg, have := ins.tg, len(ins.plan.Columns())
	var cols []int
	add := func(name string, pos sqlparse.Pos) error {
		c, _, err := tg.Resolve(sqlparse.Name{Parts: []sqlparse.Ident{{Pos: pos, Name: name}}})
		switch {
		case err != nil:
			return err
		case slices.Contains(cols, c) || ins.fixed[c] != nil:
			return fail(pos, ClassColumnTwice, "column %s is given twice", name)
		}
		cols = append(cols, c)
		return nil
	}
	switch {
	case n.ByName:
		for _, c := range ins.plan.Columns() {
			if err := add(c.Name, n.Source.Pos); err != nil {
				return nil, err
			}
		}
	case n.Columns != nil:
		for _, c := range n.Columns {
			if err := add(c.Name, c.Pos); err != nil {
				return nil, err
			}
		}
	default:
		for i := range tg.Fields {
			if ins.fixed[i] == nil {
				cols = append(cols, i)
			}
		}
	}
	if len(cols) != have {
		kind := ".TOO_MANY_DATA_COLUMNS"
		if have < len(cols) {
			kind = ".NOT_ENOUGH_DATA_COLUMNS"
		}
		return nil, fail(n.Source.Pos, ClassArity+kind, "table %s is given %d values for %d columns", tg.name, have, len(cols))
	}
	return cols, nil
}

// row makes the row that is stored out of row number at of the source.
func (ins *insertion) row(at int, row expr.Row, pos sqlparse.Pos) ([]types.Datum, error) {
	tg := ins.tg
	out := make([]types.Datum, len(tg.Fields))
	for c := range out {
		var err error
		x := ins.values[c]
		switch {
		case ins.fixed[c] != nil:
			out[c] = *ins.fixed[c]
			continue
		case x == nil:
			out[c], err = tg.Omitted(c, pos)
		default:
			if cell, ok := ins.byDefault[[2]int{at, ins.from[c]}]; ok {
				out[c], err = tg.Omitted(c, cell)
				break
			}
			if out[c], err = x.Eval(row); err == nil && out[c].Null {
				if tg.Fields[c].Type.NotNull {
					return nil, &expr.Error{Pos: x.Pos(), Class: expr.ClassNotNull, Message: "NULL for column " + tg.Fields[c].Name + ", which is NOT NULL"}
				}
				out[c] = tg.Defaulted(c, out[c])
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// overwrite takes out what INSERT OVERWRITE replaces: the partitions that it names,
// or the whole table.
func (ins *insertion) overwrite(ctx context.Context, n *sqlparse.Insert, e *editor) error {
	e.op, e.force, e.overwrite = paimon.OperationOverwrite, true, true
	return e.dropPartitions(ctx, func(values []types.Datum) (bool, error) {
		for i, c := range ins.tg.partitionColumns() {
			if f := ins.fixed[c]; f != nil && !sameValue(ins.tg.Fields[c].Type, *f, values[i]) {
				return false, nil
			}
		}
		return true, nil
	})
}

// partitionColumns are the positions of the partition columns in the order of the
// keys.
func (tg *target) partitionColumns() []int {
	var cols []int
	for _, k := range tg.t.Schema().PartitionKeys {
		cols = append(cols, tg.t.Schema().Column(k))
	}
	return cols
}

// dropPartitions takes out the files of the partitions that which chooses by their
// values; a table without partitions is one.
func (e *editor) dropPartitions(ctx context.Context, which func(values []types.Datum) (bool, error)) error {
	files, err := e.tg.t.Files(ctx, e.tg.st, nil)
	if err != nil {
		return err
	}
	vectors, err := e.tg.t.LiveVectors(e.tg.st.Index)
	if err != nil {
		return err
	}
	chosen := map[string]bool{}
	var left []manifest.Entry
	for i := range files {
		p := string(files[i].Partition)
		ok, known := chosen[p]
		if !known {
			values, err := binrow.Decode(e.tg.t.Schema().PartitionTypes(), files[i].Partition)
			if err != nil {
				return err
			}
			if ok, err = which(values); err != nil {
				return err
			}
			chosen[p] = ok
		}
		if ok {
			e.drop(&files[i])
			e.deleted += files[i].File.Rows
			if v, ok := vectors[paimon.KeyOf(&files[i])]; ok {
				e.deleted -= max(v.At.Cardinality, 0) // those were deleted before
			}
		} else {
			left = append(left, files[i])
		}
	}
	if e.buckets != nil { // a partition that is written anew may have another number of them
		e.buckets = paimon.NewBucketStates(left)
	}
	return nil
}

// truncate is TRUNCATE TABLE, perhaps of some partitions only.
func (r *run) truncate(ctx context.Context, n *sqlparse.TruncateTable, tg *target, e *editor) error {
	e.op, e.overwrite, e.force = paimon.OperationTruncate, true, true
	return e.dropListed(ctx, r, n.Partition)
}

// dropListed takes out the partitions with the given values.
func (e *editor) dropListed(ctx context.Context, r *run, list []sqlparse.PartitionValue) error {
	tg := e.tg
	want := map[int]types.Datum{}
	for _, p := range list {
		c, err := tg.partitionColumn(p.Column)
		if err != nil {
			return err
		}
		if p.Value == nil {
			return fail(p.Pos, sqlparse.ClassSyntax, "partition column %s has no value", p.Column.Name)
		}
		if want[c], err = r.constant(p.Value, tg.Fields[c]); err != nil {
			return err
		}
	}
	return e.dropPartitions(ctx, func(values []types.Datum) (bool, error) {
		for i, c := range tg.partitionColumns() {
			if w, ok := want[c]; ok && !sameValue(tg.Fields[c].Type, w, values[i]) {
				return false, nil
			}
		}
		return true, nil
	})
}

func sameName(a, b string) bool { return strings.EqualFold(a, b) }
