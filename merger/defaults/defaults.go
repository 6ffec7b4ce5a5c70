// Package defaults reads the default values of a table's columns, in one way for
// statements and for the pipeline.
package defaults

import (
	"fmt"
	"strconv"
	"strings"

	"applier/merger/expr"
	"applier/merger/sqlparse"
	"applier/storage/paimon"
	"applier/storage/types"
)

// OptDynamic begins the table options that hold defaults which are no
// constants, by the id of the column's field: applier.default-expr.7 =
// current_timestamp(). Other writers know nothing of them and store NULL.
const OptDynamic = "applier.default-expr."

// Values returns the default of each column at the time of env, nil for none.
// Every default is written with this reading of it, by statements and by the
// pipeline alike: a text that is an SQL literal means that value, as for Spark's
// keyword DEFAULT, anything else what Paimon's Java core makes of it (row-level.md
// §6.4). Errors wrap paimon.ErrDefault.
func Values(s *paimon.Schema, env *expr.Env) ([]*types.Datum, error) {
	out := make([]*types.Datum, len(s.Fields))
	for i, f := range s.Fields {
		if text, ok := s.Options[OptDynamic+strconv.Itoa(f.ID)]; ok {
			d, err := dynamicDefault(f, text, env)
			if err != nil {
				return nil, err
			}
			out[i] = d
			continue
		}
		d, err := Constant(f)
		if err != nil {
			return nil, err
		}
		out[i] = d
	}
	return out, nil
}

// Constant reads the stored text of a column's default, nil for none. Errors wrap
// paimon.ErrDefault.
func Constant(f types.Field) (*types.Datum, error) {
	if f.Default == nil {
		return nil, nil
	}
	if e, err := sqlparse.ParseExpr(*f.Default); err == nil && literalFor(e, f.Type) {
		if d, err := Eval(e, f, nil); err == nil {
			if d.Null {
				return nil, nil
			}
			return &d, nil
		}
	}
	return paimon.DefaultValue(f)
}

// literalFor reports whether e is a literal, or nested values made of such. For a
// text it must be one in quotes: anything else is the text itself.
func literalFor(e sqlparse.Expr, t types.Type) bool {
	_, text := e.(*sqlparse.StringLit)
	if t.IsText() {
		return text
	}
	return text || literal(e)
}

func literal(e sqlparse.Expr) bool {
	switch n := e.(type) {
	case *sqlparse.NullLit, *sqlparse.BoolLit, *sqlparse.NumberLit, *sqlparse.StringLit, *sqlparse.BytesLit, *sqlparse.TypedLit:
		return true
	case *sqlparse.Unary:
		return n.Op != "NOT" && literal(n.X)
	case *sqlparse.Aliased:
		return literal(n.X)
	case *sqlparse.Call:
		switch strings.ToLower(n.Func.Last()) {
		case "array", "map", "struct", "named_struct":
		default:
			return false
		}
		for _, a := range n.Args {
			if !literal(a) {
				return false
			}
		}
		return len(n.Func.Parts) == 1
	}
	return false
}

// Eval computes an expression as a default, a value of its column. Errors are
// *expr.Error.
func Eval(e sqlparse.Expr, f types.Field, env *expr.Env) (types.Datum, error) {
	x, err := expr.Compile(e, &expr.Scope{Env: env})
	if err != nil {
		return types.Null, err
	}
	if x, err = positionalStruct(x, f.Type, e, env); err != nil {
		return types.Null, err
	}
	t := f.Type
	t.NotNull = false
	if x, err = expr.AssignmentCast(x, f.Name, t); err != nil {
		return types.Null, err
	}
	return x.Eval(nil)
}

// positionalStruct takes struct(1, 2) for a struct column by the order of its
// fields, as Java does: its own names, col1 and col2, mean nothing.
func positionalStruct(x *expr.Expr, t types.Type, e sqlparse.Expr, env *expr.Env) (*expr.Expr, error) {
	call, ok := e.(*sqlparse.Call)
	if !ok || t.Kind != types.Row || !strings.EqualFold(call.Func.Last(), "struct") || len(call.Args) != len(t.Fields) {
		return x, nil
	}
	named := &sqlparse.Call{Pos: call.Pos, Func: sqlparse.Name{Parts: []sqlparse.Ident{{Pos: call.Pos, Name: "named_struct"}}}}
	for i, a := range call.Args {
		if alias, ok := a.(*sqlparse.Aliased); ok {
			a = alias.X
		}
		named.Args = append(named.Args, &sqlparse.StringLit{Pos: a.Position(), Value: t.Fields[i].Name}, a)
	}
	return expr.Compile(named, &expr.Scope{Env: env})
}

func dynamicDefault(f types.Field, text string, env *expr.Env) (*types.Datum, error) {
	e, err := sqlparse.ParseExpr(text)
	if err == nil {
		var d types.Datum
		if d, err = Eval(e, f, env); err == nil {
			return &d, nil
		}
	}
	return nil, fmt.Errorf("%w: column %s has the default %s (option %s%d): %w", paimon.ErrDefault, f.Name, text, OptDynamic, f.ID, err)
}

// Dynamic reports whether a schema has defaults that are not the same each time.
func Dynamic(s *paimon.Schema) bool {
	for key := range s.Options {
		if strings.HasPrefix(key, OptDynamic) {
			return true
		}
	}
	return false
}

// Disputed reports whether Paimon's Java writers take a column's default for another
// value than we do, and both as text: they keep the quotes around texts inside of
// nested defaults, for one. SET DEFAULT stores a text that all read alike.
func Disputed(f types.Field) (here, java string, differ bool) {
	show := func(d *types.Datum, err error) string {
		switch {
		case err != nil:
			return "an error"
		case d == nil:
			return "NULL"
		}
		return string(types.AppendText(nil, f.Type, *d))
	}
	here, java = show(Constant(f)), show(paimon.DefaultValue(f))
	return here, java, here != java
}
