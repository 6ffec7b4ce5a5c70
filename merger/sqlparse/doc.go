// Package sqlparse turns SQL text into a syntax tree and back. The dialect is
// that of Spark 4 with ANSI mode on, as far as statements that change and read
// tables need it; keywords and names are case-insensitive.
//
// [Parse] reads one statement, [ParseExpr] one expression, [ParseWhen] the WHEN
// lines of a pipeline, [Split] cuts a script into statements. [Format] prints
// any node as canonical SQL: parsing the print gives an equal tree.
//
// The package knows syntax only: it resolves no names, knows no tables, and
// imports nothing of ours. Every node carries its position; every failure is an
// [*Error] that points at one. Nesting is bounded, and time and memory grow
// linearly with the text, so that any text is safe to parse.
//
// Source of the grammar: the published SQL reference of Apache Spark 4 and its
// observed behaviour.
package sqlparse
