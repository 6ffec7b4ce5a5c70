package config

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration. It never holds the
// value of a secret, of a variable or of a referenced file.
type Problem struct {
	// File as it was named to Load.
	File string
	// Line and Column of the key to blame, from 1; 0 if there is none.
	Line, Column int
	// Path of the key, such as pipelines.orders.batch.rows; empty for the file.
	Path string
	// Msg says what is wrong, Hint what to do.
	Msg, Hint string
}

// String returns file:line: path: what is wrong; what to do.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Msg)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return b.String()
}

// Problems is every problem of a configuration, in the order of the file. It is
// the error of Load for a file that could be read but not accepted.
type Problems []Problem

// Error returns one line a problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sort puts problems into the order of the file and drops repetitions, which
// arise when several pipelines inherit the same wrong value.
func (ps Problems) sort() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return slices.CompactFunc(ps, func(a, b Problem) bool { return a == b })
}
