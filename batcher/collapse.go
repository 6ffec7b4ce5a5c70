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
// match two changes of a batch. All changes of a key stay linked in the order of
// their arrival: what a winner says nothing about, the ones before it may.
func (b *Batcher) collapse(batch *Batch) {
	n := batch.Changes.Len()
	if batch.Keys == nil {
		batch.Keys = &types.Keys{}
	}
	b.enc.Append(batch.Keys, b.keyColumns(batch.Changes), 0, n)
	t := newTable(batch, n, b.o.Apply == InsertOnly || len(b.o.Order.By) > 0)
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

// link puts change i at the head of its key's chain and settles whether it is
// the one that decides.
func (b *Batcher) link(batch *Batch, t *table, i int) {
	slot := t.find(batch.Keys, i)
	if t.slots[slot] == 0 {
		t.slots[slot] = uint32(i) + 1
		if t.best != nil {
			t.best[slot] = uint32(i) + 1
		}
		return
	}
	head := int(t.slots[slot]) - 1
	batch.Prev[i] = int32(head)
	t.slots[slot] = uint32(i) + 1
	if batch.Changes.Part[head] != batch.Changes.Part[i] {
		batch.Counts.TwoPartitions++
	}
	switch {
	case b.o.Apply == InsertOnly: // the first one stays, whatever comes later
		batch.Counts.Ignored++
	case t.best == nil:
		batch.Counts.Collapsed++
	default:
		switch v := b.o.Order.Judge(b.o.Order.Compare(batch.Changes, i, int(t.best[slot])-1)); {
		case v.Applies():
			t.best[slot] = uint32(i) + 1
			batch.Counts.Collapsed++
		case v == Tied:
			batch.Counts.Tied++
		default:
			batch.Counts.Late++
		}
	}
}

// Compare compares the places of two changes in the order. Kinds of operation
// never count.
func (o *Order) Compare(c *change.Batch, i, j int) int {
	for _, col := range o.By {
		v := c.Cols[col].Vector
		if d := types.CompareCells(v, i, v, j); d != 0 {
			return d
		}
	}
	return 0
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

// table is an open-addressing hash table from key to the change of it that
// arrived last, row + 1; 0 is free.
type table struct {
	batch *Batch
	slots []uint32
	best  []uint32 // the change that decides, row + 1; nil where it is the last one
	mask  uint64
}

// newTable returns an empty table for n changes. ordered: the last change of a
// key is not always the one that decides.
func newTable(batch *Batch, n int, ordered bool) *table {
	size := 16
	for size < 2*n {
		size *= 2
	}
	t := &table{batch: batch, mask: uint64(size - 1)}
	t.slots = zeroed(&batch.slots, size)
	if ordered {
		t.best = zeroed(&batch.best, size)
	}
	return t
}

// zeroed returns n zeros in the memory of s.
func zeroed(s *[]uint32, n int) []uint32 {
	if cap(*s) < n {
		*s = make([]uint32, n)
	}
	*s = (*s)[:n]
	clear(*s)
	return *s
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

// winners collects the changes that decide, in arrival order, and the heads of
// their chains where these are others.
func (t *table) winners() {
	b := t.batch
	var heads []uint32
	if t.best != nil {
		heads = zeroed(&b.headOf, b.Changes.Len())
	}
	for slot, s := range t.slots {
		switch {
		case s == 0:
		case t.best == nil:
			b.bitmap.Set(int(s) - 1)
		default:
			b.bitmap.Set(int(t.best[slot]) - 1)
			heads[t.best[slot]-1] = s - 1
		}
	}
	if t.best == nil {
		b.heads = nil
	} else if b.heads == nil {
		b.heads = []uint32{}
	}
	for i := range b.Changes.Len() {
		if !b.bitmap.Get(i) {
			continue
		}
		b.Winners = append(b.Winners, uint32(i))
		if t.best != nil {
			b.heads = append(b.heads, heads[i])
		}
	}
}
