package decode

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"applier/storage/types"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// walk reads an object with members and returns name=value pairs by slot id.
func walk(m *members, text string) ([]string, int) {
	var s scanner
	var t token
	s.reset([]byte(text))
	var got []string
	for sl := m.open(&s); sl != nil; sl = m.next(&s) {
		if !s.token(&t) {
			break
		}
		got = append(got, fmt.Sprintf("%d=%s", sl.id, t.raw))
	}
	if s.bad == 0 {
		s.done()
	}
	return got, s.bad
}

func TestMembers_FindsNamesInAnyOrderAndSpelling(t *testing.T) {
	var m members
	for i, name := range []string{"a", "long name", `q"\`, "é", "", "exactly7"} {
		m.add(name, i)
	}
	for range 3 { // the second time the order is as predicted
		for text, want := range map[string][]string{
			`{"a":1,"long name":2,"q\"\\":3,"é":4,"":5,"exactly7":6}`: {"0=1", "1=2", "2=3", "3=4", "4=5", "5=6"},
			`{"exactly7":6,"a":1}`:                     {"5=6", "0=1"},
			` { "a" : 1 , "long name" : 2 } `:          {"0=1", "1=2"},
			`{"a": 1, "long name": 2, "\u00e9": 3}`:    {"0=1", "1=2", "3=3"},
			`{"\u0061":1,"q\u0022\u005c":2}`:           {"0=1", "2=2"},
			`{"a":1,"x":{"a":1,"a":2},"exactly7":"}"}`: {"0=1", "-1={\"a\":1,\"a\":2}", "5=\"}\""},
			`{}`: nil, `{"":1}`: {"4=1"},
		} {
			got, bad := walk(&m, text)
			require.Zero(t, bad, text)
			require.Equal(t, want, got, text)
		}
	}
}

func TestMembers_RefusesDuplicatesHoweverTheyAreSpelled(t *testing.T) {
	for _, text := range []string{`{"a":1,"a":2}`, `{"a":1,"b":2,"a":3}`, `{"x":1,"x":2}`, `{"a":1,"\u0061":2}`, `{"a":1, "a":2}`, `{"b":1,"a":2,"b":3}`} {
		var m members
		m.add("a", 0)
		m.add("b", 1)
		for range 3 {
			_, bad := walk(&m, text)
			require.Equal(t, badMember, bad, text)
		}
		_, bad := walk(&m, `{"a":1,"b":2,"x":3}`)
		require.Zero(t, bad, "the next object starts anew")
	}
}

func TestMembers_RefusesWhatIsNoObject(t *testing.T) {
	for _, text := range []string{``, `[`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":1}}`, `{"a":1,"b`, "{\"a\x00\":1}", `{"a"":1}`} {
		var m members
		m.add("a", 0)
		for range 2 {
			_, bad := walk(&m, text)
			require.Negative(t, bad, text)
		}
	}
}

func TestMembers_BoundsWhatItLearns(t *testing.T) {
	var m members
	unknown := 0
	m.unknown = func(string) { unknown++ }
	m.add("a", 0)
	for i := range 3 * maxExtraNames {
		got, bad := walk(&m, fmt.Sprintf(`{"n%d":1,"a":2,"m%d":3}`, i, i))
		require.Zero(t, bad)
		require.Equal(t, []string{"-1=1", "0=2", "-1=3"}, got)
	}
	require.Len(t, m.byName, maxExtraNames+1)
	require.Equal(t, maxExtraNames, unknown)
	long := strings.Repeat("x", maxNameLength+1)
	got, bad := walk(&m, `{"`+long+`":1,"a":2}`)
	require.Zero(t, bad)
	require.Equal(t, []string{"-1=1", "0=2"}, got)
}

func TestMembers_ReadsObjectsOfAnyMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m members
		known := rapid.SliceOfNDistinct(rapid.StringN(0, 12, -1), 1, 6, rapid.ID).Draw(t, "known")
		for i, name := range known {
			m.add(name, i)
		}
		for range 4 {
			names := rapid.SliceOfNDistinct(rapid.OneOf(rapid.SampledFrom(known), rapid.StringN(0, 12, -1)), 0, 8, rapid.ID).Draw(t, "names")
			gap := rapid.SampledFrom([]string{"", " "}).Draw(t, "gap")
			var parts, want []string
			for i, name := range names {
				id := -1
				for k, n := range known {
					if n == name {
						id = k
					}
				}
				parts = append(parts, string(types.AppendJSONString(nil, []byte(name)))+":"+fmt.Sprint(i))
				want = append(want, fmt.Sprintf("%d=%d", id, i))
			}
			got, bad := walk(&m, "{"+strings.Join(parts, gap+","+gap)+"}")
			require.Zero(t, bad)
			require.Equal(t, want, got)
		}
	})
}

func TestPlaceholder_KnowsEveryFormOfTheDefaultText(t *testing.T) {
	p, err := newPlaceholder(unavailable)
	require.NoError(t, err)
	for _, text := range []string{
		`"__debezium_unavailable_value"`, `"\u005f_debezium_unavailable_value"`, `"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="`,
		`"5f5f646562657a69756d5f756e617661696c61626c655f76616c7565"`, `"{\"__debezium_unavailable_value\":\"__debezium_unavailable_value\"}"`,
		`["__debezium_unavailable_value"]`, `["X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="]`, `["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]`,
		`[95,95,100,101,98,101,122,105,117,109,95,117,110,97,118,97,105,108,97,98,108,101,95,118,97,108,117,101]`,
		`{"__debezium_unavailable_value":"__debezium_unavailable_value"}`,
	} {
		tok, ok := tokenAll([]byte(text))
		require.True(t, ok)
		require.True(t, p.is(&tok), text)
	}
	for _, text := range []string{`""`, `"__debezium_unavailable_valu"`, `"__debezium_unavailable_value "`, `null`, `1`, `[95]`, `[]`, `{}`, `["__debezium_unavailable_value",1]`, `"__olake_unavailable_value__"`} {
		tok, ok := tokenAll([]byte(text))
		require.True(t, ok)
		require.False(t, p.is(&tok), text)
	}
}

