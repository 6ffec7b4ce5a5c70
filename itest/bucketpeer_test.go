//go:build itest

package itest

import (
	"testing"

	"applier/itest/harness"
)

// TestJava_ChangesBucketsAsAForeignWriter: the peer's statements on bucketed tables
// do what they say, before our own tests rely on them.
func TestJava_ChangesBucketsAsAForeignWriter(t *testing.T) {
	for name, options := range map[string]map[string]string{
		"vectors":       {"bucket": "2", "bucket-key": "id", "deletion-vectors.enabled": "true"},
		"copy on write": {"bucket": "2", "bucket-key": "id"},
	} {
		t.Run(name, func(t *testing.T) {
			java := harness.Java(t)
			ref := simpleTable(t, java, options)
			same := func(want ...string) {
				t.Helper()
				harness.SameRows(t.Context(), t, want, ref, harness.Query{}, java, harness.PyPaimon(t), cat(t))
			}
			do(t, java, ref, harness.InsertRows(rowsAny("a", 1, 2, 3, 4, 5, 6)...))
			do(t, java, ref, harness.InsertRows(rowsAny("a", 7, 8)...))
			do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{2}, []any{7}))
			same(rowsOf("a", 1, 3, 4, 5, 6, 8)...)
			do(t, java, ref, harness.UpdateWhere(map[string]any{"v": "b"}, harness.Cond{Column: "id", Op: ">", Value: 4}))
			same(append(rowsOf("a", 1, 3, 4), rowsOf("b", 5, 6, 8)...)...)
			do(t, java, ref, harness.DeleteKeys([]string{"id"}, []any{1}, []any{5}))
			same(append(rowsOf("a", 3, 4), rowsOf("b", 6, 8)...)...)
			do(t, java, ref, harness.CompactFull())
			same(append(rowsOf("a", 3, 4), rowsOf("b", 6, 8)...)...)
		})
	}
}

func rowsAny(v string, ids ...int) []any {
	return anyRows(rowsOf(v, ids...))
}
