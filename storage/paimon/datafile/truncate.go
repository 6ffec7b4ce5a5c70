package datafile

import (
	"unicode/utf8"

	"applier/storage/types"
)

// Truncate cuts the bounds of a column of type t for manifest statistics of the
// mode truncate(n): text to n code points, binary to n bytes, other types not at
// all. A cut minimum is a prefix; in a cut maximum the last code point (byte)
// that has a successor is replaced by it and what follows is dropped. If none
// has one, there are no bounds at all and ok is false.
// Source: paimon-format.md §5.5, TruncateSimpleColStatsCollector.java.
func Truncate(t types.Type, min, max types.Datum, n int) (lo, hi types.Datum, ok bool) {
	cut, next := cutBytes, nextBytes
	switch {
	case t.IsText():
		cut, next = cutText, nextText
	case !t.IsBinary():
		return min, max, true
	}
	if min.Null || max.Null {
		return types.Null, types.Null, false
	}
	lo, hi = types.BytesDatum(cut(min.B, n)), max
	if head := cut(max.B, n); len(head) < len(max.B) {
		b, ok := next(head)
		if !ok {
			return types.Null, types.Null, false
		}
		hi = types.BytesDatum(b)
	}
	return lo, hi, true
}

func cutBytes(b []byte, n int) []byte { return b[:min(n, len(b))] }

// cutText returns the first n code points; a byte that is not UTF-8 counts as one.
func cutText(b []byte, n int) []byte {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		_, k := utf8.DecodeRune(b[i:])
		i += k
	}
	return b[:i]
}

// nextBytes returns the smallest byte string above everything that starts with b.
func nextBytes(b []byte) ([]byte, bool) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			return append(append([]byte{}, b[:i]...), b[i]+1), true
		}
	}
	return nil, false
}

// nextText is nextBytes for code points. The surrogates in between are no
// characters, so U+D7FF is followed by U+E000 (Java writes '?' there, which
// would not be a bound).
func nextText(b []byte) ([]byte, bool) {
	for len(b) > 0 {
		r, k := utf8.DecodeLastRune(b)
		b = b[:len(b)-k]
		switch {
		case r == utf8.RuneError && k == 1, r == utf8.MaxRune:
			continue
		case r == 0xd7ff:
			r = 0xe000
		default:
			r++
		}
		return utf8.AppendRune(append([]byte{}, b...), r), true
	}
	return nil, false
}
