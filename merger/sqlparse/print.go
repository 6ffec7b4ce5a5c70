package sqlparse

import (
	"strconv"
	"strings"
)

// Format prints a node as canonical SQL in one line: keywords in upper case,
// parentheses only where they are needed, names quoted only where they must be.
// Parsing the print gives a tree that differs from n in positions only.
func Format(n Node) string {
	p := printer{}
	switch n := n.(type) {
	case Expr:
		p.expr(n, precLambda)
	case *Query:
		p.query(n)
	case QueryBody:
		p.body(n)
	case Relation:
		p.relation(n)
	case *Type:
		p.typ(n)
	case Statement:
		p.statement(n)
	case MergeClause:
		p.clause(&n)
	case *MergeClause:
		p.clause(n)
	case Name:
		p.name(n)
	}
	return p.b.String()
}

// printer builds a text; words are put one blank apart.
type printer struct{ b strings.Builder }

// w writes strings one after the other.
func (p *printer) w(s ...string) {
	for _, x := range s {
		p.b.WriteString(x)
	}
}

// opt writes s if cond holds.
func (p *printer) opt(cond bool, s string) {
	if cond {
		p.b.WriteString(s)
	}
}

func (p *printer) id(s string)   { quoteName(&p.b, s) }
func (p *printer) str(s string)  { quoteString(&p.b, s) }
func (p *printer) name(n Name)   { p.w(n.String()) }
func (p *printer) ident(i Ident) { p.id(i.Name) }

// list writes n items with commas between.
func (p *printer) list(n int, item func(i int)) {
	for i := range n {
		if i > 0 {
			p.w(", ")
		}
		item(i)
	}
}

// parens writes n items in parentheses.
func (p *printer) parens(n int, item func(i int)) {
	p.w("(")
	p.list(n, item)
	p.w(")")
}

func (p *printer) exprs(list []Expr) {
	p.list(len(list), func(i int) { p.expr(list[i], precLambda) })
}

func (p *printer) idents(ids []Ident) {
	p.parens(len(ids), func(i int) { p.ident(ids[i]) })
}

func (p *printer) names(names []Name) {
	p.parens(len(names), func(i int) { p.name(names[i]) })
}

// typ prints a data type.
func (p *printer) typ(t *Type) {
	p.w(t.Name)
	switch t.Name {
	case "ARRAY", "MULTISET":
		p.w("<")
		p.typ(t.Elem)
		p.w(">")
	case "MAP":
		p.w("<")
		p.typ(t.Key)
		p.w(", ")
		p.typ(t.Elem)
		p.w(">")
	case "STRUCT":
		p.w("<")
		p.list(len(t.Fields), func(i int) {
			f := t.Fields[i]
			p.id(f.Name)
			p.w(": ")
			p.typ(f.Type)
			p.opt(f.NotNull, " NOT NULL")
			p.comment(f.Comment)
		})
		p.w(">")
	case "INTERVAL":
		p.opt(t.From != "", " "+t.From)
		p.opt(t.To != "", " TO "+t.To)
	}
	if len(t.Params) > 0 {
		p.parens(len(t.Params), func(i int) { p.w(strconv.Itoa(t.Params[i])) })
	}
	if t.Collation != "" {
		p.w(" COLLATE ")
		p.id(t.Collation)
	}
}

// comment prints COMMENT 'text' if there is one.
func (p *printer) comment(c *string) {
	if c != nil {
		p.w(" COMMENT ")
		p.str(*c)
	}
}
