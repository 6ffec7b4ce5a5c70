package manifest

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/avro"

	"applier/storage/paimon/binrow"
	"applier/storage/types"
)

func newCodec(t testing.TB, compression string) *Codec {
	c, err := NewCodec(Options{Compression: compression})
	require.NoError(t, err)
	return c
}

func intRow(v int64) []byte {
	b, err := binrow.Encode([]types.Type{types.IntType()}, []types.Datum{types.IntDatum(v)})
	if err != nil {
		panic(err)
	}
	return b
}

// plainEntry is an entry as the writer of an append table makes it.
func plainEntry(n int) Entry {
	return Entry{
		Partition: binrow.Empty(), TotalBuckets: UnawareBuckets,
		File: DataFile{
			Name: fmt.Sprintf("data-%08x-2fb1-4cdb-ba1a-2b6e4b7c1d1f-%d.parquet", n*2654435761, n), Size: int64(700 + n), Rows: 3,
			MinKey: binrow.Empty(), MaxKey: binrow.Empty(), KeyStats: Stats{binrow.Empty(), binrow.Empty(), []int64{}},
			ValueStats:  Stats{intRow(int64(n)), intRow(int64(n + 3)), []int64{0}},
			MaxSequence: 2, ExtraFiles: []string{}, CreationTime: new(int64(1767225600123)), DeleteRows: new(int64(0)), Source: new(SourceAppend),
		},
	}
}

// fullEntry has a value in every field.
func fullEntry() Entry {
	e := plainEntry(7)
	e.Kind, e.Bucket, e.TotalBuckets, e.Partition = Delete, 3, 4, intRow(9)
	f := &e.File
	f.KeyStats.NullCounts = nil
	f.ValueStats.NullCounts = []int64{5, UnknownCount, 0}
	f.MinSequence, f.SchemaID, f.Level, f.ExtraFiles = 1, 2, 1, []string{"a.index", "b"}
	f.EmbeddedIndex, f.Source, f.StatsColumns, f.ExternalPath = []byte{1, 2}, new(SourceCompact), []string{"x"}, new("file:/x/y")
	f.FirstRowID, f.WriteColumns, f.WriteColumnSequences = new(int64(77)), []string{"x", "_ROW_ID"}, []int64{1, 2}
	return e
}

func fullMeta() Meta {
	return Meta{
		Name: "manifest-1", Size: 2000, Added: 3, Deleted: 1, PartitionStats: Stats{intRow(1), intRow(2), []int64{0}}, SchemaID: 4,
		MinBucket: new(int32(0)), MaxBucket: new(int32(1)), MinLevel: new(int32(0)), MaxLevel: new(int32(5)),
		MinRowID: new(int64(10)), MaxRowID: new(int64(20)), TotalBuckets: new(int32(2)), ExtraFiles: []string{"s"},
	}
}

func fullIndex() IndexEntry {
	return IndexEntry{
		Partition: intRow(1), Bucket: 1, Type: IndexDeletionVectors, Name: "index-1", Size: 50, Rows: 2,
		Vectors:      []DeletionVector{{"data-1", 1, 22, new(int64(3))}, {"data-2", 31, 18, nil}},
		ExternalPath: new("x"), Global: &GlobalIndex{1, 2, 3, []int32{4}, []byte{5}, []byte{}},
	}
}

func TestCodec_KeepsEveryField(t *testing.T) {
	for _, compression := range []string{"zstd", "snappy", "deflate", "null"} {
		c := newCodec(t, compression)
		entries := []Entry{plainEntry(1), fullEntry()}
		b, err := c.EncodeEntries(entries)
		require.NoError(t, err)
		got, complete, err := c.DecodeEntries(b)
		require.NoError(t, err)
		require.True(t, complete)
		require.Equal(t, entries, got)

		metas := []Meta{{Name: "m", PartitionStats: Stats{binrow.Empty(), binrow.Empty(), []int64{}}}, fullMeta()}
		b, err = c.EncodeList(metas)
		require.NoError(t, err)
		gotMetas, complete, err := c.DecodeList(b)
		require.NoError(t, err)
		require.True(t, complete)
		require.Equal(t, metas, gotMetas)

		indexes := []IndexEntry{{Partition: binrow.Empty(), Type: "HASH", Vectors: []DeletionVector{}}, fullIndex(), {Partition: binrow.Empty()}}
		b, err = c.EncodeIndex(indexes)
		require.NoError(t, err)
		gotIndexes, complete, err := c.DecodeIndex(b)
		require.NoError(t, err)
		require.True(t, complete)
		require.Equal(t, indexes, gotIndexes)
	}
}

