package sqlparse

// relations reads what follows FROM: relations apart by commas (cross joins)
// and joins.
func (p *parser) relations() Relation {
	left := p.joins(p.relation())
	for n := 1; p.tok.kw == "," && p.chain(n); n++ {
		p.next()
		left = &Join{Pos: left.Position(), Kind: "CROSS", L: left, R: p.joins(p.relation())}
	}
	return left
}

// joins reads the joins behind a relation.
func (p *parser) joins(left Relation) Relation {
	for n := 1; p.chain(n); n++ {
		j := &Join{Pos: left.Position(), L: left}
		if !p.joinKind(j) {
			return left
		}
		j.R = p.relation()
		switch {
		case p.acceptSoft("ON"):
			j.On = p.expr()
		case p.acceptSoft("USING"):
			j.Using = p.idents("a column")
		}
		left = j
	}
	return left
}

// joinKind reads the words of a join up to JOIN; false if none begins here.
func (p *parser) joinKind(j *Join) bool {
	p.might("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
	at := p.tok
	if p.tok.kw == "NATURAL" {
		p.next()
		j.Natural = true
	}
	switch p.tok.kw {
	case "JOIN", "INNER":
		j.Kind = "INNER"
	case "CROSS", "SEMI", "ANTI":
		j.Kind = p.tok.kw
	case "LEFT", "RIGHT", "FULL":
		j.Kind = p.tok.kw
		p.next()
		if j.Kind == "LEFT" && (p.tok.kw == "SEMI" || p.tok.kw == "ANTI") {
			j.Kind = p.tok.kw
			p.next()
		} else {
			p.acceptSoft("OUTER")
		}
		p.expect("JOIN")
		return p.err == nil
	default:
		if at.kw == "NATURAL" {
			p.want("JOIN")
			p.unexpected()
		}
		return false
	}
	if p.tok.kw != "JOIN" {
		p.next()
	}
	p.expect("JOIN")
	if p.tok.kw == "LATERAL" {
		p.failAt(p.tok.pos, ClassUnsupported, "LATERAL is not supported", "")
	}
	return p.err == nil
}

// relation reads one relation without joins.
func (p *parser) relation() Relation {
	pos := p.tok.pos
	if !p.enter() {
		return &TableRef{Pos: pos}
	}
	defer p.leave()
	switch {
	case p.tok.kw == "(":
		return p.relationInParens(pos)
	case p.tok.kw == "VALUES":
		return &ValuesRef{Pos: pos, Values: p.values(), Alias: p.relationAlias()}
	case p.tok.kw == "LATERAL":
		p.failAt(pos, ClassUnsupported, "LATERAL is not supported", "")
		return &TableRef{Pos: pos}
	}
	n := p.nameOf("a table")
	if p.tok.kw == "(" {
		return p.functionRef(pos, n)
	}
	t := &TableRef{Pos: pos, Table: n}
	p.timeTravel(t)
	t.Alias = p.relationAlias()
	return t
}

// relationInParens reads (query) a, (a JOIN b …) or ((query) UNION …) a.
func (p *parser) relationInParens(pos Pos) Relation {
	p.next()
	if p.atQuery() {
		q := p.query()
		p.expect(")")
		return &QueryRef{Pos: pos, Query: q, Alias: p.relationAlias()}
	}
	inner := p.relation()
	if q, ok := inner.(*QueryRef); ok && q.Alias == nil && (p.atSetOp() || p.tok.kw == "ORDER" || p.tok.kw == "LIMIT") {
		whole := p.queryFrom(q.Pos, nil, p.setOps(&SubQuery{Pos: q.Pos, Query: q.Query}, setOpUnion))
		p.expect(")")
		return &QueryRef{Pos: pos, Query: whole, Alias: p.relationAlias()}
	}
	inner = p.joins(inner)
	p.expect(")")
	if p.tok.kw == "AS" || p.atAlias() && p.err == nil {
		p.failAt(p.tok.pos, ClassUnsupported, "an alias for a whole join is not supported", "give each table its own")
	}
	return inner
}

func (p *parser) functionRef(pos Pos, name Name) Relation {
	f := &FunctionRef{Pos: pos, Func: name}
	p.expect("(")
	if !p.accept(")") {
		for {
			f.Args = append(f.Args, p.argument())
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	f.Alias = p.relationAlias()
	return f
}

// timeTravel reads [FOR] VERSION AS OF v or [FOR] TIMESTAMP AS OF t.
func (p *parser) timeTravel(t *TableRef) {
	l, first := p.lex, p.tok
	if first.kw == "FOR" {
		first = l.next()
	}
	version := first.kw == "VERSION" || first.kw == "SYSTEM_VERSION"
	if !version && first.kw != "TIMESTAMP" && first.kw != "SYSTEM_TIME" {
		return
	}
	if l.next().kw != "AS" || l.next().kw != "OF" {
		return
	}
	p.acceptSoft("FOR")
	p.next()
	p.next()
	p.next()
	if !version {
		t.Timestamp = p.value()
		return
	}
	t.Version = p.operand()
	switch t.Version.(type) {
	case *NumberLit, *StringLit:
	default:
		if p.err == nil {
			p.failAt(t.Version.Position(), ClassSyntax, "the version must be a snapshot id or a tag's name in quotes", "")
		}
	}
}

// relationAlias reads [AS] name [(columns)], nil if there is none.
func (p *parser) relationAlias() *Alias {
	var id Ident
	switch {
	case p.acceptSoft("AS"):
		id = p.ident("an alias")
	case p.atAlias():
		p.might("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "JOIN", "LEFT", "INNER", "UNION", "SET", "USING", "ON", "WHEN", "VALUES", "SELECT")
		id = p.bareAlias()
	default:
		p.refuse("PIVOT", "UNPIVOT", "TABLESAMPLE")
		return nil
	}
	a := &Alias{Pos: id.Pos, Name: id.Name}
	if p.tok.kw == "(" {
		a.Columns = p.idents("a column")
	}
	return a
}

// refuse reports the first of some keywords that stands here as unsupported.
func (p *parser) refuse(kws ...string) {
	for _, kw := range kws {
		if p.tok.kw == kw {
			p.failAt(p.tok.pos, ClassUnsupported, kw+" is not supported", "")
		}
	}
}
