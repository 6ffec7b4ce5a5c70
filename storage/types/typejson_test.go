package types

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// paimon-format.md §2.1, a schema that Java wrote.
const schemaSample = `[
 {"id":0,"name":"id","type":"BIGINT NOT NULL","description":"the id"},
 {"id":1,"name":"name","type":"STRING","defaultValue":"'anon'"},
 {"id":17,"name":"arr","type":{"type":"ARRAY","element":"INT NOT NULL"},"defaultValue":"[1, 2]"},
 {"id":18,"name":"m","type":{"type":"MAP","key":"STRING NOT NULL","value":{"type":"ROW","fields":[
   {"id":19,"name":"x","type":"INT"},
   {"id":21,"name":"y","type":{"type":"ARRAY","element":{"type":"ROW","fields":[{"id":20,"name":"z","type":"STRING"}]}}}]}}},
 {"id":22,"name":"r","type":{"type":"ROW NOT NULL","fields":[
   {"id":24,"name":"a","type":{"type":"ROW","fields":[{"id":23,"name":"b","type":"INT"}]}},{"id":25,"name":"c","type":"STRING"}]}},
 {"id":26,"name":"ms","type":{"type":"MULTISET","element":"STRING"}},
 {"id":29,"name":"ve","type":{"type":"VECTOR","element":"FLOAT","length":4}}]`

func TestFieldJSON_JavasSample(t *testing.T) {
	var fields []Field
	require.NoError(t, json.Unmarshal([]byte(schemaSample), &fields))
	require.Equal(t, "the id", *fields[0].Description)
	require.Nil(t, fields[0].Default)
	require.True(t, fields[0].Type.Equal(BigIntType().NonNull()))
	require.Equal(t, "'anon'", *fields[1].Default)
	require.True(t, fields[2].Type.Equal(ArrayType(IntType().NonNull())))
	require.Equal(t, "MAP<STRING NOT NULL, ROW<`x` INT, `y` ARRAY<ROW<`z` STRING>>>>", fields[3].Type.String())
	require.Equal(t, 20, fields[3].Type.Elem.Fields[1].Type.Elem.Fields[0].ID)
	require.True(t, fields[4].Type.NotNull)
	require.Equal(t, 4, fields[6].Type.Length)
	out, err := json.Marshal(fields)
	require.NoError(t, err)
	require.JSONEq(t, schemaSample, string(out))
	var compact strings.Builder
	for line := range strings.Lines(schemaSample) {
		compact.WriteString(strings.Trim(line, " \n"))
	}
	require.Equal(t, compact.String(), string(out), "members in the order of Java, absent ones left out")
}

// Every schema file of the golden tables comes out as it went in.
func TestFieldJSON_GoldenSchemas(t *testing.T) {
	files, err := os.ReadDir("../paimon/testdata")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	seen := 0
	walkSchemas(t, "../paimon/testdata", func(path string, data []byte) {
		var in struct{ Fields json.RawMessage }
		require.NoError(t, json.Unmarshal(data, &in), path)
		var fields []Field
		require.NoError(t, json.Unmarshal(in.Fields, &fields), path)
		require.NotEmpty(t, fields)
		out, err := json.Marshal(fields)
		require.NoError(t, err)
		require.JSONEq(t, string(in.Fields), string(out), path)
		seen++
	})
	require.Greater(t, seen, 10)
}

func walkSchemas(t *testing.T, dir string, fn func(path string, data []byte)) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		path := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			walkSchemas(t, path, fn)
		case strings.HasPrefix(e.Name(), "schema-") && strings.HasSuffix(dir, "/schema"):
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			fn(path, data)
		}
	}
}

func TestTypeJSON_RapidRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.IntRange(0, 100).Draw(t, "id")
		want := drawType(t, 3, &id)
		out, err := json.Marshal(want)
		require.NoError(t, err)
		var got Type
		require.NoError(t, json.Unmarshal(out, &got))
		require.True(t, want.Equal(got), "%s: %s: %s", want, out, got)
	})
}

