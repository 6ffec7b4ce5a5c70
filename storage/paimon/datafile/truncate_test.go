package datafile

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/types"
)

func TestTruncate(t *testing.T) {
	for _, tc := range []struct {
		name     string
		t        types.Type
		min, max string
		n        int
		lo, hi   string
		ok       bool
	}{
		{"short values stay whole", types.StringType(), "a", "b", 16, "a", "b", true},
		{"exactly n code points", types.StringType(), "abcd", "abcd", 4, "abcd", "abcd", true},
		{"default partition", types.StringType(), "__DEFAULT_PARTITION__", "__DEFAULT_PARTITION__", 16, "__DEFAULT_PARTIT", "__DEFAULT_PARTIU", true},
		{"z is followed by {", types.StringType(), "zzzzz", "zzzzz", 4, "zzzz", "zzz{", true},
		{"code points, not bytes", types.StringType(), "😀😀😀", "😀😀😀", 2, "😀😀", "😀😁", true},
		{"the last code point cannot grow", types.StringType(), "ab\U0010FFFF\U0010FFFFc", "ab\U0010FFFF\U0010FFFFc", 4, "ab\U0010FFFF\U0010FFFF", "ac", true},
		{"nothing can grow", types.StringType(), "a", "\U0010FFFF\U0010FFFFx", 2, "", "", false},
		{"surrogates are no characters", types.StringType(), "a", "\uD7FFx", 1, "a", "\uE000", true},
		{"char", types.CharType(5), "abcde", "abcde", 3, "abc", "abd", true},
		{"empty", types.StringType(), "", "", 16, "", "", true},
		{"bytes", types.BytesType(), "\x01\x02\x03", "\x01\x02\x03", 2, "\x01\x02", "\x01\x03", true},
		{"bytes of FF are skipped", types.BytesType(), "a", "\x01\xff\xff", 2, "a", "\x02", true},
		{"only FF", types.BytesType(), "a", "\xff\xff\xff", 2, "", "", false},
		{"FF, but short", types.BytesType(), "a", "\xff\xff", 2, "a", "\xff\xff", true},
		{"not UTF-8", types.StringType(), "\xff\xfe\xfd", "a\xff\xfex", 3, "\xff\xfe\xfd", "b", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lo, hi, ok := Truncate(tc.t, types.StringDatum(tc.min), types.StringDatum(tc.max), tc.n)
			require.Equal(t, tc.ok, ok)
			if ok {
				require.Equal(t, tc.lo, string(lo.B))
				require.Equal(t, tc.hi, string(hi.B))
			}
		})
	}
}

func TestTruncate_LeavesOtherTypesAlone(t *testing.T) {
	for _, e := range scalarEdges() {
		if e.t.IsText() || e.t.IsBinary() {
			continue
		}
		lo, hi, ok := Truncate(e.t, e.values[0], e.values[1], 1)
		require.True(t, ok)
		require.True(t, sameDatum(e.values[0], lo) && sameDatum(e.values[1], hi))
	}
}

func TestTruncate_DoesNotWriteIntoItsInput(t *testing.T) {
	in := []byte("abcdef")
	_, _, ok := Truncate(types.StringType(), types.BytesDatum(in), types.BytesDatum(in), 3)
	require.True(t, ok)
	_, _, ok = Truncate(types.BytesType(), types.BytesDatum(in), types.BytesDatum(in), 3)
	require.True(t, ok)
	require.Equal(t, "abcdef", string(in))
}

// TestTruncate_BoundsEverythingBetween: a truncated pair still is a lower and an
// upper bound in byte order, and no longer than asked for.
func TestTruncate_BoundsEverythingBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]types.Type{types.StringType(), types.BytesType()}).Draw(t, "type")
		var a, b []byte
		if typ.IsText() {
			a, b = []byte(rapid.String().Draw(t, "a")), []byte(rapid.String().Draw(t, "b"))
		} else {
			a, b = rapid.SliceOf(rapid.Byte()).Draw(t, "a"), rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		}
		if bytes.Compare(a, b) > 0 {
			a, b = b, a
		}
		n := rapid.IntRange(1, 8).Draw(t, "n")
		lo, hi, ok := Truncate(typ, types.BytesDatum(a), types.BytesDatum(b), n)
		if !ok {
			return
		}
		require.LessOrEqual(t, bytes.Compare(lo.B, a), 0)
		require.GreaterOrEqual(t, bytes.Compare(hi.B, b), 0)
		if typ.IsText() {
			require.True(t, utf8.Valid(lo.B) && utf8.Valid(hi.B))
			require.LessOrEqual(t, max(utf8.RuneCount(lo.B), utf8.RuneCount(hi.B)), n)
		} else {
			require.LessOrEqual(t, max(len(lo.B), len(hi.B)), n)
		}
	})
}