func TestCodec_WritesTheExtendedSchemaOnlyForItsFields(t *testing.T) {
	c := newCodec(t, "")
	f := func(b []byte, err error) string {
		require.NoError(t, err)
		return content(t, b).schema
	}
	require.NotContains(t, f(c.EncodeEntries([]Entry{plainEntry(1)})), "_WRITE_COLS_SEQUENCES")
	require.Contains(t, f(c.EncodeEntries([]Entry{plainEntry(1), fullEntry()})), "_WRITE_COLS_SEQUENCES")
	require.NotContains(t, f(c.EncodeList([]Meta{{Name: "m"}})), "_EXTRA_FILES")
	require.Contains(t, f(c.EncodeList([]Meta{fullMeta()})), "_EXTRA_FILES")
}

// The datum that the format description works out byte by byte.
func TestCodec_EncodesTheWorkedExample(t *testing.T) {
	e := plainEntry(0)
	e.File.Name, e.File.Size = "data-u-0.parquet", 700
	e.File.ValueStats.Min, e.File.ValueStats.Max = intRow(1), intRow(3)
	b, err := newCodec(t, "").EncodeEntries([]Entry{e})
	require.NoError(t, err)
	z := "18" + strings.Repeat("00", 12)
	want := "0400" + z + "0001" + "20" + hex.EncodeToString([]byte("data-u-0.parquet")) + "f80a06" + z + z + z + z + "0200" +
		"28" + "0000000100000000000000000100000000000000" + "28" + "0000000100000000000000000300000000000000" + "0202020000" +
		"0004000000" + "02f6a1d5edee66" + "0200" + "00" + "0200" + "00000000"
	require.Equal(t, want, hex.EncodeToString(content(t, b).raw))
}

func TestCodec_WritesNoBlockForNoRecords(t *testing.T) {
	c := newCodec(t, "")
	b, err := c.EncodeList(nil)
	require.NoError(t, err)
	require.Empty(t, content(t, b).raw)
	metas, complete, err := c.DecodeList(b)
	require.NoError(t, err)
	require.True(t, complete)
	require.Empty(t, metas)
}

func TestCodec_SplitsLargeFilesIntoBlocks(t *testing.T) {
	c := newCodec(t, "")
	var entries []Entry
	for i := range 2000 {
		entries = append(entries, plainEntry(i))
	}
	b, err := c.EncodeEntries(entries)
	require.NoError(t, err)
	file, err := openContainer(b)
	require.NoError(t, err)
	blocks := 0
	for {
		n, raw, err := file.block(c.comp)
		require.NoError(t, err)
		if n == 0 {
			break
		}
		blocks++
		require.Less(t, len(raw), blockTarget+1000)
	}
	require.Greater(t, blocks, 4)
	got, _, err := c.DecodeEntries(b)
	require.NoError(t, err)
	require.Equal(t, entries, got)
}

func TestCodec_IsSafeForConcurrentUse(t *testing.T) {
	c := newCodec(t, "")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 20 {
				entries := []Entry{plainEntry(i), plainEntry(k)}
				b, err := c.EncodeEntries(entries)
				if err == nil {
					entries, _, err = c.DecodeEntries(b)
				}
				if err != nil || entries[0].File.Size != int64(700+i) {
					t.Error(err, entries)
				}
				_, _ = c.entries.get(fmt.Sprintf(`{"type":"record","name":"r%d","fields":[]}`, k))
			}
		})
	}
	wg.Wait()
}

func TestNewCodec_RefusesUnknownCompression(t *testing.T) {
	_, err := NewCodec(Options{Compression: "lz5"})
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "lz5")
	c, err := NewCodec(Options{Compression: "none", Level: 19})
	require.NoError(t, err)
	require.Equal(t, codecNull, c.codec)
}

