package keyindex

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// AddSegment makes a data file of that many rows known and returns its number.
// Numbers ascend from 1 and are never used again. Until Add or a Builder has
// brought all the rows, Lookup fails with ErrIncomplete.
func (x *Index) AddSegment(rows uint32) (uint32, error) {
	if err := x.usable(); err != nil {
		return 0, err
	}
	seg, _, err := x.segs.add(rows)
	return seg, err
}

// RemoveSegment forgets a data file that is gone from the table: all its entries
// are stale from now on and its sidecar is freed.
func (x *Index) RemoveSegment(seg uint32) error {
	if err := x.usable(); err != nil {
		return err
	}
	g := x.segs.get(seg)
	if g == nil {
		return fmt.Errorf("%w: removing unknown segment %d", ErrInvalid, seg)
	}
	side := g.side
	x.segs.remove(seg, g)
	if side != nil && side.dir != nil {
		if err := side.close(); err != nil {
			return x.fail(err)
		}
	}
	return nil
}

// SetDeleted takes over the whole deletion vector of a data file, nil for none.
// It keeps a copy, one bit a row, on the Go heap.
//
// Entries of deleted rows may be gone for good, so a vector that lacks a position
// of the one before it (somebody rolled the table back) fails with ErrLost. A
// position beyond the file is ErrInvalid and changes nothing.
func (x *Index) SetDeleted(seg uint32, dv *roaring.Bitmap) error {
	if err := x.usable(); err != nil {
		return err
	}
	g := x.segs.get(seg)
	if g == nil {
		return fmt.Errorf("%w: deletion vector of unknown segment %d", ErrInvalid, seg)
	}
	if dv != nil && !dv.IsEmpty() && dv.Maximum() >= g.rows {
		return fmt.Errorf("%w: position %d deleted in segment %d of %d rows", ErrInvalid, dv.Maximum(), seg, g.rows)
	}
	if !x.segs.setDead(g, dv) {
		return x.fail(fmt.Errorf("deleted rows of segment %d came back", seg))
	}
	return nil
}
