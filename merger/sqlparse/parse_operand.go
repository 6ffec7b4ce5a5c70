package sqlparse

import (
	"encoding/hex"
	"strings"
)

// operand reads what stands between operators: a literal, a name, a call, a
// parenthesis or one of the special forms.
func (p *parser) operand() Expr {
	switch p.tok.kind {
	case tokInt, tokNumber:
		return p.number()
	case tokString:
		pos := p.tok.pos
		return &StringLit{Pos: pos, Value: p.text("")}
	case tokOp:
		switch p.tok.kw {
		case "(":
			return p.parenthesis()
		case "*":
			pos := p.tok.pos
			p.next()
			return p.star(pos, Name{})
		}
	case tokIdent:
		if x := p.special(); x != nil {
			return x
		}
		if next := p.peek(); noOperand[p.tok.kw] == "" || next.kw == "(" && isLike(p.tok.kw) || endsName(next) {
			return p.nameOrCall()
		}
	case tokQuoted:
		return p.nameOrCall()
	}
	p.want("an expression")
	p.unexpected()
	return &NullLit{}
}

// isLike reports whether a keyword is also a function: like(a, b).
func isLike(kw string) bool { return kw == "LIKE" || kw == "ILIKE" || kw == "RLIKE" || kw == "REGEXP" }

// special reads the forms that begin with a keyword, nil if none does here. The
// words are names too: only what follows them decides.
func (p *parser) special() Expr {
	pos, kw, next := p.tok.pos, p.tok.kw, p.peek()
	if next.kind == tokString {
		if name := strings.ToUpper(p.tok.text); typedLiteral(name) {
			return p.typed(pos, name)
		}
	}
	switch kw {
	case "NULL":
		p.next()
		return &NullLit{Pos: pos}
	case "TRUE", "FALSE":
		p.next()
		return &BoolLit{Pos: pos, Value: kw == "TRUE"}
	case "DEFAULT":
		if next.kw != "." && next.kw != "(" {
			p.next()
			return &DefaultExpr{Pos: pos}
		}
	case "CASE":
		return p.caseWhen()
	case "INTERVAL":
		if next.kind == tokInt || next.kind == tokNumber || next.kind == tokString || next.kw == "-" || next.kw == "+" {
			return p.interval()
		}
	}
	if next.kw == "(" {
		return p.specialCall(pos, kw)
	}
	return nil
}

// specialCall reads the calls that have words between their arguments.
func (p *parser) specialCall(pos Pos, kw string) Expr {
	switch kw {
	case "EXISTS":
		if l := p.lex; l.next().kw == "(" {
			if t := l.next(); !queryWord(t) {
				return nil // the function exists(array, x -> …)
			}
		}
		p.next()
		return &Exists{Pos: pos, Query: p.queryInParens()}
	case "CAST", "TRY_CAST":
		p.next()
		p.next()
		n := &Cast{Pos: pos, Try: kw == "TRY_CAST", X: p.expr()}
		p.expect("AS")
		n.Type = p.typ()
		p.expect(")")
		return n
	case "EXTRACT":
		p.next()
		p.next()
		n := &Extract{Pos: pos}
		if p.tok.kind != tokIdent {
			p.want("a field (YEAR, MONTH, DAY, HOUR …)")
			p.unexpected()
			return n
		}
		n.Field = strings.ToUpper(p.tok.text)
		p.next()
		p.expect("FROM")
		n.X = p.value()
		p.expect(")")
		return n
	case "TRIM":
		return p.trim(pos)
	case "POSITION":
		return p.position(pos)
	case "SUBSTRING", "SUBSTR":
		return p.substring(pos)
	case "OVERLAY":
		return p.overlay(pos)
	case "TIMESTAMPADD", "DATEADD", "DATE_ADD":
		return p.timeUnitCall(pos, "TIMESTAMPADD")
	case "TIMESTAMPDIFF", "DATEDIFF", "DATE_DIFF":
		return p.timeUnitCall(pos, "TIMESTAMPDIFF")
	}
	return nil
}

// number reads a numeric literal.
func (p *parser) number() *NumberLit {
	text := strings.ToUpper(p.tok.text)
	n := &NumberLit{Pos: p.tok.pos, Text: text}
	if p.tok.kind == tokNumber {
		for _, s := range [...]string{"BD", "L", "S", "Y", "F", "D"} {
			if cut, ok := strings.CutSuffix(text, s); ok {
				n.Text, n.Suffix = cut, s
				break
			}
		}
	}
	p.next()
	return n
}

// typedLiteral reports whether a word in upper case makes a literal of the text
// behind it.
func typedLiteral(name string) bool {
	switch name {
	case "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIME", "X":
		return true
	}
	return false
}

// typed reads DATE '…', X'…' and their like.
func (p *parser) typed(pos Pos, name string) Expr {
	p.next()
	at := p.tok.pos
	text := p.oneText("")
	if name != "X" {
		return &TypedLit{Pos: pos, Type: name, Value: text}
	}
	if len(text)%2 == 1 {
		text = "0" + text
	}
	b, err := hex.DecodeString(text)
	if err != nil {
		p.failAt(at, ClassHexLiteral, "a binary literal has only hexadecimal digits", "")
	}
	return &BytesLit{Pos: pos, Value: b}
}

