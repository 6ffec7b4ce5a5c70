package sqlparse

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// command reads SHOW, DESCRIBE, EXPLAIN, SET, RESET, USE and CALL; nil if none
// of them begins here.
func (p *parser) command(pos Pos) Statement {
	switch p.tok.kw {
	case "SHOW":
		return p.show(pos)
	case "DESCRIBE", "DESC":
		return p.describe(pos)
	case "EXPLAIN":
		return p.explain(pos)
	case "SET":
		return p.set(pos)
	case "RESET":
		p.next()
		return &Reset{Pos: pos, Key: p.checkKey(pos, p.restOfText())}
	case "USE":
		p.next()
		if w := p.tok.kw; (w == "DATABASE" || w == "SCHEMA" || w == "NAMESPACE" || w == "CATALOG") && p.peek().kind != tokEOF && p.peek().kw != ";" {
			p.next()
		}
		return &Use{Pos: pos, Name: p.nameOf("a database")}
	case "CALL":
		p.next()
		n := &CallProcedure{Pos: pos, Procedure: p.nameOf("a procedure")}
		p.expect("(")
		if !p.accept(")") {
			for {
				n.Args = append(n.Args, p.argument())
				if !p.accept(",") {
					break
				}
			}
			p.expect(")")
		}
		return n
	}
	return nil
}

// statementWords are the words that begin a statement.
var statementWords = [...]string{
	"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "ALTER", "DROP", "TRUNCATE", "SHOW",
	"DESCRIBE", "EXPLAIN", "SET", "RESET", "USE", "WITH", "VALUES", "TABLE", "CALL", "FROM",
}

// foreignWords begin statements of Spark that this dialect does not have.
var foreignWords = [...]string{
	"ANALYZE", "CACHE", "UNCACHE", "REFRESH", "MSCK", "LOAD", "LIST", "ADD", "REPAIR", "COMMENT", "GRANT", "REVOKE",
	"CLEAR", "DECLARE", "EXECUTE", "BEGIN", "COMMIT", "ROLLBACK", "START", "OPTIMIZE", "VACUUM",
}

// unknownStatement reports a text that begins no statement.
func (p *parser) unknownStatement() {
	word := strings.ToUpper(p.tok.text)
	if p.tok.kind == tokIdent && slices.Contains(foreignWords[:], word) {
		p.failAt(p.tok.pos, ClassUnsupported, word+" statements are not supported", "")
		return
	}
	p.expected = append(p.expected[:0], statementWords[:]...)
	if p.tok.kind == tokEOF {
		p.expected = append(p.expected[:0], "a statement")
	}
	p.unexpected()
}

// show reads a SHOW statement.
func (p *parser) show(pos Pos) Statement {
	p.next()
	n := &Show{Pos: pos}
	switch {
	case p.accept("DATABASES"), p.acceptSoft("SCHEMAS"), p.acceptSoft("NAMESPACES"):
		n.What = "DATABASES"
		p.fromName(n, false)
		p.pattern(n)
	case p.at("TABLES"), p.at("VIEWS"), p.at("FUNCTIONS"):
		n.What = p.tok.kw
		p.next()
		p.fromName(n, false)
		p.pattern(n)
	case p.accept("COLUMNS"):
		n.What = "COLUMNS"
		p.fromName(n, true)
		if (p.acceptSoft("FROM") || p.acceptSoft("IN")) && len(n.Name.Parts) == 1 {
			n.Name.Parts = append(p.nameOf("a database").Parts, n.Name.Parts...)
		}
	case p.accept("CREATE"):
		p.expect("TABLE")
		n.What, n.Name = "CREATE TABLE", p.nameOf("a table")
	case p.accept("TBLPROPERTIES"):
		n.What, n.Name = "TBLPROPERTIES", p.nameOf("a table")
		if p.acceptSoft("(") {
			k := p.propertyKey()
			n.Key = &k
			p.expect(")")
		}
	case p.accept("PARTITIONS"):
		n.What, n.Name = "PARTITIONS", p.nameOf("a table")
		if p.acceptSoft("PARTITION") {
			n.Partition = p.partition(false)
		}
	case p.tok.kind == tokIdent && strings.EqualFold(p.tok.text, "CATALOGS"):
		p.next()
		n.What = "CATALOGS"
		p.pattern(n)
	default:
		p.unexpected()
	}
	return n
}

// fromName reads FROM name or IN name.
func (p *parser) fromName(n *Show, must bool) {
	if p.acceptSoft("FROM") || p.acceptSoft("IN") {
		n.Name = p.name()
	} else if must {
		p.want("FROM")
		p.unexpected()
	}
}

// pattern reads [LIKE] 'pattern'.
func (p *parser) pattern(n *Show) {
	if p.acceptSoft("LIKE") || p.tok.kind == tokString {
		n.Pattern = p.textPtr()
	}
}

