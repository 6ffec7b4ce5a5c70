package paimon

import (
	"context"
	"fmt"

	"applier/storage/paimon/dv"
	"applier/storage/paimon/manifest"

	"github.com/RoaringBitmap/roaring/v2"
)

// VectorRef says where the deletion vector of a data file lies.
type VectorRef struct {
	Index *manifest.IndexEntry
	At    dv.Range
}

// Same reports whether two references name the same stored vector.
func (r VectorRef) Same(o VectorRef) bool {
	return r.Index != nil && o.Index != nil && r.Index.Name == o.Index.Name && r.At == o.At
}

// FileKey names a data file within a table, as deletion vectors do.
type FileKey struct {
	Partition string // the partition row's bytes
	Bucket    int32
	Name      string
}

// KeyOf returns a data file's key.
func KeyOf(e *manifest.Entry) FileKey {
	return FileKey{string(e.Partition), e.Bucket, e.File.Name}
}

// VectorRefs lists the deletion vectors of an index manifest's entries. Two
// vectors for one data file are ErrCorrupt: no reader could tell which counts.
func VectorRefs(index []manifest.IndexEntry) (map[FileKey]VectorRef, error) {
	refs := map[FileKey]VectorRef{}
	for i := range index {
		e := &index[i]
		if e.Type != manifest.IndexDeletionVectors {
			continue
		}
		for _, v := range e.Vectors {
			k := FileKey{string(e.Partition), e.Bucket, v.DataFile}
			if _, twice := refs[k]; twice {
				return nil, fmt.Errorf("%w: data file %s has two deletion vectors", ErrCorrupt, v.DataFile)
			}
			refs[k] = VectorRef{e, vectorRange(v)}
		}
	}
	return refs, nil
}

// LiveVectors is VectorRefs of the vectors that count: there are none, whatever
// the index manifest says, in a table without the option
// deletion-vectors.enabled (paimon-format.md §7).
func (t *Table) LiveVectors(index []manifest.IndexEntry) (map[FileKey]VectorRef, error) {
	if !t.options.DeletionVectors {
		return nil, nil
	}
	return VectorRefs(index)
}

func vectorRange(v manifest.DeletionVector) dv.Range {
	r := dv.Range{Offset: v.Offset, Length: v.Length, Cardinality: -1}
	if v.Cardinality != nil {
		r.Cardinality = *v.Cardinality
	}
	return r
}

// ReadVector reads a deletion vector; rows is the data file's row count.
func (t *Table) ReadVector(ctx context.Context, ref VectorRef, rows int64) (*roaring.Bitmap, error) {
	m, err := t.readVector(ctx, ref, rows)
	if err != nil {
		return nil, fmt.Errorf("index file %s: %w", ref.Index.Name, err)
	}
	return m, nil
}

func (t *Table) readVector(ctx context.Context, ref VectorRef, rows int64) (*roaring.Bitmap, error) {
	r, err := t.openIndex(ctx, ref.Index)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if n := r.Size(); n >= 0 && n != ref.Index.Size {
		return nil, fmt.Errorf("%w: it has %d bytes, the index manifest says %d", ErrCorrupt, n, ref.Index.Size)
	}
	v, err := dv.Read(r, ref.Index.Size, ref.At)
	if err != nil {
		return nil, err
	}
	return v.Positions, dv.CheckRows(v.Positions, rows)
}
