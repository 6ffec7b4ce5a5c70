package paimon

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/objstore"
)

const minimalSnapshot = `{"id":7,"schemaId":2,"baseManifestList":"b","deltaManifestList":"d","commitUser":"u","commitIdentifier":5,
	"commitKind":"APPEND","timeMillis":9,"totalRecordCount":10,"deltaRecordCount":-1}`

func TestParseSnapshot_ReadsAndRewritesJavasFiles(t *testing.T) {
	for _, name := range []string{"snapshot-all.json", "snapshot-odd.json"} {
		file := javaFile(t, name)
		s, err := ParseSnapshot(file)
		require.NoError(t, err)
		again, err := s.Encode()
		require.NoError(t, err)
		require.Equal(t, string(file), string(again))
		require.Empty(t, s.extra)
	}
	s, err := ParseSnapshot(javaFile(t, "snapshot-all.json"))
	require.NoError(t, err)
	require.Equal(t, &Snapshot{
		Version: 3, ID: 7, SchemaID: 2, BaseManifestList: "manifest-list-b", BaseManifestListSize: new(int64(980)), DeltaManifestList: "manifest-list-d",
		DeltaManifestListSize: new(int64(1012)), ChangelogManifestList: new("manifest-list-c"), ChangelogManifestListSize: new(int64(12)),
		IndexManifest: new("index-manifest-i"), CommitUser: "u", CommitIdentifier: BatchCommitIdentifier, CommitKind: CommitOverwrite,
		TimeMillis: 1767225600000, TotalRecordCount: 100, DeltaRecordCount: -3, ChangelogRecordCount: new(int64(4)), Watermark: new(int64(math.MinInt64)),
		Statistics: new("stat-s"), Properties: map[string]string{"a": "1"}, NextRowID: new(int64(100)), propertyOrder: []string{"a"},
	}, s)
}

func TestSnapshot_EncodesEveryMemberInJavasOrder(t *testing.T) {
	s := Snapshot{
		Version: 3, UUID: "w", ID: 1, BaseManifestList: "b", DeltaManifestList: "d", CommitUser: "u", WriterVersion: new("v"), CommitKind: CommitAnalyze,
		Properties: map[string]string{"z": "1", "a": "2"}, Operation: OperationMerge,
	}
	b, err := s.Encode()
	require.NoError(t, err)
	require.Equal(t, `{
  "version" : 3,
  "uuid" : "w",
  "id" : 1,
  "schemaId" : 0,
  "baseManifestList" : "b",
  "deltaManifestList" : "d",
  "commitUser" : "u",
  "writerVersion" : "v",
  "commitIdentifier" : 0,
  "commitKind" : "ANALYZE",
  "timeMillis" : 0,
  "totalRecordCount" : 0,
  "deltaRecordCount" : 0,
  "properties" : {
    "a" : "2",
    "z" : "1"
  },
  "operation" : "MERGE"
}`, string(b))
	back, err := ParseSnapshot(b)
	require.NoError(t, err)
	require.Equal(t, s.Properties, back.Properties)
	require.Equal(t, s.Operation, back.Operation)
}

func TestParseSnapshot_AcceptsTheMinimumAndKeepsTheUnknown(t *testing.T) {
	s, err := ParseSnapshot([]byte(minimalSnapshot))
	require.NoError(t, err)
	require.Equal(t, 1, s.Version)
	require.Nil(t, s.IndexManifest)
	s, err = ParseSnapshot([]byte(strings.Replace(minimalSnapshot, `,"totalRecordCount":10,"deltaRecordCount":-1`, "", 1)))
	require.NoError(t, err)
	require.Zero(t, s.TotalRecordCount)

	s, err = ParseSnapshot([]byte(strings.Replace(minimalSnapshot, `"id":7`, `"id":7,"operation":"LEVITATE","new":{"k":[1]},"other":null,"properties":{}`, 1)))
	require.NoError(t, err)
	require.Equal(t, Operation("LEVITATE"), s.Operation)
	b, err := s.Encode()
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(b), "  \"operation\" : \"LEVITATE\",\n  \"new\" : {\n    \"k\" : [ 1 ]\n  },\n  \"other\" : null\n}"), string(b))
	require.NotContains(t, string(b), "properties")
}

