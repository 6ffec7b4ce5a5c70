package paimon

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

const minimalSchema = `{"version":3,"id":0,"fields":[{"id":0,"name":"a","type":"INT"},{"id":1,"name":"p","type":"STRING"}],
	"highestFieldId":1,"partitionKeys":["p"],"primaryKeys":[],"options":{},"timeMillis":5}`

func TestParseSchema_ReadsAndRewritesJavasFiles(t *testing.T) {
	for _, name := range []string{"schema-nested.json", "schema-empty.json"} {
		file := javaFile(t, name)
		s, err := ParseSchema(file)
		require.NoError(t, err)
		again, err := s.Encode()
		require.NoError(t, err)
		require.Equal(t, string(file), string(again))
	}
}

func TestParseSchema_ReadsTheTypesOfTheSample(t *testing.T) {
	s, err := ParseSchema(javaFile(t, "schema-nested.json"))
	require.NoError(t, err)
	require.Equal(t, "BIGINT NOT NULL", s.Fields[s.Column("id")].Type.String())
	require.Equal(t, "MAP<STRING NOT NULL, ROW<`x` INT, `y` ARRAY<ROW<`z` STRING>>>>", s.Fields[s.Column("m")].Type.String())
	require.Equal(t, "'anon'", *s.Fields[1].Default)
	require.Contains(t, *s.Fields[0].Description, "日😀")
	require.Equal(t, []types.Field{s.Fields[1]}, s.PartitionFields())
	require.Equal(t, []types.Type{types.StringType()}, s.PartitionTypes())
	require.Equal(t, -1, s.Column("none"))
	require.Equal(t, -1, s.ColumnByID(999))
	require.Equal(t, s.Column("r"), s.ColumnByID(10))
	require.Equal(t, "hello", *s.Comment)
}

func TestParseSchema_KeepsUnknownMembersAndOptionOrder(t *testing.T) {
	in := strings.Replace(strings.Replace(minimalSchema, `"options":{}`, `"options":{"z":"1","a":"2","m":"3"}`, 1), `"timeMillis":5`,
		`"timeMillis":5,"future":{"x":[1,"<&>"]}`, 1)
	s, err := ParseSchema([]byte(in))
	require.NoError(t, err)
	s.Options["b"] = "4"
	delete(s.Options, "a")
	b, err := s.Encode()
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(b), `  "options" : {
    "z" : "1",
    "m" : "3",
    "b" : "4"
  },
  "timeMillis" : 5,
  "future" : {
    "x" : [ 1, "<&>" ]
  }
}`), string(b))
}

func TestParseSchema_AppliesTheRulesOfOldVersions(t *testing.T) {
	f := func(version, options string) map[string]string {
		s, err := ParseSchema([]byte(strings.NewReplacer(`"version":3,`, version, `"options":{}`, `"options":`+options).Replace(minimalSchema)))
		require.NoError(t, err)
		return s.Options
	}
	require.Equal(t, map[string]string{"bucket": "1", "file.format": "orc"}, f("", "{}"))
	require.Equal(t, map[string]string{"bucket": "1", "file.format": "orc"}, f(`"version":1,`, "null"))
	require.Equal(t, map[string]string{"file.format": "orc"}, f(`"version":2,`, "{}"))
	require.Equal(t, map[string]string{"bucket": "4", "file.format": "parquet"}, f("", `{"bucket":"4","file.format":"parquet"}`))
	require.Empty(t, f(`"version":3,`, "{}"))
}

func TestParseSchema_RefusesBrokenFiles(t *testing.T) {
	f := func(old, new string) {
		t.Helper()
		in := strings.Replace(minimalSchema, old, new, 1)
		require.NotEqual(t, minimalSchema, in)
		_, err := ParseSchema([]byte(in))
		require.ErrorIs(t, err, ErrCorrupt)
	}
	f(`{"version"`, `{{"version"`)
	f(`"id":0,"fields"`, `"fields"`)
	f(`"fields"`, `"felder"`)
	f(`"timeMillis":5`, `"timeMillis":"x"`)
	f(`"options":{}`, `"options":{"a":1}`)
	f(`"options":{}`, `"options":[]`)
	f(`"name":"p"`, `"name":"a"`)
	f(`"name":"p"`, `"name":""`)
	f(`"id":1,`, `"id":0,`)
	f(`["p"]`, `["x"]`)
	f(`["p"]`, `["p","p"]`)
	f(`{"id":0,"name":"a","type":"INT"}`, `7`)
	f(`"type":"INT"`, `"typ":"INT"`)
	f(`"type":"INT"`, `"type":`+strings.Repeat(`{"type":"ARRAY","element":`, 150)+`"INT"`+strings.Repeat(`}`, 150))
}

