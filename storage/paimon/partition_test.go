package paimon

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/objstore"
	"applier/storage/paimon/binrow"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// testdata/java/paths.txt has the directories that Paimon's own classes make of
// values of every type, in both naming modes.
func TestPartitionPath_IsJavas(t *testing.T) {
	n := 0
	for s := bufio.NewScanner(bytes.NewReader(javaFile(t, "paths.txt"))); s.Scan(); n++ {
		p := strings.Split(s.Text(), "\t")
		require.Len(t, p, 4)
		typ, err := types.ParseType(p[0])
		require.NoError(t, err)
		row, err := hex.DecodeString(p[1])
		require.NoError(t, err)
		values, err := binrow.Decode([]types.Type{typ}, row)
		require.NoError(t, err)
		fields := []types.Field{{Name: "p", Type: typ}}
		for i, legacy := range []bool{true, false} {
			want := strings.TrimSuffix(p[2+i], "/")
			if want == "p=1.17549435E-38" {
				// Java before 19 writes more digits than tell a value apart.
				want = "p=1.1754944E-38"
			}
			got, err := PartitionPath(fields, values, "__DEFAULT_PARTITION__", legacy)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s %s legacy=%t", p[0], p[1], legacy)
		}
	}
	require.Greater(t, n, 190)
}

func TestPartitionPath_OfSeveralColumns(t *testing.T) {
	fields := []types.Field{{Name: "a/b", Type: types.IntType()}, {Name: "ü=", Type: types.StringType()}, {Name: "c", Type: types.StringType()}}
	got, err := PartitionPath(fields, []types.Datum{types.IntDatum(1), types.StringDatum("x/y"), types.Null}, "__NONE__", true)
	require.NoError(t, err)
	require.Equal(t, "a%2Fb=1/ü%3D=x%2Fy/c=__NONE__", got)
	got, err = PartitionPath(nil, nil, "x", true)
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = PartitionPath(fields, nil, "x", true)
	require.ErrorIs(t, err, ErrPartitionValue)
}

func TestPartitionPath_RefusesUnsafeValues(t *testing.T) {
	f := func(typ types.Type, d types.Datum) error {
		_, err := PartitionPath([]types.Field{{Name: "p", Type: typ}}, []types.Datum{d}, "d", true)
		return err
	}
	s := types.StringType()
	require.ErrorIs(t, f(s, types.StringDatum("a\x00b")), ErrPartitionValue)
	require.ErrorIs(t, f(s, types.StringDatum("a\xff")), ErrPartitionValue)
	require.NoError(t, f(s, types.StringDatum(strings.Repeat("x", 253))))
	require.ErrorIs(t, f(s, types.StringDatum(strings.Repeat("x", 254))), ErrPartitionValue)
	require.ErrorIs(t, f(s, types.StringDatum(strings.Repeat("/", 85))), ErrPartitionValue, "escapes count three times")
	require.ErrorIs(t, f(types.BytesType(), types.StringDatum("x")), ErrPartitionValue)
	require.ErrorIs(t, f(types.ArrayType(s), types.Datum{}), ErrPartitionValue)
}

// What the condition lets pass makes a path, what it refuses makes none.
func TestPartitionCondition_AgreesWithThePath(t *testing.T) {
	schema, err := NewSchema([]types.Field{{Name: "id", Type: types.IntType()}, {ID: 1, Name: "p/q", Type: types.StringType()}, {ID: 2, Name: "n", Type: types.IntType()}},
		[]string{"p/q", "n"}, map[string]string{"bucket": "-1"}, nil, 0)
	require.NoError(t, err)
	disk := objstore.NewMem(objstore.MemOptions{})
	require.NoError(t, CreateTable(t.Context(), disk, schema))
	table, err := OpenTable(t.Context(), disk, Read)
	require.NoError(t, err)
	require.Nil(t, table.PartitionCondition(1), "every number makes a name")
	check := table.PartitionCondition(0)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "x", "/", "\x00", "\xff", "日"}).Draw(t, "a") +
			strings.Repeat(rapid.SampledFrom([]string{"x", "/", "é"}).Draw(t, "b"), rapid.IntRange(0, 260).Draw(t, "n"))
		_, want := PartitionPath(schema.PartitionFields()[:1], []types.Datum{types.StringDatum(text)}, "d", true)
		got := check(types.StringDatum(text))
		require.Equal(t, want == nil, got == nil, "%q: %v, %v", text, want, got)
		if got != nil {
			require.ErrorIs(t, got, ErrPartitionValue)
		}
	})
}

// No value climbs out of its directory, and what is escaped can be read back.
func TestPartitionPath_StaysInItsDirectory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("./\\%=: ")))).Draw(t, "value")
		got, err := PartitionPath([]types.Field{{Name: "p", Type: types.StringType()}}, []types.Datum{types.StringDatum(value)}, "dflt", rapid.Bool().Draw(t, "legacy"))
		if err != nil {
			require.ErrorIs(t, err, ErrPartitionValue)
			return
		}
		require.NotContains(t, got, "/")
		require.NoError(t, checkName(got))
		if text, ok := strings.CutPrefix(got, "p="); ok && text != "dflt" {
			require.Equal(t, value, UnescapePathName(text))
		}
	})
}

func TestUnescapePathName_LeavesWhatIsNoEscape(t *testing.T) {
	for in, want := range map[string]string{"a%2Fb": "a/b", "%2f": "/", "%": "%", "%4": "%4", "%zz": "%zz", "a%%41": "a%A", "100%": "100%", "": ""} {
		require.Equal(t, want, UnescapePathName(in), in)
	}
	require.Equal(t, "%00%1F%22%7F", EscapePathName("\x00\x1f\"\x7f"))
}

