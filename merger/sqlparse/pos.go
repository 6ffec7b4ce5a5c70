package sqlparse

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Pos is a place in a text.
type Pos struct {
	// Offset counts bytes from 0.
	Offset int
	// Line counts from 1.
	Line int
	// Col counts characters (code points) of the line from 1.
	Col int
}

// Position returns p: embedding a Pos makes a [Node].
func (p Pos) Position() Pos { return p }

// String returns "line 2, column 7".
func (p Pos) String() string {
	return "line " + strconv.Itoa(p.Line) + ", column " + strconv.Itoa(p.Col)
}

// Node is any part of a syntax tree.
type Node interface {
	// Position returns where the node's text begins.
	Position() Pos
}

// advance moves p over text.
func (p Pos) advance(text string) Pos {
	p.Offset += len(text)
	if n := strings.Count(text, "\n"); n > 0 {
		p.Line += n
		text = text[strings.LastIndexByte(text, '\n')+1:]
		p.Col = 1
	}
	p.Col += utf8.RuneCountInString(text)
	return p
}

// snippetWidth bounds the characters of a line that [Caret] shows.
const snippetWidth = 120

// Caret renders the line of src that holds pos with a caret under the place,
// two lines without a final newline. Long lines are cut around the place. It
// returns "" if pos lies outside src.
func Caret(src string, pos Pos) string {
	if pos.Line < 1 || pos.Offset < 0 || pos.Offset > len(src) {
		return ""
	}
	start := strings.LastIndexByte(src[:pos.Offset], '\n') + 1
	end := len(src)
	if i := strings.IndexByte(src[pos.Offset:], '\n'); i >= 0 {
		end = pos.Offset + i
	}
	before, after := clean(src[start:pos.Offset]), clean(src[pos.Offset:end])
	if n := len(before); n > snippetWidth*2/3 {
		before = append([]rune("…"), before[n-snippetWidth*2/3:]...)
	}
	if room := snippetWidth - len(before); len(after) > room {
		after = append(after[:room:room], '…')
	}
	return "  " + string(before) + string(after) + "\n  " + strings.Repeat(" ", len(before)) + "^"
}

// clean makes a line printable: control characters, tabs among them, become
// blanks, so that the caret stands where it should.
func clean(s string) []rune {
	r := []rune(strings.ToValidUTF8(s, "\uFFFD"))
	for i, c := range r {
		if c < ' ' || c == 0x7f {
			r[i] = ' '
		}
	}
	return r
}
