package decode

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// skipAll validates a whole text by skipping it.
func skipAll(b []byte) (ok bool, bad int) {
	var s scanner
	s.reset(b)
	return s.skip() && s.done(), s.bad
}

// tokenAll validates a whole text by reading its first token.
func tokenAll(b []byte) (token, bool) {
	var s scanner
	var t token
	s.reset(b)
	ok := s.token(&t) && s.done()
	return t, ok
}

// walkAll validates a whole text by walking every member and element.
func walkAll(s *scanner) bool {
	if s.peek() != '{' {
		return s.skip()
	}
	s.begin()
	for first := true; s.more(first); first = false {
		if _, _, ok := s.name(); !ok || !walkAll(s) {
			return false
		}
	}
	return s.bad == 0
}

var validJSON = []string{
	`null`, `true`, `false`, `0`, `-0`, `12`, `-12.5`, `1e3`, `1E+3`, `0.0e-10`, `""`, `"a"`, `"12345678"`, `"1234567\"9"`,
	`"\u0000"`, `"\ud83d\ude00"`, `"😀"`, `"\/\b\f\n\r\t\\\""`, `{}`, `[]`, `{"a":1}`, ` { "a" : [ 1 , { } , [ ] ] , "b" : null } `,
	`[[[]]]`, `{"":""}`, `123456789012345678901234567890`, "\t\r\n 1", `"é"`, `"0123456789abcdef\n0123456789abcdef"`, `{"a":{"a":{"a":[]}}}`,
	`[1,2,3,"x",true,false,null,{"a":[{}]}]`, "\"\x7f\"",
}

var invalidJSON = []string{
	``, ` `, `nul`, `nulL`, `tru`, `falsy`, `+1`, `01`, `-`, `1.`, `.5`, `1e`, `1e+`, `--1`, `0x1`, `1_000`, `NaN`, `Infinity`, `-Infinity`,
	`"`, `"a`, `"\`, `"\u`, `"\u12`, `"\u12g4"`, `"\x"`, `"\U0041"`, "\"\n\"", "\"\x00\"", "\"\x1f01234567\"", `{`, `}`, `[`, `]`, `{"a"}`, `{"a":}`, `{"a":1,}`,
	`{,}`, `{1:2}`, `{'a':1}`, `{"a" 1}`, `{"a":1 "b":2}`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `{"a":1]`, `[}`, `{]`, `1 2`, `{}{}`, `""x`, "\ufeff1",
	`{"a":1}}`, `[]]`, `//`, `/* */ 1`, "1\x00", "\v1", `{"a":01}`, `[1e]`, `["\ud83d"`, `{"a`, `{"a":`, `{"a":"`, `{"a":1,`, `{"a":1,"`,
}

func TestScanner_AcceptsJSON(t *testing.T) {
	for _, text := range validJSON {
		require.True(t, json.Valid([]byte(text)), text)
		ok, bad := skipAll([]byte(text))
		require.True(t, ok, "%s: %d", text, bad)
		_, ok = tokenAll([]byte(text))
		require.True(t, ok, text)
		var s scanner
		s.reset([]byte(text))
		require.True(t, walkAll(&s) && s.done(), text)
	}
}

func TestScanner_RefusesWhatIsNotJSON(t *testing.T) {
	for _, text := range invalidJSON {
		require.False(t, json.Valid([]byte(text)), text)
		ok, bad := skipAll([]byte(text))
		require.False(t, ok, text)
		require.Negative(t, bad, text)
		require.NotEmpty(t, badTexts[-bad-1])
		_, ok = tokenAll([]byte(text))
		require.False(t, ok, text)
	}
}

func TestScanner_IsStricterThanEncodingJSONInThreeRules(t *testing.T) {
	deep := strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1)
	for text, want := range map[string]int{
		"\"\xff\"": badUTF8, "\"abc\xc0\xafdefghijkl\"": badUTF8, "\"\xed\xa0\x80\"": badUTF8, "{\"\xff\":1}": badUTF8,
		`"\ud800"`: badSurrogate, `"\udc00"`: badSurrogate, `"\ud800x"`: badSurrogate, `"\ud800\u0041"`: badSurrogate, `"\ud800\n1234"`: badSurrogate,
		`"\ud83d\ud83d"`: badSurrogate, deep: badDepth,
	} {
		require.True(t, json.Valid([]byte(text)), "%q", text)
		ok, bad := skipAll([]byte(text))
		require.False(t, ok)
		require.Equal(t, want, bad, "%q", text)
	}
	ok, _ := skipAll([]byte(deep[1 : len(deep)-1]))
	require.True(t, ok, "as deep as allowed")
}

func TestScanner_CountsDepthFromTheEnclosingObjects(t *testing.T) {
	for _, nested := range []int{maxDepth - 1, maxDepth} {
		text := `{"a":` + strings.Repeat(`{"a":`, nested-1) + "[]" + strings.Repeat("}", nested-1) + "}"
		var s scanner
		s.reset([]byte(text))
		require.Equal(t, nested < maxDepth, walkAll(&s) && s.done(), nested)
		ok, _ := skipAll([]byte(text))
		require.Equal(t, nested < maxDepth, ok, nested)
	}
}

