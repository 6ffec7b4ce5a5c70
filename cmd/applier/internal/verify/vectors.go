package verify

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"applier/storage/paimon"
	"applier/storage/paimon/manifest"

	"github.com/RoaringBitmap/roaring/v2"
)

// vectorPlace is where a stored vector lies.
type vectorPlace struct {
	index          string // key of the index file
	offset, length int32
}

// vectorUse says for which data file a vector was written.
type vectorUse struct {
	ref      paimon.VectorRef
	rows     int64
	file     string
	snapshot int64
}

// checkVectors compares the deletion vectors of a snapshot with its live files
// and with the snapshot before (I5, I6); what is in them is read once, later.
func (w *walker) checkVectors(before, c *content, live map[paimon.FileKey]*manifest.Entry) {
	s := c.snap
	for _, k := range sortedFiles(c.refs) {
		ref := c.refs[k]
		key, err := w.v.Table.Paths().Index(ref.Index)
		if err != nil {
			continue // found before
		}
		e := live[k]
		if e == nil {
			w.vec.fail("manifest/"+*s.s.IndexManifest, "", "snapshot %d: it has a deletion vector of data file %s, which is not live", s.id, k.Name)
			continue
		}
		w.vectors[vectorPlace{key, ref.At.Offset, ref.At.Length}] = vectorUse{ref, e.File.Rows, e.File.Name, s.id}
		n := ref.At.Cardinality
		switch {
		case n < 0:
			c.dead = -1
		case n > e.File.Rows:
			w.vec.fail("manifest/"+*s.s.IndexManifest, "", "snapshot %d: %d rows of data file %s are deleted, it has %d", s.id, n, k.Name, e.File.Rows)
		case c.dead >= 0:
			c.dead += n
		}
		if before == nil || s.ours() == nil {
			continue
		}
		if was, ok := before.refs[k]; ok && n >= 0 && was.At.Cardinality > n {
			w.vec.fail("manifest/"+*s.s.IndexManifest, "", "snapshot %d: %d rows of data file %s are deleted, there were %d before", s.id, n, k.Name, was.At.Cardinality)
		}
	}
	if before == nil || s.ours() == nil {
		return
	}
	for _, k := range sortedFiles(before.refs) {
		if _, has := c.refs[k]; !has && live[k] != nil {
			file := s.key
			if s.s.IndexManifest != nil {
				file = "manifest/" + *s.s.IndexManifest
			}
			w.vec.fail(file, "", "snapshot %d: data file %s lost its deletion vector", s.id, k.Name)
		}
	}
}

// vectors reads every deletion vector that a retained snapshot uses: checksum,
// form, cardinality, and positions inside of the data file.
func (v *verifier) vectors(ctx context.Context) {
	w := v.walk
	v.r.Sections = append(v.r.Sections, w.vec)
	places := make([]vectorPlace, 0, len(w.vectors))
	for p := range w.vectors {
		places = append(places, p)
	}
	slices.SortFunc(places, func(a, b vectorPlace) int {
		return cmp.Or(strings.Compare(a.index, b.index), cmp.Compare(a.offset, b.offset))
	})
	for _, p := range places {
		u := w.vectors[p]
		m, err := v.Table.ReadVector(ctx, u.ref, u.rows)
		if err != nil {
			if !v.gone(ctx, u.snapshot) {
				w.vec.readError(p.index, err)
			}
			continue
		}
		w.vec.count("vectors", 1)
		w.vec.count("deleted rows", int64(m.GetCardinality()))
	}
	if len(places) == 0 && w.vec.Status == OK {
		w.vec.count("vectors", 0)
	}
	if !v.Table.Options().DeletionVectors && len(places) > 0 {
		w.vec.note("deletion-vectors.enabled is off: readers ignore them")
	}
}

// vectorOf reads the vector of a live file, nil for none.
func (v *verifier) vectorOf(ctx context.Context, c *content, e *manifest.Entry) (*roaring.Bitmap, error) {
	ref, ok := c.refs[paimon.KeyOf(e)]
	if !ok || !v.Table.Options().DeletionVectors {
		return nil, nil
	}
	return v.Table.ReadVector(ctx, ref, e.File.Rows)
}

func sortedFiles(m map[paimon.FileKey]paimon.VectorRef) []paimon.FileKey {
	keys := make([]paimon.FileKey, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b paimon.FileKey) int {
		return cmp.Or(strings.Compare(a.Partition, b.Partition), strings.Compare(a.Name, b.Name))
	})
	return keys
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func sortFindings(s *Section) {
	slices.SortStableFunc(s.Findings, func(a, b Finding) int { return strings.Compare(a.File, b.File) })
}
