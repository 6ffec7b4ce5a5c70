package manifest

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Errors of this package.
var (
	// ErrCorrupt is wrapped by every error about bytes that are no manifest.
	ErrCorrupt = errors.New("corrupt manifest")
	// ErrUnsupported: a well-formed file of a version, codec or schema that is
	// not known here.
	ErrUnsupported = errors.New("unsupported manifest")
	// ErrInconsistent: entries contradict each other, such as a file added twice.
	ErrInconsistent = errors.New("inconsistent manifest entries")
)

// Kind says whether an entry adds or deletes its file.
type Kind int8

// The kinds, as stored in _KIND.
const (
	Add    Kind = 0
	Delete Kind = 1
)

// String returns ADD or DELETE.
func (k Kind) String() string {
	switch k {
	case Add:
		return "ADD"
	case Delete:
		return "DELETE"
	}
	return fmt.Sprintf("KIND(%d)", int8(k))
}

// Sources of a data file, as stored in _FILE_SOURCE.
const (
	SourceAppend  int32 = 0
	SourceCompact int32 = 1
)

// UnawareBuckets is _TOTAL_BUCKETS of a table with bucket=-1; all its files are
// in bucket 0.
const UnawareBuckets int32 = -1

// Entry is one change of a data manifest (Paimon's ManifestEntry). Byte slices
// and strings may share memory with the file they were read from; an Entry must
// not be changed in place once it is shared.
type Entry struct {
	Kind Kind
	// Partition is the prefixed BinaryRow of the partition columns. Its bytes
	// are the partition's identity.
	Partition    []byte
	Bucket       int32
	TotalBuckets int32
	File         DataFile
}

// DataFile describes a data file (Paimon's DataFileMeta). Nil pointers and nil
// slices are Avro's null unless said otherwise.
type DataFile struct {
	Name string
	// Size in bytes; readers find the Parquet footer by it.
	Size int64
	// Rows is the number of physical rows, deleted ones included.
	Rows int64
	// MinKey and MaxKey are the row without fields in append tables.
	MinKey, MaxKey           []byte
	KeyStats                 Stats
	ValueStats               Stats
	MinSequence, MaxSequence int64
	SchemaID                 int64
	Level                    int32
	// ExtraFiles are names of companion files, never null; part of the identity.
	ExtraFiles []string
	// CreationTime is the writer's local wall clock, in milliseconds, as if it were UTC.
	CreationTime *int64
	// DeleteRows counts retractions of primary-key tables, not deletion vectors.
	DeleteRows *int64
	// EmbeddedIndex is a file index; part of the identity.
	EmbeddedIndex []byte
	// Source is SourceAppend or SourceCompact, null in old files.
	Source *int32
	// StatsColumns names the columns of ValueStats; null means all written columns.
	StatsColumns []string
	// ExternalPath is the file's full path if it lies outside of the table; part
	// of the identity.
	ExternalPath *string
	// FirstRowID is the first row id in tables with row tracking.
	FirstRowID *int64
	// WriteColumns names the columns in the file; null means all table columns.
	WriteColumns []string
	// WriteColumnSequences is used by data evolution only (Paimon 2.1).
	WriteColumnSequences []int64
}

// Stats are bounds and null counts (Paimon's SimpleStats): two prefixed
// BinaryRows with one field a column, and as many counts. Nil NullCounts are
// null in the file, which readers take for unknown.
type Stats struct {
	Min, Max   []byte
	NullCounts []int64
}

// UnknownCount is an item of NullCounts that is null in the file.
const UnknownCount int64 = -1

// NewDelete returns the entry that removes what the ADD entry e added: a copy
// with the other kind, identity and statistics included.
func (e Entry) NewDelete() Entry {
	e.Kind = Delete
	return e
}

// ID is the identity of a file entry: a DELETE removes the ADD of the same ID.
// Total buckets, statistics, sequence numbers and row ids are no part of it
// (source: Paimon FileEntry.Identifier). IDs are comparable.
type ID struct {
	partition, file, extra, embedded, external string
	bucket, level                              int32
}

// ID returns the entry's identity.
func (e *Entry) ID() ID {
	id := ID{partition: string(e.Partition), file: e.File.Name, bucket: e.Bucket, level: e.File.Level}
	for _, x := range e.File.ExtraFiles {
		id.extra += string(binary.AppendUvarint(nil, uint64(len(x)))) + x
	}
	// A mark in front keeps null and empty apart, as Java does.
	if e.File.EmbeddedIndex != nil {
		id.embedded = "+" + string(e.File.EmbeddedIndex)
	}
	if e.File.ExternalPath != nil {
		id.external = "+" + *e.File.ExternalPath
	}
	return id
}

// FileName returns the name of the data file.
func (id ID) FileName() string { return id.file }

// String names the entry for messages.
func (id ID) String() string {
	s := fmt.Sprintf("%s (partition %x, bucket %d, level %d)", id.file, id.partition, id.bucket, id.level)
	if id.external != "" {
		s += " at " + id.external[1:]
	}
	return s
}

// Meta is an entry of a manifest list: one data manifest (Paimon's
// ManifestFileMeta). Nil pointers are null in the file: readers do not prune by them.
type Meta struct {
	Name string
	Size int64
	// Added and Deleted count the entries of each kind. They must be right: Java
	// does not open a manifest for a kind with count 0.
	Added, Deleted int64
	// PartitionStats are bounds over the entries' partitions, full values.
	PartitionStats       Stats
	SchemaID             int64
	MinBucket, MaxBucket *int32
	MinLevel, MaxLevel   *int32
	MinRowID, MaxRowID   *int64
	// TotalBuckets (if the same in all entries) and ExtraFiles (companion files)
	// come from Paimon 2.1 and are carried along.
	TotalBuckets *int32
	ExtraFiles   []string
}

// IndexDeletionVectors is the index type of deletion-vector files.
const IndexDeletionVectors = "DELETION_VECTORS"

// IndexEntry is an entry of an index manifest: one index file (Paimon's
// IndexManifestEntry). Entries of unknown Type must be carried over unchanged.
type IndexEntry struct {
	// Kind is Add in every stored file.
	Kind      Kind
	Partition []byte
	Bucket    int32
	Type      string
	Name      string
	Size      int64
	// Rows is the number of vectors in a deletion-vector file.
	Rows int64
	// Vectors are the vectors of a deletion-vector file; nil is null.
	Vectors      []DeletionVector
	ExternalPath *string
	Global       *GlobalIndex
}

// DeletionVector says where in an index file the vector of a data file lies
// (Paimon's DeletionVectorMeta; offset and length as package dv reads them).
type DeletionVector struct {
	DataFile       string
	Offset, Length int32
	// Cardinality is null in files of old versions.
	Cardinality *int64
}

// GlobalIndex belongs to index types that are not built here; it is kept as read.
type GlobalIndex struct {
	RowRangeStart, RowRangeEnd int64
	FieldID                    int32
	ExtraFieldIDs              []int32
	IndexMeta, SourceMeta      []byte
}
