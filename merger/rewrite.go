package merger

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"applier/storage/paimon"
	"applier/storage/paimon/manifest"

	"github.com/RoaringBitmap/roaring/v2"
)

// Copy-on-write tables have no deletion vectors: a file with deleted rows is
// written again without them. One new file for each old one, and the batch's new
// rows in files of their own: what a row's new place is then follows from which
// rows before it are gone, and rows that were copied never share a file with new
// ones, whose row ids come about otherwise.
//
// The key index is not told of new places. It goes on to name a row by its place
// in the file as it was first seen; what has left the file since is deleted there,
// as with deletion vectors, and removed turns such a place into today's. So
// the index's work is that of the batch, however many rows are copied.

// rewriteFiles writes the files again that the plan deletes rows of, straight into
// the store. A file that has no row left goes.
func (a *Applier) rewriteFiles(ctx context.Context, at *attempt, base *paimon.State, ch *paimon.Changes) error {
	at.rewritten = map[uint32]*manifest.Entry{}
	old, err := paimon.VectorRefs(base.Index)
	if err != nil {
		return err
	}
	var vectors []paimon.VectorChange
	for _, seg := range at.plan.sortedSegments() {
		f := a.view.bySeg[seg]
		if f == nil {
			return &Halt{CodeMismatch, fmt.Sprintf("the index names a data file (segment %d) that is not live", seg)}
		}
		drop := roaring.BitmapOf(f.places(at.plan.deletes[seg])...)
		switch n := int64(drop.GetCardinality()); {
		case n != int64(len(at.plan.deletes[seg])) || int64(drop.Maximum()) >= f.entry.File.Rows:
			return &Halt{CodeMismatch, fmt.Sprintf("rows to be deleted of data file %s are not in it", f.entry.File.Name)}
		case n < f.entry.File.Rows:
			e, err := a.writer.Rewrite(ctx, &f.entry, drop)
			if err != nil {
				return err
			}
			at.rewritten[seg] = e
			at.bytes.Data += e.File.Size
			ch.Add = append(ch.Add, *e)
		}
		ch.Delete = append(ch.Delete, f.entry)
		// A vector from the time when the table had them goes with its file.
		if k := paimon.KeyOf(&f.entry); old[k].Index != nil {
			vectors = append(vectors, paimon.VectorChange{File: k})
		}
	}
	if len(vectors) == 0 {
		return nil
	}
	sortByPartition(vectors)
	ch.Index, err = a.table.BuildVectors(base, vectors, func(k paimon.FileKey) (*roaring.Bitmap, error) {
		f := a.view.files[k]
		if f == nil {
			return nil, a.strayVector(k)
		}
		return a.table.ReadVector(ctx, old[k], f.entry.File.Rows)
	}, a.set.UUID)
	return err
}

// removed are the rows that rewriting has taken out of a file, by the places that
// the index knows. nil: none, places in the file are those in the index.
type removed struct {
	rows *roaring.Bitmap
	bits []uint64
	// before[i] is how many bits are set in bits[:rankWords*i].
	before []uint32
}

// rankWords is how many words of bits are counted each time.
const rankWords = 8

// with returns r and further rows.
func (r *removed) with(rows []uint32) *removed {
	n := &removed{rows: roaring.New()}
	if r != nil {
		n.rows = r.rows.Clone()
	}
	n.rows.AddMany(rows)
	n.bits = make([]uint64, n.rows.DenseSize())
	n.rows.WriteDenseTo(n.bits)
	count := uint32(0)
	for i, w := range n.bits {
		if i%rankWords == 0 {
			n.before = append(n.before, count)
		}
		count += uint32(bits.OnesCount64(w))
	}
	return n
}

// below returns how many rows before place pos are gone.
func (r *removed) below(pos uint32) uint32 {
	word := int(pos / 64)
	if word >= len(r.bits) {
		return uint32(r.rows.GetCardinality())
	}
	n := r.before[word/rankWords] + uint32(bits.OnesCount64(r.bits[word]&(1<<(pos%64)-1)))
	for _, w := range r.bits[word/rankWords*rankWords : word] {
		n += uint32(bits.OnesCount64(w))
	}
	return n
}

// place returns where in the file a live row is that the index names.
func (f *dataFile) place(pos uint32) uint32 {
	if f.removed == nil {
		return pos
	}
	return pos - f.removed.below(pos)
}

// places is place for many.
func (f *dataFile) places(pos []uint32) []uint32 {
	if f.removed == nil {
		return pos
	}
	out := make([]uint32, len(pos))
	for i, p := range pos {
		out[i] = f.place(p)
	}
	return out
}

// replace puts the rewritten file e in the place of f, of which rows are gone.
func (v *view) replace(f *dataFile, e *manifest.Entry, rows []uint32) error {
	delete(v.files, paimon.KeyOf(&f.entry))
	f.entry, f.removed = *e, f.removed.with(rows)
	v.files[paimon.KeyOf(e)] = f
	return v.index.SetDeleted(f.seg, f.removed.rows)
}

// strayVector is the error of an index file that names a file which is not live.
func (a *Applier) strayVector(k paimon.FileKey) error {
	return &Halt{CodeCorrupt, fmt.Sprintf("an index file holds a deletion vector of data file %s, which is not live", k.Name)}
}

// sortByPartition brings the changes of a partition together.
func sortByPartition(changes []paimon.VectorChange) {
	slices.SortStableFunc(changes, func(x, y paimon.VectorChange) int { return strings.Compare(x.File.Partition, y.File.Partition) })
}
