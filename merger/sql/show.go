package sql

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"applier/merger/defaults"
	"applier/merger/expr"
	"applier/merger/query"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/paimon"
	"applier/storage/paimon/binrow"
	"applier/storage/types"
)

// texts is a result of text columns.
func texts(names ...string) *Result {
	res := &Result{}
	for _, n := range names {
		res.Columns = append(res.Columns, query.Column{Name: n, Type: expr.Type{Kind: expr.String}})
	}
	return res
}

func (res *Result) add(values ...string) {
	row := make(expr.Row, len(values))
	for i, v := range values {
		row[i] = types.StringDatum(v)
	}
	res.Rows = append(res.Rows, row)
}

func (r *run) show(ctx context.Context, n *sqlparse.Show) (*Result, error) {
	switch n.What {
	case "DATABASES":
		return r.showDatabases(ctx, n)
	case "TABLES":
		return r.showTables(ctx, n)
	case "VIEWS":
		res := texts("namespace", "viewName", "isTemporary")
		for _, key := range slices.Sorted(maps.Keys(r.views)) {
			if matches(n.Pattern, r.views[key].name) {
				res.add("", r.views[key].name, "true")
			}
		}
		return res, nil
	case "CATALOGS":
		res := texts("catalog")
		res.add(r.o.Name)
		return res, nil
	case "FUNCTIONS":
		res := texts("function")
		for _, f := range slices.Sorted(slices.Values(append(expr.FunctionNames(), expr.AggregateNames()...))) {
			if matches(n.Pattern, f) {
				res.add(f)
			}
		}
		return res, nil
	}
	name, t, err := r.open(ctx, n.Name, paimon.Read)
	if err != nil {
		return nil, err
	}
	switch n.What {
	case "COLUMNS":
		res := texts("col_name")
		for _, f := range t.Schema().Fields {
			res.add(f.Name)
		}
		return res, nil
	case "TBLPROPERTIES":
		return showProperties(t, n), nil
	case "PARTITIONS":
		return showPartitions(ctx, t)
	case "CREATE TABLE":
		res := texts("createtab_stmt")
		res.add(createStatement(name, t.Schema()))
		return res, nil
	}
	return nil, fail(n.Pos, sqlparse.ClassUnsupported, "SHOW %s is not supported", n.What)
}

// matches applies the pattern of a SHOW statement.
func matches(pattern *string, name string) bool {
	if pattern == nil {
		return true
	}
	for p := range strings.SplitSeq(strings.ToLower(*pattern), "|") {
		if ok, err := path.Match(strings.ReplaceAll(p, "%", "*"), strings.ToLower(name)); ok && err == nil {
			return true
		}
	}
	return false
}

func (r *run) showDatabases(ctx context.Context, n *sqlparse.Show) (*Result, error) {
	list, err := r.o.Catalog.Databases(ctx)
	if err != nil {
		return nil, err
	}
	res := texts("namespace")
	for _, d := range list {
		if matches(n.Pattern, d) {
			res.add(d)
		}
	}
	return res, nil
}

func (r *run) showTables(ctx context.Context, n *sqlparse.Show) (*Result, error) {
	db := r.database
	if len(n.Name.Parts) > 0 {
		var err error
		if db, err = r.databaseName(n.Name); err != nil {
			return nil, err
		}
	}
	list, err := r.o.Catalog.Tables(ctx, db)
	if err != nil {
		return nil, err
	}
	res := texts("namespace", "tableName", "isTemporary")
	res.Columns[2].Type = expr.Type{Kind: expr.Boolean}
	add := func(db, name string, temporary bool) {
		res.Rows = append(res.Rows, expr.Row{types.StringDatum(db), types.StringDatum(name), types.BoolDatum(temporary)})
	}
	for _, t := range list {
		if matches(n.Pattern, t) {
			add(db, t, false)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.views)) {
		if matches(n.Pattern, r.views[key].name) {
			add("", r.views[key].name, true)
		}
	}
	return res, nil
}

