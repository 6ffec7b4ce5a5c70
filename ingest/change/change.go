// Package change is the vocabulary of ingest: what one Kafka record says about
// rows, decoded into typed columns. It imports storage/types only.
package change

import (
	"fmt"
	"slices"

	"applier/storage/types"
)

// Kind is what a change does to the row of its key.
type Kind uint8

const (
	// Insert: the source inserted the row (op c). Applied like Update.
	Insert Kind = iota
	// Update: the source changed the row (op u).
	Update
	// Read: a snapshot read of the row (op r). Applied like Update.
	Read
	// Delete: the row is gone. Its non-key cells are the before image as far as
	// the record has one, else NULL.
	Delete
)

// String returns the name used in metrics and logs.
func (k Kind) String() string {
	return [...]string{"insert", "update", "read", "delete"}[k]
}

// Column is one target column of a Batch. A cell is a value, NULL, or a hole: a
// cell the record says nothing about. Holes are NULL in the vector too.
type Column struct {
	*types.Vector
	// Absent: the record did not carry the column.
	Absent types.Bitmap
	// Unavailable: the producer could not send the value (unchanged TOAST, LOB).
	Unavailable types.Bitmap
}

// Hole reports whether row i says nothing about this column.
func (c *Column) Hole(i int) bool { return c.Absent.Get(i) || c.Unavailable.Get(i) }

// Batch is a sequence of changes in arrival order, as columns. Within one
// source partition offsets never decrease. It belongs to one goroutine.
type Batch struct {
	// Cols has one column for each column of the target table, in table order.
	Cols []Column
	// Kind, Part, Offset, Time have one item a row. Part is the ordinal of the
	// source partition in the pipeline's list, Time the change time in
	// milliseconds since the epoch (the source's if the record has it, else the
	// record's timestamp).
	Kind   []Kind
	Part   []int32
	Offset []int64
	Time   []int64
	// Holes: rows with at least one hole.
	Holes types.Bitmap
	// OldKey is, for a row that a key change produced, the row of OldKeys that
	// holds the key it had before; -1 otherwise. It may be shorter than the
	// batch: missing items are -1.
	OldKey []int32
	// OldKeys holds key columns only, in key order; nil until needed.
	OldKeys *types.Batch
	// Raw are the records of rows with a hole that may turn out impossible to
	// fill (an unavailable value, or an absent one of a column that takes no NULL),
	// so that they can still be sent to the dead letters. RawRow, parallel to it
	// and ascending, says which rows these are. The decoder can be asked to keep all,
	// for those that prove late. Empty unless it was asked.
	Raw    []RawRecord
	RawRow []int32
	// Bytes counts the record bytes (key, value, headers) decoded into this batch.
	Bytes int64
	key   []types.Field
}

// RawRecord is a copy of a Kafka record.
type RawRecord struct {
	Key, Value []byte
	Headers    []Header
	Timestamp  int64
}

// Header is a Kafka record header.
type Header struct {
	Key   string
	Value []byte
}

// NewBatch returns an empty batch for a table's columns and its key columns.
func NewBatch(fields, key []types.Field) *Batch {
	b := &Batch{Cols: make([]Column, len(fields)), key: key}
	for i, f := range fields {
		b.Cols[i] = Column{Vector: types.NewVector(f.Type)}
	}
	return b
}

// Len returns the number of changes.
func (b *Batch) Len() int { return len(b.Kind) }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.Truncate(0)
	b.Bytes = 0
}

// Truncate drops every change from row n on, also one whose cells are only
// partly appended. Bytes stays as it is.
func (b *Batch) Truncate(n int) {
	for i := range b.Cols {
		c := &b.Cols[i]
		if c.Len() >= n {
			c.Truncate(n)
		}
		c.Absent.Truncate(n)
		c.Unavailable.Truncate(n)
	}
	cut := func(l int) int { return min(n, l) }
	b.Kind = b.Kind[:cut(len(b.Kind))]
	b.Part = b.Part[:cut(len(b.Part))]
	b.Offset = b.Offset[:cut(len(b.Offset))]
	b.Time = b.Time[:cut(len(b.Time))]
	b.Holes.Truncate(n)
	if len(b.OldKey) > n {
		b.OldKey = b.OldKey[:n]
		keep := 0
		for _, k := range b.OldKey {
			keep = max(keep, int(k)+1)
		}
		b.OldKeys.Truncate(keep)
	}
	for len(b.RawRow) > 0 && int(b.RawRow[len(b.RawRow)-1]) >= n {
		last := len(b.RawRow) - 1
		b.Raw[last] = RawRecord{} // or the copy would live as long as the batch
		b.RawRow, b.Raw = b.RawRow[:last], b.Raw[:last]
	}
}

