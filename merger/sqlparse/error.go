package sqlparse

import (
	"fmt"
	"slices"
	"strings"
)

// The classes of [Error], named as Spark names them where it has the case.
const (
	// ClassSyntax is a text that the grammar does not have.
	ClassSyntax = "PARSE_SYNTAX_ERROR"
	// ClassUnsupported is SQL that Spark has and this dialect has not.
	ClassUnsupported = "UNSUPPORTED_FEATURE"
	// ClassTooComplex is a text nested or chained beyond the limits.
	ClassTooComplex = "STATEMENT_TOO_COMPLEX"
	// ClassUnclosedComment is a block comment without end.
	ClassUnclosedComment = "UNCLOSED_BRACKETED_COMMENT"
	// ClassEmptyIdentifier is an empty pair of backticks.
	ClassEmptyIdentifier = "INVALID_IDENTIFIER"
	// ClassMergeWithoutWhen is a MERGE without clauses.
	ClassMergeWithoutWhen = "MERGE_WITHOUT_WHEN"
	// ClassLastMatched is a MATCHED clause without condition that is not the last.
	ClassLastMatched = "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION"
	// ClassLastNotMatched is the same for NOT MATCHED.
	ClassLastNotMatched = "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION"
	// ClassLastBySource is the same for NOT MATCHED BY SOURCE.
	ClassLastBySource = "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION"
	// ClassInsertArity is an INSERT clause with more or fewer values than columns.
	ClassInsertArity = "MERGE_INSERT_VALUE_COUNT_MISMATCH"
	// ClassColumnAliases is a column list behind the alias of a row-level statement.
	ClassColumnAliases = "COLUMN_ALIASES_NOT_ALLOWED"
	// ClassInlineTable is a VALUES list whose rows differ in width.
	ClassInlineTable = "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH"
	// ClassDuplicateKey is a property given twice.
	ClassDuplicateKey = "DUPLICATE_KEY"
	// ClassDuplicateClause is a clause given twice.
	ClassDuplicateClause = "DUPLICATE_CLAUSES"
	// ClassDatatype is a type name that does not exist.
	ClassDatatype = "UNSUPPORTED_DATATYPE"
	// ClassTypedLiteral is a literal of a type that has none, or that does not
	// read as its type.
	ClassTypedLiteral = "UNSUPPORTED_TYPED_LITERAL"
	// ClassSet is a SET or RESET with something that is no key.
	ClassSet = "INVALID_SET_SYNTAX"
	// ClassHexLiteral is a binary literal with characters that are no hex digits.
	ClassHexLiteral = "INVALID_TYPED_LITERAL"
)

// Error is a text that could not be parsed: what was found, what was expected,
// and where.
type Error struct {
	// Pos is where the offending text begins.
	Pos Pos
	// Class names the kind of failure, for programs.
	Class string
	// Message says what is wrong, without place.
	Message string
	// Found is the offending text as written; "" at the end of the text.
	Found string
	// Expected lists what could stand there, in the grammar's words.
	Expected []string
	// Hint says what to do; may be empty.
	Hint string
	// Incomplete reports that the text ended too early: more text may repair it.
	Incomplete bool
}

// Error returns message, hint and place in one line.
func (e *Error) Error() string {
	s := e.Pos.String() + ": " + e.Message
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Detail returns the error with the line of src it points at and a caret.
func (e *Error) Detail(src string) string {
	if c := Caret(src, e.Pos); c != "" {
		return e.Error() + "\n" + c
	}
	return e.Error()
}

// maxExpected bounds the alternatives that a message names.
const maxExpected = 6

// syntaxMessage says what was found and what was expected.
func syntaxMessage(found string, end bool, expected []string) string {
	what := "syntax error at " + quoteFound(found)
	if end {
		what = "the statement ends too early"
	}
	switch list := slices.Compact(slices.Clone(expected)); {
	case len(list) == 0:
		return what
	case len(list) == 1:
		return what + ", expected " + list[0]
	case len(list) > maxExpected:
		return what + ", expected one of " + strings.Join(list[:maxExpected], ", ") + ", …"
	default:
		return what + ", expected one of " + strings.Join(list, ", ")
	}
}

// quoteFound quotes a token for a message and cuts it if it is long.
func quoteFound(s string) string {
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// Nearest returns the candidate closest to word, without regard to case, if it
// is close enough to be a likely slip: at most one edit for three letters. Of
// equally close ones the first wins. It returns "" if none is close.
func Nearest(word string, candidates []string) string {
	word = strings.ToLower(word)
	if len(word) > 64 {
		return ""
	}
	best, limit := "", max(1, (len(word)+1)/3)
	for _, c := range candidates {
		if d := editDistance(word, strings.ToLower(c), limit); d <= limit && d < len(c) {
			best, limit = c, d-1
		}
		if limit < 0 {
			break
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours that turn a into b; beyond limit it returns limit+1.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	prev2, prev, cur := rows[0], rows[1], rows[2]
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
			best = min(best, cur[j])
		}
		if best > limit {
			return limit + 1
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
