package sqlparse

import "strings"

func (p *printer) statement(s Statement) {
	switch s := s.(type) {
	case *QueryStmt:
		p.query(s.Query)
	case *Insert:
		p.insert(s)
	case *Delete:
		p.with(s.With)
		p.w("DELETE FROM ")
		p.name(s.Table)
		p.alias(s.Alias)
		p.where(s.Where)
	case *Update:
		p.with(s.With)
		p.w("UPDATE ")
		p.name(s.Table)
		p.alias(s.Alias)
		p.w(" SET ")
		p.assignments(s.Set)
		p.where(s.Where)
	case *Merge:
		p.merge(s)
	case *Explain:
		p.w("EXPLAIN ")
		p.opt(s.Mode != "", s.Mode+" ")
		p.statement(s.Stmt)
	case *CallProcedure:
		p.w("CALL ")
		p.name(s.Procedure)
		p.w("(")
		p.exprs(s.Args)
		p.w(")")
	default:
		p.definition(s)
	}
}

func (p *printer) where(x Expr) {
	if x != nil {
		p.w(" WHERE ")
		p.expr(x, precLambda)
	}
}

func (p *printer) assignments(set []Assignment) {
	p.list(len(set), func(i int) {
		p.name(set[i].Target)
		p.w(" = ")
		p.expr(set[i].Value, precLambda)
	})
}

func (p *printer) insert(s *Insert) {
	p.with(s.With)
	p.w("INSERT ")
	if s.Overwrite {
		p.w("OVERWRITE ")
	} else {
		p.w("INTO ")
	}
	p.name(s.Table)
	p.partition(s.Partition)
	p.opt(s.ByName, " BY NAME")
	if len(s.Columns) > 0 {
		p.w(" ")
		p.idents(s.Columns)
	}
	p.w(" ")
	p.query(s.Source)
}

// partition prints PARTITION (…) if there is one.
func (p *printer) partition(list []PartitionValue) {
	if len(list) == 0 {
		return
	}
	p.w(" PARTITION ")
	p.partitionValues(list)
}

func (p *printer) partitionValues(list []PartitionValue) {
	p.parens(len(list), func(i int) {
		p.ident(list[i].Column)
		if list[i].Value != nil {
			p.w(" = ")
			p.expr(list[i].Value, precComparison)
		}
	})
}

func (p *printer) merge(s *Merge) {
	p.with(s.With)
	p.w("MERGE ")
	p.opt(s.SchemaEvolution, "WITH SCHEMA EVOLUTION ")
	p.w("INTO ")
	p.name(s.Table)
	p.alias(s.Alias)
	p.w(" USING ")
	p.relation(s.Source)
	p.w(" ON ")
	p.expr(s.On, precLambda)
	for i := range s.Clauses {
		p.w(" ")
		p.clause(&s.Clauses[i])
	}
}

func (p *printer) clause(c *MergeClause) {
	p.w("WHEN ", c.Family.String())
	if c.Cond != nil {
		p.w(" AND ")
		p.expr(c.Cond, precLambda)
	}
	p.w(" THEN ")
	switch c.Action {
	case MergeUpdate:
		p.w("UPDATE SET ")
		p.assignments(c.Set)
	case MergeUpdateStar:
		p.w("UPDATE SET *")
	case MergeDelete:
		p.w("DELETE")
	case MergeInsertStar:
		p.w("INSERT *")
	case MergeInsert:
		p.w("INSERT ")
		p.names(c.Columns)
		p.w(" VALUES (")
		p.exprs(c.Values)
		p.w(")")
	}
}

// definition prints the statements about databases, tables and the session.
func (p *printer) definition(s Statement) {
	switch s := s.(type) {
	case *CreateDatabase:
		p.createDatabase(s)
	case *DropDatabase:
		p.w("DROP DATABASE ")
		p.opt(s.IfExists, "IF EXISTS ")
		p.name(s.Name)
		p.opt(s.Cascade, " CASCADE")
	case *CreateTable:
		p.createTable(s)
	case *DropTable:
		p.opt(s.View, "DROP VIEW ")
		p.opt(!s.View, "DROP TABLE ")
		p.opt(s.IfExists, "IF EXISTS ")
		p.name(s.Table)
		p.opt(s.Purge, " PURGE")
	case *TruncateTable:
		p.w("TRUNCATE TABLE ")
		p.name(s.Table)
		p.partition(s.Partition)
	case *CreateView:
		p.createView(s)
	case *AlterTable:
		p.w("ALTER TABLE ")
		p.name(s.Table)
		p.w(" ")
		p.alter(s.Action)
	default:
		p.command(s)
	}
}

func (p *printer) createDatabase(s *CreateDatabase) {
	p.w("CREATE DATABASE ")
	p.opt(s.IfNotExists, "IF NOT EXISTS ")
	p.name(s.Name)
	p.comment(s.Comment)
	p.location(s.Location)
	if len(s.Properties) > 0 {
		p.w(" WITH DBPROPERTIES ")
		p.properties(s.Properties)
	}
}

func (p *printer) location(l *string) {
	if l != nil {
		p.w(" LOCATION ")
		p.str(*l)
	}
}

func (p *printer) properties(list []Property) {
	p.parens(len(list), func(i int) {
		p.str(list[i].Key)
		p.w(" = ")
		p.str(list[i].Value)
	})
}

