package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
	"pgregory.net/rapid"

	"applier/storage/paimon/binrow"
)

// The library's own container reader and writer, which know nothing of ours.

func libraryRead(t require.TestingT, b []byte) (schema string, records []map[string]any) {
	r, err := ocf.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	defer r.Close()
	for {
		var v map[string]any
		err := r.Decode(&v)
		if errors.Is(err, io.EOF) {
			return r.Schema().String(), records
		}
		require.NoError(t, err)
		records = append(records, v)
	}
}

func TestEncode_IsReadByTheLibrarysOwnReader(t *testing.T) {
	for _, compression := range []string{"zstd", "snappy", "deflate", "null"} {
		c := newCodec(t, compression)
		var entries []Entry
		for i := range 700 {
			entries = append(entries, plainEntry(i))
		}
		b, err := c.EncodeEntries(entries)
		require.NoError(t, err)
		schema, records := libraryRead(t, b)
		require.Equal(t, c.entry[0].text, schema)
		require.Len(t, records, len(entries))
		for i, r := range records {
			f := r["_FILE"].(map[string]any)
			require.Equal(t, entries[i].File.Name, f["_FILE_NAME"])
			require.Equal(t, entries[i].File.Size, f["_FILE_SIZE"])
			require.Equal(t, entries[i].File.ValueStats.Max, f["_VALUE_STATS"].(map[string]any)["_MAX_VALUES"])
			require.Nil(t, f["_WRITE_COLS"])
			require.EqualValues(t, 0, f["_FILE_SOURCE"])
		}
	}
}

func TestDecode_ReadsTheLibrarysOwnFiles(t *testing.T) {
	c := newCodec(t, "")
	for name, codec := range map[string]ocf.Codec{
		codecNull: nil, codecSnappy: ocf.SnappyCodec(), codecDeflate: ocf.DeflateCodec(9), codecZstd: ocf.MustZstdCodec(nil, nil),
	} {
		var buf bytes.Buffer
		opts := []ocf.WriterOpt{ocf.WithBlockCount(7), ocf.WithMetadata(map[string][]byte{"written.by": []byte("somebody")})}
		if codec != nil {
			opts = append(opts, ocf.WithCodec(codec))
		}
		w, err := ocf.NewWriter(&buf, avro.MustParse(foreignSchema("")), opts...)
		require.NoError(t, err)
		for i := range 30 {
			e := genericEntry()
			e["_BUCKET"] = int32(i)
			require.NoError(t, w.Encode(e))
		}
		require.NoError(t, w.Close())
		got, complete, err := c.DecodeEntries(buf.Bytes())
		require.NoError(t, err, name)
		require.True(t, complete)
		require.Len(t, got, 30)
		for i, e := range got {
			require.EqualValues(t, i, e.Bucket)
		}
	}
}

// What is in Java's files reads the same through the library and through us.
func TestDecode_AgreesWithTheLibraryOnGoldenFiles(t *testing.T) {
	c := newCodec(t, "")
	n := 0
	goldenTables(t, func(name string, d dump, dir string) {
		for file := range d.Manifests {
			b, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			_, records := libraryRead(t, b)
			entries, _, err := c.DecodeEntries(b)
			require.NoError(t, err)
			require.Len(t, records, len(entries))
			for i, r := range records {
				f := r["_FILE"].(map[string]any)
				require.Equal(t, f["_FILE_NAME"], entries[i].File.Name)
				require.Equal(t, f["_MIN_SEQUENCE_NUMBER"], entries[i].File.MinSequence)
				require.Equal(t, r["_PARTITION"], entries[i].Partition)
				require.False(t, hasUnknown(c.entries.known, r))
				n++
			}
		}
	})
	require.Greater(t, n, 150)
}

// maybe draws a pointer that may be nil.
func maybe[T any](g *rapid.Generator[T]) *rapid.Generator[*T] {
	return rapid.Ptr(g, true)
}

// nilable draws a list that may be nil or empty, which are not the same.
func nilable[T any](t *rapid.T, label string, g *rapid.Generator[T]) []T {
	if rapid.Bool().Draw(t, label+" null") {
		return nil
	}
	return append([]T{}, rapid.SliceOfN(g, 0, 4).Draw(t, label)...)
}

func statsGen(t *rapid.T) Stats {
	row := rapid.Map(rapid.Int64Range(-1000, 1000), intRow)
	return Stats{row.Draw(t, "min"), row.Draw(t, "max"), nilable(t, "nulls", rapid.Int64Range(-1, 1<<40))}
}

