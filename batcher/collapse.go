package batcher

import (
	"applier/ingest/change"
	"applier/storage/types"
)

// selectAll takes every change (Append).
func (b *Batcher) selectAll(batch *Batch) {
	for i := range batch.Changes.Len() {
		batch.Winners = append(batch.Winners, uint32(i))
		batch.Prev = append(batch.Prev, -1)
	}
}

// collapse keeps one change per merge key. Equality is SQL's on the values
// after casting to the column types (types.Keys), so that no target row can
// match two changes of a batch. Per key the changes form a chain from newest to
// oldest; its head is the winner and fills its holes from the rest.
func (b *Batcher) collapse(batch *Batch) {
	n := batch.Changes.Len()
	if batch.Keys == nil {
		batch.Keys = &types.Keys{}
	}
	b.enc.Append(batch.Keys, b.keyColumns(batch.Changes), 0, n)
	t := newTable(batch, n)
	for i := range n {
		batch.Prev = append(batch.Prev, -1)
		if b.ignores(batch.Changes.Kind[i]) || batch.Keys.Null.Get(i) {
			batch.Counts.Ignored++
			continue
		}
		b.link(batch, t, i)
	}
	t.winners()
	b.linkOldKeys(batch, t)
}

func (b *Batcher) keyColumns(c *change.Batch) []*types.Vector {
	cols := make([]*types.Vector, len(b.o.Key))
	for i, k := range b.o.Key {
		cols[i] = c.Cols[k].Vector
	}
	return cols
}

// ignores: these presets do not follow deletes.
func (b *Batcher) ignores(k change.Kind) bool {
	return k == change.Delete && (b.o.Apply == Upsert || b.o.Apply == InsertOnly)
}

// link puts change i into its key's chain.
func (b *Batcher) link(batch *Batch, t *table, i int) {
	slot := t.find(batch.Keys, i)
	if t.slots[slot] == 0 {
		t.slots[slot] = uint32(i) + 1
		return
	}
	head := int(t.slots[slot]) - 1
	batch.Counts.Collapsed++
	if batch.Changes.Part[head] != batch.Changes.Part[i] {
		batch.Counts.TwoPartitions++
	}
	switch {
	case b.o.Apply == InsertOnly: // the first one wins, whatever comes later
	case b.newer(batch.Changes, i, head):
		batch.Prev[i] = int32(head)
		t.slots[slot] = uint32(i) + 1
	default:
		// Older by order_by than the head: it goes to its place in the chain, where
		// it may still fill holes.
		at := head
		for batch.Prev[at] >= 0 && !b.newer(batch.Changes, i, int(batch.Prev[at])) {
			at = int(batch.Prev[at])
		}
		batch.Prev[i] = batch.Prev[at]
		batch.Prev[at] = int32(i)
	}
}

// newer reports whether change i comes after change j of the same key. Without
// order_by it does, for it arrived later; with it the values decide and a tie
// goes to the later arrival. Kinds of operation never count.
func (b *Batcher) newer(c *change.Batch, i, j int) bool {
	for _, col := range b.o.OrderBy {
		v := c.Cols[col].Vector
		if d := types.CompareCells(v, i, v, j); d != 0 {
			return d > 0
		}
	}
	return true
}

// linkOldKeys finds the chains of the keys that key changes left behind.
func (b *Batcher) linkOldKeys(batch *Batch, t *table) {
	old := batch.Changes.OldKeys
	if old == nil || old.Len() == 0 {
		return
	}
	if batch.OldKeys == nil {
		batch.OldKeys = &types.Keys{}
	}
	b.enc.Append(batch.OldKeys, old.Cols, 0, old.Len())
	for i := range old.Len() {
		head := int32(-1)
		if !batch.OldKeys.Null.Get(i) {
			head = int32(t.slots[t.findIn(batch.Keys, batch.OldKeys, i)]) - 1
		}
		batch.OldHead = append(batch.OldHead, head)
	}
}

// table is an open-addressing hash table from key to the head of its chain,
// row + 1; 0 is free.
type table struct {
	batch *Batch
	slots []uint32
	mask  uint64
}

func newTable(batch *Batch, n int) *table {
	size := 16
	for size < 2*n {
		size *= 2
	}
	if cap(batch.slots) < size {
		batch.slots = make([]uint32, size)
	}
	batch.slots = batch.slots[:size]
	clear(batch.slots)
	return &table{batch, batch.slots, uint64(size - 1)}
}

func (t *table) find(keys *types.Keys, i int) uint64 { return t.findIn(keys, keys, i) }

// findIn returns the slot of key i of probe among the chains of keys.
func (t *table) findIn(keys, probe *types.Keys, i int) uint64 {
	slot := probe.Hash[i] & t.mask
	for t.slots[slot] != 0 && !keys.Equal(int(t.slots[slot])-1, probe, i) {
		slot = (slot + 1) & t.mask
	}
	return slot
}

// winners collects the heads in arrival order.
func (t *table) winners() {
	b := t.batch
	for _, s := range t.slots {
		if s != 0 {
			b.bitmap.Set(int(s) - 1)
		}
	}
	for i := range b.Changes.Len() {
		if b.bitmap.Get(i) {
			b.Winners = append(b.Winners, uint32(i))
		}
	}
}
