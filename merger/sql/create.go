package sql

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"applier/merger/assign"
	"applier/merger/defaults"
	"applier/merger/expr"
	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/types"
)

func (r *run) createDatabase(ctx context.Context, n *sqlparse.CreateDatabase) (*Result, error) {
	name, err := r.databaseName(n.Name)
	if err != nil {
		return nil, err
	}
	if n.Location != nil {
		return nil, fail(n.Pos, sqlparse.ClassUnsupported, "LOCATION is not supported: databases are folders of the warehouse")
	}
	err = r.o.Catalog.CreateDatabase(ctx, name)
	switch {
	case errors.Is(err, catalog.ErrDatabaseExists) && n.IfNotExists:
		err = nil
	case errors.Is(err, catalog.ErrDatabaseExists):
		err = fail(n.Name.Position(), "SCHEMA_ALREADY_EXISTS", "the database %s exists already", name)
	}
	return &Result{Note: "database " + name}, err
}

func (r *run) dropDatabase(ctx context.Context, n *sqlparse.DropDatabase) (*Result, error) {
	name, err := r.databaseName(n.Name)
	if err != nil {
		return nil, err
	}
	err = r.o.Catalog.DropDatabase(ctx, name, n.Cascade)
	switch {
	case errors.Is(err, catalog.ErrNoDatabase) && n.IfExists:
		return &Result{Note: "there is no database " + name}, nil
	case errors.Is(err, catalog.ErrNotEmpty):
		return nil, fail(n.Name.Position(), "SCHEMA_NOT_EMPTY", "%v", err)
	case err != nil:
		return nil, err
	}
	if name == r.database {
		r.database = catalog.DefaultDatabase
	}
	return &Result{Note: "dropped database " + name}, nil
}

func (r *run) createTable(ctx context.Context, n *sqlparse.CreateTable) (*Result, error) {
	name, err := r.table(n.Table)
	if err != nil {
		return nil, err
	}
	if err := r.mayCreate(ctx, n, name); err != nil {
		if n.IfNotExists && Describe(err).Class == ClassTableExists {
			return &Result{Note: "the table " + name.String() + " exists already"}, nil
		}
		return nil, err
	}
	fields, dynamic, err := r.columnFields(n.Columns)
	if err != nil {
		return nil, err
	}
	var source *query.Plan
	if n.Query != nil {
		if source, fields, err = r.selectedFields(ctx, n); err != nil {
			return nil, err
		}
	}
	s, err := r.newSchema(n, fields, dynamic)
	if err != nil {
		return nil, err
	}
	t, err := r.o.Catalog.Create(ctx, name, s)
	if err != nil {
		return nil, err
	}
	if source == nil {
		return &Result{Note: "created table " + name.String() + dynamicNote(dynamic)}, nil
	}
	res, err := r.fillTable(ctx, name, t, source)
	if err != nil { // the statement makes a table with rows, or none
		return nil, errors.Join(err, r.o.Catalog.Drop(context.WithoutCancel(ctx), name))
	}
	return res, nil
}

func dynamicNote(dynamic map[int]string) string {
	if len(dynamic) == 0 {
		return ""
	}
	return "; its defaults that are functions are known to applier only, other writers store NULL"
}

func (r *run) mayCreate(ctx context.Context, n *sqlparse.CreateTable, name catalog.Name) error {
	ok, err := r.o.Catalog.HasDatabase(ctx, name.Database)
	if err != nil {
		return err
	}
	switch {
	case n.Provider != "" && !sameName(n.Provider, "paimon"):
		return fail(n.Pos, sqlparse.ClassUnsupported, "USING %s is not supported: tables here are Paimon tables", n.Provider)
	case n.Location != nil:
		return fail(n.Pos, sqlparse.ClassUnsupported, "LOCATION is not supported: tables lie in the warehouse")
	case !ok:
		return fail(n.Table.Position(), ClassNoDatabase, "there is no database %s", name.Database)
	}
	_, err = r.o.Catalog.Bucket(ctx, name)
	if errors.Is(err, catalog.ErrNoTable) {
		return nil
	}
	if err == nil {
		err = fail(n.Table.Position(), ClassTableExists, "the table %s exists already", name)
	}
	return err
}

