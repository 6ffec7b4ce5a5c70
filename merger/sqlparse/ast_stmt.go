package sqlparse

// Statement is one statement.
type Statement interface {
	Node
	statement()
}

// QueryStmt is a query as a statement.
type QueryStmt struct {
	Pos
	Query *Query
}

// Insert is INSERT INTO or INSERT OVERWRITE.
type Insert struct {
	Pos
	With      []CTE
	Overwrite bool
	Table     Name
	// Partition fixes partition columns; a nil Value means a dynamic one.
	Partition []PartitionValue
	// Columns is the column list; nil if none is written.
	Columns []Ident
	// ByName matches the source's columns by name.
	ByName bool
	Source *Query
}

// PartitionValue is p = 'a' of a PARTITION clause.
type PartitionValue struct {
	Pos
	Column Ident
	Value  Expr
}

// Delete is DELETE FROM t [WHERE …].
type Delete struct {
	Pos
	With  []CTE
	Table Name
	Alias *Alias
	Where Expr
}

// Update is UPDATE t SET … [WHERE …].
type Update struct {
	Pos
	With  []CTE
	Table Name
	Alias *Alias
	Set   []Assignment
	Where Expr
}

// Assignment is target = value. The target may have a qualifier before and a
// struct's fields behind the column.
type Assignment struct {
	Target Name
	Value  Expr
}

// Position returns where the target begins.
func (a Assignment) Position() Pos { return a.Target.Position() }

// Merge is MERGE INTO.
type Merge struct {
	Pos
	With []CTE
	// SchemaEvolution is MERGE WITH SCHEMA EVOLUTION INTO.
	SchemaEvolution bool
	Table           Name
	Alias           *Alias
	// Source is a *TableRef, *QueryRef or *ValuesRef.
	Source  Relation
	On      Expr
	Clauses []MergeClause
}

// MergeFamily tells which rows a clause of MERGE acts on.
type MergeFamily uint8

const (
	// Matched clauses act on target rows with a partner in the source.
	Matched MergeFamily = iota
	// NotMatched clauses act on source rows without partner.
	NotMatched
	// NotMatchedBySource clauses act on target rows without partner.
	NotMatchedBySource
)

// String returns the family as written in a clause.
func (f MergeFamily) String() string {
	switch f {
	case Matched:
		return "MATCHED"
	case NotMatched:
		return "NOT MATCHED"
	}
	return "NOT MATCHED BY SOURCE"
}

// MergeAction is what a clause does.
type MergeAction uint8

const (
	// MergeUpdate sets the columns of Set.
	MergeUpdate MergeAction = iota
	// MergeUpdateStar sets every column from the source's column of that name.
	MergeUpdateStar
	// MergeDelete removes the target row.
	MergeDelete
	// MergeInsert inserts Values into Columns.
	MergeInsert
	// MergeInsertStar inserts the source row by column names.
	MergeInsertStar
)

// MergeClause is WHEN … [AND cond] THEN ….
type MergeClause struct {
	Pos
	Family MergeFamily
	// Cond is nil if none is written.
	Cond   Expr
	Action MergeAction
	// Set are the assignments of MergeUpdate.
	Set []Assignment
	// Columns and Values are those of MergeInsert, of equal length.
	Columns []Name
	Values  []Expr
}

// CreateDatabase is CREATE DATABASE (or SCHEMA).
type CreateDatabase struct {
	Pos
	Name        Name
	IfNotExists bool
	Comment     *string
	Location    *string
	Properties  []Property
}

// DropDatabase is DROP DATABASE.
type DropDatabase struct {
	Pos
	Name     Name
	IfExists bool
	Cascade  bool
}

// Property is 'key' = 'value' of TBLPROPERTIES.
type Property struct {
	Pos
	Key, Value string
}

// ColumnDef is a column of CREATE TABLE or ADD COLUMN.
type ColumnDef struct {
	Pos
	// Path is the column's name; ADD COLUMN may name a nested field.
	Path    Name
	Type    *Type
	NotNull bool
	// Default is the default's expression, DefaultText its text as written; nil
	// and "" if there is none.
	Default     Expr
	DefaultText string
	Comment     *string
	// Where is the place ADD COLUMN asks for; nil means last.
	Where *ColumnPosition
}

// ColumnPosition is FIRST, or AFTER a column if After is not empty.
type ColumnPosition struct {
	Pos
	After string
}

// CreateTable is CREATE TABLE, with AS SELECT if Query is set.
type CreateTable struct {
	Pos
	Table       Name
	IfNotExists bool
	Columns     []ColumnDef
	// Provider is the word behind USING, "" if none.
	Provider      string
	PartitionedBy []Ident
	Comment       *string
	Location      *string
	Properties    []Property
	Query         *Query
}

// DropTable is DROP TABLE or, with View, DROP VIEW.
type DropTable struct {
	Pos
	Table    Name
	IfExists bool
	Purge    bool
	View     bool
}

// TruncateTable is TRUNCATE TABLE.
type TruncateTable struct {
	Pos
	Table     Name
	Partition []PartitionValue
}