func TestParseSnapshot_RefusesBrokenAndNewerFiles(t *testing.T) {
	f := func(want error, old, new string) {
		t.Helper()
		in := strings.Replace(minimalSnapshot, old, new, 1)
		require.NotEqual(t, minimalSnapshot, in)
		_, err := ParseSnapshot([]byte(in))
		require.ErrorIs(t, err, want)
		_, err = ParseTag([]byte(in))
		require.ErrorIs(t, err, want)
	}
	for _, m := range []string{
		`"id":7,`, `"schemaId":2,`, `"baseManifestList":"b",`, `"deltaManifestList":"d",`, `"commitUser":"u",`, `"commitIdentifier":5,`,
		`"commitKind":"APPEND",`, `"timeMillis":9,`,
	} {
		f(ErrCorrupt, m, "")
	}
	f(ErrCorrupt, `"id":7`, `"id":0`)
	f(ErrCorrupt, `"id":7`, `"id":"seven"`)
	f(ErrCorrupt, `"id":7`, `"id":7,"properties":{"a":1}`)
	f(ErrCorrupt, `-1}`, `-1`)
	f(ErrNewer, `"id":7`, `"version":4,"id":7`)
	f(ErrNewer, `"APPEND"`, `"PREPEND"`)
}

func TestTag_ReadsAndRewritesJavasFiles(t *testing.T) {
	for name, want := range map[string]struct {
		at       time.Time
		retained time.Duration
	}{
		"tag-0-0.json":      {time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), 5 * time.Second},
		"tag-5-0.json":      {time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 5 * time.Second},
		"tag-0-7.json":      {time.Date(2026, 12, 31, 0, 0, 0, 7, time.UTC), 5*time.Second + 7},
		"tag-negative.json": {time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), -1500 * time.Millisecond},
	} {
		file := javaFile(t, name)
		tag, err := ParseTag(file)
		require.NoError(t, err, name)
		require.Equal(t, want.retained, *tag.Retained)
		require.EqualValues(t, 7, tag.ID)
		again, err := tag.Encode()
		require.NoError(t, err)
		if name == "tag-negative.json" {
			// The zero time stands for an absent one; no tag is as old as that.
			require.True(t, tag.CreateTime.IsZero())
			continue
		}
		require.Equal(t, want.at, tag.CreateTime)
		require.Equal(t, string(file), string(again))
	}
}

func TestParseTag_RefusesBrokenTimes(t *testing.T) {
	for _, m := range []string{
		`"tagCreateTime":[2026,1]`, `"tagCreateTime":[2026,13,1]`, `"tagCreateTime":[2026,2,30]`, `"tagCreateTime":"2026-01-01"`,
		`"tagCreateTime":[1,2,3,4,5,6,7,8]`, `"tagTimeRetained":"x"`, `"tagTimeRetained":1e3`, `"tagTimeRetained":1.0000000001`,
	} {
		_, err := ParseTag([]byte(strings.Replace(minimalSnapshot, `"id":7`, `"id":7,`+m, 1)))
		require.ErrorIs(t, err, ErrCorrupt, m)
	}
	tag, err := ParseTag([]byte(strings.Replace(minimalSnapshot, `"id":7`, `"id":7,"tagCreateTime":null,"tagTimeRetained":null,"more":1`, 1)))
	require.NoError(t, err)
	require.Nil(t, tag.Retained)
	require.Len(t, tag.extra, 1)
	tag, err = ParseTag([]byte(strings.Replace(minimalSnapshot, `"id":7`, `"id":7,"tagTimeRetained":99999999999999999999`, 1)))
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt64, *tag.Retained)
}

