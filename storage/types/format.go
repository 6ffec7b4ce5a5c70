package types

import (
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendJSON writes a value as the command-line tools show it in JSON: integers
// as numbers at full precision, DECIMAL as a string with its scale, DATE, TIME
// and TIMESTAMP as ISO strings (TIMESTAMP_LTZ in UTC with a Z), binary as hex,
// NaN and infinities as strings, nested values as arrays and objects (maps with
// text keys as objects, others, and those with a NULL key, as arrays of pairs).
func AppendJSON(dst []byte, t Type, d Datum) []byte {
	if d.Null {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case Boolean, TinyInt, SmallInt, Int, BigInt:
		return AppendText(dst, t, d)
	case Float, Double:
		if math.IsNaN(d.F) || math.IsInf(d.F, 0) {
			return append(AppendText(append(dst, '"'), t, d), '"')
		}
		return AppendText(dst, t, d)
	case Char, VarChar:
		return AppendJSONString(dst, d.B)
	case Array:
		dst = append(dst, '[')
		for i, x := range d.L {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendJSON(dst, *t.Elem, x)
		}
		return append(dst, ']')
	case Map, Multiset:
		return appendJSONMap(dst, t, d)
	case Row, Variant:
		dst = append(dst, '{')
		for i, f := range t.StructFields() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendJSONString(dst, []byte(f.Name))
			dst = append(dst, ':')
			dst = AppendJSON(dst, f.Type, d.L[i])
		}
		return append(dst, '}')
	}
	return append(AppendText(append(dst, '"'), t, d), '"')
}

// appendJSONMap writes an object if all keys are texts, else an array of pairs
// (also for a NULL key, which no object can have).
func appendJSONMap(dst []byte, t Type, d Datum) []byte {
	object := t.childType(0).IsText()
	for i := 0; i < len(d.L); i += 2 {
		object = object && !d.L[i].Null
	}
	if object {
		dst = append(dst, '{')
	} else {
		dst = append(dst, '[')
	}
	for i := 0; i+1 < len(d.L); i += 2 {
		if i > 0 {
			dst = append(dst, ',')
		}
		if !object {
			dst = append(dst, '[')
		}
		dst = AppendJSON(dst, t.childType(0), d.L[i])
		if object {
			dst = append(dst, ':')
		} else {
			dst = append(dst, ',')
		}
		dst = AppendJSON(dst, t.childType(1), d.L[i+1])
		if !object {
			dst = append(dst, ']')
		}
	}
	if object {
		return append(dst, '}')
	}
	return append(dst, ']')
}

const hexDigits = "0123456789abcdef"

// AppendJSONString writes a JSON string; invalid UTF-8 becomes U+FFFD.
func AppendJSONString(dst, s []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRune(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}

// AppendText writes a value as plain text (CSV, tables, partition values of
// SQL): NULL as nothing, nested values as JSON.
func AppendText(dst []byte, t Type, d Datum) []byte {
	if d.Null {
		return dst
	}
	switch t.Kind {
	case Boolean:
		return strconv.AppendBool(dst, d.I != 0)
	case TinyInt, SmallInt, Int, BigInt:
		return strconv.AppendInt(dst, d.I, 10)
	case Float:
		return appendFloat(dst, d.F, 32)
	case Double:
		return appendFloat(dst, d.F, 64)
	case Decimal:
		if t.Precision <= 18 {
			return AppendDecimal(dst, Int128From(d.I), t.Scale)
		}
		return AppendDecimal(dst, d.D, t.Scale)
	case Char, VarChar:
		return append(dst, d.B...)
	case Binary, VarBinary:
		return hex.AppendEncode(dst, d.B)
	case Date:
		return AppendDate(dst, d.I)
	case Time:
		return AppendTime(dst, d.I*1_000_000, t.Precision)
	case Timestamp:
		return AppendTimestamp(dst, d.I, d.N, t.Precision, 'T')
	case TimestampLTZ:
		return append(AppendTimestamp(dst, d.I, d.N, t.Precision, 'T'), 'Z')
	case Array, Map, Multiset, Row, Variant:
		return AppendJSON(dst, t, d)
	}
	return hex.AppendEncode(dst, d.B) // types that are not held in vectors
}

// appendFloat writes the shortest text that reads back the same, with the
// specials as NaN, Infinity, -Infinity.
func appendFloat(dst []byte, f float64, size int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, size)
}
