package types

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseType parses the spelling of one type: Paimon's (as in schema files,
// with its reader's tolerances: any case, INTEGER, DEC, NUMERIC, DOUBLE
// PRECISION, TIMESTAMP_LTZ(p), blanks, missing arguments) and SQL DDL's nested
// forms ARRAY<…>, MAP<…, …>, MULTISET<…>, ROW<name type, …> and STRUCT<name: type, …>.
// Nested fields get ids 0, 1, … in post-order; a table's schema assigns its own.
func ParseType(text string) (Type, error) {
	p := &typeParser{s: text}
	t, err := p.typ(0)
	if err != nil {
		return Type{}, err
	}
	if p.peek(); p.i < len(p.s) {
		return Type{}, p.fail("unexpected %q after the type", short(p.s[p.i:]))
	}
	if t.depth() > maxTypeDepth {
		return Type{}, p.fail("nested deeper than %d levels", maxTypeDepth)
	}
	return t, nil
}

// maxTypeDepth bounds the nesting of a type, and so the depth of every recursion
// over one.
const maxTypeDepth = 64

// depth returns the levels of nesting, 0 for a type without children.
func (t Type) depth() int {
	d := 0
	for _, child := range []*Type{t.Elem, t.Key} {
		if child != nil {
			d = max(d, 1+child.depth())
		}
	}
	for _, f := range t.Fields {
		d = max(d, 1+f.Type.depth())
	}
	return d
}

type typeParser struct {
	s        string
	i        int
	id       int
	suffixes int // ARRAY and MULTISET behind their element
}

func (p *typeParser) fail(format string, a ...any) error {
	return fmt.Errorf("type %q: %s at character %d", short(p.s), fmt.Sprintf(format, a...), p.i+1)
}

// short keeps foreign texts from filling the log.
func short(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

func (p *typeParser) peek() byte {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t' || p.s[p.i] == '\n' || p.s[p.i] == '\r') {
		p.i++
	}
	if p.i == len(p.s) {
		return 0
	}
	return p.s[p.i]
}

func (p *typeParser) accept(c byte) bool {
	if p.peek() == c {
		p.i++
		return true
	}
	return false
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// word reads an upper-cased keyword.
func (p *typeParser) word() string {
	p.peek()
	from := p.i
	for p.i < len(p.s) && isWord(p.s[p.i]) {
		p.i++
	}
	return strings.ToUpper(p.s[from:p.i])
}

// acceptWords consumes the given keywords if all of them follow.
func (p *typeParser) acceptWords(words ...string) bool {
	from := p.i
	for _, w := range words {
		if p.word() != w {
			p.i = from
			return false
		}
	}
	return true
}

// args reads up to max numbers in parentheses; absent ones keep their default.
func (p *typeParser) args(defaults ...int) ([]int, error) {
	if !p.accept('(') {
		return defaults, nil
	}
	for i := range defaults {
		if i > 0 && !p.accept(',') {
			break
		}
		w := p.word()
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, p.fail("a number is expected instead of %q", short(w))
		}
		defaults[i] = n
	}
	if !p.accept(')') {
		return nil, p.fail("\")\" is expected")
	}
	return defaults, nil
}

func (p *typeParser) typ(depth int) (Type, error) {
	if depth > maxTypeDepth {
		return Type{}, p.fail("nested deeper than %d levels", maxTypeDepth)
	}
	w := p.word()
	t, err := p.root(w, depth)
	if err != nil {
		return Type{}, err
	}
	for {
		switch {
		case p.acceptWords("NOT", "NULL"):
			t.NotNull = true
		case p.acceptWords("NULL"):
		case p.acceptWords("ARRAY"):
			t = ArrayType(t)
			p.suffixes++
		case p.acceptWords("MULTISET"):
			t = MultisetType(t)
			p.suffixes++
		default:
			return t, nil
		}
		if p.suffixes > maxTypeDepth {
			return Type{}, p.fail("nested deeper than %d levels", maxTypeDepth)
		}
	}
}

var simpleTypes = map[string]Type{
	"BOOLEAN": BooleanType(), "BOOL": BooleanType(), "TINYINT": TinyIntType(), "BYTE": TinyIntType(),
	"SMALLINT": SmallIntType(), "SHORT": SmallIntType(), "INT": IntType(), "INTEGER": IntType(),
	"BIGINT": BigIntType(), "LONG": BigIntType(), "FLOAT": FloatType(), "REAL": FloatType(),
	"DATE": DateType(), "STRING": StringType(), "BYTES": BytesType(), "VARIANT": {Kind: Variant}, "BLOB": {Kind: Blob},
}

