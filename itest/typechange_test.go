//go:build itest

package itest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
)

// typeChanged is our word about a column whose older values cannot be read as its
// type without loss.
const typeChanged = "column type differs from the file's"

// TestTypeChange_IsReadAsJavaReadsItOrRefusedByName: Java lets a column's type be
// changed to nearly any other, and then casts older values, which cuts, rounds and
// makes NULLs. For every pair of types that it takes, our reader gives the values
// that Java gives, or refuses the column by name; never others.
func TestTypeChange_IsReadAsJavaReadsItOrRefusedByName(t *testing.T) {
	texts := slices.Clone(edgeTypes)
	if !fullMatrix {
		texts = []string{"BOOLEAN", "INT", "DOUBLE", "DECIMAL(9, 2)", "CHAR(5)", "VARCHAR(20)", "STRING", "BYTES", "DATE", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"}
	}
	counts := map[string]int{}
	for _, from := range texts {
		changeTypes(t, from, texts, counts)
	}
	require.Equal(t, map[string]int{"refused by Java": 56, "refused by us": 65, "the same values": 11}, counts, "what docs/compatibility.md lists")
}

// changeTypes makes a table of columns of one type, and gives each another one.
func changeTypes(t *testing.T, from string, to []string, counts map[string]int) {
	ctx, java, ref := t.Context(), harness.Java(t), newRef(t)
	columns := []harness.Column{{Name: "id", Type: "INT"}}
	for i := range to {
		columns = append(columns, harness.Column{Name: fmt.Sprintf("c%d", i), Type: from})
	}
	require.NoError(t, java.Create(ctx, ref, harness.TableSpec{Columns: columns, Options: map[string]string{"bucket": "-1"}}))
	var rows []any
	for id, v := range append(edgesOf(from), "null") {
		var b strings.Builder
		for i := range to {
			fmt.Fprintf(&b, `,"c%d":%s`, i, v)
		}
		rows = append(rows, fmt.Sprintf(`{"id":%d%s}`, id, b.String()))
	}
	do(t, java, ref, harness.InsertRows(rows...))
	for i, typ := range to {
		name := fmt.Sprintf("c%d", i)
		if typ == from {
			continue
		}
		if err := java.Alter(ctx, ref, harness.Args{"op": "update_type", "name": name, "type": typ}); err != nil {
			counts["refused by Java"]++
			continue
		}
		q := harness.Query{Columns: []string{"id", name}}
		theirs, javaErr := java.Read(ctx, ref, q)
		ours, err := cat(t).Read(ctx, ref, q)
		switch {
		case err != nil:
			require.ErrorContains(t, err, typeChanged, "%s to %s", from, typ)
			counts["refused by us"]++
		case javaErr != nil: // what was written is there, and we lose nothing of it
			counts["read by us alone"]++
			t.Logf("%s to %s: Java fails: %v", from, typ, short(javaErr))
		default:
			require.Empty(t, harness.DiffRows("Java", theirs.Texts(), "applier", ours.Texts()), "%s to %s", from, typ)
			counts["the same values"]++
		}
	}
}