// foreign returns a container of one block with the given schema and record.
func foreign(t testing.TB, schema string, record any) []byte {
	s, err := avro.Parse(schema)
	require.NoError(t, err)
	raw, err := s.Encode(record)
	require.NoError(t, err)
	return rawContainer(t, "null", schema, 1, raw)
}

func rawContainer(t testing.TB, codec, schema string, count int64, raw []byte) []byte {
	comp, err := newCompression(1)
	require.NoError(t, err)
	w := newContainerWriter(comp, codec, schema)
	w.raw, w.count = raw, count
	require.NoError(t, w.flush())
	return w.out
}

// An entry as pypaimon or an old Java would write it, as a generic record.
func genericEntry() map[string]any {
	stats := func() map[string]any {
		return map[string]any{"_MIN_VALUES": intRow(1), "_MAX_VALUES": intRow(3), "_NULL_COUNTS": []any{int64(0), nil}}
	}
	return map[string]any{
		"_VERSION": int32(2), "_KIND": int32(0), "_PARTITION": binrow.Empty(), "_BUCKET": int32(0), "_TOTAL_BUCKETS": int32(-1),
		"_FILE": map[string]any{
			"_FILE_NAME": "data-1.parquet", "_FILE_SIZE": int64(700), "_ROW_COUNT": int64(3), "_MIN_KEY": binrow.Empty(), "_MAX_KEY": binrow.Empty(),
			"_KEY_STATS": stats(), "_VALUE_STATS": stats(), "_MIN_SEQUENCE_NUMBER": int64(0), "_MAX_SEQUENCE_NUMBER": int64(2),
			"_SCHEMA_ID": int64(0), "_LEVEL": int32(0), "_EXTRA_FILES": []any{"x"},
		},
	}
}

const (
	foreignStats = `{"type":"record","name":"SimpleStats","fields":[{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},
		{"name":"_NULL_COUNTS","type":[{"type":"array","items":["long","null"]},"null"]}]}`
	foreignHead = `{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},{"name":"_PARTITION","type":"bytes"},{"name":"_BUCKET","type":"int"},
		{"name":"_TOTAL_BUCKETS","type":"int"}`
	foreignFile = `{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},{"name":"_ROW_COUNT","type":"long"},
		{"name":"_MIN_KEY","type":"bytes"},{"name":"_MAX_KEY","type":"bytes"},{"name":"_KEY_STATS","type":` + foreignStats + `},
		{"name":"_VALUE_STATS","type":"SimpleStats"},{"name":"_MIN_SEQUENCE_NUMBER","type":"long"},{"name":"_MAX_SEQUENCE_NUMBER","type":"long"},
		{"name":"_SCHEMA_ID","type":"int"},{"name":"_LEVEL","type":"long"},{"name":"_EXTRA_FILES","type":{"type":"array","items":"string"}}`
)

func foreignSchema(more string) string {
	return `{"type":"record","name":"ManifestEntry","doc":"other","fields":[` + foreignHead + `,{"name":"_FILE","type":{"type":"record","name":"DataFileMeta","fields":[` +
		foreignFile + more + `]}}]}`
}

func TestDecodeEntries_ReadsOlderAndOtherSchemas(t *testing.T) {
	c := newCodec(t, "")
	for name, schema := range map[string]string{
		"other names, unions the other way round, a named reference, fields missing": foreignSchema(""),
		"top level in a union": `["null",` + foreignSchema("") + `]`,
		"in another order": `{"type":"record","name":"M","fields":[{"name":"_FILE","type":["null",{"type":"record","name":"F","fields":[` + foreignFile +
			`]}]},` + foreignHead + `]}`,
	} {
		b := foreign(t, schema, genericEntry())
		got, complete, err := c.DecodeEntries(b)
		require.NoError(t, err, name)
		require.True(t, complete, name)
		require.Len(t, got, 1)
		f := got[0].File
		require.Equal(t, "data-1.parquet", f.Name)
		require.Equal(t, []int64{0, UnknownCount}, f.ValueStats.NullCounts)
		require.Equal(t, []string{"x"}, f.ExtraFiles)
		require.EqualValues(t, 2, f.MaxSequence)
		require.Nil(t, f.Source)
		require.Nil(t, f.StatsColumns)
		// What was read can be written in our own form.
		ours, err := c.EncodeEntries(got)
		require.NoError(t, err)
		back, _, err := c.DecodeEntries(ours)
		require.NoError(t, err)
		require.Equal(t, got, back)
	}
}

