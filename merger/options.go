package merger

import (
	"fmt"
	"log/slog"
	"time"

	"applier/batcher"
	"applier/storage/objstore"
	"applier/storage/types"
)

// Settings are what a pipeline's rows mean: fixed for the life of an Applier.
type Settings struct {
	// ID is the pipeline's identity: it names the position record.
	ID string
	// Apply is the preset; Merge stands in its place where that is batcher.Merge.
	Apply batcher.Apply
	Merge *Merge
	// Key are indexes of the table's columns; Order says which change of a key is newer.
	Key   []int
	Order batcher.Order
	// RememberDeletes is for how long the place of a delete in the order is
	// remembered; 0 remembers none. It needs Marks.
	RememberDeletes time.Duration
	// Topics are the source topics.
	Topics []string
	// OnRowError decides about rows that turn out impossible only when the table
	// is asked (holes nothing can fill): pause, skip or dead_letter.
	OnRowError string
	// Instance names this process in records and logs.
	Instance string
	// Pin keeps foreign expiry from removing the newest position record.
	Pin bool
	// VerifySample reads the key of one in so many matched rows back from the
	// table before it is marked deleted; 0 switches it off.
	VerifySample int
	// IndexCeiling says how many bytes the key index may take when it is built;
	// nil is no limit.
	IndexCeiling func() int64
	// StateDir holds the index's sidecar files.
	StateDir string
	// Marks keeps what is beside the table: the marker of past commits, and the
	// remembered deletes; nil for none.
	Marks objstore.Bucket
	// TargetFileBytes overrides the table's target-file-size for tests.
	TargetFileBytes int64
	// CopyBytes is about how much memory the copy of a large file may hold, in tables
	// without deletion vectors; 0 leaves it to the table's options.
	CopyBytes int64
	// EncodeConcurrency is how many goroutines encode Parquet columns.
	EncodeConcurrency int
	// CommitUserPrefix starts the commit user of this process.
	CommitUserPrefix string
	Log              *slog.Logger
	// Now is the wall clock, for snapshot times.
	Now func() time.Time
	// UUID makes names of files and snapshots. With EncodeConcurrency above 1 several
	// goroutines call it.
	UUID func() string
}

// DeletedAt is the column that soft deletes set.
const DeletedAt = "deleted_at"

// deletedAtColumn finds the soft delete marker.
func deletedAtColumn(fields []types.Field) (int, error) {
	for i, f := range fields {
		if f.Name != DeletedAt {
			continue
		}
		if f.Type.Kind != types.TimestampLTZ || f.Type.NotNull {
			return 0, fmt.Errorf("apply soft_delete needs a nullable column %s of type TIMESTAMP(3) WITH LOCAL TIME ZONE, the table's is %s", DeletedAt, f.Type)
		}
		return i, nil
	}
	return 0, fmt.Errorf("apply soft_delete needs a column %s TIMESTAMP(3) WITH LOCAL TIME ZONE; the table has none", DeletedAt)
}
