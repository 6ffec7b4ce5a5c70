package sqlparse

import "strings"

// Expr is an expression.
type Expr interface {
	Node
	expr()
}

// Ident is one part of a name, without its backticks.
type Ident struct {
	Pos
	Name string
}

// Name is a name of one or more parts: catalog.database.table, struct.field.
type Name struct {
	Parts []Ident
}

// Position returns where the first part begins.
func (n Name) Position() Pos {
	if len(n.Parts) == 0 {
		return Pos{}
	}
	return n.Parts[0].Pos
}

// Last returns the last part's text, "" for the empty name.
func (n Name) Last() string {
	if len(n.Parts) == 0 {
		return ""
	}
	return n.Parts[len(n.Parts)-1].Name
}

// Strings returns the texts of the parts.
func (n Name) Strings() []string {
	s := make([]string, len(n.Parts))
	for i, p := range n.Parts {
		s[i] = p.Name
	}
	return s
}

// String returns the name as SQL, with backticks where needed.
func (n Name) String() string {
	var b strings.Builder
	for i, p := range n.Parts {
		if i > 0 {
			b.WriteByte('.')
		}
		quoteName(&b, p.Name)
	}
	return b.String()
}

// NullLit is the literal NULL.
type NullLit struct{ Pos }

// BoolLit is TRUE or FALSE.
type BoolLit struct {
	Pos
	Value bool
}

// NumberLit is a numeric literal. Whether the value fits the type is for the
// binder to say.
type NumberLit struct {
	Pos
	// Text is the number as written, in upper case, without type suffix, with a
	// leading '-' if a minus sign stood directly before it.
	Text string
	// Suffix is the type: "" (INT, BIGINT or DECIMAL by its look; DOUBLE with an
	// exponent), Y, S, L, F, D, BD.
	Suffix string
}

// StringLit is a text; escapes are resolved, adjacent literals joined.
type StringLit struct {
	Pos
	Value string
}

// BytesLit is a binary literal X'1CC7'.
type BytesLit struct {
	Pos
	Value []byte
}

// TypedLit is a literal with its type before it: DATE '2024-01-01'.
type TypedLit struct {
	Pos
	// Type is DATE, TIMESTAMP, TIMESTAMP_NTZ, TIMESTAMP_LTZ or TIME.
	Type string
	// Value is the text behind the type.
	Value string
}

// IntervalLit is INTERVAL 1 DAY 2 HOURS, INTERVAL '1-2' YEAR TO MONTH or
// INTERVAL '1 day 2 hours' (one part without unit).
type IntervalLit struct {
	Pos
	Parts []IntervalPart
	// To is the end unit of INTERVAL '…' X TO Y, upper case singular; "" if none.
	To string
}

// IntervalPart is one value with its unit.
type IntervalPart struct {
	Pos
	// Value is the number or text as meant: signs joined, quotes removed.
	Value string
	// Text tells that the value was a string literal.
	Text bool
	// Unit is the unit in upper case and singular (DAY), "" if none is written.
	Unit string
}

// Star is * or q.*; only select lists and COUNT(*) have it.
type Star struct {
	Pos
	Qualifier Name
	// Except are the columns that * EXCEPT (a, b) leaves out.
	Except []Name
}

// ColumnRef names a column, perhaps with qualifiers before and struct fields
// behind: the parts are told apart by the binder.
type ColumnRef struct {
	Name
}

// DefaultExpr is the keyword DEFAULT in the place of a value.
type DefaultExpr struct{ Pos }

// Unary is a prefix operator: -, +, ~ or NOT (also written !).
type Unary struct {
	Pos
	Op string
	X  Expr
}

// Binary is an operator between two operands: + - * / % DIV || & | ^ << >> >>>
// and the comparisons = <=> <> < <= > >=.
type Binary struct {
	Pos
	Op   string
	L, R Expr
}

// Logic is AND or OR over two or more operands, in the order of the text.
type Logic struct {
	Pos
	// Op is AND or OR.
	Op   string
	Args []Expr
}

// IsNull is x IS [NOT] NULL.
type IsNull struct {
	Pos
	X   Expr
	Not bool
}

// IsTruth is x IS [NOT] TRUE, FALSE or UNKNOWN.
type IsTruth struct {
	Pos
	X     Expr
	Value string
	Not   bool
}

// IsDistinct is l IS [NOT] DISTINCT FROM r.
type IsDistinct struct {
	Pos
	L, R Expr
	Not  bool
}

// Between is x [NOT] BETWEEN low AND high.
type Between struct {
	Pos
	X, Low, High Expr
	Not          bool
}

// InList is x [NOT] IN (a, b, …).
type InList struct {
	Pos
	X    Expr
	List []Expr
	Not  bool
}

// InQuery is x [NOT] IN (SELECT …). X is a Row for (a, b) IN (…).
type InQuery struct {
	Pos
	X     Expr
	Query *Query
	Not   bool
}

// Like is x [NOT] LIKE, ILIKE or RLIKE pattern.
type Like struct {
	Pos
	// Op is LIKE, ILIKE or RLIKE.
	Op         string
	X, Pattern Expr
	// Escape is the escape character of LIKE and ILIKE, "" for the backslash.
	Escape string
	Not    bool
}