func TestDecodeEntries_ReportsValuesThatWouldBeLost(t *testing.T) {
	c := newCodec(t, "")
	with := func(value any, more, at string) bool {
		e := genericEntry()
		if at == "file" {
			e["_FILE"].(map[string]any)["_NEW"] = value
		}
		_, complete, err := c.DecodeEntries(foreign(t, foreignSchema(more), e))
		require.NoError(t, err)
		return complete
	}
	require.True(t, with(nil, `,{"name":"_NEW","type":["null","long"]}`, "file"), "a new field without a value loses nothing")
	require.False(t, with(int64(1), `,{"name":"_NEW","type":["null","long"]}`, "file"))
	require.False(t, with(map[string]any{"a": []any{int64(1)}}, `,{"name":"_NEW","type":{"type":"map","values":{"type":"array","items":"long"}}}`, "file"))

	// Null where Java has none: readable, but not to be written as something else.
	e := genericEntry()
	e["_FILE"].(map[string]any)["_MIN_KEY"] = nil
	schema := strings.Replace(foreignSchema(""), `{"name":"_MIN_KEY","type":"bytes"}`, `{"name":"_MIN_KEY","type":["null","bytes"]}`, 1)
	got, complete, err := c.DecodeEntries(foreign(t, schema, e))
	require.NoError(t, err)
	require.False(t, complete)
	require.Equal(t, binrow.Empty(), got[0].File.MinKey)

	// The same inside an array of records.
	index := `{"type":"record","name":"I","fields":[{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},{"name":"_PARTITION","type":"bytes"},
		{"name":"_BUCKET","type":"int"},{"name":"_INDEX_TYPE","type":"string"},{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},
		{"name":"_ROW_COUNT","type":"long"},{"name":"_DELETIONS_VECTORS_RANGES","type":["null",{"type":"array","items":{"type":"record","name":"V","fields":[
		{"name":"f0","type":"string"},{"name":"f1","type":"int"},{"name":"f2","type":"int"},{"name":"f3","type":["null","int"]}]}}]}]}`
	record := func(f3 any) map[string]any {
		return map[string]any{
			"_VERSION": int32(1), "_KIND": int32(0), "_PARTITION": binrow.Empty(), "_BUCKET": int32(0), "_INDEX_TYPE": "X",
			"_FILE_NAME": "i", "_FILE_SIZE": int64(1), "_ROW_COUNT": int64(1),
			"_DELETIONS_VECTORS_RANGES": []any{map[string]any{"f0": "d", "f1": int32(1), "f2": int32(2), "f3": f3}},
		}
	}
	for f3, want := range map[any]bool{nil: true, int32(5): false} {
		got, complete, err := c.DecodeIndex(foreign(t, index, record(f3)))
		require.NoError(t, err)
		require.Equal(t, want, complete)
		require.Nil(t, got[0].Vectors[0].Cardinality)
	}
}

func TestDecodeEntries_RefusesOtherSchemas(t *testing.T) {
	c := newCodec(t, "")
	f := func(schema, why string) {
		t.Helper()
		_, _, err := c.DecodeEntries(rawContainer(t, "null", schema, 0, nil))
		require.ErrorIs(t, err, ErrUnsupported)
		require.ErrorContains(t, err, why)
	}
	f(`"long"`, "is long instead of record")
	f(`["null","long","string"]`, "is union instead of record")
	f(`["null"]`, "is union instead of record")
	f(`{"type":"record","name":"r","fields":[]}`, "_VERSION is missing")
	f(strings.Replace(foreignSchema(""), `"_KIND","type":"int"`, `"_KIND","type":"string"`, 1), "._KIND is string instead of int")
	f(strings.Replace(foreignSchema(""), `{"name":"_FILE_SIZE","type":"long"},`, "", 1), "._FILE._FILE_SIZE is missing")
	f(strings.Replace(foreignSchema(""), `"items":"string"`, `"items":"int"`, 1), "._FILE._EXTRA_FILES[] is int")
	f(foreignSchema(`,{"name":"_CREATION_TIME","type":{"type":"long","logicalType":"timestamp-micros"}}`), "timestamp-micros")
	_, _, err := c.DecodeEntries(rawContainer(t, "null", `{"type":`, 0, nil))
	require.ErrorIs(t, err, ErrCorrupt)
	_, _, err = c.DecodeEntries(rawContainer(t, "null", strings.Repeat(" ", maxSchemaText)+`"long"`, 0, nil))
	require.ErrorIs(t, err, ErrUnsupported)
}

