package sqlparse

import (
	"encoding/hex"
	"strings"
)

// Strengths of expressions, as the parser's floors and levels have them.
const (
	precLambda = iota
	precOr
	precAnd
	precNot
	precPredicate
	precComparison
	precBitOr
	precBitXor
	precBitAnd
	precShift
	precSum
	precProduct
	precUnary
	precPostfix
	precPrimary
)

// precedence returns how strongly an expression's parts hang together.
func precedence(x Expr) int {
	switch x := x.(type) {
	case *Lambda, *NamedArg, *Aliased:
		return precLambda
	case *Logic:
		if x.Op == "OR" {
			return precOr
		}
		return precAnd
	case *Unary:
		if x.Op == "NOT" {
			return precNot
		}
		return precUnary
	case *IsNull, *IsTruth, *IsDistinct, *Between, *InList, *InQuery, *Like, *LikeAny:
		return precPredicate
	case *Binary:
		return binaryPrec(x.Op)
	case *Index, *FieldRef, *Collate:
		return precPostfix
	}
	return precPrimary
}

func binaryPrec(op string) int {
	switch op {
	case "*", "/", "%", "DIV":
		return precProduct
	case "+", "-", "||":
		return precSum
	case "<<", ">>", ">>>":
		return precShift
	case "&":
		return precBitAnd
	case "^":
		return precBitXor
	case "|":
		return precBitOr
	}
	return precComparison
}

// expr prints x, in parentheses if its parts hang together less than min asks.
func (p *printer) expr(x Expr, min int) {
	if precedence(x) < min {
		p.w("(")
		p.bare(x)
		p.w(")")
		return
	}
	p.bare(x)
}

// bare prints x without parentheses around it.
func (p *printer) bare(x Expr) {
	switch x := x.(type) {
	case *NullLit:
		p.w("NULL")
	case *BoolLit:
		if x.Value {
			p.w("TRUE")
		} else {
			p.w("FALSE")
		}
	case *NumberLit:
		p.w(x.Text, x.Suffix)
	case *StringLit:
		p.str(x.Value)
	case *BytesLit:
		p.w("X'", strings.ToUpper(hex.EncodeToString(x.Value)), "'")
	case *TypedLit:
		p.w(x.Type, " ")
		p.str(x.Value)
	case *IntervalLit:
		p.interval(x)
	case *ColumnRef:
		p.name(x.Name)
	case *DefaultExpr:
		p.w("DEFAULT")
	case *Star:
		p.star(x)
	default:
		p.operators(x)
	}
}

func (p *printer) interval(x *IntervalLit) {
	p.w("INTERVAL")
	for _, part := range x.Parts {
		p.w(" ")
		if part.Text {
			p.str(part.Value)
		} else {
			p.w(part.Value)
		}
		p.opt(part.Unit != "", " "+part.Unit)
	}
	p.opt(x.To != "", " TO "+x.To)
}

func (p *printer) star(x *Star) {
	if len(x.Qualifier.Parts) > 0 {
		p.name(x.Qualifier)
		p.w(".")
	}
	p.w("*")
	if len(x.Except) > 0 {
		p.w(" EXCEPT ")
		p.names(x.Except)
	}
}

// operators prints operators and predicates.
func (p *printer) operators(x Expr) {
	switch x := x.(type) {
	case *Unary:
		p.unary(x)
	case *Binary:
		prec := binaryPrec(x.Op)
		p.expr(x.L, prec)
		p.w(" ", x.Op, " ")
		p.expr(x.R, prec+1)
	case *Logic:
		for i, a := range x.Args {
			p.opt(i > 0, " "+x.Op+" ")
			p.expr(a, precedence(x)+1)
		}
	case *IsNull:
		p.is(x.X, x.Not, "NULL")
	case *IsTruth:
		p.is(x.X, x.Not, x.Value)
	case *IsDistinct:
		p.is(x.L, x.Not, "DISTINCT FROM ")
		p.expr(x.R, precComparison)
	case *Between:
		p.predicate(x.X, x.Not, "BETWEEN ")
		p.expr(x.Low, precComparison)
		p.w(" AND ")
		p.expr(x.High, precComparison)
	case *InList:
		p.predicate(x.X, x.Not, "IN (")
		p.exprs(x.List)
		p.w(")")
	case *InQuery:
		p.predicate(x.X, x.Not, "IN (")
		p.query(x.Query)
		p.w(")")
	case *Like:
		p.predicate(x.X, x.Not, x.Op+" ")
		p.expr(x.Pattern, precComparison)
		if x.Escape != "" {
			p.w(" ESCAPE ")
			p.str(x.Escape)
		}
	case *LikeAny:
		p.predicate(x.X, x.Not, x.Op+" "+x.Quantifier+" (")
		p.exprs(x.Patterns)
		p.w(")")
	default:
		p.forms(x)
	}
}

// unary keeps a minus sign apart from a number or another sign behind it: -(5)
// is not the literal -5, and -- begins a comment.
func (p *printer) unary(x *Unary) {
	if x.Op == "NOT" {
		p.w("NOT ")
		p.expr(x.X, precNot)
		return
	}
	inner := printer{}
	inner.expr(x.X, precUnary)
	text := inner.b.String()
	switch {
	case x.Op == "-" && (isDigit(text[0]) || text[0] == '.'):
		text = "(" + text + ")"
	case text[0] == '-' || text[0] == '+':
		text = " " + text
	}
	p.w(x.Op, text)
}

