package paimon

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/types"
)

// Switching deletion vectors off brings the rows back that they deleted: such a
// table is read as every engine reads it, and not written.
func TestOpenTable_RefusesToWriteATableWhoseVectorsWereSwitchedOff(t *testing.T) {
	for _, marked := range []bool{false, true} {
		f := newFixture(t, []types.Field{field(0, "id", types.BigIntType())}, nil)
		files := f.insert(ints(1), ints(2))
		if marked {
			ix, err := f.tab.BuildVectors(f.st, []VectorChange{{KeyOf(&files[0]), roaring.BitmapOf(0)}}, nil, f.uuid)
			require.NoError(t, err)
			f.commit(Changes{Index: ix}, OperationDelete)
		}
		s := *f.tab.Schema()
		s.ID, s.Options = 1, map[string]string{"bucket": "-1", OptDeletionVectors: "false"}
		data, err := s.Encode()
		require.NoError(t, err)
		require.NoError(t, f.bucket.PutIfAbsent(bg, Paths{}.Schema(1), data))

		tab, err := OpenTable(bg, f.bucket, Read)
		require.NoError(t, err)
		n, err := tab.CountRows(bg, f.latest(tab))
		require.NoError(t, err)
		require.EqualValues(t, 2, n)
		_, err = OpenTable(bg, f.bucket, Write)
		if !marked {
			require.NoError(t, err)
			continue
		}
		var r *Refusal
		require.ErrorAs(t, err, &r)
		require.True(t, r.Has(CodeVectorsOff))
	}
}

// A snapshot that cannot be read is told by whoever reads it, with its code.
func TestOpenTable_OpensATableWhoseNewestSnapshotIsTorn(t *testing.T) {
	f := newFixture(t, []types.Field{field(0, "id", types.BigIntType())}, nil)
	f.insert(ints(1))
	f.alter(func(s *Schema) {
		s.Fields, s.HighestFieldID = append(s.Fields, field(1, "more", types.IntType())), 1
	})
	require.NoError(t, f.bucket.PutIfAbsent(bg, f.tab.Paths().Snapshot(2), []byte("\x00\x00")))
	_, err := OpenTable(bg, f.bucket, Write)
	require.NoError(t, err)
}
