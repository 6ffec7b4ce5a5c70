// Package decode turns Kafka records into changes: one file a format. A decoder
// appends to typed columns and never builds maps; what does not fit is a
// RowError, never a guess.
package decode

import (
	"applier/ingest/change"
	"applier/storage/types"
)

// Record is one Kafka record. Its bytes belong to the caller and are not
// retained or changed by Decode.
type Record struct {
	Topic     string
	Part      int32 // ordinal of the source partition in the pipeline's list
	Partition int32
	Offset    int64
	Timestamp int64 // milliseconds since the epoch
	Key       []byte
	Value     []byte
	Headers   []change.Header
}

// Skip says why a record changed no row although nothing is wrong with it.
type Skip string

// The reasons, as they appear in metrics.
const (
	SkipNone         Skip = ""
	SkipTombstone    Skip = "tombstone"     // follows a delete that was applied, or carries no key
	SkipHeartbeat    Skip = "heartbeat"     // Debezium heartbeat
	SkipTransaction  Skip = "transaction"   // Debezium transaction boundary
	SkipSchemaChange Skip = "schema_change" // Debezium schema change event
	SkipTruncate     Skip = "truncate"      // op t, where the pipeline does not apply it
	SkipMessage      Skip = "message"       // op m: logical decoding message
	SkipOtherRecord  Skip = "control"       // any other control record, named in the log
	SkipDelete       Skip = "delete"        // a delete under a preset that ignores deletes
)

// Class and RowError are the vocabulary of rows that cannot be applied; they live
// with the changes, for the merger speaks of them too.
type (
	Class    = change.Class
	RowError = change.RowError
)

// The classes.
const (
	ClassSyntax      = change.ClassSyntax
	ClassEnvelope    = change.ClassEnvelope
	ClassKey         = change.ClassKey
	ClassNullKey     = change.ClassNullKey
	ClassType        = change.ClassType
	ClassRange       = change.ClassRange
	ClassLength      = change.ClassLength
	ClassNotNull     = change.ClassNotNull
	ClassUnavailable = change.ClassUnavailable
	ClassUnsupported = change.ClassUnsupported
)

// Options is what every decoder needs to know of its pipeline. Its slices must
// not be changed after New.
type Options struct {
	// Fields are the target table's columns, in table order.
	Fields []types.Field
	// Key are the indexes of the merge key columns, in key order; empty for append.
	Key []int
	// OrderBy are the columns that decide which change is newer: every change must
	// carry them.
	OrderBy []int
	// Append: deletes keep their before image, nothing is skipped for want of a key.
	Append bool
	// Columns maps metadata of the record to target columns (config columns.add).
	Columns []MetaColumn
	// Unavailable is the producer's placeholder text; empty switches it off.
	Unavailable string
	// UnscaledDecimals: schema-less base64 decimals carry the column's scale
	// (config source.decimals: unscaled).
	UnscaledDecimals bool
	// KeyColumn names the column of a scalar record key; empty takes the only
	// key column.
	KeyColumn string
	// IgnoreRecordKey: the record key says nothing about the merge key (a topic
	// keyed for partitioning only). Keys come from values, null values change nothing.
	IgnoreRecordKey bool
	// IgnoreDeletes: deletes change nothing and give SkipDelete (presets upsert
	// and insert_only). Append without a column for op implies it.
	IgnoreDeletes bool
	// Truncates: a truncation is applied, so it needs its place in the order. OrderBy
	// columns must then be among Columns.
	Truncates bool
	// BeforeImages: a delete carries its before image, if the record has one, and the
	// metadata; what it does not carry is absent.
	BeforeImages bool
	// Binary is how text for a binary column is encoded where no schema says
	// bytes (Debezium's binary.handling.mode). bytes of a schema are base64 always.
	Binary BinaryText
	// KeepRaw keeps a copy of each record whose row has a hole that may turn out
	// impossible to fill (for dead letters).
	KeepRaw bool
	// KeepEvery keeps a copy of each record that changes a row: any of them may turn
	// out late, and late ones go to the dead letters.
	KeepEvery bool
	// Evolution is how the table follows the schemas of its records.
	Evolution Evolution
	// Conditions are what the table asks of values beyond their columns' types.
	Conditions []Condition
}

// Condition is a further condition on the values of a column: a text that is to
// name a partition's folder, say. Check is not called for NULL; its error, which
// must not contain the value, is a RowError of ClassRange.
type Condition struct {
	Column int
	Check  func(v types.Datum) error
}

// BinaryText is an encoding of bytes in text.
type BinaryText uint8

// The encodings.
const (
	BinaryBase64    BinaryText = iota // RFC 4648 standard alphabet, padded
	BinaryBase64URL                   // RFC 4648 URL alphabet, padded
	BinaryHex                         // two digits a byte, optionally with \x or 0x in front
)

// SourceNull is the source of a column that no change fills (the marker of soft
// deletes): it is NULL in every row, never a hole.
const SourceNull = "null"

// MetaColumn fills a target column from the record's metadata.
type MetaColumn struct {
	// Column is the index of the target column.
	Column int
	// Source is one of: op (c, u, r, d; the json format says u and d), ts_ms (the connector's clock),
	// source.NAME (a member of Debezium's source block; "." descends further),
	// kafka.topic, kafka.partition, kafka.offset, kafka.timestamp (milliseconds, or the
	// instant for a TIMESTAMP_LTZ column), header.NAME.
	Source string
}

// Result is what became of a record without error.
type Result struct {
	Rows int // changes appended
	Skip Skip
	// Truncation is set for a record that says that the source's table was emptied
	// (with SkipTruncate): what to do about it is the pipeline's decision. It has a place
	// in the order under Options.Truncates only.
	Truncation *change.Truncation
	// Note is for the log, without values: what a skipped control record was, or
	// something about the schema that is worth knowing (each thing once).
	Note string
}

// Decoder decodes the records of one pipeline. It is not safe for concurrent
// use: it keeps the last seen schema and member order to go faster.
type Decoder interface {
	// Decode appends the record's changes to out. An error is a *RowError or a
	// *SchemaChange and leaves out as it was; nothing else can fail.
	Decode(rec *Record, out *change.Batch) (Result, error)
	// Restart says that reading begins elsewhere: what comes next need not follow
	// what was decoded last, and Record.Part may mean other partitions.
	Restart()
	// UnknownColumns returns the names of row image members that the target has
	// no column for, sorted. They are ignored; at most 256 are remembered.
	UnknownColumns() []string
}
