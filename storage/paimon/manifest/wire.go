package manifest

import (
	"errors"
	"fmt"
	"slices"

	"applier/storage/paimon/binrow"
)

// The records as the Avro library maps them: names in tags, null as nil pointer.
// They are reused from record to record, in both directions; nothing public
// keeps a pointer into them.

type wireStats struct {
	Min   []byte    `avro:"_MIN_VALUES"`
	Max   []byte    `avro:"_MAX_VALUES"`
	Nulls *[]*int64 `avro:"_NULL_COUNTS"`
}

type wireFile struct {
	Name        string    `avro:"_FILE_NAME"`
	Size        int64     `avro:"_FILE_SIZE"`
	Rows        int64     `avro:"_ROW_COUNT"`
	MinKey      []byte    `avro:"_MIN_KEY"`
	MaxKey      []byte    `avro:"_MAX_KEY"`
	KeyStats    wireStats `avro:"_KEY_STATS"`
	ValueStats  wireStats `avro:"_VALUE_STATS"`
	MinSequence int64     `avro:"_MIN_SEQUENCE_NUMBER"`
	MaxSequence int64     `avro:"_MAX_SEQUENCE_NUMBER"`
	SchemaID    int64     `avro:"_SCHEMA_ID"`
	Level       int32     `avro:"_LEVEL"`
	Extra       []string  `avro:"_EXTRA_FILES"`
	Created     *int64    `avro:"_CREATION_TIME"`
	DeleteRows  *int64    `avro:"_DELETE_ROW_COUNT"`
	Embedded    *[]byte   `avro:"_EMBEDDED_FILE_INDEX"`
	Source      *int32    `avro:"_FILE_SOURCE"`
	StatsCols   *[]string `avro:"_VALUE_STATS_COLS"`
	External    *string   `avro:"_EXTERNAL_PATH"`
	FirstRowID  *int64    `avro:"_FIRST_ROW_ID"`
	WriteCols   *[]string `avro:"_WRITE_COLS"`
	Sequences   *[]int64  `avro:"_WRITE_COLS_SEQUENCES"` // Paimon 2.1
}

type wireEntry struct {
	Version      int32    `avro:"_VERSION"`
	Kind         int32    `avro:"_KIND"`
	Partition    []byte   `avro:"_PARTITION"`
	Bucket       int32    `avro:"_BUCKET"`
	TotalBuckets int32    `avro:"_TOTAL_BUCKETS"`
	File         wireFile `avro:"_FILE"`
}

type wireMeta struct {
	Version   int32     `avro:"_VERSION"`
	Name      string    `avro:"_FILE_NAME"`
	Size      int64     `avro:"_FILE_SIZE"`
	Added     int64     `avro:"_NUM_ADDED_FILES"`
	Deleted   int64     `avro:"_NUM_DELETED_FILES"`
	Partition wireStats `avro:"_PARTITION_STATS"`
	SchemaID  int64     `avro:"_SCHEMA_ID"`
	MinBucket *int32    `avro:"_MIN_BUCKET"`
	MaxBucket *int32    `avro:"_MAX_BUCKET"`
	MinLevel  *int32    `avro:"_MIN_LEVEL"`
	MaxLevel  *int32    `avro:"_MAX_LEVEL"`
	MinRowID  *int64    `avro:"_MIN_ROW_ID"`
	MaxRowID  *int64    `avro:"_MAX_ROW_ID"`
	Total     *int32    `avro:"_TOTAL_BUCKETS"` // this and the next: Paimon 2.1
	Extra     *[]string `avro:"_EXTRA_FILES"`
}

type wireVector struct {
	File        string `avro:"f0"`
	Offset      int32  `avro:"f1"`
	Length      int32  `avro:"f2"`
	Cardinality *int64 `avro:"_CARDINALITY"`
}

type wireGlobal struct {
	Start  int64    `avro:"_ROW_RANGE_START"`
	End    int64    `avro:"_ROW_RANGE_END"`
	Field  int32    `avro:"_INDEX_FIELD_ID"`
	Extra  *[]int32 `avro:"_EXTRA_FIELD_IDS"`
	Meta   *[]byte  `avro:"_INDEX_META"`
	Source *[]byte  `avro:"_SOURCE_META"`
}

type wireIndex struct {
	Version   int32          `avro:"_VERSION"`
	Kind      int32          `avro:"_KIND"`
	Partition []byte         `avro:"_PARTITION"`
	Bucket    int32          `avro:"_BUCKET"`
	Type      string         `avro:"_INDEX_TYPE"`
	Name      string         `avro:"_FILE_NAME"`
	Size      int64          `avro:"_FILE_SIZE"`
	Rows      int64          `avro:"_ROW_COUNT"`
	Vectors   *[]*wireVector `avro:"_DELETIONS_VECTORS_RANGES"`
	External  *string        `avro:"_EXTERNAL_PATH"`
	Global    *wireGlobal    `avro:"_GLOBAL_INDEX"`
}

// Versions of the records; Java refuses others (sources: ManifestEntrySerializer,
// ManifestFileMetaSerializer, IndexManifestEntrySerializer).
const (
	entryVersion = 2
	listVersion  = 2
	indexVersion = 1
)

