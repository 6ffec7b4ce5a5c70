//go:build itest

package itest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// simpleTable creates db.t (id BIGINT, v STRING) in a new warehouse.
func simpleTable(t *testing.T, java harness.JavaPeer, options map[string]string) harness.Ref {
	t.Helper()
	ref := newRef(t)
	require.NoError(t, java.Create(t.Context(), ref, harness.TableSpec{
		Columns: []harness.Column{{Name: "id", Type: "BIGINT"}, {Name: "v", Type: "STRING"}}, Options: options,
	}))
	return ref
}

// row is the text of one row of simpleTable.
func row(id int, v string) string { return fmt.Sprintf(`{"id":%d,"v":%q}`, id, v) }

func rowsOf(v string, ids ...int) []string {
	var out []string
	for _, id := range ids {
		out = append(out, row(id, v))
	}
	return out
}

func do(t *testing.T, java harness.JavaPeer, ref harness.Ref, w harness.Write) *harness.Written {
	t.Helper()
	done, err := java.Do(t.Context(), ref, w)
	require.NoError(t, err)
	return done
}

// TestJava_WritesAsAForeignWriter follows one table through every write, with a
// model and two other readers after each step.
func TestJava_WritesAsAForeignWriter(t *testing.T) {
	for name, options := range map[string]map[string]string{"deletion vectors": vectorOptions, "copy on write": {"bucket": "-1"}} {
		t.Run(name, func(t *testing.T) {
			ctx, java, py, rust := t.Context(), harness.Java(t), harness.PyPaimon(t), harness.Rust(t)
			ref := simpleTable(t, java, options)
			same := func(want ...string) {
				t.Helper()
				harness.SameRows(ctx, t, want, ref, harness.Query{}, java, py, rust)
			}
			require.Equal(t, []int64{1}, do(t, java, ref, harness.InsertRows(row(1, "a"), row(2, "a"), row(3, "a"))).Snapshots)
			do(t, java, ref, harness.InsertRows(row(4, "b"), row(5, "b"), row(1, "b")))
			same(row(1, "a"), row(2, "a"), row(3, "a"), row(4, "b"), row(5, "b"), row(1, "b"))

			require.EqualValues(t, 2, do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{1})).Deleted)
			same(row(2, "a"), row(3, "a"), row(4, "b"), row(5, "b"))

			require.EqualValues(t, 2, do(t, java, ref, harness.UpdateWhere(map[string]any{"v": "c"}, harness.Cond{Column: "id", Op: ">", Value: 3})).Updated)
			do(t, java, ref, harness.UpdateKeys(map[string]any{"v": nil}, []string{"id", "v"}, []any{2, "a"}, []any{3, "no such"}))
			same(`{"id":2,"v":null}`, row(3, "a"), row(4, "c"), row(5, "c"))

			require.Empty(t, do(t, java, ref, harness.DeleteWhere(harness.Cond{Column: "id", Op: "=", Value: 99})).Snapshots)

			do(t, java, ref, harness.InsertRows(row(6, "d")))
			compacted := do(t, java, ref, harness.CompactFull())
			require.Len(t, compacted.Snapshots, 1)
			require.Greater(t, compacted.FilesBefore, compacted.FilesAfter)
			same(`{"id":2,"v":null}`, row(3, "a"), row(4, "c"), row(5, "c"), row(6, "d"))
			files, err := java.Files(ctx, ref, harness.Query{})
			require.NoError(t, err)
			require.Len(t, files, 1)
			require.Zero(t, files[0].Deleted)

			do(t, java, ref, harness.OverwriteRows(nil, row(7, "z")))
			same(row(7, "z"))
			require.NoError(t, java.Truncate(ctx, ref))
			same()
		})
	}
}

