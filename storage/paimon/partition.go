package paimon

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"applier/storage/types"
)

// ErrPartitionValue: a partition value that cannot name a directory.
var ErrPartitionValue = errors.New("partition value cannot name a directory")

// maxNameBytes is the longest file name that file systems take.
const maxNameBytes = 255

// PartitionPath returns the directory of a partition below the table, "a=1/b=x",
// "" without partition columns. It is nowhere recorded: every reader computes it
// again from the partition's values and the table's options, so it is Java's to
// the last character (sources: InternalRowPartitionComputer, PartitionPathUtils).
// Different partitions may share a directory. legacy is partition.legacy-name.
//
// Refused with ErrPartitionValue: text with NUL or invalid UTF-8, and names of
// more than 255 bytes.
func PartitionPath(fields []types.Field, values []types.Datum, defaultName string, legacy bool) (string, error) {
	if len(fields) != len(values) {
		return "", fmt.Errorf("%w: %d values for %d partition columns", ErrPartitionValue, len(values), len(fields))
	}
	var b []byte
	for i, f := range fields {
		if i > 0 {
			b = append(b, '/')
		}
		at := len(b)
		text, err := partitionText(f.Type, values[i], legacy)
		if err != nil {
			return "", fmt.Errorf("partition column %q: %w", f.Name, err)
		}
		if isBlank(text) {
			text = defaultName
		}
		b = appendEscaped(b, f.Name)
		b = append(b, '=')
		b = appendEscaped(b, text)
		if len(b)-at > maxNameBytes {
			return "", fmt.Errorf("%w: column %q makes a name of %d bytes, at most %d are possible", ErrPartitionValue, f.Name, len(b)-at, maxNameBytes)
		}
	}
	return string(b), nil
}

// PartitionCondition returns what a value of partition column k (of the schema's
// PartitionKeys) must meet to name a folder, nil if all do. A row that does not
// can be refused before it is in a commit. The error is ErrPartitionValue and does
// not contain the value.
func (t *Table) PartitionCondition(k int) func(types.Datum) error {
	f := t.schema.PartitionFields()[k]
	if isFloating(f.Type) {
		return func(v types.Datum) error { return sameFolder(f.Type, v) }
	}
	if !f.Type.IsText() {
		return nil
	}
	fields, value := []types.Field{f}, make([]types.Datum, 1)
	short := maxNameBytes - len(EscapePathName(f.Name)) - 1
	return func(v types.Datum) error {
		if f.Type.Kind == types.Char {
			v.B = padChar(v.B, f.Type.Length)
		}
		if 3*len(v.B) <= short && utf8.Valid(v.B) && bytes.IndexByte(v.B, 0) < 0 {
			return nil // however much of it is escaped
		}
		value[0] = v
		_, err := PartitionPath(fields, value, t.options.PartitionDefaultName, t.options.PartitionLegacyName)
		return err
	}
}

// partitionText returns Java's text of a value, "" for NULL.
func partitionText(t types.Type, d types.Datum, legacy bool) (string, error) {
	if d.Null {
		return "", nil
	}
	switch t.Kind {
	case types.Boolean, types.TinyInt, types.SmallInt, types.Int, types.BigInt, types.Decimal:
		return string(types.AppendText(nil, t, d)), nil
	case types.Char, types.VarChar:
		if !utf8.Valid(d.B) || strings.IndexByte(string(d.B), 0) >= 0 {
			return "", fmt.Errorf("%w: it has NUL or is no UTF-8", ErrPartitionValue)
		}
		return string(d.B), nil
	case types.Float:
		return javaFloat(d.F, 32), nil
	case types.Double:
		return javaFloat(d.F, 64), nil
	case types.Date:
		if legacy {
			return strconv.FormatInt(d.I, 10), nil
		}
		return string(appendSQLDate(nil, d.I)), nil
	case types.Time:
		if legacy {
			return strconv.FormatInt(d.I, 10), nil
		}
		return sqlTime(d.I, t.Precision), nil
	case types.Timestamp, types.TimestampLTZ:
		if legacy {
			return javaLocalDateTime(d.I, d.N), nil
		}
		return sqlTimestamp(d.I, d.N, t.Precision), nil
	}
	return "", fmt.Errorf("%w: type %s", ErrPartitionValue, t)
}

// isBlank is Java's isNullOrWhitespaceOnly: Character.isWhitespace leaves out
// the spaces that do not break.
func isBlank(s string) bool {
	for _, r := range s {
		switch {
		case r >= '\t' && r <= '\r', r >= 0x1c && r <= 0x1f:
		case r == 0xa0, r == 0x2007, r == 0x202f:
			return false
		case unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp):
		default:
			return false
		}
	}
	return true
}

// escaped are the characters that become %XX besides the control characters.
const escaped = "\"#%'*/:=?\\{}[]^\x7f"

// EscapePathName makes a partition column or value fit for a directory name.
func EscapePathName(s string) string { return string(appendEscaped(nil, s)) }

func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		if c := s[i]; c < 0x20 || strings.IndexByte(escaped, c) >= 0 {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

// UnescapePathName reverses EscapePathName; what is no escape stays as it is.
func UnescapePathName(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(v))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// javaLocalDateTime is LocalDateTime.toString: seconds and fraction as needed,
// the fraction in groups of three digits.
func javaLocalDateTime(micros int64, nanos int32) string {
	full := types.AppendTimestamp(nil, micros, nanos, 9, 'T')
	n := len(full)
	for _, cut := range []struct {
		zeros string
		keep  int
	}{{":00.000000000", n - 13}, {".000000000", n - 10}, {"000000", n - 6}, {"000", n - 3}} {
		if strings.HasSuffix(string(full), cut.zeros) {
			return string(full[:cut.keep])
		}
	}
	return string(full)
}

// appendSQLDate is Java's own date text, which has four year digits whatever the
// year: outside of 0 to 9999 they are no year, but they are the directory.
func appendSQLDate(dst []byte, days int64) []byte {
	y, m, d := types.CivilFromDays(days)
	for _, div := range []int64{1000, 100, 10, 1} {
		dst = append(dst, byte('0'+y/div%10))
	}
	return append(dst, '-', byte('0'+m/10), byte('0'+m%10), '-', byte('0'+d/10), byte('0'+d%10))
}

// sqlTime is the text of TIME: up to precision fraction digits, at least one
// unless precision is 0, without trailing zeros.
func sqlTime(millis int64, precision int) string {
	b := types.AppendTime(nil, millis*1_000_000, 0)
	if precision > 0 {
		b = append(b, '.')
	}
	for f := millis % 1000; precision > 0; precision-- {
		b = append(b, byte('0'+f/100))
		if f = f % 100 * 10; f == 0 {
			break
		}
	}
	return string(b)
}

// sqlTimestamp has all digits of the precision, and more where there are any.
func sqlTimestamp(micros int64, nanos int32, precision int) string {
	days := types.FloorDiv(micros, 86_400_000_000)
	clock := (micros-days*86_400_000_000)*1000 + int64(nanos)
	b := append(appendSQLDate(nil, days), ' ')
	b = types.AppendTime(b, clock, 9)
	for n := 9; n > precision && b[len(b)-1] == '0'; n-- {
		b = b[:len(b)-1]
	}
	return strings.TrimSuffix(string(b), ".")
}
