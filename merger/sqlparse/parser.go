package sqlparse

import (
	"slices"
	"strings"
)

// Limits of a text's shape. They bound the depth of recursion over a tree.
const (
	// MaxDepth bounds nested parentheses, sub-queries, types, operators.
	MaxDepth = 400
	// MaxChain bounds operators of equal rank in a row (a + b + …); AND and OR,
	// whose chains are flat, are not bounded by it.
	MaxChain = 5000
)

// parser reads one text. The first error sticks: from then on the parser sees
// only the end of the text, so that every loop ends, and what is returned is
// thrown away.
type parser struct {
	lex   lexer
	tok   token
	prev  token // the token before tok
	err   *Error
	depth int
	// expected collects what could stand at the present token, tried also the
	// operators and clauses that a message does not list.
	expected, tried []string
	// alias is the last name taken for an alias without AS, and what else could
	// have stood there: a misspelt keyword looks like an alias.
	alias      token
	aliasTried []string
}

func newParser(src string, at Pos) *parser {
	p := &parser{lex: lexer{src: src, pos: at}}
	p.next()
	return p
}

// Parse reads one statement; a semicolon may follow it.
func Parse(src string) (Statement, error) {
	return parseAll(src, (*parser).statement)
}

// ParseExpr reads one expression.
func ParseExpr(src string) (Expr, error) {
	return parseAll(src, (*parser).expr)
}

// ParseQuery reads one query.
func ParseQuery(src string) (*Query, error) {
	return parseAll(src, func(p *parser) *Query { return p.query() })
}

// ParseType reads one data type.
func ParseType(src string) (*Type, error) {
	return parseAll(src, (*parser).typ)
}

// ParseName reads a name of one or more parts.
func ParseName(src string) (Name, error) {
	return parseAll(src, (*parser).name)
}

// ParseWhen reads clauses of MERGE as a pipeline lists them: one or more of
// WHEN … THEN …, apart by blanks, commas or semicolons. The same rules hold as
// inside MERGE.
func ParseWhen(src string) ([]MergeClause, error) {
	return parseAll(src, func(p *parser) []MergeClause {
		var clauses []MergeClause
		for p.at("WHEN") {
			clauses = append(clauses, p.mergeClause())
			for p.accept(",") || p.accept(";") { //nolint:revive // separators
			}
		}
		if len(clauses) == 0 {
			p.want("WHEN")
			p.unexpected()
		}
		p.checkClauses(clauses)
		return clauses
	})
}

// parseAll runs one rule over the whole text.
func parseAll[T any](src string, rule func(*parser) T) (T, error) {
	p := newParser(src, Pos{Line: 1, Col: 1})
	node := rule(p)
	for p.accept(";") { //nolint:revive // any number of them may end a statement
	}
	if p.tok.kind != tokEOF {
		p.trailing()
	}
	if p.err != nil {
		var zero T
		return zero, p.err
	}
	return node, nil
}

// trailing reports text behind the end of a statement.
func (p *parser) trailing() {
	if p.prev.kw == ";" {
		p.fail(&Error{
			Pos: p.tok.pos, Class: ClassSyntax, Found: p.tok.text,
			Message: syntaxMessage(p.tok.text, false, []string{"the end of the text"}), Hint: "only one statement can be given here",
		})
		return
	}
	p.want("the end of the statement")
	p.unexpected()
}

// next moves to the next token.
func (p *parser) next() {
	p.prev = p.tok
	if p.err != nil {
		return
	}
	p.expected, p.tried = p.expected[:0], p.tried[:0]
	p.tok = p.lex.next()
	if p.tok.kind == tokIllegal {
		p.fail(p.tok.err)
	}
}

// peek returns the token behind the present one.
func (p *parser) peek() token {
	l := p.lex
	if p.err != nil {
		return p.tok
	}
	return l.next()
}

// fail records the first error and puts the parser at the end of the text.
func (p *parser) fail(e *Error) {
	if p.err == nil {
		p.err = e
	}
	p.tok = token{kind: tokEOF, pos: p.tok.pos}
}

// failAt records an error of a class at a place.
func (p *parser) failAt(pos Pos, class, message, hint string) {
	p.fail(&Error{Pos: pos, Class: class, Message: message, Hint: hint})
}

// want notes something that could stand at the present token.
func (p *parser) want(what string) {
	if p.err == nil && !slices.Contains(p.expected, what) {
		p.expected = append(p.expected, what)
	}
}

// might notes a keyword that could stand at the present token, for suggestions.
func (p *parser) might(kws ...string) {
	if p.err == nil && p.tok.kind == tokIdent {
		p.tried = append(p.tried, kws...)
	}
}

// unexpected reports the present token as a syntax error with all that was
// noted as possible.
func (p *parser) unexpected() {
	if p.err != nil {
		return
	}
	end := p.tok.kind == tokEOF
	e := &Error{
		Pos: p.tok.pos, Class: ClassSyntax, Found: p.tok.text, Incomplete: end,
		Expected: slices.Clone(p.expected), Message: syntaxMessage(p.tok.text, end, p.expected),
	}
	e.Hint = p.suggestion()
	p.fail(e)
}

// suggestion names the keyword that a misspelt word could mean: the present
// word, or the one before if it was taken for an alias.
func (p *parser) suggestion() string {
	if p.alias.kind == tokIdent && p.alias.pos == p.prev.pos {
		if near := Nearest(p.alias.text, p.aliasTried); near != "" {
			return "did you mean " + near + " instead of " + p.alias.text + "?"
		}
	}
	if p.tok.kind != tokIdent {
		return ""
	}
	if near := Nearest(p.tok.text, p.words()); near != "" && near != strings.ToUpper(p.tok.text) {
		return "did you mean " + near + "?"
	}
	return ""
}

