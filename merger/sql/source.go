package sql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"applier/merger/assign"
	"applier/merger/expr"
	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/types"
)

// pinned is the snapshot of a table that a statement reads.
type pinned struct {
	t  *paimon.Table
	st *paimon.State
}

// Table finds what a name in a query stands for: it makes run a query.Source.
func (r *run) Table(ctx context.Context, ref *sqlparse.TableRef) (*query.Relation, error) {
	if len(ref.Table.Parts) == 1 {
		if v := r.views[strings.ToLower(ref.Table.Last())]; v != nil {
			return &query.Relation{Name: []string{v.name}, View: v.query}, nil
		}
	}
	name, err := r.table(ref.Table)
	if err != nil {
		return nil, err
	}
	if base, what, ok := strings.Cut(name.Table, "$"); ok {
		return r.metadataTable(ctx, ref, catalog.Name{Database: name.Database, Table: base}, what)
	}
	p, err := r.pin(ctx, ref, name)
	if err != nil {
		return nil, err
	}
	return r.relation(name, p), nil
}

// pin opens a table at the version that is asked for.
func (r *run) pin(ctx context.Context, ref *sqlparse.TableRef, name catalog.Name) (*pinned, error) {
	r.reads = true
	v, travels, err := r.version(ref)
	if err != nil {
		return nil, err
	}
	if p := r.pinned[name]; p != nil && !travels {
		return p, nil
	}
	table, err := r.o.Catalog.Open(ctx, name, paimon.Read)
	if err != nil {
		return nil, r.notFound(ctx, ref.Table, name, err)
	}
	t, st, err := table.Version(ctx, v)
	if errors.Is(err, paimon.ErrNoVersion) && v.Tag != "" { // a number in quotes is a snapshot if no tag has that name
		if id, e := strconv.ParseInt(v.Tag, 10, 64); e == nil && id > 0 {
			t, st, err = table.Version(ctx, paimon.Version{Snapshot: id})
		}
	}
	if errors.Is(err, paimon.ErrNoVersion) {
		return nil, fail(ref.Pos, ClassNoVersion, "table %s: %v", name, err)
	}
	if err != nil {
		return nil, err
	}
	p := &pinned{t, st}
	if !travels {
		r.pinned[name] = p
	}
	return p, nil
}

// notFound gives the error of a missing table its place and the nearest name.
func (r *run) notFound(ctx context.Context, n sqlparse.Name, name catalog.Name, err error) error {
	if !errors.Is(err, catalog.ErrNoTable) && !errors.Is(err, catalog.ErrBadName) {
		return err
	}
	hint := ""
	if tables, e := r.o.Catalog.Tables(ctx, name.Database); e != nil {
		hint = ": there is no database " + name.Database
	} else if near := sqlparse.Nearest(name.Table, tables); near != "" {
		hint = ", did you mean " + near + "?"
	}
	return fail(n.Position(), ClassNoTable, "there is no table or view %s%s", n, hint)
}

// version evaluates VERSION AS OF and TIMESTAMP AS OF.
func (r *run) version(ref *sqlparse.TableRef) (v paimon.Version, travels bool, err error) {
	e := ref.Version
	if e == nil {
		e = ref.Timestamp
	}
	if e == nil {
		return v, false, nil
	}
	x, err := expr.Compile(e, &expr.Scope{Env: r.env})
	if err != nil {
		return v, true, err
	}
	d, err := x.Eval(nil)
	if err != nil {
		return v, true, err
	}
	kind := x.Type().Kind
	switch {
	case d.Null:
		return v, true, fail(e.Position(), "INVALID_TIME_TRAVEL_SPEC", "a version cannot be NULL")
	case ref.Timestamp != nil:
		x, err = expr.AssignmentCast(x, "the time", types.TimestampLTZType(6))
		if err != nil {
			return v, true, err
		}
		if d, err = x.Eval(nil); err != nil {
			return v, true, err
		}
		v.At = time.UnixMicro(d.I)
	case kind == expr.String:
		v.Tag = string(d.B)
	case kind >= expr.TinyInt && kind <= expr.BigInt && d.I > 0:
		v.Snapshot = d.I
	default:
		return v, true, fail(e.Position(), "INVALID_TIME_TRAVEL_SPEC", "a version is the number of a snapshot or the name of a tag")
	}
	return v, true, nil
}

