//go:build itest

package itest

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"applier/itest/harness"
	"applier/storage/types"
)

// newRef names a table in a warehouse of the test's own.
func newRef(t *testing.T) harness.Ref {
	t.Helper()
	return harness.Ref{Warehouse: t.TempDir(), Table: "db.t"}
}

var vectorOptions = map[string]string{"bucket": "-1", "deletion-vectors.enabled": "true"}

func TestRowTexts_AreTheSameInGoJavaPythonAndRust(t *testing.T) {
	ctx, java, py, rust := t.Context(), harness.Java(t), harness.PyPaimon(t), harness.Rust(t)
	columns, row := columnsOf(t, append(slices.Clone(scalarTypes), nestedTypes...))
	ref := newRef(t)
	require.NoError(t, java.Create(ctx, ref, harness.TableSpec{Columns: columns, Options: vectorOptions}))
	rows := randomRows(rand.New(rand.NewPCG(1, 2)), row, 1000)
	_, err := java.Do(ctx, ref, harness.InsertRows(anyRows(rows)...))
	require.NoError(t, err)
	harness.SameRows(ctx, t, rows, ref, harness.Query{}, java, py, rust)
}

func TestRowTexts_OfFloatsAreTheShortestThatReadBack(t *testing.T) {
	ctx, java, py := t.Context(), harness.Java(t), harness.PyPaimon(t)
	columns, row := columnsOf(t, []string{"DOUBLE", "FLOAT"})
	ref := newRef(t)
	require.NoError(t, java.Create(ctx, ref, harness.TableSpec{Columns: columns}))
	r := rand.New(rand.NewPCG(3, 4))
	var rows []string
	for i := range 20000 {
		d := types.Datum{L: []types.Datum{randomDatum(r, row.Fields[0].Type), randomDatum(r, row.Fields[1].Type)}}
		if i < 2000 { // powers of two are where shortest-digit algorithms differ
			d.L = []types.Datum{types.FloatDatum(powerOfTwo(i - 1050)), types.FloatDatum(float64(float32(powerOfTwo(i%277 - 149))))}
		}
		rows = append(rows, string(types.AppendJSON(nil, row, d)))
	}
	_, err := java.Do(ctx, ref, harness.InsertRows(anyRows(rows)...))
	require.NoError(t, err)
	harness.SameRows(ctx, t, rows, ref, harness.Query{}, java, py)
}

func powerOfTwo(e int) float64 {
	f := 1.0
	for ; e > 0; e-- {
		f *= 2
	}
	for ; e < 0; e++ {
		f /= 2
	}
	return f
}

func TestPyPaimon_WritesWhatOthersRead(t *testing.T) {
	ctx, java, py, rust := t.Context(), harness.Java(t), harness.PyPaimon(t), harness.Rust(t)
	// pypaimon writes precision 9 as INT64 nanoseconds, which Java 1.4.2 cannot read.
	readable := slices.DeleteFunc(slices.Clone(scalarTypes), func(text string) bool { return strings.HasPrefix(text, "TIMESTAMP(9)") })
	columns, row := columnsOf(t, readable)
	ref := newRef(t)
	require.NoError(t, java.Create(ctx, ref, harness.TableSpec{Columns: columns, Options: vectorOptions}))
	rows := randomRows(rand.New(rand.NewPCG(5, 6)), row, 200)
	require.NoError(t, py.Insert(ctx, ref, anyRows(rows)...))
	harness.SameRows(ctx, t, rows, ref, harness.Query{}, py, java, rust)
}

// TestJava_PrunesWithoutLosingRows compares pushed-down conditions with the same
// conditions tested on every row, over files whose statistics differ.
func TestJava_PrunesWithoutLosingRows(t *testing.T) {
	ctx, java := t.Context(), harness.Java(t)
	columns, row := columnsOf(t, scalarTypes)
	ref := newRef(t)
	require.NoError(t, java.Create(ctx, ref, harness.TableSpec{Columns: columns, Options: vectorOptions}))
	r := rand.New(rand.NewPCG(7, 8))
	for range 6 {
		_, err := java.Do(ctx, ref, harness.InsertRows(anyRows(randomRows(r, row, 4))...))
		require.NoError(t, err)
	}
	_, err := java.Do(ctx, ref, harness.DeleteWhere(harness.Cond{Column: "c0", Op: "is null"}))
	require.NoError(t, err)
	pruned := 0
	for i, f := range row.Fields {
		operators := [][]string{{"=", "<", ">=", "is null"}, {"!=", "<=", ">", "is not null"}}[i%2]
		if f.Type.Kind == types.Binary || f.Type.Kind == types.VarBinary {
			// Paimon itself is of two minds: statistics compare bytes unsigned, its row filter signed.
			operators = []string{"=", "!=", "is null", "is not null"}
		}
		for _, op := range operators {
			var d types.Datum
			for d = randomDatum(r, f.Type); d.Null; {
				d = randomDatum(r, f.Type)
			}
			cond := harness.Cond{Column: f.Name, Op: op, Value: rawJSON(types.AppendJSON(nil, f.Type, d))}
			q := harness.Query{Where: []harness.Cond{cond}}
			fast, err := java.Read(ctx, ref, q)
			require.NoError(t, err)
			q.Scan = true
			slow, err := java.Read(ctx, ref, q)
			require.NoError(t, err)
			require.Empty(t, harness.DiffRows("pruned", fast.Texts(), "scanned", slow.Texts()), "%s %s %s", scalarTypes[i], op, cond.Value)
			if fast.Files < slow.Files {
				pruned++
			}
		}
	}
	require.Greater(t, pruned, 20, "no file was ever pruned")
}
