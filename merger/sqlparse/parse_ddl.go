package sqlparse

import "strings"

// ddl reads CREATE, DROP, TRUNCATE and ALTER; nil if none of them begins here.
func (p *parser) ddl(pos Pos) Statement {
	switch p.tok.kw {
	case "CREATE":
		return p.create(pos)
	case "DROP":
		return p.drop(pos)
	case "TRUNCATE":
		p.next()
		p.expect("TABLE")
		n := &TruncateTable{Pos: pos, Table: p.nameOf("a table")}
		if p.acceptSoft("PARTITION") {
			n.Partition = p.partition(false)
		}
		return n
	case "ALTER":
		return p.alter(pos)
	case "REPLACE":
		p.next()
		p.expect("TABLE")
		p.failAt(pos, ClassUnsupported, "REPLACE TABLE is not supported", "use DROP TABLE and CREATE TABLE")
		return &CreateTable{Pos: pos}
	}
	for _, w := range [...]string{"CREATE", "DROP", "TRUNCATE", "ALTER"} {
		p.want(w)
	}
	return nil
}

// create reads CREATE DATABASE, TABLE or VIEW.
func (p *parser) create(pos Pos) Statement {
	p.next()
	replace := false
	if p.tok.kw == "OR" {
		p.next()
		p.expect("REPLACE")
		replace = true
	}
	temporary := false
	if p.tok.kw == "GLOBAL" {
		p.failAt(p.tok.pos, ClassUnsupported, "global views are not supported", "use CREATE TEMPORARY VIEW")
	}
	if p.acceptSoft("TEMPORARY") || p.acceptSoft("TEMP") {
		temporary = true
	}
	switch {
	case p.accept("VIEW"):
		return p.createView(&CreateView{Pos: pos, Replace: replace, Temporary: temporary})
	case p.tok.kw == "FUNCTION":
		p.failAt(p.tok.pos, ClassUnsupported, "CREATE FUNCTION is not supported", "")
	case temporary:
		p.unexpected()
	case p.accept("TABLE"):
		if replace {
			p.failAt(pos, ClassUnsupported, "CREATE OR REPLACE TABLE is not supported", "use DROP TABLE and CREATE TABLE")
		}
		return p.createTable(&CreateTable{Pos: pos})
	case !replace && (p.accept("DATABASE") || p.accept("SCHEMA") || p.acceptSoft("NAMESPACE")):
		return p.createDatabase(&CreateDatabase{Pos: pos})
	default:
		p.want("TEMPORARY VIEW")
		p.unexpected()
	}
	return &CreateTable{Pos: pos}
}

func (p *parser) ifNotExists() bool {
	if p.tok.kw == "IF" && p.peek().kw == "NOT" {
		p.expectAll("IF", "NOT", "EXISTS")
		return true
	}
	return false
}

func (p *parser) ifExists() bool {
	if p.tok.kw == "IF" && p.peek().kw == "EXISTS" {
		p.next()
		p.next()
		return true
	}
	return false
}

