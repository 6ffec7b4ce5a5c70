package sql

import (
	"context"
	"errors"
	"fmt"

	"applier/merger/assign"
	"applier/merger/expr"
	"applier/merger/publish"
	"applier/merger/sqlparse"
	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
)

// Classes of errors that only statements have.
const (
	ClassNoTable       = "TABLE_OR_VIEW_NOT_FOUND"
	ClassTableExists   = "TABLE_OR_VIEW_ALREADY_EXISTS"
	ClassNoDatabase    = "SCHEMA_NOT_FOUND"
	ClassColumnTwice   = "COLUMN_ALREADY_EXISTS"
	ClassFieldExists   = "FIELD_ALREADY_EXISTS"
	ClassNoColumn      = assign.ClassNoColumn
	ClassArity         = "INSERT_COLUMN_ARITY_MISMATCH"
	ClassNoDefault     = assign.ClassNoDefault
	ClassAmbiguous     = "MERGE_CARDINALITY_VIOLATION"
	ClassAssignedTwice = assign.ClassAssignedTwice
	ClassDefault       = "INVALID_DEFAULT_VALUE"
	ClassSchemaChange  = "NOT_SUPPORTED_CHANGE_COLUMN"
	ClassRefused       = "UNSUPPORTED_TABLE"
	ClassInvalidTable  = "INVALID_TABLE"
	ClassNoVersion     = "VERSION_NOT_FOUND"
	ClassOvertaken     = "CONCURRENT_MODIFICATION"
	ClassUnknown       = "UNKNOWN_COMMIT_OUTCOME"
	ClassCanceled      = "OPERATION_CANCELED"
	ClassStorage       = "STORAGE_ERROR"
)

// fail returns an error about a place in the statement.
func fail(pos sqlparse.Pos, class, format string, args ...any) error {
	return &expr.Error{Pos: pos, Class: class, Message: fmt.Sprintf(format, args...), Analysis: true}
}

// Problem is a failed statement, for programs and people.
type Problem struct {
	Class, Message string
	// Pos is the place in the text; Line is 0 if there is none.
	Pos sqlparse.Pos
}

// Describe says what class an error of Execute or of parsing is of.
func Describe(err error) Problem {
	var e *expr.Error
	var p *sqlparse.Error
	switch {
	case errors.As(err, &e):
		return Problem{e.Class, e.Message, e.Pos}
	case errors.As(err, &p):
		message := p.Message
		if p.Hint != "" {
			message += ": " + p.Hint
		}
		return Problem{p.Class, message, p.Pos}
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, publish.ErrUnknown) {
		return Problem{Class: ClassCanceled, Message: "the statement was cancelled; nothing has changed"}
	}
	for _, c := range []struct {
		is    error
		class string
	}{
		{context.Canceled, ClassCanceled},
		{publish.ErrUnknown, ClassUnknown},
		{catalog.ErrNoTable, ClassNoTable},
		{catalog.ErrNoDatabase, ClassNoDatabase},
		{catalog.ErrTableExists, ClassTableExists},
		{paimon.ErrRefused, ClassRefused},
		{paimon.ErrInvalidSchema, ClassInvalidTable},
		{paimon.ErrDefault, ClassDefault},
		{paimon.ErrSchemaChange, ClassSchemaChange},
		{paimon.ErrNoVersion, ClassNoVersion},
		{objstore.ErrFull, "NO_SPACE_LEFT"},
	} {
		if errors.Is(err, c.is) {
			return Problem{Class: c.class, Message: err.Error()}
		}
	}
	return Problem{Class: ClassStorage, Message: err.Error()}
}

// Render shows an error to people, with the line of src that it points at.
func Render(src string, err error) string {
	p := Describe(err)
	text := fmt.Sprintf("[%s] %s", p.Class, p.Message)
	if p.Pos.Line == 0 {
		return text
	}
	text += " (" + p.Pos.String() + ")"
	if caret := sqlparse.Caret(src, p.Pos); caret != "" {
		text += "\n" + caret
	}
	return text
}
