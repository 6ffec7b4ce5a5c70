package types

import (
	"bytes"
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAppendOrdered_RapidComparesAsCompareCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := drawKeyTypes(t)
		fields := make([]Field, len(types))
		for i, typ := range types {
			fields[i].Type = typ
		}
		b := NewBatch(fields)
		n := rapid.IntRange(2, 20).Draw(t, "rows")
		for range n {
			row := make([]Datum, len(types))
			for i, typ := range types {
				if row[i] = drawDatum(t, typ); rapid.IntRange(0, 4).Draw(t, "null") == 0 {
					row[i] = Null
				}
			}
			b.AppendDatums(row)
		}
		ordered := func(i int) (out []byte) {
			for _, c := range b.Cols {
				out = AppendOrdered(out, c, i)
			}
			return out
		}
		for i := range n {
			for j := range n {
				want := 0
				for _, c := range b.Cols {
					want = cmp.Or(want, CompareCells(c, i, c, j))
				}
				require.Equal(t, want, bytes.Compare(ordered(i), ordered(j)), "%v: %v, %v", types, b.Row(i), b.Row(j))
			}
		}
	})
}

func TestAppendOrdered_BytesThatBeginOneAnother(t *testing.T) {
	b := NewBatch([]Field{{Type: VarBinaryType(10)}, {Type: VarBinaryType(10)}})
	rows := [][2]string{{"", "z"}, {"\x00", ""}, {"\x00\x00", ""}, {"\x00\x01", "a"}, {"\x00\xff", ""}, {"a", "\xff"}, {"a\x00", ""}, {"aa", ""}, {"\xff", ""}}
	for _, r := range rows {
		b.AppendDatums([]Datum{StringDatum(r[0]), StringDatum(r[1])})
	}
	var last []byte
	for i := range rows {
		next := AppendOrdered(AppendOrdered(nil, b.Cols[0], i), b.Cols[1], i)
		require.Negative(t, bytes.Compare(last, next), "row %d", i)
		last = next
	}
}

func TestAppendOrdered_NestedTypesHaveNoOrder(t *testing.T) {
	b := NewBatch([]Field{{Type: ArrayType(IntType())}})
	b.AppendDatums([]Datum{{L: []Datum{IntDatum(1)}}})
	require.Empty(t, AppendOrdered(nil, b.Cols[0], 0))
}

// CHAR is compared as if filled up with blanks, so what is below a blank makes a
// longer text the smaller one.
func TestAppendOrdered_CharsAreFilledWithBlanks(t *testing.T) {
	ascending := [][]string{{"\x00a"}, {"\x1f"}, {"", " ", "  "}, {" \x21"}, {"!"}, {"a\x00b"}, {"a", "a "}, {"a !"}, {"a!"}}
	b := NewBatch([]Field{{Type: CharType(3)}})
	var ranks []int
	for rank, texts := range ascending {
		for _, text := range texts {
			b.AppendDatums([]Datum{StringDatum(text)})
			ranks = append(ranks, rank)
		}
	}
	c := b.Cols[0]
	for i := range ranks {
		for j := range ranks {
			want := cmp.Compare(ranks[i], ranks[j])
			require.Equal(t, want, CompareCells(c, i, c, j), "%q, %q", c.Bytes(i), c.Bytes(j))
			require.Equal(t, want, bytes.Compare(AppendOrdered(nil, c, i), AppendOrdered(nil, c, j)), "%q, %q", c.Bytes(i), c.Bytes(j))
		}
	}
}