func (p *parser) createView(n *CreateView) Statement {
	n.IfNotExists = p.ifNotExists()
	n.Name = p.nameOf("a view")
	if p.accept("(") {
		for {
			n.Columns = append(n.Columns, p.ident("a column"))
			if p.acceptSoft("COMMENT") {
				p.oneText("a text in quotes") // columns of a temporary view have no comments
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	if p.acceptSoft("COMMENT") {
		n.Comment = p.textPtr()
	}
	p.expect("AS")
	n.Query = p.query()
	return n
}

func (p *parser) textPtr() *string {
	s := p.text("a text in quotes")
	return &s
}

func (p *parser) createDatabase(n *CreateDatabase) Statement {
	n.IfNotExists = p.ifNotExists()
	n.Name = p.nameOf("a database")
	for p.err == nil {
		at := p.tok
		switch {
		case p.accept("COMMENT"):
			p.once(at, n.Comment != nil)
			n.Comment = p.textPtr()
		case p.accept("LOCATION"):
			p.once(at, n.Location != nil)
			n.Location = p.textPtr()
		case p.tok.kw == "WITH":
			p.next()
			if !p.accept("DBPROPERTIES") {
				p.unexpected()
			}
			p.once(at, n.Properties != nil)
			n.Properties = p.properties()
		default:
			return n
		}
	}
	return n
}

// once refuses a clause that was given before.
func (p *parser) once(at token, again bool) {
	if again && p.err == nil {
		p.fail(&Error{Pos: at.pos, Class: ClassDuplicateClause, Found: at.text, Message: at.kw + " is given twice"})
	}
}

// createTable reads what follows CREATE TABLE.
func (p *parser) createTable(n *CreateTable) Statement {
	n.IfNotExists = p.ifNotExists()
	n.Table = p.nameOf("a table")
	p.refuse("LIKE")
	if p.tok.kw == "(" && !p.queryInside() {
		n.Columns = p.columnDefs("a column", true)
	} else {
		p.want("(")
	}
	for p.err == nil && p.tableClause(n) { //nolint:revive // clauses in any order
	}
	as := p.accept("AS")
	if as || queryWord(p.tok) || p.tok.kw == "(" {
		at := p.tok.pos
		n.Query = p.query()
		if n.Columns != nil && p.err == nil {
			p.failAt(at, ClassSyntax, "CREATE TABLE … AS SELECT takes its columns from the query", "leave the column list out, or use CREATE TABLE and INSERT")
		}
	}
	return n
}

// tableClause reads one clause behind the columns; false if none begins here.
func (p *parser) tableClause(n *CreateTable) bool {
	at := p.tok
	switch {
	case p.accept("USING"):
		p.once(at, n.Provider != "")
		n.Provider = p.nameOf("a table format (paimon)").String()
	case p.accept("PARTITIONED"):
		p.once(at, n.PartitionedBy != nil)
		p.expect("BY")
		p.partitionedBy(n)
	case p.accept("COMMENT"):
		p.once(at, n.Comment != nil)
		n.Comment = p.textPtr()
	case p.accept("LOCATION"):
		p.once(at, n.Location != nil)
		n.Location = p.textPtr()
	case p.accept("TBLPROPERTIES"), p.acceptSoft("OPTIONS"):
		p.once(at, n.Properties != nil)
		n.Properties = p.properties()
	case p.tok.kw == "CLUSTERED", p.tok.kw == "CLUSTER":
		p.failAt(at.pos, ClassUnsupported, "CLUSTERED BY is not supported", "set the table property 'bucket-key'")
	default:
		p.refuse("STORED", "ROW")
		return false
	}
	return true
}

// partitionedBy reads (a, b); a column with a type is added to the table's.
func (p *parser) partitionedBy(n *CreateTable) {
	p.expect("(")
	for {
		at := p.tok.pos
		id := p.ident("a column")
		n.PartitionedBy = append(n.PartitionedBy, id)
		if p.tok.kw == "(" {
			p.failAt(at, ClassUnsupported, "partition transforms are not supported", "name columns only")
		}
		if p.tok.kind == tokIdent {
			c := ColumnDef{Pos: at, Path: Name{Parts: []Ident{id}}}
			p.columnRest(&c, true)
			n.Columns = append(n.Columns, c)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
}

// columnDefs reads column definitions in parentheses.
func (p *parser) columnDefs(what string, plain bool) []ColumnDef {
	var list []ColumnDef
	p.expect("(")
	for {
		list = append(list, p.columnDef(what, plain))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return list
}

// columnDef reads name, type and what may follow; plain columns have one part
// and no place.
func (p *parser) columnDef(what string, plain bool) ColumnDef {
	c := ColumnDef{Pos: p.tok.pos}
	if next := p.peek(); plain && p.tok.kind == tokIdent && next.kind == tokIdent && typeNames[strings.ToUpper(next.text)] == "" {
		switch w := strings.ToUpper(p.tok.text); w {
		case "PRIMARY", "FOREIGN", "CONSTRAINT", "UNIQUE", "CHECK":
			p.failAt(c.Pos, ClassUnsupported, "constraints ("+w+") are not supported", "")
		}
	}
	if plain {
		c.Path = Name{Parts: []Ident{p.ident(what)}}
	} else {
		c.Path = p.nameOf(what)
	}
	p.columnRest(&c, plain)
	return c
}

// columnRest reads a column's type and options.
func (p *parser) columnRest(c *ColumnDef, plain bool) {
	c.Type = p.typ()
	for p.err == nil {
		at := p.tok
		switch {
		case p.accept("NOT"):
			p.once(at, c.NotNull)
			p.expect("NULL")
			c.NotNull = true
		case p.accept("DEFAULT"):
			p.once(at, c.Default != nil)
			c.Default, c.DefaultText = p.defaultValue()
		case p.accept("COMMENT"):
			p.once(at, c.Comment != nil)
			c.Comment = p.textPtr()
		case !plain && (p.tok.kw == "FIRST" || p.tok.kw == "AFTER"):
			p.once(at, c.Where != nil)
			c.Where = p.columnPosition()
		case p.tok.kw == "GENERATED":
			p.failAt(at.pos, ClassUnsupported, "generated columns are not supported", "")
		default:
			if p.tok.kind == tokIdent && strings.EqualFold(p.tok.text, "PRIMARY") {
				p.failAt(at.pos, ClassUnsupported, "constraints (PRIMARY) are not supported", "")
			}
			return
		}
	}
}

// defaultValue reads the expression of a default and keeps its text.
func (p *parser) defaultValue() (Expr, string) {
	from := p.tok.pos.Offset
	x := p.expr()
	return x, p.textSince(from)
}

// columnPosition reads FIRST or AFTER column.
func (p *parser) columnPosition() *ColumnPosition {
	c := &ColumnPosition{Pos: p.tok.pos}
	if p.accept("FIRST") {
		return c
	}
	p.expect("AFTER")
	c.After = p.ident("a column").Name
	return c
}

// properties reads ('key' = 'value', …).
func (p *parser) properties() []Property {
	list := []Property{}
	seen := map[string]bool{}
	p.expect("(")
	for {
		at := p.tok.pos
		k := p.propertyKey()
		if seen[k] && p.err == nil {
			p.failAt(at, ClassDuplicateKey, "the property "+quoteFound(k)+" is given twice", "")
		}
		seen[k] = true
		p.accept("=")
		list = append(list, Property{Pos: at, Key: k, Value: p.propertyValue()})
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return list
}

// propertyKey reads 'a.b' or a.b.
func (p *parser) propertyKey() string {
	if p.tok.kind == tokString {
		return p.oneText("")
	}
	n := p.nameOf("a property's name in quotes")
	return strings.Join(n.Strings(), ".")
}

// propertyValue reads a text, number or boolean.
func (p *parser) propertyValue() string {
	switch {
	case p.tok.kind == tokInt, p.tok.kind == tokNumber, p.tok.kw == "TRUE", p.tok.kw == "FALSE":
		v := p.tok.text
		if p.tok.kind == tokIdent {
			v = strings.ToLower(v)
		}
		p.next()
		return v
	}
	return p.oneText("a value in quotes")
}

// drop reads DROP DATABASE, TABLE or VIEW.
func (p *parser) drop(pos Pos) Statement {
	p.next()
	switch {
	case p.accept("TABLE"):
		n := &DropTable{Pos: pos, IfExists: p.ifExists(), Table: p.nameOf("a table")}
		n.Purge = p.acceptSoft("PURGE")
		return n
	case p.accept("VIEW"):
		return &DropTable{Pos: pos, View: true, IfExists: p.ifExists(), Table: p.nameOf("a view")}
	case p.accept("DATABASE"), p.accept("SCHEMA"), p.acceptSoft("NAMESPACE"):
		n := &DropDatabase{Pos: pos, IfExists: p.ifExists(), Name: p.nameOf("a database")}
		if !p.acceptSoft("RESTRICT") {
			n.Cascade = p.acceptSoft("CASCADE")
		}
		return n
	}
	p.refuse("FUNCTION", "TEMPORARY")
	p.unexpected()
	return &DropTable{Pos: pos}
}