// LikeAny is x [NOT] LIKE ANY (…) or ALL (…).
type LikeAny struct {
	Pos
	// Op is LIKE or ILIKE, Quantifier ANY or ALL.
	Op, Quantifier string
	X              Expr
	Patterns       []Expr
	Not            bool
}

// Exists is EXISTS (SELECT …).
type Exists struct {
	Pos
	Query *Query
}

// ScalarQuery is a sub-query in the place of a value.
type ScalarQuery struct {
	Pos
	Query *Query
}

// Case is CASE [operand] WHEN … THEN … [ELSE …] END.
type Case struct {
	Pos
	Operand Expr
	Whens   []When
	Else    Expr
}

// When is a branch of a Case.
type When struct {
	Pos
	Cond, Then Expr
}

// Cast is CAST(x AS t), TRY_CAST(x AS t) or x::t.
type Cast struct {
	Pos
	X    Expr
	Type *Type
	Try  bool
}

// Call is a function call.
type Call struct {
	Pos
	// Func is the name as written; functions are found without regard to case.
	Func     Name
	Distinct bool
	Args     []Expr
	// Filter is the condition of an aggregate's FILTER (WHERE …).
	Filter Expr
}

// NamedArg is an argument with its name: name => value.
type NamedArg struct {
	Pos
	Name  string
	Value Expr
}

// Lambda is x -> e or (x, y) -> e, an argument of a collection function.
type Lambda struct {
	Pos
	Params []Ident
	Body   Expr
}

// Index is x[i]: an element of an array (from 0) or the value of a map's key.
type Index struct {
	Pos
	X, I Expr
}

// FieldRef is x.name for an x that is no plain name.
type FieldRef struct {
	Pos
	X    Expr
	Name Ident
}

// Extract is EXTRACT(field FROM x).
type Extract struct {
	Pos
	// Field is the field in upper case.
	Field string
	X     Expr
}

// Trim is TRIM([BOTH | LEADING | TRAILING] [chars] FROM x).
type Trim struct {
	Pos
	// Where is BOTH, LEADING or TRAILING.
	Where string
	// Chars are the characters to cut; nil means blanks.
	Chars Expr
	X     Expr
}

// Overlay is OVERLAY(x PLACING with FROM start [FOR length]).
type Overlay struct {
	Pos
	X, With, Start Expr
	// Length is nil if not given.
	Length Expr
}

// TimeUnitCall is DATEADD(unit, n, x) or DATEDIFF(unit, from, to) and their
// other names.
type TimeUnitCall struct {
	Pos
	// Func is TIMESTAMPADD or TIMESTAMPDIFF.
	Func string
	// Unit is in upper case, as written.
	Unit string
	A, B Expr
}

// Row is (a, b, …): a struct of two or more values.
type Row struct {
	Pos
	Items []Expr
}

// Aliased is x AS name as an item of a Row or an argument of struct(…): it
// names the field.
type Aliased struct {
	Pos
	X     Expr
	Alias Ident
}

// Collate is x COLLATE name.
type Collate struct {
	Pos
	X         Expr
	Collation string
}

func (*NullLit) expr()      {}
func (*BoolLit) expr()      {}
func (*NumberLit) expr()    {}
func (*StringLit) expr()    {}
func (*BytesLit) expr()     {}
func (*TypedLit) expr()     {}
func (*IntervalLit) expr()  {}
func (*Star) expr()         {}
func (*ColumnRef) expr()    {}
func (*DefaultExpr) expr()  {}
func (*Unary) expr()        {}
func (*Binary) expr()       {}
func (*Logic) expr()        {}
func (*IsNull) expr()       {}
func (*IsTruth) expr()      {}
func (*IsDistinct) expr()   {}
func (*Between) expr()      {}
func (*InList) expr()       {}
func (*InQuery) expr()      {}
func (*Like) expr()         {}
func (*LikeAny) expr()      {}
func (*Exists) expr()       {}
func (*ScalarQuery) expr()  {}
func (*Case) expr()         {}
func (*Cast) expr()         {}
func (*Call) expr()         {}
func (*NamedArg) expr()     {}
func (*Lambda) expr()       {}
func (*Index) expr()        {}
func (*FieldRef) expr()     {}
func (*Extract) expr()      {}
func (*Trim) expr()         {}
func (*Overlay) expr()      {}
func (*TimeUnitCall) expr() {}
func (*Row) expr()          {}
func (*Aliased) expr()      {}
func (*Collate) expr()      {}

// Type is the spelling of a data type. Whether it exists with these parameters
// is for the binder to say; the parser refuses unknown names.
type Type struct {
	Pos
	// Name is the root in upper case: INT, DECIMAL, ARRAY, STRUCT, INTERVAL …
	Name string
	// Params are the numbers in parentheses: DECIMAL(10, 2).
	Params []int
	// Elem is the element of ARRAY and the value of MAP.
	Elem *Type
	// Key is the key of MAP.
	Key *Type
	// Fields are those of STRUCT.
	Fields []StructField
	// From and To are the units of INTERVAL types (DAY TO SECOND); To may be "".
	From, To string
	// Collation is the name behind STRING COLLATE; usually "".
	Collation string
}

// StructField is a field of a STRUCT type.
type StructField struct {
	Pos
	Name    string
	Type    *Type
	NotNull bool
	// Comment is nil if there is none.
	Comment *string
}