func TestJava_CommitsInTwoPhases(t *testing.T) {
	ctx, java, py := t.Context(), harness.Java(t), harness.PyPaimon(t)
	ref := simpleTable(t, java, vectorOptions)
	do(t, java, ref, harness.InsertRows(row(1, "a"), row(2, "a"), row(3, "a")))
	prepare := func(w harness.Write) *harness.Prepared {
		t.Helper()
		p, err := java.Prepare(ctx, ref, w)
		require.NoError(t, err)
		return p
	}
	// An append does not mind what happened in between.
	insert := prepare(harness.InsertRows(row(4, "late")))
	do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{1}))
	harness.SameRows(ctx, t, rowsOf("a", 2, 3), ref, harness.Query{}, java, py)
	done, err := insert.Commit(ctx)
	require.NoError(t, err)
	require.Equal(t, []int64{3}, done.Snapshots)
	want := append(rowsOf("a", 2, 3), row(4, "late"))
	harness.SameRows(ctx, t, want, ref, harness.Query{}, java, py)

	// A delete whose file got another vector in between, and a compaction of it, are conflicts.
	del, compact := prepare(harness.DeleteKeys([]string{"id"}, []any{2})), prepare(harness.CompactFull())
	require.EqualValues(t, 1, del.Deleted)
	require.Positive(t, compact.Tasks)
	do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{3}))
	for _, p := range []*harness.Prepared{del, compact} {
		_, err = p.Commit(ctx)
		require.Error(t, err)
		require.True(t, harness.IsConflict(err), "%v", err)
	}
	harness.SameRows(ctx, t, []string{row(2, "a"), row(4, "late")}, ref, harness.Query{}, java, py)

	// A delete in a file of its own, between which there was only an append, passes.
	del = prepare(harness.DeleteKeys([]string{"id"}, []any{2}))
	do(t, java, ref, harness.InsertRows(row(5, "e")))
	_, err = del.Commit(ctx)
	require.NoError(t, err)
	harness.SameRows(ctx, t, []string{row(4, "late"), row(5, "e")}, ref, harness.Query{}, java, py)

	// A handle is good for one commit; an aborted write leaves no files.
	_, err = del.Commit(ctx)
	require.ErrorContains(t, err, "no handle")
	aborted := prepare(harness.InsertRows(row(9, "never")))
	require.NoError(t, aborted.Abort(ctx))
	harness.SameRows(ctx, t, []string{row(4, "late"), row(5, "e")}, ref, harness.Query{}, java, py)
}

func TestJava_KeepsHouse(t *testing.T) {
	ctx, java, py := t.Context(), harness.Java(t), harness.PyPaimon(t)
	ref := simpleTable(t, java, vectorOptions)
	for i := 1; i <= 6; i++ {
		do(t, java, ref, harness.InsertRows(row(i, "x")))
	}
	ids := func() (out []int64) {
		t.Helper()
		all, err := java.Snapshots(ctx, ref)
		require.NoError(t, err)
		for _, s := range all {
			require.NotEmpty(t, s.JSON)
			out = append(out, s.ID)
		}
		return out
	}
	require.NoError(t, java.CreateTag(ctx, ref, "two", 2, 0))
	require.NoError(t, java.CreateTag(ctx, ref, "now", 0, 24*time.Hour))
	require.NoError(t, java.Branch(ctx, ref, "b", "two"))
	require.NoError(t, java.ResetConsumer(ctx, ref, "reader", 5))
	expire := harness.Expiry{RetainMax: 1, OlderThan: -1}
	n, err := java.Expire(ctx, ref, expire)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, []int64{5, 6}, ids(), "the consumer pins snapshot 5")
	consumers, err := java.Consumers(ctx, ref)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"reader": 5}, consumers)
	require.NoError(t, java.ResetConsumer(ctx, ref, "reader", 0))
	_, err = java.Expire(ctx, ref, expire)
	require.NoError(t, err)
	require.Equal(t, []int64{6}, ids())

	tags, err := java.Tags(ctx, ref)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"two": 2, "now": 6}, tags)
	harness.SameRows(ctx, t, rowsOf("x", 1, 2), ref, harness.Query{Tag: "two"}, java, py)
	harness.SameRows(ctx, t, rowsOf("x", 1, 2), harness.Ref{Warehouse: ref.Warehouse, Table: "db.t$branch_b"}, harness.Query{}, java)

	do(t, java, ref, harness.InsertRows(row(7, "x")))
	require.NoError(t, java.Rollback(ctx, ref, 6))
	harness.SameRows(ctx, t, rowsOf("x", 1, 2, 3, 4, 5, 6), ref, harness.Query{}, java, py)
	do(t, java, ref, harness.InsertRows(row(8, "again"))) // a second snapshot 7: nothing may be cached
	harness.SameRows(ctx, t, append(rowsOf("x", 1, 2, 3, 4, 5, 6), row(8, "again")), ref, harness.Query{Snapshot: 7}, java, py)

	orphans, err := java.Orphans(ctx, ref, false)
	require.NoError(t, err)
	require.NotEmpty(t, orphans, "what the rollback left behind")
	removed, err := java.Orphans(ctx, ref, true)
	require.NoError(t, err)
	require.Len(t, removed, len(orphans))
	orphans, err = java.Orphans(ctx, ref, false)
	require.NoError(t, err)
	require.Empty(t, orphans)
	require.NoError(t, java.DeleteTag(ctx, ref, "now"))
	require.NoError(t, java.RollbackToTag(ctx, ref, "two"))
	harness.SameRows(ctx, t, rowsOf("x", 1, 2), ref, harness.Query{}, java, py)
}

