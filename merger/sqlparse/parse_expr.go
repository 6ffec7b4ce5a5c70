package sqlparse

// The grammar of expressions has two floors. On the upper one stand OR, AND,
// NOT and one predicate (IS NULL, BETWEEN, IN, LIKE …) behind a value; on the
// lower one, in falling strength, unary signs, * / % DIV, + - ||, shifts, &, ^,
// |, comparisons. So NOT a = b is NOT (a = b), and a = b IS NULL is
// (a = b) IS NULL.

// expr reads an expression of the upper floor.
func (p *parser) expr() Expr {
	if !p.enter() {
		return &NullLit{}
	}
	defer p.leave()
	return p.logic("OR", func() Expr { return p.logic("AND", p.not) })
}

// logic reads operands joined by AND or OR into one flat node.
func (p *parser) logic(op string, operand func() Expr) Expr {
	first := operand()
	p.might(op)
	if p.tok.kw != op {
		return first
	}
	n := &Logic{Pos: first.Position(), Op: op, Args: []Expr{first}}
	for p.acceptSoft(op) {
		n.Args = append(n.Args, operand())
	}
	return n
}

// not reads NOT and what follows. EXISTS binds in operand.
func (p *parser) not() Expr {
	pos := p.tok.pos
	if p.tok.kw == "NOT" || p.tok.kw == "!" {
		p.next()
		if !p.enter() {
			return &NullLit{}
		}
		defer p.leave()
		return &Unary{Pos: pos, Op: "NOT", X: p.not()}
	}
	return p.predicate(p.value())
}

// predicate reads the predicate behind a value, if there is one.
func (p *parser) predicate(x Expr) Expr {
	pos := x.Position()
	p.might("IS", "NOT", "BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP")
	if p.acceptSoft("IS") {
		return p.is(pos, x)
	}
	not := false
	if p.tok.kw == "NOT" {
		switch p.peek().kw {
		case "BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP":
			p.next()
			not = true
		}
	}
	switch {
	case p.acceptSoft("BETWEEN"):
		n := &Between{Pos: pos, X: x, Not: not, Low: p.value()}
		p.expect("AND")
		n.High = p.value()
		return n
	case p.acceptSoft("IN"):
		return p.in(pos, x, not)
	case p.tok.kw == "LIKE", p.tok.kw == "ILIKE":
		return p.like(pos, x, not)
	case p.acceptSoft("RLIKE"), p.acceptSoft("REGEXP"):
		return &Like{Pos: pos, Op: "RLIKE", X: x, Pattern: p.value(), Not: not}
	}
	if not {
		p.unexpected()
	}
	return x
}

// is reads what follows IS.
func (p *parser) is(pos Pos, x Expr) Expr {
	not := p.accept("NOT")
	switch {
	case p.accept("NULL"):
		return &IsNull{Pos: pos, X: x, Not: not}
	case p.at("TRUE"), p.at("FALSE"), p.at("UNKNOWN"):
		v := p.tok.kw
		p.next()
		return &IsTruth{Pos: pos, X: x, Value: v, Not: not}
	case p.accept("DISTINCT"):
		p.expect("FROM")
		return &IsDistinct{Pos: pos, L: x, R: p.value(), Not: not}
	}
	p.unexpected()
	return x
}

// in reads the list or query behind IN.
func (p *parser) in(pos Pos, x Expr, not bool) Expr {
	p.expect("(")
	if p.atQuery() {
		q := p.query()
		p.expect(")")
		return &InQuery{Pos: pos, X: x, Query: q, Not: not}
	}
	n := &InList{Pos: pos, X: x, Not: not, List: p.exprs()}
	p.expect(")")
	return n
}

// like reads LIKE or ILIKE with a pattern or a quantified list.
func (p *parser) like(pos Pos, x Expr, not bool) Expr {
	op := p.tok.kw
	p.next()
	for _, q := range [...]string{"ANY", "SOME", "ALL"} {
		if p.tok.kw != q || p.peek().kw != "(" {
			continue
		}
		p.next()
		p.next()
		n := &LikeAny{Pos: pos, Op: op, Quantifier: q, X: x, Not: not, Patterns: p.exprs()}
		if q == "SOME" {
			n.Quantifier = "ANY"
		}
		p.expect(")")
		return n
	}
	n := &Like{Pos: pos, Op: op, X: x, Pattern: p.value(), Not: not}
	if p.acceptSoft("ESCAPE") {
		at := p.tok.pos
		n.Escape = p.text("the escape character in quotes")
		if len([]rune(n.Escape)) != 1 && p.err == nil {
			p.failAt(at, ClassSyntax, "the escape must be one character", "")
		}
	}
	return n
}

