//go:build itest && !itestfull

package itest

// fullMatrix: a slice of the matrix of conflicts has to do.
const fullMatrix = false