func TestTypeJSON_NoEscapesForHTML(t *testing.T) {
	text := "a < b & c"
	out, err := Field{Name: "<&>", Type: IntType(), Default: &text}.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `{"id":0,"name":"<&>","type":"INT","defaultValue":"a < b & c"}`, string(out))
}

func TestTypeJSON_ReadsTolerantlyAsJava(t *testing.T) {
	for text, want := range map[string]Type{
		`"int not null"`: IntType().NonNull(),
		`{"type":"array not  null","element":"INT"}`:    ArrayType(IntType()).NonNull(),
		`{"type":"ARRAY NULL","element":"INT"}`:         ArrayType(IntType()),
		`{"element":"INT","type":"MULTISET","more":[]}`: MultisetType(IntType()),
		`{"type":"ROW"}`:                             RowType(),
		`{"type":"ROW","fields":[]}`:                 RowType(),
		`{"type":"ARRAY","element":"MAP<INT, INT>"}`: ArrayType(MapType(IntType(), IntType())),
	} {
		var got Type
		require.NoError(t, json.Unmarshal([]byte(text), &got), text)
		require.True(t, want.Equal(got), "%s: %s", text, got)
	}
}

func TestTypeJSON_Refuses(t *testing.T) {
	for _, text := range []string{
		`null`, `1`, `true`, `[]`, `""`, `"FOO"`, `{}`, `{"type":""}`, `{"type":"INT"}`, `{"type":"FOO"}`, `{"type":"ARRAY"}`,
		`{"type":"ARRAY","element":null}`, `{"type":"ARRAY MAYBE","element":"INT"}`, `{"type":"MAP","key":"INT"}`, `{"type":"MAP","value":"INT"}`,
		`{"type":"ROW","fields":[{"id":1,"name":"a"}]}`, `{"type":"ROW","fields":[{"id":1,"name":"a","type":null}]}`,
		`{"type":"ROW","fields":[{"id":1.5,"name":"a","type":"INT"}]}`, `{"type":"ROW","fields":{}}`, `{"type":"VECTOR","element":"FLOAT"}`,
		`{"type":"VECTOR","element":"FLOAT","length":0}`, `{"type":"ARRAY","element":{"type":"ARRAY"}}`,
	} {
		var got Type
		require.Error(t, json.Unmarshal([]byte(text), &got), text)
		require.Equal(t, Type{}, got, text)
	}
	var f Field
	for _, text := range []string{`{"id":1,"name":"a"}`, `{"id":"1","name":"a","type":"INT"}`, `[]`} {
		require.Error(t, json.Unmarshal([]byte(text), &f), text)
	}
}

func TestTypeJSON_BoundsDepth(t *testing.T) {
	nest := func(n int) []byte {
		return []byte(strings.Repeat(`{"type":"ARRAY","element":`, n) + `"INT"` + strings.Repeat("}", n))
	}
	var got Type
	require.NoError(t, json.Unmarshal(nest(maxTypeDepth), &got))
	for _, n := range []int{maxTypeDepth + 1, jsonLevels*maxTypeDepth + 1, 9000} {
		require.ErrorContains(t, json.Unmarshal(nest(n), &got), "nested deeper")
	}
	quoted := `{"type":"ROW","fields":[{"id":0,"name":"` + strings.Repeat(`[{\"`, 1000) + `","type":"INT"}]}`
	require.NoError(t, json.Unmarshal([]byte(quoted), &got), "brackets in texts are no nesting")
}

func FuzzTypeJSON(f *testing.F) {
	f.Add([]byte(`"INT NOT NULL"`))
	f.Add([]byte(`{"type":"MAP","key":"STRING NOT NULL","value":{"type":"ROW","fields":[{"id":19,"name":"x","type":"INT"}]}}`))
	f.Add([]byte(`{"type":"VECTOR","element":"FLOAT","length":4}`))
	f.Add([]byte(strings.Repeat(`{"type":"ARRAY","element":`, 300)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second Type
		if json.Unmarshal(data, &first) != nil {
			return
		}
		out, err := json.Marshal(first)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(out, &second), "%s", out)
		require.True(t, first.Equal(second))
	})
}