// A record that refers to itself must not send the comparison round in circles.
func TestDecodeEntries_SurvivesRecursiveSchemas(t *testing.T) {
	schema := `{"type":"record","name":"R","fields":[` + foreignHead + `,{"name":"_FILE","type":"R"},{"name":"_MORE","type":["null","R"]}]}`
	_, _, err := newCodec(t, "").DecodeEntries(rawContainer(t, "null", schema, 0, nil))
	require.ErrorIs(t, err, ErrUnsupported)
}

func TestDecode_RefusesOtherVersionsAndKinds(t *testing.T) {
	c := newCodec(t, "null")
	f := func(key string, value any, want error) {
		t.Helper()
		e := genericEntry()
		e[key] = value
		_, _, err := c.DecodeEntries(foreign(t, foreignSchema(""), e))
		require.ErrorIs(t, err, want)
	}
	f("_VERSION", int32(3), ErrUnsupported)
	f("_KIND", int32(2), ErrCorrupt)
	f("_KIND", int32(-1), ErrCorrupt)

	b, err := c.EncodeList([]Meta{{Name: "m"}})
	require.NoError(t, err)
	_, _, err = c.DecodeList(patchRecord(t, b, 0, 6))
	require.ErrorIs(t, err, ErrUnsupported)
	b, err = c.EncodeIndex([]IndexEntry{{Name: "i", Vectors: []DeletionVector{{}}}})
	require.NoError(t, err)
	_, _, err = c.DecodeIndex(patchRecord(t, b, 0, 4))
	require.ErrorIs(t, err, ErrUnsupported)
	_, _, err = c.DecodeIndex(patchRecord(t, b, 1, 8))
	require.ErrorIs(t, err, ErrCorrupt)
	e := genericEntry()
	e["_FILE"].(map[string]any)["_LEVEL"] = int64(math.MaxInt32 + 1)
	_, _, err = c.DecodeEntries(foreign(t, foreignSchema(""), e))
	require.ErrorIs(t, err, ErrCorrupt, "a level beyond 32 bits")
}

// patchRecord changes a byte of the first record of an uncompressed file.
func patchRecord(t *testing.T, b []byte, at int, v byte) []byte {
	raw := content(t, b).raw
	i := strings.Index(string(b), string(raw))
	require.Positive(t, i)
	b = append([]byte{}, b...)
	b[i+at] = v
	return b
}

func TestDecode_RefusesNullVectors(t *testing.T) {
	c := newCodec(t, "null")
	b, err := c.EncodeIndex([]IndexEntry{{Name: "i", Partition: binrow.Empty(), Vectors: []DeletionVector{{DataFile: "d"}}}})
	require.NoError(t, err)
	raw := content(t, b).raw
	// …, union 1, block of 1, union 1 + vector, end: make it union 0.
	i := strings.Index(string(raw), "\x02d\x00\x00\x00")
	require.Positive(t, i)
	raw = append(append(append([]byte{}, raw[:i-1]...), 0), raw[i+5:]...)
	_, _, err = c.DecodeIndex(rawContainer(t, "null", c.index[0].text, 1, raw))
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "null")
}

