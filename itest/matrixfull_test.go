//go:build itest && itestfull

package itest

// fullMatrix: every cell of the matrix of conflicts is run, and a long comparison
// with Spark.
const fullMatrix = true
