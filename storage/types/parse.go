package types

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseDatum reads a value of a scalar type from its plain text, the form that
// AppendText writes: the way values come in on command lines. There is no text
// for NULL.
func ParseDatum(t Type, text string) (Datum, error) {
	d, err := parseDatum(t, text)
	if err != nil {
		return Datum{}, fmt.Errorf("%q is no %s: %w", text, t.Nullable(), err)
	}
	return d, nil
}

func parseDatum(t Type, text string) (Datum, error) {
	switch t.Kind {
	case Boolean:
		b, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil {
			return Datum{}, ErrSyntax
		}
		return BoolDatum(b), nil
	case TinyInt, SmallInt, Int, BigInt:
		bits := map[Kind]int{TinyInt: 8, SmallInt: 16, Int: 32, BigInt: 64}[t.Kind]
		v, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return Datum{}, ErrSyntax
		}
		return Datum{I: v}, nil
	case Float, Double:
		return parseFloatDatum(t, text)
	case Decimal:
		v, err := ParseDecimal([]byte(text), t.Precision, t.Scale)
		if t.Precision <= 18 {
			return Datum{I: int64(v.Lo)}, err
		}
		return Datum{D: v}, err
	case Char, VarChar:
		if utf8.RuneCountInString(text) > t.Length {
			return Datum{}, ErrOverflow
		}
		return StringDatum(text), nil
	case Binary, VarBinary:
		b, err := hex.DecodeString(text)
		if err != nil {
			return Datum{}, ErrSyntax
		}
		return BytesDatum(b), nil
	case Date:
		v, err := ParseDate([]byte(text))
		if err == nil && (v > math.MaxInt32 || v < math.MinInt32) {
			err = ErrOverflow
		}
		return Datum{I: v}, err
	case Time:
		v, err := ParseTime([]byte(text))
		return Datum{I: v / 1_000_000}, err
	case Timestamp, TimestampLTZ:
		return parseTimestampDatum(t, text)
	}
	return Datum{}, fmt.Errorf("values of this type cannot be written here")
}

func parseFloatDatum(t Type, text string) (Datum, error) {
	size := 64
	if t.Kind == Float {
		size = 32
	}
	v, err := strconv.ParseFloat(text, size)
	if err != nil {
		return Datum{}, ErrSyntax
	}
	return Datum{F: v}, nil
}

func parseTimestampDatum(t Type, text string) (Datum, error) {
	rule := ZoneNone
	if t.Kind == TimestampLTZ {
		rule = ZoneOptional
	}
	micros, nanos, err := ParseTimestamp([]byte(text), rule)
	if err != nil {
		return Datum{}, err
	}
	if t.Precision <= 6 {
		return Datum{I: TruncateMicros(micros, t.Precision)}, nil
	}
	return Datum{I: micros, N: TruncateNanos(nanos, t.Precision)}, nil
}
