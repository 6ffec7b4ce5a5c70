package sqlparse

import "strings"

// caseWhen reads CASE … END.
func (p *parser) caseWhen() Expr {
	n := &Case{Pos: p.tok.pos}
	p.next()
	if !p.at("WHEN") {
		n.Operand = p.expr()
	}
	for p.at("WHEN") {
		w := When{Pos: p.tok.pos}
		p.next()
		w.Cond = p.expr()
		p.expect("THEN")
		w.Then = p.expr()
		n.Whens = append(n.Whens, w)
	}
	if len(n.Whens) == 0 {
		p.unexpected()
	}
	if p.accept("ELSE") {
		n.Else = p.expr()
	}
	p.expect("END")
	return n
}

// intervalUnits are the units by their spellings.
var intervalUnits = map[string]string{
	"YEAR": "YEAR", "YEARS": "YEAR", "MONTH": "MONTH", "MONTHS": "MONTH", "WEEK": "WEEK", "WEEKS": "WEEK",
	"DAY": "DAY", "DAYS": "DAY", "HOUR": "HOUR", "HOURS": "HOUR", "MINUTE": "MINUTE", "MINUTES": "MINUTE",
	"SECOND": "SECOND", "SECONDS": "SECOND", "MILLISECOND": "MILLISECOND", "MILLISECONDS": "MILLISECOND",
	"MICROSECOND": "MICROSECOND", "MICROSECONDS": "MICROSECOND", "NANOSECOND": "NANOSECOND", "NANOSECONDS": "NANOSECOND",
}

// unit returns the unit that the present token names, "" if none.
func (p *parser) unit() string {
	if p.tok.kind != tokIdent {
		return ""
	}
	return intervalUnits[strings.ToUpper(p.tok.text)]
}

// interval reads an interval literal.
func (p *parser) interval() Expr {
	n := &IntervalLit{Pos: p.tok.pos}
	p.next()
	for {
		part := p.intervalPart()
		n.Parts = append(n.Parts, part)
		if p.err != nil || part.Unit == "" {
			return n
		}
		if p.at("TO") && len(n.Parts) == 1 {
			p.next()
			if n.To = p.unit(); n.To == "" {
				p.want("a unit")
				p.unexpected()
				return n
			}
			p.next()
			return n
		}
		if !p.atIntervalPart() {
			return n
		}
	}
}

// atIntervalPart reports whether another value with a unit follows.
func (p *parser) atIntervalPart() bool {
	l, t := p.lex, p.tok
	if t.kw == "-" || t.kw == "+" {
		t = l.next()
	}
	if t.kind != tokInt && t.kind != tokNumber && t.kind != tokString {
		return false
	}
	t = l.next()
	return t.kind == tokIdent && intervalUnits[strings.ToUpper(t.text)] != ""
}

func (p *parser) intervalPart() IntervalPart {
	part := IntervalPart{Pos: p.tok.pos}
	sign := ""
	if p.tok.kw == "-" || p.tok.kw == "+" {
		if p.tok.kw == "-" {
			sign = "-"
		}
		p.next()
	}
	switch p.tok.kind {
	case tokString:
		part.Text = true
		part.Value = p.text("")
		if sign != "" {
			part.Value = negateText(part.Value)
		}
	case tokInt, tokNumber:
		part.Value = sign + strings.ToUpper(p.tok.text)
		p.next()
	default:
		p.want("a number or text")
		p.unexpected()
		return part
	}
	part.Unit = p.unit()
	if part.Unit != "" {
		p.next()
		return part
	}
	if !part.Text {
		p.want("a unit (YEAR, MONTH, DAY, HOUR, MINUTE, SECOND …)")
		p.unexpected()
	}
	return part
}

// negateText turns the sign of an interval's text.
func negateText(s string) string {
	s = strings.TrimSpace(s)
	switch {
	case strings.HasPrefix(s, "-"):
		return s[1:]
	case strings.HasPrefix(s, "+"):
		return "-" + s[1:]
	}
	return "-" + s
}