func TestParseSchema_NamesTypesItDoesNotKnow(t *testing.T) {
	in := strings.NewReplacer(`"INT"`, `"HYPERCUBE(4)"`, `"STRING"`, `{"type":"TENSOR"}`).Replace(minimalSchema)
	_, err := ParseSchema([]byte(in))
	require.ErrorIs(t, err, ErrRefused)
	require.NotErrorIs(t, err, ErrCorrupt)
	var r *Refusal
	require.ErrorAs(t, err, &r)
	require.Len(t, r.Reasons, 2)
	require.Equal(t, CodeUnknownType, r.Reasons[0].Code)
	require.Contains(t, r.Reasons[0].Text, "HYPERCUBE")
	require.Contains(t, r.Reasons[1].Text, `"p"`)
}

func TestSchema_BucketKeys(t *testing.T) {
	require.Nil(t, (&Schema{}).BucketKeys())
	require.Equal(t, []string{"a", " b"}, (&Schema{Options: map[string]string{"bucket-key": "a, b"}}).BucketKeys(), "Java does not trim")
}

// fieldIDs lists the ids of all fields in the order of the text.
func fieldIDs(fields []types.Field) []int {
	var ids []int
	var walk func(t types.Type)
	walk = func(t types.Type) {
		for _, p := range []*types.Type{t.Key, t.Elem} {
			if p != nil {
				walk(*p)
			}
		}
		for _, f := range t.Fields {
			ids = append(ids, f.ID)
			walk(f.Type)
		}
	}
	for _, f := range fields {
		ids = append(ids, f.ID)
		walk(f.Type)
	}
	return ids
}

func TestNewSchema_GivesIDsAsJava(t *testing.T) {
	java, err := ParseSchema(javaFile(t, "schema-nested.json"))
	require.NoError(t, err)
	// Java's own ids, forgotten and given again.
	b, err := json.Marshal(java.Fields)
	require.NoError(t, err)
	var fields []types.Field
	require.NoError(t, json.Unmarshal(b, &fields))
	var forget func(fs []types.Field)
	forget = func(fs []types.Field) {
		for i := range fs {
			fs[i].ID = 7
			for _, p := range []*types.Type{&fs[i].Type, fs[i].Type.Key, fs[i].Type.Elem} {
				if p == nil {
					continue
				}
				forget(p.Fields)
				if p.Elem != nil {
					forget(p.Elem.Fields)
				}
			}
		}
	}
	forget(fields)
	require.NotEqual(t, fieldIDs(java.Fields), fieldIDs(fields))
	s, err := NewSchema(fields, []string{"name"}, map[string]string{"bucket": "-1", "path": "/x"}, java.Comment, java.TimeMillis)
	require.NoError(t, err)
	require.Equal(t, fieldIDs(java.Fields), fieldIDs(s.Fields))
	require.Equal(t, 15, s.HighestFieldID)
	require.Equal(t, map[string]string{"bucket": "-1"}, s.Options)
	require.Equal(t, 7, fields[0].ID, "the caller's fields are left alone")

	s.HighestFieldID = 100 // as the Java program chose
	again, err := s.Encode()
	require.NoError(t, err)
	require.Equal(t, string(javaFile(t, "schema-nested.json")), string(again))
	back, err := ParseSchema(again)
	require.NoError(t, err)
	require.Equal(t, s.Column("ms"), back.Column("ms"))
}

