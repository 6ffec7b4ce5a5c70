// Package paimon is Apache Paimon's table format for append tables: schemas,
// options, snapshots, tags, consumers, paths, statistics. Its sub-packages hold
// the binary parts: binrow, manifest, dv, datafile.
//
// All keys are relative to the table's directory, which is the root of the
// [objstore.Bucket] that is passed in.
package paimon