func showProperties(t *paimon.Table, n *sqlparse.Show) *Result {
	res := texts("key", "value")
	for _, k := range slices.Sorted(maps.Keys(t.Schema().Options)) {
		if n.Key == nil || *n.Key == k {
			res.add(k, t.Schema().Options[k])
		}
	}
	return res
}

func showPartitions(ctx context.Context, t *paimon.Table) (*Result, error) {
	_, st, err := t.Version(ctx, paimon.Version{})
	if err != nil {
		return nil, err
	}
	files, err := t.Files(ctx, st, nil)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	res := texts("partition")
	for i := range files {
		values, err := binrow.Decode(t.Schema().PartitionTypes(), files[i].Partition)
		if err != nil {
			return nil, err
		}
		dir, err := paimon.PartitionPath(t.Schema().PartitionFields(), values, t.Options().PartitionDefaultName, t.Options().PartitionLegacyName)
		if err != nil {
			return nil, err
		}
		if !seen[dir] && dir != "" {
			seen[dir] = true
			res.add(dir)
		}
	}
	slices.SortFunc(res.Rows, func(a, b expr.Row) int { return strings.Compare(string(a[0].B), string(b[0].B)) })
	return res, nil
}

// defaultText shows a column's default, "" for none.
func defaultText(s *paimon.Schema, f types.Field) string {
	if text, ok := s.Options[defaults.OptDynamic+strconv.Itoa(f.ID)]; ok {
		return text
	}
	if f.Default != nil {
		return *f.Default
	}
	return ""
}

func typeText(t types.Type) string {
	if e, ok := expr.FromStorage(t); ok {
		return e.String()
	}
	return strings.ToLower(t.Nullable().String())
}

func quoteName(s string) string {
	return sqlparse.Format(&sqlparse.ColumnRef{Name: sqlparse.Name{Parts: []sqlparse.Ident{{Name: s}}}})
}

// declaredType spells a column's type as CREATE TABLE takes it.
func declaredType(t types.Type) string {
	switch t.Kind {
	case types.Array:
		return "ARRAY<" + declaredType(*t.Elem) + ">"
	case types.Map:
		return "MAP<" + declaredType(*t.Key) + ", " + declaredType(*t.Elem) + ">"
	case types.Row:
		var fields []string
		for _, f := range t.Fields {
			field := quoteName(f.Name) + ": " + declaredType(f.Type)
			if f.Type.NotNull {
				field += " NOT NULL"
			}
			if f.Description != nil {
				field += " COMMENT " + quoteText(*f.Description)
			}
			fields = append(fields, field)
		}
		return "STRUCT<" + strings.Join(fields, ", ") + ">"
	}
	return strings.ToUpper(typeText(t))
}

func quoteText(s string) string { return sqlparse.Format(&sqlparse.StringLit{Value: s}) }

