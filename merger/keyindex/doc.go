// Package keyindex is the in-memory merge-key index of one table: for a merge
// key it finds every live row of the table that has it.
//
// The rows live in data files. A data file is a segment, a row is a [Loc]: the
// segment and the row's position in the file. An entry of the index is live as
// long as its segment is and the file's deletion vector does not hold its
// position, so deletes and removed files need no write to the index: the caller
// hands over the deletion vector ([Index.SetDeleted]) or drops the segment
// ([Index.RemoveSegment]). What that leaves behind, stale entries, is reclaimed
// when a new row of the same key arrives, when a shard grows, and by
// [Index.Sweep].
//
// One delta of a table, whoever committed it, is applied in this order:
//
//	x.SetDeleted(...)     // every deletion vector that changed
//	x.RemoveSegment(...)  // every file that is gone
//	seg, err := x.AddSegment(rows)
//	x.Add(seg, 0, keys)   // every new file, its rows in order
//
// Between AddSegment and the last Add of a file, Lookup refuses to answer. The
// index is a cache: when it reports [ErrLost] the caller drops it and builds
// another from the table.
//
// The memory is anonymous mmap, outside the Go heap. DESIGN.md has the layout,
// the measurements and the reasons.
package keyindex
