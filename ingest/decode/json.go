package decode

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maxDepth is how many JSON containers may enclose each other in a record.
const maxDepth = 64

// Kinds of a token, named after the byte they start with.
const (
	kindNull   = 'n'
	kindTrue   = 't'
	kindFalse  = 'f'
	kindNumber = '0'
	kindString = '"'
	kindObject = '{'
	kindArray  = '['
)

// token is one JSON value. Its slices alias the record or, for a string with
// escapes, the scanner: they are good until the scanner's next token.
type token struct {
	kind byte
	// small: a number written as a plain integer that fits num.
	small bool
	num   int64
	// raw is the value as written.
	raw []byte
	// text is a string's content without escapes. Other kinds do not set it.
	text []byte
}

// Reasons why a text is not JSON, as negative offsets.
const (
	badEnd = -1 - iota
	badControl
	badEscape
	badSurrogate
	badUTF8
	badNumber
	badLiteral
	badName
	badColon
	badValue
	badComma
	badDepth
	badMember
	badTail
	badWrapper
)

var badTexts = [...]string{
	"unexpected end", "control character in a string", "unknown escape", "lone surrogate", "invalid UTF-8",
	"malformed number", "unknown literal", "member name expected", "colon expected", "value expected",
	"comma or end of container expected", "nested too deep", "duplicate member", "more text after the value", "members beside schema and payload",
}

// scanner reads one JSON text in a single pass (RFC 8259, with three tighter
// rules: UTF-8 must be valid, surrogates must come in pairs, at most maxDepth
// containers deep). What it skips it validates like what it reads. It never
// changes the text and allocates only to grow buf.
type scanner struct {
	b     []byte
	p     int
	depth int // containers around p
	bad   int // first error, 0 as long as all is well
	badAt int
	buf   []byte // content of the last string that had escapes
}

func (s *scanner) reset(b []byte) {
	s.b, s.p, s.depth, s.bad, s.badAt = b, 0, 0, 0, 0
}

// fail keeps the first error and returns false.
func (s *scanner) fail(at, code int) bool {
	if s.bad == 0 {
		s.bad, s.badAt = code, at
	}
	return false
}

// space returns the offset of the first byte from p on that is not white space.
func space(b []byte, p int) int {
	for p < len(b) && b[p] <= ' ' && (b[p] == ' ' || b[p] == '\n' || b[p] == '\t' || b[p] == '\r') {
		p++
	}
	return p
}

// peek skips white space and returns the next byte without consuming it, 0 at the end.
func (s *scanner) peek() byte {
	s.p = space(s.b, s.p)
	if s.p < len(s.b) {
		return s.b[s.p]
	}
	return 0
}

// done checks that only white space is left.
func (s *scanner) done() bool {
	s.p = space(s.b, s.p)
	if s.p < len(s.b) {
		return s.fail(s.p, badTail)
	}
	return s.bad == 0
}

// begin consumes the opening brace of an object.
func (s *scanner) begin() bool {
	if s.peek() != '{' {
		return s.fail(s.p, badValue)
	}
	if s.depth >= maxDepth {
		return s.fail(s.p, badDepth)
	}
	s.p++
	s.depth++
	return true
}

// more moves to the next member's name. It returns false at the object's end,
// which it consumes, and after an error.
func (s *scanner) more(first bool) bool {
	switch c := s.peek(); {
	case c == '}':
		s.p++
		s.depth--
		return false
	case c == ',' && !first:
		s.p++
		s.p = space(s.b, s.p)
		return s.bad == 0
	case c == 0 && s.p >= len(s.b):
		return s.fail(s.p, badEnd)
	case first:
		return s.bad == 0
	}
	return s.fail(s.p, badComma)
}

