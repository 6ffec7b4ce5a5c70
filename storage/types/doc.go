// Package types is the bottom of the house: Paimon data types, typed column
// vectors, single values, comparison, text forms and merge-key encoding. It
// imports nothing of ours and knows neither files nor Kafka nor SQL.
//
// Columns are the truth, rows are a view: the hot path moves [Vector] and
// [Batch]; [Datum] exists for tests, command-line output, predicates and
// statement evaluation.
package types