// EndRow ends a row after each column got one cell: it appends the row's kind
// and position and marks its holes.
func (b *Batch) EndRow(kind Kind, part int32, offset, timeMillis int64) {
	i := len(b.Kind)
	for c := range b.Cols {
		if b.Cols[c].Hole(i) {
			b.Holes.Set(i)
			break
		}
	}
	b.Kind = append(b.Kind, kind)
	b.Part = append(b.Part, part)
	b.Offset = append(b.Offset, offset)
	b.Time = append(b.Time, timeMillis)
}

// LinkOldKey says that the last row's key was oldKey (one value a key column) before.
func (b *Batch) LinkOldKey(oldKey []types.Datum) {
	if b.OldKeys == nil {
		b.OldKeys = types.NewBatch(b.key)
	}
	for len(b.OldKey) < len(b.Kind)-1 {
		b.OldKey = append(b.OldKey, -1)
	}
	b.OldKey = append(b.OldKey, int32(b.OldKeys.Len()))
	b.OldKeys.AppendDatums(oldKey)
}

// KeepRaw attaches a copy of its record to the last row; the batch owns the copy.
func (b *Batch) KeepRaw(rec RawRecord) {
	b.Raw = append(b.Raw, rec)
	b.RawRow = append(b.RawRow, int32(len(b.Kind)-1))
}

// RawOf returns the record kept for row i, or nil.
func (b *Batch) RawOf(i int) *RawRecord {
	if at, ok := slices.BinarySearch(b.RawRow, int32(i)); ok {
		return &b.Raw[at]
	}
	return nil
}

// OldKeyOf returns the row of OldKeys linked to row i, or -1.
func (b *Batch) OldKeyOf(i int) int {
	if i < len(b.OldKey) {
		return int(b.OldKey[i])
	}
	return -1
}

// MemBytes returns the memory the batch takes.
func (b *Batch) MemBytes() int64 {
	n := int64(cap(b.Kind) + 4*cap(b.Part) + 8*cap(b.Offset) + 8*cap(b.Time) + 4*cap(b.OldKey))
	for i := range b.Cols {
		n += b.Cols[i].MemBytes() + int64(8*(cap(b.Cols[i].Absent)+cap(b.Cols[i].Unavailable)))
	}
	if b.OldKeys != nil {
		n += b.OldKeys.MemBytes()
	}
	n += int64(8*cap(b.Holes)+4*cap(b.RawRow)) + rawSize*int64(cap(b.Raw))
	for _, r := range b.Raw {
		n += int64(cap(r.Key)+cap(r.Value)) + headerSize*int64(cap(r.Headers))
		for _, h := range r.Headers {
			n += int64(len(h.Key) + cap(h.Value))
		}
	}
	return n
}

// Sizes of the structs themselves on 64-bit machines.
const (
	rawSize    = 80
	headerSize = 40
)

// Partition names a source partition.
type Partition struct {
	Topic     string
	Partition int32
}

// String returns topic/partition.
func (p Partition) String() string { return fmt.Sprintf("%s/%d", p.Topic, p.Partition) }

// Compare orders by topic, then number.
func (p Partition) Compare(q Partition) int {
	switch {
	case p.Topic < q.Topic:
		return -1
	case p.Topic > q.Topic:
		return 1
	}
	return int(p.Partition) - int(q.Partition)
}

// Position is where a partition is to be read next: the fetch position, so
// that control records and compaction gaps need no special case, and the
// leader epoch of the last record read (-1 unknown).
type Position struct {
	Next  int64
	Epoch int32
}

// Positions is a full vector: one position for each partition of a pipeline.
type Positions map[Partition]Position

// Sorted returns the partitions in order, so that no map order leaks anywhere.
func (p Positions) Sorted() []Partition {
	out := make([]Partition, 0, len(p))
	for k := range p {
		out = append(out, k)
	}
	slices.SortFunc(out, Partition.Compare)
	return out
}

// Clone returns a copy.
func (p Positions) Clone() Positions {
	q := make(Positions, len(p))
	for k, v := range p {
		q[k] = v
	}
	return q
}

// SameNext reports whether both vectors name the same partitions and next
// offsets; epochs do not count.
func (p Positions) SameNext(q Positions) bool {
	if len(p) != len(q) {
		return false
	}
	for k, v := range p {
		if w, ok := q[k]; !ok || w.Next != v.Next {
			return false
		}
	}
	return true
}
