//go:build itest

package itest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
	"applier/storage/paimon/fileindex"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// sqlOn runs a statement of ours on a warehouse.
func sqlOn(t *testing.T, ref harness.Ref, statement string) {
	t.Helper()
	code, output := harness.ApplierOutput(t.Context(), t, "sql", "--warehouse", ref.Warehouse, "-e", statement)
	require.Zero(t, code, output)
}

// indexFiles returns the bloom filters of the index files that lie beside data files.
func indexFiles(t *testing.T, ref harness.Ref) map[string]map[string]*fileindex.Bloom {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tableDir(ref), "bucket-0", "*.index"))
	require.NoError(t, err)
	out := map[string]map[string]*fileindex.Bloom{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		out[filepath.Base(f)], err = fileindex.Blooms(data)
		require.NoError(t, err)
	}
	return out
}

// TestFormat_BloomFiltersAreJavas: a file that we rewrite has the filters that Java
// gives it, bit for bit, for every type that has any; and Java, which prunes by them,
// finds what is there.
func TestFormat_BloomFiltersAreJavas(t *testing.T) {
	ctx, java := t.Context(), harness.Java(t)
	columns, row := columnsOf(t, scalarTypes)
	options := map[string]string{"bucket": "-1", "file-index.in-manifest-threshold": "1 b", "metadata.stats-mode": "none"}
	var indexed []string
	for i, c := range columns {
		if k := row.Fields[i].Type.Kind; k != types.Boolean && k != types.Decimal {
			indexed = append(indexed, c.Name)
			options["file-index.bloom-filter."+c.Name+".items"] = "400"
		}
	}
	options["file-index.bloom-filter.columns"] = strings.Join(indexed, ",")
	theirs, ours := newRef(t), newRef(t)
	require.NoError(t, java.Create(ctx, theirs, harness.TableSpec{Columns: columns, Options: options}))
	rows := randomRows(rand.New(rand.NewPCG(11, 12)), row, 300)
	do(t, java, theirs, harness.InsertRows(anyRows(rows)...))
	require.NoError(t, os.CopyFS(tableDir(ours), os.DirFS(tableDir(theirs))))
	first := slices.Collect(maps.Keys(indexFiles(t, theirs)))
	require.Len(t, first, 1)

	do(t, java, theirs, harness.DeleteWhere(harness.Cond{Column: "c1", Op: "=", Value: 0}))
	sqlOn(t, ours, "DELETE FROM db.t WHERE c1 = 0")
	want, err := java.Read(ctx, theirs, harness.Query{})
	require.NoError(t, err)
	require.Less(t, len(want.Rows), len(rows), "something was deleted")
	harness.SameRows(ctx, t, want.Texts(), ours, harness.Query{}, java, cat(t))
	last := func(ref harness.Ref) map[string]*fileindex.Bloom {
		all := indexFiles(t, ref)
		delete(all, first[0])
		require.Len(t, all, 1)
		for _, b := range all {
			return b
		}
		return nil
	}
	a, b := last(theirs), last(ours)
	require.Len(t, a, len(indexed))
	require.Equal(t, a, b)

	for _, text := range want.Texts()[:20] {
		var values map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &values))
		for _, c := range indexed {
			if string(values[c]) == "null" {
				continue
			}
			cond := []harness.Cond{{Column: c, Op: "=", Value: values[c]}}
			pruned, err := java.Read(ctx, ours, harness.Query{Where: cond})
			require.NoError(t, err)
			scanned, err := java.Read(ctx, ours, harness.Query{Where: cond, Scan: true})
			require.NoError(t, err)
			require.Len(t, pruned.Rows, len(scanned.Rows), "%s = %s", c, values[c])
		}
	}
}