func (p *typeParser) root(w string, depth int) (Type, error) {
	if t, ok := simpleTypes[w]; ok {
		return t, nil
	}
	switch w {
	case "DOUBLE":
		p.acceptWords("PRECISION")
		return DoubleType(), nil
	case "DECIMAL", "DEC", "NUMERIC":
		a, err := p.args(10, 0)
		if err != nil {
			return Type{}, err
		}
		return DecimalType(a[0], a[1]), p.check(a[0] >= 1 && a[0] <= MaxPrecision && a[1] >= 0 && a[1] <= a[0],
			"DECIMAL needs a precision of 1 to 38 and a scale of 0 to the precision")
	case "CHAR", "VARCHAR", "BINARY", "VARBINARY":
		a, err := p.args(1)
		k := map[string]Kind{"CHAR": Char, "VARCHAR": VarChar, "BINARY": Binary, "VARBINARY": VarBinary}[w]
		if err != nil {
			return Type{}, err
		}
		return Type{Kind: k, Length: a[0]}, p.check(a[0] >= 1 && a[0] <= MaxLength, w+" needs a length of 1 or more")
	case "TIME":
		return p.fraction(Time, 0)
	case "TIMESTAMP_LTZ":
		return p.fraction(TimestampLTZ, 6)
	case "TIMESTAMP_NTZ":
		return p.fraction(Timestamp, 6)
	case "TIMESTAMP":
		t, err := p.fraction(Timestamp, 6)
		if p.acceptWords("WITH", "LOCAL", "TIME", "ZONE") {
			t.Kind = TimestampLTZ
		} else {
			p.acceptWords("WITHOUT", "TIME", "ZONE")
		}
		return t, err
	case "GEOMETRY", "GEOGRAPHY":
		return p.geo(w)
	case "ARRAY", "MULTISET", "MAP", "ROW", "STRUCT", "VECTOR":
		return p.nested(w, depth)
	case "":
		return Type{}, p.fail("a type name is expected")
	}
	return Type{}, p.fail("%q is no type name known here", short(w))
}

func (p *typeParser) check(ok bool, msg string) error {
	if ok {
		return nil
	}
	return p.fail("%s", msg)
}

func (p *typeParser) fraction(k Kind, def int) (Type, error) {
	a, err := p.args(def)
	if err != nil {
		return Type{}, err
	}
	if k == Time {
		p.acceptWords("WITHOUT", "TIME", "ZONE")
	}
	return Type{Kind: k, Precision: a[0]}, p.check(a[0] >= 0 && a[0] <= 9, "a precision of 0 to 9 is expected")
}

func (p *typeParser) geo(w string) (Type, error) {
	t := Type{Kind: Geometry}
	if w == "GEOGRAPHY" {
		t.Kind = Geography
	}
	if p.accept('(') {
		end := strings.IndexByte(p.s[p.i:], ')')
		if end < 0 {
			return Type{}, p.fail("\")\" is expected")
		}
		t.Text = p.s[p.i : p.i+end]
		p.i += end + 1
	}
	return t, nil
}

func (p *typeParser) nested(w string, depth int) (Type, error) {
	if !p.accept('<') {
		return Type{}, p.fail("\"<\" is expected after %s", w)
	}
	if w == "ROW" || w == "STRUCT" {
		return p.row(depth)
	}
	first, err := p.typ(depth + 1)
	if err != nil {
		return Type{}, err
	}
	t := ArrayType(first)
	switch w {
	case "MULTISET":
		t = MultisetType(first)
	case "MAP":
		if !p.accept(',') {
			return Type{}, p.fail("\",\" is expected between key and value type")
		}
		value, err := p.typ(depth + 1)
		if err != nil {
			return Type{}, err
		}
		t = MapType(first, value)
	case "VECTOR":
		t.Kind = VectorOf
		if !p.accept(',') {
			return Type{}, p.fail("\",\" is expected before the vector's length")
		}
		if t.Length, err = strconv.Atoi(p.word()); err != nil || t.Length < 1 || t.Length > MaxLength {
			return Type{}, p.fail("the vector's length, 1 or more, is expected")
		}
	}
	if !p.accept('>') {
		return Type{}, p.fail("\">\" is expected")
	}
	return t, nil
}

func (p *typeParser) row(depth int) (Type, error) {
	t := Type{Kind: Row}
	for !p.accept('>') {
		if len(t.Fields) > 0 && !p.accept(',') {
			return Type{}, p.fail("\",\" or \">\" is expected")
		}
		name, err := p.name()
		if err != nil {
			return Type{}, err
		}
		p.accept(':')
		ft, err := p.typ(depth + 1)
		if err != nil {
			return Type{}, err
		}
		f := Field{ID: p.id, Name: name, Type: ft}
		p.id++
		if p.acceptWords("COMMENT") {
			text, err := p.quoted()
			if err != nil {
				return Type{}, err
			}
			f.Description = &text
		}
		t.Fields = append(t.Fields, f)
	}
	return t, nil
}

func (p *typeParser) name() (string, error) {
	if p.peek() != '`' {
		from := p.i
		for p.i < len(p.s) && (isWord(p.s[p.i]) || p.s[p.i] >= 0x80) {
			p.i++
		}
		if from == p.i {
			return "", p.fail("a field name is expected")
		}
		return p.s[from:p.i], nil
	}
	return p.delimited('`')
}

func (p *typeParser) quoted() (string, error) {
	if p.peek() != '\'' {
		return "", p.fail("a quoted text is expected")
	}
	return p.delimited('\'')
}

// delimited reads a text between two quotes; the doubled quote stands for itself.
func (p *typeParser) delimited(q byte) (string, error) {
	var b strings.Builder
	for p.i++; p.i < len(p.s); p.i++ {
		if p.s[p.i] != q {
			b.WriteByte(p.s[p.i])
		} else if p.i+1 < len(p.s) && p.s[p.i+1] == q {
			b.WriteByte(q)
			p.i++
		} else {
			p.i++
			return b.String(), nil
		}
	}
	return "", p.fail("the closing %c is missing", q)
}
