//go:build itest

package itest

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// sortedFiles returns the ids of each data file above level 0, in the file's order,
// and how many files of level 0 there are, as Java sees the table.
func sortedFiles(t *testing.T, java harness.JavaPeer, ref harness.Ref) (sorted [][]int64, fresh int) {
	t.Helper()
	files, err := java.Files(t.Context(), ref, harness.Query{})
	require.NoError(t, err)
	high := map[string]bool{}
	for _, f := range files {
		if f.Level > 0 {
			require.Equal(t, 5, f.Level, "full clustering of Paimon's default six levels")
			high[f.Name] = true
		} else {
			fresh++
		}
	}
	b, err := objstore.NewLocal(tableDir(ref), objstore.LocalOptions{})
	require.NoError(t, err)
	table, err := paimon.OpenTable(t.Context(), b, paimon.Read)
	require.NoError(t, err)
	_, st, err := table.Version(t.Context(), paimon.Version{})
	require.NoError(t, err)
	entries, err := table.Files(t.Context(), st, nil)
	require.NoError(t, err)
	for i := range entries {
		if !high[entries[i].File.Name] {
			continue
		}
		var ids []int64
		require.NoError(t, table.ReadFile(t.Context(), &entries[i], []int{0}, func(_ int64, rows *types.Batch) error {
			for k := range rows.Len() {
				ids = append(ids, rows.Row(k)[0].I)
			}
			return nil
		}))
		require.True(t, slices.IsSorted(ids), "%s: %v", entries[i].File.Name, ids)
		sorted = append(sorted, ids)
	}
	require.Len(t, sorted, len(high))
	return sorted, fresh
}

// TestClustering_JavasLevelsOutliveOurCommitsAndCompactions: what Java has sorted stays
// sorted and on its level when we mark, rewrite and purge rows of it; our new files
// are of level 0; Java reads all of it, and clusters it again.
func TestClustering_JavasLevelsOutliveOurCommitsAndCompactions(t *testing.T) {
	for name, c := range map[string]struct {
		options map[string]string
		cluster harness.Write
		files   int // sorted ones, of full clustering
	}{
		"deletion vectors": {map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}, harness.Recluster(true), 1},
		"copy on write":    {map[string]string{"bucket": "-1"}, harness.Recluster(true), 1},
		"buckets":          {map[string]string{"bucket": "2", "bucket-key": "id", "bucket-append-ordered": "false"}, harness.CompactFull(), 2},
	} {
		t.Run(name, func(t *testing.T) {
			java := harness.Java(t)
			options := map[string]string{"clustering.incremental": "true", "clustering.columns": "id", "write-only": "true"}
			for k, v := range c.options {
				options[k] = v
			}
			ref := simpleTable(t, java, options)
			topic := newTopic(t, 1)
			r := newRig(t, ref.Warehouse, pipe{Topic: topic, Table: ref.Table})
			m := newModel([]string{"id", "v"}, []string{"id"})
			for _, ids := range [][]int{{9, 3, 20, 14}, {7, 1, 12, 30}, {5, 25, 2, 18}} {
				do(t, java, ref, harness.InsertRows(anyRows(rowsOf("a", ids...))...))
				m.insert(rowsOf("a", ids...)...)
			}
			cluster := func() {
				t.Helper()
				do(t, java, ref, c.cluster)
				r.holds(m)
				sorted, fresh := sortedFiles(t, java, ref)
				require.Len(t, sorted, c.files)
				require.Zero(t, fresh)
			}
			rows := func() (n int) {
				t.Helper()
				sorted, _ := sortedFiles(t, java, ref)
				for _, ids := range sorted {
					n += len(ids)
				}
				return n
			}
			change := func(upserts []int, removed ...int) {
				t.Helper()
				for _, id := range upserts {
					rec := put(topic, 0, row(id, "ours"))
					m.apply(rec)
					r.kafka.Produce(t, rec)
				}
				for _, id := range removed {
					rec := del(topic, 0, fmt.Sprintf(`{"id":%d}`, id))
					m.apply(rec)
					r.kafka.Produce(t, rec)
				}
				p := r.start()
				r.waitApplied(p)
				harness.MustStop(t, p)
				r.holds(m)
			}
			cluster()
			require.Equal(t, 12, rows())

			change([]int{3, 40}, 14, 30)
			change([]int{41, 1}, 12)
			_, fresh := sortedFiles(t, java, ref)
			require.GreaterOrEqual(t, fresh, 2, "what we write is not sorted")
			code, output := harness.ApplierOutput(t.Context(), t, "compact", "--full", ref.Table, "--warehouse", ref.Warehouse)
			require.Zero(t, code, output)
			r.holds(m)
			require.Equal(t, 7, rows(), "of the 12 five were changed or deleted, and are purged; nothing was mixed in")
			_, fresh = sortedFiles(t, java, ref)
			require.Equal(t, c.files, fresh, "the files of level 0 became one, in each bucket")

			cluster()
			change([]int{2, 50}, 25)
			do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{5}))
			m.remove(`{"id":5}`)
			r.holds(m)
			cluster()
		})
	}
}

