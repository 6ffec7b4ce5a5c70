package datafile

import (
	"bytes"
	"math"

	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// field names a column; ids count up as in a new table.
func fieldsOf(ts ...types.Type) []types.Field {
	fs := make([]types.Field, len(ts))
	for i, t := range ts {
		fs[i] = types.Field{ID: i, Name: "c" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Type: t}
	}
	return fs
}

// batchOf makes a batch of rows of single values.
func batchOf(fs []types.Field, rows [][]types.Datum) *types.Batch {
	b := types.NewBatch(fs)
	for _, r := range rows {
		b.AppendDatums(r)
	}
	return b
}

// writeFile writes batches with the given options and returns the file.
func writeFile(t tb, o WriterOptions, batches ...*types.Batch) ([]byte, Info) {
	t.Helper()
	var buf bytes.Buffer
	w, err := NewWriter(&buf, o)
	require.NoError(t, err)
	for _, b := range batches {
		require.NoError(t, w.Write(b))
	}
	info, err := w.Close()
	require.NoError(t, err)
	require.EqualValues(t, buf.Len(), info.Bytes)
	return buf.Bytes(), info
}

// openFile opens data with all columns.
func openFile(t tb, data []byte, o ReadOptions) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(data), int64(len(data)), o)
	require.NoError(t, err)
	return f
}

func allCols(n int) []int {
	cols := make([]int, n)
	for i := range cols {
		cols[i] = i
	}
	return cols
}

// readAll reads all rows of all columns and checks the positions.
func readAll(t tb, f *File) [][]types.Datum {
	t.Helper()
	rows, err := readRowsOf(f)
	require.NoError(t, err)
	return rows
}

func readRowsOf(f *File) (rows [][]types.Datum, err error) {
	err = f.Read(allCols(len(f.o.Fields)), func(start int64, b *types.Batch) error {
		if start != int64(len(rows)) {
			panic("wrong position of a batch")
		}
		for i := range b.Len() {
			rows = append(rows, cloneRow(b.Row(i)))
		}
		return nil
	})
	return rows, err
}

func cloneRow(row []types.Datum) []types.Datum {
	out := make([]types.Datum, len(row))
	for i, d := range row {
		out[i] = cloneDatum(d)
	}
	return out
}

func cloneDatum(d types.Datum) types.Datum {
	if d.B != nil {
		d.B = append([]byte{}, d.B...)
	}
	if d.L != nil {
		d.L = cloneRow(d.L)
	}
	return d
}

// sameRows compares values bit by bit: NaN equals NaN, -0.0 differs from 0.0.
func sameRows(t tb, want, got [][]types.Datum) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Len(t, got[i], len(want[i]))
		for c := range want[i] {
			if !sameDatum(want[i][c], got[i][c]) {
				require.Equal(t, want[i][c], got[i][c], "row %d column %d", i, c)
				t.Fatalf("row %d column %d: %v is not %v", i, c, got[i][c], want[i][c])
			}
		}
	}
}

func sameDatum(a, b types.Datum) bool {
	if a.Null || b.Null {
		return a.Null == b.Null
	}
	if a.I != b.I || a.N != b.N || a.D != b.D || !bytes.Equal(a.B, b.B) || len(a.L) != len(b.L) {
		return false
	}
	if math.Float64bits(a.F) != math.Float64bits(b.F) && (a.F == a.F || b.F == b.F) {
		return false
	}
	for i := range a.L {
		if !sameDatum(a.L[i], b.L[i]) {
			return false
		}
	}
	return true
}

// tb is what *testing.T and *rapid.T have in common.
type tb interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}
