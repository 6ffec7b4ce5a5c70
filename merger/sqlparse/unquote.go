package sqlparse

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unquote returns the value of a string literal as written: doubled quotes are
// one, backslash escapes are resolved, unless the literal is raw (r'…').
//
// The escapes: \0 \b \n \r \t \Z, \uXXXX (two of them may form a surrogate
// pair), \UXXXXXXXX, \ooo (octal, up to \377); \% and \_ keep their backslash, as
// LIKE needs it; before any other character the backslash vanishes (source:
// Spark's SQL reference, observed).
func unquote(text string) string {
	if c := text[0]; c == 'r' || c == 'R' {
		return text[2 : len(text)-1]
	}
	q, s := text[0], text[1:len(text)-1]
	if strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, q) < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		switch {
		case s[i] == q: // doubled
			b = append(b, q)
			i += 2
		case s[i] == '\\' && i+1 < len(s):
			var n int
			b, n = unescape(b, s[i+1:])
			i += 1 + n
		default:
			b = append(b, s[i])
			i++
		}
	}
	return string(b)
}

// unescape appends what the escape that begins behind a backslash stands for
// and returns how many bytes it took.
func unescape(b []byte, s string) ([]byte, int) {
	switch c := s[0]; {
	case c == 'u':
		if r, ok := hexRune(s[1:], 4); ok {
			n := 5
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if strings.HasPrefix(s[5:], `\u`) {
					low, ok = hexRune(s[7:], 4)
				}
				if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
					r, n = pair, 11
				}
			}
			return utf8.AppendRune(b, r), n
		}
	case c == 'U':
		if r, ok := hexRune(s[1:], 8); ok {
			return utf8.AppendRune(b, r), 9
		}
	case c >= '0' && c <= '3' && len(s) >= 3 && isOctal(s[1]) && isOctal(s[2]):
		return utf8.AppendRune(b, rune(c-'0')<<6|rune(s[1]-'0')<<3|rune(s[2]-'0')), 3
	}
	switch s[0] {
	case '0':
		return append(b, 0), 1
	case 'b':
		return append(b, '\b'), 1
	case 'n':
		return append(b, '\n'), 1
	case 'r':
		return append(b, '\r'), 1
	case 't':
		return append(b, '\t'), 1
	case 'Z':
		return append(b, 0x1A), 1
	case '%', '_':
		return append(b, '\\', s[0]), 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return append(b, s[:n]...), n
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

// hexRune reads n hex digits.
func hexRune(s string, n int) (rune, bool) {
	if len(s) < n {
		return 0, false
	}
	var r rune
	for i := range n {
		d, ok := hexDigit(s[i])
		if !ok || r > utf8.MaxRune>>4 {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case isDigit(c):
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// quoteString writes s as a string literal that unquote reads back.
func quoteString(b *strings.Builder, s string) {
	b.WriteByte('\'')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\'':
			b.WriteString("''")
		case '\\':
			// \% and \_ keep their backslash when read, so they are written as they are.
			if i+1 < len(s) && (s[i+1] == '%' || s[i+1] == '_') {
				b.WriteByte('\\')
				i++
				b.WriteByte(s[i])
				continue
			}
			b.WriteString(`\\`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case 0:
			b.WriteString(`\u0000`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
}

// quoteName writes a name, between backticks unless it is a plain word that is
// safe everywhere.
func quoteName(b *strings.Builder, s string) {
	if plainName(s) {
		b.WriteString(s)
		return
	}
	b.WriteByte('`')
	b.WriteString(strings.ReplaceAll(s, "`", "``"))
	b.WriteByte('`')
}

// plainName reports whether a name can be written bare: a word of ASCII
// letters, digits and _ that does not begin with a digit and is no keyword.
func plainName(s string) bool {
	if s == "" || isDigit(s[0]) || keyword(s) != "" || typedLiteral(strings.ToUpper(s)) {
		return false
	}
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return false
		}
	}
	return true
}