func TestSchemaCache_IsBounded(t *testing.T) {
	c := newCodec(t, "")
	for i := range 3 * maxCachedSchemas {
		_, err := c.entries.get(strings.Replace(foreignSchema(""), "other", fmt.Sprint(i), 1))
		require.NoError(t, err)
		require.LessOrEqual(t, len(c.entries.byStr), maxCachedSchemas)
	}
	b, err := c.EncodeEntries([]Entry{plainEntry(1)})
	require.NoError(t, err)
	_, complete, err := c.DecodeEntries(b)
	require.NoError(t, err)
	require.True(t, complete)
}

func TestDecode_RefusesDamagedContainers(t *testing.T) {
	c := newCodec(t, "snappy")
	b, err := c.EncodeEntries([]Entry{plainEntry(1), plainEntry(2)})
	require.NoError(t, err)
	header := len(b) - len(content(t, b).raw)
	for i := range b {
		if i == headerEnd(t, b) {
			continue // a file without blocks is a valid one
		}
		_, _, err := c.DecodeEntries(b[:i])
		require.Error(t, err, "cut at %d of %d", i, len(b))
	}
	for i := headerEnd(t, b) - syncLen; i < len(b); i++ {
		broken := append([]byte{}, b...)
		broken[i] ^= 0x20
		_, _, err := c.DecodeEntries(broken)
		require.Error(t, err, "byte %d of %d (header %d)", i, len(b), header)
	}
	for _, codec := range []string{"bzip2", "xz", ""} {
		_, _, err = c.DecodeEntries(rename(t, codec))
		require.ErrorIs(t, err, ErrUnsupported, codec)
	}
}

// rename returns a container whose header names another codec.
func rename(t *testing.T, codec string) []byte {
	text, err := schemaText("manifest")
	require.NoError(t, err)
	comp, err := newCompression(1)
	require.NoError(t, err)
	w := newContainerWriter(comp, codec, text)
	w.out = append(w.out, 2, 2, 0)
	w.out = append(w.out, w.sync[:]...)
	return w.out
}

func headerEnd(t testing.TB, b []byte) int {
	c, err := openContainer(b)
	require.NoError(t, err)
	return len(b) - len(c.rest.b)
}

func TestDecode_RefusesMalformedBlocks(t *testing.T) {
	c := newCodec(t, "null")
	text := c.entry[0].text
	b, err := c.EncodeEntries([]Entry{plainEntry(1)})
	require.NoError(t, err)
	raw := content(t, b).raw
	f := func(count int64, raw []byte) {
		t.Helper()
		_, _, err := c.DecodeEntries(rawContainer(t, "null", text, count, raw))
		require.ErrorIs(t, err, ErrCorrupt)
	}
	f(2, raw)              // a record missing
	f(1<<40, raw)          // a count that cannot be
	f(-1, raw)             // no count
	f(1, append(raw, 0))   // more than the record
	f(1, raw[:len(raw)-1]) // less
	_, _, err = c.DecodeEntries(nil)
	require.ErrorIs(t, err, ErrCorrupt)
	_, _, err = c.DecodeEntries([]byte("Obj\x01"))
	require.ErrorIs(t, err, ErrCorrupt)
	_, _, err = c.DecodeEntries([]byte("Obj\x01\x00" + strings.Repeat("x", syncLen)))
	require.ErrorIs(t, err, ErrCorrupt, "no schema")
	_, _, err = c.DecodeEntries(append([]byte("Obj\x01"), binary.AppendVarint(nil, math.MinInt64)...))
	require.ErrorIs(t, err, ErrCorrupt, "key count")
	_, _, err = c.DecodeEntries(append([]byte("Obj\x01"), binary.AppendVarint(nil, 1<<30)...))
	require.ErrorIs(t, err, ErrCorrupt, "key count")
}

func TestDecode_ReadsHeadersInBlocksWithSizes(t *testing.T) {
	c := newCodec(t, "null")
	b, err := c.EncodeEntries([]Entry{plainEntry(1)})
	require.NoError(t, err)
	// Count -2 and the size of the map in bytes instead of count 2.
	end := headerEnd(t, b) - syncLen
	var alt []byte
	alt = append(alt, magic...)
	alt = binary.AppendVarint(alt, -2)
	alt = binary.AppendVarint(alt, int64(end-1-5))
	alt = append(alt, b[5:]...)
	got, _, err := c.DecodeEntries(alt)
	require.NoError(t, err)
	require.Equal(t, []Entry{plainEntry(1)}, got)
}

