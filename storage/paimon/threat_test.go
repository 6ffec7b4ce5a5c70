package paimon

import (
	"bytes"
	"context"
	"errors"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"applier/storage/objstore"
	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// hostile are texts that try to be more than a value.
var hostile = []string{
	"../../x", "..", ".", "/", "/etc/passwd", "a/b", `a\b`, "%2e%2e%2f", "..%2f", "%00", "a=b", "a=b/c=d", "{x}", "[x]", "^", "*", "?",
	"\"", "'", "#", "%", ":", "~", "$(x)", "`x`", "a\nb", "a\rb", "\x1b[31m", "\x7f", "p=../../y", "bucket-0", "snapshot-1", "LATEST",
	"\u202e", "\u2028", "\ufeff", "ｄｏｔ．．／", strings.Repeat("../", 60), " ", "", "CON", "nul.", "a.", ".hidden",
}

// tableOf makes a table partitioned by a text in a store in memory.
func tableOf(t require.TestingT) *Table {
	s, err := NewSchema([]types.Field{{Name: "p", Type: types.StringType()}, {Name: "k", Type: types.IntType()}}, []string{"p"},
		map[string]string{OptBucket: "-1", OptDeletionVectors: "true"}, nil, 1)
	require.NoError(t, err)
	b := objstore.NewMem(objstore.MemOptions{})
	require.NoError(t, CreateTable(context.Background(), b, s))
	tab, err := OpenTable(context.Background(), b, Write)
	require.NoError(t, err)
	return tab
}

// No value of a partition column leads out of the folder of its table, and every
// file of the partition lies under a folder whose names any file system takes.
func TestThreat_PartitionPathEscape(t *testing.T) {
	check := func(t require.TestingT, value string) {
		tab := tableOf(t)
		b := types.NewBatch(tab.schema.Fields)
		b.AppendDatums([]types.Datum{types.StringDatum(value), types.IntDatum(1)})
		part, err := tab.PartitionOf(b, 0)
		if err != nil {
			require.ErrorIs(t, err, ErrPartitionValue)
			return
		}
		w, err := tab.NewDataFileWriter(WriterSettings{NewUUID: uuid.NewString})
		require.NoError(t, err)
		out, err := w.Write(part, b, []uint32{0})
		if err != nil {
			require.ErrorIs(t, err, ErrPartitionValue)
			return
		}
		key := out[0].Object.Key
		require.Equal(t, key, path.Clean(key))
		parts := strings.Split(key, "/")
		require.Len(t, parts, 3, "p=VALUE/bucket-0/FILE: %q", key)
		require.True(t, strings.HasPrefix(parts[0], "p="), "%q", key)
		require.Equal(t, "bucket-0", parts[1])
		for _, p := range parts {
			require.LessOrEqual(t, len(p), 255)
			require.NotContains(t, p, "\x00")
		}
		root := "/warehouse/x.db/t"
		require.True(t, strings.HasPrefix(filepath.Join(root, key), root+"/"), "%q", key)
	}
	for _, v := range hostile {
		check(t, v)
	}
	for _, v := range []string{"a\x00b", "\xff\xfe", strings.Repeat("x", 4096), strings.Repeat("/", 100), "\xc0\xae\xc0\xae/"} {
		_, err := PartitionPath([]types.Field{{Name: "p", Type: types.StringType()}}, []types.Datum{types.StringDatum(v)}, "d", false)
		require.ErrorIs(t, err, ErrPartitionValue, "%q", v)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("./\\%=:\x00 {}~"))),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "value"))
	})
}

// NULL, the empty text, blanks and the default name itself share a folder, as in
// Java, but stay what they are: the values come from the manifest, never from the
// folder's name.
func TestThreat_DefaultPartition(t *testing.T) {
	ctx := context.Background()
	tab := tableOf(t)
	values := []types.Datum{types.Null, types.StringDatum(""), types.StringDatum("  "), types.StringDatum("__DEFAULT_PARTITION__")}
	var ch Changes
	folders := map[string]bool{}
	for i, v := range values {
		b := types.NewBatch(tab.schema.Fields)
		b.AppendDatums([]types.Datum{v, types.IntDatum(int64(i))})
		part, err := tab.PartitionOf(b, 0)
		require.NoError(t, err)
		w, err := tab.NewDataFileWriter(WriterSettings{NewUUID: uuid.NewString})
		require.NoError(t, err)
		out, err := w.Write(part, b, []uint32{0})
		require.NoError(t, err)
		require.NoError(t, tab.bucket.PutAll(ctx, []objstore.Object{out[0].Object}))
		folders[path.Dir(out[0].Object.Key)] = true
		ch.Add = append(ch.Add, out[0].Entry)
	}
	require.Equal(t, map[string]bool{"p=__DEFAULT_PARTITION__/bucket-0": true}, folders)
	st, err := tab.State(ctx, nil)
	require.NoError(t, err)
	c, err := tab.BuildCommit(ctx, st, ch, CommitInfo{UUID: "u", User: "x", NewUUID: uuid.NewString})
	require.NoError(t, err)
	require.NoError(t, tab.bucket.PutAll(ctx, c.Objects))
	got := make([]types.Datum, len(values))
	require.NoError(t, tab.Scan(ctx, c.State, ScanOptions{}, func(b *types.Batch) error {
		for i := range b.Len() {
			d := b.Cols[0].Datum(i)
			d.B = bytes.Clone(d.B)
			got[b.Cols[1].Datum(i).I] = d
		}
		return nil
	}))
	for i := range values {
		require.Zero(t, types.CompareDatums(types.StringType(), values[i], got[i]), "%d", i)
	}
}