// name reads a member's name and colon. The result aliases the record or buf.
func (s *scanner) name() (name []byte, escaped, ok bool) {
	b, p := s.b, s.p
	if p >= len(b) || b[p] != '"' {
		return nil, false, s.fail(p, badName)
	}
	end, escaped := stringEnd(b, p+1)
	if end < 0 {
		return nil, false, s.fail(p, end)
	}
	name = b[p+1 : end-1]
	if escaped {
		s.buf = appendUnescaped(s.buf[:0], name)
		name = s.buf
	}
	p = space(b, end)
	if p >= len(b) || b[p] != ':' {
		return nil, false, s.fail(p, badColon)
	}
	s.p = p + 1
	return name, escaped, true
}

// token reads the next value. Containers are validated and left in raw.
func (s *scanner) token(t *token) bool {
	c := s.peek()
	p := s.p
	switch {
	case c == '"':
		end, escaped := stringEnd(s.b, p+1)
		if end < 0 {
			return s.fail(p, end)
		}
		t.kind, t.raw, t.text = kindString, s.b[p:end], s.b[p+1:end-1]
		if escaped {
			s.buf = appendUnescaped(s.buf[:0], t.text)
			t.text = s.buf
		}
		s.p = end
		return true
	case c == '-' || c >= '0' && c <= '9':
		return s.number(t)
	}
	t.kind = c
	if !s.skip() {
		return false
	}
	t.raw = s.b[p:s.p]
	return true
}

// number reads a number and, if it is a plain integer, its value.
func (s *scanner) number(t *token) bool {
	b, start := s.b, s.p
	p := start
	neg := b[p] == '-'
	if neg {
		p++
	}
	first := p
	v, p := digits(b, p)
	count := p - first
	if count == 0 || count > 1 && b[first] == '0' {
		return s.fail(start, badNumber)
	}
	t.small = count <= 19 && (v < 1<<63 || neg && v == 1<<63)
	if p < len(b) && (b[p] == '.' || b[p]|0x20 == 'e') {
		if p = fractionEnd(b, p); p < 0 {
			return s.fail(start, p)
		}
		t.small = false
	}
	t.num = int64(v)
	if neg {
		t.num = -t.num
	}
	t.kind, t.raw = kindNumber, b[start:p]
	s.p = p
	return true
}

// numberEnd returns the offset after the number at p.
func numberEnd(b []byte, p int) int {
	if p < len(b) && b[p] == '-' {
		p++
	}
	if p < len(b) && b[p] == '0' {
		p++
	} else if p = digitsEnd(b, p); p < 0 {
		return p
	}
	return fractionEnd(b, p)
}

// fractionEnd returns the offset after the fraction and exponent at p, if any.
func fractionEnd(b []byte, p int) int {
	if p < len(b) && b[p] == '.' {
		if p = digitsEnd(b, p+1); p < 0 {
			return p
		}
	}
	if p < len(b) && b[p]|0x20 == 'e' {
		p++
		if p < len(b) && (b[p] == '+' || b[p] == '-') {
			p++
		}
		p = digitsEnd(b, p)
	}
	return p
}

// digitsEnd returns the offset after one or more digits.
func digitsEnd(b []byte, p int) int {
	if _, end := digits(b, p); end > p {
		return end
	}
	return badNumber
}

// digits reads the digits at p. Beyond 19 of them the value is meaningless.
func digits(b []byte, p int) (value uint64, end int) {
	for p+8 <= len(b) {
		d := binary.LittleEndian.Uint64(b[p:]) ^ eachByte*'0' // a digit is 0 to 9 now
		n := digitCount(d)
		value = value*smallPowers[n] + eightDigits(d<<(64-8*uint(n)))
		if p += n; n < 8 {
			return value, p
		}
	}
	for p < len(b) && b[p]-'0' <= 9 {
		value = value*10 + uint64(b[p]-'0')
		p++
	}
	return value, p
}

var smallPowers = [9]uint64{1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000}

// digitCount counts the bytes from the lowest up that are at most 9. In others
// the upper half is not zero, or is not once 6 is added; a carry can only spoil
// bytes behind the first of them.
func digitCount(d uint64) int {
	return bits.TrailingZeros64((d|(d+eachByte*6))&(eachByte*0xf0)) >> 3
}