// A few bytes must not decompress to gigabytes.
func TestDecode_BoundsDecompression(t *testing.T) {
	c := newCodec(t, "")
	bomb := make([]byte, 6<<20)
	for _, codec := range []string{codecZstd, codecDeflate} {
		b := rawContainer(t, codec, c.entry[0].text, 1, bomb)
		require.Less(t, len(b), 12<<10)
		_, _, err := c.DecodeEntries(b)
		require.ErrorIs(t, err, ErrCorrupt, codec)
	}
	// Snappy says its size ahead.
	_, err := c.comp.decompress(codecSnappy, append(binary.AppendUvarint(nil, 1<<31), 0, 0, 0, 0), 1<<20)
	require.ErrorIs(t, err, ErrCorrupt)
	// What is allowed still is read in growing steps.
	raw, err := c.comp.compress(nil, codecZstd, bomb[:900_000])
	require.NoError(t, err)
	got, err := c.comp.decompress(codecZstd, raw, 1<<20)
	require.NoError(t, err)
	require.Len(t, got, 900_000)
	_, err = c.comp.decompress(codecNull, bomb, 1<<20)
	require.ErrorIs(t, err, ErrCorrupt)
}

// Many blocks of few bytes each must not add up either, nor records of few bytes.
func TestDecode_BoundsWhatAFileUnfoldsTo(t *testing.T) {
	c := newCodec(t, "")
	b, err := c.EncodeEntries([]Entry{plainEntry(1)})
	require.NoError(t, err)
	one := content(t, b).raw
	w := newContainerWriter(c.comp, codecZstd, c.entry[0].text)
	n := int64(0)
	for range 25 {
		for len(w.raw) < 250_000 {
			w.raw = append(w.raw, one...)
			w.count++
			n++
		}
		require.NoError(t, w.flush())
	}
	require.Less(t, len(w.out), 20_000)
	require.Greater(t, n, int64(30_000))
	_, _, err = c.DecodeEntries(w.out)
	require.ErrorIs(t, err, ErrCorrupt)

	// What makes sense is read: 15,000 files of one writer, alike but for a number.
	var entries []Entry
	for i := range 15_000 {
		e := plainEntry(1)
		e.File.Name = fmt.Sprintf("data-2fb1-4cdb-%d.parquet", i)
		entries = append(entries, e)
	}
	b, err = c.EncodeEntries(entries)
	require.NoError(t, err)
	got, _, err := c.DecodeEntries(b)
	require.NoError(t, err)
	require.Len(t, got, len(entries))
}

func FuzzDecode(f *testing.F) {
	c := newCodec(f, "null")
	for _, z := range []*Codec{c, newCodec(f, "zstd")} {
		for i := range 3 {
			b, err := []func() ([]byte, error){
				func() ([]byte, error) { return z.EncodeEntries([]Entry{plainEntry(1), fullEntry()}) },
				func() ([]byte, error) { return z.EncodeList([]Meta{fullMeta(), {Name: "x"}}) },
				func() ([]byte, error) { return z.EncodeIndex([]IndexEntry{fullIndex(), {Name: "x"}}) },
			}[i]()
			require.NoError(f, err)
			f.Add(byte(i), b)
		}
	}
	f.Add(byte(0), foreign(f, foreignSchema(`,{"name":"_NEW","type":["null",{"type":"array","items":"null"}]}`), genericEntry()))
	f.Fuzz(func(t *testing.T, kind byte, b []byte) {
		switch kind % 3 {
		case 0:
			fuzzOne(t, b, c.DecodeEntries, c.EncodeEntries)
		case 1:
			fuzzOne(t, b, c.DecodeList, c.EncodeList)
		case 2:
			fuzzOne(t, b, c.DecodeIndex, c.EncodeIndex)
		}
	})
}

func fuzzOne[P any](t *testing.T, b []byte, decode func([]byte) ([]P, bool, error), encode func([]P) ([]byte, error)) {
	records, complete, err := decode(b)
	if err != nil {
		return
	}
	again, err := encode(records)
	require.NoError(t, err)
	back, _, err := decode(again)
	require.NoError(t, err)
	if complete {
		require.Equal(t, records, back)
	}
}

