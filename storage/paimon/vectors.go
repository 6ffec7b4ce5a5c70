package paimon

import (
	"bytes"
	"context"
	"fmt"

	"applier/storage/objstore"
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

func vectorRange(v manifest.DeletionVector) dv.Range {
	r := dv.Range{Offset: v.Offset, Length: v.Length, Cardinality: -1}
	if v.Cardinality != nil {
		r.Cardinality = *v.Cardinality
	}
	return r
}

// ReadVector reads a deletion vector; rows is the data file's row count.
func (t *Table) ReadVector(ctx context.Context, ref VectorRef, rows int64) (*roaring.Bitmap, error) {
	key, err := t.paths.Index(ref.Index)
	if err != nil {
		return nil, err
	}
	r, err := t.bucket.Open(ctx, key, ref.Index.Size)
	if err != nil {
		return nil, fmt.Errorf("opening index file %s: %w", key, err)
	}
	defer func() { _ = r.Close() }()
	v, err := dv.Read(r, r.Size(), ref.At)
	if err != nil {
		return nil, fmt.Errorf("reading index file %s: %w", key, err)
	}
	if err := dv.CheckRows(v.Positions, rows); err != nil {
		return nil, fmt.Errorf("index file %s: %w", key, err)
	}
	return v.Positions, nil
}

// VectorChange gives a data file a new whole vector; nil takes it away (the
// file goes).
type VectorChange struct {
	File   FileKey
	Vector *roaring.Bitmap
}

// IndexChange is the difference between two index manifests.
type IndexChange struct {
	Add    []manifest.IndexEntry
	Delete []manifest.IndexEntry
	// Objects are the new index files.
	Objects []objstore.Object
	// Bytes is their size.
	Bytes int64
}

// BuildVectors writes the index files for changed vectors of an unaware-bucket
// table (paimon-format.md §7.4): every index file that holds a changed vector is
// replaced; its unchanged vectors go into a new file of their own, so that what
// changes often parts from what does not. unchanged returns the vector of such
// a data file. changes of one partition must be adjacent and ordered by the
// caller; each data file at most once. newUUID makes one name a partition.
func (t *Table) BuildVectors(base *State, changes []VectorChange, unchanged func(FileKey) (*roaring.Bitmap, error), newUUID func() string) (*IndexChange, error) {
	out := &IndexChange{}
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].File.Partition == changes[0].File.Partition {
			n++
		}
		if err := t.partitionVectors(base, changes[:n], unchanged, newUUID(), out); err != nil {
			return nil, err
		}
		changes = changes[n:]
	}
	return out, nil
}

func (t *Table) partitionVectors(base *State, changes []VectorChange, unchanged func(FileKey) (*roaring.Bitmap, error), uuid string, out *IndexChange) error {
	touched := map[string]bool{}
	for _, c := range changes {
		touched[c.File.Name] = true
	}
	w := vectorWriter{t: t, partition: []byte(changes[0].File.Partition), uuid: uuid, out: out, b: dv.NewBuilder(dv.Bits32)}
	for i := range base.Index {
		e := &base.Index[i]
		if e.Type != manifest.IndexDeletionVectors || !bytes.Equal(e.Partition, w.partition) || !holdsAny(e, touched) {
			continue
		}
		gone := *e
		gone.Kind = manifest.Delete
		out.Delete = append(out.Delete, gone)
		for _, v := range e.Vectors {
			if touched[v.DataFile] {
				continue
			}
			m, err := unchanged(FileKey{string(e.Partition), e.Bucket, v.DataFile})
			if err != nil {
				return err
			}
			if err := w.add(v.DataFile, m); err != nil {
				return err
			}
		}
	}
	if err := w.finish(); err != nil {
		return err
	}
	for _, c := range changes {
		if c.Vector == nil {
			continue
		}
		if err := w.add(c.File.Name, c.Vector); err != nil {
			return err
		}
	}
	return w.finish()
}

func holdsAny(e *manifest.IndexEntry, names map[string]bool) bool {
	for _, v := range e.Vectors {
		if names[v.DataFile] {
			return true
		}
	}
	return false
}

// vectorWriter fills index files and rolls to the next one at the target size.
type vectorWriter struct {
	t         *Table
	partition []byte
	uuid      string
	n         int
	out       *IndexChange
	b         *dv.Builder
}

func (w *vectorWriter) add(dataFile string, m *roaring.Bitmap) error {
	if err := w.b.Add(dataFile, m); err != nil {
		return fmt.Errorf("writing the deletion vector of %s: %w", dataFile, err)
	}
	if w.b.Size() > w.t.options.DeletionVectorTargetSize {
		return w.finish()
	}
	return nil
}

func (w *vectorWriter) finish() error {
	if w.b.Len() == 0 {
		return nil
	}
	data, files, ranges := w.b.Finish()
	e := manifest.IndexEntry{Kind: manifest.Add, Partition: w.partition, Type: manifest.IndexDeletionVectors,
		Name: IndexName(w.uuid, w.n), Size: int64(len(data)), Rows: int64(len(files))}
	w.n++
	for i, f := range files {
		card := ranges[i].Cardinality
		e.Vectors = append(e.Vectors, manifest.DeletionVector{DataFile: f, Offset: ranges[i].Offset, Length: ranges[i].Length, Cardinality: &card})
	}
	key, err := w.t.paths.Index(&e)
	if err != nil {
		return err
	}
	w.out.Add = append(w.out.Add, e)
	w.out.Objects = append(w.out.Objects, objstore.Object{Key: key, Data: data})
	w.out.Bytes += int64(len(data))
	w.b.Reset()
	return nil
}
