package sqlparse

import (
	"strconv"
	"strings"
)

// typeNames are the type names by their spellings.
var typeNames = map[string]string{
	"BOOLEAN": "BOOLEAN", "BOOL": "BOOLEAN", "TINYINT": "TINYINT", "BYTE": "TINYINT", "SMALLINT": "SMALLINT", "SHORT": "SMALLINT",
	"INT": "INT", "INTEGER": "INT", "BIGINT": "BIGINT", "LONG": "BIGINT", "FLOAT": "FLOAT", "REAL": "FLOAT",
	"DOUBLE": "DOUBLE", "DATE": "DATE", "TIME": "TIME", "TIMESTAMP": "TIMESTAMP", "TIMESTAMP_NTZ": "TIMESTAMP_NTZ",
	"TIMESTAMP_LTZ": "TIMESTAMP_LTZ", "STRING": "STRING", "CHAR": "CHAR", "CHARACTER": "CHAR", "VARCHAR": "VARCHAR",
	"BINARY": "BINARY", "BYTES": "BYTES", "VARBINARY": "VARBINARY", "DECIMAL": "DECIMAL", "DEC": "DECIMAL",
	"NUMERIC": "DECIMAL", "VOID": "VOID", "INTERVAL": "INTERVAL", "VARIANT": "VARIANT", "ARRAY": "ARRAY", "MAP": "MAP",
	"STRUCT": "STRUCT", "ROW": "STRUCT", "MULTISET": "MULTISET",
}

// typ reads a data type.
func (p *parser) typ() *Type {
	t := &Type{Pos: p.tok.pos}
	if !p.enter() {
		return t
	}
	defer p.leave()
	if p.tok.kind != tokIdent && p.tok.kind != tokQuoted {
		p.want("a data type")
		p.unexpected()
		return t
	}
	word := identText(p.tok)
	t.Name = typeNames[strings.ToUpper(word)]
	if t.Name == "" {
		p.unknownType(word)
		return t
	}
	p.next()
	switch t.Name {
	case "ARRAY", "MULTISET":
		p.expect("<")
		t.Elem = p.typ()
		p.expect(">")
	case "MAP":
		p.expect("<")
		t.Key = p.typ()
		p.expect(",")
		t.Elem = p.typ()
		p.expect(">")
	case "STRUCT":
		p.structType(t)
	case "INTERVAL":
		p.intervalType(t)
	default:
		p.typeParams(t)
	}
	return t
}

func (p *parser) unknownType(word string) {
	e := &Error{Pos: p.tok.pos, Class: ClassDatatype, Found: word, Message: "unknown data type " + quoteFound(word)}
	names := make([]string, 0, len(typeNames))
	for _, n := range [...]string{
		"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "CHAR",
		"VARCHAR", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "INTEGER", "ARRAY", "MAP", "STRUCT", "TIME",
	} {
		names = append(names, n)
	}
	if near := Nearest(word, names); near != "" {
		e.Hint = "did you mean " + near + "?"
	}
	p.fail(e)
}

// typeParams reads (10, 2), and the words that may follow a type's name.
func (p *parser) typeParams(t *Type) {
	if p.accept("(") {
		for {
			t.Params = append(t.Params, p.integer("a number"))
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	if t.Name == "STRING" && p.tok.kw == "COLLATE" {
		p.next()
		t.Collation = p.nameOf("a collation").Last()
	}
}

// integer reads a small whole number.
func (p *parser) integer(what string) int {
	if p.tok.kind != tokInt {
		p.want(what)
		p.unexpected()
		return 0
	}
	n, err := strconv.ParseInt(p.tok.text, 10, 32)
	if err != nil {
		p.failAt(p.tok.pos, ClassSyntax, "the number "+quoteFound(p.tok.text)+" is too large here", "")
		return 0
	}
	p.next()
	return int(n)
}

// structType reads STRUCT<a: INT, b STRING COMMENT 'c'>.
func (p *parser) structType(t *Type) {
	if p.tok.kw == "<>" {
		p.next()
		return
	}
	p.expect("<")
	if p.tok.kw == ">" {
		p.next()
		return
	}
	for {
		f := StructField{Pos: p.tok.pos, Name: p.ident("a field's name").Name}
		p.accept(":")
		f.Type = p.typ()
		if p.accept("NOT") {
			p.expect("NULL")
			f.NotNull = true
		}
		if p.accept("COMMENT") {
			c := p.text("the comment's text")
			f.Comment = &c
		}
		t.Fields = append(t.Fields, f)
		if !p.accept(",") {
			break
		}
	}
	p.expect(">")
}

// intervalType reads the units of INTERVAL YEAR TO MONTH and its like.
func (p *parser) intervalType(t *Type) {
	if t.From = p.unit(); t.From == "" {
		return
	}
	p.next()
	if p.accept("TO") {
		if t.To = p.unit(); t.To == "" {
			p.want("a unit")
			p.unexpected()
			return
		}
		p.next()
	}
}
