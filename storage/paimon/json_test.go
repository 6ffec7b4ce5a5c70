package paimon

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// javaFile reads a file of testdata/java, which Paimon's own classes wrote (the
// programs are beside them).
func javaFile(t testing.TB, name string) []byte {
	b, err := os.ReadFile("testdata/java/" + name)
	require.NoError(t, err)
	return b
}

func TestAppendJacksonString_EscapesAsJackson(t *testing.T) {
	require.Equal(t, `"q\"b\\s/n\nt\tr\rb\bf\f0\u00001\u0001e\u001Fd`+"\x7f"+`ä😀<>&"`,
		string(appendJacksonString(nil, "q\"b\\s/n\nt\tr\rb\bf\f0\x001\x01e\x1fd\x7fä😀<>&")))
	require.Equal(t, "\"a\ufffdb\"", string(appendJacksonString(nil, "a\xffb")))
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		var back string
		require.NoError(t, json.Unmarshal(appendJacksonString(nil, s), &back))
		require.Equal(t, strings.ToValidUTF8(s, "\ufffd"), back)
	})
}

func TestJSONWriter_LaysOutAsJackson(t *testing.T) {
	var w jsonWriter
	w.raw("a", []byte(`{"x":[],"y":{},"z":[1,{"k":[2,[3]],"l":null}],"b":[true,false,-1.50e+3]}`))
	w.raw("n", []byte(`9223372036854775807`))
	b, err := w.end()
	require.NoError(t, err)
	require.Equal(t, `{
  "a" : {
    "x" : [ ],
    "y" : { },
    "z" : [ 1, {
      "k" : [ 2, [ 3 ] ],
      "l" : null
    } ],
    "b" : [ true, false, -1.50e+3 ]
  },
  "n" : 9223372036854775807
}`, string(b))
	b, err = (&jsonWriter{}).end()
	require.NoError(t, err)
	require.Equal(t, "{ }", string(b))

	w = jsonWriter{}
	w.raw("a", []byte(`{"x":`))
	_, err = w.end()
	require.Error(t, err)
	w = jsonWriter{}
	w.any("a", func() {})
	_, err = w.end()
	require.Error(t, err)
}

func TestParseObject_RefusesWhatIsNoObject(t *testing.T) {
	for _, s := range []string{
		"", "[]", "1", "null", "{", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{"a":1}x`, `{"a":1}{}`, `{a:1}`, `{"a":tru}`,
		strings.Repeat("[", 200), `{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "}",
	} {
		_, err := parseObject([]byte(s))
		require.Error(t, err, s)
	}
	ms, err := parseObject([]byte(` {"a":1, "b":"[[[[\"{{{", "a" : {"c":[2]}} `))
	require.NoError(t, err)
	require.Equal(t, []member{{"a", json.RawMessage(`{"c":[2]}`)}, {"b", json.RawMessage(`"[[[[\"{{{"`)}}, ms, "the last of equal names counts")
}

func TestJSONReader_KeepsTheFirstError(t *testing.T) {
	ms, err := parseObject([]byte(`{"a":"x","b":null,"c":3,"d":4}`))
	require.NoError(t, err)
	r := newJSONReader(ms)
	var n int64
	require.Nil(t, optional[int64](r, "b"), "null is absent")
	require.Equal(t, new(int64(3)), optional[int64](r, "c"))
	require.NoError(t, r.err)
	require.False(t, r.get("a", &n))
	r.need("e", &n)
	require.ErrorContains(t, r.err, `"a"`)
	require.Equal(t, []member{{"d", json.RawMessage("4")}}, r.rest(ms))
}
