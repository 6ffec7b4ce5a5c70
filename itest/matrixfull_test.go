//go:build itest && itestfull

package itest

// fullMatrix: every cell of the matrix of conflicts is run.
const fullMatrix = true