// parenthesis reads (expr), (a, b), (SELECT …) and lambdas of several parameters.
func (p *parser) parenthesis() Expr {
	pos := p.tok.pos
	if p.atLambda() {
		params := p.idents("a parameter")
		p.expect("->")
		return &Lambda{Pos: pos, Params: params, Body: p.expr()}
	}
	p.next()
	if p.atQuery() {
		q := p.query()
		p.expect(")")
		return &ScalarQuery{Pos: pos, Query: q}
	}
	first := p.field()
	if q, ok := first.(*ScalarQuery); ok && p.atSetOp() {
		// ((SELECT …) UNION …): the inner parenthesis was an operand.
		whole := p.queryFrom(q.Pos, nil, p.setOps(&SubQuery{Pos: q.Pos, Query: q.Query}, setOpUnion))
		p.expect(")")
		return &ScalarQuery{Pos: pos, Query: whole}
	}
	items := []Expr{first}
	for p.accept(",") {
		items = append(items, p.field())
	}
	p.expect(")")
	if len(items) > 1 {
		return &Row{Pos: pos, Items: items}
	}
	if a, ok := first.(*Aliased); ok && p.err == nil {
		p.failAt(a.Alias.Pos, ClassSyntax, "an alias inside parentheses names a field of a struct, which has two or more", "")
	}
	return first
}

// atLambda reports whether (a, b, …) -> stands here. It looks at no more than
// names and commas.
func (p *parser) atLambda() bool {
	l := p.lex
	for {
		if t := l.next(); t.kind != tokIdent && t.kind != tokQuoted {
			return false
		}
		switch t := l.next(); t.kw {
		case ",":
		case ")":
			return l.next().kw == "->"
		default:
			return false
		}
	}
}

// nameOrCall reads a column, q.*, a function call or a lambda.
func (p *parser) nameOrCall() Expr {
	pos := p.tok.pos
	if p.peek().kw == "->" {
		param := p.ident("a parameter")
		p.next()
		return &Lambda{Pos: pos, Params: []Ident{param}, Body: p.expr()}
	}
	// A keyword can be a function's name (left, date): the parenthesis decides.
	n := Name{Parts: []Ident{{Pos: pos, Name: identText(p.tok)}}}
	if !p.atName() && p.peek().kw != "(" {
		p.ident("an expression")
		return &NullLit{}
	}
	p.next()
	for p.tok.kw == "." && p.chain(len(n.Parts)) {
		p.next()
		if p.accept("*") {
			return p.star(pos, n)
		}
		n.Parts = append(n.Parts, p.ident("a name"))
	}
	if p.tok.kw == "(" {
		return p.call(pos, n)
	}
	return &ColumnRef{Name: n}
}

// star reads what may follow * in a select list.
func (p *parser) star(pos Pos, qualifier Name) Expr {
	s := &Star{Pos: pos, Qualifier: qualifier}
	if p.tok.kw == "EXCEPT" && p.peek().kw == "(" {
		l := p.lex
		l.next()
		if !queryWord(l.next()) {
			p.next()
			s.Except = p.names("a column")
		}
	}
	return s
}

// field reads an item of a struct, perhaps with its name.
func (p *parser) field() Expr {
	x := p.expr()
	switch {
	case p.acceptSoft("AS"):
		return &Aliased{Pos: x.Position(), X: x, Alias: p.ident("a field's name")}
	case p.atAlias() && p.err == nil:
		return &Aliased{Pos: x.Position(), X: x, Alias: p.bareAlias()}
	}
	return x
}

// call reads the arguments of a function and what may follow them.
func (p *parser) call(pos Pos, name Name) Expr {
	n := &Call{Pos: pos, Func: name}
	argument := p.argument
	if len(name.Parts) == 1 && strings.EqualFold(name.Last(), "struct") {
		argument = p.field
	}
	p.expect("(")
	if !p.accept(")") {
		if p.accept("DISTINCT") {
			n.Distinct = true
		} else {
			p.accept("ALL")
		}
		for {
			n.Args = append(n.Args, argument())
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	if p.tok.kw == "FILTER" && p.peek().kw == "(" {
		p.next()
		p.expect("(")
		p.expect("WHERE")
		n.Filter = p.expr()
		p.expect(")")
	}
	if p.tok.kw == "OVER" {
		p.failAt(p.tok.pos, ClassUnsupported, "window functions (OVER) are not supported", "")
	}
	return n
}

// argument reads one argument, perhaps with its name.
func (p *parser) argument() Expr {
	if p.tok.kind == tokIdent || p.tok.kind == tokQuoted {
		if p.peek().kw == "=>" {
			n := &NamedArg{Pos: p.tok.pos, Name: identText(p.tok)}
			p.next()
			p.next()
			n.Value = p.expr()
			return n
		}
	}
	return p.expr()
}
