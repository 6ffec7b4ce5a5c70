package sqlparse

// statement reads one statement.
func (p *parser) statement() Statement {
	pos := p.tok.pos
	if !p.enter() {
		return &QueryStmt{}
	}
	defer p.leave()
	if p.tok.kw == "WITH" {
		return p.withStatement(pos)
	}
	if s := p.dml(pos, nil); s != nil {
		return s
	}
	if queryWord(p.tok) || p.tok.kw == "(" {
		return &QueryStmt{Pos: pos, Query: p.query()}
	}
	if s := p.ddl(pos); s != nil {
		return s
	}
	if s := p.command(pos); s != nil {
		return s
	}
	p.unknownStatement()
	return &QueryStmt{}
}

// withStatement reads WITH … before a query or a row-level statement.
func (p *parser) withStatement(pos Pos) Statement {
	with := p.with()
	if s := p.dml(pos, with); s != nil {
		return s
	}
	return &QueryStmt{Pos: pos, Query: p.queryFrom(pos, with, p.setOps(p.queryTerm(), setOpUnion))}
}

// dml reads INSERT, UPDATE, DELETE or MERGE; nil if none of them begins here.
func (p *parser) dml(pos Pos, with []CTE) Statement {
	switch p.tok.kw {
	case "INSERT":
		return p.insert(pos, with)
	case "UPDATE":
		return p.update(pos, with)
	case "DELETE":
		return p.delete(pos, with)
	case "MERGE":
		return p.merge(pos, with)
	}
	p.want("INSERT")
	p.want("UPDATE")
	p.want("DELETE")
	p.want("MERGE")
	return nil
}

// insert reads INSERT INTO | OVERWRITE.
func (p *parser) insert(pos Pos, with []CTE) Statement {
	p.next()
	n := &Insert{Pos: pos, With: with}
	if n.Overwrite = p.accept("OVERWRITE"); !n.Overwrite {
		p.expect("INTO")
	}
	p.acceptSoft("TABLE")
	n.Table = p.nameOf("a table")
	if p.acceptSoft("PARTITION") {
		n.Partition = p.partition(true)
	}
	switch {
	case p.tok.kw == "BY":
		p.next()
		p.expect("NAME")
		n.ByName = true
	case p.tok.kw == "(" && !p.queryInside():
		n.Columns = p.idents("a column")
	case p.tok.kw == "REPLACE":
		p.failAt(p.tok.pos, ClassUnsupported, "INSERT … REPLACE is not supported", "use DELETE and INSERT, or MERGE")
	}
	if !n.ByName && n.Columns == nil {
		p.want("a column list")
	}
	n.Source = p.query()
	return n
}

// queryInside reports whether the parenthesis here holds a query.
func (p *parser) queryInside() bool {
	l := p.lex
	for {
		t := l.next()
		if t.kw != "(" {
			return queryWord(t)
		}
	}
}