func (p *printer) is(x Expr, not bool, what string) {
	p.expr(x, precComparison)
	p.w(" IS ")
	p.opt(not, "NOT ")
	p.w(what)
}

func (p *printer) predicate(x Expr, not bool, op string) {
	p.expr(x, precComparison)
	p.w(" ")
	p.opt(not, "NOT ")
	p.w(op)
}

// forms prints calls and the forms that look like them.
func (p *printer) forms(x Expr) {
	switch x := x.(type) {
	case *Exists:
		p.w("EXISTS (")
		p.query(x.Query)
		p.w(")")
	case *ScalarQuery:
		p.w("(")
		p.query(x.Query)
		p.w(")")
	case *Case:
		p.caseWhen(x)
	case *Cast:
		p.opt(x.Try, "TRY_")
		p.w("CAST(")
		p.expr(x.X, precLambda)
		p.w(" AS ")
		p.typ(x.Type)
		p.w(")")
	case *Call:
		p.call(x)
	case *NamedArg:
		p.id(x.Name)
		p.w(" => ")
		p.expr(x.Value, precLambda)
	case *Lambda:
		if len(x.Params) == 1 {
			p.ident(x.Params[0])
		} else {
			p.idents(x.Params)
		}
		p.w(" -> ")
		p.expr(x.Body, precLambda)
	case *Index:
		p.operandOf(x.X)
		p.w("[")
		p.expr(x.I, precComparison)
		p.w("]")
	case *FieldRef:
		p.operandOf(x.X)
		p.w(".")
		p.ident(x.Name)
	case *Collate:
		p.operandOf(x.X)
		p.w(" COLLATE ")
		p.id(x.Collation)
	case *Aliased:
		p.expr(x.X, precLambda+1)
		p.w(" AS ")
		p.ident(x.Alias)
	case *Row:
		p.w("(")
		p.exprs(x.Items)
		p.w(")")
	default:
		p.wordForms(x)
	}
}

// operandOf prints what a postfix follows. Names and numbers swallow a point
// behind them, and an interval a unit: they get parentheses.
func (p *printer) operandOf(x Expr) {
	switch x.(type) {
	case *ColumnRef, *NumberLit, *IntervalLit, *DefaultExpr, *Star:
		p.w("(")
		p.bare(x)
		p.w(")")
		return
	}
	p.expr(x, precPostfix)
}

func (p *printer) caseWhen(x *Case) {
	p.w("CASE")
	if x.Operand != nil {
		p.w(" ")
		p.expr(x.Operand, precLambda)
	}
	for _, c := range x.Whens {
		p.w(" WHEN ")
		p.expr(c.Cond, precLambda)
		p.w(" THEN ")
		p.expr(c.Then, precLambda)
	}
	if x.Else != nil {
		p.w(" ELSE ")
		p.expr(x.Else, precLambda)
	}
	p.w(" END")
}

func (p *printer) call(x *Call) {
	if f := x.Func.Last(); len(x.Func.Parts) == 1 && bareFunction(x) {
		p.w(f)
	} else {
		p.name(x.Func)
	}
	p.w("(")
	p.opt(x.Distinct, "DISTINCT ")
	p.exprs(x.Args)
	p.w(")")
	if x.Filter != nil {
		p.w(" FILTER (WHERE ")
		p.expr(x.Filter, precLambda)
		p.w(")")
	}
}

// bareFunction reports whether a call's name needs no backticks although it may
// be a keyword: the parenthesis behind it decides, unless the grammar has a form
// of its own there.
func bareFunction(x *Call) bool {
	f := x.Func.Last()
	kw := keyword(f)
	if kw == "" {
		return plainName(f) || typedLiteral(strings.ToUpper(f))
	}
	switch kw {
	case "CAST", "TRY_CAST", "EXTRACT", "CASE", "NULL", "TRUE", "FALSE", "DEFAULT", "INTERVAL", "POSITION", "TRIM", "OVERLAY":
		return false
	case "SUBSTRING", "SUBSTR":
		return !x.Distinct && x.Filter == nil && len(x.Args) > 0 && precedence(x.Args[0]) >= precComparison
	case "TIMESTAMPADD", "DATEADD", "DATE_ADD", "TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF":
		return !x.Distinct && x.Filter == nil && len(x.Args) != 3
	}
	return noOperand[kw] == "" || isLike(kw)
}

// wordForms prints the forms that have words between their arguments.
func (p *printer) wordForms(x Expr) {
	switch x := x.(type) {
	case *Extract:
		p.w("EXTRACT(", x.Field, " FROM ")
		p.expr(x.X, precComparison)
		p.w(")")
	case *Trim:
		p.w("TRIM(", x.Where, " ")
		if x.Chars != nil {
			p.expr(x.Chars, precLambda)
			p.w(" ")
		}
		p.w("FROM ")
		p.expr(x.X, precComparison)
		p.w(")")
	case *Overlay:
		p.w("OVERLAY(")
		p.expr(x.X, precComparison)
		p.w(" PLACING ")
		p.expr(x.With, precComparison)
		p.w(" FROM ")
		p.expr(x.Start, precComparison)
		if x.Length != nil {
			p.w(" FOR ")
			p.expr(x.Length, precComparison)
		}
		p.w(")")
	case *TimeUnitCall:
		p.w(x.Func, "(", x.Unit, ", ")
		p.expr(x.A, precComparison)
		p.w(", ")
		p.expr(x.B, precComparison)
		p.w(")")
	}
}