func entryGen(extended bool) *rapid.Generator[Entry] {
	name, text := rapid.StringN(1, 40, -1), rapid.String()
	return rapid.Custom(func(t *rapid.T) Entry {
		e := Entry{
			Kind: Kind(rapid.IntRange(0, 1).Draw(t, "kind")), Partition: intRow(rapid.Int64Range(0, 9).Draw(t, "partition")),
			Bucket: rapid.Int32().Draw(t, "bucket"), TotalBuckets: rapid.Int32().Draw(t, "total"),
			File: DataFile{
				Name: name.Draw(t, "name"), Size: rapid.Int64().Draw(t, "size"), Rows: rapid.Int64().Draw(t, "rows"),
				MinKey: binrow.Empty(), MaxKey: intRow(1), KeyStats: statsGen(t), ValueStats: statsGen(t),
				MinSequence: rapid.Int64().Draw(t, "min seq"), MaxSequence: rapid.Int64().Draw(t, "max seq"), SchemaID: rapid.Int64().Draw(t, "schema"),
				Level: rapid.Int32().Draw(t, "level"), ExtraFiles: append([]string{}, rapid.SliceOfN(text, 0, 3).Draw(t, "extra")...),
				CreationTime: maybe(rapid.Int64()).Draw(t, "created"), DeleteRows: maybe(rapid.Int64()).Draw(t, "deleted"),
				EmbeddedIndex: nilable(t, "embedded", rapid.Byte()), Source: maybe(rapid.Int32()).Draw(t, "source"),
				StatsColumns: nilable(t, "stats columns", text), ExternalPath: maybe(text).Draw(t, "external"),
				FirstRowID: maybe(rapid.Int64()).Draw(t, "row id"), WriteColumns: nilable(t, "write columns", text),
			},
		}
		if extended {
			e.File.WriteColumnSequences = nilable(t, "sequences", rapid.Int64())
		}
		return e
	})
}

func TestCodec_RoundTripsAnyEntries(t *testing.T) {
	codecs := []*Codec{newCodec(t, "zstd"), newCodec(t, "null"), newCodec(t, "snappy")}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(codecs).Draw(t, "codec")
		entries := rapid.SliceOfN(entryGen(rapid.Bool().Draw(t, "extended")), 0, 6).Draw(t, "entries")
		b, err := c.EncodeEntries(entries)
		require.NoError(t, err)
		got, complete, err := c.DecodeEntries(b)
		require.NoError(t, err)
		require.True(t, complete)
		require.Equal(t, len(entries), len(got))
		for i := range entries {
			require.Equal(t, entries[i], got[i])
			require.Equal(t, entries[i].ID(), got[i].ID())
		}
	})
}

func TestCodec_RoundTripsAnyListsAndIndexes(t *testing.T) {
	c := newCodec(t, "")
	rapid.Check(t, func(t *rapid.T) {
		i32, i64 := maybe(rapid.Int32()), maybe(rapid.Int64())
		metas := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Meta {
			return Meta{
				Name: rapid.String().Draw(t, "name"), Size: rapid.Int64().Draw(t, "size"), Added: rapid.Int64().Draw(t, "added"), Deleted: rapid.Int64().Draw(t, "deleted"),
				PartitionStats: statsGen(t), SchemaID: rapid.Int64().Draw(t, "schema"), MinBucket: i32.Draw(t, "b1"), MaxBucket: i32.Draw(t, "b2"),
				MinLevel: i32.Draw(t, "l1"), MaxLevel: i32.Draw(t, "l2"), MinRowID: i64.Draw(t, "r1"), MaxRowID: i64.Draw(t, "r2"),
				TotalBuckets: i32.Draw(t, "total"), ExtraFiles: nilable(t, "extra", rapid.String()),
			}
		}), 0, 4).Draw(t, "metas")
		b, err := c.EncodeList(metas)
		require.NoError(t, err)
		gotMetas, complete, err := c.DecodeList(b)
		require.NoError(t, err)
		require.True(t, complete)
		require.Equal(t, append([]Meta{}, metas...), append([]Meta{}, gotMetas...))

		indexes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) IndexEntry {
			e := IndexEntry{
				Kind: Kind(rapid.IntRange(0, 1).Draw(t, "kind")), Partition: intRow(1), Bucket: rapid.Int32().Draw(t, "bucket"), Type: rapid.String().Draw(t, "type"),
				Name: rapid.String().Draw(t, "name"), Size: rapid.Int64().Draw(t, "size"), Rows: rapid.Int64().Draw(t, "rows"), ExternalPath: maybe(rapid.String()).Draw(t, "external"),
				Vectors: nilable(t, "vectors", rapid.Custom(func(t *rapid.T) DeletionVector {
					return DeletionVector{rapid.String().Draw(t, "file"), rapid.Int32().Draw(t, "offset"), rapid.Int32().Draw(t, "length"), i64.Draw(t, "cardinality")}
				})),
			}
			if rapid.Bool().Draw(t, "global") {
				e.Global = &GlobalIndex{
					rapid.Int64().Draw(t, "from"), rapid.Int64().Draw(t, "to"), rapid.Int32().Draw(t, "field"),
					nilable(t, "fields", rapid.Int32()), nilable(t, "meta", rapid.Byte()), nilable(t, "source", rapid.Byte()),
				}
			}
			return e
		}), 0, 4).Draw(t, "indexes")
		b, err = c.EncodeIndex(indexes)
		require.NoError(t, err)
		gotIndexes, complete, err := c.DecodeIndex(b)
		require.NoError(t, err)
		require.True(t, complete)
		require.Equal(t, append([]IndexEntry{}, indexes...), append([]IndexEntry{}, gotIndexes...))
	})
}

