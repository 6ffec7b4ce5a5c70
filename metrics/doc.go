// Package metrics names every metric of the process, builds them, and documents
// them. The table in names.go is the one place where a metric is declared; the
// vectors that rooms count with, docs/metrics.md and the tests follow from it.
//
// The package imports no other room. Rooms take plain functions and observers,
// and the application connects them to the vectors here.
package metrics