// createStatement spells the statement that makes a table like this one.
func createStatement(name catalog.Name, s *paimon.Schema) string {
	var b strings.Builder
	b.WriteString("CREATE TABLE " + quoteName(name.Database) + "." + quoteName(name.Table) + " (\n")
	for i, f := range s.Fields {
		b.WriteString("  " + quoteName(f.Name) + " " + declaredType(f.Type))
		if f.Type.NotNull {
			b.WriteString(" NOT NULL")
		}
		if d := defaultText(s, f); d != "" {
			b.WriteString(" DEFAULT " + shownDefault(f, d))
		}
		if f.Description != nil {
			b.WriteString(" COMMENT " + quoteText(*f.Description))
		}
		if i < len(s.Fields)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString(")\nUSING paimon")
	if len(s.PartitionKeys) > 0 {
		var keys []string
		for _, k := range s.PartitionKeys {
			keys = append(keys, quoteName(k))
		}
		b.WriteString("\nPARTITIONED BY (" + strings.Join(keys, ", ") + ")")
	}
	if s.Comment != nil {
		b.WriteString("\nCOMMENT " + quoteText(*s.Comment))
	}
	var props []string
	for _, k := range slices.Sorted(maps.Keys(s.Options)) {
		if !strings.HasPrefix(k, defaults.OptDynamic) {
			props = append(props, "  "+quoteText(k)+" = "+quoteText(s.Options[k]))
		}
	}
	if len(props) > 0 {
		b.WriteString("\nTBLPROPERTIES (\n" + strings.Join(props, ",\n") + ")")
	}
	return b.String()
}

// shownDefault is a default as SQL: the stored text if it is an expression, a text
// in quotes otherwise.
func shownDefault(f types.Field, text string) string {
	if _, err := sqlparse.ParseExpr(text); err == nil && (!f.Type.IsText() || strings.HasPrefix(text, "'") || strings.HasSuffix(text, ")")) {
		return text
	}
	if d, err := defaults.Constant(f); err == nil && d != nil && (f.Type.IsText() || f.Type.IsNested()) {
		return literal(f.Type, *d)
	}
	return quoteText(text)
}

// literal spells a value as an expression that a column of its type takes.
func literal(t types.Type, d types.Datum) string {
	if d.Null {
		return "NULL"
	}
	var items []string
	switch t.Kind {
	case types.Array:
		for _, x := range d.L {
			items = append(items, literal(*t.Elem, x))
		}
		return "ARRAY(" + strings.Join(items, ", ") + ")"
	case types.Map:
		for i := 0; i+1 < len(d.L); i += 2 {
			items = append(items, literal(*t.Key, d.L[i]), literal(*t.Elem, d.L[i+1]))
		}
		return "MAP(" + strings.Join(items, ", ") + ")"
	case types.Row:
		for i, x := range d.L {
			items = append(items, literal(t.Fields[i].Type, x))
		}
		return "STRUCT(" + strings.Join(items, ", ") + ")"
	}
	e, _ := expr.FromStorage(t)
	text := expr.Text(e, d, nil)
	if e.Kind == expr.Boolean || e.Kind >= expr.TinyInt && e.Kind <= expr.Decimal {
		return text
	}
	return quoteText(text)
}

func (r *run) describe(ctx context.Context, n *sqlparse.Describe) (*Result, error) {
	res := texts("col_name", "data_type", "comment")
	switch {
	case n.Query != nil:
		p, err := query.Compile(ctx, n.Query, r, r.env)
		if err != nil {
			return nil, err
		}
		for _, c := range p.Columns() {
			res.addColumn(c.Name, c.Type.String(), nil)
		}
		return res, nil
	case n.Database:
		return r.describeDatabase(ctx, n)
	}
	if len(n.Name.Parts) == 1 {
		if v := r.views[strings.ToLower(n.Name.Last())]; v != nil {
			return r.describe(ctx, &sqlparse.Describe{Pos: n.Pos, Query: v.query})
		}
	}
	name, t, err := r.open(ctx, n.Name, paimon.Read)
	if err != nil {
		return nil, err
	}
	s := t.Schema()
	if len(n.Column.Parts) > 0 {
		return describeColumn(s, n)
	}
	for _, f := range s.Fields {
		res.addColumn(f.Name, typeText(f.Type), f.Description)
	}
	if len(s.PartitionKeys) > 0 {
		res.add("# Partition Information", "", "")
		res.add("# col_name", "data_type", "comment")
		for _, f := range s.PartitionFields() {
			res.addColumn(f.Name, typeText(f.Type), f.Description)
		}
	}
	if n.Extended {
		res.describeMore(name, s)
	}
	return res, nil
}

func (res *Result) addColumn(name, typ string, comment *string) {
	row := expr.Row{types.StringDatum(name), types.StringDatum(typ), types.Null}
	if comment != nil {
		row[2] = types.StringDatum(*comment)
	}
	res.Rows = append(res.Rows, row)
}

// describeMore adds what DESCRIBE EXTENDED shows.
func (res *Result) describeMore(name catalog.Name, s *paimon.Schema) {
	any := false
	for _, f := range s.Fields {
		if d := defaultText(s, f); d != "" {
			if !any {
				res.add("", "", "")
				res.add("# Column Default Values", "", "")
			}
			any = true
			res.add(f.Name, typeText(f.Type), d)
		}
	}
	res.add("", "", "")
	res.add("# Detailed Table Information", "", "")
	res.add("Name", name.String(), "")
	if s.Comment != nil {
		res.add("Comment", *s.Comment, "")
	}
	res.add("Schema", strconv.FormatInt(s.ID, 10), "")
	var props []string
	for _, k := range slices.Sorted(maps.Keys(s.Options)) {
		props = append(props, k+"="+s.Options[k])
	}
	res.add("Table Properties", "["+strings.Join(props, ",")+"]", "")
}

func (r *run) describeDatabase(ctx context.Context, n *sqlparse.Describe) (*Result, error) {
	name, err := r.databaseName(n.Name)
	if err != nil {
		return nil, err
	}
	ok, err := r.o.Catalog.HasDatabase(ctx, name)
	if err == nil && !ok {
		err = fail(n.Name.Position(), ClassNoDatabase, "there is no database %s", name)
	}
	res := texts("info_name", "info_value")
	res.add("Catalog Name", r.o.Name)
	res.add("Namespace Name", name)
	return res, err
}

func describeColumn(s *paimon.Schema, n *sqlparse.Describe) (*Result, error) {
	at := slices.IndexFunc(s.Fields, func(f types.Field) bool { return sameName(f.Name, n.Column.Last()) })
	if at < 0 || len(n.Column.Parts) > 1 {
		return nil, fail(n.Column.Position(), ClassNoColumn, "there is no column %s", n.Column)
	}
	f := s.Fields[at]
	res := texts("info_name", "info_value")
	res.add("col_name", f.Name)
	res.add("data_type", typeText(f.Type))
	comment := "NULL"
	if f.Description != nil {
		comment = *f.Description
	}
	res.add("comment", comment)
	if d := defaultText(s, f); d != "" {
		res.add("default", d)
	}
	return res, nil
}

func (r *run) use(ctx context.Context, n *sqlparse.Use) (*Result, error) {
	if len(n.Name.Parts) == 1 && sameName(n.Name.Last(), r.o.Name) {
		return &Result{}, nil
	}
	name, err := r.databaseName(n.Name)
	if err != nil {
		return nil, err
	}
	ok, err := r.o.Catalog.HasDatabase(ctx, name)
	if errors.Is(err, catalog.ErrBadName) || err == nil && !ok {
		return nil, fail(n.Name.Position(), ClassNoDatabase, "there is no database %s", name)
	}
	if err == nil {
		r.database = name
	}
	return &Result{Note: "database " + name}, err
}

// settings that mean something here; others are kept and change nothing.
const settingZone = "spark.sql.session.timeZone"

func (r *run) set(n *sqlparse.Set) (*Result, error) {
	res := texts("key", "value")
	switch {
	case n.Value != nil:
		if sameName(n.Key, settingZone) {
			zone, err := time.LoadLocation(*n.Value)
			if err != nil {
				return nil, fail(n.Pos, "INVALID_CONF_VALUE.TIME_ZONE", "there is no time zone %s", *n.Value)
			}
			r.zone = zone
		}
		if sameName(n.Key, "spark.sql.ansi.enabled") && !sameName(*n.Value, "true") {
			return nil, fail(n.Pos, sqlparse.ClassUnsupported, "ANSI mode is always on: use try_cast and the other try_ functions where an error should be NULL")
		}
		r.settings[n.Key] = *n.Value
		res.add(n.Key, *n.Value)
	case n.Key != "":
		v, ok := r.settings[n.Key]
		if !ok {
			v = "<undefined>"
			if sameName(n.Key, settingZone) {
				v = r.zone.String()
			}
		}
		res.add(n.Key, v)
	default:
		for _, k := range slices.Sorted(maps.Keys(r.settings)) {
			res.add(k, r.settings[k])
		}
	}
	return res, nil
}

func (r *run) reset(n *sqlparse.Reset) (*Result, error) {
	if n.Key != "" {
		delete(r.settings, n.Key)
	} else {
		clear(r.settings)
	}
	if n.Key == "" || sameName(n.Key, settingZone) {
		r.zone = time.UTC
	}
	return &Result{}, nil
}
