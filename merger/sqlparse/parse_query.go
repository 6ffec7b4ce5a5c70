package sqlparse

// queryWord reports whether a token begins a query.
func queryWord(t token) bool {
	switch t.kw {
	case "SELECT", "WITH", "VALUES", "TABLE", "FROM":
		return true
	}
	return false
}

// atQuery reports whether a query begins at the present token (not one in
// parentheses).
func (p *parser) atQuery() bool {
	if !queryWord(p.tok) {
		return false
	}
	switch next := p.peek(); p.tok.kw {
	case "VALUES", "TABLE", "FROM", "WITH":
		// They are names, too: values.x, table = 1, (from).
		return next.kw != "." && next.kw != ")" && next.kw != "," && next.kw != "="
	}
	return true
}

// queryInParens reads (query).
func (p *parser) queryInParens() *Query {
	p.expect("(")
	q := p.query()
	p.expect(")")
	return q
}

// query reads a whole query.
func (p *parser) query() *Query {
	pos := p.tok.pos
	if !p.enter() {
		return &Query{Pos: pos, Body: &Values{}}
	}
	defer p.leave()
	with := p.with()
	return p.queryFrom(pos, with, p.setOps(p.queryTerm(), setOpUnion))
}

// queryFrom reads what follows a query's body.
func (p *parser) queryFrom(pos Pos, with []CTE, body QueryBody) *Query {
	q := &Query{Pos: pos, With: with, Body: body}
	if p.acceptSoft("ORDER") {
		p.expect("BY")
		for {
			q.OrderBy = append(q.OrderBy, p.orderItem())
			if !p.accept(",") {
				break
			}
		}
	}
	for _, w := range [...]string{"SORT", "DISTRIBUTE", "CLUSTER", "WINDOW"} {
		if p.tok.kw == w {
			p.failAt(p.tok.pos, ClassUnsupported, w+" is not supported", "")
		}
	}
	if p.acceptSoft("LIMIT") && !p.accept("ALL") {
		q.Limit = p.expr()
	}
	if p.acceptSoft("OFFSET") {
		q.Offset = p.expr()
	}
	return q
}

// with reads WITH a AS (…), b AS (…); nil if there is none.
func (p *parser) with() []CTE {
	if p.tok.kw != "WITH" {
		return nil
	}
	p.next()
	var list []CTE
	for {
		c := CTE{Pos: p.tok.pos, Name: p.ident("a query's name")}
		if p.at("(") {
			c.Columns = p.idents("a column")
		}
		p.accept("AS")
		c.Query = p.queryInParens()
		list = append(list, c)
		if !p.accept(",") {
			return list
		}
	}
}

func (p *parser) orderItem() OrderItem {
	o := OrderItem{Pos: p.tok.pos, X: p.expr()}
	if !p.acceptSoft("ASC") {
		o.Desc = p.acceptSoft("DESC")
	}
	if p.acceptSoft("NULLS") {
		first := p.accept("FIRST")
		if !first {
			p.expect("LAST")
		}
		o.NullsFirst = &first
	}
	return o
}

// levels of set operators; INTERSECT binds closer.
const (
	setOpUnion = iota + 1
	setOpIntersect
)

// atSetOp reports whether a set operator stands here.
func (p *parser) atSetOp() bool { _, level := p.setOp(); return level > 0 }

func (p *parser) setOp() (op string, level int) {
	switch p.tok.kw {
	case "UNION":
		return "UNION", setOpUnion
	case "EXCEPT", "MINUS":
		return "EXCEPT", setOpUnion
	case "INTERSECT":
		return "INTERSECT", setOpIntersect
	}
	p.might("UNION", "EXCEPT", "INTERSECT")
	return "", 0
}

// setOps reads the set operators of at least a level behind a query.
func (p *parser) setOps(left QueryBody, min int) QueryBody {
	for n := 1; ; n++ {
		op, level := p.setOp()
		if level < min || !p.chain(n) {
			return left
		}
		p.next()
		s := &SetOp{Pos: left.Position(), Op: op, L: left}
		if s.All = p.accept("ALL"); !s.All {
			p.accept("DISTINCT")
		}
		s.R = p.setOps(p.queryTerm(), level+1)
		left = s
	}
}

// queryTerm reads an operand of set operators.
func (p *parser) queryTerm() QueryBody {
	pos := p.tok.pos
	switch {
	case p.at("SELECT"):
		return p.selectQuery(nil)
	case p.at("VALUES"):
		return p.values()
	case p.accept("TABLE"):
		return &TableQuery{Pos: pos, Table: p.nameOf("a table")}
	case p.accept("FROM"):
		from := p.relations()
		if !p.at("SELECT") {
			p.unexpected()
		}
		return p.selectQuery(from)
	case p.at("("):
		return &SubQuery{Pos: pos, Query: p.queryInParens()}
	}
	p.unexpected()
	return &Values{Pos: pos}
}

// values reads VALUES (…), (…).
func (p *parser) values() *Values {
	v := &Values{Pos: p.tok.pos}
	p.expect("VALUES")
	for {
		at := p.tok.pos
		row := []Expr{p.expr()}
		if r, ok := row[0].(*Row); ok {
			row = r.Items
		}
		v.Rows = append(v.Rows, row)
		if len(row) != len(v.Rows[0]) && p.err == nil {
			p.failAt(at, ClassInlineTable, "the rows of VALUES differ in width", "")
		}
		if !p.accept(",") {
			return v
		}
	}
}

// selectQuery reads SELECT …; from is what a leading FROM named.
func (p *parser) selectQuery(from Relation) *Select {
	s := &Select{Pos: p.tok.pos, From: from}
	p.expect("SELECT")
	if p.tok.kw == "DISTINCT" || p.tok.kw == "ALL" {
		s.Distinct = p.tok.kw == "DISTINCT"
		p.next()
	}
	for {
		s.Items = append(s.Items, p.selectItem())
		if !p.acceptSoft(",") {
			break
		}
	}
	if from == nil && p.accept("FROM") {
		s.From = p.relations()
	}
	if p.tok.kw == "LATERAL" {
		p.failAt(p.tok.pos, ClassUnsupported, "LATERAL is not supported", "")
	}
	if p.acceptSoft("WHERE") {
		s.Where = p.expr()
	}
	if p.acceptSoft("GROUP") {
		p.expect("BY")
		p.groupBy(s)
	}
	if p.acceptSoft("HAVING") {
		s.Having = p.expr()
	}
	return s
}

func (p *parser) selectItem() SelectItem {
	it := SelectItem{Pos: p.tok.pos, X: p.expr()}
	switch {
	case p.acceptSoft("AS"):
		id := p.ident("an alias")
		it.Alias = &id
	case p.atAlias():
		p.might("FROM")
		id := p.bareAlias()
		it.Alias = &id
	}
	return it
}

func (p *parser) groupBy(s *Select) {
	for _, w := range [...]string{"GROUPING", "CUBE", "ROLLUP"} {
		if next := p.peek(); p.tok.kw == w && (next.kw == "(" || next.kw == "SETS") {
			p.failAt(p.tok.pos, ClassUnsupported, "GROUP BY "+w+" is not supported", "")
			return
		}
	}
	if next := p.peek(); p.tok.kw == "ALL" && next.kw != "," && next.kw != "." && next.kw != "(" {
		p.next()
		s.GroupByAll = true
		return
	}
	s.GroupBy = p.exprs()
	if p.tok.kw == "WITH" {
		p.failAt(p.tok.pos, ClassUnsupported, "WITH CUBE and WITH ROLLUP are not supported", "")
	}
}