// eightDigits returns the number that eight digits of 0 to 9 make, the lowest
// byte the first. Neighbours are joined to pairs, pairs to fours, fours to eight.
func eightDigits(d uint64) uint64 {
	d = (d & (eachByte * 0x0f)) * (10<<8 + 1) >> 8
	d = (d & 0x00ff00ff00ff00ff) * (100<<16 + 1) >> 16
	return (d & 0x0000ffff0000ffff) * (10_000<<32 + 1) >> 32
}

var (
	literalTrue  = []byte("true")
	literalFalse = []byte("false")
	literalNull  = []byte("null")
)

// scalarEnd returns the offset after the string, number or literal at p.
func scalarEnd(b []byte, p int) int {
	rest := b[p:]
	switch c := b[p]; {
	case c == '"':
		end, _ := stringEnd(b, p+1)
		return end
	case c == '-' || c-'0' <= 9:
		return numberEnd(b, p)
	case bytes.HasPrefix(rest, literalNull), bytes.HasPrefix(rest, literalTrue):
		return p + 4
	case bytes.HasPrefix(rest, literalFalse):
		return p + 5
	case c == 'n' || c == 't' || c == 'f':
		return badLiteral
	}
	return badValue
}

// nameEnd returns the offset after the member name at p and its colon.
func nameEnd(b []byte, p int) int {
	p = space(b, p)
	if p >= len(b) {
		return badEnd
	}
	if b[p] != '"' {
		return badName
	}
	p, _ = stringEnd(b, p+1)
	if p < 0 {
		return p
	}
	p = space(b, p)
	if p >= len(b) || b[p] != ':' {
		return badColon
	}
	return p + 1
}

// skip moves past the next value and validates it.
func (s *scanner) skip() bool {
	if c := s.peek(); c != '{' && c != '[' {
		return s.skipScalar(c)
	}
	b, p, start := s.b, s.p, s.p
	var objects uint64 // one bit an open container, the innermost lowest: is it an object?
	for depth := s.depth; ; {
		if p = space(b, p); p >= len(b) {
			return s.fail(p, badEnd)
		}
		empty := false
		if c := b[p]; c == '{' || c == '[' {
			if depth >= maxDepth {
				return s.fail(p, badDepth)
			}
			depth++
			objects <<= 1
			if c == '{' {
				objects |= 1
			}
			p = space(b, p+1)
			if empty = p < len(b) && b[p] == c+2; !empty {
				if c == '{' {
					p = nameEnd(b, p)
				}
				if p < 0 {
					return s.fail(start, p)
				}
				continue
			}
		} else if p = scalarEnd(b, p); p < 0 {
			return s.fail(start, p)
		}
		if p, objects, depth = leave(b, p, objects, depth, s.depth, empty); p < 0 {
			return s.fail(start, p)
		}
		if depth == s.depth {
			s.p = p
			return true
		}
	}
}

// skipScalar moves past the value that starts with c at p.
func (s *scanner) skipScalar(c byte) bool {
	b, p := s.b, s.p
	switch {
	case p >= len(b):
		p = badEnd
	case c == '"':
		p, _ = stringEnd(b, p+1)
	default:
		p = scalarEnd(b, p)
	}
	if p < 0 {
		return s.fail(s.p, p)
	}
	s.p = p
	return true
}

// leave goes from the end of a value to the start of the next one: it closes
// the containers that end here and stops behind a comma (and the next member's
// name) or when depth is back at floor.
func leave(b []byte, p int, objects uint64, depth, floor int, closing bool) (int, uint64, int) {
	for depth > floor {
		if p = space(b, p); p >= len(b) {
			return badEnd, objects, depth
		}
		switch c := b[p]; {
		case c == ',' && !closing:
			p++
			if objects&1 != 0 {
				p = nameEnd(b, p)
			}
			return p, objects, depth
		case c == '}' && objects&1 != 0, c == ']' && objects&1 == 0:
			p++
			objects >>= 1
			depth--
			closing = false
		default:
			return badComma, objects, depth
		}
	}
	return p, objects, depth
}