// columnFields turns column definitions into fields, and defaults that are functions
// by the position of their column.
func (r *run) columnFields(defs []sqlparse.ColumnDef) ([]types.Field, map[int]string, error) {
	var fields []types.Field
	dynamic := map[int]string{}
	for i := range defs {
		d := &defs[i]
		f, stored, err := r.columnField(d)
		if err != nil {
			return nil, nil, err
		}
		if slices.ContainsFunc(fields, func(o types.Field) bool { return sameName(o.Name, f.Name) }) {
			return nil, nil, fail(d.Pos, ClassColumnTwice, "column %s is defined twice", f.Name)
		}
		if stored.dynamic != "" {
			dynamic[i] = stored.dynamic
		}
		fields = append(fields, f)
	}
	return fields, dynamic, nil
}

// columnField is the field of a column definition with its default.
func (r *run) columnField(d *sqlparse.ColumnDef) (types.Field, storedDefault, error) {
	f := types.Field{Name: d.Path.Last(), Description: d.Comment}
	t, err := storageType(d.Type)
	if err != nil {
		return f, storedDefault{}, err
	}
	t.NotNull = d.NotNull
	f.Type = t
	if d.Default == nil {
		return f, storedDefault{}, nil
	}
	stored, err := storeDefault(d.Default, f, r.env)
	f.Default = stored.text
	return f, stored, err
}

// storageType is the type of a column as spelled, with the comments of its fields.
func storageType(a *sqlparse.Type) (types.Type, error) {
	t, err := expr.TypeOf(a)
	if err != nil {
		return types.Type{}, err
	}
	st, ok := t.ToStorage()
	if !ok || t.Collation != "" {
		return st, fail(a.Pos, sqlparse.ClassDatatype, "a column cannot be of type %s", t)
	}
	return commented(st, a), nil
}

func commented(t types.Type, a *sqlparse.Type) types.Type {
	if t.Elem != nil && a.Elem != nil {
		t.Elem = new(commented(*t.Elem, a.Elem))
	}
	if t.Key != nil && a.Key != nil {
		t.Key = new(commented(*t.Key, a.Key))
	}
	for i := range a.Fields {
		if i < len(t.Fields) {
			t.Fields[i].Type = commented(t.Fields[i].Type, a.Fields[i].Type)
			t.Fields[i].Description = a.Fields[i].Comment
		}
	}
	return t
}

// selectedFields are the columns of CREATE TABLE AS SELECT.
func (r *run) selectedFields(ctx context.Context, n *sqlparse.CreateTable) (*query.Plan, []types.Field, error) {
	p, err := query.Compile(ctx, n.Query, r, r.env)
	if err != nil {
		return nil, nil, err
	}
	var fields []types.Field
	for _, c := range p.Columns() {
		t, ok := c.Type.ToStorage()
		if !ok {
			return nil, nil, fail(n.Query.Pos, sqlparse.ClassDatatype, "column %s is of type %s, which a table cannot hold: cast it", c.Name, c.Type)
		}
		fields = append(fields, types.Field{Name: c.Name, Type: t})
	}
	return p, fields, nil
}

func (r *run) newSchema(n *sqlparse.CreateTable, fields []types.Field, dynamic map[int]string) (*paimon.Schema, error) {
	options := map[string]string{}
	for _, p := range n.Properties {
		options[p.Key] = p.Value
	}
	var keys []string
	for _, k := range n.PartitionedBy {
		at := slices.IndexFunc(fields, func(f types.Field) bool { return sameName(f.Name, k.Name) })
		if at < 0 {
			return nil, fail(k.Pos, ClassNoColumn, "PARTITIONED BY names %s, which is no column", k.Name)
		}
		keys = append(keys, fields[at].Name)
	}
	if v, ok := options["primary-key"]; ok {
		return nil, fail(n.Pos, ClassRefused, "a table with a primary key (%s) is not supported: statements change append tables", v)
	}
	s, err := paimon.NewSchema(fields, keys, options, n.Comment, r.o.Now().UnixMilli())
	if err != nil {
		return nil, err
	}
	for i, text := range dynamic {
		s.Options[defaults.OptDynamic+strconv.Itoa(s.Fields[i].ID)] = text
	}
	return s, paimon.Refuse(s, paimon.Create)
}

