package datafile

import "applier/storage/types"

// Defaults of WriterOptions.
const (
	DefaultRowGroupBytes = 128 << 20 // Parquet's and Paimon's parquet.block.size
	DefaultPageBytes     = 256 << 10
	DefaultKeyPageBytes  = 64 << 10
	DefaultPageRows      = 20_000 // parquet-mr's page row limit
	DefaultCreatedBy     = "applier version 0 (build none)"
)

// WriterOptions configure a Writer. Only Fields must be set.
type WriterOptions struct {
	// Fields are the columns in file order with their ids: the table's columns,
	// and _ROW_ID and _SEQUENCE_NUMBER where a file carries them.
	Fields []types.Field
	// Compression is the table option file.compression: zstd (default), snappy,
	// gzip, lz4_raw, none.
	Compression string
	// ZstdLevel is file.compression.zstd-level; 0 is 1.
	ZstdLevel int
	// RowGroupBytes and RowGroupRows end a row group: bytes before compression
	// (after dictionary encoding), rows exactly. 0 is the default, or no limit of rows.
	RowGroupBytes int64
	RowGroupRows  int64
	// PageBytes and PageRows end a data page (before compression).
	PageBytes int
	PageRows  int
	// KeyColumns are indexes of Fields that are often read alone or by
	// position; their pages end at KeyPageBytes.
	KeyColumns   []int
	KeyPageBytes int
	// NoDictionary switches dictionaries off; else text and binary columns get
	// one if a sample of their values says so.
	NoDictionary bool
	// Delta writes integers (also decimals, dates, times and timestamps of 32
	// or 64 bits) as DELTA_BINARY_PACKED and text and binary as
	// DELTA_LENGTH_BYTE_ARRAY where no dictionary is used: smaller and faster,
	// but not yet proven with every engine that reads Paimon tables.
	Delta bool
	// KeepChars writes CHAR values as they are, without filling them up with
	// blanks: for copies of rows that somebody else wrote.
	KeepChars bool
	// Concurrency is how many goroutines encode columns during Write; 0 is 1.
	Concurrency int
	// CreatedBy goes into the footer, in the form "name version x (build y)".
	CreatedBy string
}

// ColumnStats are the statistics of one top-level column over a whole file.
type ColumnStats struct {
	// NullCount is the number of NULL rows; for a row group of a foreign file
	// it is -1 if unknown.
	NullCount int64
	// HasBounds says that Min and Max are set: real values, untruncated; zeros
	// of FLOAT and DOUBLE widened to both signs. There are none without a value,
	// with a NaN, for nested columns and for TIMESTAMP(7..9): engines that
	// cut nanoseconds (Spark) would prune rows that they show as equal, and
	// Paimon's Java core has no bounds there either.
	HasBounds bool
	Min, Max  types.Datum
}

// Info describes a finished file.
type Info struct {
	Bytes     int64         // size of the file
	Rows      int64         // rows in it
	RowGroups int           // row groups in it
	Columns   []ColumnStats // one for each of WriterOptions.Fields
}

func (o *WriterOptions) setDefaults() {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	if o.RowGroupBytes <= 0 {
		o.RowGroupBytes = DefaultRowGroupBytes
	}
	def(&o.PageBytes, DefaultPageBytes)
	def(&o.KeyPageBytes, DefaultKeyPageBytes)
	def(&o.PageRows, DefaultPageRows)
	o.PageRows = min(o.PageRows, 1<<20) // validity bits are reserved for so many
	def(&o.Concurrency, 1)
	if o.CreatedBy == "" {
		o.CreatedBy = DefaultCreatedBy
	}
}