func TestPlaceholder_CanBeAnyTextOrBytes(t *testing.T) {
	p, err := newPlaceholder("hex:ff00")
	require.NoError(t, err)
	tok, _ := tokenAll([]byte(`"` + base64.StdEncoding.EncodeToString([]byte{0xff, 0}) + `"`))
	require.True(t, p.is(&tok))
	p, err = newPlaceholder("(n/a)")
	require.NoError(t, err)
	tok, _ = tokenAll([]byte(`["(n/a)"]`))
	require.True(t, p.is(&tok))
	p, err = newPlaceholder("")
	require.NoError(t, err)
	require.Nil(t, p)
	for _, bad := range []string{"hex:", "hex:0", "hex:zz"} {
		_, err = newPlaceholder(bad)
		require.ErrorContains(t, err, "hexadecimal")
	}
}

func TestSchemaCache_ParsesASchemaOnce(t *testing.T) {
	compiled := 0
	c := schemaCache{compile: func(*connectSchema) { compiled++ }}
	open := func(text string) wrapper {
		var s scanner
		s.reset([]byte(text))
		w := c.open(&s)
		require.Zero(t, s.bad, text)
		if w.on {
			require.Equal(t, byte('5'), s.peek(), text)
			require.True(t, s.skip() && w.close(&s) && s.done(), text)
		} else {
			require.True(t, s.skip() && s.done(), text)
		}
		return w
	}
	wrap := func(i int) string { return fmt.Sprintf(`{"schema":{"type":"int32","version":%d},"payload":5}`, i) }
	for range 3 {
		require.NotNil(t, open(wrap(1)).schema)
	}
	require.Equal(t, 1, compiled)
	require.NotNil(t, open(` { "payload" : 5 , "schema" : {"type":"int32","version":1} } `).schema)
	require.NotNil(t, open(`{"schema":{"type":"int32","version":1}, "payload":5}`).schema)
	require.Equal(t, 1, compiled, "also in another layout")
	for i := range maxSchemas { // two alternate, others come and go
		open(wrap(1))
		open(wrap(2))
		open(wrap(10 + i))
	}
	require.Equal(t, 2+maxSchemas, compiled)
	require.Len(t, c.known, maxSchemas)

	require.True(t, open(`{"schema":null,"payload":5}`).on)
	for _, text := range []string{
		`{}`, `{"schema":1,"payload":5}`, `{"schema":{},"payload":5}`, `{"schema":{"type":"nonsense"},"payload":5}`, `{"schema":{"type":5},"payload":5}`, `{"payload":5}`, `{"schema":{"type":"int32"}}`,
		`{"schema":null,"payload":5,"x":1}`, `{"schemas":{"type":"int32"},"payload":5}`, `5`, `[]`, `{"p":1}`, `{"s":1}`, `{"schema":{"type":"struct","fields":[1]},"payload":5}`,
	} {
		require.False(t, open(text).on, text)
	}
}

func TestSchema_KeepsWhatDecodingNeeds(t *testing.T) {
	var p schemaParser
	p.reset([]byte(`{"type":"struct","optional":false,"name":"a.Envelope","version":1,"doc":"x","default":{"a":[1]},"fields":[
		{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"-2","connect.decimal.precision":"12","x":{}},"field":"d"},
		{"type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"2147483647"},"field":"b"},
		{"type":"array","items":{"type":"int32"},"field":"a"},{"type":"map","keys":{"type":"string"},"values":{"type":"int8"},"field":"m"}, {"type":"float64","field":"f"}]}`))
	n, ok := p.node()
	require.True(t, ok && p.done())
	require.Equal(t, litStruct, n.literal)
	require.Equal(t, "a.Envelope", n.name)
	require.Len(t, n.fields, 5)
	require.Equal(t, -2, n.member("d").scale)
	require.Zero(t, n.member("b").bits, "unbounded")
	require.Equal(t, litArray, n.member("a").literal)
	require.Equal(t, litFloating, n.member("f").literal)
	require.Nil(t, n.member("zz"))
	require.Equal(t, noScale, n.scale)
	for _, bad := range []string{`[]`, `{"fields":[}`, `{"fields":[{}{}]}`, `{"fields":[,]}`, `{"fields":[{},]}`, `{"type":}`, `{"parameters":{"a"}}`, `{"fields":[{"type":"int32"}`} {
		var p schemaParser
		p.reset([]byte(bad))
		_, ok := p.node()
		require.False(t, ok && p.done(), bad)
	}
}

func TestSemantics_KnowTheirLiterals(t *testing.T) {
	for name, s := range semantics {
		n := &node{literal: s.literal, name: "shaded." + name, scale: 1}
		got, known := n.source()
		require.True(t, known, name)
		require.Equal(t, s.source, got)
		wrong := &node{literal: litBoolean, name: name, scale: 1}
		got, known = wrong.source()
		require.False(t, known, name)
		require.Equal(t, srcBoolean, got, "a name on another literal is read by the literal")
	}
	got, known := (&node{literal: litStruct, name: "shop.public.t.Value"}).source()
	require.True(t, known)
	require.Equal(t, srcNested, got)
	_, known = (&node{literal: litStruct, name: "io.debezium.data.Future"}).source()
	require.False(t, known)
}