func TestNewSchema_ListsEverythingThatIsWrong(t *testing.T) {
	col := func(name string, t types.Type) types.Field { return types.Field{Name: name, Type: t} }
	f := func(fields []types.Field, keys []string, want ...string) {
		t.Helper()
		_, err := NewSchema(fields, keys, nil, nil, 0)
		require.ErrorIs(t, err, ErrInvalidSchema)
		for _, w := range want {
			require.ErrorContains(t, err, w)
		}
	}
	f(nil, nil, "no columns")
	f([]types.Field{
		col("_ROW_ID", types.IntType()), col("rowkind", types.IntType()), col("_KEY_x", types.IntType()), col(" ", types.IntType()),
		col("a", types.IntType()), col("a", types.IntType()), col("A", types.IntType()),
	}, []string{"b", "a", "a"},
		`"_ROW_ID"`, `"rowkind"`, `"_KEY_x"`, "without a name", `"a" twice`, `"a" and "A" differ in case`, `"b" is no column`, `key "a" twice`)
	for _, typ := range []types.Type{types.BytesType(), types.BinaryType(3), types.ArrayType(types.IntType()), {Kind: types.Variant}, {Kind: types.Blob}} {
		f([]types.Field{col("a", typ), col("b", types.IntType())}, []string{"a"}, `"a" cannot be of type`)
	}
	f([]types.Field{col("a", types.IntType())}, []string{"a"}, "every column is a partition key")
	row := types.RowType(col("x", types.IntType()), col("x", types.IntType()), col("", types.IntType()))
	f([]types.Field{col("a", types.MapType(types.StringType(), types.ArrayType(row)))}, nil, "field of a", `"x" twice`)
	f([]types.Field{col("a", types.RowType())}, nil, "no field of as")

	s, err := NewSchema([]types.Field{col("a", types.IntType()), col("b", types.DateType())}, []string{"b"}, nil, nil, 9)
	require.NoError(t, err)
	require.Equal(t, SchemaVersion, s.Version)
	require.Equal(t, 1, s.HighestFieldID)
}

func TestRefuse_AllowsAPlainTable(t *testing.T) {
	s, err := NewSchema([]types.Field{{Name: "a", Type: types.IntType()}, {Name: "d", Type: types.DateType()}}, []string{"d"},
		map[string]string{"deletion-vectors.enabled": "true", "bucket": "-1"}, nil, 0)
	require.NoError(t, err)
	require.NoError(t, Refuse(s, Write))
	require.NoError(t, Refuse(s, Read))
}

