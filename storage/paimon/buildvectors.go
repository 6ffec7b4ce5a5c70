package paimon

import (
	"bytes"
	"fmt"

	"applier/storage/objstore"
	"applier/storage/paimon/dv"
	"applier/storage/paimon/manifest"

	"github.com/RoaringBitmap/roaring/v2"
)

// VectorChange gives a data file a new whole vector; nil (or an empty one) takes
// it away: the file goes.
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

// BuildVectors writes the index files for changed vectors (paimon-format.md §7.4,
// §7.5). In a table without buckets every index file that holds a changed vector is
// replaced; its unchanged vectors go into new files of their own, so that what
// changes often parts from what does not. A bucket has one index file with all its
// vectors. unchanged returns the vector of such a data file. Each data file may be
// changed once. newUUID is called once for each partition and bucket, in the order
// of their first changes.
func (t *Table) BuildVectors(base *State, changes []VectorChange, unchanged func(FileKey) (*roaring.Bitmap, error), newUUID func() string) (*IndexChange, error) {
	var order []BucketKey
	parts := map[BucketKey][]VectorChange{}
	seen := map[FileKey]bool{}
	for _, c := range changes {
		k := BucketKey{c.File.Partition, c.File.Bucket}
		switch {
		case seen[c.File]:
			return nil, fmt.Errorf("deletion vectors: data file %s is changed twice", c.File.Name)
		case k.Bucket != 0 && t.buckets.n == 0:
			return nil, fmt.Errorf("deletion vectors: data file %s is in bucket %d, and the table has no buckets", c.File.Name, k.Bucket)
		}
		seen[c.File] = true
		if _, ok := parts[k]; !ok {
			order = append(order, k)
		}
		parts[k] = append(parts[k], c)
	}
	out := &IndexChange{}
	for _, k := range order {
		w := vectorWriter{t: t, partition: []byte(k.Partition), bucket: k.Bucket, uuid: newUUID(), out: out, b: dv.NewBuilder(t.vectorVersion())}
		if err := w.keep(base, parts[k], unchanged); err != nil {
			return nil, err
		}
		if err := w.change(parts[k]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// vectorVersion is the width that vectors are written in: that of the table's
// option. An old vector of the other width that changes is converted; Java, which
// cannot merge the two, fails on such a file (paimon-format.md §15).
func (t *Table) vectorVersion() dv.Version {
	if t.options.Bitmap64 {
		return dv.Bits64
	}
	return dv.Bits32
}

// vectorWriter fills the index files of one partition, or of one bucket. Without
// buckets it rolls to the next one at the target size.
type vectorWriter struct {
	t         *Table
	partition []byte
	bucket    int32
	uuid      string
	n         int
	out       *IndexChange
	b         *dv.Builder
}

// keep takes the touched index files away and writes what stays of them.
func (w *vectorWriter) keep(base *State, changes []VectorChange, unchanged func(FileKey) (*roaring.Bitmap, error)) error {
	touched := map[string]bool{}
	for _, c := range changes {
		touched[c.File.Name] = true
	}
	for i := range base.Index {
		e := &base.Index[i]
		if e.Type != manifest.IndexDeletionVectors || e.Bucket != w.bucket || !bytes.Equal(e.Partition, w.partition) {
			continue
		}
		if !w.bucketed() && !holdsAny(e, touched) {
			continue
		}
		gone := *e
		gone.Kind = manifest.Delete
		w.out.Delete = append(w.out.Delete, gone)
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
	if w.bucketed() {
		return nil // the changed ones go into the same file
	}
	return w.finish()
}

// bucketed: all vectors lie in one file.
func (w *vectorWriter) bucketed() bool { return w.t.buckets.n > 0 }

func holdsAny(e *manifest.IndexEntry, names map[string]bool) bool {
	for _, v := range e.Vectors {
		if names[v.DataFile] {
			return true
		}
	}
	return false
}

// change writes the new vectors.
func (w *vectorWriter) change(changes []VectorChange) error {
	for _, c := range changes {
		if c.Vector == nil || c.Vector.IsEmpty() {
			continue
		}
		if err := w.add(c.File.Name, c.Vector); err != nil {
			return err
		}
	}
	return w.finish()
}

func (w *vectorWriter) add(dataFile string, m *roaring.Bitmap) error {
	if m == nil {
		return fmt.Errorf("the deletion vector of %s is missing", dataFile)
	}
	if err := w.b.Add(dataFile, m); err != nil {
		return fmt.Errorf("writing the deletion vector of %s: %w", dataFile, err)
	}
	if !w.bucketed() && w.b.Size() > w.t.options.DeletionVectorTargetSize {
		return w.finish()
	}
	return nil
}

// finish ends the index file at hand, if there is one.
func (w *vectorWriter) finish() error {
	if w.b.Len() == 0 {
		return nil
	}
	data, files, ranges := w.b.Finish()
	e := manifest.IndexEntry{
		Kind: manifest.Add, Partition: w.partition, Bucket: w.bucket, Type: manifest.IndexDeletionVectors,
		Name: IndexName(w.uuid, w.n), Size: int64(len(data)), Rows: int64(len(files)),
	}
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
