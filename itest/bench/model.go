package main

import (
	"context"
	"fmt"

	"applier/itest/harness"
	"applier/storage/paimon"
	"applier/storage/types"
)

// versions are which version of each id a table must have, absent for none.
type versions []uint16

const absent = 1<<16 - 1

// after is the table after a number of batches.
func after(l harness.MergeLoad, batches int64) versions {
	out := make(versions, l.TargetRows+batches*(l.BatchRows/10))
	for id := range out {
		if int64(id) >= l.TargetRows || l.Deleted(int64(id)) {
			out[id] = absent
		}
	}
	for k := int64(1); k <= batches; k++ {
		for _, id := range l.Batch(k) {
			out[id] = uint16(k)
		}
	}
	return out
}

// readsAsModel scans the table with the storage room's reader and compares every row
// with the generator's: for tables whose texts would take longer than the run.
func readsAsModel(ctx context.Context, w workload, warehouse string) error {
	t, err := openTarget(ctx, warehouse)
	if err != nil {
		return err
	}
	_, st, err := t.Version(ctx, paimon.Version{})
	if err != nil {
		return err
	}
	l := w.load()
	left := after(l, w.Batches)
	err = t.Scan(ctx, st, paimon.ScanOptions{}, func(b *types.Batch) error {
		for i := range b.Len() {
			id := b.Cols[0].I64[i]
			if id < 0 || id >= int64(len(left)) || left[id] == absent {
				return fmt.Errorf("row %d is there, and should not, or twice", id)
			}
			if want := l.Row(id, int64(left[id])); !sameRow(b, i, &want) {
				return fmt.Errorf("row %d is not the one of version %d", id, left[id])
			}
			left[id] = absent
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the table back: %w", err)
	}
	for id, v := range left {
		if v != absent {
			return fmt.Errorf("row %d is missing", id)
		}
	}
	return nil
}

// sameRow compares a row of a batch as appendRow writes it.
func sameRow(b *types.Batch, i int, r *harness.MergeRow) bool {
	return b.Cols[1].I64[i] == r.V && string(b.Cols[2].Bytes(i)) == r.Name && string(b.Cols[3].Bytes(i)) == r.City && b.Cols[4].F64[i] == r.Score &&
		b.Cols[5].I64[i] == r.Cents && b.Cols[6].I64[i] == r.Micros && b.Cols[7].I32[i] == int32(r.Day)
}
