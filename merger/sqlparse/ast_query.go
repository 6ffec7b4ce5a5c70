package sqlparse

// Query is a SELECT statement, VALUES list or set operation with what may stand
// around it.
type Query struct {
	Pos
	With []CTE
	Body QueryBody
	// OrderBy, Limit and Offset are those of the whole query.
	OrderBy []OrderItem
	// Limit and Offset are nil if not given; LIMIT ALL is nil.
	Limit, Offset Expr
}

// CTE is a named query of a WITH list.
type CTE struct {
	Pos
	Name    Ident
	Columns []Ident
	Query   *Query
}

// OrderItem is a key of ORDER BY.
type OrderItem struct {
	Pos
	X    Expr
	Desc bool
	// NullsFirst is nil if not written: NULLs come first ascending, last descending.
	NullsFirst *bool
}

// QueryBody is what a query selects from: *Select, *Values, *SetOp, *TableQuery
// or *SubQuery.
type QueryBody interface {
	Node
	queryBody()
}

// Select is SELECT … FROM … WHERE … GROUP BY … HAVING.
type Select struct {
	Pos
	Distinct bool
	Items    []SelectItem
	// From is nil for a SELECT without FROM; several relations are a cross join.
	From    Relation
	Where   Expr
	GroupBy []Expr
	// GroupByAll is GROUP BY ALL.
	GroupByAll bool
	Having     Expr
}

// SelectItem is an output column.
type SelectItem struct {
	Pos
	X Expr
	// Alias is nil if none is written.
	Alias *Ident
}

// Values is VALUES (1, 'a'), (2, 'b'). A row without parentheses has one value.
type Values struct {
	Pos
	Rows [][]Expr
}

// SetOp combines two queries.
type SetOp struct {
	Pos
	// Op is UNION, EXCEPT or INTERSECT.
	Op   string
	All  bool
	L, R QueryBody
}

// TableQuery is TABLE t: all columns of a table.
type TableQuery struct {
	Pos
	Table Name
}

// SubQuery is a query in parentheses as an operand of a set operation.
type SubQuery struct {
	Pos
	Query *Query
}

func (*Select) queryBody()     {}
func (*Values) queryBody()     {}
func (*SetOp) queryBody()      {}
func (*TableQuery) queryBody() {}
func (*SubQuery) queryBody()   {}

// Relation is something with rows: *TableRef, *QueryRef, *ValuesRef,
// *FunctionRef or *Join.
type Relation interface {
	Node
	relation()
}

// Alias is the name given to a relation, perhaps with names for its columns.
type Alias struct {
	Pos
	Name    string
	Columns []Ident
}

// TableRef is a table or view.
type TableRef struct {
	Pos
	Table Name
	// Version and Timestamp are the point of a time travel: at most one is set.
	Version, Timestamp Expr
	// Alias is nil if none is written.
	Alias *Alias
}

// QueryRef is (SELECT …) [AS] a.
type QueryRef struct {
	Pos
	Query *Query
	Alias *Alias
}

// ValuesRef is VALUES (…), (…) AS a(x, y) in the place of a table.
type ValuesRef struct {
	Pos
	Values *Values
	Alias  *Alias
}

// FunctionRef is a function with rows: range(1, 10).
type FunctionRef struct {
	Pos
	Func  Name
	Args  []Expr
	Alias *Alias
}

// Join combines two relations.
type Join struct {
	Pos
	// Kind is CROSS, INNER, LEFT, RIGHT, FULL, SEMI or ANTI (the last two keep rows
	// of the left side only).
	Kind    string
	Natural bool
	L, R    Relation
	// On is the condition, Using the common columns: at most one is set.
	On    Expr
	Using []Ident
}

func (*TableRef) relation()    {}
func (*QueryRef) relation()    {}
func (*ValuesRef) relation()   {}
func (*FunctionRef) relation() {}
func (*Join) relation()        {}
