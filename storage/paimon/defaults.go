package paimon

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"applier/storage/types"
)

// ErrDefault: the text of a column default is no value of the column.
var ErrDefault = errors.New("unsupported default value")

// DefaultValue converts a column's default text as Paimon's Java core does
// (paimon-format.md §3.2: one pair of single quotes is dropped, then the text is
// cast to the column's type; DefaultValueUtils and the casting rules). nil is no
// default: absent, or a DECIMAL too large for its column, which Java turns into
// NULL. The text of a TIMESTAMP_LTZ is in the zone of each writer; ours is UTC.
//
// Everything else is ErrDefault. That is what Java refuses, and a little more:
// times of day outside of the day, timestamps that microseconds cannot hold, and
// NULL as a map key or for a NOT NULL part of a nested value.
func DefaultValue(f types.Field) (*types.Datum, error) {
	if f.Default == nil {
		return nil, nil
	}
	d, err := castDefault(f.Type, *f.Default)
	if err != nil {
		return nil, fmt.Errorf("%w: column %s of type %s has the default %s: %w", ErrDefault, f.Name, f.Type, *f.Default, err)
	}
	return d, nil
}

func castDefault(t types.Type, s string) (*types.Datum, error) {
	if strings.HasPrefix(s, "'") && strings.HasSuffix(s, "'") {
		if len(s) < 2 {
			return nil, types.ErrSyntax // Java trips over it, too
		}
		s = s[1 : len(s)-1]
	}
	return castDefaultText(t, s)
}

// castDefaultText casts a text, or a part of a nested one; nil is NULL.
func castDefaultText(t types.Type, s string) (*types.Datum, error) {
	switch t.Kind {
	case types.Char, types.VarChar, types.Binary, types.VarBinary:
		return defaultBytes(t, s)
	case types.Boolean:
		return defaultBoolean(s)
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return defaultInteger(t.Kind, s)
	case types.Float, types.Double:
		return defaultFloat(t, s)
	case types.Decimal:
		return defaultDecimal(t, s)
	case types.Date:
		return defaultDate(s)
	case types.Time:
		return defaultTime(s)
	case types.Timestamp, types.TimestampLTZ:
		return defaultTimestamp(t, s)
	}
	return defaultNested(t, s)
}

// maxFilledDefault bounds CHAR(n) and BINARY(n) whose default is filled up.
const maxFilledDefault = 1 << 20

// defaultBytes cuts what is too long, and fills CHAR and BINARY up.
func defaultBytes(t types.Type, s string) (*types.Datum, error) {
	n, fill := 0, " "
	if t.IsText() {
		s = cutRunes(s, t.Length)
		n = utf8.RuneCountInString(s)
	} else {
		s = s[:min(len(s), t.Length)]
		n, fill = len(s), "\x00"
	}
	if t.Kind == types.Char || t.Kind == types.Binary {
		if t.Length > maxFilledDefault {
			return nil, types.ErrOverflow
		}
		s += strings.Repeat(fill, t.Length-n)
	}
	return &types.Datum{B: []byte(s)}, nil
}

func cutRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

func defaultBoolean(s string) (*types.Datum, error) {
	switch strings.ToLower(s) {
	case "t", "true", "y", "yes", "1":
		return &types.Datum{I: 1}, nil
	case "f", "false", "n", "no", "0":
		return &types.Datum{}, nil
	}
	return nil, types.ErrSyntax
}
