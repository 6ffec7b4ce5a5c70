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
	"golang.org/x/sync/errgroup"
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
func (a *Applier) rewriteFiles(ctx context.Context, at *attempt, ch *paimon.Changes) error {
	at.rewritten = map[uint32]*manifest.Entry{}
	copies, err := a.planCopies(at.plan)
	if err != nil {
		return err
	}
	if err := a.copyFiles(ctx, copies); err != nil {
		return err
	}
	for _, c := range copies {
		ch.Delete = append(ch.Delete, c.from.entry)
		if c.to != nil {
			at.rewritten[c.from.seg] = c.to
			at.bytes.Data += c.to.File.Size
			ch.Add = append(ch.Add, *c.to)
		}
	}
	for _, seg := range at.plan.goneSegments() {
		ch.Delete = append(ch.Delete, a.view.bySeg[seg].entry)
	}
	return nil
}

// fileCopy is a file that rows are taken out of, and what is left of it; to is nil
// for nothing.
type fileCopy struct {
	from *dataFile
	drop *roaring.Bitmap // positions in the file
	to   *manifest.Entry
}

// planCopies lists the files to be rewritten in the order of their segments.
func (a *Applier) planCopies(p *plan) ([]*fileCopy, error) {
	var copies []*fileCopy
	for _, seg := range p.sortedSegments() {
		f := a.view.bySeg[seg]
		if f == nil {
			return nil, &Halt{CodeMismatch, fmt.Sprintf("the index names a data file (segment %d) that is not live", seg)}
		}
		drop := roaring.BitmapOf(f.places(p.deletes[seg])...)
		if drop.GetCardinality() != uint64(len(p.deletes[seg])) || int64(drop.Maximum()) >= f.entry.File.Rows {
			return nil, &Halt{CodeMismatch, fmt.Sprintf("rows to be deleted of data file %s are not in it", f.entry.File.Name)}
		}
		copies = append(copies, &fileCopy{from: f, drop: drop})
	}
	return copies, nil
}

// Files up to sideBySide bytes are copied at the same time, up to maxCopies of
// them: what they wait for is the disk. Larger ones come one after another, for
// each may need a row group of memory; their columns are encoded in parallel.
const (
	sideBySide = 8 << 20
	maxCopies  = 8
)

// copyFiles makes the copies. What an earlier attempt for the same batch has copied
// already is taken as it is: nobody refers to it, and where others commit often a
// batch with large files would never come to an end.
func (a *Applier) copyFiles(ctx context.Context, copies []*fileCopy) error {
	group, side := errgroup.WithContext(ctx)
	group.SetLimit(min(max(a.set.EncodeConcurrency, 1), maxCopies))
	var large []*fileCopy
	for _, c := range copies {
		size := &c.from.entry.File
		switch {
		case int64(c.drop.GetCardinality()) == size.Rows:
		case a.reuse(c):
		case size.Size > sideBySide:
			large = append(large, c)
		default:
			group.Go(func() error {
				w, err := a.copier()
				if err != nil {
					return err
				}
				defer func() { a.copiers <- w }()
				c.to, err = w.Rewrite(side, &c.from.entry, c.drop)
				return err
			})
		}
	}
	err := group.Wait()
	for _, c := range large {
		if err == nil {
			c.to, err = a.writer.Rewrite(ctx, &c.from.entry, c.drop)
		}
	}
	for _, c := range copies {
		if c.to != nil {
			a.copied[paimon.KeyOf(&c.from.entry)] = c
		}
	}
	return err
}

// reuse takes a copy over from an earlier attempt.
func (a *Applier) reuse(c *fileCopy) bool {
	old := a.copied[paimon.KeyOf(&c.from.entry)]
	if old == nil || !old.drop.Equals(c.drop) {
		return false
	}
	c.to = old.to
	return true
}

// copier returns a writer that nobody uses.
func (a *Applier) copier() (*paimon.DataFileWriter, error) {
	select {
	case w := <-a.copiers:
		return w, nil
	default:
		return a.newWriter(1)
	}
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

// sortByPartition brings the changes of a partition together.
func sortByPartition(changes []paimon.VectorChange) {
	slices.SortStableFunc(changes, func(x, y paimon.VectorChange) int { return strings.Compare(x.File.Partition, y.File.Partition) })
}
