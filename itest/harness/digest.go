package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Digest stands for a set of rows regardless of their order: their number and
// the sum modulo 2^64 of the XXH64 (seed 0) of each row's text, the JSON object
// that `applier cat --format jsonl` prints, without the line's end. Every judge
// computes the same. Equal rows do not cancel each other out.
type Digest struct {
	Rows int64
	Hash string // 16 hex digits
}

func (d Digest) String() string { return fmt.Sprintf("%d rows %s", d.Rows, d.Hash) }

// Summer computes a Digest row by row. The zero value is ready.
type Summer struct {
	rows int64
	sum  uint64
}

// Add counts one row's text.
func (s *Summer) Add(row []byte) {
	s.rows++
	s.sum += xxhash.Sum64(row)
}

// Remove takes back one row's text: a model can follow a table's changes.
func (s *Summer) Remove(row []byte) {
	s.rows--
	s.sum -= xxhash.Sum64(row)
}

// Digest returns the digest of the rows so far.
func (s *Summer) Digest() Digest { return Digest{Rows: s.rows, Hash: fmt.Sprintf("%016x", s.sum)} }

// DigestOf returns the digest of row texts.
func DigestOf(rows []string) Digest {
	var s Summer
	for _, r := range rows {
		s.Add([]byte(r))
	}
	return s.Digest()
}

// maxShownRows bounds a difference in a test's message.
const maxShownRows = 10

// DiffRows describes the difference of two multisets of row texts; empty: none.
func DiffRows(nameA string, a []string, nameB string, b []string) string {
	count := map[string]int{}
	for _, r := range a {
		count[r]++
	}
	for _, r := range b {
		count[r]--
	}
	var onlyA, onlyB []string
	for r, n := range count {
		for ; n > 0; n-- {
			onlyA = append(onlyA, r)
		}
		for ; n < 0; n++ {
			onlyB = append(onlyB, r)
		}
	}
	if len(onlyA)+len(onlyB) == 0 {
		return ""
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "%s has %d rows, %s has %d", nameA, len(a), nameB, len(b))
	show := func(name string, rows []string) {
		slices.Sort(rows)
		fmt.Fprintf(&sb, "\nonly in %s: %d", name, len(rows))
		for _, r := range rows[:min(len(rows), maxShownRows)] {
			sb.WriteString("\n  " + r)
		}
	}
	show(nameA, onlyA)
	show(nameB, onlyB)
	return sb.String()
}
