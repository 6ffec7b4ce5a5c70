// Package tombstones remembers deletes, so that a change which is older than the
// delete of its key stays without effect although the row is gone.
//
// [Set] holds in memory, for each deleted key, the delete's place in the order
// and when it was committed. [Log] keeps sets in a folder of a bucket: one object
// for each commit that changed the set (a delta, named after the commit's
// transaction), and now and then a whole set (a base). A delta names the object
// it follows, so the objects form a tree; the position record in the table's
// snapshot names the one that goes with it. What a commit deletes is durable
// before the commit is published; whether it counts is decided by the table
// alone: deltas of attempts that came to nothing, and of commits that a rollback
// undid, are on no way from a recorded object to its base.
//
//	object  := "APTB" 0x01 block*
//	block   := length u32 | crc u32 | payload          little endian
//	payload := kind (1 byte) | content
//	  'h' header, the first block: JSON {kind, id, parent, layout, at}
//	  'e' entries
//	  'z' end, the last block: number of entries u64
//	entry   := n uvarint (length of the key << 1 | 1 if deleted, 0 if forgotten) | key
//	           deleted: length uvarint | order | at varint (ms, relative to the header's)
//
// A crc is CRC-32C over all payloads so far, so that no block can be missing, cut
// or moved. An object that is damaged anywhere is lost as a whole.
package tombstones