// words are the keywords that could stand at the present token.
func (p *parser) words() []string {
	words := slices.Clone(p.tried)
	for _, w := range p.expected {
		if keyword(w) == w {
			words = append(words, w)
		}
	}
	return words
}

// at reports whether the present token is a keyword or operator.
func (p *parser) at(kw string) bool {
	if p.tok.kw == kw && kw != "" {
		return true
	}
	p.want(kw)
	return false
}

// acceptSoft is accept for a word that messages do not list.
func (p *parser) acceptSoft(kw string) bool {
	if p.tok.kw == kw {
		p.next()
		return true
	}
	p.might(kw)
	return false
}

// accept moves over a keyword or operator if it is there.
func (p *parser) accept(kw string) bool {
	if p.at(kw) {
		p.next()
		return true
	}
	return false
}

// expect moves over a keyword or operator or reports it missing.
func (p *parser) expect(kw string) {
	if !p.accept(kw) {
		p.unexpected()
	}
}

// expectAll moves over a sequence of keywords.
func (p *parser) expectAll(kws ...string) {
	for _, kw := range kws {
		p.expect(kw)
	}
}

// enter counts a level of nesting; leave must follow. It reports false once the
// text is nested too deeply.
func (p *parser) enter() bool {
	p.depth++
	if p.depth > MaxDepth && p.err == nil {
		p.failAt(p.tok.pos, ClassTooComplex, "the statement is nested too deeply", "")
	}
	return p.err == nil
}

func (p *parser) leave() { p.depth-- }

// chain reports whether an operator chain may grow to n operators.
func (p *parser) chain(n int) bool {
	if n > MaxChain && p.err == nil {
		p.failAt(p.tok.pos, ClassTooComplex, "too many operators in a row", "split the expression with parentheses")
	}
	return p.err == nil
}

// atName reports whether the present token can be a name: any word, but those
// that join relations only if what follows leaves no doubt.
func (p *parser) atName() bool {
	return p.tok.kind == tokQuoted || p.tok.kind == tokIdent && (strict[p.tok.kw] == "" || endsName(p.peek()))
}

// endsName reports whether a token can follow a name but not a keyword that
// begins a clause: then the keyword before it is meant as a name.
func endsName(t token) bool {
	switch t.kind {
	case tokEOF:
		return true
	case tokOp:
		return t.kw != "(" && t.kw != "*" && t.kw != "-" && t.kw != "+" && t.kw != "~" && t.kw != "!"
	case tokIdent:
		switch t.kw {
		case "FROM", "AS", "IS", "AND", "OR", "THEN", "WHERE", "GROUP", "ORDER", "LIMIT", "ASC", "DESC", "NULLS":
			return true
		}
	}
	return false
}

// ident reads one part of a name.
func (p *parser) ident(what string) Ident {
	if !p.atName() {
		p.want(what)
		if p.tok.kind == tokIdent && p.err == nil {
			p.unexpected()
			p.err.Hint = "put a name that is a keyword between backticks"
			return Ident{}
		}
		p.unexpected()
		return Ident{}
	}
	id := Ident{Pos: p.tok.pos, Name: identText(p.tok)}
	p.next()
	return id
}

// identText returns the name that a token spells.
func identText(t token) string {
	if t.kind == tokQuoted {
		return strings.ReplaceAll(t.text[1:len(t.text)-1], "``", "`")
	}
	return t.text
}

// name reads a name of one or more parts.
func (p *parser) name() Name { return p.nameOf("a name") }

func (p *parser) nameOf(what string) Name {
	n := Name{Parts: []Ident{p.ident(what)}}
	for p.accept(".") {
		n.Parts = append(n.Parts, p.ident("a name"))
		if !p.chain(len(n.Parts)) {
			break
		}
	}
	return n
}

// atAlias reports whether the present token can be an alias without AS.
func (p *parser) atAlias() bool {
	return p.tok.kind == tokQuoted || p.tok.kind == tokIdent && noAlias[p.tok.kw] == ""
}

// bareAlias reads an alias that has no AS.
func (p *parser) bareAlias() Ident {
	p.alias, p.aliasTried = p.tok, p.words()
	return p.ident("an alias")
}

// idents reads names of one part, apart by commas, in parentheses.
func (p *parser) idents(what string) []Ident {
	var ids []Ident
	p.expect("(")
	for {
		ids = append(ids, p.ident(what))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return ids
}

// names reads names, apart by commas, in parentheses.
func (p *parser) names(what string) []Name {
	var names []Name
	p.expect("(")
	for {
		names = append(names, p.nameOf(what))
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return names
}

// text reads a string literal; adjacent ones are one.
func (p *parser) text(what string) string {
	if p.tok.kind != tokString {
		p.want(what)
		p.unexpected()
		return ""
	}
	s := unquote(p.tok.text)
	p.next()
	if p.tok.kind != tokString {
		return s
	}
	var b strings.Builder
	b.WriteString(s)
	for p.tok.kind == tokString {
		b.WriteString(unquote(p.tok.text))
		p.next()
	}
	return b.String()
}

// oneText reads one string literal, without joining what follows.
func (p *parser) oneText(what string) string {
	if p.tok.kind != tokString {
		p.want(what)
		p.unexpected()
		return ""
	}
	s := unquote(p.tok.text)
	p.next()
	return s
}

// textSince returns the source from an offset to the end of the last token.
func (p *parser) textSince(from int) string {
	if p.err != nil || p.prev.end() < from {
		return ""
	}
	return p.lex.src[from:p.prev.end()]
}