// fillTable writes the rows of CREATE TABLE AS SELECT.
func (r *run) fillTable(ctx context.Context, name catalog.Name, t *paimon.Table, source *query.Plan) (*Result, error) {
	st, err := t.State(ctx, nil)
	if err != nil {
		return nil, err
	}
	tg := &target{name: name, t: t, st: st, Target: assign.Target{Fields: t.Schema().Fields, Defaults: make([]*types.Datum, len(t.Schema().Fields))}}
	e, err := r.editor(ctx, tg, false)
	if err != nil {
		return nil, err
	}
	done, err := r.attempt(ctx, func(ctx context.Context, _ *run, _ *target, e *editor) error {
		e.op = paimon.OperationCreateTableAsSelect
		return source.Run(ctx, func(row expr.Row) error { return e.insert(ctx, row) })
	}, tg, e)
	if err == nil && !done {
		err = fail(sqlparse.Pos{}, ClassOvertaken, "somebody else wrote to the table %s before it was filled", name)
	}
	if err != nil {
		return nil, err
	}
	return r.snapshot(ctx, name, t, e.note())
}

func (r *run) dropTable(ctx context.Context, n *sqlparse.DropTable) (*Result, error) {
	if len(n.Table.Parts) == 1 {
		key := strings.ToLower(n.Table.Last())
		if r.views[key] != nil {
			if !n.View {
				return nil, fail(n.Table.Position(), "WRONG_COMMAND_FOR_OBJECT_TYPE", "%s is a view: use DROP VIEW", n.Table)
			}
			delete(r.views, key)
			return &Result{Note: "dropped view " + n.Table.Last()}, nil
		}
	}
	if n.View {
		if n.IfExists {
			return &Result{}, nil
		}
		return nil, fail(n.Table.Position(), ClassNoTable, "there is no view %s", n.Table)
	}
	name, err := r.table(n.Table)
	if err != nil {
		return nil, err
	}
	err = r.o.Catalog.Drop(ctx, name)
	if errors.Is(err, catalog.ErrNoTable) && n.IfExists {
		return &Result{Note: "there is no table " + name.String()}, nil
	}
	if err != nil {
		return nil, r.notFound(ctx, n.Table, name, err)
	}
	return &Result{Note: "dropped table " + name.String()}, nil
}

func (r *run) createView(ctx context.Context, n *sqlparse.CreateView) (*Result, error) {
	if !n.Temporary {
		return nil, fail(n.Pos, sqlparse.ClassUnsupported, "only temporary views are supported: use CREATE TEMPORARY VIEW")
	}
	if len(n.Name.Parts) != 1 {
		return nil, fail(n.Name.Position(), "TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS", "a temporary view belongs to no database: %s", n.Name)
	}
	key := strings.ToLower(n.Name.Last())
	if r.views[key] != nil && !n.Replace {
		if n.IfNotExists {
			return &Result{}, nil
		}
		return nil, fail(n.Name.Position(), "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS", "the view %s exists already: use CREATE OR REPLACE TEMPORARY VIEW", n.Name)
	}
	q := n.Query
	if len(n.Columns) > 0 {
		star := sqlparse.SelectItem{Pos: n.Pos, X: &sqlparse.Star{Pos: n.Pos}}
		from := &sqlparse.QueryRef{Pos: n.Pos, Query: q, Alias: &sqlparse.Alias{Pos: n.Pos, Name: n.Name.Last(), Columns: n.Columns}}
		q = &sqlparse.Query{Pos: n.Pos, Body: &sqlparse.Select{Pos: n.Pos, Items: []sqlparse.SelectItem{star}, From: from}}
	}
	if _, err := query.Compile(ctx, q, r, r.env); err != nil {
		return nil, err
	}
	r.views[key] = &view{name: n.Name.Last(), query: q}
	return &Result{Note: "view " + n.Name.Last()}, nil
}