// tableColumns are the columns of a table in a scope, those of row tracking hidden
// at the end, and the numbers to read for their slots.
func tableColumns(qualifier []string, t *paimon.Table) (cols []expr.Column, read []int) {
	for i, f := range t.Schema().Fields {
		if c, ok := expr.TableColumn(qualifier, f, i); ok {
			cols = append(cols, c)
		}
		read = append(read, i)
	}
	if t.Options().RowTracking {
		for _, n := range []int{paimon.RowIDColumn, paimon.SequenceColumn} {
			f, err := t.ColumnField(n)
			if c, ok := expr.TableColumn(qualifier, f, len(read)); ok && err == nil {
				c.Hidden = true
				cols, read = append(cols, c), append(read, n)
			}
		}
	}
	return cols, read
}

// relation is a table as SELECT sees it.
func (r *run) relation(name catalog.Name, p *pinned) *query.Relation {
	qualifier := []string{r.o.Name, name.Database, name.Table}
	cols, read := tableColumns(qualifier, p.t)
	cols, asText := withTexts(cols, qualifier, p.t.Schema().Fields)
	var where []paimon.Condition
	rel := &query.Relation{Name: qualifier, Columns: cols}
	rel.Narrow = func(e sqlparse.Expr, qualifier []string) {
		where = pushed(e, &assign.Target{Name: name.String(), Qualifier: qualifier, Fields: p.t.Schema().Fields}, r.env)
	}
	rel.Explain = func(ctx context.Context, need []int) (string, error) { return p.explain(ctx, name, need, where) }
	rel.Scan = func(ctx context.Context, need []int, yield func(expr.Row) error) error {
		if len(need) == 0 {
			need = []int{0} // rows are counted, whatever is in them
		}
		columns := make([]int, len(need))
		for k, slot := range need {
			columns[k] = read[slot]
		}
		texts := slices.DeleteFunc(slices.Clone(asText), func(slot int) bool { return !slices.Contains(need, slot) })
		row, seen := make(expr.Row, len(read)), r.reading(p.st)
		return p.t.Scan(ctx, p.st, paimon.ScanOptions{Columns: columns, Where: where}, func(b *types.Batch) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			b = keep(b)
			seen.add(b.Len())
			for i := range b.Len() {
				for k, v := range b.Cols {
					row[need[k]] = v.Datum(i)
				}
				for _, k := range texts {
					if !row[k].Null {
						row[k] = types.BytesDatum(types.AppendText(nil, p.t.Schema().Fields[k].Type, row[k]))
					}
				}
				if err := yield(row); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return rel
}

// explain says which files and columns of a table a query reads.
func (p *pinned) explain(ctx context.Context, name catalog.Name, need []int, where []paimon.Condition) (string, error) {
	all, err := p.t.Files(ctx, p.st, nil)
	if err != nil {
		return "", err
	}
	files, err := p.t.Selected(ctx, p.st, where)
	if err != nil {
		return "", err
	}
	var columns, names []string
	_, read := tableColumns(nil, p.t)
	for _, slot := range need {
		f, err := p.t.ColumnField(read[slot])
		if err != nil {
			return "", err
		}
		columns = append(columns, f.Name)
	}
	for i := range files {
		names = append(names, "\n  file "+files[i].File.Name+": "+strconv.FormatInt(files[i].File.Rows, 10)+" rows")
	}
	snapshot := int64(0)
	if p.st.Snapshot != nil {
		snapshot = p.st.Snapshot.ID
	}
	return fmt.Sprintf("reads table %s, snapshot %d: %d of %d files, columns %s%s", name, snapshot, len(files), len(all),
		cmp.Or(strings.Join(columns, ", "), "none (counts rows)"), strings.Join(names, "")), nil
}

// withTexts adds the columns of types that expressions do not have, as MULTISET: SELECT
// shows them as the text that `applier cat` prints. texts are their places.
func withTexts(cols []expr.Column, qualifier []string, fields []types.Field) (all []expr.Column, texts []int) {
	for i, f := range fields {
		if _, ok := expr.FromStorage(f.Type); !ok {
			cols = slices.Insert(cols, min(i, len(cols)), expr.Column{Qualifier: qualifier, Name: f.Name, Type: expr.Type{Kind: expr.String}, Slot: i})
			texts = append(texts, i)
		}
	}
	return cols, texts
}

// keep copies a batch that is about to be overwritten.
func keep(b *types.Batch) *types.Batch {
	c := &types.Batch{Cols: make([]*types.Vector, len(b.Cols))}
	for i, v := range b.Cols {
		c.Cols[i] = types.NewVector(v.Type)
		c.Cols[i].AppendRange(v, 0, v.Len())
	}
	return c
}

// fill sets row to row i of a batch.
func fill(row expr.Row, b *types.Batch, i int) {
	for k, v := range b.Cols {
		row[k] = v.Datum(i)
	}
}

// metadataTable is a table about a table, t$snapshots or t$files, or one of its
// branches, t$branch_name.
func (r *run) metadataTable(ctx context.Context, ref *sqlparse.TableRef, name catalog.Name, what string) (*query.Relation, error) {
	if branch, ok := strings.CutPrefix(what, "branch_"); ok {
		return r.branch(ctx, ref, name, branch)
	}
	plain := *ref
	plain.Table = sqlparse.Name{Parts: append([]sqlparse.Ident(nil), ref.Table.Parts...)}
	plain.Table.Parts[len(plain.Table.Parts)-1].Name = name.Table
	p, err := r.pin(ctx, &plain, name)
	if err != nil {
		return nil, err
	}
	var fields []types.Field
	var rows []expr.Row
	switch strings.ToLower(what) {
	case "snapshots":
		fields, rows, err = snapshotRows(ctx, p)
	case "files":
		fields, rows, err = fileRows(ctx, p)
	default:
		err = fail(ref.Pos, ClassNoTable, "there is no metadata table $%s, there are $snapshots, $files and $branch_NAME", what)
	}
	if err != nil {
		return nil, err
	}
	rel := &query.Relation{Name: []string{r.o.Name, name.Database, name.Table + "$" + what}}
	for i, f := range fields {
		c, _ := expr.TableColumn(rel.Name, f, i)
		rel.Columns = append(rel.Columns, c)
	}
	rel.Scan = func(_ context.Context, _ []int, yield func(expr.Row) error) error {
		for _, row := range rows {
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	}
	return rel, nil
}

// branch is a table as one of its branches has it, for reading.
func (r *run) branch(ctx context.Context, ref *sqlparse.TableRef, name catalog.Name, branch string) (*query.Relation, error) {
	t, err := r.o.Catalog.Open(ctx, name, paimon.Read)
	if err != nil {
		return nil, r.notFound(ctx, ref.Table, name, err)
	}
	t, st, err := t.Version(ctx, paimon.Version{Branch: branch})
	if errors.Is(err, paimon.ErrNoVersion) {
		return nil, fail(ref.Pos, ClassNoVersion, "table %s: %v", name, err)
	}
	if err != nil {
		return nil, err
	}
	return r.relation(name, &pinned{t, st}), nil
}

func snapshotRows(ctx context.Context, p *pinned) (fields []types.Field, rows []expr.Row, err error) {
	fields = []types.Field{
		{Name: "snapshot_id", Type: types.BigIntType()},
		{Name: "schema_id", Type: types.BigIntType()},
		{Name: "commit_user", Type: types.StringType()},
		{Name: "commit_identifier", Type: types.BigIntType()},
		{Name: "commit_kind", Type: types.StringType()},
		{Name: "commit_time", Type: types.TimestampType(3)},
		{Name: "operation", Type: types.StringType()},
		{Name: "total_record_count", Type: types.BigIntType()},
		{Name: "delta_record_count", Type: types.BigIntType()},
	}
	ids, err := paimon.ListSnapshotIDs(ctx, p.t.Bucket(), p.t.Paths())
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		s, err := paimon.ReadSnapshot(ctx, p.t.Bucket(), p.t.Paths(), id)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, expr.Row{
			types.IntDatum(s.ID), types.IntDatum(s.SchemaID), types.StringDatum(s.CommitUser), types.IntDatum(s.CommitIdentifier),
			types.StringDatum(string(s.CommitKind)), types.IntDatum(s.TimeMillis * 1000), types.StringDatum(string(s.Operation)),
			types.IntDatum(s.TotalRecordCount), types.IntDatum(s.DeltaRecordCount),
		})
	}
	return fields, rows, nil
}

func fileRows(ctx context.Context, p *pinned) (fields []types.Field, rows []expr.Row, err error) {
	fields = []types.Field{
		{Name: "bucket", Type: types.IntType()},
		{Name: "file_path", Type: types.StringType()},
		{Name: "schema_id", Type: types.BigIntType()},
		{Name: "record_count", Type: types.BigIntType()},
		{Name: "file_size_in_bytes", Type: types.BigIntType()},
	}
	files, err := p.t.Files(ctx, p.st, nil)
	for i := range files {
		key, err := p.t.Paths().Location(&files[i])
		if err != nil {
			return nil, nil, err
		}
		f := &files[i].File
		rows = append(rows, expr.Row{
			types.IntDatum(int64(files[i].Bucket)), types.StringDatum(key), types.IntDatum(f.SchemaID), types.IntDatum(f.Rows), types.IntDatum(f.Size),
		})
	}
	return fields, rows, err
}
