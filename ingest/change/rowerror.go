package change

import "fmt"

// Class is the kind of a row error, as in metrics, dead letters and
// `on_error` decisions.
type Class string

// The classes.
const (
	ClassSyntax      Class = "syntax"      // not JSON, bad UTF-8, nested too deep, duplicate members
	ClassEnvelope    Class = "envelope"    // not the shape the format promises, unknown op
	ClassKey         Class = "key"         // the merge key is missing or contradicts the value
	ClassNullKey     Class = "null_key"    // a merge key column is NULL
	ClassType        Class = "type"        // a value of the wrong form for its column
	ClassRange       Class = "range"       // overflow, too many fraction digits, impossible date
	ClassLength      Class = "length"      // longer than CHAR(n), VARCHAR(n), BINARY(n), VARBINARY(n)
	ClassNotNull     Class = "not_null"    // NULL for a NOT NULL column
	ClassUnavailable Class = "unavailable" // a placeholder that nothing can fill
	ClassUnsupported Class = "unsupported" // a column type or feature a decoder does not handle
	ClassLate        Class = "late"        // older by order_by than what was applied of its key
	ClassTie         Class = "tie"         // as new by order_by as what was applied of its key
)

// RowError says why one record cannot be applied. It never holds values.
type RowError struct {
	Class  Class
	Column string // target column, if one is to blame
	Msg    string
}

// Error implements error.
func (e *RowError) Error() string {
	if e.Column != "" {
		return fmt.Sprintf("%s: column %s: %s", e.Class, e.Column, e.Msg)
	}
	return fmt.Sprintf("%s: %s", e.Class, e.Msg)
}