func TestRefuse_NamesEachReason(t *testing.T) {
	col := func(t types.Type) []types.Field { return []types.Field{{ID: 1, Name: "c", Type: t}} }
	for _, c := range []struct {
		code    Code
		reading bool
		options map[string]string
		change  func(*Schema)
	}{
		{code: CodeSchemaVersion, reading: true, change: func(s *Schema) { s.Version = 4 }},
		{code: CodeBadOption, reading: true, options: map[string]string{"bucket": "many"}},
		{code: CodeTableType, reading: true, options: map[string]string{"type": "format-table"}},
		{code: CodePrimaryKey, reading: true, change: func(s *Schema) { s.PrimaryKeys = []string{"a"} }},
		{code: CodeDataEvolution, reading: true, options: map[string]string{"data-evolution.enabled": "true"}},
		{code: CodeFileFormat, reading: true, options: map[string]string{"file.format": "ORC"}},
		{code: CodeFileFormat, reading: true, options: map[string]string{"file.format": "avro"}},
		{code: CodeManifestFormat, reading: true, options: map[string]string{"manifest.format": "parquet"}},
		{code: CodeColumnType, reading: true, change: func(s *Schema) { s.Fields = col(types.Type{Kind: types.Blob}) }},
		{code: CodeColumnType, reading: true, change: func(s *Schema) { s.Fields = col(types.ArrayType(types.Type{Kind: types.Geometry, Text: "x"})) }},
		{code: CodePartitionType, reading: true, change: func(s *Schema) { s.Fields, s.PartitionKeys = col(types.BytesType()), []string{"c"} }},
		{code: CodeFallbackBranch, reading: true, options: map[string]string{"scan.fallback-branch": "b"}},
		{code: CodeBranch, options: map[string]string{"branch": "b"}},
		{code: CodeBuckets, options: map[string]string{"bucket": "4"}},
		{code: CodeBuckets, options: map[string]string{"bucket": "-2"}},
		{code: CodeBucketFunction, options: map[string]string{"bucket-function.type": "iceberg"}},
		{code: CodeRowTracking, options: map[string]string{"row-tracking.enabled": "TRUE", "bucket": "4", "bucket-key": "a"}},
		{code: CodeExternalPaths, options: map[string]string{"data-file.external-paths": "s3://x,s3://y", "data-file.external-paths.strategy": "round-robin"}},
		{code: CodeFileIndex, options: map[string]string{"file-index.bitmap.columns": "a"}},
		{code: CodeFileIndex, options: map[string]string{"file-index.bloom-filter.columns": "a,b"}},
		{code: CodeFileIndex, options: map[string]string{"file-index.bloom-filter.columns": "m[k]"}},
		{code: CodeFileIndex, options: map[string]string{"file-index.bloom-filter.columns": "a,"}},
		{code: CodeFileIndex, options: map[string]string{"file-index.bloom-filter.columns": "a", "file-index.bloom-filter.a.items": "many"}},
		{code: CodeFileIndex, options: map[string]string{"file-index.bloom-filter.columns": "a", "file-index.bloom-filter.a.fpp": "1.5"}},
		{code: CodeFileIndex, options: map[string]string{"file-index.bloom-filter.columns": "a", "file-index.bloom-filter.b.items": "5"}},
		{
			code: CodeFileIndex, options: map[string]string{"file-index.bloom-filter.columns": "c"},
			change: func(s *Schema) { s.Fields = col(types.DecimalType(10, 2)) },
		},
		{code: CodeChangelog, options: map[string]string{"changelog-producer": "input"}},
		{code: CodeClustering, options: map[string]string{"clustering.incremental": "true", "bucket": "4", "bucket-key": "a", "bucket-append-ordered": "false"}},
		{code: CodeClustering, options: map[string]string{"clustering.incremental": "true", "bucket": "4", "bucket-key": "a", "deletion-vectors.enabled": "false"}},
		{code: CodeSequenceOrdering, options: map[string]string{"sequence.snapshot-ordering": "true"}},
		{
			code: CodePartitionType, options: map[string]string{"partition.legacy-name": "false"},
			change: func(s *Schema) { s.Fields, s.PartitionKeys = col(types.TimestampLTZType(3)), []string{"c"} },
		},
	} {
		s := &Schema{Version: 3, Fields: []types.Field{{Name: "a", Type: types.IntType()}}, Options: map[string]string{"deletion-vectors.enabled": "true"}}
		for k, v := range c.options {
			s.Options[k] = v
		}
		if c.change != nil {
			c.change(s)
		}
		require.NoError(t, s.index())
		err := Refuse(s, Create)
		require.ErrorIs(t, err, ErrRefused, c.code)
		var r *Refusal
		require.ErrorAs(t, err, &r)
		require.True(t, r.Has(c.code), err)
		require.ErrorContains(t, err, fmt.Sprintf("[%s]", c.code))
		require.False(t, r.Has("nothing"))
		if c.reading {
			require.ErrorIs(t, Refuse(s, Read), ErrRefused, c.code)
		} else {
			require.NoError(t, Refuse(s, Read), c.code)
		}
	}
}

// RL-35 and RL-36: only buckets, clustering and deletion vectors together are refused.
func TestRefuse_AllowsIncrementalClusteringWithBucketsOrVectors(t *testing.T) {
	for _, options := range []map[string]string{
		{"deletion-vectors.enabled": "true"},
		{"deletion-vectors.enabled": "false"},
		{"bucket": "4", "bucket-key": "a", "bucket-append-ordered": "false"},
	} {
		s := &Schema{Version: 3, Fields: []types.Field{{Name: "a", Type: types.IntType()}}, Options: options}
		s.Options["clustering.incremental"], s.Options["clustering.columns"] = "true", "a"
		require.NoError(t, s.index())
		require.NoError(t, Refuse(s, Create), options)
	}
}

func TestRefuse_AllowsExternalPathsThatAreReadOrNotUsed(t *testing.T) {
	for _, options := range []map[string]string{
		{"data-file.external-paths": "s3://x"},
		{"data-file.external-paths": "file:///a/b/, file:/c", "data-file.external-paths.strategy": "round-robin"},
	} {
		s := &Schema{Version: 3, Fields: []types.Field{{Name: "a", Type: types.IntType()}}, Options: options}
		require.NoError(t, s.index())
		require.NoError(t, Refuse(s, Write))
	}
}
