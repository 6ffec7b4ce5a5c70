package paimon

import (
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// A copy of one sorted file keeps its level, as its rows keep their order; whatever
// else is copied, and what is sorted by other columns than the table's now, is of
// level 0, which Java sorts with its next clustering.
func TestDataFileWriter_ACopyOfASortedFileKeepsItsLevel(t *testing.T) {
	fields := []types.Field{field(0, "id", types.BigIntType()), field(1, "p", types.IntType())}
	clustered := func(columns string) [][2]string {
		return [][2]string{{"clustering.incremental", "true"}, {"clustering.columns", columns}}
	}
	for name, c := range map[string]struct {
		options [][2]string
		level   int32
		alter   func(*Schema)
		parts   int
		want    int32
	}{
		"a sorted file":              {clustered("id"), 5, nil, 1, 5},
		"one that is not sorted":     {clustered("id"), 0, nil, 1, 0},
		"two sorted files":           {clustered("id"), 5, nil, 2, 0},
		"no clustering":              {nil, 5, nil, 1, 0},
		"a newer schema sorts alike": {clustered("p,id"), 4, func(s *Schema) { s.Fields = append(s.Fields, field(2, "x", types.IntType())) }, 1, 4},
		"a newer schema sorts otherwise": {clustered("id"), 5, func(s *Schema) {
			s.Options = map[string]string{"clustering.incremental": "true", "clustering.columns": "p"}
		}, 1, 0},
		"the older name of the option":      {[][2]string{{"clustering.incremental", "true"}, {"sink.clustering.by-columns", " id "}}, 3, nil, 1, 3},
		"a column of that name came anew":   {clustered("p"), 5, func(s *Schema) { s.Fields[1] = field(2, "p", types.IntType()) }, 1, 0},
		"a column whose type changes order": {clustered("p"), 5, func(s *Schema) { s.Fields[1].Type = types.StringType() }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, fields, nil, c.options...)
			var parts []Part
			for range c.parts {
				e := f.write(WriterSettings{}, ints(1, 1), ints(2, 1), ints(3, 1))[0]
				e.File.Level = c.level
				parts = append(parts, Part{Entry: &e, Drop: roaring.BitmapOf(1)})
			}
			if c.alter != nil {
				f.alter(c.alter)
			}
			w, err := f.tab.NewDataFileWriter(WriterSettings{NewUUID: f.uuid})
			require.NoError(t, err)
			out, err := w.Join(bg, parts)
			require.NoError(t, err)
			require.Equal(t, c.want, out.File.Level)
			if c.parts == 1 {
				out, err = w.Rewrite(bg, parts[0].Entry, parts[0].Drop)
				require.NoError(t, err)
				require.Equal(t, c.want, out.File.Level)
			}
			require.Equal(t, manifest.Add, out.Kind)
		})
	}
}