// TestClustering_WithBucketsAndVectorsIsRefused: by Java (RL-35), and by us by name.
func TestClustering_WithBucketsAndVectorsIsRefused(t *testing.T) {
	options := map[string]string{
		"bucket": "2", "bucket-key": "id", "bucket-append-ordered": "false", "deletion-vectors.enabled": "true", "clustering.incremental": "true", "clustering.columns": "id",
	}
	err := harness.Java(t).Create(t.Context(), newRef(t), harness.TableSpec{Columns: []harness.Column{{Name: "id", Type: "INT"}}, Options: options})
	require.ErrorContains(t, err, "Cannot enable deletion-vectors for incremental clustering table which bucket is not -1")
	properties := ""
	for k, v := range options {
		properties += fmt.Sprintf(", '%s' = '%s'", k, v)
	}
	code, output := harness.ApplierOutput(t.Context(), t, "sql", "--warehouse", t.TempDir(), "-e", "CREATE DATABASE db; CREATE TABLE db.t (id INT) TBLPROPERTIES ("+properties[2:]+")")
	require.NotZero(t, code)
	require.Contains(t, output, "[incremental_clustering]")
}

// TestFormat_IndexFilesBesideDataFiles: with index-file-in-data-file-dir Java's deletion
// vectors and ours lie in the buckets' folders; each reads and changes the other's, and
// what nobody needs any more goes with our expiry and our search for orphans.
func TestFormat_IndexFilesBesideDataFiles(t *testing.T) {
	for name, options := range map[string]map[string]string{
		"one bucket": {"bucket": "-1"},
		"buckets":    {"bucket": "2", "bucket-key": "id"},
	} {
		t.Run(name, func(t *testing.T) {
			java := harness.Java(t)
			options["deletion-vectors.enabled"], options["index-file-in-data-file-dir"], options["write-only"] = "true", "true", "true"
			ref := simpleTable(t, java, options)
			m := newModel([]string{"id", "v"}, []string{"id"})
			for _, v := range []string{"a", "b"} {
				for i := range 2 {
					rows := rowsOf(v, 10*i+1, 10*i+2, 10*i+3, 10*i+4, 10*i+5, 10*i+6)
					if v == "b" {
						rows = rowsOf(v, 10*i+7, 10*i+8)
					}
					do(t, java, ref, harness.InsertRows(anyRows(rows)...))
					m.insert(rows...)
				}
			}
			topic := newTopic(t, 1)
			r := newRig(t, ref.Warehouse, pipe{Topic: topic, Table: ref.Table})
			change := func(id int) {
				rec := put(topic, 0, row(id, "ours"))
				m.apply(rec)
				r.kafka.Produce(t, rec)
				p := r.start()
				r.waitApplied(p)
				harness.MustStop(t, p)
				r.holds(m)
			}
			for _, id := range []int{1, 12} { // ours and Java's, in turns
				change(id)
				do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{id + 1}))
				m.remove(fmt.Sprintf(`{"id":%d}`, id+1))
				r.holds(m)
			}
			change(14)
			beside := indexesBeside(t, ref)
			require.NotEmpty(t, beside)
			require.NoDirExists(t, tableDir(ref)+"/index")
			for _, args := range [][]string{{"expire", "--retain-min", "1", "--retain-max", "1", "--retain-time", "0s", "--min-age", "0s"}, {"orphans"}} {
				code, output := harness.ApplierOutput(t.Context(), t, append(args, ref.Table, "--warehouse", ref.Warehouse)...)
				require.Zero(t, code, output)
				r.holds(m)
			}
			require.Less(t, len(indexesBeside(t, ref)), len(beside), "what only old snapshots named is gone")
			require.NotEmpty(t, indexesBeside(t, ref))
			code, output := harness.ApplierOutput(t.Context(), t, "compact", "--full", ref.Table, "--warehouse", ref.Warehouse)
			require.Zero(t, code, output)
			r.holds(m)
			r.proven()
		})
	}
}

// indexesBeside lists the index files in the folders of buckets.
func indexesBeside(t *testing.T, ref harness.Ref) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tableDir(ref), "bucket-*", "index-*"))
	require.NoError(t, err)
	return files
}
