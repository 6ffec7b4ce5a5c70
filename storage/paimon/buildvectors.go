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

// BuildVectors writes the index files for changed vectors of an unaware-bucket
// table (paimon-format.md §7.4): every index file that holds a changed vector is
// replaced; its unchanged vectors go into new files of their own, so that what
// changes often parts from what does not. unchanged returns the vector of such
// a data file. Each data file may be changed once. newUUID is called once for
// each partition, in the order of their first changes.
func (t *Table) BuildVectors(base *State, changes []VectorChange, unchanged func(FileKey) (*roaring.Bitmap, error), newUUID func() string) (*IndexChange, error) {
	var order []string
	parts := map[string][]VectorChange{}
	seen := map[FileKey]bool{}
	for _, c := range changes {
		switch {
		case seen[c.File]:
			return nil, fmt.Errorf("deletion vectors: data file %s is changed twice", c.File.Name)
		case c.File.Bucket != 0:
			return nil, fmt.Errorf("deletion vectors: data file %s is in bucket %d, vectors of buckets are not written yet", c.File.Name, c.File.Bucket)
		}
		seen[c.File] = true
		if _, ok := parts[c.File.Partition]; !ok {
			order = append(order, c.File.Partition)
		}
		parts[c.File.Partition] = append(parts[c.File.Partition], c)
	}
	out := &IndexChange{}
	for _, p := range order {
		w := vectorWriter{t: t, partition: []byte(p), uuid: newUUID(), out: out, b: dv.NewBuilder(t.vectorVersion())}
		if err := w.keep(base, parts[p], unchanged); err != nil {
			return nil, err
		}
		if err := w.change(parts[p]); err != nil {
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

// vectorWriter fills the index files of one partition and rolls to the next one
// at the target size.
type vectorWriter struct {
	t         *Table
	partition []byte
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
		if e.Type != manifest.IndexDeletionVectors || e.Bucket != 0 || !bytes.Equal(e.Partition, w.partition) || !holdsAny(e, touched) {
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
	if w.b.Size() > w.t.options.DeletionVectorTargetSize {
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
		Kind: manifest.Add, Partition: w.partition, Type: manifest.IndexDeletionVectors,
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
