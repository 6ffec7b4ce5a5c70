package decode

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Patterns for looking at eight bytes at once.
const (
	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
)

// stringEnd returns the offset after the closing quote of the string whose
// content starts at p (or a bad… code) and whether the content has escapes.
func stringEnd(b []byte, p int) (end int, escaped bool) {
	start := p
	var seen uint64 // all content bytes or-ed together: a top bit means non-ASCII
	for {
		for p+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[p:])
			// In stops, a byte has its top bit if it is below 0x20, a quote or a
			// backslash. A borrow can only flag bytes above the first true one.
			quote, back := x^(eachByte*'"'), x^(eachByte*'\\')
			stops := ((x - eachByte*0x20) | (quote - eachByte) | (back - eachByte)) &^ x & topBits
			if stops != 0 {
				n := bits.TrailingZeros64(stops) &^ 7
				seen |= x & (1<<n - 1)
				p += n >> 3
				break
			}
			seen |= x
			p += 8
		}
		for p < len(b) && b[p] >= ' ' && b[p] != '"' && b[p] != '\\' {
			seen |= uint64(b[p])
			p++
		}
		switch {
		case p >= len(b):
			return badEnd, escaped
		case b[p] == '"':
			if seen&topBits != 0 && !utf8.Valid(b[start:p]) {
				return badUTF8, escaped
			}
			return p + 1, escaped
		case b[p] != '\\':
			return badControl, escaped
		}
		escaped = true
		if p = escapeEnd(b, p); p < 0 {
			return p, escaped
		}
	}
}

// escapeEnd returns the offset after the escape at p, both halves of a surrogate pair included.
func escapeEnd(b []byte, p int) int {
	if p+1 >= len(b) {
		return badEnd
	}
	switch b[p+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return p + 2
	case 'u':
	default:
		return badEscape
	}
	r := hex4(b, p+2)
	if r < 0 {
		return badEscape
	}
	if !utf16.IsSurrogate(r) {
		return p + 6
	}
	if r >= 0xdc00 || p+7 >= len(b) || b[p+6] != '\\' || b[p+7] != 'u' {
		return badSurrogate
	}
	if low := hex4(b, p+8); low < 0xdc00 || low > 0xdfff {
		return badSurrogate
	}
	return p + 12
}

// hex4 reads four hexadecimal digits, or returns -1.
func hex4(b []byte, p int) rune {
	if p+4 > len(b) {
		return -1
	}
	var r rune
	for _, c := range b[p : p+4] {
		d := hexDigit(c)
		if d < 0 {
			return -1
		}
		r = r<<4 | d
	}
	return r
}

func hexDigit(c byte) rune {
	switch {
	case c-'0' <= 9:
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

// appendUnescaped appends the content of a string that stringEnd accepted.
func appendUnescaped(dst, content []byte) []byte {
	for p := 0; p < len(content); {
		run := p
		for run < len(content) && content[run] != '\\' {
			run++
		}
		dst = append(dst, content[p:run]...)
		if p = run; p == len(content) {
			break
		}
		c := content[p+1]
		p += 2
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(content, p)
			p += 4
			if utf16.IsSurrogate(r) {
				r = utf16.DecodeRune(r, hex4(content, p+2))
				p += 6
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
	return dst
}
