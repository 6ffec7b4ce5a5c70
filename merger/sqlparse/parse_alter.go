package sqlparse

// alter reads ALTER TABLE.
func (p *parser) alter(pos Pos) Statement {
	p.next()
	p.refuse("DATABASE", "SCHEMA", "VIEW")
	p.expect("TABLE")
	n := &AlterTable{Pos: pos, Table: p.nameOf("a table")}
	at := p.tok.pos
	switch {
	case p.accept("ADD"):
		n.Action = p.addColumns(at)
	case p.accept("DROP"):
		n.Action = p.dropColumns(at)
	case p.accept("RENAME"):
		n.Action = p.rename(at)
	case p.accept("ALTER"), p.acceptSoft("CHANGE"):
		n.Action = p.alterColumns(at)
	case p.accept("SET"):
		p.refuse("LOCATION")
		p.expect("TBLPROPERTIES")
		n.Action = &SetProperties{Pos: at, Properties: p.properties()}
	case p.accept("UNSET"):
		p.expect("TBLPROPERTIES")
		n.Action = p.unsetProperties(at)
	default:
		p.refuse("REPLACE", "PARTITION")
		p.unexpected()
	}
	return n
}

func (p *parser) addColumns(pos Pos) AlterAction {
	if !p.accept("COLUMN") && !p.accept("COLUMNS") {
		p.refuse("PARTITION", "IF")
		p.unexpected()
	}
	n := &AddColumns{Pos: pos}
	if p.tok.kw == "(" {
		n.Columns = p.columnDefs("a column", false)
		return n
	}
	for {
		n.Columns = append(n.Columns, p.columnDef("a column", false))
		if !p.accept(",") {
			return n
		}
	}
}

func (p *parser) dropColumns(pos Pos) AlterAction {
	ifExists := p.ifExists()
	if p.accept("PARTITION") {
		n := &DropPartitions{Pos: pos, IfExists: ifExists}
		for {
			n.Partitions = append(n.Partitions, p.partition(false))
			if !p.accept(",") {
				return n
			}
			p.acceptSoft("PARTITION")
		}
	}
	if ifExists || !p.accept("COLUMN") && !p.accept("COLUMNS") {
		p.unexpected()
	}
	n := &DropColumns{Pos: pos, IfExists: p.ifExists()}
	if p.tok.kw == "(" {
		n.Paths = p.names("a column")
		return n
	}
	for {
		n.Paths = append(n.Paths, p.nameOf("a column"))
		if !p.accept(",") {
			return n
		}
	}
}

func (p *parser) rename(pos Pos) AlterAction {
	if p.accept("TO") {
		return &RenameTable{Pos: pos, To: p.nameOf("a table")}
	}
	p.expect("COLUMN")
	n := &RenameColumn{Pos: pos, Path: p.nameOf("a column")}
	p.expect("TO")
	n.To = p.ident("a column")
	return n
}

func (p *parser) alterColumns(pos Pos) AlterAction {
	p.accept("COLUMN")
	n := &AlterColumns{Pos: pos}
	for {
		n.Changes = append(n.Changes, p.columnChange())
		if !p.accept(",") {
			return n
		}
	}
}

func (p *parser) columnChange() ColumnChange {
	c := ColumnChange{Path: p.nameOf("a column")}
	yes, no := true, false
	switch {
	case p.accept("TYPE"):
		c.Type = p.typ()
	case p.accept("COMMENT"):
		c.Comment = p.textPtr()
	case p.at("FIRST"), p.at("AFTER"):
		c.Where = p.columnPosition()
	case p.accept("SET"):
		if p.accept("DEFAULT") {
			c.Default, c.DefaultText = p.defaultValue()
			break
		}
		p.expectAll("NOT", "NULL")
		c.NotNull = &yes
	case p.accept("DROP"):
		if c.DropDefault = p.accept("DEFAULT"); !c.DropDefault {
			p.expectAll("NOT", "NULL")
			c.NotNull = &no
		}
	default:
		p.unexpected()
	}
	return c
}

func (p *parser) unsetProperties(pos Pos) AlterAction {
	n := &UnsetProperties{Pos: pos, IfExists: p.ifExists()}
	p.expect("(")
	for {
		n.Keys = append(n.Keys, p.propertyKey())
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return n
}