func TestJava_ChangesSchemas(t *testing.T) {
	ctx, java, py := t.Context(), harness.Java(t), harness.PyPaimon(t)
	ref := simpleTable(t, java, vectorOptions)
	do(t, java, ref, harness.InsertRows(row(1, "a")))
	require.NoError(t, java.Alter(ctx, ref,
		harness.Args{"op": "add_column", "name": "n", "type": "INT", "comment": "new", "first": true},
		harness.Args{"op": "rename_column", "name": "v", "to": "w"},
		harness.Args{"op": "set_option", "key": "snapshot.num-retained.min", "value": "3"}))
	require.NoError(t, java.Alter(ctx, ref, harness.Args{"op": "update_type", "name": "n", "type": "BIGINT"}))
	do(t, java, ref, harness.InsertRows(`{"n":9007199254740993,"id":2,"w":"b"}`))
	spec, err := java.Schema(ctx, ref)
	require.NoError(t, err)
	require.EqualValues(t, 2, spec.SchemaID)
	require.Equal(t, []harness.Column{{ID: 2, Name: "n", Type: "BIGINT", Comment: "new"}, {ID: 0, Name: "id", Type: "BIGINT"}, {ID: 1, Name: "w", Type: "STRING"}}, spec.Columns)
	require.Equal(t, "3", spec.Options["snapshot.num-retained.min"])
	harness.SameRows(ctx, t, []string{`{"n":null,"id":1,"w":"a"}`, `{"n":9007199254740993,"id":2,"w":"b"}`}, ref, harness.Query{}, java, py)
	harness.SameRows(ctx, t, rowsOf("a", 1), ref, harness.Query{Snapshot: 1}, java, py)
	require.NoError(t, java.Alter(ctx, ref, harness.Args{"op": "drop_column", "name": "w"}))
	harness.SameRows(ctx, t, []string{`{"id":1}`, `{"id":2}`}, ref, harness.Query{Columns: []string{"id"}}, java, py)
	tables, err := java.Tables(ctx, ref.Warehouse)
	require.NoError(t, err)
	require.Equal(t, []string{"db.t"}, tables)
	require.NoError(t, java.Drop(ctx, ref))
	tables, err = java.Tables(ctx, ref.Warehouse)
	require.NoError(t, err)
	require.Empty(t, tables)
}

func TestJava_AppliesDefaultsAndPartitions(t *testing.T) {
	ctx, java, py, rust := t.Context(), harness.Java(t), harness.PyPaimon(t), harness.Rust(t)
	ref := newRef(t)
	require.NoError(t, java.Create(ctx, ref, harness.TableSpec{
		Columns:       []harness.Column{{Name: "id", Type: "INT NOT NULL"}, {Name: "c", Type: "INT", Default: "42"}, {Name: "p", Type: "STRING"}, {Name: "d", Type: "DATE"}},
		PartitionKeys: []string{"p", "d"}, Options: vectorOptions,
	}))
	do(t, java, ref, harness.InsertRows(`{"id":1,"p":"a b/c=d%e","d":"1969-12-31"}`, `{"id":2,"c":7,"p":null,"d":null}`, `{"id":3,"p":"ünï","d":"2026-01-02"}`))
	want := []string{`{"id":1,"c":42,"p":"a b/c=d%e","d":"1969-12-31"}`, `{"id":2,"c":7,"p":null,"d":null}`, `{"id":3,"c":42,"p":"ünï","d":"2026-01-02"}`}
	harness.SameRows(ctx, t, want, ref, harness.Query{}, java, py, rust)
	byPartition := harness.Query{Where: []harness.Cond{{Column: "d", Op: "=", Value: "1969-12-31"}}}
	harness.SameRows(ctx, t, want[:1], ref, byPartition, java, py)
	rows, err := java.Read(ctx, ref, byPartition)
	require.NoError(t, err)
	require.Equal(t, 1, rows.Files)
	_, err = java.Do(ctx, ref, harness.InsertRows(`{"c":1,"p":"x"}`))
	require.Error(t, err, "NOT NULL")
	do(t, java, ref, harness.OverwriteRows(map[string]string{"p": "ünï"}, `{"id":4,"p":"ünï","d":"2026-01-02"}`))
	want[2] = `{"id":4,"c":42,"p":"ünï","d":"2026-01-02"}`
	harness.SameRows(ctx, t, want, ref, harness.Query{}, java, py, rust)
}

