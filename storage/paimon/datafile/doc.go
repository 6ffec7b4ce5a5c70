// Package datafile writes and reads Paimon's Parquet data files, between bytes
// and the vectors of storage/types.
//
// A [Writer] takes batches and assembles pages, row groups and the footer
// itself, from parquet-go's format and thrift packages and the codecs: types,
// annotations, field ids and statistics come out as Paimon's Java core writes
// them (paimon-format.md §8), with statistics only where they are right.
// [Writer.Close] returns the column statistics for the manifest, untruncated;
// [Truncate] cuts them as the table option asks.
//
// A [File] streams batches, reads chosen rows, and accepts what Paimon's Java
// reader accepts: files of parquet-mr, Arrow C++, arrow-rs and parquet-go.
// Columns are found by name. Corrupt input gives an error that wraps
// [ErrCorrupt] and says what is wrong and where; it never panics, and memory is
// bounded by [ReadOptions].
package datafile

import "errors"

// Errors of the package; what is returned wraps one of them with the file
// position or column it is about, or is an error of the caller's reader, writer
// or callback.
var (
	// ErrCorrupt: the bytes are not a valid Parquet file.
	ErrCorrupt = errors.New("corrupt parquet file")
	// ErrUnsupported: a valid file or type that this package does not handle.
	ErrUnsupported = errors.New("unsupported in parquet files")
	// ErrSchema: a column of the file cannot be read as the wanted type, or a
	// batch does not have the writer's columns.
	ErrSchema = errors.New("parquet schema does not fit")
	// ErrTooLarge: a page, footer or batch exceeds its memory limit.
	ErrTooLarge = errors.New("parquet memory limit exceeded")
	// ErrNotNull: a NULL for a NOT NULL column or map key.
	ErrNotNull = errors.New("NULL in a NOT NULL column")
	// ErrRange: a value that its column type cannot hold.
	ErrRange = errors.New("value outside the column type")
)