func TestScanner_ReadsTokens(t *testing.T) {
	for text, want := range map[string]token{
		`null`:                                  {kind: kindNull},
		`true`:                                  {kind: kindTrue},
		`false`:                                 {kind: kindFalse},
		`"a\u00e9"`:                             {kind: kindString, text: []byte("aé")},
		`"\ud83d\ude00 \/\b\f\n\r\t\\\"\u0000"`: {kind: kindString, text: []byte("😀 /\b\f\n\r\t\\\"\x00")},
		`-0`:                                    {kind: kindNumber, small: true, num: 0},
		`9007199254740993`:                      {kind: kindNumber, small: true, num: 9007199254740993},
		`9223372036854775807`:                   {kind: kindNumber, small: true, num: 9223372036854775807},
		`-9223372036854775808`:                  {kind: kindNumber, small: true, num: -9223372036854775808},
		`9223372036854775808`:                   {kind: kindNumber},
		`-9223372036854775809`:                  {kind: kindNumber},
		`18446744073709551617`:                  {kind: kindNumber},
		`99999999999999999999999999999999`:      {kind: kindNumber},
		`1.0`:                                   {kind: kindNumber},
		`12345678e1`:                            {kind: kindNumber},
		`{"a":[1, 2]}`:                          {kind: kindObject},
		`[{}]`:                                  {kind: kindArray},
	} {
		got, ok := tokenAll([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want.kind, got.kind, text)
		require.Equal(t, text, string(got.raw))
		switch want.kind {
		case kindString:
			require.Equal(t, want.text, got.text)
		case kindNumber:
			require.Equal(t, want.small, got.small, text)
			if want.small {
				require.Equal(t, want.num, got.num, text)
			}
		}
	}
}

func TestScanner_DoesNotChangeItsInput(t *testing.T) {
	text := []byte(`{"a\n":"x\u0041y","b":[1,"\ud83d\ude00"]}`)
	kept := bytes.Clone(text)
	_, ok := tokenAll(text)
	require.True(t, ok)
	var s scanner
	s.reset(text)
	require.True(t, walkAll(&s))
	require.Equal(t, kept, text)
}

func TestScanner_ReadsEveryStringThatJSONWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		std, err := json.Marshal(s)
		require.NoError(t, err)
		ours := types.AppendJSONString(nil, []byte(s))
		for _, text := range [][]byte{std, ours, []byte(strconv.QuoteToASCII(s))} {
			if !json.Valid(text) {
				continue // Go quotes some characters in its own way
			}
			got, ok := tokenAll(text)
			require.True(t, ok, "%s", text)
			require.Equal(t, s, string(got.text), "%s", text)
		}
	})
}

func TestScanner_ReadsEveryInteger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64().Draw(t, "n") >> rapid.IntRange(0, 63).Draw(t, "shift")
		tail := rapid.SampledFrom([]string{"", " ", "\n"}).Draw(t, "tail")
		got, ok := tokenAll([]byte(strconv.FormatInt(n, 10) + tail))
		require.True(t, ok)
		require.True(t, got.small)
		require.Equal(t, n, got.num)
	})
}

func TestDigits_AgreeWithReadingThemOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.SampledFrom([]byte("00112233445566778899/:.e-\x00\xb0\xfa\xff")), 0, 24).Draw(t, "b")
		end := 0
		for end < len(b) && b[end] >= '0' && b[end] <= '9' {
			end++
		}
		v, p := digits(b, 0)
		require.Equal(t, end, p, "%q", b)
		if end > 0 && end <= 19 {
			want, err := strconv.ParseUint(string(b[:end]), 10, 64)
			require.NoError(t, err)
			require.Equal(t, want, v, "%q", b)
		}
	})
}

// loneSurrogate reports whether a valid JSON text escapes half a surrogate
// pair: encoding/json decodes it to U+FFFD, which a text without one shows.
func loneSurrogate(b []byte) bool {
	lower := bytes.ToLower(b)
	return bytes.Contains(lower, []byte(`\ud`))
}

// agree checks the scanner against encoding/json on one text.
func agree(t *testing.T, b []byte) {
	kept := bytes.Clone(b)
	ok, bad := skipAll(b)
	valid := json.Valid(b)
	require.Equal(t, kept, b)
	switch {
	case ok:
		require.True(t, valid, "accepted, but not JSON")
	case valid:
		require.Contains(t, []int{badUTF8, badSurrogate, badDepth}, bad, "refused, but JSON")
		switch bad {
		case badUTF8:
			require.False(t, utf8.Valid(b))
		case badSurrogate:
			require.True(t, loneSurrogate(b))
		}
	}
	tok, tokOK := tokenAll(b)
	require.Equal(t, ok, tokOK, "skip and token must agree")
	var s scanner
	s.reset(b)
	require.Equal(t, ok, walkAll(&s) && s.done(), "skip and walk must agree")
	if ok && tok.kind == kindString {
		var want string
		require.NoError(t, json.Unmarshal(b, &want))
		require.Equal(t, want, string(tok.text))
	}
	if ok && tok.kind == kindNumber {
		n, err := strconv.ParseInt(string(tok.raw), 10, 64)
		require.Equal(t, err == nil, tok.small)
		if tok.small {
			require.Equal(t, n, tok.num)
		}
	}
}

func TestScanner_AgreesWithEncodingJSONOnDamagedTexts(t *testing.T) {
	for _, text := range append(validJSON, invalidJSON...) {
		agree(t, []byte(text))
		for i := range text {
			agree(t, []byte(text[:i]))
			agree(t, []byte(text[i:]))
			for _, c := range []byte("\"\\{}[],:0e.\x00\x80 ") {
				b := []byte(text)
				b[i] = c
				agree(t, b)
			}
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range append(validJSON, invalidJSON...) {
		f.Add([]byte(text))
	}
	for _, r := range benchRecords("large", 1) {
		f.Add(r.Value)
	}
	f.Fuzz(func(t *testing.T, b []byte) { agree(t, b) })
}
