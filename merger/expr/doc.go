// Package expr compiles SQL expressions to typed evaluators: Spark 4.1's
// dialect under ANSI rules with three-valued logic.
//
// [Compile] takes an expression of package sqlparse and a [Scope] (the columns
// in reach), resolves names and functions, inserts the implicit casts and checks
// types; the resulting [Expr] computes a value for a row. Values are
// [types.Datum]; an expression of integers, booleans and comparisons allocates
// nothing. Errors are *[Error] with Spark's error class and the place in the
// text.
//
// A stranger's map: scope.go names; coerce.go implicit casts; cast*.go explicit
// ones; arith.go, decimal.go, compare.go, logic.go operators; registry.go and
// fn_*.go the functions, one table a family; assign.go what INSERT, UPDATE and
// MERGE do to a value before it is stored; agg.go aggregates.
package expr