func TestSeconds_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(-math.MaxInt64+int64(time.Second), math.MaxInt64-int64(time.Second)).Draw(t, "d"))
		back, err := parseSeconds(appendSeconds(nil, d))
		require.NoError(t, err)
		require.Equal(t, d, *back)
	})
}

func TestTags_AreCreatedOnceListedAndRead(t *testing.T) {
	b, p := objstore.NewMem(objstore.MemOptions{}), Paths{}
	s, err := ParseSnapshot([]byte(minimalSnapshot))
	require.NoError(t, err)
	tag := &Tag{Snapshot: *s, CreateTime: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Retained: new(time.Hour)}
	names, err := ListTags(t.Context(), b, p)
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, CreateTag(t.Context(), b, p, "z", tag))
	require.NoError(t, CreateTag(t.Context(), b, p, "a b", tag))
	require.ErrorIs(t, CreateTag(t.Context(), b, p, "z", tag), objstore.ErrExist)
	require.ErrorIs(t, CreateTag(t.Context(), b, p, "a/b", tag), ErrBadName)
	put(t, b, "tag/other", "x")
	put(t, b, "tag/tag-", "x")
	put(t, b, "tag/tag-folder/x", "x")
	names, err = ListTags(t.Context(), b, p)
	require.NoError(t, err)
	require.Equal(t, []string{"a b", "z"}, names)
	got, err := ReadTag(t.Context(), b, p, "a b")
	require.NoError(t, err)
	require.Equal(t, tag.CreateTime, got.CreateTime)
	require.Equal(t, time.Hour, *got.Retained)
	_, err = ReadTag(t.Context(), b, p, "none")
	require.ErrorIs(t, err, objstore.ErrNotExist)
	_, err = ReadTag(t.Context(), b, p, "..")
	require.NotErrorIs(t, err, ErrCorrupt)
	put(t, b, "tag/tag-broken", "{")
	_, err = ReadTag(t.Context(), b, p, "broken")
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestConsumers_AreWrittenListedAndDeleted(t *testing.T) {
	require.Equal(t, string(javaFile(t, "consumer.json")), string(EncodeConsumer(42)))
	b, p := objstore.NewMem(objstore.MemOptions{}), Paths{}
	require.NoError(t, WriteConsumer(t.Context(), b, p, "b", 5))
	require.NoError(t, WriteConsumer(t.Context(), b, p, "a", 3))
	require.NoError(t, WriteConsumer(t.Context(), b, p, "b", 6))
	require.ErrorIs(t, WriteConsumer(t.Context(), b, p, "x/y", 6), ErrBadName)
	cs, err := ListConsumers(t.Context(), b, p)
	require.NoError(t, err)
	require.Len(t, cs, 2)
	require.Equal(t, "a", cs[0].ID)
	require.EqualValues(t, 3, cs[0].Next)
	require.EqualValues(t, 6, cs[1].Next)
	require.NoError(t, DeleteConsumer(t.Context(), b, p, "a"))
	require.NoError(t, DeleteConsumer(t.Context(), b, p, "a"))
	require.ErrorIs(t, DeleteConsumer(t.Context(), b, p, ""), nil)
	_, err = ReadConsumer(t.Context(), b, p, "a")
	require.ErrorIs(t, err, objstore.ErrNotExist)
	_, err = ReadConsumer(t.Context(), b, p, "x/y")
	require.ErrorIs(t, err, ErrBadName)
	put(t, b, "consumer/consumer-bad", `{"nextSnapshot":"x"}`)
	_, err = ListConsumers(t.Context(), b, p)
	require.ErrorIs(t, err, ErrCorrupt, "expiry must not run over it")
	_, err = ParseConsumer([]byte("{}"))
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = ParseConsumer([]byte("7"))
	require.ErrorIs(t, err, ErrCorrupt)
}