func TestRust_IsAForeignWriterToo(t *testing.T) {
	ctx, java, py, rust := t.Context(), harness.Java(t), harness.PyPaimon(t), harness.Rust(t)
	ref := simpleTable(t, java, vectorOptions)
	do(t, java, ref, harness.InsertRows(row(1, "a"), row(2, "a"), row(3, "a")))
	for _, sql := range []string{"UPDATE p.db.t SET v = 'u' WHERE id = 2", "DELETE FROM p.db.t WHERE id = 1", "INSERT INTO p.db.t VALUES (4, 'r')"} {
		_, err := rust.SQL(ctx, ref.Warehouse, sql)
		require.NoError(t, err, sql)
	}
	harness.SameRows(ctx, t, []string{row(2, "u"), row(3, "a"), row(4, "r")}, ref, harness.Query{}, java, py, rust)
	do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{3}))
	harness.SameRows(ctx, t, []string{row(2, "u"), row(4, "r")}, ref, harness.Query{}, java, py, rust)

	// 0.4.0 cannot rewrite a file that has a deletion vector; it says so and changes nothing.
	_, err := rust.SQL(ctx, ref.Warehouse, "UPDATE p.db.t SET v = 'w' WHERE id = 2")
	require.ErrorContains(t, err, "Deletion vector references missing data file")
	harness.SameRows(ctx, t, []string{row(2, "u"), row(4, "r")}, ref, harness.Query{}, java, py, rust)
	rows, err := rust.SQL(ctx, ref.Warehouse, "SELECT id, v FROM p.db.t WHERE id > 2")
	require.NoError(t, err)
	require.Equal(t, []string{row(4, "r")}, rows.Texts())
}

func TestRust_MergeBenchEndsWithTheRowsGoExpects(t *testing.T) {
	ctx, java, rust := t.Context(), harness.Java(t), harness.Rust(t)
	ref := newRef(t)
	load := harness.MergeLoad{Seed: 7, TargetRows: 20_000, BatchRows: 1_000}
	r, err := rust.BenchMerge(ctx, ref, harness.MergeBench{Load: load, Merges: 4})
	require.NoError(t, err)
	require.Len(t, r.Merges, 4)
	for _, m := range r.Merges {
		require.Positive(t, m[0])
	}
	require.Equal(t, load.Expected(4), harness.Agree(ctx, t, ref, harness.Query{}, java, rust))
}

func TestFlink_ReadsWritesAndCompacts(t *testing.T) {
	ctx, java, py, flink := t.Context(), harness.Java(t), harness.PyPaimon(t), harness.Flink(t)
	ref := simpleTable(t, java, vectorOptions)
	do(t, java, ref, harness.InsertRows(row(1, "a"), row(2, "a")))
	do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{1}))
	_, err := flink.SQL(ctx, ref.Warehouse, "INSERT INTO p.db.t VALUES (3, 'f')")
	require.NoError(t, err)
	_, err = flink.SQL(ctx, ref.Warehouse, "CALL sys.compact(`table` => 'db.t', compact_strategy => 'full')")
	require.NoError(t, err)
	harness.SameRows(ctx, t, []string{row(2, "a"), row(3, "f")}, ref, harness.Query{}, java, py, flink)
	harness.SameRows(ctx, t, []string{row(3, "f")}, ref, harness.Query{Where: []harness.Cond{{Column: "id", Op: ">=", Value: 3}}}, java, flink)
	harness.SameRows(ctx, t, rowsOf("a", 1, 2), ref, harness.Query{Snapshot: 1}, java, flink)
	_, err = flink.SQL(ctx, ref.Warehouse, "SELEC 1")
	var remote *harness.RemoteError
	require.ErrorAs(t, err, &remote)
}