// Names in metadata files are plain names; nothing that they say makes this program
// read or write outside of the table.
func TestThreat_PoisonedMetadata(t *testing.T) {
	ctx := context.Background()
	tab := tableOf(t)
	p := tab.paths
	part, err := binrow.Encode([]types.Type{types.StringType()}, []types.Datum{types.StringDatum("v")})
	require.NoError(t, err)
	for _, name := range []string{
		"/etc/passwd", "../x", "../../../../etc/passwd", "a/../../x", `..\x`, "..", ".", "", "x\x00y", "file:///etc/passwd", "s3://other/x",
		strings.Repeat("n", 256), "a/b",
	} {
		entry := &manifest.Entry{Partition: part, File: manifest.DataFile{Name: name, Size: 1, Rows: 1}}
		_, err := p.Data(entry)
		require.ErrorIs(t, err, ErrBadName, "%q", name)
		_, err = tab.OpenFile(ctx, entry, []int{1})
		require.ErrorIs(t, err, ErrBadName, "%q", name)
		_, err = tab.CompanionKeys(&manifest.Entry{Partition: part, File: manifest.DataFile{Name: "ok", ExtraFiles: []string{name}}})
		require.ErrorIs(t, err, ErrBadName, "%q", name)
		_, err = p.Manifest(name)
		require.ErrorIs(t, err, ErrBadName, "%q", name)
		_, err = p.Index(&manifest.IndexEntry{Name: name})
		require.ErrorIs(t, err, ErrBadName, "%q", name)
		_, err = p.Tag("../" + name)
		require.ErrorIs(t, err, ErrBadName, "%q", name)
		_, err = p.Consumer("../" + name)
		require.ErrorIs(t, err, ErrBadName, "%q", name)
		_, err = tab.State(ctx, &Snapshot{ID: 1, BaseManifestList: name, DeltaManifestList: name})
		require.ErrorIs(t, err, ErrBadName, "%q", name)
	}
	for _, elsewhere := range []string{"file:///etc/passwd", "/etc/passwd", "s3://bucket/x"} {
		_, err := p.Data(&manifest.Entry{Partition: part, File: manifest.DataFile{Name: "ok", ExternalPath: &elsewhere}})
		require.ErrorIs(t, err, ErrExternalPath)
		_, err = p.Index(&manifest.IndexEntry{Name: "ok", ExternalPath: &elsewhere})
		require.ErrorIs(t, err, ErrExternalPath)
	}
	for _, dir := range []string{"..", "a/../../b", "/../x"} {
		_, err := NewPaths(&Schema{}, Options{DataFileDirectory: dir}, "")
		require.ErrorIs(t, err, ErrBadName, dir)
	}
}

// A metadata file that is small on disk and large in memory is refused.
func TestThreat_SizeLimits_Metadata(t *testing.T) {
	enc, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	bomb := enc.EncodeAll(make([]byte, 256<<20), nil)
	require.Less(t, len(bomb), 1<<20)
	tab := tableOf(t)
	codec, err := manifest.NewCodec(manifest.Options{Compression: "zstd"})
	require.NoError(t, err)
	good, err := codec.EncodeList([]manifest.Meta{{Name: "m", Size: 1}})
	require.NoError(t, err)
	// The container's header ends in a mark of 16 bytes, then comes the count and
	// the size of the only block.
	mark := good[len(good)-16:]
	head := bytes.Index(good, mark) + 16
	file := append(bytes.Clone(good[:head]), 2)
	file = append(appendZigzag(file, int64(len(bomb))), bomb...)
	file = append(file, mark...)
	require.NoError(t, tab.bucket.PutAll(context.Background(), []objstore.Object{{Key: "manifest/bomb", Data: file}}))
	_, err = tab.State(context.Background(), &Snapshot{ID: 1, BaseManifestList: "bomb", DeltaManifestList: "bomb"})
	require.Error(t, err)
	require.True(t, errors.Is(err, manifest.ErrCorrupt) || errors.Is(err, manifest.ErrUnsupported), "%v", err)
}

func appendZigzag(b []byte, n int64) []byte {
	u := uint64(n)<<1 ^ uint64(n>>63)
	for ; u >= 0x80; u >>= 7 {
		b = append(b, byte(u)|0x80)
	}
	return append(b, byte(u))
}
