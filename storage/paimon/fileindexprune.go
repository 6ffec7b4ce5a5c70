package paimon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"applier/storage/objstore"
	"applier/storage/paimon/fileindex"
	"applier/storage/paimon/manifest"
	"applier/storage/types"
)

// Companions are read only for data files above indexedFrom, which are dearer to read,
// and up to largestIndex.
const (
	indexedFrom  = 1 << 20
	largestIndex = 64 << 20
)

// indexMayMatch says whether a file can hold rows that meet the scan's equalities, by
// its bloom filters. Without filters it can. file is the schema the file was written
// with, by whose names the filters go.
func (s *scanner) indexMayMatch(ctx context.Context, e *manifest.Entry, file *Schema) (bool, error) {
	if !s.t.options.FileIndexRead || !slices.ContainsFunc(s.where, s.indexable) {
		return true, nil
	}
	data, err := s.t.readIndex(ctx, e)
	if err != nil || data == nil {
		return true, err
	}
	blooms, err := fileindex.Blooms(data)
	if err != nil {
		return false, err
	}
	for _, c := range s.where {
		f := s.t.schema.Fields[c.Column]
		at := file.ColumnByID(f.ID)
		if !s.indexable(c) || at < 0 || !sameHash(file.Fields[at].Type, f.Type) {
			continue
		}
		bloom := blooms[file.Fields[at].Name]
		hash, err := fileindex.Hasher(f.Type)
		if bloom == nil || err != nil {
			continue
		}
		v := types.NewVector(f.Type.Nullable())
		v.AppendDatum(c.Value)
		if !bloom.Has(hash(v, 0)) {
			return false, nil
		}
	}
	return true, nil
}

// indexable: an equality on a type whose equal values have one hash. CHAR values are
// equal with and without blanks, and 0.0 is -0.0.
func (s *scanner) indexable(c rowCondition) bool {
	switch s.t.schema.Fields[c.Column].Type.Kind {
	case types.Char, types.Float, types.Double:
		return false
	}
	return c.Op == Equal && !c.Value.Null
}

// sameHash tells whether a value has the same hash in a column of another time.
func sameHash(a, b types.Type) bool {
	whole := func(t types.Type) bool {
		return t.Kind == types.TinyInt || t.Kind == types.SmallInt || t.Kind == types.Int || t.Kind == types.BigInt
	}
	return a.Kind == b.Kind && a.Precision == b.Precision || whole(a) && whole(b)
}

// readIndex returns a data file's index, nil if it has none or one that is not worth
// the reading.
func (t *Table) readIndex(ctx context.Context, e *manifest.Entry) ([]byte, error) {
	if e.File.EmbeddedIndex != nil {
		return e.File.EmbeddedIndex, nil
	}
	name := e.File.Name + indexExtension
	if e.File.Size < indexedFrom || e.File.ExternalPath != nil || !slices.Contains(e.File.ExtraFiles, name) {
		return nil, nil
	}
	key, err := t.paths.Data(e)
	if err != nil {
		return nil, err
	}
	r, err := t.bucket.Open(ctx, path.Dir(key)+"/"+name, -1)
	if errors.Is(err, objstore.ErrNotExist) {
		return nil, nil // what it is for can be read without it
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if n := r.Size(); n < 0 || n > largestIndex {
		return nil, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		return nil, fmt.Errorf("its file index: %w", err)
	}
	return data, nil
}