// Entries are not shared with the codec: decoding another file leaves them alone.
func TestDecode_LaterFilesLeaveEarlierEntriesAlone(t *testing.T) {
	c := newCodec(t, "")
	first, err := c.EncodeEntries([]Entry{fullEntry(), plainEntry(1)})
	require.NoError(t, err)
	a, _, err := c.DecodeEntries(first)
	require.NoError(t, err)
	text, err := json.Marshal(a)
	require.NoError(t, err)
	for i := range 20 {
		e := fullEntry()
		e.File.Name, e.File.ValueStats.NullCounts, e.File.ExtraFiles = "other", []int64{9, 9, 9}, []string{"y", fmt.Sprint(i)}
		b, err := c.EncodeEntries([]Entry{e, e})
		require.NoError(t, err)
		_, _, err = c.DecodeEntries(b)
		require.NoError(t, err)
	}
	again, err := json.Marshal(a)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	require.NotSame(t, a[0].File.CreationTime, a[1].File.CreationTime)
}

// Stories of commits and what is left of their entries: testdata/merge.
//
//	commit    adds entries, one a line: "+ file" or "- file", with "level=1",
//	          "extra=x" where it matters
//	live      the live files, or the error
//	merge     the entries left of the commits FROM to TO, or the error
func TestMerge_Stories(t *testing.T) {
	datadriven.Walk(t, "testdata/merge", func(t *testing.T, path string) {
		var commits [][]Entry
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var merged []Entry
			var err error
			switch d.Cmd {
			case "commit":
				var c []Entry
				for line := range strings.SplitSeq(strings.TrimSpace(d.Input), "\n") {
					c = append(c, parseStoryEntry(t, line))
				}
				commits = append(commits, c)
				return fmt.Sprintf("commit %d\n", len(commits))
			case "live":
				merged, err = Live(commits...)
			case "merge":
				var from, to int
				d.ScanArgs(t, "from", &from)
				d.ScanArgs(t, "to", &to)
				merged, err = Merge(commits[from-1 : to]...)
			default:
				d.Fatalf(t, "no such command")
			}
			if err != nil {
				require.ErrorIs(t, err, ErrInconsistent)
				return err.Error() + "\n"
			}
			if len(merged) == 0 {
				return "nothing\n"
			}
			var b strings.Builder
			for _, e := range merged {
				fmt.Fprintf(&b, "%s %s", e.Kind, e.File.Name)
				if e.File.Level != 0 {
					fmt.Fprintf(&b, " level=%d", e.File.Level)
				}
				for _, x := range e.File.ExtraFiles {
					b.WriteString(" extra=" + x)
				}
				b.WriteByte('\n')
			}
			return b.String()
		})
	})
}

func parseStoryEntry(t *testing.T, line string) Entry {
	p := strings.Fields(line)
	e := file(p[1])
	if p[0] == "-" {
		e = e.NewDelete()
	}
	for _, opt := range p[2:] {
		k, v, _ := strings.Cut(opt, "=")
		switch k {
		case "level":
			_, err := fmt.Sscan(v, &e.File.Level)
			require.NoError(t, err)
		case "extra":
			e.File.ExtraFiles = append(e.File.ExtraFiles, v)
		default:
			require.Fail(t, "no such option", opt)
		}
	}
	return e
}
