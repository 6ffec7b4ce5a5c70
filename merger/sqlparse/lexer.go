package sqlparse

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// lexer cuts a text into tokens, one at a time; copying it saves the place.
type lexer struct {
	src string
	pos Pos
}

// operators by first byte, longest first. '>' stands alone always: the parser
// joins the shift operators, so that MAP<INT, ARRAY<INT>> ends with two of them.
var operators = [...][]string{
	'<': {"<=>", "<<", "<=", "<>", "<"}, '>': {">=", ">"}, '=': {"==", "=>", "="}, '!': {"!=", "!<", "!>", "!"},
	'|': {"||", "|"}, '-': {"->", "-"}, ':': {"::", ":"}, '+': {"+"}, '*': {"*"}, '/': {"/"}, '%': {"%"},
	'~': {"~"}, '&': {"&"}, '^': {"^"}, '(': {"("}, ')': {")"}, '[': {"["}, ']': {"]"}, ',': {","}, '.': {"."},
	';': {";"}, '?': {"?"}, '{': {"{"}, '}': {"}"}, '@': {"@"},
}

// next returns the next token and moves behind it.
func (l *lexer) next() token {
	if err := l.skip(); err != nil {
		return token{kind: tokIllegal, pos: err.Pos, err: err}
	}
	rest := l.src[l.pos.Offset:]
	if rest == "" {
		return token{kind: tokEOF, pos: l.pos}
	}
	switch c := rest[0]; {
	case c == '\'' || c == '"':
		return l.quoted(rest, 0)
	case (c == 'r' || c == 'R') && len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"'):
		return l.quoted(rest, 1)
	case c == '`':
		return l.backticks(rest)
	case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
		if n, integer := numberLength(rest); n > 0 {
			if integer {
				return l.take(tokInt, n, "")
			}
			return l.take(tokNumber, n, "")
		}
	}
	if n := wordLength(rest); n > 0 {
		return l.take(tokIdent, n, keyword(rest[:n]))
	}
	if c := rest[0]; int(c) < len(operators) {
		for _, op := range operators[c] {
			if strings.HasPrefix(rest, op) {
				return l.take(tokOp, len(op), op)
			}
		}
	}
	return l.illegal(rest)
}

// take returns the next n bytes as a token.
func (l *lexer) take(k kind, n int, kw string) token {
	t := token{kind: k, pos: l.pos, text: l.src[l.pos.Offset : l.pos.Offset+n], kw: kw}
	l.pos = l.pos.advance(t.text)
	return t
}

func (l *lexer) illegal(rest string) token {
	r, n := utf8.DecodeRuneInString(rest)
	t := l.take(tokIllegal, n, "")
	t.err = &Error{Pos: t.pos, Class: ClassSyntax, Found: t.text, Message: "unexpected character " + quoteFound(t.text)}
	switch {
	case r == utf8.RuneError && n == 1:
		t.err.Message = "the text is not valid UTF-8"
	case strings.ContainsRune("“”‘’´", r):
		t.err.Hint = "a typographic quote; write ' around texts and ` around names"
	}
	return t
}

// skip passes blanks and comments. Hints (/*+ … */) are comments here.
func (l *lexer) skip() *Error {
	for {
		rest := l.src[l.pos.Offset:]
		switch {
		case rest == "":
			return nil
		case strings.HasPrefix(rest, "--"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.pos = l.pos.advance(rest[:n])
		case strings.HasPrefix(rest, "/*"):
			n := commentLength(rest)
			if n < 0 {
				return &Error{
					Pos: l.pos, Class: ClassUnclosedComment, Found: "/*", Message: "the comment has no end",
					Hint: "close it with */", Incomplete: true,
				}
			}
			l.pos = l.pos.advance(rest[:n])
		default:
			n := blankLength(rest)
			if n == 0 {
				return nil
			}
			l.pos = l.pos.advance(rest[:n])
		}
	}
}

// blankLength counts the bytes of leading white space, the byte order mark
// among it.
func blankLength(s string) int {
	for i, r := range s {
		if !unicode.IsSpace(r) && r != '\uFEFF' && r != '\u200B' {
			return i
		}
	}
	return len(s)
}

// commentLength returns the length of the block comment that s begins with;
// comments nest. It returns -1 if there is no end.
func commentLength(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// quoted reads a string literal that begins behind prefix bytes. In a raw string
// (prefix 1) the backslash is a character as others.
func (l *lexer) quoted(rest string, prefix int) token {
	q := rest[prefix]
	for i := prefix + 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && prefix == 0:
			i++
		case rest[i] == q && prefix == 0 && i+1 < len(rest) && rest[i+1] == q:
			i++
		case rest[i] == q:
			return l.take(tokString, i+1, "")
		}
	}
	return l.unclosed("the text has no closing quote", rest[:prefix+1])
}

func (l *lexer) backticks(rest string) token {
	for i := 1; i < len(rest); i++ {
		if rest[i] != '`' {
			continue
		}
		if i+1 < len(rest) && rest[i+1] == '`' {
			i++
			continue
		}
		t := l.take(tokQuoted, i+1, "")
		if i == 1 {
			t.kind = tokIllegal
			t.err = &Error{Pos: t.pos, Class: ClassEmptyIdentifier, Found: t.text, Message: "a name between backticks must not be empty"}
		}
		return t
	}
	return l.unclosed("the name has no closing backtick", "`")
}

func (l *lexer) unclosed(msg, open string) token {
	t := token{kind: tokIllegal, pos: l.pos, text: l.src[l.pos.Offset:]}
	t.err = &Error{Pos: l.pos, Class: ClassSyntax, Found: open, Message: msg, Incomplete: true}
	l.pos = l.pos.advance(t.text)
	return t
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// wordLength counts the bytes of a bare word: letters of any script, digits, _.
func wordLength(s string) int {
	for i, r := range s {
		if r < utf8.RuneSelf {
			if !isWordByte(byte(r)) {
				return i
			}
		} else if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
			return i
		}
	}
	return len(s)
}

func isWordByte(c byte) bool {
	return c == '_' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// numberLength returns the length of the numeric literal that s begins with and
// whether it is an integer without suffix. It returns 0 if the digits belong to
// a word (1st, 0x1F).
func numberLength(s string) (n int, integer bool) {
	digits := func() (any bool) {
		for n < len(s) && isDigit(s[n]) {
			n++
			any = true
		}
		return any
	}
	whole := digits()
	point := false
	if n < len(s) && s[n] == '.' {
		point = true
		n++
		if !digits() && !whole {
			return 0, false
		}
	}
	end := n
	exponent := false
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		n++
		if n < len(s) && (s[n] == '+' || s[n] == '-') {
			n++
		}
		if exponent = digits(); !exponent {
			n = end
		}
	}
	suffix := suffixLength(s[n:], point || exponent)
	n += suffix
	if wordLength(s[n:]) == 0 {
		return n, !point && !exponent && suffix == 0
	}
	if !point {
		return 0, false
	}
	// 1.5x is the number 1 followed by a point and a word.
	if n = strings.IndexByte(s, '.'); n == 0 {
		return 0, false
	}
	return n, true
}

// suffixLength returns the length of a type suffix: L, S, Y for integers, F, D,
// BD for all numbers.
func suffixLength(s string, fraction bool) int {
	if s == "" {
		return 0
	}
	switch s[0] | 0x20 {
	case 'l', 's', 'y':
		if !fraction {
			return 1
		}
	case 'f', 'd':
		return 1
	case 'b':
		if len(s) > 1 && s[1]|0x20 == 'd' {
			return 2
		}
	}
	return 0
}