// CreateView is CREATE [OR REPLACE] [TEMPORARY] VIEW.
type CreateView struct {
	Pos
	Name        Name
	Replace     bool
	Temporary   bool
	IfNotExists bool
	Comment     *string
	Columns     []Ident
	Query       *Query
}

// AlterTable is ALTER TABLE with one action.
type AlterTable struct {
	Pos
	Table  Name
	Action AlterAction
}

// AlterAction is what ALTER TABLE does: *AddColumns, *DropColumns,
// *RenameColumn, *AlterColumns, *SetProperties, *UnsetProperties, *RenameTable
// or *DropPartitions.
type AlterAction interface {
	Node
	alterAction()
}

// AddColumns is ADD COLUMN[S].
type AddColumns struct {
	Pos
	Columns []ColumnDef
}

// DropColumns is DROP COLUMN[S].
type DropColumns struct {
	Pos
	IfExists bool
	Paths    []Name
}

// RenameColumn is RENAME COLUMN path TO name.
type RenameColumn struct {
	Pos
	Path Name
	To   Ident
}

// AlterColumns is ALTER COLUMN, for one column or more.
type AlterColumns struct {
	Pos
	Changes []ColumnChange
}

// ColumnChange is one change of a column; exactly one field beside Path is set.
type ColumnChange struct {
	Path Name
	// Type is the new type of TYPE.
	Type *Type
	// Comment is the text of COMMENT.
	Comment *string
	// NotNull is true for SET NOT NULL, false for DROP NOT NULL.
	NotNull *bool
	// Where is FIRST or AFTER.
	Where *ColumnPosition
	// Default is the expression of SET DEFAULT, DefaultText its text as written.
	Default     Expr
	DefaultText string
	// DropDefault is DROP DEFAULT.
	DropDefault bool
}

// Position returns where the column's name begins.
func (c ColumnChange) Position() Pos { return c.Path.Position() }

// SetProperties is SET TBLPROPERTIES.
type SetProperties struct {
	Pos
	Properties []Property
}

// UnsetProperties is UNSET TBLPROPERTIES.
type UnsetProperties struct {
	Pos
	IfExists bool
	Keys     []string
}

// RenameTable is RENAME TO.
type RenameTable struct {
	Pos
	To Name
}

// DropPartitions is DROP PARTITION (…), (…).
type DropPartitions struct {
	Pos
	IfExists   bool
	Partitions [][]PartitionValue
}

func (*AddColumns) alterAction()      {}
func (*DropColumns) alterAction()     {}
func (*RenameColumn) alterAction()    {}
func (*AlterColumns) alterAction()    {}
func (*SetProperties) alterAction()   {}
func (*UnsetProperties) alterAction() {}
func (*RenameTable) alterAction()     {}
func (*DropPartitions) alterAction()  {}

// Show is a SHOW statement.
type Show struct {
	Pos
	// What is DATABASES, TABLES, VIEWS, COLUMNS, CREATE TABLE, TBLPROPERTIES,
	// PARTITIONS, FUNCTIONS or CATALOGS.
	What string
	// Name is the table, or the database of SHOW TABLES; empty if none is written.
	Name Name
	// Pattern filters names: * stands for anything, | separates alternatives; nil
	// if none is written.
	Pattern *string
	// Key is the property SHOW TBLPROPERTIES asks for; nil for all.
	Key *string
	// Partition narrows SHOW PARTITIONS.
	Partition []PartitionValue
}

// Describe is DESCRIBE of a table, one of its columns, a database or a query.
type Describe struct {
	Pos
	// Database says that Name is a database.
	Database bool
	Extended bool
	Name     Name
	// Column is the column asked for; empty for the whole table.
	Column Name
	// Query is set for DESCRIBE QUERY; Name is empty then.
	Query *Query
}

// Explain is EXPLAIN of a statement.
type Explain struct {
	Pos
	// Mode is "", EXTENDED or FORMATTED.
	Mode string
	Stmt Statement
}

// Set is SET key = value; without value it asks for the value, without key for
// all of them.
type Set struct {
	Pos
	Key string
	// Value is nil if the statement asks.
	Value *string
}

// Reset is RESET [key].
type Reset struct {
	Pos
	Key string
}

// Use is USE database.
type Use struct {
	Pos
	Name Name
}

// CallProcedure is CALL procedure(name => value, …).
type CallProcedure struct {
	Pos
	Procedure Name
	Args      []Expr
}

func (*QueryStmt) statement()      {}
func (*Insert) statement()         {}
func (*Delete) statement()         {}
func (*Update) statement()         {}
func (*Merge) statement()          {}
func (*CreateDatabase) statement() {}
func (*DropDatabase) statement()   {}
func (*CreateTable) statement()    {}
func (*DropTable) statement()      {}
func (*TruncateTable) statement()  {}
func (*CreateView) statement()     {}
func (*AlterTable) statement()     {}
func (*Show) statement()           {}
func (*Describe) statement()       {}
func (*Explain) statement()        {}
func (*Set) statement()            {}
func (*Reset) statement()          {}
func (*Use) statement()            {}
func (*CallProcedure) statement()  {}
