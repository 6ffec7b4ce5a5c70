package keyindex_test

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"applier/merger/keyindex"
	"applier/storage/types"
)

// One merge of a batch: find the rows of its keys, commit, apply the commit.
func Example() {
	x, err := keyindex.New(keyindex.Options{Class: types.Key64, MaxBytes: 1 << 20})
	if err != nil {
		panic(err)
	}
	defer x.Close()
	encoder, err := types.NewKeyEncoder([]types.Type{types.BigIntType()})
	if err != nil {
		panic(err)
	}
	keysOf := func(ids ...int64) *types.Keys {
		column := types.NewVector(types.BigIntType())
		for _, id := range ids {
			column.AppendInt64(id)
		}
		keys := &types.Keys{}
		encoder.Append(keys, []*types.Vector{column}, 0, len(ids))
		return keys
	}

	// The table has one file, of three rows.
	base, _ := x.AddSegment(3)
	_ = x.Add(base, 0, keysOf(10, 20, 30))

	// A batch changes 20 and brings 40.
	batch := keysOf(20, 40)
	var found keyindex.Matches
	_ = x.Lookup(batch, nil, &found)
	deleted := roaring.New()
	for j := range batch.Len() {
		for _, row := range found.Rows(j) {
			fmt.Printf("key %d: row %d of file %d is replaced\n", j, row.Pos(), row.Segment())
			deleted.Add(row.Pos())
		}
	}

	// The commit wrote the deletion vector and a file with the two rows.
	_ = x.SetDeleted(base, deleted)
	seg, _ := x.AddSegment(2)
	_ = x.Add(seg, 0, batch)

	_ = x.Lookup(batch, nil, &found)
	fmt.Println(found.Rows(0)[0] == keyindex.MakeLoc(seg, 0), x.Stats().Live, x.Stats().Stale)
	// Output:
	// key 0: row 1 of file 1 is replaced
	// true 4 0
}
