// Package verify proves a table: it reads everything that a pipeline's table is
// made of, compares it with itself, with the index that would be built from it,
// and, as far as Kafka still has them, with the records. It writes nothing and
// needs no running process. It shares the file formats with the product, but none
// of the code that decides what a change does: the model in model.go is another
// one, row by row.
package verify
