package sql

import (
	"strings"

	"applier/merger/defaults"
	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/types"
)

// storedDefault is how a default is kept: a text that every engine reads as the same
// value, or the text of an expression that is evaluated anew for each statement.
type storedDefault struct {
	text    *string
	dynamic string
}

// storeDefault works out how the default of a column is to be kept. DEFAULT NULL is
// no default.
func storeDefault(e sqlparse.Expr, f types.Field, env *expr.Env) (storedDefault, error) {
	d, err := defaults.Eval(e, f, env)
	if err != nil {
		return storedDefault{}, defaultProblem(e, f, err)
	}
	if text, ok := dynamicText(e); ok {
		return storedDefault{dynamic: text}, nil
	}
	if err := constantOnly(e); err != nil {
		return storedDefault{}, err
	}
	if err := sameFamily(e, f, env); err != nil {
		return storedDefault{}, err
	}
	if d.Null {
		return storedDefault{}, nil
	}
	text, err := paimon.FormatDefault(f, d)
	if err != nil {
		return storedDefault{}, fail(e.Position(), ClassDefault, "%v", err)
	}
	f.Default = &text
	if back, err := defaults.Constant(f); err != nil || back == nil || !sameValue(f.Type, *back, d) {
		return storedDefault{}, fail(e.Position(), ClassDefault, "the default of column %s cannot be stored so that all engines read the same value", f.Name)
	}
	return storedDefault{text: &text}, nil
}

// warnOfDefaults names the columns of a changed table for which Java writers store
// another default than we do.
func (r *run) warnOfDefaults(tg *target) {
	for _, f := range tg.Fields {
		here, java, differ := defaults.Disputed(f)
		key := tg.name.String() + "." + f.Name
		if !differ || r.o.Warn == nil || r.warned[key] {
			continue
		}
		r.warned[key] = true
		r.o.Warn("the default of column " + key + " is " + here + " here and " + java +
			" for Paimon's Java writers: ALTER COLUMN … SET DEFAULT stores it so that all agree")
	}
}

// sameFamily refuses defaults of quite another kind than their column, as TRUE for a
// number: CAST would take them, but hardly anybody means that.
func sameFamily(e sqlparse.Expr, f types.Field, env *expr.Env) error {
	x, err := expr.Compile(e, &expr.Scope{Env: env})
	if err != nil {
		return err
	}
	to, _ := expr.FromStorage(f.Type)
	a, b := family(x.Type().Kind), family(to.Kind)
	if a == b || a == expr.Void || a == expr.String || b == expr.String || b == expr.Binary {
		return nil
	}
	return fail(e.Position(), ClassDefault+".DATA_TYPE", "column %s of type %s cannot have the default %s of type %s", f.Name, to, sqlparse.Format(e), x.Type())
}

// family is one kind that stands for those that are alike.
func family(k expr.Kind) expr.Kind {
	switch {
	case k >= expr.TinyInt && k <= expr.Decimal:
		return expr.Int
	case k == expr.Date || k == expr.Timestamp || k == expr.TimestampNTZ:
		return expr.Date
	}
	return k
}

func sameValue(t types.Type, a, b types.Datum) bool {
	et, ok := expr.FromStorage(t)
	if !ok {
		return false
	}
	if et.HasMap() { // FormatDefault has compared them, whatever their order
		return true
	}
	return string(expr.GroupKey(nil, et, a)) == string(expr.GroupKey(nil, et, b))
}

func defaultProblem(e sqlparse.Expr, f types.Field, err error) error {
	p, class := Describe(err), ClassDefault
	if strings.HasPrefix(p.Class, "DATATYPE_MISMATCH") || strings.HasPrefix(p.Class, "INCOMPATIBLE_DATA_FOR_TABLE") || strings.HasPrefix(p.Class, "CAST_") {
		class += ".DATA_TYPE"
	}
	return fail(e.Position(), class, "column %s of type %s cannot have the default %s: %s", f.Name, f.Type.Nullable(), sqlparse.Format(e), p.Message)
}

// dynamic are the functions whose value is that of the time of each statement.
var dynamic = map[string]string{
	"current_timestamp": "current_timestamp()", "now": "current_timestamp()", "current_date": "current_date()", "curdate": "current_date()",
	"localtimestamp": "localtimestamp()",
}

// dynamicText spells a default that is one of those functions alone.
func dynamicText(e sqlparse.Expr) (string, bool) {
	switch n := e.(type) {
	case *sqlparse.Call:
		text, ok := dynamic[strings.ToLower(n.Func.Last())]
		return text, ok && len(n.Args) == 0 && len(n.Func.Parts) == 1
	case *sqlparse.ColumnRef:
		text, ok := dynamic[strings.ToLower(n.Last())]
		return text, ok && len(n.Parts) == 1 && n.Last() != "now"
	}
	return "", false
}

// changing are functions that no default may be made of.
var changing = []string{
	"rand", "random", "randn", "uuid", "current_user", "session_user", "user", "current_database", "current_schema",
	"current_catalog", "current_timezone", "current_time", "unix_timestamp", "shuffle", "monotonically_increasing_id",
}

// constantOnly refuses expressions that are not the same each time.
func constantOnly(e sqlparse.Expr) error {
	var found error
	check := func(pos sqlparse.Pos, name string) {
		name = strings.ToLower(name)
		_, dyn := dynamic[name]
		for _, c := range changing {
			dyn = dyn || c == name
		}
		if dyn && found == nil {
			found = fail(pos, ClassDefault, "%s inside of a default: a default is a constant, or current_timestamp() or current_date() alone", name)
		}
	}
	sqlparse.Walk(e, func(n sqlparse.Node) bool {
		switch n := n.(type) {
		case *sqlparse.Call:
			check(n.Pos, n.Func.Last())
		case *sqlparse.ColumnRef:
			check(n.Position(), n.Last())
		}
		return found == nil
	})
	return found
}