func TestPaths_OfTheMainBranch(t *testing.T) {
	s, err := NewSchema([]types.Field{{Name: "a", Type: types.IntType()}, {Name: "d", Type: types.DateType()}, {Name: "s", Type: types.StringType()}},
		[]string{"d", "s"}, nil, nil, 0)
	require.NoError(t, err)
	o, err := ParseOptions(map[string]string{"data-file.path-directory": "/data/x/", "partition.default-name": "none"})
	require.NoError(t, err)
	p, err := NewPaths(s, o, MainBranch)
	require.NoError(t, err)
	require.Equal(t, "schema/schema-3", p.Schema(3))
	require.Equal(t, "snapshot/snapshot-12", p.Snapshot(12))
	require.Equal(t, []string{"schema", "snapshot", "tag", "consumer"}, []string{p.SchemaDir(), p.SnapshotDir(), p.TagDir(), p.ConsumerDir()})

	part, err := binrow.Encode(s.PartitionTypes(), []types.Datum{types.IntDatum(20454), types.Null})
	require.NoError(t, err)
	dir, err := p.BucketDir(part, 3)
	require.NoError(t, err)
	require.Equal(t, "data/x/d=20454/s=none/bucket-3", dir)
	dir, err = p.BucketDir(part, -2)
	require.NoError(t, err)
	require.Equal(t, "data/x/d=20454/s=none/bucket-postpone", dir)

	e := manifest.Entry{Partition: part, File: manifest.DataFile{Name: "f.parquet"}}
	key, err := p.Data(&e)
	require.NoError(t, err)
	require.Equal(t, "data/x/d=20454/s=none/bucket-0/f.parquet", key)
	e.File.ExternalPath = new("s3://x/f.parquet")
	_, err = p.Data(&e)
	require.ErrorIs(t, err, ErrExternalPath)
	e = manifest.Entry{Partition: binrow.Empty()}
	_, err = p.Data(&e)
	require.ErrorIs(t, err, binrow.ErrCorrupt)

	x := manifest.IndexEntry{Partition: part, Name: "index-1"}
	key, err = p.Index(&x)
	require.NoError(t, err)
	require.Equal(t, "index/index-1", key)
	o.IndexFileInDataDir = true
	p, err = NewPaths(s, o, "")
	require.NoError(t, err)
	key, err = p.Index(&x)
	require.NoError(t, err)
	require.Equal(t, "data/x/d=20454/s=none/bucket-0/index-1", key)
	x.Partition = nil
	_, err = p.Index(&x)
	require.ErrorIs(t, err, binrow.ErrCorrupt)
	x.ExternalPath = new("x")
	_, err = p.Index(&x)
	require.ErrorIs(t, err, ErrExternalPath)
}

func TestPaths_OfABranch(t *testing.T) {
	p, err := NewPaths(&Schema{}, Options{}, "dev")
	require.NoError(t, err)
	require.Equal(t, "branch/branch-dev/schema/schema-0", p.Schema(0))
	require.Equal(t, "branch/branch-dev/snapshot/snapshot-1", p.Snapshot(1))
	require.Equal(t, "branch/branch-dev/snapshot/LATEST", p.LatestHint())
	require.Equal(t, "branch/branch-dev/snapshot/EARLIEST", p.EarliestHint())
	key, err := p.Tag("v1")
	require.NoError(t, err)
	require.Equal(t, "branch/branch-dev/tag/tag-v1", key)
	key, err = p.Consumer("c")
	require.NoError(t, err)
	require.Equal(t, "branch/branch-dev/consumer/consumer-c", key)
	key, err = p.Manifest("manifest-1")
	require.NoError(t, err)
	require.Equal(t, "manifest/manifest-1", key, "data and manifests of all branches lie together")
	key, err = p.Statistics("stat-1")
	require.NoError(t, err)
	require.Equal(t, "statistics/stat-1", key)
	dir, err := p.BucketDir(binrow.Empty(), 0)
	require.NoError(t, err)
	require.Equal(t, "bucket-0", dir)
}

// Names come out of files, so they must not lead elsewhere.
func TestPaths_RefuseNamesThatAreNoFileNames(t *testing.T) {
	p, err := NewPaths(&Schema{}, Options{}, "")
	require.NoError(t, err)
	for _, name := range []string{"", ".", "..", "a/b", "../x", "/x", `a\b`, "a\x00b", strings.Repeat("x", 256)} {
		_, err := p.Manifest(name)
		require.ErrorIs(t, err, ErrBadName, name)
		_, err = p.Data(&manifest.Entry{Partition: binrow.Empty(), File: manifest.DataFile{Name: name}})
		require.ErrorIs(t, err, ErrBadName, name)
		_, err = p.Index(&manifest.IndexEntry{Name: name})
		require.ErrorIs(t, err, ErrBadName, name)
		if strings.Trim(name, "./") != "" {
			_, err = NewPaths(&Schema{}, Options{}, name)
			require.ErrorIs(t, err, ErrBadName, name)
		}
	}
	_, err = NewPaths(&Schema{}, Options{DataFileDirectory: "a/../b"}, "")
	require.ErrorIs(t, err, ErrBadName)
}

func TestNames_HaveJavasForm(t *testing.T) {
	require.Equal(t, "manifest-u-1", ManifestName("u", 1))
	require.Equal(t, "manifest-list-u-0", ManifestListName("u", 0))
	require.Equal(t, "index-manifest-u-2", IndexManifestName("u", 2))
	require.Equal(t, "index-u-3", IndexName("u", 3))
	o, err := ParseOptions(nil)
	require.NoError(t, err)
	require.Equal(t, "data-u-4.parquet", o.DataName("u", 4))
	o.SuffixWithCompression = true
	require.Equal(t, "data-u-4.zstd.parquet", o.DataName("u", 4))
}
