package demo

import (
	"context"
	"fmt"
	"maps"

	"applier/storage/catalog"
	"applier/storage/objstore"
	"applier/storage/paimon"
	"applier/storage/types"
)

// finish reads the table back, compares it with the generator's model and shows
// its first rows.
func (s *show) finish(warehouse string, model map[key]row) error {
	ctx := context.Background()
	c, err := catalog.NewFileSystem(warehouse, objstore.LocalOptions{})
	if err != nil {
		return err
	}
	n, err := catalog.ParseName(tableName)
	if err != nil {
		return err
	}
	t, err := c.Open(ctx, n, paimon.Read)
	if err != nil {
		return err
	}
	id, err := paimon.LatestSnapshotID(ctx, t.Bucket(), t.Paths())
	if err != nil {
		return err
	}
	snap, err := paimon.ReadSnapshot(ctx, t.Bucket(), t.Paths(), id)
	if err != nil {
		return err
	}
	st, err := t.State(ctx, snap)
	if err != nil {
		return err
	}
	got := map[key]row{}
	col := func(name string) int { return t.Schema().Column(name) }
	err = t.Scan(ctx, st, paimon.ScanOptions{Columns: []int{col("product_id"), col("dt"), col("price"), col("sales")}}, func(b *types.Batch) error {
		for i := range b.Len() {
			k := key{b.Cols[0].I64[i], string(b.Cols[1].Bytes(i))}
			if _, twice := got[k]; twice {
				return fmt.Errorf("key %v is in the table twice", k)
			}
			got[k] = row{b.Cols[2].F64[i], b.Cols[3].I64[i]}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !maps.Equal(got, model) {
		return fmt.Errorf("the table holds %d rows and differs from the generator's %d", len(got), len(model))
	}
	fmt.Fprintf(s.o.Out, "\nThe table %s at snapshot %d holds %d rows: exactly what the generator's own model holds.\n", tableName, id, len(got))
	return nil
}