// exprs reads one or more expressions apart by commas.
func (p *parser) exprs() []Expr {
	list := []Expr{p.expr()}
	for p.accept(",") {
		list = append(list, p.expr())
	}
	return list
}

// level of binary operators; a higher one binds closer.
const (
	levelComparison = iota + 1
	levelOr
	levelXor
	levelAnd
	levelShift
	levelSum
	levelProduct
)

// binaryOp returns the canonical operator at the present token, its level, and
// how many tokens it takes.
func (p *parser) binaryOp() (op string, level, tokens int) {
	switch kw := p.tok.kw; kw {
	case "*", "/", "%", "DIV":
		return kw, levelProduct, 1
	case "+", "-", "||":
		return kw, levelSum, 1
	case "<<":
		return kw, levelShift, 1
	case "&":
		return kw, levelAnd, 1
	case "^":
		return kw, levelXor, 1
	case "|":
		return kw, levelOr, 1
	case "=", "<=>", "<>", "<", "<=", ">=":
		return kw, levelComparison, 1
	case "==":
		return "=", levelComparison, 1
	case "!=":
		return "<>", levelComparison, 1
	case "!<":
		return ">=", levelComparison, 1
	case "!>":
		return "<=", levelComparison, 1
	case ">":
		return p.greater()
	}
	return "", 0, 0
}

// greater tells > from the shifts >> and >>>, which are that many tokens
// without a blank between.
func (p *parser) greater() (op string, level, tokens int) {
	l, end, n := p.lex, p.tok.end(), 1
	for n < 3 {
		t := l.next()
		if t.kw != ">" || t.pos.Offset != end {
			break
		}
		end = t.end()
		n++
	}
	switch n {
	case 1:
		return ">", levelComparison, 1
	case 2:
		return ">>", levelShift, 2
	}
	return ">>>", levelShift, 3
}

// value reads an expression of the lower floor.
func (p *parser) value() Expr { return p.binary(levelComparison) }

// binary reads operands joined by operators of at least a level.
func (p *parser) binary(min int) Expr {
	if !p.enter() {
		return &NullLit{}
	}
	defer p.leave()
	left := p.unary()
	for n := 1; ; n++ {
		op, level, tokens := p.binaryOp()
		if level < min || level == 0 {
			return left
		}
		for range tokens {
			p.next()
		}
		if !p.chain(n) {
			return left
		}
		left = &Binary{Pos: left.Position(), Op: op, L: left, R: p.binary(level + 1)}
	}
}

// unary reads signs and ~. A minus sign directly before a number belongs to it,
// so that the smallest integers can be written.
func (p *parser) unary() Expr {
	pos := p.tok.pos
	op := p.tok.kw
	switch op {
	case "-":
		if next := p.peek(); next.kind == tokInt || next.kind == tokNumber {
			p.next()
			n := p.number()
			n.Pos, n.Text = pos, "-"+n.Text
			return p.postfix(n)
		}
	case "+", "~":
	default:
		return p.postfix(p.operand())
	}
	p.next()
	if !p.enter() {
		return &NullLit{}
	}
	defer p.leave()
	return &Unary{Pos: pos, Op: op, X: p.unary()}
}

// postfix reads [index], .field, ::type and COLLATE behind an operand.
func (p *parser) postfix(x Expr) Expr {
	pos := x.Position()
	for n := 1; p.chain(n); n++ {
		switch {
		case p.tok.kw == "[":
			p.next()
			x = &Index{Pos: pos, X: x, I: p.value()}
			p.expect("]")
		case p.tok.kw == ".":
			p.next()
			if p.tok.kw == "*" {
				p.want("a field's name")
				p.unexpected()
				return x
			}
			x = &FieldRef{Pos: pos, X: x, Name: p.ident("a field's name")}
		case p.tok.kw == "::":
			p.next()
			x = &Cast{Pos: pos, X: x, Type: p.typ()}
		case p.tok.kw == "COLLATE":
			p.next()
			x = &Collate{Pos: pos, X: x, Collation: p.nameOf("a collation").Last()}
		default:
			return x
		}
	}
	return x
}