// partition reads (p = 'a', q); columns without value only where dynamic.
func (p *parser) partition(dynamic bool) []PartitionValue {
	var list []PartitionValue
	p.expect("(")
	for {
		v := PartitionValue{Pos: p.tok.pos, Column: p.ident("a partition column")}
		if p.accept("=") || p.accept("==") {
			v.Value = p.value()
		} else if !dynamic {
			p.unexpected()
		}
		list = append(list, v)
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return list
}

// targetAlias reads the alias of a row-level statement's table or source, which
// may not name columns.
func (p *parser) targetAlias(statement string) *Alias {
	a := p.relationAlias()
	if a != nil && len(a.Columns) > 0 {
		p.failAt(a.Columns[0].Pos, ClassColumnAliases, "column names are not allowed behind an alias in "+statement,
			"name them in the query: (SELECT col1 AS a, … FROM …)")
	}
	return a
}

// delete reads DELETE FROM.
func (p *parser) delete(pos Pos, with []CTE) Statement {
	p.next()
	p.expect("FROM")
	n := &Delete{Pos: pos, With: with, Table: p.nameOf("a table")}
	n.Alias = p.targetAlias("DELETE")
	if p.accept("WHERE") {
		n.Where = p.expr()
	}
	return n
}

// update reads UPDATE … SET.
func (p *parser) update(pos Pos, with []CTE) Statement {
	p.next()
	n := &Update{Pos: pos, With: with, Table: p.nameOf("a table")}
	n.Alias = p.targetAlias("UPDATE")
	p.expect("SET")
	n.Set = p.assignments()
	if p.accept("WHERE") {
		n.Where = p.expr()
	}
	return n
}

// assignments reads a = x, b.c = y.
func (p *parser) assignments() []Assignment {
	var list []Assignment
	for {
		a := Assignment{Target: p.nameOf("a column")}
		if p.tok.kw == "[" {
			p.failAt(p.tok.pos, ClassUnsupported, "an element of an array or map cannot be set", "set the whole column")
		}
		if !p.accept("=") && !p.accept("==") {
			p.unexpected()
		}
		a.Value = p.expr()
		list = append(list, a)
		if !p.accept(",") {
			return list
		}
	}
}

// merge reads MERGE INTO.
func (p *parser) merge(pos Pos, with []CTE) Statement {
	p.next()
	n := &Merge{Pos: pos, With: with}
	if p.tok.kw == "WITH" {
		p.next()
		p.expectAll("SCHEMA", "EVOLUTION")
		n.SchemaEvolution = true
	}
	p.expect("INTO")
	n.Table = p.nameOf("a table")
	n.Alias = p.targetAlias("MERGE")
	p.expect("USING")
	n.Source = p.mergeSource()
	p.expect("ON")
	n.On = p.expr()
	for last := Matched; p.at("WHEN"); {
		at := p.tok
		c := p.mergeClause()
		if c.Family < last && p.err == nil {
			p.fail(&Error{Pos: at.pos, Class: ClassSyntax, Found: at.text, Message: c.Family.String() + " clauses stand before " + last.String() + " clauses"})
		}
		last = c.Family
		n.Clauses = append(n.Clauses, c)
	}
	if len(n.Clauses) == 0 && p.err == nil && p.tok.kind == tokEOF {
		p.fail(&Error{
			Pos: p.tok.pos, Class: ClassMergeWithoutWhen, Message: "MERGE needs at least one WHEN clause",
			Hint: "add WHEN MATCHED THEN … or WHEN NOT MATCHED THEN …", Incomplete: true,
		})
	}
	p.checkClauses(n.Clauses)
	return n
}

// mergeSource reads a table, view or query with its alias.
func (p *parser) mergeSource() Relation {
	pos := p.tok.pos
	if p.at("(") {
		q := p.queryInParens()
		return &QueryRef{Pos: pos, Query: q, Alias: p.targetAlias("MERGE")}
	}
	t := &TableRef{Pos: pos, Table: p.nameOf("a table, view or query")}
	p.timeTravel(t)
	t.Alias = p.targetAlias("MERGE")
	return t
}

// mergeClause reads WHEN … THEN ….
func (p *parser) mergeClause() MergeClause {
	c := MergeClause{Pos: p.tok.pos}
	p.expect("WHEN")
	if p.accept("NOT") {
		c.Family = NotMatched
	}
	p.expect("MATCHED")
	if c.Family == NotMatched && p.accept("BY") {
		if p.accept("SOURCE") {
			c.Family = NotMatchedBySource
		} else {
			p.expect("TARGET")
		}
	}
	if p.accept("AND") {
		c.Cond = p.expr()
	}
	p.expect("THEN")
	p.mergeAction(&c)
	return c
}

// mergeAction reads what a clause does; each family has its own actions.
func (p *parser) mergeAction(c *MergeClause) {
	switch {
	case c.Family == NotMatched:
		p.expect("INSERT")
		p.mergeInsert(c)
	case p.accept("DELETE"):
		c.Action = MergeDelete
	default:
		p.expect("UPDATE")
		p.expect("SET")
		if c.Family == Matched && p.accept("*") {
			c.Action = MergeUpdateStar
			return
		}
		c.Set = p.assignments()
	}
}

func (p *parser) mergeInsert(c *MergeClause) {
	if p.accept("*") {
		c.Action = MergeInsertStar
		return
	}
	c.Action = MergeInsert
	if !p.at("(") {
		p.unexpected()
		return
	}
	c.Columns = p.names("a column")
	p.expect("VALUES")
	at := p.tok.pos
	p.expect("(")
	c.Values = p.exprs()
	p.expect(")")
	if len(c.Values) != len(c.Columns) && p.err == nil {
		p.failAt(at, ClassInsertArity, "the numbers of columns and values differ", "")
	}
}

// checkClauses refuses a clause behind one of its family that has no condition:
// it could never act.
func (p *parser) checkClauses(clauses []MergeClause) {
	var open [NotMatchedBySource + 1]*MergeClause
	for i := range clauses {
		c := &clauses[i]
		if first := open[c.Family]; first != nil && p.err == nil {
			class := [...]string{ClassLastMatched, ClassLastNotMatched, ClassLastBySource}[c.Family]
			p.failAt(first.Pos, class, "only the last "+c.Family.String()+" clause may go without a condition",
				"add AND … to this clause or move it behind the others")
		}
		if c.Cond == nil {
			open[c.Family] = c
		}
	}
}
