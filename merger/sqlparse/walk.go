package sqlparse

// Walk visits n (an expression, query, relation or statement) and, if visit
// returns true, the expressions, queries and relations it is made of, in the
// order of the text. Sub-queries are part of the expression that holds them; a visitor
// that wants to stay outside returns false for *Query. Nil parts are skipped.
func Walk(n Node, visit func(Node) bool) {
	w := walker{visit}
	w.node(n)
}

type walker struct{ visit func(Node) bool }

func (w walker) node(n Node) {
	if n == nil || !w.visit(n) {
		return
	}
	switch n := n.(type) {
	case Expr:
		w.parts(n)
	case Relation:
		w.relation(n)
	case QueryBody:
		w.body(n)
	case *Query:
		w.query(n)
	case Statement:
		w.statement(n)
	}
}

func (w walker) with(list []CTE) {
	for _, c := range list {
		w.node(c.Query)
	}
}

func (w walker) statement(s Statement) {
	switch s := s.(type) {
	case *QueryStmt:
		w.node(s.Query)
	case *Insert:
		w.with(s.With)
		w.node(s.Source)
	case *Delete:
		w.with(s.With)
		w.exprs(s.Where)
	case *Update:
		w.with(s.With)
		w.assignments(s.Set)
		w.exprs(s.Where)
	case *Merge:
		w.with(s.With)
		w.node(s.Source)
		w.exprs(s.On)
		for _, c := range s.Clauses {
			w.exprs(c.Cond)
			w.assignments(c.Set)
			w.exprs(c.Values...)
		}
	case *CreateTable:
		if s.Query != nil {
			w.node(s.Query)
		}
	case *CreateView:
		w.node(s.Query)
	case *Explain:
		w.node(s.Stmt)
	case *CallProcedure:
		w.exprs(s.Args...)
	}
}

func (w walker) assignments(set []Assignment) {
	for _, a := range set {
		w.exprs(a.Value)
	}
}

func (w walker) exprs(list ...Expr) {
	for _, x := range list {
		if x != nil {
			w.node(x)
		}
	}
}

// parts visits the operands of an expression.
func (w walker) parts(x Expr) {
	switch x := x.(type) {
	case *Unary:
		w.exprs(x.X)
	case *Binary:
		w.exprs(x.L, x.R)
	case *Logic:
		w.exprs(x.Args...)
	case *IsNull:
		w.exprs(x.X)
	case *IsTruth:
		w.exprs(x.X)
	case *IsDistinct:
		w.exprs(x.L, x.R)
	case *Between:
		w.exprs(x.X, x.Low, x.High)
	case *InList:
		w.exprs(x.X)
		w.exprs(x.List...)
	case *InQuery:
		w.exprs(x.X)
		w.node(x.Query)
	case *Like:
		w.exprs(x.X, x.Pattern)
	case *LikeAny:
		w.exprs(x.X)
		w.exprs(x.Patterns...)
	case *Exists:
		w.node(x.Query)
	case *ScalarQuery:
		w.node(x.Query)
	case *Case:
		w.exprs(x.Operand)
		for _, c := range x.Whens {
			w.exprs(c.Cond, c.Then)
		}
		w.exprs(x.Else)
	case *Cast:
		w.exprs(x.X)
	case *Call:
		w.exprs(x.Args...)
		w.exprs(x.Filter)
	default:
		w.forms(x)
	}
}

// forms visits the operands of the rarer expressions.
func (w walker) forms(x Expr) {
	switch x := x.(type) {
	case *NamedArg:
		w.exprs(x.Value)
	case *Lambda:
		w.exprs(x.Body)
	case *Index:
		w.exprs(x.X, x.I)
	case *FieldRef:
		w.exprs(x.X)
	case *Extract:
		w.exprs(x.X)
	case *Trim:
		w.exprs(x.Chars, x.X)
	case *Overlay:
		w.exprs(x.X, x.With, x.Start, x.Length)
	case *TimeUnitCall:
		w.exprs(x.A, x.B)
	case *Row:
		w.exprs(x.Items...)
	case *Aliased:
		w.exprs(x.X)
	case *Collate:
		w.exprs(x.X)
	}
}

func (w walker) query(q *Query) {
	w.with(q.With)
	w.node(q.Body)
	for _, o := range q.OrderBy {
		w.exprs(o.X)
	}
	w.exprs(q.Limit, q.Offset)
}

func (w walker) body(b QueryBody) {
	switch b := b.(type) {
	case *Select:
		for _, it := range b.Items {
			w.exprs(it.X)
		}
		if b.From != nil {
			w.node(b.From)
		}
		w.exprs(b.Where)
		w.exprs(b.GroupBy...)
		w.exprs(b.Having)
	case *Values:
		for _, r := range b.Rows {
			w.exprs(r...)
		}
	case *SetOp:
		w.node(b.L)
		w.node(b.R)
	case *SubQuery:
		w.node(b.Query)
	}
}

func (w walker) relation(r Relation) {
	switch r := r.(type) {
	case *TableRef:
		w.exprs(r.Version, r.Timestamp)
	case *QueryRef:
		w.node(r.Query)
	case *ValuesRef:
		w.node(r.Values)
	case *FunctionRef:
		w.exprs(r.Args...)
	case *Join:
		w.node(r.L)
		w.node(r.R)
		w.exprs(r.On)
	}
}