// TestFormat_FilesOutsideOfTheTableAreFollowed: Java writes into an external path; we
// read, mark, rewrite and compact what lies there, and Java goes on. Our expiry leaves
// the files outside alone.
func TestFormat_FilesOutsideOfTheTableAreFollowed(t *testing.T) {
	for name, vectors := range map[string]string{"deletion vectors": "true", "copy on write": "false"} {
		t.Run(name, func(t *testing.T) {
			ctx, java, ext := t.Context(), harness.Java(t), t.TempDir()
			ref := simpleTable(t, java, map[string]string{
				"bucket": "-1", "deletion-vectors.enabled": vectors,
				"data-file.external-paths": "file://" + ext, "data-file.external-paths.strategy": "round-robin",
			})
			m := newModel([]string{"id", "v"}, []string{"id"})
			add := func(texts ...string) {
				do(t, java, ref, harness.InsertRows(anyRows(texts)...))
				m.insert(texts...)
			}
			add(rowsOf("a", 1, 2, 3, 4)...)
			add(rowsOf("b", 5, 6)...)
			outside := func() []string {
				files, err := filepath.Glob(filepath.Join(ext, "*", "*.parquet"))
				require.NoError(t, err)
				return files
			}
			require.Len(t, outside(), 2, "Java wrote outside")

			topic := newTopic(t, 1)
			r := newRig(t, ref.Warehouse, pipe{Topic: topic, Table: ref.Table})
			r.holds(m)
			change := func(upsert, remove int) {
				for _, rec := range []struct{ key, value string }{{"", row(upsert, "ours")}, {fmt.Sprintf(`{"id":%d}`, remove), ""}} {
					record := put(topic, 0, rec.value)
					if rec.value == "" {
						record = del(topic, 0, rec.key)
					}
					m.apply(record)
					r.kafka.Produce(t, record)
				}
				p := r.start()
				r.waitApplied(p)
				harness.MustStop(t, p)
				r.holds(m)
			}
			change(2, 5)
			add(rowsOf("c", 7, 8)...)
			change(7, 1)
			sqlOn(t, ref, "UPDATE db.t SET v = 'sql' WHERE id = 8")
			m.upsert(row(8, "sql"))
			r.holds(m)
			r.proven()
			do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{3}))
			m.remove(`{"id":3}`)
			r.holds(m)
			kept := outside()
			for _, args := range [][]string{{"compact", "--full"}, {"expire", "--retain-min", "1", "--retain-max", "1", "--retain-time", "0s", "--min-age", "0s"}, {"orphans"}} {
				code, output := harness.ApplierOutput(ctx, t, append(args, ref.Table, "--warehouse", ref.Warehouse)...)
				require.Zero(t, code, output)
				r.holds(m)
			}
			require.Subset(t, outside(), kept)
			add(row(9, "d"))
			r.holds(m)
		})
	}
}

// TestFormat_StatisticsAreJavasBytes: the statistics that we put into a manifest are
// Java's, byte for byte, for rows of the same values: minima, maxima, counts of NULLs
// and the names of their columns. Those of FLOAT, DOUBLE and bytes are not, on
// purpose (docs/paimon.md): bounds with NaN, of one zero, and of bytes are not trusted.
func TestFormat_StatisticsAreJavasBytes(t *testing.T) {
	ctx, java := t.Context(), harness.Java(t)
	var texts []string
	for _, text := range edgeTypes {
		if k := mustType(text).Kind; k != types.Float && k != types.Double && !mustType(text).IsBinary() {
			texts = append(texts, text)
		}
	}
	columns, _ := columnsOf(t, append(slices.Clone(texts), "ARRAY<INT>")) // which has none
	columns = append(columns, harness.Column{Name: "file", Type: "INT"})
	theirs := newRef(t)
	ours := harness.Ref{Warehouse: theirs.Warehouse, Table: "db.ours"}
	for _, ref := range []harness.Ref{theirs, ours} {
		require.NoError(t, java.Create(ctx, ref, harness.TableSpec{Columns: columns, Options: map[string]string{"bucket": "-1"}}))
	}
	const files = 16
	var statements []string
	for i := range files {
		var rows []any
		for k := range 1 + i%4 {
			var b strings.Builder
			for c, text := range texts {
				edges := edgesOf(text)
				v := "null"
				if at := (5*i + 3*k + c) % (len(edges) + 1); at < len(edges) {
					v = edges[at]
				}
				fmt.Fprintf(&b, `,"c%d":%s`, c, v)
			}
			rows = append(rows, fmt.Sprintf(`{"file":%d%s}`, i, b.String()))
		}
		do(t, java, theirs, harness.InsertRows(rows...))
		statements = append(statements, fmt.Sprintf("INSERT INTO db.ours SELECT * FROM db.t WHERE file = %d", i))
	}
	sqlOn(t, ours, strings.Join(statements, "; "))
	a, b := statistics(t, theirs), statistics(t, ours)
	require.Len(t, a, files)
	require.Equal(t, a, b)
}

// statistics are those of the files that each snapshot added, in order.
func statistics(t *testing.T, ref harness.Ref) []fileStatistics {
	t.Helper()
	codec, err := manifest.NewCodec(manifest.Options{})
	require.NoError(t, err)
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(tableDir(ref), "manifest", name))
		require.NoError(t, err)
		return data
	}
	var out []fileStatistics
	for _, id := range snapshotIDs(ref) {
		s, err := readSnapshot(ref, id)
		require.NoError(t, err)
		var named struct{ DeltaManifestList string }
		require.NoError(t, json.Unmarshal(s.JSON, &named))
		list, _, err := codec.DecodeList(read(named.DeltaManifestList))
		require.NoError(t, err)
		for _, m := range list {
			entries, _, err := codec.DecodeEntries(read(m.Name))
			require.NoError(t, err)
			for _, e := range entries {
				v := e.File.ValueStats
				out = append(out, fileStatistics{e.File.Rows, fmt.Sprintf("%x", v.Min), fmt.Sprintf("%x", v.Max), v.NullCounts, e.File.StatsColumns})
			}
		}
	}
	return out
}

type fileStatistics struct {
	rows     int64
	min, max string
	nulls    []int64
	columns  []string
}