// describe reads a DESCRIBE statement.
func (p *parser) describe(pos Pos) Statement {
	p.next()
	n := &Describe{Pos: pos}
	next := p.peek()
	named := next.kind == tokIdent || next.kind == tokQuoted // a word here is no table's name
	switch w := p.tok.kw; {
	case named && (w == "DATABASE" || w == "SCHEMA" || w == "NAMESPACE"):
		p.next()
		n.Database = true
		n.Extended = p.peek().kind != tokEOF && p.acceptSoft("EXTENDED")
		n.Name = p.nameOf("a database")
		return n
	case named && w == "FUNCTION":
		p.refuse("FUNCTION")
		return n
	case p.atQuery() && w != "TABLE":
		n.Query = p.query()
		return n
	case p.tok.kind == tokIdent && strings.EqualFold(p.tok.text, "QUERY") && queryWord(next):
		p.next()
		n.Query = p.query()
		return n
	case named && w == "TABLE":
		p.next()
		next = p.peek()
		named = next.kind == tokIdent || next.kind == tokQuoted
	}
	if named && (p.tok.kw == "EXTENDED" || p.tok.kw == "FORMATTED") {
		p.next()
		n.Extended = true
	}
	n.Name = p.nameOf("a table")
	if p.atName() {
		n.Column = p.name()
	}
	return n
}

// explain reads EXPLAIN.
func (p *parser) explain(pos Pos) Statement {
	p.next()
	n := &Explain{Pos: pos}
	if p.tok.kw == "EXTENDED" || p.tok.kw == "FORMATTED" {
		n.Mode = p.tok.kw
		p.next()
	}
	n.Stmt = p.statement()
	return n
}

// set reads SET key = value, SET key, SET and SET TIME ZONE. Key and value are
// taken as they are written; only quotes around the value go.
func (p *parser) set(pos Pos) Statement {
	next := p.peek()
	if next.kind == tokIdent && strings.EqualFold(next.text, "TIME") {
		if s := p.setTimeZone(pos); s != nil {
			return s
		}
	}
	rest := p.restOfSet()
	n := &Set{Pos: pos}
	key, value, found := strings.Cut(rest, "=")
	n.Key = p.checkKey(pos, key)
	if found {
		v := unquoteValue(strings.TrimSpace(value))
		n.Value = &v
	}
	return n
}

// setTimeZone reads SET TIME ZONE 'name' as the property it sets.
func (p *parser) setTimeZone(pos Pos) Statement {
	l := p.lex
	l.next()
	if zone := l.next(); zone.kind != tokIdent || !strings.EqualFold(zone.text, "ZONE") {
		return nil
	}
	p.next()
	p.next()
	p.next()
	n := &Set{Pos: pos, Key: "spark.sql.session.timeZone"}
	if p.tok.kind == tokIdent && strings.EqualFold(p.tok.text, "LOCAL") {
		local := "LOCAL"
		n.Value = &local
		p.next()
		return n
	}
	zone := p.text("a time zone in quotes")
	n.Value = &zone
	return n
}

// unquoteValue takes off quotes that stand around a whole value.
func unquoteValue(s string) string {
	if len(s) < 2 || s[0] != '\'' && s[0] != '"' {
		return s
	}
	l := lexer{src: s, pos: Pos{Line: 1, Col: 1}}
	if t := l.next(); t.kind == tokString && t.end() == len(s) {
		return unquote(s)
	}
	return s
}

// restOfSet takes the text behind SET as it is, to the end or a semicolon
// outside of quotes, and moves to its end.
func (p *parser) restOfSet() string {
	if p.err != nil {
		return ""
	}
	from := p.tok.end()
	rest := p.lex.src[from:]
	end := len(rest)
	var quote byte
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == ';':
			end = i
		}
		if end == i {
			break
		}
	}
	p.lex.pos = p.tok.pos.advance(p.tok.text).advance(rest[:end])
	p.next()
	return strings.TrimSpace(rest[:end])
}

// restOfText takes words and points up to the end: the key of RESET.
func (p *parser) restOfText() string {
	if p.tok.kind != tokIdent && p.tok.kind != tokQuoted {
		return ""
	}
	from := p.tok.pos.Offset
	for p.tok.kind != tokEOF && p.tok.kw != ";" {
		p.next()
	}
	return p.textSince(from)
}

// checkKey takes backticks off a setting's key and refuses what is none.
func (p *parser) checkKey(pos Pos, key string) string {
	key = strings.Trim(strings.TrimSpace(key), "`")
	for _, c := range key {
		if (c >= utf8.RuneSelf || !isWordByte(byte(c))) && !strings.ContainsRune(".:-$/", c) && p.err == nil {
			p.failAt(pos, ClassSet, quoteFound(key)+" is no setting's key", "write SET key = value")
		}
	}
	return key
}
