// Package sql executes SQL statements on the tables of a catalog, in Spark's dialect:
// what `applier sql` runs. A statement that changes a table makes one snapshot of it,
// or none; after an error nothing has changed.
//
// A stranger's map: session.go the outside; target.go a table that is to be changed;
// insert.go, delete.go, update.go, merge.go turn a statement into changed rows, evolve.go
// adds columns for a MERGE; editor.go, sink.go and, in copy-on-write tables, rewrite.go
// turn rows into files; commit.go publishes them and starts again if somebody else was
// first; source.go is what SELECT reads, pushdown.go what it need not read; create.go,
// alter.go, show.go the other statements; defaults.go column defaults.
package sql
