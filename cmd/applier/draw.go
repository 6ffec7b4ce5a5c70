package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxCell is how much of a cell is drawn.
const maxCell = 60

// drawTable draws rows under a head with aligned columns.
func drawTable(w io.Writer, head []string, rows [][]string, right []bool) {
	width := make([]int, len(head))
	for i, h := range head {
		width[i] = utf8.RuneCountInString(h)
	}
	for _, r := range rows {
		for i := range r {
			r[i] = shorten(r[i])
			width[i] = max(width[i], utf8.RuneCountInString(r[i]))
		}
	}
	line := func(cells []string) {
		var b strings.Builder
		for i, c := range cells {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i < len(right) && right[i] {
				b.WriteString(pad + c)
			} else {
				b.WriteString(c + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = strings.Repeat("─", width[i])
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
}

// shorten makes a cell fit one line of a terminal: no control characters, not
// too long.
func shorten(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '�'
		}
		return r
	}, s)
	if utf8.RuneCountInString(s) <= maxCell {
		return s
	}
	return string([]rune(s)[:maxCell-1]) + "…"
}
