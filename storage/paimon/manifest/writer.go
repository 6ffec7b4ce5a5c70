package manifest

import "applier/storage/paimon/binrow"

// writer turns public records into wire ones. Its scratch space is reused from
// record to record.
type writer struct {
	counts  [3][]int64
	nulls   [3][]*int64
	vectors []wireVector
	refs    []*wireVector
}

// stats fills w; slot tells the up to three Stats of one record apart.
func (s *writer) stats(w *wireStats, st *Stats, slot int) {
	w.Min, w.Max, w.Nulls = rowOf(st.Min), rowOf(st.Max), nil
	if st.NullCounts == nil {
		return
	}
	counts, nulls := append(s.counts[slot][:0], st.NullCounts...), present(s.nulls[slot])
	for i := range counts {
		if counts[i] == UnknownCount {
			nulls = append(nulls, nil)
		} else {
			nulls = append(nulls, &counts[i])
		}
	}
	s.counts[slot], s.nulls[slot] = counts, nulls
	w.Nulls = &s.nulls[slot]
}

// rowOf keeps bytes that are no BinaryRow at all out of the file.
func rowOf(b []byte) []byte {
	if b == nil {
		return binrow.Empty()
	}
	return b
}

// present empties a list that is to be written even when nothing is in it: the
// Avro library takes a pointer to a nil slice for null.
func present[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l[:0]
}

// listOf makes the nil of a public field the null of a wire one, and nothing else.
func listOf[T any](l *[]T) *[]T {
	if *l == nil {
		return nil
	}
	return l
}

func (s *writer) entry(w *wireEntry, e *Entry) {
	f := &e.File
	*w = wireEntry{
		Version: entryVersion, Kind: int32(e.Kind), Partition: rowOf(e.Partition), Bucket: e.Bucket, TotalBuckets: e.TotalBuckets,
		File: wireFile{
			Name: f.Name, Size: f.Size, Rows: f.Rows, MinKey: rowOf(f.MinKey), MaxKey: rowOf(f.MaxKey),
			MinSequence: f.MinSequence, MaxSequence: f.MaxSequence, SchemaID: f.SchemaID, Level: f.Level,
			Extra: f.ExtraFiles, Created: f.CreationTime, DeleteRows: f.DeleteRows, Embedded: listOf(&f.EmbeddedIndex),
			Source: f.Source, StatsCols: listOf(&f.StatsColumns), External: f.ExternalPath, FirstRowID: f.FirstRowID,
			WriteCols: listOf(&f.WriteColumns), Sequences: listOf(&f.WriteColumnSequences),
		},
	}
	s.stats(&w.File.KeyStats, &f.KeyStats, 0)
	s.stats(&w.File.ValueStats, &f.ValueStats, 1)
}

func (s *writer) meta(w *wireMeta, m *Meta) {
	*w = wireMeta{
		Version: listVersion, Name: m.Name, Size: m.Size, Added: m.Added, Deleted: m.Deleted, SchemaID: m.SchemaID,
		MinBucket: m.MinBucket, MaxBucket: m.MaxBucket, MinLevel: m.MinLevel, MaxLevel: m.MaxLevel, MinRowID: m.MinRowID, MaxRowID: m.MaxRowID,
		Total: m.TotalBuckets, Extra: listOf(&m.ExtraFiles),
	}
	s.stats(&w.Partition, &m.PartitionStats, 0)
}

func (s *writer) index(w *wireIndex, e *IndexEntry) {
	*w = wireIndex{
		Version: indexVersion, Kind: int32(e.Kind), Partition: rowOf(e.Partition), Bucket: e.Bucket, Type: e.Type, Name: e.Name,
		Size: e.Size, Rows: e.Rows, External: e.ExternalPath,
	}
	if e.Vectors != nil {
		s.vectors, s.refs = s.vectors[:0], present(s.refs)
		for _, v := range e.Vectors {
			s.vectors = append(s.vectors, wireVector{v.DataFile, v.Offset, v.Length, v.Cardinality})
		}
		for i := range s.vectors {
			s.refs = append(s.refs, &s.vectors[i])
		}
		w.Vectors = &s.refs
	}
	if g := e.Global; g != nil {
		w.Global = &wireGlobal{g.RowRangeStart, g.RowRangeEnd, g.FieldID, listOf(&g.ExtraFieldIDs), listOf(&g.IndexMeta), listOf(&g.SourceMeta)}
	}
}

// extendedEntry and extendedMeta report whether a record holds what only the
// schemas of Paimon 2.1 have a field for.
func extendedEntry(e *Entry) bool { return e.File.WriteColumnSequences != nil }

func extendedMeta(m *Meta) bool { return m.TotalBuckets != nil || m.ExtraFiles != nil }