// trim reads TRIM with its words, or the plain call trim(x).
func (p *parser) trim(pos Pos) Expr {
	name := p.tok.text
	p.next()
	p.next()
	n := &Trim{Pos: pos, Where: "BOTH"}
	worded := false
	switch p.tok.kw {
	case "BOTH", "LEADING", "TRAILING":
		if k := p.peek(); k.kw != ")" && k.kw != "," && k.kw != "." {
			n.Where, worded = p.tok.kw, true
			p.next()
		}
	}
	if worded && p.accept("FROM") {
		n.X = p.value()
		p.expect(")")
		return n
	}
	first := p.expr()
	if p.accept("FROM") {
		n.Chars, n.X = first, p.value()
		p.expect(")")
		return n
	}
	if worded {
		p.unexpected()
	}
	return p.plainCall(pos, name, first)
}

// plainCall ends a call whose first argument has been read.
func (p *parser) plainCall(pos Pos, name string, first Expr) Expr {
	n := &Call{Pos: pos, Func: Name{Parts: []Ident{{Pos: pos, Name: name}}}, Args: []Expr{first}}
	for p.accept(",") {
		n.Args = append(n.Args, p.expr())
	}
	p.expect(")")
	return n
}

// position reads POSITION(a IN b) as the call locate(a, b).
func (p *parser) position(pos Pos) Expr {
	name := p.tok.text
	p.next()
	p.next()
	first := p.value()
	if p.accept("IN") {
		second := p.value()
		p.expect(")")
		return &Call{Pos: pos, Func: Name{Parts: []Ident{{Pos: pos, Name: "position"}}}, Args: []Expr{first, second}}
	}
	return p.plainCall(pos, name, first)
}

// substring reads SUBSTRING(x FROM a FOR n) as the call substring(x, a, n).
func (p *parser) substring(pos Pos) Expr {
	name := p.tok.text
	p.next()
	p.next()
	first := p.value()
	if !p.accept("FROM") {
		return p.plainCall(pos, name, first)
	}
	n := &Call{Pos: pos, Func: Name{Parts: []Ident{{Pos: pos, Name: "substring"}}}, Args: []Expr{first, p.value()}}
	if p.accept("FOR") {
		n.Args = append(n.Args, p.value())
	}
	p.expect(")")
	return n
}

// overlay reads OVERLAY(x PLACING y FROM n [FOR m]), or the plain call.
func (p *parser) overlay(pos Pos) Expr {
	name := p.tok.text
	p.next()
	p.next()
	first := p.value()
	if !p.accept("PLACING") {
		return p.plainCall(pos, name, first)
	}
	n := &Overlay{Pos: pos, X: first, With: p.value()}
	p.expect("FROM")
	n.Start = p.value()
	if p.accept("FOR") {
		n.Length = p.value()
	}
	p.expect(")")
	return n
}

// timeUnitCall reads DATEADD(MONTH, n, x) and its like, or the plain call if the
// first argument is no unit; nil if no unit's name stands there.
func (p *parser) timeUnitCall(pos Pos, fn string) Expr {
	l := p.lex
	l.next()
	unit := l.next()
	if unit.kind != tokIdent || l.next().kw != "," {
		return nil
	}
	u := strings.ToUpper(unit.text)
	switch u {
	case "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFYEAR", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND":
	default:
		return nil
	}
	name := p.tok.text
	for range 4 {
		p.next()
	}
	a := p.value()
	if p.accept(",") {
		n := &TimeUnitCall{Pos: pos, Func: fn, Unit: u, A: a, B: p.value()}
		p.expect(")")
		return n
	}
	p.expect(")") // date_add(day, 1) with a column called day
	return &Call{
		Pos: pos, Func: Name{Parts: []Ident{{Pos: pos, Name: name}}},
		Args: []Expr{&ColumnRef{Name{Parts: []Ident{{Pos: unit.pos, Name: unit.text}}}}, a},
	}
}
