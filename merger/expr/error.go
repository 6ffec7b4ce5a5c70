package expr

import (
	"fmt"

	"applier/merger/sqlparse"
)

// Error is an expression that cannot be compiled or a value that cannot be
// computed.
type Error struct {
	// Pos is where the expression at fault begins.
	Pos sqlparse.Pos
	// Class is Spark's error class (DIVIDE_BY_ZERO, CAST_INVALID_INPUT, …).
	Class string
	// Message says what is wrong and, where there is something, what to do.
	Message string
	// Analysis tells that compiling failed, not evaluating.
	Analysis bool
}

// Error returns class, message and place in one line.
func (e *Error) Error() string { return fmt.Sprintf("%s: [%s] %s", e.Pos, e.Class, e.Message) }

// Detail returns the error with the line of src it points at and a caret.
func (e *Error) Detail(src string) string {
	if c := sqlparse.Caret(src, e.Pos); c != "" {
		return e.Error() + "\n" + c
	}
	return e.Error()
}

// The classes that more than one place raises.
const (
	classOverflow      = "ARITHMETIC_OVERFLOW"
	classSmallOverflow = "BINARY_ARITHMETIC_OVERFLOW"
	classDivZero       = "DIVIDE_BY_ZERO"
	classRemZero       = "REMAINDER_BY_ZERO"
	classCastInput     = "CAST_INVALID_INPUT"
	classCastOverflow  = "CAST_OVERFLOW"
	classNumericRange  = "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION"
	classDateRange     = "DATETIME_FIELD_OUT_OF_BOUNDS.WITH_SUGGESTION"
	classUnexpected    = "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"
	classDiffTypes     = "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES"
	classWrongType     = "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE"
	classDataDiff      = "DATATYPE_MISMATCH.DATA_DIFF_TYPES"
	classOrdering      = "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE"
	classArrayDiff     = "DATATYPE_MISMATCH.ARRAY_FUNCTION_DIFF_TYPES"
	classNullType      = "DATATYPE_MISMATCH.NULL_TYPE"
	classNonFoldable   = "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT"
	classArgs          = "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"
	classRoutine       = "UNRESOLVED_ROUTINE"
	classJavaMath      = "ArithmeticException" // Spark gives it no condition
	classParseTime     = "CANNOT_PARSE_TIMESTAMP"
	classTooLarge      = "COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION"
)

// runError is an error without a place: the node that calls adds it.
type runError struct {
	class, message string
}

func (e *runError) Error() string { return "[" + e.class + "] " + e.message }

// fault returns an error of evaluation that has no place yet.
func fault(class, format string, args ...any) error {
	return &runError{class, fmt.Sprintf(format, args...)}
}

// at gives an error of evaluation its place.
func at(pos sqlparse.Pos, err error) error {
	if r, ok := err.(*runError); ok {
		return &Error{Pos: pos, Class: r.class, Message: r.message}
	}
	return err
}
