// Package app builds the running program from its configuration: it opens
// tables, wires the rooms together, and carries out signals and commands. What
// a change means is not decided here.
package app
