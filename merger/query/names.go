package query

import (
	"strings"

	"applier/merger/sqlparse"
)

// outputName is the name that Spark gives to a column without an alias: columns and
// fields by their name, everything else by its text.
func outputName(e sqlparse.Expr) string {
	switch e := e.(type) {
	case *sqlparse.ColumnRef:
		return e.Last()
	case *sqlparse.FieldRef:
		return e.Name.Name
	case *sqlparse.Cast: // a column that was cast keeps its name
		if ref, ok := e.X.(*sqlparse.ColumnRef); ok {
			return ref.Last()
		}
	}
	return pretty(e)
}

// pretty spells an expression as Spark's column names do: operators in parentheses,
// texts without quotes, names without qualifiers.
func pretty(e sqlparse.Expr) string {
	switch e := e.(type) {
	case *sqlparse.ColumnRef:
		return strings.Join(e.Strings(), ".")
	case *sqlparse.StringLit:
		return e.Value
	case *sqlparse.NumberLit:
		return e.Text
	case *sqlparse.BoolLit:
		if e.Value {
			return "true"
		}
		return "false"
	case *sqlparse.Star:
		return "1"
	case *sqlparse.Unary:
		if e.Op == "NOT" {
			return "(NOT " + pretty(e.X) + ")"
		}
		return "(" + e.Op + " " + pretty(e.X) + ")"
	case *sqlparse.Binary:
		if e.Op == "||" {
			return "concat(" + pretty(e.L) + ", " + pretty(e.R) + ")"
		}
		return "(" + pretty(e.L) + " " + strings.ToLower(e.Op) + " " + pretty(e.R) + ")"
	case *sqlparse.Logic:
		s := pretty(e.Args[0])
		for _, a := range e.Args[1:] {
			s = "(" + s + " " + e.Op + " " + pretty(a) + ")"
		}
		return s
	case *sqlparse.IsNull:
		if e.Not {
			return "(" + pretty(e.X) + " IS NOT NULL)"
		}
		return "(" + pretty(e.X) + " IS NULL)"
	case *sqlparse.Cast:
		name := "CAST"
		if e.Try {
			name = "TRY_CAST"
		}
		return name + "(" + pretty(e.X) + " AS " + strings.ReplaceAll(sqlparse.Format(e.Type), ", ", ",") + ")"
	case *sqlparse.Aliased:
		return pretty(e.X) + " AS " + e.Alias.Name
	case *sqlparse.ScalarQuery:
		return "scalarsubquery()"
	case *sqlparse.Call:
		return prettyCall(e)
	}
	return prettyForm(e)
}

func prettyCall(e *sqlparse.Call) string {
	name := strings.ToLower(e.Func.Last())
	s := name + "("
	if e.Distinct {
		s += "DISTINCT "
	}
	s += prettyList(e.Args)
	if name == "sort_array" && len(e.Args) == 1 {
		s += ", true"
	}
	s += ")"
	if e.Filter != nil {
		s += " FILTER (WHERE " + pretty(e.Filter) + ")"
	}
	return s
}

func prettyList(list []sqlparse.Expr) string {
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = pretty(a)
	}
	return strings.Join(parts, ", ")
}

func prettyForm(e sqlparse.Expr) string {
	not := func(n bool, s string) string {
		if n {
			return "(NOT " + s + ")"
		}
		return s
	}
	switch e := e.(type) {
	case *sqlparse.InList:
		return not(e.Not, "("+pretty(e.X)+" IN ("+prettyList(e.List)+"))")
	case *sqlparse.Between:
		return not(e.Not, "between("+pretty(e.X)+", "+pretty(e.Low)+", "+pretty(e.High)+")")
	case *sqlparse.Like:
		return not(e.Not, pretty(e.X)+" "+e.Op+" "+pretty(e.Pattern))
	case *sqlparse.Index:
		return pretty(e.X) + "[" + pretty(e.I) + "]"
	case *sqlparse.FieldRef:
		return pretty(e.X) + "." + e.Name.Name
	case *sqlparse.Row:
		return "struct(" + prettyList(e.Items) + ")"
	case *sqlparse.Case:
		return prettyCase(e)
	}
	return sqlparse.Format(e)
}

func prettyCase(e *sqlparse.Case) string {
	s := "CASE"
	for _, w := range e.Whens {
		cond := pretty(w.Cond)
		if e.Operand != nil {
			cond = "(" + pretty(e.Operand) + " = " + cond + ")"
		}
		s += " WHEN " + cond + " THEN " + pretty(w.Then)
	}
	if e.Else != nil {
		s += " ELSE " + pretty(e.Else)
	}
	return s + " END"
}
