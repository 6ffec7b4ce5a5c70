// Package query runs SELECT over rows in reach: tables and views that a [Source]
// finds, VALUES, sub-queries and joins of them; filter, grouping, DISTINCT, ORDER
// BY, LIMIT, set operations. It is what statements need beside changing rows, not a
// query engine: sorts, groups and the right side of a join are in memory.
//
// [Compile] resolves a query to a [Plan]; [Plan.Run] gives its rows. Expressions are
// those of package expr. A stranger's map: plan.go the outside; relation.go FROM;
// selects.go one SELECT; group.go GROUP BY; order.go ORDER BY and LIMIT; setop.go
// UNION and its like; names.go the names of columns.
package query