// FuzzRecords mutates only records, so that the fuzzer need not find the framing.
func FuzzRecords(f *testing.F) {
	c := newCodec(f, "null")
	b, err := c.EncodeEntries([]Entry{plainEntry(1), fullEntry()})
	require.NoError(f, err)
	f.Add(content(f, b).raw, uint8(2))
	f.Fuzz(func(t *testing.T, raw []byte, count uint8) {
		entries, _, err := c.DecodeEntries(rawContainer(t, "null", c.entry[1].text, int64(count), raw))
		if err != nil {
			return
		}
		again, err := c.EncodeEntries(entries)
		require.NoError(t, err)
		back, _, err := c.DecodeEntries(again)
		require.NoError(t, err)
		require.Equal(t, entries, back)
	})
}

func benchEntries(n int) []Entry {
	cols := make([]types.Type, 8)
	row := make([]types.Datum, 8)
	for i := range cols {
		cols[i], row[i] = types.BigIntType(), types.IntDatum(int64(i)*1_000_003)
	}
	stats, err := binrow.Encode(cols, row)
	if err != nil {
		panic(err)
	}
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = plainEntry(i)
		entries[i].File.ValueStats = Stats{stats, stats, make([]int64, 8)}
	}
	return entries
}

func BenchmarkEncodeEntries(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, entries := newCodec(b, ""), benchEntries(n)
			b.ReportAllocs()
			for b.Loop() {
				out, err := c.EncodeEntries(entries)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(out)))
			}
		})
	}
}

func BenchmarkDecodeEntries(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newCodec(b, "")
			file, err := c.EncodeEntries(benchEntries(n))
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := c.DecodeEntries(file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// testdata/pypaimon was written by fastavro with the schemas of pypaimon 2.1.0:
// other record names, a manifest list with the fields of Paimon 2.1, all codecs.
func TestCodec_ReadsWhatPypaimonWrites(t *testing.T) {
	c := newCodec(t, "")
	for _, codec := range []string{codecZstd, codecSnappy, codecDeflate, codecNull} {
		read := func(kind string) []byte {
			b, err := os.ReadFile("testdata/pypaimon/" + kind + "-" + codec)
			require.NoError(t, err)
			return b
		}
		entries, complete, err := c.DecodeEntries(read("manifest"))
		require.NoError(t, err, codec)
		require.True(t, complete)
		require.Len(t, entries, 3)
		want := plainEntry(1)
		want.Kind, want.File.Name, want.File.StatsColumns = Delete, "data-1.parquet", []string{"a"}
		want.File.ValueStats = Stats{intRow(1), intRow(3), []int64{0}}
		require.Equal(t, want, entries[1])

		metas, complete, err := c.DecodeList(read("list"))
		require.NoError(t, err, codec)
		require.True(t, complete)
		none := Stats{binrow.Empty(), binrow.Empty(), []int64{}}
		require.Equal(t, []Meta{
			{Name: "manifest-1", Size: 9, Added: 2, Deleted: 1, PartitionStats: none, MinRowID: new(int64(5)), MaxRowID: new(int64(7))},
			{
				Name: "manifest-1", Size: 9, Added: 2, Deleted: 1, PartitionStats: none, MinRowID: new(int64(5)), MaxRowID: new(int64(7)),
				TotalBuckets: new(int32(4)), ExtraFiles: []string{"s.sidecar"},
			},
		}, metas)
		again, err := c.EncodeList(metas)
		require.NoError(t, err)
		back, complete, err := c.DecodeList(again)
		require.NoError(t, err)
		require.True(t, complete)
		require.Equal(t, metas, back, "nothing of pypaimon's is lost by our lists")

		indexes, complete, err := c.DecodeIndex(read("index"))
		require.NoError(t, err, codec)
		require.True(t, complete)
		require.Equal(t, []IndexEntry{{
			Partition: binrow.Empty(), Type: IndexDeletionVectors, Name: "index-1", Size: 40, Rows: 1,
			Vectors: []DeletionVector{{"data-0.parquet", 1, 22, new(int64(1))}},
		}}, indexes)
	}
}
