package datafile

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"applier/storage/types"
)

// entry is one entry of a Parquet column: levels and, at the top level, a value.
type entry struct {
	rep, def int
	value    string
}

// stripe is a plain, row-wise implementation of Dremel's column striping, to
// compare columns with. optional says for each node, in pre-order, whether the
// file has it as OPTIONAL.
type stripe struct {
	cols [][]entry
}

func (s *stripe) row(t types.Type, d types.Datum, rep, repLevel, def, col int) int {
	if !t.NotNull {
		if d.Null {
			return s.absent(t, rep, def, col)
		}
		def++
	}
	switch types.LayoutOf(t) {
	case types.LayoutStruct:
		for i, f := range t.StructFields() {
			col = s.row(f.Type, d.L[i], rep, repLevel, def, col)
		}
		return col
	case types.LayoutList:
		return s.items([]types.Type{*t.Elem}, t, d, rep, repLevel, def, col)
	case types.LayoutMap:
		if t.Kind == types.Multiset {
			return s.items([]types.Type{t.Elem.NonNull(), types.IntType().NonNull()}, t, d, rep, repLevel, def, col)
		}
		return s.items([]types.Type{t.Key.NonNull(), *t.Elem}, t, d, rep, repLevel, def, col)
	}
	s.add(col, entry{rep, def, textOf(t, d)})
	return col + 1
}

func (s *stripe) items(parts []types.Type, t types.Type, d types.Datum, rep, repLevel, def, col int) int {
	if len(d.L) == 0 {
		return s.absent(t, rep, def, col)
	}
	end := col
	for i := 0; i < len(d.L); i += len(parts) {
		end = col
		for k, p := range parts {
			end = s.row(p, d.L[i+k], rep, repLevel+1, def+1, end)
		}
		rep = repLevel + 1
	}
	return end
}

func (s *stripe) absent(t types.Type, rep, def, col int) int {
	switch types.LayoutOf(t) {
	case types.LayoutStruct:
		for _, f := range t.StructFields() {
			col = s.absent(f.Type, rep, def, col)
		}
		return col
	case types.LayoutList:
		return s.absent(*t.Elem, rep, def, col)
	case types.LayoutMap:
		k, v := t.Key, t.Elem
		if t.Kind == types.Multiset {
			one := types.IntType()
			k, v = t.Elem, &one
		}
		return s.absent(*v, rep, def, s.absent(*k, rep, def, col))
	}
	s.add(col, entry{rep: rep, def: def})
	return col + 1
}

func (s *stripe) add(col int, e entry) {
	for len(s.cols) <= col {
		s.cols = append(s.cols, nil)
	}
	s.cols[col] = append(s.cols[col], e)
}

// textOf is a value as parquet-go shows the physical one.
func textOf(t types.Type, d types.Datum) string {
	switch types.LayoutOf(t) {
	case types.LayoutBool:
		return fmt.Sprint(d.I != 0)
	case types.LayoutInt64:
		if t.IsTimestamp() && t.Precision <= 3 {
			return fmt.Sprint(d.I / 1000)
		}
		return fmt.Sprint(d.I)
	case types.LayoutInt32:
		return fmt.Sprint(d.I)
	case types.LayoutFloat:
		return fmt.Sprint(float32(d.F))
	case types.LayoutDouble:
		return fmt.Sprint(d.F)
	case types.LayoutInt128:
		b := d.D.Bytes(nil, decimalBytes(t.Precision))
		return fmt.Sprintf("%x", b)
	case types.LayoutNano:
		return fmt.Sprintf("%d.%03d", d.I, d.N)
	}
	return fmt.Sprintf("%x", d.B)
}

func textOfValue(v parquet.Value) string {
	switch v.Kind() {
	case parquet.Boolean:
		return fmt.Sprint(v.Boolean())
	case parquet.Int32:
		return fmt.Sprint(v.Int32())
	case parquet.Int64:
		return fmt.Sprint(v.Int64())
	case parquet.Float:
		return fmt.Sprint(v.Float())
	case parquet.Double:
		return fmt.Sprint(v.Double())
	case parquet.Int96:
		x := v.Int96()
		ns := int64(uint64(x[1])<<32 | uint64(x[0]))
		us := types.FloorDiv(ns, 1000)
		return fmt.Sprintf("%d.%03d", (int64(int32(x[2]))-julianEpoch)*microsPerDay+us, ns-1000*us)
	}
	return fmt.Sprintf("%x", v.ByteArray())
}

// parquetGoColumns reads a file with parquet-go's generic row reader.
func parquetGoColumns(t require.TestingT, data []byte) (*parquet.File, [][]entry) {
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	cols := make([][]entry, len(f.Schema().Columns()))
	for _, g := range f.RowGroups() {
		rows := g.Rows()
		buf := make([]parquet.Row, 7)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				for _, v := range row {
					e := entry{rep: v.RepetitionLevel(), def: v.DefinitionLevel()}
					if !v.IsNull() {
						e.value = textOfValue(v)
					}
					cols[v.Column()] = append(cols[v.Column()], e)
				}
			}
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
		}
		require.NoError(t, rows.Close())
	}
	return f, cols
}

func stripeRows(fs []types.Field, rows [][]types.Datum) [][]entry {
	var s stripe
	for _, r := range rows {
		col := 0
		for i, f := range fs {
			col = s.row(f.Type, r[i], 0, 0, 0, col)
		}
	}
	return s.cols
}

func TestWriter_ParquetGoReadsTheSameLevelsAndValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs, rows := drawTable(t, 3)
		data := writeParts(t, drawOptions(t, fs), rows)
		want := stripeRows(fs, rows)
		_, got := parquetGoColumns(t, data)
		if len(rows) > 0 {
			require.Equal(t, want, got)
		}
	})
}