func checkVersion(got, want int32) error {
	if got != want {
		return fmt.Errorf("%w: record version %d instead of %d", ErrUnsupported, got, want)
	}
	return nil
}

func checkKind(k int32) (Kind, error) {
	if k != int32(Add) && k != int32(Delete) {
		return 0, fmt.Errorf("%w: kind %d", ErrCorrupt, k)
	}
	return Kind(k), nil
}

// reader turns wire records into public ones. lossy is set when something was
// read that could not be written back: null where Java never writes it, or a
// value in a field that is not known here.
type reader struct {
	lossy bool
}

// row returns the bytes of a BinaryRow; null reads as the row without fields.
func (r *reader) row(b []byte) []byte {
	if b == nil {
		r.lossy = true
		return binrow.Empty()
	}
	return b
}

func (r *reader) stats(w *wireStats) Stats {
	s := Stats{Min: r.row(w.Min), Max: r.row(w.Max)}
	if w.Nulls != nil {
		s.NullCounts = make([]int64, len(*w.Nulls))
		for i, n := range *w.Nulls {
			if n == nil {
				s.NullCounts[i] = UnknownCount
			} else {
				s.NullCounts[i] = *n
			}
		}
	}
	return s
}

// copyOf copies what a wire pointer points to.
func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// copyList copies a wire list; present but empty stays apart from null.
func copyList[T any](p *[]T) []T {
	if p == nil {
		return nil
	}
	return append(make([]T, 0, len(*p)), *p...)
}

// bytesOf returns wire bytes, which are never reused.
func bytesOf(p *[]byte) []byte {
	if p == nil {
		return nil
	}
	if *p == nil {
		return []byte{}
	}
	return *p
}

func (r *reader) entry(w *wireEntry) (Entry, error) {
	kind, err := checkKind(w.Kind)
	if err = errors.Join(checkVersion(w.Version, entryVersion), err); err != nil {
		return Entry{}, err
	}
	f := &w.File
	if f.Extra == nil {
		r.lossy = true
	}
	return Entry{
		Kind: kind, Partition: r.row(w.Partition), Bucket: w.Bucket, TotalBuckets: w.TotalBuckets,
		File: DataFile{
			Name: f.Name, Size: f.Size, Rows: f.Rows,
			MinKey: r.row(f.MinKey), MaxKey: r.row(f.MaxKey), KeyStats: r.stats(&f.KeyStats), ValueStats: r.stats(&f.ValueStats),
			MinSequence: f.MinSequence, MaxSequence: f.MaxSequence, SchemaID: f.SchemaID, Level: f.Level,
			ExtraFiles: slices.Clone(f.Extra), CreationTime: copyOf(f.Created), DeleteRows: copyOf(f.DeleteRows),
			EmbeddedIndex: bytesOf(f.Embedded), Source: copyOf(f.Source), StatsColumns: copyList(f.StatsCols),
			ExternalPath: copyOf(f.External), FirstRowID: copyOf(f.FirstRowID), WriteColumns: copyList(f.WriteCols),
			WriteColumnSequences: copyList(f.Sequences),
		},
	}, nil
}

func (r *reader) meta(w *wireMeta) (Meta, error) {
	return Meta{
		Name: w.Name, Size: w.Size, Added: w.Added, Deleted: w.Deleted, PartitionStats: r.stats(&w.Partition), SchemaID: w.SchemaID,
		MinBucket: copyOf(w.MinBucket), MaxBucket: copyOf(w.MaxBucket), MinLevel: copyOf(w.MinLevel), MaxLevel: copyOf(w.MaxLevel),
		MinRowID: copyOf(w.MinRowID), MaxRowID: copyOf(w.MaxRowID), TotalBuckets: copyOf(w.Total), ExtraFiles: copyList(w.Extra),
	}, checkVersion(w.Version, listVersion)
}

func (r *reader) index(w *wireIndex) (IndexEntry, error) {
	kind, err := checkKind(w.Kind)
	if err = errors.Join(checkVersion(w.Version, indexVersion), err); err != nil {
		return IndexEntry{}, err
	}
	e := IndexEntry{
		Kind: kind, Partition: r.row(w.Partition), Bucket: w.Bucket, Type: w.Type, Name: w.Name, Size: w.Size, Rows: w.Rows,
		ExternalPath: copyOf(w.External),
	}
	if w.Vectors != nil {
		e.Vectors = make([]DeletionVector, len(*w.Vectors))
		for i, v := range *w.Vectors {
			if v == nil {
				return IndexEntry{}, fmt.Errorf("%w: index file %s has a vector that is null", ErrCorrupt, w.Name)
			}
			e.Vectors[i] = DeletionVector{v.File, v.Offset, v.Length, copyOf(v.Cardinality)}
		}
	}
	if g := w.Global; g != nil {
		e.Global = &GlobalIndex{g.Start, g.End, g.Field, copyList(g.Extra), bytesOf(g.Meta), bytesOf(g.Source)}
	}
	return e, nil
}