func (p *printer) createTable(s *CreateTable) {
	p.w("CREATE TABLE ")
	p.opt(s.IfNotExists, "IF NOT EXISTS ")
	p.name(s.Table)
	if len(s.Columns) > 0 {
		p.w(" ")
		p.parens(len(s.Columns), func(i int) { p.column(&s.Columns[i]) })
	}
	p.opt(s.Provider != "", " USING "+s.Provider)
	if len(s.PartitionedBy) > 0 {
		p.w(" PARTITIONED BY ")
		p.idents(s.PartitionedBy)
	}
	p.comment(s.Comment)
	p.location(s.Location)
	if len(s.Properties) > 0 {
		p.w(" TBLPROPERTIES ")
		p.properties(s.Properties)
	}
	if s.Query != nil {
		p.w(" AS ")
		p.query(s.Query)
	}
}

func (p *printer) column(c *ColumnDef) {
	p.name(c.Path)
	p.w(" ")
	p.typ(c.Type)
	p.opt(c.NotNull, " NOT NULL")
	if c.Default != nil {
		p.w(" DEFAULT ")
		p.defaultValue(c.Default, c.DefaultText)
	}
	p.comment(c.Comment)
	p.position(c.Where)
}

// defaultValue prints a default's text, which says what the expression says.
func (p *printer) defaultValue(x Expr, text string) {
	if text != "" {
		p.w(text)
		return
	}
	p.expr(x, precLambda)
}

func (p *printer) position(c *ColumnPosition) {
	switch {
	case c == nil:
	case c.After == "":
		p.w(" FIRST")
	default:
		p.w(" AFTER ")
		p.id(c.After)
	}
}

func (p *printer) createView(s *CreateView) {
	p.w("CREATE ")
	p.opt(s.Replace, "OR REPLACE ")
	p.opt(s.Temporary, "TEMPORARY ")
	p.w("VIEW ")
	p.opt(s.IfNotExists, "IF NOT EXISTS ")
	p.name(s.Name)
	if len(s.Columns) > 0 {
		p.w(" ")
		p.idents(s.Columns)
	}
	p.comment(s.Comment)
	p.w(" AS ")
	p.query(s.Query)
}

func (p *printer) alter(a AlterAction) {
	switch a := a.(type) {
	case *AddColumns:
		p.w("ADD COLUMNS ")
		p.parens(len(a.Columns), func(i int) { p.column(&a.Columns[i]) })
	case *DropColumns:
		p.w("DROP COLUMNS ")
		p.opt(a.IfExists, "IF EXISTS ")
		p.names(a.Paths)
	case *RenameColumn:
		p.w("RENAME COLUMN ")
		p.name(a.Path)
		p.w(" TO ")
		p.ident(a.To)
	case *AlterColumns:
		p.w("ALTER COLUMN ")
		p.list(len(a.Changes), func(i int) { p.change(&a.Changes[i]) })
	case *SetProperties:
		p.w("SET TBLPROPERTIES ")
		p.properties(a.Properties)
	case *UnsetProperties:
		p.w("UNSET TBLPROPERTIES ")
		p.opt(a.IfExists, "IF EXISTS ")
		p.parens(len(a.Keys), func(i int) { p.str(a.Keys[i]) })
	case *RenameTable:
		p.w("RENAME TO ")
		p.name(a.To)
	case *DropPartitions:
		p.w("DROP ")
		p.opt(a.IfExists, "IF EXISTS ")
		p.w("PARTITION ")
		p.list(len(a.Partitions), func(i int) { p.partitionValues(a.Partitions[i]) })
	}
}

func (p *printer) change(c *ColumnChange) {
	p.name(c.Path)
	switch {
	case c.Type != nil:
		p.w(" TYPE ")
		p.typ(c.Type)
	case c.Comment != nil:
		p.comment(c.Comment)
	case c.Where != nil:
		p.position(c.Where)
	case c.NotNull != nil:
		p.opt(*c.NotNull, " SET NOT NULL")
		p.opt(!*c.NotNull, " DROP NOT NULL")
	case c.Default != nil:
		p.w(" SET DEFAULT ")
		p.defaultValue(c.Default, c.DefaultText)
	case c.DropDefault:
		p.w(" DROP DEFAULT")
	}
}

func (p *printer) command(s Statement) {
	switch s := s.(type) {
	case *Show:
		p.show(s)
	case *Describe:
		p.describe(s)
	case *Set:
		p.w("SET")
		p.opt(s.Key != "", " "+s.Key)
		if s.Value != nil {
			p.w(" = ")
			if v := *s.Value; v == "" || strings.ContainsAny(v, ";'\"`\\\n") || strings.TrimSpace(v) != v {
				p.str(v)
			} else {
				p.w(v)
			}
		}
	case *Reset:
		p.w("RESET")
		p.opt(s.Key != "", " "+s.Key)
	case *Use:
		p.w("USE ")
		p.name(s.Name)
	}
}

func (p *printer) show(s *Show) {
	p.w("SHOW ", s.What)
	if len(s.Name.Parts) > 0 {
		switch s.What {
		case "TABLES", "VIEWS", "FUNCTIONS", "DATABASES", "COLUMNS":
			p.w(" FROM")
		}
		p.w(" ")
		p.name(s.Name)
	}
	if s.Key != nil {
		p.w(" (")
		p.str(*s.Key)
		p.w(")")
	}
	if s.Pattern != nil {
		p.w(" LIKE ")
		p.str(*s.Pattern)
	}
	p.partition(s.Partition)
}

func (p *printer) describe(s *Describe) {
	p.w("DESCRIBE ")
	if s.Query != nil {
		p.w("QUERY ")
		p.query(s.Query)
		return
	}
	if s.Database {
		p.w("DATABASE ")
	} else {
		p.w("TABLE ")
	}
	p.opt(s.Extended, "EXTENDED ")
	p.name(s.Name)
	if len(s.Column.Parts) > 0 {
		p.w(" ")
		p.name(s.Column)
	}
}
